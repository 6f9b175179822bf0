"""A trial run measures, and nothing of the user's is touched by it."""

from __future__ import annotations

import random
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.cpu import NO_HIGHER_STEPS
from checkmate_tf.devices.current import current_device, planned_as
from checkmate_tf.devices.device import Device
from checkmate_tf.devices.measure import held_bytes, measure_peak
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.planning.settings import (
    EQUAL_STEPS,
    FIRST_TRIAL_STEPS,
    TRIAL_STEPS,
    UNCHANGED_STEPS,
)
from checkmate_tf.planning.trial import trial_run as trial_run_module
from checkmate_tf.planning.trial.trial_run import (
    can_run_for_trial,
    run_for_trial,
    run_unchanged,
    warm_up,
)
from solvers import Schedule
from tests.steps import SPEC, extraction_of, noisy_question, random_batch, small_cnn, snapshot


def run_in_order(step):
    """The trial run of a step of one argument, in the order in which it was traced."""
    extracted = extraction_of(step)
    assert can_run_for_trial(extracted)
    trial_run = run_for_trial(extracted, Schedule(range(len(extracted.graph))))
    assert trial_run.peaks
    return trial_run


def bits(variables):
    """What the variables hold, to the last bit, as bytes or (of text) as a list."""
    values = [np.array(each) for each in variables]
    return [each.tolist() if each.dtype == object else each.tobytes() for each in values]


def test_variables_of_a_model_stay_as_they_are():
    model = small_cnn(dropout=0.3)
    extracted = extract_step(tf.function(model.train_step).get_concrete_function(random_batch()))
    assert can_run_for_trial(extracted)
    before = snapshot(model)
    trial_run = run_for_trial(extracted, Schedule(range(len(extracted.graph))))
    assert len(trial_run.peaks) > 1
    assert min(trial_run.peaks) > extracted.program.fixed_bytes
    for old, new in zip(before, snapshot(model), strict=True):
        assert np.array_equal(old, new)
    assert trial_run.function is not None


def random_rows(more):
    """A step that draws so many more random numbers every time."""
    rows = tf.Variable(1 << 18)

    def step(x):
        noise = tf.random.stateless_uniform([rows.assign_add(more)], [0, 1])
        return tf.reduce_sum(tf.exp(x)) + tf.reduce_sum(tf.sin(noise))

    return extraction_of(step)


def test_fewer_steps_where_the_first_ones_leave_no_doubt():
    extracted, seen = random_rows(1 << 20), []

    def says_enough(peak):
        seen.append(peak)
        return True

    trial_run = run_for_trial(extracted, Schedule(range(len(extracted.graph))), says_enough)
    assert len(trial_run.peaks) == FIRST_TRIAL_STEPS
    assert seen == [max(trial_run.peaks)]


@pytest.mark.parametrize("more", [0, 1 << 20])
def test_fewer_steps_where_they_repeat_themselves(more):
    extracted = random_rows(more)
    schedule = Schedule(range(len(extracted.graph)))
    # In one of them another thread of this process may free memory meanwhile.
    steps = min(len(run_for_trial(extracted, schedule).peaks) for _ in range(3))
    assert FIRST_TRIAL_STEPS < steps <= TRIAL_STEPS if more else steps == EQUAL_STEPS


def test_a_step_in_which_kernels_are_tried_is_not_held_against_a_plan():
    rows = tf.Variable(1 << 22)

    def step(x):
        noise = tf.random.stateless_uniform([rows.read_value()], [0, 1])
        with tf.control_dependencies([noise]):
            rows.assign(1 << 18)
        return tf.reduce_sum(tf.exp(x)) + tf.reduce_sum(tf.sin(noise))

    counted = run_in_order(step)
    assert counted.first is None
    assert counted.peaks[0] > max(counted.peaks[1:]) + (4 << 20)
    with planned_as(replace(current_device(), tries_kernels=True)):
        tried = run_in_order(step)
    assert tried.first > max(tried.peaks) + (4 << 20)
    assert rows.numpy() == 1 << 22


