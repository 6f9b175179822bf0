"""Rounds of simulated annealing: chains side by side that share the best schedule found.

Each chain runs in a thread of its own; see `local_search.chain`. What chains find counts only
once the simulator has confirmed it.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from solvers.checkpointing.incumbent import Best
from solvers.graph import ComputationGraph, Schedule
from solvers.graph.order import greedy_order
from solvers.local_search import settings
from solvers.local_search.chain import Chain
from solvers.problem import Order


@dataclass(frozen=True)
class Start:
    """Where a chain begins.

    Attributes:
        schedule: whatever its peak.
        hot: first temperature, in mean costs of a node.
        budget: in bytes, `fixed_bytes` included; None for the search's own.
    """

    schedule: Schedule
    hot: float
    budget: int | None = None

    def temperature(self, share: float) -> float:
        """The temperature when this share of the chain's moves is done, in mean costs of a node."""
        return self.hot * math.pow(settings.COLD / self.hot, share)


class Search(Best):
    """Chains that share one incumbent.

    Attributes:
        speed: moves of one chain per second, in the last chunk; 0 before the first.
        rounds: rounds so far.
    """

    def __init__(
        self,
        graph: ComputationGraph,
        budget: int,
        order: Order,
        seed: int,
        chains: int = settings.CHAINS,
    ) -> None:
        """`chains` at most: no more than there are processors."""
        super().__init__(graph, budget)
        chains = min(chains, processors())
        self.chains = [Chain(graph, order, seed * settings.CHAINS + i) for i in range(chains)]
        self.speed = 0.0
        self.rounds = 0

    def fits(self, schedule: Schedule) -> bool:
        """Whether a chain can start from `schedule`."""
        return self.chains[0].fits(schedule)

    def round(
        self,
        starts: list[Start],
        moves: int,
        deadline: float,
        enough: float,
        on_found: Callable[[], None],
    ) -> None:
        """Anneal a chain from each start, until `deadline` or a cost of `enough`.

        Args:
            moves: of every chain, fewer where time is short.
            deadline: as `time.monotonic` counts.
        """
        chains = self.chains[: len(starts)]
        for chain, start in zip(chains, starts, strict=True):
            budget = self.budget if start.budget is None else start.budget
            chain.start(start.schedule, budget - self.graph.fixed_bytes)
        self.rounds += 1
        done = 0
        with ThreadPoolExecutor(len(chains)) as pool:
            while done < moves and (self.schedule is None or self.cost > enough):
                now = time.monotonic()
                if now >= deadline:
                    break
                moves_left = moves - done
                if self.speed:
                    moves_left = min(moves_left, int(self.speed * (deadline - now)) + 1)
                chunk = int(self.speed * settings.CHUNK_SECONDS) + settings.CHUNK_MOVES
                chunk = min(moves_left, chunk)
                total = done + moves_left
                results = [
                    pool.submit(
                        chain.run,
                        chunk,
                        start.temperature(done / total),
                        start.temperature((done + chunk) / total),
                        self.cost,
                    )
                    for chain, start in zip(chains, starts, strict=True)
                ]
                for result in results:
                    if self.offer(result.result()):
                        on_found()
                self.speed = chunk / max(1e-6, time.monotonic() - now)
                done += chunk
        if self.schedule is None:
            for chain in chains:
                self.offer(chain.current())


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def moves_per_round(graph: ComputationGraph) -> int:
    """How many moves one chain makes from hot to cold."""
    moves = settings.MOVES_PER_NODE * len(graph)
    return min(settings.MOST_MOVES, max(settings.FEWEST_MOVES, moves))


def starts_of(graph: ComputationGraph, order: Order) -> list[Schedule]:
    """Schedules without recomputation to start from."""
    in_order = Schedule(range(len(graph)))
    return [in_order] if order == "fixed" else [in_order, Schedule(greedy_order(graph))]
