"""Programs that learn from texts, films and measurements over time."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from experiments.programs.program import Program, Script, examples, integers

ROUTES = 26


class GraphConv(layers.Layer):  # type: ignore[misc]
    """Adds to each node what its neighbours say, in the mean."""

    def __init__(self, edges: tuple[Any, Any], out_features: int) -> None:
        super().__init__()
        self.sources, self.targets = edges
        self.out_features = out_features

    def build(self, shape: Any) -> None:
        """One matrix."""
        self.weight = self.add_weight(
            shape=(shape[-1], self.out_features), initializer="glorot_uniform"
        )

    def call(self, features: Any) -> Any:
        """Of shape (nodes, batch, time, features)."""
        neighbours = tf.gather(features, self.targets)
        aggregated = tf.math.unsorted_segment_mean(
            neighbours, self.sources, num_segments=tf.shape(features)[0]
        )
        both = [tf.matmul(features, self.weight), tf.matmul(aggregated, self.weight)]
        return tf.nn.relu(tf.concat(both, axis=-1))


class LSTMGraph(layers.Layer):  # type: ignore[misc]
    """A convolution on the graph, then an LSTM along the time of each node."""

    def __init__(self, edges: tuple[Any, Any], out_features: int, units: int, horizon: int) -> None:
        super().__init__()
        self.graph_conv = GraphConv(edges, out_features)
        self.lstm = layers.LSTM(units, activation="relu")
        self.dense = layers.Dense(horizon)
        self.horizon = horizon

    def call(self, inputs: Any) -> Any:
        """From (batch, time, nodes, features) to (batch, horizon, nodes)."""
        inputs = tf.transpose(inputs, [2, 0, 1, 3])
        gcn_out = self.graph_conv(inputs)
        shape = tf.shape(gcn_out)
        num_nodes, batch_size, input_seq_len, out_feat = shape[0], shape[1], shape[2], shape[3]
        gcn_out = tf.reshape(gcn_out, (batch_size * num_nodes, input_seq_len, out_feat))
        dense_output = self.dense(self.lstm(gcn_out))
        output = tf.reshape(dense_output, (num_nodes, batch_size, self.horizon))
        return tf.transpose(output, [1, 2, 0])


def _traffic(batch: int) -> Script:
    input_length, horizon = 12, 3
    speeds = np.random.default_rng(0).normal(
        size=(examples(batch) + input_length + horizon - 1, ROUTES)
    )
    inputs = keras.utils.timeseries_dataset_from_array(
        np.expand_dims(speeds[:-horizon], axis=-1),
        None,
        sequence_length=input_length,
        shuffle=False,
        batch_size=batch,
    )
    targets = keras.utils.timeseries_dataset_from_array(
        speeds[input_length + horizon - 1 :],
        None,
        sequence_length=1,
        shuffle=False,
        batch_size=batch,
    )
    data = tf.data.Dataset.zip((inputs, targets)).shuffle(100).prefetch(16).cache()
    pairs = integers((2, 6 * ROUTES), ROUTES)
    edges = (pairs[0].tolist(), pairs[1].tolist())
    layer = LSTMGraph(edges, out_features=10, units=64, horizon=1)
    entrance = keras.Input((input_length, ROUTES, 1))
    model = keras.Model(entrance, layer(entrance))
    model.compile(
        optimizer=keras.optimizers.RMSprop(learning_rate=0.0002),
        loss=keras.losses.MeanSquaredError(),
    )
    return Script(model, (data,), {})


def _next_frame(batch: int) -> Script:
    frames, side, count = 9, 24, examples(batch)
    film = np.random.default_rng(0).uniform(size=(count, frames + 1, side, side, 1))
    film = film.astype("float32")
    inputs = keras.Input((None, side, side, 1))
    x = inputs
    for size in (5, 3, 1):
        x = layers.ConvLSTM2D(
            16, (size, size), padding="same", return_sequences=True, activation="relu"
        )(x)
        x = layers.BatchNormalization()(x) if size > 1 else x
    x = layers.Conv3D(1, (3, 3, 3), activation="sigmoid", padding="same")(x)
    model = keras.Model(inputs, x)
    model.compile(loss=keras.losses.binary_crossentropy, optimizer=keras.optimizers.Adam())
    validation = (film[:batch, :-1], film[:batch, 1:])
    return Script(
        model,
        (film[:, :-1], film[:, 1:]),
        {"batch_size": batch, "validation_data": validation},
    )


class PositionalEmbedding(layers.Layer):  # type: ignore[misc]
    """Words and where they stand; word 0 is none."""

    def __init__(self, length: int, vocabulary: int, width: int) -> None:
        super().__init__()
        self.token_embeddings = layers.Embedding(vocabulary, width)
        self.position_embeddings = layers.Embedding(length, width)

    def call(self, inputs: Any) -> Any:
        """A row of numbers for each word."""
        positions = ops.arange(0, ops.shape(inputs)[-1], 1)
        return self.token_embeddings(inputs) + self.position_embeddings(positions)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Which words are words."""
        return ops.not_equal(inputs, 0)


