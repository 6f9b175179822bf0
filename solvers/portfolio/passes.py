"""The portfolio's cutting planes: one pass at a time, in a thread of its own, and their bounds."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

from solvers.cutting_planes import fixed_order
from solvers.cutting_planes.free_order_bound import free_order_bound
from solvers.graph import Schedule
from solvers.graph.order import first_order, renumber
from solvers.local_search import settings as search_settings
from solvers.local_search.search import Search
from solvers.portfolio import settings
from solvers.problem import PROVED, Order, Problem
from solvers.programs.optimize import chosen_backend


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


class Passes:
    """The cutting planes in one order of first computations at a time, and what they have proved.

    Attributes:
        search: holds the incumbent of the whole portfolio.
        bounds: the best so far.
        infeasible: proved: nothing is under budget.
        proposal: the last schedule of a pass that the search has not started from.
        running: the pass that is being worked on.
        bounding: the bound for every order that is being worked on.
        order: of first computations in the last pass, or the one that runs.
        question: about the graph numbered in that order.
        state: what the passes in that order have learned; None when there is no more to learn.
        is_cut_short: whether the last of them was.
    """

    def __init__(self, problem: Problem, search: Search) -> None:
        """None has begun."""
        self.problem = problem
        self.search = search
        self.is_free = problem.order == "free"
        self.bounds = Bounds(problem.graph.one_pass_cost, None, problem.graph.one_pass_cost)
        self.infeasible = False
        self.proposal: Schedule | None = None
        self.running: Future[fixed_order.Pass] | None = None
        self.bounding: Future[float] | None = None
        self._stop = threading.Event()
        self._backend = chosen_backend(problem, self._stop, fixed_order.BACKEND)
        self._pool = ThreadPoolExecutor(1)
        self.order: tuple[int, ...] = ()

    def _turn_to(self, order: tuple[int, ...]) -> None:
        problem = self.problem
        graph = renumber(problem.graph, order)
        self.order = order
        self.question = fixed_order.Question(
            graph, problem.activation_budget, self._backend, problem.seed
        )
        self.state: fixed_order.State | None = fixed_order.first_state(self.question)
        self.is_cut_short = False

    @property
    def is_busy(self) -> bool:
        """Whether a pass or a bound is being worked on."""
        return self.running is not None or self.bounding is not None

    def begin(self, deadline: float) -> None:
        """Begin with the next pass, if none is running and there is something to learn from it."""
        problem, search = self.problem, self.search
        if self.running is not None or len(problem.graph) > settings.LARGEST_RELAXED:
            return
        is_first_look = self.is_free and search.rounds == 0
        order = tuple(range(len(problem.graph)))
        if self.is_free and search.schedule is not None and not is_first_look:
            order = first_order(search.schedule)
        if order != self.order:
            self._turn_to(order)
        if self.state is None or search.cost <= self.state.bound * (1 + PROVED):
            return
        limit = left = max(0.1, deadline - time.monotonic())
        longest = max(settings.SHORTEST_PASS, settings.PASS_SHARE * left)
        if is_first_look:
            limit = min(left, settings.SHORTEST_PASS)
        elif self.is_free and not self.is_cut_short:
            limit = min(left, longest)
        start = self._numbered(search.schedule)
        self.running = self._pool.submit(
            fixed_order.next_pass, self.question, self.state, limit, start
        )
        if is_first_look:
            self.bounding = self._pool.submit(
                free_order_bound, problem.graph, problem.budget, self._backend, longest
            )

    def _numbered(self, schedule: Schedule | None) -> Schedule | None:
        """`schedule` with the nodes numbered in `order`; None if its first computations are not."""
        if schedule is None or first_order(schedule) != self.order:
            return None
        rank = {node: number for number, node in enumerate(self.order)}
        return Schedule(rank[node] for node in schedule.steps)

    def wait(self, seconds: float) -> None:
        """Until the pass or the bound that is being worked on is there, or `seconds` are over."""
        working: list[Future[Any]] = [each for each in (self.running, self.bounding) if each]
        wait(working, seconds, FIRST_COMPLETED)

    def absorb(self) -> bool:
        """Take in what has ended; whether a pass has."""
        if self.bounding is not None and self.bounding.done():
            bound, self.bounding = self.bounding.result(), None
            if math.isinf(bound):
                self.infeasible = True
            else:
                self.bounds = replace(self.bounds, of_all=bound)
        if self.running is None or not self.running.done():
            return False
        found, self.running = self.running.result(), None
        # One more try with all the time that is left; a second one would not have more.
        is_over = found.exhausted or (found.cut_short and self.is_cut_short)
        self.state = None if is_over else found.state
        self.is_cut_short = found.cut_short
        self.infeasible = self.infeasible or (found.infeasible and not self.is_free)
        for numbered in found.schedules:
            schedule = Schedule(self.order[node] for node in numbered.steps)
            if not self.search.offer(schedule) and self.search.fits(schedule):
                self.proposal = schedule
        incumbent, bound = self.search.schedule, found.state.bound
        is_its_order = incumbent is None or first_order(incumbent) == self.order
        if is_its_order and (self.bounds.order != self.order or bound > self.bounds.of_order):
            self.bounds = replace(self.bounds, of_order=bound, order=self.order)
        return True

    def end(self) -> None:
        """Stop what still runs."""
        self._stop.set()
        self._pool.shutdown()

    @property
    def enough(self) -> float:
        """The cost at which the incumbent cannot be improved, or not by anything worth having."""
        if self.is_free:
            return self.bounds.of_all * (1 + search_settings.CLOSE)
        return self.bounds.of_order * (1 + PROVED)

    @property
    def is_proved(self) -> bool:
        """Whether the incumbent is optimal for the order that was asked for."""
        bound = self.bounds.of_all if self.is_free else self.bounds.of_order
        return self.search.cost <= bound * (1 + PROVED)

    def bound_of_answer(self) -> tuple[float, Order]:
        """A bound that holds for the incumbent, and the orders for which it holds."""
        if not self.is_free:
            return self.bounds.of_order, "fixed"
        # What holds for every order says more, unless it says nothing.
        of_order = self.bounds.of_schedule(self.search.schedule)
        if self.bounds.of_all == self.problem.graph.one_pass_cost < of_order:
            return min(of_order, self.search.cost), "fixed"
        return self.bounds.of_all, "free"

    def report(self, phase: str) -> None:
        """Tell the user of the incumbent, and of a bound that holds for it."""
        self.problem.report(self.search.cost, self.bound_of_answer()[0], phase)
