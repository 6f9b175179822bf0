"""The operations of a step as a device runs them: fused pairs as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from checkmate_tf.trace.operations import FUSED_PAIRS, FUSED_SIBLINGS, SHARED_INPUT
from checkmate_tf.trace.program import Program
from checkmate_tf.trace.signatures import signature
from profiles.fusion import fuse
from profiles.operation import Operation, TensorSize
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
    for first, second in _pairs(program):
        low, high = sorted((part_of[first], part_of[second]))
        part_of = [low if each == high else each for each in part_of]
    members: dict[int, list[int]] = defaultdict(list)
    for number, part in enumerate(part_of):
        members[part].append(number)
    return tuple(_step_operation(program, numbers) for numbers in members.values())


def costs_of_step(program: Program, model: CostModel) -> list[float]:
    """The cost of every operation of `program`, in the model's unit.

    What runs together is billed to the heaviest.
    """
    costs = [0.0] * len(program.operations)
    for each in step_operations(program):
        costs[each.heaviest] = model.cost(each.operation)
    return costs


def _pairs(program: Program) -> Iterator[tuple[int, int]]:
    """Pairs of operations that a device fuses wherever they meet."""
    number = {operation.name: place for place, operation in enumerate(program.operations)}
    readers: dict[int, set[int]] = defaultdict(set)
    for reader, tensors in enumerate(program.reads):
        for tensor in tensors:
            readers[tensor.producer].add(reader)
    returned = {tensor.producer for tensor in program.outputs}
    biases: dict[tuple[str, Any], int] = {}
    for place, operation in enumerate(program.operations):
        if operation.type in FUSED_SIBLINGS.values():
            biases[operation.type, operation.inputs[0].ref()] = place
        for tensor in operation.inputs:
            producer = number.get(tensor.op.name, -1)
            fused = (tensor.op.type, operation.type) in FUSED_PAIRS
            if fused and readers[producer] == {place} and producer not in returned:
                yield producer, place
    for place, operation in enumerate(program.operations):
        sibling = FUSED_SIBLINGS.get(operation.type)
        if sibling and (sibling, operation.inputs[SHARED_INPUT].ref()) in biases:
            yield place, biases[sibling, operation.inputs[SHARED_INPUT].ref()]


def _step_operation(program: Program, members: list[int]) -> StepOperation:
    parts = [signature(program.sized[program.operations[m].name]) for m in members]
    if len(parts) == 1:
        return StepOperation((members[0],), members[0], parts[0])
    operations = [program.operations[m] for m in members]
    made = {tensor.ref() for operation in operations for tensor in operation.outputs}
    sizes: dict[Any, TensorSize] = {}
    for operation, part in zip(operations, parts, strict=True):
        for tensor, size in zip(operation.inputs, part.inputs, strict=True):
            if tensor.ref() not in made:
                sizes.setdefault(tensor.ref(), size)
    values = [*sizes, *(tensor.ref() for op in operations for tensor in op.outputs)]
    numbers = {value: number for number, value in enumerate(values)}
    read_inside = {tensor.ref() for operation in operations for tensor in operation.inputs}
    fused = fuse(
        parts,
        wires=[[numbers[tensor.ref()] for tensor in op.inputs] for op in operations],
        inputs=list(sizes.values()),
        results=[numbers[value] for value in values[len(sizes) :] if value not in read_inside],
    )
    work = dict(zip(members, map(floating_point_operations, parts), strict=True))
    return StepOperation(tuple(members), max(members, key=work.__getitem__), fused)
