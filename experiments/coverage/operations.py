"""Kinds of operations: what people write between layers, loops and functions inside the step."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments.coverage.kind import STEPS, Called, Kind, Size

Operation = Callable[[Any, Any], Any]
"""From images, batch × side × side × channels, and weights, channels × channels, to images."""


def step_of(operation: Operation, size: Size, dtype: str = "float32") -> Called:
    """A step that applies `operation` a few times, and learns the weights by SGD."""
    draw = np.random.default_rng(0)
    shape = (size.depth, size.channels, size.channels)
    weights = [tf.Variable(tf.cast(each, dtype)) for each in draw.normal(size=shape) / 8]

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            for each in weights:
                x = tf.tanh(operation(x, each)) + x
            loss = tf.reduce_mean(tf.abs(x))
        for variable, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            variable.assign_sub(tf.cast(0.1, dtype) * tf.convert_to_tensor(gradient))
        return loss

    images = (size.batch, size.side, size.side, size.channels)
    data = [(tf.cast(draw.normal(size=images), dtype),) for _ in range(STEPS)]
    return Called(step, data, [weights])


def _product(x: Any, w: Any) -> Any:
    return tf.einsum("bijc,cd->bijd", x, w)


def _while(x: Any, w: Any) -> Any:
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(_product(y, w))), (0, x))[
        1
    ]


def _autograph_loop(x: Any, w: Any) -> Any:
    @tf.function  # type: ignore[untyped-decorator]
    def loop(x: Any) -> Any:
        parts = tf.TensorArray(tf.float32, size=4)
        for number in tf.range(4):
            x = tf.tanh(_product(x, w))
            parts = parts.write(number, x)
        return tf.reduce_mean(parts.stack(), axis=0)

    return loop(x)


def _while_of_unknown_length(x: Any, w: Any) -> Any:
    largest = tf.reduce_max(tf.abs(tf.stop_gradient(x)))
    return tf.while_loop(
        lambda y, m: m > 0.5, lambda y, m: (0.5 * _product(y, w), 0.5 * m), (x, largest)
    )[0]


def _cond(x: Any, w: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(_product(x, w)), lambda: tf.cos(x) * 2.0)


def _case(x: Any, w: Any) -> Any:
    return tf.switch_case(
        tf.cast(tf.reduce_sum(x) > 0, tf.int32), [lambda: _product(x, w), lambda: tf.sin(x)]
    )


def _scan(x: Any, w: Any) -> Any:
    return tf.scan(lambda a, b: tf.tanh(tf.einsum("ijc,cd->ijd", a, w) + b), x)


def _inner(**options: Any) -> Operation:
    def inner(x: Any, w: Any) -> Any:
        return tf.nn.gelu(_product(x, w))

    function: Operation = tf.function(inner, **options)
    return function


def _nested(x: Any, w: Any) -> Any:
    return tf.function(lambda x: tf.function(lambda y: tf.sin(_product(y, w)))(x) * 2.0)(x)


@tf.custom_gradient  # type: ignore[untyped-decorator]
def _clipped(x: Any) -> Any:
    return tf.sin(x), lambda dy: tf.clip_by_norm(dy * tf.cos(x), 1.0)


def _recompute_grad(x: Any, w: Any) -> Any:
    return tf.recompute_grad(lambda y: tf.tanh(_product(tf.sin(y), w)))(x)


def _straight_through(x: Any, w: Any) -> Any:
    y = _product(x, w)
    return y + tf.stop_gradient(tf.round(y) - y)


def _py_function(x: Any, w: Any) -> Any:
    return _product(tf.ensure_shape(tf.py_function(tf.sin, [x], tf.float32), x.shape), w)


def _py_function_without_shape(x: Any, w: Any) -> Any:
    flat = tf.py_function(lambda y: tf.reshape(y, (-1, y.shape[-1])), [x], tf.float32)
    return tf.reshape(flat @ w, tf.shape(x))


def _numpy_function(x: Any, w: Any) -> Any:
    scale = tf.numpy_function(lambda y: np.float32(np.abs(y).mean()), [x], tf.float32)
    return _product(x, w) * scale


def _unique(x: Any, w: Any) -> Any:
    values, places = tf.unique(tf.cast(tf.reshape(x, (-1,)) * 4, tf.int32))
    table = tf.cast(tf.gather(values, places), tf.float32)
    return _product(x + tf.reshape(table, tf.shape(x)), w)


def _mask(x: Any, w: Any) -> Any:
    flat = tf.reshape(x, (-1, x.shape[-1]))
    kept = tf.boolean_mask(flat, flat[:, 0] > 0)
    places = tf.where(flat[:, 0] > 0)
    return tf.reshape(tf.tensor_scatter_nd_update(flat, places, kept @ w), tf.shape(x))


def _ragged(x: Any, w: Any) -> Any:
    flat = tf.reshape(x, (-1, x.shape[-1]))
    lengths = tf.fill((x.shape[0],), tf.size(flat) // x.shape[-1] // x.shape[0])
    ragged = tf.RaggedTensor.from_row_lengths(flat @ w, lengths)
    return x + tf.reduce_mean(ragged, axis=1)[:, None, None, :]


def _sparse(x: Any, w: Any) -> Any:
    flat = tf.reshape(x, (-1, x.shape[-1]))
    sparse = tf.sparse.from_dense(tf.nn.relu(tf.stop_gradient(flat) - 1))
    return tf.reshape(tf.sparse.sparse_dense_matmul(sparse, w), tf.shape(x)) + x


def _segments(x: Any, w: Any) -> Any:
    y = _product(x, w)
    sums = tf.math.unsorted_segment_sum(y, tf.range(x.shape[0]) % 2, 2)
    return y + tf.gather(sums, tf.range(x.shape[0]) % 2)


def _fft(x: Any, w: Any) -> Any:
    y = tf.signal.fft2d(tf.cast(tf.transpose(_product(x, w), (0, 3, 1, 2)), tf.complex64))
    return tf.transpose(tf.math.real(tf.signal.ifft2d(y * 0.5)), (0, 2, 3, 1))


def _top_k(x: Any, w: Any) -> Any:
    return _product(x, w) + tf.reduce_sum(tf.math.top_k(x, 3).values, axis=-1, keepdims=True)


def _fake_quantized(x: Any, w: Any) -> Any:
    return tf.quantization.fake_quant_with_min_max_args(_product(x, w), -3, 3)


def _cholesky(x: Any, w: Any) -> Any:
    eye = tf.eye(w.shape[-1])
    return _product(x, tf.linalg.cholesky(tf.matmul(w, w, transpose_b=True) + eye))


def _map(x: Any, w: Any) -> Any:
    return tf.map_fn(lambda each: tf.sin(tf.einsum("ijc,cd->ijd", each, w)), x)


def _vectorized(x: Any, w: Any) -> Any:
    return tf.vectorized_map(lambda each: tf.sin(tf.einsum("ijc,cd->ijd", each, w)), x)


def _noise(x: Any, w: Any) -> Any:
    return _product(x, w) + 0.1 * tf.random.normal(tf.shape(x), seed=1)


def _stateless_noise(x: Any, w: Any) -> Any:
    return _product(x, w) + 0.1 * tf.random.stateless_normal(tf.shape(x), (1, 2))


def _printed(x: Any, w: Any) -> Any:
    tf.debugging.assert_all_finite(x, "not finite")
    with tf.control_dependencies([tf.debugging.assert_rank(x, 4)]):
        return _product(x, w)


def _split(x: Any, w: Any) -> Any:
    first, second = tf.split(_product(x, w), 2, axis=-1)
    return tf.concat([tf.sigmoid(first) * second, first], axis=-1)


def _resized(x: Any, w: Any) -> Any:
    small = tf.image.resize(_product(x, w), (x.shape[1] // 2, x.shape[2] // 2), "bilinear")
    return tf.image.resize(small, x.shape[1:3], "nearest")


_OPERATIONS: dict[str, Operation] = {
    "einsum": _product,
    "tf.while_loop": _while,
    "autograph loop with a TensorArray": _autograph_loop,
    "loop of unknown length": _while_of_unknown_length,
    "tf.cond": _cond,
    "tf.switch_case": _case,
    "tf.scan": _scan,
    "tf.map_fn": _map,
    "tf.vectorized_map": _vectorized,
    "tf.function inside": _inner(),
    "tf.function of any shape inside": _inner(reduce_retracing=True),
    "tf.function inside tf.function": _nested,
    "compiled tf.function inside": _inner(jit_compile=True),
    "tf.custom_gradient": lambda x, w: _clipped(_product(x, w)),
    "tf.recompute_grad": _recompute_grad,
    "straight-through estimator": _straight_through,
    "tf.py_function": _py_function,
    "tf.py_function without a shape": _py_function_without_shape,
    "tf.numpy_function": _numpy_function,
    "tf.unique": _unique,
    "tf.boolean_mask": _mask,
    "ragged tensors inside": _ragged,
    "sparse tensors inside": _sparse,
    "segment sums": _segments,
    "Fourier transform": _fft,
    "sort": lambda x, w: _product(tf.sort(x, axis=-1), w),
    "top-k": _top_k,
    "cumulative sum": lambda x, w: tf.cumsum(_product(x, w), axis=1) / 64,
    "gather and scatter": lambda x, w: tf.gather(
        _product(x, w), tf.range(x.shape[2])[::-1], axis=2
    ),
    "fake quantization": _fake_quantized,
    "Cholesky": _cholesky,
    "logsumexp and softmax": lambda x, w: (
        tf.nn.softmax(_product(x, w)) + tf.reduce_logsumexp(x, axis=-1, keepdims=True)
    ),
    "kernels that draw random numbers": _noise,
    "stateless random numbers": _stateless_noise,
    "assertions": _printed,
    "split and concat": _split,
    "image resizing": _resized,
    "tf.where and clipping": lambda x, w: tf.where(
        x > 0, tf.clip_by_value(_product(x, w), -1, 1), x
    ),
    "transposes and reshapes": lambda x, w: tf.transpose(
        _product(tf.transpose(x, (0, 2, 1, 3)), w), (0, 2, 1, 3)
    ),
    "space to depth": lambda x, w: tf.nn.depth_to_space(tf.nn.space_to_depth(_product(x, w), 2), 2),
    "local response normalization": lambda x, w: tf.nn.local_response_normalization(_product(x, w)),
    "reverse and roll": lambda x, w: tf.roll(tf.reverse(_product(x, w), [1]), 2, axis=2),
    "tf.grad_pass_through": lambda x, w: tf.grad_pass_through(tf.identity)(_product(x, w)),
}


def _saved_model(size: Size) -> Called:
    """A module that was saved and loaded, as a layer."""
    module = tf.Module()
    module.function = tf.function(
        lambda x: tf.sin(x) * tf.cos(x),
        input_signature=[tf.TensorSpec((None, size.side, size.side, size.channels))],
    )
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        loaded = tf.saved_model.load(folder)
    return step_of(lambda x, w: _product(loaded.function(x), w), size)


def _remat(size: Size) -> Called:
    """Keras' own rematerialization of a function."""
    return step_of(lambda x, w: keras.remat(lambda y: tf.tanh(_product(tf.sin(y), w)))(x), size)


