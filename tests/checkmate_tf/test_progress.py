"""What a person sees while a step is planned: one line where there is a terminal, and details."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf import phases, progress
from checkmate_tf.phases import phase
from checkmate_tf.progress import (
    PlanningDisplay,
    announce_beside,
    detail,
    said_in_lines,
    say,
    solver_progress,
    spoken_progress,
)
from solvers import format_bytes
from solvers.graph.layer_graphs import unit_chain
from tests.dense_steps import SIZE, loss_and_gradient, some_weights


@pytest.fixture
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes stderr for a terminal
    monkeypatch.setenv("TERM", "xterm")  # of one that can write over what it has written
    monkeypatch.setenv("COLUMNS", "120")


def words(text: str) -> str:
    """Without what moves the cursor and colours it."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def planned(verbose: int):
    """A step that has been planned by a rule, and is deep, so that a plan keeps the budget."""
    step = checkmate_tf.rematerialize(
        loss_and_gradient(some_weights(), 24),
        budget=0.9,
        solver="linearized_greedy",
        time_limit=2,
        verbose=verbose,
    )
    step(tf.ones((2048, SIZE)))
    return step


@pytest.mark.usefixtures("_terminal")
def test_phases_and_what_the_solver_says_stand_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with PlanningDisplay(1, {"trace": 2.2}).under_way():
        with phase("extract"), solver_progress(unit_chain(3), 1.0):
            pass  # no second display
        with phase("solve"):
            say("overhead 3.00 %")
    said = words(capsys.readouterr().err)
    assert "trace 2 s, extract 0 s, solve: overhead 3.00 %" in said
    say("nobody listens")
    detail("plan-tried", "nobody listens")
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("_terminal")
@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_a_terminal_shows_where_planning_is(
    verbose: int, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(verbose)
    said = words(capsys.readouterr().err)
    assert ("checkmate_tf plans" in said) == bool(verbose)
    assert not verbose or re.search(r"extract \d+ s, ", said)
    assert ("checkmate_tf: a plan: " in said) == (verbose == 2)


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1", "TERM": "dumb"}])
def test_a_command_says_it_in_lines_where_no_terminal_can_show_it(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(progress, "_SECONDS", 0.01)
    with spoken_progress("largest batch:") as show:
        show("not in a command")
        time.sleep(0.05)
    with said_in_lines(), spoken_progress("largest batch:") as show:
        show("tracing the step")
        time.sleep(0.05)
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"largest batch: 0:00:\d\d tracing the step", lines[-1])
    assert not any("not in a command" in each for each in lines)


def test_without_a_terminal_one_line_says_what_came_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    planned(verbose=1)
    [line] = capsys.readouterr().err.splitlines()
    assert re.match(r"checkmate_tf: \d+ → \d+ (KiB|MiB)", line)


TABLE = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)


def _in_a_table() -> None:
    TABLE.insert(tf.constant([1], tf.int64), tf.constant([2], tf.int64))


@pytest.mark.parametrize(
    ("change", "trial_run", "why"),
    [
        (lambda: None, False, "trial_run=False"),
        (_in_a_table, True, "the step changes more than variables"),
    ],
)
def test_the_line_says_why_a_peak_was_not_measured(
    change: Callable[[], None], trial_run: bool, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    gradient = loss_and_gradient(some_weights(), 12)

    def step(x: tf.Tensor) -> tf.Tensor:
        change()
        return gradient(x)

    options = {"budget": 0.95, "solver": "linearized_greedy", "trial_run": trial_run}
    step = checkmate_tf.rematerialize(step, **options)
    step(tf.ones((1024, SIZE)))
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"; not measured: {why})" in line
    assert step.plan.why_forecast == why


def test_details_are_lines_without_a_terminal_too(capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(verbose=2).plan
    lines = capsys.readouterr().err.splitlines()
    assert all(each.startswith("checkmate_tf: ") for each in lines)
    assert re.match(r"checkmate_tf: \d+ → \d+ (KiB|MiB)", lines[-1])
    candidates = [each for each in lines if "a plan: " in each]
    assert all(" forecast, " in each for each in candidates)
    # The one that is taken; a last one may have been tried that was not faster.
    [taken, *_] = [
        each
        for each in reversed(candidates)
        if f"{format_bytes(plan.measured_peak)} in its trial run, " in each
    ]
    assert ", may need " in taken


def test_each_phase_is_said_when_it_ends_or_rests(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Clock:
        now = 0.0

        def perf_counter(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(phases, "time", clock)
    display = PlanningDisplay(2, {"trace": 2.2})
    with display.under_way(), phase("solve"):
        clock.now += 3
        with phase("trials"):
            clock.now += 5
            with phase("emit"):
                clock.now += 0.04  # not worth a line
        detail("plan-tried", "a plan")
        clock.now += 1
    with display.under_way(), phase("emit"):
        clock.now += 0.06
    display.conclude("plan-made", "done")
    said = [each.removeprefix("checkmate_tf: ") for each in capsys.readouterr().err.splitlines()]
    expected = ["trace took 2.2 s", "solve took 3.0 s", "trials took 5.0 s", "a plan"]
    assert said == [*expected, "solve took 1.0 s", "emit took 0.1 s", "done"]
    assert display.seconds == pytest.approx({"trace": 2.2, "solve": 4, "trials": 5, "emit": 0.1})


@pytest.mark.usefixtures("_terminal")
def test_a_log_on_the_terminal_has_lines_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger("checkmate_tf")
    monkeypatch.setattr(logger, "handlers", [logging.StreamHandler(sys.stderr)])
    monkeypatch.setattr(logger, "level", logging.INFO)
    monkeypatch.setattr(logger, "_cache", {})
    with PlanningDisplay(1).under_way(), phase("solve"):
        announce_beside("kept-plan-unfit", "the kept plan does not fit")
        say("overhead 3.00 %")
    said = words(capsys.readouterr().err)
    assert said.count("the kept plan does not fit") == 1
    assert re.search(r"[\r\n]the kept plan does not fit\n", said)
    assert "solve: overhead 3.00 %" in said.partition("does not fit")[2]
