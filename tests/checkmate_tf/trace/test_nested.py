"""Memory of loops, branches and calls, which run as a whole, against counts by hand."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf

from checkmate_tf import measure_peak, rematerialize
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.rewrite import as_function
from solvers import Schedule
from solvers.local_search.least_memory import find_least_memory
from tests.messages import warns

SPEC = tf.TensorSpec((64, 64))
BYTES = 64 * 64 * 4
STEPS = 8


def extracted(function, *specs):
    return extract_step(tf.function(function).get_concrete_function(*specs or (SPEC,)))


LOOPS = "While", "StatelessWhile"


def lists_of_loops(extraction):
    """Bytes of all lists that loops return."""
    program = extraction.program
    return sum(
        tensor.bytes
        for operation, made in zip(program.operations, program.produced, strict=True)
        if operation.type in LOOPS
        for tensor in made
        if operation.outputs[tensor.index].dtype == tf.variant
    )


def workspace_of(extraction, *kinds):
    operations = extraction.program.operations
    (found,) = (
        extraction.workspaces[number] for number, op in enumerate(operations) if op.type in kinds
    )
    return found


def loop(x, **limit):
    def body(number, y):
        return number + 1, tf.exp(tf.sin(y))  # the gradient reads y and the exponential

    return tf.while_loop(lambda number, y: number < STEPS, body, (0, x), **limit)[1]


def gradient_of_loop(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(loop(x, maximum_iterations=STEPS))
    return tape.gradient(loss, x)


def test_what_a_loop_keeps_for_its_gradient_is_counted_once():
    """An iteration's exponential is the next one's y: in two lists, in one buffer."""
    extraction = extracted(gradient_of_loop)
    assert not extraction.unknown
    assert lists_of_loops(extraction) == STEPS * BYTES
    x = tf.ones(SPEC.shape)
    function = tf.function(gradient_of_loop)
    function(x)
    assert measure_peak(lambda: function(x)) >= STEPS * BYTES


def test_an_array_that_a_loop_fills_is_counted():
    def fill(x):
        array = tf.TensorArray(tf.float32, STEPS, element_shape=SPEC.shape)
        for number in tf.range(STEPS):
            array = array.write(number, tf.sin(x) * tf.cast(number, tf.float32))
        return array.stack()

    extraction = extracted(fill)
    assert not extraction.unknown
    assert lists_of_loops(extraction) == STEPS * BYTES


def test_what_a_call_in_a_branch_holds_inside_is_the_workspace_of_the_branch():
    @tf.function
    def inner(x):
        y = tf.concat([x, x], 0)  # two of SPEC
        return tf.reduce_sum(tf.concat([y, y], 0))  # and four, while two are held

    def branch(x, chosen):
        return tf.cond(chosen, lambda: inner(x), lambda: tf.reduce_sum(x))

    extraction = extracted(branch, SPEC, tf.TensorSpec((), tf.bool))
    assert workspace_of(extraction, "If", "StatelessIf") == pytest.approx(6 * BYTES, abs=64)


def test_every_step_of_a_keras_lstm_is_counted():
    """Six values of an iteration (gates, tanh of the state, the state) and its output are kept."""
    keras.utils.set_random_seed(0)
    layer = keras.layers.LSTM(64, return_sequences=True)
    layer.build((4, STEPS, 16))

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, training=True))
        return loss, tape.gradient(loss, layer.trainable_variables)

    extraction = extracted(step, tf.TensorSpec((4, STEPS, 16)))
    assert not extraction.unknown
    inputs, kept = 4 * 16 * 4, 7 * 4 * 64 * 4
    number = 4  # of the iteration, where the output goes
    assert lists_of_loops(extraction) == STEPS * (inputs + kept + number)


def loops_in_a_row(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(3):
            y = tf.sin(loop(y, maximum_iterations=STEPS))
        loss = tf.reduce_sum(y)
    return loss, tape.gradient(loss, x)


@pytest.mark.usefixtures("memory_in_one_piece")
def test_a_loop_that_runs_again_does_not_keep_what_it_kept_before():
    """The plan that holds the least holds what one loop keeps, not what three do."""
    spec = tf.TensorSpec((512, 256))
    extraction = extracted(loops_in_a_row, spec)
    kept = STEPS * 512 * 256 * 4
    assert lists_of_loops(extraction) == 3 * kept
    leanest = find_least_memory(extraction.graph, "free", 2).schedule
    x = tf.ones(spec.shape)
    peaks = []
    for schedule in (Schedule(range(len(extraction.graph))), leanest):
        function = as_function(extraction, schedule)
        function(x)
        held = held_bytes()
        peaks.append(measure_peak(lambda run=function: run(x)) - held)
    assert peaks[0] > 3 * kept
    assert peaks[1] < 2.2 * kept


def test_a_list_of_zeros_is_as_large_as_the_list_that_it_is_like():
    def step(x):
        array = tf.TensorArray(tf.float32, STEPS, element_shape=SPEC.shape)
        handle = array.unstack(tf.stack([x] * STEPS)).flow
        zeros = tf.raw_ops.ZerosLike(x=handle)
        return tf.raw_ops.TensorListStack(
            input_handle=zeros,
            element_shape=SPEC.shape,
            element_dtype=tf.float32,
            num_elements=STEPS,
        )

    extraction = extracted(step)
    assert not extraction.unknown
    program = extraction.program
    (zeros,) = (n for n, op in enumerate(program.operations) if op.type == "ZerosLike")
    assert [each.bytes for each in program.produced[zeros]] == [STEPS * BYTES]


def test_a_loop_that_only_reads_variables_can_run_again():
    layer = keras.layers.LSTM(64)
    layer.build((4, STEPS, 16))
    graph = extracted(lambda x: layer(x, training=True), tf.TensorSpec((4, STEPS, 16))).graph
    (node,) = (node for node in graph.nodes if set(LOOPS) & set(node.operations))
    assert node.recomputable


def test_the_cost_of_a_loop_is_that_of_its_iterations():
    extraction = extracted(lambda x: loop(x, maximum_iterations=STEPS))
    once = extracted(lambda x: tf.exp(tf.sin(x)))
    assert extraction.graph.one_pass_cost >= STEPS * once.graph.one_pass_cost


def test_what_a_branch_keeps_for_its_gradient_is_counted():
    def step(x, chosen):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.cond(chosen, lambda: tf.exp(tf.sin(x) @ x), lambda: x))
        return tape.gradient(loss, x)

    extraction = extracted(step, SPEC, tf.TensorSpec((), tf.bool))
    assert not extraction.unknown
    program = extraction.program
    (branch,) = (
        n
        for n, op in enumerate(program.operations)
        if op.type in ("If", "StatelessIf") and op.outputs[-1].dtype == tf.variant
    )
    variants = [each.dtype == tf.variant for each in program.operations[branch].outputs]
    made = zip(program.produced[branch], variants, strict=True)
    # The sine; x is the caller's, and the exponential is the branch's result.
    assert sum(each.bytes for each, is_variant in made if is_variant) == BYTES


def test_a_step_without_loops_and_calls_has_no_unknown_memory():
    assert not extracted(lambda x: tf.sin(tf.exp(x) @ x)).unknown


def unlimited(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(tf.sin(tf.exp(x)))
        last = tf.while_loop(
            lambda z: tf.reduce_sum(z) > 1e9, lambda z: (tf.exp(tf.sin(z)),), (y,)
        )[0]
        loss = tf.reduce_sum(last) + tf.reduce_sum(tf.cos(y) * y)
    return loss, tape.gradient(loss, x)


def test_what_can_not_be_told_is_said():
    """Nothing says how often this loop runs, so nobody knows what it keeps for its gradient."""
    (operation,) = (op for op in extracted(unlimited).unknown if op.type in LOOPS)
    step = rematerialize(unlimited, budget=1.0, time_limit=1, trial_run=False)
    with warns("memory-depends-on-data", f"{operation.name!r}"):
        step(tf.ones(SPEC.shape))
    assert any(operation.name in note for note in step.plan.notes)


def test_a_loop_over_batches_of_any_size_is_counted_or_said():
    layer = keras.layers.LSTM(64, return_sequences=True)
    layer.build((None, STEPS, 16))

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, training=True))
        return loss, tape.gradient(loss, layer.trainable_variables)

    concrete = tf.function(step).get_concrete_function(tf.TensorSpec((None, STEPS, 16)))
    extraction = extract_step(concrete, batch_size=4)
    counted = lists_of_loops(extraction) >= STEPS * 6 * 4 * 64 * 4
    assert counted or {op.type for op in extraction.unknown} & set(LOOPS)
