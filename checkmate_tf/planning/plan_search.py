"""Plans, forecasts and trial runs until a plan keeps the budget on the device.

A solver counts live bytes; the allocator holds more. So each plan is forecast, which takes a
second, and the next one is solved for a corrected budget. A plan whose forecast is within the
budget gets a trial run, which measures what the device really holds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import cached_property

from checkmate_tf.interrupts import Interrupts
from checkmate_tf.planning.candidate import Candidate, fastest_of_the_leanest
from checkmate_tf.planning.expectation import Expectation
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.plan_maker import PlanMaker
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.schedule_solver import ScheduleSolver
from checkmate_tf.planning.settings import (
    CORRECTIONS,
    ENOUGH_SHARES,
    EXHAUSTED,
    FASTER_PLANS,
    FIRST_SHARE,
    FORECAST_AIM,
    FORECAST_PLANS,
    FORECAST_SHARE,
    LARGE_CORRECTIONS,
    LARGE_STEP,
    LEANER_BY,
    LEANER_PLANS,
    LEANER_TIME,
    LEANEST_TIMES,
    LEAST_TIME,
    PLAN_TIMES,
    TOO_LARGE,
)
from checkmate_tf.planning.step_times import StepTimes
from checkmate_tf.planning.too_small import TooSmallError, held_more, no_schedule
from checkmate_tf.planning.trial.trial_run import TrialRunner
from checkmate_tf.planning.unchanged import plain_instead
from checkmate_tf.user_warnings import warn_user
from solvers import BudgetError, Problem, Schedule, Solution, Status, answer, format_bytes, simulate
from solvers.graph.bounds import least_need
from solvers.local_search.least_memory import LeastMemory, find_least_memory
from solvers.problem import Order


class PlanSearch:
    """A search for the fastest plan that keeps the budget on the device."""

    def __init__(
        self,
        question: Question,
        solver: str,
        order: Order,
        time_limit: float,
        trial_run: TrialRunner | None,
        interrupts: Interrupts | None = None,
        recommended: Schedule | None = None,
        measure_unchanged: Callable[[], int | None] = lambda: None,
        times: StepTimes | None = None,
    ) -> None:
        """Prepare a search.

        Args:
            question: what there is before planning.
            solver, order, time_limit: as the user asked for them.
            trial_run: runs the step by a schedule; without it, plans are forecast only.
            interrupts: those of the user.
            recommended: the schedule of a lean plan that an error has named the budget of.
            measure_unchanged: runs the unchanged step, if it has not run, for its peak in bytes;
                asked only where no plan keeps the budget.
            times: tells plans what their steps and plain ones take.
        """
        self._question = question
        self._graph = question.extracted.graph
        self._solver = solver
        self._order = order
        self._time_limit = time_limit
        self._interrupts = interrupts or Interrupts()
        self._schedules = ScheduleSolver(self._graph, solver, order, time_limit, self._interrupts)
        self._recommended = recommended
        self._measure_unchanged = measure_unchanged
        if recommended is not None:
            self._schedules.known = [recommended]
        is_large = len(question.extracted.program.operations) >= LARGE_STEP
        self._corrections = LARGE_CORRECTIONS if is_large else CORRECTIONS
        self._expected = Expectation(question, surely=is_large)
        self._maker = PlanMaker(question, self._expected, trial_run, times)

    def run(self) -> Outcome:
        """The fastest plan found that keeps the budget, else, with a warning, the leanest.

        Where a measurement says that no plan takes less than the unchanged step, that is the plan.

        Raises:
            TooSmallError: no schedule was found within the budget, or all that ran for trial held
                more.
        """
        try:
            return self._within_the_budget()
        except TooSmallError as error:
            plain = plain_instead(self._measured_question, self._maker.unchanged(), error.needs)
            if plain is None:
                raise
            return plain

    def _within_the_budget(self) -> Outcome:
        unchanged = self._unchanged_that_fits()
        if unchanged is not None:
            unchanged = self._maker.told(self._maker.tried(unchanged))
            if self._expected.keeps(unchanged):
                return self._outcome(unchanged)
            unchanged = replace(unchanged, function=None)
        first = self._first_solution()
        seen: list[Candidate] = []
        kept = self._first_that_keeps(first, seen)
        if kept is not None:
            return self._outcome(kept)
        if unchanged is not None:
            seen.append(unchanged)
        if not seen:  # by the solver's memory model, which may be wrong
            leanest = self._leanest_known
            room = self._question.device.room()
            # Beyond what the device can hold a run shows nothing, and may end the process.
            if room is None or leanest.forecast.typical <= room.bytes:
                leanest = self._maker.told(self._maker.tried(leanest))
            if leanest.was_tried and self._expected.keeps(leanest):
                return self._outcome(leanest)
            needs = self._expected.bytes_of(leanest)
            raise no_schedule(
                self._measured_question,
                self._solver,
                first,
                self._least_memory,
                self._outcome(leanest),
                needs,
            )
        best = self._best_effort(seen)
        return replace(self._outcome(best), keeps=self._expected.keeps(best))

    @cached_property
    def _measured_question(self) -> Question:
        """What there is before planning, with the unchanged step's peak if that can be measured."""
        question = self._question
        if question.measured_baseline_peak is None:
            measured = self._measure_unchanged()
            question = replace(question, measured_baseline_peak=measured)
        return question

    def leanest(self, solver: str | None = None) -> Outcome:
        """The plan of the least memory; its budget is what the allocator needs for it.

        Args:
            solver: instead of the one that was asked for, which may not look for the least.

        Raises:
            BudgetError: the device has too little memory for every such plan that was found.
        """
        for seed, share in enumerate(LEANEST_TIMES):
            candidate = self._maker.planned(self._schedules.solved(None, share, seed, solver))
            unchanged = self._maker.unchanged()
            if self._expected.bytes_of(unchanged) < self._expected.bytes_of(candidate):
                candidate = unchanged
            candidate = self._maker.tried(candidate, also_again=True)
            plan = replace(candidate.plan, budget=self._expected.bytes_of(candidate))
            candidate = self._maker.told(replace(candidate, plan=plan))
            if not candidate.exhausted:
                return self._outcome(candidate)
        raise BudgetError(
            "device-exhausted",
            f"each of {len(LEANEST_TIMES)} plans of the least memory found exhausted the device's "
            "memory; take a smaller batch, or free what else is held there",
        )

    def _first_that_keeps(self, first: Solution, seen: list[Candidate]) -> Candidate | None:
        """The first plan that keeps the budget; if it is roomy, or the next one tried if faster.

        Those that do not are added to `seen`.
        """
        kept: Candidate | None = None
        for number, candidate in enumerate(map(self._maker.told, self._candidates(first))):
            keeps = not candidate.preliminary and self._expected.keeps(candidate)
            if kept is not None:
                if keeps and candidate.plan.overhead < kept.plan.overhead:
                    return candidate
                if keeps or candidate.was_tried or number + 1 >= len(PLAN_TIMES):
                    return kept
            elif not keeps:
                # Its function, with the constants in it, is not to stay beside the next one.
                candidate = replace(candidate, function=None)
                seen.append(candidate)
            elif candidate.roomy:
                kept = candidate
            else:
                return candidate
        return kept

    def _outcome(self, candidate: Candidate) -> Outcome:
        return Outcome(candidate.plan, self._question.extracted, candidate.function)

    # Which plans are tried.

    def _unchanged_that_fits(self) -> Candidate | None:
        """The step in its own order, if it is forecast to be within the budget."""
        limit = self._question.limit
        if self._question.baseline_peak > limit:
            return None  # as was forecast before
        unchanged = self._maker.unchanged()
        return unchanged if unchanged.forecast.highest_of_ten <= limit else None

    def _first_solution(self) -> Solution:
        """With room for what the allocator wastes; if there is no such schedule, without."""
        solution = self._schedules.solved(
            FIRST_SHARE * self._expected.allowed, PLAN_TIMES[0], enough_share=ENOUGH_SHARES[0]
        )
        if solution.schedule is None:
            solution = self._schedules.solved(self._expected.allowed, PLAN_TIMES[0])
        if solution.status is Status.TIMEOUT and self._schedules.takes_starts:
            # A search for the least memory takes other ways, and where it ends one can begin.
            least = self._least_memory
            if least.peak - self._graph.fixed_bytes <= self._expected.allowed:
                self._schedules.known = [least.schedule]
                solution = self._schedules.solved(self._expected.allowed, PLAN_TIMES[0])
        return solution

    @cached_property
    def _least_memory(self) -> LeastMemory:
        """The schedule of least memory that is found in its share of the time."""
        found = find_least_memory(self._graph, self._order, LEAST_TIME * self._time_limit)
        self._interrupts.pass_on()
        return found

    @property
    def _leanest_known(self) -> Candidate:
        """The plan of the least memory that is known without another search."""
        schedule = self._recommended or self._least_memory.schedule
        problem = Problem(self._graph, simulate(self._graph, schedule).peak)
        return self._maker.planned(answer(problem, self._solver, schedule))

    def _candidates(self, first: Solution) -> Iterator[Candidate]:
        """Plans in turn, and if none of the first ones will do, leaner ones."""
        leanest = yield from self._first_ones(first)
        if first.schedule is not None:
            yield from self._leaner_ones(leanest)

    def _first_ones(self, first: Solution) -> Generator[Candidate, None, float]:
        """Plans, each solved for a budget that is corrected by what came out before.

        Returns that of the leanest one. What was tried for it is not held beside the leaner ones.
        """
        if self._question.layout is None:
            return (yield from self._each_tried(first))
        return (yield from self._fastest_tried(first))

    def _fastest_tried(self, first: Solution) -> Generator[Candidate, None, float]:
        """Several plans are forecast; of those that may keep the budget the fastest is tried first.

        Each trial run that held too much corrects one more plan.
        """
        expected = self._expected
        found, leanest = self._forecast_ones(first)
        for _ in range(FORECAST_PLANS):
            hopeful = [each for each in found if expected.may_keep(each)]
            if not hopeful:
                break
            fastest = min(hopeful, key=lambda each: each.plan.overhead)
            found.remove(fastest)
            tried = self._maker.tried(fastest)
            yield self._faster_than(tried) or tried
            if not tried.was_tried:
                break
            another, activations = self._corrected_by(tried, leanest)
            leanest = min(leanest, activations)
            if another is not None:
                found.append(another)
        for each in sorted(found, key=lambda each: each.plan.overhead):
            yield self._tried_if_it_may_keep(each)
        return leanest

    def _forecast_ones(self, first: Solution) -> tuple[list[Candidate], float]:
        """Plans, each corrected by the forecast of the one before; bytes for the leanest."""
        allowed, found = self._expected.allowed, list[Candidate]()
        solution, activations = first, FIRST_SHARE * allowed
        leanest = activations
        aim = FORECAST_AIM if self._question.repeats_itself else self._corrections.aim
        while solution.schedule is not None:
            candidate = self._maker.planned(solution)
            found.append(candidate)
            used = self._expected.likely(candidate) - self._expected.resident
            is_good = max(activations, used) >= self._corrections.near_enough * allowed
            if len(found) == FORECAST_PLANS or (is_good and self._expected.may_keep(candidate)):
                break
            leanest = min(leanest, activations)
            activations = self._corrected(activations, aim * allowed / max(1, used), leanest)
            solution = self._solved_soon(activations)
        return found, leanest

    def _faster_than(self, tried: Candidate) -> Candidate | None:
        """A faster plan that keeps the budget, if this one does and leaves room for such a plan."""
        expected = self._expected
        if not (tried.was_tried and expected.keeps(tried) and expected.leaves_room(tried)):
            return None
        nearest = tried
        for _ in range(FASTER_PLANS):
            faster, _ = self._corrected_by(nearest, 0.0)
            if faster is None or faster.plan.overhead >= tried.plan.overhead:
                return None
            if expected.may_keep(faster):
                self._maker.told(tried)
                faster = self._maker.tried(faster)
                return faster if expected.keeps(faster) else None
            nearest = faster
        return None

    def _corrected_by(self, nearest: Candidate, leanest: float) -> tuple[Candidate | None, float]:
        """A plan that is likely to use the budget, by what another one used of it.

        Of plans that are solved for `leanest` bytes it is known that they exist. Returns also the
        bytes that it was solved for.
        """
        if nearest.exhausted:
            return None, leanest
        live = (nearest.plan.solution.peak or 0) - self._graph.fixed_bytes
        used = self._expected.likely(nearest) - self._expected.resident
        factor = FORECAST_AIM * self._expected.allowed / max(1, used)
        activations = self._corrected(live, factor, leanest)
        solution = self._solved_soon(activations)
        another = self._maker.planned(solution) if solution.schedule is not None else None
        return another, activations

    def _solved_soon(self, activations: float) -> Solution:
        return self._schedules.solved(activations, PLAN_TIMES[-1], enough_share=FORECAST_SHARE)

    def _corrected(self, activations: float, factor: float, leanest: float) -> float:
        """Bytes to solve for next; below what one node alone needs there is no schedule."""
        least = least_need(self._graph)
        corrected = min(activations * factor, self._expected.allowed)
        return corrected if corrected >= least else (least + leanest) / 2

    def _each_tried(self, first: Solution) -> Generator[Candidate, None, float]:
        """Plans that are tried one by one, for forecasts alone can't tell which is the best."""
        allowed, shares = self._expected.allowed, self._corrections
        activations = leanest = FIRST_SHARE * allowed
        for number, (share, enough) in enumerate(zip(PLAN_TIMES, ENOUGH_SHARES, strict=True)):
            if number:
                solution = self._schedules.solved(activations, share, enough_share=enough)
            else:
                solution = first
            if solution.schedule is None:
                break
            candidate = self._maker.planned(solution)
            used = self._expected.used(candidate)
            is_good = shares.near_enough * allowed <= used <= shares.most * allowed
            if number == 0 and used <= allowed and not (is_good or candidate.is_too_large):
                candidate = replace(candidate, preliminary=True)
            elif candidate.is_too_large:
                used = max(used, int(TOO_LARGE * allowed))
            elif used <= allowed:
                candidate = self._maker.tried(candidate)
                used = self._expected.used(candidate)
                if candidate.exhausted:
                    used = max(used, int(EXHAUSTED * allowed))
                roomy = used < shares.roomy * allowed and number + 1 < len(PLAN_TIMES)
                candidate = replace(candidate, roomy=roomy and candidate.plan.overhead > 0)
            yield candidate
            leanest = activations
            activations = self._corrected(activations, shares.aim * allowed / max(1, used), leanest)
        return leanest

    def _leaner_ones(self, activations: float) -> Iterator[Candidate]:
        """More plans, each leaner than the one before it, and the leanest at last."""
        if self._recommended is not None:
            yield self._tried_if_it_may_keep(self._leanest_known)
        for number in range(1, LEANER_PLANS + 1):
            activations *= 1 - LEANER_BY
            solution = self._schedules.solved(activations, LEANER_TIME, number)
            if solution.schedule is not None:
                yield self._tried_if_it_may_keep(self._maker.planned(solution))
        # Rules look for no leanest one.
        solution = self._schedules.solved(None, LEANEST_TIMES[-1], solver="auto")
        if solution.schedule is not None:
            yield self._tried_if_it_may_keep(self._maker.planned(solution))

    def _tried_if_it_may_keep(self, candidate: Candidate) -> Candidate:
        return self._maker.tried(candidate) if self._expected.may_keep(candidate) else candidate

    def _best_effort(self, seen: list[Candidate]) -> Candidate:
        """The fastest of the leanest plans, with a warning.

        Raises:
            TooSmallError: all that ran for trial held more than the budget.
        """
        budget = self._question.budget
        best = fastest_of_the_leanest(seen, lambda each: each.forecast.worst)
        if not best.was_tried:
            best = self._maker.told(self._maker.tried(best))
        if best.was_tried and not self._expected.keeps(best):
            best = self._least_held([*seen, best])
        if self._expected.keeps(best):
            return best
        # What plans have to leave alone is needed as well.
        need = self._expected.bytes_of(best) + self._question.margin
        if need > budget:
            code = "leanest-plan-over-budget"
            note = f"the leanest plan found may need {format_bytes(need, budget)}, more than the "
            note += f"budget of {format_bytes(budget, need)}"
        else:
            code = "free-memory-in-pieces"
            note = f"the leanest plan found needs {format_bytes(need)}, but at the allocator's "
            limit = self._question.device.wall() or 0
            note += f"limit of {format_bytes(limit)} what is free may lie in pieces, none of them "
            note += "large enough"
        warn_user(code, note)
        return replace(best, plan=replace(best.plan, notes=(*best.plan.notes, note)))

    def _least_held(self, seen: list[Candidate]) -> Candidate:
        """The fastest of those that held the least, which tells more than what was forecast.

        Raises:
            TooSmallError: it held more than the budget.
        """
        budget = self._question.budget
        measured = [each for each in seen if each.plan.measured_peak is not None]
        if not measured:
            raise TooSmallError(
                "device-exhausted",
                f"every plan within {format_bytes(budget)} exhausted the device's memory",
            )
        within = [each for each in measured if _held(each) <= budget]
        if not within:
            leanest = min(measured, key=self._expected.bytes_of)
            needs = self._expected.bytes_of(leanest)
            held = min(map(_held, measured))
            raise held_more(self._measured_question, held, self._outcome(leanest), needs)
        return fastest_of_the_leanest(within, _held)


def _held(candidate: Candidate) -> int:
    return candidate.plan.measured_peak or 0
