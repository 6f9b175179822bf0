"""Programs of several networks, or of one network that sees several images at once."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import layers, ops

from experiments.programs.program import Program, Script, examples, images, integers


class RandomColorAffine(layers.Layer):  # type: ignore[misc]
    """Changes brightness and colours, of each image in another way."""

    def __init__(self, brightness: float, jitter: float) -> None:
        super().__init__()
        self.brightness, self.jitter = brightness, jitter

    def call(self, images: Any, training: bool = True) -> Any:
        """The changed images."""
        if not training:
            return images
        batch_size = tf.shape(images)[0]
        brightness_scales = 1 + tf.random.uniform(
            (batch_size, 1, 1, 1), minval=-self.brightness, maxval=self.brightness
        )
        jitter_matrices = tf.random.uniform(
            (batch_size, 1, 3, 3), minval=-self.jitter, maxval=self.jitter
        )
        color_transforms = tf.eye(3, batch_shape=[batch_size, 1]) * brightness_scales
        color_transforms += jitter_matrices
        return tf.clip_by_value(tf.matmul(images, color_transforms), 0, 1)


def _augmenter(side: int, zoom: float, brightness: float, jitter: float) -> Any:
    return keras.Sequential(
        [
            keras.Input((side, side, 3)),
            layers.Rescaling(1 / 255),
            layers.RandomFlip("horizontal"),
            layers.RandomTranslation(zoom / 2, zoom / 2),
            layers.RandomZoom((-zoom, 0.0), (-zoom, 0.0)),
            RandomColorAffine(brightness, jitter),
        ]
    )


class ContrastiveModel(keras.Model):  # type: ignore[misc]
    """An encoder that learns from pairs of augmented images, and a probe of what it knows."""

    def __init__(self, side: int, width: int) -> None:
        super().__init__()
        self.temperature = 0.1
        self.contrastive_augmenter = _augmenter(side, zoom=0.5, brightness=0.6, jitter=0.2)
        self.classification_augmenter = _augmenter(side, zoom=0.25, brightness=0.3, jitter=0.1)
        convolutions = [
            layers.Conv2D(width, kernel_size=3, strides=2, activation="relu") for _ in range(4)
        ]
        dense = layers.Dense(width, activation="relu")
        self.encoder = keras.Sequential(
            [keras.Input((side, side, 3)), *convolutions, layers.Flatten(), dense]
        )
        self.projection_head = keras.Sequential(
            [keras.Input((width,)), layers.Dense(width, activation="relu"), layers.Dense(width)]
        )
        self.linear_probe = keras.Sequential([keras.Input((width,)), layers.Dense(10)])

    def compile(self, contrastive_optimizer: Any, probe_optimizer: Any, **kwargs: Any) -> None:
        """Both parts have an optimizer of their own."""
        super().compile(**kwargs)
        self.contrastive_optimizer = contrastive_optimizer
        self.probe_optimizer = probe_optimizer
        self.probe_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.contrastive_loss_tracker = keras.metrics.Mean(name="c_loss")
        self.contrastive_accuracy = keras.metrics.SparseCategoricalAccuracy(name="c_acc")
        self.probe_loss_tracker = keras.metrics.Mean(name="p_loss")
        self.probe_accuracy = keras.metrics.SparseCategoricalAccuracy(name="p_acc")

    @property
    def metrics(self) -> list[Any]:
        """What `fit` resets at each epoch."""
        return [
            self.contrastive_loss_tracker,
            self.contrastive_accuracy,
            self.probe_loss_tracker,
            self.probe_accuracy,
        ]

    def contrastive_loss(self, projections_1: Any, projections_2: Any) -> Any:
        """How far the two of each pair are apart, beside the others."""
        projections_1 = ops.normalize(projections_1, axis=1)
        projections_2 = ops.normalize(projections_2, axis=1)
        similarities = ops.matmul(projections_1, ops.transpose(projections_2)) / self.temperature
        batch_size = ops.shape(projections_1)[0]
        contrastive_labels = ops.arange(batch_size)
        self.contrastive_accuracy.update_state(contrastive_labels, similarities)
        self.contrastive_accuracy.update_state(contrastive_labels, ops.transpose(similarities))
        loss_1_2 = keras.losses.sparse_categorical_crossentropy(
            contrastive_labels, similarities, from_logits=True
        )
        loss_2_1 = keras.losses.sparse_categorical_crossentropy(
            contrastive_labels, ops.transpose(similarities), from_logits=True
        )
        return (loss_1_2 + loss_2_1) / 2

    def train_step(self, data: Any) -> Any:
        """An update of the encoder and one of the probe; the metrics so far."""
        unlabeled_images, (labeled_images, labels) = data
        images = ops.concatenate((unlabeled_images, labeled_images), axis=0)
        augmented_images_1 = self.contrastive_augmenter(images, training=True)
        augmented_images_2 = self.contrastive_augmenter(images, training=True)
        with tf.GradientTape() as tape:
            features_1 = self.encoder(augmented_images_1, training=True)
            features_2 = self.encoder(augmented_images_2, training=True)
            projections_1 = self.projection_head(features_1, training=True)
            projections_2 = self.projection_head(features_2, training=True)
            contrastive_loss = self.contrastive_loss(projections_1, projections_2)
        weights = self.encoder.trainable_weights + self.projection_head.trainable_weights
        gradients = tape.gradient(contrastive_loss, weights)
        self.contrastive_optimizer.apply_gradients(zip(gradients, weights, strict=True))
        self.contrastive_loss_tracker.update_state(contrastive_loss)
        preprocessed_images = self.classification_augmenter(labeled_images, training=True)
        with tf.GradientTape() as tape:
            features = self.encoder(preprocessed_images, training=False)
            class_logits = self.linear_probe(features, training=True)
            probe_loss = self.probe_loss(labels, class_logits)
        weights = self.linear_probe.trainable_weights
        gradients = tape.gradient(probe_loss, weights)
        self.probe_optimizer.apply_gradients(zip(gradients, weights, strict=True))
        self.probe_loss_tracker.update_state(probe_loss)
        self.probe_accuracy.update_state(labels, class_logits)
        return {each.name: each.result() for each in self.metrics}


def _contrastive(batch: int) -> Script:
    side, labeled_batch = 48, max(1, batch // 4)
    unlabeled = tf.data.Dataset.from_tensor_slices(255 * images(examples(batch), side))
    labeled = tf.data.Dataset.from_tensor_slices(
        (
            255 * images(examples(labeled_batch), side, seed=2),
            integers(examples(labeled_batch), 10),
        )
    )
    data = tf.data.Dataset.zip(
        (
            unlabeled.shuffle(10 * batch).batch(batch),
            labeled.shuffle(10 * labeled_batch).batch(labeled_batch),
        )
    ).prefetch(buffer_size=tf.data.AUTOTUNE)
    model = ContrastiveModel(side, width=64)
    model.compile(
        contrastive_optimizer=keras.optimizers.Adam(), probe_optimizer=keras.optimizers.Adam()
    )
    return Script(model, (data,), {})


class Distiller(keras.Model):  # type: ignore[misc]
    """A student that learns from labels and from what a teacher says."""

    def __init__(self, student: Any, teacher: Any) -> None:
        super().__init__()
        self.student, self.teacher = student, teacher

    def compile(self, student_loss_fn: Any, distillation_loss_fn: Any, **kwargs: Any) -> None:
        """With a loss for each of the two."""
        super().compile(**kwargs)
        self.student_loss_fn, self.distillation_loss_fn = student_loss_fn, distillation_loss_fn
        self.alpha, self.temperature = 0.1, 10

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        allow_empty: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Both losses, weighted."""
        teacher_pred = self.teacher(x, training=False)
        student_loss = self.student_loss_fn(y, y_pred)
        distillation_loss = self.distillation_loss_fn(
            ops.softmax(teacher_pred / self.temperature, axis=1),
            ops.softmax(y_pred / self.temperature, axis=1),
        ) * (self.temperature**2)
        return self.alpha * student_loss + (1 - self.alpha) * distillation_loss

    def call(self, x: Any) -> Any:
        """What the student says."""
        return self.student(x)


