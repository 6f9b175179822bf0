"""The simulated allocator, beside TensorFlow's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from checkmate_tf.memory.allocator import BestFitAllocator

_REAL = """
import json, sys
import tensorflow as tf

sizes, order = json.load(sys.stdin)
tf.raw_ops.Empty(shape=[8, 1 << 30], dtype=tf.uint8)  # one region, as the simulation has
before = tf.config.experimental.get_memory_info("CPU:0")["current"]
alive, held = {}, []
for number, size in zip(order, sizes):
    if number in alive:
        del alive[number]
    else:
        alive[number] = tf.raw_ops.Empty(shape=[size], dtype=tf.uint8)
    held.append(tf.config.experimental.get_memory_info("CPU:0")["current"] - before)
json.dump(held, sys.stdout)
"""


@pytest.mark.parametrize("one_dnn", ["0", "1"])
def test_holds_what_tensorflow_holds(one_dnn):
    """Two thousand random allocations and releases, byte for byte.

    All are larger than the region that a process starts with.
    """
    generator = np.random.default_rng(0)
    order = generator.integers(0, 60, 2000).tolist()
    sizes = (2 ** generator.uniform(22, 27, 2000)).astype(int).tolist()
    environment = {
        **os.environ,
        "TF_ENABLE_ONEDNN_OPTS": one_dnn,
        "TF_CPU_ALLOCATOR_USE_BFC": "true",
    }
    real = subprocess.run(
        [sys.executable, "-c", _REAL],
        input=json.dumps([sizes, order]),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    allocator = BestFitAllocator()
    alive: dict[int, int] = {}
    held = []
    for number, size in zip(order, sizes, strict=True):
        if number in alive:
            allocator.release(alive.pop(number))
        else:
            alive[number] = allocator.allocate(size)
        held.append(allocator.held)
    assert held == json.loads(real.stdout)


def test_a_piece_under_twice_the_size_is_handed_out_whole():
    allocator = BestFitAllocator()
    kept = [allocator.allocate(size << 10) for size in (8, 100, 8)]
    allocator.release(kept[1])
    allocator.allocate(60 << 10)
    assert allocator.held == (8 + 100 + 8) << 10


def test_neighbours_become_one_piece():
    allocator = BestFitAllocator()
    kept = [allocator.allocate(size << 10) for size in (8, 50, 50, 8)]
    allocator.release(kept[1])
    allocator.release(kept[2])
    assert allocator.allocate(100 << 10) == kept[1]
    assert allocator.held == (8 + 100 + 8) << 10


def test_peak_counts_from_where_it_is_reset():
    allocator = BestFitAllocator()
    first = allocator.allocate(1 << 20)
    allocator.release(first)
    assert allocator.peak == 1 << 20
    allocator.reset_peak()
    assert allocator.peak == allocator.held == 0
