"""Which releases of TensorFlow and Keras are new enough."""

from __future__ import annotations

import re

from solvers.errors import CheckmateError

LEAST = {"tensorflow": (2, 16), "keras": (3, 0)}
"""By package, the first release that will do; `setup.py` has the same."""


def is_too_old(package: str, version: str) -> bool:
    """Whether a release of `package` is before the first that will do.

    Example:
        >>> is_too_old("tensorflow", "2.15.1"), is_too_old("tensorflow", "2.16.0rc0")
        (True, False)
    """
    return tuple(map(int, re.findall(r"\d+", version)[:2])) < LEAST[package]


def refuse_old_tensorflow(version: str) -> None:
    """Say which TensorFlow is needed, before something is missed in an older one.

    Raises:
        CheckmateError: `version` is too old.
    """
    if is_too_old("tensorflow", version):
        least = ".".join(map(str, LEAST["tensorflow"]))
        raise CheckmateError(
            "tensorflow-too-old",
            f"TensorFlow {version} is too old, checkmate_tf needs {least} or later: "
            "pip install --upgrade 'checkmate_tf[cpu]', or [gpu]",
        )