def _classifier(widths: tuple[int, int]) -> Any:
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(widths[0], 3, strides=2, padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.MaxPooling2D(2, strides=1, padding="same"),
            layers.Conv2D(widths[1], 3, strides=2, padding="same"),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )


def _distillation(batch: int) -> Script:
    distiller = Distiller(student=_classifier((32, 64)), teacher=_classifier((64, 128)))
    distiller.compile(
        optimizer=keras.optimizers.Adam(),
        metrics=[keras.metrics.SparseCategoricalAccuracy()],
        student_loss_fn=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        distillation_loss_fn=keras.losses.KLDivergence(),
    )
    count = examples(batch)
    return Script(distiller, (images(count, 28, 1), integers(count, 10)), {"batch_size": batch})


class SiameseModel(keras.Model):  # type: ignore[misc]
    """Learns from two images that belong together and one that does not."""

    def __init__(self, siamese_network: Any, margin: float = 0.5) -> None:
        super().__init__()
        self.siamese_network, self.margin = siamese_network, margin
        self.loss_tracker = keras.metrics.Mean(name="loss")

    def call(self, inputs: Any) -> Any:
        """Both distances."""
        return self.siamese_network(inputs)

    def train_step(self, data: Any) -> Any:
        """One update; the loss so far."""
        with tf.GradientTape() as tape:
            loss = self._compute_loss(data)
        gradients = tape.gradient(loss, self.siamese_network.trainable_weights)
        self.optimizer.apply_gradients(
            zip(gradients, self.siamese_network.trainable_weights, strict=True)
        )
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    def _compute_loss(self, data: Any) -> Any:
        ap_distance, an_distance = self.siamese_network(data)
        return tf.maximum(ap_distance - an_distance + self.margin, 0.0)

    @property
    def metrics(self) -> list[Any]:
        """What `fit` resets at each epoch."""
        return [self.loss_tracker]


