"""What a solver is asked, and what it answers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from solvers.graph import ComputationGraph, Schedule, simulate
from solvers.graph.bounds import least_need, memory_bound, needs
from solvers.graph.order import Order as Order

PROVED = 1e-4
"""Relative gap at which a schedule counts as optimal, as in MILP solvers."""


class Status(str, Enum):
    """How a solver ended.

    `OPTIMAL` and `INFEASIBLE` are proofs; `FEASIBLE` is a schedule under budget without a
    proof; `TIMEOUT` means that nothing under budget was found and nothing was proved either,
    because time ran out or because the solver's rule has no more to try: the solution's `note`
    then says which.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    TIMEOUT = "timeout"

    def __str__(self) -> str:
        return self.value


class Enough(KeyboardInterrupt):
    """Raised by `Problem.on_progress`: the solver is to answer now, with what it has."""


@dataclass(frozen=True)
class Progress:
    """What a running solver reports.

    Attributes:
        seconds: since the question was asked.
        cost: of the best schedule so far, in the graph's unit; None while there is none.
        bound: the best lower bound so far, in the same unit; None while nothing is known.
        phase: what it does, in a few words.
    """

    seconds: float
    cost: float | None
    bound: float | None
    phase: str = ""


@dataclass(frozen=True)
class Problem:
    """One question to one solver.

    Attributes:
        graph: what has to be computed.
        budget: bytes at any moment, `graph.fixed_bytes` included.
        time_limit: seconds after which the solver answers with what it has.
        order: "fixed" keeps first computations in input order, "free" may change it.
        seed: of everything random.
        on_progress: called with every improvement, for progress bars; may raise `Enough` to stop
            the solver, which then answers with what it has, as it does after Ctrl-C.
        options: what only some solvers know, like `backend`.
    """

    graph: ComputationGraph
    budget: int
    time_limit: float = 60.0
    order: Order = "fixed"
    seed: int = 0
    on_progress: Callable[[Progress], None] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    @property
    def activation_budget(self) -> int:
        """Bytes left for what the schedule itself holds."""
        return self.budget - self.graph.fixed_bytes

    @property
    def seconds(self) -> float:
        """Seconds since the question was asked."""
        return time.monotonic() - self.started

    @property
    def deadline(self) -> float:
        """When the time limit is over, as `time.monotonic` counts."""
        return self.started + self.time_limit

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit, never negative."""
        return max(0.0, self.time_limit - self.seconds)

    @property
    def is_hopeless(self) -> bool:
        """Whether one node alone is over budget, with all that it reads."""
        return least_need(self.graph) > self.activation_budget

    def report(self, cost: float | None, bound: float | None, phase: str = "") -> None:
        """Tell `on_progress`, if anybody listens; an infinite cost says that there is none."""
        if self.on_progress is not None:
            cost = None if cost is None or math.isinf(cost) else cost
            self.on_progress(Progress(self.seconds, cost, bound, phase))


@dataclass(frozen=True)
class Solution:
    """A solver's answer, confirmed by the simulator.

    Attributes:
        solver: its name in the registry.
        status: see `Status`; of `budget`, in the order that was asked for.
        schedule: the best schedule found under budget, or None.
        cost: of the schedule, in the graph's unit.
        peak: of the schedule in bytes, `fixed_bytes` included.
        bound: no schedule under budget (in `bound_order`) costs less; None if nothing is known.
        bound_order: "fixed" if the bound holds for the order of first computations of
            `schedule` only, "free" if for every order.
        seconds: from question to answer.
        least_budget: the least budget in bytes that is known to be enough, where known.
        among: the schedules that `bound` and `OPTIMAL` hold for, where these are not all within the
            budget; a solver's program may be unable to say the others.
        budget: bytes that the solver was asked to keep.
        provable_budget: no budget of fewer bytes is enough in the order that was asked for,
            where nothing was found or the least was asked for.
        note: one sentence for the user, where there is something to say.
        statistics: figures of the solver's own.
    """

    solver: str
    status: Status
    schedule: Schedule | None
    cost: float | None
    peak: int | None
    bound: float | None
    seconds: float
    bound_order: Order = "fixed"
    among: str = ""
    budget: int | None = None
    least_budget: int | None = None
    provable_budget: int | None = None
    note: str = ""
    statistics: Mapping[str, Any] = field(default_factory=dict)


def answer(
    problem: Problem,
    solver: str,
    schedule: Schedule | None,
    *,
    bound: float | None = None,
    bound_order: Order = "fixed",
    among: str = "",
    proved: bool = False,
    infeasible: bool = False,
    least_budget: int | None = None,
    note: str = "",
    statistics: Mapping[str, Any] | None = None,
) -> Solution:
    """Turn what a solver found into a `Solution`, past the simulator.

    A schedule over budget is dropped here, and `least_budget` then says what it would need.
    A budget that is less than one node needs is infeasible, whichever solver was asked, and the
    note says so; and a bound of one pass holds for every schedule in every order.

    Args:
        proved: the solver proved that nothing cheaper exists.
        infeasible: the solver proved that no schedule is under budget.
    """
    cost: float | None = None
    peak: int | None = None
    if schedule is not None:
        simulation = simulate(problem.graph, schedule)
        least_budget = min(simulation.peak, least_budget or simulation.peak)
        if simulation.peak > problem.budget:
            schedule = None
        else:
            cost, peak = simulation.cost, simulation.peak
    if schedule is not None:
        status = Status.OPTIMAL if proved else Status.FEASIBLE
    else:
        if problem.is_hopeless:
            infeasible = True
            needed = needs(problem.graph)
            name, most = problem.graph.nodes[int(np.argmax(needed))].name, max(needed)
            alone = f"computing {name!r} alone takes {most + problem.graph.fixed_bytes} bytes"
            note = note or alone
        status = Status.INFEASIBLE if infeasible else Status.TIMEOUT
    if bound is not None and bound <= problem.graph.one_pass_cost:
        bound_order, among = "free", ""
    return Solution(
        solver=solver,
        status=status,
        schedule=schedule,
        cost=cost,
        peak=peak,
        bound=bound,
        bound_order=bound_order,
        among=among,
        budget=problem.budget,
        seconds=problem.seconds,
        least_budget=least_budget,
        provable_budget=None if schedule else memory_bound(problem.graph, problem.order),
        note=note,
        statistics=dict(statistics or {}),
    )
