"""Runs several solvers on several graphs under several budgets; one row for each run."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import joblib

from solvers.api import ALL, SOLVERS, SolverEntry, find_solver, solve
from solvers.errors import AnswerError, SolverError
from solvers.graph import ComputationGraph, input_order_peak
from solvers.graph.budget import parse_budget
from solvers.graph.files import write_whole
from solvers.problem import Order, Solution, Status
from solvers.programs.backends import check_name

_PACKAGES = ("checkmate_tf", "numpy", "scipy", "cvxpy", "highspy", "gurobipy", "numba")
_RULES = ("heuristic", "dynamic program")
"""Kinds of solvers that try all they know and end."""

FAILED = "failed"
"""The status of a run that ended in an error which is none of `solvers.errors`; the note has it."""

_SMALL = 20
"""Nodes up to which the solvers for small graphs take part where "all" are asked for."""


@dataclass(frozen=True)
class Case:
    """One run of the comparison: a solver on a graph under a budget, and all that fixes it."""

    graph: ComputationGraph
    budget: str
    solver: str
    time_limit: float = 60.0
    order: Order = "fixed"
    seed: int = 0
    backend: str = ""


@dataclass(frozen=True)
class Row:
    """The outcome of a `Case`; bytes and costs are in the graph's own units.

    Attributes:
        budget: as it was asked for.
        budget_bytes: the same in bytes.
        budget_share: the same as a share of the input-order peak, both without `fixed_bytes`.
        status: of `solvers.Status`, "optimal in form" where that is among some schedules only,
            which the note then names, "bound" where the solver was asked for no more, "over
            budget" where all plans of a rule are, "not valid" where it refuses the graph,
            "wrong answer" where its answer is not true, or "failed" where it ends in an error.
        overhead, bound_overhead: cost and bound in percent of one pass, less the pass.
        gap: (cost − bound) in percent of cost.
        versions: of Python and of the packages that decide the outcome.
    """

    graph: str
    nodes: int
    edges: int
    budget: str
    budget_bytes: int
    budget_share: float
    solver: str
    status: str
    cost: float | None = None
    overhead: float | None = None
    peak: int | None = None
    bound: float | None = None
    bound_overhead: float | None = None
    bound_order: str = ""
    gap: float | None = None
    least_budget: int | None = None
    seconds: float = 0.0
    time_limit: float = 60.0
    order: str = "fixed"
    seed: int = 0
    backend: str = ""
    versions: str = ""
    note: str = ""


def cases(
    graphs: Iterable[ComputationGraph],
    budgets: Sequence[str],
    solvers: Sequence[str],
    time_limit: float = 60.0,
    order: Order = "fixed",
    seed: int = 0,
    backend: str = "",
) -> list[Case]:
    """Every combination; the solver "all" stands for all that suit the size of the graph.

    Raises:
        SolverError, BudgetError: a name or a budget means nothing.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> [case.solver for case in cases([unit_chain(2)], ["90%"], ["milp", "griewank"])]
        ['milp', 'griewank']
    """
    for budget in budgets:
        parse_budget(budget).in_bytes(fixed_bytes=0, peak=1)
    for name in solvers:
        if name != ALL:
            find_solver(name)
    if backend:
        check_name(backend)
    return [
        Case(graph, budget, name, time_limit, order, seed, backend)
        for graph in graphs
        for budget in budgets
        for name in (_all_solvers(graph) if ALL in solvers else solvers)
    ]


def run_case(case: Case, entry: SolverEntry | None = None) -> Row:
    """Run one case; a solver that refuses the graph, or fails, is a row that says why.

    Args:
        entry: the solver that the case names, where this process may not know it.

    Raises:
        SolverError, BudgetError: the case's solver or budget means nothing.
    """
    entry = entry or find_solver(case.solver)
    graph = case.graph
    peak = input_order_peak(graph)
    budget_bytes = parse_budget(case.budget).in_bytes(graph.fixed_bytes, peak)
    row = Row(
        graph=graph.name,
        nodes=len(graph),
        edges=len(graph.edges),
        budget=case.budget,
        budget_bytes=budget_bytes,
        budget_share=(budget_bytes - graph.fixed_bytes) / max(1, peak - graph.fixed_bytes),
        solver=case.solver,
        status="not valid",
        time_limit=case.time_limit,
        order=case.order,
        seed=case.seed,
        backend=case.backend,
        versions=versions(),
    )
    chooses = case.backend and "cvxpy" in entry.needs
    options: dict[str, Any] = {"backend": case.backend} if chooses else {}
    try:
        solution = solve(
            graph,
            case.budget,
            entry,
            case.time_limit,
            order=case.order,
            seed=case.seed,
            **options,
        )
    except AnswerError as error:
        return replace(row, status="wrong answer", note=str(error))
    except SolverError as error:
        return replace(row, note=str(error))
    except SystemError:  # as compiled code ends that Ctrl-C has interrupted
        raise
    except Exception as error:  # one run that fails must not cost the others their rows
        return replace(row, status=FAILED, note=f"{type(error).__name__}: {error}")
    gap = None
    if solution.cost and solution.bound is not None:
        gap = 100 * max(0.0, solution.cost - solution.bound) / solution.cost
    scope = f"bound among {solution.among}" if solution.among else ""
    return replace(
        row,
        status=status_text(solution, entry),
        cost=solution.cost,
        overhead=overhead(graph, solution.cost),
        peak=solution.peak,
        bound=solution.bound,
        bound_overhead=overhead(graph, solution.bound),
        bound_order=solution.bound_order if solution.bound is not None else "",
        gap=gap,
        least_budget=solution.least_budget,
        seconds=solution.seconds,
        note="; ".join(filter(None, (scope, solution.note))),
    )


def status_text(solution: Solution, entry: SolverEntry | None = None) -> str:
    """The status as a person should read it; `entry` is of the solver, if it is at hand.

    A bound is all that some solvers are asked for; a rule whose plans are all over budget has not
    run out of time; and what is optimal among some schedules only is optimal in that form.
    """
    kind = (entry or find_solver(solution.solver)).kind
    if solution.schedule is None and kind == "bound" and solution.bound is not None:
        return "bound"
    if solution.status is Status.TIMEOUT and kind in _RULES and solution.least_budget is not None:
        return "over budget"
    if solution.status is Status.OPTIMAL and solution.among:
        return "optimal in form"
    return str(solution.status)


def overhead(graph: ComputationGraph, cost: float | None) -> float | None:
    """What `cost` is above one pass, in percent of one pass."""
    if cost is None or not graph.one_pass_cost:
        return None
    return 100 * (cost / graph.one_pass_cost - 1)


def run_cases(
    to_run: Sequence[Case],
    jobs: int = 1,
    on_row: Callable[[Row], None] = lambda _: None,
) -> list[Row]:
    """Run all cases, `jobs` at a time, through joblib; rows come back in the order of the cases.

    Whatever backend `joblib.parallel_config` names does the work, so Dask or Ray can spread it
    over machines. `KeyboardInterrupt`, also from `on_row`, ends the run and keeps its rows.
    A solver that only this process has registered goes along with its cases. With Ray, `on_row` is
    called when all cases are done.
    """
    rows: dict[int, Row] = {}
    parallel = _parallel(jobs)
    try:
        results: Iterator[tuple[int, Row]] = parallel(
            joblib.delayed(_run_numbered)(number, case, find_solver(case.solver))
            for number, case in enumerate(to_run)
        )
        for number, row in results:
            rows[number] = row
            on_row(row)
    except KeyboardInterrupt:
        pass
    return [rows[number] for number in sorted(rows)]


def _parallel(jobs: int) -> joblib.Parallel:
    """What hands on every row as it comes, where joblib's backend can do that; Ray's can't."""
    try:
        return joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
    except ValueError:
        return joblib.Parallel(n_jobs=jobs)


def write_csv(rows: Iterable[Row], path: str | Path) -> None:
    """Write `rows` with a header, whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [each.name for each in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    # Half a surrogate pair, which a name from JSON may hold, is no sign of UTF-8.
    write_whole(path, text.getvalue().encode(errors="replace"))


@cache
def versions() -> str:
    """Versions of Python and of the installed packages that decide an outcome."""
    found = [f"python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "; ".join(found)


def _run_numbered(number: int, case: Case, entry: SolverEntry) -> tuple[int, Row]:
    return number, run_case(case, entry)


def _all_solvers(graph: ComputationGraph) -> list[str]:
    return [
        name
        for name, entry in SOLVERS.items()
        if len(graph) <= _SMALL or "small" not in entry.valid_on
    ]
