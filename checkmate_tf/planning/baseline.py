"""What unchanged steps need, from which a share of memory counts: measured where they can run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import Protocol

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.device import Device
from checkmate_tf.devices.measure import counts_small_buffers
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.phases import phase
from checkmate_tf.planning.settings import HOPELESS, ROOM_FOR_UNCHANGED
from checkmate_tf.planning.trial.trial_run import TrialRunError, run_unchanged, why_no_trial
from checkmate_tf.program.unchanged import forecast_unchanged
from solvers import ComputationGraph, format_bytes


@dataclass(frozen=True)
class Baseline:
    """Peak and time of one unchanged step.

    Attributes:
        resident: bytes that the device held before it.
        forecast: bytes that it was expected to hold at most, all in all.
        measured: bytes that it held at most; None where it has not run.
        note: why not, for the user; empty where that need not be said.
        may_pass: it may run at another time.
        seconds: of one step after the first one, the median; None where it has not run.
    """

    resident: int
    forecast: int
    measured: int | None = None
    note: str = ""
    may_pass: bool = False
    seconds: float | None = None

    @property
    def peak(self) -> int:
        """What a share counts from, in bytes."""
        return self.forecast if self.measured is None else self.measured

    @property
    def was_tried(self) -> bool:
        """Whether it has run for trial, or could not."""
        return self.measured is not None or bool(self.note)

    @property
    def expected_addition(self) -> int:
        """Bytes that the step was expected to add to what is held; they tell sizes apart."""
        return self.forecast - self.resident


class Step(Protocol):
    """What is known of a step before its budget (`preparation.PreparedStep`)."""

    @property
    def extracted(self) -> Extraction:
        """Its graph, and what that is made of."""

    @property
    def device(self) -> Device:
        """That it is planned for."""

    @property
    def structure(self) -> ComputationGraph:
        """Equal for steps that need the same memory."""

    @property
    def resident(self) -> int:
        """Bytes that the device holds before it."""


class Baselines:
    """Those of all signatures of one decorated step.

    A share counts from the largest signature so far, which runs once for trial. A smaller batch
    is not planned as if the memory of the larger one were not there.
    """

    def __init__(self) -> None:
        """Of no signature yet."""
        self._tried: dict[ComputationGraph, Baseline] = {}
        self._ran_here: set[ComputationGraph] = set()
        self._expected: dict[ComputationGraph, int] = {}
        self._largest: Baseline | None = None

    def of(self, step: Step, run: bool) -> Baseline:
        """The unchanged step's; with `run` it may run for trial."""
        extracted, structure, resident = step.extracted, step.structure, step.resident
        if structure in self._expected:
            expected = resident + self._expected[structure]
        else:
            foretold = forecast_unchanged(extracted, step.device, resident)
            expected = foretold.highest_of_ten
        baseline = Baseline(resident, expected)
        if structure not in self._tried:
            if not run or self.is_no_larger(baseline):
                return baseline
            self._tried[structure] = _tried(extracted, baseline)
            self._ran_here.add(structure)
        tried = self._tried[structure]
        measured = None if tried.measured is None else tried.measured - tried.resident + resident
        return replace(tried, resident=resident, forecast=expected, measured=measured)

    def know(self, structure: ComputationGraph, known: Baseline, ran: bool) -> None:
        """What an earlier process found out about the unchanged step: it need not run again.

        Args:
            structure: of the step.
            known: as `of` returned it then.
            ran: it ran then, or could not.
        """
        self._expected.setdefault(structure, known.expected_addition)
        if ran:
            self._tried.setdefault(structure, known)

    def ran_here(self, step: Step) -> bool:
        """Whether this process has run the step for trial, or could not."""
        return step.structure in self._ran_here

    def is_no_larger(self, baseline: Baseline) -> bool:
        """Whether a signature that needs as much has been planned before."""
        largest = self._largest
        return largest is not None and baseline.expected_addition <= largest.expected_addition

    def counted_from(self, baseline: Baseline) -> int:
        """Bytes from which a share counts for this step."""
        largest = self._largest or baseline
        return max(baseline.peak, baseline.resident + largest.peak - largest.resident)

    def note(self, baseline: Baseline) -> None:
        """A plan has been made for this step."""
        if not self.is_no_larger(baseline):
            self._largest = baseline


def _tried(extracted: Extraction, expected: Baseline) -> Baseline:
    """The unchanged step's after it ran for trial, or with the reason why it has not."""
    try:
        if why := why_no_trial(extracted):
            raise TrialRunError(why)
        _refuse_beyond(_room_for(expected))
        _refuse_hopeless(expected.forecast)
        with phase("trials"):
            run = run_unchanged(extracted)
        added = current_device().peak_of_unchanged(run.added)
        if added < expected.expected_addition and not counts_small_buffers():
            raise TrialRunError(
                "this CPU's allocator counts no buffers below 256 KiB; "
                "TF_CPU_ALLOCATOR_USE_BFC=true, set before TensorFlow is imported, counts all"
            )
        seconds = median(run.seconds[1:] or run.seconds)
        return replace(expected, measured=expected.resident + added, seconds=seconds)
    except TrialRunError as error:
        note = f"the unchanged step's peak is a forecast, for {error}"
        return replace(expected, note=note, may_pass=error.may_pass)


def has_room(known: Baseline) -> bool:
    """Whether the unchanged step may run now."""
    left = current_device().left()
    return left is None or _room_for(known) <= left


def _room_for(expected: Baseline) -> float:
    return ROOM_FOR_UNCHANGED * expected.expected_addition


def _refuse_beyond(size: float) -> None:
    left = current_device().left()
    if left is not None and size > left:
        why = f"it might need {format_bytes(size, left)} of {format_bytes(left, size)} left"
        raise TrialRunError(why, may_pass=True)


def _refuse_hopeless(size: int) -> None:
    room = current_device().room()
    if room is not None and size > HOPELESS * room.bytes:
        has = f"the device can hold {format_bytes(room.bytes, size)}"
        raise TrialRunError(f"it needs some {format_bytes(size, room.bytes)}, and {has}")
