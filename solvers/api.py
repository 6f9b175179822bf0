"""The table of solvers, `register` to add one of your own, and `solve`, which asks one."""

from __future__ import annotations

import difflib
import importlib
import sys
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, cast, get_args

from solvers.confirmation import confirmed
from solvers.errors import AnswerError, GraphError, ScheduleError, SolverError
from solvers.graph import ComputationGraph, input_order_peak
from solvers.graph.budget import Budget, parse_budget
from solvers.problem import Order, Problem, Progress, Solution

Solver = Callable[[Problem], Solution]

Kind = Literal["heuristic", "dynamic program", "exact", "bound", "search", "portfolio"]
"""What a solver promises: heuristics and dynamic programs try all they know and end, "bound" gives
no schedule, and the others work until they have a proof or the time limit is over."""

ALL = "all"
"""In place of a name, every solver; see `solvers.comparison.cases`."""


SEEDS = 2**31
"""How many seeds of random numbers there are: backends take no more."""


@dataclass(frozen=True)
class SolverEntry:
    """A line of the table that `checkmate-tf solvers` prints.

    Attributes:
        name: what a user types.
        kind: see `Kind`.
        valid_on: the graphs its rule is defined for.
        needs: packages beyond the basic ones.
        options: what it knows beyond the arguments of `solve`; its function says what they mean.
        summary: what it does, with its source.
        location: "module:function", imported when first asked for.
        function: the solver itself, where it was registered.
    """

    name: str
    kind: Kind
    valid_on: str
    needs: str
    options: tuple[str, ...]
    summary: str
    location: str
    function: Solver | None = None

    def load(self) -> Solver:
        """The solver's function, imported if need be."""
        if self.function is not None:
            return self.function
        module, _, function = self.location.partition(":")
        return cast(Solver, getattr(importlib.import_module(module), function))

    def check_options(self, options: Collection[str]) -> None:
        """Refuse what the solver would ignore, such as a misspelt name.

        Raises:
            SolverError: it has no such option; the message lists those that it has.
        """
        for name in options:
            if name not in self.options:
                raise SolverError(
                    "option-unknown",
                    f"solver {self.name!r} has no option {_meant(name, self.options)}; its "
                    f"options: {', '.join(self.options) or 'none'}",
                )


_PROGRAM = "backend fallback gap threads"  # of `solvers.programs.optimize.optimize`
_PLANS = "accounting"  # of `solvers.checkpointing.cheapest.cheapest`

_TABLE = (
    # name, kind, valid on, needs, options, summary, module:function
    ("auto", "portfolio", "any", "numba, highspy", "backend starts", "the best found in the time limit; its search computes a node ≤ 20 times", "portfolio.solver:solve_auto"),
    ("cutting_planes", "exact", "any", "highspy", "backend", "exact for a fixed order; adds memory constraints where needed", "cutting_planes.fixed_order:solve_cutting_planes"),
    ("search", "search", "any", "numba", "starts", "local search, fixed or free order; computes a node at most 20 times", "local_search.solver:solve_search"),
    ("milp", "exact", "any", "cvxpy or gurobi", _PROGRAM, "frontier-advancing MILP (Jain et al., eq. 9)", "checkmate.milp:solve_milp"),
    ("milp_unpartitioned", "exact", "any, small", "cvxpy or gurobi", _PROGRAM, "MILP without stages fixed (eq. 1)", "checkmate.milp:solve_unpartitioned"),
    ("lp_rounding", "heuristic", "any", "cvxpy", f"{_PROGRAM} tight rounding epsilons thresholds repair", "two-phase LP rounding (section 5)", "checkmate.rounding:solve_lp_rounding"),
    ("lp_bound", "bound", "any", "cvxpy", f"{_PROGRAM} tight", "lower bound: LP relaxation of eq. 9", "checkmate.lp_relaxation:solve_lp_bound"),
    ("checkpoint_all", "heuristic", "any", "", _PLANS, "keep every value", "checkpointing.heuristics:solve_checkpoint_all"),
    ("checkpoint_last", "heuristic", "any", "", _PLANS, "keep only the last value", "checkpointing.heuristics:solve_checkpoint_last"),
    ("chen_sqrt", "heuristic", "chains", "", _PLANS, "every √L-th layer (Chen et al. 2016)", "checkpointing.heuristics:solve_chen_sqrt"),
    ("chen_greedy", "heuristic", "chains", "", _PLANS, "by accumulated memory (Chen et al. 2016)", "checkpointing.heuristics:solve_chen_greedy"),
    ("ap_sqrt", "heuristic", "cut vertices", "", _PLANS, "√n over articulation points", "checkpointing.heuristics:solve_ap_sqrt"),
    ("ap_greedy", "heuristic", "cut vertices", "", _PLANS, "greedy over articulation points", "checkpointing.heuristics:solve_ap_greedy"),
    ("linearized_sqrt", "heuristic", "any", "", _PLANS, "√n over all forward nodes", "checkpointing.heuristics:solve_linearized_sqrt"),
    ("linearized_greedy", "heuristic", "any", "", _PLANS, "greedy over all forward nodes", "checkpointing.heuristics:solve_linearized_greedy"),
    ("feng_huang", "heuristic", "any", "", _PLANS, "least memory by independent segments (Feng, Huang 2021)", "checkpointing.feng_huang:solve_feng_huang"),
    ("griewank", "heuristic", "chains", "", _PLANS, "binomial checkpointing (revolve, 2000)", "checkpointing.griewank:solve_griewank"),
    ("segment_sum", "dynamic program", "chains", "", "", "least peak, Chen's objective (Hong et al.)", "checkpointing.segments:solve_segment_sum"),
    ("segment_traced", "dynamic program", "chains", "", "", "least peak, traced objective (Hong et al.)", "checkpointing.segments:solve_segment_traced"),
    ("segment_revised", "dynamic program", "chains", "", "", "least peak, revised objective, O(n) (Hong et al.)", "checkpointing.segments:solve_segment_revised"),
)  # fmt: skip

