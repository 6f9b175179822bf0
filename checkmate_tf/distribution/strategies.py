"""Which `tf.distribute` strategy runs the step, and how to reach all of its replicas at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from solvers import CheckmateError

_WITH_REPLICAS = (tf.distribute.MirroredStrategy, tf.distribute.MultiWorkerMirroredStrategy)
_AS_ON_ONE_DEVICE = (tf.distribute.OneDeviceStrategy,)


def replica_context() -> Any | None:
    """The context of the replica that calls; None outside of `strategy.run`.

    Raises:
        CheckmateError: its strategy is of a kind whose replicas can't be planned.
    """
    if not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context():
        return None
    context = tf.distribute.get_replica_context()
    strategy = context.strategy
    if isinstance(strategy, _AS_ON_ONE_DEVICE):
        return None
    if not isinstance(strategy, _WITH_REPLICAS):
        raise CheckmateError(
            "strategy-unsupported",
            f"a step can't be rematerialized under {type(strategy).__name__}: use "
            "MirroredStrategy on one machine, or MultiWorkerMirroredStrategy on several",
        )
    return context


def on_all_replicas(strategy: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of values for all replicas of `strategy`, which all of them give to `function`."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return strategy.run(function, args, kwargs)

    return functools.update_wrapper(run, function, updated=())


def call_together(context: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `function` once, with the arguments of all replicas, when all of them have come here.

    Args:
        context: of the replica that calls.
        function: from values for all replicas to such values.
        args: of this replica.
        kwargs: of this replica.

    Returns:
        What `function` returned for this replica.
    """

    def called(strategy: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return context.merge_call(called, args=args, kwargs=kwargs)
