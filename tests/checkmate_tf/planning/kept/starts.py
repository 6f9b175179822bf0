"""Starts of a small step, each as another process would make it."""

from __future__ import annotations

import gc

import checkmate_tf

RULE = {"budget": 0.9, "solver": "linearized_greedy", "time_limit": 5}
DEPTH = 24  # so that a value or two held beside the step are a small share of it


def start(step, x, **options):
    """As another process would: nothing is known but what is in the folder."""
    gc.collect()  # what the start before this one has left must not count as held
    kept = checkmate_tf.rematerialize(step, **{**RULE, **options})
    return kept, kept(x)
