"""One line in a notebook, which is updated in place by Jupyter's own display."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

from rich.console import Console, RenderableType
from rich.live import Live

_WIDTH = 200
"""Columns; a notebook wraps what is longer than its own line."""

_PER_SECOND = 2.0
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


class NotebookLive(Live):
    """Shows as a line of a notebook what rich would show live on a terminal."""

    def __init__(self, line: NotebookLine, get_renderable: Callable[[], RenderableType]) -> None:
        """`get_renderable` makes what is shown on `line`."""
        self._line = line
        super().__init__(
            console=_console(),
            refresh_per_second=_PER_SECOND,
            transient=True,
            get_renderable=get_renderable,
        )

    def refresh(self) -> None:
        """Show what there is to be shown now."""
        console = _console()
        with console.capture() as captured:
            console.print(self.get_renderable())
        self._line.show(captured.get().strip())


def _console() -> Console:
    """One that writes plain text, and to nowhere."""
    return Console(file=StringIO(), width=_WIDTH, force_terminal=False, force_jupyter=False)
