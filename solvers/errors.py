"""Every error that a user of this project can meet; each is also a `ValueError`."""

from __future__ import annotations

from typing import Any


class _Coded(Exception):  # noqa: N818
    """What is said under a code."""

    def __init__(self, code: str, message: str) -> None:
        """`str(error)` is the message."""
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled with all its attributes, whatever makes one of its class."""
        return _of_class, (type(self), *self.args), vars(self)


class CheckmateError(_Coded, ValueError):
    """Base of all errors that the user can mend; it says what, where and what to do.

    Attributes:
        code: a short name of the kind of mistake, which stays when the message is put in other
            words. All of them are in docs/messages.md.
    """

    ag_pass_through = True
    """Lets TensorFlow's AutoGraph hand the error on as it is, not as a StagingError of its own."""

    _keras_call_info_injected = True
    """Lets Keras do so where it arises in a layer, which would make another error of its text."""


class GraphError(CheckmateError):
    """A computation graph, or the file that should hold one, is broken."""


class ScheduleError(CheckmateError):
    """A schedule cannot be executed on its graph."""


class BudgetError(CheckmateError):
    """A memory budget is not a size, or no schedule was found that stays within it.

    Attributes:
        least: the least budget in bytes that is known to be enough, where one is known.
    """

    def __init__(self, code: str, message: str, least: int | None = None) -> None:
        super().__init__(code, message)
        self.least = least


class SolverError(CheckmateError):
    """A solver does not exist, is not installed, or is not valid on the graph it was given."""


class AnswerError(SolverError):
    """A solver's answer is not true: its schedule cannot be executed, or its claims are refuted."""


class CheckmateWarning(_Coded, UserWarning):
    """What a user should know; it says what, and what to do.

    Attributes:
        code: a short name of what is said, as an error has one.
    """


def _of_class(kind: type[BaseException], *args: Any) -> BaseException:
    """An error or a warning without its attributes, which are set afterwards."""
    return kind.__new__(kind, *args)
