"""Progress for a person who watches: on a terminal, or in a notebook; else nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from checkmate_tf.notebooks import NotebookLine, NotebookLive, in_notebook
from profiles.operation import Operation
from solvers import ComputationGraph
from solvers import Progress as Report
from solvers.comparison import Row, overhead

_IS_TAKEN: ContextVar[bool] = ContextVar("is_taken", default=False)
"""Whether a display is under way: there is room for one at a time."""


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
    is_seen = shown and not _IS_TAKEN.get() and (console.is_terminal or in_notebook())
    if in_notebook():  # each turn of a spinner would be a message to the browser
        columns = tuple(each for each in columns if not isinstance(each, SpinnerColumn))
    progress = Progress(*columns, console=console, transient=True, disable=not is_seen)
    if in_notebook():
        progress.live = NotebookLive(line or NotebookLine(), progress.get_renderable)
    token = _IS_TAKEN.set(True)
    try:
        with progress:
            yield progress
    finally:
        _IS_TAKEN.reset(token)


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