class TransformerEncoder(layers.Layer):  # type: ignore[misc]
    """Attention, and two dense layers."""

    def __init__(self, width: int, dense: int, heads: int) -> None:
        super().__init__()
        self.attention = layers.MultiHeadAttention(num_heads=heads, key_dim=width)
        self.dense_proj = keras.Sequential(
            [layers.Dense(dense, activation="relu"), layers.Dense(width)]
        )
        self.layernorm_1 = layers.LayerNormalization()
        self.layernorm_2 = layers.LayerNormalization()
        self.supports_masking = True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """As many rows as came."""
        padding_mask = None if mask is None else ops.cast(mask[:, None, :], dtype="int32")
        attention_output = self.attention(inputs, inputs, inputs, attention_mask=padding_mask)
        proj_input = self.layernorm_1(inputs + attention_output)
        return self.layernorm_2(proj_input + self.dense_proj(proj_input))


class TransformerDecoder(layers.Layer):  # type: ignore[misc]
    """Attention to what was said, attention to the source, and two dense layers."""

    def __init__(self, width: int, latent: int, heads: int) -> None:
        super().__init__()
        self.attention_1 = layers.MultiHeadAttention(num_heads=heads, key_dim=width)
        self.attention_2 = layers.MultiHeadAttention(num_heads=heads, key_dim=width)
        self.dense_proj = keras.Sequential(
            [layers.Dense(latent, activation="relu"), layers.Dense(width)]
        )
        self.layernorm_1 = layers.LayerNormalization()
        self.layernorm_2 = layers.LayerNormalization()
        self.layernorm_3 = layers.LayerNormalization()
        self.supports_masking = True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """As many rows as came of the target."""
        inputs, encoder_outputs = inputs
        causal_mask = self.get_causal_attention_mask(inputs)
        inputs_padding_mask, encoder_outputs_padding_mask = (None, None) if mask is None else mask
        attention_output_1 = self.attention_1(
            query=inputs,
            value=inputs,
            key=inputs,
            attention_mask=causal_mask,
            query_mask=inputs_padding_mask,
        )
        out_1 = self.layernorm_1(inputs + attention_output_1)
        attention_output_2 = self.attention_2(
            query=out_1,
            value=encoder_outputs,
            key=encoder_outputs,
            query_mask=inputs_padding_mask,
            key_mask=encoder_outputs_padding_mask,
        )
        out_2 = self.layernorm_2(out_1 + attention_output_2)
        return self.layernorm_3(out_2 + self.dense_proj(out_2))

    def get_causal_attention_mask(self, inputs: Any) -> Any:
        """Which words each word may see."""
        batch_size, sequence_length = ops.shape(inputs)[0], ops.shape(inputs)[1]
        i = ops.arange(sequence_length)[:, None]
        mask = ops.cast(i >= ops.arange(sequence_length), dtype="int32")
        mask = ops.reshape(mask, (1, sequence_length, sequence_length))
        return ops.tile(mask, (batch_size, 1, 1))


def _padded(count: int, length: int, vocabulary: int, seed: int) -> Any:
    words = 1 + integers((count, length), vocabulary - 1, seed)
    ends = length // 2 + integers((count, 1), length // 2, seed + 1)
    return np.where(np.arange(length) < ends, words, 0).astype("int64")


