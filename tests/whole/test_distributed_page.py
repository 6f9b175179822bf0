"""The programs of docs/distributed.md, as they stand there, on this machine."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "distributed.md").read_text(encoding="utf-8")
PROGRAMS = {
    name: text for text, name in re.findall(r"```python\n(# (\w+\.py)\n.*?)```", PAGE, re.DOTALL)
}
SECONDS = 200.0
"""Until a program that hangs is ended."""


def start(name: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    (folder / name).write_text(PROGRAMS[name], encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, name],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path_of_packages(), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def path_of_packages() -> str:
    here = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH", "")]))


def output_of(process: subprocess.Popen[str]) -> str:
    try:
        output, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, errors[-3000:]
    return output


def workers(program: str) -> list[str]:
    """TF_CONFIG of each worker as the page gives it, on ports that are free."""
    sockets = [socket.socket() for _ in range(2)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    lines = [line for line in PAGE.splitlines() if line.startswith("    TF_CONFIG=")]
    words = [shlex.split(line) for line in lines]
    assert [each[1:] for each in words] == [["python", program]] * 2
    configurations = [each[0].partition("=")[2] for each in words]
    for given, free in zip(["12345", "12346"], ports, strict=True):
        configurations = [each.replace(given, str(free)) for each in configurations]
    return configurations


def test_several_devices(tmp_path):
    output = output_of(start("several_devices.py", tmp_path))
    assert re.search(r"planned: [1-9]\d* nodes", output)


def test_several_machines_run_one_schedule(tmp_path):
    started = [
        start("several_machines.py", tmp_path, TF_CONFIG=each)
        for each in workers("several_machines.py")
    ]
    first, second = map(output_of, started)
    assert "losses: [" in first
    assert first.splitlines()[-1] == second.splitlines()[-1]


EXPECTED = (
    "[('unit chain of 8 layers', '80%', 'milp', 19.0), "
    "('unit chain of 8 layers', '80%', 'griewank', 19.0)"
)
"""Griewank and Walther's rule is optimal for such chains, so that both solvers agree."""


def test_a_dask_cluster(tmp_path):
    pytest.importorskip("distributed")
    assert output_of(start("on_dask.py", tmp_path)).splitlines()[-1].startswith(EXPECTED)


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_a_ray_cluster(tmp_path):
    assert output_of(start("on_ray.py", tmp_path)).splitlines()[-1].startswith(EXPECTED)