def test_an_unchanged_step_runs_until_none_holds_more():
    extracted = extraction_of(lambda x: tf.reduce_sum(tf.exp(x)))
    assert len(run_unchanged(extracted).added) == NO_HIGHER_STEPS + 1
    growing = run_unchanged(random_rows(1 << 20)).added
    has_settled = max(growing[:-NO_HIGHER_STEPS]) == max(growing)
    assert has_settled or len(growing) == UNCHANGED_STEPS
    assert max(growing) > 2 * growing[0]
    with planned_as(Device("CPU:0")):
        run = run_unchanged(extracted)
    assert len(run.added) == UNCHANGED_STEPS
    assert len(run.seconds) == UNCHANGED_STEPS + 1


def test_a_process_warms_up_only_where_kernels_are_tried():
    variable = tf.Variable(tf.ones((512, 512)))
    extracted = extraction_of(lambda x: x + tf.reduce_sum(variable.assign_add(tf.exp(variable))))
    in_order = Schedule(range(len(extracted.graph)))
    assert warm_up(extracted, in_order, 0) is None
    with planned_as(replace(current_device(), tries_kernels=True)):
        run = warm_up(extracted, in_order, 0)
    assert run.peaks == ()
    assert run.first > 2 * variable.numpy().nbytes
    assert (variable.numpy() == 1).all()
    run.function(tf.ones(SPEC.shape))
    assert variable.numpy() == pytest.approx(1 + np.exp(1))


def test_every_bit_stays():
    """Minus zero, infinities, NaN, denormals; and types of all kinds."""
    values = [
        np.array([1.5, -2.25e-30, 3e30, 0.1], np.float32),
        np.array([-0.0, 1.0], np.float32),
        np.array([np.inf, np.nan, -np.inf], np.float32),
        np.array([1e-45, -1e-40], np.float32),
        np.array([2**62 + 1, -3], np.int64),
        np.array([True, False]),
        np.array(0.3, np.float64),
    ]
    variables = [tf.Variable(each) for each in values]
    variables += [tf.Variable([0.1, -7.0], dtype=tf.bfloat16), tf.Variable(["a", "b"])]

    def step(x):
        for each in variables:
            if each.dtype == tf.bool:
                each.assign(tf.logical_not(each))
            elif each.dtype == tf.string:
                each.assign(each + "!")
            else:
                each.assign_add(tf.ones_like(each))
        return tf.reduce_sum(tf.exp(x))

    before = bits(variables)
    run_in_order(step)
    assert bits(variables) == before


def through_identity(variable):
    handle = tf.identity(variable.handle)
    tf.raw_ops.AssignVariableOp(resource=handle, value=9 * tf.ones((2,)))


def in_a_loop(variable):
    for _ in tf.range(3):
        variable.assign_add(tf.ones((2,)))


def in_a_branch(variable):
    if tf.reduce_sum(variable) < 100.0:
        variable.assign_add(tf.ones((2,)))


def in_a_function(variable):
    @tf.function
    def inner():
        tf.function(lambda: variable.assign_add(tf.ones((2,))))()

    inner()


@pytest.mark.parametrize("write", [through_identity, in_a_loop, in_a_branch, in_a_function])
def test_every_way_of_writing_is_seen(write):
    variable = tf.Variable([1.0, 1.0])
    write = tf.autograph.to_graph(write)

    def step(x):
        write(variable)
        return tf.reduce_sum(tf.exp(x))

    run_in_order(step)
    assert bits([variable]) == bits([tf.constant([1.0, 1.0])])
    tf.function(step)(tf.zeros(SPEC.shape))
    assert bits([variable]) != bits([tf.constant([1.0, 1.0])])


def test_what_ran_for_trial_trains_the_variables():
    """One function serves both, and after the trial it works on the user's variables."""
    variable = tf.Variable([1.0, 1.0])

    def step(x):
        variable.assign_add([1.0, 2.0])
        return tf.reduce_sum(tf.exp(x))

    extracted = extraction_of(step)
    trial_run = run_for_trial(extracted, Schedule(range(len(extracted.graph))))
    trial_run.function(tf.zeros(SPEC.shape))
    assert variable.numpy().tolist() == [2.0, 3.0]


