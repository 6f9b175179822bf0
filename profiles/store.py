"""Where profiles lie: those that ship with this package, and each user's own.

A user's profiles are in $CHECKMATE_TF_CACHE, else in the folder checkmate_tf of $XDG_CACHE_HOME,
else of ~/.cache: a file for every device and TensorFlow version.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from profiles.profile import Profile
from profiles.profile_files import read_profile, save_profile
from solvers.errors import CheckmateError

SHIPPED = Path(__file__).parent
"""The folder of the profiles that ship with the package, each named after its device."""


def cache_folder() -> Path:
    """The user's folder of profiles; it need not exist."""
    if named := os.environ.get("CHECKMATE_TF_CACHE"):
        return Path(named)
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "checkmate_tf"


def file_name(device: str, tensorflow: str) -> str:
    """What the file of a device's profile is called.

    Example:
        >>> file_name("Intel(R) Xeon(R), 2 cores, oneDNN", "2.21.0")
        'intel-r-xeon-r-2-cores-onednn-tensorflow-2.21.0.json'
    """
    words = re.findall(r"[a-z0-9]+", device.lower())
    return f"{'-'.join(words)}-tensorflow-{tensorflow}.json"


def profile_files() -> list[Path]:
    """The files of all profiles, the shipped ones first."""
    return [*sorted(SHIPPED.glob("*.json")), *sorted(cache_folder().glob("*.json"))]


def named_file(name: str) -> Path | None:
    """The file of the stored profile of that device, or of that file name; None if there is none.

    The user's own go before the shipped ones.

    Example:
        >>> path = profile_files()[0]
        >>> named_file(path.stem) == named_file(path.name) == path
        True
    """
    for path in reversed(profile_files()):
        if name in (path.name, path.stem) or name == _stored(path).device:
            return path
    return None


def known_profile(device: str, tensorflow: str) -> Profile:
    """All that is known of a device under a TensorFlow version; what the user measured wins.

    Raises:
        CheckmateError: a file is broken; the message says what to do.
    """
    found = Profile(device, tensorflow)
    for folder in (SHIPPED, cache_folder()):
        path = folder / file_name(device, tensorflow)
        if path.exists():
            found = found.merged(_stored(path))
    return found


def remember(profile: Profile) -> Path:
    """Add the entries of `profile` to the user's own; the file that holds them.

    Raises:
        CheckmateError: the file can't be written, or what is there is broken.
    """
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckmateError(
            "folder-unwritable",
            f"{folder}: can't be made: {error.strerror}; set CHECKMATE_TF_CACHE to a folder that "
            "you may write",
        ) from error
    path = folder / file_name(profile.device, profile.tensorflow)
    # Read again just before it is replaced: another process may have added to it meanwhile.
    before = _stored(path) if path.exists() else Profile(profile.device, profile.tensorflow)
    save_profile(before.merged(profile), path)
    return path


def forget(device: str | None = None) -> list[Path]:
    """Delete the user's own profiles, of one device or of all; the files that are gone.

    Raises:
        CheckmateError: a file can't be deleted.
    """
    gone = []
    for path in sorted(cache_folder().glob("*.json")):
        if device is None or read_profile(path).device == device:
            try:
                path.unlink()
            except OSError as error:
                raise CheckmateError(
                    "file-undeletable", f"{path}: can't be deleted: {error.strerror}"
                ) from error
            gone.append(path)
    return gone


def load_profile(path: str | Path, device: str, other_device: bool = False) -> Profile:
    """The profile in a file, for `device`.

    Args:
        path: of a file that `checkmate-tf profile` or `checkmate-tf profiles merge` wrote.
        device: the full name of the device that it is to be used for.
        other_device: take it also if it is of another device.

    Raises:
        CheckmateError: it is no profile, or of another device and that was not asked for.
    """
    profile = read_profile(path)
    if not other_device:
        try:
            profile.check_device(device)
        except CheckmateError as error:
            raise CheckmateError(error.code, f"{path}: {error}") from error
    return profile


def _stored(path: Path) -> Profile:
    try:
        return read_profile(path)
    except CheckmateError as error:
        raise CheckmateError(
            error.code, f"{error}; delete the file, or `checkmate-tf profiles clear`"
        ) from error
