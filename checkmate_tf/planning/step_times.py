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
        ran_here: this process has measured it, for this plan or for one before.
        program: the step, where plain steps may run beside others; else None.
    """

    baseline: Baseline
    ran_here: bool = False
    program: Program | None = None

    def of(self, plan: Plan, run: TrialRun) -> Plan:
        """The plan with the seconds of a step by it, and of a plain one; as it was if not known.

        Both take turns where the plain step may run once more, which takes little time for a small
        step: it has to be prepared anew, since its constants would lie in the memory that trial
        runs measure. Else those of the trial run stand beside those of the plain step's own.
        """
        if self.program is not None and run.ran is not None and self._may_run_again(run):
            found = in_turn(self.program, run.ran)
            if found is not None:
                return replace(
                    plan, plain_seconds=found.plain, step_seconds=found.ours, timed="in turn"
                )
        if self.ran_here and self.baseline.seconds is not None and run.seconds[1:]:
            ours = median(run.seconds[1:])
            return replace(plan, step_seconds=ours, timed="one after the other")
        return plan

    def _may_run_again(self, run: TrialRun) -> bool:
        """Whether there is room for the plain step, and the turns take little of the time."""
        if self.baseline.measured is None or not has_room(self.baseline):
            return False
        first, *others = run.seconds
        # The traced step takes up to twice as long to prepare as the one that was written for it.
        takes = 2 * first + 2 * median(others or [first])
        allowed = max(COMPARED_LEAST, COMPARED_SHARE * sum(seconds_so_far().values()))
        return takes <= allowed
