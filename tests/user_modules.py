"""A module of a user's, as commands name one: it can be imported for one test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def user_module(
    name: str, source: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """`import name` works within, and what it gives is this source; kept files lie in `folder`."""
    (folder / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(folder / "cache"))
    sys.modules.pop(name, None)
    try:
        yield
    finally:
        sys.modules.pop(name, None)
