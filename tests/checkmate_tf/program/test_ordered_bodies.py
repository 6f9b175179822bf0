"""Inside loops and branches large operations run one by one, and no result changes."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.rewrite import as_function
from profiles.tensorflow_internals import function_definition, function_in_graph
from solvers import Schedule

SIDE = 64
KERNEL = np.random.default_rng(0).random((4, 3, 3, 8, 8), np.float32) / 72


def in_order(step, side=SIDE):
    """A traced step, and the same by a schedule that computes everything once."""
    concrete = tf.function(step).get_concrete_function(tf.TensorSpec((4, side, side, 8)))
    extracted = extract_step(concrete)
    return concrete, as_function(extracted, Schedule(range(len(extracted.graph))))


def definition(function, kind, attribute):
    """The FunctionDef that the one operation of that kind in `function` runs, and the operation."""
    (operation,) = [each for each in function.graph.get_operations() if each.type == kind]
    name = operation.get_attr(attribute).name
    return function_definition(function_in_graph(function.graph, name)), operation


def four_convolutions(x):
    return tf.add_n([tf.nn.conv2d(x, each, 1, "SAME") for each in KERNEL])


def images(seed):
    return tf.constant(np.random.default_rng(seed).random((4, SIDE, SIDE, 8), np.float32))


def a_loop(x):
    def body(i, y):
        return i + 1, tf.tanh(four_convolutions(y))

    return tf.reduce_sum(tf.while_loop(lambda i, y: i < 3, body, [0, x])[1] ** 2)


def a_branch(x):
    taken = tf.cond(tf.reduce_sum(x) > 0, lambda: four_convolutions(x), lambda: x)
    return tf.reduce_sum(taken**2)


def chain(function):
    """Pairs of operations in a FunctionDef, of which one waits for the other."""
    return [
        (name.removeprefix("^"), node.name)
        for node in function.node_def
        for name in node.input
        if name.startswith("^")
    ]


def convolutions(function):
    return {node.name for node in function.node_def if node.op == "Conv2D"}


def test_each_convolution_of_an_iteration_waits_for_the_one_before():
    _, ours = in_order(a_loop)
    body, loop = definition(ours, "StatelessWhile", "body")
    assert loop.get_attr("parallel_iterations") == 1
    pairs = chain(body)
    earlier, later = ({pair[side] for pair in pairs} for side in (0, 1))
    assert len(earlier - later) == len(later - earlier) == 1, "one chain"
    assert len(convolutions(body)) == 4
    assert convolutions(body) <= earlier | later


def test_branches_have_an_order_too():
    _, ours = in_order(a_branch)
    taken, _ = definition(ours, "StatelessIf", "then_branch")
    assert convolutions(taken) <= {each for pair in chain(taken) for each in pair}
    other, _ = definition(ours, "StatelessIf", "else_branch")
    assert not chain(other)


def test_results_are_equal_to_the_last_bit():
    x = images(0)
    for step in (a_loop, a_branch):
        concrete, ours = in_order(with_gradient(step))
        for mine, plain in zip(ours(x), concrete(x), strict=True):
            assert np.array_equal(mine, plain)


def test_loops_inside_loops():
    def step(x):
        def outer(i, y):
            return i + 1, tf.while_loop(
                lambda j, z: j < 2, lambda j, z: (j + 1, tf.tanh(four_convolutions(z))), [0, y]
            )[1]

        return tf.reduce_sum(tf.while_loop(lambda i, y: i < 2, outer, [0, x])[1] ** 2)

    concrete, ours = in_order(with_gradient(step))
    x = images(1)
    for mine, plain in zip(ours(x), concrete(x), strict=True):
        assert np.array_equal(mine, plain)


def test_small_operations_stay_free():
    concrete, ours = in_order(a_loop, side=8)
    body, loop = definition(ours, "StatelessWhile", "body")
    plain, same = definition(concrete, "StatelessWhile", "body")
    assert body.signature.name == plain.signature.name
    assert loop.get_attr("parallel_iterations") == same.get_attr("parallel_iterations")


def with_gradient(step):
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = step(x)
        return loss, tape.gradient(loss, x)

    return run
