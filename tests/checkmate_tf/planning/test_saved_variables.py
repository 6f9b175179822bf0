"""Variables are put back to the bit, and in the places that they had."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.planning.saved_variables import can_be_saved, saved_variables

TYPES = [tf.float32, tf.bfloat16, tf.float16, tf.int64, tf.uint8, tf.complex64]


@pytest.mark.parametrize("shape", [(), (3, 5)])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda each: each.name)
def test_values_of_every_type(dtype, shape):
    variable = tf.Variable(tf.cast(tf.fill(shape, 3), dtype))
    step = tf.function(lambda: variable.assign_add(tf.ones_like(variable)))
    saved = saved_variables(step.get_concrete_function())
    before = variable.numpy()
    step()
    assert np.any(variable.numpy() != before)
    saved.put_back()
    assert variable.numpy().tobytes() == before.tobytes()
    step()  # and it trains on
    assert np.all(variable.numpy() != before)


def test_bits_that_no_comparison_of_numbers_tells_apart():
    before = np.array([0x7FC00001, 0x80000000], np.uint32).view(np.float32)  # a NaN, and −0.0
    variable = tf.Variable(before)
    step = tf.function(lambda: variable.assign(tf.constant([np.nan, 0.0])))
    saved = saved_variables(step.get_concrete_function())
    step()
    saved.put_back()
    assert variable.numpy().tobytes() == before.tobytes()


def test_truth_values_and_texts():
    flag, text = tf.Variable(True), tf.Variable(["a", "b"])

    @tf.function
    def step():
        flag.assign(False)
        text.assign(["c", "d"])

    saved = saved_variables(step.get_concrete_function())
    step()
    saved.put_back()
    assert flag.numpy()
    assert text.numpy().tolist() == [b"a", b"b"]


def test_a_copy_is_no_view_of_the_variable():
    variable = tf.Variable(tf.zeros((512, 512)))
    step = tf.function(lambda: variable.assign_add(tf.ones((512, 512))))
    concrete = step.get_concrete_function()
    step()  # from now on it is written in place
    saved = saved_variables(concrete)
    for _ in range(3):
        step()
    saved.put_back()
    np.testing.assert_array_equal(variable, tf.ones((512, 512)))


def test_variables_that_keep_their_values_keep_their_buffers():
    variable = tf.Variable(tf.zeros((512, 512)))
    step = tf.function(lambda: variable.assign_add(tf.ones((512, 512))))
    saved = saved_variables(step.get_concrete_function())
    before = np.asarray(variable.value()).ctypes.data
    saved.put_back()
    assert np.asarray(variable.value()).ctypes.data == before


def test_what_holds_more_than_variables_cannot_be_saved():
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)
    one = tf.constant([1], tf.int64)

    @tf.function
    def step():
        table.insert(one, one)

    assert not can_be_saved(step.get_concrete_function())


def test_kernels_that_draw_by_a_seed_would_draw_other_numbers():
    def drawing(seed):
        return tf.function(lambda: tf.random.normal((2,), seed=seed)).get_concrete_function()

    assert not can_be_saved(drawing(seed=1))


def test_a_host_without_room_saves_nothing(monkeypatch):
    variable = tf.Variable(1.0)
    step = tf.function(lambda: variable.assign_add(1.0)).get_concrete_function()
    module = "checkmate_tf.planning.saved_variables"
    monkeypatch.setattr(f"{module}.host_has_room", lambda size: size < 4)
    assert saved_variables(step) is None
