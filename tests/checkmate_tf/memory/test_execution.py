"""Buffers of one execution: each is allocated once and freed once."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.memory.execution import execution, operations_in_order
from checkmate_tf.trace.repeatability import updates_in_place
from solvers import Schedule, simulate
from tests.steps import random_batch, schedule_of, small_cnn


@pytest.fixture(scope="module")
def extracted():
    model = small_cnn(side=64)
    return extract_step(tf.function(model.train_step).get_concrete_function(random_batch(side=64)))


@pytest.fixture(scope="module", params=["input order", "rematerialized"])
def schedule(request, extracted):
    return schedule_of(extracted, request.param)


def test_every_operation_runs_as_often_as_its_node(extracted, schedule):
    numbers = operations_in_order(extracted, schedule)
    left_out = updates_in_place(extracted.program).left_out
    assert set(numbers) == set(range(len(extracted.program.operations))) - left_out
    times = np.bincount(schedule.steps)
    for node, members in enumerate(extracted.nodes):
        ran = set(members) - left_out
        assert all(numbers.count(member) == times[node] for member in ran)


def test_every_buffer_is_freed_once(extracted, schedule):
    executed = execution(extracted, schedule)
    live: set[int] = set()
    for run in executed.runs:
        live |= {buffer for buffer, _ in run.allocated}
        gone = [*run.freed, *([run.assigned[1]] if run.assigned else [])]
        assert live.issuperset(gone)
        assert len(set(gone)) == len(gone)
        live -= set(gone)
    assert live == set(executed.returned)


def test_live_bytes_are_those_of_the_simulator(extracted, schedule):
    """Two accounts of one peak: by buffers here, by nodes, which free at their end, in solvers."""
    executed = execution(extracted, schedule)
    size = {buffer: count for run in executed.runs for buffer, count in run.allocated}
    held = peak = 0
    for run in executed.runs:
        held += sum(count for _, count in run.allocated)
        peak = max(peak, held)
        held -= sum(size[buffer] for buffer in run.freed)
        if run.assigned:
            held -= size[run.assigned[1]]  # it takes the place of the variable's own buffer
    predicted = simulate(extracted.graph, schedule).peak - extracted.program.fixed_bytes
    assert 0.8 * predicted < peak <= predicted


def test_variables_that_layers_read_take_over_the_values_assigned_to_them():
    """Weights get a new buffer in every step; what only updates read is written where it lies."""
    weights, slot = (tf.Variable(tf.ones((256, 256))) for _ in range(2))

    @tf.function
    def step(x):
        gradient = tf.matmul(x, tf.matmul(x, weights), transpose_a=True)
        slot.assign(0.9 * slot + gradient)
        weights.assign(weights - slot * 0.1)

    extracted = extract_step(step.get_concrete_function(tf.TensorSpec((32, 256))))
    schedule = Schedule(range(len(extracted.graph)))
    captured = {id(handle): inner.name for inner, handle in extracted.program.captured}
    assigned = [run.assigned[0] for run in execution(extracted, schedule).runs if run.assigned]
    assert assigned == [captured[id(weights.handle)]]


def test_operations_follow_what_they_read(extracted, schedule):
    seen: set[int] = set()
    for number in operations_in_order(extracted, schedule):
        assert {tensor.producer for tensor in extracted.program.reads[number]} <= seen
        seen.add(number)
