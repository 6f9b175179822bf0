"""The folder of kept plans: a plan.json each, whose name tells what it was made for.

It is `plans` in the folder of the user's profiles (`profiles.store`), or what $CHECKMATE_TF_PLANS
names; `CHECKMATE_TF_PLANS=off` keeps none and looks for none.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiles.store import cache_folder
from solvers.errors import CheckmateError
from solvers.graph.files import read_json, write_whole

VARIABLE = "CHECKMATE_TF_PLANS"
"""The environment variable that names the folder, or "off"."""

_NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{16}\.json")
"""Of a kept plan's file; other files in the folder are none of ours."""

MOST_PLANS = 200
"""In the folder; the one that was used least recently goes first."""


def plan_folder() -> Path | None:
    """The folder of kept plans, which need not exist; None where none are kept."""
    named = os.environ.get(VARIABLE, "")
    if named.lower() in ("off", "0"):
        return None
    return Path(named) if named else cache_folder() / "plans"


@dataclass(frozen=True)
class Entry:
    """A kept plan's file, read.

    Attributes:
        path: of the file.
        document: a plan.json with `kept` besides: what it was made for (`key`), and more.
    """

    path: Path
    document: dict[str, Any]

    @property
    def key(self) -> dict[str, Any]:
        """What the plan was made for."""
        key: dict[str, Any] = self.document["kept"]["key"]
        return key


def file_of(folder: Path, key: Mapping[str, Any]) -> Path:
    """Where the plan for `key` lies; files of one step begin alike."""
    text = json.dumps(key, sort_keys=True)
    return folder / f"{_beginning(key)}{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def read_entry(path: Path) -> Entry:
    """The kept plan in a file.

    Raises:
        CheckmateError: it can't be read, or holds no kept plan.
    """
    document = read_json(path)
    kept = document.get("kept") if isinstance(document, dict) else None
    if not isinstance(kept, dict) or not isinstance(kept.get("key"), dict):
        raise CheckmateError(
            "not-a-kept-plan", f"{path}: not a kept plan: it has no 'kept' with a 'key'"
        )
    return Entry(path, document)


def same_step(folder: Path, key: Mapping[str, Any]) -> list[Entry]:
    """Kept plans for the step of `key`, whatever else they were made for; broken ones left out."""
    found = []
    for path in sorted(folder.glob(f"{_beginning(key)}*.json")):
        with suppress(CheckmateError):
            found.append(read_entry(path))
    return found


def write_entry(path: Path, document: Mapping[str, Any]) -> None:
    """Write a kept plan, whole or not at all; those that are too many go.

    Raises:
        CheckmateError: it can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckmateError(
            "folder-unwritable", f"{path.parent}: can't be made: {error.strerror}"
        ) from error
    write_whole(path, json.dumps(document) + "\n")
    for each in _by_use(path.parent)[MOST_PLANS:]:
        with suppress(OSError):
            each.unlink()


def note_use(path: Path) -> None:
    """The plan was used now."""
    with suppress(OSError):
        os.utime(path)


def remove(path: Path) -> None:
    """Delete a kept plan; nothing happens if it is gone already, or can't be deleted."""
    with suppress(OSError):
        path.unlink()


def plan_files() -> list[Path]:
    """The files of all kept plans, the one that was used last first."""
    folder = plan_folder()
    return [] if folder is None else _by_use(folder)


def _beginning(key: Mapping[str, Any]) -> str:
    return f"{key['content'][:16]}-"


def _by_use(folder: Path) -> list[Path]:
    times = []
    for path in folder.glob("*.json"):
        if not _NAME.fullmatch(path.name):
            continue
        with suppress(OSError):  # another process has just deleted it
            times.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(times, reverse=True)]
