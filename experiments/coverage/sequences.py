"""Kinds of steps over sounds, texts and other things that come one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from experiments.coverage.kind import STEPS, Called, Kind, Size
from experiments.coverage.loops import cross_entropy, descend

WORDS = 64


def _texts(size: Size, length: int) -> list[tuple[Any, Any]]:
    draw = np.random.default_rng(0)
    shape = (size.batch, length)
    return [
        (
            tf.constant(draw.integers(1, WORDS, shape), tf.int32),
            tf.constant(draw.integers(1, WORDS, shape), tf.int32),
        )
        for _ in range(STEPS)
    ]


def _decoder(size: Size) -> Any:
    """A transformer that sees no later word; its positions are a table."""
    width = 2 * size.channels
    x = inputs = keras.Input((None,), dtype="int32")
    x = layers.Embedding(WORDS, width)(x)
    for _ in range(size.depth):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(4, width // 4, dropout=0.1)(y, y, use_causal_mask=True)
        y = layers.LayerNormalization()(x)
        x = x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(y))
    return keras.Model(inputs, layers.Dense(WORDS)(layers.LayerNormalization()(x)))


def _decoded_in_a_loop(size: Size) -> Called:
    """Words that the model itself says, in a `tf.while_loop`, and what they teach it."""
    model = _decoder(size)
    optimizer = keras.optimizers.AdamW(0.001)
    optimizer.build(model.trainable_variables)
    length = size.side

    def step(words: Any, unused: Any) -> Any:
        def longer(place: Any, said: Any) -> Any:
            logits = model(said, training=False)
            last = tf.gather(logits, place, axis=1)
            word = tf.argmax(last, axis=-1, output_type=tf.int32)
            row = tf.one_hot(place + 1, length, dtype=tf.int32)
            return place + 1, said * (1 - row) + word[:, None] * row

        start = words[:, :length] * tf.one_hot(0, length, dtype=tf.int32)
        _, said = tf.while_loop(lambda place, _: place < 4, longer, (tf.constant(0), start))
        seen = tf.where(tf.random.uniform(tf.shape(said), seed=1) < 0.25, said, words[:, :length])
        with tf.GradientTape() as tape:
            logits = model(seen[:, :-1], training=True)
            loss = cross_entropy(words[:, 1:length], logits)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss, said

    return Called(step, _texts(size, 2 * size.side), [model, optimizer])


class _Translator:
    """As of Bahdanau et al., 2015: a decoder that looks at the encoder's states, word by word."""

    def __init__(self, width: int) -> None:
        self.table = layers.Embedding(WORDS, width, mask_zero=True)
        self.encoder = layers.Bidirectional(layers.GRU(width, return_sequences=True))
        self.cell = layers.GRUCell(width)
        self.keys, self.query = layers.Dense(width), layers.Dense(width)
        self.score, self.words = layers.Dense(1), layers.Dense(WORDS)

    @property
    def variables(self) -> list[Any]:
        """Those that its layers learn."""
        return [each for layer in vars(self).values() for each in layer.trainable_variables]

    def __call__(self, source: Any, target: Any) -> Any:
        """What comes after each word of `target`."""
        states = self.encoder(self.table(source))
        keys, heard = self.keys(states), self.table(target)
        state = tf.zeros((tf.shape(source)[0], self.cell.units))
        said = tf.TensorArray(tf.float32, size=target.shape[1])
        for place in tf.range(target.shape[1]):
            scores = self.score(tf.tanh(keys + self.query(state)[:, None]))
            context = tf.reduce_sum(tf.nn.softmax(scores, axis=1) * states, axis=1)
            word = tf.concat([heard[:, place], context], axis=-1)
            state, _ = self.cell(word, [state])
            said = said.write(place, self.words(state))
        return tf.transpose(said.stack(), (1, 0, 2))


