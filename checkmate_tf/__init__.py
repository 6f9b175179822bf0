"""Train within a memory budget: optimal tensor rematerialization for TensorFlow 2.

>>> import checkmate_tf
>>> "rematerialize" in dir(checkmate_tf)
True

TensorFlow is imported when a name is first used.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkmate_tf.version import __version__ as __version__

if TYPE_CHECKING:
    from checkmate_tf.attaching import restore
    from checkmate_tf.breakdown.memory import memory
    from checkmate_tf.decorator import rematerialize
    from checkmate_tf.devices.measure import measure_peak
    from checkmate_tf.graph.cost_models import load_profile
    from checkmate_tf.graph.extraction import extract
    from checkmate_tf.plans.plan import Plan
    from checkmate_tf.program.rewrite import rewrite
    from checkmate_tf.sizing.largest_batch import largest_batch
    from checkmate_tf.tradeoffs.tradeoff import tradeoff
    from solvers import BudgetError, CheckmateError, CheckmateWarning

_HOMES = {
    "BudgetError": "solvers",
    "CheckmateError": "solvers",
    "CheckmateWarning": "solvers",
    "Plan": "checkmate_tf.plans.plan",
    "extract": "checkmate_tf.graph.extraction",
    "largest_batch": "checkmate_tf.sizing.largest_batch",
    "load_profile": "checkmate_tf.graph.cost_models",
    "measure_peak": "checkmate_tf.devices.measure",
    "memory": "checkmate_tf.breakdown.memory",
    "rematerialize": "checkmate_tf.decorator",
    "restore": "checkmate_tf.attaching",
    "rewrite": "checkmate_tf.program.rewrite",
    "tradeoff": "checkmate_tf.tradeoffs.tradeoff",
}

__all__ = [
    "BudgetError",
    "CheckmateError",
    "CheckmateWarning",
    "Plan",
    "extract",
    "largest_batch",
    "load_profile",
    "measure_peak",
    "memory",
    "rematerialize",
    "restore",
    "rewrite",
    "tradeoff",
]


def _refuse_hidden_packages() -> None:
    """Where a `solvers.py` of the user's, say, hides the package beside this one: name the file."""
    home = Path(__file__).resolve().parents[1]
    for name in ("solvers", "profiles"):
        spec = find_spec(name)
        places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
        found = next(filter(None, places), None)
        if found is None or Path(found).resolve().parent != home / name:
            where = f"is hidden by {found}; rename that" if found else "is not installed"
            raise ImportError(f"checkmate_tf needs its package {name!r}, which {where}", name=name)


_refuse_hidden_packages()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'checkmate_tf' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
