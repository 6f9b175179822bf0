"""Bytes that operations need only while they run if XLA compiles them: each is compiled alone.

What XLA makes a part of other operations needs nothing of its own. Convolutions, products and
the like stand alone, and may copy their operands into another layout.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import tensorflow as tf

from profiles.measure.compilation import NotCompilableError, compiled_memory
from profiles.measure.kernels import function_of_specs
from profiles.measure.random_inputs import NotMeasurableError
from profiles.measure.workspaces import SMALLEST
from profiles.operation import Operation

_STANDS_ALONE = ("Conv", "MatMul", "Einsum", "Pool", "Cum", "Sort", "TopK", "Scatter")
"""Parts of the types of operations that XLA does not make a part of others."""


@dataclass
class CompiledWorkspaces:
    """A function from operations to workspaces that compiles what it does not know yet.

    Attributes:
        device: "CPU:0", "GPU:0" or "TPU:0".
        known: workspaces in bytes.

    Example:
        >>> from profiles.operation import TensorSize
        >>> small = TensorSize("float32", (8,))
        >>> CompiledWorkspaces()(Operation("Relu", (small,), (small,)))
        0
    """

    device: str = "CPU:0"
    known: dict[Operation, int] = field(default_factory=dict)

    def __call__(self, operation: Operation) -> int:
        """Bytes of workspace of one run; 0 where the operation can't be compiled alone."""
        if operation.bytes_moved < SMALLEST:
            return 0
        if not any(part in operation.type for part in _STANDS_ALONE):
            return 0
        if operation not in self.known:
            self.known[operation] = self._compile(operation)
        return self.known[operation]

    def _compile(self, operation: Operation) -> int:
        try:
            body, specs = function_of_specs(operation)
            function = tf.function(body, autograph=False, jit_compile=True)
            concrete = function.get_concrete_function(*specs)
            return compiled_memory(concrete, specs, self.device).temporary
        except (NotMeasurableError, NotCompilableError, TypeError, ValueError):
            return 0
