"""Run a step a few times for trial, with every variable put back afterwards.

A plan rests on a model of memory; the allocator has the last word. A rehearsal asks it before
any training is done: on made-up inputs, with the variables' values kept outside the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import handle_data_util

from checkmate_tf.extraction import Extraction
from checkmate_tf.inputs import argument_placeholders, captures
from checkmate_tf.measure import default_device, held_bytes, measure_peak
from checkmate_tf.operations import READ_ONLY, is_stateful
from checkmate_tf.rewriting import as_function
from solvers import Schedule

_VARIABLE_WRITES = ("Assign", "Resource")
_RANDOM = frozenset(
    "Multinomial ParameterizedTruncatedNormal RandomGamma RandomPoissonV2 RandomShuffle "
    "RandomStandardNormal RandomUniform RandomUniformInt TruncatedNormal".split()
)
"""They draw from a generator in their kernel, and every function has kernels of its own."""

_WITHOUT_TRACE = _RANDOM | {"Assert"}
_RUNS = 8
"""It takes a few steps until the free pieces of memory lie in the disorder that then stays."""


def can_rehearse(extracted: Extraction) -> bool:
    """Whether running the step leaves no trace but in variables, and its peak can be seen."""
    changes_more = any(
        is_stateful(op)
        and not op.type.startswith(_VARIABLE_WRITES)
        and op.type not in _WITHOUT_TRACE
        for op in extracted.program.operations
    )
    eager = all(
        isinstance(each, tf.Tensor) and hasattr(each, "numpy")
        for each in extracted.program.concrete.captured_inputs
    )
    return (
        not changes_more and eager and held_bytes() is not None and not tf.distribute.has_strategy()
    )


def has_generators(extracted: Extraction) -> bool:
    """Whether kernels draw random numbers of their own, which begin anew in another function."""
    return any(op.type in _RANDOM for op in extracted.program.operations)


class RehearsalError(Exception):
    """The step can't run on made-up inputs; it may check its inputs."""


class Rehearsal:
    """Runs plans of one step for trial."""

    def __init__(self, extracted: Extraction) -> None:
        self._extracted = extracted
        self._latest: tuple[Schedule, Callable[..., Any]] | None = None

    def function(self, schedule: Schedule) -> Callable[..., Any] | None:
        """What ran in the latest rehearsal, on flat arguments, if it was of `schedule`.

        None also where its kernels have drawn random numbers, which training would miss.
        """
        if has_generators(self._extracted):
            return None
        if self._latest is None or self._latest[0] != schedule:
            return None
        return self._latest[1]

    def peaks(self, schedule: Schedule) -> list[int] | None:
        """Bytes that the device held at most in each of a few steps; None if they were too many.

        Raises:
            RehearsalError: the step refused its made-up inputs.
        """
        self._latest = None  # an earlier plan's graph need not stay
        function = as_function(self._extracted, schedule)
        placeholders = argument_placeholders(self._extracted.program.concrete)
        arguments = [_made_up(self._extracted, each) for each in placeholders]
        handles = _written_variables(self._extracted)
        values = [np.array(_read(handle, dtype)) for handle, dtype in handles]
        peaks = []
        try:
            for _ in range(_RUNS):
                peaks.append(measure_peak(function, *arguments, device=default_device()))
        except tf.errors.ResourceExhaustedError:
            return None
        except tf.errors.OpError as error:
            raise RehearsalError(error.message.splitlines()[0]) from error
        finally:
            _put_back(handles, values)
        self._latest = schedule, function
        return peaks


def _put_back(handles: list[tuple[Any, tf.DType]], values: list[Any]) -> None:
    for (handle, dtype), value in zip(handles, values, strict=True):
        if not _put_back_in_place(handle, dtype, value):
            # A copy, because a constant may lie in numpy's memory, where no allocator counts it.
            copied = tf.raw_ops.DeepCopy(x=tf.constant(value))
            tf.raw_ops.AssignVariableOp(resource=handle, value=copied)


def _put_back_in_place(handle: Any, dtype: tf.DType, value: Any) -> bool:
    """Whether the variable has its value again, to the last bit, in the buffer that it has.

    An assignment gives it another one. Where the old one was there is a gap then, and the first
    steps of training need more memory than the rehearsal did. Taking away what is there and
    adding what was is exact, but for NaN, infinity and the sign of zero.
    """
    if not (dtype.is_floating or dtype.is_integer):
        return False
    there = tf.raw_ops.DeepCopy(x=tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype))
    tf.raw_ops.AssignSubVariableOp(resource=handle, value=there)
    del there
    tf.raw_ops.AssignAddVariableOp(resource=handle, value=tf.constant(value))
    return bool(np.asarray(_read(handle, dtype)).tobytes() == value.tobytes())


def _made_up(extracted: Extraction, placeholder: Any) -> Any:
    """A valid input: zero is valid as a label, as an index and as a truth value."""
    sized = extracted.program.sized[placeholder.op.name].outputs[0]
    if sized.dtype.is_floating:
        return tf.random.uniform(sized.shape, dtype=sized.dtype)
    if sized.dtype == tf.string:
        return tf.fill(sized.shape, "")
    return tf.zeros(sized.shape, sized.dtype)


def _written_variables(extracted: Extraction) -> list[tuple[Any, tf.DType]]:
    """Handles and types of the variables that the step may change."""
    program = extracted.program
    written = {
        each.name
        for op in program.operations
        if op.type not in READ_ONLY
        for each in op.inputs
        if each.dtype == tf.resource
    }
    found: dict[int, tuple[Any, tf.DType]] = {}
    for placeholder, handle in captures(program.concrete):
        data = handle_data_util.get_resource_handle_data(placeholder)
        if placeholder.name in written and data is not None and data.is_set:
            found[id(handle)] = handle, tf.as_dtype(data.shape_and_type[0].dtype)
    return list(found.values())


def _read(handle: Any, dtype: tf.DType) -> Any:
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype).numpy()