def test_a_variable_whose_shape_may_change():
    growing = tf.Variable(tf.ones((2, 256)), shape=[None, 256])
    other = tf.Variable(3.0)

    def step(x):
        growing.assign(tf.concat([growing, tf.zeros((1, 256))], 0))
        other.assign_add(1.0)
        return tf.reduce_sum(tf.exp(x))

    run_in_order(step)
    assert growing.numpy().tolist() == np.ones((2, 256)).tolist()
    assert other.numpy() == 3.0
    tf.function(step)(tf.zeros(SPEC.shape))
    assert growing.numpy().shape == (3, 256)


def trained_model():
    """A small model whose optimizer, metrics and seed generators have values of their own."""
    model = small_cnn(dropout=0.3, side=8)
    model.train_step(random_batch(side=8))
    return model


@pytest.fixture(scope="module")
def model_and_step():
    model = trained_model()
    traced = tf.function(model.train_step).get_concrete_function(random_batch(side=8))
    return model, extract_step(traced)


def interrupt():
    signal.raise_signal(signal.SIGINT)


def fail():
    raise MemoryError("injected")


@pytest.mark.parametrize("end", [interrupt, fail])
@pytest.mark.parametrize("run", [0, 1, EQUAL_STEPS - 1])
@pytest.mark.parametrize("after", [False, True])
def test_an_end_in_the_midst_of_a_trial_run_changes_nothing(
    model_and_step, monkeypatch, end, run, after
):
    model, extracted = model_and_step
    runs = []

    def measured(*args, **kwargs):
        if len(runs) == run and not after:
            end()
        runs.append(measure_peak(*args, **kwargs))
        if len(runs) == run + 1:
            end()
        return runs[-1]

    monkeypatch.setattr(trial_run_module, "measure_peak", measured)
    before = [np.array(each).tobytes() for each in snapshot(model)]
    with pytest.raises((KeyboardInterrupt, MemoryError)):
        run_for_trial(extracted, Schedule(range(len(extracted.graph))))
    assert len(runs) == run + after
    assert [np.array(each).tobytes() for each in snapshot(model)] == before


def test_ctrl_c_at_any_line_changes_nothing():
    """Signals come at lines all over the trial run, one in each, to the very last."""
    variables = [tf.Variable([np.nan, -0.0, 1.0]), tf.Variable([[5.0]], shape=[None, 1])]

    def step(x):
        variables[0].assign_add([1.0, 1.0, 1.0])
        variables[1].assign(tf.concat([variables[1], [[1.0]]], 0))
        return tf.reduce_sum(tf.exp(x))

    extracted = extraction_of(step)
    schedule = Schedule(range(len(extracted.graph)))
    before = bits(variables)
    folder = Path(trial_run_module.__file__).parent
    files = {str(folder / name) for name in ("trial_run.py", "variable_copies.py")}

    def run(until=None):
        """How many lines ran, up to the signal that comes at the line `until`, if any."""
        lines = 0

        def trace(frame, event, argument):
            nonlocal lines
            if frame.f_code.co_filename not in files:
                return None
            if event == "line":
                lines += 1
                if lines == until:
                    signal.raise_signal(signal.SIGINT)
            return trace

        earlier = sys.gettrace()
        sys.settrace(trace)
        try:
            run_for_trial(extracted, schedule)
        finally:
            sys.settrace(earlier)
        return lines

    total = run()
    assert total > 30
    for line in {*range(1, total, 4), *range(total - 8, total + 1)}:
        with pytest.raises(KeyboardInterrupt):
            run(until=line)
        assert bits(variables) == before, f"line {line} of {total}"


