"""What a person sees of long work: one line on a terminal or in a notebook, and lines that stay.

Elsewhere a command says it in lines, for who reads its log; and a script that trains says nothing.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
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

from checkmate_tf.phases import in_words, stopwatch
from profiles.operation import Operation
from solvers import ComputationGraph
from solvers import Progress as Report
from solvers.comparison import overhead

_LOGGER = logging.getLogger("checkmate_tf")

_IS_TAKEN: ContextVar[bool] = ContextVar("is_taken", default=False)
"""Whether a display is under way: there is room for one at a time."""

_IN_LINES: ContextVar[bool] = ContextVar("in_lines", default=False)
"""Whether progress is said in lines where it can't be shown."""

_SECONDS = 10.0
"""Between two lines of a log."""

_PER_SECOND = 2.0
"""Updates in a notebook, each of which is a message to the browser."""

_WIDTH = 200
"""Columns of a line; a notebook wraps what is longer than its own."""


def print_to_stderr(line: str) -> None:
    """What shows a line where nothing else does."""
    print(line, file=sys.stderr, flush=True)


def announce(code: str, line: str, show: Callable[[str], None] = print_to_stderr) -> None:
    """Log a line at level INFO, and `show` it unless the log is on the terminal already.

    The record of the log has the `code`, as an error has one.
    """
    _LOGGER.info(line, extra={"code": code})
    if not _is_shown():
        show(f"checkmate_tf: {line}")


def _is_shown() -> bool:
    """Whether a handler writes what is logged to the terminal."""
    logger: logging.Logger | None = _LOGGER if _LOGGER.isEnabledFor(logging.INFO) else None
    while logger is not None:
        for handler in logger.handlers:
            stream = getattr(handler, "stream", None)
            if handler.level <= logging.INFO and stream in (sys.stderr, sys.stdout):
                return True
        logger = logger.parent if logger.propagate else None
    return False


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


@contextmanager
def said_in_lines() -> Iterator[None]:
    """Progress inside is a line on stderr every few seconds where no terminal can show it."""
    token = _IN_LINES.set(True)
    try:
        yield
    finally:
        _IN_LINES.reset(token)


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
    # A file and TERM=dumb can't be written over.
    notebook, terminal = in_notebook(), console.is_terminal and not console.is_dumb_terminal
    is_seen = shown and not _IS_TAKEN.get() and (terminal or notebook or _IN_LINES.get())
    still: tuple[type, ...] = () if terminal else (SpinnerColumn, BarColumn)
    if notebook:  # each turn of a spinner would be a message to the browser
        still = (SpinnerColumn,)
    kept = [each for each in columns if not isinstance(each, still)]
    progress = Progress(*kept, console=console, transient=True, disable=not is_seen)
    if notebook:
        show = (line or NotebookLine()).show
        progress.live = _TextLive(show, progress.get_renderable, 1 / _PER_SECOND)
    elif not terminal:
        progress.live = _TextLive(print_to_stderr, progress.get_renderable, _SECONDS, seldom=True)
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
        seconds: float,
        seldom: bool = False,
    ) -> None:
        """`show` gets the text of what `get_renderable` makes, every so many `seconds`.

        It does so when something begins or ends as well, unless `seldom`.
        """
        self._show, self._waits = show, 0.9 * seconds if seldom else 0.0
        self._shown = time.monotonic()
        super().__init__(
            console=_text_console(),
            refresh_per_second=1 / seconds,
            transient=True,
            get_renderable=get_renderable,
        )

    def refresh(self) -> None:
        """Show what there is to be shown now."""
        if time.monotonic() - self._shown < self._waits:
            return
        self._shown = time.monotonic()
        console = _text_console()
        with console.capture() as captured:
            console.print(self.get_renderable())
        self._show(captured.get().strip())


def _text_console() -> Console:
    """One that writes plain text, and to nowhere."""
    return Console(file=StringIO(), width=_WIDTH, force_terminal=False, force_jupyter=False)


@contextmanager
def _task(*columns: ProgressColumn, total: float | None = None) -> Iterator[Callable[..., None]]:
    """Shows one task, how long it has taken, and what is said of it.

    What it gives updates the task, by the arguments of rich's `Progress.update`.
    """
    with display(*columns, TimeElapsedColumn(), TextColumn("{task.description}")) as progress:
        yield partial(progress.update, progress.add_task("", total=total))


@contextmanager
def spoken_progress(title: str) -> Iterator[Callable[[str], None]]:
    """Shows how long something has taken whose end is not known, and what it does now."""
    with _task(TextColumn(title)) as update:
        yield lambda doing: update(description=doing)


@contextmanager
def solver_progress(
    graph: ComputationGraph, time_limit: float
) -> Iterator[Callable[[Report], None]]:
    """Shows time against the limit, and the overheads of the incumbent and of the bound."""
    with _task(BarColumn(20), total=time_limit) as update:
        yield lambda report: update(
            completed=report.seconds, description=f"{_in_words(graph, report)} {report.phase}"
        )


def _in_words(graph: ComputationGraph, report: Report) -> str:
    """The overheads of a solver's incumbent and of its bound."""
    known = (overhead(graph, each) for each in (report.cost, report.bound))
    best, bound = ("–" if each is None else f"{each:.2f} %" for each in known)
    return f"overhead {best}, bound {bound}"


