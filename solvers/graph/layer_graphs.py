"""The paper's layer graphs, built from tables: a unit chain, VGG16, VGG19, any list of layers.

A network of L layers has the nodes 0 … L−1 for its layers, L for the loss, and 2L−i for the
backward pass of layer i. Forward costs are multiply–accumulates: 0 except for convolutions and
dense layers. Backward costs are twice that. Memories are fp32 outputs; parameters and their
gradients are the fixed memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solvers.graph.computation_graph import ComputationGraph
from solvers.graph.node import Node
from solvers.graph.topological import inverse

_FLOAT_BYTES = 4


@dataclass(frozen=True)
class Layer:
    """A layer of a network, at batch size 1.

    Attributes:
        name: what Keras calls it.
        cost: multiply–accumulates of its forward pass.
        elements: numbers in its output.
        parameters: trained numbers in it.
        inputs: the layers that it reads, by their index; None for the layer before it.
    """

    name: str
    cost: int
    elements: int
    parameters: int = 0
    inputs: tuple[int, ...] | None = None


def unit_chain(layers: int) -> ComputationGraph:
    """The chain of n = 2·`layers` + 1 nodes with all costs and memories 1.

    Example:
        >>> len(unit_chain(8)), len(unit_chain(8).edges)
        (17, 24)
    """
    nodes = []
    for number in range(2 * layers + 1):
        mirror = (2 * layers - number,) if number > layers else ()
        read = (*mirror, number - 1) if number else ()
        nodes.append(Node(f"v{number}", 1, 1, backward=number >= layers, dependencies=read))
    return ComputationGraph(tuple(nodes), name=f"unit chain of {layers} layers")


def layer_graph(name: str, layers: Sequence[Layer], batch_size: int = 1) -> ComputationGraph:
    """The training graph of a network of L layers: n = 2L+1 nodes; of a chain, 4L−1 edges.

    Example:
        >>> table = [Layer("a", 2, 1), Layer("b", 3, 1), Layer("sum", 0, 1, inputs=(0, 1))]
        >>> layer_graph("skip", table).nodes[-1].dependencies  # backward of a: read by b and sum
        (0, 1, 2, 4, 5)
    """
    count = len(layers)
    nodes = [
        Node(
            layer.name,
            cost=batch_size * layer.cost,
            memory=batch_size * layer.elements * _FLOAT_BYTES,
            dependencies=_inputs(layer, number),
        )
        for number, layer in enumerate(layers)
    ]
    readers = inverse([node.dependencies for node in nodes])
    nodes.append(
        Node("loss", cost=0, memory=_FLOAT_BYTES, backward=True, dependencies=(count - 1,))
    )
    for number in reversed(range(count)):
        forward = nodes[number]
        following = readers[number] or [count]
        nodes.append(
            Node(
                f"{forward.name}_backward",
                cost=2 * forward.cost,
                memory=forward.memory,
                backward=True,
                # Its layer's output, every next layer's, and the gradients from there.
                dependencies=tuple(
                    sorted({number, *following, *(2 * count - each for each in following)})
                ),
            )
        )
    parameters = sum(layer.parameters for layer in layers)
    return ComputationGraph(
        tuple(nodes), fixed_bytes=2 * _FLOAT_BYTES * parameters, name=name, cost_unit="MACs"
    )


def _inputs(layer: Layer, number: int) -> tuple[int, ...]:
    if layer.inputs is not None:
        return tuple(sorted(layer.inputs))
    return (number - 1,) if number else ()


def vgg16(batch_size: int = 1) -> ComputationGraph:
    """VGG16 at 224×224 (Simonyan and Zisserman, 2015, configuration D)."""
    return layer_graph("VGG16", _vgg(convolutions=(2, 2, 3, 3, 3)), batch_size)


def vgg19(batch_size: int = 1) -> ComputationGraph:
    """VGG19 at 224×224 (Simonyan and Zisserman, 2015, configuration E).

    Example:
        >>> len(vgg19()), len(vgg19().edges), vgg19().fixed_bytes
        (51, 99, 1149337920)
    """
    return layer_graph("VGG19", _vgg(convolutions=(2, 2, 4, 4, 4)), batch_size)


def _vgg(convolutions: Sequence[int]) -> list[Layer]:
    """The layers of a VGG with so many 3×3 convolutions in each of its five blocks."""
    layers: list[Layer] = []
    side, channels = 224, 3
    for block, (count, width) in enumerate(
        zip(convolutions, (64, 128, 256, 512, 512), strict=True), start=1
    ):
        for number in range(1, count + 1):
            weights = 9 * channels * width
            pixels = side * side
            layers.append(
                Layer(
                    f"block{block}_conv{number}",
                    cost=pixels * weights,
                    elements=pixels * width,
                    parameters=weights + width,
                )
            )
            channels = width
        side //= 2
        layers.append(Layer(f"block{block}_pool", cost=0, elements=side * side * channels))
    units = side * side * channels
    layers.append(Layer("flatten", cost=0, elements=units))
    for name, width in (("fc1", 4096), ("fc2", 4096), ("predictions", 1000)):
        layers.append(Layer(name, units * width, width, parameters=units * width + width))
        units = width
    return layers