def test_other_threads_see_nothing():
    variables = [tf.Variable(tf.ones((64, 64))), tf.Variable([1.0, 2.0])]

    def step(x):
        for each in variables:
            each.assign_add(tf.ones_like(each))
        return tf.reduce_sum(tf.exp(x))

    extracted = extraction_of(step)
    before = bits(variables)
    seen, over = [], threading.Event()

    def watch():
        while not over.is_set():
            seen.append(bits(variables))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        for _ in range(3):
            run_for_trial(extracted, Schedule(range(len(extracted.graph))))
    finally:
        over.set()
        thread.join()
    assert seen
    assert all(each == before for each in seen)


def deep_step(generator, keras_seed, depth=8):
    """Draws from generators of its own, and has something to recompute."""
    weights = tf.Variable(tf.random.stateless_normal((64, 64), (1, 2)) / 8)

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x + 1e-3 * generator.normal(x.shape)
            y = keras.random.dropout(y, 0.1, seed=keras_seed)
            for _ in range(depth):
                y = tf.tanh(y @ weights)
            loss = tf.reduce_sum(y)
        return loss, tape.gradient(loss, weights)

    return step


@pytest.mark.parametrize("costs", ["roofline", "profile"])
def test_no_generator_moves(costs, tmp_path, monkeypatch):
    """Those of TensorFlow, Keras, numpy and Python give what they give without a plan."""
    if costs == "profile":
        monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path))  # nothing was measured before

    def numbers(plan):
        tf.random.set_seed(11)
        np.random.seed(12)
        random.seed(13)
        keras.utils.set_random_seed(14)
        generator = tf.random.Generator.from_seed(15)
        keras_seed = keras.random.SeedGenerator(16)
        step = checkmate_tf.rematerialize(
            deep_step(generator, keras_seed), budget=0.8, time_limit=4, costs=costs
        )
        x = tf.ones((512, 64))
        tf.random.uniform(())
        tf.random.uniform((), seed=3)
        if plan:
            concrete = tf.function(deep_step(generator, keras_seed)).get_concrete_function(x)
            step._runs.planned(concrete, None)
            assert step.plan is not None
            if held_bytes() is not None:
                assert step.plan.measured_peak is not None
        return [
            tf.random.uniform(()).numpy(),
            tf.random.uniform((), seed=3).numpy(),
            next(iter(tf.data.Dataset.range(1000).shuffle(1000))).numpy(),
            generator.uniform(()).numpy(),
            generator.state.numpy().tolist(),
            keras_seed.state.numpy().tolist(),
            np.array(keras.random.normal(())),
            np.random.random(),
            random.random(),
        ]

    assert numbers(plan=True) == numbers(plan=False)


@pytest.mark.usefixtures("memory_in_one_piece")
def test_random_numbers_are_not_used_up():
    """Operations that draw from their kernel's generator give what they give the plain step."""
    noisy, x, expected = noisy_question()
    step = checkmate_tf.rematerialize(noisy, budget=0.8, time_limit=4)
    losses = [step(x)[0].numpy() for _ in range(3)]
    if held_bytes() is not None:
        assert step.plan.measured_peak is not None
    assert len(set(expected)) == 3
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


def test_a_step_that_refuses_made_up_inputs_is_planned_by_the_forecast():
    @tf.function
    def step(x, positive):
        tf.debugging.Assert(tf.reduce_all(positive > 0), ["only positive ones"])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(6):
                y = tf.tanh(y @ tf.ones((128, 128)))
            loss = tf.reduce_sum(y)
        return loss, tape.gradient(loss, x)

    labels = tf.ones((8,), tf.int32)
    rematerialized = checkmate_tf.rematerialize(step, budget=0.9, time_limit=4)
    loss, _ = rematerialized(tf.ones((512, 128)), labels)
    assert np.isfinite(loss.numpy())
    assert rematerialized.plan.measured_peak is None
    if held_bytes() is not None:
        refused = [note for note in rematerialized.plan.notes if "made-up inputs" in note]
        assert any("only positive ones" in note for note in refused)
    with pytest.raises(tf.errors.InvalidArgumentError):
        rematerialized(tf.ones((512, 128)), 0 * labels)
