"""The portfolio: local search and cutting planes side by side, each feeding the other.

The search finds schedules. The passes of `cutting_planes.fixed_order` bound their cost from below,
and the candidates that they build are starts for the search, even over budget.

With a fixed order the bound holds for the problem. With a free order the passes work in the order
of the incumbent's first computations, and move on with it; their bound holds for that order only.
Before that there is one pass in input order, and one bound for all orders at once; see
`cutting_planes.free_order_bound`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from solvers.checkpointing.incumbent import Incumbent
from solvers.cutting_planes import fixed_order
from solvers.cutting_planes.fixed_order import Pass, Question
from solvers.cutting_planes.free_order_bound import free_order_bound
from solvers.graph import Schedule
from solvers.graph.bounds import least_need
from solvers.graph.order import first_order, renumber
from solvers.local_search.chain import compile_kernels
from solvers.local_search.least_memory import least_memory_found
from solvers.local_search.search import Search, Start, moves_per_round, processors, starts_of
from solvers.local_search.settings import (
    CHAINS,
    CLOSE,
    HEURISTICS_SHARE,
    HOT,
    LEAST_MEMORY_SHARE,
    WARM,
)
from solvers.local_search.solver import limit_note
from solvers.problem import PROVED, Order, Problem, Solution, answer
from solvers.programs.backends import Backend
from solvers.programs.optimize import chosen_backend

HEAD_START = 1.5
"""Seconds that the passes get alone in a fixed order; small problems need nothing else."""

LARGEST_RELAXED = 3000
"""Nodes up to which a relaxation is worth its time."""

PATIENCE, SETTLED_PATIENCE = 6, 3
"""Rounds without a gain worth having after which the search ends; the second once the incumbent
is optimal for its order."""

WORTH = 2e-4
"""A gain worth having, relative to the cost."""

SHORTEST_PASS, PASS_SHARE = 3.0, 0.4
"""What a pass gets in a free order: seconds at least, and share of the time left."""

FIRST_ADVANCE = 0.5
"""Share of the way from the least peak so far to the budget at which the intermediate budget is.
It is halved after each miss."""

CLOSE_ENOUGH = 0.01
"""The least peak's distance to the budget, relative to it, below which there is none."""

ROUND_SHARE, FIRST_SHARE = 0.12, 0.4
"""Share of the time limit that one round of the search takes at most; the second while nothing is
under budget, since cooling too fast ends over it."""

EARLY_LOOK, LATE_LOOK = 0.02, 0.1
"""Seconds between two looks at a pass: before the search has begun, and once it has ended."""


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


def solve_auto(problem: Problem) -> Solution:
    """The best schedule found within the time limit; see the module.

    The search computes a node at most 16 to 20 times. Long chains need more where the budget is
    near the least possible, so heuristics, which have no such limit, are asked as well.

    Options: `backend`, the MILP solver; `starts`, schedules in the same order that are known.

    Raises:
        SolverError: the backend is missing or fails.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> solve_auto(Problem(unit_chain(8), 10)).cost  # nothing is computed twice
        17.0
    """
    graph = problem.graph
    if least_need(graph) > problem.activation_budget:
        note = f"one node alone needs {graph.fixed_bytes + least_need(graph)} bytes"
        return answer(problem, "auto", None, infeasible=True, note=note)
    heuristics = Incumbent(problem)
    heuristics.work(HEURISTICS_SHARE * problem.time_limit)
    run = _begin(problem)
    state = State(problem.deadline, Bounds(graph.one_pass_cost, None, graph.one_pass_cost))
    least: int | None = None
    try:
        with _stopping(run):
            for reached in _states(run, state):
                state = reached  # which an interrupt leaves
        if heuristics.schedule is not None:
            run.search.offer(heuristics.schedule)
        if run.search.schedule is None:
            least = _least_memory(run, state.deadline)
    except KeyboardInterrupt:
        pass
    schedule = run.search.schedule
    bound, bound_order = _bound_of_answer(run, state.bounds)
    proved = _is_proved(run, state.bounds)
    return answer(
        problem,
        "auto",
        schedule,
        bound=bound,
        bound_order=bound_order,
        proved=proved,
        infeasible=state.infeasible,
        least_budget=least,
        note="" if state.infeasible or proved else limit_note(graph, schedule),
        statistics={
            "rounds": run.search.rounds,
            "bound for this order": state.bounds.of_schedule(schedule),
        },
    )


def _begin(problem: Problem) -> Run:
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


@contextmanager
def _stopping(run: Run) -> Iterator[None]:
    """Stop what still runs at the end."""
    try:
        yield
    finally:
        run.stop.set()
        run.pool.shutdown()


