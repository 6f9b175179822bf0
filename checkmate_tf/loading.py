"""Profiles from files, for the device that TensorFlow computes on."""

from __future__ import annotations

from pathlib import Path

from checkmate_tf.measure import default_device
from profiles import store
from profiles.devices import device_name
from profiles.profile import Profile


def load_profile(path: str | Path, other_device: bool = False) -> Profile:
    """A profile for `rematerialize(…, costs=profile)`, which then measures nothing itself.

    Args:
        path: of a file that `checkmate-tf profiles merge` wrote.
        other_device: take it also if it is of another device than this machine's.

    Raises:
        CheckmateError: it is no profile, or of another device and that was not asked for.

    Example:
        >>> load_profile("v100.json")
        Traceback (most recent call last):
        solvers.errors.CheckmateError: v100.json: cannot be read: No such file or directory
    """
    return store.load_profile(path, device_name(default_device()), other_device)
