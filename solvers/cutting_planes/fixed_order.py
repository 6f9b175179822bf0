"""The exact method for a fixed order: relax, build a schedule, constrain where it violates.

Each pass solves the relaxation of `cutting_planes.relaxation`, whose optimum is a lower bound, and
builds schedules from it. One that is under budget at the cost of the bound is optimal. Otherwise
the steps where they violate the budget become critical steps of the next relaxation, with cuts.

A relaxation with many critical steps may not be solved in its time, and then its bound says little.
After the first such pass the method becomes careful: it starts again from few critical steps and
adds one violation at a time. Each relaxation is then solved to the end.
"""

from __future__ import annotations

import math
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np

from solvers.checkpointing.incumbent import Incumbent, by_rule
from solvers.cutting_planes.relaxation import Cover, Cut, Relaxation, build_relaxation
from solvers.cutting_planes.schedules import Candidate, Violation, build_candidate
from solvers.graph import ComputationGraph, Schedule, simulate
from solvers.problem import PROVED, Problem, Solution, Status, answer
from solvers.programs.backends import Backend
from solvers.programs.linear_program import Vector
from solvers.programs.optimize import GAP, chosen_backend

BACKEND = "highs"
"""The backend where none is asked for: it can be stopped, and it uses a starting point."""

FIRST_STEPS = 12
"""The most critical steps of the first relaxation."""

FEW_STEPS = 6
"""The same once that many take too long."""

LARGE = 2000
"""Nodes above which it is careful from the beginning, with the worst step alone: a relaxation with
two or three steps is solved to the end there in the time in which one with twelve is not begun."""

SHORTEST_TRY, TRY_SHARE = 3.0, 0.1
"""What a pass gets before the method is careful: seconds at least, and share of the time left."""

_PATIENCE = 0.3
"""Seconds that a pass gets alone; small problems need nothing else."""

_RULES_SECONDS = 0.3
"""Seconds that the simple rules get each time that a pass has not ended by then."""


@dataclass(frozen=True)
class Question:
    """What the passes are about.

    Attributes:
        budget: in bytes, without `fixed_bytes`.
        solver: solves the relaxations, with `seed`.
    """

    graph: ComputationGraph
    budget: int
    solver: Backend
    seed: int = 0


@dataclass(frozen=True)
class Constraints:
    """What a relaxation constrains: memory at the critical steps, the cuts and the covers."""

    critical_steps: tuple[int, ...]
    cuts: frozenset[Cut] = frozenset()
    covers: frozenset[Cover] = frozenset()

    def __len__(self) -> int:
        return len(self.critical_steps) + len(self.cuts) + len(self.covers)

    def adding(self, violation: Violation) -> Constraints:
        """These and those that `violation` asks for."""
        steps = {*self.critical_steps, *violation.critical_steps}
        return Constraints(
            tuple(sorted(steps)), self.cuts | violation.cuts, self.covers | violation.covers
        )


@dataclass(frozen=True)
class State:
    """What the passes so far have learned.

    Attributes:
        bound: the best lower bound on the cost, in the graph's unit.
        constraints: of the next relaxation.
        is_careful: whether one violation is added at a time; see the module.
        solved: the constraints of the last relaxation that was solved to the end, and its
            candidates; None if there was none.
        passes: how many there were.
    """

    bound: float
    constraints: Constraints
    is_careful: bool = False
    solved: tuple[Constraints, tuple[Candidate, ...]] | None = None
    passes: int = 0


@dataclass(frozen=True)
class Pass:
    """How one pass ended.

    Attributes:
        state: after it.
        schedules: of the candidates, over budget or not.
        infeasible: proved: nothing is under budget.
        exhausted: there is nothing to add; another pass would be the same.
        cut_short: another pass needs more time to learn more.
    """

    state: State
    schedules: tuple[Schedule, ...] = ()
    infeasible: bool = False
    exhausted: bool = False
    cut_short: bool = False


