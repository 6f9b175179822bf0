"""The table of operations beside TensorFlow: its registry, its buffers and its allocator."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from profiles.operation_facts import TABLE, Facts, facts, families, types
from profiles.tensorflow_internals import operation_definition
from tests.memory import memory_in_one_piece

ROWS, COLUMNS = 1024, 256

VIEW_ARGUMENTS: dict[str, dict[str, Any]] = {
    "Reshape": {"tensor": ..., "shape": [-1]},
    "ExpandDims": {"input": ..., "axis": 0},
    "EnsureShape": {"input": ..., "shape": (None, 4)},
    "Bitcast": {"input": ..., "type": tf.int32},
    "CheckNumerics": {"tensor": ..., "message": ""},
    "IdentityN": {"input": [...]},
    "PlaceholderWithDefault": {"input": ..., "shape": (None, 4)},
}
"""How a view is made of `...`; others take nothing but an input."""

COPIES_WHAT_OTHERS_HOLD = frozenset(["Snapshot"])
"""Views whose kernels share a buffer only if nobody else does."""


def test_every_type_is_one_of_tensorflow():
    assert [kind for kind in TABLE if operation_definition(kind) is None] == []


def test_a_row_says_all_that_holds_for_its_family():
    """A type with a row of its own is not looked up among those with such names."""
    for kind in TABLE:
        for family in families(kind):
            assert asdict(family).items() - asdict(Facts()).items() <= asdict(facts(kind)).items()


@pytest.mark.parametrize(
    "kind", sorted(types(lambda each: each.buffer == "view") - COPIES_WHAT_OTHERS_HOLD)
)
def test_a_view_shares_its_inputs_buffer(kind):
    x = tf.random.stateless_uniform((8, 4), (0, 0))
    parameters = inspect.signature(getattr(tf.raw_ops, kind)).parameters
    arguments = VIEW_ARGUMENTS.get(kind, {next(iter(parameters)): ...})
    given = tf.nest.map_structure(lambda each: x if each is ... else each, arguments)
    (made,) = tf.nest.flatten(getattr(tf.raw_ops, kind)(**given))
    assert address(made) == address(x)


def address(tensor: Any) -> int:
    return int(np.asarray(memoryview(tensor)).ctypes.data)


def test_elementwise_kernels_write_into_an_inputs_buffer():
    """While such a kernel runs, its inputs are all that is held."""
    elementwise = types(lambda each: each.buffer == "in place")
    with memory_in_one_piece():
        if not reset():
            pytest.skip("the allocator keeps no count")
        assert {kind for kind in elementwise if held_beside_inputs(kind) > 0.1} == set()
        assert {facts(kind).buffer for kind in ("ReverseV2", "Cumsum")} == {"new"}
        assert min(map(held_beside_inputs, ("ReverseV2", "Cumsum"))) > 0.9


@pytest.mark.slow
def test_no_elementwise_kernel_is_left_out():
    others = {"OnesLike", "ZerosLike"}  # which are constants
    others |= {"Copy", "CopyHost", "DebugGradientIdentity", "NextIteration"}
    with memory_in_one_piece():
        if not reset():
            pytest.skip("the allocator keeps no count")
        candidates = set(filter(may_be_elementwise, dir(tf.raw_ops)))
        found = {kind for kind in candidates if runs_in_place(kind)}
    assert {kind for kind in found if facts(kind).buffer == "new"} <= others


def may_be_elementwise(kind: str) -> bool:
    """Whether it takes up to three tensors and returns one, all of one type."""
    definition = operation_definition(kind)
    if definition is None or definition.is_stateful or len(definition.output_arg) != 1:
        return False
    tensors = [*definition.input_arg, *definition.output_arg]
    is_alike = len({(each.type, each.type_attr) for each in tensors}) == 1
    has_lists = any(each.number_attr or each.type_list_attr for each in tensors)
    return is_alike and not has_lists and 2 <= len(tensors) <= 4


def runs_in_place(kind: str) -> bool:
    try:
        return held_beside_inputs(kind) < 0.1
    except (tf.errors.OpError, TypeError, ValueError, NotImplementedError):  # not of such inputs
        return False


def held_beside_inputs(kind: str) -> float:
    """What a kernel holds at most beside its inputs, in sizes of the largest of them.

    Raises:
        ValueError: its output has another shape.
    """
    definition, function = operation_definition(kind), getattr(tf.raw_ops, kind)
    dtypes = [tf.as_dtype(each.type or tf.float32) for each in definition.input_arg]
    last = {"BiasAdd": tf.zeros(COLUMNS), "ReverseV2": [0], "Cumsum": 0}.get(kind)
    if last is not None:
        dtypes = dtypes[:1]
    if kind == "AddN":
        dtypes *= 2

    def run(x: Any) -> Any:
        values = [tf.cast(x + place, dtype) for place, dtype in enumerate(dtypes)]
        inputs = [tf.tile(each, (ROWS, 1)) for each in values]  # which nobody else holds
        arguments = [inputs] if kind == "AddN" else [*inputs, *([] if last is None else [last])]
        return tf.nest.flatten(function(**dict(zip(names, arguments, strict=False))))[0]

    names = inspect.signature(function).parameters
    x = tf.random.stateless_uniform((1, COLUMNS), (0, 0), 0.1, 1)
    concrete = tf.function(run, autograph=False).get_concrete_function(x)
    if concrete.outputs[0].shape != (ROWS, COLUMNS):
        raise ValueError("not elementwise")
    sizes = [ROWS * COLUMNS * dtype.size for dtype in dtypes]
    peaks = [peak_of(concrete, x) for _ in range(3)]  # the first run needs more
    return (min(peaks) - sum(sizes)) / max(sizes)


def peak_of(concrete: Any, x: Any) -> int:
    reset()
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    concrete(x)
    return int(tf.config.experimental.get_memory_info("CPU:0")["peak"] - before)


def reset() -> bool:
    try:
        tf.config.experimental.reset_memory_stats("CPU:0")
    except ValueError:
        return False
    return True
