"""Small real train steps, shared by the tests that need TensorFlow."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from checkmate_tf.devices.current import current_device
from checkmate_tf.graph.extraction import Extraction, extract_step
from checkmate_tf.program.forecast import Forecast, forecast
from checkmate_tf.program.lower import lower
from solvers import ComputationGraph, Schedule, solve

SPEC = tf.TensorSpec((64, 64))
"""What the steps of `extraction_of` are called with."""


def extraction_of(step: Any) -> Any:
    """The extraction of a function of one argument."""
    return extract_step(tf.function(step).get_concrete_function(SPEC))


def loss_and_gradient(x):
    """Three products and tanhs of a square matrix, and the gradient."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(3):
            y = tf.tanh(y @ x)
        loss = tf.reduce_sum(y)
    return loss, tape.gradient(loss, x)


def recomputing(graph: ComputationGraph) -> list[int]:
    """Every value is recomputed before each of its readers, as far as it may be."""
    steps: list[int] = []
    for number, node in enumerate(graph.nodes):
        read = (graph.nodes[i] for i in node.dependencies)
        for i, each in zip(node.dependencies, read, strict=True):
            if each.recomputable and not set(each.expired_by) & set(steps):
                steps.append(i)
        steps.append(number)
    return steps


def small_cnn(dropout: float = 0.0, side: int = 32) -> Any:
    """Convolutions with bias, batch normalization, a skip connection, optional dropout."""
    keras.utils.set_random_seed(1)
    inputs = x = keras.Input((side, side, 3))
    for _ in range(3):
        x = layers.Conv2D(16, 3, padding="same")(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.Add()([x, layers.Conv2D(16, 1)(x)])
    x = layers.Dropout(dropout)(x)
    x = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    model = keras.Model(inputs, x)
    model.compile(
        optimizer=keras.optimizers.SGD(0.05, momentum=0.9),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    model.optimizer.build(model.trainable_variables)
    return model


def random_batch(batch: int = 8, side: int = 32, seed: int = 0) -> tuple[Any, Any]:
    """Images and labels."""
    generator = np.random.default_rng(seed)
    images = tf.constant(generator.normal(size=(batch, side, side, 3)), tf.float32)
    return images, tf.constant(generator.integers(0, 10, batch), tf.int32)


def schedule_of(extraction: Any, kind: str) -> Schedule:
    """A schedule in "input order", or a "rematerialized" one."""
    if kind == "input order":
        return Schedule(range(len(extraction.graph)))
    solution = solve(extraction.graph, 0.7, time_limit=3, order="free")
    assert solution.schedule is not None
    assert len(solution.schedule) > len(extraction.graph)
    return solution.schedule


def all_before(operation: Any) -> set[str]:
    """Names of all operations of a TensorFlow graph that must have run before `operation`."""
    found: set[str] = set()
    pending = [operation]
    while pending:
        each = pending.pop()
        before = [*each.control_inputs, *(tensor.op for tensor in each.inputs)]
        pending += [other for other in before if other.name not in found]
        found |= {other.name for other in before}
    return found


def all_variables(model: Any) -> list[Any]:
    """Weights, statistics, seeds, metrics and optimizer slots."""
    return [*model.variables, *model.optimizer.variables]


def snapshot(model: Any) -> list[Any]:
    """Copies of the values of all variables."""
    return [np.array(each) for each in all_variables(model)]


def restore(model: Any, values: list[Any]) -> None:
    """Put the values of `snapshot` back."""
    for variable, value in zip(all_variables(model), values, strict=True):
        variable.assign(value)


def train_from(model: Any, start: list[Any], step: Any, steps: int = 3, **size: int) -> list[Any]:
    """The variables after some steps from `start`."""
    restore(model, start)
    for number in range(steps):
        step(random_batch(seed=number, **size))
    return snapshot(model)


def noisy_step(weights):
    """A step whose kernels draw random numbers of their own."""

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            for number in range(6):
                noise = tf.random.normal(tf.shape(x), seed=number)
                x = tf.tanh((x + 0.1 * noise) @ weights)
            loss = tf.reduce_sum(x)
        return loss, tape.gradient(loss, weights)

    return step


def noisy_question():
    """A step that draws random numbers, not yet run, its input, and three losses of its equal."""
    x = tf.ones((512, 128))
    weights = tf.Variable(tf.random.stateless_normal((128, 128), (1, 2)) / 11)
    tf.random.set_seed(7)
    plain = noisy_step(weights)
    expected = [plain(x)[0].numpy() for _ in range(3)]
    tf.random.set_seed(7)
    return noisy_step(weights), x, expected


def forecast_here(
    extracted: Extraction, schedule: Schedule, held: int = 0, **options: Any
) -> Forecast:
    """What the allocator of the device that computes will hold, as `forecast` says it."""
    device = current_device()
    instructions = lower(extracted, schedule, device)
    return forecast(extracted.program, instructions, held, at_once=device.at_once(), **options)
