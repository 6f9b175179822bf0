"""The functions that Keras makes of a model's step, one for each size of what it is trained on.

Keras lets TensorFlow trace its train function for tensors of any size as soon as images of another
size come, or longer texts. A plan needs sizes. So each gets a train function of its own, of which
TensorFlow makes one trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf

from checkmate_tf.trace.inputs import argument_placeholders

Sizes = tuple[tuple[int, ...], ...]
"""The dimensions of each tensor of a batch, but the first one, which Keras leaves open."""


class TrainFunctions:
    """The train functions of one model since it was last compiled."""

    def __init__(self) -> None:
        """None is known yet."""
        self._known: dict[Sizes, Callable[..., Any]] = {}
        self._begun: WeakKeyDictionary[Any, set[Any]] = WeakKeyDictionary()

    def note(self, function: Callable[..., Any], concrete: Any) -> None:
        """`function` is being traced; `concrete` is the model's step as it is in this trace."""
        self._forget_others_than(function)
        sizes = _sizes(each.shape for each in argument_placeholders(concrete))
        if sizes is not None:
            self._known[sizes] = function

    def _forget_others_than(self, function: Callable[..., Any]) -> None:
        """Those of before, if Keras has made `function` anew."""
        if function not in self._known.values():
            self._known.clear()

    def begins(self, function: Callable[..., Any], iterator: Any) -> bool:
        """Whether `function` gets its first batches of this type from a data set now."""
        if not isinstance(iterator, tf.data.Iterator):
            return False
        known = self._begun.setdefault(function, set())
        kind = str(iterator.element_spec)
        is_new = kind not in known
        known.add(kind)
        return is_new

    def fitting(
        self, function: Callable[..., Any], batches: Any, make: Callable[[], Callable[..., Any]]
    ) -> Callable[..., Any]:
        """The train function for the next batch.

        Args:
            function: the one that Keras would call.
            batches: an iterator of a data set, or a list.
            make: makes another train function.
        """
        self._forget_others_than(function)
        if isinstance(batches, tf.data.Iterator):
            batch = batches.element_spec
        elif isinstance(batches, list):
            batch = batches[:1]
        else:  # of several replicas
            return function
        sizes = _sizes(each.shape for each in tf.nest.flatten(batch) if hasattr(each, "shape"))
        if sizes is None:
            return function
        if sizes in self._known:
            return self._known[sizes]
        ranks = [len(each) for each in sizes]
        if any([len(each) for each in known] == ranks for known in self._known):
            self._known[sizes] = function = make()
        return function


def _sizes(shapes: Iterable[Any]) -> Sizes | None:
    """None where one is not known."""
    found = [tf.TensorShape(each) for each in shapes]
    if any(each.rank is None or not each[1:].is_fully_defined() for each in found):
        return None
    return tuple(tuple(each[1:].as_list()) for each in found)
