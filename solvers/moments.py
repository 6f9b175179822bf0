"""The exact method for a fixed order: relax to moments, extract, refine where it breaks.

Each pass solves the relaxation of `solvers.moments_model`, which bounds the cost from below, and
turns its optimum into a schedule. If that is under budget at the same cost it is optimal;
otherwise the steps at which it breaks the budget become moments, or cuts, of the next pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.backends import Backend, backend
from solvers.bounds import least_need
from solvers.graph import ComputationGraph
from solvers.moments_extract import Extraction, extract
from solvers.moments_model import Cut, build_model
from solvers.schedule import Schedule
from solvers.simulate import simulate
from solvers.solution import Problem, Solution, Status, answer

PROVED = 1e-4  # relative gap at which a schedule counts as optimal, as in MILP solvers
GAP = 0.9 * PROVED  # to which each relaxation is solved
FIRST_MOMENTS = 12


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
    """

    def __init__(self, graph: ComputationGraph, budget: int, solver: Backend, seed: int = 0):
        """`budget` is in bytes, `fixed_bytes` included."""
        self.graph = graph
        self.budget = budget - graph.fixed_bytes
        self.solver = solver
        self.seed = seed
        self.bound = graph.one_pass_cost
        self.moments = first_moments(graph, self.budget)
        self.cuts: frozenset[Cut] = frozenset()
        self.passes = 0

    def next_pass(self, time_limit: float, incumbent: Schedule | None) -> Pass:
        """Solve the relaxation once, from `incumbent` where given, and refine it."""
        self.passes += 1
        if not self.moments:
            return Pass(self.bound, (Schedule(range(len(self.graph))),), exhausted=True)
        model = build_model(self.graph, self.budget, self.moments, self.cuts)
        start = model.point(incumbent) if incumbent is not None else None
        result = self.solver(
            model.linear, time_limit=time_limit, relative_gap=GAP, start=start, seed=self.seed
        )
        if result.status is Status.INFEASIBLE:
            return Pass(self.bound, infeasible=True, exhausted=True)
        if result.bound is not None:
            # Solvers work to a tolerance of about 1e-7 of the objective.
            self.bound = max(self.bound, model.cost(result.bound) * (1 - 1e-7))
        if result.values is None:
            return Pass(self.bound, cut_short=True)
        L, R = model.read(result.values)
        found = [
            extract(self.graph, self.budget, self.moments, L, R, drop_early)
            for drop_early in (False, True)
        ]
        grown = self._refine(found)
        schedules = tuple(each.schedule for each in found if each.schedule is not None)
        is_complete = result.status is Status.OPTIMAL
        return Pass(
            self.bound,
            schedules,
            exhausted=is_complete and not grown,
            cut_short=not is_complete and not grown,
        )

    def _refine(self, found: list[Extraction]) -> bool:
        """Take over the new moments and cuts of the better extraction; whether there were any."""
        for each in sorted(found, key=lambda each: (each.schedule is None, each.peak)):
            moments = tuple(sorted({*self.moments, *each.moments}))
            cuts = self.cuts | each.cuts
            if (moments, cuts) != (self.moments, self.cuts):
                self.moments, self.cuts = moments, cuts
                return True
        return False


def first_moments(graph: ComputationGraph, budget: int) -> tuple[int, ...]:
    """The worst step, if over budget when nothing is repeated, of each of a dozen chunks."""
    timeline = simulate(graph, Schedule(range(len(graph)))).timeline - graph.fixed_bytes
    over = np.flatnonzero(timeline > budget)
    chunks = np.array_split(over, min(FIRST_MOMENTS, max(1, len(over))))
    return tuple(int(chunk[np.argmax(timeline[chunk])]) for chunk in chunks if len(chunk))


def solve_moments(problem: Problem) -> Solution:
    """Solve for the input order; see the module.

    Its bound and its "infeasible" hold for first computations in input order.
    """
    graph = problem.graph
    if least_need(graph) > problem.activation_budget:
        return answer(problem, "moments", None, infeasible=True)
    solver = backend(problem.options.get("backend", "highs"))
    moments = Moments(graph, problem.budget, solver, problem.seed)
    best: Schedule | None = None
    cost = float("inf")
    infeasible = False
    try:
        while problem.seconds_left > 0 and cost > moments.bound * (1 + PROVED):
            each = moments.next_pass(problem.seconds_left, best)
            infeasible = each.infeasible
            for schedule in each.schedules:
                simulation = simulate(graph, schedule)
                if simulation.peak <= problem.budget and simulation.cost < cost:
                    best, cost = schedule, simulation.cost
            problem.report(cost if best else None, moments.bound, "moments")
            if each.exhausted or each.cut_short:
                break
    except KeyboardInterrupt:
        pass
    return answer(
        problem,
        "moments",
        best,
        bound=moments.bound,
        # What is proved for one order says nothing of the others.
        proved=problem.order == "fixed" and cost <= moments.bound * (1 + PROVED),
        infeasible=problem.order == "fixed" and infeasible,
        statistics={
            "passes": moments.passes,
            "moments": len(moments.moments),
            "cuts": len(moments.cuts),
        },
    )
