"""Kinds of training loops of the user's own: optimizers, tapes, losses, what is returned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from experiments.coverage.kind import STEPS, Called, Kind, Size


def network(size: Size, outputs: int = 10, dropout: float = 0.1) -> Any:
    """Convolutions with batch normalization, a skip connection and dropout."""
    x = inputs = keras.Input((size.side, size.side, 3))
    x = layers.Conv2D(size.channels, 3, padding="same")(x)
    for _ in range(size.depth):
        y = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.Add()([x, layers.Conv2D(size.channels, 3, padding="same")(y)])
    x = layers.Dropout(dropout)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, layers.Dense(outputs)(x))


def batches(size: Size) -> list[tuple[Any, Any]]:
    """Random images and labels."""
    draw = np.random.default_rng(0)
    shape = (size.batch, size.side, size.side, 3)
    return [
        (
            tf.constant(draw.normal(size=shape), tf.float32),
            tf.constant(draw.integers(0, 10, size.batch), tf.int32),
        )
        for _ in range(STEPS)
    ]


def cross_entropy(labels: Any, logits: Any) -> Any:
    """Mean over the batch."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.reduce_mean(losses)


def descend(variables: Sequence[Any], gradients: Sequence[Any], rate: float = 0.01) -> None:
    """Subtract the gradients from the variables; one that no loss reaches stays as it is."""
    for variable, gradient in zip(variables, gradients, strict=True):
        if gradient is not None:
            variable.assign_sub(rate * tf.convert_to_tensor(gradient))


def _optimized(make: Callable[[], Any], size: Size) -> Called:
    model, optimizer = network(size), make()
    optimizer.build(model.trainable_variables)

    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return Called(step, batches(size), [model, optimizer])


_OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: keras.optimizers.SGD(0.01),
    "SGD, Nesterov momentum": lambda: keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True),
    "Adam": lambda: keras.optimizers.Adam(0.001),
    "Adam, amsgrad": lambda: keras.optimizers.Adam(0.001, amsgrad=True),
    "AdamW": lambda: keras.optimizers.AdamW(0.001),
    "Adamax": lambda: keras.optimizers.Adamax(0.001),
    "Nadam": lambda: keras.optimizers.Nadam(0.001),
    "Adagrad": lambda: keras.optimizers.Adagrad(0.01),
    "Adadelta": lambda: keras.optimizers.Adadelta(0.1),
    "Adafactor": lambda: keras.optimizers.Adafactor(0.01),
    "RMSprop, centered": lambda: keras.optimizers.RMSprop(0.001, centered=True),
    "Ftrl": lambda: keras.optimizers.Ftrl(0.01),
    "Lion": lambda: keras.optimizers.Lion(0.001),
    "Muon": lambda: keras.optimizers.Muon(0.001),
    "LAMB": lambda: keras.optimizers.Lamb(0.001),
    "clipped by value": lambda: keras.optimizers.SGD(0.01, clipvalue=0.1),
    "clipped by norm": lambda: keras.optimizers.SGD(0.01, clipnorm=0.1),
    "clipped by global norm": lambda: keras.optimizers.SGD(0.01, global_clipnorm=0.1),
    "averaged weights": lambda: keras.optimizers.SGD(0.01, use_ema=True, ema_overwrite_frequency=2),
    "weight decay": lambda: keras.optimizers.SGD(0.01, weight_decay=0.01),
    "learning rate schedule": lambda: keras.optimizers.SGD(
        keras.optimizers.schedules.CosineDecay(0.01, 10)
    ),
    "accumulated gradients": lambda: keras.optimizers.SGD(0.01, gradient_accumulation_steps=2),
    "loss scaling": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01)),
}


def _updated_by_hand(size: Size) -> Called:
    model = network(size)

    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
        descend(model.trainable_variables, gradients)
        return {"loss": loss, "norm": norm}

    return Called(step, batches(size), [model])


def _gradients_returned(size: Size) -> Called:
    model = network(size)
    optimizer = keras.optimizers.Adam(0.001)
    optimizer.build(model.trainable_variables)

    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True))
        return loss, tape.gradient(loss, model.trainable_variables)

    return Called(step, batches(size), [model, optimizer])


