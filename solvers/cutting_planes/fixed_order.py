"""The exact method for a fixed order: relax to moments, extract, refine where it breaks.

Each pass solves the relaxation of `cutting_planes.relaxation`, which bounds the cost from below,
and turns its optimum into a schedule. If that is under budget at the same cost it is optimal;
otherwise the steps at which it breaks the budget become moments, or cuts, of the next pass.
A relaxation of many moments that is not solved in its time says little more than its fractional
one does. After the first such pass the method starts again from few moments and adds one break at
a time: each relaxation is then solved to its end, and its whole optimum is a bound.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from solvers.checkpointing.incumbent import BY_RULE, Incumbent
from solvers.cutting_planes.relaxation import Cut, build_model
from solvers.cutting_planes.schedules import Extraction, extract
from solvers.graph import ComputationGraph, Schedule, simulate
from solvers.graph.bounds import least_need
from solvers.problem import PROVED, Problem, Solution, Status, answer
from solvers.programs.backends import Backend, stoppable

GAP = 0.9 * PROVED  # to which each relaxation is solved
FIRST_MOMENTS = 12
FEW_MOMENTS = 6  # from which the method starts again, once that many are too many
_PATIENCE = 0.3  # seconds that a pass gets alone: small problems need nothing else
_RULES_SECONDS = 0.3  # for simple rules, each time that it has not ended by then
SHORTEST_TRY, TRY_SHARE = 3.0, 0.1  # seconds, and share of the time left, before it does


@dataclass(frozen=True)
class Pass:
    """What one pass learned.

    Attributes:
        bound: the best lower bound so far.
        schedules: candidates, over budget or not.
        infeasible: proved: nothing is under budget.
        exhausted: there is nothing to refine; another pass would be the same.
        cut_short: another pass needs more time to learn more.
    """

    bound: float
    schedules: tuple[Schedule, ...] = ()
    infeasible: bool = False
    exhausted: bool = False
    cut_short: bool = False


class Moments:
    """The passes over one graph.

    Attributes:
        bound: the best lower bound so far.
        moments, cuts: of the next relaxation.
        is_careful: whether it has started again and adds one break at a time.
        solved: the last moments and cuts that were solved to the end, and what came of them.
    """

    def __init__(self, graph: ComputationGraph, budget: int, solver: Backend, seed: int = 0):
        """`budget` is in bytes, `fixed_bytes` included."""
        self.graph = graph
        self.budget = budget - graph.fixed_bytes
        self.solver = solver
        self.seed = seed
        self.bound = graph.one_pass_cost
        self.moments = first_moments(graph, self.budget, FIRST_MOMENTS)
        self.cuts: frozenset[Cut] = frozenset()
        self.is_careful = False
        self.solved: tuple[tuple[int, ...], frozenset[Cut], list[Extraction]] | None = None
        self.passes = 0

    def next_pass(self, time_limit: float, incumbent: Schedule | None) -> Pass:
        """Solve the relaxation once, from `incumbent` where given, and refine it."""
        self.passes += 1
        if not self.moments:
            return Pass(self.bound, (Schedule(range(len(self.graph))),), exhausted=True)
        model = build_model(self.graph, self.budget, self.moments, self.cuts)
        start = model.point(incumbent) if incumbent is not None else None
        result = self.solver(
            model.linear,
            time_limit=self._limit(time_limit),
            relative_gap=GAP,
            start=start,
            seed=self.seed,
        )
        if result.status is Status.INFEASIBLE:
            return Pass(self.bound, infeasible=True, exhausted=True)
        if result.bound is not None:
            # Solvers work to a tolerance of about 1e-7 of the objective.
            self.bound = max(self.bound, model.cost(result.bound) * (1 - 1e-7))
        if result.values is None:
            return Pass(self.bound, cut_short=not self._start_again())
        L, R = model.read(result.values)
        found = [
            extract(self.graph, self.budget, self.moments, L, R, drop_early)
            for drop_early in (False, True)
        ]
        schedules = tuple(each.schedule for each in found if each.schedule is not None)
        if result.status is not Status.OPTIMAL:
            return Pass(self.bound, schedules, cut_short=not self._start_again())
        self.solved = self.moments, self.cuts, found
        return Pass(self.bound, schedules, exhausted=not self._refine(found))

    def _limit(self, time_limit: float) -> float:
        """Seconds for one pass: a relaxation that takes long is better replaced by a smaller."""
        if self.is_careful:
            return time_limit
        return min(time_limit, max(SHORTEST_TRY, TRY_SHARE * time_limit))

    def _start_again(self) -> bool:
        """Go back to the last relaxation that was solved, or to few moments; once only."""
        if self.is_careful:
            return False
        self.is_careful = True
        if self.solved is None:
            self.moments = first_moments(self.graph, self.budget, FEW_MOMENTS)
            self.cuts = frozenset()
        else:
            self.moments, self.cuts, found = self.solved
            self._refine(found)
        return True

    def _refine(self, found: list[Extraction]) -> bool:
        """Take over the breaks of the better extraction, or one of them; whether any is new."""
        before = self.moments, self.cuts
        for each in sorted(found, key=lambda each: (each.schedule is None, each.peak)):
            for place in each.breaks:
                self.moments = tuple(sorted({*self.moments, *place.moments}))
                self.cuts |= place.cuts
                if self.is_careful and (self.moments, self.cuts) != before:
                    return True
            if (self.moments, self.cuts) != before:
                return True
        return False


def first_moments(graph: ComputationGraph, budget: int, count: int) -> tuple[int, ...]:
    """The worst step, if over budget when nothing is repeated, of each of `count` chunks."""
    timeline = simulate(graph, Schedule(range(len(graph)))).timeline - graph.fixed_bytes
    over = np.flatnonzero(timeline > budget)
    chunks = np.array_split(over, min(count, max(1, len(over))))
    return tuple(int(chunk[np.argmax(timeline[chunk])]) for chunk in chunks if len(chunk))


def solve_moments(problem: Problem) -> Solution:
    """Solve for the input order; see the module.

    Its bound and its "infeasible" hold for first computations in input order.
    """
    graph = problem.graph
    if least_need(graph) > problem.activation_budget:
        return answer(problem, "moments", None, infeasible=True)
    stop = threading.Event()
    solver = stoppable(problem.options.get("backend", "highs"), stop)
    moments = Moments(graph, problem.budget, solver, problem.seed)
    incumbent = Incumbent(problem)
    own = float("inf")
    infeasible = False
    pool = ThreadPoolExecutor(1)
    try:
        while problem.seconds_left > 0 and incumbent.cost > moments.bound * (1 + PROVED):
            running = pool.submit(moments.next_pass, problem.seconds_left, incumbent.schedule)
            each = _meanwhile(running, problem, incumbent, moments)
            infeasible = each.infeasible
            for schedule in each.schedules:
                if incumbent.offer(schedule):
                    own = incumbent.cost
            _report(problem, incumbent, moments)
            if each.exhausted or each.cut_short:
                break
    except KeyboardInterrupt:
        pass
    finally:
        stop.set()
        pool.shutdown()
    cost = incumbent.cost
    return answer(
        problem,
        "moments",
        incumbent.schedule,
        bound=moments.bound,
        # What is proved for one order says nothing of the others.
        proved=problem.order == "fixed" and cost <= moments.bound * (1 + PROVED),
        infeasible=problem.order == "fixed" and infeasible,
        least_budget=incumbent.least_budget,
        note=f"the time was up; {BY_RULE}" if cost < own else "",
        statistics={
            "passes": moments.passes,
            "moments": len(moments.moments),
            "cuts": len(moments.cuts),
        },
    )


def _meanwhile(
    running: Future[Pass], problem: Problem, incumbent: Incumbent, moments: Moments
) -> Pass:
    """What `running` learns; rules are tried beside it, once it takes a while."""
    while not wait([running], _PATIENCE).done:
        incumbent.work(_RULES_SECONDS)
        _report(problem, incumbent, moments)
    return running.result()


def _report(problem: Problem, incumbent: Incumbent, moments: Moments) -> None:
    cost = None if incumbent.schedule is None else incumbent.cost
    problem.report(cost, moments.bound, "moments")
