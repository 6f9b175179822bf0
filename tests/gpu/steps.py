"""Models, steps and data for a GPU, and what they hold there by the allocator's own count."""

from __future__ import annotations

import gc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from checkmate_tf.workloads.models import compile_model, gpt, residual, unet
from profiles.tensorflow_internals import graphs_that_run
from tests.messages import codes

GPU = "GPU:0"
WORDS = 256


@dataclass(frozen=True)
class Case:
    """A model and the size of its data.

    Attributes:
        build: makes it for an image side, or a length of text.
        batch, side: the images are batch × side × side × 3, the texts batch × side words.
        kind: "images", "pixels" or "text".
        share: of what the plain step adds, as its budget.
    """

    build: Callable[[int], Any]
    batch: int
    side: int = 224
    kind: str = "images"
    share: float = 0.6

    def compiled(self, optimizer: str = "sgd") -> Any:
        """The model, compiled without XLA; its optimizer has its slots.

        Over a GPU that is not there they could not be made in a trace: whether they are there is
        told by a value.
        """
        gc.collect()
        keras.utils.set_random_seed(0)
        return compile_model(self.build(self.side), self.kind, optimizer)

    def data(self, batch: int = 0) -> tuple[Any, Any]:
        """Inputs and labels, as arrays of the host."""
        batch = batch or self.batch
        labels = {"images": (batch,), "pixels": (batch, self.side, self.side)}
        if self.kind == "text":
            return np.zeros((batch, self.side), np.int32), np.zeros((batch, self.side), np.int32)
        images = np.zeros((batch, self.side, self.side, 3), np.float32)
        return images, np.zeros(labels[self.kind], np.int32)


def application(name: str) -> Callable[[int], Any]:
    """One of Keras' networks, with ten classes."""

    def build(side: int) -> Any:
        made = getattr(keras.applications, name)
        return made(weights=None, input_shape=(side, side, 3), classes=10)

    return build


CASES = {
    "residual": Case(residual, 64),
    "U-Net": Case(unet, 64, kind="pixels"),
    "MobileNet": Case(application("MobileNet"), 256),
    "ResNet50": Case(application("ResNet50"), 64),
    "VGG16": Case(application("VGG16"), 128, share=0.85),
    "GPT": Case(partial(gpt, words=WORDS, width=512, heads=8), 16, 512, "text"),
    "MobileNetV2": Case(application("MobileNetV2"), 256),
    "EfficientNetB0": Case(application("EfficientNetB0"), 128),
    "DenseNet121": Case(application("DenseNet121"), 64),
}
"""Of these the first five take seconds each, at the sizes that people train at."""


SIZE, BATCH = 512, 16384
"""Of a dense network: each of its activations takes 32 MiB."""


def dense(
    jit_compile: bool | str = False, dtype: str = "float32", depth: int = 8, features: int = SIZE
) -> Any:
    """A compiled network that is planned, and compiled by XLA, in seconds."""
    gc.collect()
    keras.utils.set_random_seed(1)
    inputs = x = keras.Input((features,))
    for _ in range(depth):
        x = keras.layers.Dense(SIZE, "tanh", dtype=dtype)(x)
    model = keras.Model(inputs, x)
    # Of a mean over a size that a trace leaves open, the gradient is told by values.
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss, jit_compile=jit_compile)
    model.optimizer.build(model.trainable_variables)
    return model


def rows(count: int = 2 * BATCH, features: int = SIZE) -> tuple[Any, Any]:
    """Inputs of a dense network, and their labels."""
    return np.zeros((count, features), np.float32), np.zeros(count, np.int32)


def loop_step(model: Any, optimizer: Any, loss_of: Any) -> Callable[..., Any]:
    """A step as a loop of one's own has it."""
    optimizer.build(model.trainable_variables)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


def measured(step: Callable[..., Any], *args: Any) -> tuple[Any, int]:
    """What a step returns, and the bytes that the GPU held at most until it was over."""
    tf.config.experimental.reset_memory_stats(GPU)
    result = step(*args)
    with tf.device(GPU):
        tf.raw_ops.SyncDevice()
    return result, tf.config.experimental.get_memory_info(GPU)["peak"]


def peaks_of(step: Callable[..., Any], *args: Any, steps: int = 4) -> list[int]:
    """The peak of each of some steps."""
    return [measured(step, *args)[1] for _ in range(steps)]


class Peaks(keras.callbacks.Callback):
    """Notes what each step of `fit` held at most. During the first one it is planned."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        tf.config.experimental.reset_memory_stats(GPU)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        with tf.device(GPU):
            tf.raw_ops.SyncDevice()
        self.seen.append(tf.config.experimental.get_memory_info(GPU)["peak"])

    @property
    def warm(self) -> list[int]:
        """Of all steps but the first."""
        return self.seen[1:]


def fit(model: Any, x: Any, y: Any, batch: int, **options: Any) -> Peaks:
    """Train for two epochs, and note the peaks."""
    peaks = Peaks()
    options = {"epochs": 2, "shuffle": False, "verbose": 0, **options}
    model.fit(x, y, batch_size=batch, callbacks=[peaks], **options)
    return peaks


@contextmanager
def nothing_is_said(*but: str) -> Iterator[None]:
    """No warning of ours, but those with these codes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert set(codes(caught)) <= set(but), [str(each.message) for each in caught]


@contextmanager
def functions_begun(of_operations: int) -> Iterator[list[Counter[tuple[str, str, str]]]]:
    """Copies between devices in each function of so many operations that runs for the first time.

    Each is (data type, from, to), and how often: of the graphs into which TensorFlow has parted
    the function, one for each device.
    """
    found: list[Counter[tuple[str, str, str]]] = []
    with graphs_that_run() as functions:
        yield found
    for parts in functions:
        nodes = [node for part in parts for node in part.node]
        if len(nodes) >= of_operations:
            copies = (node for node in nodes if node.op in ("_Recv", "_HostRecv"))
            found.append(Counter(map(_copy, copies)))


def _copy(node: Any) -> tuple[str, str, str]:
    kind = tf.dtypes.as_dtype(node.attr["tensor_type"].type).name
    places = (node.attr[name].s.decode() for name in ("send_device", "recv_device"))
    source, target = (place.rpartition("device:")[2] for place in places)
    return kind, source, target
