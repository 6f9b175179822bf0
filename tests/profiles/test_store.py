from __future__ import annotations

from pathlib import Path

import pytest

from profiles import store
from profiles.operation import Operation
from profiles.profile import Measurement, Profile
from profiles.profile_files import read_profile, save_profile
from solvers import CheckmateError
from tests.messages import raises

RELU, SELU = Operation("Relu"), Operation("Selu")
FIRST, SECOND = Measurement(1.0, 1), Measurement(2.0, 2)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped")
    (tmp_path / "shipped").mkdir()
    return tmp_path / "cache"


def test_the_cache_is_where_the_user_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert store.cache_folder().name == "cache"
    monkeypatch.delenv("CHECKMATE_TF_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert store.cache_folder() == Path("/somewhere/checkmate_tf")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/user")
    assert store.cache_folder() == Path("/home/user/.cache/checkmate_tf")


def test_what_is_remembered_is_known_and_adds_up() -> None:
    store.remember(Profile("a", "1", {RELU: FIRST}))
    store.remember(Profile("a", "1", {SELU: SECOND}))
    assert store.known_profile("a", "1").entries == {RELU: FIRST, SELU: SECOND}


@pytest.mark.parametrize(("device", "version"), [("b", "1"), ("a", "2")])
def test_it_is_known_of_no_other_device_or_version(device: str, version: str) -> None:
    store.remember(Profile("a", "1", {RELU: FIRST}))
    assert store.known_profile(device, version).entries == {}


def test_the_users_own_figures_win_over_shipped_ones(tmp_path: Path) -> None:
    shipped = Profile("a", "1", {RELU: FIRST, SELU: FIRST})
    save_profile(shipped, tmp_path / "shipped" / store.file_name("a", "1"))
    store.remember(Profile("a", "1", {RELU: SECOND}))
    assert store.known_profile("a", "1").entries == {RELU: SECOND, SELU: FIRST}
    assert [path.parent.name for path in store.profile_files()] == ["shipped", "cache"]


def test_forgetting_one_device_or_all(cache: Path) -> None:
    for device in ("a", "b", "c"):
        store.remember(Profile(device, "1", {RELU: FIRST}))
    assert store.forget("b") == [cache / store.file_name("b", "1")]
    assert store.known_profile("b", "1").entries == {}
    assert store.known_profile("a", "1").entries == {RELU: FIRST}
    assert len(store.forget()) == 2
    assert store.forget() == []


def test_two_devices_never_share_a_file() -> None:
    assert store.file_name("CPU, 2 cores", "2.21.0") != store.file_name("CPU, 2 cores, x", "2.21.0")


def test_a_broken_cache_says_how_to_mend_it(cache: Path) -> None:
    path = store.remember(Profile("a", "1", {RELU: FIRST}))
    path.write_text("{}")
    for use in (lambda: store.known_profile("a", "1"), lambda: store.remember(Profile("a", "1"))):
        with raises(CheckmateError, "not-a-profile", "profiles clear", path):
            use()


def test_a_cache_that_cannot_be_made_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path / "file" / "cache"))
    with raises(CheckmateError, "folder-unwritable", "CHECKMATE_TF_CACHE"):
        store.remember(Profile("a", "1"))


def test_another_devices_profile_is_refused_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "v100.json"
    profile = Profile("Tesla V100", "1", {RELU: FIRST})
    save_profile(profile, path)
    with raises(
        CheckmateError, "profile-of-another-device", path, "'Tesla V100'", "'a 2-core CPU'"
    ):
        store.load_profile(path, "a 2-core CPU")
    assert store.load_profile(path, "a 2-core CPU", other_device=True) == profile
    assert store.load_profile(path, "Tesla V100") == profile


def test_shipped_profiles_are_named_after_their_devices() -> None:
    folder = Path(store.__file__).parent
    for path in folder.glob("*.json"):
        profile = read_profile(path)
        assert path.name == store.file_name(profile.device, profile.tensorflow)
