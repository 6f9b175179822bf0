"""Bytes that operations need only while they run if XLA compiles them: each is compiled alone.

What XLA makes a part of other operations needs nothing of its own. Convolutions, products and
the like stand alone, and may copy their operands into another layout. What is known is kept in the
user's profiles, where XLA on a device is a device of its own.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field

import tensorflow as tf

from profiles.devices import device_name
from profiles.measure.compilation import NotCompilableError, compiled_memory
from profiles.measure.kernels import function_of_specs
from profiles.measure.random_inputs import NotMeasurableError
from profiles.measure.workspaces import SMALLEST
from profiles.operation import Operation
from profiles.operation_facts import facts
from profiles.profile import Measurement, Profile
from profiles.store import known_profile, remember


def compiler_name(device: str = "CPU:0") -> str:
    """The full name of XLA on a device; with other flags it is another one.

    Raises:
        CheckmateError: TensorFlow does not see such a device.

    Example:
        >>> compiler_name("CPU:0").startswith("XLA:CPU on ")
        True
    """
    flags = os.environ.get("XLA_FLAGS", "").split()
    digest = hashlib.sha256(" ".join(sorted(flags)).encode()).hexdigest()[:8]
    kind = device.partition(":")[0]
    return f"XLA:{kind} on {device_name(device)}" + f", flags {digest}" * bool(flags)


@dataclass
class CompiledWorkspaces:
    """A function from operations to workspaces that compiles what it does not know yet.

    Attributes:
        device: "CPU:0", "GPU:0" or "TPU:0".
        known: workspaces in bytes.
        found: those of them that no profile has yet.

    Example:
        >>> from profiles.operation import TensorSize
        >>> small = TensorSize("float32", (8,))
        >>> CompiledWorkspaces()(Operation("Relu", (small,), (small,)))
        0
    """

    device: str = "CPU:0"
    known: dict[Operation, int] = field(default_factory=dict)
    found: dict[Operation, int] = field(default_factory=dict)

    @classmethod
    def stored(cls, device: str = "CPU:0") -> CompiledWorkspaces:
        """With what stored profiles know.

        Raises:
            CheckmateError: TensorFlow does not see such a device, or a stored profile is broken.
        """
        return cls(device, dict(known_profile(compiler_name(device), tf.__version__).workspaces))

    def __call__(self, operation: Operation) -> int:
        """Bytes of workspace of one run; 0 where the operation can't be compiled alone."""
        if operation.bytes_moved < SMALLEST or facts(operation.type).xla != "alone":
            return 0
        if operation not in self.known:
            self.known[operation] = self.found[operation] = self._compile(operation)
        return self.known[operation]

    def keep(self) -> None:
        """Put what was found into the user's profiles.

        Raises:
            CheckmateError: the user's folder can't be written, or what is there is broken.
        """
        if self.found:
            entries = {each: Measurement(None, size) for each, size in self.found.items()}
            remember(Profile(compiler_name(self.device), tf.__version__, entries))
            self.found.clear()

    def _compile(self, operation: Operation) -> int:
        try:
            body, specs = function_of_specs(operation)
            function = tf.function(body, autograph=False, jit_compile=True)
            concrete = function.get_concrete_function(*specs)
            return compiled_memory(concrete, specs, self.device).temporary
        except (NotMeasurableError, NotCompilableError, TypeError, ValueError):
            return 0
