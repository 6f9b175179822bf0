"""Peaks of runs of operations, counted by hand."""

from __future__ import annotations

import tensorflow as tf

from checkmate_tf.trace.buffers import leanest_order, peak_of_run
from checkmate_tf.trace.program import resolve

SIZE = 1024 * 4


def program_of(function):
    spec = tf.TensorSpec((1024,))
    return resolve(tf.function(function, input_signature=[spec]).get_concrete_function())


def peak(program, sequence=None):
    everything = range(len(program.operations)) if sequence is None else sequence
    return peak_of_run(program, everything, program.outputs, lambda number: 0)


def test_elementwise_chain_needs_one_buffer():
    assert peak(program_of(lambda x: tf.exp(tf.sin(tf.cos(x))))) == SIZE


def test_a_buffer_that_is_read_again_is_not_taken_over():
    def step(x):
        y = tf.sin(x)
        return tf.exp(y) * y

    # exp(y) can't lie in y, but the product can lie in either.
    assert peak(program_of(step)) == 2 * SIZE


def test_cumsum_does_not_write_into_its_input():
    assert peak(program_of(lambda x: tf.cumsum(tf.sin(x)))) == 2 * SIZE


def test_workspace_counts_while_the_operation_runs():
    program = program_of(lambda x: tf.exp(tf.sin(x)))
    assert peak_of_run(program, [0, 1], program.outputs, lambda number: 100 * number) == SIZE + 100


def test_leanest_order_runs_the_wide_branch_first():
    def step(x):
        small = tf.sin(x)
        wide = tf.tile(tf.cos(x), [8])
        return small[:1] + tf.reduce_sum(wide)

    program = program_of(step)
    members = list(range(len(program.operations)))
    order = leanest_order(program, members, program.outputs)
    assert sorted(order) == members
    # The wide branch holds nine buffers; the narrow one waits until it is gone.
    assert peak(program) == 10 * SIZE
    assert peak(program, order) < 10 * SIZE