class DistanceLayer(layers.Layer):  # type: ignore[misc]
    """How far two images are from a third."""

    def call(self, anchor: Any, positive: Any, negative: Any) -> Any:
        """Both squared distances of each example."""
        ap_distance = ops.sum(tf.square(anchor - positive), -1)
        return ap_distance, ops.sum(tf.square(anchor - negative), -1)


def _siamese(batch: int) -> Script:
    side = 64
    embedding = keras.Sequential([keras.Input((side, side, 3))])
    for filters in (16, 32, 64):
        embedding.add(layers.Conv2D(filters, 3, padding="same", activation="relu"))
        embedding.add(layers.BatchNormalization())
        embedding.add(layers.MaxPooling2D())
    embedding.add(layers.Flatten())
    embedding.add(layers.Dense(256, activation="relu"))
    embedding.add(layers.Dense(128))
    inputs = [keras.Input((side, side, 3), name=n) for n in ("anchor", "positive", "negative")]
    distances = DistanceLayer()(*[embedding(each) for each in inputs])
    model = SiameseModel(keras.Model(inputs, distances))
    model.compile(optimizer=keras.optimizers.Adam(0.0001))
    parts = [
        tf.data.Dataset.from_tensor_slices(images(examples(batch), side, seed=seed))
        for seed in range(3)
    ]
    data = tf.data.Dataset.zip(tuple(parts)).shuffle(buffer_size=1024)
    return Script(model, (data.batch(batch, drop_remainder=False).prefetch(8),), {})


PROGRAMS = (
    Program("contrastive pretraining", "examples/vision/semisupervised_simclr", 64, _contrastive),
    Program("distillation", "examples/vision/knowledge_distillation", 64, _distillation),
    Program("siamese network", "examples/vision/siamese_network", 16, _siamese),
)
