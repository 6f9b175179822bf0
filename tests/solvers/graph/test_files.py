from __future__ import annotations

import os
from pathlib import Path

import pytest

from solvers import CheckmateError
from solvers.graph.files import read_json, write_whole
from tests.messages import raises


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")
    write_whole(path, '["ü"]')
    assert read_json(path) == ["ü"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["replace", "chmod"])
def test_the_old_file_stays_where_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    path = tmp_path / "plan.json"
    path.write_text("old")
    monkeypatch.setattr(os, name, fail)
    with raises(CheckmateError, "file-unwritable", "plan.json", "disk full"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_stays_where_the_text_cannot_be_encoded(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_symbolic_link_stays_and_the_file_behind_it_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link, file = tmp_path / "plan.json", tmp_path / "real" / "file.json"
    link.symlink_to(file)
    for content in ("new", "newer"):  # at first there is no file
        write_whole(link, content)
        assert (link.readlink(), file.read_text()) == (file, content)
    assert list((tmp_path / "real").iterdir()) == [file]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """Replaced by a file, its reader would wait for ever; and so /dev/null would be lost."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, "new")
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with raises(CheckmateError, "file-unwritable", "plan.json"):
        write_whole(tmp_path / "none" / "plan.json", "new")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "plan.json").mkdir()
    with raises(CheckmateError, "file-unwritable", "plan.json"):
        write_whole(tmp_path / "plan.json", "new")
    assert list(tmp_path.iterdir()) == [tmp_path / "plan.json"]


def test_a_new_file_is_as_readable_as_any(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_whole(tmp_path / "whole", "")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\xff\xfe", ("file-unreadable",)),
        (b"", ("file-not-json", "line 1, column 1", "cut short")),
        (b'{"a": [1,\n', ("file-not-json", "line 2, column 1", "cut short")),
        (b'{"a": "b', ("file-not-json", "line 1, column 7", "cut short")),
        (b'{"a":\n 1 2}', ("file-not-json", "line 2, column 4")),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(
    tmp_path: Path, content: bytes, told: tuple[str, ...]
) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with raises(CheckmateError, *told, "plan.json") as caught:
        read_json(path)
    assert ("cut short" in str(caught.value)) == ("cut short" in told)
