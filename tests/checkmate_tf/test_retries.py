"""A step that runs out of memory later on, at the limit of a CPU's allocator: nothing is lost."""

from __future__ import annotations

import json

import pytest

from profiles.devices import default_device
from tests.costs import sweep
from tests.processes import printed

pytestmark = pytest.mark.skipif(
    not default_device().startswith("CPU"), reason="a limit of the CPU's allocator"
)

LIMIT = 250

SHARED = """
import gc, hashlib, json, warnings
import numpy as np
import tensorflow as tf
import checkmate_tf
from tests.messages import codes
given = json.loads(input())

def bits(variables):
    return hashlib.sha256(b"".join(np.array(each).tobytes() for each in variables)).hexdigest()

def held_beside():
    '''So many MiB; where half of them are free again, it is in pieces that are too small.'''
    pieces = [tf.zeros((1 << 20,), tf.uint8) for _ in range(given["beside"])]
    return pieces[::2] if given["gaps"] else pieces

def told_by(error):
    return "".join(getattr(error, "__notes__", ["-"]))
"""

ALONE = (
    SHARED
    + """
w = tf.Variable(tf.eye(512) * 0.9)
count = tf.Variable(0, dtype=tf.int64)
draws = tf.random.Generator.from_seed(3)
table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)
every = (w, count, draws.state)
begin = [each.numpy() for each in every]

def step(x):
    count.assign_add(1)
    if given["table"]:
        table.insert(count, count)
    x += 0.01 * draws.normal([512])
    with tf.GradientTape() as tape:
        for _ in range(24):
            x = tf.tanh(x @ w)
        loss = tf.reduce_sum(x)
    w.assign_sub(1e-4 * tape.gradient(loss, w))
    return loss

step = tf.function(step, jit_compile=True) if given["xla"] else step
x = tf.fill((2048, 512), 0.5)
plain = tf.function(step)
expected = [bits(every) for _ in range(4) if plain(x) is not None]
del plain
gc.collect()
for variable, value in zip(every, begin):
    variable.assign(value)

run = checkmate_tf.rematerialize(step, time_limit=2, verbose=0, trial_run=False)
same = []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        for number in range(4):
            if number == 2:
                beside = held_beside()
            before = bits(every)
            run(x)
            same.append(bits(every) == expected[number])
        told = "trained"
    except tf.errors.ResourceExhaustedError as error:
        told = told_by(error)
        same.append(before == bits(every))
print(json.dumps([same, told, codes(caught)]))
"""
)
"""Each of 24 activations takes 4 MiB, the step 110; from the third on something lies beside it."""

IN_FIT = (
    SHARED
    + """
import keras
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
WIDTH, BATCH = 256, 2048
draw = np.random.default_rng(0)
x = draw.normal(size=(4 * BATCH + 100, WIDTH)).astype("float32")
y = x[:, :4].copy()

class Beside(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == given["after"] and not beside:
            beside.extend(held_beside())

def model_and_history(ours):
    keras.utils.set_random_seed(1)
    inputs = z = keras.Input((WIDTH,))
    for number in range(12):
        z = keras.layers.Dense(WIDTH, "tanh")(z)
        z = keras.layers.BatchNormalization()(z) if number % 4 == 0 else z
        z = keras.layers.Dropout(0.1)(z) if number % 4 == 2 else z
    model = keras.Model(inputs, keras.layers.Dense(4)(z))
    adam = keras.optimizers.Adam(0.01, epsilon=0.01)
    model.compile(adam, "mse", metrics=["mae"], jit_compile=given["xla"],
                  steps_per_execution=given["at_once"])
    if ours:
        model = checkmate_tf.rematerialize(model, time_limit=2, verbose=0, trial_run=False)
    told = "trained"
    try:
        history = []
        for batch in given["batches"]:
            if given["single"]:
                history.append([model.train_on_batch(x[:batch], y[:batch]) for _ in range(3)])
                beside.extend(held_beside() if ours else [])
                continue
            fitted = model.fit(x, y, batch, epochs=2, verbose=0,
                               validation_data=(x[:BATCH], y[:BATCH]),
                               callbacks=[Beside()] if ours else [])
            history.append(fitted.history)
    except tf.errors.ResourceExhaustedError as error:
        told = told_by(error)
    return model, history, told, bits([*model.variables, *model.optimizer.variables])

beside, found = [], []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for ours in given["ours"]:
        keras.backend.clear_session()
        gc.collect()
        model, history, told, digest = model_and_history(ours)
        found.append([history, digest])
steps = int(model.optimizer.iterations.numpy())
print(json.dumps([found, told, codes(caught), steps]))
"""
)
"""The step takes some 60 MiB beside its variables."""


