"""What a step may write is copied; a step that changes more gets no trial run."""

from __future__ import annotations

import pytest
import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import UninitializedVariable

from checkmate_tf.planning.trial.trial_run import can_run_for_trial, has_generators
from checkmate_tf.planning.trial.variable_copies import copy_written, resource_name, run_on_copies
from tests.steps import SPEC, extraction_of


def test_two_handles_of_one_variable_share_a_copy():
    variable = tf.Variable([1.0, 1.0])
    second = tf.identity(variable.handle)

    def step(x):
        variable.assign_add([1.0, 1.0])
        tf.raw_ops.AssignAddVariableOp(resource=second, value=tf.ones((2,)))
        return tf.reduce_sum(tf.exp(x))

    concrete = tf.function(step).get_concrete_function(SPEC)
    assert len(concrete.captured_inputs) == 2
    copies = copy_written(concrete)
    run_on_copies(concrete, [tf.zeros(SPEC.shape)], copies)
    assert [each.numpy().tolist() for each in copies.values()] == [[3.0, 3.0]]
    assert variable.numpy().tolist() == [1.0, 1.0]


def test_what_is_only_read_is_not_copied():
    read, written = tf.Variable([1.0, 1.0]), tf.Variable([1.0, 1.0])

    def step(x):
        written.assign_add(read + tf.gather(read, [0, 0]))
        return tf.reduce_sum(tf.exp(x))

    concrete = tf.function(step).get_concrete_function(SPEC)
    assert len(concrete.captured_inputs) == 2
    assert list(copy_written(concrete)) == [resource_name(written.handle)]


def test_variables_without_a_value():
    variable = UninitializedVariable(shape=(), dtype=tf.float32)

    def step(x):
        variable.assign(1.0)
        return tf.reduce_sum(tf.exp(x))

    extracted = extraction_of(step)
    assert not can_run_for_trial(extracted)
    variable.assign(2.0)
    assert can_run_for_trial(extracted)


def made_inside():
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=(), shared_name="made_inside")
    tf.raw_ops.AssignVariableOp(resource=handle, value=1.0)


def printed_inside():
    @tf.function
    def inner():
        tf.print("seen by the user")

    inner()


TABLE = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)


def in_a_table():
    TABLE.insert(tf.constant([1], tf.int64), tf.constant([2], tf.int64))


@pytest.mark.parametrize("change", [made_inside, printed_inside, in_a_table, lambda: tf.print("a")])
def test_a_step_that_changes_more_than_variables_gets_no_trial_run(change):
    def step(x):
        change()
        return tf.reduce_sum(tf.exp(x))

    assert not can_run_for_trial(extraction_of(step))


def test_generators_with_a_seed_are_found_in_nested_functions():
    def has_noise(seed):
        noise = tf.function(lambda x: tf.random.normal(tf.shape(x), seed=seed))
        return has_generators(extraction_of(lambda x: tf.reduce_sum(tf.exp(x + noise(x)))))

    tf.random.set_seed(None)  # as other tests may not have left it
    assert has_noise(seed=1)
    assert not has_noise(seed=None)  # other numbers every time, in any function
    tf.random.set_seed(3)
    assert has_noise(seed=None)


@pytest.mark.parametrize("seed", [0, 7])
def test_recurrent_layers_of_cudnn_draw_for_their_dropout_only(seed):
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            recurrent = tf.raw_ops.CudnnRNNV3(
                input=tf.reshape(x, (1, 1, -1)),
                input_h=tf.zeros((1, 1, 2)),
                input_c=tf.zeros((1, 1, 2)),
                params=tf.zeros((100,)),
                sequence_lengths=[1],
                seed=seed,
            )
            loss = tf.reduce_sum(recurrent.output)
        return tape.gradient(loss, x)

    extracted = extraction_of(step)
    assert can_run_for_trial(extracted)
    assert has_generators(extracted) == bool(seed)
