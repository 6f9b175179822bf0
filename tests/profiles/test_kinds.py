from __future__ import annotations

import pytest

from profiles.kinds import BROADCASTING, COLUMNS, kind_of, runs_no_kernel
from profiles.operation import Operation, TensorSize
from profiles.operation_facts import types

IMAGES, NUMBER = (8, 14, 14, 64), ()


def _elementwise(kind: str, *inputs: tuple[int, ...]) -> Operation:
    sizes = tuple(TensorSize("float32", shape) for shape in inputs)
    return Operation(kind, sizes, (max(sizes, key=lambda size: size.elements),))


@pytest.mark.parametrize(
    ("inputs", "repeats"),
    [
        ([IMAGES, IMAGES], False),
        ([IMAGES, NUMBER], False),
        ([NUMBER, IMAGES], False),
        ([IMAGES, (1, 1, 1, 1)], False),
        ([IMAGES, (64,)], True),
        ([(1, 1, 1, 64), IMAGES], True),
        ([IMAGES, (8, 1, 1, 64)], True),
    ],
)
def test_elementwise_operations_broadcast_where_an_input_is_repeated(inputs, repeats):
    kinds = {kind_of(_elementwise(kind, *inputs)) for kind in ("Mul", "AddV2", "BiasAdd")}
    assert kinds == ({BROADCASTING} if repeats else {"Mul", "AddV2", "BiasAdd"})


@pytest.mark.parametrize(
    ("axes", "across"),
    [((0, 1, 2), True), ((0,), True), (0, True), ((-4,), True), ((3,), False), ((1, 2), False),
     ((0, 1, 2, 3), False), ((-1,), False), (-1, False)],
)  # fmt: skip
def test_sums_across_rows_are_a_kind(axes, across):
    images, numbers = TensorSize("float32", IMAGES), TensorSize("int32", (3,))
    for kind in ("Sum", "Mean"):
        each = Operation(kind, (images, numbers), (images,), constants=((1, axes),))
        assert kind_of(each) == (COLUMNS if across else kind)
        assert kind_of(Operation(kind, (images, numbers), (images,))) == kind  # axes not known


def test_views_and_variables_that_take_over_a_buffer_run_no_kernel():
    views = types(lambda row: row.buffer == "view")
    for kind in (*views, "ShapeN", "Const", "ReadVariableOp", "AssignVariableOp"):
        assert runs_no_kernel(Operation(kind))
    for kind in ("Relu", "AssignAddVariableOp", "Conv2D", "Transpose"):
        assert not runs_no_kernel(Operation(kind))
