"""The examinations of `checkmate-tf doctor`: what one finds, whatever becomes of the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from checkmate_tf.cli.main import main
from checkmate_tf.doctor.device import device
from checkmate_tf.doctor.examinations import EXAMINATIONS, examined, finding_of
from checkmate_tf.doctor.finding import Finding, report_of
from profiles.devices import default_device
from solvers import CheckmateError

ABORTING = "import os, sys\nprint('no such instruction', file=sys.stderr, flush=True)\nos.abort()\n"


@pytest.mark.slow
def test_a_tensorflow_that_crashes_hides_nothing(tmp_path, monkeypatch, capsys):
    package = tmp_path / "packages" / "tensorflow"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(ABORTING)
    path = os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path.rstrip(os.pathsep))
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CHECKMATE_TF_PLANS", raising=False)
    output = tmp_path / "report.txt"
    assert main(["doctor", "--output", str(output)]) == 1
    printed = capsys.readouterr()
    assert printed.out == output.read_text()
    assert all(each.startswith("examining ") for each in printed.err.splitlines())
    assert max(map(len, printed.out.splitlines())) <= 80
    sections = printed.out.split("\n\n")
    titles = [each.splitlines()[0] for each in sections]
    assert titles == ["checkmate-tf doctor", *EXAMINATIONS, "verdict"]
    assert "no such instruction" in sections[titles.index("step")]
    assert "nothing yet" in sections[titles.index("kept files")]
    assert "highs" in sections[titles.index("solvers")]
    verdict = " ".join(sections[-1].split())
    for name in ("device", "step", "step, XLA"):
        assert f"{name} WRONG: its process was ended by SIGABRT, attach this report" in verdict
    for name in ("kept files", "solvers"):
        assert f"{name} works" in verdict


def test_a_report_that_could_not_be_written_is_refused_at_once(tmp_path, capsys):
    assert main(["doctor", "--output", str(tmp_path / "none" / "report.txt")]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.skipif(default_device() != "CPU:0", reason="where a GPU is, Keras compiles")
def test_it_says_whether_keras_compiles():
    assert dict(device().facts)["Keras compiles"] == "without XLA, unless asked to"


def test_one_that_takes_too_long_is_stopped():
    finding = examined("solvers", seconds=0.01)
    assert not finding.works
    assert "more than 0 s and was stopped" in finding.verdict


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (CheckmateError("budget-too-small", "too small; give 4 MiB"), "too small; give 4 MiB"),
        (ModuleNotFoundError("no", name="keras"), "keras is not installed: pip install"),
        (RuntimeError("two\nlines"), "RuntimeError: two lines; attach this report"),
    ],
)
def test_an_error_is_a_finding(error, verdict):
    def examination():
        raise error

    finding = finding_of(examination)
    assert not finding.works
    assert finding.verdict.startswith(verdict)
    assert any("raise error" in line for line in finding.lines)


def test_a_report_fits_a_terminal_and_does_not_tell_who_the_user_is():
    long = "word " * 40 + "x" * 200
    finding = Finding(False, long, (("name", long),), (f"    {long}", f"{Path.home()}/file"))
    report = report_of({"device": finding, "step": Finding(True, "works")})
    assert max(map(len, report.splitlines())) <= 80
    assert str(Path.home()) not in report
    assert "~/file" in report
    assert "WRONG: word" in report
