"""`experiments.coverage.planned`: the first budget that some plan keeps."""

from __future__ import annotations

import pytest
import tensorflow as tf

from experiments.coverage.planned import NAMED, within
from solvers import BudgetError
from tests.dense_steps import dense_model, numbers

OPTIONS = {"time_limit": 0.2, "trial_run": False}


def train(decorate):
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    step = decorate(model.train_step)
    return step(tuple(map(tf.constant, numbers())))


def test_what_an_error_names_is_asked_for_next():
    errors = [BudgetError("too-small", "no plan", least=10**9)]

    def trained(decorate):
        if errors:
            raise errors.pop()
        return train(decorate)

    planned = within([0.5, NAMED, "min"], trained, **OPTIONS)
    assert (planned.asked, planned.plan.budget) == (NAMED, 10**9)
    assert "no plan" in planned.messages[0]
    assert "loss" in planned.result


def test_where_no_budget_is_kept_the_last_error_comes():
    with pytest.raises(BudgetError):
        within([1, 2], train, **OPTIONS)


def test_nothing_to_recompute_is_no_plan():
    planned = within([0.5], lambda decorate: decorate(lambda x: x + 1)(tf.zeros(2)), **OPTIONS)
    assert (planned.plan, planned.asked, planned.codes) == (
        None,
        "unchanged",
        ("nothing-to-recompute",),
    )
