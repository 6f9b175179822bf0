"""`experiments.coverage.on_a_gpu`: what it calls a fault, and that it goes on after a process."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace

import pytest

from experiments.coverage.on_a_gpu import Row, Trained, summary, try_kinds

PLAIN = Trained(
    places={"Conv2D": {"GPU:0": 3}, "Const": {"GPU:0": 1}, "Where": {"GPU:0": 1, "CPU:0": 1}},
    copies={"GPU:0": {"_Arg": 2}, "CPU:0": {"LoopCond": 1}},
    peak=300,
)
OURS = replace(PLAIN, peak=200, budget=210, asked="0.6")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"places": {"Conv2D": {"GPU:0": 5}, "Where": {"CPU:0": 2}, "NoOp": {"CPU:0": 1}}}, ""),
        ({"places": {"Conv2D": {"GPU:0": 3, "CPU:0": 1}}}, "Conv2D: CPU:0"),
        ({"copies": {"GPU:0": {"_Arg": 1}, "CPU:0": {"LoopCond": 2}}}, ""),
        ({"copies": {"CPU:0": {"Conv2D": 1}}}, "CPU:0: Conv2D"),
        ({"copies": {"CPU:0": {"Const": 1}}, "places": {"Const": {"CPU:0": 1}}}, ""),
        ({"peak": 211}, "211 bytes of 210"),
        ({"peak": 211, "codes": ("no-plan-saves-memory",)}, ""),
        ({"peak": 211, "asked": "min"}, ""),
        ({"peak": 211, "budget": 0}, ""),
        ({"error": "ValueError: no"}, "ValueError: no"),
    ],
)
def test_what_a_fault_is(change, said):
    fault = Row("LSTM", PLAIN, replace(OURS, **change)).fault
    assert said in fault
    assert bool(fault) == bool(said)


def test_where_the_plain_step_fails_nothing_is_said_of_ours():
    assert not Row("LSTM", Trained(error="dies")).fault


def prints(*trained):
    return "\n".join(f"print({json.dumps(asdict(each))!r}, flush=True)" for each in trained)


PROCESS = f"""
import os, sys
for name in sys.argv[1:]:
    if name == "dies":
        print("Fatal", file=sys.stderr, flush=True)
        os.abort()
    {prints(PLAIN)}
    if name == "dies by a plan":
        sys.exit("no plan")
    {prints(OURS)}
"""


def test_after_a_process_that_dies_another_one_goes_on():
    names = ["first", "dies", "second", "dies by a plan", "third"]
    rows = list(try_kinds(names, (sys.executable, "-c", PROCESS)))
    assert [each.name for each in rows] == names
    assert [each.ours is None for each in rows] == [False, True, False, False, False]
    assert "Fatal" in rows[1].plain.error
    assert [bool(each.fault) for each in rows] == [False, False, False, True, False]
    assert "no plan" in rows[3].fault
    assert "trained 4 of them" in summary(rows)
