"""The cost models that a user can name: "roofline" and "flops"."""

from __future__ import annotations

from dataclasses import dataclass

from checkmate_tf.extraction import CostModel
from checkmate_tf.measure import default_device
from checkmate_tf.program import Program
from profiles.roofline import FloatingPointOperations, Roofline, device_ceilings
from solvers import CheckmateError

COST_MODELS = ("roofline", "flops")


@dataclass(frozen=True)
class StepCosts:
    """What the operations of one step cost.

    Attributes:
        model: seconds of every operation.
        notes: what the user should know about them.
    """

    model: CostModel
    notes: tuple[str, ...] = ()


def check_cost_model(name: str) -> None:
    """See whether there is a cost model called `name`.

    Raises:
        CheckmateError: there is none.
    """
    if name not in COST_MODELS:
        raise CheckmateError(f"no cost model {name!r}; there are: {', '.join(COST_MODELS)}")


def step_costs(name: str, program: Program) -> StepCosts:
    """Costs of the operations of `program` by the cost model called `name`.

    Raises:
        CheckmateError: there is no such cost model.
    """
    check_cost_model(name)
    if name == "flops":
        return StepCosts(FloatingPointOperations())
    return StepCosts(Roofline(device_ceilings(default_device().split(":")[0])))
