"""What the device will hold by a plan, as far as its forecast and trial runs tell."""

from __future__ import annotations

from statistics import mean, median

from checkmate_tf.planning.candidate import Candidate
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.settings import (
    SCATTER,
    SCATTER_TYPICAL,
    WORTH_A_TRIAL,
)
from checkmate_tf.planning.trial.trial_run import TrialRun
from checkmate_tf.program.forecast import Forecast


class Expectation:
    """What plans are expected to hold; each trial run corrects it.

    Attributes:
        limit: bytes that a plan may take.
        resident: bytes of them that the device holds before the step.
    """

    def __init__(self, question: Question, surely: bool = False) -> None:
        """With `surely`, only plans whose worst forecast is within the limit are tried."""
        self.limit = question.limit
        self.resident = question.resident
        self._question = question
        self._surely = surely or not question.repeats_itself
        self._seen_more: list[int] = []  # bytes, by which trial runs exceeded their forecasts
        self._scatters: list[int] = []  # bytes, by which the steps of a trial run differed

    @property
    def allowed(self) -> int:
        """The activations' part of the limit, in bytes."""
        return self.limit - self.resident

    def learn(self, forecast: Forecast, trial_run: TrialRun) -> None:
        """Correct what is expected of other plans by what the trial run of one has shown."""
        if trial_run.scatter is not None:
            self._scatters.append(trial_run.scatter)
        seen_more = int(median(trial_run.peaks)) - forecast.typical
        if self._question.layout is not None:
            # One plan held 4 % less than forecast, and the next one of the same step 4 % more.
            self._seen_more.append(seen_more)
        else:
            self._seen_more = [max(0, seen_more) if trial_run.scatter is None else seen_more]

    @property
    def _offset(self) -> int:
        """Bytes that are to be added to forecasts."""
        return int(mean(self._seen_more)) if self._seen_more else 0

    def bytes_of(self, candidate: Candidate) -> int:
        """Bytes that the device will rarely hold more than."""
        if candidate.plan.measured_peak is None:
            return self.by_forecast(candidate.forecast)
        seen, scatter = candidate.plan.measured_peak, candidate.scatter
        if scatter is None and self._question.extracted.unknown:
            return seen + int(SCATTER * (seen - self.resident))  # forecasts rest on guesses
        if scatter is None:
            return self.by_forecast(candidate.forecast, seen)
        return seen + max(self._room(seen), int(self._question.device.scatter_seen * scatter))

    def used(self, candidate: Candidate) -> int:
        """Bytes of the activations' part that the device will rarely hold more than."""
        return self.bytes_of(candidate) - self.resident

    def by_forecast(self, forecast: Forecast, measured: int | None = None) -> int:
        """Bytes as `bytes_of`, if other steps than those of training were measured, or none."""
        seen = measured or forecast.typical + self._offset
        worst = forecast.worst + self._offset
        if self._question.layout is not None:
            worst = max(forecast.worst, worst)
        if self._question.repeats_itself and not measured:
            return max(worst, seen + self._room(seen))
        return max(worst, seen + int(SCATTER * (seen - self.resident)))

    def likely(self, candidate: Candidate) -> int:
        """Bytes as `bytes_of`, as a trial run is likely to tell them.

        Once one has shown how far forecasts are off, the typical step tells more than the worst.
        """
        if self._surely or not self._seen_more or candidate.plan.measured_peak is not None:
            return self.bytes_of(candidate)
        seen = candidate.forecast.typical + self._offset
        times = SCATTER_TYPICAL + self._question.device.scatter_seen
        scatter = mean(self._scatters) if self._scatters else 0.0
        return seen + max(self._room(seen), int(times * scatter))

    def _room(self, seen: int) -> int:
        """Bytes that steps which repeat themselves may hold more than was seen of one."""
        activations = seen - self.resident
        batch = self._question.extracted.program.argument_bytes
        alike = self._question.device.scatter * activations
        return int(min(SCATTER * activations, max(alike, batch)))

    def keeps(self, candidate: Candidate) -> bool:
        """Whether the device will rarely hold more than the limit."""
        return not candidate.is_too_large and self.bytes_of(candidate) <= self.limit

    def may_keep(self, candidate: Candidate) -> bool:
        """Whether a trial run is likely to show that it keeps the limit."""
        return not candidate.is_too_large and self.likely(candidate) <= self.limit

    def leaves_room(self, candidate: Candidate) -> bool:
        """Whether the memory that a plan leaves would save enough time to look for a faster one.

        Extra time falls from the plan's own to none at the unchanged step's memory, and faster
        where memory is short: taken twice as fast as on average.
        """
        if self._surely:
            return False
        lacking = self._question.baseline_peak - self.bytes_of(candidate)
        left = min(self.limit - self.bytes_of(candidate), lacking)
        return left > 0 and 2 * candidate.plan.overhead * left / lacking >= WORTH_A_TRIAL
