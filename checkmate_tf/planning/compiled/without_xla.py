"""A way out of a trace: compiled by XLA a step can't be planned, without XLA it may be."""

from __future__ import annotations

from solvers import BudgetError, CheckmateError


class WithoutXla(Exception):  # noqa: N818 – no error, but a way out of a trace
    """Compiled by XLA a step can't be planned; without XLA it may be."""

    def __init__(self, error: CheckmateError) -> None:
        super().__init__(str(error))
        self.error = error

    @property
    def in_words(self) -> str:
        """What the user should know when the step has a plan without XLA."""
        return (
            "this step trains without XLA (jit_compile=False), where steps take longer, because "
            f"{self.error}"
        )

    def and_without(self, error: BudgetError) -> BudgetError:
        """An error for both, with what the leanest plan found takes that one or the other has.

        One that names a batch that trains says all that is needed.
        """
        if error.code == "batch-too-large":
            return error
        known = [each for each in (getattr(self.error, "least", None), error.least) if each]
        return BudgetError(
            error.code, f"{self.error}; without XLA, {error}", least=min(known, default=None)
        )
