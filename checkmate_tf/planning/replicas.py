"""Plan the step of several replicas: what each computes by itself, within a budget for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.distribution.emission import ReplicatedStep
from checkmate_tf.distribution.parts import part_of
from checkmate_tf.distribution.shared_plan import agree, this_worker
from checkmate_tf.distribution.split import Split, split
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.planning.trial.trial_run import (
    SaysEnough,
    TrialRun,
    TrialRunError,
    TrialRunner,
    can_try,
    peaks_on_trial,
)
from checkmate_tf.plans.plan import Plan
from checkmate_tf.program.rewrite import function_of
from checkmate_tf.trace.buffers import peak_of_run
from checkmate_tf.trace.program import Program
from checkmate_tf.user_warnings import warn_user
from solvers import ComputationGraph, Node, Schedule, format_bytes


@dataclass(frozen=True)
class Replica:
    """What one replica computes by itself.

    Attributes:
        extracted: it, extracted.
        notes: what the user should know about costs and sizes.
        held: bytes that its device holds now; None where it keeps no count.
        exchange_peak: bytes held at most in the exchange with the others, and the update.
        run_for_trial: runs this part of all replicas by a schedule; None where they differ.
    """

    extracted: Extraction
    notes: tuple[str, ...]
    held: int | None
    exchange_peak: int
    run_for_trial: TrialRunner | None


def plan_replicas(
    program: Program,
    extract: Callable[[Program], tuple[Extraction, tuple[str, ...]]],
    plan_one: Callable[[Replica], Plan],
    worth_it: Callable[[ComputationGraph], bool],
    patience: float,
) -> tuple[ReplicatedStep, Plan] | None:
    """The step with a schedule for every replica, and the plan of the first one.

    Replicas that compute the same have one plan. On several machines the first worker makes it.

    Args:
        program: of the whole step.
        extract: makes a graph of a part of it, with notes.
        plan_one: plans a replica.
        worth_it: whether anything in a graph can be recomputed; None is returned if not.
        patience: seconds that a worker waits for the plan of the first one.
    """
    parts = split(program)
    found = [
        extract(part_of(program, alone, together, parts.kept))
        for alone, together in zip(parts.alone, parts.together_on, strict=True)
    ]
    extracted = tuple(each for each, _ in found)
    if not any(worth_it(each.graph) for each in extracted):
        return None
    kinds: dict[tuple[Node, ...], list[int]] = {}
    for number, each in enumerate(extracted):
        kinds.setdefault(_kind(each.graph), []).append(number)
    together = _Together(program, parts, extracted)
    held = together.held()
    trial = together.run_for_trial if len(kinds) == 1 and held is not None else None
    worker = this_worker(parts.devices[0])
    plans: dict[int, Plan] = {}
    for alike in kinds.values():
        peak = max(map(together.exchange_peak, alike))
        # One that is given a little more than the others, as a number of the optimizer's.
        most = max(alike, key=lambda number: extracted[number].graph.fixed_bytes)
        replica = Replica(*found[most], held, peak, trial)
        make = partial(_with_exchange, plan_one, replica)
        if worker is None:
            plan = make()
        else:
            graph = extracted[most].graph
            data = agree(worker, graph, partial(_data_of, make), patience)
            plan = Plan.from_json(data, graph)
        plans.update(dict.fromkeys(alike, plan))
    schedules = tuple(plans[number].schedule for number in range(len(extracted)))
    return ReplicatedStep(program, parts, extracted, schedules), plans[0]


class _Together:
    """The replicas of one step on the devices of this process."""

    def __init__(self, program: Program, parts: Split, extracted: tuple[Extraction, ...]) -> None:
        self._program = program
        self._split = parts
        self._extracted = extracted
        self._sharing = len(extracted) if current_device().is_host else 1

    def held(self) -> int | None:
        """Bytes that the device holds now, for each replica; None where it keeps no count."""
        held = held_bytes()
        return None if held is None else held // self._sharing

    def exchange_peak(self, number: int) -> int:
        """Bytes that a replica holds at most in the exchange and the update that follows it."""
        program, own = self._program, set(self._split.alone[number])
        together = self._split.together_on[number]
        read = {tensor.producer for each in together for tensor in program.reads[each]} & own
        peak = peak_of_run(program, [*sorted(read), *together], program.outputs, lambda _: 0)
        return self._extracted[number].program.fixed_bytes + peak

    def run_for_trial(self, schedule: Schedule, says_enough: SaysEnough) -> TrialRun | None:
        """Run for trial what all replicas compute by themselves, all of them by `schedule`.

        Peaks are for each replica: where one allocator serves all of them, the mean.

        Raises:
            TrialRunError: they can't run without a trace outside copies of their variables.
        """
        schedules = (schedule,) * len(self._extracted)
        step = ReplicatedStep(self._program, self._split, self._extracted, schedules)
        function = function_of(self._program.concrete, step.emit_alone)
        if not can_try(function):
            raise TrialRunError("what a replica does can't be done on copies of its variables")
        fixed_bytes = self._sharing * self._extracted[0].program.fixed_bytes
        peaks = peaks_on_trial(function, self._program, fixed_bytes, says_enough)
        if peaks is None:
            return None
        return TrialRun(tuple(peak // self._sharing for peak in peaks), None)


def _kind(graph: ComputationGraph) -> tuple[Node, ...]:
    """Equal for replicas that compute the same."""
    return tuple(replace(node, name="") for node in graph.nodes)


def _with_exchange(plan_one: Callable[[Replica], Plan], replica: Replica) -> Plan:
    """The plan, with the bytes that the exchange and the update take, which no plan can change."""
    plan, peak = plan_one(replica), replica.exchange_peak
    plan = replace(plan, predicted_peak=max(plan.predicted_peak, peak))
    if peak <= plan.budget:
        return plan
    note = (
        f"the exchange of gradients and the update may need "
        f"{format_bytes(peak, plan.budget)} on a replica, "
        f"more than the budget of {format_bytes(plan.budget, peak)}; no plan can change that"
    )
    warn_user("exchange-over-budget", note)
    return replace(plan, notes=(*plan.notes, note))


def _data_of(make: Callable[[], Plan]) -> dict[str, Any]:
    """The plan that `make` makes, without its graph, for JSON."""
    return make().to_json(with_graph=False)
