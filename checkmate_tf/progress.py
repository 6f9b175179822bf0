"""Progress bars on stderr, for a person who watches; nothing where stderr is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from profiles.operation import Operation
from solvers import ComputationGraph
from solvers import Progress as Report
from solvers.comparison import Row, overhead


@contextmanager
def solver_progress(
    graph: ComputationGraph, time_limit: float, shown: bool = True
) -> Iterator[Callable[[Report], None]]:
    """Shows time against the limit, and the overheads of the incumbent and of the bound."""
    columns = (BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}"))
    with _progress(*columns, shown=shown) as progress:
        task = progress.add_task("", total=time_limit)

        def show(report: Report) -> None:
            best = _percent(overhead(graph, report.cost))
            bound = _percent(overhead(graph, report.bound))
            progress.update(
                task,
                completed=report.seconds,
                description=f"overhead {best}, bound {bound} {report.phase}",
            )

        yield show


@contextmanager
def spoken_progress(title: str) -> Iterator[Callable[[str], None]]:
    """Shows how long something has taken whose end is not known, and what it does now."""
    columns = (TextColumn(title), TimeElapsedColumn(), TextColumn("{task.description}"))
    with _progress(*columns) as progress:
        task = progress.add_task("", total=None)
        yield lambda doing: progress.update(task, description=doing)


@contextmanager
def points_progress(count: int) -> Iterator[Callable[[int, str], None]]:
    """Shows how many of `count` points of a curve are known, and what is done now."""
    columns = (
        BarColumn(20),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with _progress(*columns) as progress:
        task = progress.add_task("", total=count)
        yield lambda done, doing: progress.update(task, completed=done, description=doing)


@contextmanager
def comparison_progress(count: int) -> Iterator[Callable[[Row], None]]:
    """Shows how many of `count` runs have ended, and the last of them."""
    columns = (
        BarColumn(20),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with _progress(*columns) as progress:
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
    with _progress(*columns) as progress:

        def passed_on(operations: Iterable[Operation]) -> Iterator[Operation]:
            waiting = list(operations)
            task = progress.add_task("", total=len(waiting))
            for operation in waiting:
                progress.update(task, description=operation.type)
                yield operation
                progress.advance(task)

        yield passed_on


def _progress(*columns: BarColumn | TextColumn | TimeElapsedColumn, shown: bool = True) -> Progress:
    console = Console(stderr=True)
    is_seen = shown and console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=not is_seen)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} %"
