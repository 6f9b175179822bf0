"""What each part of the search is worth: the search without it, beside the search as it is.

    python -m experiments.ablation           # half an hour on one core
    python -m experiments.ablation --quick

Each variation changes constants of `solvers.local_search.settings`. Kernels are compiled with them,
so it runs in a process of its own, with kernels of its own. No graph and no seed here is one that
the constants were chosen by. One chain makes a fixed number of moves: the answers do not depend on
how busy the machine is, the time for a move does.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import track
from rich.table import Table

from experiments.layered_graphs import layered_graph
from solvers import ComputationGraph
from solvers.graph import input_order_peak
from solvers.graph.layer_graphs import unit_chain

NEVER = 1 << 30
"""One in so many."""

VARIATIONS: dict[str, dict[str, float]] = {
    "as it is": {},
    "nothing aims at positions over budget": {"FOCUSED_ONE_IN": NEVER},
    "recomputations that free nothing are tried": {"FREES_NOTHING_ONE_IN": 1},
    "inputs are recomputed at every second chance": {"INPUT_ONE_IN": 2},
    "inputs are recomputed at every eighth chance": {"INPUT_ONE_IN": 8},
    "dear inputs are like others": {"DEAR_INPUT_ONE_IN": NEVER},
    "never early": {"EARLY_ONE_IN": NEVER, "EARLY_OVER_BUDGET_ONE_IN": NEVER},
    "early only over budget": {"EARLY_ONE_IN": NEVER},
    "no merging": {"MERGE_PERCENT": 0},
    "no dragging": {"DRAG_PERCENT": 0},
    "the penalty never starts again": {"PENALTY_RANGE": 1.0},
    "the penalty changes four times less often": {"PENALTY_MOVES": 256},
    "a third of the empty positions are seen": {"SEARCHED_POSITIONS": 32},
    "a third of the retained nodes are seen": {"RETAINED_TRIES": 8},
    "moves take half as much along": {"MOST_DRAGGED": 12},
    "four positions a node on small graphs": {"SMALL_GRAPH_POSITIONS": 4},
}

SEEDS = (1001, 1002, 1003, 1004)
OTHER_SEEDS = (2001, 2002, 2003, 2004)
CHUNKS = 20
"""After each the schedule is spread evenly again, as in a search."""


@dataclass(frozen=True)
class Task:
    """A graph, a budget in % of its input-order peak, and how many moves there are."""

    name: str
    graph: ComputationGraph
    budget: int
    moves: int


@dataclass(frozen=True)
class Result:
    """What one chain found.

    Attributes:
        overhead: in % of one pass; None if nothing was within the budget.
        microseconds: for a move.
    """

    task: str
    seed: int
    overhead: float | None
    microseconds: float


def tasks(quick: bool) -> Iterator[Task]:
    """The graphs that the search was not tuned with."""
    if quick:
        yield Task("layered n=100", layered_graph(100, 236, seed=101), 60, 50_000)
        return
    yield Task("layered n=250", layered_graph(250, 944, seed=101), 70, 1_000_000)
    yield Task("layered n=500", layered_graph(500, 2461, seed=102), 80, 1_000_000)
    yield Task("layered n=1000", layered_graph(1000, 5875, seed=103), 90, 1_000_000)
    yield Task("chain n=201", unit_chain(100), 30, 500_000)


def search(task: Task, seed: int) -> Result:
    """One chain from hot to cold, in free order."""
    from solvers.local_search.chain import Chain
    from solvers.local_search.search import starts_of
    from solvers.local_search.settings import COLD, HOT

    graph = task.graph
    budget = int(task.budget / 100 * (input_order_peak(graph) - graph.fixed_bytes))
    chain = Chain(graph, "free", seed)
    chain.start(starts_of(graph, "free")[-1], budget)
    best = math.inf
    before = time.perf_counter()
    for chunk in range(CHUNKS):
        hot, cold = (HOT * (COLD / HOT) ** (each / CHUNKS) for each in (chunk, chunk + 1))
        found = chain.run(task.moves // CHUNKS, hot, cold, best)
        if found is not None:
            best = math.fsum(graph.costs[list(found.steps)])
    seconds = time.perf_counter() - before
    overhead = None if best == math.inf else 100 * (best / graph.one_pass_cost - 1)
    return Result(task.name, seed, overhead, 1e6 * seconds / task.moves)


def run_variation(settings: Mapping[str, float], seeds: Sequence[int], quick: bool) -> list[Result]:
    """The results of all tasks, in a process that is compiled with `settings`."""
    command = [sys.executable, "-m", "experiments.ablation", "--settings", json.dumps(settings)]
    command += ["--seeds", *map(str, seeds), *(["--quick"] if quick else [])]
    with tempfile.TemporaryDirectory() as folder:
        # Kernels that are cached elsewhere were compiled with the usual constants.
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    return [Result(**each) for each in json.loads(done.stdout)]


def search_with(settings: Mapping[str, float], seeds: Sequence[int], quick: bool) -> None:
    """Search with other constants, and print the results as JSON."""
    import solvers.local_search.settings as constants

    for name, value in settings.items():
        if not hasattr(constants, name):
            raise SystemExit(f"there is no constant {name}")
        setattr(constants, name, value)
    from solvers.local_search.chain import compile_kernels

    compile_kernels()
    results = [search(task, seed) for task in tasks(quick) for seed in seeds]
    print(json.dumps([vars(each) for each in results]))


def as_table(results: Mapping[str, Sequence[Result]]) -> Table:
    """For every variation the medians over the seeds, of all runs that ended within the budget."""
    table = Table(title="Overhead in % of one pass, median of the seeds (runs within the budget)")
    table.add_column("variation")
    names = list(dict.fromkeys(each.task for each in results["as it is"]))
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("µs a move", justify="right")
    for variation, rows in results.items():
        cells = []
        for name in names:
            of_task = [each.overhead for each in rows if each.task == name]
            found = [each for each in of_task if each is not None]
            median = f"{statistics.median(found):.2f}" if found else "–"
            cells.append(f"{median} ({len(found)}/{len(of_task)})")
        speed = statistics.median(each.microseconds for each in rows)
        table.add_row(variation, *cells, f"{speed:.2f}")
    return table


def main(argv: Sequence[str] | None = None) -> None:
    """Command line; see the module."""
    parser = argparse.ArgumentParser(description="the search without some of its parts")
    parser.add_argument("--quick", action="store_true", help="a small graph, two variations")
    parser.add_argument("--settings", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.settings is not None:
        search_with(arguments.settings, arguments.seeds, arguments.quick)
        return
    chosen = dict(list(VARIATIONS.items())[: 2 if arguments.quick else None])
    results: dict[str, list[Result]] = {}
    for name in track(chosen, "variations", console=Console(stderr=True), transient=True):
        results[name] = run_variation(chosen[name], arguments.seeds, arguments.quick)
    if not arguments.quick:
        results["as it is, other seeds"] = run_variation({}, OTHER_SEEDS, arguments.quick)
    Console(width=120).print(as_table(results))


if __name__ == "__main__":
    main()
