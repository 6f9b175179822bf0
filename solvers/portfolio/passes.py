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


@dataclass
class InOrder:
    """The passes in one order of first computations, and what they have proved.

    Attributes:
        order: the nodes as they are first computed.
        question: about the graph numbered in that order.
        state: what the passes have learned; None when there is no more to learn.
        bound: no schedule in this order costs less, in the graph's unit.
        is_cut_short: whether the last of them was.
    """

    order: tuple[int, ...]
    question: fixed_order.Question
    state: fixed_order.State | None
    bound: float
    is_cut_short: bool = False

    def may_gain(self, cost: float) -> bool:
        """Whether another pass may find a schedule that costs less."""
        return self.state is not None and cost > self.bound * (1 + PROVED)

    def numbered(self, schedule: Schedule | None) -> Schedule | None:
        """`schedule` with the nodes numbered in `order`; None if its first computations are not."""
        if schedule is None or first_order(schedule) != self.order:
            return None
        rank = {node: number for number, node in enumerate(self.order)}
        return Schedule(rank[node] for node in schedule.steps)


class Passes:
    """The cutting planes, one pass at a time, and what they have proved.

    They work in the input order. While the search has nothing under budget, every second one is
    about where its leanest schedule is over, and what that one has learned is not built on.

    For a question about any order they take turns with those in the order of the incumbent, and end
    in the input order once no schedule in it can be cheaper.

    Attributes:
        search: holds the incumbent of the whole portfolio.
        bound: no schedule in any order costs less.
        infeasible: proved: nothing is under budget.
        proposal: the last schedule of a pass that the search has not started from.
        running: the pass that is being worked on.
        bounding: the bound for every order that is being worked on.
    """

    def __init__(self, problem: Problem, search: Search) -> None:
        """None has begun."""
        self.problem = problem
        self.search = search
        self.is_free = problem.order == "free"
        self.bound = problem.graph.one_pass_cost
        self.infeasible = False
        self.proposal: Schedule | None = None
        self.running: Future[fixed_order.Pass] | None = None
        self.bounding: Future[float] | None = None
        self._stop = threading.Event()
        self._backend = chosen_backend(problem, self._stop, fixed_order.BACKEND)
        self._pool = ThreadPoolExecutor(1)
        self._input = self._begun(tuple(range(len(problem.graph))))
        self._other: InOrder | None = None  # in the order of the incumbent, or of one before it
        self._last: InOrder | None = None  # whose pass runs, or was the last one
        self._is_aside = False  # whether that is about where the search is stuck

    def _begun(self, order: tuple[int, ...]) -> InOrder:
        problem = self.problem
        graph = renumber(problem.graph, order)
        question = fixed_order.Question(
            graph, problem.activation_budget, self._backend, problem.seed
        )
        return InOrder(order, question, fixed_order.first_state(question), graph.one_pass_cost)

    @property
    def is_busy(self) -> bool:
        """Whether a pass or a bound is being worked on."""
        return self.running is not None or self.bounding is not None

    def begin(self, deadline: float) -> None:
        """Begin with the next pass, if none is running and there is something to learn from it."""
        problem, search = self.problem, self.search
        if self.running is not None or len(problem.graph) > settings.LARGEST_RELAXED:
            return
        is_first_look = self.is_free and self._last is None
        passes = self._input if is_first_look or not self.is_free else self._next()
        if passes is None or passes.state is None or not passes.may_gain(search.cost):
            return
        left = max(0.1, deadline - time.monotonic())
        longest = max(settings.SHORTEST_PASS, settings.PASS_SHARE * left)
        limit = left
        question, state = passes.question, passes.state
        self._is_aside = self._is_stuck and not self._is_aside
        if self._is_aside:
            assert search.leanest is not None
            limit = min(left, max(settings.SHORTEST_PASS, settings.ASIDE_SHARE * left))
            state = fixed_order.about(question, state, search.leanest)
            # The steps may be those of the time before: by another seed the answer is another.
            question = replace(question, seed=question.seed + search.rounds)
        elif is_first_look:
            limit = min(left, settings.SHORTEST_PASS)
        elif self._is_stuck or (
            self.is_free and (passes is self._input or not passes.is_cut_short)
        ):
            limit = min(left, longest)
        self._last = passes
        self.running = self._pool.submit(
            _short_passes, question, state, limit, passes.numbered(search.schedule)
        )
        if is_first_look:
            self.bounding = self._pool.submit(
                free_order_bound, problem.graph, problem.budget, self._backend, longest
            )

    @property
    def _is_stuck(self) -> bool:
        """Whether in a fixed order the search has begun, and nothing is under budget."""
        return not self.is_free and self.search.rounds > 0 and self.search.schedule is None

    def _next(self) -> InOrder | None:
        """Whose turn it is where the order is free: not that of the last pass, if both may gain."""
        schedule = self.search.schedule
        if schedule is not None:
            order = first_order(schedule)
            if all(order != passes.order for passes in self._all):
                self._other = self._begun(order)
        able = [passes for passes in self._all if passes.may_gain(self.search.cost)]
        return next(
            (passes for passes in able if passes is not self._last), able[0] if able else None
        )

    @property
    def _all(self) -> tuple[InOrder, ...]:
        return (self._input,) if self._other is None else (self._input, self._other)

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
                self.bound = bound
        if self.running is None or not self.running.done():
            return False
        passes = self._last
        assert passes is not None
        found, self.running = self.running.result(), None
        passes.bound = max(passes.bound, found.state.bound)
        self.infeasible = self.infeasible or (found.infeasible and not self.is_free)
        for numbered in found.schedules:
            schedule = Schedule(passes.order[node] for node in numbered.steps)
            if not self.search.offer(schedule) and self.search.fits(schedule):
                self.proposal = schedule
        if self._is_aside:
            return True
        # One more try with all the time that is left; a second one would not have more.
        has_had_it = passes.is_cut_short or (self.is_free and passes is self._input)
        may_try_again = self._is_stuck or not has_had_it
        is_over = found.exhausted or (found.cut_short and not may_try_again)
        passes.state = None if is_over else found.state
        passes.is_cut_short = found.cut_short
        return True

    def bound_for(self, schedule: Schedule | None) -> float:
        """A lower bound on the cost in the order of first computations that `schedule` has."""
        order = None if schedule is None else first_order(schedule)
        proved = [each.bound for each in self._all if order == each.order or not self.is_free]
        return max([self.bound, *proved])

    def end(self) -> None:
        """Stop what still runs, and take in what it has proved by then."""
        self._stop.set()
        self._pool.shutdown()
        self.absorb()

    @property
    def enough(self) -> float:
        """The cost at which the incumbent cannot be improved, or not by anything worth having."""
        if self.is_free:
            return self.bound * (1 + search_settings.CLOSE)
        return self.bound_for(None) * (1 + PROVED)

    @property
    def is_proved(self) -> bool:
        """Whether the incumbent is optimal for the order that was asked for."""
        bound = self.bound if self.is_free else self.bound_for(None)
        return self.search.cost <= bound * (1 + PROVED)

    def bound_of_answer(self) -> tuple[float, Order]:
        """A bound that holds for the incumbent, and the orders for which it holds."""
        in_order = self.bound_for(self.search.schedule)
        if not self.is_free:
            return in_order, "fixed"
        # What holds for every order says more, unless it says nothing.
        if self.bound == self.problem.graph.one_pass_cost < in_order:
            return min(in_order, self.search.cost), "fixed"
        return self.bound, "free"

    def report(self, phase: str) -> None:
        """Tell the user of the incumbent, and of a bound that holds for it."""
        self.problem.report(self.search.cost, self.bound_of_answer()[0], phase)


def _short_passes(
    question: fixed_order.Question,
    state: fixed_order.State,
    time_limit: float,
    incumbent: Schedule | None,
) -> fixed_order.Pass:
    """As `fixed_order.next_pass`; while passes are short, as many as fit into `SHORT_PASSES`."""
    begun = time.monotonic()
    schedules: tuple[Schedule, ...] = ()
    while True:
        seconds = time.monotonic() - begun
        found = fixed_order.next_pass(question, state, time_limit - seconds, incumbent)
        state, schedules = found.state, (*schedules, *found.schedules)
        is_last = found.exhausted or found.infeasible or found.cut_short
        if is_last or time.monotonic() - begun > min(settings.SHORT_PASSES, time_limit / 2):
            return replace(found, schedules=schedules)