SOLVERS: dict[str, SolverEntry] = {
    row[0]: SolverEntry(
        row[0], cast(Kind, row[1]), *row[2:4], tuple(row[4].split()), row[5], f"solvers.{row[6]}"
    )
    for row in _TABLE
}


def _meant(name: str, known: Iterable[str]) -> str:
    """A wrong name as an error calls it, and the right one that is close to it."""
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f"{name!r} (did you mean {close[0]!r}?)" if close else repr(name)


def register(
    name: str,
    *,
    kind: Kind = "heuristic",
    valid_on: str = "any",
    needs: str = "",
    options: Iterable[str] = (),
    summary: str = "",
) -> Callable[[Solver], Solver]:
    """Add a solver of your own: decorates a function from a `Problem` to a `Solution`.

    From then on `solve`, `solvers.comparison` and the commands of this process know it under
    `name`: `checkmate_tf.cli.main.main(["compare", …])` lists and runs it. `SOLVERS.pop(name)`
    takes it away again. Its answers pass `solvers.confirmation` like those of every solver.

    The function finds the question in `problem.graph` and `problem.budget`, in bytes. It should
    answer within `problem.seconds_left`; nothing stops it. `solvers.answer` makes a `Solution` of
    what it found.

    Args:
        kind: what it promises; see `Kind`.
        valid_on: the graphs that it is defined for, in a word or two. On others it raises a
            `SolverError` that says why.
        needs: packages beyond the basic ones.
        options: what it reads of `problem.options`; `solve` refuses others.
        summary: what it does, in a line; the first line of the docstring if left out.

    Raises:
        SolverError: there is a solver of that name, or no such kind.

    Example:
        >>> import solvers
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> @solvers.register("keep_all", valid_on="any", summary="never recomputes")
        ... def keep_all(problem):
        ...     once = solvers.Schedule(range(len(problem.graph)))
        ...     return solvers.answer(problem, "keep_all", once, bound=problem.graph.one_pass_cost)
        >>> solvers.solve(unit_chain(8), "100%", "keep_all").cost
        17.0
        >>> solvers.solve(unit_chain(8), "50%", "keep_all").least_budget  # it needs all of it
        10
        >>> SOLVERS.pop("keep_all").summary
        'never recomputes'
    """
    if not isinstance(name, str) or not name.strip() or name == ALL:
        raise SolverError("solver-name-invalid", f"{name!r} is no name for a solver")
    if kind not in get_args(Kind):
        raise SolverError(
            "solver-kind-unknown",
            f"no kind {kind!r} of solver; there are: {', '.join(get_args(Kind))}",
        )

    def add(function: Solver) -> Solver:
        if name in SOLVERS:
            raise SolverError(
                "solver-name-taken",
                f"there is a solver {name!r} already, {SOLVERS[name].location}; choose another name",
            )
        if not callable(function):
            raise SolverError(
                "solver-not-callable",
                f"solver {name!r} is no function but a {type(function).__name__}",
            )
        where = f"{function.__module__}:{getattr(function, '__qualname__', name)}"
        doc = (function.__doc__ or "").strip().partition("\n")[0]
        names = tuple(options)
        SOLVERS[name] = SolverEntry(
            name, kind, valid_on, needs, names, summary or doc, where, function
        )
        return function

    return add


