"""Cost models beside what an NVIDIA H200 took: nothing here is measured anew."""

from __future__ import annotations

from statistics import median

import pytest
from rich.console import Console

from experiments.stored_costs import (
    cross_validated,
    h200,
    like_probes,
    median_error,
    models,
    tables,
)
from profiles.calibration import calibrated
from profiles.operation import Operation, TensorSize
from profiles.roofline import Roofline, device_ceilings

TRUTH = h200()
SECONDS = TRUTH.profile.seconds
COSTS = {
    "all": Roofline(calibrated(TRUTH.start, SECONDS)).cost,
    "held out": cross_validated(TRUTH),
    "probes": Roofline(
        calibrated(TRUTH.start, {each: SECONDS[each] for each in like_probes(TRUTH)})
    ).cost,
    "assumed": Roofline(device_ceilings("GPU")).cost,
}


@pytest.mark.parametrize(
    ("model", "most"), [("all", 0.25), ("held out", 0.25), ("assumed", 0.25), ("probes", 0.35)]
)
def test_half_of_the_operations_are_known_to_a_quarter(model, most):
    """By a tenth of the entries, of which many are off by more, it is to a third."""
    assert median_error(COSTS[model], TRUTH, TRUTH.believed) <= most


@pytest.mark.parametrize("model", COSTS)
def test_the_sum_over_a_step_is_what_the_step_took(model):
    for name, step in TRUTH.steps.items():
        assert step.predicted(COSTS[model]) == pytest.approx(step.seconds, rel=0.1), name


@pytest.mark.parametrize("model", COSTS)
def test_a_batch_normalization_of_784_mib_takes_milliseconds(model):
    """The first one of ResNet50 with 256 images of 224²: three passes and two sums."""
    images = TensorSize("float32", (256, 112, 112, 64))
    channels = TensorSize("float32", (1, 1, 1, 64))
    whole, sums = {"SquaredDifference", "Mul", "AddV2"}, {"Mean"}
    passes = [
        each
        for each in SECONDS
        if (each.type in whole and each.inputs == (images, channels))
        or (each.type in sums and each.inputs[0] == images)
    ]
    assert sorted(each.type for each in passes) == ["AddV2", "Mean", "Mul", "SquaredDifference"]
    measured = sum(SECONDS[each] for each in passes)
    assert measured / 1.3 < sum(map(COSTS[model], passes)) < 1.3 * measured


def test_every_model_is_judged_by_what_it_has_not_seen():
    for name, _, unseen in models(TRUTH):
        assert set(unseen) <= set(TRUTH.believed)
        assert ("as" in name or "fifths" in name or name == "by all") == (
            len(unseen) == len(TRUTH.believed)
        )


def test_times_that_a_device_can_not_reach_are_no_measure():
    believed = TRUTH.believed
    assert 0.9 * len(SECONDS) < len(believed) < len(SECONDS)
    size = TensorSize("float32", (256, 112, 112, 64))
    plain = Operation("Relu", (size,), (size,), (("T", "float32"),))
    assert plain in believed
    speeds = [each.bytes_moved / believed[each] for each in believed if each.type == "Relu"]
    assert median(speeds) < 4.8e12


def test_the_tables_show_every_profile():
    console = Console(width=100, record=True)
    console.print(*tables(), sep="\n\n")
    text = console.export_text()
    assert text.count("by four fifths") == 3
    assert "NVIDIA H200" in text
    assert "AMD EPYC" in text
