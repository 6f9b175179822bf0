"""What of `experiments.xla` needs no plan: modules for a GPU's compiler, its answers, a table."""

from __future__ import annotations

import pytest
import tensorflow as tf

from experiments.xla import gpu_compiler
from experiments.xla.gpu_compiler import (
    GpuCompilerMissingError,
    check_installed,
    compile_for_gpu,
    without_copies,
)
from experiments.xla.layout_copies import LayoutCopy, layout_copies, most_at_once
from experiments.xla.steps import GPU_ROWS, ROWS
from experiments.xla.tables import print_float64, print_gpu_table
from profiles.tensorflow_internals import hlo_before_compilation
from solvers.errors import CheckmateError
from tests.messages import raises

SIDE = 256
"""Rows of the square matrix that `module` multiplies."""


@pytest.fixture(scope="module")
def module():
    """A step that sets a variable: TensorFlow copies what it returns."""
    variable = tf.Variable(tf.ones((SIDE, SIDE)))

    @tf.function(jit_compile=True)
    def step(x):
        product = tf.tanh(variable @ x)
        variable.assign_sub(product @ x)
        return tf.reduce_sum(product)

    size = tf.TensorSpec((SIDE, SIDE))
    return hlo_before_compilation(step.get_concrete_function(size), [size], "CPU:0")


def opcodes(module):
    return [each.opcode for part in module.computations for each in part.instructions]


def test_only_copies_leave_a_module(module):
    before = opcodes(module)
    after = opcodes(without_copies(module))
    assert "copy" in before
    assert after == [each for each in before if each != "copy"]
    assert opcodes(module) == before  # the one that was given stays as it is


def test_all_that_is_read_is_still_there(module):
    for part in without_copies(module).computations:
        numbers = {each.id for each in part.instructions}
        assert part.root_id in numbers
        for each in part.instructions:
            assert numbers.issuperset(each.operand_ids)


def test_a_copy_of_a_copy_that_is_the_result(module):
    module = without_copies(module)
    part = next(each for each in module.computations if each.id == module.entry_computation_id)
    root = part.root_id
    for _ in range(2):
        part.instructions.add(opcode="copy", id=part.root_id + 1000, operand_ids=[part.root_id])
        part.root_id += 1000
    stripped = without_copies(module)
    (part,) = (each for each in stripped.computations if each.id == module.entry_computation_id)
    assert part.root_id == root
    assert "copy" not in opcodes(stripped)


def test_where_the_compiler_is_missing_the_message_names_the_extra(monkeypatch):
    monkeypatch.setattr(gpu_compiler, "_PACKAGES", ("json", "no_such_package.of_cuda"))
    with raises(GpuCompilerMissingError, "package-missing", "no_such_package", "xla-gpu"):
        check_installed()


def needs_the_compiler():
    try:
        check_installed()
    except GpuCompilerMissingError as error:
        pytest.skip(str(error))


def test_bytes_on_a_gpu(module):
    needs_the_compiler()
    memory, compiled = compile_for_gpu(module)
    matrix = 4 * SIDE * SIDE
    assert memory.arguments == 2 * matrix
    assert matrix <= memory.outputs < 2 * matrix
    assert memory.temporary >= matrix
    assert layout_copies(compiled) == []  # no kernel of a convolution is there


def test_what_the_compiler_refuses_is_an_error_with_its_words(module):
    needs_the_compiler()
    module = type(module)()
    with raises(CheckmateError, "xla-cannot-compile"):
        compile_for_gpu(module)


@pytest.fixture
def convolution(module):
    """A compiled module that copies a kernel for a convolution, and again for its gradient."""
    kernel, zero, tied, image = (3, 3, 8, 16), (1,), (16, 8, 3, 3), (4, 8, 32, 32)
    made = [
        ("parameter", kernel, ()),
        ("parameter", image, ()),
        ("fusion", tied, (0,)),
        ("custom-call", image, (1, 2)),
        ("fusion", zero, (3,)),
        ("fusion", image, (1, 3)),
        ("fusion", tied, (0, 4)),
        ("bitcast", tied, (6,)),
        ("custom-call", image, (5, 7)),
        ("fusion", kernel, (0,)),
        ("fusion", tied, (0, 8)),
    ]
    result = type(module)(entry_computation_id=7)
    computation = result.computations.add(id=7, root_id=len(made) - 1)
    for number, (opcode, dimensions, operands) in enumerate(made):
        each = computation.instructions.add(opcode=opcode, id=number, operand_ids=operands)
        each.shape.element_type = 11
        each.shape.dimensions[:] = dimensions
    result.schedule.sequences[7].instruction_ids[:] = range(len(made))
    return result


def test_copies_of_kernels_in_another_layout(convolution):
    size = 4 * 3 * 3 * 8 * 16
    # Neither an equal layout nor what reads an image beside the kernel is such a copy.
    assert layout_copies(convolution) == [LayoutCopy(size, 2, 3), LayoutCopy(size, 6, 8)]
    assert most_at_once(layout_copies(convolution)) == size


def test_copies_that_are_made_at_the_start_are_there_at_once(convolution):
    order = [0, 1, 2, 3, 4, 6, 7, 5, 8, 9, 10]
    order.insert(order.index(3), order.pop(order.index(6)))  # as if nothing tied it
    convolution.computations[0].instructions[6].operand_ids[:] = [0]
    convolution.schedule.sequences[7].instruction_ids[:] = order
    assert most_at_once(layout_copies(convolution)) == 2 * 4 * 3 * 3 * 8 * 16


def test_eight_models_at_three_budgets():
    plain = [row for row in ROWS if not row.depth_first and row.precision == "float32"]
    budgets = {}
    for row in plain:
        budgets.setdefault((row.model, row.batch, row.side), set()).add(row.share)
    assert sum(len(shares) >= 3 for shares in budgets.values()) >= 8
    assert {"residual", "MobileNetV2", "GPT", "ResNet50"} <= {row.model for row in GPU_ROWS}


def test_the_table_says_that_nothing_ran(capsys):
    row = {
        "model": "EfficientNetB0", "batch": 32, "side": 128, "optimizer": "adam", "share": 0.5,
        "precision": "float32", "depth_first": False, "plain_temporary": 300e6,
        "temporary": 123e6, "gpu_plain": {"temporary": 200e6, "layout_copies": 40e6},
        "gpu_planned": {"temporary": 71e6, "layout_copies": 23e6},
    }  # fmt: skip
    print_gpu_table([row])
    text = capsys.readouterr().out
    assert "never run" in text
    assert max(map(len, text.splitlines())) <= 80
    assert {"200.0", "71.0", "35.5", "41.0", "50", "40.0", "23.0"} <= set(text.split())


def test_the_table_of_distances_from_float64(capsys):
    row = {
        "model": "DenseNet121", "batch": 4, "side": 64, "optimizer": "sgd", "share": 0.5,
        "precision": "float32", "depth_first": False, "distance": 1e-6,
        "from_float64": [2.1e-6, 2.3e-6],
    }  # fmt: skip
    print_float64([{**row, "from_float64": None}])
    assert not capsys.readouterr().out
    print_float64([row])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert {"50", "2.1e-06", "2.3e-06", "1.0e-06"} <= set(text.split())
