"""Where planning is and what comes out, for a person who watches; more of it on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from checkmate_tf.announcements import announce, print_to_stderr
from checkmate_tf.notebooks import NotebookLine, in_notebook
from checkmate_tf.phases import in_words, stopwatch
from checkmate_tf.progress import display, report_in_words
from solvers import ComputationGraph
from solvers import Progress as Report

_TOLD = 0.05
"""Seconds of a phase that are worth a line; shorter ones are counted with its next."""

_CURRENT: ContextVar[PlanningDisplay | None] = ContextVar("planning", default=None)
"""The display of what is planned now."""


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
        self._task = TaskID(0)
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


def say(what: str) -> None:
    """Say in the display of planning what the phase under way does; without one, nothing."""
    if (current := _CURRENT.get()) is not None:
        current.say(what)


def say_report(graph: ComputationGraph) -> Callable[[Report], None]:
    """Says a solver's reports: the overheads of the incumbent and of the bound."""
    return lambda report: say(report_in_words(graph, report))


def detail(code: str, line: str) -> None:
    """Announce a line to those who asked for details of what is planned now."""
    if (current := _CURRENT.get()) is not None:
        current.detail(code, line)


def announce_beside(code: str, line: str) -> None:
    """Announce a line, beside the display of planning if there is one."""
    current = _CURRENT.get()
    (announce if current is None else current.announce)(code, line)
