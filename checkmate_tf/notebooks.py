"""One line in a notebook, which is updated in place by Jupyter's own display."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

PER_SECOND = 2.0
"""Updates, each of which is a message to the browser."""


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this process."""
    return Console().is_jupyter


class NotebookLine:
    """One output of the cell that runs; each text takes the place of the one before it."""

    def __init__(self) -> None:
        self._text = ""
        self._update: Callable[[str], None] | None = None

    def show(self, text: str) -> None:
        """Show `text`: below what the cell has shown so far if it is the first one."""
        if text == self._text:
            return
        self._text = text
        if self._update is not None:
            self._update(text)
            return
        from IPython.display import display  # there is one where there is a notebook

        handle = display({"text/plain": text}, raw=True, display_id=True)
        self._update = lambda text: handle.update({"text/plain": text}, raw=True)
