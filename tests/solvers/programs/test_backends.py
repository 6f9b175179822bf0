import threading
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

from solvers import SolverError, Status, solve
from solvers.checkmate.formulation import build_frontier
from solvers.graph.layer_graphs import unit_chain, vgg19
from solvers.programs.backends import backend
from solvers.programs.certificates import dual_bound, satisfies
from tests.graphs import NAMED, Expected
from tests.messages import raises, warns
from tests.solvers.programs.test_highs_backend import knapsack

PACKAGES = {"cvxpy": "cvxpy", "cvxpy:SCIPY": "cvxpy", "gurobi": "gurobipy", "highs": "highspy"}
BACKENDS = [name for name, package in PACKAGES.items() if find_spec(package) is not None]


@pytest.mark.parametrize("name", [name for name in BACKENDS if ":" not in name])
@pytest.mark.parametrize("budget", [3, 4, 5])
def test_every_backend_finds_the_same_optimum_of_the_same_model(name: str, budget: int) -> None:
    model = build_frontier(unit_chain(5), budget).model
    result = backend(name)(model, time_limit=60)
    reference = backend("cvxpy")(model, time_limit=60)
    assert result.status is reference.status is Status.OPTIMAL
    assert result.objective == pytest.approx(reference.objective, rel=1e-4)
    assert result.values is not None
    assert satisfies(model, result.values)
    assert result.bound == pytest.approx(reference.objective, rel=2e-4)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("case", NAMED.values(), ids=list(NAMED))
def test_every_backend_finds_the_optima_of_the_named_graphs(name: str, case: Expected) -> None:
    for budget, cost in case.optima.items():
        solution = solve(case.graph, budget, "milp", backend=name)
        assert solution.cost == cost
        assert (solution.status is Status.OPTIMAL) == (cost is not None)


@pytest.mark.parametrize("name", [name for name in BACKENDS if ":" not in name])
def test_every_backend_relaxes(name: str) -> None:
    model = build_frontier(unit_chain(5), 4).model.relaxed()
    result = backend(name)(model, time_limit=60)
    reference = backend("cvxpy")(model, time_limit=60)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(reference.objective, rel=1e-6)


def test_the_bound_of_a_relaxation_is_proved_by_its_multipliers() -> None:
    model = build_frontier(unit_chain(5), 4).model.relaxed()
    result = backend("cvxpy")(model, time_limit=60)
    assert result.objective is not None
    assert result.bound is not None
    assert result.bound == pytest.approx(result.objective, rel=1e-6)
    assert result.bound <= result.objective + 1e-9 * abs(result.objective)


def test_no_multipliers_prove_the_least_of_the_box() -> None:
    model = build_frontier(unit_chain(5), 4).model
    assert dual_bound(model, np.zeros(len(model.row_lower))) == 0.0


def test_gurobis_small_licence_is_explained_and_highs_steps_in_when_asked() -> None:
    pytest.importorskip("gurobipy")
    graph = vgg19()
    budget = graph.fixed_bytes + 51_380_224
    with raises(SolverError, "backend-licence"):
        solve(graph, budget, "milp", backend="gurobi")
    with warns("backend-replaced"):
        solution = solve(graph, budget, "milp", backend="gurobi", fallback=True)
    assert solution.cost == 58_982_891_520


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with raises(SolverError, "backend-not-installed", "gurobipy"):
        backend("gurobi")


def test_filters_of_warnings_are_left_alone_while_a_thread_solves() -> None:
    """One that is late ends when others have set their own."""
    results = []
    late = threading.Thread(
        target=lambda: results.append(backend("cvxpy")(knapsack(200), time_limit=0.5))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        filters = warnings.filters
        late.start()
        while late.is_alive():
            assert warnings.filters is filters
            late.join(0.01)
    assert [each.status for each in results] == [Status.FEASIBLE]
