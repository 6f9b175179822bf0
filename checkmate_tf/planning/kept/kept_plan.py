"""One plan that was made before: what is known of it, and whether it can be taken now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from checkmate_tf.planning import settings
from checkmate_tf.planning.baseline import Baseline
from checkmate_tf.planning.kept.plan_store import Entry
from checkmate_tf.planning.question import Question
from checkmate_tf.plans.documents import read
from checkmate_tf.plans.plan import Plan
from solvers import CheckmateError, ComputationGraph, format_bytes, simulate

OTHER_STEP = "it is of another step"
"""So begins the reason why a plan does not fit, where its graph is not that of the step."""


@dataclass(frozen=True)
class KeptPlan:
    """A plan that was made before.

    Attributes:
        plan: it.
        keeps: whether it was expected to stay within the budget when it was made.
        beyond_budget: it was the leanest one, and known to need more than the budget.
        runs_plain: it is the step as it is, in TensorFlow's own order.
        baseline: what was known of the unchanged step then; None where nobody kept that.
        untried: a trial run failed for a reason that may have passed; one more start tries.
        path: of its file in the cache; None of one that the user named, or of this process.
    """

    plan: Plan
    keeps: bool = True
    beyond_budget: bool = False
    runs_plain: bool = False
    baseline: Baseline | None = None
    untried: bool = False
    path: Path | None = None

    @property
    def baseline_ran(self) -> bool:
        """Whether the unchanged step need not run for trial: for a named plan nothing does."""
        known = self.baseline
        if known is None or self.untried:
            return False
        return self.path is None or known.was_tried

    def workspaces(self, content: str, count: int) -> tuple[int, ...] | None:
        """Bytes that each operation needs only while it runs, as the plan's graph counts them.

        None where it does not say it for a step of this content, of `count` operations.
        """
        origin = self.plan.origin
        if origin is None:
            return (0,) * count  # as `checkmate-tf extract` counts, whose graphs `solve` plans
        return (
            origin.workspaces
            if (origin.content, len(origin.workspaces)) == (content, count)
            else None
        )

    def at(self, graph: ComputationGraph, budget: int) -> Plan:
        """The plan for an equal graph, within `budget` bytes."""
        overhead = _overhead(self.plan, graph)
        return replace(self.plan, graph=graph, budget=budget, overhead=overhead)

    def why_not(self, question: Question, is_least: bool) -> str:
        """Why the plan does not fit now; "" if it does.

        Args:
            question: of the step now, with the graph that the plan is for.
            is_least: the least memory was asked for, whatever it is.
        """
        plan, graph = self.plan, question.extracted.graph
        if _shape(plan.graph) != _shape(graph):
            return f"{OTHER_STEP}: {_difference(plan.graph, graph)}"
        if self.untried:
            return "a trial run failed when it was made, and may be possible now"
        changed = abs(_overhead(plan, graph) - plan.overhead)
        if self.path is not None and changed > settings.OTHER_COSTS:
            return "operations cost otherwise than when it was made"
        if is_least:
            return ""
        if question.measured_baseline_peak is not None and plan.measured_baseline_peak is None:
            return (
                "its share counts from what the unchanged step was expected to need, not measured"
            )
        resident = plan.graph.fixed_bytes if plan.origin is None else plan.origin.resident
        most = plan.compiled_peak or max(plan.predicted_peak, plan.measured_peak or 0)
        more = question.resident - resident
        room, then = question.limit - question.resident, plan.budget - resident
        used = max(then, most - resident)  # the leanest may need more than there was
        may_be_faster = self.path is not None and plan.overhead > 0
        if room > (1 + settings.MORE_ROOM) * used and (may_be_faster or not self.keeps):
            return f"{format_bytes(room - then)} more are free for it than when it was made"
        said_just_now = self.beyond_budget and self.path is None
        if said_just_now or (not self.keeps and more <= settings.MORE_ROOM * used):
            return ""  # as was said when it was made, there is no leaner one
        if most + more > question.limit:
            need, limit = most + more, question.limit
            held = f"it may need {format_bytes(need, limit)} now, the budget is "
            held += format_bytes(limit, need)
            if more > 0:
                held += f", and {format_bytes(more)} more are held beside it than when it was made"
            return held
        return ""


def named_plan(plan: Plan) -> KeptPlan:
    """A plan that the user named, with what it says of the unchanged step."""
    if plan.origin is None:
        return KeptPlan(plan)
    baseline = Baseline(
        plan.origin.resident,
        plan.baseline_peak,
        plan.measured_baseline_peak,
        seconds=plan.plain_seconds,
    )
    # XLA would take other bytes for the step written down anew in its own order.
    is_unchanged = plan.compiled_peak is not None and (
        plan.compiled_peak == plan.compiled_baseline_peak and len(plan.schedule) == len(plan.graph)
    )
    return KeptPlan(plan, baseline=baseline, runs_plain=is_unchanged)


def kept_plan(entry: Entry) -> KeptPlan:
    """The plan in a file of the cache.

    Raises:
        CheckmateError: the file is broken, or its parts don't belong together.
    """
    facts = entry.document["kept"]
    try:
        known = read(facts, "baseline", dict)
        baseline = Baseline(
            resident=read(known, "resident", int),
            forecast=read(known, "forecast", int),
            measured=read(known, "measured", (int, type(None))),
            note=read(known, "note", str),
            seconds=read(known, "seconds", (int, float, type(None))),
        )
        plan = Plan.from_json(entry.document)
        if plan.origin is None:
            raise CheckmateError("not-a-kept-plan", "it does not say what it was made for")
        return KeptPlan(
            plan,
            keeps=read(facts, "keeps", bool),
            beyond_budget=read(facts, "beyond_budget", bool),
            runs_plain=read(facts, "runs_plain", bool),
            baseline=baseline,
            untried=read(facts, "untried", bool),
            path=entry.path,
        )
    except CheckmateError as error:
        raise CheckmateError(error.code, f"{entry.path}: {error}") from error


def _overhead(plan: Plan, graph: ComputationGraph) -> float:
    """Extra cost of the plan on an equal graph, whose costs may be others."""
    if graph.costs.tolist() == plan.graph.costs.tolist():
        return plan.overhead
    return simulate(graph, plan.schedule).cost / graph.one_pass_cost - 1


def _shape(graph: ComputationGraph) -> tuple[Any, ...]:
    """Equal for graphs with the same schedules in the same memory."""
    return tuple(
        (
            node.memory,
            node.operations,
            node.recomputable,
            node.dependencies,
            node.after,
            node.expired_by,
        )
        for node in graph.nodes
    )


def _difference(theirs: ComputationGraph, ours: ComputationGraph) -> str:
    """What tells two graphs apart, for the user."""
    if len(theirs) != len(ours):
        return f"{len(theirs)} nodes in {theirs.name!r}, and {len(ours)} in {ours.name!r} now"
    pairs = zip(_shape(theirs), _shape(ours), strict=True)
    place = next(number for number, (one, other) in enumerate(pairs) if one != other)
    nodes = theirs.nodes[place], ours.nodes[place]
    one, other = (f"{each.name!r} of {format_bytes(each.memory)}" for each in nodes)
    return f"node {place} was {one}, and is {other} now"
