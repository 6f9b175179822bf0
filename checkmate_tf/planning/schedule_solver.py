"""A solver's schedules of one graph, asked for again and again with other budgets."""

from __future__ import annotations

from typing import Any

from checkmate_tf.interrupts import Interrupts
from checkmate_tf.planning.settings import ENOUGH_PER_NODE, ENOUGH_SECONDS, LONGER
from checkmate_tf.progress import say_report
from solvers import ComputationGraph, Schedule, Solution, Status, find_solver, solve
from solvers.problem import Order


class ScheduleSolver:
    """Asks a solver for schedules of one graph; each search begins where the one before it ended.

    Attributes:
        time_limit: seconds that the shares are of.
        known: the schedules to begin with.
    """

    def __init__(
        self,
        graph: ComputationGraph,
        solver: str,
        order: Order,
        time_limit: float,
        interrupts: Interrupts,
    ) -> None:
        self.time_limit = time_limit
        self.known: list[Schedule] = []
        self._graph = graph
        self._solver = solver
        self._order = order
        self._interrupts = interrupts

    @property
    def takes_starts(self) -> bool:
        """Whether the solver can begin from a schedule that is known."""
        return "starts" in find_solver(self._solver).options

    def solved(
        self,
        activations: float | None,
        time_share: float,
        seed: int = 0,
        solver: str | None = None,
        enough_share: float = 1.0,
    ) -> Solution:
        """A solver's answer, in that share of the time limit.

        Args:
            activations: bytes for them by the memory model; None for the least that is found.
            time_share: of the time limit, at most: a schedule that is found soon is good enough.
            seed: for solvers that draw random numbers.
            solver: instead of the one that was asked for.
            enough_share: of the seconds in which a schedule is found that is good enough.
        """
        name, longest = solver or self._solver, time_share * self.time_limit
        if activations is None:
            return self._ask("min", name, longest, seed, {})
        budget = max(1, self._graph.fixed_bytes + int(activations))
        options = {"starts": self.known} if "starts" in find_solver(name).options else {}
        enough = ENOUGH_SECONDS + ENOUGH_PER_NODE * len(self._graph)
        soon = min(longest, enough_share * max(enough, LONGER * self.time_limit))
        solution = self._ask(budget, name, soon, seed, options)
        if solution.status is Status.TIMEOUT and soon < longest:
            # Near the least memory a search that is over soon may end above the budget.
            solution = self._ask(budget, name, longest, seed, options)
        return solution

    def _ask(
        self, budget: int | str, solver: str, seconds: float, seed: int, options: dict[str, Any]
    ) -> Solution:
        solution = solve(
            self._graph,
            budget,
            solver,
            seconds,
            order=self._order,
            seed=seed,
            on_progress=say_report(self._graph),
            **options,
        )
        self._interrupts.pass_on()
        if solution.schedule is not None:
            self.known = [solution.schedule]
        return solution
