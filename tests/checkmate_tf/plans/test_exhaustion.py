"""Who holds the memory at the moment at which it is exhausted."""

from __future__ import annotations

from checkmate_tf.plans.exhaustion import who_holds
from checkmate_tf.plans.plan import Origin, Plan
from solvers import ComputationGraph, Node, Schedule, solve

MIB = 1 << 20


def plan_of(graph, schedule, resident=10 * MIB, peak=50 * MIB):
    solution = solve(graph, 1000 * MIB, "checkpoint_all")
    lines = tuple(f"train.py:{number}" for number in range(len(graph)))
    origin = Origin("content", (), resident, "a device", "2.21.0", 64, lines=lines)
    sizes = (100 * MIB, peak, peak)
    return Plan(graph, schedule, *sizes, 0.0, solution, origin=origin)


def chain():
    """Of three layers, and the gradient of the second."""
    return ComputationGraph(
        (
            Node("net/first/mul", 1.0, 30 * MIB),
            Node("net/second/mul", 1.0, 20 * MIB, dependencies=(0,)),
            Node("net/third/mul", 1.0, 5 * MIB, dependencies=(1,)),
            Node("gradient_tape/net/second/grad", 1.0, 1 * MIB, dependencies=(1, 2)),
        ),
        fixed_bytes=7 * MIB,
    )


def test_it_is_told_for_the_operation_that_failed():
    plan = plan_of(chain(), Schedule(range(4)))
    told = who_holds(plan, 10 * MIB, None, node=2).splitlines()
    assert told[0] == "no memory was left for 'third', made at train.py:2; held then, by the plan:"
    sizes = ["20.0 MiB  second", "7.0 MiB  variables and inputs", "5.0 MiB  third"]
    for line, size in zip(told[1:4], sizes, strict=True):
        assert line.lstrip().startswith(size)
    assert "train.py:1" in told[1]


def test_else_for_the_peak():
    told = who_holds(plan_of(chain(), Schedule(range(4))), 10 * MIB, None).splitlines()
    assert "30.0 MiB  first" in told[1]


def test_of_several_computations_it_is_the_fullest():
    again = Schedule([0, 1, 2, 0, 1, 3])
    told = who_holds(plan_of(chain(), again), 10 * MIB, None, node=1)
    assert "30.0 MiB  first" in told
    assert "5.0 MiB  third" in told


def test_the_batch_that_would_fit():
    """40 MiB are added by 64; 20 are left."""
    told = who_holds(plan_of(chain(), Schedule(range(4))), 80 * MIB, 100 * MIB).splitlines()[-1]
    assert "73.0 MiB that are held beside the step" in told
    assert "a batch of about 31 instead of 64" in told
