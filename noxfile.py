"""Installs the wheel into empty environments: the oldest, the newest and the next TensorFlow.

    make versions            # needs these Pythons on the PATH, and a package index
    nox --keywords oldest    # one of those that `nox --list` names

First without TensorFlow, for solvers; then with it: the doctor trains a step by a plan, and tests
look at what is used of TensorFlow's insides, and at steps as people write them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import nox

nox.options.error_on_missing_interpreters = True

TESTS = (
    "tests/profiles/test_supported_versions.py",
    "tests/profiles/test_tensorflow_internals.py",
    "tests/whole/test_as_users_write_it.py",
)


@nox.session
@nox.parametrize(
    ("python", "tensorflow"),
    [
        nox.param("3.10", "tensorflow-cpu==2.16.*", id="Python 3.10, oldest TensorFlow"),
        nox.param("3.10", "tensorflow-cpu", id="Python 3.10, newest TensorFlow"),
        nox.param("3.13", "tensorflow-cpu", id="Python 3.13, newest TensorFlow"),
        # A bound that names a candidate lets pip take one, of this package only.
        nox.param("3.13", "tensorflow-cpu>=2.22.0rc0", id="Python 3.13, next TensorFlow"),
        nox.param("3.14", "tensorflow-cpu", id="Python 3.14, newest TensorFlow"),
    ],
)
def versions(session: nox.Session, tensorflow: str) -> None:
    """Install the wheel for this Python and this TensorFlow, and use it."""
    folder = Path(session.create_tmp()).resolve()
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder))
    session.run(*build, external=True, silent=True)
    (wheel,) = folder.glob("*.whl")
    shutil.copytree("tests", folder / "tests", dirs_exist_ok=True)
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(name, folder)
    session.chdir(folder)  # away from the sources, which Python would find before the wheel

    session.install(str(wheel))
    session.run("checkmate-tf", "--version")
    session.run("checkmate-tf", "solvers", silent=True)

    session.install(f"{wheel}[cpu]", tensorflow, "pytest", "hypothesis")
    session.run("checkmate-tf", "doctor", env={"CHECKMATE_TF_CACHE": "cache"})
    session.run("python", "-m", "pytest", *TESTS)
