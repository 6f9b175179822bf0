"""The largest batch of a step that XLA compiles, beside what the compiler says of its plan."""

from __future__ import annotations

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf import CheckmateWarning
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning.compiled import search
from checkmate_tf.program.rewrite import rewrite
from checkmate_tf.sizing.arguments import parse_step
from checkmate_tf.sizing.without_xla import say_it_leaves_xla
from profiles.measure.compilation import compiled_memory
from solvers import CheckmateError
from tests.dense_steps import dense_model, loss_and_gradient, some_weights
from tests.messages import raises

if held_bytes() is None:
    pytest.skip("the allocator keeps no count", allow_module_level=True)

ROOM = 12 << 20
QUICK = {"time_limit": 0.5, "costs": "roofline"}


@pytest.fixture
def step():
    inner = loss_and_gradient(some_weights(), 5)
    signature = [tf.TensorSpec((None, 64))]
    return tf.function(lambda x: inner(x), input_signature=signature, jit_compile=True)


@pytest.mark.usefixtures("memory_in_one_piece")
def test_it_is_what_the_compiler_says(step, monkeypatch):
    compilations = []

    def counted(*arguments):
        compilations.append(arguments)
        return compiled_memory(*arguments)

    monkeypatch.setattr(search, "compiled_memory", counted)
    budget = held_bytes() + ROOM
    found = checkmate_tf.largest_batch(step, budget, **QUICK)
    assert len(compilations) <= 12
    assert found.confirmed
    assert (found.plan.measured_peak, found.impossible) == (None, None)
    assert 0 < found.unchanged < found.batch_size < found.beyond
    assert found.overhead <= found.most_overhead
    assert found.plan.compiled_peak <= budget
    spec = tf.TensorSpec((found.batch_size, 64))
    open_one = step.get_concrete_function()
    ours = rewrite(open_one, found.plan.schedule, found.batch_size)
    again = tf.function(ours, input_signature=[tf.TensorSpec((None, 64))], jit_compile=True)
    added = compiled_memory(again.get_concrete_function(), [spec]).added
    assert added == found.plan.compiled_peak - found.plan.origin.resident
    assert "compiled" in str(found)
    assert "trial" not in str(found)
    x = tf.ones((found.batch_size, 64))
    expected = float(step(x)[0])
    assert float(found.step(x)[0]) == pytest.approx(expected, rel=1e-3)
    assert found.step.plan.compiled_peak <= budget


@pytest.mark.usefixtures("memory_in_one_piece")
def test_a_budget_below_a_batch_of_one(step):
    with raises(CheckmateError, "no-plan-holds"):
        checkmate_tf.largest_batch(step, held_bytes() + 1000, **QUICK)


def test_for_another_device_it_is_without_xla(step):
    with pytest.warns(CheckmateWarning) as caught:
        found = checkmate_tf.largest_batch(step, device_memory="64MiB", time_limit=0.3)
    assert caught[0].message.code == "forecast-without-xla"
    assert found.plan.compiled_peak is None


@pytest.mark.parametrize("jit_compile", [True, False])
def test_who_is_compiled(step, jit_compile):
    model = dense_model(depth=1)
    model.compile("sgd", "mse", jit_compile=jit_compile)
    assert parse_step(model).is_compiled is jit_compile
    assert parse_step(step).is_compiled
    assert not parse_step(step.python_function).is_compiled


def test_what_is_said_names_the_reason():
    with pytest.warns(CheckmateWarning, match="because it is so") as caught:
        say_it_leaves_xla(CheckmateError("xla-cannot-compile", "it is so"))
    assert caught[0].message.code == "xla-left"
