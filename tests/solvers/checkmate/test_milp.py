import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings

from solvers import ComputationGraph, Problem, Progress, SolverError, Status, solve
from solvers.checkmate.formulation import OutOfTimeError, build_frontier
from solvers.checkmate.milp import solve_milp
from solvers.graph import input_order_peak
from solvers.graph.layer_graphs import unit_chain, vgg16, vgg19
from tests.brute_force import budgets, cheapest, random_graph
from tests.costs import sweep
from tests.graphs import NAMED, Expected, random_graphs, shared_graph
from tests.messages import raises

ENOUGH = 600
"""Seconds; the solver ends when it has a proof, some seconds after it began."""


@pytest.mark.parametrize("case", NAMED.values(), ids=list(NAMED))
def test_named_graphs_have_their_expected_optima(case: Expected) -> None:
    for budget, cost in case.optima.items():
        solution = solve(case.graph, budget, "milp")
        assert solution.cost == cost
        assert (solution.status is Status.OPTIMAL) == (cost is not None)
        assert cost is None or solution.bound == cost


@pytest.mark.parametrize("build", [vgg16, vgg19])
def test_vgg_layer_graphs_are_solved(build: type) -> None:
    solution = solve(build(), 0.9, "milp", ENOUGH)
    assert solution.status is Status.OPTIMAL


def test_published_optimum_of_vgg19() -> None:
    graph = vgg19()
    solution = solve(graph, graph.fixed_bytes + 51_380_224, "milp", ENOUGH)
    assert solution.status is Status.OPTIMAL
    assert solution.cost == solution.bound == 58_982_891_520


@pytest.mark.parametrize(
    ("name", "budget", "optimum"),
    sweep(
        [
            ("vgg16_b256_train", 14_893_000_000, 15_755),
            ("unet_b32_train", 15_901_000_000, 31_720),
            ("unet_b32_train", "90%", 31_355),
            ("unet_b32_train", "80%", 31_620),
        ]
    ),
)
def test_published_optima_of_networks(name: str, budget: int | str, optimum: float) -> None:
    solution = solve(shared_graph(name), budget, "milp", ENOUGH)
    assert solution.status is Status.OPTIMAL
    assert solution.cost == solution.bound == optimum


@pytest.mark.parametrize(
    ("share", "optimum"), [(0.95, 46_410_792_960), (0.9, 46_497_497_088), (0.8, None)]
)
def test_two_exact_methods_agree_about_vgg16(share: float, optimum: float | None) -> None:
    """The MILP of the paper, and the proof by cutting planes, which shares no program with it."""
    for solver in ("milp", "cutting_planes"):
        solution = solve(vgg16(), share, solver, ENOUGH)
        assert solution.status is (Status.INFEASIBLE if optimum is None else Status.OPTIMAL)
        assert solution.cost == (None if optimum is None else pytest.approx(optimum, rel=1e-9))


def test_a_time_limit_leaves_an_incumbent_and_a_bound() -> None:
    graph = unit_chain(40)  # which takes hours
    solution = solve(graph, "40%", "milp", time_limit=1)
    assert solution.cost is not None
    assert solution.bound is not None
    assert solution.bound <= solution.cost
    proved = solution.cost <= solution.bound * (1 + 1e-4)
    assert solution.status is (Status.OPTIMAL if proved else Status.FEASIBLE)


def test_a_deadline_ends_the_building_of_the_program() -> None:
    with pytest.raises(OutOfTimeError):
        build_frontier(unit_chain(8), 7, deadline=0.0)
    problem = Problem(unit_chain(8), 7, time_limit=10, started=-1e9)
    solution = solve_milp(problem)
    assert "before the MILP was built; this is a heuristic's answer" in solution.note
    assert solution.bound == 17


def test_a_backend_that_is_late_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()

    def never_ends(model: object, **how: object) -> None:
        is_over.wait()

    monkeypatch.setattr("solvers.programs.optimize.stoppable", lambda name, stop: never_ends)
    solution = solve(unit_chain(8), 7, "milp", time_limit=1)
    is_over.set()
    assert (solution.status, solution.bound) == (Status.FEASIBLE, 17)


@pytest.mark.parametrize("seed", sweep(range(60), 15))
def test_the_milp_finds_the_truth_unless_it_cannot_say_it(seed: int) -> None:
    graph = random_graph(seed, most_nodes=8)
    for budget in budgets(graph):
        if budget <= 0:
            continue
        truth = cheapest(graph, budget)
        solution = solve(graph, budget, "milp")
        if truth is None:
            assert solution.schedule is None
        elif solution.status is Status.OPTIMAL:
            assert solution.cost == truth
        else:
            assert solution.status is Status.TIMEOUT
            assert "twice within a stage" in solution.note


@pytest.mark.parametrize("case", NAMED.values(), ids=list(NAMED))
def test_the_expected_optima_of_the_named_graphs_are_the_truth(case: Expected) -> None:
    if len(case.graph) > 10:
        pytest.skip("too large for brute force")
    for budget, cost in case.optima.items():
        assert cheapest(case.graph, budget) == cost


def test_one_node_over_budget_is_proof_that_nothing_fits() -> None:
    solution = solve(unit_chain(8), 2, "milp")
    assert solution.status is Status.INFEASIBLE
    assert solution.least_budget is not None


