"""What replicas do alone and together, on graphs of two devices that need not be there."""

from __future__ import annotations

import tensorflow as tf

from checkmate_tf.distribution.parts import part_of
from checkmate_tf.distribution.split import has_several_replicas, split
from checkmate_tf.trace.program import resolve

SIZE = tf.TensorSpec((8, 8))
BYTES = 8 * 8 * 4


def of_two(x, y):
    """Two replicas, the sum of what they found, and what each makes of it."""
    x = tf.exp(x, name="before")
    found = []
    for device, given in (("CPU:0", x), ("CPU:1", y)):
        with tf.device(device):
            found.append(tf.tanh(tf.sin(given, name="first"), name="second"))
    with tf.device("CPU:0"):
        total = tf.add(*found, name="sum")
        updated = [tf.cos(total, name="update")]
    with tf.device("CPU:1"):
        updated.append(tf.cos(total, name="update"))
    return updated


def resolved(function):
    return resolve(tf.function(function, autograph=False).get_concrete_function(SIZE, SIZE))


def names(program, numbers):
    return [program.operations[each].name for each in numbers]


def test_replicas_end_where_they_meet():
    program = resolved(of_two)
    parts = split(program)
    assert has_several_replicas(program)
    assert [each[-5:] for each in parts.devices] == ["CPU:0", "CPU:1"]
    assert names(program, parts.before) == ["before"]
    assert [names(program, each) for each in parts.alone] == [
        ["first", "second"],
        ["first_1", "second_1"],
    ]
    assert names(program, parts.together) == ["sum", "update", "update_1"]
    assert [names(program, each) for each in parts.together_on] == [["sum", "update"], ["update_1"]]
    kept = {program.operations[each.producer].name for each in parts.kept}
    assert kept == {"second", "second_1"}


def test_a_part_is_given_what_its_device_reads():
    program = resolved(of_two)
    parts = split(program)
    first, second = (part_of(program, alone, (), parts.kept) for alone in parts.alone)
    assert first.fixed_bytes == second.fixed_bytes == BYTES
    assert [len(each) for each in first.reads] == [0, 1]
    assert {each.producer for each in first.outputs} == {1}


def test_one_device_is_no_replica():
    def step(x, y):
        with tf.device("CPU:0"):
            return tf.sin(x) + y

    assert not has_several_replicas(resolved(step))
    assert not has_several_replicas(resolved(lambda x, y: x + y))
