from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from profiles.measure.random_inputs import NotMeasurableError, random_inputs
from profiles.operation import Operation, TensorSize


def _ints(*shape: int) -> TensorSize:
    return TensorSize("int32", shape)


TABLE, AXIS = TensorSize("float32", (7, 3)), (2, 0)


@pytest.mark.parametrize(
    ("operation", "number", "bound"),
    [
        (Operation("GatherV2", (TABLE, _ints(500), _ints()), (), (), (AXIS,)), 1, 7),
        (Operation("GatherV2", (TABLE, _ints(500), _ints()), (), (), ((2, -1),)), 1, 3),
        (Operation("GatherNd", (TABLE, _ints(500, 1))), 1, 7),
        (Operation("GatherNd", (TABLE, _ints(500, 2))), 1, 3),
        (Operation("SparseSoftmaxCrossEntropyWithLogits", (TABLE, _ints(500))), 1, 3),
        (
            Operation("UnsortedSegmentSum", (TABLE, _ints(500), _ints()), (), (), ((2, 9),)),
            1,
            9,
        ),
        (Operation("OneHot", (_ints(500), _ints()), (), (), ((1, 9),)), 0, 9),
    ],
)
def test_indices_fill_their_range_and_stay_in_it(
    operation: Operation, number: int, bound: int
) -> None:
    values = random_inputs(operation)[number].numpy()
    assert set(np.unique(values)) == set(range(bound))


def test_numbers_are_positive_and_truth_values_of_both_kinds() -> None:
    chosen = Operation("SelectV2", (TensorSize("bool", (99,)), TensorSize("float16", (99,))))
    condition, values = random_inputs(chosen).values()
    assert set(condition.numpy()) == {False, True}
    assert values.dtype == tf.float16
    assert 0.1 <= values.numpy().min() < values.numpy().max() <= 1


def test_a_mask_takes_its_own_bytes_on_the_way() -> None:
    """As eight-byte integers, a large batch's would be more than many a host has."""
    mask = TensorSize("bool", (1 << 24,))
    tracemalloc.start()
    try:
        random_inputs(Operation("SelectV2", (mask,)))
        assert tracemalloc.get_traced_memory()[1] < 3 * mask.bytes  # and a copy
    finally:
        tracemalloc.stop()


def test_other_integers_are_zero_and_known_ones_are_left_out() -> None:
    operation = Operation("Cumsum", (_ints(9), _ints()), constants=((1, 0),))
    inputs = random_inputs(operation)
    assert inputs.keys() == {0}
    assert not inputs[0].numpy().any()


@pytest.mark.parametrize("value", [TensorSize("float32"), TABLE])
def test_a_handle_is_of_a_variable_of_the_written_size(value: TensorSize) -> None:
    inputs = random_inputs(Operation("AssignVariableOp", (TensorSize("resource"), value)))
    assert inputs[0].shape == inputs[1].shape == value.shape


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((TensorSize("resource"), _ints(3)), "a handle of what it does not say"),
        ((TensorSize("float32", (-1,)),), r"float32 of shape \(-1,\)"),
        ((TensorSize("string", (1,)),), "string of shape"),
    ],
)
def test_what_depends_on_data_is_refused(inputs: Any, message: str) -> None:
    with pytest.raises(NotMeasurableError, match=message):
        random_inputs(Operation("ResourceGather", inputs))


def test_the_users_random_numbers_stay_the_same() -> None:
    def drawn() -> float:
        return float(tf.random.uniform(()))

    tf.random.set_seed(7)
    expected = [drawn(), drawn()]
    tf.random.set_seed(7)
    first = drawn()
    random_inputs(Operation("Relu", (TABLE,), (TABLE,)))
    assert [first, drawn()] == expected
