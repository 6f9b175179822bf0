"""A kind of train step: how it is made, and how it is trained, plainly or decorated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Size:
    """How large a kind is made.

    Attributes:
        batch: examples in a batch.
        side: pixels along an image, or words in a text.
        channels: filters of a layer, or numbers that stand for a word.
        depth: layers in a row.
    """

    batch: int
    side: int
    channels: int
    depth: int


LARGE = Size(batch=16, side=48, channels=16, depth=5)
"""Some tens of megabytes of activations, so that a budget is worth something."""

SMALL = Size(batch=4, side=16, channels=8, depth=3)
"""For tests of results, not of memory."""

STEPS = 3
"""Batches that a kind is trained on."""

Decorate = Callable[..., Any]
"""Takes a step, or a method of a model, and returns what is called in its place.

And `batch_size`, where the step itself doesn't see it: `fit` traces for batches of any size.
"""


@dataclass(frozen=True)
class Called:
    """A step that the user calls in a loop.

    Attributes:
        step: takes each of `data`.
        data: arguments, call by call.
        owners: what has the variables that the step reads and writes.
        compile: whether the plain step is made a tf.function first, as users do.
    """

    step: Callable[..., Any]
    data: Sequence[tuple[Any, ...]]
    owners: Sequence[Any]
    compile: bool = True

    def prepared(self, decorate: Decorate) -> Callable[[], Any]:
        """What trains on all data once, by the decorated step."""
        step = decorate(self.step)
        return lambda: [step(*arguments) for arguments in self.data]


@dataclass(frozen=True)
class Fitted:
    """A Keras model that trains by `fit` or by something like it.

    Attributes:
        model: compiled.
        train: trains it once and returns what is compared, losses for instance.
        batch_size: of most batches.
    """

    model: Any
    train: Callable[[Any], Any]
    batch_size: int

    @property
    def owners(self) -> Sequence[Any]:
        """What has the variables."""
        optimizer = getattr(self.model, "optimizer", None)
        return [self.model, *([optimizer] if optimizer is not None else [])]

    def prepared(self, decorate: Decorate) -> Callable[[], Any]:
        """What trains once, by the decorated `train_step` of the model."""
        self.model.train_step = decorate(self.model.train_step, batch_size=self.batch_size)
        return lambda: self.train(self.model)


Training = Called | Fitted


@dataclass(frozen=True)
class Kind:
    """One row of the table.

    Attributes:
        name: what a user would call it.
        group: which kinds it belongs to.
        make: a training of that kind, with variables drawn anew.
    """

    name: str
    group: str
    make: Callable[[Size], Training]


def variables(owners: Sequence[Any]) -> list[Any]:
    """All variables of models, optimizers, layers and plain lists, each once."""
    found: dict[int, Any] = {}
    for owner in owners:
        listed = getattr(owner, "variables", None)
        for each in owner if listed is None else listed:
            found.setdefault(id(each), each)
    return list(found.values())
