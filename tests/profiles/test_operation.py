from __future__ import annotations

import pytest

from profiles.operation import Operation, TensorSize


@pytest.mark.parametrize(
    ("dtype", "shape", "elements", "size"),
    [
        ("float32", (), 1, 4),
        ("float32", (2, 3), 6, 24),
        ("float64", (5,), 5, 40),
        ("float16", (5,), 5, 10),
        ("bfloat16", (5,), 5, 10),
        ("float8_e4m3fn", (5,), 5, 5),
        ("int64", (5,), 5, 40),
        ("uint8", (5,), 5, 5),
        ("qint32", (5,), 5, 20),
        ("int4", (6,), 6, 3),
        ("bool", (5,), 5, 5),
        ("complex64", (5,), 5, 40),
        ("complex128", (5,), 5, 80),
        ("resource", (), 1, 0),
        ("variant", (3,), 3, 0),
        ("float32", (0, 7), 0, 0),
        ("float32", (-1, 7), 7, 28),  # what depends on data counts as one
    ],
)
def test_sizes(dtype: str, shape: tuple[int, ...], elements: int, size: int) -> None:
    tensor = TensorSize(dtype, shape)
    assert (tensor.elements, tensor.bytes) == (elements, size)


def test_bytes_moved_are_all_inputs_and_outputs() -> None:
    image, axes = TensorSize("float32", (8, 5)), TensorSize("int32", (1,))
    operation = Operation("Mean", (image, axes), (TensorSize("float32", (8,)),))
    assert operation.bytes_moved == 160 + 4 + 32
    assert Operation("NoOp").bytes_moved == 0


def test_attributes_by_name() -> None:
    operation = Operation("Conv2D", attributes=(("padding", "SAME"), ("strides", (1, 2, 2, 1))))
    assert operation.attribute("strides") == (1, 2, 2, 1)
    assert operation.attribute("dilations") is None
    assert operation.attribute("dilations", 1) == 1


def test_equal_signatures_are_one_key() -> None:
    def make(padding: str) -> Operation:
        image = TensorSize("float32", (1, 4, 4, 3))
        return Operation("Conv2D", (image,), (image,), (("padding", padding),), ((1, (0, 1)),))

    assert len({make("SAME"), make("SAME"), make("VALID")}) == 2
