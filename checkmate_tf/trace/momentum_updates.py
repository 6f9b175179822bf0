"""Updates of weights by momentum, found among a step's operations, that one kernel can do.

Keras writes SGD with momentum as single operations. With weight w, slot s, gradient g, momentum m
and learning rate r:

    s ← s · m − g · r
    w ← w + s                     or, by Nesterov,  w ← w + (s · m − g · r)

TensorFlow's `ResourceApplyKerasMomentum` computes the same bits in the variables' own buffers: no
copy of the slot, no values in between, one operation instead of five or eight.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import tensorflow as tf

from checkmate_tf.trace.depth_first import tensor_key
from checkmate_tf.trace.operations import OVERWRITES, READS, passed_through, under_views
from checkmate_tf.trace.program import Program, Tensor
from profiles.tensorflow_internals import variable_content

KERNEL = "ResourceApplyKerasMomentum"


@dataclass(frozen=True)
class MomentumUpdate:
    """One update that the kernel can do.

    Attributes:
        last: number of the operation that adds to the weight, in whose place the kernel runs.
        replaced: numbers of all operations that it stands for.
        inputs: weight, slot, learning rate, gradient and momentum, as the kernel takes them.
        nesterov: whether it is Nesterov's.
        reads: what it reads of other operations.
    """

    last: int
    replaced: frozenset[int]
    inputs: tuple[Any, ...]
    nesterov: bool
    reads: frozenset[Tensor]

    @property
    def attributes(self) -> dict[str, Any]:
        """Of the kernel."""
        kind = self.inputs[3].dtype.base_dtype.as_datatype_enum
        return {
            "T": tf.compat.v1.AttrValue(type=kind),
            "use_locking": tf.compat.v1.AttrValue(b=False),
            "use_nesterov": tf.compat.v1.AttrValue(b=self.nesterov),
        }


@dataclass(frozen=True)
class _Step:
    """`value · momentum − gradient · rate`, and the three operations that compute it."""

    value: Any
    momentum: Any
    gradient: Any
    rate: Any
    kept: int  # the first product
    taken: int  # the second one
    difference: int

    @property
    def operations(self) -> set[int]:
        return {self.kept, self.taken, self.difference}


def momentum_updates(program: Program, variables: Collection[str]) -> list[MomentumUpdate]:
    """The updates in `program` that the kernel can do, bit by bit.

    Args:
        program: a resolved step.
        variables: names of the handles of plain variables that have a value.
    """
    if not any(each.type == "AssignAddVariableOp" for each in program.operations):
        return []
    return _Finder(program, variables).run()


class _Finder:
    """Who reads and touches what, to be sure that nobody sees what the kernel leaves out."""

    def __init__(self, program: Program, variables: Collection[str]) -> None:
        self.program = program
        self.variables = frozenset(variables)
        self.number = {op.name: place for place, op in enumerate(program.operations)}
        self.readers: dict[Tensor, set[int]] = defaultdict(set)
        self.followers: dict[int, set[int]] = defaultdict(set)
        self.touching: dict[str, set[int]] = defaultdict(set)  # by a variable's handle
        for place, operation in enumerate(program.operations):
            for tensor in program.reads[place]:
                self.readers[tensor].add(place)
            for other in program.order[place]:
                self.followers[other].add(place)
            for each in operation.inputs:
                handle = _handle(each)
                if handle is not None:
                    self.touching[handle].add(place)
        self.returned = {_handle(each) for each in program.concrete.outputs}

    def run(self) -> list[MomentumUpdate]:
        writes = [n for n, op in enumerate(self.program.operations) if op.type in OVERWRITES]
        found = [self._update(number) for number in writes]
        return [each for each in found if each is not None]

    def _update(self, write: int) -> MomentumUpdate | None:
        """The update that begins with the write of its slot."""
        handle, written = self.program.operations[write].inputs
        slot, step = under_views(handle), self._step(written)
        if step is None or slot.name in self.returned or not self._reads(step.value, slot):
            return None
        if write not in self.program.expires[step.kept]:
            return None  # it reads the slot afterwards
        looks = self.touching[slot.name] - {write, step.kept}
        looks |= self._readers_of(step.difference) - {write}
        if len(looks) != 1:
            return None
        (reader,) = looks  # of the slot's new value
        again = self._nesterov_step(reader, step)
        last = reader if again is None else self._only_reader(again)
        if last is None or self.program.operations[last].type != "AssignAddVariableOp":
            return None
        handle, added = self.program.operations[last].inputs
        new_value = added if again is None else again.value
        if not self._is_written(new_value, reader, slot, write, step):
            return None
        if again is not None and self._operation(added, "Sub") != again.difference:
            return None
        replaced = {write, last, *step.operations, *(again.operations if again else ())}
        inputs = (under_views(handle), slot, step.rate, step.gradient, step.momentum)
        if not (self._fits(inputs) and self._nobody_sees(replaced, write, last)):
            return None
        if not has_same_bits(step.gradient.dtype.base_dtype):
            return None
        reads = {tensor for each in replaced for tensor in self.program.reads[each]}
        reads = {tensor for tensor in reads if tensor.producer not in replaced}
        is_nesterov = again is not None
        return MomentumUpdate(last, frozenset(replaced), inputs, is_nesterov, frozenset(reads))

    def _is_written(self, value: Any, reader: int, slot: Any, write: int, step: _Step) -> bool:
        """Whether `value`, which `reader` reads, is what `write` has written into the slot."""
        if self._reads(value, slot):
            return write in self.program.order[reader]
        # What comes before the write may then not have to come before the reader.
        is_difference = self._operation(value, "Sub") == step.difference
        return is_difference and self.program.order[write] <= step.operations

    def _only_reader(self, step: _Step) -> int | None:
        """Who reads the difference of `step`, if it is one, and nobody else the first product."""
        readers = self._readers_of(step.difference)
        if self._readers_of(step.kept) != {step.difference} or len(readers) != 1:
            return None
        return next(iter(readers))

    def _step(self, tensor: Any) -> _Step | None:
        """What computes `tensor`, if it is a step of momentum."""
        difference = self._operation(tensor, "Sub")
        if difference is None:
            return None
        minuend, subtrahend = self.program.operations[difference].inputs
        kept, taken = self._operation(minuend, "Mul"), self._operation(subtrahend, "Mul")
        if kept is None or taken is None:
            return None
        kept_inputs = _with_scalar_last(self.program.operations[kept])
        taken_inputs = _with_scalar_last(self.program.operations[taken])
        if kept_inputs is None or taken_inputs is None:
            return None
        return _Step(*kept_inputs, *taken_inputs, kept, taken, difference)

    def _operation(self, tensor: Any, kind: str) -> int | None:
        """The number of the operation that makes `tensor`, if it is of that kind."""
        made_by = passed_through(tensor).op
        return self.number.get(made_by.name) if made_by.type == kind else None

    def _nesterov_step(self, number: int, step: _Step) -> _Step | None:
        """The step of momentum that begins with `number` and takes what `step` takes."""
        followers = self._readers_of(number)
        if len(followers) != 1 or self.program.operations[number].type != "Mul":
            return None
        (difference,) = followers
        outputs = self.program.operations[difference].outputs
        again = self._step(outputs[0]) if outputs else None
        if again is None or again.kept != number:
            return None
        taken = (again.momentum, again.gradient, again.rate)
        same = zip(taken, (step.momentum, step.gradient, step.rate), strict=True)
        return again if all(_is_same(one, other) for one, other in same) else None

    def _readers_of(self, number: int) -> set[int]:
        return {each for made in self.program.produced[number] for each in self.readers[made]}

    def _reads(self, tensor: Any, slot: Any) -> bool:
        """Whether `tensor` is the slot's value at some time."""
        source = passed_through(tensor)
        return source.op.type in READS and _handle(source) == slot.name

    def _fits(self, inputs: tuple[Any, ...]) -> bool:
        """Whether both are plain variables of the gradient's type and shape."""
        weight, slot, _, gradient, _ = inputs
        known = self.program.sized[gradient.op.name].outputs[gradient.value_index]
        if not known.shape.is_fully_defined() or not known.dtype.is_floating:
            return False
        if any(each.dtype.base_dtype != known.dtype for each in (inputs[2], inputs[4])):
            return False
        if weight.name == slot.name or not {weight.name, slot.name} <= self.variables:
            return False
        contents = [variable_content(each) for each in (weight, slot)]
        return all(
            each is not None
            and tf.TensorShape(each.shape).is_fully_defined()
            and tf.TensorShape(each.shape) == known.shape
            and each.dtype == known.dtype
            for each in contents
        )

    def _nobody_sees(self, replaced: set[int], write: int, last: int) -> bool:
        """Whether only the weight and the slot tell that these operations do not run."""
        program = self.program
        made = {tensor for each in replaced for tensor in program.produced[each]}
        devices = {program.operations[each].device for each in (write, last)}
        return (
            len(devices) == 1
            and not made & program.outputs
            and all(self.readers[tensor] <= replaced for tensor in made)
            and all(program.expires[each] <= replaced for each in replaced)
            and all(self.followers[each] <= replaced for each in replaced - {last})
        )


