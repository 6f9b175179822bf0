"""A step that runs out of a GPU's memory: its variables are put back, and a leaner plan takes over.

With XLA their buffers are gone by then: TensorFlow would free them twice, which ends the process.
"""

from __future__ import annotations

import pytest

from tests.gpu.processes import ran

LIMIT = 3 << 30

_TRAINED = f"""
import json
import sys
import warnings

import tensorflow as tf

LIMIT = {LIMIT}
part = tf.config.LogicalDeviceConfiguration(memory_limit=LIMIT >> 20)
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("GPU")[0], [part])

import checkmate_tf
from checkmate_tf.planning.question import Question
from tests.gpu.steps import BATCH, dense, fit, rows
from tests.messages import codes

jit_compile, parts, beside = sys.argv[1] == "True", int(sys.argv[2]), int(sys.argv[3])
budget = dict(budget=int(float(sys.argv[4]) * LIMIT)) if len(sys.argv) > 4 else dict()
if sys.argv[5:] == ["unknown"]:  # what the device has
    Question.available = property(lambda question: question.budget)
batch = parts * BATCH
model = dense(jit_compile)
checkmate_tf.rematerialize(model, time_limit=2, trial_run=False, verbose=0, **budget)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        fit(model, *rows(2 * batch), batch)
        held = tf.zeros((beside, 1 << 20), tf.uint8)
        fit(model, *rows(2 * batch), batch)
        told = "trained"
    except tf.errors.ResourceExhaustedError as error:
        told = "".join(getattr(error, "__notes__", []))
plan = model.train_step.plan
for each in [*model.variables, *model.optimizer.variables]:
    each.assign(each)  # which frees the buffers that they had
print(json.dumps([told, codes(caught), len(plan.schedule) - len(plan.graph)]))
"""


@pytest.mark.parametrize("jit_compile", [False, True])
def test_where_more_is_held_it_is_planned_anew_before_it_fails(jit_compile):
    told, said, recomputed = ran(_TRAINED, jit_compile, 6, 1300, TF_FORCE_GPU_ALLOW_GROWTH="false")
    assert told == "trained"
    assert said.count("more-held-planned-again") == 1
    assert recomputed > 0


def test_compiled_it_leaves_alone_what_the_allocator_may_lose_beside_a_large_block():
    """It takes 1,554 MiB, and fits 1,600: but there XLA's block may get all but nothing of them.

    What XLA had taken by then would be lost, so that there would be no retry.
    """
    narrow = _TRAINED.replace(f"LIMIT = {LIMIT}", f"LIMIT = {1600 << 20}")
    told, said, recomputed = ran(narrow, True, 4, 1, TF_FORCE_GPU_ALLOW_GROWTH="false")
    assert told == "trained"
    assert not said
    assert recomputed > 0


def test_compiled_it_runs_again_by_a_leaner_plan():
    """The plan takes more than there is; without XLA a forecast would have noticed."""
    told, said, recomputed = ran(
        _TRAINED, True, 9, 1, 1.5, "unknown", TF_FORCE_GPU_ALLOW_GROWTH="false"
    )
    assert told == "trained"
    assert said.count("exhausted-planned-again") == 1
    assert recomputed > 0


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_budget_of_more_than_there_is_needs_no_retry(jit_compile):
    told, said, recomputed = ran(
        _TRAINED, jit_compile, 9, 1, 1.5, TF_FORCE_GPU_ALLOW_GROWTH="false"
    )
    assert told == "trained"
    assert said == ["budget-above-the-device"]
    assert recomputed > 0


@pytest.mark.parametrize("jit_compile", [False, True])
def test_what_fits_by_no_plan_is_an_error_and_the_variables_are_there(jit_compile):
    told, said, _ = ran(_TRAINED, jit_compile, 6, 2200, TF_FORCE_GPU_ALLOW_GROWTH="false")
    assert "GiB that are held beside the step" in told
    assert said[-1] == "memory-exhausted"
