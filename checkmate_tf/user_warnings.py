"""Warnings and errors point to the user's line, however deep in the package they arise."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import PurePath
from types import FrameType, TracebackType

from solvers.errors import CheckmateError, CheckmateWarning

_INSIDE = frozenset({"checkmate_tf", "profiles", "solvers", "tensorflow", "keras"})

_GENERATED = "__autograph_generated_file"
"""How the files begin into which autograph writes the user's functions anew."""

_UNSAID: ContextVar[frozenset[str]] = ContextVar("unsaid", default=frozenset())


@contextmanager
def left_unsaid(*codes: str) -> Iterator[None]:
    """Warnings of these codes are not given inside: what calls this says it in its own words."""
    token = _UNSAID.set(_UNSAID.get() | frozenset(codes))
    try:
        yield
    finally:
        _UNSAID.reset(token)


def warn_user(code: str, message: str) -> None:
    """Warn about the innermost line that belongs neither to this package nor to TensorFlow."""
    if code in _UNSAID.get():
        return
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and not _is_users(frame):
        frame = frame.f_back
        level += 1
    warnings.warn(CheckmateWarning(code, f"checkmate_tf: {message}"), stacklevel=level)


def users_lines(error: BaseException) -> TracebackType | None:
    """The traceback of `error` with the user's lines alone, if code of the user raised it.

    So it is of a `CheckmateError`, whose message says all. Any other error that arises in this
    package needs its lines to be understood. They are there, too, after
    `tf.debugging.disable_traceback_filtering()`.
    """
    import tensorflow as tf

    lines = []
    line = error.__traceback__
    while line is not None:
        if _is_users(line.tb_frame):
            lines.append(line)
        line = line.tb_next
    # AutoGraph tells the lines in the message, and raises the error anew in its own.
    raised_by_user = lines or hasattr(error, "ag_error_metadata")
    says_all = isinstance(error, CheckmateError)
    if not (raised_by_user or says_all) or not tf.debugging.is_traceback_filtering_enabled():
        return error.__traceback__
    kept = None
    for line in reversed(lines):
        kept = TracebackType(kept, line.tb_frame, line.tb_lasti, line.tb_lineno)
    return kept


def _is_users(frame: FrameType) -> bool:
    """Whether a frame belongs neither to this package nor to TensorFlow and Keras."""
    if PurePath(frame.f_code.co_filename).name.startswith(_GENERATED):
        return False
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _INSIDE
