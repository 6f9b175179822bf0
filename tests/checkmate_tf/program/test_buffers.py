"""Buffers of one step: each is allocated once and freed once."""

from __future__ import annotations

import pytest
import tensorflow as tf

from checkmate_tf.devices.cpu import Cpu
from checkmate_tf.devices.device import Device
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.lower import lower
from solvers import Schedule, simulate
from tests.steps import random_batch, schedule_of, small_cnn

DEVICES = [Cpu("CPU:0"), Device("GPU:0")]


@pytest.fixture(scope="module")
def extracted():
    model = small_cnn(side=64)
    return extract_step(tf.function(model.train_step).get_concrete_function(random_batch(side=64)))


@pytest.fixture(scope="module", params=["input order", "rematerialized"])
def schedule(request, extracted):
    return schedule_of(extracted, request.param)


@pytest.fixture(scope="module", params=DEVICES, ids=["as freed", "as ready"])
def instructions(request, extracted, schedule):
    return lower(extracted, schedule, request.param)


def gone_after(each):
    return [*each.frees, *([each.assigns[1]] if each.assigns else [])]


def test_every_buffer_is_freed_once(instructions):
    live: set[int] = set()
    *running, returned = instructions
    for each in running:
        live |= {buffer for buffer, _ in each.writes}
        gone = gone_after(each)
        assert live.issuperset(gone)
        assert len(set(gone)) == len(gone)
        live -= set(gone)
    assert live == set(returned.frees)


def test_live_bytes_are_those_of_the_simulator(extracted, schedule):
    """Two accounts of one peak: by buffers here, by nodes, which free at their end, in solvers."""
    instructions = lower(extracted, schedule, Cpu("CPU:0"))
    size = {buffer: count for each in instructions for buffer, count in each.writes}
    held = peak = 0
    for each in instructions[:-1]:
        held += sum(count for _, count in each.writes)
        peak = max(peak, held)
        held -= sum(size[buffer] for buffer in gone_after(each))
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
    captured = {id(handle): inner.name for inner, handle in extracted.program.captured}
    schedule = Schedule(range(len(extracted.graph)))
    found = [
        sorted(each.assigns[0] for each in lower(extracted, schedule, device) if each.assigns)
        for device in DEVICES
    ]
    both = sorted(captured[id(each.handle)] for each in (weights, slot))
    assert found == [[captured[id(weights.handle)]], both]
