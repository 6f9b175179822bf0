"""The step of a plan.json in a few words: its model or function, its batch, its optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkmate_tf.plans.layers import model_name


def step_in_words(document: Mapping[str, Any]) -> str:
    """What tells the step of a plan from others; older files don't say all of it.

    Example:
        >>> nodes = [{"name": f"net/conv_{number}/relu"} for number in range(3)]
        >>> origin = {"batch_size": 16, "optimizer": "adam"}
        >>> step_in_words(
        ...     {
        ...         "graph": "train_step",
        ...         "computation_graph": {"nodes": nodes},
        ...         "step": {"origin": origin},
        ...     }
        ... )
        'net (train_step), batch 16, adam'
    """
    name = document["graph"]
    nodes = document["computation_graph"]["nodes"]
    model = model_name(str(each.get("name", "")) for each in nodes)
    origin = (document.get("step") or {}).get("origin") or {}
    batch = origin.get("batch_size")
    parts = [
        f"{model} ({name})" if model else name,
        f"batch {batch}" if batch else "",
        origin.get("optimizer", ""),
    ]
    return ", ".join(filter(None, parts))
