"""Steps that XLA compiles: memory, bits and time of plans, beside the plain compiled step.

    python -m experiments.xla            # every row that the file does not have yet
    python -m experiments.xla --quick    # a small residual net

Every row has a fresh process and is written as soon as it is there. Temporary bytes are the
compiler's own, of the function that trains, around the step: they are exact, and the same on a
busy machine. Times are medians of plain and planned steps in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.xla import measure
from experiments.xla.steps import QUICK, ROWS, Row
from experiments.xla.tables import print_float64, print_readiness, print_table
from solvers.graph.files import read_json, write_whole

_DEPTH_FIRST = "--xla_cpu_enable_concurrency_optimized_scheduler=false"
"""A scheduler that is closer to what a GPU does."""


def main() -> None:
    """Run the rows that are missing, and print the table."""
    description = __doc__.splitlines()[0] if __doc__ else ""
    parser = argparse.ArgumentParser(prog="python -m experiments.xla", description=description)
    parser.add_argument("--models", nargs="+", help="only rows of these")
    parser.add_argument("--quick", action="store_true", help="a small residual net")
    parser.add_argument("--no-times", action="store_true", help="bytes and bits only")
    parser.add_argument(
        "--float64", action="store_true", help="distances from the same steps in float64, too"
    )
    parser.add_argument("--time-limit", type=float, default=60.0, help="of the solver, seconds")
    parser.add_argument("--output", default="results/xla.json")
    parser.add_argument("--row", nargs=2, metavar=("ROW", "FILE"), help="one row, in this process")
    arguments = parser.parse_args()
    if arguments.row:
        row = Row(**json.loads(arguments.row[0]))
        figures = measure.figures(
            row,
            arguments.time_limit,
            times=not arguments.no_times,
            float64=arguments.float64 and row.model != "GPT",  # which has dropout
        )
        write_whole(arguments.row[1], json.dumps(figures))
        return
    output = Path(arguments.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    done: list[dict[str, Any]] = read_json(output) if output.exists() else []
    done = [{"precision": "float32", **each} for each in done]  # some files don't say it
    options = ["--time-limit", str(arguments.time_limit)]
    options += ["--no-times"] * arguments.no_times + ["--float64"] * arguments.float64
    for row in QUICK if arguments.quick else ROWS:
        known = any(asdict(row).items() <= each.items() for each in done)
        if not known and (not arguments.models or row.model in arguments.models):
            done.append(_in_fresh_process(row, options))
            write_whole(output, json.dumps(done, indent=1))
    print_table(done)
    print_readiness(done)
    print_float64(done)


def _in_fresh_process(row: Row, options: list[str]) -> dict[str, Any]:
    environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}
    if row.depth_first:
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {_DEPTH_FIRST}".strip()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "row.json"
        command = [sys.executable, "-m", "experiments.xla", *options]
        command += ["--row", json.dumps(asdict(row)), str(file)]
        subprocess.run(command, env=environment, check=True)
        figures: dict[str, Any] = read_json(file)
    return {**asdict(row), **figures}


if __name__ == "__main__":
    main()
