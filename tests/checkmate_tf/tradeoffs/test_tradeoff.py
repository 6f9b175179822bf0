"""Budget against extra time, beside an exact solver and what the allocator holds."""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
from itertools import pairwise

import keras
import numpy as np
import pytest
import tensorflow as tf
from matplotlib import image

import checkmate_tf
import solvers
from checkmate_tf import CheckmateError
from solvers import SOLVERS, Schedule, Status, simulate, solve
from tests.dense_steps import dense_model, loss_and_gradient, numbers, same, some_weights, variables
from tests.messages import raises

ROOM = 64 * 2**20
"""Bytes that other tests may let go, or hold, between planning and training."""

MEASURED = """
import json
import tensorflow as tf
import checkmate_tf
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import held_bytes, measure_peak
from tests.dense_steps import loss_and_gradient, some_weights

current_device().reserve(1 << 28)
step, spec = loss_and_gradient(some_weights(), 6), tf.TensorSpec((2048, 64))
result = checkmate_tf.tradeoff(step, spec, points=5, order="fixed", time_limit=4, trial_run=True)
x = tf.random.stateless_normal(spec.shape, (1, 2))
found = []
for point in result:
    ours = checkmate_tf.rematerialize(step, plan=point.plan, budget="1GiB", trial_run=False)
    ours(x)
    held = held_bytes()
    peaks = [measure_peak(ours, x) - held for _ in range(5)]
    found.append([point.budget - point.plan.origin.resident, peaks])
print(json.dumps(found))
"""
"""What each point's budget leaves for the step, and what the step takes of it."""


@pytest.fixture(scope="module")
def step():
    gc.collect()
    return loss_and_gradient(some_weights(), 6)


@pytest.fixture(scope="module")
def result(step):
    x = tf.TensorSpec((2048, 64))
    return checkmate_tf.tradeoff(step, x, points=5, order="fixed", time_limit=4, trial_run=True)


def test_less_memory_never_takes_less_time(result):
    assert len(result) > 3
    for more, less in pairwise(result):
        assert less.budget < more.budget
        assert less.overhead >= more.overhead
    assert result[0].budget >= result.plain_peak
    assert result[0].overhead == 0
    assert result[-1].overhead > 0
    for point in result:
        plan = point.plan
        assert point.peak <= point.budget
        cost = simulate(plan.graph, plan.schedule).cost
        assert cost == pytest.approx(plan.graph.one_pass_cost * (1 + point.overhead), rel=1e-8)


def test_what_is_proved_is_true(result):
    """Beside the paper's integer program."""
    proved = [point for point in result if point.least_overhead is not None]
    assert proved
    for point in proved:
        plan = point.plan
        best = solve(plan.graph, plan.solution.budget, "milp", 60)
        assert best.status == Status.OPTIMAL
        least = plan.graph.one_pass_cost * (1 + point.least_overhead)
        assert least <= best.cost * (1 + 1e-6)
    plan = result[0].plan
    beside = plan.origin.resident - plan.graph.fixed_bytes
    below = result.impossible - beside - 1
    assert solve(plan.graph, below, "milp", 60).status == Status.INFEASIBLE


@pytest.mark.parametrize("number", [1, -1])
def test_a_point_can_be_taken(step, result, number, tmp_path, capsys):
    """The step runs by that plan, in that memory, with the same results."""
    paths = result.save(tmp_path)
    assert [path.name for path in paths] == [f"plan-{each}.json" for each in range(len(result))]
    plan = result[number].plan
    assert result[number].is_measured
    x = tf.random.stateless_normal((2048, 64), (1, 2))
    expected = step(x)
    for given in (plan, paths[number]):
        ours = checkmate_tf.rematerialize(step, plan=given, budget=plan.budget + ROOM)
        for one, other in zip(ours(x), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
        assert ours.plan.schedule == plan.schedule
        assert "by the plan that was named" in capsys.readouterr().err


@pytest.mark.slow
def test_a_point_keeps_its_budget():
    """In a process of its own: what other tests let go meanwhile would be in the figures."""
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED], check=True, capture_output=True, text=True
    )
    found = json.loads(ended.stdout.splitlines()[-1])
    assert len(found) > 3
    for allowed, peaks in found:
        assert max(peaks) <= allowed
    most, least = max(found[0][1]), max(found[-1][1])
    assert least < 0.8 * most


