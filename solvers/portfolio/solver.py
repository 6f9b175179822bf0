"""The solver `auto`: rounds of the search and passes of the cutting planes, side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from solvers.checkpointing.incumbent import Incumbent
from solvers.checkpointing.trimming import trimmed
from solvers.graph import Schedule
from solvers.graph.bounds import least_need
from solvers.local_search.settings import (
    HEURISTICS_SHARE,
)
from solvers.local_search.solver import limit_note
from solvers.portfolio.passes import absorbed, wait_for_pass, with_bound_of_all, with_pass
from solvers.portfolio.rounds import least_memory, searched
from solvers.portfolio.settings import EARLY_LOOK, HEAD_START, LATE_LOOK, PATIENCE, SETTLED_PATIENCE
from solvers.portfolio.state import (
    Bounds,
    Run,
    State,
    begin,
    bound_of_answer,
    enough,
    is_proved,
    report,
    search_deadline,
)
from solvers.problem import PROVED, Problem, Solution, answer


def solve_auto(problem: Problem) -> Solution:
    """The best schedule found within the time limit; see the module.

    The search computes a node at most 16 to 20 times. Long chains need more where the budget is
    near the least possible, so heuristics, which have no such limit, are asked as well.

    Options: `backend`, the MILP solver; `starts`, schedules in the same order that are known.

    Raises:
        SolverError: the backend is missing or fails.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> solve_auto(Problem(unit_chain(8), 10)).cost  # nothing is computed twice
        17.0
    """
    graph = problem.graph
    if least_need(graph) > problem.activation_budget:
        note = f"one node alone needs {graph.fixed_bytes + least_need(graph)} bytes"
        return answer(problem, "auto", None, infeasible=True, note=note)
    heuristics = Incumbent(problem)
    heuristics.work(HEURISTICS_SHARE * problem.time_limit)
    run = begin(problem)
    state = State(problem.deadline, Bounds(graph.one_pass_cost, None, graph.one_pass_cost))
    least: int | None = None
    try:
        with _stopping(run):
            for reached in _states(run, state):
                state = reached  # which an interrupt leaves
        if heuristics.schedule is not None and heuristics.cost < run.search.cost:
            run.search.offer(_trimmed(problem, heuristics.schedule))
        if run.search.schedule is None:
            least = least_memory(run, state.deadline)
    except KeyboardInterrupt:
        pass
    schedule = run.search.schedule
    bound, bound_order = bound_of_answer(run, state.bounds)
    proved = is_proved(run, state.bounds)
    return answer(
        problem,
        "auto",
        schedule,
        bound=bound,
        bound_order=bound_order,
        proved=proved,
        infeasible=state.infeasible,
        least_budget=least,
        note="" if state.infeasible or proved else limit_note(graph, schedule),
        statistics={
            "rounds": run.search.rounds,
            "bound for this order": state.bounds.of_schedule(schedule),
        },
    )


def _trimmed(problem: Problem, schedule: Schedule) -> Schedule:
    """`schedule` without what it can do without, as far as time allows."""
    end = time.monotonic() + HEURISTICS_SHARE * problem.time_limit
    return trimmed(problem.graph, schedule, problem.budget, min(end, problem.deadline))


@contextmanager
def _stopping(run: Run) -> Iterator[None]:
    """Stop what still runs at the end."""
    try:
        yield
    finally:
        run.stop.set()
        run.pool.shutdown()


def _states(run: Run, state: State) -> Iterator[State]:
    """Search and relax until the time is over, or nothing more is to be gained."""
    for start in [*run.plain, *run.problem.options.get("starts", ())]:
        run.search.offer(start)
    while not _is_done(run, state):
        state = with_pass(run, state)
        if state.running is not None and not _may_search(run):
            wait_for_pass(state, EARLY_LOOK)
        elif state.idle_rounds < _patience(run, state.bounds):
            state = searched(run, state)
        elif state.running is not None or state.bounding is not None:
            wait_for_pass(state, LATE_LOOK)
        else:
            return
        has_ended = state.running is not None and state.running.done()
        state = with_bound_of_all(state)
        if has_ended:
            state = absorbed(run, state)
        yield state  # before the report, which may raise KeyboardInterrupt
        if has_ended:
            report(run, state.bounds, "cutting planes")


def _is_done(run: Run, state: State) -> bool:
    return (
        state.infeasible
        or time.monotonic() >= search_deadline(run, state)
        or run.search.cost <= enough(run, state.bounds)
    )


def _may_search(run: Run) -> bool:
    return run.is_free or run.problem.seconds > HEAD_START


def _patience(run: Run, bounds: Bounds) -> int:
    bound = bounds.of_schedule(run.search.schedule)
    return SETTLED_PATIENCE if run.search.cost <= bound * (1 + PROVED) else PATIENCE
