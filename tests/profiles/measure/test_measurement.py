from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import tensorflow as tf

from profiles.measure.kernels import Kernel
from profiles.measure.measurement import NotMeasurableError, measure, measure_workspace
from profiles.operation import Operation, TensorSize
from solvers import CheckmateError
from tests.messages import raises


def _floats(*shape: int) -> TensorSize:
    return TensorSize("float32", shape)


def _ints(*shape: int) -> TensorSize:
    return TensorSize("int32", shape)


IMAGE, FILTER = _floats(4, 64, 64, 16), _floats(3, 3, 16, 32)
STRIDES = ("strides", (1, 1, 1, 1))

MEASURABLE = {
    "convolution": Operation(
        "Conv2D", (IMAGE, FILTER), (_floats(4, 64, 64, 32),), (("padding", "SAME"), STRIDES)
    ),
    "filter gradient": Operation(
        "Conv2DBackpropFilter",
        (IMAGE, _ints(4), _floats(4, 64, 64, 32)),
        (FILTER,),
        (("padding", "SAME"), STRIDES),
        ((1, FILTER.shape),),
    ),
    "list input": Operation("AddN", (IMAGE,) * 3, (IMAGE,), (("N", 3), ("T", "float32"))),
    # Python knows these inputs by other names than the operation's definition
    "reduction": Operation(
        "Mean", (IMAGE, _ints(2)), (_floats(4, 16),), (("keep_dims", False),), ((1, (1, 2)),)
    ),
    "split": Operation(
        "Split", (_ints(), IMAGE), (_floats(4, 64, 64, 8),) * 2, (("num_split", 2),), ((0, 3),)
    ),
    "selection": Operation("Select", (TensorSize("bool", IMAGE.shape), IMAGE, IMAGE), (IMAGE,)),
    "labels": Operation(
        "SparseSoftmaxCrossEntropyWithLogits",
        (_floats(8, 10), _ints(8)),
        (_floats(8), _floats(8, 10)),
    ),
}


@pytest.mark.parametrize("name", MEASURABLE)
def test_an_operation_runs_by_itself(name: str) -> None:
    measurement = measure(MEASURABLE[name], repeats=2)
    assert measurement.seconds > 0
    assert measurement.workspace is not None


@pytest.mark.skipif(not tf.config.list_logical_devices("GPU"), reason="no GPU on this machine")
@pytest.mark.parametrize("name", MEASURABLE)
def test_an_operation_runs_by_itself_on_a_gpu(name: str) -> None:
    measurement = measure(MEASURABLE[name], "GPU:0", repeats=2)
    assert measurement.seconds > 0
    assert measurement.workspace is not None


def _product(size: int) -> Operation:
    return Operation("MatMul", (_floats(size, size),) * 2, (_floats(size, size),))


@pytest.mark.parametrize("seconds", [1e-6, 1e-4, 1e-2])
def test_the_call_of_a_function_is_not_in_it(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that says so, a call takes 100 µs, and every operation in it what it takes.

    That so many operations really run is seen in `test_kernels`.
    """
    now = 0.0

    class TimedKernel(Kernel):
        def function(self, repeats: int) -> Callable[[], object]:
            runs = super().function(repeats)

            def timed() -> object:
                nonlocal now
                now += 1e-4 + repeats * seconds
                return runs()

            return timed

    monkeypatch.setattr("profiles.measure.measurement.Kernel", TimedKernel)
    monkeypatch.setattr("profiles.measure.measurement.time.perf_counter", lambda: now)
    assert measure(_product(16)).seconds == pytest.approx(seconds)


def test_long_operations_are_measured_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that says that every run takes a second: no series is needed to tell."""
    clock = itertools.count()
    monkeypatch.setattr(
        "profiles.measure.measurement.time.perf_counter", lambda: float(next(clock))
    )
    assert measure(_product(16)).seconds == 1


@pytest.mark.parametrize("workspace_of", [measure_workspace, lambda op: measure(op).workspace])
def test_scratch_memory_is_workspace(workspace_of: Callable[[Operation], int | None]) -> None:
    values = _floats(64, 64, 4, 16)
    in_place = Operation("Relu", (values,), (values,))
    little = workspace_of(in_place)
    assert little is not None
    assert little < 4096  # an allocator rounds, and scalars come and go
    # Summing over axes that are not neighbours, the kernel first makes a transposed copy.
    total = Operation("Sum", (values, _ints(2)), (_floats(64, 16),), (), ((1, (0, 2)),))
    workspace = workspace_of(total)
    assert workspace is not None
    assert values.bytes <= workspace <= 3 * values.bytes


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            Operation("RandomUniform", (_ints(1),), (_floats(3),), (("dtype", "float32"),)),
            "RandomUniform can't run by itself",
        ),
        (Operation("ReadVariableOp", (TensorSize("resource"),), (_floats(3),)), "can't run by"),
        (Operation("NoSuchOperation"), "NoSuchOperation can't run by itself"),
        (Operation("StatelessIf"), "StatelessIf calls a function"),
        (
            Operation("Relu", (_floats(-1, 3),), (_floats(-1, 3),)),
            r"reads float32 of shape \(-1, 3",
        ),
        (Operation("StringLength", (TensorSize("string", (1,)),), (_ints(1),)), "reads string of"),
        (
            Operation("MatMul", (_floats(2, 3), _floats(2, 3)), (_floats(2, 3),)),
            "MatMul does not run by itself: Dimensions must be equal",
        ),
    ],
)
def test_what_cannot_run_by_itself_says_so(operation: Operation, message: str) -> None:
    with pytest.raises(NotMeasurableError, match=message):
        measure(operation)


@pytest.mark.parametrize("device", ["GPU:77", "CPU:7", "XPU:0", "cpu"])
def test_no_other_device_is_measured_in_its_place(device: str) -> None:
    with raises(CheckmateError, "device-unknown", f"{device!r}", "CPU:0"):
        measure(MEASURABLE["list input"], device)
