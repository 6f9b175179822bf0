"""The programs that solve integer programs: each solves one of a few variables."""

from __future__ import annotations

from checkmate_tf.doctor.finding import Finding
from solvers import CheckmateError
from solvers.checkmate.formulation import build_frontier
from solvers.graph.layer_graphs import unit_chain
from solvers.programs.backends import backend, backend_names

_NEEDED = "highs"
"""The backend that every search uses unless another one is asked for."""

_SECONDS = 20.0
"""For one of them."""


def backends() -> Finding:
    """Every backend, and whether it finds an optimum."""
    installed, missing = backend_names()
    answers = {name: _answer_of(name) for name in (_NEEDED, *installed)}
    facts = (*answers.items(), ("not installed", ", ".join(missing) or "–"))
    if answers[_NEEDED] != "works":
        again = "pip install --force-reinstall highspy"
        return Finding(False, f"{_NEEDED}, which searches need: {answers[_NEEDED]}; {again}", facts)
    return Finding(True, "works", facts)


def _answer_of(name: str) -> str:
    """ "works", or why not."""
    try:
        answer = backend(name)(build_frontier(unit_chain(2), 4).model, time_limit=_SECONDS)
    except CheckmateError as error:
        return " ".join(str(error).split())
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
    return "works" if answer.status == "optimal" else f"found no optimum: {answer.status}"
