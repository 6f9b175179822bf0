"""Compiling the search in a process of its own, while this one has other things to do.

It takes some 15 s, once after installation. A process that is going to search can begin with it
early: a train step has to be traced and extracted first, which takes another processor's time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from solvers.local_search.annealing import anneal
from solvers.local_search.changes import load
from solvers.local_search.compilation import is_compiled

_PROGRAM = "from solvers.local_search.chain import compile_kernels; compile_kernels()"

_PATIENCE = 180.0
"""Seconds after which the process is not waited for any longer, on the slowest machines."""

_UNDER_WAY: list[subprocess.Popen[bytes]] = []
"""The process that compiles, if one does."""


def begin_to_compile() -> bool:
    """Begin, if it has not been done or begun before; whether a process was started.

    Nothing depends on it: what is not there in the end is compiled where it is needed.
    """
    if _UNDER_WAY or (is_compiled(anneal) and is_compiled(load)):
        return False
    here = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what interrupts this process is not meant for it
        )
    except OSError:
        return False
    _UNDER_WAY.append(process)
    return True


def wait_until_compiled() -> None:
    """Wait for the process that compiles, if one was started."""
    for process in _UNDER_WAY:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
