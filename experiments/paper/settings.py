"""What every part is told: how much to do, where, and on which graphs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.paper.cells import Cell, answers
from experiments.paper_networks import NETWORKS
from solvers import ComputationGraph
from solvers.graph.files import write_whole

GPU_BYTES = 16_000_000_000
"""The paper's V100, "16 GB"; its figures come out with 16e9 bytes."""

_AUTHORS = {
    "VGG16": ("vgg16_b256_train.json", 256),
    "U-Net": ("unet_b32_train.json", 32),
    "ResNet50": ("resnet50_b256_train.json", 256),
}
"""Files with the authors' profiles, as in the data of the Moccasin repository."""


@dataclass(frozen=True)
class Settings:
    """How much to do, and where.

    Attributes:
        output: the folder for tables and pictures; answers are kept in its `cells`.
        quick: a small form of every part.
        time_limit: seconds of a solver on one question.
        points: budgets of a curve.
        jobs, backend: of joblib.
        graphs: a folder with the authors' profiles, or None.
    """

    output: Path
    quick: bool = False
    time_limit: float = 30.0
    points: int = 6
    jobs: int = 1
    backend: str = ""
    graphs: Path | None = None
    console: Console = field(default_factory=lambda: Console(width=140))

    @property
    def patience(self) -> float:
        """Seconds for a question that ends as soon as it is answered, and is needed."""
        return max(30.0, self.time_limit)

    def answers(self, title: str, cells: Sequence[Cell], jobs: int | None = None) -> list[Any]:
        """What the cells answer; see `experiments.paper.cells`. `jobs` at a time, if it is said."""
        return answers(
            cells,
            self.output / "cells",
            jobs=jobs or self.jobs,
            backend="" if jobs else self.backend,
            title=title,
        )

    def network(self, name: str, batch: int = 1) -> ComputationGraph:
        """A network's layer graph; built once, which takes TensorFlow, and kept as a file."""
        path = self.output / "cells" / f"graph {name}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            NETWORKS[name]().save(path)
        return scaled(ComputationGraph.load(path), batch)

    def authors(self, name: str) -> ComputationGraph | None:
        """The network with the authors' profile, where the folder has it.

        The file says nothing of fixed memory; the layer graph's is taken.
        """
        if self.graphs is None or name not in _AUTHORS:
            return None
        file, batch = _AUTHORS[name]
        path = self.graphs / file
        if not path.exists():
            self.console.print(f"{path} is not there; {name} without the authors' profile")
            return None
        fixed = self.network(name).fixed_bytes
        graph = ComputationGraph.load(path)
        return replace(graph, fixed_bytes=fixed, name=f"{name}, batch {batch}, authors' profile")

    def write_table(self, name: str, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows of the same columns into `name`.csv, and onto the terminal."""
        self.save_table(name, rows)
        table = Table(title=title, box=None)
        for key, value in rows[0].items():
            table.add_column(key, justify="left" if isinstance(value, str) else "right")
        for row in rows:
            table.add_row(*(_cell(each, "–") for each in row.values()))
        self.console.print(table)

    def save_table(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows of the same columns into `name`.csv."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _cell(each, "") for key, each in row.items()} for row in rows)
        self.output.mkdir(parents=True, exist_ok=True)
        write_whole(self.output / f"{name}.csv", text.getvalue())


def _cell(value: Any, nothing: str) -> str:
    if value is None:
        return nothing
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def scaled(graph: ComputationGraph, batch: int) -> ComputationGraph:
    """The graph of a batch, of the graph of one: costs and memories × `batch`, the loss's too.

    Example:
        >>> from solvers.graph.layer_graphs import vgg19
        >>> scaled(vgg19(), 2).nodes[:25] == vgg19(2).nodes[:25]
        True
    """
    nodes = tuple(
        replace(node, cost=batch * node.cost, memory=batch * node.memory) for node in graph.nodes
    )
    return replace(graph, nodes=nodes, name=f"{graph.name}, batch {batch}")
