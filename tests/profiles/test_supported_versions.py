"""Old releases are refused, and the installer knows the same bounds."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import requires

import pytest

from profiles.supported_versions import LEAST, refuse_old_tensorflow
from solvers.errors import CheckmateError
from tests.messages import raises


def test_the_package_asks_for_the_same_release() -> None:
    least = ".".join(map(str, LEAST["tensorflow"]))
    asked = {each.partition(";")[0].strip() for each in requires("checkmate_tf") or ()}
    assert {f"tensorflow-cpu>={least}", f"tensorflow[and-cuda]>={least}"} <= asked


@pytest.mark.parametrize("version", ["1.15.5", "2.9.3", "2.15.1", "2.15.0rc1"])
def test_what_is_too_old_is_refused(version: str) -> None:
    with raises(CheckmateError, "tensorflow-too-old", version, "2.16"):
        refuse_old_tensorflow(version)


@pytest.mark.parametrize("version", ["2.16.0-rc0", "2.16.2", "2.21.0", "3.0.0"])
def test_what_is_new_enough_is_not(version: str) -> None:
    refuse_old_tensorflow(version)


@pytest.mark.slow
def test_it_is_said_when_a_name_is_first_used() -> None:
    code = (
        "import tensorflow as tf; tf.__version__ = '2.15.1'\n"
        "import checkmate_tf; checkmate_tf.rematerialize"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "CheckmateError: TensorFlow 2.15.1 is too old" in done.stderr.splitlines()[-1]
