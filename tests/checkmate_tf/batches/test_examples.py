"""Which arguments grow with the batch, and under which names."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.batches.examples import example_batch
from solvers import CheckmateError
from tests.messages import raises


def test_what_is_as_long_as_the_first_array_grows():
    images, rest = np.zeros((8, 4, 3), np.uint8), [tf.zeros((8,)), np.zeros((5, 8)), 0.5]
    example = example_batch(({"x": images}, rest), ("data", "rest"))
    assert example.growing == ("data['x']", "rest[0]")
    assert example.staying == ("rest[1]",)
    assert example.size == 8
    data, others = example.at(3)
    assert data == {"x": tf.TensorSpec((3, 4, 3), tf.uint8)}
    assert others == [tf.TensorSpec((3,)), tf.TensorSpec((5, 8), tf.float64), 0.5]


def test_open_dimensions_say_alone_what_grows():
    open_one = tf.TensorSpec((None, 8))
    example = example_batch((np.zeros((8, 8)), open_one), ("mask", "x"))
    assert (example.growing, example.staying, example.size) == (("x",), ("mask",), None)
    assert example.at(None)[1] == open_one


def test_numbers_become_what_fit_makes_of_them():
    example = example_batch(((np.zeros((2, 3)), np.zeros(2, np.int64)),), ("data",), "float32")
    assert [each.dtype for each in example.at(2)[0]] == [tf.float32, tf.int64]


@pytest.mark.parametrize("batch", [(), (3.0,), (np.zeros(()),), (tf.Variable(tf.ones((4, 4))),)])
def test_no_batch_dimension(batch):
    names = tuple(f"a{number}" for number in range(len(batch)))
    with raises(CheckmateError, "example-without-batch", "TensorSpec"):
        example_batch(batch, names)


def test_other_open_dimensions_are_named():
    with raises(CheckmateError, "shape-unknown", "x has", "(None, None)"):
        example_batch((tf.TensorSpec((None, None)),), ("x",))
