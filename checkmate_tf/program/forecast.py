"""What the device's allocator will hold while a schedule runs, step after step.

The memory model of the solvers counts live bytes; an allocator holds more. Its rules are known, so
a few dozen steps are simulated. How much more it holds follows from how its free pieces lie: where
that is known, steps that run in one order are forecast to a hundredth. Where operations run side by
side, orders are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random
from statistics import mean, median, stdev

from checkmate_tf.devices.allocator import BestFitAllocator, NoPieceError
from checkmate_tf.devices.layout import MemoryLayout
from checkmate_tf.program.instructions import Instructions
from checkmate_tf.program.interleaving import Event, Interleaving
from checkmate_tf.trace.program import Program
from checkmate_tf.trace.sizes import variable_bytes

_STEPS = 32

_STEPS_SIDE_BY_SIDE = 6
"""Of instructions that run side by side: no step repeats another, and each takes longer."""

_NEAR = 0.5
"""Share of an allocator's limit: steps that hold less leave a piece that is large enough."""

_BEGINNINGS = 8
"""Memories in which steps begin that come near the allocator's limit. How pieces lie is chance, and
of large ones few fit: of a ResNet50 whose largest buffers take a tenth of the limit a plan at 0.81
of it finds no piece in 9 of 24 such memories, and one at 0.73 of it in 1."""

_GAPS, _GAP = 8, 0.02
"""Free pieces that then lie before, among and behind the variables, and the share of the limit that
each of them may take."""

_DEVIATIONS = 3.0
"""Standard deviations above the mean that a step's peak rarely exceeds."""

_HIGHEST_OF_TEN = 1.54
"""The same for the highest of ten normally distributed ones, on average."""


@dataclass(frozen=True)
class Forecast:
    """What a few dozen steps hold.

    Attributes:
        peaks: bytes held at most in each of them, in order.
        exhausts: at the allocator's limit one of them finds no piece that is large enough.
    """

    peaks: tuple[int, ...]
    exhausts: bool = False

    @property
    def typical(self) -> int:
        """The median of the steps' peaks."""
        return int(median(self.peaks))

    @property
    def highest_of_ten(self) -> int:
        """The highest peak to expect in ten steps."""
        return int(mean(self.peaks) + _HIGHEST_OF_TEN * stdev(self.peaks))

    @property
    def worst(self) -> int:
        """As much as a step rarely exceeds."""
        return max(*self.peaks, int(mean(self.peaks) + _DEVIATIONS * stdev(self.peaks)))


def forecast(
    program: Program,
    instructions: Instructions,
    held: int = 0,
    limit: int | None = None,
    layouts: Sequence[MemoryLayout] = (),
    at_once: int = 1,
    newest_first: bool = False,
) -> Forecast:
    """Simulate the allocator for a few dozen steps.

    Args:
        program: the step.
        instructions: of it, in the order in which they run.
        held: bytes that the device holds before the step; what is more than the step's own
            variables and inputs stays beside it all the time.
        limit: bytes that the allocator has in all, gaps between buffers included.
        layouts: of the memory in which the steps may run, each of which gets such steps; else
            variables lie in one block, and nothing beside them.
        at_once: instructions that run at once at most.
        newest_first: as for `Interleaving`.
    """
    runs = _Runs(instructions, at_once, newest_first)
    simulations = [_laid_out(program, layout) for layout in layouts]
    peaks: list[int] = []
    beside = 0
    for simulation in simulations or [_in_one_block(program, BestFitAllocator())]:
        beside = max(0, held - simulation.allocator.held)
        peaks += [peak + beside for peak in simulation.steps(runs)]
    is_near = limit is not None and max(peaks) > _NEAR * limit
    exhausts = limit is not None and is_near and _exhausts(program, runs, limit - beside)
    return Forecast(tuple(peaks), exhausts)


def _exhausts(program: Program, runs: _Runs, limit: int) -> bool:
    """Whether a step finds no piece, in one of some memories that begin differently."""
    try:
        for number in range(_BEGINNINGS):
            for _ in _in_one_block(program, BestFitAllocator(limit), Random(number)).steps(runs):
                pass
    except NoPieceError:
        return True
    return False


