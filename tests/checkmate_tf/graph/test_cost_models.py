"""The cost models that `rematerialize` knows by name, and profiles in their place."""

from __future__ import annotations

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.graph import cost_models
from checkmate_tf.graph.cost_models import check_cost_model, step_costs
from checkmate_tf.graph.step_operations import step_operations
from checkmate_tf.trace.program import resolve
from profiles.devices import default_device, device_name
from profiles.measure.ceilings import probes
from profiles.profile import Measurement, Profile
from profiles.profile_files import save_profile
from profiles.roofline import floating_point_operations
from solvers import CheckmateError
from tests.messages import raises


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def weights():
    return tf.Variable(tf.random.normal((256, 256)) / 16)


@pytest.fixture(scope="module")
def plain(weights):
    def step(x):
        with tf.GradientTape() as tape:
            for _ in range(12):
                x = tf.tanh(x @ weights)
            loss = tf.reduce_sum(x)
        return loss, tape.gradient(loss, weights)

    return step


@pytest.fixture(scope="module")
def program(plain):
    return resolve(tf.function(plain).get_concrete_function(tf.ones((512, 256))))


def test_arithmetic(program):
    for each in step_operations(program):
        found = step_costs("flops", program).model.cost(each.operation)
        assert found == max(1.0, floating_point_operations(each.operation))


def test_a_named_profile_measures_what_is_missing(program):
    costs = step_costs("profile", program)
    assert costs.notes == ()
    operations = {each.operation for each in step_operations(program)}
    assert any(each.type == "MatMul" for each in operations)
    assert operations <= set(costs.model.profile.entries)
    assert all(costs.model.cost(each) > 0 for each in operations)


def test_of_a_device_no_more_than_its_ceilings_is_measured(program, tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path))
    seen = []
    costs = step_costs("device", program, lambda operations: seen.extend(operations) or seen)
    assert costs.notes == ()
    assert set(seen) <= set(probes(default_device()))
    products = [e.operation for e in step_operations(program) if e.operation.type == "MatMul"]
    (large,) = {costs.model.cost(each) for each in products}
    assert 0 < large < 1


def test_a_given_profile_is_taken_as_it_is_and_says_what_it_lacks(program):
    operations = [each.operation for each in step_operations(program)]
    products = [each for each in operations if each.type == "MatMul"]
    profile = Profile("a CPU", "2.1.0", {each: Measurement(0.25, 0) for each in products})
    costs = step_costs(profile, program)
    assert {costs.model.cost(each) for each in products} == {0.25}
    origin, estimates = costs.notes
    missing = len(operations) - len(products)
    assert f"{missing} of {len(operations)} operations are not in the profile of a CPU" in estimates
    assert "measured on a CPU under TensorFlow 2.1.0; this is" in origin


def test_a_plan_by_profile(plain):
    step = checkmate_tf.rematerialize(
        plain, budget=0.7, time_limit=5, costs="profile", trial_run=False
    )
    x = tf.random.stateless_normal((1024, 256), (1, 2))
    loss, _ = step(x)
    assert float(loss) == pytest.approx(float(tf.function(plain)(x)[0]), rel=1e-3)
    assert step.plan.graph.cost_unit == "s"


def test_a_plan_says_what_was_not_measured(plain, tmp_path):
    path = tmp_path / "empty.json"
    save_profile(Profile(device_name(), tf.__version__), path)
    profile = checkmate_tf.load_profile(path)
    step = checkmate_tf.rematerialize(
        plain, budget=0.7, time_limit=5, costs=profile, trial_run=False
    )
    step(tf.ones((1024, 256)))
    assert "100.0 % of the time is estimated" in " ".join(step.plan.notes)


def test_another_devices_profile_is_refused(tmp_path):
    path = tmp_path / "v100.json"
    save_profile(Profile("Tesla V100", tf.__version__), path)
    with raises(CheckmateError, "profile-of-another-device", "Tesla V100"):
        checkmate_tf.load_profile(path)
    assert checkmate_tf.load_profile(path, other_device=True).device == "Tesla V100"


@pytest.mark.parametrize("costs", ["guess", 3, None])
def test_what_is_no_cost_model(costs):
    with raises(CheckmateError, "cost-model-unknown", "roofline, flops, device, profile"):
        check_cost_model(costs)


def test_a_new_name_alone_measures_nothing(program, monkeypatch):
    monkeypatch.setattr(cost_models, "COST_MODELS", (*cost_models.COST_MODELS, "new"))
    measured = []
    with pytest.raises(AssertionError, match="'new'"):
        step_costs("new", program, lambda operations: measured.extend(operations) or ())
    assert measured == []


def test_a_device_that_cant_be_measured_costs_what_a_roofline_says(program, tmp_path, monkeypatch):
    taken = tmp_path / "a file"
    taken.write_text("")
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(taken))
    costs = step_costs("device", program)
    expected = step_costs("roofline", program)
    assert costs.model == expected.model
    (note,) = costs.notes
    assert str(taken) in note
