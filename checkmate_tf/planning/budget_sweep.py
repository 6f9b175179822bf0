"""Plans of one step for many budgets, from what the unchanged step needs to the least found.

The step is extracted once. Every schedule found on the way is a candidate for every budget, so that
a larger budget never costs more time than a smaller one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.elsewhere import another_device
from checkmate_tf.distribution.split import has_several_replicas
from checkmate_tf.interrupts import Interrupts
from checkmate_tf.phases import phase
from checkmate_tf.planning.baseline import Baselines
from checkmate_tf.planning.candidate import Candidate
from checkmate_tf.planning.origins import with_origin
from checkmate_tf.planning.plan_search import PlanSearch
from checkmate_tf.planning.preparation import begun, planning_of, resolved
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.settings import CORRECTIONS, LEANEST_TIMES
from checkmate_tf.planning.trial.trial_run import TrialRunner
from checkmate_tf.plans.plan import Plan
from checkmate_tf.progress import points_progress
from solvers import BudgetError, CheckmateError, format_bytes
from solvers.graph.bounds import memory_bound

_LEAST_TIME = 0.25
"""Share of the time limit for the plan of the least memory; the other budgets share the rest."""

_TRIES = (0.4, 0.5, 1.0)
"""Shares of what is left of a budget's time, one for each plan. Each later one is corrected by what
the allocator wastes with the one before it."""

_NOTHING = 1e-9
"""Extra time, as a share of a pass, that is none: costs are added in different orders."""

Show = Callable[[int, str], None]
"""Is told how many budgets are done, and what is done now."""


@dataclass(frozen=True)
class Sweep:
    """Plans of one step.

    Attributes:
        plans: each with its own budget, the largest first; the last needs the least memory.
        impossible: no schedule exists below so many bytes; None where XLA compiles the step, which
            may hold less than a schedule does.
        asked: how many budgets were asked for; there are fewer plans after Ctrl-C, or where the
            least is near.
        stopped: Ctrl-C was pressed.
    """

    plans: tuple[Plan, ...]
    impossible: int | None
    asked: int
    stopped: bool


def swept(
    concrete: Any,
    request: Request,
    count: int,
    arriving: int | None = None,
    elsewhere: bool = False,
) -> Sweep:
    """Plan a step for `count` budgets, evenly spaced; no variable of the user's changes.

    Ctrl-C ends it with the plans made so far, once that of the least memory is known.

    Args:
        concrete: the traced step.
        request: what plans are asked for; its budget is what the unchanged step needs ("100%").
        count: of budgets.
        arriving: bytes that the device will hold before the step and does not hold yet; by default
            those of the batches that `fit` has ready.
        elsewhere: plan for a device that holds nothing but the step; nothing runs on this one.

    Raises:
        BudgetError: every plan found exhausts the device's memory.
        CheckmateError: nothing in the step can be recomputed, sizes are unknown, or several
            replicas run it.
    """
    device = another_device() if elsewhere else current_device()
    movable = None if elsewhere else concrete
    with planning_of(movable) as interrupts, points_progress(count) as show:
        show(0, "the graph of the step")
        program = resolved(concrete, request.batch_size)
        if has_several_replicas(program):
            raise CheckmateError(
                "replicas-unsupported",
                "several replicas run the step: take the step of one of them, outside the "
                "strategy's scope",
            )
        needed = program.argument_bytes
        coming = needed * device.batches_held() if arriving is None else min(arriving, needed)
        step = begun(program, request, device, coming)
        if not step.has_gain:
            raise nothing_to_recompute()
        tries = request.trial_run and device.is_here
        baseline = Baselines().of(step, run=tries)
        question = step.question(request, baseline, baseline.peak)
        if tries:
            question = replace(question, layout=step.layout())
        search = BudgetSweep(question, request, step.runner() if tries else None, interrupts)
        with phase("solve"):
            plans, stopped = search.plans(count, show)
        origin = step.extracted, step.resident, device.full_name
        beside = step.resident - step.graph.fixed_bytes
        return Sweep(
            plans=tuple(with_origin(plan, *origin) for plan in plans),
            impossible=memory_bound(step.graph, request.order) + beside,
            asked=count,
            stopped=stopped,
        )


def nothing_to_recompute() -> CheckmateError:
    """An error about a step that has one plan only."""
    return CheckmateError(
        "nothing-to-recompute", "nothing in the step can be recomputed: it has one plan only"
    )


class BudgetSweep(PlanSearch):
    """A search that goes on from budget to budget and forgets no plan."""

    def __init__(
        self,
        question: Question,
        request: Request,
        trial_run: TrialRunner | None,
        interrupts: Interrupts,
    ) -> None:
        """`question` has the largest budget; without `trial_run` plans are forecast only."""
        super().__init__(
            question,
            request.solver,
            request.order,
            request.time_limit,
            trial_run,
            interrupts,
        )
        self._seen: list[Candidate] = []  # that of the unchanged step is the first
        self._ran: set[int] = set()  # numbers of those that have run for trial

    def plans(self, count: int, show: Show) -> tuple[tuple[Plan, ...], bool]:
        """The plans, that of the largest budget first, and whether Ctrl-C ended it early.

        Raises:
            BudgetError: every plan found exhausts the device's memory.
            KeyboardInterrupt: Ctrl-C was pressed before there were any.
        """
        left = self._seek_the_least(lambda what: show(0, what))
        between = self._spaced(count)[1:-1]
        deadline = time.monotonic() + left * self._time_limit
        done: list[int] = []
        stopped = False
        try:
            for number, budget in enumerate(between):
                show(1 + number, f"within {format_bytes(budget)}")
                left = max(0.0, deadline - time.monotonic())
                self._look(budget, time.monotonic() + left / (len(between) - number))
                done.append(budget)
            self._try_all(done, lambda what: show(1 + len(between), what))
        except KeyboardInterrupt:
            if not self._running:
                raise
            stopped = True
        if not self._running:
            raise self._exhausted
        chosen = [(budget, self._chosen(budget)) for budget in self._budgets(done)]
        plans = [
            replace(self._seen[number].plan, budget=budget)
            for budget, number in chosen
            if number is not None
        ]
        return tuple(plans), stopped

    def _seek_the_least(self, say: Callable[[str], None]) -> float:
        """Make the plans between which the budgets lie; the share of the time limit that is left.

        They run for trial first, so that the budgets lie between what they really hold. Of equally
        lean plans some exhaust the device's memory and others don't.
        """
        self._seen = [self._maker.unchanged()]
        left = 1.0
        for seed, share in enumerate(LEANEST_TIMES):
            say("the least memory")
            leanest = self._schedules.solved(None, _LEAST_TIME * share, seed, solver="auto")
            left -= _LEAST_TIME * share
            self._seen.append(self._maker.planned(leanest))
            self._try(len(self._seen) - 1)  # also if it is forecast to exhaust the memory
            self._try_all([], say)
            if self._running:
                break
        return left

    @property
    def _running(self) -> list[Candidate]:
        """The plans seen that don't exhaust the device's memory."""
        return [each for each in self._seen if not each.is_too_large]

    @property
    def _exhausted(self) -> BudgetError:
        """An error about a step for whose every plan the device has too little memory."""
        ran = any(each.exhausted for each in self._seen)
        return BudgetError(
            "device-exhausted",
            f"each of {len(self._seen)} plans found, the unchanged step among them, "
            f"{'exhausted' if ran else 'is forecast to exhaust'} the device's memory; take a "
            "smaller batch, or free what else is held there",
        )

    # Which budgets.

    @property
    def _most(self) -> int:
        """Bytes of the largest budget: what the unchanged step needs, in one order too."""
        unchanged = self._seen[0]
        needed = unchanged.plan.measured_peak or unchanged.plan.predicted_peak
        most = max(self._question.limit, needed)
        # Where it exhausts the memory, what runs instead may hold more.
        return max(most, self._least) if unchanged.is_too_large else most

    @property
    def _least(self) -> int:
        """Bytes that the leanest plan seen needs, of those that run if there are any."""
        return min(map(self._expected.bytes_of, self._running or self._seen))

    def _spaced(self, count: int) -> list[int]:
        """`count` budgets in even steps, from the largest one to the least."""
        most = self._most
        step = (most - self._least) / max(1, count - 1)
        return [int(most - number * step) for number in range(count)]

    def _budgets(self, between: list[int]) -> list[int]:
        """The largest one, those of `between`, and the least as it is known now."""
        most, least = self._most, self._least
        return [most, *(each for each in between if each > least), *[least] * (least < most)]

    # Which plan for a budget.

    def _chosen(self, budget: int) -> int | None:
        """The number of the fastest plan seen for a budget; None where all need more."""
        fitting = [
            number
            for number, each in enumerate(self._seen)
            if not each.is_too_large and self._expected.bytes_of(each) <= budget
        ]
        best = min(fitting, key=self._by_time, default=None)
        is_free = best is not None and self._seen[best].plan.overhead <= _NOTHING
        if budget < self._most or is_free or self._seen[0].is_too_large:
            return best
        return 0  # what the unchanged step needs is a budget for it, though a step may need more

    def _by_time(self, number: int) -> tuple[float, int]:
        candidate = self._seen[number]
        return round(candidate.plan.overhead, 9), self._expected.bytes_of(candidate)

    def _look(self, budget: int, deadline: float) -> None:
        """Make plans for a budget until one uses it, or costs nothing."""
        allowed = budget - self._question.resident
        live = self._live_bytes(allowed)
        for share in _TRIES:
            best = self._chosen(budget)
            if best is not None and self._seen[best].plan.overhead <= _NOTHING:
                return
            left = max(0.01, share * (deadline - time.monotonic()))
            self._schedules.known = [
                each.plan.schedule for each in self._seen
            ]  # all, to begin with
            solution = self._schedules.solved(live, left / self._time_limit)
            if solution.schedule is None:
                return
            self._seen.append(self._maker.planned(solution))
            used = self._expected.used(self._seen[-1])
            if CORRECTIONS.near_enough * allowed <= used <= allowed:
                return
            live *= CORRECTIONS.aim * allowed / max(1, used)

    def _live_bytes(self, allowed: int) -> float:
        """Live bytes for which the allocator is likely to take those that are allowed."""
        near = min(self._seen, key=lambda each: abs(self._expected.used(each) - allowed))
        peak = near.plan.solution.peak or 0
        live = peak - self._graph.fixed_bytes
        return CORRECTIONS.aim * allowed * live / max(1, self._expected.used(near))

    def _try_all(self, between: list[int], say: Callable[[str], None]) -> None:
        """Run for trial what is chosen, until what is chosen has run."""
        while self._maker.can_try:
            chosen = {self._chosen(budget) for budget in self._budgets(between)}
            left = sorted(each for each in chosen - self._ran if each is not None)
            if not left:
                return
            say(f"trial run, {len(left)} left")
            self._try(left[0])

    def _try(self, number: int) -> None:
        candidate = self._maker.tried(self._seen[number])
        self._seen[number] = replace(candidate, function=None)  # its graph need not stay
        self._ran.add(number)
        self._interrupts.pass_on()
