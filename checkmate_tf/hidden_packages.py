"""Finds out whether a file of the user's hides a package that this one is made of."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

_PACKAGES = ("solvers", "profiles")
_HOME = Path(__file__).resolve().parents[1]


def refuse_hidden_packages() -> None:
    """Look where Python would find the packages that are installed beside this one.

    Raises:
        ImportError: it would find others, for instance a `solvers.py` beside the user's script.
    """
    for name in _PACKAGES:
        found = _file_of(name)
        if found is None or found.resolve().parent != _HOME / name:
            where = "is not installed" if found is None else f"is hidden by {found}; rename that"
            raise ImportError(f"checkmate_tf needs its package {name!r}, which {where}", name=name)


def _file_of(name: str) -> Path | None:
    loaded = sys.modules.get(name)
    origin = getattr(loaded, "__file__", None)
    if loaded is None:
        spec = find_spec(name)
        origin = None if spec is None else spec.origin
        if spec is not None and origin is None:  # a folder without __init__.py
            return Path(next(iter(spec.submodule_search_locations or ()), name))
    return None if origin is None else Path(origin)
