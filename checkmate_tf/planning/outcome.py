"""What comes of a question: a plan, and what runs the step by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from checkmate_tf.distribution.emission import ReplicatedStep
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.plans.plan import Plan


@dataclass(frozen=True)
class Outcome:
    """A plan, the extraction that it belongs to, and the function that ran for trial, if any.

    Attributes:
        function: what ran it for trial, if that may be used again.
        keeps: whether it is expected to stay within the budget.
        runs_plain: the step runs as it is, in TensorFlow's own order, which takes as little as any
            plan, or fits.
        beyond_budget: the plan is the leanest one, and known to need more than the budget.
        untried: its trial run failed for a reason that may pass.
        replicated: the whole step, where several replicas run it; the plan is for one of them.
        source: where the plan comes from, or what became of it, for the user; "" if it is of a step
            that has been planned before and was traced again.
        is_cold: it has not run yet, and its first run may hold more, in which kernels are chosen.
    """

    plan: Plan
    extracted: Extraction
    function: Callable[..., Any] | None = None
    keeps: bool = True
    runs_plain: bool = False
    beyond_budget: bool = False
    untried: bool = False
    replicated: ReplicatedStep | None = None
    source: str = ""
    is_cold: bool = False
