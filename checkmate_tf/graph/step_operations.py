"""The operations of a step as a device runs them: fused pairs as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from checkmate_tf.trace.fusions import fuses_into, shared_gradient, sibling_of
from checkmate_tf.trace.program import Program
from checkmate_tf.trace.signatures import signature
from profiles.fusion import fuse
from profiles.nested import Nested
from profiles.operation import Operation
from profiles.roofline import floating_point_operations


class CostModel(Protocol):
    """What planning asks of a provider of costs."""

    @property
    def unit(self) -> str:
        """Of the costs: "s" for seconds, "FLOP" for floating-point operations."""

    def cost(self, operation: Operation) -> float:
        """What one run of an operation costs, in `unit`."""


@dataclass(frozen=True)
class StepOperation:
    """What runs as one kernel.

    Attributes:
        members: numbers of the program's operations, in order.
        heaviest: the member with the most arithmetic.
        operation: its signature, a `profiles.fusion.Fusion` where there are several members.
    """

    members: tuple[int, ...]
    heaviest: int
    operation: Operation


def step_operations(program: Program) -> tuple[StepOperation, ...]:
    """The operations of `program`, every one in one place, in the program's order."""
    part_of = list(range(len(program.operations)))  # the first member that it runs with
    members = {number: [number] for number in part_of}
    for pair in _pairs(program):
        low, high = sorted(part_of[each] for each in pair)
        if low != high:
            joined = members.pop(high)
            members[low] += joined
            for each in joined:
                part_of[each] = low
    return tuple(_step_operation(program, sorted(numbers)) for numbers in members.values())


def costs_of_step(kernels: Sequence[StepOperation], model: CostModel) -> list[float]:
    """The cost of every operation of a program, in the model's unit.

    What runs together is billed to the heaviest.
    """
    costs = [0.0] * sum(len(each.members) for each in kernels)
    for each in kernels:
        costs[each.heaviest] = _cost(each.operation, model)
    return costs


def _cost(operation: Operation, model: CostModel) -> float:
    """What one run costs; loops and branches cost what runs in them."""
    if isinstance(operation, Nested) and not operation.is_compiled:
        return operation.repeats * sum(_cost(part, model) for part in operation.parts)
    return model.cost(operation)


def _pairs(program: Program) -> Iterator[tuple[int, int]]:
    """Pairs of operations that a device fuses wherever they meet."""
    yield from _producers_and_readers(program)
    yield from _siblings(program)


def _producers_and_readers(program: Program) -> Iterator[tuple[int, int]]:
    number = {operation.name: place for place, operation in enumerate(program.operations)}
    only_reader = _only_readers(program)
    for place, operation in enumerate(program.operations):
        for tensor in operation.inputs:
            producer = number.get(tensor.op.name, -1)
            fused = fuses_into(tensor.op.type, operation.type)
            if fused and only_reader.get(producer) == place:
                yield producer, place


def _only_readers(program: Program) -> dict[int, int]:
    """The one reader of operations that have one, and whose outputs are not returned."""
    readers: dict[int, set[int]] = defaultdict(set)
    for reader, tensors in enumerate(program.reads):
        for tensor in tensors:
            readers[tensor.producer].add(reader)
    returned = {tensor.producer for tensor in program.outputs}
    return {
        producer: next(iter(found))
        for producer, found in readers.items()
        if len(found) == 1 and producer not in returned
    }


def _siblings(program: Program) -> Iterator[tuple[int, int]]:
    """Gradients of filters, each with that of the bias from the same gradient."""
    reading = {
        place: (operation.type, shared.ref())
        for place, operation in enumerate(program.operations)
        if (shared := shared_gradient(operation)) is not None
    }
    place_of = {key: place for place, key in reading.items()}
    for place, (kind, shared) in reading.items():
        sibling = sibling_of(kind)
        if sibling is not None and (sibling, shared) in place_of:
            yield place, place_of[sibling, shared]


def _step_operation(program: Program, members: list[int]) -> StepOperation:
    parts = [signature(program.sized[program.operations[m].name]) for m in members]
    work = dict(zip(members, map(floating_point_operations, parts), strict=True))
    return StepOperation(
        members=tuple(members),
        heaviest=max(members, key=work.__getitem__),
        operation=_fused([program.operations[m] for m in members], parts),
    )


def _fused(operations: list[Any], parts: list[Operation]) -> Operation:
    """The parts as one: what they alone read of each other stays inside."""
    if len(parts) == 1:
        return parts[0]
    made = [tensor.ref() for operation in operations for tensor in operation.outputs]
    read = {tensor.ref() for operation in operations for tensor in operation.inputs}
    sizes = {
        tensor.ref(): size
        for operation, part in zip(operations, parts, strict=True)
        for tensor, size in zip(operation.inputs, part.inputs, strict=True)
        if tensor.ref() not in made
    }
    number = {value: place for place, value in enumerate([*sizes, *made])}
    return fuse(
        parts,
        wires=[[number[tensor.ref()] for tensor in each.inputs] for each in operations],
        inputs=list(sizes.values()),
        results=[number[value] for value in made if value not in read],
    )
