"""Build the library of `cuda.c`, with every other name that TensorFlow looks up in CUDA's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("cuda.c")

_LIBRARY = "libstand_in.so"

# As TensorFlow asks for them; each leads to the one library.
_LIBRARIES = """
    libcuda.so.1 libcudart.so.12 libcublas.so.12 libcublasLt.so.12 libcudnn.so.9 libcufft.so.11
    libcusolver.so.11 libcusparse.so.12 libnccl.so.2 libcupti.so.12 libnvJitLink.so.12
    libnvshmem_host.so.3 libnvidia-ml.so.1
""".split()

# TensorFlow's own ones that look them up.
_ASKING = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")

_HEADERS = (
    "third_party/gpus/cuda/include",
    "third_party/gpus/cudnn/include",
    "third_party/gpus/cuda/libcudacxx/include",
    "external/cuda_nccl/include",
)

_NAMES_OF_CUDA = re.compile(
    r"(?:cu[A-Z]|cuda[A-Z]|__cuda|cublas|cudnn|cufft|cusparse|cusolver|nccl[A-Z]|cupti|nvshmem"
    r"|nvml[A-Z])\w*"
)
# Beside those that stubs of TensorFlow's define.
_MORE_NAMES = {"cusolverDnCreate", "cusolverDnDestroy", "cusolverDnSetStream"}

# Functions that put what they made where their first argument points to.
_CREATES = re.compile(
    r"Create|ModuleLoad|GetFunction|GetFuncBySymbol|Instantiate|CtxRetain|InitRank|GraphAdd\w*Node"
)
_CREATES_NOT = re.compile(r"RNN|Multicast|TensorMap")


def build(tensorflow: Path, folder: Path) -> None:
    """Write the library, and links by the names of CUDA's libraries, into `folder`.

    Nothing is done where it is newer than all that it is made of.

    Args:
        tensorflow: the folder of TensorFlow's GPU build, which has NVIDIA's headers.
        folder: is made if it is not there.

    Raises:
        subprocess.CalledProcessError: the compiler's own words are on stderr.
    """
    library, asking = folder / _LIBRARY, [tensorflow / each for each in _ASKING]
    made_of = [_SOURCE, Path(__file__), *asking]
    if library.exists() and all(_changed(library) > _changed(each) for each in made_of):
        return
    folder.mkdir(parents=True, exist_ok=True)
    written, others = folder / "cuda.o", folder / "others.c"
    headers = [f"-I{tensorflow / 'include' / each}" for each in _HEADERS]
    _run("gcc", "-O1", "-Wall", "-fPIC", "-c", _SOURCE, "-o", written, *headers)
    asked = _MORE_NAMES.union(*(_names(each, "--dynamic") for each in asking))
    others.write_text(_others(asked - _names(written)))
    for name in _LIBRARIES:
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(_LIBRARY)
    _run("gcc", "-O1", "-shared", "-fPIC", written, others, "-o", library, "-lpthread")


def _changed(file: Path) -> float:
    return file.stat().st_ctime  # when it was put here, not when a wheel was packed


def _run(*command: object) -> str:
    words = [str(each) for each in command]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def _names(library: Path, *options: str) -> set[str]:
    """Names of CUDA's functions that a file defines."""
    lines = _run("nm", "--defined-only", "--extern-only", *options, library).splitlines()
    words = (line.split()[-1].partition("@")[0] for line in lines)
    return {each for each in words if _NAMES_OF_CUDA.fullmatch(each)}


def _others(names: set[str]) -> str:
    """Functions that do nothing but succeed, and create an object where they are to create one."""
    lines = ["void *stand_in_object(void);"]
    for name in sorted(names):
        creates = _CREATES.search(name) and not _CREATES_NOT.search(name)
        body = "*made = stand_in_object(); return 0;" if creates else "return 0;"
        lines.append(f"int {name}(void **made) {{ {body} }}")
    return "\n".join(lines) + "\n"
