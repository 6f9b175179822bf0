"""Ctrl-C at random moments of planning: it comes out, and nothing has been touched.

python -m tests.random_interrupts --count 300
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import threading
import time
import warnings

import keras
import numpy as np
import tensorflow as tf

import checkmate_tf
from tests.steps import random_batch, small_cnn


def bits(model):
    return [tf.convert_to_tensor(each).numpy().tobytes() for each in everything(model)]


def everything(model):
    return [*model.variables, *model.optimizer.variables, *model.metrics_variables]


def plan(step, model, data):
    step._runs.planned(tf.function(model.train_step).get_concrete_function(data), None)


def plan_and_interrupt(model, data, seconds):
    """Whether Ctrl-C after so many seconds came in time for a plan; then it must come out."""
    step = checkmate_tf.rematerialize(model.train_step, budget=0.85, time_limit=1.5)
    before = bits(model)
    sent = threading.Event()

    def interrupt():
        sent.set()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, interrupt)
    in_time = False
    try:
        timer.start()
        plan(step, model, data)
        in_time = sent.is_set()  # and yet a plan came out
        timer.cancel()
        timer.join()
        time.sleep(0.2)  # one that was on its way arrives here at the latest
    except KeyboardInterrupt:
        assert not in_time, "an interrupt was swallowed"
        in_time = not step.plan
    assert bits(model) == before, "variables have changed"
    return in_time


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=12, help="interrupts (12)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (0)")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # not ignored, as in the background
    moments = random.Random(arguments.seed)
    model, data = small_cnn(dropout=0.2, side=32), random_batch(batch=32, side=32)
    keras.utils.set_random_seed(0)
    for _ in range(2):  # the first one compiles and measures
        started = time.monotonic()
        plan(checkmate_tf.rematerialize(model.train_step, budget=0.85, time_limit=1.5), model, data)
        whole = time.monotonic() - started
    came = sum(
        plan_and_interrupt(model, data, moments.uniform(0, whole)) for _ in range(arguments.count)
    )
    step = checkmate_tf.rematerialize(model.train_step, budget=0.85, time_limit=1.5)
    assert np.isfinite(float(step(data)["loss"]))
    assert step.plan is not None
    print(f"{came} of {arguments.count} interrupts in time: each came out, every bit as before")


if __name__ == "__main__":
    main()
