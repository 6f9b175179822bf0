"""Train steps that nobody thought of: random networks, trained with the decorator and without.

    python -m tests.random_steps --count 300

Networks are random graphs of Keras layers; between two fits there may be another optimizer, batch
size, or frozen layer. Every variable, metric, optimizer slot and random generator must be equal to
the last bit after each fit. Runs in a process of its own, with what makes the plain step repeat
its own bits: no oneDNN, no graph rewrites.
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # before TensorFlow starts
    os.environ.update(TF_ENABLE_ONEDNN_OPTS="0", TF_CPU_ALLOCATOR_USE_BFC="true")

import argparse
import gc
import random
import warnings
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from keras import layers

import checkmate_tf

SIDE, CHANNELS, CLASSES = 12, 6, 5

ONE_INPUT = {
    "convolution": lambda channels: layers.Conv2D(channels, 3, padding="same", activation="relu"),
    "pointwise": lambda channels: layers.Conv2D(channels, 1, use_bias=False),
    "depthwise": lambda _: layers.DepthwiseConv2D(3, padding="same"),
    "separable": lambda channels: layers.SeparableConv2D(channels, 3, padding="same"),
    "dense": lambda channels: layers.Dense(channels, activation="gelu"),
    "batch_normalization": lambda _: layers.BatchNormalization(),
    "layer_normalization": lambda _: layers.LayerNormalization(),
    "dropout": lambda _: layers.Dropout(0.3),
    "noise": lambda _: layers.GaussianNoise(0.1),
    "swish": lambda _: layers.Activation("swish"),
    "pool": lambda _: layers.MaxPooling2D(2, strides=1, padding="same"),
}
TWO_INPUTS = {"add": layers.Add, "multiply": layers.Multiply, "maximum": layers.Maximum}
OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.05),
    "momentum": lambda: keras.optimizers.SGD(0.02, momentum=0.9, nesterov=True),
    "adam": lambda: keras.optimizers.Adam(0.003),
    "adamw, clipped": lambda: keras.optimizers.AdamW(0.003, global_clipnorm=1.0),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.002),
    "adagrad, averaged": lambda: keras.optimizers.Adagrad(0.02, use_ema=True),
    "lion": lambda: keras.optimizers.Lion(0.001, weight_decay=0.01),
    "adam, scheduled": lambda: keras.optimizers.Adam(
        keras.optimizers.schedules.ExponentialDecay(0.01, 2, 0.5)
    ),
}
PLANS = [("min", "auto"), (0.9, "auto"), (0.85, "linearized_greedy"), (0.75, "linearized_greedy")]
"""Budgets and solvers; what the rule finds does not depend on the machine's speed."""


@dataclass(frozen=True)
class Part:
    """A layer of a network, and which tensors before it it reads."""

    kind: str
    reads: tuple[int, ...]


@dataclass(frozen=True)
class Training:
    """What happens between two looks at the variables."""

    compiled: bool
    optimizer: str
    frozen: int | None
    batch: int
    in_fit: bool


@dataclass(frozen=True)
class Story:
    """A network and what is done with it."""

    parts: tuple[Part, ...]
    trainings: tuple[Training, ...]
    number: int
    budget: str | float
    solver: str
    trial_run: bool


@st.composite
def networks(draw):
    parts = []
    for position in range(draw(st.integers(2, 5))):
        kind = draw(st.sampled_from([*ONE_INPUT, *TWO_INPUTS]))
        # Mostly what has just been made, so that networks are deep.
        reads = st.integers(max(0, position - 1), position) | st.integers(0, position)
        parts.append(Part(kind, tuple(draw(reads) for _ in range(1 + (kind in TWO_INPUTS)))))
    return tuple(parts)


@st.composite
def stories(draw):
    parts = draw(networks())
    trainings = [
        Training(
            compiled=number == 0 or draw(st.booleans()),
            optimizer=draw(st.sampled_from(list(OPTIMIZERS))),
            frozen=draw(st.none() | st.integers(0, len(parts) - 1)),
            batch=draw(st.sampled_from([8, 16, 24])),
            in_fit=draw(st.booleans()),
        )
        for number in range(2)
    ]
    budget, solver = draw(st.sampled_from(PLANS))
    return Story(
        parts=parts,
        trainings=tuple(trainings),
        number=draw(st.integers(0, 1000)),
        budget=budget,
        solver=solver,
        trial_run=draw(st.booleans()),
    )


