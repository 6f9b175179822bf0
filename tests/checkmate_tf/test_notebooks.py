"""What a notebook shows of planning, in a real kernel: one output, updated in place."""

from __future__ import annotations

import re

import pytest

from tests.notebooks import cells, run

PLANNING = """
from checkmate_tf.phases import phase
from checkmate_tf.progress import PlanningDisplay, say

display = PlanningDisplay(1, {"trace": 2.0})
with display.under_way(), phase("solve"):
    print("the user's own")
    say("overhead 3.00 %")
display.conclude("plan-made", "73 → 42 MiB")
"""

STOPPED = """
with PlanningDisplay(1, {"trace": 2.0}).under_way(), phase("solve"):
    raise KeyboardInterrupt
"""

DETAILS = """
with PlanningDisplay(2, {"trace": 2.0}).under_way():
    pass
"""

SILENT = """
display = PlanningDisplay(0, {"trace": 2.0})
with display.under_way(), phase("solve"):
    pass
display.conclude("plan-made", "73 → 42 MiB")
"""

COUNTED = """
from checkmate_tf.progress import points_progress

with points_progress(3) as show:
    show(1, "within 4 MiB")
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    notebook = cells(PLANNING, STOPPED, DETAILS, SILENT, COUNTED)
    notebook.cells[1].metadata.tags = ["raises-exception"]
    return run(notebook, tmp_path_factory.mktemp("kernel"))


def texts(ran, cell):
    """Of the outputs of a cell, by kind."""
    return [
        (each.output_type, each["data"]["text/plain"] if "data" in each else each.get("text"))
        for each in ran.outputs(cell)
    ]


def test_what_came_out_takes_the_place_of_the_progress(ran):
    assert texts(ran, 0) == [
        ("display_data", "checkmate_tf: 73 → 42 MiB"),
        ("stream", "the user's own\n"),
    ]
    shown = [text for cell, text in ran.shown if cell == 0]
    assert re.fullmatch(r"checkmate_tf plans 0:00:\d\d trace 2 s, solve: overhead.*", shown[-3])
    assert re.fullmatch(r"checkmate_tf: planning took 2.\d s: trace 2.0, solve \d.\d", shown[-2])


def test_planning_that_is_stopped_leaves_one_line(ran):
    (kind, text), (end, _) = texts(ran, 1)
    assert (kind, end) == ("display_data", "error")
    assert text.startswith("checkmate_tf: planning took 2.")


def test_details_are_lines_below(ran):
    (_, line), details = texts(ran, 2)
    assert line == "checkmate_tf: planning took 2.0 s: trace 2.0"
    assert details == ("stream", "checkmate_tf: trace took 2.0 s\n")


def test_silence(ran):
    assert texts(ran, 3) == []


def test_other_displays_end_with_one_line(ran):
    [(kind, text)] = texts(ran, 4)
    assert kind == "display_data"
    assert re.fullmatch(r"budgets ━+ 3/3 0:00:\d\d", text)
