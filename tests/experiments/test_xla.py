"""What of `experiments.xla` needs no plan: modules for a GPU's compiler, its answers, a table."""

from __future__ import annotations

import pytest
import tensorflow as tf

from experiments.xla import gpu_compiler
from experiments.xla.gpu_compiler import (
    GpuCompilerMissingError,
    check_installed,
    memory_on_gpu,
    without_copies,
)
from experiments.xla.steps import GPU_ROWS, ROWS
from experiments.xla.tables import print_gpu_table
from profiles.tensorflow_internals import hlo_before_compilation
from solvers.errors import CheckmateError

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
        return tf.reduce_sum(product), x

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
    with pytest.raises(GpuCompilerMissingError, match=r"no_such_package.*\[xla-gpu\]"):
        check_installed()


def needs_the_compiler():
    try:
        check_installed()
    except GpuCompilerMissingError as error:
        pytest.skip(str(error))


def test_bytes_on_a_gpu(module):
    needs_the_compiler()
    memory = memory_on_gpu(without_copies(module).SerializeToString())
    matrix = 4 * SIDE * SIDE
    assert memory.arguments == 2 * matrix
    assert memory.outputs >= 2 * matrix
    assert memory.temporary >= matrix


def test_what_the_compiler_refuses_is_an_error_with_its_words():
    needs_the_compiler()
    with pytest.raises(CheckmateError, match="can't compile"):
        memory_on_gpu(b"no module")


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
        "precision": "float32", "depth_first": False, "gpu_plain_temporary": 200e6,
        "gpu_temporary": 71e6, "plain_temporary": 300e6, "temporary": 123e6,
    }  # fmt: skip
    print_gpu_table([row])
    text = capsys.readouterr().out
    assert "never run" in text
    assert max(map(len, text.splitlines())) <= 80
    assert {"200.0", "71.0", "35.5", "41.0", "50"} <= set(text.split())
