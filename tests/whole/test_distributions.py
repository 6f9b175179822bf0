"""What the wheel and the source distribution hold: the packages with their data, nothing else.

What is installed from them is tried by `make versions`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from checkmate_tf import __version__

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PACKAGES = ("checkmate_tf", "profiles", "solvers")
NO_SOURCES = (".*", "__pycache__", "*.egg-info", "build", "dist", "results")
ABOUT = f"checkmate_tf-{__version__}.dist-info"


@dataclass(frozen=True)
class Built:
    """A wheel that was made of the sources, a source distribution, and the wheel made of that."""

    wheel: Path
    sdist: Path
    wheel_of_sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    sources = folder / "sources"  # a copy: what is built leaves files there
    shutil.copytree(ROOT, sources, ignore=shutil.ignore_patterns(*NO_SOURCES))
    for name, options in {"wheel": ["--wheel"], "both": []}.items():
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / name]
        subprocess.run([*command, *options, sources], check=True)
    return Built(
        wheel=folder / "wheel" / f"checkmate_tf-{__version__}-py3-none-any.whl",
        sdist=folder / "both" / f"checkmate_tf-{__version__}.tar.gz",
        wheel_of_sdist=folder / "both" / f"checkmate_tf-{__version__}-py3-none-any.whl",
    )


def sources() -> set[str]:
    """The files of the packages: modules, the profiles that ship, the marks of typed packages."""
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for pattern in ("*.py", "*.json", "py.typed")
        for path in (ROOT / package).rglob(pattern)
    }


def in_wheel(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as wheel:
        return set(wheel.namelist())


def text_in_wheel(path: Path, name: str) -> str:
    with zipfile.ZipFile(path) as wheel:
        return wheel.read(name).decode()


def test_the_wheel_holds_the_packages_and_nothing_else(built: Built) -> None:
    found = in_wheel(built.wheel)
    assert {name for name in found if not name.startswith(ABOUT)} == sources()
    assert any(re.fullmatch(r"profiles/[^/]+\.json", name) for name in found)


def test_the_wheel_says_what_it_is(built: Built) -> None:
    licence = text_in_wheel(built.wheel, f"{ABOUT}/licenses/LICENSE")
    assert licence == (ROOT / "LICENSE").read_text(encoding="utf-8")
    about = text_in_wheel(built.wheel, f"{ABOUT}/METADATA").partition("\n\n")[0].splitlines()
    assert f"Version: {__version__}" in about
    assert "License-Expression: Apache-2.0" in about
    commands = text_in_wheel(built.wheel, f"{ABOUT}/entry_points.txt")
    assert "checkmate-tf = checkmate_tf.cli.main:main" in commands


def test_the_source_distribution_holds_what_the_wheel_is_made_of(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {each.name.partition("/")[2] for each in archive if each.isfile()}
    made = {name for name in names if name.startswith("checkmate_tf.egg-info/")}
    made |= {"PKG-INFO", "setup.cfg"}
    about = "README.md LICENSE CHANGELOG.md CITATION.cff MANIFEST.in".split()
    assert names - made == sources() | {"setup.py", "pyproject.toml", *about}


def test_both_ways_lead_to_the_same_wheel(built: Built) -> None:
    assert in_wheel(built.wheel_of_sdist) == in_wheel(built.wheel)


def test_the_changelog_begins_with_this_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d.*?)\]", changes, re.MULTILINE)
    assert versions[0] == __version__