def _states(run: Run, state: State) -> Iterator[State]:
    """Search and relax until the time is over, or nothing more is to be gained."""
    for start in [*run.plain, *run.problem.options.get("starts", ())]:
        run.search.offer(start)
    while not _is_done(run, state):
        state = _with_pass(run, state)
        if state.running is not None and not _may_search(run):
            _wait(state, EARLY_LOOK)
        elif state.idle_rounds < _patience(run, state.bounds):
            state = _searched(run, state)
        elif state.running is not None or state.bounding is not None:
            _wait(state, LATE_LOOK)
        else:
            return
        has_ended = state.running is not None and state.running.done()
        state = _with_bound_of_all(state)
        if has_ended:
            state = _absorbed(run, state)
        yield state  # before the report, which may raise KeyboardInterrupt
        if has_ended:
            _report(run, state.bounds, "cutting planes")


def _is_done(run: Run, state: State) -> bool:
    return (
        state.infeasible
        or time.monotonic() >= _search_deadline(run, state)
        or run.search.cost <= _enough(run, state.bounds)
    )


def _search_deadline(run: Run, state: State) -> float:
    """Earlier while nothing is under budget: the rest goes to finding the least memory."""
    reserve = 0.0
    if run.search.schedule is None:
        reserve = LEAST_MEMORY_SHARE * run.problem.time_limit
    return state.deadline - reserve


def _enough(run: Run, bounds: Bounds) -> float:
    """The cost at which the incumbent cannot be improved, or not by anything worth having."""
    return bounds.of_all * (1 + CLOSE) if run.is_free else bounds.of_order * (1 + PROVED)


def _is_proved(run: Run, bounds: Bounds) -> bool:
    """Whether the incumbent is optimal for the order that was asked for."""
    bound = bounds.of_all if run.is_free else bounds.of_order
    return run.search.cost <= bound * (1 + PROVED)


def _may_search(run: Run) -> bool:
    return run.is_free or run.problem.seconds > HEAD_START


def _patience(run: Run, bounds: Bounds) -> int:
    bound = bounds.of_schedule(run.search.schedule)
    return SETTLED_PATIENCE if run.search.cost <= bound * (1 + PROVED) else PATIENCE


def _bound_of_answer(run: Run, bounds: Bounds) -> tuple[float, Order]:
    """A bound that holds for the incumbent, and the orders for which it holds."""
    if not run.is_free:
        return bounds.of_order, "fixed"
    # What holds for every order says more, unless it says nothing.
    of_order = bounds.of_schedule(run.search.schedule)
    if bounds.of_all == run.problem.graph.one_pass_cost < of_order:
        return min(of_order, run.search.cost), "fixed"
    return bounds.of_all, "free"


def _report(run: Run, bounds: Bounds, phase: str) -> None:
    cost = None if run.search.schedule is None else run.search.cost
    run.problem.report(cost, _bound_of_answer(run, bounds)[0], phase)


def _wait(state: State, seconds: float) -> None:
    """Until the pass or the bound that is being worked on is there, or `seconds` are over."""
    working: list[Future[Any]] = [
        each for each in (state.running, state.bounding) if each is not None
    ]
    wait(working, seconds, FIRST_COMPLETED)


def _with_pass(run: Run, state: State) -> State:
    """With the next pass running, if there is something to learn from it."""
    if state.running is not None or len(run.problem.graph) > LARGEST_RELAXED:
        return state
    is_first_look = run.is_free and run.search.rounds == 0
    order = _order_to_bound(run, is_first_look)
    planes = state.planes
    if planes is None or planes.order != order:
        planes = _planes(run, order)
    state = replace(state, planes=planes)
    if planes.state is None or run.search.cost <= planes.state.bound * (1 + PROVED):
        return state
    left = max(0.1, state.deadline - time.monotonic())
    longest = max(SHORTEST_PASS, PASS_SHARE * left)
    if is_first_look:
        limit = min(left, SHORTEST_PASS)
    else:
        limit = min(left, longest) if run.is_free and not planes.is_cut_short else left
    start = _numbered_in(order, run.search.schedule)
    running = run.pool.submit(fixed_order.next_pass, planes.question, planes.state, limit, start)
    if not is_first_look:
        return replace(state, running=running)
    bounding = run.pool.submit(
        free_order_bound, run.problem.graph, run.problem.budget, run.solver, longest
    )
    return replace(state, running=running, bounding=bounding)


def _order_to_bound(run: Run, is_first_look: bool) -> tuple[int, ...]:
    """The order of first computations that the next pass is about."""
    incumbent = run.search.schedule
    if run.is_free and incumbent is not None and not is_first_look:
        return first_order(incumbent)
    return tuple(range(len(run.problem.graph)))


def _planes(run: Run, order: tuple[int, ...]) -> Planes:
    problem = run.problem
    graph = renumber(problem.graph, order)
    question = Question(graph, problem.activation_budget, run.solver, problem.seed)
    return Planes(order, question, fixed_order.first_state(question))


def _numbered_in(order: tuple[int, ...], schedule: Schedule | None) -> Schedule | None:
    """`schedule` with the nodes numbered in `order`; None if its first computations are not."""
    if schedule is None or first_order(schedule) != order:
        return None
    rank = {node: number for number, node in enumerate(order)}
    return Schedule(rank[node] for node in schedule.steps)


