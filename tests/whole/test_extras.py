"""What a message tells the user to install exists."""

from __future__ import annotations

import re
from importlib.metadata import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [
    *(
        path
        for folder in ("solvers", "profiles", "checkmate_tf")
        for path in (ROOT / folder).rglob("*.py")
    ),
    *(path for folder in (".", "experiments") for path in (ROOT / folder).glob("*.md")),
    *(ROOT / "experiments").rglob("*.py"),
]


def extras() -> set[str]:
    """What can be named in brackets when the package is installed."""
    return set(metadata("checkmate_tf").get_all("Provides-Extra", []))


def test_every_extra_that_is_named_exists() -> None:
    named: dict[str, set[str]] = {}
    for path in SOURCES:
        for found in re.findall(r"(?:checkmate[_-]tf|'\.)\[([\w,-]+)\]", path.read_text()):
            for extra in found.split(","):
                named.setdefault(extra, set()).add(path.name)
    assert {"cpu", "gpu", "gurobi"} <= set(named)
    assert {extra: places for extra, places in named.items() if extra not in extras()} == {}
