"""Sizes that data decide: what is computed from rows that were chosen is guessed from all rows."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf
from keras import layers

from checkmate_tf.trace.program import resolve

ROWS, WIDTH = 64, 8


def sizes(function, kind, *shapes):
    """Bytes that operations of type `kind` make, and the types of which sizes were guessed."""
    specs = [tf.TensorSpec(each) for each in shapes or [(ROWS, WIDTH)]]
    program = resolve(tf.function(function).get_concrete_function(*specs))
    made = [
        tensor.bytes
        for number, operation in enumerate(program.operations)
        if operation.type == kind
        for tensor in program.produced[number]
    ]
    return made, {each.type for each in program.guessed}


def test_a_chain_after_a_mask_keeps_its_rows():
    made, guessed = sizes(lambda x: tf.tanh(tf.sin(tf.boolean_mask(x, x[:, 0] > 0))), "Tanh")
    assert made == [4 * ROWS * WIDTH]
    assert {"Sin", "Tanh"} <= guessed


def test_a_product_has_as_many_rows_and_columns_of_its_own():
    def step(x, w):
        return tf.boolean_mask(x, x[:, 0] > 0) @ w

    made, _ = sizes(step, "MatMul", (ROWS, WIDTH), (WIDTH, 10 * WIDTH))
    assert made == [4 * ROWS * 10 * WIDTH]


@pytest.mark.parametrize("parts", [2, 4])
def test_parts_are_together_what_was_parted(parts):
    def step(x):
        places = tf.cast(x[:, 0] * parts, tf.int32)
        rows = tf.dynamic_partition(x, places, parts)
        where = tf.dynamic_partition(tf.range(ROWS), places, parts)
        return tf.sin(tf.dynamic_stitch(where, [tf.exp(each) for each in rows]))

    assert sizes(step, "Exp")[0] == [4 * ROWS * WIDTH // parts] * parts
    assert sizes(step, "Sin")[0] == [4 * ROWS * WIDTH]


def test_another_shape_has_the_same_bytes():
    made, _ = sizes(lambda x: tf.sin(tf.reshape(tf.boolean_mask(x, x[:, 0] > 0), (-1,))), "Sin")
    assert made == [4 * ROWS * WIDTH]


def test_a_table_is_looked_up_as_often_as_there_are_places():
    def step(x, table):
        places = tf.where(x[:, 0] > 0)[:, 0]
        return tf.sin(tf.gather(table, places))

    made, _ = sizes(step, "Sin", (ROWS, WIDTH), (100 * ROWS, WIDTH))
    assert made == [4 * ROWS * WIDTH]


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: layers.LSTM(16, return_sequences=True), (12, 5)),
        (lambda: layers.ConvLSTM2D(4, 3, return_sequences=True), (6, 8, 8, 3)),
        (lambda: layers.Bidirectional(layers.GRU(8, return_sequences=True)), (12, 5)),
    ],
)
def test_loops_over_batches_of_any_size_are_as_large_as_over_known_ones(layer, shape):
    """What they keep for their gradients, and the arrays that they fill."""
    model = keras.Sequential([keras.Input(shape), layer(), layers.Flatten(), layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)

    def program(batch):
        specs = tf.TensorSpec((batch, *shape)), tf.TensorSpec((batch, 1))
        return resolve(tf.function(model.train_step).get_concrete_function(specs), 8)

    def sizes(found):
        return {tensor.bytes for made in found.produced for tensor in made if tensor.bytes > 256}

    known, left_open = program(8), program(None)
    assert left_open.guessed == known.guessed == ()
    assert max(sizes(left_open)) == max(sizes(known))
    assert sizes(left_open) >= sizes(known)