def _in_one_block(
    program: Program, allocator: BestFitAllocator, chance: Random | None = None
) -> _Simulation:
    """The step's variables in an `allocator`, and behind them its inputs.

    With `chance`, there are gaps before, among and behind the variables.
    """
    captured = program.captured
    sizes = {id(handle): variable_bytes(inner) for inner, handle in captured}
    inputs = max(1, program.fixed_bytes - sum(sizes.values()))
    gaps = _gaps(chance, allocator.free_pieces[-1][0], len(sizes)) if chance else {}
    free: list[int] = []
    address: dict[int, int] = {}
    for number, (handle, size) in enumerate(sizes.items()):
        free += map(allocator.allocate, gaps.get(number, ()))
        if size:
            address[handle] = allocator.allocate(size)
    free += map(allocator.allocate, gaps.get(len(sizes), ()))
    allocator.allocate(inputs)
    for each in free:
        allocator.release(each)
    return _Simulation(program, allocator, address)


def _gaps(chance: Random, limit: int, variables: int) -> dict[int, list[int]]:
    """Bytes of gaps by what they lie before: the number of a variable, or of what follows all."""
    gaps: dict[int, list[int]] = {}
    for _ in range(_GAPS):
        size = int(chance.random() ** 2 * _GAP * limit)  # most are small
        gaps.setdefault(chance.randint(0, variables), []).append(max(1, size))
    return gaps


def _laid_out(program: Program, layout: MemoryLayout) -> _Simulation:
    """The step's variables where they lie, and what comes before it."""
    variables = layout.variables
    allocator = BestFitAllocator.laid_out(layout.free, variables.values(), layout.endless)
    for size in layout.arriving:
        allocator.allocate(size)
    address = {handle: place for handle, (place, _) in variables.items()}
    return _Simulation(program, allocator, address)


class _Runs:
    """Steps by the same instructions, each with an order of events of its own."""

    def __init__(self, instructions: Instructions, at_once: int, newest_first: bool) -> None:
        self.instructions = instructions
        self.steps = _STEPS if at_once == 1 else _STEPS_SIDE_BY_SIDE
        self.repeat = at_once == 1
        self.used = [{*each.uses, *(made for made, _ in each.writes)} for each in instructions]
        self.used[-1].update(instructions[-1].frees)  # until the caller frees them
        self.users = Counter(buffer for each in self.used for buffer in each)
        self._interleaving = Interleaving(instructions, at_once, newest_first)

    def events(self, step: int) -> Iterator[Event]:
        """What starts and ends in a step; the same in every forecast."""
        return self._interleaving.events(Random(step))


class _Simulation:
    """An allocator with a step's variables in it."""

    def __init__(
        self, program: Program, allocator: BestFitAllocator, address: dict[int, int]
    ) -> None:
        """The variables lie in `allocator`, at the `address` of each, by the id of its handle."""
        self.allocator = allocator
        self.address = address
        self.handle = {inner.name: id(handle) for inner, handle in program.captured}

    def steps(self, runs: _Runs) -> Iterator[int]:
        """The peaks of some steps, one after the other.

        Where a step begins with the memory that an earlier one began with, all that follows repeats
        what followed then, if the order of events does.
        """
        returned: list[int] = []
        peaks: list[int] = []
        begun: dict[Hashable, int] = {}  # what a step began with, and its number
        while len(peaks) < runs.steps:
            memory = self.allocator.free_pieces, tuple(self.address.items()), tuple(returned)
            if runs.repeat and memory in begun:
                period = peaks[begun[memory] :]
                yield from islice(cycle(period), runs.steps - len(peaks))
                return
            begun[memory] = len(peaks)
            self.allocator.reset_peak()
            results = self._step(runs, len(peaks))
            for address in returned:  # the caller drops the results of the step before
                self.allocator.release(address)
            returned = results
            peaks.append(self.allocator.peak)
            yield peaks[-1]

    def _step(self, runs: _Runs, number: int) -> list[int]:
        allocator = self.allocator
        address: dict[int, int] = {}  # by buffer
        left = runs.users.copy()
        passing: dict[int, list[int]] = {}  # by instruction, addresses of what it frees at its end
        returned = runs.instructions[-1].frees
        for place, starts in runs.events(number):
            each = runs.instructions[place]
            if starts:
                passing[place] = [allocator.allocate(size) for size in each.copies]
                for buffer, size in each.writes:
                    address[buffer] = allocator.allocate(size)
                if each.workspace:
                    passing[place].insert(0, allocator.allocate(each.workspace))
                continue
            for one in passing.pop(place):
                allocator.release(one)
            if each.assigns is not None:
                variable, buffer = each.assigns
                handle = self.handle.get(variable)
                if handle in self.address:
                    allocator.release(self.address[handle])
                    self.address[handle] = address.pop(buffer)
                else:
                    allocator.release(address.pop(buffer))
            for buffer in runs.used[place]:
                left[buffer] -= 1
                if not left[buffer] and buffer in address:
                    allocator.release(address.pop(buffer))
        return [address[buffer] for buffer in returned]
