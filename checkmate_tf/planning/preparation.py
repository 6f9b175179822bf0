"""What is known of a step before it is planned: its graph, its notes, what the device holds."""

from __future__ import annotations

import gc
from dataclasses import replace

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.layout import MemoryLayout
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.graph.cost_models import known_workspaces, step_costs
from checkmate_tf.graph.extraction import Extraction, extract_program
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.settings import KERNEL_ROOM
from checkmate_tf.planning.variable_places import pack_variables
from checkmate_tf.trace.buffers import peak_of_run
from checkmate_tf.trace.descriptions import update_of
from checkmate_tf.trace.operations import describe
from checkmate_tf.trace.program import Program
from checkmate_tf.user_warnings import warn_user
from profiles.measure.workspaces import MeasuredWorkspaces, stored_workspaces
from solvers import ComputationGraph
from solvers.graph import input_order_peak

_LITTLE_BYTES, _LITTLE_SHARE = 1 << 20, 0.01
"""What is held beside the step's own may be garbage up to so many bytes and that share of these: a
search for it would take longer than they are worth."""

_MEASURED: dict[str, MeasuredWorkspaces] = {}
"""By device: workspaces that this process has measured."""


def prepared(
    program: Program, request: Request, workspaces: tuple[int, ...] | None
) -> tuple[Extraction, tuple[str, ...]]:
    """The step's graph and what the user should know of it; workspaces where they are known."""
    if _MEASURED:  # there were earlier plans
        _collect()
    device = current_device()
    if device.tries_kernels and device.name not in _MEASURED:
        # Once, and before anything is measured: what a GPU's allocator has taken, others lack.
        device.reserve(_within_budget(program, request))
    # What it leaves in memory, little as it is, would lie amid the one piece for the step.
    costs = step_costs(request.costs, program)
    if not device.tries_kernels:
        device.reserve(_needed(program))
    pack_variables(program.concrete)
    held = held_bytes() or 0
    # After the costs: measuring those tells workspaces as well.
    extracted = extract_program(program, costs.model, device_workspaces(device.name), workspaces)
    if (held_bytes() or 0) > held:
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


def prepared_elsewhere(program: Program, request: Request) -> tuple[Extraction, tuple[str, ...]]:
    """As `prepared`, for a device that is not here: nothing is measured."""
    costs = step_costs(request.costs, program)
    extracted = extract_program(program, costs.model, known_workspaces(request.costs))
    return extracted, costs.notes


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


def resident_bytes(graph: ComputationGraph, coming: int = 0) -> int:
    """Bytes that the device holds before a step; `coming` of them, it does not hold yet."""
    more = (held_bytes() or 0) + coming - graph.fixed_bytes
    if more > min(_LITTLE_BYTES, _LITTLE_SHARE * graph.fixed_bytes):
        _collect()
    return max(graph.fixed_bytes, (held_bytes() or 0) + coming)


def layout_for(extracted: Extraction, arriving: int) -> MemoryLayout | None:
    """How the device's memory lies before the step; `arriving` bytes will come before it.

    At an allocator's limit nothing is told: there, plans are chosen by how their gaps fit.
    """
    device = current_device()
    if device.limit() is not None:
        return None
    program = extracted.program
    # Once more, after what was measured meanwhile: a trial run lays its copies down like that.
    pack_variables(program.concrete)
    # Twice as much was reserved (`prepared`), so that there is one piece for the step.
    largest_gap = (input_order_peak(extracted.graph) - extracted.graph.fixed_bytes) // 2
    layout = device.layout(program.captured, largest_gap)
    if layout is None:
        return None
    coming = sorted(program.constant_sizes, reverse=True)
    sizes = program.argument_sizes
    times = arriving // max(1, sum(sizes))
    coming += sizes * times if times * sum(sizes) == arriving else [arriving]
    return replace(layout, arriving=tuple(coming))


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
