"""What an error about a budget says will do does, in the next process too; nothing else is asked.

All kinds of steps are asked so by `python -m experiments.coverage`.
"""

from __future__ import annotations

import gc
import warnings

import keras
import pytest

import checkmate_tf
from checkmate_tf.devices.measure import held_bytes
from experiments.coverage.kind import Size
from experiments.coverage.kinds import KINDS
from tests.costs import sweep

if held_bytes() is None:
    pytest.skip("the allocator keeps no count", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("memory_in_one_piece")

SIZE = Size(batch=8, side=24, channels=8, depth=4)
OF_EACH_SORT = ("residual", "LSTM", "tf.while_loop", "fit(x, y)")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Of kept plans, as users have one."""
    monkeypatch.setenv("CHECKMATE_TF_PLANS", str(tmp_path))


def trained_within(kind, budget):
    """The step, after it has trained once, decorated anew."""
    keras.utils.set_random_seed(0)
    steps = []

    def decorate(step, **options):
        steps.append(checkmate_tf.rematerialize(step, budget=budget, time_limit=4, **options))
        return steps[-1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        KINDS[kind].make(SIZE).prepared(decorate)()
    return steps[-1]


@pytest.mark.parametrize("kind", sweep(OF_EACH_SORT))
def test_the_budget_that_an_error_names_will_do(kind):
    """A step of which no plan saves memory runs unchanged, and there is no error."""
    named = None
    try:
        step = trained_within(kind, "20KB")
    except checkmate_tf.BudgetError as error:
        named = error.least  # alone, for the error holds the step
    if named is None:
        assert step.plan is None or step.plan.overhead == 0
        return
    gc.collect()
    step = trained_within(kind, named)
    assert step.plan.budget == named
    assert step.plan.measured_peak <= named
