"""A traced step as plain data: which operations do work, what they read, what must wait.

Sources and views are resolved here once and for all: an operation that reads a view depends on
what lies under it, and a variable read takes no memory but must not outlive the next write.
Operations are numbered in a topological order that follows their creation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tensorflow as tf

from checkmate_tf.collector import collector_paused
from checkmate_tf.trace.constants import folded_constants
from checkmate_tf.trace.depth_first import finish, tensor_key
from checkmate_tf.trace.guessed_sizes import Sizes
from checkmate_tf.trace.inlining import inlined
from checkmate_tf.trace.inputs import argument_placeholders, captures
from checkmate_tf.trace.operations import READS, SOURCES, VIEWS, is_stateful, under_views
from checkmate_tf.trace.sizes import (
    ArgumentSizes,
    check_iterators,
    sized_operations,
    tensor_bytes,
    topological,
    variable_bytes,
)
from checkmate_tf.trace.sums import SumOrders

_NO_WORK = SOURCES | VIEWS


@dataclass(frozen=True)
class Tensor:
    """One output of one working operation.

    Attributes:
        producer: number of the operation.
        index: which of its outputs.
        bytes: its size.
    """

    producer: int
    index: int
    bytes: int


@dataclass(frozen=True, eq=False)
class Program:
    """A traced step, resolved; equal to itself alone.

    Attributes:
        concrete: the ConcreteFunction, or the same without calls in it.
        operations: those that do work and are needed, in a topological order.
        sized: every operation with known shapes, by name.
        reads: per operation, the working outputs it reads, through views.
        order: per operation, operations that must have run once before it, though it may read
            nothing of theirs.
        expires: per operation, those that overwrite a variable that it reads.
        outputs: the working outputs that the function returns.
        constants: operations that TensorFlow makes constants of: by name, the first that is
            equal, which stands for all.
        fixed_bytes: bytes of variables, inputs and constants.
        constant_sizes: bytes of each constant that TensorFlow makes at the first step.
        guessed: operations whose output sizes depend on data and were guessed.
        captured: (placeholder, captured tensor) of variables and other things from outside.
        late_reads: by the name of a variable's read, operations that the user put before it, if
            there are others than those that touch this variable.
    """

    concrete: Any
    operations: tuple[Any, ...]
    sized: dict[str, Any]
    reads: tuple[frozenset[Tensor], ...]
    order: tuple[frozenset[int], ...]
    expires: tuple[frozenset[int], ...]
    outputs: frozenset[Tensor]
    constants: dict[str, str]
    fixed_bytes: int
    constant_sizes: tuple[int, ...]
    guessed: tuple[Any, ...]
    captured: tuple[tuple[Any, Any], ...]
    late_reads: dict[str, frozenset[int]]

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants."""
        return sum(self.constant_sizes)

    @property
    def argument_bytes(self) -> int:
        """Bytes of what the step is called with."""
        return sum(self.argument_sizes)

    @property
    def argument_sizes(self) -> list[int]:
        """The same, of each argument."""
        placeholders = argument_placeholders(self.concrete)
        given = [self.sized[each.op.name].outputs[0] for each in placeholders]
        return [tensor_bytes(each.dtype, each.shape) or 0 for each in given]

    @cached_property
    def sums(self) -> SumOrders:
        """The order in which every AddN adds."""
        graph = self.concrete.graph
        operations = topological(graph.get_operations())
        return SumOrders(operations, self.sized, self.concrete.outputs)

    def before(self, number: int) -> frozenset[int]:
        """Operations that must have run before this one, for what it reads or by their order."""
        return self.order[number].union(tensor.producer for tensor in self.reads[number])

    @cached_property
    def produced(self) -> tuple[tuple[Tensor, ...], ...]:
        """Per operation, its outputs."""
        sizes = Sizes(self.sized)
        return tuple(
            tuple(
                Tensor(number, index, 0 if operation.type in VIEWS else sizes.of(out))
                for index, out in enumerate(operation.outputs)
            )
            for number, operation in enumerate(self.operations)
        )


def resolve(concrete: Any, sizes: ArgumentSizes | None = None) -> Program:
    """Resolve a ConcreteFunction into a `Program`.

    Args:
        concrete: of a whole train step, or of a function that returns loss and gradients.
        sizes: of inputs that were traced without them: the first dimension of all, or the shape of
            each.

    Raises:
        CheckmateError: a size is unknown and `sizes` do not say it.
    """
    with collector_paused():
        function = inlined(concrete)
        check_iterators(function, sizes)
        return resolve_body(function, sizes)


