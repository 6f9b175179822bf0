"""Progress bars on stderr, for a person who watches; nothing where stderr is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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

from profiles.operation import Operation
from solvers import ComputationGraph
from solvers import Progress as Report
from solvers.comparison import Row, overhead

_SAY: ContextVar[Callable[[str], None] | None] = ContextVar("say", default=None)
"""Says in the display of planning what the phase under way does; None where there is none."""


@contextmanager
def planning_progress(shown: bool) -> Iterator[Callable[[str, Mapping[str, float]], None]]:
    """One display for all of planning: its phases with their seconds, and what goes on now.

    Yields what a `checkmate_tf.phases.stopwatch` shows.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("checkmate_tf plans"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[phases]}{task.description}"),
    )
    with _progress(*columns, shown=shown) as progress:
        task = progress.add_task("", total=None, phases="")

        def show(running: str, seconds: Mapping[str, float]) -> None:
            ended = [f"{name} {each:.0f} s" for name, each in seconds.items() if name != running]
            progress.update(task, phases=", ".join([*ended, running]), description="")

        def say(what: str) -> None:
            progress.update(task, description=f": {what}")

        token = _SAY.set(say)
        try:
            yield show
        finally:
            _SAY.reset(token)


def say(what: str) -> None:
    """Say in the display of planning what the phase under way does; without one, nothing."""
    if (show := _SAY.get()) is not None:
        show(what)


def say_report(graph: ComputationGraph) -> Callable[[Report], None]:
    """Says a solver's reports: the overheads of the incumbent and of the bound."""
    return lambda report: say(_in_words(graph, report))


@contextmanager
def solver_progress(
    graph: ComputationGraph, time_limit: float
) -> Iterator[Callable[[Report], None]]:
    """Shows time against the limit, and the overheads of the incumbent and of the bound."""
    columns = (BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}"))
    with _progress(*columns) as progress:
        task = progress.add_task("", total=time_limit)
        yield lambda report: progress.update(
            task,
            completed=report.seconds,
            description=f"{_in_words(graph, report)} {report.phase}",
        )


def _in_words(graph: ComputationGraph, report: Report) -> str:
    best, bound = (_percent(overhead(graph, each)) for each in (report.cost, report.bound))
    return f"overhead {best}, bound {bound}"


@contextmanager
def spoken_progress(title: str) -> Iterator[Callable[[str], None]]:
    """Shows how long something has taken whose end is not known, and what it does now."""
    columns = (TextColumn(title), TimeElapsedColumn(), TextColumn("{task.description}"))
    with _progress(*columns) as progress:
        task = progress.add_task("", total=None)
        yield lambda doing: progress.update(task, description=doing)


def _counted() -> tuple[ProgressColumn, ...]:
    """How many are done of those whose number is known, and what is said of them."""
    return (
        BarColumn(20),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )


@contextmanager
def points_progress(count: int) -> Iterator[Callable[[int, str], None]]:
    """Shows how many of `count` points of a curve are known, and what is done now."""
    with _progress(*_counted()) as progress:
        task = progress.add_task("", total=count)
        yield lambda done, doing: progress.update(task, completed=done, description=doing)


@contextmanager
def comparison_progress(count: int) -> Iterator[Callable[[Row], None]]:
    """Shows how many of `count` runs have ended, and the last of them."""
    with _progress(*_counted()) as progress:
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


def _progress(*columns: ProgressColumn, shown: bool = True) -> Progress:
    console = Console(stderr=True)
    # A terminal has room for one display at a time.
    is_seen = shown and console.is_terminal and _SAY.get() is None
    return Progress(*columns, console=console, transient=True, disable=not is_seen)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} %"
