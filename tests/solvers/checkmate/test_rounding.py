import pytest
from hypothesis import given, settings

from solvers import ComputationGraph, SolverError, Status, simulate, solve
from solvers.checkmate.formulation import build_frontier, build_unpartitioned
from solvers.checkmate.lp_relaxation import LpOptimum, relax
from solvers.graph import input_order_peak
from solvers.graph.layer_graphs import unit_chain, vgg16, vgg19
from solvers.problem import Problem
from solvers.programs.backends import backend
from tests.costs import sweep
from tests.graphs import SMALL_UNET_OPTIMA, random_graphs, shared_graph, small_unet
from tests.messages import raises


def lp_value(graph: ComputationGraph, activation_budget: int, printed: bool) -> float:
    program = build_frontier(graph, activation_budget, printed=printed)
    result = backend("cvxpy")(program.model.relaxed(), time_limit=60)
    assert result.status is Status.OPTIMAL
    assert result.objective is not None
    return program.cost(result.objective)


def test_published_values_of_the_relaxation() -> None:
    assert lp_value(unit_chain(8), 4, printed=True) == pytest.approx(22, rel=1e-6)
    assert lp_value(vgg19(), 51_380_224, printed=True) == pytest.approx(58_953_086_976, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "budget", "published"),
    sweep(
        [("vgg16_b256_train", 14_893_000_000, 15_570), ("unet_b32_train", 15_901_000_000, 31_603)]
    ),
)
def test_published_values_on_networks(name: str, budget: int, published: float) -> None:
    value = lp_value(shared_graph(name), budget, printed=False)
    assert round(value) == published


def test_the_frontier_and_the_tighter_rows_raise_the_relaxation() -> None:
    chain = unit_chain(8)
    program = build_unpartitioned(chain, 4, printed=True)
    result = backend("cvxpy")(program.model.relaxed(), time_limit=60)
    assert result.objective is not None
    unpartitioned = program.cost(result.objective)
    printed, tight = (lp_value(chain, 4, printed=each) for each in (True, False))
    assert 26 / unpartitioned == pytest.approx(21.56, abs=0.005)  # the published gap
    assert unpartitioned < printed < tight <= 26


@settings(max_examples=25)
@given(random_graphs(most=6))
def test_bound_and_rounding_enclose_the_optimum(graph: ComputationGraph) -> None:
    budget = max(1, int(0.8 * input_order_peak(graph)))
    bound = solve(graph, budget, "lp_bound").bound
    exact = solve(graph, budget, "milp")
    rounded = solve(graph, budget, "lp_rounding")
    if exact.cost is not None:
        assert bound is not None
        assert bound <= exact.cost + 1e-6
    if rounded.schedule is not None:
        assert exact.cost is not None
        assert exact.cost <= rounded.cost + 1e-6  # type: ignore[operator]
        assert simulate(graph, rounded.schedule).peak <= budget


@pytest.mark.parametrize(
    ("graph", "share", "optimum"),
    sweep([(vgg16(), 0.9, 46_497_497_088), (small_unet(), 0.8, SMALL_UNET_OPTIMA[0.8])]),
    ids=["vgg16", "unet"],
)
def test_bound_and_rounding_enclose_the_optimum_of_networks(
    graph: ComputationGraph, share: float, optimum: int
) -> None:
    bound = solve(graph, share, "lp_bound", 300).bound
    rounded = solve(graph, share, "lp_rounding", 300)
    assert bound is not None
    assert graph.one_pass_cost <= bound <= optimum
    assert rounded.schedule is not None
    assert optimum <= simulate(graph, rounded.schedule).cost < 1.05 * optimum


@settings(max_examples=25)
@given(random_graphs(most=8))
def test_limits_added_where_they_are_missed_give_the_whole_relaxation(
    graph: ComputationGraph,
) -> None:
    """As published it is the optimum of all rows at once; if tight, between that and (9)'s."""
    budget = max(1, int(0.75 * input_order_peak(graph)))
    problem = Problem(graph, budget)
    if problem.is_hopeless or input_order_peak(graph) <= budget:
        return
    program = build_frontier(graph, problem.activation_budget)
    whole = backend("cvxpy")(program.model.relaxed(), time_limit=60)
    published = relax(Problem(graph, budget, options={"tight": False}))
    if whole.objective is None:
        assert published.S is None
        return
    assert published.bound == pytest.approx(program.lower_bound(whole.bound), rel=1e-6)
    tight, exact = relax(problem).bound, solve(graph, budget, "milp").cost
    assert exact is None or tight is not None
    if tight is not None:
        assert published.bound <= tight + 1e-6
        assert exact is None or tight <= exact + 1e-6


@pytest.mark.slow
def test_a_large_network_is_rounded() -> None:
    graph = shared_graph("resnet50_b256_train")
    optimum = solve(graph, 0.7, "cutting_planes", 300)
    rounded = solve(graph, 0.7, "lp_rounding", 300, epsilons=[0.0])
    assert optimum.cost is not None
    assert rounded.cost is not None
    assert rounded.bound is not None
    assert "roundings" in rounded.statistics
    assert graph.one_pass_cost < rounded.bound <= optimum.cost
    assert rounded.cost < 1.05 * optimum.cost  # the published ratio


@pytest.mark.slow
def test_rounding_is_near_the_optimum_of_the_unet() -> None:
    graph = shared_graph("unet_b32_train")
    solution = solve(graph, 15_901_000_000, "lp_rounding")
    assert solution.cost is not None
    assert solution.cost / 31_720 < 1.03


@pytest.mark.slow
def test_rounding_as_published_misses_the_budget_of_the_unet() -> None:
    graph = shared_graph("unet_b32_train")
    published = solve(
        graph,
        15_901_000_000,
        "lp_rounding",
        rounding="deterministic",
        epsilons=[0.1],
        thresholds=[0.5],
        tight=False,
        repair=False,
    )
    assert published.schedule is None
    assert published.least_budget == pytest.approx(18.1e9, rel=0.1)


def test_randomized_rounding_is_reproducible() -> None:
    first, second = (
        solve(unit_chain(8), 5, "lp_rounding", rounding="randomized", seed=3) for _ in range(2)
    )
    assert first.schedule == second.schedule
    assert first.schedule is not None


def test_an_unknown_rounding_is_refused() -> None:
    with raises(SolverError, "option-invalid", "rounding"):
        solve(unit_chain(8), 5, "lp_rounding", rounding="upwards")


def test_less_memory_for_the_relaxation_raises_it() -> None:
    problem = Problem(unit_chain(8), 5)
    all_of_it, less = relax(problem).bound, relax(problem, epsilon=0.2).bound
    assert all_of_it is not None
    assert less is not None
    assert all_of_it <= less


def test_where_the_relaxation_takes_too_long_cutting_planes_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "solvers.checkmate.lp_relaxation.relax", lambda problem: LpOptimum(None, None)
    )
    solution = solve(unit_chain(8), 5, "lp_bound")
    assert solution.bound == pytest.approx(22, rel=1e-4)
    assert "cutting_planes" in solution.note
