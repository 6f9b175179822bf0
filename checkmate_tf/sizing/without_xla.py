"""What is said where XLA compiles a step, and an answer is about the step without it."""

from __future__ import annotations

from checkmate_tf.user_warnings import warn_user
from solvers import CheckmateError


def say_it_is_compiled_elsewhere() -> None:
    """XLA compiles for the device that is here, so that another one's answer is a forecast."""
    warn_user(
        "forecast-without-xla",
        "XLA compiles this step, but not for a device that is not here: what follows is a forecast "
        "for the step without XLA (jit_compile=False)",
    )


def say_it_leaves_xla(why: CheckmateError) -> None:
    """With a budget the step trains without XLA, so that the answer is about that."""
    warn_user(
        "xla-left", f"what follows is for the step without XLA (jit_compile=False), because {why}"
    )
