from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

import profiles.measure.workspaces
from profiles import store
from profiles.devices import device_name
from profiles.measure.measurement import NotMeasurableError
from profiles.measure.workspaces import MeasuredWorkspaces, stored_workspaces
from profiles.operation import Operation, TensorSize
from profiles.profile import Measurement, Profile
from tests.processes import printed

LARGE, SMALL = TensorSize("float32", (1024, 1024)), TensorSize("float32", (8,))
BEYOND = TensorSize("float32", (1 << 16, 1 << 15))


class Laboratory:
    """Stands for the device: says 7 bytes of workspace, and counts the questions."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def measure_workspace(self, operation: Operation, device: str) -> int | None:
        self.asked.append((operation.type, device))
        if operation.type == "Stateful":
            raise NotMeasurableError("no")
        return None if operation.type == "Uncounted" else 7


@pytest.fixture
def laboratory(monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    laboratory = Laboratory()
    monkeypatch.setattr(
        profiles.measure.workspaces, "measure_workspace", laboratory.measure_workspace
    )
    return laboratory


@pytest.mark.parametrize(
    ("kind", "size", "workspace", "asked", "unknown"),
    [
        ("Softmax", LARGE, 7, 1, 0),
        ("Softmax", SMALL, 0, 0, 0),  # too small to matter
        ("Relu", LARGE, 0, 0, 0),  # needs none, as is known
        ("Stateful", LARGE, 0, 1, 1),
        ("Uncounted", LARGE, 0, 1, 1),
        ("Softmax", BEYOND, 0, 0, 1),  # whose kernel would end the process of a GPU
    ],
)
def test_every_signature_is_measured_once(
    laboratory: Laboratory, kind: str, size: TensorSize, workspace: int, asked: int, unknown: int
) -> None:
    workspaces = MeasuredWorkspaces("GPU:0")
    operation = Operation(kind, (size,), (size,))
    again = Operation(kind, (size,), (size,))
    assert (workspaces(operation), workspaces(again)) == (workspace, workspace)
    assert laboratory.asked == [(kind, "GPU:0")] * asked
    assert workspaces.unknown == [operation] * unknown


def test_what_is_known_is_not_asked_again(laboratory: Laboratory) -> None:
    operation = Operation("Softmax", (LARGE,), (LARGE,))
    assert MeasuredWorkspaces(known={operation: 5})(operation) == 5
    assert laboratory.asked == []


def test_on_a_device() -> None:
    workspaces = MeasuredWorkspaces()
    product = Operation("MatMul", (LARGE, LARGE), (LARGE,))
    assert workspaces.known == {product: workspaces(product)}
    assert workspaces.unknown == []


def test_what_profiles_hold_of_this_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laboratory: Laboratory
) -> None:
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path))
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "none")
    softmax = Operation("Softmax", (LARGE,), (LARGE,))
    uncounted = Operation("Uncounted", (LARGE,), (LARGE,))
    entries = {softmax: Measurement(1.0, 3), uncounted: Measurement(1.0, None)}
    store.remember(Profile(device_name(), tf.__version__, entries))
    store.remember(Profile("another", tf.__version__, {softmax: Measurement(1.0, 4)}))
    assert stored_workspaces() == {softmax: 3}
    assert MeasuredWorkspaces(known=stored_workspaces())(softmax) == 3
    assert laboratory.asked == []


GRADIENT_OF_VOLUMES = """
import tensorflow as tf
from checkmate_tf.graph.extraction import extract_step
from profiles.measure.workspaces import MeasuredWorkspaces

@tf.function
def step(volumes, weights):
    with tf.GradientTape() as tape:
        tape.watch(weights)
        result = tf.nn.conv3d(volumes, weights, [1] * 5, "SAME")
    return tape.gradient(result, weights)

spec = tf.TensorSpec((16, 32, 32, 4, 32)), tf.TensorSpec((3, 3, 3, 32, 32))
workspaces = MeasuredWorkspaces()
extract_step(step.get_concrete_function(*spec), workspace=workspaces)
print([bytes for each, bytes in workspaces.known.items() if "BackpropFilter" in each.type][0])
"""


@pytest.mark.slow
def test_near_a_limit_a_workspace_is_what_the_kernel_asks_for() -> None:
    """No memory for it, and a piece that is larger; TensorFlow waits ten seconds each time."""
    there_is = int(printed(GRADIENT_OF_VOLUMES, TF_ENABLE_ONEDNN_OPTS="0"))
    none, little = (
        int(
            printed(
                GRADIENT_OF_VOLUMES, TF_ENABLE_ONEDNN_OPTS="0", TF_CPU_BFC_MEM_LIMIT_IN_MB=limit
            )
        )
        for limit in ("100", "430")
    )
    assert 100 << 20 < none == little <= there_is
