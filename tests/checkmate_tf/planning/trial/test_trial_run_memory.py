"""A trial run's peaks are those of the step; its copies are freed, and may be too many."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.devices.measure import held_bytes, measure_peak
from checkmate_tf.planning.trial import trial_run as trial_run_module
from checkmate_tf.planning.trial.trial_run import TrialRunError, run_for_trial
from checkmate_tf.planning.variable_places import variables_movable
from solvers import Schedule
from tests.steps import SPEC, extraction_of


@pytest.mark.usefixtures("memory_in_one_piece")
def test_copies_do_not_count_and_are_freed():
    """What a trial says is what the step itself holds; afterwards all is free again."""
    weights = [tf.Variable(tf.ones((1024, 1024)) / 1024) for _ in range(8)]

    def step(x):
        x = tf.tile(x, (1, 16))
        for each in weights:
            x = tf.tanh(x @ each)
        for each in weights:
            each.assign_sub(1e-3 * each)
        return tf.reduce_sum(x)

    extracted = extraction_of(step)
    schedule = Schedule(range(len(extracted.graph)))
    gc.collect()  # as a trial run does; what other tests left is none of its memory
    before = held_bytes()
    trial_run = run_for_trial(extracted, schedule)
    small = 2**20
    assert held_bytes() - before < small  # less, where variables lay in pieces too large for them
    x = tf.ones(SPEC.shape)
    real = [measure_peak(trial_run.function, x) for _ in range(4)]
    copied = 8 * 4 * 2**20
    assert abs(max(trial_run.peaks) - max(real)) < copied / 4


COUNTED = """
import gc, json
import tensorflow as tf
from checkmate_tf import rematerialize
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.devices.measure import measure_peak
from checkmate_tf.planning.trial.trial_run import run_for_trial
from checkmate_tf.planning.variable_places import variables_movable
from solvers import Schedule

def small(x):
    return tf.reduce_sum(tf.exp(x) * tf.sin(x))

extracted = extract_step(tf.function(small).get_concrete_function(tf.TensorSpec((1024, 1024))))
schedule = Schedule(range(len(extracted.graph)))
x = tf.exp(tf.zeros((1024, 1024)))
there = run_for_trial(extracted, schedule, arriving=0)
to_come = run_for_trial(extracted, schedule)
real = max(measure_peak(there.function, x) for _ in range(4))
found = {"there": max(there.peaks) - real, "to come": max(to_come.peaks) - real}
weights = tf.Variable(tf.eye(256))

def step(x):
    with tf.GradientTape() as tape:
        for _ in range(6):
            x = tf.tanh(x @ weights)
        loss = tf.reduce_sum(x)
    return loss, tape.gradient(loss, weights)

del there, to_come
gc.collect()
x = tf.exp(tf.zeros((8192, 256)))
planned = rematerialize(step, budget=0.8, time_limit=5)
planned(x)
found["plan"] = planned.plan.measured_peak - max(measure_peak(planned, x) for _ in range(4))
print(json.dumps(found))
"""


@pytest.mark.slow
def test_arguments_that_are_on_the_device_count_once(tmp_path):
    """Made-up ones lie beside them while a trial runs, and not while the step does.

    In a process of its own: an allocator with a past wastes more in one run than in another.
    """
    script = tmp_path / "script.py"
    script.write_text(COUNTED)
    ended = subprocess.run(
        [sys.executable, script],
        env={
            **os.environ,
            "TF_CPU_ALLOCATOR_USE_BFC": "true",
            "PYTHONPATH": str(Path(__file__).parents[4]),
        },
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    off = json.loads(ended.stdout.splitlines()[-1])
    argument, larger = 4 * 2**20, 8 * 2**20
    assert abs(off["there"]) < argument / 4
    assert abs(off["to come"] - argument) < argument / 4
    assert abs(off["plan"]) < larger / 2


AT_A_WALL = """
import functools
import tensorflow as tf
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning.plan_search import PlanSearch
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.trial.trial_run import run_for_trial
weights = [tf.Variable(tf.ones((512, 512)) / 512) for _ in range(16)]
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        for each in weights:
            x = tf.tanh(x @ each)
        loss = tf.reduce_sum(x)
    for each, gradient in zip(weights, tape.gradient(loss, weights)):
        each.assign_sub(1e-3 * gradient)
    return loss
extracted = extract_step(step.get_concrete_function(tf.TensorSpec((512, 512))))
held = held_bytes()
question = Question(extracted, held, 42 << 20, 0, 50 << 20, ())
trial_run = functools.partial(run_for_trial, extracted)
plan = PlanSearch(question, "linearized_greedy", "fixed", 1.0, trial_run).run().plan
print(plan.measured_peak, *plan.notes, held_bytes() - held < 2**16, all(
    bool(tf.reduce_all(each == 1 / 512)) for each in weights))
"""
"""The step needs 35 MB; copies of its variables beside them would need 16 more."""


@pytest.mark.slow
def test_a_device_without_room_for_both_variables_and_copies():
    """The copies lie where the variables do, so that the plan is tried all the same."""
    environment = {
        **os.environ,
        "TF_CPU_ALLOCATOR_USE_BFC": "true",
        "TF_CPU_BFC_MEM_LIMIT_IN_MB": "44",
    }
    ended = subprocess.run(
        [sys.executable, "-c", AT_A_WALL],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-2000:]
    peak, *rest = ended.stdout.split()
    assert 16 << 20 < int(peak) <= 42 << 20
    assert rest == ["True", "True"]


def test_memory_runs_out_by_copies_or_by_the_plan(monkeypatch):
    """Where there are none beside the variables, the plan itself was too much for the device."""
    variable = tf.Variable(tf.ones((4096, 4096)))  # much beside what other tests have left

    def writes(x):
        return tf.reduce_sum(variable.assign_add(tf.exp(variable) * x[0, 0]))

    def reads(x):
        return tf.reduce_sum(tf.exp(variable) * x[0, 0])

    def exhausted(*args, **kwargs):
        tf.config.experimental.reset_memory_stats("CPU:0")
        raise tf.errors.ResourceExhaustedError(None, None, "injected")

    def tried(step):
        extracted = extraction_of(step)
        return run_for_trial(extracted, Schedule(range(len(extracted.graph))))

    monkeypatch.setattr(trial_run_module, "measure_peak", exhausted)
    assert tried(reads) is None
    assert tried(writes) is None
    assert np.all(variable == 1.0)
    with variables_movable(None):
        assert tried(reads) is None
        with pytest.raises(TrialRunError, match="no room for copies") as caught:
            tried(writes)
        assert caught.value.held >= 2 * 4096 * 4096 * 4  # the variable and its copy
