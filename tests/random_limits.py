"""Random networks at random limits of a CPU's memory, trained with one line and no number.

    python -m tests.random_limits --count 100

Each has its size of images and batch, a limit of the allocator, and bytes that are held beside.
`rematerialize(model)` trains it to the bits of a run without a limit, or raises an error that says
that its batch is too large; where the error names a batch, that one has to train. A refusal is
proved where one operation needs more than there is, with what must be in memory beside it. Each
training is a process of its own, without oneDNN and graph rewrites, so that bits repeat themselves.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass

from profiles.exhausted import bytes_asked_for
from tests.random_steps import CLASSES, ONE_INPUT, OPTIMIZERS, TWO_INPUTS, Part, build

STEPS = 4
MIB = 1 << 20


@dataclass(frozen=True)
class Shape:
    """A network, and its memory: shares of what is live in the plain step beside variables."""

    parts: tuple[Part, ...]
    number: int
    side: int
    channels: int
    batch: int
    optimizer: str
    limit: float
    beside: float


def shape_of(number):
    """The shape of this number, the same every time."""
    chance = random.Random(number)
    parts = []
    for position in range(chance.randint(4, 10)):
        kind = chance.choice([*ONE_INPUT, *TWO_INPUTS])
        # Mostly what has just been made, so that networks are deep.
        reads = [position - chance.choice([0, 0, 1]) for _ in range(1 + (kind in TWO_INPUTS))]
        parts.append(Part(kind, tuple(max(0, each) for each in reads)))
    return Shape(
        parts=tuple(parts),
        number=number,
        side=chance.choice([16, 24, 32, 48]),
        channels=chance.choice([8, 16, 32, 48]),
        batch=chance.randint(16, 96),
        optimizer=chance.choice(list(OPTIMIZERS)),
        limit=chance.uniform(0.3, 1.2),
        beside=chance.choice([0.0, chance.uniform(0.0, 0.48)]),
    )


def train(number, batch, beside, planned):
    """What comes of `fit` with batches of this size, while `beside` bytes are held."""
    import keras
    import numpy as np
    import tensorflow as tf

    import checkmate_tf

    shape = shape_of(number)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    warnings.simplefilter("ignore")
    model = build(shape.parts, number, shape.side, shape.channels)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(OPTIMIZERS[shape.optimizer](), loss, jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    generator = np.random.default_rng(number)
    size = (STEPS * batch, shape.side, shape.side, 3)
    images = generator.normal(size=size).astype("float32")
    labels = generator.integers(0, CLASSES, len(images))
    kept = tf.zeros(beside // 4) if beside else None
    needs = None if planned else _bytes(model, images[:batch], labels[:batch])
    if planned:
        checkmate_tf.rematerialize(model, verbose=0)
    try:
        model.fit(images, labels, batch_size=batch, shuffle=False, verbose=0)
    except checkmate_tf.CheckmateError as error:
        return {"came": error.code, "said": str(error)}
    except tf.errors.ResourceExhaustedError as error:
        wanted = bytes_asked_for(error.message) // MIB
        return {"came": type(error).__name__, "said": f"{wanted} MiB in one piece"}
    values = [*model.variables, *model.optimizer.variables]
    bits = b"".join(tf.convert_to_tensor(each).numpy().tobytes() for each in values)
    plan = model.train_step.plan if planned else None
    del kept
    return {
        "came": "trained",
        "bits": hashlib.sha256(bits).hexdigest(),
        "needs": needs,
        "overhead": plan and plan.planned_overhead,
    }


def _bytes(model, images, labels):
    """What is live at most in the plain step, and what no schedule can do without.

    Variables and the batch are included.
    """
    import tensorflow as tf

    import checkmate_tf
    from checkmate_tf.planning.preparation import device_workspaces
    from solvers import Schedule, simulate
    from solvers.graph.bounds import memory_bound

    step = tf.function(model.train_step).get_concrete_function((images, labels))
    graph = checkmate_tf.extract(step, workspace=device_workspaces("CPU:0"))
    plain = simulate(graph, Schedule(range(len(graph)))).peak
    return plain, plain - graph.fixed_bytes, memory_bound(graph, "free")


def in_process(number, batch, beside=0, limit=None, plans="off"):
    """As `train`, in a process whose allocator has `limit` MiB; with a plan where it has one."""
    environment = {
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "TF_CPU_ALLOCATOR_USE_BFC": "true",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CHECKMATE_TF_PLANS": plans,
    }
    if limit is not None:
        environment["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(limit)
    asked = {"number": number, "batch": batch, "beside": beside, "planned": limit is not None}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.random_limits", "--of", json.dumps(asked)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    if ended.returncode:
        return {"came": f"exit status {ended.returncode}", "said": ended.stderr[-2000:]}
    return json.loads(ended.stdout.splitlines()[-1])


def look_at(shape):
    """What came of a network, in words, and whether it is as promised."""
    plain = in_process(shape.number, shape.batch)
    assert plain["came"] == "trained", plain
    needs, adds, bound = plain["needs"]
    beside = int(shape.beside * adds)
    limit = -(-(needs - adds + beside + int(shape.limit * adds)) // MIB)
    about = f"{limit} MiB, {needs // MIB} live, {beside // MIB} held beside"
    with tempfile.TemporaryDirectory() as plans:
        found = in_process(shape.number, shape.batch, beside, limit, plans)
        if found["came"] == "trained":
            same = found["bits"] == plain["bits"]
            what = "trained" if same else "other bits"
            return what, f"{about}: {found['overhead'] or 0:.1%} more time", same
        if found["came"] != "batch-too-large":
            return found["came"], f"{about}: {found['said']}", False
        proved = bound + beside > limit * MIB
        what = "refused, proved" if proved else "refused"
        named = re.search(r"batch_size=(\d+)", found["said"])
        if named is None:
            return f"{what}, no batch named", about, True
        smaller = int(named[1])
        again = in_process(shape.number, smaller, beside, limit, plans)
        about = f"{about}: {smaller} named for {shape.batch}, {again['came']}"
        return what, about, again["came"] == "trained"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=25, help="networks (25)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (0)")
    parser.add_argument("--of", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.of:
        print(json.dumps(train(**json.loads(arguments.of))))
        return
    came, wrong = Counter(), []
    for number in range(arguments.first, arguments.first + arguments.count):
        begun = time.monotonic()
        what, about, as_promised = look_at(shape_of(number))
        came[what] += 1
        wrong += [] if as_promised else [str(number)]
        took = time.monotonic() - begun
        print(f"{number}. {what}: {about}, {took:.0f} s", flush=True)
    print(", ".join(f"{times} {what}" for what, times in came.most_common()))
    sys.exit(f"not as promised: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
