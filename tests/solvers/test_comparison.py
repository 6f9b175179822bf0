import csv
from pathlib import Path

import joblib
import pytest

from checkmate_tf.cli.plots import plot_comparison
from solvers import SOLVERS as TABLE
from solvers import BudgetError, Problem, Schedule, Solution, SolverError, answer, register
from solvers.comparison import Row, cases, run_case, run_cases, write_csv
from solvers.graph.layer_graphs import unit_chain
from tests.graphs import U_SHAPE
from tests.messages import raises

SOLVERS = ["milp", "checkpoint_all", "linearized_greedy", "chen_sqrt", "lp_bound"]


def outcome(row: Row) -> tuple[object, ...]:
    return row.graph, row.solver, row.budget, row.status, row.cost, row.peak, row.bound


def test_rows_come_in_the_order_of_the_cases() -> None:
    to_run = cases([unit_chain(4), U_SHAPE], ["90%", "70%"], SOLVERS)
    rows = run_cases(to_run)
    assert [(row.graph, row.budget, row.solver) for row in rows] == [
        (case.graph.name, case.budget, case.solver) for case in to_run
    ]


def test_a_row_says_all_that_fixes_it() -> None:
    (case,) = cases([unit_chain(8)], ["6"], ["milp"], time_limit=7, seed=5)
    row = run_case(case)
    assert (row.status, row.cost, row.bound, row.gap) == ("optimal in form", 21, 21, 0)
    assert row.note == "bound among schedules that compute no node twice in a stage"
    assert row.overhead == pytest.approx(100 * 4 / 17)
    assert (row.budget_bytes, row.budget_share) == (6, 0.6)
    assert (row.time_limit, row.seed, row.order) == (7, 5, "fixed")
    assert "cvxpy" in row.versions


def test_a_rule_that_is_not_valid_is_a_row_that_says_why() -> None:
    (case,) = cases([U_SHAPE], ["90%"], ["chen_sqrt"])
    row = run_case(case)
    assert row.status == "not valid"
    assert "not a chain" in row.note


def test_a_rule_over_budget_has_not_run_out_of_time() -> None:
    over, proof = run_cases(cases([unit_chain(8)], ["9", "2"], ["checkpoint_all"]))
    assert (over.status, over.least_budget) == ("over budget", 10)
    assert proof.status == "infeasible"


def test_all_leaves_out_solvers_for_small_graphs_on_others() -> None:
    assert "milp_unpartitioned" in {case.solver for case in cases([U_SHAPE], ["90%"], ["all"])}
    names = {case.solver for case in cases([unit_chain(20)], ["90%"], ["all"])}
    assert "milp_unpartitioned" not in names
    assert {"milp", "griewank", "segment_revised", "cutting_planes"} <= names


def test_names_and_budgets_are_checked_before_anything_runs() -> None:
    with raises(SolverError, "solver-unknown", "'mlip'"):
        cases([U_SHAPE], ["90%"], ["mlip"])
    with pytest.raises(BudgetError):
        cases([U_SHAPE], ["90x"], ["milp"])


def test_an_interrupt_keeps_the_rows_that_are_done() -> None:
    to_run = cases([unit_chain(4)], ["90%"], SOLVERS)
    done: list[Row] = []

    def stop_after_two(row: Row) -> None:
        done.append(row)
        if len(done) == 2:
            raise KeyboardInterrupt

    assert run_cases(to_run, on_row=stop_after_two) == done


def test_csv_and_plot(tmp_path: Path) -> None:
    rows = run_cases(cases([unit_chain(6), U_SHAPE], ["90%", "70%"], SOLVERS))
    write_csv(rows, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        read = list(csv.DictReader(file))
    assert [line["solver"] for line in read] == [row.solver for row in rows]
    assert {line["seed"] for line in read} == {"0"}
    for suffix in ("png", "svg"):
        plot_comparison(rows, tmp_path / f"plot.{suffix}")
        assert (tmp_path / f"plot.{suffix}").stat().st_size > 1000


def test_a_dask_cluster_gives_the_same_rows() -> None:
    distributed = pytest.importorskip("distributed")
    to_run = cases([unit_chain(5)], ["80%", "60%"], SOLVERS)
    alone = run_cases(to_run)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        spread = run_cases(to_run, jobs=2)
    assert [outcome(row) for row in spread] == [outcome(row) for row in alone]


def test_processes_give_the_same_rows() -> None:
    to_run = cases([unit_chain(5)], ["80%"], SOLVERS)
    alone, spread = run_cases(to_run), run_cases(to_run, jobs=2)
    assert [outcome(row) for row in spread] == [outcome(row) for row in alone]


def test_other_processes_know_the_solvers_that_this_one_has_registered() -> None:
    name = "mine"

    def keep_all(problem: Problem) -> Solution:  # unknown to whoever imports this file
        return answer(problem, name, Schedule(range(len(problem.graph))))

    register(name)(keep_all)
    try:
        to_run = cases([unit_chain(5), U_SHAPE], ["100%", "60%"], [name, "checkpoint_all"])
        alone, spread = run_cases(to_run), run_cases(to_run, jobs=2)
        assert name in {case.solver for case in cases([U_SHAPE], ["90%"], ["all"])}
    finally:
        TABLE.pop(name)
    assert [outcome(row) for row in spread] == [outcome(row) for row in alone]
    assert [row.status for row in alone if row.solver == name] == ["feasible", "over budget"] * 2
