"""Reading and writing whole files: a file is written completely or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from solvers.errors import CheckmateError


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write `content` to `path` so that a reader sees the old file or the new one, never a part.

    Text is written as UTF-8. What is no file, such as `/dev/null` or a pipe, is written to; of a
    symbolic link, the file that it names is replaced.

    Raises:
        CheckmateError: the folder does not exist or cannot be written, or the disk is full.
    """
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise CheckmateError(
            "file-unwritable", f"{path}: cannot be written: {error.strerror or error}"
        ) from error


def _replace(path: Path, content: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        # mkstemp makes private files; a result is as readable as any file the user makes.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_json(path: str | Path) -> Any:
    """Parse the JSON file at `path`.

    Raises:
        CheckmateError: it cannot be read or is not JSON; the message names the file and the place.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise CheckmateError("file-unreadable", f"{path}: cannot be read: {reason}") from error
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" starting at")
        if error.pos >= len(text.rstrip()) or reason == "Unterminated string":
            reason += " (is the file cut short?)"
        raise CheckmateError(
            "file-not-json",
            f"{path}: line {error.lineno}, column {error.colno}: not JSON: {reason}",
        ) from error
    except RecursionError as error:
        raise CheckmateError(
            "file-unreadable", f"{path}: cannot be read: it is nested too deeply"
        ) from error
    except ValueError as error:  # Python reads no number of more than some thousand digits
        raise CheckmateError(
            "file-unreadable", f"{path}: cannot be read: a number in it has too many digits"
        ) from error
