from __future__ import annotations

from pathlib import Path

import pytest

from profiles import store
from profiles.devices import device_name
from profiles.measure import compiled_workspaces
from profiles.measure.compiled_workspaces import CompiledWorkspaces, compiler_name
from profiles.operation import Operation, TensorSize

SIZE = TensorSize("float32", (256, 256))
ATTRIBUTES = (("T", "float32"), ("transpose_a", False), ("transpose_b", False))
PRODUCT = Operation("MatMul", (SIZE, SIZE), (SIZE,), ATTRIBUTES)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_another_process_compiles_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = CompiledWorkspaces.stored()
    workspace = first(PRODUCT)
    first.keep()
    monkeypatch.setattr(compiled_workspaces, "function_of_specs", None)  # would be called
    again = CompiledWorkspaces.stored()
    assert again(PRODUCT) == workspace
    (path,) = (each for each in store.profile_files() if each.parent == store.cache_folder())
    assert "xla-cpu-on-" in path.name


def test_what_is_known_is_not_written_again(cache: Path) -> None:
    workspaces = CompiledWorkspaces("CPU:0", {PRODUCT: 7})
    assert workspaces(PRODUCT) == 7
    workspaces.keep()
    assert not cache.exists()


def test_other_flags_are_another_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    plain = compiler_name()
    monkeypatch.setenv("XLA_FLAGS", "--one --other")
    flags = compiler_name()
    monkeypatch.setenv("XLA_FLAGS", "--other  --one")
    assert plain == f"XLA:CPU on {device_name()}" != flags == compiler_name()