def _with_bound_of_all(state: State) -> State:
    """With the bound for every order, once it is there; infinity says that nothing fits."""
    if state.bounding is None or not state.bounding.done():
        return state
    bound = state.bounding.result()
    if math.isinf(bound):
        return replace(state, bounding=None, infeasible=True)
    return replace(state, bounding=None, bounds=replace(state.bounds, of_all=bound))


def _absorbed(run: Run, state: State) -> State:
    """With what the pass that has ended found."""
    assert state.running is not None
    assert state.planes is not None
    found, planes = state.running.result(), state.planes
    # One more try with all the time that is left; a second one would not have more.
    is_over = found.exhausted or (found.cut_short and planes.is_cut_short)
    proposal = _offered(run, planes.order, found.schedules) or state.proposal
    return replace(
        state,
        running=None,
        infeasible=state.infeasible or (found.infeasible and not run.is_free),
        planes=replace(
            planes, state=None if is_over else found.state, is_cut_short=found.cut_short
        ),
        proposal=proposal,
        bounds=_raised(state.bounds, run.search.schedule, planes.order, found.state.bound),
    )


def _offered(run: Run, order: tuple[int, ...], schedules: tuple[Schedule, ...]) -> Schedule | None:
    """Offer what a pass has found; the last that is no better but a start for the search."""
    proposal = None
    for schedule in schedules:
        schedule = Schedule(order[node] for node in schedule.steps)
        if not run.search.offer(schedule) and run.search.fits(schedule):
            proposal = schedule
    return proposal


def _raised(
    bounds: Bounds, incumbent: Schedule | None, order: tuple[int, ...], bound: float
) -> Bounds:
    """With `bound`, which holds for `order`, if that is the incumbent's order."""
    is_its_order = incumbent is None or first_order(incumbent) == order
    if is_its_order and (bounds.order != order or bound > bounds.of_order):
        return replace(bounds, of_order=bound, order=order)
    return bounds


def _searched(run: Run, state: State) -> State:
    """After one round of the search."""
    state = replace(state, deadline=state.deadline + compile_kernels())
    search, time_limit = run.search, run.problem.time_limit
    cost_before, peak_before = search.cost, search.least_peak
    takes_proposal = _takes_proposal(run, state)
    starts = _starts(run, state, state.proposal if takes_proposal else None)
    share = FIRST_SHARE if search.schedule is None else ROUND_SHARE
    search.round(
        starts,
        moves_per_round(run.problem.graph),
        min(_search_deadline(run, state), time.monotonic() + share * time_limit),
        _enough(run, state.bounds),
        lambda *_: _report(run, state.bounds, "search"),
    )
    has_intermediate = any(start.budget is not None for start in starts)
    has_missed = has_intermediate and search.least_peak >= peak_before
    is_worthwhile = math.isinf(cost_before) or search.cost < cost_before - WORTH * cost_before
    return replace(
        state,
        proposal=None if takes_proposal else state.proposal,
        idle_rounds=0 if is_worthwhile else state.idle_rounds + 1,
        advance=state.advance / 2 if has_missed else FIRST_ADVANCE,
    )


def _free_chains(run: Run, state: State) -> int:
    """Chains for which there is a processor."""
    is_busy = state.running is not None or state.bounding is not None
    return len(run.search.chains) - is_busy


def _takes_proposal(run: Run, state: State) -> bool:
    """Whether this round may start from a proposal: a lone chain takes turns."""
    is_lone = _free_chains(run, state) <= 1
    return not is_lone or run.search.schedule is None or run.search.rounds % 2 == 0


def _starts(run: Run, state: State, proposal: Schedule | None) -> list[Start]:
    """Where the chains begin: the proposal, the incumbent, and the plain orders."""
    search, turn = run.search, run.search.rounds
    known = search.schedule or search.leanest
    starts = [] if proposal is None else [Start(proposal, WARM)]
    for i in range(len(starts), max(1, _free_chains(run, state))):
        if known is not None and (i + turn) % 2 and search.fits(known):
            starts.append(Start(known, WARM, _intermediate_budget(run, state)))
        else:
            starts.append(Start(run.plain[(i + turn // 2) % len(run.plain)], HOT))
    return starts


def _intermediate_budget(run: Run, state: State) -> int | None:
    """While nothing is under budget: a budget on the way there from the least peak, in bytes."""
    budget, least = run.problem.budget, run.search.least_peak
    if least <= budget * (1 + CLOSE_ENOUGH):
        return None
    return int(least - state.advance * (least - budget))


def _least_memory(run: Run, deadline: float) -> int:
    """The least peak found in the time that is left; its schedule may be under budget."""
    problem, search = run.problem, run.search
    schedule, peak = least_memory_found(
        problem.graph, problem.order, deadline, problem.seed, search.leanest
    )
    search.offer(schedule)
    return peak
