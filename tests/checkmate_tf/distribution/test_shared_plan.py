"""Two workers on this machine agree on a plan, or both learn why there is none."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap

import pytest

WORKER = """
    import json
    import os
    import sys
    import tensorflow as tf
    from checkmate_tf.distribution.shared_plan import agree, this_worker
    from profiles.tensorflow_internals import share_between_workers, shared_between_workers
    from solvers import BudgetError, CheckmateError
    from solvers.graph.layer_graphs import unit_chain

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    worker = this_worker(strategy.extended.worker_devices[0])
    seen = [worker.is_first]

    def too_small():
        raise BudgetError("budget-too-small", "too small", least=7)

    def failing():
        raise ValueError("no good")

    def dying():
        assert shared_between_workers("the other one is there", 100.0)
        print(json.dumps(seen), flush=True)
        os._exit(0)

    def ask(make, layers=3):
        try:
            seen.append(agree(worker, unit_chain(layers), make, 100.0))
        except (CheckmateError, ValueError) as error:
            code, least = getattr(error, "code", None), getattr(error, "least", None)
            seen.append([type(error).__name__, code, str(error), least])

    ask(lambda: {"number": os.getpid()})
    ask(too_small)
    ask(failing)
    ask(lambda: 1, layers=3 if worker.is_first else 4)
    if not worker.is_first:
        print(json.dumps(seen), flush=True)
        share_between_workers("the other one is there", "yes")
    ask(dying)
    print(json.dumps(seen), flush=True)
    os._exit(0)
"""


@pytest.mark.slow
def test_the_first_worker_decides_for_all_and_none_waits_for_ever():
    sockets = [socket.socket() for _ in range(2)]
    for each in sockets:
        each.bind(("localhost", 0))
    addresses = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    started = []
    for index in range(2):
        cluster = {"worker": addresses}
        config = {"cluster": cluster, "task": {"type": "worker", "index": index}}
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WORKER)],
            env={**os.environ, "TF_CONFIG": json.dumps(config)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
    try:
        outputs, errors = zip(*(each.communicate(timeout=200) for each in started), strict=True)
    finally:
        for each in started:
            each.kill()
    assert all(outputs), errors
    first, second = (json.loads(each.splitlines()[-1]) for each in outputs)
    assert first == [
        True,
        {"number": started[0].pid},
        ["BudgetError", "budget-too-small", "too small", 7],
        ["ValueError", None, "no good", None],
        1,
    ]
    is_first, agreed, too_small, failed, another, *gone = second
    assert not is_first
    assert agreed == {"number": started[0].pid}
    said = "on the first worker: too small"
    assert too_small == ["BudgetError", "budget-too-small", said, 7]
    assert failed[:2] == ["CheckmateError", "first-worker-failed"]
    assert "no good" in failed[2]
    assert another[1] == "workers-differ"
    # TensorFlow may end the process of a worker whose first worker is gone, before it says so.
    assert all(each[1] == "first-worker-gone" for each in gone)
