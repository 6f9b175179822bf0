"""Small dense models and steps that plan in no time, shared by the tests of the decorator."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf
from keras import layers

import checkmate_tf

QUICK = {"budget": 0.9, "solver": "linearized_greedy", "trial_run": False}
"""By a rule, which takes the same time and finds the same on every machine."""
OVER = ".*(a step held|the leanest plan found)"
"""What is said of a step over its budget, as one may be that is so small and had no trial run."""
SIZE, BATCH = 64, 256


def dense_model(seed=0, depth=6):
    """Layers whose activations outweigh their kernels."""
    keras.utils.set_random_seed(seed)
    inputs = x = keras.Input((SIZE,))
    for number in range(depth):
        x = layers.Dense(SIZE, activation="tanh", name=f"dense_{number}")(x)
    return keras.Model(inputs, layers.Dense(1, name="last")(x))


def numbers(batch=BATCH, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(batch, SIZE)).astype("float32")
    return x, x[:, :1].copy()


def variables(model):
    return [np.array(each) for each in (*model.variables, *model.optimizer.variables)]


def same(ours, plain):
    assert len(ours) == len(plain)
    for one, other in zip(ours, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def both(story):
    """The variables after `story(model, decorate)`, with the decorator and without."""

    def decorated(model, **options):
        model.train_step = checkmate_tf.rematerialize(model.train_step, **{**QUICK, **options})

    ours, plain = dense_model(), dense_model()
    story(ours, decorated)
    story(plain, lambda model, **options: None)
    same(variables(ours), variables(plain))
    return ours


def adam():
    """By default it makes steps as long of gradients that are little more than rounding."""
    return keras.optimizers.Adam(0.01, epsilon=0.01)


def fit(model, batch=BATCH, **options):
    model.fit(*numbers(2 * batch), batch_size=batch, epochs=1, verbose=0, shuffle=False, **options)


def some_weights():
    return tf.Variable(tf.random.stateless_normal((SIZE, SIZE), (3, 4)) / 8)


def loss_and_gradient(weights, depth=8):
    def step(x, rate=1.0):
        with tf.GradientTape() as tape:
            for _ in range(depth):
                x = tf.tanh(x @ weights)
            loss = rate * tf.reduce_sum(x)
        return loss, tape.gradient(loss, weights)

    return step
