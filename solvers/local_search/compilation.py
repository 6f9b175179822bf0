"""How kernels are compiled, and when what was compiled before is still good.

A kernel contains the functions that it calls and the constants that it reads, from other files,
too. numba compiles it anew only when its own file changes. Here the stamp of every kernel is a
digest of all files of the room, so a change in any of them compiles all kernels anew.
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
_NO_WRAPPER: dict[str, Any] = {"no_cpython_wrapper": True}

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile `function`, which may not allocate, for calls from compiled functions only.

    Without numba's run time (`_nrt`) no references are counted: that would take most of the time,
    and the caller holds the arrays anyway. Without wrappers for Python, all compiles a third
    faster.
    """
    return cast(Function, _cached(njit(**_OPTIONS, **_NO_WRAPPER)(function)))


def inlined(function: Function) -> Function:
    """The same for a step of one compiled function, into which it is copied.

    A call would pass every array of the search state, which takes longer than most steps do.
    """
    return cast(Function, _cached(njit(**_OPTIONS, **_NO_WRAPPER, forceinline=True)(function)))


def compiled_entry(function: Function) -> Function:
    """Compile `function`, which may not allocate, for calls from Python."""
    return cast(Function, _cached(njit(**_OPTIONS)(function)))


def is_compiled(entry: Any) -> bool:
    """Whether an earlier process has compiled `entry` for this processor, and left it on the disk.

    Also true where that can't be told, or where nothing can be kept.
    """
    try:
        kept = entry._cache._cache_file._load_index()
        processor = entry.targetctx.codegen().magic_tuple()
    except AttributeError:
        return True
    return any(processor in key for key in kept)


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
