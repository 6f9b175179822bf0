"""What the portfolio knows: what stays, and where it stands; what follows from both."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from solvers.cutting_planes import fixed_order
from solvers.cutting_planes.fixed_order import Pass, Question
from solvers.graph import Schedule
from solvers.graph.order import first_order
from solvers.local_search.search import Search, processors, starts_of
from solvers.local_search.settings import (
    CHAINS,
    CLOSE,
    LEAST_MEMORY_SHARE,
)
from solvers.portfolio.settings import FIRST_ADVANCE
from solvers.problem import PROVED, Order, Problem
from solvers.programs.backends import Backend
from solvers.programs.optimize import chosen_backend


@dataclass(frozen=True)
class Run:
    """What stays the same while the portfolio runs.

    Attributes:
        solver: of the relaxations; ends once `stop` is set.
        plain: schedules without recomputation to start from.
        search: its chains, and the incumbent of the whole portfolio.
        pool: runs one pass, or the bound for every order, at a time.
    """

    problem: Problem
    stop: threading.Event
    solver: Backend
    plain: tuple[Schedule, ...]
    search: Search
    pool: ThreadPoolExecutor

    @property
    def is_free(self) -> bool:
        """Whether any order of first computations will do."""
        return self.problem.order == "free"


@dataclass(frozen=True)
class Bounds:
    """Lower bounds on the cost, in the graph's unit.

    Attributes:
        of_order: holds for schedules whose first computations are in `order`.
        order: None as long as `of_order` holds for every order.
        of_all: holds for every order.
    """

    of_order: float
    order: tuple[int, ...] | None
    of_all: float

    def of_schedule(self, schedule: Schedule | None) -> float:
        """A bound that holds for the order of `schedule`."""
        same = schedule is not None and first_order(schedule) == self.order
        return self.of_order if same else self.of_all


@dataclass(frozen=True)
class Planes:
    """The cutting planes in one order of first computations.

    Attributes:
        order: the nodes in it.
        question: about the graph numbered in that order.
        state: None when there is no more to learn.
        is_cut_short: whether the last pass was.
    """

    order: tuple[int, ...]
    question: Question
    state: fixed_order.State | None
    is_cut_short: bool = False


@dataclass(frozen=True)
class State:
    """Where the portfolio stands.

    Attributes:
        deadline: as `time.monotonic` counts; later than the problem's by what compiling takes.
        infeasible: proved: nothing is under budget.
        planes: None before the first pass.
        running: the pass that is being worked on.
        bounding: the bound for every order that is being worked on.
        proposal: the last schedule of a pass that the search has not started from.
        idle_rounds: of the search, in a row, without a gain worth having.
        advance: to the next intermediate budget, as `FIRST_ADVANCE`.
    """

    deadline: float
    bounds: Bounds
    infeasible: bool = False
    planes: Planes | None = None
    running: Future[Pass] | None = None
    bounding: Future[float] | None = None
    proposal: Schedule | None = None
    idle_rounds: int = 0
    advance: float = FIRST_ADVANCE


def begin(problem: Problem) -> Run:
    """What stays the same while the portfolio runs; nothing has been found yet."""
    stop = threading.Event()
    chains = min(CHAINS, processors())
    return Run(
        problem,
        stop,
        chosen_backend(problem, stop, fixed_order.BACKEND),
        tuple(starts_of(problem.graph, problem.order)),
        Search(problem.graph, problem.budget, problem.order, problem.seed, chains),
        ThreadPoolExecutor(1),
    )


def search_deadline(run: Run, state: State) -> float:
    """Earlier while nothing is under budget: the rest goes to finding the least memory."""
    reserve = 0.0
    if run.search.schedule is None:
        reserve = LEAST_MEMORY_SHARE * run.problem.time_limit
    return state.deadline - reserve


def enough(run: Run, bounds: Bounds) -> float:
    """The cost at which the incumbent cannot be improved, or not by anything worth having."""
    return bounds.of_all * (1 + CLOSE) if run.is_free else bounds.of_order * (1 + PROVED)


def is_proved(run: Run, bounds: Bounds) -> bool:
    """Whether the incumbent is optimal for the order that was asked for."""
    bound = bounds.of_all if run.is_free else bounds.of_order
    return run.search.cost <= bound * (1 + PROVED)


def bound_of_answer(run: Run, bounds: Bounds) -> tuple[float, Order]:
    """A bound that holds for the incumbent, and the orders for which it holds."""
    if not run.is_free:
        return bounds.of_order, "fixed"
    # What holds for every order says more, unless it says nothing.
    of_order = bounds.of_schedule(run.search.schedule)
    if bounds.of_all == run.problem.graph.one_pass_cost < of_order:
        return min(of_order, run.search.cost), "fixed"
    return bounds.of_all, "free"


def report(run: Run, bounds: Bounds, phase: str) -> None:
    """Tell the user of the incumbent, and of a bound that holds for it."""
    run.problem.report(run.search.cost, bound_of_answer(run, bounds)[0], phase)
