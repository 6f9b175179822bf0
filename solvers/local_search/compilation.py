"""How kernels are compiled, and when what was compiled before is still good.

A kernel contains the functions that it calls and the constants that it reads, from other files,
too. numba compiles it anew only when its own file changes. Here the stamp of every kernel is a
digest of all files of the room, so a change in any of them compiles all kernels anew.

numba optimizes a function with all that it calls, and makes machine code of it, also where another
function will contain it: what is called from deep down, many times. Here only the kernels that
Python calls are optimized and made machine code, which takes half as long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "_nrt": False,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}

Function = TypeVar("Function", bound=Callable[..., object])


class _PartOfKernels(JITCodeLibrary):
    """The code of a function that only kernels call: it waits to be optimized with theirs."""

    codegen = SimpleNamespace(set_env=lambda name, environment: None)
    """What is asked to let Python call it: nothing."""

    def finalize(self) -> None:
        """Put what it calls beside it."""
        self._raise_if_finalized()  # type: ignore[no-untyped-call]
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is no machine code of it."""
        return 0


class _CompilerOfParts(Compiler):
    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        part = _PartOfKernels(target.codegen(), "part")  # type: ignore[no-untyped-call]
        super().__init__(typing, target, part, *others)  # type: ignore[no-untyped-call]


_PART: dict[str, Any] = {"no_cpython_wrapper": True, "pipeline_class": _CompilerOfParts}


def compiled(function: Function) -> Function:
    """Compile `function`, which may not allocate, for calls from compiled functions only.

    Without numba's run time (`_nrt`) no references are counted: that would take most of the time,
    and the caller holds the arrays anyway.
    """
    return cast(Function, njit(**_OPTIONS, **_PART)(function))


def inlined(function: Function) -> Function:
    """The same for a step of one compiled function, into which it is copied.

    A call would pass every array of the search state, which takes longer than most steps do.
    """
    return cast(Function, njit(**_OPTIONS, **_PART, forceinline=True)(function))


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