def _micro_batches(size: Size) -> Called:
    """Gradients of two half batches, added in one step."""
    model = network(size)

    def step(images: Any, labels: Any) -> Any:
        total = [tf.zeros_like(each) for each in model.trainable_variables]
        for part, answers in zip(tf.split(images, 2), tf.split(labels, 2), strict=True):
            with tf.GradientTape() as tape:
                loss = cross_entropy(answers, model(part, training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            total = [a + b for a, b in zip(total, gradients, strict=True)]
        descend(model.trainable_variables, total, 0.005)
        return loss

    return Called(step, batches(size), [model])


def _gradient_penalty(size: Size) -> Called:
    """Second derivatives: the gradient by the images is part of the loss."""
    model = network(size, dropout=0.0)

    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(images)
                loss = cross_entropy(labels, model(images, training=True))
            slope = inner.gradient(loss, images)
            loss += 0.1 * tf.reduce_sum(tf.square(slope))
        gradients = outer.gradient(loss, model.trainable_variables)
        descend(model.trainable_variables, gradients)
        return loss

    return Called(step, batches(size), [model])


def _persistent_tape(size: Size) -> Called:
    model = network(size)

    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            logits = model(images, training=True)
            loss, size_of_logits = cross_entropy(labels, logits), tf.reduce_mean(logits**2)
        first = tape.gradient(loss, model.trainable_variables)
        second = tape.gradient(size_of_logits, model.trainable_variables)
        gradients = [a + 0.1 * b for a, b in zip(first, second, strict=True)]
        descend(model.trainable_variables, gradients)
        return loss

    return Called(step, batches(size), [model])


def _attacked(size: Size) -> Called:
    """Training on images that were moved against the gradient."""
    model = network(size, dropout=0.0)

    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(images)
            loss = cross_entropy(labels, model(images, training=False))
        images = images + 0.01 * tf.sign(tape.gradient(loss, images))
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        descend(model.trainable_variables, gradients)
        return loss

    return Called(step, batches(size), [model])


def _skipped_if_not_finite(size: Size) -> Called:
    """An update inside a condition."""
    model = network(size)

    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)

        def update() -> Any:
            descend(model.trainable_variables, gradients)
            return True

        return loss, tf.cond(tf.math.is_finite(loss), update, lambda: False)

    return Called(step, batches(size), [model])


def _counted(size: Size) -> Called:
    """A counter, a metric, and a line that is printed, beside the training."""
    model, counter = network(size), tf.Variable(0)
    mean = keras.metrics.Mean()

    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        descend(model.trainable_variables, gradients)
        counter.assign_add(1)
        mean.update_state(loss)
        tf.print("step", counter, output_stream="file:///dev/null")
        return mean.result()

    return Called(step, batches(size), [model, [counter], mean])


def _several_steps_in_a_loop(size: Size) -> Called:
    """Three updates in one call, unrolled by Python."""
    once = _updated_by_hand(size)

    def step(images: Any, labels: Any) -> Any:
        return [once.step(images, labels)["loss"] for _ in range(2)]

    return Called(step, once.data, once.owners)


def _masked_language(size: Size) -> Called:
    """Words predicted at every place, with tied embeddings."""
    table = tf.Variable(tf.random.stateless_normal((256, 4 * size.channels), (1, 2)) / 8)
    attention = layers.MultiHeadAttention(4, size.channels)
    shape = (size.batch, 2 * size.side)
    attention.build((None, None, 4 * size.channels), (None, None, 4 * size.channels))

    def step(words: Any) -> Any:
        variables = [table, *(each.value for each in attention.trainable_variables)]
        with tf.GradientTape() as tape:
            x = tf.gather(table, words)
            x = x + attention(x, x, use_causal_mask=True)
            logits = tf.einsum("btc,wc->btw", x, table)
            loss = cross_entropy(words[:, 1:], logits[:, :-1])
        descend(variables, tape.gradient(loss, variables), 0.1)
        return loss

    draw = np.random.default_rng(0)
    data = [(tf.constant(draw.integers(0, 256, shape), tf.int32),) for _ in range(STEPS)]
    return Called(step, data, [[table], attention])


def _ctc(size: Size) -> Called:
    """A loss over alignments of words with a longer sequence."""
    dense = layers.Dense(12)
    dense.build((None, None, size.channels))
    first = layers.Conv1D(size.channels, 5, padding="same", activation="relu")
    first.build((None, 4 * size.side, size.channels))

    def step(sounds: Any, words: Any) -> Any:
        variables = [each.value for each in (*dense.variables, *first.variables)]
        with tf.GradientTape() as tape:
            logits = dense(first(sounds))
            lengths = tf.fill((tf.shape(sounds)[0],), tf.shape(logits)[1])
            spoken = tf.fill((tf.shape(words)[0],), tf.shape(words)[1])
            loss = tf.reduce_mean(
                tf.nn.ctc_loss(words, logits, spoken, lengths, logits_time_major=False)
            )
        descend(variables, tape.gradient(loss, variables))
        return loss

    draw = np.random.default_rng(0)
    shape = (size.batch, 4 * size.side, size.channels)
    data = [
        (
            tf.constant(draw.normal(size=shape), tf.float32),
            tf.constant(draw.integers(1, 10, (size.batch, 5)), tf.int32),
        )
        for _ in range(STEPS)
    ]
    return Called(step, data, [dense, first])


_LOOPS: dict[str, Callable[[Size], Called]] = {
    "variables updated by hand": _updated_by_hand,
    "loss and gradients returned": _gradients_returned,
    "two half batches in a step": _micro_batches,
    "gradient penalty": _gradient_penalty,
    "persistent tape": _persistent_tape,
    "adversarial examples": _attacked,
    "update inside a condition": _skipped_if_not_finite,
    "counter, metric and print": _counted,
    "two updates in a call": _several_steps_in_a_loop,
    "tied embeddings": _masked_language,
    "CTC loss": _ctc,
}


def kinds() -> list[Kind]:
    """All of them."""

    def optimized(make: Callable[[], Any]) -> Callable[[Size], Called]:
        return lambda size: _optimized(make, size)

    found = [Kind(name, "optimizers", optimized(make)) for name, make in _OPTIMIZERS.items()]
    found += [Kind(name, "loops", make) for name, make in _LOOPS.items()]
    return found
