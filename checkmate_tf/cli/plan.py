"""`checkmate-tf plan`: plan a training step ahead of time, into a file."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkmate_tf.cli.arguments import INFEASIBLE, SOLVED
from checkmate_tf.cli.target import (
    add_planning_arguments,
    add_solver_and_place,
    add_step,
    cost_model,
    load_step,
)
from checkmate_tf.phases import phase
from checkmate_tf.progress import PlanningDisplay
from solvers import BudgetError, CheckmateError

if TYPE_CHECKING:
    from checkmate_tf.planning.outcome import Outcome
    from checkmate_tf.planning.request import Request


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A step, a budget, and where the plan goes."""
    add_step(parser)
    parser.add_argument(
        "--budget", required=True, metavar="8GiB|50%|min|device", help="as for rematerialize"
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="PLAN.json", help="the plan as a file"
    )
    add_planning_arguments(parser)
    add_solver_and_place(parser)


def run(arguments: argparse.Namespace) -> int:
    """Plan, print, write; the exit status."""
    from checkmate_tf.planning.request import parse_request

    request = parse_request(
        arguments.budget,
        arguments.solver,
        arguments.batch_size,
        cost_model(arguments, arguments.elsewhere),
        arguments.time_limit,
        arguments.order,
        arguments.trial_run and not arguments.elsewhere,
    )
    step, batch = load_step(arguments.function)
    shown = PlanningDisplay(verbose=1)
    try:
        with shown.under_way():
            planned = _planned(step, batch, request, arguments.elsewhere)
    except BudgetError as error:
        print(f"checkmate-tf: {error}", file=sys.stderr)
        return INFEASIBLE
    if planned is None:
        raise CheckmateError(
            "nothing-to-recompute", f"{arguments.function}: nothing in it can be recomputed"
        )
    plan = replace(planned.plan, seconds=dict(shown.seconds))
    plan.save(arguments.output)
    print(plan)
    print(f"\n{arguments.output}: rematerialize(step, plan={str(arguments.output)!r})")
    return SOLVED


def _planned(step: Any, batch: Any, request: Request, elsewhere: bool) -> Outcome | None:
    """A plan as training by it would find it: for XLA, or without it where there is none."""
    from checkmate_tf.devices.elsewhere import another_device
    from checkmate_tf.planning.compiled.planner import CompiledPlanner
    from checkmate_tf.planning.compiled.without_xla import WithoutXla
    from checkmate_tf.planning.planner import Planner, plan_elsewhere
    from checkmate_tf.planning.preparation import begun, resolved
    from checkmate_tf.sizing.arguments import parse_step
    from checkmate_tf.sizing.one_trace import traced_for
    from checkmate_tf.sizing.without_xla import say_it_is_compiled_elsewhere, say_it_leaves_xla
    from profiles.measure.compilation import NotCompilableError

    target = parse_step(step)

    def traced(compiled: bool = False) -> Any:
        with phase("trace"):
            return traced_for(target, batch, request.batch_size, compiled)

    if elsewhere:
        if target.is_compiled:
            say_it_is_compiled_elsewhere()
        program = resolved(traced(), request.batch_size)
        return plan_elsewhere(begun(program, request, another_device(), 0), request)
    if not target.is_compiled:
        return Planner(request).plan(traced(), request.batch_size)
    try:
        compiled_planner = CompiledPlanner(request)
        return compiled_planner.plan(traced(compiled=True), request.batch_size, arriving=None)
    except (BudgetError, NotCompilableError) as error:
        left = WithoutXla(error)
    try:
        planned = Planner(request).plan(traced(), request.batch_size)
    except BudgetError as error:
        raise left.and_without(error) from error
    say_it_leaves_xla(left.error)
    return planned
