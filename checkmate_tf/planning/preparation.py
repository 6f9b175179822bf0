"""What is known of a step before it is planned: its graph, its notes, what the device holds."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from checkmate_tf.devices.device import Device, Order
from checkmate_tf.devices.layout import MemoryLayout
from checkmate_tf.graph.cost_models import known_workspaces, step_costs
from checkmate_tf.graph.extraction import Extraction, extract_program
from checkmate_tf.interrupts import Interrupts, noted_interrupts
from checkmate_tf.phases import phase
from checkmate_tf.planning.apart import apart
from checkmate_tf.planning.baseline import Baseline
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.settings import KERNEL_ROOM
from checkmate_tf.planning.step_times import StepTimes
from checkmate_tf.planning.trial.trial_run import (
    TrialRunner,
    can_run_for_trial,
    run_for_trial,
)
from checkmate_tf.planning.variable_places import pack_variables, variables_movable
from checkmate_tf.trace.buffers import peak_of_run
from checkmate_tf.trace.descriptions import update_of
from checkmate_tf.trace.operations import describe
from checkmate_tf.trace.program import Program, resolve
from checkmate_tf.trace.sizes import ArgumentSizes
from checkmate_tf.user_warnings import warn_user
from profiles.measure.workspaces import MeasuredWorkspaces, stored_workspaces
from solvers import ComputationGraph
from solvers.graph import input_order_peak

_LITTLE_BYTES, _LITTLE_SHARE = 1 << 20, 0.01
"""What is held beside the step's own may be garbage up to so many bytes and that share of these: a
search for it would take longer than they are worth."""

_MEASURED: dict[str, MeasuredWorkspaces] = {}
"""By device: workspaces that this process has measured."""


@contextmanager
def planning_of(concrete: Any | None) -> Iterator[Interrupts]:
    """Plan apart from what the user has under way; Ctrl-C is noted, and passed on when asked.

    The variables of `concrete` may be moved meanwhile; with None training is under way, or nothing
    runs here, so that none may.
    """
    with apart(), variables_movable(concrete), noted_interrupts() as interrupts:
        yield interrupts


@dataclass(frozen=True)
class PreparedStep:
    """A step on a device, before its budget is in bytes.

    Attributes:
        extracted: its graph, and what that is made of.
        device: that it is planned for.
        notes: what the user should know of costs and sizes.
        arriving: bytes of its arguments that are not on the device yet.
        resident: bytes that the device holds before it, those included.
    """

    extracted: Extraction
    device: Device
    notes: tuple[str, ...]
    arriving: int
    resident: int

    @property
    def graph(self) -> ComputationGraph:
        """For the solvers."""
        return self.extracted.graph

    @property
    def program(self) -> Program:
        """The resolved step."""
        return self.extracted.program

    @cached_property
    def structure(self) -> ComputationGraph:
        """Equal for steps that need the same memory."""
        return structure_of(self.graph)

    @property
    def has_gain(self) -> bool:
        """Whether anything in it is worth recomputing."""
        return anything_to_gain(self.graph)

    @property
    def exchange_peak(self) -> int:
        """Bytes that are needed in any case."""
        return 0

    def runner(self) -> TrialRunner | None:
        """What runs it for trial by a schedule; None where that is not possible."""
        if not self.device.is_here or not can_run_for_trial(self.extracted):
            return None
        return partial(run_for_trial, self.extracted, arriving=self.arriving)

    def times(self, baseline: Baseline, ran_here: bool) -> StepTimes:
        """What tells plans the seconds of their steps and of plain ones."""
        return StepTimes(baseline, ran_here, self.program)

    def layout(self) -> MemoryLayout | None:
        """How the device's memory lies before it, and what will come before it.

        At an allocator's limit nothing is told: there, plans are chosen by how their gaps fit.
        """
        if not self.device.is_here or self.device.limit() is not None:
            return None
        program = self.program
        # Once more, after what was measured meanwhile: a trial run lays its copies down like that.
        pack_variables(program.concrete)
        # Twice as much was reserved (`begun`), so that there is one piece for the step.
        largest_gap = (input_order_peak(self.graph) - self.graph.fixed_bytes) // 2
        layout = self.device.layout(program.captured, largest_gap)
        if layout is None:
            return None
        coming = sorted(program.constant_sizes, reverse=True)
        sizes = program.argument_sizes
        times = self.arriving // max(1, sum(sizes))
        is_whole = times * sum(sizes) == self.arriving
        coming += sizes * times if is_whole else [self.arriving]
        return replace(layout, arriving=tuple(coming))

    def question(self, request: Request, baseline: Baseline, counted_from: int) -> Question:
        """The question for the budget that was asked for; a share counts from so many bytes."""
        resident, budget = baseline.resident, request.budget
        before = resident - self.program.constant_bytes  # a step makes those, too
        return Question(
            extracted=self.extracted,
            resident=resident,
            budget=resident if budget.least else budget.in_bytes(before, counted_from),
            margin=0,
            baseline_peak=baseline.forecast,
            notes=(*self.notes, baseline.note) if baseline.note else self.notes,
            measured_baseline_peak=baseline.measured,
            device=self.device,
            budget_from=request.budget_from,
        )


def resolved(concrete: Any, sizes: ArgumentSizes | None) -> Program:
    """As `resolve`, which counts as a part of the extraction."""
    with phase("extract"):
        return resolve(concrete, sizes)


def begun(
    program: Program,
    request: Request,
    device: Device,
    arriving: int,
    workspaces: Sequence[int] | None = None,
    has_run: bool = False,
) -> PreparedStep:
    """The step, extracted, and what the device holds before it.

    Args:
        program: the resolved step.
        request: what the user asked for.
        device: that it is planned for.
        arriving: bytes of its arguments that are not on the device yet.
        workspaces: of each operation, in bytes, where they are known.
        has_run: the constants that TensorFlow makes in its first run are held already.

    Raises:
        CheckmateError: there is no such cost model.
    """
    with phase("extract"):
        extracted, notes = prepared(program, request, device, workspaces)
    # XLA makes constants a part of what it compiles.
    makes_constants = not has_run and device.order is not Order.COMPILED
    coming = arriving + program.constant_bytes if makes_constants else arriving
    resident = resident_bytes(extracted.graph, device, coming)
    return PreparedStep(extracted, device, notes, arriving, resident)


def prepared(
    program: Program, request: Request, device: Device, workspaces: Sequence[int] | None = None
) -> tuple[Extraction, tuple[str, ...]]:
    """The step's graph and what the user should know of it; workspaces where they are known."""
    if not device.is_here or device.order is Order.COMPILED:  # nothing runs before training
        costs, known = step_costs(request.costs, program), known_workspaces(request.costs)
        return extract_program(program, costs.model, known, workspaces), costs.notes
    if _MEASURED:  # there were earlier plans
        _collect()
    if device.tries_kernels and device.name not in _MEASURED:
        # Once, and before anything is measured: what a GPU's allocator has taken, others lack.
        device.reserve(_within_budget(program, request))
    # What it leaves in memory, little as it is, would lie amid the one piece for the step.
    costs = step_costs(request.costs, program)
    if not device.tries_kernels:
        device.reserve(_needed(program))
    pack_variables(program.concrete)
    held = device.held()
    # After the costs: measuring those tells workspaces as well.
    measured = device_workspaces(device.name)
    extracted = extract_program(program, costs.model, measured, workspaces)
    if device.held() > held:
        # Inputs of kernels that were measured, in reference cycles: no part of what is resident.
        gc.collect()
    return extracted, (*costs.notes, *_notes(extracted))


