"""What a user is told, by its code; and by the values that it names, not by how they are put."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
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
    assert not [each for each in names if str(each) not in str(caught.value)], caught.value


@contextmanager
def warns(code: str, *names: object) -> Iterator[list[warnings.WarningMessage]]:
    """Warnings with this code, one of which names these values; others pass, as without this."""
    found: list[warnings.WarningMessage] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    for each in caught:
        if getattr(each.message, "code", None) == code:
            assert isinstance(each.message, CheckmateWarning)
            found.append(each)
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    told = [str(each.message) for each in found]
    assert told, f"no warning {code}"
    assert any(all(str(name) in each for name in names) for each in told), told
