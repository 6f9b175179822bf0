"""What each operation of a step costs in all, the costliest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from profiles.operation import Operation
from profiles.profiled import ProfiledCosts
from solvers import ComputationGraph


@dataclass(frozen=True)
class OperationCost:
    """A row of a table: an operation, however often it occurs.

    Attributes:
        name: its type, or the name of a node.
        output: type and shape of its first output; "" of a node.
        runs: how often it occurs in a step.
        cost: of one run.
        memory: bytes of the outputs of one run.
        workspace: bytes needed only while it runs; None where that is not known.
        measured: whether `cost` was, and not estimated.
    """

    name: str
    output: str
    runs: int
    cost: float
    memory: int
    workspace: int | None
    measured: bool

    @property
    def total(self) -> float:
        """Cost of all runs."""
        return self.runs * self.cost


def costs_of_operations(
    operations: Iterable[Operation], model: ProfiledCosts
) -> list[OperationCost]:
    """A row for every distinct operation of a step.

    Args:
        operations: as often as they occur.
        model: what they cost.

    Example:
        >>> from profiles.profile import Measurement, Profile
        >>> from profiles.roofline import device_ceilings
        >>> profile = Profile("a CPU", "2.21.0", {Operation("Relu"): Measurement(0.002, 0)})
        >>> model = ProfiledCosts(profile, device_ceilings())
        >>> rows = costs_of_operations([Operation("Relu")] * 3, model)
        >>> [(row.name, row.runs, row.total) for row in rows]
        [('Relu', 3, 0.006)]
    """
    profile = model.profile
    rows = [
        OperationCost(
            name=operation.type,
            output="×".join(map(str, operation.outputs[0].shape)) if operation.outputs else "",
            runs=runs,
            cost=model.cost(operation),
            memory=sum(size.bytes for size in operation.outputs),
            workspace=profile.workspaces.get(operation),
            measured=operation in profile.seconds,
        )
        for operation, runs in Counter(operations).items()
    ]
    return _costliest_first(rows)


def costs_of_nodes(graph: ComputationGraph) -> list[OperationCost]:
    """A row for every node of a saved graph, with the costs that it was saved with."""
    rows = [
        OperationCost(node.name, "", 1, node.cost, node.memory, node.workspace, False)
        for node in graph.nodes
    ]
    return _costliest_first(rows)


def _costliest_first(rows: list[OperationCost]) -> list[OperationCost]:
    return sorted(rows, key=lambda row: -row.total)
