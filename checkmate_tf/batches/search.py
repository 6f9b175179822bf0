"""The largest batch of a graph that fits some bytes at no more than some extra cost.

A schedule that was found at one size is a schedule at every size, so each answer of a solver
raises the batch to the largest that its schedule fits; and each size for which a solver finds
none, or for which a bound says that there is none, is where the next question stays below.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from checkmate_tf.batches.sized_step import GraphOfBatch
from solvers import Progress, Schedule, Solution, simulate, solve
from solvers.graph.bounds import memory_bound
from solvers.local_search.chain import compile_kernels
from solvers.local_search.least_memory import find_least_memory
from solvers.problem import Enough, Order

_ENOUGH = 1 + 1e-9
"""Costs are added in different orders."""

_SOLVE_TIME = 0.1
"""Share of the time limit for each question to a solver; it ends as soon as it is answered."""

_NEAR = 0.01
"""Share of a batch: bisection ends where so little is left open."""


@dataclass(frozen=True)
class Question:
    """What is asked of a graph.

    Attributes:
        graph: of the step at any batch size.
        budget: bytes on the device at any moment.
        held: bytes that the device holds before the step, at least, by batch size.
        most_cost: of a schedule, in the unit of the graph.
        order: of the operations, "free" or "fixed".
        waste: of a schedule, the bytes that an allocator takes for each live byte.
        time_limit: seconds.
        least_waste: the same as `waste`, of any schedule at least.
    """

    graph: GraphOfBatch
    budget: int
    held: Callable[[int], int]
    most_cost: float
    order: Order
    waste: Callable[[Schedule], float]
    time_limit: float
    least_waste: float = 1.0

    def room(self, size: int, waste: float) -> int:
        """Bytes that a schedule may hold at a batch of `size`, fixed ones included."""
        fixed = self.graph.at(size).fixed_bytes
        return fixed + int((self.budget - max(fixed, self.held(size))) / waste)


@dataclass(frozen=True)
class Answer:
    """What is known of the largest batch.

    Attributes:
        size: the largest for which a schedule was found; 0 for none.
        unchanged: the largest for which the graph's own order fits; 0 for none.
        beyond: the least larger size that was given up.
        impossible: the least for which no schedule fits at whatever cost, by a bound.
        schedule: the one that was found for `size`; None for none.
        starts: all that were found, for a search within other bytes.
    """

    size: int
    unchanged: int
    beyond: int
    impossible: int
    schedule: Schedule | None = None
    starts: tuple[Schedule, ...] = ()


def least_impossible(question: Question) -> int:
    """The least batch for which no schedule is within the budget, by a bound."""

    def fits(size: int) -> bool:
        graph = question.graph.at(size)
        beside = max(0, question.held(size) - graph.fixed_bytes)
        live = memory_bound(graph, question.order) - graph.fixed_bytes
        return graph.fixed_bytes + question.least_waste * live + beside <= question.budget

    return largest(fits) + 1


def largest(fits: Callable[[int], bool], limit: int | None = None) -> int:
    """The largest number that fits, 0 for none, if all smaller ones fit and some number doesn't.

    Args:
        limit: a number that doesn't fit.

    Example:
        >>> largest(lambda number: number * number < 50)
        7
    """
    below, above = 0, 1
    while limit is None and fits(above):
        below, above = above, 2 * above
    above = limit or above
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if fits(middle) else (below, middle)
    return below


def search(
    question: Question,
    show: Callable[[int, int], None] = lambda size, beyond: None,
    pass_on: Callable[[], None] = lambda: None,
    starts: Sequence[Schedule] = (),
) -> Answer:
    """Look for the largest batch.

    Args:
        question: it.
        show: is told the largest size found so far and the least one given up, at every step.
        pass_on: raises `KeyboardInterrupt` if Ctrl-C was pressed, which solvers catch.
        starts: schedules that are known, the leanest known among them, as of an earlier answer.
    """
    return _Search(question, show, pass_on).run(starts)


class _Search:
    """Bisection between a size that has a schedule and one that has none."""

    def __init__(
        self,
        question: Question,
        show: Callable[[int, int], None],
        pass_on: Callable[[], None],
    ) -> None:
        self.question = question
        self.show = show
        self.pass_on = pass_on
        self.size = 0
        self.found: Schedule | None = None
        self.starts: list[Schedule] = []

    def run(self, known: Sequence[Schedule]) -> Answer:
        question = self.question
        compile_kernels()  # once, some 15 s, which no time limit should pay
        deadline = time.monotonic() + question.time_limit
        impossible = beyond = least_impossible(question)
        unchanged = Schedule(range(len(question.graph.graphs[0])))
        waste = self.learn(unchanged, beyond)
        plain = self.size
        self.show(self.size, beyond)
        if beyond - self.size > 1:
            leanest = known or [self.leanest(beyond - 1)]
            for least in leanest:
                if least not in self.starts:
                    waste = self.learn(least, beyond)
            # Sizes for which even the leanest schedule known is too large are given up unasked.
            most = max(self.fitting(least, waste, beyond) for least in leanest)
            beyond = max(self.size, most) + 1
        while beyond - self.size > max(1, _NEAR * self.size) and time.monotonic() < deadline:
            self.show(self.size, beyond)
            middle = (self.size + beyond) // 2
            solution = self.asked(middle, waste)
            if solution.schedule is not None:
                waste = self.learn(solution.schedule, beyond)
            if self.size < middle:
                beyond = middle
        self.show(self.size, beyond)
        return Answer(self.size, plain, beyond, impossible, self.found, tuple(self.starts))

    def learn(self, schedule: Schedule, beyond: int) -> float:
        """Take what a schedule shows; the bytes that an allocator takes for each live one."""
        waste = self.question.waste(schedule)
        self.starts.append(schedule)
        if simulate(self.question.graph.graphs[1], schedule).cost <= self.most_cost:
            size = self.fitting(schedule, waste, beyond)
            if size > self.size:
                self.size, self.found = size, schedule
        return waste

    @property
    def most_cost(self) -> float:
        return self.question.most_cost * _ENOUGH

    def fitting(self, schedule: Schedule, waste: float, beyond: int) -> int:
        """The largest batch below `beyond` that a schedule fits."""
        question = self.question

        def fits(size: int) -> bool:
            peak = simulate(question.graph.at(size), schedule).peak
            return peak <= question.room(size, waste)

        return largest(fits, beyond)

    def leanest(self, size: int) -> Schedule:
        question = self.question
        graph = question.graph.at(size)
        found = find_least_memory(graph, question.order, _SOLVE_TIME * question.time_limit)
        self.pass_on()
        return found.schedule

    def asked(self, size: int, waste: float) -> Solution:
        """A schedule for a batch of `size`, the first that is cheap enough."""
        question = self.question

        def stop(progress: Progress) -> None:
            cheap = progress.cost is not None and progress.cost <= self.most_cost
            if cheap or (progress.bound is not None and progress.bound > self.most_cost):
                raise Enough

        solution = solve(
            question.graph.at(size),
            max(1, question.room(size, waste)),
            "auto",
            _SOLVE_TIME * question.time_limit,
            order=question.order,
            on_progress=stop,
            starts=tuple(self.starts),
        )
        self.pass_on()
        return solution
