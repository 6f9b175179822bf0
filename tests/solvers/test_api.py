from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import solvers
from solvers import (
    SOLVERS,
    AnswerError,
    BudgetError,
    CheckmateError,
    ComputationGraph,
    GraphError,
    Node,
    Problem,
    Schedule,
    Solution,
    SolverError,
    Status,
    answer,
    find_solver,
    register,
    solve,
)
from tests.graphs import SKIP
from tests.messages import raises


def test_an_unknown_solver_is_answered_with_all_names() -> None:
    with raises(SolverError, "solver-unknown", "'serch'", *SOLVERS):
        find_solver("serch")
    with raises(SolverError, "solver-unknown", "'7'"):
        solve(SKIP, 0.8, "7")


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_is_where_the_table_says(name: str) -> None:
    entry = find_solver(name)
    assert entry.name == name
    assert callable(entry.load())


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"time_limit": 0}, SolverError, ("argument-invalid", 0)),
        ({"time_limit": -1}, SolverError, ("argument-invalid", "-1")),
        ({"time_limit": float("nan")}, SolverError, ("argument-invalid", "nan")),
        ({"time_limit": None}, SolverError, ("argument-invalid", "None")),
        ({"time_limit": "5"}, SolverError, ("argument-invalid", "'5'")),
        ({"seed": -1}, SolverError, ("argument-invalid", -1, 2147483647)),
        ({"seed": 2**31}, SolverError, ("argument-invalid", "2147483648")),
        ({"seed": 0.5}, SolverError, ("argument-invalid", "0.5")),
        ({"seed": None}, SolverError, ("argument-invalid", "None")),
        ({"graph": ComputationGraph((), name="net")}, GraphError, ("graph-empty", "net")),
        (
            {"graph": ComputationGraph((Node("a", 1e308, 1), Node("b", 1, 1)), name="net")},
            GraphError,
            ("costs-too-large", "net", "8.98847e+307"),
        ),
        ({"order": "any"}, SolverError, ("argument-invalid", "'any'", "'fixed'", "'free'")),
        ({"budget": "much"}, BudgetError, ("budget-not-a-size", "'much'")),
    ],
)
def test_a_question_that_makes_no_sense(
    arguments: dict[str, Any], error: type[CheckmateError], told: tuple[str, ...]
) -> None:
    with raises(error, *told):
        solve(**({"graph": SKIP, "budget": 0.8, "solver": "checkpoint_all"} | arguments))


@pytest.mark.parametrize(
    ("solver", "option", "names"),
    [
        (
            "milp",
            "gpa",
            ("'gap'", "backend"),
        ),
        ("auto", "accounting", ("backend", "starts")),
        ("search", "backend", ("starts",)),
    ],
)
def test_an_option_that_would_be_ignored_is_an_error(
    solver: str, option: str, names: tuple[str, ...]
) -> None:
    with raises(SolverError, "option-unknown", f"{solver!r}", f"{option!r}", *names):
        solve(SKIP, 0.8, solver, **{option: 1})


def test_every_option_of_the_table_is_read_somewhere() -> None:
    sources = " ".join(path.read_text() for path in Path(solvers.__file__).parent.rglob("*.py"))
    for entry in SOLVERS.values():
        for option in entry.options:
            assert f'options.get("{option}"' in sources, (entry.name, option)


@pytest.mark.parametrize(
    ("budget", "status"),
    [(9, Status.FEASIBLE), ("9B", Status.FEASIBLE), ("100%", Status.FEASIBLE), (8, Status.TIMEOUT)],
)
def test_budgets_reach_the_solver_in_bytes(budget: Any, status: Status) -> None:
    solution = solve(SKIP, budget, "checkpoint_all")
    assert (solution.status, solution.least_budget) == (status, 9)


def test_solvers_work_where_tensorflow_cannot_be_imported() -> None:
    program = """
import sys
sys.modules["tensorflow"] = None  # importing it raises ImportError from here on
from solvers import SOLVERS, ComputationGraph, Node, solve
for entry in SOLVERS.values():
    entry.load()
graph = ComputationGraph((Node("a", 1, 4), Node("b", 1, 4, dependencies=(0,))))
print(solve(graph, 8, "cutting_planes").status)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout, run.returncode) == ("optimal\n", 0), run.stderr


def test_importing_solvers_stays_light() -> None:
    program = (
        "import sys, solvers; print([each for each in "
        "('tensorflow', 'cvxpy', 'numba', 'gurobipy', 'matplotlib') if each in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "[]\n", run.stderr


@pytest.fixture
def table() -> Iterator[dict[str, Any]]:
    """The table of solvers, which is as before when the test is over."""
    before = dict(SOLVERS)
    yield SOLVERS
    SOLVERS.clear()
    SOLVERS.update(before)


def keep_all(problem: Problem) -> Solution:
    """Compute every node once.

    More is not said of it.
    """
    bound = problem.options.get("claim", problem.graph.one_pass_cost)
    return answer(problem, "another name", Schedule(range(len(problem.graph))), bound=bound)


def test_a_registered_solver_is_asked_like_any_other(table: dict[str, Any]) -> None:
    assert register("mine", valid_on="any", options=("claim",))(keep_all) is keep_all
    solution = solve(SKIP, "100%", "mine")
    assert (solution.solver, solution.cost) == ("mine", SKIP.one_pass_cost)
    entry = find_solver("mine")
    assert (entry.kind, entry.summary) == ("heuristic", "Compute every node once.")
    assert entry.location.endswith("test_api:keep_all")
    assert list(table)[-1] == "mine"


def test_answers_of_a_registered_solver_are_confirmed(table: dict[str, Any]) -> None:
    register("mine", options=("claim",))(keep_all)
    assert solve(SKIP, 8, "mine").status is Status.TIMEOUT  # its schedule needs 9
    with raises(AnswerError, "claim-refuted", "'mine'", "bound of 1000"):
        solve(SKIP, 9, "mine", claim=1000.0)
    with raises(SolverError, "option-unknown", "'mine'", "'gap'", "claim"):
        solve(SKIP, 9, "mine", gap=0.1)


@pytest.mark.parametrize("name", ["milp", "mine"])
def test_a_name_that_is_taken_is_refused(table: dict[str, Any], name: str) -> None:
    register("mine")(keep_all)
    with raises(SolverError, "solver-name-taken", f"{name!r}", SOLVERS[name].location):
        register(name)(keep_all)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"name": "all"}, ("solver-name-invalid", "'all'")),
        ({"name": " "}, ("solver-name-invalid", "' '")),
        ({"name": keep_all}, ("solver-name-invalid", "keep_all")),
        ({"name": "mine", "kind": "exakt"}, ("solver-kind-unknown", "'exakt'", "heuristic")),
    ],
)
def test_what_cannot_be_registered(
    table: dict[str, Any], arguments: dict[str, Any], told: tuple[str, ...]
) -> None:
    with raises(SolverError, *told):
        register(**arguments)(keep_all)
    with raises(SolverError, "solver-not-callable", "'mine'", "str"):
        register("mine")("keep_all")  # type: ignore[arg-type]
    assert "mine" not in table
