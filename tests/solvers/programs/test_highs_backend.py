import threading

import numpy as np
import pytest
import scipy.sparse as sp

from solvers import Status
from solvers.programs.backends.highs import solve
from solvers.programs.linear_program import LinearModel

pytest.importorskip("highspy")


def knapsack(n: int = 3, seed: int = 0) -> LinearModel:
    """max value within a weight, as a minimization of binaries."""
    draw = np.random.default_rng(seed)
    values = np.array([4.0, 5.0, 6.0]) if n == 3 else draw.integers(50, 99, n).astype(float)
    weights = np.array([[2.0, 3.0, 4.0]]) if n == 3 else draw.integers(50, 99, (20, n))
    return LinearModel(
        -values,
        sp.csr_matrix(np.asarray(weights, dtype=float)),
        np.full(len(weights), -np.inf),
        np.asarray(weights, dtype=float).sum(axis=1) * 0.6,
        np.zeros(n),
        np.ones(n),
        np.ones(n, dtype=np.bool_),
    )


def test_an_optimum_with_its_bound() -> None:
    result = solve(knapsack(), time_limit=5)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(-9)
    assert result.bound == pytest.approx(-9)
    assert result.values is not None
    assert result.values.round().tolist() == [1, 1, 0]


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    solve(knapsack(), time_limit=5)
    assert capfd.readouterr() == ("", "")


def test_a_relaxation_is_lower() -> None:
    result = solve(knapsack().relaxed(), time_limit=5)
    assert result.objective == pytest.approx(-9 - 0.4 * 6 / 4)
    assert result.bound == result.objective


def test_infeasible_is_a_status_of_its_own() -> None:
    model = knapsack()
    impossible = LinearModel(
        model.objective,
        model.matrix,
        np.array([100.0]),
        np.array([np.inf]),
        model.lower,
        model.upper,
        model.integer,
    )
    result = solve(impossible, time_limit=5)
    assert result.status is Status.INFEASIBLE
    assert result.values is None


def test_out_of_time_keeps_incumbent_and_bound() -> None:
    result = solve(knapsack(200), time_limit=0.5, relative_gap=0.0, start=np.zeros(200))
    assert result.status is Status.FEASIBLE
    assert result.objective is not None
    assert result.bound is not None
    assert result.bound < result.objective < 0


def test_another_thread_can_stop_it() -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    result = solve(knapsack(200), time_limit=60, relative_gap=0.0, stop=stop)
    assert result.status in (Status.FEASIBLE, Status.TIMEOUT)
