"""Kinds of steps that learn in a way of their own: by detours, by rewards, by solvers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from experiments.coverage.kind import STEPS, Called, Kind, Size
from experiments.coverage.loops import batches, cross_entropy, descend, network


def _sharpness_aware(size: Size) -> Called:
    """As of Foret et al., 2021 (SAM): the weights move uphill, and back, between two gradients."""
    model = network(size)
    optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    optimizer.build(model.trainable_variables)

    def step(images: Any, labels: Any) -> Any:
        variables = model.trainable_variables
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True))
        gradients = tape.gradient(loss, variables)
        norm = tf.linalg.global_norm(gradients) + 1e-12
        moves = [0.05 * each / norm for each in gradients]
        for variable, move in zip(variables, moves, strict=True):
            variable.assign_add(move)
        with tf.GradientTape() as tape:
            uphill = cross_entropy(labels, model(images, training=True))
        gradients = tape.gradient(uphill, variables)
        for variable, move in zip(variables, moves, strict=True):
            variable.assign_sub(move)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss, uphill

    return Called(step, batches(size), [model, optimizer])


def _lookahead(size: Size) -> Called:
    """As of Zhang et al., 2019: every second step the weights go halfway back to slow ones."""
    model, count = network(size), tf.Variable(0, dtype=tf.int64)
    slow = [tf.Variable(each.value) for each in model.trainable_variables]

    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        descend(model.trainable_variables, gradients)
        if count.assign_add(1) % 2 == 0:  # which autograph makes a tf.cond
            for variable, each in zip(model.trainable_variables, slow, strict=True):
                each.assign_add(0.5 * (variable - each))
                variable.assign(each)
        return loss

    return Called(step, batches(size), [model, slow, [count]])


def _meta(size: Size) -> Called:
    """As of Finn et al., 2017 (MAML): a gradient through a gradient's step."""
    draw = np.random.default_rng(1)
    width = 8 * size.channels
    shapes = [(1, width), (width,), (width, width), (width,), (width, 1), (1,)]
    variables = [
        tf.Variable(tf.cast(draw.normal(size=each) / np.sqrt(each[0]), tf.float32))
        for each in shapes
    ]

    def found(x: Any, weights: Sequence[Any]) -> Any:
        for w, b in zip(weights[:-2:2], weights[1:-2:2], strict=True):
            x = tf.nn.relu(x @ w + b)
        return x @ weights[-2] + weights[-1]

    def loss_of(x: Any, y: Any, weights: Sequence[Any]) -> Any:
        return tf.reduce_mean((found(x, weights) - y) ** 2)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as outer:
            losses = []
            for task in range(3):
                weights = list(variables)
                for _ in range(2):
                    with tf.GradientTape() as inner:
                        inner.watch(weights)
                        loss = loss_of(x[task], y[task], weights)
                    gradients = inner.gradient(loss, weights)
                    weights = [w - 0.01 * g for w, g in zip(weights, gradients, strict=True)]
                losses.append(loss_of(x[task], y[task], weights))
            total = tf.add_n(losses) / len(losses)
        descend(variables, outer.gradient(total, variables))
        return total

    points = 8 * size.batch * size.side
    data = [
        (
            tf.constant(draw.uniform(-3, 3, (3, points, 1)), tf.float32),
            tf.constant(draw.normal(size=(3, points, 1)), tf.float32),
        )
        for _ in range(STEPS)
    ]
    return Called(step, data, [variables])


def _policy(size: Size) -> Called:
    """As of Schulman et al., 2017 (PPO): what an action was worth, by a scan from the end."""
    x = inputs = keras.Input((4 * size.channels,))
    for _ in range(size.depth):
        x = layers.Dense(8 * size.channels, activation="tanh")(x)
    model = keras.Model(inputs, [layers.Dense(6)(x), layers.Dense(1)(x)])
    optimizer = keras.optimizers.Adam(0.001, clipnorm=0.5)
    optimizer.build(model.trainable_variables)

    def advantages(rewards: Any, values: Any) -> Any:
        deltas = rewards + 0.99 * tf.concat([values[1:], [0.0]], 0) - values
        return tf.scan(lambda a, b: b + 0.95 * a, deltas, tf.constant(0.0), reverse=True)

    def step(seen: Any, actions: Any, rewards: Any, before: Any) -> Any:
        places = tf.stack([tf.range(tf.shape(actions)[0]), actions], axis=1)
        with tf.GradientTape() as tape:
            logits, values = model(seen, training=True)
            values = tf.squeeze(values, -1)
            now = tf.gather_nd(tf.nn.log_softmax(logits), places)
            worth = tf.stop_gradient(advantages(rewards, values))
            ratio = tf.exp(now - before)
            clipped = tf.clip_by_value(ratio, 0.8, 1.2)
            loss = -tf.reduce_mean(tf.minimum(ratio * worth, clipped * worth))
            loss += 0.5 * tf.reduce_mean((rewards - values) ** 2)
            chances = tf.nn.softmax(logits)
            loss += 0.01 * tf.reduce_mean(
                tf.reduce_sum(chances * tf.nn.log_softmax(logits), axis=-1)
            )
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss, tf.random.categorical(logits, 1, seed=1)

    draw = np.random.default_rng(0)
    count = size.batch * size.side
    data = [
        (
            tf.constant(draw.normal(size=(count, 4 * size.channels)), tf.float32),
            tf.constant(draw.integers(0, 6, count), tf.int32),
            tf.constant(draw.normal(size=count), tf.float32),
            tf.constant(draw.normal(size=count) - 2, tf.float32),
        )
        for _ in range(STEPS)
    ]
    return Called(step, data, [model, optimizer])


