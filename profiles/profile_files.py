"""Profiles as JSON: one line for every operation, so that two files can be compared."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profiles.fusion import Fusion, fuse
from profiles.operation import Operation, TensorSize
from profiles.profile import Measurement, Profile
from solvers.errors import CheckmateError
from solvers.graph.files import read_json, write_whole

_FORMAT = "checkmate_tf profile 1"
_SIZE = re.compile(r"(\w+)\[([-\d,]*)\]")


def save_profile(profile: Profile, path: str | Path) -> None:
    """Write `profile` to `path`, completely or not at all.

    Raises:
        CheckmateError: the file cannot be written.
    """
    lines = sorted(
        json.dumps({"operation": _described(operation), **_measured(measurement)})
        for operation, measurement in profile.entries.items()
    )
    head = {"format": _FORMAT, "device": profile.device, "tensorflow": profile.tensorflow}
    body = ",\n".join(lines)
    write_whole(path, f'{json.dumps(head)[:-1]}, "entries": [\n{body}\n]}}\n')


def read_profile(path: str | Path) -> Profile:
    """The profile in the file `path`, whatever device it is of.

    Raises:
        CheckmateError: it cannot be read or is no profile; the message says where.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise CheckmateError(
            "not-a-profile", f"{path}: not a profile: its format is not {_FORMAT!r}"
        )
    for key, kind in (("device", str), ("tensorflow", str), ("entries", list)):
        if not isinstance(content.get(key), kind):
            raise CheckmateError("not-a-profile", f"{path}: not a profile: it has no {key!r}")
    entries: dict[Operation, Measurement] = {}
    for number, entry in enumerate(content["entries"]):
        try:
            entries[_operation(entry["operation"])] = _measurement(entry)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise CheckmateError(
                "not-a-profile",
                f"{path}: entry {number} is not of a profile: {type(error).__name__}: {error}",
            ) from error
    return Profile(content["device"], content["tensorflow"], entries)


def _measured(measurement: Measurement) -> dict[str, Any]:
    # Four digits are more than a clock on a shared machine is worth.
    seconds = measurement.seconds and float(f"{measurement.seconds:.4g}")
    return {"seconds": seconds, "workspace": measurement.workspace}


def _measurement(entry: Mapping[str, Any]) -> Measurement:
    seconds, workspace = entry["seconds"], entry["workspace"]
    if seconds is not None:
        seconds = float(seconds)
    if (seconds is not None and not 0 < seconds < float("inf")) or (workspace or 0) < 0:
        raise ValueError(f"seconds {seconds} and workspace {workspace} can't have been measured")
    return Measurement(seconds, workspace)


def _described(operation: Operation) -> dict[str, Any]:
    if isinstance(operation, Fusion):
        return {
            "parts": [_described(part) for part in operation.parts],
            "wires": operation.wires,
            "inputs": [_text(size) for size in operation.inputs],
            "results": operation.results,
        }
    described: dict[str, Any] = {
        "type": operation.type,
        "inputs": [_text(size) for size in operation.inputs],
        "outputs": [_text(size) for size in operation.outputs],
        "attributes": dict(operation.attributes),
    }
    return described | ({"constants": operation.constants} if operation.constants else {})


def _operation(described: Mapping[str, Any]) -> Operation:
    inputs = [_size(text) for text in described["inputs"]]
    if "parts" in described:
        parts = [_operation(part) for part in described["parts"]]
        return fuse(parts, described["wires"], inputs, described["results"])
    return Operation(
        type=described["type"],
        inputs=tuple(inputs),
        outputs=tuple(_size(text) for text in described["outputs"]),
        attributes=tuple(sorted((k, _tuples(v)) for k, v in described["attributes"].items())),
        constants=_tuples(described.get("constants", [])),
    )


def _text(size: TensorSize) -> str:
    return f"{size.dtype}[{','.join(map(str, size.shape))}]"


def _size(text: str) -> TensorSize:
    matched = _SIZE.fullmatch(text)
    if matched is None:
        raise ValueError(f"{text!r} is not a type and shape, like 'float32[8,3]'")
    dtype, lengths = matched.groups()
    return TensorSize(dtype, tuple(int(each) for each in lengths.split(",") if each))


def _tuples(value: Any) -> Any:
    """Lists as tuples, which can be compared and hashed."""
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value