def first_state(question: Question) -> State:
    """The state before the first pass."""
    is_large = len(question.graph) > LARGE
    constraints = Constraints(first_critical_steps(question, 1 if is_large else FIRST_STEPS))
    return State(question.graph.one_pass_cost, constraints, is_careful=is_large)


def first_critical_steps(question: Question, count: int) -> tuple[int, ...]:
    """The steps over budget when nothing is recomputed, the worst of each of `count` parts."""
    graph = question.graph
    timeline = simulate(graph, Schedule(range(len(graph)))).timeline - graph.fixed_bytes
    over = np.flatnonzero(timeline > question.budget)
    parts = np.array_split(over, min(count, max(1, len(over))))
    return tuple(int(part[np.argmax(timeline[part])]) for part in parts if len(part))


def about(question: Question, state: State, stuck: Schedule) -> State:
    """`state`, beginning again from few steps and those where `stuck` is over budget most.

    For a search that has nothing under budget. Several values may have to be exchanged at once
    there: local moves do not get to that, and a relaxation with these steps does.
    """
    graph = question.graph
    few = 1 if len(graph) > LARGE else FEW_STEPS
    excess = simulate(graph, stuck).timeline - graph.fixed_bytes - question.budget
    stages = np.maximum.accumulate(stuck.steps)
    worst = [step for step in np.argsort(-excess, kind="stable")[:few] if excess[step] > 0]
    steps = {*first_critical_steps(question, few), *(int(stages[step]) for step in worst)}
    constraints = Constraints(tuple(sorted(steps)))
    return replace(state, constraints=constraints, is_careful=True, solved=None)


def next_pass(
    question: Question, state: State, time_limit: float, incumbent: Schedule | None
) -> Pass:
    """Solve the relaxation of `state` once, from `incumbent` where given, and constrain it more.

    Args:
        time_limit: seconds; less is taken while a smaller relaxation may do better.
    """
    graph, constraints = question.graph, state.constraints
    state = replace(state, passes=state.passes + 1)
    if not constraints.critical_steps:
        return Pass(state, (Schedule(range(len(graph))),), exhausted=True)
    relaxation = build_relaxation(
        graph,
        question.budget,
        constraints.critical_steps,
        constraints.cuts,
        covers=constraints.covers,
    )
    if not state.is_careful:  # a relaxation that takes long is better replaced by a smaller one
        time_limit = min(time_limit, max(SHORTEST_TRY, TRY_SHARE * time_limit))
    result = question.solver(
        relaxation.linear,
        time_limit=time_limit,
        relative_gap=GAP,
        start=None if incumbent is None else relaxation.point(incumbent),
        seed=question.seed,
    )
    if result.status is Status.INFEASIBLE:
        return Pass(state, infeasible=True, exhausted=True)
    if result.bound is not None:
        state = replace(state, bound=max(state.bound, relaxation.lower_bound(result.bound)))
    candidates = _candidates(question, relaxation, result.values)
    schedules = tuple(each.schedule for each in candidates if each.schedule is not None)
    if result.status is not Status.OPTIMAL:
        again = _started_again(question, state)
        return Pass(again or state, schedules, cut_short=again is None)
    state = replace(state, solved=(constraints, candidates))
    refined = _refined(state, candidates)
    return Pass(refined or state, schedules, exhausted=refined is None)


def _candidates(
    question: Question, relaxation: Relaxation, values: Vector | None
) -> tuple[Candidate, ...]:
    if values is None:
        return ()
    L, R = relaxation.read(values)
    return tuple(
        build_candidate(question.graph, question.budget, relaxation.critical_steps, L, R, early)
        for early in (False, True)
    )


