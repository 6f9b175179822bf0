"""What is said where a picture is asked for and the package that draws is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from solvers.errors import CheckmateError


@contextmanager
def needs_matplotlib(what: str) -> Iterator[None]:
    """Import inside what draws `what`, as in "a plan".

    Raises:
        CheckmateError: matplotlib is not installed.

    Example:
        >>> with needs_matplotlib("a plan"):  # doctest: +ELLIPSIS
        ...     raise ModuleNotFoundError("no matplotlib", name="matplotlib.figure")
        Traceback (most recent call last):
        solvers.errors.CheckmateError: a picture of a plan needs the package matplotlib: pip ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        raise CheckmateError(
            "package-missing",
            f"a picture of {what} needs the package matplotlib: pip install matplotlib",
        ) from error
