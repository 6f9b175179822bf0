"""A part of a program as a program of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from checkmate_tf.trace.depth_first import tensor_key
from checkmate_tf.trace.program import Program, Tensor
from checkmate_tf.trace.sizes import tensor_bytes, variable_bytes


def part_of(
    program: Program, numbers: Sequence[int], beside: Iterable[int], kept: Iterable[Tensor]
) -> Program:
    """The operations `numbers` of a program, numbered anew in their order.

    Args:
        program: of the whole step.
        numbers: of operations that depend on others before the part alone.
        beside: of operations that run on the same device; what they read from outside is held
            there all the time, as what the part reads.
        kept: the tensors of the part that are needed afterwards.
    """
    new = {number: place for place, number in enumerate(numbers)}

    def inside(tensors: Iterable[Tensor]) -> frozenset[Tensor]:
        return frozenset(
            replace(each, producer=new[each.producer]) for each in tensors if each.producer in new
        )

    def those(others: Iterable[int]) -> frozenset[int]:
        return frozenset(new[each] for each in others if each in new)

    operations = tuple(program.operations[number] for number in numbers)
    names = {each.name for each in operations}
    given = _given(program, (*numbers, *beside))
    placeholders = {key[0] for key in given}
    return replace(
        program,
        operations=operations,
        reads=tuple(inside(program.reads[number]) for number in numbers),
        order=tuple(those(program.order[number]) for number in numbers),
        expires=tuple(those(program.expires[number]) for number in numbers),
        outputs=inside(kept),
        fixed_bytes=sum(given.values()),
        guessed=tuple(each for each in program.guessed if each.name in names),
        captured=tuple(pair for pair in program.captured if pair[0].op.name in placeholders),
    )


def _given(program: Program, numbers: Sequence[int]) -> dict[tuple[str, int], int]:
    """Bytes of variables, inputs, constants and others' tensors that the operations read."""
    number = {op.name: place for place, op in enumerate(program.operations)}
    own = set(numbers)
    given: dict[tuple[str, int], int] = {}
    seen: set[tuple[str, int]] = set()
    pending = [each for place in numbers for each in program.operations[place].inputs]
    while pending:
        tensor = pending.pop()
        operation = tensor.op
        if operation.name in program.constants:
            first = program.constants[operation.name]
            operation = operation.graph.get_operation_by_name(first)
            tensor = operation.outputs[tensor.value_index]
        key = tensor_key(tensor)
        if key in seen or number.get(operation.name) in own:
            continue
        seen.add(key)
        if operation.name in number or operation.type == "Const":
            given[key] = _bytes(program, tensor)
        elif operation.type == "Placeholder":
            given[key] = variable_bytes(tensor) or _bytes(program, tensor)
        else:
            if operation.name in program.constants:
                given[key] = _bytes(program, tensor)
            pending += operation.inputs
    return given


def _bytes(program: Program, tensor: Any) -> int:
    sized = program.sized[tensor.op.name].outputs[tensor.value_index]
    return tensor_bytes(sized.dtype, sized.shape) or 0
