"""Train a Keras model as most people do, by `fit` alone, in a process of its own; peaks as JSON.

    python -m tests.fit_trial --share 0.6 --output figures.json

Nothing is built before `fit`: the optimizer makes its slots while the step is traced, and all that
have one shape are one buffer until they are written.
"""

from __future__ import annotations

import argparse
import json

import keras
import numpy as np
import tensorflow as tf
from keras import layers

import checkmate_tf
from checkmate_tf.devices.measure import run_measured
from solvers.graph.files import write_whole

FITS = 4
SIDE, BATCH = 16, 8


def wide() -> keras.Model:
    """Whose variables, with the slots of Adam, take more than its activations."""
    x = inputs = keras.Input((SIDE, SIDE, 3))
    for filters in (64, 128, 192, 256, 256, 320):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.Conv2D(filters, 1)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def main() -> None:
    """Plan in the first `fit`, measure the next ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--share", type=float, required=True)
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(0)
    model = wide()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, jit_compile=False)
    draw = np.random.default_rng(0)
    images = draw.normal(size=(BATCH, SIDE, SIDE, 3)).astype("float32")
    labels = draw.integers(0, 10, BATCH)
    model = checkmate_tf.rematerialize(
        model, budget=arguments.share, batch_size=BATCH, time_limit=10
    )

    def fit() -> None:
        model.fit(images, labels, batch_size=BATCH, verbose=0)

    fit()
    peaks = [run_measured(fit, device="CPU:0")[1] for _ in range(FITS)]
    plan = model.train_step.plan
    figures = {
        "budget": plan.budget,
        "peaks": peaks,
        "variables": sum(
            each.shape.num_elements() * tf.as_dtype(each.dtype).size
            for each in [*model.variables, *model.optimizer.variables]
        ),
        "recomputations": len(plan.schedule) - len(plan.graph),
    }
    write_whole(arguments.output, json.dumps(figures))


if __name__ == "__main__":
    main()