def find_solver(name: str | SolverEntry) -> SolverEntry:
    """The solver called `name`; one that was found before is its own answer.

    Raises:
        SolverError: there is none; the message lists those that exist.
    """
    if isinstance(name, SolverEntry):
        return name
    if name in SOLVERS:
        return SOLVERS[name]
    raise SolverError(
        "solver-unknown", f"no solver {_meant(name, SOLVERS)}; there are: {', '.join(SOLVERS)}"
    )


def solve(
    graph: ComputationGraph,
    budget: int | float | str | Budget,
    solver: str | SolverEntry = "auto",
    time_limit: float = 60.0,
    *,
    order: Order = "fixed",
    seed: int = 0,
    on_progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Solution:
    """Find a schedule of `graph` within `budget`.

    Args:
        budget: bytes, `fixed_bytes` included; a share, of the input-order peak without
            `fixed_bytes`; or "min", the least that a search finds. See `solvers.graph.budget`.
        solver: a name from `checkmate-tf solvers`, or what `find_solver` returns for one.
        time_limit: seconds.
        order: "free" lets the solver change the order of first computations.
        options: what only some solvers know, like `backend="gurobi"`.

    Raises:
        BudgetError: `budget` is not a size.
        GraphError: the graph has no nodes, or its costs are too large.
        SolverError: no such solver, it has no such option, or it is not valid on this graph.
        AnswerError: the solver's answer is not true; see `solvers.confirmation`.

    Example:
        >>> from solvers import ComputationGraph, Node, solve
        >>> a, b = Node("a", 1, 4), Node("b", 1, 4, dependencies=(0,))
        >>> solve(ComputationGraph((a, b)), budget=8, solver="checkpoint_all").cost
        2.0
    """
    entry = find_solver(solver)
    if not isinstance(time_limit, Real) or not time_limit > 0:
        raise SolverError(
            "argument-invalid", f"time limit {time_limit!r} is not a positive number of seconds"
        )
    if not isinstance(seed, Integral) or not 0 <= seed < SEEDS:
        raise SolverError(
            "argument-invalid", f"seed {seed!r} is not a whole number from 0 to {SEEDS - 1}"
        )
    if order not in ("fixed", "free"):
        raise SolverError("argument-invalid", f"order {order!r} is neither 'fixed' nor 'free'")
    entry.check_options(options)
    wanted = parse_budget(budget)
    _check_graph(graph)
    size = 0 if wanted.least else wanted.in_bytes(graph.fixed_bytes, input_order_peak(graph))
    problem = Problem(graph, size, time_limit, order, seed, on_progress, options)
    return _solve_least(entry, problem) if wanted.least else _ask(entry, problem)


def _check_graph(graph: ComputationGraph) -> None:
    """Refuse what no solver can work with."""
    if not len(graph):
        raise GraphError("graph-empty", f"{graph.name}: the graph has no nodes")
    # A schedule may compute each node once for every other one.
    most = sys.float_info.max / len(graph)
    if graph.one_pass_cost > most:
        raise GraphError(
            "costs-too-large",
            f"{graph.name}: the costs add up to more than {most:g}; give them in a larger unit",
        )


def _ask(entry: SolverEntry, problem: Problem) -> Solution:
    """What the solver answers, confirmed."""
    try:
        given = entry.load()(problem)
    except ScheduleError as error:
        raise AnswerError(
            error.code, f"solver {entry.name!r} on {problem.graph.name!r}: {error}"
        ) from error
    return confirmed(problem, entry.name, given)


def _solve_least(entry: SolverEntry, asked: Problem) -> Solution:
    """The cheapest schedule within the least memory that half of the time finds."""
    if "starts" not in entry.options:
        able = ", ".join(name for name, each in SOLVERS.items() if "starts" in each.options)
        raise SolverError(
            "solver-without-starts",
            f"budget 'min' is for the solvers that can begin with a schedule: {able}; "
            f"{entry.name!r} cannot",
        )
    # It imports numba, which takes a second.
    from solvers.local_search.least_memory import find_least_memory

    started, limit = time.monotonic(), asked.time_limit
    least = find_least_memory(asked.graph, asked.order, limit / 2, asked.seed)
    now = time.monotonic()
    problem = replace(
        asked,
        budget=least.peak,
        time_limit=max(limit - (now - started), limit / 4),
        options={**asked.options, "starts": (*asked.options.get("starts", ()), least.schedule)},
        started=now,
    )
    solution = _ask(entry, problem)
    return replace(
        solution,
        provable_budget=least.bound,
        # What was found within the least may happen to need less still.
        least_budget=min(least.peak, solution.least_budget or least.peak),
        seconds=time.monotonic() - started,
    )
