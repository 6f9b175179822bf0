"""A plan by the layers of the user's model: what each keeps, what it computes again, who holds.

A layer is what the names of operations begin with, below the model's own name, as Keras and
`tf.name_scope` make them. An operation without such a name is a layer by itself.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from checkmate_tf.graph.passes import behind_gradients
from solvers import ComputationGraph, Schedule, simulate
from solvers.graph.lifetimes import held_at

_NOT_THE_USERS = re.compile(r"gradient_tape|(Stateful)?PartitionedCall(_\d+)?|while(_\d+)?")
"""Parts of names that TensorFlow puts before the user's."""

_NUMBER = re.compile(r"_\d+$")


@dataclass(frozen=True)
class Layer:
    """What a plan does with the activations of one layer.

    Attributes:
        name: of the layer.
        kept: bytes of those that stay from the forward pass until the backward pass has read them.
        recomputed: bytes of those that the backward pass reads and that are computed more than
            once.
        extra: cost of all that is computed again in the layer, in the graph's unit.
    """

    name: str
    kept: int
    recomputed: int
    extra: float


@dataclass(frozen=True)
class Peak:
    """One step of a schedule, in general that at which most is held.

    Attributes:
        bytes: held then, by the memory model.
        place: of the step in the schedule, from 0.
        layer: that is computed then.
        backward: it is part of the backward pass.
        holders: (who, bytes), largest first: layers, and "variables and inputs".
    """

    bytes: int
    place: int
    layer: str
    backward: bool
    holders: tuple[tuple[str, int], ...]


def layer_names(graph: ComputationGraph) -> tuple[str, ...]:
    """For every node, the layer that it belongs to.

    Example:
        >>> from solvers import ComputationGraph, Node
        >>> names = ["net/conv/relu", "net/dense/mul", "gradient_tape/net/conv/grad", "AddN"]
        >>> layer_names(ComputationGraph(tuple(Node(name, 1.0, 1) for name in names)))
        ('conv', 'dense', 'conv', 'AddN')
    """
    paths = [_path(node.name) for node in graph.nodes]
    model = _model(paths)
    inside = {path[1] for path in paths if len(path) > 2 and path[0] == model}
    # If the model's own name has no such number, those of its layers are the user's.
    named = _without_numbers({*inside, *([model] if model else [])})
    return tuple(
        named[path[1]] if len(path) > 2 and path[0] == model else path[0] for path in paths
    )


def model_name(names: Iterable[str]) -> str:
    """What the names of a step's operations begin with, where it is a model's; else "".

    Example:
        >>> model_name(["net_1/conv/relu", "net_1/dense/mul", "gradient_tape/net_1/conv/grad"])
        'net'
    """
    return _NUMBER.sub("", _model([_path(name) for name in names]) or "")


def layers_of(graph: ComputationGraph, schedule: Schedule) -> list[Layer]:
    """What becomes of every layer's activations, the layers that have most of them first."""
    times = Counter(schedule.steps)
    behind = behind_gradients(graph)
    kept: dict[str, int] = defaultdict(int)
    again: dict[str, int] = defaultdict(int)
    extra: dict[str, float] = defaultdict(float)
    for number, (node, name) in enumerate(zip(graph.nodes, layer_names(graph), strict=True)):
        extra[name] += node.cost * (times[number] - 1)
        if not behind[number] and any(behind[user] for user in graph.users[number]):
            (again if times[number] > 1 else kept)[name] += node.memory
    layers = [Layer(name, kept[name], again[name], extra[name]) for name in extra]
    touched = [each for each in layers if each.kept or each.recomputed or each.extra]
    return sorted(touched, key=lambda each: (-each.kept - each.recomputed, -each.extra, each.name))


def peak_of(graph: ComputationGraph, schedule: Schedule) -> Peak:
    """Where the most is held, and who holds it."""
    return moment_of(graph, schedule, int(simulate(graph, schedule).timeline.argmax()))


def moment_of(graph: ComputationGraph, schedule: Schedule, place: int) -> Peak:
    """What is held at one step of a schedule, and who holds it."""
    names, node = layer_names(graph), schedule.steps[place]
    held: dict[str, int] = defaultdict(int)
    for number, size in held_at(graph, schedule, place).items():
        held[names[number]] += size
    held[names[node]] += graph.nodes[node].workspace
    if graph.fixed_bytes:
        held["variables and inputs"] += graph.fixed_bytes
    holders = sorted(held.items(), key=lambda pair: (-pair[1], pair[0]))
    return Peak(
        bytes=int(simulate(graph, schedule).timeline[place]),
        place=place,
        layer=names[node],
        backward=behind_gradients(graph)[node],
        holders=tuple(pair for pair in holders if pair[1]),
    )


def _without_numbers(names: set[str]) -> dict[str, str]:
    """For every name, the same without the number that TensorFlow has put behind all of them.

    It does so where a name occurred before, as those of Keras' layers do when their variables are
    read first.

    Example:
        >>> sorted(_without_numbers({"net_1", "conv_1", "conv_1_2", "conv_2_1"}).values())
        ['conv', 'conv_1', 'conv_2', 'net']
        >>> sorted(_without_numbers({"net_1", "block_1", "block_2"}).values())
        ['block_1', 'block_2', 'net_1']
        >>> sorted(_without_numbers({"net_1", "conv", "conv_1"}).values())
        ['conv', 'conv_1', 'net_1']
    """
    shorter = {name: _NUMBER.sub("", name) for name in names}
    all_numbered = all(name != shorter[name] for name in names)
    if not all_numbered or len(set(shorter.values())) != len(names):
        return {name: name for name in names}
    return shorter


def _model(paths: Sequence[Sequence[str]]) -> str | None:
    """The model's name, which stands before those of its layers; a loss has another one."""
    scopes = [path for path in paths if len(path) > 1]
    first = Counter(path[0] for path in scopes if len(path) > 2).most_common(1)
    return first[0][0] if first and 2 * first[0][1] > len(scopes) else None


def _path(name: str) -> list[str]:
    parts = name.split("/")
    users = [part for part in parts[:-1] if not _NOT_THE_USERS.fullmatch(part)]
    return [*users, parts[-1]]
