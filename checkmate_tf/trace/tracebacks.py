"""Where the user's program made an operation, for the errors of its copies."""

from __future__ import annotations

from typing import Any

from tensorflow.python.client import pywrap_tf_session

_SET = getattr(pywrap_tf_session, "TF_SetOpStackTrace", None)


def copy_traceback(original: Any, copy: Any) -> None:
    """Let the errors of `copy` name the lines that made `original`.

    TensorFlow records the lines that create an operation; those of a copy are this package's.
    A release that can't be told otherwise keeps these.
    """
    traceback = original.traceback
    if _SET is not None and traceback is not None:
        _SET(copy._c_op, traceback[:])  # the slice lives on by itself, the traceback does not