def resolve_body(concrete: Any, sizes: ArgumentSizes | None = None) -> Program:
    """As `resolve`, with calls of functions left as they are."""
    sized = sized_operations(concrete, sizes)
    needed = _needed(concrete)
    of_tensors = Sizes(sized)
    accesses = _accesses(needed)
    snapshots = _snapshots(needed, accesses)
    constants = folded_constants(needed, of_tensors.of)
    checks = _checks(needed, concrete.outputs)
    working = [
        op
        for op in needed
        if (op.type not in _NO_WORK and op.name not in constants)
        or op.name in snapshots
        or op.name in checks
    ]
    number = {op.name: position for position, op in enumerate(working)}
    under = _Underlying(number, of_tensors)
    reads = tuple(
        frozenset(tensor for each in op.inputs for tensor in under.working(each)) for op in working
    )
    order, expires = _hazards(needed, accesses, number, under)
    constant_sizes = _constant_sizes(concrete, needed, constants, of_tensors)
    return Program(
        concrete=concrete,
        operations=tuple(working),
        sized=sized,
        reads=reads,
        order=tuple(frozenset(order[i] | under.controls(op)) - {i} for i, op in enumerate(working)),
        expires=tuple(frozenset(expires[i]) for i in range(len(working))),
        outputs=frozenset(t for each in concrete.outputs for t in under.working(each)),
        constants=constants,
        fixed_bytes=_given_bytes(concrete, of_tensors) + sum(constant_sizes),
        constant_sizes=constant_sizes,
        guessed=tuple(of_tensors.guessed.values()),
        captured=tuple(captures(concrete)),
        late_reads=dict(_late_reads(accesses, number, under)),
    )


def _needed(concrete: Any) -> list[Any]:
    """What the outputs need and what changes the world, in a topological order."""
    operations = topological(concrete.graph.get_operations())
    pending = [each.op for each in concrete.outputs]
    pending += [op for op in operations if is_stateful(op) and op.type != "Placeholder"]
    found: set[str] = set()
    while pending:
        operation = pending.pop()
        if operation.name not in found:
            found.add(operation.name)
            pending += [each.op for each in operation.inputs]
    return [op for op in operations if op.name in found]


def _checks(needed: list[Any], outputs: Iterable[Any]) -> frozenset[str]:
    """Names of views that must run, though nobody reads them: they check what they are given."""
    read = {each.op.name for op in needed for each in op.inputs}
    read.update(each.op.name for each in outputs)
    return frozenset(
        op.name for op in needed if op.type in VIEWS and op.name not in read and is_stateful(op)
    )


class _Underlying:
    """What lies under a tensor: working outputs, and the variable reads on the way."""

    def __init__(self, number: dict[str, int], sizes: Sizes) -> None:
        self._number = number
        self._sizes = sizes
        self._known: dict[Any, tuple[frozenset[Tensor], frozenset[str]]] = {}
        self._controls: dict[str, frozenset[int]] = {}

    def _resolve(self, tensor: Any) -> tuple[frozenset[Tensor], frozenset[str]]:
        key = tensor_key(tensor)
        if key not in self._known:
            finish(tensor, self._known, tensor_key, self._looked_at, self._resolve_one)
        return self._known[key]

    def _looked_at(self, tensor: Any) -> list[Any]:
        """What `tensor` is a view of, if it is one."""
        operation = tensor.op
        if operation.name in self._number or operation.type not in VIEWS:
            return []
        if operation.type == "IdentityN":
            return [operation.inputs[tensor.value_index]]
        return list(operation.inputs)

    def _resolve_one(self, tensor: Any) -> None:
        operation, key = tensor.op, tensor_key(tensor)
        if operation.name in self._number:
            size = self._sizes.of(tensor)
            made = Tensor(self._number[operation.name], tensor.value_index, size)
            self._known[key] = frozenset([made]), frozenset()
        elif operation.type in VIEWS:
            parts = [self._known[tensor_key(each)] for each in self._looked_at(tensor)]
            self._known[key] = (
                frozenset().union(*(part[0] for part in parts)),
                frozenset().union(*(part[1] for part in parts)),
            )
        else:
            variable_read = [operation.name] if operation.type in READS else []
            self._known[key] = frozenset(), frozenset(variable_read)

    def working(self, tensor: Any) -> frozenset[Tensor]:
        """Outputs of working operations that a reader of `tensor` needs."""
        return self._resolve(tensor)[0]

    def variable_reads(self, tensor: Any) -> frozenset[str]:
        """Names of the variable reads that a reader of `tensor` looks at."""
        return self._resolve(tensor)[1]

    def controls(self, operation: Any) -> frozenset[int]:
        """Working operations that the user's or TensorFlow's control edges put first.

        Those of views, reads and constants count for who reads them.
        """
        finish(operation, self._controls, _name, self._not_working_first, self._control_one)
        return self._controls[operation.name]

    def _not_working_first(self, operation: Any) -> list[Any]:
        first = (*operation.control_inputs, *(each.op for each in operation.inputs))
        return [each for each in first if each.name not in self._number]

    def _control_one(self, operation: Any) -> None:
        found = {
            self._number[each.name]
            for each in operation.control_inputs
            if each.name in self._number
        }
        found.update(*(self._controls[each.name] for each in self._not_working_first(operation)))
        self._controls[operation.name] = frozenset(found)


