"""Which packages are installed, in which versions; none of them is loaded for that."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, version

from checkmate_tf.doctor.finding import Finding
from checkmate_tf.version import __version__
from profiles.supported_versions import LEAST, is_too_old

_SHOWN = ("tensorflow", "keras", "numpy", "scipy", "numba", "matplotlib")

_VARIABLES = """
    CHECKMATE_TF_CACHE CHECKMATE_TF_PLANS XDG_CACHE_HOME KERAS_BACKEND TF_USE_LEGACY_KERAS
    TF_ENABLE_ONEDNN_OPTS TF_CPU_ALLOCATOR_USE_BFC TF_CPU_BFC_MEM_LIMIT_IN_MB
    TF_GPU_ALLOCATOR TF_FORCE_GPU_ALLOW_GROWTH CUDA_VISIBLE_DEVICES NVIDIA_TF32_OVERRIDE
    TF_XLA_FLAGS XLA_FLAGS TF_DETERMINISTIC_OPS TF_CUDNN_DETERMINISTIC
    TF_NUM_INTEROP_THREADS TF_NUM_INTRAOP_THREADS OMP_NUM_THREADS
""".split()
"""Environment variables that change what TensorFlow or this package does. By name, since others
that begin alike may hold secrets, and a report is shown around."""

_INSTALL = "pip install --upgrade 'checkmate_tf[cpu]', or [gpu]"


def packages() -> Finding:
    """Versions, the operating system, and environment variables that matter."""
    homes = packages_distributions()
    # Python 3.10 does not find all of them; most packages are in the distribution of their name.
    installed = {package: _versions(homes.get(package, [package])) for package in _SHOWN}
    variables = [name for name in _VARIABLES if name in os.environ]
    facts = (
        ("checkmate_tf", __version__),
        ("Python", f"{platform.python_version()}, {platform.platform()}"),
        *((package, _in_words(package, found)) for package, found in installed.items()),
        ("environment", ", ".join(f"{name}={os.environ[name]}" for name in variables) or "–"),
    )
    wrong = what_is_wrong(installed)
    return Finding(not wrong, wrong or "works", facts)


def what_is_wrong(installed: Mapping[str, Mapping[str, str]]) -> str:
    """What has to be installed anew; "" where all is well.

    Args:
        installed: for each package, the distributions that it is part of, and their versions.

    Example:
        >>> what_is_wrong({"tensorflow": {"tensorflow": "2.21.0"}, "keras": {"keras": "3.15.0"}})
        ''
        >>> what_is_wrong({"tensorflow": {"tensorflow-cpu": "2.9.1"}, "keras": {"keras": "3.1"}})
        "tensorflow-cpu 2.9.1 is too old: pip install --upgrade 'checkmate_tf[cpu]', or [gpu]"
    """
    for package in LEAST:
        found = installed.get(package, {})
        if not found:
            return f"{package} is not installed: {_INSTALL}"
        if len(found) > 1:
            names = " and ".join(found)
            return f"{names} overwrite each other's files: pip uninstall both, and install one"
        ((name, text),) = found.items()
        if is_too_old(package, text):
            return f"{name} {text} is too old: {_INSTALL}"
    return ""


def _versions(distributions: Iterable[str]) -> dict[str, str]:
    """By name, those that are installed."""
    found = {}
    for name in sorted(set(distributions)):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _in_words(package: str, found: Mapping[str, str]) -> str:
    named = [text if name == package else f"{text} ({name})" for name, text in found.items()]
    return " and ".join(named) or "not installed"
