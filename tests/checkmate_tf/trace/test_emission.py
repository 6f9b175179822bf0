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


def test_operations_made_at_one_line_share_what_is_known_of_it():
    """TensorFlow keeps traced graphs for good, each of whose operations may have read its lines."""
    source = tf.Graph()
    with source.as_default():
        originals = [tf.exp(tf.constant(float(number))).op for number in range(3)]
    lines = [[str(frame) for frame in each.traceback] for each in originals]
    with tf.Graph().as_default() as target:
        emitter = Emitter(source, target)
        for each in originals:
            emitter.provide(each.inputs[0], tf.constant(1.0))
        copies = [emitter.create(each, [emitter.provided(each.inputs[0])]) for each in originals]
    for each, read in zip((*originals, *copies), lines * 2, strict=True):
        assert [str(frame) for frame in each.traceback] == read
    assert len({id(each.traceback) for each in (*originals, *copies)}) == 1