def test_it_reads_well(result):
    text = str(result)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines if line.strip()[:1].isdigit() and "MiB" not in line]
    assert [int(row[0]) for row in rows] == list(range(len(result)))
    assert [float(row[1]) for row in rows] == [
        pytest.approx(point.budget / 2**20, abs=0.0051) for point in result
    ]
    assert rows[0][3] == "%"
    assert "measured" in text
    assert "planned" not in text


def test_the_picture(result, tmp_path):
    figure = result.plot()
    axes = figure.axes[0]
    low, high = axes.get_xlim()
    for point in result:
        assert low < point.budget / 2**20 < high
    assert axes.get_xlabel() == "budget, MiB"
    result.plot(tmp_path / "curve.png")
    assert image.imread(tmp_path / "curve.png").shape[0] > 300
    with raises(CheckmateError, "picture-format-unknown"):
        result.plot(tmp_path / "curve.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["curve.png"]


def test_nothing_of_a_model_changes_and_its_plan_trains():
    """Planned ahead of `fit`, and not run for trial."""
    plain, ours = dense_model(), dense_model()
    for model in (plain, ours):
        model.compile("adam", "mse", jit_compile=False)
        model.optimizer.build(model.trainable_variables)
    before = variables(ours)
    x, y = numbers(256)
    result = checkmate_tf.tradeoff(ours, x, y, points=3, time_limit=1)
    for one, other in zip(before, variables(ours), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not any(point.is_measured for point in result)
    assert "planned" in str(result)
    plan = result[-1].plan
    checkmate_tf.rematerialize(ours, plan=plan, budget=plan.budget + ROOM)
    for model in (plain, ours):
        model.fit(*numbers(512), batch_size=256, epochs=1, verbose=0, shuffle=False)
    assert ours.train_step.plan.schedule == plan.schedule
    same(variables(ours), variables(plain))


def test_the_ways_to_give_a_step_are_one(step):
    """A type, an array, a signature, a trace, a data set; and two for a batch of any size."""
    options = {"points": 2, "time_limit": 0.2, "elsewhere": True, "costs": "roofline:GPU"}
    array, spec = np.zeros((256, 64), np.float32), tf.TensorSpec((256, 64))
    fixed_one = tf.function(step, input_signature=[spec])
    open_one = tf.function(step, input_signature=[tf.TensorSpec((None, 64))])

    def found(*asked, **size):
        return checkmate_tf.tradeoff(*asked, **options, **size)

    of_one_size = [
        found(step, spec),
        found(step, array),
        found(fixed_one),
        found(fixed_one.get_concrete_function()),
        found(step, tf.data.Dataset.from_tensors(array)),
    ]
    of_any = [found(open_one, array), found(open_one, batch_size=256)]
    for alike in (of_one_size, of_any):
        assert len({each[0].plan.origin.content for each in alike}) == 1
        assert len({each.plain_peak for each in alike}) == 1
        assert {each[0].plan.origin.device for each in alike} == {"another device"}


def test_ctrl_c_gives_what_is_known(step):
    handler = signal.getsignal(signal.SIGINT)

    @solvers.register("pressing_ctrl_c")
    def pressing_ctrl_c(problem):
        signal.raise_signal(signal.SIGINT)

    try:
        x = tf.TensorSpec((512, 64))
        found = checkmate_tf.tradeoff(step, x, solver="pressing_ctrl_c", time_limit=1)
    finally:
        SOLVERS.pop("pressing_ctrl_c")
    assert found.stopped
    assert len(found) == 2
    assert found[0].plan.schedule == Schedule(range(len(found[0].plan.graph)))
    assert "2 of 9 points" in str(found)
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize(
    ("asked", "options", "code"),
    [
        ([keras.Sequential([keras.layers.Dense(1)])], {}, "model-not-compiled"),
        ([3], {}, "not-a-step"),
        ([lambda x: x, 1.0, 2.0], {}, "example-does-not-fit"),
        ([lambda x: x + 1, tf.TensorSpec((8,))], {}, "nothing-to-recompute"),
        ([lambda x: x, 1.0], {"points": 1}, "argument-invalid"),
        ([lambda x: x, 1.0], {"elsewhere": True, "costs": "profile"}, "costs-measured-here"),
        ([lambda x: x, 1.0], {"elsewhere": True, "costs": "device"}, "costs-measured-here"),
        ([lambda x: x, 1.0], {"solver": "aut"}, "solver-unknown"),
    ],
)
def test_bad_questions(asked, options, code):
    with raises(CheckmateError, code):
        checkmate_tf.tradeoff(*asked, **options)
