"""A small step, plain and by a plan: what is seen, and what is said of it."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from checkmate_tf.doctor import steps
from checkmate_tf.doctor.steps import Comparison, facts_of, what_is_wrong
from tests.checkmate_tf.plans.test_pictures import plan_of
from tests.costs import sweep

PLAN = plan_of()


@pytest.mark.parametrize("compiled", sweep([False, True]))
def test_a_real_step(compiled, monkeypatch):
    monkeypatch.setenv("CHECKMATE_TF_PLANS", "off")
    gc.collect()  # what other tests have left must not go meanwhile
    seen = steps.compare(8, compiled, side=24, time_limit=0.5)
    assert seen.plan is not None
    assert (seen.plan.compiled_peak is not None) == compiled
    assert seen.variables > 50
    assert seen.distance < 1e-3
    assert (seen.different == 0) == (seen.distance == 0)
    facts = dict(facts_of(seen))
    assert "variables" in facts["after 3 steps"]
    assert "by the plan" in facts["time of a step"]
    # Whether a step keeps its budget to the byte is a matter of chance where other tests have left
    # something; so is, of XLA's small one, what the allocator shows.
    if compiled:
        assert seen.plan.compiled_peak < seen.plan.compiled_baseline_peak
    elif seen.peaks is not None:
        plain, ours = seen.peaks
        assert ours < plain


def seen(**changes):
    """Two steps of which nothing is to be said."""
    same = Comparison(
        plan=PLAN,
        compiled=False,
        peaks=(2 * PLAN.budget, PLAN.budget),
        different=0,
        variables=9,
        distance=0.0,
        repeats=True,
        seconds=(0.1, 0.2),
    )
    return replace(same, **changes)


COMPILED = replace(PLAN, compiled_peak=PLAN.budget, compiled_baseline_peak=2 * PLAN.budget)
HIGH = replace(COMPILED, compiled_peak=PLAN.budget + 1)


@pytest.mark.parametrize(
    "well",
    [
        seen(),
        seen(peaks=None),
        seen(different=1, distance=1e-6, repeats=False),
        seen(compiled=True, plan=COMPILED),
        # A larger free piece of the allocator's is no part of what the compiler asks for.
        seen(compiled=True, plan=COMPILED, peaks=(2 * PLAN.budget, PLAN.budget + 1)),
        seen(compiled=True, plan=COMPILED, different=1, distance=1e-6),
        # The least that XLA can do, over a budget that is a share: a note says so.
        seen(compiled=True, plan=HIGH),
    ],
)
def test_nothing_is_wrong(well):
    assert what_is_wrong(well, exact=True) == ""


def test_rounding_is_no_fault_where_kernels_differ():
    assert what_is_wrong(seen(different=1, distance=1e-6), exact=False) == ""


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (seen(plan=None), "no plan was made"),
        (seen(peaks=(2 * PLAN.budget, PLAN.budget + 1)), "within a budget of 7.000000 MiB: leave"),
        (
            seen(compiled=True, plan=replace(COMPILED, compiled_baseline_peak=PLAN.budget)),
            "no plan takes less than the step as it is",
        ),
        (seen(different=1, distance=1e-6), "results differ by 1e-06"),
        (seen(different=1, distance=0.5, repeats=False), "results differ by 5e-01"),
        (seen(different=1, distance=float("nan"), repeats=False), "results differ by nan"),
    ],
)
def test_what_is_wrong_is_said(bad, said):
    assert said in what_is_wrong(bad, exact=True)


def test_figures_are_in_rows():
    facts = dict(facts_of(seen(said=("checkmate_tf: a warning",))))
    assert facts["peak, measured"] == "14.0 MiB plain, 7.0 MiB by the plan"
    assert facts["time of a step"].startswith("100.0 ms plain, 200.0 ms by the plan (× 2.00)")
    assert facts["said"] == "checkmate_tf: a warning"
