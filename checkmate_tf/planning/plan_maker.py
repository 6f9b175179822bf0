"""From a schedule to a plan: forecast on paper, run for trial on the device."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median

from checkmate_tf.devices.measure import counts_small_buffers
from checkmate_tf.phases import phase
from checkmate_tf.planning.candidate import Candidate
from checkmate_tf.planning.expectation import Expectation
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.step_times import StepTimes
from checkmate_tf.planning.trial.trial_run import TrialRunError, TrialRunner
from checkmate_tf.plans.plan import Plan
from checkmate_tf.progress import detail
from solvers import Schedule, Solution, solve
from solvers.graph import input_order_peak


class PlanMaker:
    """Makes the plans of one step; each trial run corrects what is expected of the next ones.

    Attributes:
        question: what there is before planning.
        expected: what plans are expected to hold.
    """

    def __init__(
        self,
        question: Question,
        expected: Expectation,
        trial_run: TrialRunner | None,
        times: StepTimes | None = None,
    ) -> None:
        """Without `trial_run`, plans are forecast only; `times` tells what their steps take."""
        self.question = question
        self.expected = expected
        self._trial_run = trial_run
        self._times = times
        self._room: float = math.inf
        """Bytes that the device held, copies included, when it had no room for a trial run."""
        self._exhausted: set[Schedule] = set()
        """Schedules whose trial run exhausted the device, which costs ten seconds of waiting."""

    @property
    def can_try(self) -> bool:
        """Whether plans can run for trial."""
        return self._trial_run is not None

    def unchanged(self) -> Candidate:
        """The step in its own order, nothing recomputed."""
        graph = self.question.extracted.graph
        return self.planned(solve(graph, input_order_peak(graph), "checkpoint_all"))

    def planned(self, solution: Solution) -> Candidate:
        """The plan of a solution that has a schedule, with a forecast."""
        question = self.question
        graph = question.extracted.graph
        assert solution.schedule is not None
        assert solution.cost is not None
        expected = question.forecast(solution.schedule)
        plan = Plan(
            graph=graph,
            schedule=solution.schedule,
            budget=question.budget,
            budget_from=question.budget_from,
            predicted_peak=expected.highest_of_ten,
            baseline_peak=question.baseline_peak,
            overhead=solution.cost / graph.one_pass_cost - 1,
            solution=solution,
            notes=question.notes,
            measured_baseline_peak=question.measured_baseline_peak,
            at_once=question.device.at_once(),
            plain_seconds=self._times.baseline.seconds if self._times else None,
        )
        return Candidate(plan, expected)

    def tried(self, candidate: Candidate, also_again: bool = False) -> Candidate:
        """The candidate after a trial run, where one is possible.

        Args:
            candidate: as it was forecast.
            also_again: where its schedule has exhausted the device before, it runs once more, for
                near a limit that is partly chance.
        """
        forecast_most, limit = candidate.forecast.highest_of_ten, self.question.limit
        if self._trial_run is None:
            return replace(candidate, exhausted=forecast_most > self._room)
        if candidate.plan.schedule in self._exhausted and not also_again:
            return replace(candidate, exhausted=True)
        try:
            with phase("trials"):
                trial_run = self._trial_run(
                    candidate.plan.schedule, lambda peak: not forecast_most < peak <= limit
                )
        except TrialRunError as error:
            if error.held is not None:
                self._room = error.held
            if forecast_most > self._room:
                return replace(candidate, exhausted=True)  # without copies beside it, too
            self._trial_run = None
            note = f"no trial run, for {error}"
            self.question = replace(self.question, notes=(*self.question.notes, note))
            return replace(candidate, plan=replace(candidate.plan, notes=self.question.notes))
        if trial_run is None:
            self._exhausted.add(candidate.plan.schedule)
            return replace(candidate, exhausted=True)
        measured = max(trial_run.peaks)
        self.expected.learn(candidate.forecast, trial_run)
        seen_more = int(median(trial_run.peaks)) - candidate.forecast.typical
        if not counts_small_buffers():
            seen_more = max(0, seen_more)
        predicted = candidate.forecast.highest_of_ten + seen_more
        plan = replace(
            candidate.plan,
            predicted_peak=measured if trial_run.scatter is not None else predicted,
            measured_peak=measured,
            first_peak=trial_run.first,
        )
        tried = replace(
            candidate,
            plan=plan,
            function=trial_run.function,
            scatter=trial_run.scatter,
        )
        if self._times is not None and self.expected.keeps(tried):
            tried = replace(tried, plan=self._times.of(plan, trial_run))
        return tried

    def told(self, candidate: Candidate) -> Candidate:
        """The candidate, after what is known of it was said to who asked for details."""
        detail("plan-tried", candidate.in_words(self.expected.bytes_of(candidate)))
        return candidate
