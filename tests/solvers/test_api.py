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


def test_an_unknown_solver_is_answered_with_all_names() -> None:
    with pytest.raises(
        SolverError, match=r"no solver 'serch' \(did you mean 'search'\?\)"
    ) as caught:
        find_solver("serch")
    assert all(name in str(caught.value) for name in SOLVERS)
    with pytest.raises(SolverError, match="no solver '7'; there are: auto, "):
        solve(SKIP, 0.8, "7")


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_is_where_the_table_says(name: str) -> None:
    entry = find_solver(name)
    assert entry.name == name
    assert callable(entry.load())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"time_limit": 0}, SolverError, "time limit 0 is not a positive number of seconds"),
        ({"time_limit": -1}, SolverError, "time limit -1 is not"),
        ({"time_limit": float("nan")}, SolverError, "time limit nan is not"),
        ({"time_limit": None}, SolverError, "time limit None is not"),
        ({"time_limit": "5"}, SolverError, "time limit '5' is not"),
        ({"seed": -1}, SolverError, "seed -1 is not a whole number from 0 to 2147483647"),
        ({"seed": 2**31}, SolverError, "seed 2147483648 is not"),
        ({"seed": 0.5}, SolverError, "seed 0.5 is not"),
        ({"seed": None}, SolverError, "seed None is not"),
        ({"graph": ComputationGraph((), name="net")}, GraphError, "net: the graph has no nodes"),
        (
            {"graph": ComputationGraph((Node("a", 1e308, 1), Node("b", 1, 1)), name="net")},
            GraphError,
            r"net: the costs add up to more than 8\.98847e\+307; give them in a larger unit",
        ),
        ({"order": "any"}, SolverError, "order 'any' is neither 'fixed' nor 'free'"),
        ({"budget": "much"}, BudgetError, "budget 'much' is not a size"),
    ],
)
def test_a_question_that_makes_no_sense(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        solve(**({"graph": SKIP, "budget": 0.8, "solver": "checkpoint_all"} | arguments))


@pytest.mark.parametrize(
    ("solver", "option", "message"),
    [
        (
            "milp",
            "gpa",
            r"'milp' has no option 'gpa' \(did you mean 'gap'\?\); its options: backend,",
        ),
        ("auto", "accounting", "'auto' has no option 'accounting'; its options: backend, starts"),
        ("search", "backend", "'search' has no option 'backend'; its options: starts"),
    ],
)
def test_an_option_that_would_be_ignored_is_an_error(
    solver: str, option: str, message: str
) -> None:
    with pytest.raises(SolverError, match=message):
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
    with pytest.raises(AnswerError, match=r"'mine' .* claims a bound of 1000"):
        solve(SKIP, 9, "mine", claim=1000.0)
    with pytest.raises(SolverError, match="'mine' has no option 'gap'; its options: claim"):
        solve(SKIP, 9, "mine", gap=0.1)


@pytest.mark.parametrize("name", ["milp", "mine"])
def test_a_name_that_is_taken_is_refused(table: dict[str, Any], name: str) -> None:
    register("mine")(keep_all)
    with pytest.raises(SolverError, match=f"there is a solver '{name}' already, .*:"):
        register(name)(keep_all)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "all"}, "'all' is no name for a solver"),
        ({"name": " "}, "' ' is no name"),
        ({"name": keep_all}, "keep_all.* is no name"),
        ({"name": "mine", "kind": "exakt"}, "no kind 'exakt' of solver; there are: heuristic, "),
    ],
)
def test_what_cannot_be_registered(
    table: dict[str, Any], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(SolverError, match=message):
        register(**arguments)(keep_all)
    with pytest.raises(SolverError, match="solver 'mine' is no function but a str"):
        register("mine")("keep_all")  # type: ignore[arg-type]
    assert "mine" not in table
