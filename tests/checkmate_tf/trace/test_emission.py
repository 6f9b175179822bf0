from __future__ import annotations

import gc

import tensorflow as tf

from checkmate_tf.trace.emission import Emitter


def test_what_stands_for_a_tensor_is_found_by_its_name_and_not_its_address():
    """TensorFlow may make a Python object anew for the same tensor, and drop the one before."""
    source, target = tf.Graph(), tf.Graph()
    with source.as_default():
        for number in range(5):
            tf.compat.v1.placeholder(tf.float32, (2,), name=f"x{number}")
    with target.as_default():
        emitter = Emitter(source, target)
        for number in range(5):
            again = tf.Graph()  # the same tensor by name, an object of its own
            with again.as_default():
                tensor = tf.compat.v1.placeholder(tf.float32, (2,), name=f"x{number}")
            emitter.provide(tensor, number)
            del again, tensor
            gc.collect()
        for number in range(5):
            assert emitter.provided(source.get_tensor_by_name(f"x{number}:0")) == number
