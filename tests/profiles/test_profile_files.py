from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profiles.operation import Operation, TensorSize
from profiles.profile import Measurement, Profile
from profiles.profile_files import read_profile, save_profile
from solvers import CheckmateError
from tests.fusions import FUSED
from tests.messages import raises

REDUCTION = Operation(
    "Mean",
    (TensorSize("float32", (4, 5)), TensorSize("int32", (1,))),
    (TensorSize("float32", (4,)),),
    (("T", "float32"), ("keep_dims", False), ("windows", (1, (2, 3)))),
    ((1, (0,)),),
)
PROFILE = Profile(
    "Intel® Xeon®, 2 cores",
    "2.21.0",
    {
        REDUCTION: Measurement(1.25e-5, 0),
        FUSED: Measurement(0.003, None),
        Operation("Relu"): Measurement(None, 3),
        Operation("ShapeN", (TensorSize("float32", (-1, 3)),), (TensorSize("int32"),)): Measurement(
            1e-7, 64
        ),
    },
)


def test_a_profile_survives_its_file(tmp_path: Path) -> None:
    save_profile(PROFILE, tmp_path / "profile.json")
    assert read_profile(tmp_path / "profile.json") == PROFILE


def test_a_line_for_every_operation_in_an_order_that_repeats(tmp_path: Path) -> None:
    save_profile(PROFILE, tmp_path / "one.json")
    entries = dict(reversed(list(PROFILE.entries.items())))
    save_profile(Profile(PROFILE.device, "2.21.0", entries), tmp_path / "two.json")
    text = (tmp_path / "one.json").read_text()
    assert text == (tmp_path / "two.json").read_text()
    assert len(text.splitlines()) == 2 + len(PROFILE.entries)


def _broken(change: Any, path: Path) -> None:
    save_profile(PROFILE, path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda c: c.pop("format"), ("checkmate_tf profile 1",)),
        (lambda c: c.update(format="checkmate_tf profile 99"), ("checkmate_tf profile 1",)),
        (lambda c: c.pop("device"), ("'device'",)),
        (lambda c: c.update(entries={}), ("'entries'",)),
        (lambda c: c["entries"][1].update(seconds=0), ("entry 1",)),
        (lambda c: c["entries"][1].update(seconds="NaN"), ("entry 1",)),
        (lambda c: c["entries"][2].update(workspace=-1), ("entry 2",)),
        (lambda c: c["entries"][0].pop("seconds"), ("entry 0", "KeyError: 'seconds'")),
        (lambda c: c["entries"].append(3), ("entry 4", "TypeError")),
        (
            lambda c: c["entries"][0]["operation"].update(inputs=["float32(8)"]),
            ("entry 0", "float32(8)"),
        ),
    ],
)
def test_a_broken_file_is_named_with_the_place(
    change: Any, names: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "broken.json"
    _broken(change, path)
    with raises(CheckmateError, "not-a-profile", path, *names):
        read_profile(path)


def test_a_file_that_is_no_json_says_where(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text('{"format": ')
    with raises(CheckmateError, "file-not-json", "cut.json: line 1"):
        read_profile(tmp_path / "cut.json")
