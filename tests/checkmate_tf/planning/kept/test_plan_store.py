"""The folder of kept plans: where it is, what is in it, what goes."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from checkmate_tf.cli.main import main
from checkmate_tf.planning.kept import plan_store
from checkmate_tf.planning.kept.plan_store import (
    file_of,
    plan_files,
    plan_folder,
    read_entry,
    remove,
    write_entry,
)
from solvers import CheckmateError
from tests.checkmate_tf.plans.test_documents import plan_of_a_step
from tests.messages import raises

KEY = {"content": "0123456789abcdef0123", "budget": "50%", "tensorflow": "2.21.0"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CHECKMATE_TF_PLANS", str(tmp_path / "plans"))
    return tmp_path / "plans"


def entry(**changes: object) -> dict[str, object]:
    return {**plan_of_a_step().to_json(), "kept": {"key": {**KEY, **changes}, "overhead": 0.2}}


def keep(folder: Path, **changes: object) -> Path:
    path = file_of(folder, {**KEY, **changes})
    write_entry(path, entry(**changes))
    return path


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHECKMATE_TF_PLANS")
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path / "cache"))
    assert plan_folder() == tmp_path / "cache" / "plans"
    monkeypatch.setenv("CHECKMATE_TF_PLANS", "off")
    assert plan_folder() is None
    assert plan_files() == []


def test_names_tell_keys_apart(folder: Path) -> None:
    paths = {file_of(folder, {**KEY, "budget": budget}) for budget in ("50%", "60%", "min")}
    assert len(paths) == 3
    assert len({path.name[:17] for path in paths}) == 1
    assert file_of(folder, dict(reversed(KEY.items()))) in paths


def test_the_plans_that_were_used_least_recently_go(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_store, "MOST_PLANS", 2)
    first, second = keep(folder, budget="1"), keep(folder, budget="2")
    os.utime(second, (1, 1))
    mine = folder / "graph.json"
    mine.write_text("{}")
    os.utime(mine, (0, 0))
    third = keep(folder, budget="3")
    assert set(plan_files()) == {first, third}
    assert mine.exists()  # none of ours


def test_a_reader_never_sees_half_a_file(folder: Path) -> None:
    """While another thread, as another process would, writes it again and again."""
    path = keep(folder)
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            write_entry(path, {**entry(), "filler": "x" * 200_000})
            write_entry(path, entry())

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(100):
            assert read_entry(path).key == KEY
    finally:
        over.set()
        writer.join()
    assert [each.name for each in folder.iterdir()] == [path.name]


def test_what_cannot_be_written_or_is_gone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with raises(CheckmateError, "folder-unwritable"):
        write_entry(tmp_path / "file" / "plans" / "x.json", entry())
    remove(tmp_path / "nothing.json")
    (tmp_path / "other.json").write_text("{}")
    with raises(CheckmateError, "not-a-kept-plan"):
        read_entry(tmp_path / "other.json")


def test_plans_are_listed_and_cleared(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["plans"]) == 0
    assert "no plans in" in capsys.readouterr().out
    keep(folder), keep(folder, budget="4096")
    older = file_of(folder, {**KEY, "budget": "60%"})
    document = entry(budget="60%")
    for name in ("batch_size", "optimizer"):
        del document["step"]["origin"][name]
    write_entry(older, document)
    broken = file_of(folder, {**KEY, "budget": "7"})
    broken.write_text('{"cut')
    mine = folder / "graph.json"
    mine.write_text(json.dumps(entry()))
    assert main(["plans"]) == 0
    printed = capsys.readouterr().out
    assert "4.0 KiB (50%)" in printed
    assert "20.0 %" in printed
    assert "broken" in printed
    assert f"    {broken.name}\n" in printed
    for fact in ("batch 16", "adam", "used 20", "TensorFlow 2.21.0"):
        assert printed.count(fact) >= 2
    assert "4 plans in" in printed
    assert max(map(len, printed.splitlines()[:-1])) <= 80
    assert main(["plans", "--clear"]) == 0
    assert list(folder.iterdir()) == [mine]
    monkeypatch.setenv("CHECKMATE_TF_PLANS", "off")
    capsys.readouterr()
    assert main(["plans"]) == 0
    assert "no plans are kept: CHECKMATE_TF_PLANS says so" in capsys.readouterr().out
