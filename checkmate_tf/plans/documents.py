"""plan.json: a graph, a schedule and a solver's answer as data, and checked when they are read.

The object has `graph` (its name), `solver`, `status`, `budget`, `peak`, `cost`, `bound`,
`bound_order`, `seconds`, `schedule` (the graph's own node ids, in execution order) and
`computation_graph`, the graph itself in this project's format. The plan of a train step has
`step` besides, with all that `checkmate_tf.Plan` knows of it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from solvers import (
    CheckmateError,
    ComputationGraph,
    Schedule,
    Simulation,
    Solution,
    Status,
    simulate,
)

FORMAT = "checkmate_tf plan"
VERSION = 1


def document_of(
    graph: ComputationGraph, solution: Solution, budget: int, with_graph: bool = True
) -> dict[str, Any]:
    """A solution that has a schedule, as an object that JSON can hold.

    Args:
        graph: that it is a schedule of.
        solution: a solver's answer.
        budget: bytes that the user asked for.
        with_graph: put the graph in; without it only who has the graph can read the plan.
    """
    assert solution.schedule is not None
    ids = _ids(graph)
    return {
        "format": FORMAT,
        "version": VERSION,
        "graph": graph.name,
        "solver": solution.solver,
        "status": str(solution.status),
        "budget": budget,
        "peak": solution.peak,
        "cost": solution.cost,
        "bound": solution.bound,
        "bound_order": solution.bound_order,
        **({"among": solution.among} if solution.among else {}),
        "seconds": solution.seconds,
        "schedule": [ids[step] for step in solution.schedule.steps],
        **({"computation_graph": graph.to_json()} if with_graph else {}),
    }


def read_document(
    document: Any, graph: ComputationGraph | None = None
) -> tuple[ComputationGraph, Solution, Simulation]:
    """The graph, the answer and what the simulator says of it, from what `document_of` made.

    Args:
        document: the object.
        graph: of the plan, where the object does not hold it.

    Raises:
        CheckmateError: it is no plan, or its parts don't belong together.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("schedule"), list):
        raise CheckmateError(
            "not-a-plan", "not a plan: an object with a list 'schedule' is expected"
        )
    if document.get("version", VERSION) != VERSION:
        raise CheckmateError(
            "format-version-unknown",
            f"version {document['version']!r} of the plan format; this release reads {VERSION}",
        )
    given = graph is not None
    if graph is None:
        if "computation_graph" not in document:
            raise CheckmateError(
                "plan-without-graph",
                "the plan holds no graph: it was written by an older release; solve again with "
                "--output",
            )
        graph = ComputationGraph.from_json(document["computation_graph"])
    schedule = Schedule(_numbers(document["schedule"], graph))
    simulation = simulate(graph, schedule)
    for key, found in (("peak", simulation.peak), ("cost", simulation.cost)):
        said = read(document, key, (int, float))
        # A worker may have measured other costs than the one that made the plan.
        if not given and not math.isclose(said, found, rel_tol=1e-9):
            raise CheckmateError(
                "plan-contradicts-graph",
                f"{key} is {said}, but its schedule has {found} on its graph: the file was "
                "changed, or put together from several",
            )
    return graph, _solution(document, schedule, simulation), simulation


def read(document: Mapping[str, Any], key: str, kinds: type | tuple[type, ...]) -> Any:
    """What `document` has under `key`.

    Raises:
        CheckmateError: it is not there, or of another kind.
    """
    value: Any = document.get(key)
    numbers = kinds if isinstance(kinds, tuple) else (kinds,)
    is_odd = isinstance(value, bool) and bool not in numbers
    if isinstance(value, int | float):  # NaN is in no range, nor is an int beyond all floats
        is_odd |= not -sys.float_info.max <= value <= sys.float_info.max
    if is_odd or not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in numbers)
        raise CheckmateError("field-invalid", f"{key} is {value!r}; {names} is expected")
    return value


def plain_fields(kind: Any) -> dict[str, Any]:
    """The fields of a dataclass that are whole numbers, texts or known numbers, for `read`."""
    return {each.name: _KINDS[each.type] for each in fields(kind) if each.type in _KINDS}


_KINDS: Mapping[Any, Any] = {
    "int": int,
    "int | None": (int, type(None)),
    "float | None": (int, float, type(None)),
    "str": str,
}
"""As annotations name them."""


def _solution(document: Mapping[str, Any], schedule: Schedule, simulation: Simulation) -> Solution:
    words = {"bound_order": "fixed", **document}
    for key, known in (("status", [*map(str, Status)]), ("bound_order", ["fixed", "free"])):
        if words.get(key) not in known:
            raise CheckmateError(
                "field-invalid",
                f"{key} is {words.get(key)!r}; one of {', '.join(known)} is expected",
            )
    return Solution(
        solver=read(document, "solver", str),
        status=Status(words["status"]),
        schedule=schedule,
        cost=simulation.cost,
        peak=simulation.peak,
        bound=read(document, "bound", (int, float, type(None))),
        seconds=read(document, "seconds", (int, float)),
        bound_order=words["bound_order"],
        among=str(document.get("among", "")),
        budget=read(document, "budget", int),
    )


def _ids(graph: ComputationGraph) -> list[int | str]:
    """What a plan calls the nodes: by their own ids, or by their numbers where two would be one."""
    ids = [number if node.id is None else node.id for number, node in enumerate(graph.nodes)]
    return ids if len(set(ids)) == len(ids) else list(range(len(graph)))


def _numbers(schedule: list[Any], graph: ComputationGraph) -> list[int]:
    number = {identity: place for place, identity in enumerate(_ids(graph))}
    for each in schedule:
        if not isinstance(each, int | str) or each not in number:
            raise CheckmateError(
                "node-unknown", f"schedule names node {each!r}, which is not in its graph"
            )
    return [number[each] for each in schedule]