def _started_again(question: Question, state: State) -> State | None:
    """Careful, from the last relaxation that was solved or from few steps; None if it was so."""
    if state.is_careful:
        return None
    if state.solved is None:
        few = Constraints(first_critical_steps(question, FEW_STEPS))
        return replace(state, is_careful=True, constraints=few)
    constraints, candidates = state.solved
    state = replace(state, is_careful=True, constraints=constraints)
    return _refined(state, candidates) or state


def _refined(state: State, candidates: tuple[Candidate, ...]) -> State | None:
    """With the violations of the better candidate, or one of them; None if none of them is new."""
    for candidate in sorted(candidates, key=lambda each: (each.schedule is None, each.peak)):
        constraints = state.constraints
        for violation in candidate.violations:
            constraints = constraints.adding(violation)
            if state.is_careful and constraints != state.constraints:
                break
        if constraints != state.constraints:
            return replace(state, constraints=constraints)
    return None


def solve_cutting_planes(problem: Problem) -> Solution:
    """Solve for the input order; see the module.

    Its bound and its "infeasible" hold for first computations in input order.
    Option: `backend`, the MILP solver.

    Raises:
        SolverError: the backend is missing or fails.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> solve_cutting_planes(Problem(unit_chain(8), 6)).cost
        21.0
    """
    graph = problem.graph
    if problem.is_hopeless:
        return answer(problem, "cutting_planes", None)
    stop = threading.Event()
    solver = chosen_backend(problem, stop, BACKEND)
    question = Question(graph, problem.activation_budget, solver, problem.seed)
    state = first_state(question)
    incumbent = Incumbent(problem)
    own = math.inf  # cost of the best schedule that no simple rule has found
    infeasible = stopped = False
    running: Future[Pass] | None = None
    pool = ThreadPoolExecutor(1)
    try:
        while problem.seconds_left > 0 and incumbent.cost > state.bound * (1 + PROVED):
            left = problem.seconds_left
            running = pool.submit(next_pass, question, state, left, incumbent.schedule)
            while not wait([running], _PATIENCE).done:
                incumbent.work(_RULES_SECONDS)
                problem.report(incumbent.cost, state.bound, "cutting planes")
            found = running.result()
            state, infeasible = found.state, found.infeasible
            for schedule in found.schedules:
                if incumbent.offer(schedule):
                    own = incumbent.cost
            problem.report(incumbent.cost, state.bound, "cutting planes")
            if found.exhausted or found.cut_short:
                break
        if not infeasible:
            _ask_rules(incumbent)
    except KeyboardInterrupt:
        stopped = True
        stop.set()
        if running is not None and running.exception() is None:
            state = running.result().state
    finally:
        stop.set()
        pool.shutdown()
    proved = incumbent.cost <= state.bound * (1 + PROVED)
    return answer(
        problem,
        "cutting_planes",
        incumbent.schedule,
        bound=state.bound,
        # What is proved for one order says nothing of the others.
        proved=problem.order == "fixed" and proved,
        infeasible=problem.order == "fixed" and infeasible,
        least_budget=incumbent.least_budget,
        note="stopped" if stopped else _note(problem, incumbent, own, infeasible),
        statistics={
            "passes": state.passes,
            "critical steps": len(state.constraints.critical_steps),
            "cuts": len(state.constraints.cuts),
        },
    )


def _ask_rules(incumbent: Incumbent) -> None:
    """Try the simple rules until one of their plans is under budget, where nothing else is."""
    plans = -1
    while incumbent.schedule is None and incumbent.plans > plans:
        plans = incumbent.plans
        incumbent.work(_RULES_SECONDS)


def _note(problem: Problem, incumbent: Incumbent, own: float, infeasible: bool) -> str:
    """What to say where the answer is not the method's own, or there is none."""
    if infeasible:
        in_order = "nothing is under budget in input order, the only one that this method knows"
        return in_order if problem.order == "free" else ""
    if incumbent.schedule is None:
        is_over = not problem.seconds_left
        return "the time was up" if is_over else "nothing that this method tries is under budget"
    return by_rule(problem) if incumbent.cost < own else ""