def _forward_in_a_function(size: Size) -> Called:
    """The whole forward pass in a tf.function, the step around it."""
    draw = np.random.default_rng(0)
    shape = (size.depth, size.channels, size.channels)
    weights = [tf.Variable(tf.cast(each, tf.float32)) for each in draw.normal(size=shape) / 8]

    @tf.function  # type: ignore[untyped-decorator]
    def forward(x: Any) -> Any:
        for each in weights:
            x = tf.tanh(_product(x, each)) + x
        return tf.reduce_mean(tf.abs(x))

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = forward(x)
        for variable, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    images = (size.batch, size.side, size.side, size.channels)
    data = [(tf.constant(draw.normal(size=images), tf.float32),) for _ in range(STEPS)]
    return Called(step, data, [weights])


def kinds() -> list[Kind]:
    """All of them."""

    def made(operation: Operation, dtype: str = "float32") -> Callable[[Size], Called]:
        return lambda size: step_of(operation, size, dtype)

    found = [Kind(name, "operations", made(each)) for name, each in _OPERATIONS.items()]
    found += [
        Kind(f"numbers of type {dtype}", "operations", made(_product, dtype))
        for dtype in ("float64", "float16", "bfloat16", "complex64")
    ]
    found.append(Kind("SavedModel as a layer", "operations", _saved_model))
    found.append(Kind("keras.remat", "operations", _remat))
    found.append(Kind("forward pass in a tf.function", "operations", _forward_in_a_function))
    return found
