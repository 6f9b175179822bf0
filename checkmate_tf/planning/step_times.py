"""What is known of the time of plain steps, and of steps by a plan beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

from checkmate_tf.phases import seconds_so_far
from checkmate_tf.planning.baseline import Baseline, has_room
from checkmate_tf.planning.settings import COMPARED_LEAST, COMPARED_SHARE
from checkmate_tf.planning.trial.in_turn import in_turn
from checkmate_tf.planning.trial.trial_run import TrialRun
from checkmate_tf.plans.plan import Plan
from checkmate_tf.trace.program import Program


@dataclass(frozen=True)
class StepTimes:
    """Tells plans what their steps take, and plain ones.

    Attributes:
        baseline: of the plain step.
        program: of the step, where plain steps may run beside others; else None.
    """

    baseline: Baseline
    program: Program | None = None

    def of(self, plan: Plan, run: TrialRun) -> Plan:
        """The plan with the seconds of a plain step and of one by the plan, measured in turn.

        It is as it was where the plain step has not run or has no room now, or where it would take
        long to prepare it once more: it does not stay, for its constants would lie in the memory
        of trial runs.
        """
        if self.program is None or run.ran is None or not self._is_worth_it(run):
            return plan
        if self.baseline.measured is None or not has_room(self.baseline):
            return plan
        found = in_turn(self.program, run.ran)
        if found is None:
            return plan
        return replace(plan, plain_seconds=found.plain, step_seconds=found.ours)

    def _is_worth_it(self, run: TrialRun) -> bool:
        first, *others = run.seconds
        # The traced step takes up to twice as long to prepare as the one that was written for it.
        takes = 2 * first + 2 * median(others or [first])
        allowed = max(COMPARED_LEAST, COMPARED_SHARE * sum(seconds_so_far().values()))
        return takes <= allowed