def _replayed(size: Size) -> Called:
    """As of Mnih et al., 2015 (DQN): a memory that is written and drawn from in the step."""
    model, target = network(size, outputs=4), network(size, outputs=4)
    room = 4 * size.batch
    shape = (room, size.side, size.side, 3)
    memory = tf.Variable(tf.zeros(shape)), tf.Variable(tf.zeros(room, tf.int32))
    count = tf.Variable(0)

    def step(images: Any, labels: Any) -> Any:
        places = (count + tf.range(tf.shape(images)[0])) % room
        memory[0].scatter_nd_update(places[:, None], images)
        memory[1].scatter_nd_update(places[:, None], labels % 4)
        count.assign_add(tf.shape(images)[0])
        drawn = tf.random.uniform((size.batch,), 0, room, tf.int32, seed=1)
        seen, actions = tf.gather(memory[0], drawn), memory[1].sparse_read(drawn)
        wanted = tf.reduce_max(target(seen, training=False), axis=-1)
        with tf.GradientTape() as tape:
            values = tf.gather(model(seen, training=True), actions, batch_dims=1)
            loss = keras.losses.huber(0.5 + 0.9 * wanted, values)
        gradients = tape.gradient(loss, model.trainable_variables)
        descend(model.trainable_variables, gradients)

        def follow() -> None:
            for ours, theirs in zip(target.weights, model.weights, strict=True):
                ours.assign(theirs)

        tf.cond(count % 2 == 0, follow, lambda: None)
        return loss

    return Called(step, batches(size), [model, target, [*memory, count]])


def _forward_and_backward(size: Size) -> Called:
    """A product of the Hessian and a vector, forward over backward, scales the step."""
    model = network(size, dropout=0.0)

    def step(images: Any, labels: Any) -> Any:
        variables = [each.value for each in model.trainable_variables]
        along = [tf.ones_like(each) for each in variables]
        with tf.autodiff.ForwardAccumulator(variables, along) as forward:
            with tf.GradientTape() as tape:
                loss = cross_entropy(labels, model(images, training=False))
            gradients = tape.gradient(loss, variables)
        curved = forward.jvp(gradients)
        size_of_curve = tf.linalg.global_norm(curved)
        descend(variables, [each / (1.0 + size_of_curve) for each in gradients])
        return loss

    return Called(step, batches(size), [model])


