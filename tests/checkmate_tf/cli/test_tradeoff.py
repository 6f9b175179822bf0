"""`checkmate-tf tradeoff`, from the command line's point of view."""

from __future__ import annotations

import pytest

import checkmate_tf
from checkmate_tf.cli.main import main
from checkmate_tf.devices.measure import held_bytes
from tests.user_modules import user_module

MODULE = """
import tensorflow as tf
from tests.dense_steps import dense_model, loss_and_gradient, numbers, some_weights

inner = loss_and_gradient(some_weights(), 6)
one_size = tf.function(inner, input_signature=[tf.TensorSpec((256, 64))])
large = tf.function(inner, input_signature=[tf.TensorSpec((2048, 64))])

def step_and_batch():
    return inner, (tf.TensorSpec((256, 64)),)

def model_and_batch():
    model = dense_model(depth=3)
    model.compile("sgd", "mse", jit_compile=False)
    return model, numbers(256)

def compiled_model_and_batch():
    model = dense_model(depth=3)
    model.compile("sgd", "mse", jit_compile=True)
    return model, numbers(2048)
"""

QUICK = ["--points", "3", "--time-limit", "0.5"]


@pytest.fixture(autouse=True)
def _user_module(tmp_path, monkeypatch):
    with user_module("user_curves", MODULE, tmp_path, monkeypatch):
        yield


@pytest.mark.parametrize("function", ["one_size", "step_and_batch", "model_and_batch"])
def test_table_picture_and_plans(function, tmp_path, capsys):
    folder, picture = tmp_path / "new" / "plans", tmp_path / "curve.svg"
    asked = ["tradeoff", f"user_curves:{function}", *QUICK]
    assert main([*asked, "--plot", str(picture), "--output", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.split("\n\n" + str(picture))[0].splitlines())) <= 80
    assert f"{picture}: extra time against the budget" in printed
    assert picture.read_text().startswith("<?xml")
    plans = [checkmate_tf.Plan.load(path) for path in sorted(folder.iterdir())]
    budgets = [plan.budget for plan in plans]
    assert budgets == sorted(budgets, reverse=True)
    digits = 1 if f"{budgets[0] / 2**20:.2f}" not in printed else 2  # by what else is held
    assert all(f"{budget / 2**20:.{digits}f}" in printed for budget in budgets)
    assert {plan.measured_peak for plan in plans} == {None}


def test_of_a_model_that_xla_compiles(tmp_path, capsys):
    folder = tmp_path / "plans"
    asked = ["tradeoff", "user_curves:compiled_model_and_batch", *QUICK, "--trial-run"]
    assert main([*asked, "--output", str(folder)]) == 0
    assert "XLA's compiler" in capsys.readouterr().out
    plans = [checkmate_tf.Plan.load(path) for path in sorted(folder.iterdir())]
    assert all(plan.compiled_peak == plan.budget for plan in plans)
    assert {plan.measured_peak for plan in plans} == {None}


def test_with_trial_runs(capsys):
    assert main(["tradeoff", "user_curves:one_size", *QUICK, "--trial-run"]) == 0
    assert "the most that the steps of a trial run held" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["user_curves:nobody"], "nobody"),
        (["user_curves:one_size", "--points", "1"], "2 or more"),
        (["user_curves:one_size", "--plot", "nowhere/curve.png"], "does not exist"),
        (["user_curves:one_size", "--costs", "v100"], "no cost model"),
    ],
)
def test_what_goes_wrong(arguments, message, capsys):
    assert main(["tradeoff", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_step_that_is_too_large_for_the_device(monkeypatch, capsys):
    held_bytes()  # TensorFlow's allocator is there, and keeps the limit that it has
    monkeypatch.setenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", "1")
    assert main(["tradeoff", "user_curves:large", *QUICK]) == 3
    assert "take a smaller batch" in capsys.readouterr().err
