"""What a person at a terminal sees while a step is planned: one display, then one line."""

from __future__ import annotations

import re

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.phases import phase, stopwatch
from checkmate_tf.progress import planning_progress, say, solver_progress
from solvers.graph.layer_graphs import unit_chain
from tests.dense_steps import SIZE, loss_and_gradient, some_weights


@pytest.fixture
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes stderr for a terminal
    monkeypatch.setenv("COLUMNS", "120")


def words(text: str) -> str:
    """Without what moves the cursor and colours it."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.mark.usefixtures("_terminal")
def test_phases_and_what_the_solver_says_stand_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with planning_progress(True) as show, stopwatch({"trace": 2.2}, show):
        with phase("extract"), solver_progress(unit_chain(3), 1.0):
            pass  # no second display
        with phase("solve"):
            say("overhead 3.00 %")
    said = words(capsys.readouterr().err)
    assert "trace 2 s, extract 0 s, solve: overhead 3.00 %" in said
    say("nobody listens")
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("_terminal")
@pytest.mark.parametrize("verbose", [0, 1])
def test_planning_shows_where_it_is(verbose: int, capsys: pytest.CaptureFixture[str]) -> None:
    step = loss_and_gradient(some_weights(), 8)
    kept = checkmate_tf.rematerialize(
        step, budget=0.9, solver="linearized_greedy", time_limit=2, verbose=verbose
    )
    kept(tf.ones((512, SIZE)))
    said = words(capsys.readouterr().err)
    assert ("checkmate_tf plans" in said) == bool(verbose)
    assert not verbose or re.search(r"extract \d+ s, ", said)
