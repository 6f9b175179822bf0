"""The portfolio's cutting planes: one pass at a time, in a thread of its own."""

from __future__ import annotations

import math
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from typing import Any

from solvers.cutting_planes import fixed_order
from solvers.cutting_planes.fixed_order import Question
from solvers.cutting_planes.free_order_bound import free_order_bound
from solvers.graph import Schedule
from solvers.graph.order import first_order, renumber
from solvers.portfolio.settings import LARGEST_RELAXED, PASS_SHARE, SHORTEST_PASS
from solvers.portfolio.state import Bounds, Planes, Run, State
from solvers.problem import PROVED


def wait_for_pass(state: State, seconds: float) -> None:
    """Until the pass or the bound that is being worked on is there, or `seconds` are over."""
    working: list[Future[Any]] = [
        each for each in (state.running, state.bounding) if each is not None
    ]
    wait(working, seconds, FIRST_COMPLETED)


def with_pass(run: Run, state: State) -> State:
    """With the next pass running, if there is something to learn from it."""
    if state.running is not None or len(run.problem.graph) > LARGEST_RELAXED:
        return state
    is_first_look = run.is_free and run.search.rounds == 0
    order = _order_to_bound(run, is_first_look)
    planes = state.planes
    if planes is None or planes.order != order:
        planes = _planes(run, order)
    state = replace(state, planes=planes)
    if planes.state is None or run.search.cost <= planes.state.bound * (1 + PROVED):
        return state
    left = max(0.1, state.deadline - time.monotonic())
    longest = max(SHORTEST_PASS, PASS_SHARE * left)
    if is_first_look:
        limit = min(left, SHORTEST_PASS)
    else:
        limit = min(left, longest) if run.is_free and not planes.is_cut_short else left
    start = _numbered_in(order, run.search.schedule)
    running = run.pool.submit(fixed_order.next_pass, planes.question, planes.state, limit, start)
    if not is_first_look:
        return replace(state, running=running)
    bounding = run.pool.submit(
        free_order_bound, run.problem.graph, run.problem.budget, run.solver, longest
    )
    return replace(state, running=running, bounding=bounding)


def _order_to_bound(run: Run, is_first_look: bool) -> tuple[int, ...]:
    """The order of first computations that the next pass is about."""
    incumbent = run.search.schedule
    if run.is_free and incumbent is not None and not is_first_look:
        return first_order(incumbent)
    return tuple(range(len(run.problem.graph)))


def _planes(run: Run, order: tuple[int, ...]) -> Planes:
    problem = run.problem
    graph = renumber(problem.graph, order)
    question = Question(graph, problem.activation_budget, run.solver, problem.seed)
    return Planes(order, question, fixed_order.first_state(question))


def _numbered_in(order: tuple[int, ...], schedule: Schedule | None) -> Schedule | None:
    """`schedule` with the nodes numbered in `order`; None if its first computations are not."""
    if schedule is None or first_order(schedule) != order:
        return None
    rank = {node: number for number, node in enumerate(order)}
    return Schedule(rank[node] for node in schedule.steps)


def with_bound_of_all(state: State) -> State:
    """With the bound for every order, once it is there; infinity says that nothing fits."""
    if state.bounding is None or not state.bounding.done():
        return state
    bound = state.bounding.result()
    if math.isinf(bound):
        return replace(state, bounding=None, infeasible=True)
    return replace(state, bounding=None, bounds=replace(state.bounds, of_all=bound))


def absorbed(run: Run, state: State) -> State:
    """With what the pass that has ended found."""
    assert state.running is not None
    assert state.planes is not None
    found, planes = state.running.result(), state.planes
    # One more try with all the time that is left; a second one would not have more.
    is_over = found.exhausted or (found.cut_short and planes.is_cut_short)
    proposal = _offered(run, planes.order, found.schedules) or state.proposal
    return replace(
        state,
        running=None,
        infeasible=state.infeasible or (found.infeasible and not run.is_free),
        planes=replace(
            planes, state=None if is_over else found.state, is_cut_short=found.cut_short
        ),
        proposal=proposal,
        bounds=_raised(state.bounds, run.search.schedule, planes.order, found.state.bound),
    )


def _offered(run: Run, order: tuple[int, ...], schedules: tuple[Schedule, ...]) -> Schedule | None:
    """Offer what a pass has found; the last that is no better but a start for the search."""
    proposal = None
    for schedule in schedules:
        schedule = Schedule(order[node] for node in schedule.steps)
        if not run.search.offer(schedule) and run.search.fits(schedule):
            proposal = schedule
    return proposal


def _raised(
    bounds: Bounds, incumbent: Schedule | None, order: tuple[int, ...], bound: float
) -> Bounds:
    """With `bound`, which holds for `order`, if that is the incumbent's order."""
    is_its_order = incumbent is None or first_order(incumbent) == order
    if is_its_order and (bounds.order != order or bound > bounds.of_order):
        return replace(bounds, of_order=bound, order=order)
    return bounds
