"""Which batches train on a GPU without a number, and what `memory` says of them before.

    python -m experiments.gpu.batches --gib 80 --models ResNet50 GPT --xla off

`memory` says which batch of each model is the largest that fits unchanged, and which one fits by
plan. `rematerialize(model)` then trains with both, with a smaller one, with one between them, and
with twice the larger, which no plan should fit. Each runs in a process of its own, which takes all
of the GPU's memory, as TensorFlow usually does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.gpu.cases import Case
from experiments.gpu.side_by_side import name_of_gpu

GIB = 1 << 30

CASES = [
    Case("U-Net", 32, 256),
    Case("GPT", 8, 512),
    Case("EfficientNetB2", 32, 260),
    Case("ResNet50", 64, 224),
]
"""The batches are those of which `memory` is asked first."""

COLUMNS = ("", "batch", "told", "came of it", "GiB", "extra time", "ready, s")


def main(command_line: Sequence[str] | None = None) -> int:
    """Train with all of them; print each row when it is there, and a table in the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    names = [case.model for case in CASES]
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    parser.add_argument("--gib", type=float, required=True, help="of the GPU's memory in all")
    parser.add_argument("--xla", choices=["on", "off"], default="off")
    parser.add_argument("--patience", type=float, default=1800.0, help="seconds for a batch")
    parser.add_argument("--of", nargs=2, metavar=("LOOK", "CASE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args(command_line)
    if arguments.of:
        look, asked = arguments.of
        case = Case(**json.loads(asked))
        found = told(case, int(arguments.gib * GIB)) if look == "told" else trained(case)
        print(json.dumps(found))
        return 0
    if not name_of_gpu():
        print("TensorFlow sees no GPU here; nothing was run.")
        return 1
    table = Table(title=f"rematerialize(model), XLA {arguments.xla}")
    for column in COLUMNS:
        table.add_column(column, overflow="fold")
    for case in CASES:
        if case.model in arguments.models:
            case = replace(case, xla=arguments.xla == "on")
            for row in rows(case, arguments.gib, arguments.patience):
                table.add_row(*row)
                print(" | ".join(row), flush=True)
    Console().print(table)
    return 0


def rows(case: Case, gib: float, patience: float) -> Iterator[tuple[str, ...]]:
    """What comes of each batch of a model."""
    before = _in_process("told", case, gib, patience)
    if "error" in before:
        yield (case.model, str(case.batch), "", before["error"], "", "", "")
        return
    unchanged, planned = before["unchanged"], before["planned"]
    sizes = {7 * unchanged // 10, unchanged, (unchanged + planned) // 2, planned, 2 * planned}
    for size in sorted(sizes - {0}):
        says = "fits" if size <= unchanged else "by plan" if size <= planned else "too large"
        found = _in_process("trained", replace(case, batch=size), gib, patience)
        yield (
            case.model,
            str(size),
            says,
            found.get("error") or "; ".join(["trained", *found["said"]]),
            f"{found['peak'] / GIB:.2f}" if "peak" in found else "",
            f"{found['overhead']:.1%}" if found.get("overhead") is not None else "",
            f"{found['ready']:.0f}" if "ready" in found else "",
        )


def told(case: Case, size: int) -> dict[str, Any]:
    """The largest batch that fits a GPU of so many bytes unchanged, and by plan."""
    from checkmate_tf import memory
    from experiments.gpu.trial import pair

    model, _, _ = pair(case)
    fit = memory(model, case.batch, device="GPU", device_memory=[size]).fits[0]
    return {"unchanged": fit.unchanged, "planned": fit.planned}


def trained(case: Case) -> dict[str, Any]:
    """What comes of training with one line, and no number."""
    import warnings

    import tensorflow as tf

    from checkmate_tf import rematerialize
    from experiments.gpu.trial import pair
    from experiments.gpu.trial import trained as in_fit
    from solvers import CheckmateError
    from solvers.errors import CheckmateWarning

    model, _, data = pair(case)
    rematerialize(model, verbose=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            steps = in_fit(model, data, 12)
        except CheckmateError as error:
            return {"error": error.code}
        except tf.errors.ResourceExhaustedError as error:
            return {"error": type(error).__name__}
    plan = model.train_step.plan
    warned = [each.message for each in caught if isinstance(each.message, CheckmateWarning)]
    return {
        "peak": max(steps["peaks"]),
        "overhead": plan and plan.planned_overhead,
        "ready": steps["seconds"][0],
        "said": [each.code for each in warned],
    }


def _in_process(look: str, case: Case, gib: float, patience: float) -> dict[str, Any]:
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_FORCE_GPU_ALLOW_GROWTH": "false"}
    asked = [sys.executable, "-m", "experiments.gpu.batches", "--gib", str(gib), "--of", look]
    try:
        ended = subprocess.run(
            [*asked, json.dumps(asdict(case))],
            env={**os.environ, **environment, "CHECKMATE_TF_PLANS": "off"},
            capture_output=True,
            text=True,
            timeout=patience,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not ready in {patience:.0f} s"}
    except subprocess.CalledProcessError as error:
        return {"error": f"exit status {error.returncode}: {error.stderr[-300:]}"}
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.exit(main())
