"""Plans, forecasts and trial runs until a plan keeps the budget on the device.

A solver counts live bytes; the allocator holds more. Each plan is forecast first, which takes a
second, and the solver's part of the budget is corrected by what came out. A plan whose forecast
is within the budget gets a trial run, which measures what the device really holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.interrupts import Interrupts
from checkmate_tf.memory.forecast import Forecast, forecast
from checkmate_tf.planning.plan import Plan
from checkmate_tf.planning.trial_run import TrialRun, TrialRunError
from checkmate_tf.progress import solver_progress
from checkmate_tf.user_warnings import warn_user
from solvers import BudgetError, Solution, Status, format_bytes, solve
from solvers.graph import input_order_peak
from solvers.local_search.least_memory import find_least_memory
from solvers.problem import Order

_FIRST_SHARE = 0.88
"""Of the activations' part of a budget; what the allocator wastes is not known yet."""

_TIMES = (0.1, 0.25, 0.1, 0.1, 0.1)
"""Shares of the time limit, one per plan. The first only shows how much the allocator wastes."""

_LEANER_ONES, _LEANER_BY, _LEANER_TIME = 6, 0.03, 0.05
"""Plans that are tried if none of those keeps the budget; by how much each is leaner than the one
before it; and the share of the time limit for each. Of equally lean ones some fit the allocator
better than others, so that more of them are worth a try."""

_LEANEST_TIMES = (1.0, 0.25, 0.25)
"""Shares of the time limit, one per plan of the least memory: of equally lean ones another may fit
where the one before it ran out of memory."""

_NEAR_ENOUGH = 0.97
"""A forecast of so much of the activations' part of the budget leaves nothing worth a search."""

_ENOUGH = 1.02
"""Of what the leanest schedule is expected to hold: a budget of so much is found again, though
searches differ and something more may be held by then."""

_ELSEWHERE = 0.04
"""Of the activations' part of a peak: as much as a step holds more where its variables lie
elsewhere. Steps may settle into one pattern, which then hides how they scatter; transformers
held up to 2.3 MB of 45 MB more in training than on the copies of a trial run."""


@dataclass(frozen=True)
class Situation:
    """What there is before planning.

    Attributes:
        extracted: the step.
        resident: bytes that the device holds before it.
        budget: bytes that it may hold, all in all.
        margin: bytes of them that plans have to leave alone.
        baseline_peak: bytes that the unchanged step is expected to need.
        notes: what the user should know about costs and sizes.
    """

    extracted: Extraction
    resident: int
    budget: int
    margin: int
    baseline_peak: int
    notes: tuple[str, ...]

    @property
    def limit(self) -> int:
        """Bytes that a plan may take."""
        return self.budget - self.margin


@dataclass(frozen=True)
class _Candidate:
    """A plan, its forecast, and whether its trial run ran out of memory."""

    plan: Plan
    forecast: Forecast
    exhausted: bool = False


