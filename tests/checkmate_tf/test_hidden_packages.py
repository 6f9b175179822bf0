"""A file of the user's that has the name of one of our packages is named, whatever hides it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def imported(folder: Path, script: str = "script.py") -> subprocess.CompletedProcess[str]:
    (folder / script).write_text("import checkmate_tf\nprint('fine')\n")
    command = [sys.executable, str(folder / script)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("hiding", ["solvers.py", "profiles.py", "solvers/__init__.py"])
def test_what_hides_a_package_is_named(tmp_path, hiding):
    file = tmp_path / hiding
    file.parent.mkdir(exist_ok=True)
    file.write_text("x = 1\n")
    ended = imported(tmp_path)
    assert ended.returncode == 1
    (message,) = (line for line in ended.stderr.splitlines() if line.startswith("ImportError"))
    assert f"is hidden by {file}; rename that" in message


def test_the_script_itself_may_hide_it(tmp_path):
    ended = imported(tmp_path, "solvers.py")
    assert "ImportError" in ended.stderr
    assert str(tmp_path / "solvers.py") in ended.stderr


def test_other_files_are_no_matter(tmp_path):
    (tmp_path / "planning.py").write_text("x = 1\n")
    assert imported(tmp_path).stdout == "fine\n"
