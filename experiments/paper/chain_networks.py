"""Networks as chains of layers, for any size of image: VGG19, AlexNet, and a U-Net laid flat.

Activations belong to their layers, as in the layer graphs of Keras models. Laid flat means that
the layers follow each other in the order in which they are computed; what a joined layer reads
from the encoder is part of its size, the edge is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from solvers import ComputationGraph
from solvers.graph.layer_graphs import Layer, layer_graph


@dataclass
class _Chain:
    """Layers so far, and the shape of the last one's output."""

    side: int
    channels: int = 3
    layers: list[Layer] = field(default_factory=list)

    def _add(self, name: str, cost: int = 0, parameters: int = 0) -> None:
        elements = self.side**2 * self.channels
        self.layers.append(Layer(f"{name}_{len(self.layers)}", cost, elements, parameters))

    def convolution(self, width: int, size: int = 3, stride: int = 1, padding: int = 1) -> None:
        """Square kernels and images; `padding` on every edge."""
        self.side = (self.side + 2 * padding - size) // stride + 1
        weights = size**2 * self.channels * width
        self.channels = width
        self._add("convolution", self.side**2 * weights, weights + width)

    def pool(self, size: int = 2, stride: int = 2) -> None:
        """The largest of every window."""
        self.side = (self.side - size) // stride + 1
        self._add("pool")

    def flatten(self) -> None:
        """One pixel with all channels."""
        self.side, self.channels = 1, self.side**2 * self.channels
        self._add("flatten")

    def dense(self, width: int) -> None:
        """Fully connected."""
        weights = self.channels * width
        self.channels = width
        self._add("dense", weights, weights + width)

    def enlarge(self) -> None:
        """Twice as many pixels each way, half as many channels, by transposed 2×2 kernels."""
        weights = 4 * self.channels * (self.channels // 2)
        cost = self.side**2 * weights
        self.side, self.channels = 2 * self.side, self.channels // 2
        self._add("enlarge", cost, weights + self.channels)

    def join(self) -> None:
        """As many channels again, of the encoder."""
        self.channels *= 2
        self._add("join")


def vgg19_layers(side: int, classes: int) -> list[Layer]:
    """Simonyan and Zisserman, 2015, configuration E."""
    chain = _Chain(side)
    for width, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(count):
            chain.convolution(width)
        chain.pool()
    chain.flatten()
    for units in (4096, 4096, classes):
        chain.dense(units)
    return chain.layers


def alexnet_layers(side: int, classes: int) -> list[Layer]:
    """Krizhevsky, 2014, in one tower; small images leave fewer pixels to the dense layers."""
    chain = _Chain(side)
    chain.convolution(64, size=11, stride=4, padding=2)
    chain.pool(size=3)
    chain.convolution(192, size=5, padding=2)
    chain.pool(size=3)
    for width in (384, 256, 256):
        chain.convolution(width)
    chain.pool(size=3)
    chain.flatten()
    for units in (4096, 4096, classes):
        chain.dense(units)
    return chain.layers


def unet_layers(side: int, classes: int) -> list[Layer]:
    """Ronneberger et al., 2015, with padded convolutions, laid flat."""
    chain = _Chain(side)
    widths = (64, 128, 256, 512)
    for width in widths:
        chain.convolution(width)
        chain.convolution(width)
        chain.pool()
    chain.convolution(1024)
    chain.convolution(1024)
    for width in reversed(widths):
        chain.enlarge()
        chain.join()
        chain.convolution(width)
        chain.convolution(width)
    chain.convolution(classes, size=1, padding=0)
    return chain.layers


_LAYERS: dict[str, Callable[[int, int], Sequence[Layer]]] = {
    "VGG19": vgg19_layers,
    "AlexNet": alexnet_layers,
    "U-Net, flat": unet_layers,
}

IMAGES = {"ImageNet": (224, 1000), "tiny-ImageNet": (64, 200)}
"""Pixels on a side, and classes."""


def chain_networks() -> dict[tuple[str, str], ComputationGraph]:
    """Every network at every size, batch 1, under (network, images).

    Example:
        >>> chain = chain_networks()["AlexNet", "ImageNet"]
        >>> [node.memory // 4 for node in chain.nodes[:3]]
        [193600, 46656, 139968]
    """
    return {
        (name, images): layer_graph(f"{name}, {side}²", layers(side, classes))
        for name, layers in _LAYERS.items()
        for images, (side, classes) in IMAGES.items()
    }
