"""Steps that hold the same bytes every time, by the allocator's own count, and keep their bits."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.devices.current import planned_as
from checkmate_tf.devices.device import Device
from checkmate_tf.devices.measure import run_measured
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.in_place import InPlace, in_place
from checkmate_tf.program.rewrite import as_function
from checkmate_tf.trace.momentum_updates import KERNEL
from checkmate_tf.trace.program import resolve
from profiles.devices import default_device
from solvers import Schedule, solve
from tests.costs import sweep
from tests.steps import random_batch, small_cnn

LARGE = (256, 256)  # 256 KiB


def types_written_in_place(step):
    """Shapes of the variables that are written in place."""
    program = resolve(step.get_concrete_function())
    operations = [program.operations[number] for number in sorted(in_place(program).writes)]
    return sorted(tuple(each.inputs[1].shape) for each in operations)


def test_slots_and_small_variables_are_written_in_place_and_weights_are_not():
    weights, slot = tf.Variable(tf.ones(LARGE)), tf.Variable(tf.ones(LARGE))
    bias, count = tf.Variable(tf.ones(256)), tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step():
        result = tf.matmul(weights, weights) + bias
        slot.assign(0.9 * slot + result)
        weights.assign(weights - slot * 0.1)
        bias.assign(bias * 0.5)
        count.assign(count + 1)
        return result

    assert types_written_in_place(step) == [(), (256,), LARGE]


def test_a_variable_without_a_full_shape_or_a_value_gets_the_buffer_of_what_is_assigned():
    growing = tf.Variable(tf.ones(4), shape=[None])
    names = tf.Variable(["a", "b"])

    @tf.function
    def step():
        growing.assign(tf.concat([growing, growing], 0)[:8])
        names.assign(names + "x")

    assert types_written_in_place(step) == []


def values(variables):
    return [each.numpy().tobytes() for each in variables]


OPTIMIZERS = {
    "momentum": lambda: keras.optimizers.SGD(0.01, momentum=0.9),
    "RMSprop": lambda: keras.optimizers.RMSprop(1e-3, momentum=0.5),
    "AdamW": lambda: keras.optimizers.AdamW(1e-3),
}


class Walled(Device):
    """A GPU whose allocator may have one byte, or as much as it likes."""

    limit_bytes: int | None = None

    def wall(self):
        return self.limit_bytes


def trained_by(concrete, batch, variables, begin):
    """Types of the operations of three steps of its plan, and the values that they left."""
    extracted = extract_step(concrete)
    run = as_function(extracted, Schedule(range(len(extracted.graph))))
    for each, value in zip(variables, begin, strict=True):
        each.assign(value)
    for _ in range(3):
        run(*tf.nest.flatten(batch))
    return {each.type for each in run.graph.get_operations()}, values(variables)


def test_on_a_gpu_variables_keep_their_places_only_where_memory_is_short(monkeypatch):
    """And their bits, by the GPU's order on any device."""
    model = small_cnn(side=32)
    model.compile(OPTIMIZERS["momentum"](), model.loss, jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    batch = random_batch(side=32)
    concrete = tf.function(model.train_step).get_concrete_function(batch)
    variables = [*model.variables, *model.optimizer.variables]
    begin = [each.numpy() for each in variables]
    trained = {}
    for limit in (None, 1):
        monkeypatch.setattr(Walled, "limit_bytes", limit)
        with planned_as(Walled(default_device())):
            types, trained[limit] = trained_by(concrete, batch, variables, begin)
        assert ("ResourceStridedSliceAssign" in types) == (limit is not None)
        assert KERNEL not in types
    assert trained[None] == trained[1]
    assert trained[1] != [each.tobytes() for each in begin]


@pytest.mark.parametrize("name", sweep(OPTIMIZERS))
def test_written_in_place_a_step_changes_the_same_bits(monkeypatch, name):
    """Beside the same schedule with TensorFlow's own writes."""
    model = small_cnn(side=32)
    model.compile(OPTIMIZERS[name](), model.loss, jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    batch = random_batch(side=32)
    concrete = tf.function(model.train_step).get_concrete_function(batch)
    variables = [*model.variables, *model.optimizer.variables]
    begin = [each.numpy() for each in variables]
    trained = []
    for writes_in_place in (True, False):
        if not writes_in_place:
            monkeypatch.setattr("checkmate_tf.program.lower.in_place", lambda program: InPlace())
        types, left = trained_by(concrete, batch, variables, begin)
        assert ("ResourceStridedSliceAssign" in types) == writes_in_place
        trained.append(left)
    assert trained[0] == trained[1]
    assert trained[0] != [each.tobytes() for each in begin]


def test_what_was_read_before_a_write_stays_as_it_was():
    slot = tf.Variable(tf.ones((64, 64)))

    @tf.function
    def step():
        before = tf.identity(slot)
        slot.assign(slot * 2.0)
        return before, slot + 0.0

    extracted = extract_step(step.get_concrete_function())
    assert in_place(extracted.program).writes
    run = as_function(extracted, Schedule(range(len(extracted.graph))))
    outside = slot.value()
    for expected in (1.0, 2.0, 4.0):
        before, after = run()
        assert np.all(before == expected)
        assert np.all(after == 2 * expected)
    assert np.all(outside == 1.0)
    assert np.all(slot == 8.0)


@pytest.mark.skipif(default_device() != "CPU:0", reason="other devices have no one order")
@pytest.mark.usefixtures("memory_in_one_piece")
@pytest.mark.parametrize("optimizer", sweep(["momentum", "RMSprop"]))
def test_every_step_holds_the_same_bytes(monkeypatch, optimizer):
    """Once the state is that of steps before: by the allocator's peak. Side by side it varies."""
    monkeypatch.setattr(
        "checkmate_tf.program.lower.side_by_side",
        lambda program, instructions, changes: instructions,
    )
    model = small_cnn(side=64)
    model.compile(OPTIMIZERS[optimizer](), model.loss, jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    batch = random_batch(side=64)
    concrete = tf.function(model.train_step).get_concrete_function(batch)
    extracted = extract_step(concrete)
    solution = solve(extracted.graph, 0.7, time_limit=3, order="free")
    run = as_function(extracted, solution.schedule)
    flat = tf.nest.flatten(batch)
    step = [run_measured(lambda: run(*flat), device="CPU:0")[1] for _ in range(12)][2:]
    assert max(step) <= 1.02 * min(step)
