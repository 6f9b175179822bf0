"""Progress for a person who watches: on a terminal, or in a notebook.

Elsewhere a command says it in lines, for who reads its log; and a script that trains says nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import StringIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from checkmate_tf.announcements import print_to_stderr
from checkmate_tf.notebooks import PER_SECOND, NotebookLine, in_notebook
from profiles.operation import Operation
from solvers import ComputationGraph
from solvers import Progress as Report
from solvers.comparison import Row, overhead

_IS_TAKEN: ContextVar[bool] = ContextVar("is_taken", default=False)
"""Whether a display is under way: there is room for one at a time."""

_SECONDS = 10.0
"""Between two lines of a log."""

_IN_LINES: ContextVar[bool] = ContextVar("in_lines", default=False)
"""Whether progress is said in lines where it can't be shown."""

_WIDTH = 200
"""Columns of a line; a notebook wraps what is longer than its own."""


@contextmanager
def said_in_lines() -> Iterator[None]:
    """Progress inside is a line on stderr every few seconds where no terminal can show it."""
    token = _IN_LINES.set(True)
    try:
        yield
    finally:
        _IN_LINES.reset(token)


def can_show(console: Console) -> bool:
    """Whether what was written to `console` can be written over, as a file and TERM=dumb can't."""
    return console.is_terminal and not console.is_dumb_terminal


@contextmanager
def display(
    *columns: ProgressColumn, shown: bool = True, line: NotebookLine | None = None
) -> Iterator[Progress]:
    """One line of progress: on a terminal until it ends; in a notebook its last state stays.

    Args:
        columns: of the line.
        shown: whether there is one; without it there is none inside it either.
        line: of a notebook, to go on with; by default a new one.
    """
    console = Console(stderr=True)
    on_terminal, in_lines = can_show(console), _IN_LINES.get()
    is_seen = shown and not _IS_TAKEN.get() and (on_terminal or in_notebook() or in_lines)
    if in_notebook():  # each turn of a spinner would be a message to the browser
        columns = tuple(each for each in columns if not isinstance(each, SpinnerColumn))
    elif not on_terminal:
        moving = (SpinnerColumn, BarColumn)
        columns = tuple(each for each in columns if not isinstance(each, moving))
    progress = Progress(*columns, console=console, transient=True, disable=not is_seen)
    if in_notebook():
        show = (line or NotebookLine()).show
        progress.live = _TextLive(show, progress.get_renderable, PER_SECOND)
    elif not on_terminal:
        progress.live = _TextLive(_seldom(print_to_stderr), progress.get_renderable, 1 / _SECONDS)
    token = _IS_TAKEN.set(True)
    try:
        with progress:
            yield progress
    finally:
        _IS_TAKEN.reset(token)


class _TextLive(Live):
    """Shows as plain text what rich would show live on a terminal."""

    def __init__(
        self,
        show: Callable[[str], None],
        get_renderable: Callable[[], RenderableType],
        per_second: float,
    ) -> None:
        """`show` gets the text of what `get_renderable` makes, so many times a second."""
        self._show = show
        super().__init__(
            console=_text_console(),
            refresh_per_second=per_second,
            transient=True,
            get_renderable=get_renderable,
        )

    def refresh(self) -> None:
        """Show what there is to be shown now."""
        console = _text_console()
        with console.capture() as captured:
            console.print(self.get_renderable())
        self._show(captured.get().strip())


def _seldom(show: Callable[[str], None]) -> Callable[[str], None]:
    """Shows a text if some seconds have gone by since the last one, or since the beginning."""
    last = time.monotonic()

    def show_seldom(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= 0.9 * _SECONDS:
            last = time.monotonic()
            show(text)

    return show_seldom


def _text_console() -> Console:
    """One that writes plain text, and to nowhere."""
    return Console(file=StringIO(), width=_WIDTH, force_terminal=False, force_jupyter=False)


@contextmanager
def solver_progress(
    graph: ComputationGraph, time_limit: float
) -> Iterator[Callable[[Report], None]]:
    """Shows time against the limit, and the overheads of the incumbent and of the bound."""
    columns = (BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}"))
    with display(*columns) as progress:
        task = progress.add_task("", total=time_limit)
        yield lambda report: progress.update(
            task,
            completed=report.seconds,
            description=f"{report_in_words(graph, report)} {report.phase}",
        )


def report_in_words(graph: ComputationGraph, report: Report) -> str:
    """The overheads of a solver's incumbent and of its bound."""
    best, bound = (_percent(overhead(graph, each)) for each in (report.cost, report.bound))
    return f"overhead {best}, bound {bound}"


@contextmanager
def spoken_progress(title: str) -> Iterator[Callable[[str], None]]:
    """Shows how long something has taken whose end is not known, and what it does now."""
    columns = (TextColumn(title), TimeElapsedColumn(), TextColumn("{task.description}"))
    with display(*columns) as progress:
        task = progress.add_task("", total=None)
        yield lambda doing: progress.update(task, description=doing)


def _counted(what: str) -> tuple[ProgressColumn, ...]:
    """How many are done of those whose number is known, and what is said of them."""
    return (
        TextColumn(what),
        BarColumn(20),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )


@contextmanager
def points_progress(count: int) -> Iterator[Callable[[int, str], None]]:
    """Shows how many of `count` points of a curve are known, and what is done now."""
    with display(*_counted("budgets")) as progress:
        task = progress.add_task("", total=count)
        yield lambda done, doing: progress.update(task, completed=done, description=doing)
        progress.update(task, completed=count, description="")


@contextmanager
def comparison_progress(count: int) -> Iterator[Callable[[Row], None]]:
    """Shows how many of `count` runs have ended, and the last of them."""
    with display(*_counted("runs")) as progress:
        task = progress.add_task("", total=count)
        yield lambda row: progress.update(
            task, advance=1, description=f"{row.solver} at {row.budget}: {row.status}"
        )


@contextmanager
def measuring_progress() -> Iterator[Callable[[Iterable[Operation]], Iterator[Operation]]]:
    """Shows how many operations have been measured, and which one runs."""
    columns = (
        TextColumn("measuring"),
        BarColumn(20),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with display(*columns) as progress:

        def passed_on(operations: Iterable[Operation]) -> Iterator[Operation]:
            waiting = list(operations)
            task = progress.add_task("", total=len(waiting))
            for operation in waiting:
                progress.update(task, description=operation.type)
                yield operation
                progress.advance(task)

        yield passed_on


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} %"