def _translation(batch: int) -> Script:
    length, vocabulary, width, latent, heads = 20, 1000, 128, 512, 4
    encoder_inputs = keras.Input((None,), dtype="int64", name="encoder_inputs")
    x = PositionalEmbedding(length, vocabulary, width)(encoder_inputs)
    encoder_outputs = TransformerEncoder(width, latent, heads)(x)
    decoder_inputs = keras.Input((None,), dtype="int64", name="decoder_inputs")
    x = PositionalEmbedding(length, vocabulary, width)(decoder_inputs)
    x = TransformerDecoder(width, latent, heads)([x, encoder_outputs])
    x = layers.Dropout(0.5)(x)
    outputs = layers.Dense(vocabulary, activation="softmax")(x)
    inputs = {"encoder_inputs": encoder_inputs, "decoder_inputs": decoder_inputs}
    model = keras.Model(inputs, outputs)
    model.compile(
        "rmsprop",
        loss=keras.losses.SparseCategoricalCrossentropy(ignore_class=0),
        metrics=["accuracy"],
    )
    count = examples(batch)
    source = _padded(count, length, vocabulary, 0)
    target = _padded(count, length + 1, vocabulary, 2)

    def formatted(source: Any, target: Any) -> Any:
        inputs = {"encoder_inputs": source, "decoder_inputs": target[:, :-1]}
        return inputs, target[:, 1:]

    data = tf.data.Dataset.from_tensor_slices((source, target)).batch(batch).map(formatted)
    return Script(model, (data.cache().shuffle(2048).prefetch(16),), {})


class TransformerBlock(layers.Layer):  # type: ignore[misc]
    """Attention and two dense layers, with dropout."""

    def __init__(self, width: int, heads: int, dense: int, rate: float = 0.1) -> None:
        super().__init__()
        self.att = layers.MultiHeadAttention(num_heads=heads, key_dim=width)
        self.ffn = keras.Sequential([layers.Dense(dense, activation="relu"), layers.Dense(width)])
        self.layernorm1 = layers.LayerNormalization(epsilon=1e-6)
        self.layernorm2 = layers.LayerNormalization(epsilon=1e-6)
        self.dropout1, self.dropout2 = layers.Dropout(rate), layers.Dropout(rate)

    def call(self, inputs: Any) -> Any:
        """As many rows as came."""
        out1 = self.layernorm1(inputs + self.dropout1(self.att(inputs, inputs)))
        return self.layernorm2(out1 + self.dropout2(self.ffn(out1)))


class TokenAndPositionEmbedding(layers.Layer):  # type: ignore[misc]
    """Words, and where they stand."""

    def __init__(self, length: int, vocabulary: int, width: int) -> None:
        super().__init__()
        self.token_emb = layers.Embedding(vocabulary, width)
        self.pos_emb = layers.Embedding(length, width)

    def call(self, x: Any) -> Any:
        """A row of numbers for each word."""
        positions = ops.arange(start=0, stop=ops.shape(x)[-1], step=1)
        return self.token_emb(x) + self.pos_emb(positions)


def _text_classification(batch: int) -> Script:
    length, vocabulary, width, count = 200, 2000, 32, examples(batch)
    inputs = keras.Input((length,))
    x = TokenAndPositionEmbedding(length, vocabulary, width)(inputs)
    x = layers.GlobalAveragePooling1D()(TransformerBlock(width, heads=2, dense=32)(x))
    x = layers.Dense(20, activation="relu")(layers.Dropout(0.1)(x))
    model = keras.Model(inputs, layers.Dense(2, activation="softmax")(layers.Dropout(0.1)(x)))
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    texts, labels = integers((count, length), vocabulary), integers(count, 2)
    validation = (texts[:batch], labels[:batch])
    return Script(model, (texts, labels), {"batch_size": batch, "validation_data": validation})


PROGRAMS = (
    Program(
        "traffic forecasting", "examples/timeseries/timeseries_traffic_forecasting", 64, _traffic
    ),
    Program("next frame of a film", "examples/vision/conv_lstm", 5, _next_frame),
    Program(
        "translation", "examples/nlp/neural_machine_translation_with_transformer", 64, _translation
    ),
    Program(
        "text classification",
        "examples/nlp/text_classification_with_transformer",
        32,
        _text_classification,
    ),
)