def build(parts, number, side=SIDE, channels=CHANNELS):
    """The network of these parts, the same every time."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(number)
    inputs = keras.Input((side, side, 3))
    tensors = [layers.Conv2D(channels, 3, padding="same")(inputs)]
    for number, part in enumerate(parts):
        name = f"part_{number}"
        read = [tensors[each] for each in part.reads]
        if part.kind in TWO_INPUTS:
            tensors.append(TWO_INPUTS[part.kind](name=name)(read))
        else:
            layer = ONE_INPUT[part.kind](channels)
            layer.name = name
            tensors.append(layer(*read))
    read = {each for part in parts for each in part.reads}
    unread = [each for number, each in enumerate(tensors) if number not in read]
    last = layers.Add()(unread) if len(unread) > 1 else unread[0]
    return keras.Model(inputs, layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(last)))


def tell(story, decorate):
    """Everything that can be seen after each training of a story."""
    model = build(story.parts, story.number)
    generator = np.random.default_rng(story.number)
    images = generator.normal(size=(40, SIDE, SIDE, 3)).astype("float32")
    labels = generator.integers(0, CLASSES, 40)
    seen = []
    frozen = None
    for training in story.trainings:
        for number in range(len(story.parts)):
            model.get_layer(f"part_{number}").trainable = number != training.frozen
        # An optimizer doesn't know of variables that were frozen when it was made.
        if training.compiled or training.frozen != frozen:
            model.compile(
                OPTIMIZERS[training.optimizer](),
                keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                metrics=["accuracy"],
                jit_compile=False,
            )
        frozen = training.frozen
        decorate(model)
        train(model, images, labels, training, story.number)
        seen.append(snapshot(model))
    return seen, model


def train(model, images, labels, training, number):
    keras.utils.set_random_seed(number)
    if training.in_fit:
        model.fit(images, labels, batch_size=training.batch, verbose=0)
        return
    step = model.train_step
    if not hasattr(step, "plan"):
        # Traced for any batch, as batch_size=… does: a mean over 24 has other bits than over N.
        data = tf.TensorSpec((None, *images.shape[1:])), tf.TensorSpec((None,), tf.int64)
        step = tf.function(step, input_signature=[data])
    for start in range(0, len(images), training.batch):
        piece = slice(start, start + training.batch)
        step((tf.constant(images[piece]), tf.constant(labels[piece])))


def snapshot(model):
    """The bits of every variable, and what each kind of generator gives next."""
    held = [*model.variables, *model.optimizer.variables, *model.metrics_variables]
    drawn = (tf.random.uniform((2,)).numpy(), np.random.rand(), random.random())
    names = [each.path for each in held]
    return names, [tf.convert_to_tensor(each).numpy().tobytes() for each in held], str(drawn)


RECOMPUTATIONS = []


def decorator(story, budget, solver):
    def decorate(model):
        if not hasattr(model.train_step, "plan"):
            model.train_step = checkmate_tf.rematerialize(
                model.train_step,
                budget=budget,
                batch_size=24,
                time_limit=0.3,
                solver=solver,
                trial_run=story.trial_run,
            )

    return decorate


def check(story):
    """The same bits with the decorator and without."""
    expected, _ = tell(story, lambda model: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found, model = tell(story, decorator(story, story.budget, story.solver))
        except checkmate_tf.BudgetError:  # not every network can be trained in so little
            found, model = tell(story, decorator(story, "min", "auto"))
    for (names, bits, drawn), (_, our_bits, our_drawn) in zip(expected, found, strict=True):
        different = [
            name for name, one, other in zip(names, bits, our_bits, strict=True) if one != other
        ]
        assert different == [], different
        assert our_drawn == drawn
    plan = model.train_step.plan
    RECOMPUTATIONS.append(0 if plan is None else len(plan.schedule) - len(plan.graph))
    gc.collect()


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=25, help="networks (25)")
    parser.add_argument("--seed", type=int, default=0, help="of the networks (0)")
    arguments = parser.parse_args(argv)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    property_ = settings(
        max_examples=arguments.count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        report_multiple_bugs=False,
    )(seed(arguments.seed)(given(stories())(check)))
    # What is imported stays: each of many collections would go through all of it.
    gc.collect()
    gc.freeze()
    property_()
    again = sum(map(bool, RECOMPUTATIONS))
    print(
        f"{len(RECOMPUTATIONS)} networks: equal to the last bit; {again} with recomputed operations"
    )


if __name__ == "__main__":
    main()
