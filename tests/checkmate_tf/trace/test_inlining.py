"""Functions inside a step are taken apart: beside the same step without them, and the plain one."""

from __future__ import annotations

import inspect
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf import rewrite
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.trace.inlining import inlined
from checkmate_tf.trace.program import resolve
from solvers import Schedule

SIZE = 64
SPEC = tf.TensorSpec((SIZE, SIZE))


def activation(x):
    return tf.tanh(tf.nn.gelu(x))


def learning_step(weights, block):
    """A gradient step through a block for each of the weights."""

    def step(x):
        with tf.GradientTape() as tape:
            for each in weights:
                x = block(x, each)
            loss = tf.reduce_mean(x * x)
        for each, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            each.assign_sub(0.1 * gradient)
        return loss

    return step


def some_weights(count=3):
    return [
        tf.Variable(tf.random.stateless_normal((SIZE, SIZE), (number, 1)) / 8, name=f"w{number}")
        for number in range(count)
    ]


def traced(step, *specs):
    return tf.function(step).get_concrete_function(*specs or (SPEC,))


def kinds(concrete):
    return Counter(each.type for each in resolve(concrete).operations)


def nested_block():
    inner = tf.function(activation)
    return tf.function(lambda x, weights: inner(x @ weights))


def test_a_step_with_functions_has_the_operations_of_one_without():
    plain = learning_step(some_weights(), lambda x, weights: activation(x @ weights))
    nested = learning_step(some_weights(), nested_block())
    assert kinds(traced(nested)) == kinds(traced(plain))


def test_its_nodes_are_the_same_too():
    plain = learning_step(some_weights(), lambda x, weights: activation(x @ weights))
    nested = learning_step(some_weights(), nested_block())
    ours, others = (extract_step(traced(step)).graph for step in (nested, plain))
    assert [node.operations for node in ours.nodes] == [node.operations for node in others.nodes]
    assert [node.memory for node in ours.nodes] == [node.memory for node in others.nodes]


def test_a_step_without_functions_stays_as_it_is():
    concrete = traced(lambda x: tf.sin(x))
    assert inlined(concrete) is concrete


def test_operations_keep_the_names_and_lines_of_the_user():
    def waves(x):
        return tf.sin(x, name="wave")

    inner = tf.function(waves, autograph=False)
    (sine,) = resolve(traced(lambda x: inner(x))).operations
    assert sine.name == "PartitionedCall/wave"
    _, first = inspect.getsourcelines(waves)
    lines = [frame.lineno for frame in sine.traceback if frame.filename == __file__]
    assert first + 1 in lines


def test_loops_and_compiled_functions_stay_as_they_are():
    compiled = tf.function(activation, jit_compile=True)
    loop = tf.function(lambda x: tf.while_loop(lambda y: tf.norm(y) > 1, lambda y: [y / 2], [x]))
    found = kinds(traced(lambda x: tf.sin(compiled(loop(x)[0]))))
    assert sum(count for kind, count in found.items() if kind.endswith("PartitionedCall")) == 1
    assert found["StatelessWhile"] == 1
    assert "Tanh" not in found


@pytest.fixture
def exact():
    """Grappler rewrites what it finds beside each other, which calls and control edges change."""
    before = tf.config.optimizer.get_experimental_options()
    off = {"arithmetic_optimization": False, "remapping": False}
    tf.config.optimizer.set_experimental_options(off)
    yield
    tf.config.optimizer.set_experimental_options({key: before.get(key, True) for key in off})


def after_three_steps(step, variables, start):
    for each, value in zip(variables, start, strict=True):
        each.assign(value)
    x = tf.random.stateless_normal((SIZE, SIZE), (3, 3))
    losses = [step(x + number).numpy() for number in range(3)]
    return [*losses, *(each.numpy() for each in variables)]


def same_bits(step, variables, *specs):
    """Whether a step leaves the same behind when its operations run one by one, as it is."""
    concrete = traced(step, *specs)
    size = SIZE if specs else None
    ours = rewrite(concrete, Schedule(range(len(extract_step(concrete, size).graph))), size)
    start = [each.numpy() for each in variables]
    expected = after_three_steps(concrete, variables, start)
    found = after_three_steps(ours, variables, start)
    return all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


