from __future__ import annotations

import tensorflow as tf

from checkmate_tf.program.batch_guard import call_if_larger


def guarded(seen):
    @tf.function(input_signature=[tf.TensorSpec((None, 3)), tf.TensorSpec((None,))])
    def function(x, y):
        call_if_larger([x, y], [(4, 3), (4,)], seen.append)
        return tf.reduce_sum(x) + tf.reduce_sum(y)

    return function


def test_only_a_larger_batch_is_told():
    seen = []
    function = guarded(seen)
    for size in (4, 1, 6, 4):
        function(tf.zeros((size, 3)), tf.zeros(size))
    assert seen == [[[6, 3], [6]]]


def test_the_host_compares_sizes():
    """On a GPU a step would wait for the answer."""
    operations = guarded([]).get_concrete_function().graph.get_operations()
    places = {each.type: each.device for each in operations}
    assert all(places[kind].endswith("CPU:0") for kind in ("Greater", "Any"))
