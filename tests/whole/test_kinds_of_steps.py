"""Every kind of train step that `experiments.coverage` lists, small: planned, and bits compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from experiments.coverage.kinds import KINDS

GROUPS = sorted({each.group for each in KINDS.values()})


def test_there_are_enough_kinds():
    assert len(KINDS) >= 200


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_every_kind_trains_to_the_bits_of_the_plain_step(tmp_path, group):
    names = [name for name, each in KINDS.items() if each.group == group]
    output = tmp_path / "rows.json"
    command = [sys.executable, "-m", "experiments.coverage.trial", *names, "--small"]
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0"}
    ended = subprocess.run(
        [*command, "--time-limit", "0.5", "--output", str(output)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    rows = json.loads(output.read_text(encoding="utf-8"))
    assert [each["name"] for each in rows] == names
    wrong = [(each["name"], each["outcome"]) for each in rows if not each["equal"]]
    assert not wrong