def _needed(program: Program) -> int:
    """Bytes that the unchanged step takes if nothing is wasted, and its kernels."""
    everything = range(len(program.operations))
    live = peak_of_run(program, everything, program.outputs, lambda operation: 0)
    return program.fixed_bytes + live + KERNEL_ROOM


def _within_budget(program: Program, request: Request) -> int:
    """As `_needed`, but no more than the budget where that is no share: then no such step runs."""
    budget = request.budget
    return (
        _needed(program) if budget.share is not None else min(_needed(program), budget.bytes or 0)
    )


def device_workspaces(device: str) -> MeasuredWorkspaces:
    """What is known of the device's workspaces; what this process has measured stays as it is.

    Measured again it might differ a little, and a step that is traced again would look like
    another.
    """
    measured = _MEASURED.setdefault(device, MeasuredWorkspaces(device))
    for operation, size in stored_workspaces(device).items():
        measured.known.setdefault(operation, size)
    return measured


def structure_of(graph: ComputationGraph) -> ComputationGraph:
    """The graph without the names, which differ from trace to trace."""
    nodes = tuple(replace(node, name="") for node in graph.nodes)
    return replace(graph, nodes=nodes, name="")


def resident_bytes(graph: ComputationGraph, device: Device, coming: int = 0) -> int:
    """Bytes that the device holds before a step; `coming` of them, it does not hold yet."""
    if not device.is_here:
        return graph.fixed_bytes
    more = device.held() + coming - graph.fixed_bytes
    if more > min(_LITTLE_BYTES, _LITTLE_SHARE * graph.fixed_bytes):
        _collect()
    return max(graph.fixed_bytes, device.held() + coming)


def _collect() -> None:
    """Free what lies in reference cycles.

    Functions that earlier plans have tried do, and hold constants that TensorFlow has folded: no
    part of what the step will find held. It takes a third of a second, so only where it matters.
    """
    gc.collect()


def anything_to_gain(graph: ComputationGraph) -> bool:
    """Whether a value that could be recomputed is held while other nodes run."""
    return any(
        node.recomputable and node.memory and graph.users[i] and graph.users[i][-1] > i + 1
        for i, node in enumerate(graph.nodes)
    )


def _notes(extracted: Extraction) -> tuple[str, ...]:
    """What is said of operations whose memory can't be told, here and as a warning.

    Of an optimizer's there is none: no plan changes what they hold, as a sparse gradient's rows.
    """
    unknown = extracted.unknown
    if not unknown:
        return ()
    count = "1 operation" if len(unknown) == 1 else f"{len(unknown)} operations"
    note = (
        f"the memory of {count} depends on data and can't be told, {describe(unknown[0])} for "
        "one: the plan may need more than the budget"
    )
    if not {each.name for each in unknown} <= update_of(extracted.program):
        warn_user("memory-depends-on-data", note)
    return (note,)
