"""What runs, one instruction after the other: the one form between a schedule and a run.

A schedule says which nodes are computed in which order. All that is decided beyond that is decided
once, in `lower`: which computation of a tensor is read, what waits for what, which kernel writes
where. The forecast of memory and the emission only read these instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from checkmate_tf.trace.momentum_updates import MomentumUpdate
from checkmate_tf.trace.program import Tensor

START = -1
"""Among what an instruction waits for: all that is emitted before the first instruction."""

Value = tuple[Tensor, int]
"""A tensor, and the number of the instruction that made it."""


class Kernel(Enum):
    """How an instruction does what its operation is there for."""

    OPERATION = "as it was traced"
    SUM = "an AddN of three and more, in pairs"
    WRITE_IN_PLACE = "a write into the variable's own buffer"
    MOMENTUM = "an update by momentum, in place of several operations"
    KEEP = "a value that XLA is to keep, in a buffer of its own"
    BARRIER = "nothing: others wait for several by it"
    RETURN = "nothing: what it reads goes to the caller, who frees it"


@dataclass(frozen=True)
class Tie:
    """An operand that waits, by its data, for another value: XLA ignores all other order.

    Attributes:
        operand: the input of the operation that waits.
        late: what it waits for, an input too; None where that is the value `after`.
        after: a value that was made before.
    """

    operand: Any
    late: Any = None
    after: Value | None = None


@dataclass(frozen=True)
class Instruction:
    """One operation runs once.

    Attributes:
        operation: its number in the program; None of a barrier and of the return.
        node: of the graph, whose computation this is a part of; None of what runs once, beside the
            schedule or attached to a node.
        recomputed: it has run before.
        waits_for: numbers of instructions that run before it, whatever it reads.
        kernel: how it does it.
        update: of a kernel for momentum.
        renamed: the gradient that oneDNN finds siblings by, and the first instruction of those that
            read it under one other name: two computations are not to be fused.
        ties: for XLA.
        reads: the values that it reads, through views.
        copies: bytes of the copies of inputs that it makes before it allocates its outputs.
        uses: the buffers in which they lie.
        writes: (buffer, bytes) of its outputs that take new memory; others share a buffer.
        takes_over: the buffer of an input that its output lies in.
        workspace: bytes that it needs afterwards, only while it runs.
        assigns: (variable, buffer) if the variable takes over the buffer, and frees its own.
        frees: buffers that nobody reads afterwards.
    """

    operation: int | None
    node: int | None = None
    recomputed: bool = False
    waits_for: tuple[int, ...] = ()
    kernel: Kernel = Kernel.OPERATION
    update: MomentumUpdate | None = None
    renamed: tuple[Any, int] | None = None
    ties: tuple[Tie, ...] = ()
    reads: tuple[Value, ...] = ()
    copies: tuple[int, ...] = ()
    uses: tuple[int, ...] = ()
    writes: tuple[tuple[int, int], ...] = ()
    takes_over: int | None = None
    workspace: int = 0
    assigns: tuple[str, int] | None = None
    frees: tuple[int, ...] = ()


Instructions = tuple[Instruction, ...]
