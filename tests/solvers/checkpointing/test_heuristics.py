import pytest
from hypothesis import given

from solvers import SOLVERS, ComputationGraph, Schedule, SolverError, Status, simulate, solve
from solvers.checkpointing.articulation import articulation_points
from solvers.checkpointing.checkpoints import checkpoint_matrices, forward_nodes
from solvers.checkpointing.heuristics import every_sqrt, last_matrices
from solvers.graph import BoolMatrix, input_order_peak
from solvers.graph.layer_graphs import unit_chain, vgg19
from solvers.graph.matrices import matrix_peak
from tests.graphs import NAMED, U_SHAPE, random_graphs, shared_graph
from tests.messages import raises

HEURISTICS = [name for name, entry in SOLVERS.items() if "heuristics" in entry.location]


def cost_and_peak(
    graph: ComputationGraph, matrices: tuple[BoolMatrix, BoolMatrix]
) -> tuple[float, int]:
    R, S = matrices
    cost = simulate(graph, Schedule.from_matrices(graph, R, S)).cost
    assert cost == (R * graph.costs).sum()
    return cost, matrix_peak(graph, R, S) - graph.fixed_bytes


@pytest.mark.parametrize(
    ("layers", "every", "sqrt", "last"),
    [
        (8, (17, 10), (21, 7), (53, 3)),
        (16, (33, 18), (45, 10), (169, 3)),
        (32, (65, 34), (89, 14), (593, 3)),
    ],
)
def test_costs_and_peaks_of_the_unit_chains(
    layers: int, every: tuple[int, int], sqrt: tuple[int, int], last: tuple[int, int]
) -> None:
    chain = unit_chain(layers)
    forward = forward_nodes(chain)
    assert cost_and_peak(chain, checkpoint_matrices(chain, forward)) == every
    assert cost_and_peak(chain, checkpoint_matrices(chain, every_sqrt(forward))) == sqrt
    assert cost_and_peak(chain, last_matrices(chain)) == last


def test_costs_and_peaks_of_vgg19() -> None:
    graph = vgg19()
    candidates = articulation_points(graph)
    assert cost_and_peak(graph, checkpoint_matrices(graph, forward_nodes(graph))) == (
        58_896_187_392,
        81_723_296,
    )
    assert cost_and_peak(graph, checkpoint_matrices(graph, every_sqrt(candidates))) == (
        72_512_667_648,
        69_447_584,
    )
    assert cost_and_peak(graph, last_matrices(graph)) == (389_852_987_392, 51_380_224)


def test_published_costs_on_the_unet() -> None:
    graph = shared_graph("unet_b32_train")
    one_pass = graph.one_pass_cost
    assert one_pass == 31_005
    budget = 15_901_000_000
    greedy = solve(graph, budget, "linearized_greedy", accounting="matrices")
    sqrt = solve(graph, budget, "linearized_sqrt", accounting="matrices")
    assert greedy.cost is not None
    assert greedy.cost / one_pass == pytest.approx(1.2313, abs=5e-5)
    assert sqrt.cost is not None
    assert sqrt.cost / one_pass == pytest.approx(1.4125, abs=5e-5)
    # The authors numbered the members of a Python set in the set's order; so does this figure.
    articulation = every_sqrt(list(set(articulation_points(graph))))
    cost, _ = cost_and_peak(graph, checkpoint_matrices(graph, articulation))
    assert cost / one_pass == pytest.approx(1.2677, abs=5e-5)
    every = checkpoint_matrices(graph, forward_nodes(graph))
    assert cost_and_peak(graph, every)[1] == pytest.approx(22.950e9, rel=1e-4)
    assert input_order_peak(graph) == pytest.approx(20.96e9, rel=1e-4)


def test_published_cost_on_vgg16() -> None:
    graph = shared_graph("vgg16_b256_train")
    for accounting in ("matrices", "simulator"):
        greedy = solve(graph, 14_893_000_000, "linearized_greedy", accounting=accounting)
        assert greedy.cost is not None
        assert greedy.cost / graph.one_pass_cost == pytest.approx(1.0523, abs=5e-5)


def test_the_simulator_lets_greedy_keep_more_than_the_matrices_do() -> None:
    graph = shared_graph("unet_b32_train")
    published = solve(graph, 15_901_000_000, "linearized_greedy", accounting="matrices")
    real = solve(graph, 15_901_000_000, "linearized_greedy")
    assert real.cost is not None
    assert published.cost is not None
    assert real.cost < published.cost


@pytest.mark.parametrize("name", ["chen_sqrt", "chen_greedy"])
def test_chens_rules_refuse_what_is_not_a_chain(name: str) -> None:
    with raises(SolverError, "graph-not-a-chain"):
        solve(U_SHAPE, "90%", name)


def test_too_small_a_budget_tells_the_least_that_would_do() -> None:
    solution = solve(unit_chain(8), 3, "linearized_greedy")
    assert solution.status is Status.TIMEOUT
    assert "every plan of this rule was tried" in solution.note
    assert solution.least_budget is not None
    assert solve(unit_chain(8), solution.least_budget, "linearized_greedy").schedule is not None


def test_what_one_node_needs_is_a_proof_for_every_rule() -> None:
    assert solve(unit_chain(8), 2, "checkpoint_all").status is Status.INFEASIBLE


def test_an_unknown_accounting_is_refused() -> None:
    with raises(SolverError, "option-invalid", "accounting"):
        solve(unit_chain(3), 10, "checkpoint_all", accounting="guess")


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize("graph", [case.graph for case in NAMED.values()], ids=list(NAMED))
def test_every_heuristic_is_honest_on_the_named_graphs(name: str, graph: ComputationGraph) -> None:
    check_honest(graph, name)


@given(random_graphs())
def test_every_heuristic_is_honest_on_random_graphs(graph: ComputationGraph) -> None:
    for name in HEURISTICS:
        check_honest(graph, name)


def check_honest(graph: ComputationGraph, name: str) -> None:
    for share in (1.0, 0.7):
        try:
            solution = solve(graph, max(1, int(share * input_order_peak(graph))), name)
        except SolverError:
            continue
        if solution.schedule is None:
            assert solution.status in (Status.TIMEOUT, Status.INFEASIBLE)
            assert solution.least_budget is not None
        else:
            assert solution.cost is not None
            assert solution.cost >= graph.one_pass_cost
            assert solution.peak == simulate(graph, solution.schedule).peak