def _counted(what: str) -> tuple[ProgressColumn, ...]:
    """How many are done of those whose number is known."""
    return TextColumn(what), BarColumn(20), TextColumn("{task.completed:.0f}/{task.total:.0f}")


@contextmanager
def counted_progress(what: str, count: int) -> Iterator[Callable[[int, str], None]]:
    """Shows how many of `count` have ended, as it is told, and what is done now, or was last."""
    with _task(*_counted(what), total=count) as update:
        yield lambda done, doing: update(completed=done, description=doing)


@contextmanager
def points_progress(count: int) -> Iterator[Callable[[int, str], None]]:
    """Shows how many of `count` points of a curve are known, and what is done now."""
    with counted_progress("budgets", count) as show:
        yield show
        show(count, "")


@contextmanager
def measuring_progress() -> Iterator[Callable[[Iterable[Operation]], Iterator[Operation]]]:
    """Shows how many operations have been measured, and which one runs."""
    said = TimeElapsedColumn(), TextColumn("{task.description}")
    with display(*_counted("measuring"), *said) as progress:

        def passed_on(operations: Iterable[Operation]) -> Iterator[Operation]:
            waiting = list(operations)
            task = progress.add_task("", total=len(waiting))
            for operation in waiting:
                progress.update(task, description=operation.type)
                yield operation
                progress.advance(task)

        yield passed_on


_TOLD = 0.05
"""Seconds of a phase that are worth a line; shorter ones are counted with its next."""


class PlanningDisplay:
    """One line for all of planning: its phases with their seconds, and what goes on now.

    On a terminal it is there while planning is under way. In a notebook it is one output of the
    cell, which then says what came out.

    Attributes:
        seconds: of each phase so far.
    """

    seconds: Mapping[str, float]

    def __init__(self, verbose: int, known: Mapping[str, float] | None = None) -> None:
        """Prepare it; nothing is shown yet.

        Args:
            verbose: 0 shows nothing, 1 the line; with 2, details are announced besides.
            known: seconds of phases that are over.
        """
        self.seconds = dict(known or {})
        self._verbose = verbose
        self._line = NotebookLine() if verbose and in_notebook() else None
        self._progress = Progress(disable=True)
        self._task = self._progress.add_task("")
        self._told: dict[str, float] = {}  # seconds that were announced

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Planning goes on inside; it may do so again later."""
        columns = (
            SpinnerColumn(),
            TextColumn("checkmate_tf plans"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[phases]}{task.description}"),
        )
        token = _CURRENT.set(self)
        try:
            with display(*columns, shown=self._verbose > 0, line=self._line) as self._progress:
                self._task = self._progress.add_task("", total=None, phases="")
                with stopwatch(self.seconds, self._show) as watch:
                    self.seconds = watch.seconds
                    yield
        finally:
            _CURRENT.reset(token)
            self._tell_seconds()
            if self._line is not None:
                self._line.show(f"checkmate_tf: planning took {in_words(self.seconds)}")

    def _show(self, running: str, seconds: Mapping[str, float]) -> None:
        """Another phase begins, or goes on again."""
        self._tell_seconds(running)
        ended = [f"{name} {each:.0f} s" for name, each in seconds.items() if name != running]
        self._progress.update(self._task, phases=", ".join([*ended, running]), description="")

    def _tell_seconds(self, running: str = "") -> None:
        """Announce how long phases have gone on since this was last said of them."""
        for name, seconds in self.seconds.items():
            more = seconds - self._told.get(name, 0.0)
            if name != running and more >= _TOLD:
                self._told[name] = seconds
                self.detail("phase-over", f"{name} took {more:.1f} s")

    def say(self, what: str) -> None:
        """Say what the phase under way does, in the place of what was said before."""
        self._progress.update(self._task, description=f": {what}")

    def detail(self, code: str, line: str) -> None:
        """Announce a line to those who asked for details."""
        if self._verbose > 1:
            self.announce(code, line)

    def announce(self, code: str, line: str) -> None:
        """Announce a line that stays, beside what is shown."""
        makes_room = self._progress.live.is_started and self._line is None
        if makes_room:
            self._progress.stop()  # handlers of the log know nothing of it
        announce(code, line)
        if makes_room:
            self._progress.start()

    def conclude(self, code: str, line: str) -> None:
        """Announce what came out; in a notebook it takes the place of what was shown."""
        if self._verbose:
            announce(code, line, print_to_stderr if self._line is None else self._line.show)


_NOBODY_LOOKS = PlanningDisplay(verbose=0)
_CURRENT = ContextVar("planning", default=_NOBODY_LOOKS)
"""The display of what is planned now."""


def say(what: str) -> None:
    """Say in the display of planning what the phase under way does; without one, nothing."""
    _CURRENT.get().say(what)


def say_report(graph: ComputationGraph) -> Callable[[Report], None]:
    """Says a solver's reports: the overheads of the incumbent and of the bound."""
    return lambda report: say(_in_words(graph, report))


def detail(code: str, line: str) -> None:
    """Announce a line to those who asked for details of what is planned now."""
    _CURRENT.get().detail(code, line)


def announce_beside(code: str, line: str) -> None:
    """Announce a line, beside the display of planning if there is one."""
    _CURRENT.get().announce(code, line)
