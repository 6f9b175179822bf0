"""`checkmate-tf plan`: plan a training step ahead of time, into a file."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkmate_tf.cli.arguments import INFEASIBLE, SOLVED, add_planning_arguments, check_folder
from checkmate_tf.cli.costs import add_costs, cost_model
from checkmate_tf.cli.target import add_batch_size, add_step, load_traced
from solvers import BudgetError, CheckmateError

if TYPE_CHECKING:
    from checkmate_tf.planning.planner import PlannedStep
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


def _planned(target: str, request: Request, elsewhere: bool) -> Plan | None:
    from checkmate_tf.phases import phase
    from checkmate_tf.planning.planner import Planner
    from checkmate_tf.planning_display import PlanningDisplay

    shown = PlanningDisplay(verbose=1)
    with shown.under_way():
        with phase("trace"):
            concrete = load_traced(target, request.batch_size)
        planned = (
            _planned_elsewhere(concrete, request)
            if elsewhere
            else Planner(request).plan(concrete, request.batch_size)
        )
    return None if planned is None else replace(planned.plan, seconds=dict(shown.seconds))


def _planned_elsewhere(concrete: Any, request: Request) -> PlannedStep:
    from checkmate_tf.phases import phase
    from checkmate_tf.planning.planner import plan_elsewhere
    from checkmate_tf.planning.preparation import prepared_elsewhere
    from checkmate_tf.trace.program import resolve

    with phase("extract"):
        extracted, notes = prepared_elsewhere(resolve(concrete, request.batch_size), request)
    return plan_elsewhere(extracted, request, notes)
