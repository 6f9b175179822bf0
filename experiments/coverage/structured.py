"""Kinds of steps over graphs, tables, boxes and images that are changed one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from experiments.coverage.kind import STEPS, Called, Kind, Size
from experiments.coverage.loops import batches, cross_entropy, descend, network


def _augmented(image: Any, seed: Any) -> Any:
    """One view of an image: a part of it, turned, its colours changed."""
    side = image.shape[0]
    pair = tf.stack([seed, 1])
    image = tf.image.stateless_random_crop(image, (3 * side // 4, 3 * side // 4, 3), pair)
    image = tf.image.resize(image, (side, side), "bicubic")
    image = tf.image.stateless_random_flip_left_right(image, pair)
    image = tf.image.stateless_random_brightness(image, 0.2, pair)
    image = tf.image.stateless_random_contrast(image, 0.8, 1.2, pair)
    image = tf.image.stateless_random_hue(tf.sigmoid(image), 0.1, pair)
    return tf.image.rot90(image, seed % 4)


def _two_views(size: Size) -> Called:
    """As of Chen et al., 2020 (SimCLR): views that `tf.map_fn` makes; every pair is compared."""
    model = keras.Sequential([network(size, outputs=32), layers.ReLU(), layers.Dense(16)])
    count = tf.Variable(0)

    def step(images: Any, labels: Any) -> Any:
        seeds = count + tf.range(tf.shape(images)[0])
        views = [
            tf.map_fn(
                lambda each: _augmented(*each), (images, seeds + shift), fn_output_signature="float"
            )
            for shift in (0, 1000)
        ]
        with tf.GradientTape() as tape:
            found = model(tf.concat(views, axis=0), training=True)
            found = tf.math.l2_normalize(found, axis=-1)
            alike = tf.matmul(found, found, transpose_b=True) / 0.5
            alike = tf.linalg.set_diag(alike, tf.fill(tf.shape(alike)[:1], -1e9))
            half = tf.shape(images)[0]
            partner = tf.concat([tf.range(half) + half, tf.range(half)], axis=0)
            loss = cross_entropy(partner, alike)
        descend(model.trainable_variables, tape.gradient(loss, model.trainable_variables))
        count.assign_add(1)
        return loss

    return Called(step, batches(size), [model, [count]])


def _graph_network(size: Size) -> Called:
    """Messages along edges, added up at nodes; nodes added up for each graph of the batch."""
    nodes, edges, width = 8 * size.batch, 32 * size.batch, 4 * size.channels
    first = layers.Dense(width, activation="relu")
    first.build((None, 8))
    messages = [layers.Dense(width, activation="relu") for _ in range(size.depth)]
    scores = [layers.Dense(1) for _ in range(size.depth)]
    updates = [layers.GRUCell(width) for _ in range(size.depth)]
    for message, score, update in zip(messages, scores, updates, strict=True):
        message.build((None, 2 * width))
        score.build((None, width))
        update.build((None, width))
    last = layers.Dense(10)
    last.build((None, width))
    parts = [first, *messages, *scores, *updates, last]

    def step(graph: dict[str, Any], labels: Any) -> Any:
        variables = [each for part in parts for each in part.trainable_variables]
        with tf.GradientTape() as tape:
            x = first(graph["nodes"])
            count = tf.shape(x)[0]
            for message, score, update in zip(messages, scores, updates, strict=True):
                ends = [tf.gather(x, graph[each]) for each in ("from", "to")]
                sent = message(tf.concat(ends, axis=-1))
                raw = tf.squeeze(score(sent), -1)
                highest = tf.math.unsorted_segment_max(raw, graph["to"], count)
                weight = tf.exp(raw - tf.gather(highest, graph["to"]))
                total = tf.math.unsorted_segment_sum(weight, graph["to"], count)
                weight /= tf.gather(total, graph["to"])
                heard = tf.math.unsorted_segment_sum(weight[:, None] * sent, graph["to"], count)
                x, _ = update(heard, [x])
            whole = tf.math.segment_mean(x, graph["graph"])
            loss = cross_entropy(labels, last(whole))
        descend(variables, tape.gradient(loss, variables))
        return {"loss": loss, "nodes": count}

    draw = np.random.default_rng(0)
    data = [
        (
            {
                "nodes": tf.constant(draw.normal(size=(nodes, 8)), tf.float32),
                "from": tf.constant(draw.integers(0, nodes, edges), tf.int32),
                "to": tf.constant(draw.integers(0, nodes, edges), tf.int32),
                "graph": tf.constant(np.repeat(np.arange(size.batch), 8), tf.int32),
            },
            tf.constant(draw.integers(0, 10, size.batch), tf.int32),
        )
        for _ in range(STEPS)
    ]
    return Called(step, data, [*parts])


def _recommended(size: Size) -> Called:
    """Tables of embeddings whose gradients are sparse, with Adam; crossed numbers."""
    width = 2 * size.channels
    tables = [layers.Embedding(4096, width) for _ in range(3)]
    for table in tables:
        table.build((None,))
    deep = keras.Sequential(
        [keras.Input((3 * width + 4,))]
        + [layers.Dense(8 * width, activation="relu") for _ in range(size.depth)]
        + [layers.Dropout(0.1), layers.Dense(1)]
    )
    optimizer = keras.optimizers.Adam(0.001)
    optimizer.build([*(each.embeddings for each in tables), *deep.trainable_variables])
    area = keras.metrics.AUC(num_thresholds=20)

    def step(inputs: dict[str, Any], clicked: Any) -> Any:
        variables = [*(each.embeddings for each in tables), *deep.trainable_variables]
        with tf.GradientTape() as tape:
            user, item = tables[0](inputs["user"]), tables[1](inputs["item"])
            seen = tf.reduce_sum(tables[2](inputs["seen"]), axis=1)
            x = tf.concat([user, item, seen, inputs["numbers"]], axis=-1)
            logits = tf.squeeze(deep(x, training=True), -1) + tf.reduce_sum(user * item, -1)
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits)
            )
        optimizer.apply(tape.gradient(loss, variables), variables)
        area.update_state(clicked, tf.sigmoid(logits))
        return {"loss": loss, "area": area.result()}

    draw = np.random.default_rng(0)
    rows = size.batch * size.side
    data = [
        (
            {
                "user": tf.constant(draw.integers(0, 4096, rows), tf.int64),
                "item": tf.constant(draw.integers(0, 4096, rows), tf.int64),
                "seen": tf.constant(draw.integers(0, 4096, (rows, 5)), tf.int64),
                "numbers": tf.constant(draw.normal(size=(rows, 4)), tf.float32),
            },
            tf.constant(draw.integers(0, 2, rows), tf.float32),
        )
        for _ in range(STEPS)
    ]
    return Called(step, data, [*tables, deep, optimizer, area])


def _detected(size: Size) -> Called:
    """Boxes: features cut out of an image, boxes that overlap thrown away, two losses."""
    body = keras.Sequential(
        [
            keras.Input((size.side, size.side, 3)),
            *[layers.Conv2D(size.channels, 3, padding="same", activation="relu") for _ in "abc"],
        ]
    )
    head = layers.Dense(5)
    head.build((None, 7 * 7 * size.channels))
    focal = keras.losses.BinaryFocalCrossentropy(from_logits=True)

    def step(images: Any, boxes: Any, is_thing: Any) -> Any:
        variables = [*body.trainable_variables, *head.trainable_variables]
        with tf.GradientTape() as tape:
            features = body(images, training=True)
            count = tf.shape(boxes)[1]
            # Of boxes of one image the gradients are added up by threads, in any order.
            features = tf.repeat(features, count, axis=0)
            places = tf.range(tf.shape(features)[0])
            cut = tf.image.crop_and_resize(features, tf.reshape(boxes, (-1, 4)), places, (14, 14))
            cut = tf.nn.max_pool2d(cut, 2, 2, "VALID")
            found = head(tf.reshape(cut, (-1, 7 * 7 * size.channels)))
            moved = tf.reshape(boxes, (-1, 4)) + 0.1 * found[:, :4]
            loss = focal(tf.reshape(is_thing, (-1, 1)), found[:, 4:])
            loss += keras.losses.huber(tf.reshape(boxes, (-1, 4)) * 0.9, moved)[0]
            kept = tf.image.non_max_suppression(moved, found[:, 4], 8, 0.5)
            loss += 0.01 * tf.reduce_mean(tf.gather(found[:, 4], kept) ** 2)
        descend(variables, tape.gradient(loss, variables))
        return loss, tf.size(kept)

    draw = np.random.default_rng(0)
    data = []
    for images, _ in batches(size):
        corners = np.sort(draw.uniform(size=(size.batch, 6, 2, 2)), axis=2)
        boxes = corners.reshape(size.batch, 6, 4)
        things = draw.integers(0, 2, (size.batch, 6))
        data.append((images, tf.constant(boxes, tf.float32), tf.constant(things, tf.float32)))
    return Called(step, data, [body, head])


def _experts(size: Size) -> Called:
    """Every example goes to two of four experts, which `tf.dynamic_partition` gives their own."""
    width = 4 * size.channels
    gate = layers.Dense(4)
    gate.build((None, width))
    experts = [
        keras.Sequential(
            [keras.Input((width,)), layers.Dense(8 * width, "gelu"), layers.Dense(width)]
        )
        for _ in range(4)
    ]
    parts = [gate, *experts]

    def step(x: Any, wanted: Any) -> Any:
        variables = [each for part in parts for each in part.trainable_variables]
        with tf.GradientTape() as tape:
            chances = tf.nn.softmax(gate(x))
            weights, chosen = tf.math.top_k(chances, 2)
            made = tf.zeros_like(x)
            for rank in range(2):
                of = tf.dynamic_partition(x, chosen[:, rank], 4)
                places = tf.dynamic_partition(tf.range(tf.shape(x)[0]), chosen[:, rank], 4)
                outputs = [expert(each) for expert, each in zip(experts, of, strict=True)]
                joined = tf.dynamic_stitch(places, outputs)
                made += weights[:, rank, None] * tf.ensure_shape(joined, x.shape)
            loss = tf.reduce_mean((made - wanted) ** 2)
            used = tf.reduce_mean(tf.one_hot(chosen[:, 0], 4), axis=0)
            loss += 0.01 * 4 * tf.reduce_sum(used * tf.reduce_mean(chances, axis=0))
        descend(variables, tape.gradient(loss, variables), 0.1)
        return loss

    draw = np.random.default_rng(0)
    shape = (size.batch * size.side, width)
    data = [
        tuple(tf.constant(draw.normal(size=shape), tf.float32) for _ in range(2))
        for _ in range(STEPS)
    ]
    return Called(step, data, parts)


def _branches(size: Size) -> Called:
    """One of three networks, which a number decides, by `tf.switch_case` on the way forward."""
    heads = [network(size, dropout=0.0) for _ in range(3)]

    def step(images: Any, labels: Any) -> Any:
        variables = [each for head in heads for each in head.trainable_variables]
        with tf.GradientTape() as tape:
            chosen = labels[0] % 3
            logits = tf.switch_case(
                chosen, [lambda head=head: head(images, training=True) for head in heads]
            )
            loss = cross_entropy(labels, logits)
        descend(variables, tape.gradient(loss, variables))
        return loss, chosen

    return Called(step, batches(size), heads)


def _mapped_loss(size: Size) -> Called:
    """A loss for each example by `tf.map_fn`: distances between points that were found."""
    model = network(size, outputs=32)

    def distance(pair: Any) -> Any:
        found, wanted = pair
        far = tf.norm(found[:, None] - wanted[None] + 1e-6, axis=-1)
        return tf.reduce_mean(tf.reduce_min(far, 0)) + tf.reduce_mean(tf.reduce_min(far, 1))

    def step(images: Any, labels: Any) -> Any:
        wanted = tf.reshape(images[:, :4, :4, :2], (-1, 16, 2))
        with tf.GradientTape() as tape:
            found = tf.reshape(model(images, training=True), (-1, 16, 2))
            losses = tf.map_fn(distance, (found, wanted), fn_output_signature=tf.float32)
            loss = tf.reduce_mean(losses)
        descend(model.trainable_variables, tape.gradient(loss, model.trainable_variables))
        return loss

    return Called(step, batches(size), [model])


def _words_and_ragged(size: Size) -> Called:
    """Strings, looked up in a table; texts of several lengths, made ragged inside the step."""
    lookup = layers.StringLookup(vocabulary=[f"w{number}" for number in range(60)])
    table = tf.Variable(tf.random.stateless_normal((64, 2 * size.channels), (1, 2)) / 8)
    dense = keras.Sequential(
        [keras.Input((2 * size.channels,)), layers.Dense(64, "relu"), layers.Dense(10)]
    )

    def step(texts: Any, labels: Any) -> Any:
        variables = [table, *(each.value for each in dense.trainable_variables)]
        words = tf.strings.split(texts)
        numbers = tf.ragged.map_flat_values(lookup, words)
        with tf.GradientTape() as tape:
            found = tf.ragged.map_flat_values(lambda x: tf.nn.embedding_lookup(table, x), numbers)
            logits = dense(tf.reduce_mean(found, axis=1), training=True)
            loss = cross_entropy(labels, logits)
        descend(variables, tape.gradient(loss, variables))
        return loss, numbers.nrows()

    draw = np.random.default_rng(0)
    data = []
    for _ in range(STEPS):
        lengths = draw.integers(3, size.side, 8 * size.batch)
        texts = [" ".join(f"w{each}" for each in draw.integers(0, 70, count)) for count in lengths]
        labels = tf.constant(draw.integers(0, 10, len(texts)), tf.int32)
        data.append((tf.constant(texts), labels))
    return Called(step, data, [[table], dense])


_STEPS: dict[str, Callable[[Size], Called]] = {
    "two views, compared": _two_views,
    "graph network": _graph_network,
    "recommendations": _recommended,
    "boxes": _detected,
    "mixture of experts": _experts,
    "one of several networks": _branches,
    "tf.map_fn in a loss": _mapped_loss,
    "strings and ragged texts": _words_and_ragged,
}


def kinds() -> list[Kind]:
    """All of them."""
    return [Kind(name, "structured", make) for name, make in _STEPS.items()]
