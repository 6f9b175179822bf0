"""How kernels are compiled, and when what was compiled before is still good.

numba renews its cache when the file of the called function changes, but not when a file does
whose functions or constants it has compiled into it. Here the stamp of every function is of all
kernels' files together, so that a change in any of them compiles all anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "_nrt": False,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
_NO_DOOR: dict[str, Any] = {"no_cpython_wrapper": True}

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile `function`, which may not allocate, for calls from compiled functions only.

    Counting references to the tape's arrays, which the caller holds anyway, would take most of
    the time; without numba's run time (`_nrt`) nothing is counted and nothing can be allocated.
    A door to Python for every function would take a third of the time to compile all.
    """
    return cast(Function, _cached(njit(**_OPTIONS, **_NO_DOOR)(function)))


def compiled_entry(function: Function) -> Function:
    """The same for functions that Python calls."""
    return cast(Function, _cached(njit(**_OPTIONS)(function)))


def _cached(dispatcher: Any) -> Any:
    """Let `dispatcher` keep what it compiles, if there is a folder for it."""
    try:
        dispatcher.enable_caching()
    except RuntimeError:  # nowhere to write
        return dispatcher
    try:
        file = dispatcher._cache._cache_file
        file._source_stamp = (file._source_stamp, _STAMP)
    except AttributeError:  # a numba that keeps its stamps elsewhere: what is old can't be told
        dispatcher._cache.disable()
    return dispatcher


def _stamp(folder: Path) -> str:
    """A digest of every file of this room: compiled functions, and constants compiled into them."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


_STAMP = _stamp(Path(__file__).parent)
