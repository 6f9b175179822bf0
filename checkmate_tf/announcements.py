"""Lines that tell the user what was done: through `logging`, and on the terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

_LOGGER = logging.getLogger("checkmate_tf")


def print_to_stderr(line: str) -> None:
    """What shows an announcement where nothing else does."""
    print(line, file=sys.stderr, flush=True)


def announce(code: str, line: str, show: Callable[[str], None] = print_to_stderr) -> None:
    """Log a line at level INFO, and `show` it unless the log is on the terminal already.

    The record of the log has the `code`, as an error has one.
    """
    _LOGGER.info(line, extra={"code": code})
    if not _is_shown():
        show(f"checkmate_tf: {line}")


def _is_shown() -> bool:
    """Whether a handler writes what is logged to the terminal."""
    if not _LOGGER.isEnabledFor(logging.INFO):
        return False
    logger: logging.Logger | None = _LOGGER
    while logger is not None:
        for handler in logger.handlers:
            stream = getattr(handler, "stream", None)
            if handler.level <= logging.INFO and stream in (sys.stderr, sys.stdout):
                return True
        logger = logger.parent if logger.propagate else None
    return False
