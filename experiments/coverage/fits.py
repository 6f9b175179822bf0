"""Kinds of Keras training: `fit` and what people hand to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from experiments.coverage.kind import STEPS, Fitted, Kind, Size
from experiments.coverage.loops import network

Options = dict[str, Any]


def _arrays(size: Size, more: int = 0) -> tuple[Any, Any]:
    draw = np.random.default_rng(0)
    count = STEPS * size.batch + more
    images = draw.normal(size=(count, size.side, size.side, 3)).astype("float32")
    return images, draw.integers(0, 10, count).astype("int32")


def _compiled(model: Any, **options: Any) -> Any:
    options.setdefault("optimizer", keras.optimizers.SGD(0.01, momentum=0.9))
    options.setdefault("loss", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.compile(jit_compile=False, **options)
    if model.trainable_variables:
        model.optimizer.build(model.trainable_variables)
    return model


def _fit(compile: Callable[[], Options] = dict, **options: Any) -> Callable[[Size], Fitted]:
    """A network trained by `fit(x, y)` with these options of `compile` and `fit`."""

    def make(size: Size) -> Fitted:
        model = _compiled(network(size), **compile())
        x, y = _arrays(size)

        def train(model: Any) -> Any:
            made = {key: each() if callable(each) else each for key, each in options.items()}
            made = {"batch_size": size.batch, "shuffle": False, "verbose": 0, **made}
            return model.fit(x, y, **made).history

        return Fitted(model, train, size.batch)

    return make


def _fitted(build: Callable[[Size], tuple[Any, Callable[[Any], Any]]]) -> Callable[[Size], Fitted]:
    return lambda size: Fitted(*build(size), size.batch)


def _partial_batch(size: Size) -> tuple[Any, Callable[[Any], Any]]:
    x, y = _arrays(size, more=size.batch // 2)
    return _compiled(
        network(size)
    ), lambda model: model.fit(x, y, batch_size=size.batch, shuffle=False, verbose=0).history


def _data_set(size: Size, **options: Any) -> Any:
    x, y = _arrays(size)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(size.batch, **options)


def _weighted(size: Size) -> tuple[Any, Callable[[Any], Any]]:
    x, y = _arrays(size)
    weights = np.linspace(0, 1, len(y)).astype("float32")
    return (
        _compiled(network(size)),
        lambda model: (
            model.fit(
                x, y, sample_weight=weights, batch_size=size.batch, shuffle=False, verbose=0
            ).history
        ),
    )


def _of_data_set(**options: Any) -> Callable[[Size], Fitted]:
    def make(size: Size) -> Fitted:
        data = _data_set(size, **options)
        model = _compiled(network(size))
        return Fitted(model, lambda model: model.fit(data, verbose=0).history, size.batch)

    return make


def _generator(size: Size) -> tuple[Any, Callable[[Any], Any]]:
    x, y = _arrays(size)

    def batches() -> Any:
        for start in range(0, len(y), size.batch):
            yield x[start : start + size.batch], y[start : start + size.batch]

    return _compiled(network(size)), lambda model: model.fit(batches(), verbose=0).history


def _train_on_batch(size: Size) -> tuple[Any, Callable[[Any], Any]]:
    x, y = _arrays(size)
    starts = range(0, len(y), size.batch)
    return _compiled(network(size)), lambda model: [
        model.train_on_batch(x[each : each + size.batch], y[each : each + size.batch])
        for each in starts
    ]


def _two_inputs(size: Size) -> tuple[Any, Callable[[Any], Any]]:
    inputs = {name: keras.Input((size.side, size.side, 3), name=name) for name in ("a", "b")}
    parts = [layers.Conv2D(size.channels, 3, activation="relu")(each) for each in inputs.values()]
    x = layers.Conv2D(size.channels, 3, activation="relu")(layers.Concatenate()(parts))
    x = layers.GlobalAveragePooling2D()(x)
    outputs = {"label": layers.Dense(10, name="label")(x), "size": layers.Dense(1, name="size")(x)}
    model = _compiled(
        keras.Model(inputs, outputs),
        loss={
            "label": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            "size": "mse",
        },
        loss_weights={"label": 1.0, "size": 0.1},
    )
    x, y = _arrays(size)
    return (
        model,
        lambda model: (
            model.fit(
                {"a": x, "b": x[::-1].copy()},
                {"label": y, "size": y.astype("float32")},
                batch_size=size.batch,
                shuffle=False,
                verbose=0,
            ).history
        ),
    )


class Subclassed(keras.Model):  # type: ignore[misc]
    """A model with a forward pass of its own, and a loss that it adds."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.convolutions = [
            layers.Conv2D(size.channels, 3, padding="same") for _ in range(size.depth)
        ]
        self.norm, self.dense = layers.BatchNormalization(), layers.Dense(10)
        self.dropout = layers.Dropout(0.1)

    def call(self, x: Any, training: bool = False) -> Any:
        """The logits."""
        for each in self.convolutions:
            x = keras.ops.relu(each(x))
        self.add_loss(1e-4 * keras.ops.mean(x * x))
        x = self.dropout(self.norm(x, training=training), training=training)
        return self.dense(keras.ops.mean(x, axis=(1, 2)))