def _handle(tensor: Any) -> str | None:
    """The name of the handle of the variable that `tensor` is, or is read from."""
    source = under_views(tensor)
    if source.op.type in READS:
        source = under_views(source.op.inputs[0])
    return str(source.name) if source.dtype == tf.resource else None


def _with_scalar_last(product: Any) -> tuple[Any, Any] | None:
    """The factors of `product`, if one is a scalar; None if none is, or both."""
    one, other = product.inputs
    ranks = one.shape.rank, other.shape.rank
    if ranks[1] == 0 and ranks[0]:
        return one, other
    return (other, one) if ranks[0] == 0 and ranks[1] else None


def _is_same(one: Any, other: Any) -> bool:
    """Whether both have the same value, as nothing in the step writes what they are read from."""
    one, other = under_views(one), under_views(other)
    if tensor_key(one) == tensor_key(other):
        return True
    if one.op.type in READS and other.op.type in READS:
        return _handle(one) == _handle(other)
    if one.op.type == other.op.type == "Const":
        return bool(one.op.get_attr("value") == other.op.get_attr("value"))
    return False


@functools.cache
def has_same_bits(dtype: tf.DType) -> bool:
    """Whether the kernel computes the bits of the single operations on this machine.

    A processor may multiply and add with one rounding where the compiler let it.

    Example:
        >>> import tensorflow as tf
        >>> has_same_bits(tf.int32)
        False
    """
    if dtype not in (tf.float32, tf.float64):
        return False
    with tf.init_scope(), tf.device("CPU:0"):
        weight, slot, gradient = tf.unstack(
            tf.random.stateless_normal((3, 4099), (20, 17), dtype=dtype)
        )
        rate, momentum = tf.constant(0.013, dtype), tf.constant(0.9, dtype)
        new_slot = slot * momentum - gradient * rate
        for nesterov in (False, True):
            added = new_slot * momentum - gradient * rate if nesterov else new_slot
            with _temporary_variable(weight) as var, _temporary_variable(slot) as accum:
                tf.raw_ops.ResourceApplyKerasMomentum(
                    var=var,
                    accum=accum,
                    lr=rate,
                    grad=gradient,
                    momentum=momentum,
                    use_nesterov=nesterov,
                )
                for handle, expected in ((var, weight + added), (accum, new_slot)):
                    found = tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
                    if found.numpy().tobytes() != expected.numpy().tobytes():
                        return False
    return True


@contextmanager
def _temporary_variable(value: Any) -> Iterator[Any]:
    """The handle of a variable of this value.

    With a `tf.Variable`, TensorFlow would trace the function that is being traced a second time.
    """
    handle = tf.raw_ops.VarHandleOp(
        dtype=value.dtype, shape=value.shape, shared_name=f"checkmate_tf {uuid4()}"
    )
    tf.raw_ops.AssignVariableOp(resource=handle, value=value)
    try:
        yield handle
    finally:
        tf.raw_ops.DestroyResourceOp(resource=handle)
