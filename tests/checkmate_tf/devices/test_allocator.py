"""The simulated allocator, beside TensorFlow's own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from checkmate_tf.devices.allocator import BestFitAllocator, NoPieceError, in_new_region
from tests.costs import sweep
from tests.processes import printed

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

_BLOCKS = """
import json, sys
import tensorflow as tf

blocks, held = [], []
for size in json.load(sys.stdin):
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    blocks.append(tf.raw_ops.Empty(shape=[size], dtype=tf.uint8))
    held.append(tf.config.experimental.get_memory_info("CPU:0")["current"] - before)
print(json.dumps(held))
"""


@pytest.mark.parametrize("one_dnn", sweep(["0", "1"]))
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


_AT_A_LIMIT = """
import json, sys
import tensorflow as tf

region, sizes, order = json.load(sys.stdin)
tf.raw_ops.Empty(shape=[region], dtype=tf.uint8)  # what is left then is less than any size
alive, done = {}, 0
try:
    for number, size in zip(order, sizes):
        if number in alive:
            del alive[number]
        else:
            alive[number] = tf.raw_ops.Empty(shape=[size], dtype=tf.uint8)
        done += 1
except tf.errors.ResourceExhaustedError:
    pass
json.dump(done, sys.stdout)
"""


def test_runs_out_of_pieces_when_tensorflow_does():
    """Though there are free bytes enough: a buffer needs all its bytes in one piece."""
    region, limit = 256 << 20, 260
    generator = np.random.default_rng(6)
    order = generator.integers(0, 12, 400).tolist()
    sizes = (2 ** generator.uniform(22, 25.5, 400)).astype(int).tolist()
    environment = {
        **os.environ,
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "TF_CPU_ALLOCATOR_USE_BFC": "true",
        "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(limit),
    }
    real = subprocess.run(
        [sys.executable, "-c", _AT_A_LIMIT],
        input=json.dumps([region, sizes, order]),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    allocator = BestFitAllocator(region)
    alive: dict[int, int] = {}
    done = 0
    with contextlib.suppress(NoPieceError):
        for number, size in zip(order, sizes, strict=True):
            if number in alive:
                allocator.release(alive.pop(number))
            else:
                alive[number] = allocator.allocate(size)
            done += 1
    assert allocator.held + sizes[done] < region, "bytes were left"
    assert done == json.loads(real.stdout)


@pytest.mark.parametrize("one_dnn", sweep(["0", "1"]))
def test_what_a_block_takes_that_needs_a_new_region(one_dnn):
    sizes = [5 << 20, 11 << 20, 40 << 20, 65 << 20, 150 << 20, 300 << 20, 900 << 20, 1100 << 20]
    held = json.loads(printed(_BLOCKS, json.dumps(sizes), TF_ENABLE_ONEDNN_OPTS=one_dnn))
    assert held == [in_new_region(size) for size in sizes]


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


@pytest.mark.parametrize(
    "free",
    [
        pytest.param([(0, 1024)], id="reaches into what is held"),
        pytest.param([(0, 256), (0, 512)], id="twice the same"),
        pytest.param([(0, -256)], id="less than no bytes"),
        pytest.param([(0, 0)], id="no bytes"),
        pytest.param([(1280, 256)], id="reaches into what never ends"),
        pytest.param([(4096, 256)], id="behind what never ends"),
    ],
)
def test_memory_that_cannot_lie_so(free):
    with pytest.raises(ValueError, match="bytes at"):
        BestFitAllocator.laid_out(free, [(512, 256)], 1280)
