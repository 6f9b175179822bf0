"""One case, in a process of its own: `fit` as it is, then within the budget.

    python -m experiments.gpu.trial '{"model": "ResNet50", "batch": 64, "side": 224}'

Every line that it prints is JSON. After {"ready": …} it waits for a line: times are taken then, so
that nothing else may run beside. Both models have the same layers and the same optimizer.
"""

from __future__ import annotations

import json
import sys
import time
from statistics import median
from typing import Any

from experiments.gpu.cases import LABELS, MODELS, WORDS, Case

_EPOCHS, _STEPS = 3, 10
"""Of each model while times are taken, in turn."""


def main() -> None:
    """Run the case that the argument describes."""
    asked = json.loads(sys.argv[1])
    limit, budget = asked.pop("limit", None), asked.pop("budget", None)
    case = Case(**asked)
    if case.look == "bits":
        figures = bits(case)
    elif case.look == "limit":
        figures = within_limit(case, limit, budget)
    else:
        figures = steps(case)
    print(json.dumps({"done": figures}), flush=True)


def steps(case: Case) -> dict[str, Any]:
    """Peaks and seconds of `fit` without a budget and with one."""
    from checkmate_tf import rematerialize

    plain, ours, data = pair(case)
    held = _memory()["current"]
    first = trained(plain, data)
    rematerialize(ours, budget=case.share)
    second = trained(ours, data)
    print(json.dumps({"ready": {"plain": first, "ours": second}}), flush=True)
    sys.stdin.readline()
    both = {"plain": plain, "ours": ours}
    taken: dict[str, list[float]] = {name: [] for name in both}
    for _ in range(_EPOCHS):
        for name, model in both.items():
            taken[name] += trained(model, data, _STEPS)["seconds"][2:]
    plan = ours.train_step.plan
    return {
        "held": held,
        "plain": first,
        "ours": second,
        "milliseconds": {name: 1e3 * median(each) for name, each in taken.items()},
        "xla": [bool(plain.jit_compile), bool(ours.jit_compile)],
        **_told(plan),
    }


def within_limit(case: Case, limit: int, budget: int | None) -> dict[str, Any]:
    """What comes of training where the allocator has `limit` bytes.

    Args:
        case: what is trained.
        limit: in bytes.
        budget: for the planned step, in bytes; None for the plain step.
    """
    import tensorflow as tf

    from checkmate_tf import rematerialize

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("GPU")[0],
        [tf.config.LogicalDeviceConfiguration(memory_limit=limit // 2**20)],
    )
    plain, ours, data = pair(case)
    if budget is not None:
        rematerialize(ours, budget=budget)
    try:
        peaks = trained(plain if budget is None else ours, data)["peaks"]
    except tf.errors.ResourceExhaustedError:
        return {"limit": limit, "exhausted": True}
    return {"limit": limit, "exhausted": False, "peak": max(peaks)}


def bits(case: Case) -> dict[str, Any]:
    """How many variables differ after three steps, from those of the plain step, and by how much.

    The plain step is run twice, since some kernels don't repeat their own bits.
    """
    import numpy as np
    import tensorflow as tf

    from checkmate_tf import rematerialize

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    plain, ours, data = pair(case)
    variables = [*plain.variables, *plain.optimizer.variables]
    before = [each.numpy() for each in variables]

    def after(model: Any) -> list[Any]:
        for each, value in zip(variables, before, strict=True):
            each.assign(value)
        trained(model, data, 3)
        return [np.asarray(each, np.float64) for each in variables]

    def differ(one: list[Any], other: list[Any]) -> int:
        return sum(not np.array_equal(a, b) for a, b in zip(one, other, strict=True))

    def distance(one: list[Any], other: list[Any]) -> float:
        def norm(values: list[Any], others: list[Any]) -> float:
            return sum(float(np.sum((a - b) ** 2)) for a, b in zip(values, others, strict=True))

        return float((norm(one, other) / norm(other, before)) ** 0.5)

    first, again = after(plain), after(plain)
    rematerialize(ours, budget=case.share)
    planned = after(ours)
    return {
        "variables": len(variables),
        "differ": differ(planned, first),
        "own": differ(again, first),
        "xla": bool(ours.jit_compile),
        "distance": distance(planned, first),
        "own distance": distance(again, first),
        **_told(ours.train_step.plan),
    }


def pair(case: Case) -> tuple[Any, Any, Any]:
    """Two models of the same layers and optimizer, and a data set of two batches."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    keras.mixed_precision.set_global_policy(case.precision)
    chosen = MODELS[case.model]
    model = chosen.build(case.side)
    twin = keras.Model(model.inputs, model.outputs)
    is_text = chosen.kind == "text"
    optimizer = keras.optimizers.Adam(1e-4) if is_text else keras.optimizers.SGD(0.01, 0.9)
    options = {} if case.xla else {"jit_compile": False}
    for each in (model, twin):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=is_text)
        each.compile(optimizer, loss, **options)
    model.optimizer.build(model.trainable_variables)
    numbers = np.random.default_rng(0)
    size: tuple[int, ...] = (2, case.batch, case.side)
    if is_text:
        x, y = numbers.integers(0, WORDS, (2, *size)).astype(np.int32)
    else:
        x = numbers.random((*size, case.side, 3), np.float32)
        labelled = (*size, case.side) if chosen.kind == "pixels" else size[:2]
        y = numbers.integers(0, LABELS, labelled).astype(np.int32)
    return model, twin, tf.data.Dataset.from_tensor_slices((x, y)).repeat()


def trained(model: Any, data: Any, count: int = 4) -> dict[str, list[Any]]:
    """What each of `count` steps of `fit` held at most, and its seconds."""
    import keras
    import tensorflow as tf

    peaks: list[int] = []
    seconds: list[float] = []

    class Steps(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            tf.config.experimental.reset_memory_stats("GPU:0")
            self.begun = time.perf_counter()

        def on_train_batch_end(self, batch: int, logs: Any) -> None:
            float(logs["loss"])  # waits for the GPU
            seconds.append(time.perf_counter() - self.begun)
            peaks.append(_memory()["peak"])

    model.fit(data, steps_per_epoch=count, verbose=0, shuffle=False, callbacks=[Steps()])
    return {"peaks": peaks, "seconds": seconds}


def _memory() -> dict[str, int]:
    import tensorflow as tf

    found: dict[str, int] = tf.config.experimental.get_memory_info("GPU:0")
    return found


def _told(plan: Any) -> dict[str, Any]:
    return {
        "budget": plan.budget,
        "overhead": plan.overhead,
        "predicted": plan.predicted_peak,
        "compiled": plan.compiled_peak,
        "plans": plan.compilations,
        "phases": dict(plan.seconds),
        "text": str(plan),
    }


if __name__ == "__main__":
    main()
