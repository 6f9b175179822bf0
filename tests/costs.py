"""What tests cost: processor time and memory, printed at the end. No test fails by them.

A test that takes more than `MOST` seconds of processor time, its processes included, keeps
everyone waiting: it belongs in `make test-all` (`@pytest.mark.slow`), or has its reason in `WORTH`.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

MOST = 5.0
"""Seconds of processor time."""
SHOWN = 10
"""Tests whose time is printed."""
MUCH = 1 << 28
"""Bytes; tests after which a process has held so much more than before are printed, too."""

WORTH: dict[str, str] = {
    "test_the_batch_that_is_named_trains[STEP]": "no other meets a batch that is too large",
    "test_the_batch_that_is_named_trains[fit]": "a smaller batch comes to the same step",
    "test_fit_that_was_asked_to_compile[2]": "no other trains in fit by XLA",
    "test_a_budget_that_no_plan_keeps": "no other meets the errors of plans for XLA",
    "test_the_code_of[README.md]": "what people try first",
    "test_a_batch_size_that_only_the_data_set_knows[2]": "fit looks for its batches in data sets",
    "test_training_under_way_goes_on_by_the_leanest_plan_until_there_is_room_again": "no other "
    "exchanges plans while it trains",
    "test_a_real_step[False]": "the doctor's own step",
    "test_kerass_default_on_a_gpu_stays[assigned_after_compile]": "what Keras does on a GPU",
    "test_a_budget_that_no_plan_for_xla_keeps_is_kept_without_it": "no other leaves XLA",
    "test_a_second_process_compiles_no_plan": "no other finds plans for XLA again",
    "test_a_plan_for_xla_made_ahead_of_time_is_the_one_that_trains": "no other plans for XLA ahead",
    "compiled/test_planner.py::test_what_was_too_little_is_planned_anew_where_there_is_enough": (
        "no other plans for XLA anew"
    ),
    "test_the_block_that_xla_asks_for_gets_a_larger_piece_on_a_cpu[0]": "no other trains by XLA "
    "in a process whose memory is its own",
    "test_masks.py::test_what_a_step_holds_is_the_same_either_way": "no other compares the bytes",
    "test_a_step_that_fails_runs_again_by_a_leaner_plan[False]": "no other runs out of memory then",
    "looked_at_one_after_the_other_all_run_for_trial": "no other looks at two batches in turn",
}
"""Why a test that takes longer is run for every change, by how its name ends."""

ON_GPUS = "tests/gpu/"
"""Tests that take longer: most start TensorFlow's GPU build in a process of its own."""


def _seconds() -> float:
    """Of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _most_held() -> int:
    """The most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def sweep(cases: Iterable[Any], quick: int = 1) -> list[Any]:
    """Parameters of a test, of which all but the first `quick` ones are left to `make test-all`.

    A case of several parameters is a tuple.
    """

    def slow(case: Any) -> Any:
        values = case if isinstance(case, tuple) else (case,)
        return pytest.param(*values, marks=pytest.mark.slow)

    each = list(cases)
    return each[:quick] + [slow(case) for case in each[quick:]]


class Costs:
    """A plugin of pytest; in the process that is asked for the tests it adds up all workers'."""

    def __init__(self) -> None:
        self._before = 0.0
        self._seconds: dict[str, float] = {}
        self._are_slow: set[str] = set()
        self._held: dict[str, int] = {}
        self._raised: dict[str, int] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[Any]:
        """Note in each phase's report what it took; setup is the first of the three."""
        report = yield
        seconds = _seconds()
        report.processor_seconds = seconds - self._before
        report.most_held = _most_held()
        report.is_slow = item.get_closest_marker("slow") is not None
        self._before = seconds
        return report

    def pytest_runtest_logstart(self) -> None:
        """What came before, as the collection of tests, is no test's."""
        self._before = _seconds()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take a report, from this process or a worker; that of one that died has no costs."""
        if not hasattr(report, "processor_seconds"):
            return
        worker = getattr(report, "worker_id", "")
        taken = self._seconds.get(report.nodeid, 0.0)
        self._seconds[report.nodeid] = taken + report.processor_seconds
        if report.is_slow:
            self._are_slow.add(report.nodeid)
        raised = report.most_held - self._held.get(worker, report.most_held)
        self._raised[report.nodeid] = max(raised, self._raised.get(report.nodeid, 0))
        self._held[worker] = max(self._held.get(worker, 0), report.most_held)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table, and name what takes too long."""
        if not self._seconds:
            return
        slowest = sorted(self._seconds.items(), key=lambda each: -each[1])
        write = terminalreporter.write_line
        terminalreporter.section("processor time")
        held = ", ".join(f"{each / 1e9:.1f} GB" for _, each in sorted(self._held.items()))
        write(f"{sum(self._seconds.values()):.0f} s in all; the most a process held: {held}")
        for name, seconds in slowest[:SHOWN]:
            write(f"{seconds:6.1f} s {name}")
        for name, raised in sorted(self._raised.items(), key=lambda each: -each[1]):
            if raised > MUCH:
                write(f"{raised / 1e9:6.1f} GB {name}")
        known = self._are_slow | {
            name
            for name in self._seconds
            if name.endswith(tuple(WORTH)) or name.startswith(ON_GPUS)
        }
        slow = [name for name, seconds in slowest if seconds > MOST and name not in known]
        if slow:
            write(f"\nOver {MOST:g} s each. Make them smaller, mark them @pytest.mark.slow")
            write("(make test-all), or give the reason in tests/costs.py:")
            for name in slow:
                write(f"    {name}")
