"""Local search for cheap schedules under a budget, in fixed or free order.

Chains of simulated annealing (see `local_search.annealing`) run side by side in threads, round
after round; what they find is confirmed by the simulator before it counts.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from solvers.checkpointing.incumbent import Incumbent
from solvers.graph import ComputationGraph, Node, Schedule, simulate
from solvers.graph.bounds import least_need
from solvers.graph.order import greedy_order
from solvers.local_search.annealing import anneal
from solvers.local_search.layout import MOST_OF_ALL, build_tape, memory_unit, most_times
from solvers.local_search.search_state import lay
from solvers.problem import Order, Problem, Solution, answer

HOT, WARM, COLD = 0.6, 0.1, 0.006  # temperatures, in mean costs of a node
HIGHEST_PRICE = 3e2  # of excess, in mean costs ÷ mean memories
CLOSE = 1e-3  # relative gap to a bound at which searching on is hopeless
MOVES_PER_NODE = 3000  # of one round
FEWEST_MOVES, MOST_MOVES = 50_000, 20_000_000
CHUNK_SECONDS = 0.2
CHAINS = 4  # most threads
LEAST_SHARE = 0.15  # of the time limit, for the least memory where nothing is under budget
RULES_SHARE = 0.02  # most of the time limit that simple rules get, before the search
PATIENCE = 8  # rounds without an improvement after which the search ends

Found = Callable[[Schedule, float], None]


def cap_note(graph: ComputationGraph, schedule: Schedule | None) -> str:
    """What to say where a schedule reaches the most computations of one node, or there is none."""
    most = most_times(len(graph))
    if not len(graph) or (schedule is not None and np.bincount(schedule.steps).max() < most):
        return ""
    what = "none was found" if schedule is None else "it may be better without that limit"
    return f"the search computes a node at most {most} times; {what}"


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


class Chain:
    """One run of simulated annealing, in chunks that can be interrupted."""

    def __init__(self, graph: ComputationGraph, order: Order, seed: int) -> None:
        """Nothing is on the tape yet."""
        self.free = order == "free"
        self.tape = build_tape(graph, order, seed)
        positive = graph.costs[graph.costs > 0]
        self.unit = float(positive.mean()) if len(positive) else 1.0
        self.bytes_per_unit = memory_unit(graph)
        self.mean_memory = max(1.0, float(self.tape.memory.mean()))
        self.price = 0.0
        self.budget_units = 0

    def fits(self, schedule: Schedule) -> bool:
        """Whether there is room on the tape for `schedule`, and for moves around it."""
        times = np.bincount(schedule.steps)
        has_slots = 5 * len(schedule) <= 4 * len(self.tape.occupant)
        return bool(has_slots and times.max() <= self.tape.slot.shape[1])

    def start(self, schedule: Schedule, budget: int) -> None:
        """Begin from `schedule`, whatever its peak; `budget` is without `fixed_bytes`."""
        assert self.fits(schedule)
        self.budget_units = min(budget // self.bytes_per_unit, MOST_OF_ALL)
        lay(self.tape, np.array(schedule.steps, dtype=np.int64), self.budget_units)
        self.price = 0.02 * self.unit / self.mean_memory

    def run(self, moves: int, hot: float, cold: float, limit: float) -> Schedule | None:
        """Anneal from `hot` to `cold`; the best schedule under budget that costs below `limit`."""
        # Excess is counted slot by slot, so that what is over budget gathers in ever fewer slots,
        # where at last nothing can move any more.
        steps = np.array(self.current().steps, dtype=np.int64)
        lay(self.tape, steps, self.budget_units)
        highest_price = HIGHEST_PRICE * self.unit / self.mean_memory
        self.price, length = anneal(
            self.tape,
            moves,
            hot * self.unit,
            cold * self.unit,
            self.price,
            highest_price,
            self.free,
            limit,
        )
        return Schedule(self.tape.best[:length]) if length else None

    def current(self) -> Schedule:
        """What is on the tape, under budget or not."""
        occupant = self.tape.occupant
        return Schedule(occupant[occupant >= 0])


class Search:
    """Chains that share one incumbent.

    Attributes:
        schedule, cost: the best under budget so far, or None and infinity.
        leanest, least_peak: the schedule of least peak that was offered, under budget or not.
    """

    def __init__(
        self, graph: ComputationGraph, budget: int, order: Order, seed: int, chains: int
    ) -> None:
        """`budget` is in bytes, `fixed_bytes` included."""
        self.graph = graph
        self.budget = budget
        self.chains = [Chain(graph, order, seed * CHAINS + i) for i in range(chains)]
        self.schedule: Schedule | None = None
        self.cost = math.inf
        self.leanest: Schedule | None = None
        self.least_peak: float = math.inf
        self.speed = 0.0
        self.rounds = 0

    def offer(self, schedule: Schedule | None) -> bool:
        """Take `schedule` as the incumbent if the simulator confirms that it is better."""
        if schedule is None:
            return False
        simulation = simulate(self.graph, schedule)
        if simulation.peak < self.least_peak:
            self.leanest, self.least_peak = schedule, simulation.peak
        if simulation.peak > self.budget or simulation.cost >= self.cost:
            return False
        self.schedule, self.cost = schedule, simulation.cost
        return True

    def fits(self, schedule: Schedule) -> bool:
        """Whether a chain can start from `schedule`."""
        return self.chains[0].fits(schedule)

    def round(
        self,
        starts: list[Start],
        moves: int,
        deadline: float,
        enough: float,
        on_found: Found,
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
                left = deadline - now
                if left <= 0:
                    break
                moves_left = moves - done
                if self.speed:
                    moves_left = min(moves_left, int(self.speed * left) + 1)
                chunk = min(moves_left, int(self.speed * CHUNK_SECONDS) + 2000)
                total = done + moves_left
                results = [
                    pool.submit(
                        chain.run,
                        chunk,
                        start.hot * (COLD / start.hot) ** (done / total),
                        start.hot * (COLD / start.hot) ** ((done + chunk) / total),
                        self.cost,
                    )
                    for chain, start in zip(chains, starts, strict=True)
                ]
                for result in results:
                    if self.offer(result.result()):
                        assert self.schedule is not None
                        on_found(self.schedule, self.cost)
                self.speed = chunk / max(1e-6, time.monotonic() - now)
                done += chunk
        if self.schedule is None:
            for chain in chains:
                self.offer(chain.current())


def compile_kernels() -> float:
    """Make sure that the search is compiled; the seconds that this took (some 45 once, then 0)."""
    before = time.monotonic()
    chain = Chain(ComputationGraph((Node("a", 1.0, 1),)), "fixed", 0)
    chain.start(Schedule([0]), 1)
    chain.run(0, HOT, COLD, math.inf)
    return time.monotonic() - before


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def moves_per_round(graph: ComputationGraph) -> int:
    """How many moves one chain makes from hot to cold."""
    return int(np.clip(MOVES_PER_NODE * len(graph), FEWEST_MOVES, MOST_MOVES))


def starts_of(graph: ComputationGraph, order: Order) -> list[Schedule]:
    """Schedules without repeats to start from."""
    in_order = Schedule(range(len(graph)))
    return [in_order] if order == "fixed" else [in_order, Schedule(greedy_order(graph))]


def improve(
    search: Search,
    order: Order,
    deadline: float,
    enough: float,
    on_found: Found,
    reserve: float = 0.0,
) -> None:
    """Run rounds until `deadline`, a cost of `enough`, or `PATIENCE` rounds without a better one.

    While nothing is under budget they end `reserve` seconds earlier.

    The first round starts hot from the plain orders. Later on one chain starts over, and the
    others warm from the incumbent.
    """
    moves = moves_per_round(search.graph)
    plain = starts_of(search.graph, order)
    count = len(search.chains)
    idle = 0
    while idle < PATIENCE and search.cost > enough:
        until = deadline - (reserve if search.schedule is None else 0.0)
        if time.monotonic() >= until:
            break
        before = search.cost
        starts = [Start(plain[(i + search.rounds) % len(plain)], HOT) for i in range(count)]
        if search.schedule is not None and search.fits(search.schedule):
            warm = range(search.rounds % 2, count) if count == 1 else range(1, count)
            for i in warm:
                starts[i] = Start(search.schedule, WARM)
        search.round(starts, moves, until, enough, on_found)
        idle = 0 if search.cost < before * (1 - 1e-6) else idle + 1


def least_memory_found(
    graph: ComputationGraph,
    order: Order,
    deadline: float,
    seed: int = 0,
    known: Schedule | None = None,
) -> tuple[Schedule, int]:
    """The schedule of least peak that a search finds, and its peak, `fixed_bytes` included.

    Each round aims at a peak lower than the best so far, the next one less low after a miss.

    Args:
        known: a schedule to begin with, if it is leaner than those without repeats.
    """
    starts = starts_of(graph, order)
    if known is not None and Chain(graph, order, seed).fits(known):
        starts.append(known)
    best = min(starts, key=lambda each: simulate(graph, each).peak)
    peak = simulate(graph, best).peak
    floor = graph.fixed_bytes + least_need(graph)
    moves = moves_per_round(graph) // 4
    ambition = 0.5
    round_number = 0
    while peak > floor and ambition > 0.004 and time.monotonic() < deadline:
        target = floor + int((peak - floor) * (1 - ambition))
        search = Search(graph, target, order, seed + round_number, 1)
        search.round([Start(best, WARM)], moves, deadline, math.inf, lambda *_: None)
        round_number += 1
        if search.schedule is None or not search.fits(search.schedule):
            ambition /= 2
        else:
            best, peak = search.schedule, simulate(graph, search.schedule).peak
    return best, peak


def solve_search(problem: Problem) -> Solution:
    """Local search until the time limit, or until it no longer helps; see the module.

    It computes a node at most 16 to 20 times, which only budgets near the least possible ask for
    on long chains; simple rules, which have no such limit, are asked as well.
    Option: `starts`, schedules in the same order that are known.
    """
    graph = problem.graph
    deadline = problem.deadline + compile_kernels()
    if least_need(graph) > problem.activation_budget:
        return answer(problem, "search", None, infeasible=True, least_budget=None)
    rules = Incumbent(problem)
    rules.work(RULES_SHARE * problem.time_limit)
    search = Search(graph, problem.budget, problem.order, problem.seed, min(CHAINS, processors()))
    bound = graph.one_pass_cost
    least: int | None = None
    try:
        for start in [*starts_of(graph, problem.order), *problem.options.get("starts", ())]:
            search.offer(start)
        enough = bound * (1 + 1e-9)
        improve(
            search,
            problem.order,
            deadline,
            enough,
            lambda _, cost: problem.report(cost, bound, "search"),
            reserve=LEAST_SHARE * problem.time_limit,
        )
        if rules.schedule is not None:
            search.offer(rules.schedule)
        if search.schedule is None:
            least = least_memory_found(
                graph, problem.order, deadline, problem.seed, search.leanest
            )[1]
    except KeyboardInterrupt:
        pass
    return answer(
        problem,
        "search",
        search.schedule,
        bound=bound,
        bound_order="free",
        proved=search.cost <= bound * (1 + 1e-9),
        least_budget=least,
        note=cap_note(graph, search.schedule),
        statistics={"rounds": search.rounds, "moves per second": round(search.speed)},
    )
