"""Warnings that point to the user's line, however deep in the package they arise."""

from __future__ import annotations

import sys
import warnings
from pathlib import PurePath
from types import FrameType

from solvers.errors import CheckmateWarning

_INSIDE = frozenset({"checkmate_tf", "profiles", "solvers", "tensorflow", "keras"})

_GENERATED = "__autograph_generated_file"
"""How the files begin into which autograph writes the user's functions anew."""


def warn_user(code: str, message: str) -> None:
    """Warn about the innermost line that belongs neither to this package nor to TensorFlow."""
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and not is_users(frame):
        frame = frame.f_back
        level += 1
    warnings.warn(CheckmateWarning(code, f"checkmate_tf: {message}"), stacklevel=level)


def is_users(frame: FrameType) -> bool:
    """Whether a frame belongs neither to this package nor to TensorFlow and Keras."""
    if PurePath(frame.f_code.co_filename).name.startswith(_GENERATED):
        return False
    return _package(frame.f_globals) not in _INSIDE


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
