"""What XLA allocates for a function: the compiler says it to the byte, without a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from textwrap import shorten
from typing import Any

import tensorflow as tf

from profiles.tensorflow_internals import report_of_compiler
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
        scratch: by the name of an operation, what a library's kernel needs only while it runs:
            cuDNN's convolutions for one. XLA's own loops need nothing of the kind.
        is_recomputed: XLA recomputes some values by itself, or it would take more. It does so on a
            GPU, where a function would take most of the device's memory.
    """

    temporary: int
    arguments: int
    outputs: int
    scratch: Mapping[str, int] = field(default_factory=dict)
    is_recomputed: bool = False

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
        report = report_of_compiler(concrete, sizes, device)
    except (tf.errors.OpError, ValueError) as error:
        why = next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)
        raise NotCompilableError(
            "xla-cannot-compile", f"XLA can't compile the step: {shorten(why, 300)}"
        ) from error
    buffers = report.buffer_assignment.buffer_allocations
    arguments = [each for each in buffers if each.is_entry_computation_parameter]
    others = [each for each in buffers if not each.is_entry_computation_parameter]
    outputs = [each for each in others if each.maybe_live_out]
    temporary = [
        each
        for each in others
        if not (each.maybe_live_out or each.is_constant or each.is_thread_local)
    ]
    return CompiledMemory(
        _bytes(temporary),
        _bytes(arguments),
        _bytes(outputs),
        _scratch(report),
        _is_recomputed(report),
    )


def _bytes(buffers: Sequence[Any]) -> int:
    return sum(int(each.size) for each in buffers)


_UINT8 = 6
"""XLA's number of the type that scratch memory has."""


def _scratch(report: Any) -> dict[str, int]:
    """Bytes that calls of libraries return beside their results, for nobody to read."""
    found: Counter[str] = Counter()
    for computation in report.hlo_module.computations:
        for each in computation.instructions:
            if each.opcode != "custom-call" or not each.shape.tuple_shapes:
                continue
            last = each.shape.tuple_shapes[-1]
            if last.element_type == _UINT8:
                found[each.metadata.op_name] += prod(last.dimensions)
    return {name: size for name, size in found.items() if size}


def _is_recomputed(report: Any) -> bool:
    """Whether XLA has written an instruction once more to save memory; it names such copies."""
    instructions = (each for part in report.hlo_module.computations for each in part.instructions)
    return any(".remat" in each.name for each in instructions)
