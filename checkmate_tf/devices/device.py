"""A device as planning sees it: in which order it runs operations, and how its memory is told.

What is said here holds of accelerators, a GPU above all; `cpu.Cpu` says what is otherwise on CPUs.
No other room asks which device it is.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from typing import Any

import tensorflow as tf

from checkmate_tf.devices.allocator import for_the_rest, in_new_region
from checkmate_tf.devices.layout import MemoryLayout
from checkmate_tf.devices.measure import held_bytes
from profiles.devices import device_name
from profiles.tensorflow_internals import allocator_limit, grappler_with
from solvers import format_bytes

_GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"
"""The environment variable that lets the allocators of GPUs grow, "true", or not, "false"."""

_TRIES = 2
"""How often an allocator is asked for all that it has left: each time may take ten seconds."""

_PAGE = 4096
"""No dimension of a tensor's may have more than 31 bits."""


@dataclass(frozen=True)
class Room:
    """What a device can hold in all, and how that came about.

    Attributes:
        bytes: everything on it at any moment, of this process.
        why: for the user, a line for each thing that counts.
    """

    bytes: int
    why: tuple[str, ...]


class Order(Enum):
    """How operations are ordered."""

    AS_FREED = "when the bytes are free that they allocate, in the order of the schedule"
    AS_READY = "when their inputs are there, in groups that wait for each other"
    COMPILED = "by XLA, which follows the data alone"


