"""Cost models beside stored profiles: how far off they are, with no device at hand.

An operation's error is predicted ÷ measured − 1. A step's time is the sum over its operations.
`experiments/gpu/h200` has a profile of an NVIDIA H200 and what two steps took there: which of its
operations they run how often, and their measured seconds. Its times were taken beside other
processes. Those that can't be true are no measure of errors: none at all, or less than the
published ceilings allow. Calibration gets them nevertheless.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

from rich.table import Table

from profiles.calibration import calibrated
from profiles.kinds import kind_of, runs_no_kernel
from profiles.measure.ceilings import gpu_probes, probes
from profiles.operation import Operation
from profiles.profile import SHORTEST, Profile
from profiles.profile_files import read_profile
from profiles.roofline import Device, Roofline, device_ceilings, floating_point_operations
from profiles.store import SHIPPED
from solvers.graph.files import read_json

_H200 = Path(__file__).parent / "gpu" / "h200"
_BANDWIDTH, _CACHE, _RATE = 4.8e12, 100e6, 495e12
"""Of an H200, as published: bytes a second, bytes that a cache may save, operations a second."""

_NEIGHBOURS = 5
"""Entries for every probe: one time in ten was off by several times."""

_FOLDS = 5

Costs = Callable[[Operation], float]


@dataclass(frozen=True)
class Step:
    """A step that was measured where its operations were.

    Attributes:
        seconds: of one run.
        runs: of each operation in it.
    """

    seconds: float
    runs: Mapping[Operation, int]

    def predicted(self, costs: Costs) -> float:
        """The sum over its operations."""
        return sum(runs * costs(operation) for operation, runs in self.runs.items())


@dataclass(frozen=True)
class Truth:
    """What was measured on a device.

    Attributes:
        profile: as it is stored.
        kind: of the device.
        steps: by name.
    """

    profile: Profile
    kind: Literal["CPU", "GPU"]
    steps: Mapping[str, Step] = field(default_factory=dict)

    @property
    def start(self) -> Device:
        """Where calibration starts: with nothing known of kinds, for a GPU's are of this H200."""
        return replace(device_ceilings(self.kind), slowness={})

    @property
    def believed(self) -> dict[Operation, float]:
        """Seconds of the operations whose times can be true."""
        return {op: each for op, each in self.profile.seconds.items() if self._can_be(op, each)}

    def _can_be(self, operation: Operation, seconds: float) -> bool:
        if seconds <= SHORTEST:
            return False
        if self.kind == "CPU" or runs_no_kernel(operation):
            return True
        moved = operation.bytes_moved - _CACHE
        done = floating_point_operations(operation)
        return moved / seconds < _BANDWIDTH and done / seconds < _RATE


def truths() -> list[Truth]:
    """The H200's profile, and those that ship with the package."""
    shipped = [Truth(read_profile(path), "CPU") for path in sorted(SHIPPED.glob("*.json"))]
    return [h200(), *shipped]


def h200() -> Truth:
    """What was measured on an NVIDIA H200."""
    profile = read_profile(_H200 / "profile.json")
    steps = {
        name: Step(each["seconds"], dict(zip(profile.entries, each["runs"], strict=True)))
        for name, each in read_json(_H200 / "steps.json").items()
    }
    return Truth(profile, "GPU", steps)


def models(truth: Truth) -> Iterator[tuple[str, Costs, Collection[Operation]]]:
    """Cost models by name, each with the operations that it has not seen."""
    seconds, believed = truth.profile.seconds, truth.believed
    yield "as assumed", Roofline(device_ceilings(truth.kind)).cost, believed
    seen = like_probes(truth)
    of_probes = calibrated(truth.start, {each: seconds[each] for each in seen})
    yield "by probes", Roofline(of_probes).cost, [each for each in believed if each not in seen]
    for name, step in truth.steps.items():
        ran = {each: seconds[each] for each, runs in step.runs.items() if runs}
        of_step = Roofline(calibrated(truth.start, ran))
        yield f"by {name}", of_step.cost, [each for each in believed if each not in ran]
    yield "by four fifths", cross_validated(truth), believed
    yield "by all", Roofline(calibrated(truth.start, seconds)).cost, believed


