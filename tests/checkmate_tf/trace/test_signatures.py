"""Signatures of real TensorFlow operations."""

from __future__ import annotations

import tensorflow as tf

from checkmate_tf.trace.signatures import signature
from profiles.operation import TensorSize


def test_a_convolution():
    @tf.function(input_signature=[tf.TensorSpec((2, 8, 8, 3)), tf.TensorSpec((3, 3, 3, 4))])
    def step(images, filters):
        return tf.nn.conv2d(images, filters, strides=2, padding="SAME")

    graph = step.get_concrete_function().graph
    (operation,) = [op for op in graph.get_operations() if op.type == "Conv2D"]
    found = signature(operation)
    assert found.inputs == (
        TensorSize("float32", (2, 8, 8, 3)),
        TensorSize("float32", (3, 3, 3, 4)),
    )
    assert found.outputs == (TensorSize("float32", (2, 4, 4, 4)),)
    assert found.attribute("strides") == (1, 2, 2, 1)
    assert found.attribute("padding") == "SAME"


def test_equal_operations_have_equal_signatures_and_axes_are_constants():
    @tf.function(input_signature=[tf.TensorSpec((4, 5, 6))])
    def step(x):
        return tf.reduce_sum(x, [0, 1]) + tf.reduce_sum(2 * x, [0, 1]), tf.reduce_sum(x, [2])

    graph = step.get_concrete_function().graph
    first, second, other = [signature(op) for op in graph.get_operations() if op.type == "Sum"]
    assert first == second
    assert hash(first) == hash(second)
    assert first != other
    assert dict(first.constants) == {1: (0, 1)}


def test_equal_signatures_of_two_traces_are_one_object():
    """TensorFlow keeps the graphs of steps that are gone, and with them what is known of them."""

    def traced():
        concrete = tf.function(lambda x: tf.nn.softmax(x @ x)).get_concrete_function(
            tf.TensorSpec((8, 8))
        )
        return [signature(each) for each in concrete.graph.get_operations()]

    one, other = traced(), traced()
    assert all(a is b for a, b in zip(one, other, strict=True))
    assert len(set(map(id, one))) == len(set(one))