def _translated(size: Size) -> Called:
    """The decoder is a loop over a `tf.TensorArray` that autograph makes, with teacher forcing."""
    model = _Translator(2 * size.channels)
    model(tf.ones((1, 2), tf.int32), tf.ones((1, 2), tf.int32))
    optimizer = keras.optimizers.Adam(0.001)
    optimizer.build(model.variables)

    def step(source: Any, target: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model(source, target[:, :-1])
            said = target[:, 1:]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(said, logits)
            mask = tf.cast(said != 0, losses.dtype)
            loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
        gradients = tape.gradient(loss, model.variables)
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        optimizer.apply_gradients(zip(gradients, model.variables, strict=True))
        return loss

    data = [(source * tf.cast(source > 8, tf.int32), said) for source, said in _texts(size, 12)]
    return Called(step, data, [model, optimizer])


def _masked_recurrent(size: Size) -> Called:
    """Padded texts: a mask goes through bidirectional layers, one of them with dropout."""
    x = inputs = keras.Input((None,), dtype="int32")
    x = layers.Embedding(WORDS, 2 * size.channels, mask_zero=True)(x)
    x = layers.Bidirectional(layers.LSTM(size.channels, return_sequences=True, dropout=0.1))(x)
    x = layers.Bidirectional(layers.GRU(size.channels), merge_mode="sum")(x)
    model = keras.Model(inputs, layers.Dense(WORDS)(x))
    optimizer = keras.optimizers.RMSprop(0.001)
    optimizer.build(model.trainable_variables)

    def step(words: Any, more: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = cross_entropy(more[:, 0], model(words, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    data = [
        (words * tf.sequence_mask(tf.math.abs(more[:, 0]) % 20 + 4, 2 * size.side, tf.int32), more)
        for words, more in _texts(size, 2 * size.side)
    ]
    return Called(step, data, [model, optimizer])


def _spectra(size: Size) -> Called:
    """Sounds made from sounds, compared by their spectra at several lengths of a window."""
    x = inputs = keras.Input((32 * size.side, 1))
    for level in range(size.depth):
        x = layers.Conv1D(size.channels, 7, padding="causal", dilation_rate=2**level)(x)
        x = layers.Activation("tanh")(x)
    model = keras.Model(inputs, layers.Conv1D(1, 1)(x))
    optimizer = keras.optimizers.Adam(0.001)
    optimizer.build(model.trainable_variables)
    scale = tf.signal.linear_to_mel_weight_matrix(20, 33, 8000, 80.0, 3800.0)

    def spectrum(x: Any, window: int) -> Any:
        return tf.abs(tf.signal.stft(x, window, window // 4, fft_length=window))

    def step(sounds: Any) -> Any:
        noisy = sounds + 0.1 * tf.random.stateless_normal(tf.shape(sounds), (1, 2))
        with tf.GradientTape() as tape:
            made = tf.squeeze(model(noisy[..., None], training=True), -1)
            loss = tf.reduce_mean(tf.abs(made - sounds))
            for window in (32, 64, 128):
                ours, theirs = spectrum(made, window), spectrum(sounds, window)
                loss += tf.reduce_mean(tf.abs(ours - theirs))
                loss += tf.norm(ours - theirs) / tf.norm(theirs)
            mel = [tf.math.log(spectrum(each, 64) @ scale + 1e-5) for each in (made, sounds)]
            loss += tf.reduce_mean((mel[0] - mel[1]) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    draw = np.random.default_rng(0)
    shape = (size.batch, 32 * size.side)
    data = [(tf.constant(draw.normal(size=shape), tf.float32),) for _ in range(STEPS)]
    return Called(step, data, [model, optimizer])


def _keras_ctc(size: Size) -> Called:
    """`keras.losses.CTC` over a network of convolutions and a bidirectional layer."""
    x = inputs = keras.Input((4 * size.side, size.channels))
    for _ in range(size.depth):
        x = layers.Conv1D(2 * size.channels, 5, padding="same", activation="relu")(x)
    x = layers.Bidirectional(layers.LSTM(size.channels, return_sequences=True))(x)
    model = keras.Model(inputs, layers.Dense(12)(x))
    loss_of = keras.losses.CTC()

    def step(sounds: Any, words: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(words, model(sounds, training=True))
        descend(model.trainable_variables, tape.gradient(loss, model.trainable_variables))
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
    return Called(step, data, [model])


def _truncated(size: Size) -> Called:
    """A long text in parts, each with the state of the one before, in a variable."""
    cell = layers.LSTMCell(2 * size.channels)
    cell.build((None, 2 * size.channels))
    table = tf.Variable(tf.random.stateless_normal((WORDS, 2 * size.channels), (1, 2)) / 8)
    state = [tf.Variable(tf.zeros((size.batch, 2 * size.channels))) for _ in range(2)]

    def step(words: Any, following: Any) -> Any:
        variables = [table, *(each.value for each in cell.trainable_variables)]
        with tf.GradientTape() as tape:
            now, losses = [tf.convert_to_tensor(each) for each in state], []
            for place in range(12):
                y, now = cell(tf.gather(table, words[:, place]), now)
                logits = tf.matmul(y, table, transpose_b=True)
                losses.append(cross_entropy(following[:, place], logits))
            loss = tf.add_n(losses) / len(losses)
        descend(variables, tape.gradient(loss, variables), 0.1)
        for variable, value in zip(state, now, strict=True):
            variable.assign(value)
        return loss

    return Called(step, _texts(size, 12), [cell, [table, *state]])


_STEPS: dict[str, Callable[[Size], Called]] = {
    "words that the model says in a loop": _decoded_in_a_loop,
    "translation with attention in a loop": _translated,
    "padded texts, bidirectional": _masked_recurrent,
    "spectra at several windows": _spectra,
    "keras CTC": _keras_ctc,
    "state carried in variables": _truncated,
}


def kinds() -> list[Kind]:
    """All of them."""
    return [Kind(name, "sequences", make) for name, make in _STEPS.items()]