def like_probes(truth: Truth) -> set[Operation]:
    """Of each probe's kind, the entries whose sizes are nearest to the probe's."""
    by_kind: dict[str, list[Operation]] = defaultdict(list)
    for operation in truth.profile.seconds:
        by_kind[kind_of(operation)].append(operation)
    found: set[Operation] = set()
    for probe in gpu_probes() if truth.kind == "GPU" else probes("CPU:0"):

        def far(operation: Operation, size: int = probe.bytes_moved) -> float:
            return abs(math.log(max(1, operation.bytes_moved) / size))

        found |= set(sorted(by_kind[kind_of(probe)], key=far)[:_NEIGHBOURS])
    return found


def cross_validated(truth: Truth) -> Costs:
    """Every fifth operation's costs by a device that was calibrated by the others."""
    known = list(truth.profile.seconds.items())
    found: dict[Operation, float] = {}
    for fold in range(_FOLDS):
        others = dict(each for place, each in enumerate(known) if place % _FOLDS != fold)
        roof = Roofline(calibrated(truth.start, others))
        found |= {operation: roof.cost(operation) for operation, _ in known[fold::_FOLDS]}
    return found.__getitem__


def median_error(costs: Costs, truth: Truth, operations: Collection[Operation]) -> float:
    """Half of `operations` are further off than this share of their measured time."""
    seconds = truth.profile.seconds
    return median(abs(costs(each) / seconds[each] - 1) for each in operations)


def tables() -> Iterator[Table]:
    """For every stored profile: errors of each model, and the kinds that one model knows worst."""
    for truth in truths():
        yield _errors(truth)
        yield _worst_kinds(truth)


def _errors(truth: Truth) -> Table:
    believed, seconds = truth.believed, truth.profile.seconds
    title = f"{truth.profile.device}: {len(believed)} of {len(seconds)} times"
    table = _table(title, "calibrated", "unseen", "median\nerror", "sum ÷\nmeasured")
    for name in truth.steps:
        table.add_column(name.replace(" ", "\n") + ", ms", justify="right")
    for name, costs, unseen in models(truth):
        error = f"{100 * median_error(costs, truth, unseen):.0f} %"
        total = sum(map(costs, unseen)) / sum(seconds[each] for each in unseen)
        steps = (f"{1e3 * each.predicted(costs):.0f}" for each in truth.steps.values())
        table.add_row(name, str(len(unseen)), error, f"{total:.2f}", *steps)
    if truth.steps:
        alone = (
            f"{1e3 * each.predicted(seconds.__getitem__):.0f}" for each in truth.steps.values()
        )
        table.add_row("operations, measured alone", "", "", "", *alone)
        measured = (f"{1e3 * each.seconds:.0f}" for each in truth.steps.values())
        table.add_row("steps, measured", "", "", "", *measured)
    return table


_ROWS, _LEAST = 8, 5


def _worst_kinds(truth: Truth) -> Table:
    """Of those with a few entries, by the model that is calibrated by all."""
    roof = Roofline(calibrated(truth.start, truth.profile.seconds))
    by_kind: dict[str, list[float]] = defaultdict(list)
    for operation, seconds in truth.believed.items():
        by_kind[kind_of(operation)].append(roof.cost(operation) / seconds)
    common = {kind: each for kind, each in by_kind.items() if len(each) >= _LEAST}
    errors = {kind: median(abs(each - 1) for each in common[kind]) for kind in common}
    table = _table("", "worst kinds, by all", "times", "median\nerror", "predicted ÷\nmeasured")
    for kind in sorted(errors, key=lambda kind: -errors[kind])[:_ROWS]:
        ratios = common[kind]
        cells = f"{100 * errors[kind]:.0f} %", f"{median(ratios):.2f}"
        table.add_row(kind, str(len(ratios)), *cells)
    return table


def _table(title: str, first: str, *headings: Any) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table
