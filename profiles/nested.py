"""Operations that run functions: their cost and memory are those of what the functions do."""

from __future__ import annotations

from dataclasses import dataclass

from profiles.operation import Operation, TensorSize


@dataclass(frozen=True, slots=True)
class Nested(Operation):
    """A loop, a branch, or a call of a compiled function.

    Attributes:
        parts: the operations inside; of a branch, of the one with the most arithmetic.
        repeats: how often they run at most; 1 where nothing tells.
        definition: of a compiled call: a serialized GraphDef with an operation "call" on
            placeholders "input_0", "input_1", …, and all functions; empty for others.
        contents: (input number, type and shape) of the variables behind handles.
    """

    parts: tuple[Operation, ...] = ()
    repeats: int = 1
    definition: bytes = b""
    contents: tuple[tuple[int, TensorSize], ...] = ()

    @property
    def is_compiled(self) -> bool:
        """Whether a compiler makes one kernel of its parts."""
        return bool(self.definition)
