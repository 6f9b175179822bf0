"""The largest batch of real steps, beside what the allocator holds when they train."""

from __future__ import annotations

import signal

import keras
import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf import CheckmateError
from checkmate_tf.batches import question as question_module
from checkmate_tf.devices import cpu
from checkmate_tf.devices.current import planned_as
from checkmate_tf.devices.measure import held_bytes, measure_peak
from solvers import Status, simulate, solve
from tests.dense_steps import dense_model
from tests.memory import memory_in_one_piece
from tests.messages import raises

MIB = 2**20
WIDTH = 128
ROOM = 24 * MIB


def chain(weights, depth=8):
    def step(x, rate):
        with tf.GradientTape() as tape:
            for _ in range(depth):
                x = tf.tanh(x @ weights)
            loss = rate * tf.reduce_sum(x)
        return loss, tape.gradient(loss, weights)

    return step


@pytest.fixture(scope="module")
def question():
    """A step, an example of its arguments, and a budget in bytes."""
    weights = tf.Variable(tf.random.stateless_normal((WIDTH, WIDTH), (1, 2)) / 11)
    batch = (tf.TensorSpec((None, WIDTH)), tf.TensorSpec(()))
    with memory_in_one_piece():
        yield chain(weights), batch, held_bytes() + ROOM


@pytest.fixture(scope="module")
def found(question):
    step, batch, budget = question
    # Not the device's own costs: what is fast enough must not depend on the machine.
    return checkmate_tf.largest_batch(step, budget, batch, time_limit=2, costs="roofline")


def inputs(size):
    """In one buffer each: temporary ones would leave pieces, which would be in the figures."""
    x = np.random.default_rng(3).normal(size=(size, WIDTH)).astype(np.float32)
    return tf.raw_ops.DeepCopy(x=x), tf.constant(0.5)


@pytest.mark.slow
def test_it_trains_within_the_budget_where_the_plain_step_does_not(question, found):
    step, _, budget = question
    x, rate = inputs(found.batch_size)
    assert found.confirmed
    for _ in range(3):
        assert measure_peak(found.step, x, rate) <= budget
    plain = tf.function(step)
    plain(x, rate)
    assert measure_peak(plain, x, rate) > budget
    for ours, theirs in zip(found.step(x, rate), plain(x, rate), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-2)


def test_the_unchanged_step_needs_the_budget_at_its_own_largest_batch(question, found):
    step, _, budget = question
    assert 0 < found.unchanged < found.batch_size, found.why
    plain = tf.function(step)
    for share, fits in ((0.75, True), (1.3, False)):
        x, rate = inputs(int(share * found.unchanged))
        plain(x, rate)
        assert (measure_peak(plain, x, rate) <= budget) == fits