@dataclass(frozen=True)
class Device:
    """The device that TensorFlow computes on.

    Attributes:
        name: "GPU:0", "CPU:0", …
        order: of operations on it.
        tries_kernels: it tries kernels when they first run, and takes memory for that, as cuDNN
            does: the first step of a process then holds up to a third more than all later ones.
        moves_values: values of variables can lie outside of its memory for a while.
        scatter: share of a step's activations by which steps that repeat what a trial run did may
            hold more. On a GPU the variables lay beside their copies then (of 11 small steps up to
            1.8 % more, of those of 100 MiB and more none).
        scatter_seen: multiple of the bytes by which the steps of a trial run differed: so much more
            than the highest of them later ones may hold.
        is_host: it is the host's processor; all logical CPUs have one allocator.
        copies_early: XLA's scheduler makes transposed copies of a convolution's operands at the
            very start, unless they wait for the gradient.
        is_here: steps can run on it.
        has_exact_compiler: a compiled step holds what the compiler says in the allocator, too.
    """

    name: str
    order: Order = Order.AS_READY
    tries_kernels: bool = True
    moves_values: bool = False
    scatter: float = 0.02
    scatter_seen: float = 2.0
    is_host: bool = False
    copies_early: bool = False
    is_here: bool = True
    has_exact_compiler: bool = True

    @property
    def full_name(self) -> str:
        """Its model, and what else decides how fast kernels run on it."""
        return device_name(self.name)

    def compiled(self) -> Device:
        """The same for steps that XLA compiles."""
        return replace(self, order=Order.COMPILED)

    # Its memory.

    def held(self) -> int:
        """Bytes that its allocator holds now; 0 where it keeps no count."""
        return held_bytes(self.name) or 0

    def counted_by(self) -> str:
        """What counts its memory, in words; "" where nothing does."""
        if held_bytes(self.name) is None:
            return ""
        return os.environ.get("TF_GPU_ALLOCATOR") or "TensorFlow's BFC allocator"

    def size(self) -> int | None:
        """Bytes that it has in all, or was given; None where nothing tells."""
        if not self.name.startswith("GPU"):
            return None
        gpu = tf.config.get_visible_devices("GPU")[0]
        parts = tf.config.get_logical_device_configuration(gpu)
        if parts and parts[0].memory_limit is not None:
            return int(parts[0].memory_limit) << 20
        return _cuda_bytes(int(gpu.name.rpartition(":")[2]))

    def limit(self) -> int | None:
        """Bytes that its allocator may have in all, where it was given a limit; else None."""
        return None

    def wall(self) -> int | None:
        """Bytes of the region within which all must lie, gaps between buffers included.

        None where there is no such region.
        """
        return allocator_limit(self.name)

    def room(self) -> Room | None:
        """What it can hold, of this process; None where nothing tells."""
        limit = allocator_limit(self.name)
        if limit is None:
            return None
        return Room(limit, (f"{format_bytes(limit)} that TensorFlow may take of {self.name}",))

    def raises_when_full(self) -> bool:
        """Whether what takes too much ends in a ResourceExhaustedError."""
        return True

    def free(self) -> int | None:
        """Bytes that the system could still give it; None where nobody says it."""
        return None

    def left(self) -> int | None:
        """Bytes that a step may take before the system kills the process; None if it never does."""
        return None

    def reserve(self, size: int) -> None:
        """Let the allocator take `size` bytes as one piece, before it takes many small ones.

        Left alone it takes ever larger regions, and no buffer spans the border between two. A GPU's
        allocator takes all that there is anyway, unless it was told to grow.
        """
        if _grows_on_gpus():
            self.take_one_piece(size)

    def held_for_block(self, size: int) -> int:
        """Bytes that its allocator holds for a block for which no free piece is large enough.

        One that takes memory as it is needed takes more than is asked; that of a GPU usually has
        all its memory from the beginning.
        """
        return in_new_region(size) if _grows_on_gpus() else size

    def take_one_piece(self, size: int) -> None:
        """Allocate `size` bytes, or all that can be had as one piece, and give them back.

        What the allocator surely has not it is not asked for: it would wait for it ten seconds.
        """
        wall = self.wall()
        left = size if wall is None else wall - self.held()
        for asked in [size] if size <= left else islice(for_the_rest(left), _TRIES):
            with suppress(tf.errors.ResourceExhaustedError):
                tf.raw_ops.Empty(shape=[-(-asked // _PAGE), _PAGE], dtype=tf.uint8)
                return

    def constant(self, value: Any) -> Any:
        """A tensor of this value, in its memory, which its allocator counts."""
        with tf.device(self.name):
            return tf.constant(value)

    def layout(self, captured: Sequence[tuple[Any, Any]], size: int) -> MemoryLayout | None:
        """How its memory lies now; None where that can't be told (`layout.memory_layout`)."""
        return None

    # How steps run on it.

    def as_planned(self) -> AbstractContextManager[None]:
        """Functions that are called inside keep in its memory what the plan keeps there.

        Where its own estimate of a function exceeds a GPU's memory, Grappler lets tensors lie on
        the host meanwhile: time that no plan knows of, and the host's memory.
        """
        return grappler_with(memory_optimization="NO_MEM_OPT")

    def at_once(self) -> int:
        """Operations that run at once at most: a GPU's kernels run in one stream."""
        return 1

    def batches_held(self, already: int = 0, several_at_once: bool = False) -> int:
        """How many batches of inputs it holds while a step of `fit` runs.

        Args:
            already: so many of them are counted among what it holds.
            several_at_once: the train function runs several steps, and gets the next batch during
                one.
        """
        return 1 + several_at_once  # batches are made on the CPU

    def has_seen_enough(self, peaks: Sequence[int]) -> bool:
        """Whether unchanged steps with these peaks are enough to know what they hold."""
        return False

    def peak_of_unchanged(self, peaks: Sequence[int]) -> int:
        """What a share counts from, of the peaks of unchanged steps.

        A step now and then, or several in a row, hold a value more: a share is to mean the same in
        every process.
        """
        return min(peaks)


def _grows_on_gpus() -> bool:
    """Whether allocators of GPUs take memory as it is needed: the environment has the last word."""
    asked = os.environ.get(_GROWTH, "")
    if asked in ("true", "false"):
        return asked == "true"
    every = tf.config.list_physical_devices("GPU")
    return any(tf.config.experimental.get_memory_growth(each) for each in every)


def _cuda_bytes(number: int) -> int | None:
    """Of the GPU with this number by CUDA's count, as its driver says; None where there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, size = ctypes.c_int(), ctypes.c_size_t()
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(device), number)
        or driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    )
    return None if failed else size.value
