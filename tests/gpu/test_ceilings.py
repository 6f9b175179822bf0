"""A GPU's ceilings are measured once in its life."""

from __future__ import annotations

import tensorflow as tf

from profiles.measure.ceilings import costs_of_device, probes
from tests.gpu.steps import GPU, measured


def test_nothing_is_held_for_costs_that_are_known():
    known = costs_of_device(GPU)
    before = tf.config.experimental.get_memory_info(GPU)["current"]
    again, peak = measured(costs_of_device, GPU)
    assert again == known
    assert not known.missing(probes(GPU))
    assert peak <= before + (1 << 20)
