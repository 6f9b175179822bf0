"""The arguments of `rematerialize`, checked when it is called."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

from checkmate_tf.graph.cost_models import check_cost_model
from checkmate_tf.plans.plan import Plan
from profiles.profile import Profile
from solvers import Budget, BudgetError, CheckmateError, find_solver, parse_budget
from solvers.problem import Order

OnInfeasible = Literal["error", "min", "plain"]
"""What happens where no plan is found within the budget."""

_FEW = 10_000
"""Bytes; a step takes more than that, so that someone who gives less means another unit."""


@dataclass(frozen=True)
class Request:
    """What the user asked for; see `checkmate_tf.rematerialize`.

    Attributes:
        budget_from: of the budget "device", once it is in bytes: how they came about.
    """

    budget: Budget
    solver: str
    batch_size: int | None
    costs: str | Profile
    time_limit: float
    order: Order
    trial_run: bool
    on_infeasible: OnInfeasible = "error"
    plan: Plan | None = None
    verbose: int = 1
    budget_from: tuple[str, ...] = ()


def parse_request(
    budget: Any,
    solver: Any,
    batch_size: Any,
    costs: Any,
    time_limit: Any,
    order: Any,
    trial_run: Any,
    on_infeasible: Any = "error",
    plan: Any = None,
    verbose: Any = 1,
) -> Request:
    """Understand the arguments of `rematerialize`.

    Raises:
        BudgetError: the budget is not a size, or a share of more than everything.
        SolverError: no such solver.
        CheckmateError: another argument is not what it should be.
    """
    loaded = plan if plan is None or isinstance(plan, Plan) else _loaded(plan)
    if budget is None:
        budget = "device" if loaded is None else loaded.budget
    parsed = parse_budget(budget)
    if parsed.share is not None and parsed.share > 1:
        raise BudgetError(
            "budget-above-the-step",
            f"budget {budget!r} is more than the unchanged step needs; give a share up to '100%', "
            "or a size like '4GiB'",
        )
    if meant := _meant(budget, parsed):
        raise BudgetError(
            "budget-of-few-bytes",
            f"budget {budget!r} is {parsed.bytes} bytes; did you mean {meant}?",
        )
    if not isinstance(solver, str):
        raise CheckmateError(
            "argument-invalid",
            f"solver is {solver!r}; give one name, as `checkmate-tf solvers` lists them",
        )
    is_count = isinstance(batch_size, Integral) and not isinstance(batch_size, bool)
    if batch_size is not None and not (is_count and batch_size > 0):
        raise CheckmateError(
            "argument-invalid", f"batch_size is {batch_size!r}; give the largest batch that occurs"
        )
    is_number = isinstance(time_limit, Real) and not isinstance(time_limit, bool)
    if not (is_number and 0 < time_limit < math.inf):
        raise CheckmateError(
            "argument-invalid", f"time_limit is {time_limit!r}; give a positive number of seconds"
        )
    if order not in get_args(Order):
        raise CheckmateError("argument-invalid", f"order is {order!r}; give 'free' or 'fixed'")
    if not isinstance(trial_run, bool):
        raise CheckmateError("argument-invalid", f"trial_run is {trial_run!r}; give True or False")
    if on_infeasible not in get_args(OnInfeasible):
        raise CheckmateError(
            "argument-invalid",
            f"on_infeasible is {on_infeasible!r}; give 'error', 'min' or 'plain'",
        )
    if isinstance(verbose, bool) or verbose not in (0, 1, 2):
        raise CheckmateError(
            "argument-invalid",
            f"verbose is {verbose!r}; give 0 for silence, 1 for one line, or 2 for details",
        )
    check_cost_model(costs)
    return Request(
        budget=parsed,
        solver=find_solver(solver).name,
        batch_size=None if batch_size is None else int(batch_size),
        costs=costs,
        time_limit=float(time_limit),
        order=order,
        trial_run=trial_run,
        on_infeasible=on_infeasible,
        plan=loaded,
        verbose=verbose,
    )


def _meant(given: Any, budget: Budget) -> str:
    """What may be meant by so few bytes without a unit; "" where there are enough of them."""
    is_bare = str(given).strip().isdigit()
    if not is_bare or budget.bytes is None or budget.bytes >= _FEW:
        return ""
    share = f"'{budget.bytes}%' or " if budget.bytes <= 100 else ""
    return f"{share}'{budget.bytes}MiB'"


def _loaded(path: Any) -> Plan:
    if not isinstance(path, str | os.PathLike):
        raise CheckmateError(
            "argument-invalid", f"plan is {path!r}; give a Plan, or the file of one"
        )
    return Plan.load(os.fspath(path))