def _snapshots(needed: list[Any], accesses: dict[str, list[Any]]) -> frozenset[str]:
    """Names of variable reads whose value is used after the variable has been overwritten.

    Such a read is work: TensorFlow copies the variable when the write comes.
    """
    position = {op.name: place for place, op in enumerate(needed)}
    last_use: dict[str, int] = {}
    under: dict[str, frozenset[str]] = {}  # per operation, the variable reads it looks at
    for place, op in enumerate(needed):
        reads = frozenset().union(*(under[tensor.op.name] for tensor in op.inputs))
        last_use.update(dict.fromkeys(reads, place))
        own = frozenset([op.name]) if op.type in READS else frozenset()
        under[op.name] = reads if op.type in VIEWS else own
    return frozenset(
        op.name
        for users in accesses.values()
        for place, op in enumerate(users)
        if op.type in READS
        and (write := _next_write(users, place)) is not None
        and last_use.get(op.name, -1) > position[write.name]
    )


def _name(operation: Any) -> str:
    return str(operation.name)


def _accesses(needed: list[Any]) -> dict[str, list[Any]]:
    """Per resource, the operations that touch it, in order."""
    accesses: dict[str, list[Any]] = defaultdict(list)
    for op in needed:
        if op.type in VIEWS:
            continue
        touched = {_resource_name(each) for each in op.inputs if each.dtype == tf.resource}
        for name in touched:
            accesses[name].append(op)
    return accesses


def _resource_name(tensor: Any) -> str:
    return str(under_views(tensor).name)


def _next_write(accesses: list[Any], place: int) -> Any | None:
    return next((op for op in accesses[place + 1 :] if is_stateful(op)), None)


def _hazards(
    needed: list[Any],
    accesses: dict[str, list[Any]],
    number: dict[str, int],
    under: _Underlying,
) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """Order among the operations that touch one variable: (must follow, is expired by)."""
    users: dict[str, set[int]] = defaultdict(set)
    for op in needed:
        if op.name in number:
            for each in op.inputs:
                for read in under.variable_reads(each):
                    users[read].add(number[op.name])
    order: dict[int, set[int]] = defaultdict(set)
    expires: dict[int, set[int]] = defaultdict(set)
    for touching in accesses.values():
        writer: int | None = None
        readers: set[int] = set()
        for op in touching:
            here = {number[op.name]} if op.name in number else users[op.name]
            if not is_stateful(op):
                readers |= here
                if writer is not None:
                    for reader in here:
                        order[reader].add(writer)
            else:
                (write,) = here
                earlier = readers | ({writer} if writer is not None else set())
                order[write] |= earlier - {write}
                for reader in readers - {write}:
                    expires[reader].add(write)
                writer, readers = write, set()
    return order, expires


def _late_reads(
    accesses: dict[str, list[Any]], number: dict[str, int], under: _Underlying
) -> Iterator[tuple[str, frozenset[int]]]:
    for touching in accesses.values():
        here = {number[op.name] for op in touching if op.name in number}
        for op in touching:
            if op.type in READS and op.name not in number:
                first = under.controls(op) - here
                if first:
                    yield str(op.name), first


def _given_bytes(concrete: Any, sizes: Sizes) -> int:
    """Bytes of variables, each counted once, and of inputs."""
    variables = {id(handle): variable_bytes(inner) for inner, handle in captures(concrete)}
    return sum(variables.values()) + sum(sizes.of(each) for each in concrete.inputs)


def _constant_sizes(
    concrete: Any, needed: list[Any], constants: dict[str, str], sizes: Sizes
) -> tuple[int, ...]:
    """Bytes of constants, each counted once."""
    written = [sizes.of(op.outputs[0]) for op in needed if op.type == "Const"]
    working = [op for op in needed if op.name not in constants and op.type not in VIEWS]
    read = [each for op in working for each in op.inputs]
    looked_at = [under_views(each) for each in (*read, *concrete.outputs)]
    folded = {
        (constants[each.op.name], each.value_index): sizes.of(each)
        for each in looked_at
        if each.op.name in constants
    }
    return (*written, *folded.values())