@settings(max_examples=30)
@given(random_graphs(most=6))
def test_the_milp_is_between_its_bound_and_the_heuristics(graph: ComputationGraph) -> None:
    budget = max(1, int(0.8 * input_order_peak(graph)))
    exact = solve(graph, budget, "milp")
    for name in ("checkpoint_all", "checkpoint_last", "linearized_greedy", "linearized_sqrt"):
        cost = solve(graph, budget, name).cost
        if cost is not None:
            assert exact.cost is not None
            assert exact.cost <= cost + 1e-6


@pytest.mark.parametrize("budget", [3, 4, 5])
def test_the_unpartitioned_form_has_the_same_optimum(budget: int) -> None:
    assert solve(unit_chain(2), budget, "milp_unpartitioned").cost == (
        solve(unit_chain(2), budget, "milp").cost
    )


def test_a_warm_start_satisfies_the_program() -> None:
    graph = unit_chain(8)
    program = build_frontier(graph, 7)
    greedy = solve(graph, 7, "linearized_greedy")
    assert greedy.schedule is not None
    values = program.point(*greedy.schedule.to_matrices(graph))
    rows = program.model.matrix @ values
    assert (rows <= program.model.row_upper + 1e-9).all()
    assert (rows >= program.model.row_lower - 1e-9).all()
    assert program.cost(float(program.model.objective @ values)) == greedy.cost


def test_an_unknown_backend_and_solver_are_named() -> None:
    with raises(SolverError, "backend-unknown", "'nowhere'"):
        solve(unit_chain(3), 4, "milp", backend="nowhere")
    with raises(SolverError, "backend-unknown", "'nowhere'"):
        solve(unit_chain(3), 4, "milp", backend="cvxpy:nowhere")


def test_another_of_cvxpys_solvers_finds_the_same_optimum() -> None:
    assert solve(unit_chain(4), 4, "milp", backend="cvxpy:SCIPY").cost == (
        solve(unit_chain(4), 4, "milp").cost
    )


def test_bytes_of_very_different_sizes_do_not_spoil_the_optimum() -> None:
    small, large = 1, 10**12
    nodes = tuple(
        replace(node, memory=large if number % 2 else small)
        for number, node in enumerate(unit_chain(3).nodes)
    )
    graph = ComputationGraph(nodes)
    for budget in (2 * large + 2, 3 * large + 1, 3 * large + 2, input_order_peak(graph) - 1):
        solution = solve(graph, budget, "milp")
        assert solution.cost == cheapest(graph, budget)
        assert solution.peak is None or solution.peak <= budget


@pytest.mark.parametrize("backend", ["cvxpy", "highs"])
def test_an_interrupt_leaves_what_has_been_found(backend: str) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.phase == "solving the MILP" and progress.seconds > 1:
            raise KeyboardInterrupt

    graph = unit_chain(110)  # far more than a test has time for
    solution = solve(graph, "30%", "milp", time_limit=600, backend=backend, on_progress=interrupt)
    assert solution.status is Status.FEASIBLE
    assert solution.seconds < 500
    assert backend != "highs" or solution.bound is not None


@pytest.mark.parametrize("backend", ["cvxpy", "highs"])
def test_the_optimum_of_a_tightened_program_is_not_called_that_of_the_budget(backend: str) -> None:
    unit = 10**12
    case = NAMED["multi-output"]
    nodes = tuple(replace(node, memory=node.memory * unit) for node in case.graph.nodes)
    # Less than one pass takes by so little that the backend calls one pass feasible.
    solution = solve(ComputationGraph(nodes), 6 * unit - 3600, "milp", backend=backend)
    assert (solution.cost, solution.bound) == (7, 5)
    assert solution.status is Status.FEASIBLE


@pytest.mark.parametrize("backend", ["cvxpy", "highs"])
def test_a_wide_gap_is_no_proof(backend: str) -> None:
    solution = solve(unit_chain(8), 6, "milp", backend=backend, gap=0.9)
    assert solution.cost is not None
    assert solution.bound is not None
    assert (solution.status is Status.OPTIMAL) == (solution.cost <= solution.bound * (1 + 1e-4))


@pytest.mark.parametrize("name", ["milp", "lp_bound", "lp_rounding"])
def test_what_the_program_cannot_say_is_not_claimed(name: str) -> None:
    graph, budget = random_graph(581, most_nodes=8), 7
    truth = cheapest(graph, budget)  # 20, by a node computed twice within a stage
    solution = solve(graph, budget, name)
    assert truth is not None
    assert solution.bound is not None
    assert solution.bound <= truth or "twice in a stage" in solution.among


def test_one_pass_is_the_optimum_of_all_schedules() -> None:
    graph = unit_chain(3)
    solution = solve(graph, input_order_peak(graph), "milp", order="free")
    assert (solution.status, solution.bound_order, solution.among) == (Status.OPTIMAL, "free", "")


@pytest.mark.parametrize(("units", "least"), [(10, 18), (9, 19), (8, 20)])
def test_a_budget_a_byte_below_what_a_large_network_needs(units: int, least: float) -> None:
    """The backend takes it for what is needed, and a byte less as well."""
    small = unit_chain(8)
    graph = replace(small, nodes=tuple(replace(node, memory=2**36) for node in small.nodes))
    solution = solve(graph, units * 2**36 - 1, "milp", ENOUGH)
    assert (solution.cost, solution.note) == (least, "")
