"""What `checkmate-tf doctor` says of packages, the device, kept files and solvers."""

from __future__ import annotations

import os
import sys

import keras
import numpy
import pytest
import tensorflow as tf

from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.doctor.backends import backends
from checkmate_tf.doctor.device import device
from checkmate_tf.doctor.examinations import examined
from checkmate_tf.doctor.kept_files import kept_files
from checkmate_tf.doctor.packages import packages, what_is_wrong
from profiles.operation import Operation
from profiles.profile import Measurement, Profile
from profiles.profile_files import save_profile


def test_versions_are_those_that_are_loaded(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--some_flag")
    monkeypatch.setenv("TF_TOKEN_somewhere", "secret")
    finding = packages()
    facts = dict(finding.facts)
    assert facts["tensorflow"].split()[0] == tf.__version__.replace("-rc", "rc")
    assert facts["keras"].split()[0] == keras.__version__  # a nightly one is named
    assert facts["numpy"] == numpy.__version__
    assert facts["Python"].startswith(sys.version.split()[0])
    assert "XLA_FLAGS=--some_flag" in facts["environment"]
    assert "secret" not in facts["environment"]
    assert finding.verdict == "works"


@pytest.mark.parametrize(
    ("tensorflow", "keras", "wrong"),
    [
        ({}, {"keras": "3.1"}, "tensorflow is not installed: pip install"),
        ({"tensorflow": "2.16.1"}, {"keras": "2.15.0"}, "keras 2.15.0 is too old"),
        ({"tensorflow": "3.0.0rc1"}, {"keras": "4.0"}, ""),
        ({"tensorflow": "2.21.0", "tensorflow-cpu": "2.21.0"}, {"keras": "3.1"}, "overwrite"),
    ],
)
def test_what_has_to_be_installed(tensorflow, keras, wrong):
    found = what_is_wrong({"tensorflow": tensorflow, "keras": keras})
    assert wrong in found
    assert bool(found) == bool(wrong)


def test_the_device_is_the_one_that_steps_run_on():
    facts = dict(device().facts)
    place = facts["device"].partition(": ")[0]
    assert tf.ones(1).device.endswith(place)
    assert (facts["memory counted by"] == "nothing") == (held_bytes(place) is None)


@pytest.mark.slow
@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="of CPUs")
def test_a_device_whose_memory_nobody_counts_is_said(monkeypatch):
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    monkeypatch.delenv("TF_CPU_ALLOCATOR_USE_BFC")
    finding = examined("device")
    assert dict(finding.facts)["memory counted by"] == "nothing"
    assert dict(finding.facts)["oneDNN"] == "off"
    assert finding.works
    assert "TF_CPU_ALLOCATOR_USE_BFC=true" in finding.verdict


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path))
    monkeypatch.delenv("CHECKMATE_TF_PLANS", raising=False)
    return tmp_path


def test_kept_files_are_counted(cache):
    save_profile(Profile("a", "2.21.0", {Operation("Relu"): Measurement(1.0, 0)}), cache / "a.json")
    size = os.path.getsize(cache / "a.json")
    finding = kept_files()
    assert finding.works
    assert dict(finding.facts)["profiles"] == f"{cache}: 1 file, {size} B"
    assert dict(finding.facts)["plans"] == f"{cache / 'plans'}: nothing yet"


def test_broken_files_are_named(cache):
    (cache / "plans").mkdir()
    broken = cache / "plans" / f"{'0' * 16}-{'1' * 16}.json"
    broken.write_text("{")
    assert kept_files().verdict == f"{broken} is broken: checkmate-tf plans --clear"


def test_a_folder_that_is_none(cache, monkeypatch):
    (cache / "file").write_text("")
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(cache / "file" / "cache"))
    monkeypatch.setenv("CHECKMATE_TF_PLANS", "off")
    finding = kept_files()
    assert "can't be written: let CHECKMATE_TF_CACHE name" in finding.verdict
    assert "CHECKMATE_TF_PLANS" in dict(finding.facts)["plans"]


def test_each_backend_solves_something():
    finding = backends()
    facts = dict(finding.facts)
    assert finding.works
    assert facts["highs"] == facts["cvxpy"] == facts["cvxpy:HIGHS"] == "works"


def test_a_backend_that_is_missing_or_broken_is_no_fault(monkeypatch):
    names = ["highs", "other"], ["gurobi", "cvxpy:SCIP"]
    monkeypatch.setattr("checkmate_tf.doctor.backends.backend_names", lambda: names)
    finding = backends()
    assert finding.works
    assert dict(finding.facts)["other"].startswith("no backend 'other'")
    assert dict(finding.facts)["not installed"] == "gurobi, cvxpy:SCIP"


def test_without_highs_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    monkeypatch.delitem(sys.modules, "solvers.programs.backends.highs", raising=False)
    monkeypatch.setattr("checkmate_tf.doctor.backends.backend_names", lambda: ([], ["highs"]))
    finding = backends()
    assert not finding.works
    assert "pip install --force-reinstall highspy" in finding.verdict
