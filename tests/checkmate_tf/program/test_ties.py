"""Ties change no bit of what they are tied to, and XLA can't see that they are zero."""

from __future__ import annotations

import pytest
import tensorflow as tf

from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.compiled_order import outlasting
from checkmate_tf.program.rewrite import rewrite
from checkmate_tf.program.ties import (
    computed_in_readers,
    kept,
    operand_to_tie,
    tied,
    zero_after,
)
from solvers import ComputationGraph, Node, Schedule

SPECIAL = [0.0, -0.0, 1.0, -1.5, float("nan"), -float("nan"), float("inf"), -float("inf"), 1e-7]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_bit_stays_whatever_the_zero_is_made_of(dtype):
    # Arithmetic in bfloat16 has no sign of what is no number.
    special = [x for x in SPECIAL if dtype != "bfloat16" or str(x) != "nan"]
    values = tf.constant(special, dtype)

    @tf.function(jit_compile=True)
    def both(x, source):
        zero = zero_after(source)
        return tied(x, zero), kept(x, zero)

    for source in SPECIAL:
        for result in both(values, tf.constant([source, 2.0], dtype)):
            assert result.numpy().tobytes() == values.numpy().tobytes(), source
    for result in both(values, tf.zeros((0,), dtype)):
        assert result.numpy().tobytes() == values.numpy().tobytes()


def test_the_key_of_a_random_operation_can_be_tied():
    zero = zero_after(tf.constant([3.0]))
    key = tf.constant([7, 2**63 + 1], tf.uint64)
    assert tied(key, zero).numpy().tolist() == key.numpy().tolist()


def test_xla_does_not_find_that_it_is_zero():
    """A text without the shift would have no tie in it."""
    function = tf.function(lambda x: tied(x, zero_after(x @ x)), jit_compile=True)
    text = function.experimental_get_compiler_ir(tf.ones((8, 8)))(stage="optimized_hlo")
    assert "shift-right-logical" in text
    plain = tf.function(lambda x: x - 0.0 * x, jit_compile=True)
    text = plain.experimental_get_compiler_ir(tf.ones((8, 8)))(stage="optimized_hlo")
    assert "shift-right-logical" not in text


def test_an_add_n_is_added_as_xla_adds_it():
    """From left to right, where TensorFlow's kernel takes eight at a time."""
    step = tf.function(lambda x: tf.add_n([tf.sin(x + i) for i in range(12)]), jit_compile=True)
    x = tf.random.stateless_normal((64, 64), (1, 2))
    concrete = step.get_concrete_function(x)
    schedule = Schedule(range(len(extract_step(concrete).graph)))
    again = tf.function(rewrite(concrete, schedule), jit_compile=True)
    assert again(x).numpy().tobytes() == step(x).numpy().tobytes()


def tied_operand(function, *shapes):
    """Number of the operand that would be tied, of the last operation of a function."""
    specs = [tf.TensorSpec(shape) for shape in shapes]
    extracted = extract_step(tf.function(function).get_concrete_function(*specs))
    operation = extracted.program.operations[-1]
    operand = operand_to_tie(extracted.program, operation)
    return [each is operand for each in operation.inputs].index(True)


def test_the_smallest_operand_is_tied_but_rather_no_product():
    assert tied_operand(lambda x, y: x @ y, (64, 8), (8, 512)) == 0
    assert tied_operand(lambda x, y: x @ y, (64, 8), (8, 16)) == 1
    # XLA rounds a product and a sum that reads it once: z − x·y, as one operation.
    assert tied_operand(lambda x, y: (x * x) + y, (8, 1), (8, 512)) == 1


def test_only_what_outlives_its_sources_is_kept():
    def graph(*dependencies):
        return ComputationGraph(
            tuple(Node(f"{i}", 1, 1, dependencies=each) for i, each in enumerate(dependencies))
        )

    # 0 is read for the last time by 1, which is read by 3.
    assert outlasting(graph((), (0,), (1,), (1, 2)), Schedule(range(4))) == {1}
    # 0 is there as long as 1 anyway.
    assert outlasting(graph((), (0,), (1,), (0, 1, 2)), Schedule(range(4))) == set()
    # Computed again, neither lives long.
    schedule = Schedule([0, 1, 2, 1, 3])
    assert 1 not in outlasting(graph((), (0,), (1,), (1, 2)), schedule)


def test_what_its_readers_can_compute_is_kept_only_where_the_first_sources_go():
    def graph(*dependencies):
        return ComputationGraph(
            tuple(Node(f"{i}", 1, 1, dependencies=each) for i, each in enumerate(dependencies))
        )

    # 2 outlives 1, which its readers can compute from 0: that is there as long as 2.
    stays = graph((), (0,), (1,), (2,), (0, 2))
    assert outlasting(stays, Schedule(range(5))) == {2}
    assert outlasting(stays, Schedule(range(5)), in_readers={1, 2}) == set()
    # 0 goes, so that 2 is kept, and 3 can be had from it for as long.
    goes = graph((), (0,), (1,), (2,), (), (2, 3))
    assert outlasting(goes, Schedule(range(6)), in_readers={1, 2, 3}) == {2}


def test_an_activation_is_not_kept_where_what_it_can_be_computed_from_is_there_as_long():
    """A sum that computes it in its loop, for that is there, goes on to do so."""
    weights = tf.random.stateless_normal((64, 64), (1, 2))

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x @ weights
            z = y * y  # read for the last time before the gradient, which reads y
            loss = tf.reduce_sum(tf.tanh(tf.nn.relu(z) @ weights + tf.tanh(z) @ weights))
        return tape.gradient(loss, x)

    traced = tf.function(step).get_concrete_function(tf.TensorSpec((512, 64)))
    extracted = extract_step(traced)
    types = [operation.type for operation in extracted.program.operations]
    (relu,) = (
        node
        for node, members in enumerate(extracted.nodes)
        if "Relu" in {types[each] for each in members}
    )
    in_order = Schedule(range(len(extracted.graph)))
    in_readers = computed_in_readers(extracted.program, extracted.nodes)
    assert relu in outlasting(extracted.graph, in_order)
    assert relu not in outlasting(extracted.graph, in_order, in_readers)
