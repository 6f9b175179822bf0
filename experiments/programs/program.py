"""A program: data, a compiled model, and its `fit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

BATCHES, EPOCHS = 6, 2
"""Batches of an epoch, and epochs."""


@dataclass(frozen=True)
class Script:
    """A program that is ready to train.

    Attributes:
        model: compiled.
        data: what `fit` gets by position: arrays, or a data set.
        options: what else it gets.
    """

    model: Any
    data: tuple[Any, ...]
    options: dict[str, Any]

    def fit(self, callbacks: list[Any]) -> None:
        """Train, silently, with these callbacks too."""
        self.model.fit(*self.data, epochs=EPOCHS, verbose=0, callbacks=callbacks, **self.options)


@dataclass(frozen=True)
class Program:
    """One row of the table.

    Attributes:
        name: what its page is about.
        page: the one that it is like, below https://keras.io.
        batch: examples in a batch; where there are two batches, in the larger one.
        make: the program with batches of that size, and weights drawn anew.
    """

    name: str
    page: str
    batch: int
    make: Callable[[int], Script]


def examples(batch: int) -> int:
    """So many that the last batch of an epoch is a smaller one.

    Example:
        >>> examples(32) / 32
        5.5
    """
    return BATCHES * batch - batch // 2


def images(count: int, side: int, channels: int = 3, seed: int = 0) -> Any:
    """Made-up images with values from 0 to 1.

    Example:
        >>> images(2, 8).shape
        (2, 8, 8, 3)
    """
    draw = np.random.default_rng(seed)
    return draw.uniform(size=(count, side, side, channels)).astype("float32")


def integers(shape: int | tuple[int, ...], end: int, seed: int = 1) -> Any:
    """Made-up labels or tokens, from 0 up to `end`, without it.

    Example:
        >>> integers((2, 3), 10).shape
        (2, 3)
    """
    return np.random.default_rng(seed).integers(0, end, shape).astype("int32")
