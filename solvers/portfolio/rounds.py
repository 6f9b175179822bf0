"""The portfolio's search: one round at a time, from what the passes and the search have found."""

from __future__ import annotations

import math
import time

from solvers.local_search import settings as search_settings
from solvers.local_search.chain import compile_kernels
from solvers.local_search.search import Start, moves_per_round, starts_of
from solvers.portfolio import settings
from solvers.portfolio.passes import Passes
from solvers.problem import PROVED


class Rounds:
    """Rounds of the search beside the passes.

    Attributes:
        deadline: as `time.monotonic` counts; later than the problem's by what compiling takes.
        idle: rounds in a row without a gain worth having.
        advance: to the next intermediate budget, as `FIRST_ADVANCE`.
    """

    def __init__(self, passes: Passes) -> None:
        """None has begun; the search is offered all schedules that are known."""
        self.problem, self.search, self._passes = passes.problem, passes.search, passes
        self.deadline = self.problem.deadline
        self.idle = 0
        self.advance = settings.FIRST_ADVANCE
        self._plain = starts_of(self.problem.graph, self.problem.order)
        for start in [*self._plain, *self.problem.options.get("starts", ())]:
            self.search.offer(start)

    @property
    def search_deadline(self) -> float:
        """Earlier while nothing is under budget: the rest goes to finding the least memory."""
        if self.search.schedule is not None:
            return self.deadline
        return self.deadline - search_settings.LEAST_MEMORY_SHARE * self.problem.time_limit

    @property
    def may_gain(self) -> bool:
        """Whether another round is worth its time."""
        bound = self._passes.bound_for(self.search.schedule)
        is_settled = self.search.cost <= bound * (1 + PROVED)
        return self.idle < (settings.SETTLED_PATIENCE if is_settled else settings.PATIENCE)

    def round(self) -> None:
        """One round of the search."""
        search, passes = self.search, self._passes
        self.deadline += compile_kernels()
        cost_before, peak_before = search.cost, search.least_peak
        starts = self._starts()
        share = settings.FIRST_SHARE if search.schedule is None else settings.ROUND_SHARE
        search.round(
            starts,
            moves_per_round(self.problem.graph),
            min(self.search_deadline, time.monotonic() + share * self.problem.time_limit),
            passes.enough,
            lambda: passes.report("search"),
        )
        has_intermediate = any(start.budget is not None for start in starts)
        has_missed = has_intermediate and search.least_peak >= peak_before
        self.advance = self.advance / 2 if has_missed else settings.FIRST_ADVANCE
        gain = settings.WORTH * cost_before
        is_worthwhile = math.isinf(cost_before) or search.cost < cost_before - gain
        self.idle = 0 if is_worthwhile else self.idle + 1

    def _starts(self) -> list[Start]:
        """Where the chains begin: the proposal, the incumbent, and the plain orders."""
        search, turn = self.search, self.search.rounds
        known = search.schedule or search.leanest
        free_chains = len(search.chains) - self._passes.is_busy  # there is a processor for each
        starts = []
        # A lone chain takes turns with the proposal.
        if free_chains > 1 or search.schedule is None or turn % 2 == 0:
            proposal, self._passes.proposal = self._passes.proposal, None
            starts = [Start(proposal, search_settings.WARM)] if proposal else []
        for i in range(len(starts), max(1, free_chains)):
            if known is not None and (i + turn) % 2 and search.fits(known):
                starts.append(Start(known, search_settings.WARM, self._intermediate_budget()))
            else:
                plain = self._plain[(i + turn // 2) % len(self._plain)]
                starts.append(Start(plain, search_settings.HOT, self._lower_budget()))
        return starts

    def _intermediate_budget(self) -> int | None:
        """While nothing is under budget: one on the way there from the least peak, in bytes."""
        budget, least = self.problem.budget, self.search.least_peak
        if least <= budget * (1 + settings.CLOSE_ENOUGH):
            return self._lower_budget()
        return int(least - self.advance * (least - budget))

    def _lower_budget(self) -> int | None:
        """In some rounds while little is missing: a budget for which more is missing, in bytes.

        Peaks come in steps, as large as values are. Where one lies a few bytes above the budget,
        that is too small a violation for chains to give up a cheap schedule.
        """
        budget, least = self.problem.budget, self.search.least_peak
        is_close = budget < least <= budget * (1 + settings.CLOSE_ENOUGH)
        is_turn = self.search.rounds % settings.LOWER_ONE_IN == settings.LOWER_ONE_IN - 1
        return int(budget * (1 - settings.LOWER_BY)) if is_close and is_turn else None
