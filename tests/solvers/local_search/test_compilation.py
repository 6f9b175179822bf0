"""What numba has cached is compiled anew when any file of the kernels changes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import solvers

pytest.importorskip("numba")

ENTRY = """
from solvers.local_search.compilation import compiled_entry
from solvers.local_search.inner_kernel import BY, inner

@compiled_entry
def outer(x):
    return inner(x) + BY
"""
INNER = """
from solvers.local_search.compilation import compiled

BY = {by}

@compiled
def inner(x):
    return x * {factor}
"""


def copied_room(folder: Path) -> Path:
    """A copy of the kernels' folder, with an entry of its own."""
    copy = folder / "solvers"
    original = Path(solvers.__file__).parent
    shutil.copytree(original, copy, ignore=shutil.ignore_patterns("__pycache__"))
    room = copy / "local_search"
    (room / "entry_kernel.py").write_text(ENTRY)
    return room


def run(folder: Path) -> tuple[int, int]:
    """What the entry gives for 1, and how often numba found it in its cache."""
    program = (
        "from solvers.local_search.entry_kernel import outer; "
        "print(outer(1), sum(outer.stats.cache_hits.values()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    )
    value, hits = map(int, done.stdout.split())
    return value, hits


@pytest.mark.slow
def test_a_change_in_a_file_that_is_called_or_inlined_is_seen(tmp_path: Path) -> None:
    room = copied_room(tmp_path)
    (room / "inner_kernel.py").write_text(INNER.format(by=10, factor=2))
    assert run(tmp_path) == (12, 0)
    assert run(tmp_path) == (12, 1)
    kept = {each.name.split("-")[0] for each in room.glob("__pycache__/*.nbc")}
    assert kept == {"entry_kernel.outer"}  # the other one is in it
    (room / "inner_kernel.py").write_text(INNER.format(by=10, factor=3))
    assert run(tmp_path) == (13, 0)
    (room / "inner_kernel.py").write_text(INNER.format(by=40, factor=3))
    assert run(tmp_path) == (43, 0)


def test_where_nothing_can_be_written_kernels_are_compiled_all_the_same(tmp_path: Path) -> None:
    room = copied_room(tmp_path)
    (room / "inner_kernel.py").write_text(INNER.format(by=1, factor=2))
    program = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []  # as if no folder could be written to
from solvers.local_search.entry_kernel import outer
print(outer(1))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "3\n", done.stderr
