"""What XLA allocates for a function: the compiler says it to the byte, without a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from profiles.tensorflow_internals import buffers_after_compilation
from solvers.errors import CheckmateError


class NotCompilableError(CheckmateError):
    """XLA can't compile a function; the message says why."""


@dataclass(frozen=True)
class CompiledMemory:
    """Bytes of a compiled function.

    Attributes:
        temporary: one block for all that is needed only while the function runs.
        arguments: of what it is given and of the variables that it reads and writes.
        outputs: of results that take no argument's place, as updated variables do.
    """

    temporary: int
    arguments: int
    outputs: int

    @property
    def added(self) -> int:
        """What a run takes beside its arguments."""
        return self.temporary + self.outputs


def compiled_memory(
    concrete: Any, sizes: Sequence[tf.TensorSpec], device: str = "CPU:0"
) -> CompiledMemory:
    """What XLA allocates for a ConcreteFunction; it is compiled for this, which takes its time.

    Args:
        concrete: of a `tf.function(jit_compile=True)`.
        sizes: known shapes for its flat arguments.
        device: "CPU:0", "GPU:0" or "TPU:0".

    Raises:
        NotCompilableError: XLA can't compile it.

    Example:
        >>> import tensorflow as tf
        >>> product = tf.function(lambda x: tf.reduce_sum(x @ x), jit_compile=True)
        >>> size = tf.TensorSpec((256, 256))
        >>> memory = compiled_memory(product.get_concrete_function(size), [size])
        >>> memory.arguments == 4 * 256 * 256
        True
    """
    try:
        buffers = buffers_after_compilation(concrete, sizes, device)
    except tf.errors.OpError as error:
        raise NotCompilableError(
            "xla-cannot-compile", f"XLA can't compile the function: {error.message}"
        ) from error
    arguments = [each for each in buffers if each.is_entry_computation_parameter]
    others = [each for each in buffers if not each.is_entry_computation_parameter]
    outputs = [each for each in others if each.maybe_live_out]
    temporary = [
        each
        for each in others
        if not (each.maybe_live_out or each.is_constant or each.is_thread_local)
    ]
    return CompiledMemory(*map(_bytes, (temporary, arguments, outputs)))


def _bytes(buffers: Sequence[Any]) -> int:
    return sum(int(each.size) for each in buffers)
