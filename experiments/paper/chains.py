"""Least peaks of chains (Hong et al., 2025): three objectives, each form against truth, and time.

Sum is Chen's objective, in O(n³) as published; traced and revised count the gradient as well,
revised in O(n²), and in O(n). See `solvers.checkpointing.segmentation`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np

from experiments.paper.cells import Cell
from experiments.paper.chain_networks import chain_networks
from experiments.paper.chains_direct import (
    objective_revised,
    segment_revised_directly,
    segment_sum_directly,
)
from experiments.paper.pictures import times
from experiments.paper.settings import Settings
from solvers import ComputationGraph, simulate
from solvers.checkpointing.checkpoints import forward_nodes
from solvers.checkpointing.heuristics import every_sqrt
from solvers.checkpointing.segmentation import (
    Segmentation,
    objective_sum,
    objective_traced,
    segment_revised,
    segment_sum,
    segment_traced,
)
from solvers.checkpointing.segments import segment_schedule

_Form = Callable[[Sequence[int]], Segmentation]
_Objective = Callable[[Sequence[int], Sequence[int]], int]

FORMS: dict[str, tuple[_Form, _Objective]] = {
    "sum, O(n³)": (segment_sum_directly, objective_sum),
    "sum, fewer caps": (segment_sum, objective_sum),
    "traced, fewer caps": (segment_traced, objective_traced),
    "revised, O(n²)": (segment_revised_directly, objective_revised),
    "revised, O(n)": (segment_revised, objective_revised),
}
"""Every form, and the objective that it makes least."""

_MEGABYTE = 1e6
_LARGEST_SIZE = 1_000_000


def run(settings: Settings) -> None:
    """Least peaks of networks, equal results, and seconds."""
    networks = chain_networks()
    graphs = [(*key, networks[key]) for key in networks]
    cells = [
        Cell(f"{name} {images} least peaks", least_peaks, {"graph": graph})
        for name, images, graph in graphs
    ]
    rows = [
        {"network": name, "images": images, **row}
        for (name, images, _), answer in zip(graphs, settings.answers("chains", cells), strict=True)
        for row in answer
    ]
    settings.write_table("chains", "chains: MB an image, by every objective and executed", rows)
    short, long = (100, 10) if settings.quick else (1000, 300)
    cells = [
        Cell(f"equal {name}", equal_results, {"form": name, "short": short, "long": long})
        for name in FORMS
    ]
    settings.write_table("chains_equal", "equal", settings.answers("chains", cells))
    most_seconds = 0.2 if settings.quick else settings.time_limit
    most_layers = 10_000 if settings.quick else 1_000_000
    cells = [
        Cell(
            f"seconds {name}",
            seconds,
            {"form": name, "most_seconds": most_seconds, "most_layers": most_layers},
        )
        for name in FORMS
    ]
    answers = settings.answers("chains", cells)
    timed = [
        {"form": name, **row} for name, each in zip(FORMS, answers, strict=True) for row in each
    ]
    settings.write_table("chains_times", "seconds by layers", timed)
    times(settings.output / "chains_times.png", timed)


def least_peaks(graph: ComputationGraph) -> list[dict[str, Any]]:
    """What each choice of checkpoints holds by every objective, and executed, per image.

    Executed is the simulator's peak of the layer graph, all gradients included.
    """
    layers = forward_nodes(graph)
    sizes = [graph.nodes[layer].memory for layer in layers]
    everything = list(range(len(sizes)))
    chosen: dict[str, Sequence[int]] = {
        "keep all": everything,
        "√n": every_sqrt(everything),
        "sum": segment_sum(sizes).checkpoints,
        "traced": segment_traced(sizes).checkpoints,
        "revised": segment_revised(sizes).checkpoints,
    }
    rows = []
    for name, checkpoints in chosen.items():
        ends = sorted({0, len(sizes) - 1, *checkpoints})  # where the last two objectives begin
        simulation = simulate(graph, segment_schedule(graph, [layers[i] for i in checkpoints]))
        rows.append(
            {
                "checkpoints": name,
                "of layers": f"{len(checkpoints)} of {len(sizes)}",
                "sum": objective_sum(sizes, sorted({*checkpoints, len(sizes) - 1})) / _MEGABYTE,
                "traced": objective_traced(sizes, ends) / _MEGABYTE,
                "revised": objective_revised(sizes, ends) / _MEGABYTE,
                "executed": (simulation.peak - graph.fixed_bytes) / _MEGABYTE,
                "extra cost, %": 100 * (simulation.cost / graph.one_pass_cost - 1),
            }
        )
    return rows


def equal_results(form: str, short: int, long: int, seed: int = 0) -> dict[str, Any]:
    """How often a form equals brute force on `short` chains, and the direct form on `long` ones.

    Short chains have up to 12 layers, long ones up to 120. What the checkpoints of an answer come
    to by its objective must be what the answer says, too.
    """
    segment, objective = FORMS[form]
    direct, _ = FORMS[_DIRECT[form]]
    random = np.random.default_rng(seed)
    by_brute_force = by_direct = 0
    for _ in range(short):
        sizes = _random_sizes(random, int(random.integers(1, 13)))
        found = segment(sizes)
        told = objective(sizes, found.checkpoints)
        by_brute_force += found.objective == told == _brute_force(sizes, objective)
    for _ in range(long):
        sizes = _random_sizes(random, int(random.integers(13, 121)))
        by_direct += segment(sizes).objective == direct(sizes).objective
    is_direct = form == _DIRECT[form]
    return {
        "form": form,
        "short chains": short,
        "equal to brute force": by_brute_force,
        "compared with": None if is_direct else _DIRECT[form],
        "long chains": None if is_direct else long,
        "equal": None if is_direct else by_direct,
    }


_DIRECT = {
    "sum, O(n³)": "sum, O(n³)",
    "sum, fewer caps": "sum, O(n³)",
    "traced, fewer caps": "traced, fewer caps",
    "revised, O(n²)": "revised, O(n²)",
    "revised, O(n)": "revised, O(n²)",
}
"""The published form of the same objective; of the traced one there is none but brute force."""


def _random_sizes(random: np.random.Generator, layers: int) -> list[int]:
    most = int(random.choice([2, 9, _LARGEST_SIZE]))
    return [int(each) for each in random.integers(0, most, layers)]


def _brute_force(sizes: Sequence[int], objective: _Objective) -> int:
    """The least objective of all sets of checkpoints, the last layer among them."""
    last = len(sizes) - 1
    ends = {last} if objective is objective_sum else {0, last}
    others = [i for i in range(last) if i not in ends]
    sets = chain.from_iterable(combinations(others, count) for count in range(len(others) + 1))
    return min(objective(sizes, sorted({*ends, *chosen})) for chosen in sets)


def seconds(form: str, most_seconds: float, most_layers: int) -> list[dict[str, Any]]:
    """Seconds of a form on ever longer random chains, until a run takes a tenth of the limit.

    Lengths are powers of √10; the next one could take up to 32 times as long as the last.
    """
    segment, _ = FORMS[form]
    sizes = np.random.default_rng(0).integers(1, _LARGEST_SIZE, most_layers).tolist()
    rows: list[dict[str, Any]] = []
    for exponent in range(2, 100):
        layers = round(10 ** (exponent / 2))
        if layers > most_layers:
            break
        started = time.perf_counter()
        found = segment(sizes[:layers])
        taken = time.perf_counter() - started
        rows.append({"layers": layers, "seconds": taken, "least, MB": found.objective / _MEGABYTE})
        if taken > most_seconds / 10:
            break
    return rows
