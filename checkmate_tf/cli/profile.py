"""`checkmate-tf profile`: what every operation of a step costs, as a table and a plot."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from checkmate_tf.cli.arguments import SOLVED, table_console
from checkmate_tf.cli.target import STEP, add_batch_size, load_program
from checkmate_tf.graph.operation_costs import OperationCost, costs_of_nodes, costs_of_operations
from checkmate_tf.progress import measuring_progress
from solvers import ComputationGraph, format_bytes
from solvers.errors import CheckmateError

_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A target, and how its costs are found and shown."""
    parser.add_argument(
        "target", metavar="GRAPH|MODULE:FUNCTION", help=f"a saved graph, or a step: {STEP}"
    )
    parser.add_argument(
        "--device",
        metavar="CPU:0|GPU:0|TPU:0",
        help="what is measured (default: what TensorFlow computes on)",
    )
    add_batch_size(parser)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a .png, .pdf or .svg")
    parser.add_argument("--again", action="store_true", help="measure also what is known")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="use it, and measure nothing")
    parser.add_argument(
        "--other-device", action="store_true", help="use it though it is of another device"
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure MODULE:FUNCTION, or show the costs that a saved graph holds."""
    if ":" in arguments.target and not Path(arguments.target).exists():
        title, rows, unit, notes = _of_function(arguments)
    else:
        title, rows, unit, notes = _of_graph(arguments)
    console = table_console(width=80)
    console.print(costs_table(title, rows, unit))
    total = sum(row.total for row in rows)
    print(f"{_cost(total, unit)} in all, one after the other; {len(rows)} rows")
    for note in notes:
        console.print(f"note: {note}")
    if arguments.plot is not None:
        from checkmate_tf.cli.plots import plot_operations

        plot_operations(rows, arguments.plot, title, unit, _SHOWN)
        print(f"{arguments.plot}: the {min(_SHOWN, len(rows))} costliest")
    return SOLVED


_Costs = tuple[str, list[OperationCost], str, Sequence[str]]


def _of_function(arguments: argparse.Namespace) -> _Costs:
    from checkmate_tf.graph.cost_models import load_profile, notes_on
    from checkmate_tf.graph.step_operations import step_operations
    from profiles.devices import default_device
    from profiles.measure.surveys import survey
    from profiles.profiled import ProfiledCosts
    from profiles.roofline import device_ceilings

    device = arguments.device or default_device()
    program = load_program(arguments.target, arguments.batch_size)
    operations = [each.operation for each in step_operations(program)]
    if arguments.profile is not None:
        profile = load_profile(arguments.profile, arguments.other_device)
    else:
        with measuring_progress() as progress:
            profile = survey(operations, device, progress, arguments.again)
    model = ProfiledCosts(profile, device_ceilings(device.split(":")[0]))
    rows = costs_of_operations(operations, model)
    return f"{arguments.target} on {profile.device}", rows, "s", notes_on(model, operations, device)


def _of_graph(arguments: argparse.Namespace) -> _Costs:
    for option in ("device", "profile", "batch_size"):
        if getattr(arguments, option) is not None:
            raise CheckmateError(
                "option-not-for-a-saved-graph",
                f"{arguments.target}: a saved graph has no operations to run, so "
                f"--{option.replace('_', '-')} does not apply; profile a MODULE:FUNCTION, or save "
                "measured costs: checkmate-tf extract … --costs profile",
            )
    graph = ComputationGraph.load(arguments.target)
    notes = ["costs and memory are those that the graph was saved with"]
    return f"{graph.name}, {len(graph)} nodes", costs_of_nodes(graph), graph.cost_unit, notes


def costs_table(title: str, rows: Sequence[OperationCost], unit: str) -> Table:
    """The costliest operations as a table of 80 columns."""
    total = sum(row.total for row in rows) or 1.0
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("operation", overflow="fold")
    for heading in ("output", "runs", "in all", "share", "outputs", "workspace"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows[:_SHOWN]:
        table.add_row(
            row.name,
            row.output,
            str(row.runs),
            _cost(row.total, unit),
            f"{100 * row.total / total:.1f} %",
            format_bytes(row.memory),
            "unknown" if row.workspace is None else format_bytes(row.workspace),
        )
    return table


def _cost(cost: float, unit: str) -> str:
    return f"{1000 * cost:.2f} ms" if unit == "s" else f"{cost:g} {unit}".rstrip()
