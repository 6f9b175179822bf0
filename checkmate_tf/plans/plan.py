"""A plan: a schedule, the peak that is predicted for it, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from checkmate_tf.drawing import needs_matplotlib
from checkmate_tf.phases import in_words
from checkmate_tf.plans.documents import document_of, plain_fields, read, read_document
from checkmate_tf.plans.explanation import Explanation, explain
from checkmate_tf.plans.table import as_html, by_layers, cost_name
from solvers import CheckmateError, ComputationGraph, Schedule, Solution, format_bytes
from solvers.graph import input_order_peak
from solvers.graph.files import read_json, write_whole

if TYPE_CHECKING:
    from checkmate_tf.picture_files import Picture

_OF_THE_SOLVER = ("budget", "least_budget", "provable_budget")
"""What of a `Solution` the plan of a step has besides what each plan.json has."""

_DRAWN_AT_ONCE = 3000
"""Steps of a schedule: the picture of a longer one, which takes seconds, has to be asked for."""


@dataclass(frozen=True)
class Origin:
    """What a plan was made for, by which it is found again and judged.

    Attributes:
        content: of the step; equal for steps that do the same, in every process.
        workspaces: bytes that each operation needs only while it runs, as they were measured then.
        resident: bytes that the device held before the step.
        device: its full name.
        tensorflow: the version.
        batch_size: the first dimension of the step's first argument, where it has one.
        optimizer: the name of the optimizer, where the step's operations tell it.
        lines: of the user's program that made each node, "file:line"; "" where none did.
    """

    content: str
    workspaces: tuple[int, ...]
    resident: int
    device: str
    tensorflow: str
    batch_size: int | None = None
    optimizer: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """How one step is executed.

    Attributes:
        graph: the step's computation graph.
        schedule: node numbers in execution order.
        budget: bytes that were asked for, everything on the device included.
        predicted_peak: the most bytes that the device's allocator is expected to hold in ten
            steps, in all; a forecast, moved to where the trial run's steps lay if there was one.
        baseline_peak: the same for the step as it was traced, unchanged; a forecast.
        overhead: predicted extra time, or cost in the graph's unit, as a share of one pass, which
            is the sum of all costs; 0.05 is 5 %.
        solution: the solver's answer, with its bound.
        measured_peak: the most bytes that the trial run saw; None where there was none.
        first_peak: bytes that a step held at most while kernels were chosen, as in the first step
            of a process on a GPU; None where that was not seen.
        notes: what else the user should know.
        measured_baseline_peak: the most bytes that the unchanged step held when it ran for trial,
            from which a share counts; None where it has not run.
        origin: what the plan was made for; None of one that `checkmate-tf solve` wrote.
        seconds: of waiting for the plan, by what was done: trace, extract, solve, trials
            (or compile, where XLA compiles the step), emit.
        compiled_peak: bytes that the step takes by this plan once XLA has compiled it, as the
            compiler says; None where it is not compiled.
        compiled_baseline_peak: the same for the step as it was traced.
        compilations: of plans, until this one was found.
        why_forecast: why no trial run has measured the plan, in a few words; "" where one has.
        plain_seconds: of a plain step, the median of some; None where none was timed.
        step_seconds: of a step by this plan, the median of some; None where none was timed.
        timed: how they were, "in turn" with plain ones or "one after the other"; "" where not.
        at_once: operations that run at once at most.
        budget_from: how the budget came about, in lines, where it is what the device can hold.

    Example:
        >>> import tempfile
        >>> from solvers import solve
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> graph = unit_chain(8)
        >>> solution = solve(graph, 6, "cutting_planes")
        >>> plan = Plan(graph, solution.schedule, 6, 6, 10, 4 / 17, solution)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plan.save(f"{folder}/plan.json")
        ...     Plan.load(f"{folder}/plan.json").schedule == plan.schedule
        True
    """

    graph: ComputationGraph
    schedule: Schedule
    budget: int
    predicted_peak: int
    baseline_peak: int
    overhead: float
    solution: Solution
    measured_peak: int | None = None
    notes: tuple[str, ...] = ()
    measured_baseline_peak: int | None = None
    origin: Origin | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    compiled_peak: int | None = None
    compiled_baseline_peak: int | None = None
    compilations: int = 0
    why_forecast: str = ""
    first_peak: int | None = None
    plain_seconds: float | None = None
    step_seconds: float | None = None
    timed: str = ""
    at_once: int = 1
    budget_from: tuple[str, ...] = ()

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON, whole or not at all; see `checkmate_tf.plans.documents`.

        Raises:
            CheckmateError: the file can't be written.
        """
        write_whole(path, json.dumps(self.to_json()) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan that `save`, `checkmate-tf plan` or `checkmate-tf solve` wrote.

        Raises:
            CheckmateError: the file can't be read, is no plan, or its parts don't belong together.
        """
        document = read_json(path)
        try:
            return cls.from_json(document)
        except CheckmateError as error:
            raise CheckmateError(error.code, f"{path}: {error}") from error

    def plot(self, path: str | Path | None = None) -> Picture:
        """Draw the plan: memory over the step by layer, and the schedule as the paper's matrix R.

        The budget and the peaks are marked; memory is in MiB. Of the matrix, row t is stage t,
        which ends with the first computation of node t; what a stage computes again is black.

        Args:
            path: of a file to write it to, whole or not at all; its suffix says the format: .png,
                .pdf, .svg.

        Returns:
            a `matplotlib.figure.Figure`, which no window holds and a notebook shows.

        Raises:
            CheckmateError: matplotlib is not installed, or the file can't be written.

        Example:
            >>> from solvers import solve
            >>> from solvers.graph.layer_graphs import unit_chain
            >>> solution = solve(unit_chain(8), 6, "cutting_planes")
            >>> plan = Plan(unit_chain(8), solution.schedule, 6, 6, 10, 4 / 17, solution)
            >>> plan.plot().axes[1].get_ylabel()
            'stage'
        """
        with needs_matplotlib("a plan"):
            from checkmate_tf.picture_files import write_picture
            from checkmate_tf.plans.pictures import draw_plan
        peaks = {"measured": self.measured_peak, "compiled": self.compiled_peak}
        known = {how: peak for how, peak in peaks.items() if peak is not None}
        figure = draw_plan(self.graph, self.schedule, self.budget, known)
        if path is not None:
            write_picture(figure, path)
        return figure

    def explain(self, layer: str) -> Explanation:
        """Why a layer is kept or recomputed: for whom, when, at what cost, made by which line.

        Args:
            layer: its name, as `print(plan)` lists it, or that of a node.

        Raises:
            CheckmateError: there is no such layer.

        Example:
            >>> from solvers import solve
            >>> from solvers.graph.layer_graphs import unit_chain
            >>> solution = solve(unit_chain(8), 6, "cutting_planes")
            >>> plan = Plan(unit_chain(8), solution.schedule, 6, 6, 10, 4 / 17, solution)
            >>> plan.explain("v7").nodes[0].computations[0].readers
            ('v8', 'v9')
        """
        lines = () if self.origin is None else self.origin.lines
        return explain(self.graph, self.schedule, layer, lines)

    def to_json(self, with_graph: bool = True) -> dict[str, Any]:
        """The plan as an object that JSON can hold, as `save` writes it.

        Args:
            with_graph: put the graph in; without it only who has the graph can read the plan.
        """
        step = {
            **{name: getattr(self, name) for name in plain_fields(Plan) if name != "budget"},
            "notes": list(self.notes),
            "budget_from": list(self.budget_from),
            "seconds": dict(self.seconds),
            "solution": {name: getattr(self.solution, name) for name in _OF_THE_SOLVER},
            "origin": self.origin and _origin_document(self.origin),
        }
        return {**document_of(self.graph, self.solution, self.budget, with_graph), "step": step}

    @classmethod
    def from_json(cls, document: Any, graph: ComputationGraph | None = None) -> Plan:
        """Read what `to_json` made; `graph` is that of the plan where the object has none.

        Raises:
            CheckmateError: it is no plan, or its parts don't belong together.
        """
        graph, solution, simulation = read_document(document, graph)
        assert solution.schedule is not None
        overhead = simulation.cost / graph.one_pass_cost - 1 if graph.one_pass_cost else 0.0
        budget = read(document, "budget", int)
        if document.get("step") is None:
            peaks = simulation.peak, input_order_peak(graph)
            return cls(graph, solution.schedule, budget, *peaks, overhead, solution)
        step = read(document, "step", dict)
        asked, seconds = read(step, "solution", dict), read(step, "seconds", dict)
        sizes = {name: read(asked, name, (int, type(None))) for name in _OF_THE_SOLVER}
        # Older files don't say all of it.
        step = {"why_forecast": "", "timed": "", "at_once": 1, **step, "budget": budget}
        return cls(
            graph=graph,
            schedule=solution.schedule,
            overhead=overhead,
            solution=replace(solution, **sizes),
            notes=tuple(map(str, read(step, "notes", list))),
            budget_from=tuple(map(str, step.get("budget_from", ()))),
            origin=_origin(step.get("origin")),
            seconds={name: read(seconds, name, (int, float)) for name in seconds},
            **{name: read(step, name, kinds) for name, kinds in plain_fields(cls).items()},
        )

    @property
    def peak(self) -> int:
        """Bytes that the step takes by this plan: as compiled or measured, or else predicted."""
        return self.compiled_peak or self.measured_peak or self.predicted_peak

    @property
    def extra_seconds(self) -> float | None:
        """Seconds that recomputation is predicted to take in a step; None if costs are no time."""
        graph = self.graph
        return self.overhead * graph.one_pass_cost if graph.cost_unit == "s" else None

    @property
    def planned_overhead(self) -> float:
        """Predicted extra time as a share of a plain step, where that was timed; else `overhead`.

        One after the other they take less time than the sum of their costs, each of which was
        measured alone, with its start. Where several run at once, so do those that are computed
        again: there it is `overhead`.
        """
        if self.extra_seconds is None or not self.plain_seconds or self.at_once > 1:
            return self.overhead
        return self.extra_seconds / self.plain_seconds

    @property
    def measured_overhead(self) -> float | None:
        """Extra time of a step by this plan as a share of a plain step; None if not measured.

        Below 0 where it was faster.
        """
        if self.step_seconds is None or not self.plain_seconds:
            return None
        return self.step_seconds / self.plain_seconds - 1

    @property
    def cost_name(self) -> str:
        """What the cost model counts; only seconds are time."""
        return cost_name(self.graph)

    def _asked(self) -> str:
        """The solver counts live values; what allocators waste is no part of its budget."""
        size = self.solution.budget
        return "" if size is None else f"asked for {format_bytes(size)} of live values"

    def _distance(self) -> str:
        solution = self.solution
        if not solution.bound or solution.cost is None:
            return "how far above the least for that is not known"
        percent = 100 * max(0.0, solution.cost / solution.bound - 1)
        order = ", in this order" if solution.bound_order == "fixed" else ""
        return f"at most {percent:.2f} % above the least for that{order}"

    def _measured_times(self) -> list[tuple[str, str]]:
        if self.measured_overhead is None:
            return []
        plain, ours = (1000 * (each or 0.0) for each in (self.plain_seconds, self.step_seconds))
        return [
            (
                "" if self.cost_name == "time" else "extra time",
                f"{100 * self.measured_overhead:.1f} % (measured {self.timed})",
            ),
            ("time of a step", f"{plain:.1f} ms plain, {ours:.1f} ms by the plan"),
        ]

    def _facts(self) -> list[tuple[str, str]]:
        """What is known of the plan, each with its name or, below another such, without one."""
        recomputations = len(self.schedule) - len(self.graph)
        most, first = self.measured_peak or self.predicted_peak, self.first_peak
        first = first if first is not None and first > most else None
        total, _, phases = in_words(self.seconds).partition(": ")
        rows = [
            ("budget", format_bytes(self.budget)),
            *(("", line) for line in self.budget_from),
            ("peak, unchanged step", _known(self.baseline_peak, "predicted")),
            ("", _known(self.measured_baseline_peak, "measured")),
            ("", _known(self.compiled_baseline_peak, "compiled")),
            ("peak, this plan", _known(self.predicted_peak, "predicted")),
            ("", _known(self.measured_peak, "measured")),
            ("", _known(self.compiled_peak, "compiled")),
            ("", _known(first, "measured while kernels were chosen")),
            ("variables and inputs", format_bytes(self.graph.fixed_bytes)),
            ("recomputed", f"{recomputations} of {len(self.graph)} nodes"),
            (f"extra {self.cost_name}", f"{100 * self.planned_overhead:.1f} % (predicted)"),
            *self._measured_times(),
            ("solver", f"{self.solution.solver}, {self.solution.seconds:.1f} s"),
            ("", self._asked()),
            ("", self._distance()),
            ("planned in", total),
            ("", phases),
        ]
        return [(name, value) for name, value in rows if value]

    def __repr__(self) -> str:
        """Short, as its graph is not; `print` tells more."""
        extra = f"{100 * self.planned_overhead:.1f} % more {self.cost_name}"
        sizes = f"{format_bytes(self.peak)} of {format_bytes(self.budget)}"
        return f"<Plan of {self.graph.name!r}: {sizes}, {extra}>"

    def __str__(self) -> str:
        lines = [f"{name:<22}{value}" for name, value in self._facts()]
        notes = [fill(f"note: {note}", 79) for note in self.notes]
        return "\n".join([*lines, *notes, "", *by_layers(self.graph, self.schedule)])

    def _repr_html_(self) -> str:
        """What a notebook shows: the text as tables, and the picture where it is drawn at once."""
        picture = None
        if len(self.schedule) <= _DRAWN_AT_ONCE:
            with suppress(CheckmateError):  # without matplotlib the tables do
                picture = self.plot()
        return as_html(self._facts(), self.notes, self.graph, self.schedule, picture)


def _origin_document(origin: Origin) -> dict[str, Any]:
    place: dict[str, int] = {}  # of each line, for many nodes have the same
    by_node = [place.setdefault(each, len(place)) for each in origin.lines]
    return {**asdict(origin), "lines": {"of": list(place), "by_node": by_node}}


def _origin(document: Any) -> Origin | None:
    if document is None:
        return None
    if not isinstance(document, dict):
        raise CheckmateError("field-invalid", f"origin is {document!r}; an object is expected")
    workspaces = read(document, "workspaces", (list, tuple))
    if not all(type(each) is int and each >= 0 for each in workspaces):
        raise CheckmateError("field-invalid", "origin: workspaces are not all sizes in bytes")
    # Older files don't say all of it.
    document = {"batch_size": None, "optimizer": "", "lines": {"of": [], "by_node": []}, **document}
    lines = read(document, "lines", dict)
    places, of = read(lines, "by_node", list), read(lines, "of", list)
    if not all(type(each) is int and 0 <= each < len(of) for each in places):
        raise CheckmateError("field-invalid", "origin: lines are not those of nodes")
    known = {name: read(document, name, kinds) for name, kinds in plain_fields(Origin).items()}
    told = tuple(str(of[each]) for each in places)
    return Origin(workspaces=tuple(workspaces), lines=told, **known)


def _known(peak: int | None, how: str) -> str:
    return "" if peak is None else f"{format_bytes(peak)} ({how})"


class PlanToCome:
    """Stands where a plan will be, and says when; it is false, as None is, until there is one.

    What wraps a step, as `tf.function` does, copies its attributes. So this stands for the plan
    afterwards, in the copies that were made before.
    """

    _WHEN = "no plan yet: it is made when the step is called for the first time"
    _has_come = False
    _plan: Plan | None = None

    def has_come(self, plan: Plan | None) -> None:
        """Stand for `plan` from now on, or for None: the step runs without one."""
        self._has_come, self._plan = True, plan

    def __bool__(self) -> bool:
        return bool(self._plan)

    def __repr__(self) -> str:
        return repr(self._plan) if self._has_come else self._WHEN

    def __str__(self) -> str:
        return str(self._plan) if self._has_come else self._WHEN

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # as `copy` and others ask for
            raise AttributeError(name)
        if self._has_come:
            return getattr(self._plan, name)
        raise CheckmateError("plan-not-made-yet", f"there is {self._WHEN}, and {name!r} with it")