def test_the_results_are_those_of_the_calls(exact):
    weights = some_weights()
    assert same_bits(learning_step(weights, nested_block()), weights)


def test_writes_and_reads_inside_and_around_calls_keep_their_order(exact):
    count, unused = tf.Variable(1.0), tf.Variable(0.0)

    @tf.function
    def double(x):
        before = count.read_value()
        count.assign(2.0 * before + tf.reduce_sum(x) / 1e6)
        unused.assign_add(1.0)
        return x * before, count.read_value()  # the first is a value of the past

    def step(x):
        first, seen = double(x)
        count.assign_add(seen)
        third = count.read_value()
        second, last = double(first)
        return tf.reduce_sum(second) + 3.0 * third + 5.0 * last + 7.0 * count

    assert same_bits(step, [count, unused])


def test_a_generator_draws_once(exact):
    generator = tf.random.Generator.from_seed(1)
    weights = some_weights()

    @tf.function
    def noisy(x, each):
        return activation(x @ each) + generator.normal((SIZE, 1))

    assert same_bits(learning_step(weights, noisy), [*weights, generator.state])


def test_what_is_assigned_inside_runs_though_nobody_reads_it(exact):
    seen = tf.Variable(0.0)

    @tf.function
    def look(x):
        seen.assign(tf.reduce_max(x))

    def step(x):
        look(x)
        return tf.reduce_sum(tf.sin(x))

    assert same_bits(step, [seen])
    assert seen.numpy() > 1


class Block(tf.Module):
    """As it is saved: for batches of any size."""

    def __init__(self):
        super().__init__()
        self.kernels = some_weights(2)

    @tf.function(input_signature=[tf.TensorSpec((None, SIZE))])
    def __call__(self, x):
        for each in self.kernels:
            x = activation(x @ each)
        return x


def test_a_saved_model_is_taken_apart_and_its_sizes_are_known(exact, tmp_path):
    tf.saved_model.save(Block(), str(tmp_path))
    block = tf.saved_model.load(str(tmp_path))
    weights = [*block.kernels, *some_weights(1)]

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(block(x) @ weights[-1]))
        for each, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            each.assign_sub(0.1 * gradient)
        return loss

    program = resolve(traced(step))
    assert not program.guessed
    products = [each for each in program.operations if each.type == "MatMul"]
    assert len(products) == 8  # three forward, and two each backward but for the first input
    assert same_bits(step, weights)


@pytest.mark.parametrize("size", [SIZE, 16])
def test_a_batch_of_any_size_is_known_inside(size):
    inner = tf.function(lambda x: tf.concat([activation(x), x], 1))
    concrete = traced(lambda x: tf.reduce_sum(inner(x)), tf.TensorSpec((None, SIZE)))
    program = resolve(concrete, size)
    assert not program.guessed
    assert max(each.bytes for made in program.produced for each in made) == size * SIZE * 2 * 4


def test_transpositions_that_move_no_axis_are_left_out(exact):
    """Those of a dense layer for batches of any size, and of its gradient; others stay."""
    weights = some_weights(2)

    def block(x, each):
        return tf.transpose(tf.tanh(tf.tensordot(x, each, 1)), [1, 0])

    step, spec = learning_step(weights, block), tf.TensorSpec((None, SIZE))
    concrete = traced(step, spec)
    before = Counter(each.type for each in concrete.graph.get_operations())
    after = Counter(each.type for each in resolve(concrete, SIZE).operations)
    assert before["Transpose"] > after["Transpose"] == 2 * len(weights)
    assert same_bits(step, weights, spec)


def test_functions_in_functions_are_found_wherever_they_are_called(exact):
    """A branch inside a function calls another function, which must be there in the end."""
    inner = tf.function(activation)

    @tf.function
    def branch(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: inner(x), lambda: -inner(x))

    weights = some_weights()
    assert same_bits(learning_step(weights, lambda x, each: branch(x @ each)), weights)
