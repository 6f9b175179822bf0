"""What workers tell each other about a plan; two processes meet in the test beside this one."""

from __future__ import annotations

import itertools

import pytest
import tensorflow as tf

from checkmate_tf.distribution import shared_plan
from checkmate_tf.distribution.shared_plan import Worker, agree, this_worker
from solvers import BudgetError, CheckmateError
from solvers.graph.layer_graphs import unit_chain
from tests.messages import raises

FIRST, SECOND = Worker("worker 0", is_first=True), Worker("worker 1", is_first=False)


@pytest.fixture(autouse=True)
def told(monkeypatch):
    """What was told, by its key: every plan is the same one of both workers."""
    told = {}
    monkeypatch.setattr(shared_plan, "_NUMBER", itertools.repeat(0))
    monkeypatch.setattr(shared_plan, "share_between_workers", told.__setitem__)
    monkeypatch.setattr(shared_plan, "shared_between_workers", lambda key, seconds: told.get(key))
    return told


def raising(error):
    def make():
        raise error

    return make


def never():
    raise AssertionError("the first worker plans for all")


def test_the_others_get_what_the_first_one_made():
    made = {"number": 3}
    assert agree(FIRST, unit_chain(3), lambda: made, 1.0) == made
    assert agree(SECOND, unit_chain(3), never, 1.0) == made


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (BudgetError("budget-too-small", "too small", least=7), BudgetError, "budget-too-small"),
        (ValueError("no good"), CheckmateError, "first-worker-failed"),
    ],
)
def test_why_there_is_none_is_told_to_all(error, kind, code):
    with pytest.raises(type(error)):
        agree(FIRST, unit_chain(3), raising(error), 1.0)
    with raises(kind, code) as caught:
        agree(SECOND, unit_chain(3), never, 1.0)
    assert getattr(caught.value, "least", None) == getattr(error, "least", None)


def test_a_worker_that_has_traced_another_step_is_refused():
    agree(FIRST, unit_chain(3), lambda: 1, 1.0)
    with raises(CheckmateError, "workers-differ"):
        agree(SECOND, unit_chain(4), never, 1.0)


def test_who_waits_for_nothing_gives_up():
    with raises(CheckmateError, "first-worker-silent"):
        agree(SECOND, unit_chain(3), never, 0.0)


def test_where_the_first_worker_is_gone_that_is_an_error(monkeypatch):
    def gone(key, seconds):
        raise tf.errors.UnavailableError(None, None, "connection refused")

    monkeypatch.setattr(shared_plan, "shared_between_workers", gone)
    with raises(CheckmateError, "first-worker-gone", "connection refused"):
        agree(SECOND, unit_chain(3), never, 1.0)


def test_one_process_alone_is_no_worker():
    assert this_worker("/job:worker/task:1/device:CPU:0") is None
