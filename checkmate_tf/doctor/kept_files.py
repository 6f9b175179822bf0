"""The folders of profiles and plans: how much is in them, and whether they can be used."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from checkmate_tf.doctor.finding import Finding
from checkmate_tf.planning.kept.plan_store import VARIABLE, plan_files, plan_folder, read_entry
from profiles.profile_files import read_profile
from profiles.store import cache_folder
from solvers import CheckmateError, format_bytes


def kept_files() -> Finding:
    """Folders, counts and bytes of the user's profiles and plans."""
    facts, wrong = [], []
    profiles = cache_folder()
    own = sorted(profiles.glob("*.json"))
    kept: list[tuple[str, str, str, Path | None, list[Path], Callable[[Path], object]]] = [
        ("profiles", "CHECKMATE_TF_CACHE", "clear", profiles, own, read_profile),
        ("plans", VARIABLE, "--clear", plan_folder(), plan_files(), read_entry),
    ]
    for name, variable, clear, folder, files, read in kept:
        if folder is None:
            facts.append((name, f"none are kept: {variable} says so"))
            continue
        facts.append((name, f"{folder}: {_in_words(files)}"))
        if not _can_be_written(folder):
            wrong.append(f"{folder} can't be written: let {variable} name a folder that can")
        if broken := [path for path in files if not _can_be_read(path, read)]:
            wrong.append(f"{broken[0]} is broken: checkmate-tf {name} {clear}")
    return Finding(not wrong, "; ".join(wrong) or "works", facts)


def _in_words(files: Sequence[Path]) -> str:
    if not files:
        return "nothing yet"
    size = sum(path.stat().st_size for path in files)
    return f"{len(files)} file{'s' * (len(files) > 1)}, {format_bytes(size)}"


def _can_be_read(path: Path, read: Callable[[Path], object]) -> bool:
    try:
        read(path)
    except CheckmateError:
        return False
    return True


def _can_be_written(folder: Path) -> bool:
    """Whether files can be made in it, or the folder itself where it is not there yet."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
