"""Replayed steps compute what the plain step computes: every schedule, to the last bit."""

from __future__ import annotations

import itertools
import sys

import networkx as nx
import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf import rewrite
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.rewrite import rewrite_extracted
from solvers import Schedule, ScheduleError, solve
from tests.costs import sweep
from tests.steps import random_batch, small_cnn, snapshot, train_from


@pytest.fixture(autouse=True, scope="module")
def _no_fusions():
    """Grappler fuses and rewrites differently around control edges, so bits would differ."""
    before = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options(
        {"arithmetic_optimization": False, "remapping": False}
    )
    yield
    tf.config.optimizer.set_experimental_options(
        {name: before.get(name, True) for name in ("arithmetic_optimization", "remapping")}
    )


def assert_close(ours, plain):
    """Equal but for the order in which three gradients are added.

    With several inter-op threads not even the plain step repeats its bits; `test_same_bits`
    compares bits, in processes with one such thread.
    """
    for ours_value, plain_value in zip(ours, plain, strict=True):
        np.testing.assert_allclose(ours_value, plain_value, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize(
    ("share", "order"),
    sweep(
        [
            (0.6, "free"),
            (0.6, "fixed"),
            (None, "free"),
            (None, "fixed"),
            (0.8, "free"),
            (0.8, "fixed"),
        ]
    ),
)
def test_variables_after_three_steps(share, order):
    model = small_cnn(dropout=0.3)
    start = snapshot(model)
    concrete = tf.function(model.train_step).get_concrete_function(random_batch())
    extracted = extract_step(concrete)
    graph = extracted.graph
    schedule = Schedule(range(len(graph)))
    if share is not None:
        schedule = solve(graph, share, order=order, time_limit=5).schedule
        assert schedule is not None
    step = rewrite_extracted(extracted, schedule)
    plain = train_from(model, start, concrete)
    assert_close(train_from(model, start, step), plain)
    assert not np.array_equal(plain[0], start[0]), "the step must train"


def test_a_schedule_that_recomputes_computes_more_operations():
    model = small_cnn()
    concrete = tf.function(model.train_step).get_concrete_function(random_batch())
    extracted = extract_step(concrete)
    graph = extracted.graph
    twice = [(i, i) if node.recomputable else (i,) for i, node in enumerate(graph.nodes)]
    schedule = Schedule([i for each in twice for i in each])
    step = rewrite_extracted(extracted, schedule)
    inner = tf.function(step).get_concrete_function(random_batch())

    def count(function):
        return sum(op.type == "Conv2D" for op in function.graph.get_operations())

    planned = sum(graph.nodes[i].operations.count("Conv2D") for i in schedule.steps)
    assert count(inner) == planned == 2 * count(concrete)


def test_operations_with_large_workspaces_wait_for_each_other():
    """The gradients of filters are small; what they work with is not, and must not add up."""
    filters = [tf.Variable(tf.ones((3, 3, 4, 4))) for _ in range(3)]

    @tf.function(input_signature=[tf.TensorSpec((8, 32, 32, 4))])
    def step(x):
        with tf.GradientTape() as tape:
            branches = [tf.tanh(tf.nn.conv2d(x, each, 1, "SAME")) for each in filters]
            loss = tf.reduce_sum(tf.square(tf.add_n(branches)))
        return tape.gradient(loss, filters)

    concrete = step.get_concrete_function()
    kind = "Conv2DBackpropFilter"
    extracted = extract_step(concrete, workspace=lambda each: (1 << 24) * (kind in each.type))
    rewritten = rewrite_extracted(extracted, Schedule(range(len(extracted.graph))))
    x = tf.random.stateless_normal((8, 32, 32, 4), (1, 2))
    waits = nx.DiGraph()
    for each in tf.function(rewritten).get_concrete_function(x).graph.get_operations():
        waits.add_node(each.name, kind=each.type)
        for before in (*(tensor.op for tensor in each.inputs), *each.control_inputs):
            waits.add_edge(before.name, each.name)
    gradients = [name for name in nx.topological_sort(waits) if waits.nodes[name]["kind"] == kind]
    assert len(gradients) == 3
    for first, second in itertools.pairwise(gradients):
        assert nx.has_path(waits, first, second)
    for ours, plain in zip(rewritten(x), step(x), strict=True):
        np.testing.assert_array_equal(ours, plain)


def test_rewrite_takes_the_arguments_of_the_function():
    @tf.function
    def step(x, *, scale):
        return {"scaled": tf.exp(x) * scale, "nothing": None}

    concrete = step.get_concrete_function(tf.TensorSpec((512,)), scale=tf.TensorSpec(()))
    again = rewrite(concrete, Schedule(range(len(extract_step(concrete).graph))))
    result = again(tf.ones(512), scale=tf.constant(2.0))
    assert result["nothing"] is None
    np.testing.assert_allclose(result["scaled"], 2 * np.e * np.ones(512), rtol=1e-6)


@tf.function(input_signature=[tf.TensorSpec((4, 24, 24, 8))])
def clipped_gradients(x):
    """Convolutions with bias, whose gradients are read twice: for their norm, and to be scaled."""
    filters = [tf.random.stateless_normal((3, 3, 8, 8), (1, each)) / 5 for each in range(3)]
    biases = [tf.random.stateless_normal((8,), (2, each)) for each in range(3)]
    with tf.GradientTape() as tape:
        tape.watch((filters, biases))
        for one, bias in zip(filters, biases, strict=True):
            x = tf.tanh(tf.nn.bias_add(tf.nn.conv2d(x, one, 1, "SAME"), bias))
        loss = tf.reduce_sum(x * x)
    gradients = tape.gradient(loss, [*filters, *biases])
    norm = tf.sqrt(sum(tf.reduce_sum(tf.tanh(each) ** 2) for each in gradients))
    return [loss, *(each / norm for each in gradients)]


def gradients_again(graph, times):
    """In input order, but before it is read each filter's gradient is recomputed.

    So are the activations that it reads, while the gradient that it shares with the bias is
    still the first.
    """
    steps = []
    for number, node in enumerate(graph.nodes):
        for other in node.dependencies:
            if "Conv2DBackpropFilter" in graph.nodes[other].operations:
                reads = graph.nodes[other].dependencies
                steps += [i for i in reads if "Conv2D" in graph.nodes[i].operations]
                steps += [other] * times
        steps.append(number)
    return Schedule(steps)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_filters_gradient_can_run_again_beside_that_of_the_bias(times):
    """oneDNN fuses the two by the gradient that both read, and must not mix up computations."""
    concrete = clipped_gradients.get_concrete_function()
    extracted = extract_step(concrete)
    schedule = gradients_again(extracted.graph, times)
    assert len(schedule) >= len(extracted.graph) + 3 * times
    x = tf.random.stateless_normal((4, 24, 24, 8), (3, 4))
    for ours, plain in zip(rewrite_extracted(extracted, schedule)(x), concrete(x), strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-6)


def test_control_flow_runs_as_a_whole():
    @tf.function(input_signature=[tf.TensorSpec((64, 64))])
    def step(x):
        total = tf.zeros((64, 64))
        for i in tf.range(5):
            total += tf.sin(x) * tf.cast(i, tf.float32)
        return tf.reduce_sum(tf.cond(tf.reduce_sum(x) > 0, lambda: total, lambda: -total))

    concrete = step.get_concrete_function()
    again = rewrite(concrete, Schedule(range(len(extract_step(concrete).graph))))
    x = tf.random.stateless_normal((64, 64), (1, 2))
    np.testing.assert_allclose(again(x), concrete(x), rtol=1e-6)


def test_stateful_operations_run_once_and_in_order():
    seen = tf.Variable("", dtype=tf.string)

    @tf.function(input_signature=[tf.TensorSpec((512,))])
    def step(x):
        seen.assign(tf.strings.join([seen, "a"]))
        y = tf.exp(x)
        seen.assign(tf.strings.join([seen, "b"]))
        return tf.reduce_sum(y * y)

    concrete = step.get_concrete_function()
    again = rewrite(concrete, Schedule(range(len(extract_step(concrete).graph))))
    again(tf.ones(512))
    again(tf.ones(512))
    assert seen.numpy() == b"abab"


def test_a_schedule_for_another_graph_is_refused():
    concrete = tf.function(tf.sin).get_concrete_function(tf.TensorSpec((4096,)))
    with pytest.raises(ScheduleError):
        rewrite(concrete, Schedule([0, 1, 2, 3, 4, 5, 6, 7]))


def test_views_of_views_may_be_deeper_than_pythons_stack():
    variable = tf.Variable(tf.ones((64, 64)))

    @tf.function(input_signature=[tf.TensorSpec((64, 64))], autograph=False)
    def step(x):
        looked_at, read = tf.tanh(x), variable.read_value()
        for _ in range(sys.getrecursionlimit()):
            looked_at, read = tf.stop_gradient(looked_at), tf.stop_gradient(read)
        with tf.control_dependencies([looked_at]):
            return tf.sin(looked_at) + read

    concrete = step.get_concrete_function()
    extracted = extract_step(concrete)
    schedule = Schedule(range(len(extracted.graph)))
    x = tf.random.stateless_normal((64, 64), (1, 2))
    np.testing.assert_array_equal(rewrite_extracted(extracted, schedule)(x), concrete(x))


@pytest.mark.parametrize("traced_before", [False, True])
def test_gradients_are_those_of_the_traced_function(traced_before):
    kernel = tf.Variable(tf.random.stateless_normal((64, 64), (1, 2)) / 8)

    @tf.function
    def step(x):
        y = tf.tanh(x @ kernel)
        return {"y": tf.tanh(y @ kernel) + tf.stop_gradient(y)}

    x = tf.random.stateless_normal((256, 64), (3, 4))
    concrete = step.get_concrete_function(x)
    again = rewrite(concrete, Schedule(range(len(extract_step(concrete).graph))))

    if traced_before:  # as a part of a function, while there was no tape
        again = tf.function(again)
        again(x)

    def gradient(function):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(function(x)["y"])
        return tape.gradient(loss, kernel)

    for _ in range(2):
        np.testing.assert_allclose(gradient(again), gradient(step), rtol=1e-5, atol=1e-5)


def test_no_part_is_left_to_xla_which_would_reorder_it():
    step = tf.function(lambda x: tf.reduce_sum(tf.nn.softmax(x @ x)))
    size = tf.TensorSpec((64, 64))
    concrete = step.get_concrete_function(size)
    unchanged = Schedule(range(len(extract_step(concrete).graph)))
    tf.config.optimizer.set_jit("autoclustering")
    try:
        ours = tf.function(rewrite(concrete, unchanged)).get_concrete_function(size)
    finally:
        tf.config.optimizer.set_jit(False)
    products = [each for each in ours.graph.get_operations() if each.type == "MatMul"]
    assert products
    assert not any(each.get_attr("_XlaCompile") for each in products)
