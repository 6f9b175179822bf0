"""Bad arguments are errors when the step is decorated, not at its first call."""

from __future__ import annotations

import numpy as np
import pytest

import checkmate_tf
from tests.messages import raises


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("time_limit", "abc"),
        ("time_limit", -1),
        ("time_limit", 0),
        ("time_limit", float("inf")),
        ("time_limit", float("nan")),
        ("time_limit", True),
        ("solver", ["milp"]),
        ("solver", None),
        ("budget", "120%"),
        ("budget", "4 bananas"),
        ("batch_size", 0),
        ("batch_size", 2.5),
        ("batch_size", True),
        ("trial_run", "no"),
        ("order", "any"),
        ("costs", 3),
    ],
)
def test_a_bad_argument_is_named(argument, value):
    arguments = {"budget": 0.5, argument: value}
    code = {
        "120%": "budget-above-the-step",
        "4 bananas": "budget-not-a-size",
        3: "cost-model-unknown",
    }.get(value if argument in ("budget", "costs") else None, "argument-invalid")
    names = (repr(value),) if argument == "costs" else (argument, repr(value))
    with raises(checkmate_tf.CheckmateError, code, *names):
        checkmate_tf.rematerialize(lambda x: x, **arguments)
    with raises(checkmate_tf.CheckmateError, code, *names):
        checkmate_tf.rematerialize(**arguments)  # as a decorator


def test_a_step_that_cannot_be_called():
    with raises(checkmate_tf.CheckmateError, "not-a-step", 3):
        checkmate_tf.rematerialize(3, budget=0.5)


def test_numbers_of_numpy_are_numbers():
    step = checkmate_tf.rematerialize(
        lambda x: x, budget=np.float64(0.5), batch_size=np.int64(8), time_limit=np.float32(2)
    )
    assert "made when the step is called" in str(step.plan)
    assert not step.plan


@pytest.mark.parametrize(
    ("budget", "meant"),
    [(80, "'80%' or '80MiB'"), ("80", "'80%' or '80MiB'"), (500, "'500MiB'"), ("500", "'500MiB'")],
)
def test_so_few_bytes_are_questioned(budget, meant):
    with raises(checkmate_tf.BudgetError, "budget-of-few-bytes", repr(budget), meant):
        checkmate_tf.rematerialize(lambda x: x, budget=budget)


def test_a_size_with_its_unit_is_what_it_says():
    assert checkmate_tf.rematerialize(lambda x: x, budget="1KiB").request.budget.bytes == 1024