def test_the_step_takes_the_plan_that_was_found(found):
    """No new search: one ends elsewhere, and the plan says how many seconds it took.

    A step that held a little more than the budget would be planned again: so the batch is smaller.
    """
    x, rate = inputs(found.batch_size * 9 // 10)
    found.step(x, rate)
    assert found.step.plan.schedule == found.plan.schedule
    assert found.step.plan.solution.seconds == found.plan.solution.seconds


def test_the_extra_time_is_at_most_that_of_one_more_forward_pass(question, found):
    step, _, _ = question
    plan = found.plan
    extra = simulate(plan.graph, plan.schedule).cost - plan.graph.one_pass_cost
    assert extra == pytest.approx(found.extra_seconds)

    def forward(x, rate):
        for _ in range(8):
            x = tf.tanh(x @ step.__closure__[1].cell_contents)
        return rate * tf.reduce_sum(x)

    x, rate = tf.TensorSpec((found.batch_size, WIDTH)), tf.TensorSpec(())
    alone = checkmate_tf.extract(tf.function(forward).get_concrete_function(x, rate))
    assert extra <= 1.01 * alone.one_pass_cost


def test_what_is_held_beside_the_step_is_no_room_for_its_batch(monkeypatch):
    """Kernels are run at the sizes of about twice the batch that fits, not at any beyond."""
    extracted, sizes = question_module.extract_program, []

    def noted(program, *rest):
        sizes.append(program.argument_bytes)
        return extracted(program, *rest)

    monkeypatch.setattr(question_module, "extract_program", noted)
    beside = tf.raw_ops.Empty(shape=[16 * ROOM], dtype=tf.uint8)  # no page of it is touched
    step = chain(tf.Variable(tf.ones((WIDTH, WIDTH))))
    batch = (tf.TensorSpec((None, WIDTH)), tf.TensorSpec(()))
    checkmate_tf.largest_batch(step, held_bytes() + ROOM, batch, time_limit=0.3, costs="roofline")
    assert 0 < sizes[0] < ROOM
    del beside


def test_it_reads_well(found):
    text = str(found)
    assert f"largest batch         {found.batch_size} (unchanged step: {found.unchanged}" in text
    assert "grows with the batch  x\nstays as it is        rate" in text
    assert "trial run             confirmed" in text
    assert max(map(len, text.splitlines())) < 80


def test_what_is_impossible_is_infeasible(question, found):
    step, _, budget = question
    assert found.batch_size < found.beyond <= found.impossible
    specs = tf.TensorSpec((found.impossible, WIDTH)), tf.TensorSpec(())
    graph = checkmate_tf.extract(tf.function(step).get_concrete_function(*specs))
    held = budget - ROOM + sum(each.dtype.size * each.shape.num_elements() for each in specs)
    beside = max(0, held - graph.fixed_bytes)  # of other tests in this process
    assert solve(graph, budget - beside, "milp", 60).status == Status.INFEASIBLE


def test_a_keras_model_for_a_device_that_is_not_there():
    """Nothing runs: no weight changes."""
    model = dense_model(depth=2)
    model.compile("adam", "mse", jit_compile=False)
    before = model.get_weights()
    data = tf.data.Dataset.from_tensors((np.zeros((8, 64)), np.zeros((8, 1)))).repeat(2)
    found = checkmate_tf.largest_batch(
        model, "90%", data, device_memory="64GiB", costs="roofline:GPU", time_limit=0.5
    )
    assert found.plan.predicted_peak <= 0.9 * 2**36
    assert found.batch_size >= found.unchanged > 10**6
    assert found.grows == ("data[0]", "data[1]")
    assert (found.step, found.confirmed) == (None, False)
    assert "not confirmed by a trial run: planned for another device" in " ".join(
        str(found).split()
    )
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_step_that_reads_its_batch_size_while_it_is_traced():
    """Each size has a trace of its own, of the same operations."""
    plain = chain(tf.Variable(tf.ones((WIDTH, WIDTH))), 4)

    def step(x, rate):
        return plain(tf.reshape(x, (x.shape[0] * 2, WIDTH)), rate)

    batch = (np.zeros((4, 2 * WIDTH), np.float32), np.float32(1))
    options = {"device_memory": "64MiB", "time_limit": 0.3}
    halves = checkmate_tf.largest_batch(step, batch=batch, **options)
    whole = checkmate_tf.largest_batch(plain, batch=(tf.TensorSpec((None, WIDTH)), 1.0), **options)
    assert halves.unchanged == pytest.approx(whole.unchanged / 2, rel=0.02)


def test_without_the_memory_there_is_no_trial_run(question, monkeypatch, tmp_path):
    step, batch, _ = question
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable:    2048 kB\n")
    monkeypatch.setattr(cpu, "_MEMORY", tmp_path / "meminfo")
    with planned_as(cpu.Cpu("CPU:0")):
        found = checkmate_tf.largest_batch(step, 2**40, batch, time_limit=1)
    assert "free here, less than the budget" in found.confirmation
    assert found.step is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"budget": "64KiB"}, "budget-too-small"),
        ({"budget": "50%"}, "budget-not-in-bytes"),
        ({"budget": 10**30}, "batch-refused"),
        ({"budget": None}, "argument-missing"),
        ({"budget": "2GiB", "device_memory": "1GiB"}, "budget-above-the-device"),
        ({"batch": None}, "argument-missing"),
        ({"batch": np.zeros((4, 8))}, "example-does-not-fit"),
        ({"batch": (np.float32(1), 2.0)}, "example-without-batch"),
        ({"overhead": "much"}, "argument-invalid"),
        ({"costs": "profile", "device_memory": "1GiB"}, "costs-measured-here"),
        ({"costs": "device", "device_memory": "1GiB"}, "costs-measured-here"),
        ({"step": keras.Sequential([keras.layers.Dense(1)])}, "model-not-compiled"),
        ({"step": 3}, "not-a-step"),
        ({"step": lambda x, rate: x}, "step-empty"),
    ],
)
def test_bad_questions(question, changes, code):
    step, batch, _ = question
    asked = {"step": step, "budget": "4MiB", "batch": batch, "time_limit": 1, **changes}
    with raises(CheckmateError, code):
        checkmate_tf.largest_batch(**asked)


def test_what_does_not_grow():
    step = chain(tf.Variable(tf.ones((WIDTH, WIDTH))))
    batch = tf.TensorSpec((None, 0)), np.zeros((8, WIDTH), np.float32)
    with raises(CheckmateError, "nothing-grows-with-the-batch"):
        checkmate_tf.largest_batch(lambda x, other: step(other, 1.0), "1MiB", batch)


def test_ctrl_c_ends_it_and_leaves_nothing_behind(question):
    _, batch, budget = question
    handler = signal.getsignal(signal.SIGINT)

    def step(x, rate):
        signal.raise_signal(signal.SIGINT)
        return tf.reduce_sum(x)

    with pytest.raises(KeyboardInterrupt):
        checkmate_tf.largest_batch(step, budget, batch)
    assert signal.getsignal(signal.SIGINT) is handler
