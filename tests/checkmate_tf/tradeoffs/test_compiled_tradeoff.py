"""Budget against extra time of a step that XLA compiles: each peak is what the compiler says."""

from __future__ import annotations

import signal
from itertools import pairwise

import pytest
import tensorflow as tf

import checkmate_tf
import solvers
from checkmate_tf import CheckmateWarning
from checkmate_tf.program.rewrite import rewrite
from profiles.measure.compilation import compiled_memory
from solvers import SOLVERS, Schedule
from tests.dense_steps import loss_and_gradient, some_weights

SPEC = tf.TensorSpec((2048, 64))
QUICK = {"points": 3, "time_limit": 0.5, "costs": "roofline"}


@pytest.fixture(scope="module")
def step():
    return tf.function(loss_and_gradient(some_weights(), 8), jit_compile=True)


@pytest.fixture(scope="module")
def result(step):
    return checkmate_tf.tradeoff(step, SPEC, **QUICK)


def test_each_peak_is_the_compilers(step, result):
    assert 2 <= len(result) <= 3
    concrete = step.get_concrete_function(SPEC)
    leanest = rewrite(concrete, result[-1].plan.schedule)
    for point, ours in ((result[0], concrete), (result[-1], leanest)):
        again = tf.function(lambda x, ours=ours: ours(x), jit_compile=True)
        memory = compiled_memory(again.get_concrete_function(SPEC), [SPEC])
        assert point.budget == point.peak == point.plan.origin.resident + memory.added
    assert result.plain_peak == result[0].peak


def test_less_memory_takes_more_time(result):
    assert result[0].plan.schedule == Schedule(range(len(result[0].plan.graph)))
    for more, less in pairwise(result):
        assert less.peak < more.peak
        assert less.overhead >= more.overhead
    assert result[-1].overhead > 0


def test_it_says_that_it_is_compiled(result, tmp_path):
    text = str(result)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("compiled") == len(result) + 2
    assert not any(other in text for other in ("planned", "measured", "no schedule exists"))
    result.plot(tmp_path / "curve.png")


@pytest.mark.parametrize("number", [0, -1])
def test_a_point_can_be_taken(step, result, number):
    plan = result[number].plan
    ours = checkmate_tf.rematerialize(step, plan=plan, budget=plan.budget + (64 << 20))
    x = tf.random.stateless_normal(SPEC.shape, (1, 2))
    assert float(ours(x)[0]) == pytest.approx(float(step(x)[0]), rel=1e-3, abs=1e-2)
    assert ours.plan.schedule == plan.schedule
    assert ours.plan.compiled_peak - plan.compiled_peak == pytest.approx(0, abs=64 << 20)


def test_ctrl_c_gives_what_is_known(step):
    @solvers.register("pressing_ctrl_c")
    def pressing_ctrl_c(problem):
        signal.raise_signal(signal.SIGINT)

    try:
        found = checkmate_tf.tradeoff(step, SPEC, solver="pressing_ctrl_c", points=4, time_limit=1)
    finally:
        SOLVERS.pop("pressing_ctrl_c")
    assert found.stopped
    assert len(found) == 2


def said(step, **options):
    with pytest.warns(CheckmateWarning) as caught:
        found = checkmate_tf.tradeoff(step, SPEC, **QUICK | options)
    assert {point.how for point in found} == {"planned"}
    return {each.message.code for each in caught if isinstance(each.message, CheckmateWarning)}


def test_for_another_device_it_is_a_forecast_without_xla(step):
    assert said(step, elsewhere=True) == {"forecast-without-xla"}


def test_what_xla_cannot_compile_is_answered_without_it():
    inner = loss_and_gradient(some_weights(), 6)

    @tf.function(jit_compile=True)
    def step(x):
        loss, gradient = inner(x)
        return tf.strings.as_string(loss), gradient

    assert said(step) == {"xla-left"}
