"""The search for a plan on devices that are there on paper alone: nothing is traced, nothing runs.

What a schedule holds on them is what the simulator says, times what their allocator wastes. So it
is known what a plan takes, and how lean one can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from checkmate_tf.devices.device import Device
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.plan_search import PlanSearch
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.too_small import TooSmallError
from checkmate_tf.planning.trial.trial_run import TrialRun
from checkmate_tf.program.forecast import Forecast
from solvers import ComputationGraph, Schedule, simulate
from solvers.graph import input_order_peak
from solvers.graph.layer_graphs import unit_chain
from tests.messages import raises

MIB = 1 << 20
PROGRAM = SimpleNamespace(operations=(), argument_bytes=0, constant_bytes=0)


@dataclass(frozen=True)
class FakeDevice(Device):
    """Its allocator takes `waste` bytes for each live byte; forecasts say `expected`.

    Every other step holds `differ` bytes more.
    """

    waste: float = 1.0
    expected: float = 1.0
    differ: int = 0
    tried: list[Schedule] = field(default_factory=list)

    def limit(self) -> None:
        """None: it has as much as anybody asks for."""

    def held(self, graph: ComputationGraph, schedule: Schedule) -> int:  # type: ignore[override]
        """Bytes at the peak of a step."""
        return int(self.waste * simulate(graph, schedule).peak)


class OnPaper(Question):
    """A question about a graph, on a fake device."""

    def forecast(self, schedule: Schedule) -> Forecast:
        device = cast(FakeDevice, self.device)
        peak = int(device.expected * simulate(self.extracted.graph, schedule).peak)
        return Forecast((peak, peak))


def asked(graph: ComputationGraph, share: float, device: FakeDevice) -> OnPaper:
    """For a plan within a share of what the unchanged step holds on the device."""
    extracted: Any = SimpleNamespace(graph=graph, program=PROGRAM, nodes=(), unknown=())
    unchanged = int(device.waste * input_order_peak(graph))
    budget = int(share * unchanged)
    return OnPaper(cast(Extraction, extracted), 0, budget, 0, unchanged, (), device=device)


def found(question: OnPaper) -> Outcome:
    device, graph = cast(FakeDevice, question.device), question.extracted.graph

    def run(schedule: Schedule, says_enough: object) -> TrialRun:
        device.tried.append(schedule)
        held = device.held(graph, schedule)
        return TrialRun((held, held + device.differ) * 2, None, scatter=device.differ)

    return PlanSearch(question, "linearized_greedy", "fixed", 20.0, run).run()


def chain() -> ComputationGraph:
    """Of 24 layers, a MiB each."""
    return ComputationGraph(tuple(replace(node, memory=MIB) for node in unit_chain(24).nodes))


@pytest.mark.parametrize("waste", [1.0, 1.3])
@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
def test_a_plan_keeps_its_budget_where_forecasts_hold(share: float, waste: float) -> None:
    device = FakeDevice("GPU:0", waste=waste, expected=waste)
    question = asked(chain(), share, device)
    plan = found(question).plan
    held = device.held(question.extracted.graph, plan.schedule)
    assert plan.measured_peak == held <= question.budget
    assert plan.overhead > 0


@pytest.mark.parametrize("expected", [0.8, 1.25])
def test_a_trial_run_corrects_forecasts_that_are_off(expected: float) -> None:
    device = FakeDevice("GPU:0", expected=expected)
    question = asked(chain(), 0.5, device)
    outcome = found(question)
    held = device.held(question.extracted.graph, outcome.plan.schedule)
    assert outcome.keeps
    assert outcome.plan.measured_peak == held <= question.budget
    assert _is_tried(outcome, device.tried)


def test_what_fits_unchanged_recomputes_nothing() -> None:
    device = FakeDevice("GPU:0")
    outcome = found(asked(chain(), 1.05, device))
    assert outcome.plan.overhead == 0
    assert len(device.tried) == 1


def test_a_budget_that_no_schedule_keeps_is_an_error_that_names_one_that_does() -> None:
    device = FakeDevice("GPU:0", waste=1.3, expected=1.3)
    with raises(TooSmallError, "budget-too-small") as caught:
        found(asked(chain(), 0.05, device))
    least = caught.value.least
    again = asked(chain(), 1.0, device)
    outcome = found(OnPaper(again.extracted, 0, least, 0, again.baseline_peak, (), device=device))
    assert device.held(again.extracted.graph, outcome.plan.schedule) <= least


def _is_tried(outcome: Outcome, tried: Sequence[Schedule]) -> bool:
    return outcome.plan.schedule in tried


@pytest.mark.parametrize("times", [0.75, 2.0])
@pytest.mark.parametrize("share", [0.5, 0.55, 0.6, 0.65, 0.7])
def test_room_is_left_where_the_steps_of_a_trial_run_differ(share: float, times: float) -> None:
    """As a multiple of that, which the device says."""
    device = FakeDevice("GPU:0", differ=MIB, scatter_seen=times)
    question = asked(chain(), share, device)
    plan = found(question).plan
    assert plan.measured_peak is not None
    assert plan.measured_peak + times * device.differ <= question.budget
