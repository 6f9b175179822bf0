"""The best that simple rules find, a plan at a time, while a solver waits for its backend."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from solvers.checkpointing.articulation import articulation_points, is_chain
from solvers.checkpointing.cheapest import Matrices
from solvers.checkpointing.checkpoints import checkpoint_matrices, forward_nodes
from solvers.checkpointing.griewank import griewank_matrices, slot_counts
from solvers.checkpointing.heuristics import every_sqrt, greedy_sweep, last_matrices
from solvers.checkpointing.segments import segment_schedules
from solvers.graph import ComputationGraph, Schedule, simulate
from solvers.problem import Problem

BY_RULE = "this is a heuristic's answer"
"""The note of an answer that the solver did not find itself."""


def by_rule(problem: Problem) -> str:
    """`BY_RULE`, and whether that is for lack of time."""
    return BY_RULE if problem.seconds_left else f"the time was up; {BY_RULE}"


class Best:
    """The cheapest schedule under budget of those offered, and the leanest of all.

    Attributes:
        budget: in bytes, `fixed_bytes` included.
        schedule: None while none is under budget.
        cost: of `schedule` in the graph's unit; infinite while there is none.
        leanest, least_peak: the schedule of least peak, under budget or not; None and infinity
            while there is none.
    """

    def __init__(self, graph: ComputationGraph, budget: int) -> None:
        """Nothing is offered yet."""
        self.graph = graph
        self.budget = budget
        self.schedule: Schedule | None = None
        self.cost = math.inf
        self.leanest: Schedule | None = None
        self.least_peak: float = math.inf

    @property
    def least_budget(self) -> int | None:
        """Bytes of the leanest schedule, `fixed_bytes` included, or None."""
        return None if self.leanest is None else int(self.least_peak)

    def offer(self, schedule: Schedule | None) -> bool:
        """Keep `schedule` if the simulator confirms that it is better; whether it is."""
        if schedule is None:
            return False
        simulation = simulate(self.graph, schedule)
        if simulation.peak < self.least_peak:
            self.leanest, self.least_peak = schedule, simulation.peak
        if simulation.peak > self.budget or simulation.cost >= self.cost:
            return False
        self.schedule, self.cost = schedule, simulation.cost
        return True


class Incumbent(Best):
    """The best so far, of the schedules offered and of those of every rule.

    Attributes:
        plans: how many the rules have made.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> incumbent = Incumbent(Problem(unit_chain(8), 7))
        >>> incumbent.work(seconds=10)
        >>> incumbent.cost  # one computation again, or two
        20.0
    """

    def __init__(self, problem: Problem) -> None:
        """Nothing is tried yet."""
        super().__init__(problem.graph, problem.budget)
        self.plans = 0
        self._deadline = problem.deadline
        self._rules = _plans(problem.graph)
        self._longest = 0.0

    def work(self, seconds: float) -> None:
        """Try plans for so long, one at least, until there are no more.

        None is begun for which the time limit may leave too little.
        """
        end = time.monotonic() + seconds
        now = time.monotonic()
        while now + self._longest < self._deadline:
            plan = next(self._rules, None)
            if plan is None:
                return
            self.offer(plan)
            self.plans += 1
            before, now = now, time.monotonic()
            self._longest = max(self._longest, now - before)
            if now >= end:
                return


def _plans(graph: ComputationGraph) -> Iterator[Schedule]:
    """The plans of every rule that is valid on `graph`, those that take little first."""
    if not len(graph):
        return
    chain = is_chain(graph)
    if chain:
        yield from segment_schedules(graph)
    for matrices in _matrices(graph, chain):
        yield Schedule.from_matrices(graph, *matrices)


def _matrices(graph: ComputationGraph, chain: bool) -> Iterator[Matrices]:
    everything = forward_nodes(graph)
    points = [] if chain else list(articulation_points(graph))
    candidates = [each for each in (points, everything) if each]
    yield checkpoint_matrices(graph, everything)
    for each in candidates:
        yield checkpoint_matrices(graph, every_sqrt(each))
    yield last_matrices(graph)
    for each in candidates:
        yield from (matrices for _, matrices in greedy_sweep(graph, each, coarse_first=True))
    if chain:
        yield from (griewank_matrices(graph, slots) for slots in slot_counts(graph))
