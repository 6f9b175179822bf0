"""Run the tests for GPUs, on a real one where there is one, else over a stand-in.

    python -m tests.gpu [ARGUMENTS OF PYTEST]

By default all but the slow ones. It needs TensorFlow's GPU build; `make gpu` installs it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from tests.gpu.machine import has_gpu, why_no_stand_in
from tests.gpu.stand_in import build

PYTEST = ("-m", "pytest")
SIDE_BY_SIDE = ("--numprocesses", "2", "--dist", "worksteal")
"""Over the stand-in each process has a GPU of its own. A real one has memory for one at a time."""

ALL = ("tests/gpu", "-m", "not slow")

_ROOT = Path(__file__).parents[2]


def _folder(package: str) -> Path:
    """Of an installed package, which is not imported for it."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        sys.exit(f"{package} is not installed here; make gpu installs what these tests need")
    return Path(found.submodule_search_locations[0])


def _over_the_stand_in() -> dict[str, str]:
    """Settings with which TensorFlow sees a GPU that is not there."""
    libraries = Path(sys.prefix) / "stand-in"
    build.build(_folder("tensorflow"), libraries)
    return {
        # As users have it. In regions that grow, what is wasted differs from process to process.
        "TF_FORCE_GPU_ALLOW_GROWTH": "false",
        "LD_LIBRARY_PATH": str(libraries),
        # Quoted, for spaces. Kernels that do nothing are all as fast; trying them takes 20 s.
        "XLA_FLAGS": f"--xla_gpu_cuda_data_dir='{_folder('nvidia.cuda_nvcc')}'"
        " --xla_gpu_autotune_level=0",
    }


def main() -> None:
    """Become pytest, or say why not."""
    settings = {
        # A real GPU is shared with the processes that tests start.
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        # Else one convolution of a large image may need more than all the rest of a step.
        "TF_CUDNN_WORKSPACE_LIMIT_IN_MB": "256",
        "PYTHONPATH": str(_ROOT),
    }
    workers: tuple[str, ...] = ()
    if not has_gpu():
        if why := why_no_stand_in():
            print(f"No tests for GPUs: there is none, and no stand-in for one: {why}.")
            return
        settings |= _over_the_stand_in()
        workers = SIDE_BY_SIDE
    command = [sys.executable, *PYTEST, *workers, *(sys.argv[1:] or ALL)]
    os.execve(sys.executable, command, {**os.environ, **settings})


if __name__ == "__main__":
    main()
