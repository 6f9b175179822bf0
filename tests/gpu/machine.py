"""What the tests for GPUs can run on here: known before anything large is installed.

python -m tests.gpu.machine        # prints "real" or "stand-in"; else nothing, and says why
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys

NEWEST_PYTHON = (3, 13)
"""For which there is a release of TensorFlow."""


def has_gpu() -> bool:
    """Whether NVIDIA's driver sees a GPU."""
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True)
    except FileNotFoundError:
        return False
    return listed.returncode == 0 and listed.stdout.startswith("GPU ")


def why_no_stand_in() -> str:
    """Why no stand-in can be built, in a few words; "" where one can."""
    here = f"{platform.system()} {platform.machine()}"
    if here != "Linux x86_64":
        return f"it needs Linux on x86-64, and this is {here}"
    missing = [each for each in ("gcc", "nm") if not shutil.which(each)]
    if missing:
        return f"it needs {' and '.join(missing)}"
    if sys.version_info[:2] > NEWEST_PYTHON:
        return f"TensorFlow for GPUs needs Python {NEWEST_PYTHON[0]}.{NEWEST_PYTHON[1]} or older"
    return ""


def main() -> None:
    """Print what there is."""
    why = why_no_stand_in()
    if has_gpu():
        print("real")
    elif not why:
        print("stand-in")
    else:
        print(f"No tests for GPUs: there is none, and no stand-in for one: {why}.", file=sys.stderr)


if __name__ == "__main__":
    main()
