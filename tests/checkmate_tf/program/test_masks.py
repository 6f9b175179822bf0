"""Large constants of truth values are captured, and everything else is as if Grappler made them."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.planning.trial.trial_run import run_for_trial
from checkmate_tf.program import masks
from checkmate_tf.program.rewrite import as_function, rewrite_extracted
from checkmate_tf.trace.program import resolve
from solvers import Schedule
from tests.processes import printed

SIDE = 2048
MASK = SIDE * SIDE


def causal(x):
    """Each layer makes the same mask for itself."""
    for _ in range(3):
        mask = tf.linalg.band_part(tf.ones(tf.shape(x)), -1, 0) > 0
        x = tf.where(mask, tf.tanh(x), 0.0)
    return tf.reduce_sum(x)


def numbers(x):
    mask = tf.linalg.band_part(tf.ones(tf.shape(x)), -1, 0)
    return tf.reduce_sum(mask * tf.tanh(x))


@pytest.fixture
def step():
    return _extracted(causal)


def _extracted(function, side=SIDE):
    concrete = tf.function(function).get_concrete_function(tf.TensorSpec((side, side)))
    extracted = extract_step(concrete)
    return extracted, Schedule(range(len(extracted.graph)))


def _some(side=SIDE):
    return tf.random.stateless_uniform((side, side), (1, 2))


def test_equal_masks_are_one_tensor_that_is_captured(step):
    extracted, schedule = step
    function = as_function(extracted, schedule)
    (mask,) = function.captured_inputs
    np.testing.assert_array_equal(mask, np.tri(SIDE, dtype=bool))
    assert masks.mask_bytes(function, extracted.program) == MASK
    x = _some()
    np.testing.assert_array_equal(function(x)[0], extracted.program.concrete(x))


def test_as_part_of_another_function(step):
    around = tf.function(rewrite_extracted(*step), autograph=False)
    x = _some()
    np.testing.assert_array_equal(around(x), step[0].program.concrete(x))
    (mask,) = around.get_concrete_function(x).captured_inputs
    assert mask.shape == (SIDE, SIDE)


def test_not_where_xla_compiles(step):
    around = tf.function(rewrite_extracted(*step), autograph=False, jit_compile=True)
    x = _some()
    assert not around.get_concrete_function(x).captured_inputs
    np.testing.assert_allclose(around(x), step[0].program.concrete(x), rtol=1e-5)


@pytest.mark.parametrize(("function", "side"), [(numbers, SIDE), (causal, 512)])
def test_numbers_and_small_masks_are_left_to_grappler(function, side):
    extracted, schedule = _extracted(function, side)
    made = as_function(extracted, schedule)
    assert not made.captured_inputs
    x = _some(side)
    np.testing.assert_allclose(made(x)[0], extracted.program.concrete(x), rtol=1e-6)


@pytest.mark.skipif(held_bytes() is None, reason="the allocator keeps no count")
def test_what_a_step_holds_is_the_same_either_way():
    """In a process of its own: what others have left are pieces that buffers come to lie in."""
    told = "from tests.checkmate_tf.program import test_masks; print(*test_masks.peaks())"
    captured, folded = map(int, printed(told).split())
    assert captured == pytest.approx(folded, abs=MASK // 2)


def peaks():
    """Bytes that the step holds with a mask that is captured, and with one that Grappler folds."""
    for large in (MASK, MASK + 1):
        masks.LARGE = large
        yield min(run_for_trial(*_extracted(causal)).peaks)


def test_it_goes_with_the_function(step):
    before = _held()
    function = as_function(*step)
    if before is not None:
        assert _held() - before >= MASK
    del function
    if before is not None:
        assert _held() - before < MASK // 2


def _held():
    gc.collect()
    return held_bytes()


def test_counting_them_asks_for_nothing_that_is_captured_at_each_call():
    """To ask is a call of the step: workers that do so at different times wait for ever."""
    asked = []

    def value():
        asked.append(True)
        return tf.constant(2.0)

    @tf.function
    def step(x):
        graph = tf.compat.v1.get_default_graph()
        return x * graph.capture_call_time_value(value, tf.TensorSpec(()))

    concrete = step.get_concrete_function(tf.TensorSpec((4,)))
    before = len(asked)
    assert masks.mask_bytes(concrete, resolve(concrete)) == 0
    assert len(asked) == before
