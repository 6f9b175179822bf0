"""Keras models on a GPU, as they are and within a budget; with XLA, and without.

    python -m experiments.gpu                        # all rows: hours, most of them compilation
    python -m experiments.gpu --models ResNet50 GPT --jobs 4
    python -m experiments.gpu --scale 0.25           # a quarter of each batch, for small GPUs

Each row has a process of its own, and is written to a file as soon as it is there; rows that the
file has are not run again. With `--jobs` several plan side by side; all of them hold their
plain step's peak then. Times are taken one after the other, of plain and planned steps in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.gpu.cases import CASES, MODELS, Case
from experiments.gpu.side_by_side import name_of_gpu, run, run_within
from experiments.gpu.tables import errors, tables
from solvers.graph.files import read_json, write_whole


def main(command_line: Sequence[str] | None = None) -> int:
    """Run what the file does not have, and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--look", nargs="+", choices=["steps", "bits", "limit"])
    parser.add_argument("--xla", choices=["on", "off"], help="only rows with it, or without")
    parser.add_argument("--scale", type=float, default=1.0, help="of all batches")
    parser.add_argument("--jobs", type=int, default=1, help="cases that plan side by side")
    parser.add_argument("--patience", type=float, default=3600.0, help="seconds for a case")
    parser.add_argument("--output", type=Path, default=Path("results/gpu.json"))
    parser.add_argument("--show", action="store_true", help="what is there, nothing is run")
    arguments = parser.parse_args(command_line)
    gpu, done = _read(arguments.output)
    if not arguments.show:
        gpu = name_of_gpu()
        if not gpu:
            print("TensorFlow sees no GPU here; nothing was run. --show prints what a file has.")
            return 1
        chosen = [
            case.scaled(arguments.scale)
            for case in CASES
            if case.model in arguments.models
            and (not arguments.look or case.look in arguments.look)
            and arguments.xla in (None, "on" if case.xla else "off")
        ]
        missing = [case for case in chosen if case not in done and case.look != "limit"]
        for case, found in run(missing, arguments.jobs, arguments.patience):
            done[case] = found
            _write(arguments.output, gpu, done)
            print(f"{case}{', XLA' * case.xla}, {case.look}: {found.get('error', 'done')}")
        for case in chosen:
            steps = done.get(_steps_of(case), {"error": ""})
            if case.look == "limit" and case not in done and "error" not in steps:
                done[case] = run_within(case, arguments.patience, steps)
                _write(arguments.output, gpu, done)
    console = Console()
    console.print(gpu)
    for table in tables(done):
        console.print()
        console.print(table)
    print("\n".join(errors(done)))
    return 0


def _steps_of(case: Case) -> Case:
    return Case(**{**asdict(case), "look": "steps"})


def _read(path: Path) -> tuple[str, dict[Case, Any]]:
    if not path.exists():
        return "", {}
    kept = read_json(path)
    return kept["gpu"], {Case(**each["case"]): each["found"] for each in kept["rows"]}


def _write(path: Path, gpu: str, done: dict[Case, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"case": asdict(case), "found": found} for case, found in done.items()]
    write_whole(path, json.dumps({"gpu": gpu, "rows": rows}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