def ran(code, limit=LIMIT, **given):
    """What a process tells; an allocation that fails ends some kernels of oneDNN's in a fault."""
    settings = {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(limit)}
    asked = {"beside": 0, "gaps": False, "xla": False, "table": False, "after": 1, "at_once": 1}
    asked["single"] = False
    asked["ours"] = [False, True]
    return json.loads(printed(code, json.dumps({**asked, **given}), **settings))


@pytest.mark.slow
def test_where_more_is_held_it_is_planned_anew_before_it_fails():
    same, told, said = ran(ALONE, beside=160)
    assert (same, told) == ([True] * 4, "trained")
    assert said.count("more-held-planned-again") == 1
    assert "exhausted-planned-again" not in said


@pytest.mark.parametrize("xla", sweep([False, True]))
def test_a_step_that_fails_runs_again_by_a_leaner_plan(xla):
    same, told, said = ran(ALONE, beside=140 - 20 * xla, gaps=True, xla=xla)
    assert (same, told) == ([True] * 4, "trained")
    assert said.count("exhausted-planned-again") == 1


@pytest.mark.slow
@pytest.mark.parametrize("xla", [False, True])
def test_it_runs_again_until_a_plan_is_lean_enough(xla):
    """Much of the memory that a plan may count on lies in pieces that are too small."""
    same, told, said = ran(ALONE, beside=180, gaps=True, xla=xla)
    assert (same, told) == ([True] * 4, "trained")
    assert said.count("exhausted-planned-again") > 1


@pytest.mark.slow
@pytest.mark.parametrize("xla", [False, True])
def test_what_fits_by_no_plan_is_an_error_and_nothing_is_lost(xla):
    same, told, said = ran(ALONE, beside=220, xla=xla)
    assert same == [True] * 3
    assert "matmul" in told
    assert "MiB that are held beside the step" in told
    assert said[-1] == "memory-exhausted"


@pytest.mark.slow
def test_what_cannot_be_saved_is_an_error_at_once():
    """The hash table would keep what the failed step has put into it."""
    _, told, said = ran(ALONE, beside=140, gaps=True, table=True)
    assert "matmul" in told
    assert "exhausted-planned-again" not in said


@pytest.mark.slow
def test_fit_goes_on_by_a_leaner_plan_before_it_fails():
    """Also with metrics, statistics, dropout, and validation between the epochs."""
    (plain, ours), told, said, _ = ran(IN_FIT, batches=[2048], beside=180)
    assert (ours, told) == (plain, "trained")
    assert "more-held-planned-again" in said


@pytest.mark.slow
def test_larger_batches_that_come_with_a_later_fit():
    """The first one is planned for before its step, which would fail by the plan that there is."""
    given = {"batches": [1024, 2048], "after": None}
    (plain,), *_ = ran(IN_FIT, ours=[False], **given)
    (ours,), told, said, steps = ran(IN_FIT, limit=64, ours=[True], **given)
    assert (ours, told, steps) == (plain, "trained", 28)
    assert said.count("larger-sizes-came") == 1


@pytest.mark.slow
def test_a_batch_that_is_trained_on_by_itself_has_more_tries_as_well():
    """What is free before the larger one lies in pieces that are too small."""
    given = {"batches": [1024, 2048], "single": True, "beside": 40, "gaps": True}
    (plain,), *_ = ran(IN_FIT, ours=[False], **given)
    (ours,), told, said, steps = ran(IN_FIT, limit=80, ours=[True], **given)
    assert (ours, told, steps) == (plain, "trained", 6)
    assert "exhausted-planned-again" in said