class PlanSearch:
    """A search for the fastest plan that keeps the budget on the device."""

    def __init__(
        self,
        situation: Situation,
        solver: str,
        order: Order,
        time_limit: float,
        trial_run: TrialRun | None,
        interrupts: Interrupts | None = None,
    ) -> None:
        """Without `trial_run`, plans are forecast only."""
        self._situation = situation
        self._graph = situation.extracted.graph
        self._solver = solver
        self._order = order
        self._time_limit = time_limit
        self._trial_run = trial_run
        self._interrupts = interrupts or Interrupts()
        self._offset = 0  # bytes that the device was seen to hold more than was forecast
        self._failed: Solution

    def run(self) -> Plan:
        """The fastest plan found that keeps the budget, else, with a warning, the leanest.

        Raises:
            BudgetError: no schedule was found within the budget.
        """
        situation = self._situation
        unchanged = self._unchanged()
        fits_unchanged = unchanged.forecast.highest_of_ten <= situation.limit
        if fits_unchanged:
            unchanged = self._after_trial_run(unchanged)
            if self._keeps(unchanged):
                return unchanged.plan
        allowed = situation.limit - situation.resident
        activations = _FIRST_SHARE * allowed
        leanest = activations
        seen: list[_Candidate] = []
        for number, share in enumerate(_TIMES):
            candidate = self._candidate(activations, share * self._time_limit)
            if candidate is None and number == 0:
                candidate = self._candidate(allowed, share * self._time_limit)
            if candidate is None:
                break
            seen.append(candidate)
            used = self._expected(candidate) - situation.resident
            if used <= allowed and (number > 0 or used >= _NEAR_ENOUGH * allowed):
                seen[-1] = candidate = self._after_trial_run(candidate)
                if self._keeps(candidate):
                    return candidate.plan
                used = self._expected(candidate) - situation.resident
                if candidate.exhausted:
                    used = max(used, int(1.1 * allowed))
            leanest = activations
            activations *= 0.99 * allowed / max(1, used)
        if seen:
            for candidate in self._leaner_ones(leanest):
                if self._keeps(candidate):
                    candidate = self._after_trial_run(candidate)
                    if self._keeps(candidate):
                        return candidate.plan
                seen.append(candidate)
        if fits_unchanged:
            seen.append(unchanged)
        if not seen:
            raise self._too_small()
        return self._best_effort(seen)

    def _unchanged(self) -> _Candidate:
        """The step in its own order, nothing recomputed."""
        solution = solve(self._graph, input_order_peak(self._graph), "checkpoint_all")
        return self._planned(solution)

    def _leaner_ones(self, activations: float) -> Iterator[_Candidate]:
        """More plans, each leaner than the one before it, and the leanest at last."""
        for number in range(1, _LEANER_ONES + 1):
            activations *= 1 - _LEANER_BY
            candidate = self._candidate(activations, _LEANER_TIME * self._time_limit, number)
            if candidate is not None:
                yield candidate
        # Rules look for no leanest one.
        leanest = self._candidate(None, _LEANEST_TIMES[-1] * self._time_limit, solver="auto")
        if leanest is not None:
            yield leanest

    def leanest(self, solver: str | None = None) -> Plan:
        """The plan of the least memory; its budget is what the allocator needs for it.

        Args:
            solver: instead of the one that was asked for, which may not look for the least.

        Raises:
            BudgetError: the device has too little memory for every such plan that was found.
        """
        for seed, share in enumerate(_LEANEST_TIMES):
            candidate = self._candidate(None, share * self._time_limit, seed, solver)
            assert candidate is not None
            unchanged = self._unchanged()
            if self._expected(unchanged) < self._expected(candidate):
                candidate = unchanged
            candidate = self._after_trial_run(candidate)
            if not candidate.exhausted:
                return replace(candidate.plan, budget=self._expected(candidate))
        raise BudgetError(
            f"each of {len(_LEANEST_TIMES)} plans of the least memory found exhausted the device's "
            "memory; take a smaller batch, or free what else is held there"
        )

    def _expected(self, candidate: _Candidate) -> int:
        """Bytes that the device will rarely hold more than."""
        seen = candidate.plan.measured_peak or candidate.forecast.typical + self._offset
        elsewhere = int(_ELSEWHERE * (seen - self._situation.resident))
        return max(candidate.forecast.worst + self._offset, seen + elsewhere)

    def _keeps(self, candidate: _Candidate) -> bool:
        return not candidate.exhausted and self._expected(candidate) <= self._situation.limit

    def _candidate(
        self,
        activations: float | None,
        time_limit: float,
        seed: int = 0,
        solver: str | None = None,
    ) -> _Candidate | None:
        """A plan whose activations take so many bytes by the memory model, if one is found.

        None stands for the least that is found.
        """
        graph = self._graph
        with solver_progress(graph, time_limit) as show:
            solution = solve(
                graph,
                "min" if activations is None else max(1, graph.fixed_bytes + int(activations)),
                solver or self._solver,
                time_limit,
                order=self._order,
                seed=seed,
                on_progress=show,
            )
        self._interrupts.pass_on()
        if solution.schedule is None:
            self._failed = solution
            return None
        return self._planned(solution)

    def _planned(self, solution: Solution) -> _Candidate:
        graph, situation = self._graph, self._situation
        assert solution.schedule is not None
        assert solution.cost is not None
        expected = forecast(situation.extracted, solution.schedule, situation.resident)
        plan = Plan(
            graph=graph,
            schedule=solution.schedule,
            budget=situation.budget,
            predicted_peak=expected.highest_of_ten,
            baseline_peak=situation.baseline_peak,
            overhead=solution.cost / graph.one_pass_cost - 1,
            solution=solution,
            notes=situation.notes,
        )
        return _Candidate(plan, expected)

    def _after_trial_run(self, candidate: _Candidate) -> _Candidate:
        if self._trial_run is None:
            return candidate
        try:
            peaks = self._trial_run.peaks(candidate.plan.schedule)
        except TrialRunError as error:
            self._trial_run = None
            note = f"no trial run, for {error}"
            self._situation = replace(self._situation, notes=(*self._situation.notes, note))
            return replace(candidate, plan=replace(candidate.plan, notes=self._situation.notes))
        if peaks is None:
            return replace(candidate, exhausted=True)
        seen_more = int(median(peaks)) - candidate.forecast.typical
        self._offset = max(0, seen_more)
        plan = replace(
            candidate.plan,
            predicted_peak=candidate.forecast.highest_of_ten + seen_more,
            measured_peak=max(peaks),
        )
        return replace(candidate, plan=plan)

    def _best_effort(self, seen: list[_Candidate]) -> Plan:
        """The leanest plan, with a warning."""
        budget = self._situation.budget
        best = min(seen, key=lambda each: (each.exhausted, each.forecast.worst))
        if best.plan.measured_peak is None and not best.exhausted:
            best = self._after_trial_run(best)
        if best.exhausted:
            raise BudgetError(
                f"every plan within {format_bytes(budget)} exhausted the device's memory"
            )
        if self._keeps(best):
            return best.plan
        note = (
            f"the leanest plan found may need {format_bytes(self._expected(best))}, more than the "
            f"budget of {format_bytes(budget)}"
        )
        warn_user(note)
        return replace(best.plan, notes=(*best.plan.notes, note))

    def _too_small(self) -> BudgetError:
        situation, graph = self._situation, self._graph
        beside = situation.resident - graph.fixed_bytes
        known = find_least_memory(graph, self._order, self._time_limit / 4)
        self._interrupts.pass_on()
        leanest = forecast(situation.extracted, known.schedule, situation.resident)
        least = int(_ENOUGH * max(known.peak + beside, leanest.worst))
        # What the margin alone makes impossible is not impossible within the budget.
        proved = self._failed.status is Status.INFEASIBLE and not situation.margin
        if known.peak + beside <= situation.limit:
            return BudgetError(
                f"{self._solver!r} found no schedule within {format_bytes(situation.limit)}, "
                f"though there is one of {format_bytes(known.peak + beside)}: give it a longer "
                "time_limit, or take another solver",
                least=least,
            )
        how = "no schedule exists" if proved else "no schedule was found"
        return BudgetError(
            f"budget {format_bytes(situation.budget)} is too small: {how} within it, "
            f"{format_bytes(situation.resident)} of it variables, inputs and what else is held; "
            f"{format_bytes(least)} ({least} bytes) is the least that is likely to do, "
            f"and none is possible below {format_bytes(known.bound + beside)}",
            least=least,
        )
