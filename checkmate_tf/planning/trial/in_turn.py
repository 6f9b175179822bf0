"""The seconds of plain steps and of steps by a plan, in turn, on copies of the variables.

Machines change their speed by a third from minute to minute, so that only neighbours compare.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import run_measured
from checkmate_tf.phases import phase
from checkmate_tf.planning.settings import MOST_TURNS, TRIAL_SECONDS, TURN_SECONDS
from checkmate_tf.planning.trial.made_up import made_up_arguments
from checkmate_tf.planning.trial.trial_run import at_most, laid_down, plain_function
from checkmate_tf.planning.trial.variable_copies import run_on_copies
from checkmate_tf.planning.variable_places import variables_aside
from checkmate_tf.trace.program import Program


@dataclass(frozen=True)
class StepSeconds:
    """Medians.

    Attributes:
        plain: seconds of a plain step.
        ours: seconds of a step by a plan.
    """

    plain: float
    ours: float


def in_turn(program: Program, ours: Callable[..., Any]) -> StepSeconds | None:
    """The seconds of plain steps and of those of `ours`; None where there is no room for them.

    Args:
        program: the step, which can run for trial.
        ours: a function of its flat arguments, which has run before.
    """
    with phase("trials"), variables_aside(program.concrete) as in_place:
        try:
            return _in_turn(program, ours, in_place)
        except tf.errors.OpError:  # out of memory, or very long
            return None
        finally:
            # The variables are not to be laid down beside the constants of the plain function.
            gc.collect()


def _in_turn(program: Program, ours: Callable[..., Any], in_place: bool) -> StepSeconds:
    copies = laid_down(program.concrete, in_place)
    arguments = made_up_arguments(program, outside=False)
    plain, device = plain_function(program), current_device().name

    def seconds(function: Any) -> float:
        since = time.perf_counter()
        with at_most(TRIAL_SECONDS):
            run_measured(run_on_copies, function, arguments, copies, device=device)
        return time.perf_counter() - since

    seconds(plain)  # in which TensorFlow prepares it
    seconds(ours)  # which finds the memory as that one has left it
    began, turns = time.perf_counter(), list[tuple[float, float]]()
    while not turns or (
        len(turns) < MOST_TURNS and time.perf_counter() - began + sum(turns[-1]) <= TURN_SECONDS
    ):
        turns.append((seconds(ours), seconds(plain)))
    return StepSeconds(
        plain=median(theirs for _, theirs in turns), ours=median(own for own, _ in turns)
    )
