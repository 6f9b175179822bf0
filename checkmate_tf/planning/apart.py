"""Run operations and make variables unseen by the function or strategy that is under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from profiles.tensorflow_internals import plain_variable


@contextmanager
def apart() -> Iterator[None]:
    """Run operations eagerly, also while a function is traced, and make variables as usual.

    A `tf.function` that is being traced, or the scope of a `tf.distribute` strategy, would
    otherwise count the variables as the user's: it takes them into the function, makes one for
    every replica, or refuses them.

    Example:
        >>> import tensorflow as tf
        >>> @tf.function
        ... def step(x):
        ...     with apart():
        ...         assert tf.executing_eagerly() and tf.Variable(1.0).numpy() == 1
        ...     return x + 1
        >>> [int(step(tf.constant(number))) for number in (1, 2)]
        [2, 3]
    """

    def create(next_creator: Any, **arguments: Any) -> Any:
        return plain_variable(**arguments)

    with tf.init_scope(), tf.variable_creator_scope(create):
        yield
