"""How memory is found to lie, beside what the allocator then does with it."""

from __future__ import annotations

import json

import pytest

from checkmate_tf.devices.allocator import BestFitAllocator
from checkmate_tf.devices.layout import MemoryLayout
from tests.processes import printed

_REAL = """
import json, sys
import tensorflow as tf
from checkmate_tf.devices.layout import address_of, memory_layout
from checkmate_tf.devices.measure import held_bytes

sizes, kept, order = json.load(sys.stdin)

def buffer(size):
    return tf.raw_ops.Empty(shape=[size], dtype=tf.uint8)

tf.raw_ops.Empty(shape=[2, 1 << 30], dtype=tf.uint8)  # one region for all that is large
made = [buffer(size) for size in sizes]
variable = tf.Variable(tf.raw_ops.DeepCopy(x=tf.zeros(1 << 20)))
made = [each if number in kept else None for number, each in enumerate(made)]
concrete = tf.function(lambda: variable + 1.0).get_concrete_function()
captured = [(inner, outer) for outer, inner in concrete.graph.captures]
layout = memory_layout(captured, 1 << 28)
before, alive, held = held_bytes(), {}, []
for number, size in order:
    if number in alive:
        del alive[number]
    else:
        alive[number] = buffer(size)
    held.append(held_bytes() - before)
(place,) = layout.variables.values()
json.dump([layout.free, layout.endless, place, address_of(variable.read_value()), held], sys.stdout)
"""


@pytest.fixture(scope="module")
def real():
    """A memory full of gaps of 8 KiB to 64 MiB, and what the allocator holds from then on."""
    import numpy as np

    generator = np.random.default_rng(3)
    sizes = (2 ** generator.uniform(13, 26, 160)).astype(int).tolist()
    kept = sorted(generator.choice(160, 80, replace=False).tolist())
    numbers = generator.integers(0, 40, 600).tolist()
    order = [(each, int(2 ** generator.uniform(13, 26))) for each in numbers]
    found = printed(_REAL, json.dumps([sizes, kept, order]))
    free, endless, place, address, held = json.loads(found)
    return [tuple(each) for each in free], endless, place, address, order, held


def test_from_there_the_simulation_holds_what_tensorflow_holds(real):
    """Six hundred random allocations and releases amid the gaps.

    Byte for byte, but for a few small buffers that the process makes for itself.
    """
    free, endless, _, _, order, held = real
    assert len(free) > 20, "there must be gaps"
    allocator = BestFitAllocator.laid_out(free, [], endless)
    alive: dict[int, int] = {}
    simulated = []
    for number, size in order:
        if number in alive:
            allocator.release(alive.pop(number))
        else:
            alive[number] = allocator.allocate(size)
        simulated.append(allocator.held)
    differences = [abs(one - other) for one, other in zip(simulated, held, strict=True)]
    assert max(differences) <= 4096


def test_a_variable_lies_where_it_lies(real):
    _, endless, (place, size), address, _, _ = real
    assert size == 4 << 20
    assert place == address or place < 0 < endless < address


def test_gaps_that_lie_together_are_one():
    layout = MemoryLayout(free=((0, 512), (1024, 256)), endless=4096, variables={7: (512, 512)})
    allocator = BestFitAllocator.laid_out(layout.free, layout.variables.values(), layout.endless)
    assert allocator.held == 512
    allocator.release(512)
    assert allocator.free_pieces[0] == (1280, 0)
    assert allocator.allocate(1280) == 0


_BUSY = """
import json, random, sys, threading, time
import tensorflow as tf
from checkmate_tf.devices.allocator import BestFitAllocator
from checkmate_tf.devices.layout import memory_layout

done = threading.Event()

def allocate_and_release(rate):
    alive, draw = [], random.Random(0)
    while not done.is_set():
        if len(alive) > 20:
            del alive[draw.randrange(20)]
        alive.append(tf.raw_ops.Empty(shape=[draw.randrange(1, 1 << 17)], dtype=tf.uint8))
        time.sleep(rate)

found = []
for rate in (0.1, 0.003, 0.0003):
    done.clear()
    other = threading.Thread(target=allocate_and_release, args=(rate,))
    other.start()
    time.sleep(0.1)
    found += [memory_layout([], 1 << 20) for _ in range(20)]
    done.set()
    other.join()
quiet = memory_layout([], 1 << 20)
for each in found:
    if each is not None:
        BestFitAllocator.laid_out(each.free, [], each.endless)
print(len(found), quiet is not None)
"""


@pytest.mark.slow
def test_while_another_thread_allocates():
    """What is told is possible, or nothing is told."""
    assert printed(_BUSY).split() == ["60", "True"]


_WITHOUT_GAPS = """
import tensorflow as tf
from checkmate_tf.devices.layout import fill_gaps, memory_layout

tf.raw_ops.Empty(shape=[1 << 22], dtype=tf.uint8)
fillers = list(fill_gaps(1 << 20, 256, 1 << 14))
sizes = [((1 << 22) - less) // 2 for less in range(0, 400_000, 4000)]
print({memory_layout([], size).free for size in sizes})
"""


@pytest.mark.slow
def test_the_rest_of_the_largest_piece_is_no_gap():
    """Where it is a little larger than the block that is to stay free."""
    assert printed(_WITHOUT_GAPS).strip() == "{()}"


_OF_NUMPY = """
import json, sys
import numpy as np
import tensorflow as tf
from checkmate_tf.devices.layout import address_of, memory_layout

memory = np.zeros(4096, np.uint8)
begin = -memory.ctypes.data % 64
close, large = [], tf.Variable(tf.raw_ops.DeepCopy(x=tf.zeros(1 << 16)))
for place in (begin, begin + 64):
    variable = tf.Variable(tf.zeros(4))
    outside = tf.raw_ops.Identity(input=memory[place : place + 16].view(np.float32))
    tf.raw_ops.AssignVariableOp(resource=variable.handle, value=outside)
    close.append(variable)
places = [address_of(each.read_value()) for each in close]
concrete = tf.function(lambda: large + close[0][0] + close[1][0]).get_concrete_function()
layout = memory_layout([(inner, outer) for outer, inner in concrete.graph.captures], 1 << 20)
print(places[1] - places[0], [size for _, size in layout.variables.values()])
"""


@pytest.mark.slow
def test_variables_in_memory_of_numpy_are_not_the_allocators():
    """They may lie closer together than buffers of the allocator do."""
    assert printed(_OF_NUMPY).strip() == f"64 [{4 << 16}]"


def test_layouts_alike():
    layout = MemoryLayout(((0, 512),), 4096, {}, arriving=(256,))
    first, without_gaps, one_more = layout.and_alike()
    assert first == layout
    assert without_gaps.free == ()
    assert one_more.arriving[0] == 256


@pytest.mark.slow
def test_without_room_for_the_largest_gap_nothing_is_told():
    code = "from checkmate_tf.devices.layout import memory_layout as lay; print(lay([], 1 << 28))"
    assert printed(code, TF_CPU_BFC_MEM_LIMIT_IN_MB="64").strip() == "None"
