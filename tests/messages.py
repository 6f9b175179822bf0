"""What a user is told, by its code; and by the values that it names, not by how they are put."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from solvers import CheckmateError, CheckmateWarning


@contextmanager
def raises(
    kind: type[CheckmateError], code: str, *names: object
) -> Iterator[pytest.ExceptionInfo[CheckmateError]]:
    """An error of this kind with this code, whose text names these values."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code, caught.value
    assert _all_in(str(caught.value), names), (names, str(caught.value))


@contextmanager
def warns(code: str, *names: object) -> Iterator[list[warnings.WarningMessage]]:
    """Warnings with this code, one of which names these values; others pass on."""
    found: list[warnings.WarningMessage] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    for each in caught:
        if isinstance(each.message, CheckmateWarning) and each.message.code == code:
            found.append(each)
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    told = [str(each.message) for each in found]
    assert any(_all_in(each, names) for each in told), (code, names, told)


def codes(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """Codes of warnings that were recorded, one after another."""
    return [each.message.code for each in caught if isinstance(each.message, CheckmateWarning)]


@contextmanager
def announces(code: str, *names: object) -> Iterator[list[str]]:
    """Lines that are logged with this code, one of which names these values."""
    found: list[str] = []
    handler = _Noting(code, found)
    logger = logging.getLogger("checkmate_tf")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert any(_all_in(each, names) for each in found), (code, names, found)


class _Noting(logging.Handler):
    """Notes the lines that have a code."""

    def __init__(self, code: str, found: list[str]) -> None:
        super().__init__()
        self._code, self._found = code, found

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "code", None) == self._code:
            self._found.append(record.getMessage())


def _all_in(text: str, names: tuple[object, ...]) -> bool:
    return all(str(each) in text for each in names)
