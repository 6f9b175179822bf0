"""`checkmate-tf plan`: plan a training step ahead of time, into a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkmate_tf.cli.arguments import INFEASIBLE, SOLVED, add_planning_arguments, check_folder
from checkmate_tf.cli.costs import add_costs, cost_model
from checkmate_tf.cli.target import add_batch_size, add_step, load_step
from solvers import BudgetError, CheckmateError

if TYPE_CHECKING:
    from checkmate_tf.planning.outcome import Outcome
    from checkmate_tf.planning.request import Request
    from checkmate_tf.plans.plan import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A step, a budget, and where the plan goes."""
    add_step(parser)
    parser.add_argument(
        "--budget", required=True, metavar="8GiB|50%|min", help="as for rematerialize"
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="PLAN.json", help="the plan as a file"
    )
    add_batch_size(parser)
    add_costs(parser)
    parser.add_argument(
        "--solver", default="auto", metavar="NAME", help="of schedules (default: auto)"
    )
    add_planning_arguments(parser)
    parser.add_argument(
        "--elsewhere",
        action="store_true",
        help="plan for a device that holds nothing but the step; nothing runs on this one",
    )


def run(arguments: argparse.Namespace) -> int:
    """Plan, print, write; the exit status."""
    check_folder(arguments.output)
    from checkmate_tf.planning.request import parse_request

    request = parse_request(
        arguments.budget,
        arguments.solver,
        arguments.batch_size,
        cost_model(
            arguments.costs, arguments.other_device or arguments.elsewhere, arguments.elsewhere
        ),
        arguments.time_limit,
        arguments.order,
        arguments.trial_run and not arguments.elsewhere,
    )
    try:
        plan = _planned(arguments.function, request, arguments.elsewhere)
    except BudgetError as error:
        print(f"checkmate-tf: {error}", file=sys.stderr)
        return INFEASIBLE
    if plan is None:
        raise CheckmateError(
            "nothing-to-recompute", f"{arguments.function}: nothing in it can be recomputed"
        )
    plan.save(arguments.output)
    print(plan)
    print(f"\n{arguments.output}: rematerialize(step, plan={str(arguments.output)!r})")
    return SOLVED


def _planned(name: str, request: Request, elsewhere: bool) -> Plan | None:
    from checkmate_tf.phases import phase
    from checkmate_tf.planning.planner import Planner
    from checkmate_tf.planning_display import PlanningDisplay
    from checkmate_tf.sizing.arguments import parse_step
    from checkmate_tf.sizing.one_trace import traced_for
    from checkmate_tf.sizing.without_xla import say_it_is_compiled_elsewhere

    step, batch = load_step(name)
    target = parse_step(step)

    def traced(compiled: bool = False) -> Any:
        with phase("trace"):
            return traced_for(target, batch, request.batch_size, compiled)

    shown = PlanningDisplay(verbose=1)
    with shown.under_way():
        planned: Outcome | None
        if elsewhere:
            if target.is_compiled:
                say_it_is_compiled_elsewhere()
            planned = _planned_elsewhere(traced(), request)
        elif target.is_compiled:
            planned = _compiled_or_not(traced, request)
        else:
            planned = Planner(request).plan(traced(), request.batch_size)
    return None if planned is None else replace(planned.plan, seconds=dict(shown.seconds))


def _compiled_or_not(traced: Callable[[bool], Any], request: Request) -> Outcome | None:
    """A plan for XLA, or without it where there is none, as training by it would find."""
    from checkmate_tf.planned_runs import WithoutXla
    from checkmate_tf.planning.compiled.planner import CompiledPlanner
    from checkmate_tf.planning.planner import Planner
    from checkmate_tf.sizing.without_xla import say_it_leaves_xla
    from profiles.measure.compilation import NotCompilableError

    try:
        return CompiledPlanner(request).plan(traced(True), request.batch_size, arriving=None)
    except (BudgetError, NotCompilableError) as error:
        left = WithoutXla(error)
    try:
        planned = Planner(request).plan(traced(False), request.batch_size)
    except BudgetError as error:
        raise left.and_without(error) from error
    say_it_leaves_xla(left.error)
    return planned


def _planned_elsewhere(concrete: Any, request: Request) -> Outcome:
    from checkmate_tf.devices.elsewhere import elsewhere
    from checkmate_tf.planning.planner import plan_elsewhere
    from checkmate_tf.planning.preparation import begun, resolved

    program = resolved(concrete, request.batch_size)
    return plan_elsewhere(begun(program, request, elsewhere(), 0), request)
