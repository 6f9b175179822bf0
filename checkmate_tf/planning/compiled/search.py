"""Plans for a step that XLA compiles: each is compiled, and corrected by what the compiler says.

XLA fuses, packs and copies as it likes, which no forecast knows. But it says to the byte what a
compiled step takes, without a run, so that a plan is known to keep its budget before training.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tensorflow as tf

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.interrupts import Interrupts
from checkmate_tf.phases import phase
from checkmate_tf.planning.planner import PlannedStep
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.schedule_solver import ScheduleSolver
from checkmate_tf.planning.settings import (
    COMPILED_AIMS,
    COMPILED_FIRST_SHARE,
    COMPILED_NEAR_ENOUGH,
    COMPILED_TIMES,
)
from checkmate_tf.planning_display import detail
from checkmate_tf.plans.line import extra_in_words
from checkmate_tf.plans.plan import Plan
from checkmate_tf.rewriting.rewrite import emit_schedule, function_of
from checkmate_tf.trace.inlining import as_traced
from checkmate_tf.trace.inputs import argument_placeholders
from checkmate_tf.user_warnings import warn_user
from profiles.devices import default_device
from profiles.measure.compilation import CompiledMemory, compiled_memory
from solvers import BudgetError, Schedule, Solution, format_bytes, simulate, solve


@dataclass(frozen=True)
class _Compiled:
    """A schedule and what XLA allocates for it; without a solution, the step as it is."""

    memory: CompiledMemory
    schedule: Schedule
    solution: Solution

    @property
    def added(self) -> int:
        """Bytes beside variables and inputs."""
        return self.memory.added


class CompiledSearch:
    """A search for the fastest plan that keeps the budget once it is compiled."""

    def __init__(
        self,
        extracted: Extraction,
        request: Request,
        resident: int,
        notes: tuple[str, ...],
        interrupts: Interrupts,
    ) -> None:
        self.extracted = extracted
        self.graph = extracted.graph
        self.request = request
        self.resident = resident
        self.notes = notes
        self.interrupts = interrupts
        # XLA has an order of its own: it keeps a plan's if that is the step's, too.
        self.schedules = ScheduleSolver(
            self.graph, request.solver, "fixed", request.time_limit, interrupts
        )
        unchanged = Schedule(range(len(self.graph)))
        kept = solve(self.graph, simulate(self.graph, unchanged).peak, "checkpoint_all")
        traced = as_traced(extracted.program.concrete)
        self.plain = _Compiled(self._allocated(traced), unchanged, kept)
        self.tried: list[_Compiled] = []
        self.budget = 0

    def run(self, largest: int, under_way: bool) -> PlannedStep:
        """The plan; a share counts from `largest` bytes beside what is resident.

        Raises:
            BudgetError: none keeps the budget, and the request says that this is an error.
        """
        budget = self.request.budget
        if budget.least:
            self._try(None, 1.0)
            best = min((self.plain, *self.tried), key=lambda each: each.added)
            self.budget = self.resident + best.added
            return self._planned(best)
        self.budget = budget.in_bytes(self.resident, self.resident + largest)
        if self._keeps(self.plain):
            return self._planned(self.plain)
        self._try_some()
        keeping = [each for each in self.tried if self._keeps(each)]
        if keeping:
            return self._planned(min(keeping, key=_cost))
        return self._leanest(under_way)

    @property
    def allowed(self) -> int:
        """Bytes that the step may add to what is resident."""
        return self.budget - self.resident

    def _keeps(self, compiled: _Compiled) -> bool:
        return compiled.added <= self.allowed

    # Which plans are tried.

    def _try_some(self) -> None:
        """Plans in turn, each for live bytes that are corrected by what the compiler said."""
        live = COMPILED_FIRST_SHARE * self.allowed
        for aim, time_share in zip(COMPILED_AIMS, COMPILED_TIMES, strict=True):
            compiled = self._try(live, time_share)
            if compiled is None:
                break
            if self._keeps(compiled) and (
                compiled.added >= COMPILED_NEAR_ENOUGH * self.allowed
                or len(compiled.schedule) == len(self.graph)
            ):
                return
            live = self._live(compiled) * aim * self.allowed / compiled.added
        if not any(map(self._keeps, self.tried)):
            self._try(None, COMPILED_TIMES[-1])

    def _try(self, live: float | None, time_share: float) -> _Compiled | None:
        """A plan of so many live bytes, compiled; of the least for None."""
        # Rules look for no leanest one.
        solver = "auto" if live is None else None
        with phase("solve"):
            solution = self.schedules.solved(live, time_share, solver=solver)
        schedule = solution.schedule
        if schedule is None or any(schedule == each.schedule for each in self.tried):
            return None
        emit = partial(emit_schedule, self.extracted, schedule)
        function = function_of(self.extracted.program.concrete, emit, compiled=True)
        self.tried.append(_Compiled(self._allocated(function), schedule, solution))
        plan = self._planned(self.tried[-1]).plan
        detail(
            "plan-tried",
            f"a plan: {format_bytes(plan.compiled_peak or 0)} compiled, {extra_in_words(plan)}",
        )
        self.interrupts.pass_on()
        return self.tried[-1]

    def _allocated(self, function: Any) -> CompiledMemory:
        program = self.extracted.program
        placeholders = argument_placeholders(program.concrete)
        sized = [program.sized[each.op.name].outputs[0] for each in placeholders]
        sizes = [tf.TensorSpec(each.shape, each.dtype) for each in sized]
        with phase("compile"):
            return compiled_memory(function, sizes, default_device())

    def _live(self, compiled: _Compiled) -> int:
        """Bytes that a plan holds at most by the memory model, beside what is resident."""
        return simulate(self.graph, compiled.schedule).peak - self.graph.fixed_bytes

    # What comes out.

    def _leanest(self, under_way: bool) -> PlannedStep:
        """What runs if no plan keeps the budget: the plain step, if it is as lean as any."""
        plain = self.resident + self.plain.added
        best = min((self.plain, *self.tried), key=lambda each: each.added)
        need = self.resident + best.added
        if best is self.plain:
            code = "no-plan-saves-memory"
            note = (
                f"compiled by XLA the step takes {format_bytes(plain, self.budget)}, and none of "
                f"{len(self.tried)} plans takes less, so it runs as it is, over the budget of "
                f"{format_bytes(self.budget, plain)}; without XLA (jit_compile=False) a plan may "
                "keep it"
            )
        else:
            code = "leanest-plan-over-budget"
            note = (
                f"the leanest of {len(self.tried)} plans takes {format_bytes(need, self.budget)} "
                f"once XLA has compiled it ({need} bytes), more than the budget of "
                f"{format_bytes(self.budget, need)}; the step as it is takes {format_bytes(plain)}"
            )
            if self.request.on_infeasible != "min" and not under_way:
                raise BudgetError("budget-too-small", note, least=need)
        warn_user(code, note)
        self.notes = (*self.notes, note)
        return replace(self._planned(best), beyond_budget=True, keeps=False)

    def _planned(self, compiled: _Compiled) -> PlannedStep:
        graph, solution = self.graph, compiled.solution
        assert solution.cost is not None
        runs_plain = compiled is self.plain
        plan = Plan(
            graph=graph,
            schedule=compiled.schedule,
            budget=self.budget,
            predicted_peak=self.resident + self._live(compiled),
            baseline_peak=self.resident + self._live(self.plain),
            overhead=solution.cost / graph.one_pass_cost - 1,
            solution=solution,
            notes=self.notes,
            compiled_peak=self.resident + compiled.added,
            compiled_baseline_peak=self.resident + self.plain.added,
            compilations=len(self.tried),
        )
        count = len(self.tried)
        source = "1 plan compiled" if count == 1 else f"{count} plans compiled"
        return PlannedStep(plan, self.extracted, None, runs_plain=runs_plain, source=source)


def _cost(compiled: _Compiled) -> float:
    assert compiled.solution.cost is not None
    return compiled.solution.cost
