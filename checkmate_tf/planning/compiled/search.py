"""Plans for a step that XLA compiles: each is compiled, and corrected by what the compiler says.

XLA fuses, packs and copies as it likes, which no forecast knows. But it says to the byte what a
compiled step takes, without a run, so that a plan is known to keep its budget before training.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.interrupts import Interrupts
from checkmate_tf.phases import phase
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.schedule_solver import ScheduleSolver
from checkmate_tf.planning.settings import (
    COMPILED_AIMS,
    COMPILED_ENOUGH,
    COMPILED_LEAST_RATIO,
    COMPILED_LEAST_SAVED,
    COMPILED_MORE,
    COMPILED_NEAR_ENOUGH,
    COMPILED_TIMES,
    COMPILED_WASTE,
    RECOMPUTED_LEAST_RATIO,
    WORTH_A_COMPILATION,
)
from checkmate_tf.planning.too_small import TooSmallError
from checkmate_tf.plans.line import extra_in_words
from checkmate_tf.plans.plan import Plan
from checkmate_tf.program.rewrite import emit_schedule, function_of
from checkmate_tf.progress import detail
from checkmate_tf.trace.inputs import argument_placeholders
from checkmate_tf.trace.program import Program
from checkmate_tf.user_warnings import warn_user
from profiles.measure.compilation import CompiledMemory, compiled_memory
from solvers import Schedule, Solution, format_bytes, simulate, solve

_RECOMPUTED = "XLA recomputes some values by itself; the extra time does not include that"


def compiled_bytes(program: Program, function: Any) -> CompiledMemory:
    """What XLA allocates for a ConcreteFunction that takes the arguments of the step.

    Raises:
        NotCompilableError: XLA can't compile it.
    """
    placeholders = argument_placeholders(program.concrete)
    sized = [program.sized[each.op.name].outputs[0] for each in placeholders]
    sizes = [tf.TensorSpec(each.shape, each.dtype) for each in sized]
    with phase("compile"):
        return compiled_memory(function, sizes, current_device().name)


@dataclass(frozen=True)
class Compiled:
    """A schedule that XLA has compiled.

    Attributes:
        added: bytes that XLA allocates for it beside the arguments.
        schedule, solution: it, and what the solver said of it.
        is_recomputed: XLA recomputes some values by itself, or it would take more.
    """

    added: int
    schedule: Schedule
    solution: Solution
    is_recomputed: bool = False

    @property
    def cost(self) -> float:
        """Of all that is computed, in the unit of the graph."""
        assert self.solution.cost is not None
        return self.solution.cost


class CompiledSearch:
    """A search for the fastest plan that keeps the budget once it is compiled."""

    def __init__(
        self,
        question: Question,
        request: Request,
        unchanged: int,
        interrupts: Interrupts,
        is_recomputed: bool = False,
    ) -> None:
        """Nothing is compiled yet but the unchanged step.

        Args:
            question, request: what is asked for.
            unchanged: bytes that the step adds as it is.
            interrupts: those of the user.
            is_recomputed: as for `Compiled`, of the unchanged step.
        """
        self.question = question
        self.graph = question.extracted.graph
        self.request = request
        self.notes = question.notes
        self.interrupts = interrupts
        # XLA has an order of its own: it keeps a plan's if that is the step's, too.
        self.schedules = ScheduleSolver(
            self.graph, request.solver, "fixed", request.time_limit, interrupts
        )
        in_order = Schedule(range(len(self.graph)))
        kept = solve(self.graph, simulate(self.graph, in_order).peak, "checkpoint_all")
        self.plain = Compiled(unchanged, in_order, kept, is_recomputed)
        self.tried: list[Compiled] = []
        self.budget = question.budget

    def run(self, under_way: bool, named: Schedule | None = None) -> Outcome:
        """The plan.

        Args:
            under_way: a signature that needs as much has been planned before.
            named: a schedule that is compiled first, and taken if it keeps the budget.

        Raises:
            TooSmallError: none keeps the budget, and the request says that this is an error.
        """
        if self.request.budget.least:
            self.compile_for(None, 1.0)
            self.budget = self.question.resident + self._best.added
            return self.planned(self._best)
        if named is not None:
            seen = simulate(self.graph, named)
            plain = self.plain.solution
            solution = replace(plain, schedule=named, cost=seen.cost, peak=seen.peak)
            given = self._compile(named, solution)
            if self._keeps(given):
                return self.planned(given)
        if self._keeps(self.plain):
            return self.planned(self.plain)
        self._try_some()
        if self._keeping:
            return self.planned(min(self._keeping, key=lambda each: each.cost))
        if self.request.on_infeasible != "min" and not under_way:
            least = self.question.resident + self._best.added
            leanest = self.planned(self._best)
            raise TooSmallError("budget-too-small", self._shortfall, least, leanest, least)
        warn_user("leanest-plan-over-budget", self._shortfall)
        return self.leanest

    @property
    def allowed(self) -> int:
        """Bytes that the step may add to what is resident."""
        return self.question.limit - self.question.resident

    def _keeps(self, compiled: Compiled) -> bool:
        return compiled.added <= self.allowed

    @property
    def _keeping(self) -> list[Compiled]:
        return [each for each in self.tried if self._keeps(each)]

    # Which plans are tried.

    def _try_some(self) -> None:
        """Plans in turn, each for live bytes that are corrected by what the compiler said."""
        live = self.allowed / self._first_ratio
        if self.question.device.copies_early:
            # There the ties alone often save half, and bits are more likely to stay.
            in_order = self._compile(self.plain.schedule, self.plain.solution)
            if self._keeps(in_order):
                return
            live = self.live_bytes(in_order) * self.allowed / in_order.added
        for number, (aim, time_share) in enumerate(zip(COMPILED_AIMS, COMPILED_TIMES, strict=True)):
            if number >= COMPILED_ENOUGH and any(map(self._keeps, self.tried[:-1])):
                return
            # The best schedule for a little more memory is often the same one.
            tries = (self.compile_for(live * more, time_share) for more in COMPILED_MORE)
            compiled = next(filter(None, tries), None)
            if compiled is None:
                break
            if self._keeps(compiled) and self._is_near_enough(compiled):
                return
            live = self._corrected(aim * self.allowed)
        if not self._keeping:
            self.compile_for(None, COMPILED_TIMES[-1])
        # The first that keeps the budget may be far below it.
        if self._keeping == self.tried[-1:] and not self._is_near_enough(self.tried[-1]):
            self.compile_for(self._corrected(COMPILED_AIMS[-1] * self.allowed), COMPILED_TIMES[-1])

    def _corrected(self, aim: float) -> float:
        """Live bytes for which XLA is likely to take `aim` bytes, by what it takes for others.

        It takes in proportion to them. Where one plan keeps the budget and another one does not,
        the next one lies between them; and where the last correction has saved less than it
        should, the next one goes as much further.
        """
        under = max(self._keeping, key=_added, default=None)
        over = min((each for each in self.tried if not self._keeps(each)), key=_added, default=None)
        if under is not None and over is not None:
            share = (aim - under.added) / (over.added - under.added)
            least = self.live_bytes(under)
            return least + max(0.0, share) * (self.live_bytes(over) - least)
        *_, last = self.tried
        live = self.live_bytes(last) * aim / last.added
        if len(self.tried) > 1 and over is not None:
            before = self.tried[-2]
            fewer = self.live_bytes(before) - self.live_bytes(last)
            saved = max((before.added - last.added) / fewer, COMPILED_LEAST_SAVED) if fewer else 1.0
            live = min(live, self.live_bytes(last) - (last.added - aim) / saved)
        return max(live, COMPILED_LEAST_SAVED * self.live_bytes(last))

    @property
    def _first_ratio(self) -> float:
        """Bytes that XLA is expected to take for each live byte of a first plan.

        For the step as it is, the compiler has said it: less than one byte where XLA fuses
        operations, whose values between them then take no memory. A plan has less of that.
        """
        unchanged = self.plain.added / max(1, self.live_bytes(self.plain))
        least = RECOMPUTED_LEAST_RATIO if self.plain.is_recomputed else COMPILED_LEAST_RATIO
        return COMPILED_WASTE * max(unchanged, least)

    def _is_near_enough(self, compiled: Compiled) -> bool:
        unused = self.allowed - compiled.added
        extra = compiled.cost / self.graph.one_pass_cost - 1
        return extra <= WORTH_A_COMPILATION or unused <= (1 - COMPILED_NEAR_ENOUGH) * self.budget

    def compile_for(self, live: float | None, time_share: float) -> Compiled | None:
        """A plan of so many live bytes, compiled; of the least for None.

        Args:
            live: bytes by the memory model, beside what is resident.
            time_share: of the time limit, for the solver.

        Returns:
            None where there is no such schedule, or it has been compiled before.
        """
        # Rules look for no leanest one.
        solver = "auto" if live is None else None
        with phase("solve"):
            solution = self.schedules.solved(live, time_share, solver=solver)
        schedule = solution.schedule
        if schedule is None or any(schedule == each.schedule for each in self.tried):
            return None
        return self._compile(schedule, solution)

    def _compile(self, schedule: Schedule, solution: Solution) -> Compiled:
        program = self.question.extracted.program
        emit = partial(emit_schedule, self.question.extracted, schedule)
        function = function_of(program.concrete, emit, compiled=True)
        memory = compiled_bytes(program, function)
        compiled = Compiled(memory.added, schedule, solution, memory.is_recomputed)
        self.tried.append(compiled)
        plan = self.planned(compiled).plan
        detail(
            "plan-tried",
            f"a plan: {format_bytes(plan.compiled_peak or 0)} compiled, {extra_in_words(plan)}",
        )
        self.interrupts.pass_on()
        return compiled

    def live_bytes(self, compiled: Compiled) -> int:
        """Bytes that a plan holds at most by the memory model, beside what is resident."""
        return simulate(self.graph, compiled.schedule).peak - self.graph.fixed_bytes

    # What comes out.

    @property
    def _best(self) -> Compiled:
        """What takes the least of all that was compiled, the step as it is included."""
        return min((self.plain, *self.tried), key=lambda each: each.added)

    @property
    def _shortfall(self) -> str:
        """Why none keeps the budget."""
        plain, need = (self.question.resident + each.added for each in (self.plain, self._best))
        there, bound = self.question.available, self.question.bound
        if self._best is self.plain:
            return (
                f"compiled by XLA the step takes {format_bytes(plain, there)}, and none of "
                f"{len(self.tried)} plans takes less than that; {bound} is "
                f"{format_bytes(there, plain)}"
            )
        return (
            f"the leanest of {len(self.tried)} plans takes {format_bytes(need, there)} "
            f"once XLA has compiled it ({need} bytes), more than {bound}, "
            f"{format_bytes(there, need)}; the step as it is takes {format_bytes(plain)}"
        )

    @property
    def leanest(self) -> Outcome:
        """What takes the least, where nothing keeps the budget; its plan says so."""
        planned = self.planned(self._best)
        plan = replace(planned.plan, notes=(*planned.plan.notes, self._shortfall))
        return replace(planned, plan=plan, beyond_budget=True, keeps=False)

    def planned(self, compiled: Compiled) -> Outcome:
        """The step by a plan that was compiled."""
        graph, solution, resident = self.graph, compiled.solution, self.question.resident
        plan = Plan(
            graph=graph,
            schedule=compiled.schedule,
            budget=self.budget,
            budget_from=self.question.budget_from,
            predicted_peak=resident + self.live_bytes(compiled),
            baseline_peak=resident + self.live_bytes(self.plain),
            overhead=compiled.cost / graph.one_pass_cost - 1,
            solution=solution,
            notes=(*self.notes, _RECOMPUTED) if compiled.is_recomputed else self.notes,
            compiled_peak=resident + compiled.added,
            compiled_baseline_peak=resident + self.plain.added,
            compilations=len(self.tried),
        )
        count = len(self.tried)
        source = "1 plan compiled" if count == 1 else f"{count} plans compiled"
        runs_plain = compiled is self.plain
        extracted = self.question.extracted
        return Outcome(plan, extracted, None, runs_plain=runs_plain, source=source)


def _added(compiled: Compiled) -> int:
    return compiled.added