class WithItsOwnTrainStep(Subclassed):
    """With a `train_step` of its own."""

    def train_step(self, data: Any) -> Any:
        """One update; the loss."""
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True), training=True)
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return {"loss": loss}


def _subclassed(kind: type[Subclassed]) -> Callable[[Size], Fitted]:
    def make(size: Size) -> Fitted:
        model = kind(size)
        model(tf.zeros((1, size.side, size.side, 3)))
        x, y = _arrays(size)
        return Fitted(
            _compiled(model),
            lambda model: model.fit(x, y, batch_size=size.batch, shuffle=False, verbose=0).history,
            size.batch,
        )

    return make


def _frozen(size: Size) -> tuple[Any, Callable[[Any], Any]]:
    model = network(size)
    for layer in model.layers[: len(model.layers) // 2]:
        layer.trainable = False
    x, y = _arrays(size)
    return _compiled(
        model
    ), lambda model: model.fit(x, y, batch_size=size.batch, shuffle=False, verbose=0).history


def _inside_another(size: Size) -> tuple[Any, Callable[[Any], Any]]:
    model = keras.Sequential([keras.Input((size.side, size.side, 3)), network(size, outputs=16)])
    model.add(layers.Dense(10))
    x, y = _arrays(size)
    return _compiled(
        model
    ), lambda model: model.fit(x, y, batch_size=size.batch, shuffle=False, verbose=0).history


def _mixed(policy: str) -> Callable[[Size], Fitted]:
    def make(size: Size) -> Fitted:
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(policy)
        try:
            return _fit()(size)
        finally:
            keras.config.set_dtype_policy(before)

    return make


def _compiled_again(size: Size) -> tuple[Any, Callable[[Any], Any]]:
    x, y = _arrays(size)
    options = {"batch_size": size.batch, "shuffle": False, "verbose": 0}

    def train(model: Any) -> Any:
        first = model.fit(x, y, **options).history
        _compiled(model, optimizer=keras.optimizers.Adam(0.001))
        return first, model.fit(x, y, **options).history

    return _compiled(network(size)), train


def _stateful_recurrent(size: Size) -> tuple[Any, Callable[[Any], Any]]:
    inputs = keras.Input((2 * size.side, size.channels), batch_size=size.batch)
    x = layers.LSTM(2 * size.channels, stateful=True, return_sequences=True)(inputs)
    model = keras.Model(inputs, layers.Dense(10)(layers.GRU(size.channels)(x)))
    x, y = _arrays(size)
    x = np.tile(x.reshape(len(y), -1), 4)[:, : 2 * size.side * size.channels]
    x = x.reshape(len(y), 2 * size.side, size.channels)
    return _compiled(
        model
    ), lambda model: model.fit(x, y, batch_size=size.batch, shuffle=False, verbose=0).history


def _schedule() -> list[Any]:
    return [keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / (1 + epoch))]


_FITS: dict[str, Callable[[Size], Fitted]] = {
    "fit(x, y)": _fit(),
    "two epochs and validation": _fit(epochs=2, validation_split=0.34),
    "callbacks": _fit(epochs=2, callbacks=_schedule),
    "class weights": _fit(class_weight=lambda: {each: 1 + each / 10 for each in range(10)}),
    "sample weights": _fitted(_weighted),
    "metrics": _fit(
        lambda: {"metrics": ["accuracy", keras.metrics.SparseTopKCategoricalAccuracy()]}
    ),
    "several steps per execution": _fit(lambda: {"steps_per_execution": 3}),
    "automatic loss scale": _fit(lambda: {"auto_scale_loss": True}),
    "Adam": _fit(lambda: {"optimizer": keras.optimizers.Adam(0.001)}),
    "accumulated gradients": _fit(
        lambda: {"optimizer": keras.optimizers.SGD(0.01, gradient_accumulation_steps=2)}
    ),
    "partial last batch": _fitted(_partial_batch),
    "data set": _of_data_set(),
    "data set of known shapes": _of_data_set(drop_remainder=True),
    "generator": _fitted(_generator),
    "train_on_batch": _fitted(_train_on_batch),
    "two inputs and two outputs": _fitted(_two_inputs),
    "subclassed model": _subclassed(Subclassed),
    "subclassed model with its own train_step": _subclassed(WithItsOwnTrainStep),
    "frozen layers": _fitted(_frozen),
    "model inside a model": _fitted(_inside_another),
    "compiled again with another optimizer": _fitted(_compiled_again),
    "stateful recurrent layers": _fitted(_stateful_recurrent),
    "mixed_bfloat16": _mixed("mixed_bfloat16"),
    "mixed_float16": _mixed("mixed_float16"),
}


def kinds() -> list[Kind]:
    """All of them."""
    return [Kind(name, "fit", make) for name, make in _FITS.items()]
