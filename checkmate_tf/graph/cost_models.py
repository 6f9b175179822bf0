"""The cost models that a user can name: "roofline", "device", "profile" and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from checkmate_tf.graph.step_operations import CostModel, step_operations
from checkmate_tf.trace.program import Program
from profiles import store
from profiles.devices import default_device, device_name
from profiles.measure.ceilings import costs_of_device
from profiles.measure.surveys import survey
from profiles.operation import Operation
from profiles.profile import Profile
from profiles.profiled import ProfiledCosts
from profiles.roofline import FloatingPointOperations, Roofline, device_ceilings
from solvers import CheckmateError

COST_MODELS = ("roofline", "flops", "device", "profile")

MEASURED_HERE = ("device", "profile")
"""Those that run operations on the device that TensorFlow computes on."""

DEFAULT_COSTS = "device"
"""On this device, where nothing is said."""

ROOFLINES = {f"roofline:{kind}": kind for kind in ("CPU", "GPU", "TPU")}
"""By name: a roofline of another kind of device than the one that TensorFlow computes on."""


@dataclass(frozen=True)
class StepCosts:
    """What the operations of one step cost.

    Attributes:
        model: the cost of every operation, and its unit.
        notes: what the user should know about them.
    """

    model: CostModel
    notes: tuple[str, ...] = ()


def default_costs(elsewhere: bool) -> str:
    """The cost model where none is named; for a device that is not here, nothing is measured."""
    return "roofline" if elsewhere else DEFAULT_COSTS


def check_cost_model(costs: Any) -> None:
    """See whether `costs` is a profile or the name of a cost model.

    Raises:
        CheckmateError: it is neither.
    """
    if not isinstance(costs, Profile) and costs not in (*COST_MODELS, *ROOFLINES):
        raise CheckmateError(
            "cost-model-unknown",
            f"no cost model {costs!r}; there are: {', '.join((*COST_MODELS, *ROOFLINES))}, and "
            "what checkmate_tf.load_profile returns",
        )


def step_costs(
    costs: str | Profile,
    program: Program,
    progress: Callable[[Iterable[Operation]], Iterable[Operation]] = iter,
) -> StepCosts:
    """Costs of the operations of `program`.

    Args:
        costs: the name of a cost model, or a profile, which is taken as it is. "profile" measures
            on the device that TensorFlow computes on what is not known of it yet, "device" no more
            than its ceilings; where these can't be measured or kept, they are a roofline's.
        program: the resolved step.
        progress: sees the operations that are measured pass by, one at a time.

    Raises:
        CheckmateError: there is no such cost model.
    """
    check_cost_model(costs)
    if costs == "flops":
        return StepCosts(FloatingPointOperations())
    if isinstance(costs, str) and costs in ROOFLINES:
        return StepCosts(Roofline(device_ceilings(ROOFLINES[costs])))
    device = default_device()
    ceilings = device_ceilings(device.split(":")[0])
    if costs == "roofline":
        return StepCosts(Roofline(ceilings))
    if costs == "device":
        try:
            return StepCosts(costs_of_device(device, progress))
        except CheckmateError as error:  # the default: no reason to train without a plan
            return StepCosts(Roofline(ceilings), (f"costs are of no measured device: {error}",))
    operations = [each.operation for each in step_operations(program)]
    profile = survey(operations, device, progress) if costs == "profile" else costs
    assert isinstance(profile, Profile), f"no dispatch for the cost model {costs!r}"
    model = ProfiledCosts(profile, ceilings)
    return StepCosts(model, notes_on(model, operations, device))


def load_profile(path: str | Path, other_device: bool = False) -> Profile:
    """A profile for `rematerialize(…, costs=profile)`, which then measures nothing itself.

    Args:
        path: of a file that `checkmate-tf profiles merge` wrote.
        other_device: take it also if it is of another device than this machine's.

    Raises:
        CheckmateError: it is no profile, or of another device and that was not asked for.

    Example:
        >>> load_profile("v100.json")
        Traceback (most recent call last):
        solvers.errors.CheckmateError: v100.json: cannot be read: No such file or directory
    """
    return store.load_profile(path, device_name(default_device()), other_device)


def known_workspaces(costs: str | Profile) -> Callable[[Operation], int]:
    """What a profile knows of workspaces, in bytes; 0 of all others.

    Example:
        >>> known_workspaces("roofline")(Operation("Relu"))
        0
    """
    known = costs.workspaces if isinstance(costs, Profile) else {}
    return lambda operation: known.get(operation, 0)


def notes_on(model: ProfiledCosts, operations: Sequence[Operation], device: str) -> tuple[str, ...]:
    """What a user must know about costs that were not measured, or not here."""
    return (*_origin(model.profile, device), *_estimates(model, operations))


def _origin(profile: Profile, device: str) -> tuple[str, ...]:
    here = device_name(device)
    if (profile.device, profile.tensorflow) == (here, tf.__version__):
        return ()
    return (
        f"costs were measured on {profile.device} under TensorFlow {profile.tensorflow}; this is "
        f"{here} under {tf.__version__}",
    )


def _estimates(model: ProfiledCosts, operations: Sequence[Operation]) -> tuple[str, ...]:
    missing = model.missing(operations)
    if not missing:
        return ()
    estimated = sum(model.cost(each) for each in operations if each not in model.profile.seconds)
    share = estimated / sum(map(model.cost, operations))
    return (
        f"{missing} of {len(operations)} operations are not in the profile of "
        f"{model.profile.device}: {100 * share:.1f} % of the time is estimated by a roofline "
        "calibrated with the others",
    )
