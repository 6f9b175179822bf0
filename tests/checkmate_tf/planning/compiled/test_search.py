"""Which plans are compiled where XLA itself computes again what is over the device's memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.interrupts import Interrupts
from checkmate_tf.planning.compiled.search import Compiled, CompiledSearch
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.request import parse_request
from tests.dense_steps import dense_model, numbers

UNCHANGED, PLANNED = 0.55, 1.1
"""Bytes for each live byte of the step as it is, and of plans, which fuse less: so of a GPT."""

BUDGET, LIMIT = 0.55, 0.565
"""Shares of what the unchanged step adds: what plans may add, and what XLA brings steps down to."""

LEANEST = 0.1
"""Share of the unchanged step's live bytes."""


class AboveItsLimit(CompiledSearch):
    """Plans of all sizes; of what they take above XLA's own limit it saves up to a share of all."""

    saves = 0.0

    def compile_for(self, live: float | None, time_share: float) -> Compiled:
        unchanged = super().live_bytes(self.plain)
        live = max(LEANEST * unchanged, live or 0.0)
        takes = PLANNED * live
        added = max(min(takes, LIMIT * self.plain.added), (1 - self.saves) * takes)
        cost = self.graph.one_pass_cost * (1 + (1 - live / unchanged) ** 4 / 4)
        solution = replace(self.plain.solution, cost=cost, peak=int(live))
        self.tried.append(Compiled(int(added), self.plain.schedule, solution))
        return self.tried[-1]

    def live_bytes(self, compiled: Compiled) -> int:
        return compiled.solution.peak if compiled in self.tried else super().live_bytes(compiled)


@pytest.fixture(scope="module")
def search():
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    batch = tuple(map(tf.constant, numbers(4096)))
    extracted = extract_step(tf.function(model.train_step).get_concrete_function(batch))
    resident = extracted.graph.fixed_bytes
    device = replace(current_device(), copies_early=False)
    question = Question(extracted, resident, 0, 0, 0, (), device=device)
    request = parse_request(0.5, "auto", None, "roofline", 1, "free", True)
    unchanged = CompiledSearch(question, request, 0, Interrupts())
    added = int(UNCHANGED * unchanged.live_bytes(unchanged.plain))
    question = replace(question, budget=resident + int(BUDGET * added), baseline_peak=added)
    return AboveItsLimit(question, request, added, Interrupts())


@pytest.mark.parametrize("saves", [0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4])
def test_a_plan_near_the_budget_is_found_where_bytes_stay_above_it(search, saves):
    search.saves = saves
    search.tried.clear()
    added = search.run(under_way=False).plan.compiled_peak - search.question.resident
    assert 0.85 * search.allowed <= added <= search.allowed
    assert len(search.tried) <= 5
