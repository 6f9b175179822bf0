"""Which computation of a tensor is read: the newest, and of tiny tensors the first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from checkmate_tf.program.instructions import Instruction, Instructions, Kernel
from checkmate_tf.trace.program import Program, Tensor


def with_reads(
    program: Program, instructions: Sequence[Instruction], tiny: Collection[Tensor] = ()
) -> Instructions:
    """The same with what they read; `tiny` tensors stay from their first computation on."""
    newest: dict[Tensor, int] = {}
    found = []
    for number, each in enumerate(instructions):
        found.append(replace(each, reads=tuple((t, newest[t]) for t in _read(program, each))))
        for tensor in made(program, each):
            if tensor not in tiny or tensor not in newest:
                newest[tensor] = number
    return tuple(found)


def made(program: Program, instruction: Instruction) -> Sequence[Tensor]:
    """The tensors that an instruction makes."""
    if instruction.operation is None:
        return ()
    if instruction.kernel is Kernel.KEEP:
        return [tensor for tensor, _ in instruction.reads]
    return program.produced[instruction.operation]


def _read(program: Program, instruction: Instruction) -> Iterable[Tensor]:
    if instruction.kernel is Kernel.RETURN:
        return program.outputs
    if instruction.kernel is Kernel.KEEP:
        return [tensor for tensor, _ in instruction.reads]
    if instruction.update is not None:
        return instruction.update.reads
    return () if instruction.operation is None else program.reads[instruction.operation]
