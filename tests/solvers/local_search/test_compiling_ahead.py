"""The search is compiled in another process, once, and nothing depends on that one's luck."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

from solvers.local_search import compiling_ahead
from solvers.local_search.compiling_ahead import begin_to_compile, wait_until_compiled
from tests.solvers.local_search.test_compilation import INNER, copied_room


@pytest.fixture(autouse=True)
def nothing_compiled_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling_ahead, "is_compiled", lambda entry: False)
    monkeypatch.setattr(compiling_ahead, "_UNDER_WAY", [])


def test_one_process_begins_and_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "compiled"
    program = f"import time, solvers; time.sleep(1); open({str(file)!r}, 'w').close()"
    monkeypatch.setattr(compiling_ahead, "_PROGRAM", program)
    assert begin_to_compile()
    assert not begin_to_compile()
    assert not file.exists()
    wait_until_compiled()
    assert file.exists()


def test_a_process_that_fails_or_does_not_start_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiling_ahead, "_PROGRAM", "raise SystemExit(1)")
    assert begin_to_compile()
    wait_until_compiled()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert not begin_to_compile()
    wait_until_compiled()


@pytest.mark.slow
def test_what_is_compiled_is_known_from_the_disk(tmp_path: Path) -> None:
    room = copied_room(tmp_path)
    (room / "inner_kernel.py").write_text(INNER.format(by=10, factor=2))
    program = (
        "from solvers.local_search.compilation import is_compiled; "
        "from solvers.local_search.entry_kernel import outer; "
        "print(is_compiled(outer)); outer(1); print(is_compiled(outer))"
    )

    def told() -> list[str]:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert told() == ["False", "True"]
    assert told() == ["True", "True"]
    (room / "inner_kernel.py").write_text(INNER.format(by=10, factor=3))
    assert told() == ["False", "True"]
