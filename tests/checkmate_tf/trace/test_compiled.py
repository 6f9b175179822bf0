"""Functions that XLA compiles inside a step stay whole, and are judged by what they do."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf import rewrite
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.trace.bodies import is_compiled
from checkmate_tf.trace.operations import is_stateful
from checkmate_tf.trace.program import resolve
from checkmate_tf.trace.side_effects import changes_only_variables, written_captures
from checkmate_tf.trace.signatures import signature
from profiles.measure.kernels import Kernel
from profiles.roofline import Roofline
from solvers import Schedule

SIZE = 64
SPEC = tf.TensorSpec((SIZE, SIZE))
BYTES = SIZE * SIZE * 4


@tf.function(jit_compile=True)
def block(x, weights):
    return tf.tanh(tf.tanh(x) @ weights)


def some_weights(count=2):
    return [tf.Variable(tf.random.stateless_normal((SIZE, SIZE), (i, 1)) / 8) for i in range(count)]


def traced(step):
    return tf.function(step).get_concrete_function(SPEC)


def learning_step(weights):
    def step(x):
        with tf.GradientTape() as tape:
            for each in weights:
                x = tf.sin(block(x, each))
            loss = tf.reduce_mean(x)
        for each, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            each.assign_sub(gradient)
        return loss

    return step


def calls(concrete):
    return [op for op in resolve(concrete).operations if op.type.endswith("PartitionedCall")]


def test_calls_stay_one_operation_forward_and_one_backward():
    found = calls(traced(learning_step(some_weights())))
    assert len(found) == 4
    assert all(map(is_compiled, found))


def test_what_only_reads_variables_may_run_again():
    concrete = traced(learning_step(some_weights()))
    assert not any(map(is_stateful, calls(concrete)))
    graph = extract_step(concrete).graph
    assert all(n.recomputable for n in graph.nodes if "StatefulPartitionedCall" in n.operations)


def counts(x, variable):
    return x + variable.assign_add(1.0)


def draws(x, variable):
    return x + tf.random.normal(x.shape)


def nested(x, variable):
    return tf.function(counts)(x, variable)


@pytest.mark.parametrize("inner", [counts, draws, nested])
def test_what_does_more_must_not(inner):
    variable = tf.Variable(0.0)
    function = tf.function(inner, jit_compile=True)
    (call,) = calls(traced(lambda x: function(x, variable)))
    assert is_stateful(call)


def test_only_what_is_written_is_copied_for_a_trial_run():
    """The call that comes second to one function is as harmless as the first."""
    weights, count = some_weights(), tf.Variable(0.0)
    counting = tf.function(counts, jit_compile=True)

    def step(x):
        return counting(counting(block(block(x, weights[0]), weights[0]), count), count)

    concrete = resolve(traced(step)).concrete
    assert changes_only_variables(concrete)
    ((_, written),) = written_captures(concrete)
    assert written is count.handle


def test_equal_layers_have_equal_signatures():
    forward, backward = {}, {}
    for call in calls(traced(learning_step(some_weights(4)))):
        kind = forward if call.type == "StatefulPartitionedCall" else backward
        kind.setdefault(signature(call), []).append(call.name)
    # The first layer's input needs no gradient, but the function computes it.
    assert [len(found) for found in forward.values()] == [4]
    assert [len(found) for found in backward.values()] == [4]


def test_a_call_runs_by_itself():
    """Its outputs are those of the function on the same inputs, for `Kernel` makes them."""
    (weights,) = some_weights(1)
    (call,) = calls(traced(lambda x: block(x, weights)))
    kernel = Kernel(signature(call), "CPU:0")
    x, variable = kernel._inputs.values()
    (found,) = kernel.function(1)()
    np.testing.assert_array_equal(found, block(x, variable))


def test_its_cost_is_that_of_the_operations_inside():
    (weights,) = some_weights(1)
    (call,) = calls(traced(lambda x: block(x, weights)))
    product = 2 * SIZE**3 / Roofline().device.rate
    assert product < Roofline().cost(signature(call)) < 2 * product + 1e-3


def test_the_gradient_reads_what_the_call_was_given_and_not_its_copy():
    """XLA returns copies of all that the gradient reads: the input of the call among them."""
    product = tf.function(lambda x, weights: x @ weights, jit_compile=True)
    (weights,) = some_weights(1)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sin(product(tf.exp(x), weights)))
        return tape.gradient(loss, weights)

    program = resolve(traced(step))
    (backward,) = (n for n, op in enumerate(program.operations) if op.type == "PartitionedCall")
    read = {program.operations[each.producer].type for each in program.reads[backward]}
    assert "Exp" in read


def test_the_results_are_those_of_the_step():
    weights = some_weights()
    concrete = traced(learning_step(weights))
    graph = extract_step(concrete).graph
    forward = [n for n, node in enumerate(graph.nodes) if "Sin" in node.operations]
    twice = [step for n in range(len(graph)) for step in ([n, n] if n in forward else [n])]
    start = [each.numpy() for each in weights]
    after = []
    for step in (concrete, rewrite(concrete, Schedule(twice))):
        for each, value in zip(weights, start, strict=True):
            each.assign(value)
        losses = [step(tf.ones(SPEC.shape) * number).numpy() for number in range(3)]
        after.append([*losses, *(each.numpy() for each in weights)])
    for ours, plain in zip(*after, strict=True):
        np.testing.assert_array_equal(ours, plain)