def _each_gradient(size: Size) -> Called:
    """Gradients of every example, clipped and noisy, by a Jacobian (as private training does)."""
    model = keras.Sequential(
        [
            keras.Input((size.side, size.side, 3)),
            layers.Conv2D(size.channels, 3, strides=2, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )

    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, model(images, training=True)
            )
        variables = model.trainable_variables
        all_of_them = tape.jacobian(losses, variables)
        squares = [tf.reduce_sum(tf.reshape(g, (g.shape[0], -1)) ** 2, 1) for g in all_of_them]
        shrink = tf.minimum(1.0, 1.0 / tf.sqrt(tf.add_n(squares) + 1e-12))
        clipped = [tf.einsum("b,b...->...", shrink, each) for each in all_of_them]
        noisy = [each + 0.1 * tf.random.normal(each.shape, seed=1) for each in clipped]
        descend(variables, noisy)
        return tf.reduce_mean(losses)

    return Called(step, batches(size), [model])


def _gaussian_process(size: Size) -> Called:
    """The likelihood of a Gaussian process: Cholesky, a triangular solve, eigenvalues."""
    scales = tf.Variable([1.0, 0.5, 0.3])
    points = tf.Variable(tf.random.stateless_normal((16 * size.channels, 4), (1, 2)))

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            far = tf.reduce_sum((x[:, None] - x[None]) ** 2, -1) / scales[0] ** 2
            matrix = scales[1] ** 2 * tf.exp(-0.5 * far)
            matrix = tf.linalg.set_diag(matrix, tf.linalg.diag_part(matrix) + scales[2] ** 2)
            root = tf.linalg.cholesky(matrix)
            solved = tf.linalg.triangular_solve(root, y[:, None])
            loss = tf.reduce_sum(solved**2) + 2 * tf.reduce_sum(
                tf.math.log(tf.linalg.diag_part(root))
            )
            values, _, _ = tf.linalg.svd(points)
            loss += tf.reduce_sum(tf.nn.relu(values - 1.0))
            loss += 0.1 * tf.reduce_max(tf.linalg.eigvalsh(tf.matmul(points, points, True)))
        variables = [scales, points]
        descend(variables, tape.gradient(loss, variables), 1e-4)
        return loss

    draw = np.random.default_rng(0)
    count = 8 * size.batch
    data = [
        (
            tf.constant(draw.normal(size=(count, 4)), tf.float32),
            tf.constant(draw.normal(size=count), tf.float32),
        )
        for _ in range(STEPS)
    ]
    return Called(step, data, [[scales, points]])


def _adjoint(size: Size) -> Called:
    """As of Chen et al., 2018: a differential equation, and its gradient by another backwards."""
    kernel = tf.Variable(tf.random.stateless_normal((size.channels, size.channels), (1, 2)) / 4)

    def slope(x: Any) -> Any:
        return tf.tanh(tf.einsum("bijc,cd->bijd", x, kernel))

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def solved(x: Any) -> Any:
        def onward(time: Any, x: Any) -> Any:
            return time + 1, x + 0.25 * slope(x)

        _, end = tf.while_loop(lambda time, _: time < 4, onward, (0, x))

        def back(time: Any, y: Any, dy: Any, dw: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(y)
                moved = 0.25 * slope(y)
            along, weight = tape.gradient(moved, [y, kernel], output_gradients=dy)
            return time + 1, y - moved, dy + along, dw + weight

        def gradient(dy: Any, variables: Any = None) -> Any:
            start = 0, end, dy, tf.zeros_like(kernel)
            _, _, dx, dw = tf.while_loop(lambda time, *_: time < 4, back, start)
            return dx, [dw]

        return end, gradient

    lift = layers.Conv2D(size.channels, 3, padding="same")
    lift.build((None, size.side, size.side, 3))

    def step(images: Any, labels: Any) -> Any:
        variables = [kernel, *(each.value for each in lift.trainable_variables)]
        with tf.GradientTape() as tape:
            y = solved(lift(images))
            loss = tf.reduce_mean((tf.reduce_mean(y, -1) - tf.reduce_mean(images, -1)) ** 2)
        descend(variables, tape.gradient(loss, variables), 0.1)
        return loss

    return Called(step, batches(size), [[kernel], lift])


def _weight_normalized(size: Size) -> Called:
    """As of Salimans and Kingma, 2016: a kernel is a direction and a length."""
    draw = np.random.default_rng(1)
    shape = (3, 3, size.channels, size.channels)
    directions = [
        tf.Variable(tf.cast(draw.normal(size=shape), tf.float32)) for _ in range(size.depth)
    ]
    lengths = [tf.Variable(tf.ones(size.channels)) for _ in range(size.depth)]
    first = tf.Variable(tf.cast(draw.normal(size=(3, 3, 3, size.channels)) / 4, tf.float32))

    def step(images: Any, labels: Any) -> Any:
        variables = [first, *directions, *lengths]
        with tf.GradientTape() as tape:
            x = tf.nn.conv2d(images, first, 1, "SAME")
            for direction, length in zip(directions, lengths, strict=True):
                kernel = length * tf.nn.l2_normalize(direction, axis=[0, 1, 2])
                x = x + tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
            loss = cross_entropy(labels, tf.reduce_mean(x, axis=[1, 2]))
            loss += 1e-4 * tf.add_n([tf.nn.l2_loss(each) for each in directions])
        descend(variables, tape.gradient(loss, variables))
        return loss

    small = [(images, labels % size.channels) for images, labels in batches(size)]
    return Called(step, small, [[first, *directions, *lengths]])


_STEPS: dict[str, Callable[[Size], Called]] = {
    "sharpness-aware minimization": _sharpness_aware,
    "Lookahead": _lookahead,
    "learning to learn": _meta,
    "policy gradient": _policy,
    "replayed memory": _replayed,
    "forward-mode derivatives": _forward_and_backward,
    "gradients of every example": _each_gradient,
    "Gaussian process": _gaussian_process,
    "differential equation": _adjoint,
    "weight normalization": _weight_normalized,
}


def kinds() -> list[Kind]:
    """All of them."""
    return [Kind(name, "learning", make) for name, make in _STEPS.items()]
