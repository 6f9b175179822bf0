"""What a cost model does to plans: extra time of each one's schedule by costs that were measured.

    python -m experiments.plans_by_costs           # seven models
    python -m experiments.plans_by_costs --quick   # U-Net at a quarter of its size

Every model has a process of its own. All of its operations are measured there; their profile is
the truth. For each cost model a schedule is sought by its costs, and then costs what the profile
says. "device" knows the probes alone that tell a device's ceilings, as at its first use.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from checkmate_tf.workloads.models import ALL_WORKLOADS
from experiments.cost_models import step_of_model
from solvers.graph.files import read_json, write_whole

MODELS = ("MobileNetV2", "ResNet50", "U-Net", "VGG16", "DenseNet121", "EfficientNetB0", "GPT")
SHARES = (0.7, 0.5)
"""Budgets, as shares of what the input order holds beyond variables and inputs."""

COSTS = ("flops", "roofline", "device", "profile")


def main() -> None:
    """Measure, plan and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(ALL_WORKLOADS))
    parser.add_argument("--quick", action="store_true", help="a small U-Net, one second a plan")
    parser.add_argument("--side", type=int, help="of the images, in place of the model's own")
    parser.add_argument("--seconds", type=float, default=15, help="for each schedule")
    parser.add_argument("--output", default="results/plans_by_costs.json")
    parser.add_argument("--row", metavar="FILE", help="one model, in this process, as JSON")
    arguments = parser.parse_args()
    if arguments.row:
        found = rows_of(arguments.models[0], arguments.side, arguments.seconds)
        write_whole(arguments.row, json.dumps(found))
        return
    if arguments.quick:
        arguments.models, arguments.side, arguments.seconds = ["U-Net"], 48, 1
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    console = Console(stderr=True)
    for name in track(arguments.models, "measuring", console=console, transient=True):
        rows += _rows_of_fresh_process(name, arguments.side, arguments.seconds)
        write_whole(arguments.output, json.dumps(rows, indent=1))
    Console(width=80).print(as_table(rows))


def _rows_of_fresh_process(name: str, side: int | None, seconds: float) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        environment = {
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_CPU_ALLOCATOR_USE_BFC": "true",  # which counts bytes, for the workspaces
            "CHECKMATE_TF_CACHE": folder,  # nothing is known of the device
        }
        command = [sys.executable, "-m", "experiments.plans_by_costs", "--models", name]
        command += ["--row", str(path), "--seconds", str(seconds)]
        command += ["--side", str(side)] if side else []
        subprocess.run(command, env=environment, check=True)
        rows: list[dict[str, Any]] = read_json(path)
        return rows


def rows_of(name: str, side: int | None = None, seconds: float = 15) -> list[dict[str, Any]]:
    """For each budget, the extra time of a schedule by each cost model, by measured costs.

    Args:
        name: of the model.
        side: of its images, where they are not its own size.
        seconds: for each schedule.
    """
    from checkmate_tf.graph.extraction import extract_like, extract_program
    from checkmate_tf.graph.step_operations import CostModel, step_operations
    from checkmate_tf.trace.program import resolve
    from profiles.measure.ceilings import costs_of_device, probes
    from profiles.measure.surveys import survey
    from profiles.profiled import ProfiledCosts
    from profiles.roofline import FloatingPointOperations, Roofline, device_ceilings
    from solvers import simulate, solve
    from solvers.graph import input_order_peak

    step, batch = step_of_model(name, side)
    program = resolve(step.get_concrete_function(batch))
    operations = [each.operation for each in step_operations(program)]
    of_device = costs_of_device()
    probed = {each: of_device.profile.entries[each] for each in probes("CPU:0")}
    measured = survey(operations, again=True)
    ceilings = device_ceilings("CPU")
    costs: dict[str, CostModel] = {
        "flops": FloatingPointOperations(),
        "roofline": Roofline(ceilings),
        "device": ProfiledCosts(replace(of_device.profile, entries=probed), ceilings),
        "profile": ProfiledCosts(measured, ceilings),
    }
    truth = extract_program(program, costs["profile"])
    graphs = {each: extract_like(truth, program, costs[each]).graph for each in COSTS}
    fixed = truth.graph.fixed_bytes
    held = input_order_peak(truth.graph) - fixed
    rows = []
    for share in SHARES:
        row: dict[str, Any] = {"model": name, "share": share}
        for each, graph in graphs.items():
            solution = solve(graph, int(fixed + share * held), "auto", seconds)
            cost = solution.schedule and simulate(truth.graph, solution.schedule).cost
            row[each] = cost and cost / truth.graph.one_pass_cost - 1
        rows.append(row)
    return rows


def as_table(rows: list[dict[str, Any]]) -> Table:
    """Extra time in % of a pass, and the medians of those budgets that all plans keep."""
    title = "Extra time in %, measured costs"
    table = Table(title=title, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model", no_wrap=True)
    for heading in ("budget", *COSTS):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row["model"], f"{row['share']:.0%}", *(_percent(row[each]) for each in COSTS))
    complete = [row for row in rows if all(row[each] is not None for each in COSTS)]
    if complete:
        medians = [median(row[each] for row in complete) for each in COSTS]
        table.add_row("median", "", *map(_percent, medians))
    return table


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.2f}"


if __name__ == "__main__":
    main()
