"""What runs side by side on a CPU: in whichever order, no more bytes are live than in turn."""

from __future__ import annotations

from itertools import combinations
from random import Random

import keras
import pytest
import tensorflow as tf

from checkmate_tf.devices.allocator import aligned
from checkmate_tf.devices.cpu import Cpu
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.in_place import in_place
from checkmate_tf.program.instructions import Kernel
from checkmate_tf.program.interleaving import Interleaving
from checkmate_tf.program.lower import lower
from checkmate_tf.program.side_by_side import most_live_bytes
from solvers import Schedule
from tests.steps import loss_and_gradient, random_batch, recomputing, schedule_of, small_cnn

ORDERS = [(seed, at_once) for seed in range(3) for at_once in (2, 3, 8)]


@pytest.fixture(scope="module", params=["SGD with momentum", "AdamW"])
def extracted(request):
    model = small_cnn(side=64)
    made = {"AdamW": keras.optimizers.AdamW(), "SGD with momentum": keras.optimizers.SGD(0.1, 0.9)}
    model.compile(made[request.param], model.loss, jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    step = tf.function(model.train_step).get_concrete_function(random_batch(side=64))
    return extract_step(step, workspace=lambda operation: 4096)


@pytest.fixture(scope="module", params=["input order", "rematerialized"])
def instructions(request, extracted):
    return lower(extracted, schedule_of(extracted, request.param), Cpu("CPU:0"))


def live_bytes(instructions, events):
    """The most that is live, by who uses which buffer; an input is free once its users ended."""
    size = {buffer: aligned(count) for each in instructions for buffer, count in each.writes}
    used = [{*each.uses, *(buffer for buffer, _ in each.writes)} for each in instructions]
    left = {buffer: sum(buffer in each for each in used) for buffer in size}
    kept = {*instructions[-1].frees}
    live = most = 0
    for number, starts in events:
        each = instructions[number]
        passing = sum(aligned(one) for one in (*each.copies, each.workspace) if one)
        if starts:
            live += passing + sum(size[buffer] for buffer, _ in each.writes)
            most = max(most, live)
            continue
        live -= passing
        if each.assigns is not None:
            live -= size[each.assigns[1]]  # the variable's own, which has the same size
            kept.add(each.assigns[1])
        for buffer in used[number]:
            left[buffer] -= 1
            if not left[buffer] and buffer not in kept:
                live -= size[buffer]
    return most


@pytest.mark.parametrize(("seed", "at_once"), ORDERS)
def test_no_more_is_live_than_in_turn(instructions, seed, at_once):
    in_turn = most_live_bytes(instructions)
    events = list(Interleaving(instructions, at_once).events(Random(seed)))
    assert sorted(events) == sorted((n, s) for n in range(len(instructions) - 1) for s in (0, 1))
    assert live_bytes(instructions, events) <= in_turn
    assert live_bytes(instructions, Interleaving(instructions, 1).events(Random())) <= in_turn


@pytest.mark.parametrize(("seed", "at_once"), ORDERS)
def test_what_must_run_before_has_ended(extracted, instructions, seed, at_once):
    """Every computation of it so far: who reads a variable, before it is written."""
    program = extracted.program
    kernels = in_place(program).kernels
    runs = {each: kernel for kernel, made in kernels.items() for each in made.replaced}
    ended: set[int] = set()
    for number, starts in Interleaving(instructions, at_once).events(Random(seed)):
        if not starts:
            ended.add(number)
            continue
        operation = instructions[number].operation
        done = {operation, *(one for one, kernel in runs.items() if kernel == operation)} - {None}
        first = {runs.get(each, each) for one in done for each in program.order[one]} - done
        earlier = [n for n in range(number) if instructions[n].operation in first]
        assert ended.issuperset(earlier)


def test_what_takes_over_a_buffer_is_its_last_user(instructions):
    """Else TensorFlow would give it a new one."""
    for seed, at_once in ORDERS:
        ended: set[int] = set()
        for number, starts in Interleaving(instructions, at_once).events(Random(seed)):
            if not starts:
                ended.add(number)
            elif (buffer := instructions[number].takes_over) is not None:
                before = [
                    n
                    for n in range(number)
                    if buffer in instructions[n].uses or buffer in dict(instructions[n].writes)
                ]
                assert ended.issuperset(before)


def test_equal_computations_wait_for_different_ones(instructions):
    """TensorFlow would join them, and nothing would be recomputed."""
    computed: dict[int, list[int]] = {}
    for number, each in enumerate(instructions):
        if each.operation is not None:
            computed.setdefault(each.operation, []).append(number)
    pairs = [pair for each in computed.values() for pair in combinations(each, 2)]
    for one, other in pairs:
        a, b = instructions[one], instructions[other]
        inside_a_part = not a.waits_for or not b.waits_for
        assert inside_a_part or a.reads != b.reads or set(a.waits_for) != set(b.waits_for)


def test_most_wait_for_fewer_than_all_before_them(instructions):
    """Some run side by side; the return waits for all."""
    ends: dict[int, set[int]] = {}
    for number, each in enumerate(instructions):
        before = {n for n in each.waits_for if n >= 0} | {by for _, by in each.reads}
        ends[number] = before.union(*(ends[n] for n in before))
    numbers = [n for n, each in enumerate(instructions) if each.kernel is not Kernel.BARRIER]
    free = [n for n in numbers[1:-1] if len(ends[n]) < n]
    assert len(free) > len(numbers) / 4
    assert len(ends[numbers[-1]]) == numbers[-1]


def test_what_is_computed_again_from_arguments_waits_for_others():
    """Though there is memory enough for it from the start."""
    step = tf.function(loss_and_gradient).get_concrete_function(tf.TensorSpec((128, 128)))
    extracted = extract_step(step)
    found = lower(extracted, Schedule(recomputing(extracted.graph)), Cpu("CPU:0"))
    assert any(each.recomputed and not each.reads for each in found)
    test_equal_computations_wait_for_different_ones(found)
