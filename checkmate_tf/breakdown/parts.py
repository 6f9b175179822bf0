"""What a step holds, by kind and by layer, while it runs as it is."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.graph.passes import behind_gradients
from checkmate_tf.plans.layers import layer_names
from checkmate_tf.trace.sizes import variable_bytes
from solvers import ComputationGraph, Schedule
from solvers.graph.lifetimes import held_by_group

ACTIVATIONS, GRADIENTS, WORKSPACE = "activations", "gradients", "kernels' workspaces"


@dataclass(frozen=True)
class Timeline:
    """Bytes that are held during each step of the schedule, by kind.

    Attributes:
        fixed: by kind, the same during all of them.
        varying: by kind, one number for every step.
    """

    fixed: dict[str, int]
    varying: dict[str, NDArray[np.int64]]

    @property
    def total(self) -> NDArray[np.int64]:
        """Of all kinds."""
        return np.sum([*self.varying.values()], axis=0, dtype=np.int64) + sum(self.fixed.values())

    def at_peak(self) -> dict[str, int]:
        """Bytes of each kind at the moment at which most is held."""
        place = int(self.total.argmax())
        return self.fixed | {kind: int(held[place]) for kind, held in self.varying.items()}


def timeline_of(extraction: Extraction, model: Any, batches: int) -> Timeline:
    """What a step holds as it is, in its own order.

    Args:
        extraction: of the step.
        model: the Keras model that it trains; None where there is none.
        batches: of inputs that the device holds while it runs.
    """
    graph = extraction.graph
    schedule = Schedule(range(len(graph)))
    kinds = [GRADIENTS if behind else ACTIVATIONS for behind in behind_gradients(graph)]
    nothing = np.zeros(len(schedule), np.int64)
    held = held_by_group(graph, schedule, kinds)
    varying = {kind: held.get(kind, nothing) for kind in (ACTIVATIONS, GRADIENTS)}
    workspace = graph.workspaces[list(schedule.steps)]
    return Timeline(_fixed(extraction, model, batches), {**varying, WORKSPACE: workspace})


def activations_by_layer(graph: ComputationGraph) -> dict[str, int]:
    """Bytes that each layer keeps for the backward pass, in the order of the forward pass.

    Example:
        >>> from solvers import Node
        >>> forward = Node("net/a/relu", 1.0, 4), Node("net/b/mul", 1.0, 2, dependencies=(0,))
        >>> gradient = Node("gradient_tape/net/b/mul", 1.0, 4, dependencies=(0, 1), backward=True)
        >>> activations_by_layer(ComputationGraph((*forward, gradient)))
        {'a': 4, 'b': 2}
    """
    behind = behind_gradients(graph)
    kept: dict[str, int] = defaultdict(int)
    for number, (node, name) in enumerate(zip(graph.nodes, layer_names(graph), strict=True)):
        if not behind[number] and any(behind[user] for user in graph.users[number]):
            kept[name] += node.memory
    return {name: size for name, size in kept.items() if size}


def _fixed(extraction: Extraction, model: Any, batches: int) -> dict[str, int]:
    """What is held all the time, by kind; what the kinds don't name is counted as the last."""
    program = extraction.program
    kind_of = _kinds_of_variables(model)
    held: dict[str, int] = dict.fromkeys(["weights", *dict.fromkeys(kind_of.values())], 0)
    for placeholder, handle in program.captured:
        held[kind_of.get(id(handle), "weights")] += variable_bytes(placeholder)
    held["inputs"] = batches * program.argument_bytes
    in_graph = sum(held.values()) - (batches - 1) * program.argument_bytes
    held["constants and small values"] = max(0, extraction.graph.fixed_bytes - in_graph)
    return held


def _kinds_of_variables(model: Any) -> dict[int, str]:
    """By the id of a variable's handle, what it is for; all others are weights."""
    optimizer = getattr(model, "optimizer", None)
    slots = {} if optimizer is None else dict.fromkeys(_handles(optimizer.variables), "optimizer")
    metrics = [each for metric in getattr(model, "metrics", ()) for each in metric.variables]
    return slots | dict.fromkeys(_handles(metrics), "metrics")


def _handles(variables: Any) -> list[int]:
    return [id(getattr(each, "value", each).handle) for each in variables]
