"""Emitted graphs run what the schedule says, as often as it says, and in its order."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import tensorflow as tf

from checkmate_tf.devices.cpu import Cpu
from checkmate_tf.devices.current import planned_as
from checkmate_tf.devices.device import Device
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.rewrite import as_function
from solvers import Schedule
from tests.steps import all_before, loss_and_gradient, random_batch, recomputing, small_cnn

SIDE = 128

WRITES = {
    "AssignAddVariableOp": ["add"],
    "AssignSubVariableOp": ["subtract"],
    "AssignVariableOp": ["assign"],
    "ResourceStridedSliceAssign": ["assign"],
    "ResourceApplyKerasMomentum": ["assign", "add"],
}


def extraction(step, *shapes):
    specs = [tf.TensorSpec(shape) for shape in shapes or [(SIDE, SIDE)]]
    return extract_step(tf.function(step, autograph=False).get_concrete_function(*specs))


def emitted(extracted, steps):
    """The operations of the function that runs the schedule `steps`."""
    return as_function(extracted, Schedule(steps)).graph.get_operations()


def products(x):
    """Two products that do not need each other, and their product."""
    return tf.reduce_sum((x @ tf.transpose(x)) @ (tf.transpose(x) @ x))


def test_large_operations_run_in_the_order_of_the_schedule():
    extracted = extraction(products)
    steps = list(range(len(extracted.graph)))
    kinds = [node.operations for node in extracted.graph.nodes]
    independent = [i for i in steps if not extracted.graph.nodes[i].dependencies]
    assert len(independent) > 1, kinds
    matrices = [each for each in emitted(extracted, steps) if each.type == "MatMul"]
    assert len(matrices) == 3
    for earlier, later in pairwise(matrices):
        assert earlier.name in all_before(later)


def one_matrix_and_ten_vectors(matrix, vector):
    """Each vector is 0.4 % of the matrix."""
    functions = [tf.exp, tf.sin, tf.tanh, tf.cos, tf.sigmoid]
    functions += [tf.sqrt, tf.square, tf.abs, tf.negative, tf.atan]
    return [tf.sort(matrix), *(function(vector) for function in functions)]


def emitted_vectors(extracted):
    operations = emitted(extracted, range(len(extracted.graph)))
    small = [each for each in operations if each.outputs and each.outputs[0].shape == (1024,)]
    small = [each for each in small if each.type not in ("Placeholder", "Identity")]
    assert len(small) == 10
    return small


def test_on_a_cpu_what_needs_no_bytes_of_another_does_not_wait_for_it():
    extracted = extraction(one_matrix_and_ten_vectors, (512, 512), (1024,))
    with planned_as(Cpu("CPU:0")):
        small = emitted_vectors(extracted)
    assert all(one.name not in all_before(other) for one, other in pairwise(small))


def test_in_groups_small_ones_share_a_group_up_to_a_hundredth_of_the_peak():
    """Three may run side by side, but not ten."""
    extracted = extraction(one_matrix_and_ten_vectors, (512, 512), (1024,))
    with planned_as(Device("GPU:0")):
        small = emitted_vectors(extracted)
    waits = [all_before(later) for later in small[1:]]
    side_by_side = [each.name not in after for each, after in zip(small, waits, strict=False)]
    assert any(side_by_side)
    assert small[0].name in waits[-1]


def test_operations_are_emitted_as_often_as_the_schedule_says():
    extracted = extraction(loss_and_gradient)
    steps = recomputing(extracted.graph)
    expected: Counter[str] = Counter()
    for step in steps:
        expected.update(extracted.graph.nodes[step].operations)
    found = Counter(each.type for each in emitted(extracted, steps))
    assert expected["MatMul"] > 9, "some products must be recomputed"
    for kind in ("MatMul", "Tanh", "TanhGrad"):
        assert found[kind] == expected[kind]


def test_recomputation_changes_no_value():
    extracted = extraction(loss_and_gradient)
    x = tf.random.stateless_normal((SIDE, SIDE), (1, 2)) / SIDE
    plain = extracted.program.concrete(x)
    ours = as_function(extracted, Schedule(recomputing(extracted.graph)))(x)
    for one, other in zip(ours, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-7)


def test_a_reader_gets_the_newest_value():
    """The one before it may be freed: no reader of a value that was recomputed reads the first."""
    extracted = extraction(loss_and_gradient)
    operations = emitted(extracted, recomputing(extracted.graph))
    order = {each.name: place for place, each in enumerate(operations)}
    grads = [each for each in operations if each.type == "TanhGrad"]
    assert grads
    for each in grads:
        tanh = each.inputs[0].op
        assert tanh.type == "Tanh"
        # Of the same node: equal but for the numbers that TensorFlow appends to names.
        alike = [o for o in operations if o.type == "Tanh" and o.outputs[0].shape == (SIDE, SIDE)]
        later = [o for o in alike if order[tanh.name] < order[o.name] < order[each.name]]
        assert not [o for o in later if base(o.name) == base(tanh.name)]


def base(name):
    head, _, tail = name.rpartition("_")
    return head if tail.isdigit() and head else name


def test_updates_run_once_however_often_nodes_are_recomputed():
    model = small_cnn()
    concrete = tf.function(model.train_step).get_concrete_function(random_batch())
    extracted = extract_step(concrete)
    ours = emitted(extracted, recomputing(extracted.graph))
    counts = [
        Counter(write for each in operations for write in WRITES.get(each.type, ()))
        for operations in (ours, concrete.graph.get_operations())
    ]
    assert counts[0] == counts[1]
    assert sum(counts[0].values()) > 20


def test_sums_of_many_are_emitted_in_pairs():
    def step(x):
        return tf.add_n([tf.exp(x), tf.sin(x), tf.tanh(x), tf.cos(x)]) @ x

    extracted = extraction(step)
    sums = [each for each in emitted(extracted, range(len(extracted.graph))) if each.type == "AddN"]
    assert [len(each.inputs) for each in sums] == [2, 2, 2]
