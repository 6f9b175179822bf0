"""Measure the operations of a step that no profile knows yet, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import tensorflow as tf

from profiles.devices import device_name
from profiles.measure.measurement import NotMeasurableError, measure
from profiles.nested import Nested
from profiles.operation import Operation
from profiles.profile import Measurement, Profile
from profiles.store import known_profile, remember

_Progress = Callable[[Iterable[Operation]], Iterable[Operation]]


def survey(
    operations: Iterable[Operation],
    device: str = "CPU:0",
    progress: _Progress = iter,
    again: bool = False,
) -> Profile:
    """The profile of `device` with all of `operations` that can run by themselves.

    What the user's cache and the shipped profiles know is not measured again. What is measured is
    kept in the cache, also if it is interrupted.

    Args:
        operations: as often as they occur; each distinct one is measured once.
        device: "CPU:0", "GPU:0" or "TPU:0".
        progress: passes on the operations to be measured, and may show how far it is.
        again: measure also what is known.

    Raises:
        CheckmateError: TensorFlow does not see such a device, or the cache can't be used.

    Example:
        >>> survey([]).entries == known_profile(device_name(), tf.__version__).entries
        True
    """
    known = known_profile(device_name(device), tf.__version__)
    distinct = dict.fromkeys(operations)
    missing = [
        each
        for each in distinct
        # What runs functions costs what they do, and is in no file.
        if not isinstance(each, Nested) and (again or each not in known.seconds)
    ]
    found: dict[Operation, Measurement] = {}
    try:
        for operation in progress(missing):
            try:
                found[operation] = measure(operation, device)
            except NotMeasurableError:
                continue  # `ProfiledCosts.missing` counts it
    finally:
        if found:
            remember(Profile(known.device, known.tensorflow, found))
    # As it is read the next time, or the same operation would cost a little less or more then.
    return known_profile(known.device, known.tensorflow) if found else known
