"""Kernels compute what the operation computes, as often as they are told."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from profiles.fusion import Fusion
from profiles.measure.kernels import Kernel, repeats_kept
from profiles.measure.random_inputs import random_inputs
from profiles.operation import Operation, TensorSize
from tests.fusions import FILTER_FIRST, FUSED, GRADIENTS


def _floats(*shape: int) -> TensorSize:
    return TensorSize("float32", shape)


PRODUCT = Operation("MatMul", (_floats(4, 5), _floats(5, 6)), (_floats(4, 6),))


@pytest.mark.parametrize("repeats", [1, 3])
def test_the_result_is_the_operations(repeats: int) -> None:
    left, right = random_inputs(PRODUCT).values()
    (result,) = Kernel(PRODUCT, "CPU:0").function(repeats)()
    np.testing.assert_allclose(result, left.numpy() @ right.numpy(), rtol=1e-5)


@pytest.mark.parametrize("operation", [PRODUCT, FUSED], ids=lambda each: each.type)
def test_run_once_it_computes_the_same(operation: Operation) -> None:
    kernel = Kernel(operation, "CPU:0")
    np.testing.assert_allclose(kernel.once()(), kernel.function(1)(), rtol=1e-5)


def test_equal_numbers() -> None:
    (result,) = Kernel(PRODUCT, "CPU:0", equal=True).once()()
    np.testing.assert_allclose(result, np.full((4, 6), 5 * 0.5**2))


def test_a_fusion_passes_values_on_between_its_parts() -> None:
    image, window, bias = random_inputs(FUSED).values()
    (result,) = Kernel(FUSED, "CPU:0").function(2)()
    expected = tf.nn.conv2d(image, window, 1, "SAME") + bias
    np.testing.assert_allclose(result, expected, rtol=1e-4)


@pytest.mark.parametrize("repeats", [1, 4])
def test_every_repeat_runs(repeats: int) -> None:
    """Seen from outside: each repeat adds to a variable."""
    value = _floats(3)
    operation = Operation(
        "AssignAddVariableOp", (TensorSize("resource"), value), (), (("dtype", "float32"),)
    )
    with repeats_kept():
        kernel = Kernel(operation, "CPU:0")
        run = kernel.function(repeats)
        variable, added = kernel._inputs.values()
        start = variable.numpy()
        run()
    np.testing.assert_allclose(variable.numpy() - start, repeats * added.numpy(), rtol=1e-5)


@pytest.mark.parametrize("repeats", [5, 65])
@pytest.mark.parametrize("fusion", [FUSED, GRADIENTS, FILTER_FIRST], ids=lambda each: each.type)
def test_fusions_run_as_often_as_they_are_told(fusion: Fusion, repeats: int) -> None:
    """oneDNN would fuse a part of one repeat with a part of another, which is a cycle."""
    with repeats_kept():
        once, often = (Kernel(fusion, "CPU:0").function(count)() for count in (1, repeats))
    for one, other in zip(once, often, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5)


def test_functions_that_have_run_keep_their_kernels() -> None:
    """A function that is optimized in other modes gets new ones, which draw from the start."""

    def drawn() -> list[float]:
        function = tf.function(lambda: tf.random.uniform((), seed=1))
        numbers = []
        for _ in range(3):
            numbers.append(float(function()))
            with repeats_kept():
                Kernel(PRODUCT, "CPU:0").function(2)()
        return numbers

    tf.random.set_seed(0)
    assert len(set(drawn())) == 3
