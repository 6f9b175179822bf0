"""The portfolio: local search and the exact method side by side, each feeding the other.

The search finds schedules; the moments relaxation bounds them from below and its optimum, turned
into a schedule, is a start for the search even where it is over budget. With a fixed order the
bound holds for the problem. With a free order the relaxation looks once at the input order, then
bounds all orders at once (see `cutting_planes.free_order_bound`), then works in the best
schedule's order of first computations and moves on when a better one is found; that bound holds
for that order only.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from solvers.checkpointing.incumbent import Incumbent
from solvers.cutting_planes.fixed_order import Moments, Pass
from solvers.cutting_planes.free_order_bound import free_order_bound
from solvers.graph import ComputationGraph, Schedule
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
from solvers.programs.backends import stoppable

HEAD_START = 1.5  # seconds that the relaxation gets alone: small problems need nothing else
LARGEST_RELAXED = 3000  # nodes up to which the relaxation is worth its time
PATIENCE = 6  # rounds without a gain worth having after which the search ends
SETTLED_PATIENCE = 3  # the same, once the incumbent is optimal for its order
WORTH = 2e-4  # a gain worth having, relative
SHORTEST_PASS, PASS_SHARE = 3.0, 0.4  # seconds, share of those left: a pass in a free order
INTERMEDIATE_SHARE = 0.5  # of the way to the budget: an intermediate budget while over it
NEAR_BUDGET = 0.01  # relative distance to the budget that needs no intermediate budget
ROUND_SHARE = 0.12  # most of the time limit that one round of the search takes
FIRST_SHARE = 0.4  # the same while nothing is under budget: too fast a cooling ends over it


class Portfolio:
    """One run of the portfolio.

    Attributes:
        search: holds the incumbent.
        bound: holds for `bounded_order`, or for every order where that is None.
        free_bound: holds for every order.
    """

    def __init__(self, problem: Problem) -> None:
        """Nothing runs yet."""
        self.problem = problem
        self.graph = problem.graph
        self.deadline = problem.deadline
        self.stop = threading.Event()
        self.solver = stoppable(problem.options.get("backend", "highs"), self.stop)
        chains = min(CHAINS, processors())
        self.plain = starts_of(self.graph, problem.order)
        self.search = Search(self.graph, problem.budget, problem.order, problem.seed, chains)
        self.bound = self.graph.one_pass_cost
        self.bounded_order: tuple[int, ...] | None = None
        self.free_bound = self.graph.one_pass_cost
        self.bounding: Future[float] | None = None
        self.infeasible = False
        self.moments: Moments | None = None
        self.moments_order: tuple[int, ...] = ()
        self.running: Future[Pass] | None = None
        self.is_cut_short = False
        self.proposals: list[Schedule] = []
        self.idle_rounds = 0
        self.intermediate_share = INTERMEDIATE_SHARE

    def run(self) -> None:
        """Search and relax until the time is over, or nothing more is to be gained."""
        known: Sequence[Schedule] = self.problem.options.get("starts", ())
        for start in [*self.plain, *known]:
            self.search.offer(start)
        pool = ThreadPoolExecutor(1)
        try:
            while not self._is_done():
                self._relax(pool)
                if self.running is not None and not self._may_search():
                    self._wait(0.02)
                elif self.idle_rounds < self._patience():
                    self._search()
                elif self.running is not None or self.bounding is not None:
                    self._wait(0.1)
                else:
                    break
                self._absorb()
        finally:
            self.stop.set()
            pool.shutdown()

    def enough(self) -> float:
        """The cost at which the incumbent cannot be improved, or not by anything worth having."""
        if self.problem.order == "fixed":
            return self.bound * (1 + PROVED)
        return self.free_bound * (1 + CLOSE)

    def is_proved(self) -> bool:
        """Whether the incumbent is optimal for the order that was asked for."""
        bound = self.bound if self.problem.order == "fixed" else self.free_bound
        return self.search.cost <= bound * (1 + PROVED)

    def _is_done(self) -> bool:
        return (
            self.infeasible
            or time.monotonic() >= self._search_deadline()
            or self.search.cost <= self.enough()
        )

    def _search_deadline(self) -> float:
        """Earlier while nothing is under budget: the rest goes to finding the least memory."""
        reserve = (
            LEAST_MEMORY_SHARE * self.problem.time_limit if self.search.schedule is None else 0.0
        )
        return self.deadline - reserve

    def find_least_memory(self) -> int:
        """The least peak found in the time that is left; its schedule may be under budget."""
        schedule, peak = least_memory_found(
            self.graph,
            self.problem.order,
            self.deadline,
            self.problem.seed,
            self.search.leanest,
        )
        self.search.offer(schedule)
        return peak

    def _patience(self) -> int:
        is_settled = self.search.cost <= self.bound_of_order() * (1 + PROVED)
        return SETTLED_PATIENCE if is_settled else PATIENCE

    def _may_search(self) -> bool:
        return self.problem.order == "free" or self.problem.seconds > HEAD_START

    def _relax(self, pool: ThreadPoolExecutor) -> None:
        """Start the next pass of the relaxation, if there is something to learn from it."""
        if self.running is not None or len(self.graph) > LARGEST_RELAXED:
            return
        incumbent = self.search.schedule
        order = tuple(range(len(self.graph)))
        is_first_look = self.problem.order == "free" and self.search.rounds == 0
        if self.problem.order == "free" and incumbent is not None and not is_first_look:
            order = first_order(incumbent)
        if order != self.moments_order:
            self.moments_order = order
            self.is_cut_short = False
            self.moments = Moments(
                renumber(self.graph, order), self.problem.budget, self.solver, self.problem.seed
            )
        if self.moments is None or self.search.cost <= self.moments.bound * (1 + PROVED):
            return
        start: Schedule | None = None
        if incumbent is not None and first_order(incumbent) == order:
            rank = {node: number for number, node in enumerate(order)}
            start = Schedule(rank[node] for node in incumbent.steps)
        left = max(0.1, self.deadline - time.monotonic())
        longest = max(SHORTEST_PASS, PASS_SHARE * left)
        may_take_all = self.is_cut_short or self.problem.order == "fixed"
        limit = left if may_take_all else min(left, longest)
        if is_first_look:
            limit = min(left, SHORTEST_PASS)
        self.running = pool.submit(self.moments.next_pass, limit, start)
        if is_first_look:
            self.bounding = pool.submit(
                free_order_bound, self.graph, self.problem.budget, self.solver, longest
            )

    def _wait(self, seconds: float) -> None:
        """Until the pass or the bound that is being worked on is there, or `seconds` are over."""
        working: list[Future[Any]] = [
            each for each in (self.running, self.bounding) if each is not None
        ]
        wait(working, seconds, FIRST_COMPLETED)

    def _absorb(self) -> None:
        """Take over what a finished pass, or the bound for every order, has learned."""
        if self.bounding is not None and self.bounding.done():
            bound, self.bounding = self.bounding.result(), None
            self.infeasible |= math.isinf(bound)
            self.free_bound = self.free_bound if math.isinf(bound) else bound
        if self.running is None or not self.running.done():
            return
        found, self.running = self.running.result(), None
        self.infeasible |= found.infeasible and self.problem.order == "fixed"
        for schedule in found.schedules:
            schedule = Schedule(self.moments_order[node] for node in schedule.steps)
            if not self.search.offer(schedule) and self.search.fits(schedule):
                self.proposals.append(schedule)
        same_order = (
            self.search.schedule is None or first_order(self.search.schedule) == self.moments_order
        )
        if same_order and (self.bounded_order != self.moments_order or found.bound > self.bound):
            self.bound, self.bounded_order = found.bound, self.moments_order
        # One more try with all the time that is left; a second one would not have more.
        if found.exhausted or (found.cut_short and self.is_cut_short):
            self.moments = None
        self.is_cut_short = found.cut_short
        self._report("moments")

    def _search(self) -> None:
        """One round: from the relaxation's proposals, the incumbent and the plain orders."""
        self.deadline += compile_kernels()
        before = self.search.cost
        is_busy = self.running is not None or self.bounding is not None
        count = len(self.search.chains) - is_busy
        starts: list[Start] = []
        turn = self.search.rounds
        # A lone chain works on the incumbent every other time.
        if count > 1 or self.search.schedule is None or turn % 2 == 0:
            starts += [Start(each, WARM) for each in self.proposals[-1:]]
            self.proposals.clear()
        for i in range(len(starts), max(1, count)):
            known = self.search.schedule or self.search.leanest
            if known is not None and (i + turn) % 2 and self.search.fits(known):
                starts.append(Start(known, WARM, self._intermediate_budget()))
            else:
                starts.append(Start(self.plain[(i + turn // 2) % len(self.plain)], HOT))
        least_before = self.search.least_peak
        share = FIRST_SHARE if self.search.schedule is None else ROUND_SHARE
        self.search.round(
            starts,
            moves_per_round(self.graph),
            min(self._search_deadline(), time.monotonic() + share * self.problem.time_limit),
            self.enough(),
            lambda *_: self._report("search"),
        )
        missed = any(start.budget is not None for start in starts) and (
            self.search.least_peak >= least_before
        )
        self.intermediate_share = self.intermediate_share / 2 if missed else INTERMEDIATE_SHARE
        worthwhile = math.isinf(before) or self.search.cost < before - WORTH * before
        self.idle_rounds = 0 if worthwhile else self.idle_rounds + 1

    def _intermediate_budget(self) -> int | None:
        """While nothing is under budget: a budget on the way there from the leanest schedule."""
        budget, least = self.problem.budget, self.search.least_peak
        if least <= budget * (1 + NEAR_BUDGET):
            return None
        return int(least - self.intermediate_share * (least - budget))

    def _report(self, phase: str) -> None:
        cost = None if self.search.schedule is None else self.search.cost
        self.problem.report(cost, self.bound_of_answer()[0], phase)

    def bound_of_answer(self) -> tuple[float, Order]:
        """A bound that holds for the incumbent, and the orders for which it holds."""
        if self.problem.order == "fixed":
            return self.bound, "fixed"
        # What holds for every order says more, unless it says nothing.
        of_order = self.bound_of_order()
        if self.free_bound == self.graph.one_pass_cost < of_order:
            return min(of_order, self.search.cost), "fixed"
        return self.free_bound, "free"

    def bound_of_order(self) -> float:
        """A bound that holds for the incumbent's order of first computations."""
        schedule = self.search.schedule
        same = schedule is not None and first_order(schedule) == self.bounded_order
        return self.bound if same else self.free_bound


def solve_auto(problem: Problem) -> Solution:
    """The best schedule found within the time limit; see the module.

    The search computes a node at most 16 to 20 times. Long chains need more where the budget is
    near the least possible, so heuristics, which have no such limit, are asked as well.

    Options: `backend`, the MILP solver; `starts`, schedules in the same order that are known.
    """
    graph = problem.graph
    if least_need(graph) > problem.activation_budget:
        return answer(problem, "auto", None, infeasible=True, note=_least_need_note(graph))
    heuristics = Incumbent(problem)
    heuristics.work(HEURISTICS_SHARE * problem.time_limit)
    portfolio = Portfolio(problem)
    least: int | None = None
    try:
        portfolio.run()
        if heuristics.schedule is not None:
            portfolio.search.offer(heuristics.schedule)
        if portfolio.search.schedule is None:
            least = portfolio.find_least_memory()
    except KeyboardInterrupt:
        pass
    bound, bound_order = portfolio.bound_of_answer()
    settled = portfolio.infeasible or portfolio.is_proved()
    return answer(
        problem,
        "auto",
        portfolio.search.schedule,
        bound=bound,
        bound_order=bound_order,
        proved=portfolio.is_proved(),
        infeasible=portfolio.infeasible,
        least_budget=least,
        note="" if settled else limit_note(graph, portfolio.search.schedule),
        statistics={
            "rounds": portfolio.search.rounds,
            "bound for this order": portfolio.bound_of_order(),
        },
    )


def _least_need_note(graph: ComputationGraph) -> str:
    return f"one node alone needs {graph.fixed_bytes + least_need(graph)} bytes"
