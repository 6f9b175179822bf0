"""One chain of simulated annealing, from a schedule to better ones."""

from __future__ import annotations

import math
import time

import numpy as np

from solvers.graph import ComputationGraph, Node, Schedule
from solvers.local_search import settings
from solvers.local_search.annealing import anneal
from solvers.local_search.changes import load
from solvers.local_search.compiling_ahead import wait_until_compiled
from solvers.local_search.layout import empty_state, memory_unit
from solvers.problem import Order


class Chain:
    """One run of simulated annealing, in chunks that can be interrupted."""

    def __init__(self, graph: ComputationGraph, order: Order, seed: int) -> None:
        """The search state has no schedule yet."""
        self.is_free = order == "free"
        self.state = empty_state(graph, order, seed)
        positive = graph.costs[graph.costs > 0]
        self.mean_cost = float(positive.mean()) if len(positive) else 1.0
        self.bytes_per_unit = memory_unit(graph)
        self.mean_memory = max(1.0, float(self.state.memory.mean()))
        self.penalty = 0.0
        self.budget_units = 0

    def fits(self, schedule: Schedule) -> bool:
        """Whether the search state has room for `schedule`, and for moves around it."""
        times = np.bincount(schedule.steps)
        has_positions = len(schedule) <= settings.MOST_FILLED * len(self.state.node_at)
        return bool(has_positions and times.max() <= self.state.position.shape[1])

    def start(self, schedule: Schedule, budget: int) -> None:
        """Begin from `schedule`, whatever its peak; `budget` is without `fixed_bytes`."""
        assert self.fits(schedule)
        self.budget_units = min(budget // self.bytes_per_unit, settings.MOST_UNITS)
        load(self.state, np.array(schedule.steps, dtype=np.int64), self.budget_units)
        self.penalty = settings.FIRST_PENALTY * self.mean_cost / self.mean_memory

    def run(self, moves: int, hot: float, cold: float, limit: float) -> Schedule | None:
        """Anneal from `hot` to `cold`; the best schedule under budget that costs below `limit`."""
        # The violation counts positions, so what is over budget gathers at ever fewer of them,
        # where at last nothing can move any more. Spread evenly, it can.
        steps = np.array(self.current().steps, dtype=np.int64)
        load(self.state, steps, self.budget_units)
        highest_penalty = settings.HIGHEST_PENALTY * self.mean_cost / self.mean_memory
        self.penalty, length = anneal(
            self.state,
            moves,
            hot * self.mean_cost,
            cold * self.mean_cost,
            self.penalty,
            highest_penalty,
            self.is_free,
            limit,
        )
        return Schedule(self.state.best[:length]) if length else None

    def current(self) -> Schedule:
        """The schedule in the search state, under budget or not."""
        node_at = self.state.node_at
        return Schedule(node_at[node_at >= 0])


def compile_kernels() -> float:
    """Make sure that the search is compiled; the seconds that this took (some 15 once, then 0)."""
    before = time.monotonic()
    wait_until_compiled()
    chain = Chain(ComputationGraph((Node("a", 1.0, 1),)), "fixed", 0)
    chain.start(Schedule([0]), 1)
    chain.run(0, settings.HOT, settings.COLD, math.inf)
    return time.monotonic() - before
