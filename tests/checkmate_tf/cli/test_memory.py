"""`checkmate-tf memory`, from the command line's point of view."""

from __future__ import annotations

import pytest

from checkmate_tf import memory
from checkmate_tf.cli.main import main
from tests.user_modules import user_module

MODULE = """
from tests.dense_steps import dense_model, numbers

def model():
    model = dense_model(depth=3)
    model.compile("sgd", "mse", jit_compile=False)
    return model

plain = model()

def with_batch():
    return plain, numbers(128)
"""


@pytest.fixture(autouse=True)
def _user_module(tmp_path, monkeypatch):
    with user_module("user_models", MODULE, tmp_path, monkeypatch):
        yield


@pytest.mark.parametrize("name", ["model", "plain", "with_batch"])
def test_it_prints_what_the_function_finds(name, capsys):
    size = [] if name == "with_batch" else ["--batch-size", "128"]
    assert main(["memory", f"user_models:{name}", *size, "--device-memory"]) == 0
    import user_models

    printed = capsys.readouterr().out.partition("\n")[2]  # Keras numbers the names of models
    told = str(memory(user_models.plain, 128, device_memory=()))
    assert printed.strip() == told.partition("\n")[2].strip()


def test_devices_and_a_picture(tmp_path, capsys):
    picture = tmp_path / "held.png"
    options = ["--batch-size", "64", "--device", "GPU", "--time-limit", "1", "--plot", str(picture)]
    assert main(["memory", "user_models:plain", *options, "--device-memory", "4GiB", "8GiB"]) == 0
    printed = capsys.readouterr().out
    assert "4.0 GiB" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_is_wrong_is_said(capsys):
    assert main(["memory", "user_models:plain", "--batch-size", "8", "--device-memory", "x"]) == 2
    assert main(["memory", "user_models:plain", "--device-memory"]) == 2
    assert "batch_size=" in capsys.readouterr().err
