"""Plans that were made before, for the same step: named by the user, or found in their cache.

Any schedule that the simulator lets pass computes what the step computes, so that a kept plan
can't change a result. What it may no longer do is keep the budget: that is judged here before it
is taken, and its steps are watched like those of a new plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import counts_small_buffers, held_bytes
from checkmate_tf.planning import settings
from checkmate_tf.planning.baseline import Baseline
from checkmate_tf.planning.kept import plan_store
from checkmate_tf.planning.kept.kept_plan import OTHER_STEP, KeptPlan, kept_plan, named_plan
from checkmate_tf.planning.kept.step_content import step_content
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.request import Request
from checkmate_tf.plans.plan import Plan
from checkmate_tf.progress import announce_beside
from checkmate_tf.trace.program import Program
from checkmate_tf.version import __version__
from profiles.devices import default_device, device_name
from profiles.measure.compiled_workspaces import compiler_name
from profiles.profile import Profile
from solvers import CheckmateError


class KeptPlans:
    """Those for the steps of one request, and what becomes of new ones.

    Example:
        >>> from checkmate_tf.planning.request import parse_request
        >>> request = parse_request(0.5, "auto", None, "roofline", 60, "free", True)
        >>> key = KeptPlans(request).key("0123456789abcdef")
        >>> key["budget"], key["solver"]
        ('50%', 'auto')
    """

    def __init__(self, request: Request, budget: str | None = None, compiled: bool = False) -> None:
        """For what the user asked for.

        Args:
            request: it.
            budget: stands for the one in the name of a plan.
            compiled: by XLA, which counts as a device of its own.
        """
        self._request = request
        self._budget = budget or _in_words(request)
        self._name_of = compiler_name if compiled else device_name
        self._known: dict[str, KeptPlan | None] = {}
        self._named_fits = False

    def find(self, program: Program) -> KeptPlan | None:
        """The plan for a step that the user named, or that was kept; None if there is none."""
        content = step_content(program)
        if content not in self._known:
            named = self._request.plan
            if named is not None and (_is_of(named, content) or not self._named_fits):
                self._known[content] = named_plan(named)
            else:
                self._known[content] = self._in_cache(content)
        return self._known[content]

    def baseline(self, program: Program) -> Baseline | None:
        """What the unchanged step was measured to need when a plan was kept, for any budget.

        A share then means the same bytes at every start.
        """
        kept = self.of_another_budget(program)
        return None if kept is None else kept.baseline

    def of_another_budget(self, program: Program) -> KeptPlan | None:
        """A plan for the step, whatever its budget, that tells what the unchanged one needs."""
        folder = plan_store.plan_folder()
        if folder is None:
            return None
        key = self.key(step_content(program))
        for entry in plan_store.same_step(folder, key):
            if all(entry.key.get(name) == key[name] for name in _OF_THE_UNCHANGED_STEP):
                with suppress(CheckmateError):
                    kept = kept_plan(entry)
                    if kept.baseline is not None and kept.baseline.measured is not None:
                        return kept
        return None

    def workspaces(self, program: Program) -> tuple[int, ...] | None:
        """Bytes that each operation of a step needs only while it runs, where a plan says it."""
        found = self.find(program)
        if found is None:
            return None
        return found.workspaces(step_content(program), len(program.operations))

    def judge(self, kept: KeptPlan, question: Question) -> bool:
        """Whether `kept` can be taken now; a line says why not.

        Raises:
            CheckmateError: the user named it, and it is of another step.
        """
        why = kept.why_not(question, self._request.budget.least)
        if kept.path is None:
            if why.startswith(OTHER_STEP):
                raise CheckmateError(
                    "plan-of-another-step", f"the plan can't be used: {why}; {_MAKE_ONE}"
                )
            self._named_fits = True
        elif not why:
            plan_store.note_use(kept.path)
        if why:
            which = "the plan that was named" if kept.path is None else "the kept plan"
            self._say("plan-not-taken", f"{which} is not taken, so another one is made: {why}")
        return not why

    def keep(self, made: KeptPlan) -> str:
        """Keep a new plan for the next time; what became of it, for the user.

        One that is `untried` a second time is kept like others: the reason has not passed.
        """
        plan, baseline = made.plan, made.baseline
        assert plan.origin is not None
        assert baseline is not None
        content = plan.origin.content
        folder = plan_store.plan_folder()
        if folder is None:
            return ""
        key = self.key(content)
        path = plan_store.file_of(folder, key)
        before = self._known.get(content)
        untried = made.untried and not (before is not None and before.untried)
        facts = {
            "key": key,
            "overhead": plan.planned_overhead,
            "measured_overhead": plan.measured_overhead,
            "keeps": made.keeps,
            "beyond_budget": made.beyond_budget,
            "runs_plain": made.runs_plain,
            "baseline": asdict(baseline),
            "untried": untried,
        }
        try:
            plan_store.write_entry(path, {**plan.to_json(), "kept": facts})
        except CheckmateError as error:
            return f"plan not kept: {error}"
        self._known[content] = replace(made, untried=untried, path=path)
        return "plan kept"

    def forget(self, program: Program) -> None:
        """A step was over its budget: the next process is to plan anew."""
        content = step_content(program)
        self._known.pop(content, None)
        folder = plan_store.plan_folder()
        if folder is not None:
            plan_store.remove(plan_store.file_of(folder, self.key(content)))

    def key(self, content: str) -> dict[str, Any]:
        """What a kept plan depends on, besides what the device holds."""
        request, device = self._request, default_device()
        optimizer = {**_ON_BY_DEFAULT, **tf.config.optimizer.get_experimental_options()}
        key = {
            "content": content,
            "budget": self._budget,
            "device": self._name_of(device),
            "limit": current_device().limit(),
            "memory_count": _what_is_counted(),
            "tensorflow": tf.__version__,
            "release": __version__,
            "costs": _name_of_costs(request.costs),
            "solver": request.solver,
            "order": request.order,
            "time_limit": request.time_limit,
            "trial_run": request.trial_run,
            "on_infeasible": request.on_infeasible,
            "graph_options": {name: optimizer[name] for name in sorted(optimizer)},
            "threads": tf.config.threading.get_inter_op_parallelism_threads(),
            "settings": {
                name: value for name, value in sorted(vars(settings).items()) if name.isupper()
            },
        }
        as_read_again: dict[str, Any] = json.loads(json.dumps(key))
        return as_read_again

    def _in_cache(self, content: str) -> KeptPlan | None:
        folder = plan_store.plan_folder()
        if folder is None:
            return None
        key = self.key(content)
        path = plan_store.file_of(folder, key)
        if not path.exists():
            self._tell_difference(folder, key)
            return None
        try:
            entry = plan_store.read_entry(path)
            if entry.key != key:
                raise CheckmateError(
                    "not-a-kept-plan", f"{path}: it was made for something else than its name says"
                )
            return kept_plan(entry)
        except CheckmateError as error:
            self._say(
                "kept-plan-unreadable",
                f"a kept plan can't be read, so another one is made: {error}",
            )
            return None

    def _tell_difference(self, folder: Path, key: Mapping[str, Any]) -> None:
        """Where plans of this step are kept for this budget, say what else they were made for."""
        for entry in plan_store.same_step(folder, key):
            if entry.key.get("budget") == key["budget"]:
                name = next(
                    (each for each in key if entry.key.get(each) != key[each]), "another release"
                )
                self._say(
                    "kept-plan-unfit",
                    "a plan that is kept for this step and budget does not fit, so another one is "
                    f"made: its {name.replace('_', ' ')} is {_short(entry.key.get(name))}, and now "
                    f"it is {_short(key[name])}",
                )
                return

    def _say(self, code: str, line: str) -> None:
        if self._request.verbose:
            announce_beside(code, line)


_OF_THE_UNCHANGED_STEP = (
    "content", "device", "limit", "memory_count", "tensorflow", "release", "graph_options",
    "threads",
)  # fmt: skip
"""What its peak depends on."""

_ON_BY_DEFAULT = dict.fromkeys(
    (
        "arithmetic_optimization",
        "constant_folding",
        "dependency_optimization",
        "function_optimization",
        "layout_optimizer",
        "loop_optimization",
        "remapping",
        "shape_optimization",
    ),
    True,
)
"""Grappler's options that are on where nobody has set them. Measuring costs switches some off for a
while; afterwards they are on again, but set."""

_MAKE_ONE = (
    "make one for this step, at the same batch size, with step.plan.save or `checkmate-tf plan` "
    "(with --batch-size where any batch may come), or leave plan= out"
)


def _what_is_counted() -> str:
    """Which buffers the device's allocator counts."""
    if held_bytes() is None:
        return "of nothing"
    return "of all buffers" if counts_small_buffers() else "of large buffers"


def _is_of(plan: Plan, content: str) -> bool:
    return plan.origin is not None and plan.origin.content == content


def _in_words(request: Request) -> str:
    """The budget as it was asked for."""
    budget = request.budget
    if budget.least:
        return "min"
    if budget.device:
        return "device"
    return f"{100 * budget.share:g}%" if budget.share is not None else str(budget.bytes)


def _name_of_costs(costs: str | Profile) -> str:
    if not isinstance(costs, Profile):
        return costs
    entries = sorted(repr(each) for each in costs.entries.items())
    digest = hashlib.sha256(repr((costs.device, costs.tensorflow, entries)).encode())
    return f"a profile of {costs.device}, {digest.hexdigest()[:16]}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else "another one"
