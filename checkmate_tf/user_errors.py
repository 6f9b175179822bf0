"""Errors as the user reads them: without the lines of this package and of TensorFlow."""

from __future__ import annotations

from types import TracebackType

import tensorflow as tf

from checkmate_tf.user_warnings import is_users
from solvers.errors import CheckmateError


def users_lines(error: BaseException) -> TracebackType | None:
    """The traceback of `error` with the user's lines alone, if code of the user raised it.

    So it is of a `CheckmateError`, whose message says all. Any other error that arises in this
    package needs its lines to be understood. They are there, too, after
    `tf.debugging.disable_traceback_filtering()`.
    """
    lines = []
    line = error.__traceback__
    while line is not None:
        if is_users(line.tb_frame):
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
