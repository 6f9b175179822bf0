"""What `tradeoff` found, and how a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, overload

from checkmate_tf.plans.plan import Plan
from checkmate_tf.tradeoffs.point import Point
from solvers import format_bytes

if TYPE_CHECKING:
    from checkmate_tf.picture_files import Picture

_MEBIBYTE = 2**20

_ROW = "{:>3}{:>13}{:>10}{:>12}  {:<9}{:>11}{:>10}{:>10}"


class Tradeoff(Sequence[Point]):
    """Budget against extra time, a point for each budget, the largest first.

    `print(result)` is a table, `result.plot()` a picture, `result[3].plan` a plan to take.

    Attributes:
        points: with ever smaller budgets, none of which takes less time than the one before it.
        impossible: no schedule exists below so many bytes; None where XLA compiles the step, for
            which no such bound is known.
        asked: how many budgets were asked for.
        stopped: Ctrl-C ended it, so that some are missing.
    """

    def __init__(
        self, plans: Sequence[Plan], impossible: int | None, asked: int, stopped: bool = False
    ) -> None:
        """`plans` with ever smaller budgets."""
        first = plans[0]
        plain = first.compiled_baseline_peak or first.measured_baseline_peak or first.baseline_peak
        self.points = tuple(Point(plan, plain) for plan in plans)
        self.impossible = impossible
        self.asked = asked
        self.stopped = stopped

    def __len__(self) -> int:
        """How many points."""
        return len(self.points)

    @overload
    def __getitem__(self, number: int) -> Point: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Point]: ...

    def __getitem__(self, number: int | slice) -> Point | Sequence[Point]:
        """A point, or some of them."""
        return self.points[number]

    def __iter__(self) -> Iterator[Point]:
        """The points."""
        return iter(self.points)

    @property
    def plain_peak(self) -> int:
        """Bytes that the unchanged step needs."""
        return self.points[0].plain_peak

    @property
    def name(self) -> str:
        """Of the step."""
        return self.points[0].plan.graph.name

    def save(self, folder: str | Path) -> list[Path]:
        """Write each plan into `folder`, as plan-0.json and so on; the files.

        Raises:
            CheckmateError: the folder is not there, or a file can't be written.
        """
        paths = [Path(folder) / f"plan-{number}.json" for number in range(len(self))]
        for path, point in zip(paths, self, strict=True):
            point.plan.save(path)
        return paths

    def plot(self, path: str | Path | None = None) -> Picture:
        """Draw extra time against the budget; a notebook shows what it returns.

        Args:
            path: where the picture is written, if anywhere: a .png, .pdf or .svg.

        Raises:
            CheckmateError: it can't be written.
        """
        from checkmate_tf.tradeoffs.picture import draw  # Matplotlib takes a second

        return draw(self.points, self.impossible, path)

    def __str__(self) -> str:
        """A table of 80 columns."""
        first = self.points[0].plan
        how = "forecast" if first.measured_baseline_peak is None else "measured"
        how = "compiled" if self[0].is_compiled else how
        extra = f"extra {first.cost_name}"
        # Steps of a few MiB differ in the second place.
        digits = 1 if self.plain_peak >= 100 * _MEBIBYTE else 2
        notes = dict.fromkeys(note for point in self for note in point.plan.notes)
        lines = [
            f"{self.name}: budget against {extra}, from the plain peak of",
            f"{format_bytes(self.plain_peak)} ({how}) to the least found",
            "",
            _ROW.format(
                "", "budget, MiB", "of plain", "peak, MiB", "", extra[:11], "at least", "again"
            ),
            *(_row(number, point, digits) for number, point in enumerate(self)),
            "",
            *(f"{name:<13}{text}" for name, text in self._legend()),
            *(fill(f"note: {note}", 79) for note in notes),
        ]
        return "\n".join(lines)

    def _legend(self) -> Iterator[tuple[str, str]]:
        """What the columns mean, in lines of 80 columns."""
        known = {point.how for point in self}
        if "compiled" in known:
            yield "compiled", "what is held, and what XLA's compiler says that the step adds"
        if "measured" in known:
            yield "measured", "the most that the steps of a trial run held"
        if "planned" in known:
            yield "planned", "a forecast: the most to expect in ten steps; none has run"
        if any(point.least_overhead is not None for point in self):
            yield "at least", "proved: no schedule of as many live bytes takes less"
        if any(point.holds_for_its_order for point in self):
            yield "*", "of those in the plan's own order of operations"
        yield "again", f"nodes computed again, of {len(self.points[0].plan.graph)}"
        if self.impossible is not None:
            yield "proved", f"no schedule exists below {format_bytes(self.impossible)}"
        if self.stopped:
            yield "stopped", f"by Ctrl-C: {len(self)} of {self.asked} points are known"
        yield "to take one", "rematerialize(step, plan=result[0].plan), or another number"


def _row(number: int, point: Point, digits: int) -> str:
    least = point.least_overhead
    proved = "–" if least is None else f"{100 * least:.1f} %"
    return _ROW.format(
        number,
        f"{point.budget / _MEBIBYTE:.{digits}f}",
        f"{100 * point.share:.0f} %",
        f"{point.peak / _MEBIBYTE:.{digits}f}",
        point.how,
        f"{100 * point.overhead:.1f} %",
        proved + "*" * point.holds_for_its_order,
        len(point.plan.schedule) - len(point.plan.graph),
    )
