"""The computation graph: what is computed, what it costs, and who reads what.

Nodes are numbered 0 … n−1 in a topological order, the *input order*; every reference between
nodes is by that number. The memory rule that these fields obey is in `solvers.graph.simulator`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from solvers.errors import GraphError
from solvers.graph.files import write_whole
from solvers.graph.graph_files import from_document, read_graph, to_document
from solvers.graph.networkx_graphs import from_networkx, to_networkx
from solvers.graph.node import Node, plain
from solvers.graph.topological import inverse


@dataclass(frozen=True)
class ComputationGraph:
    """An immutable graph of nodes in topological order.

    Attributes:
        nodes: every node after all that it depends on.
        fixed_bytes: what is on the device at any moment: variables, optimizer slots, inputs.
        name: what a person calls the graph.
        cost_unit: the unit of every node's cost, "s" for seconds.

    Raises:
        GraphError: a reference to a node that is not there or not earlier, or a size or cost
            that is negative or not a number.

    Example:
        >>> from solvers import ComputationGraph, Node
        >>> graph = ComputationGraph((Node("a", 1.0, 4), Node("b", 1.0, 4, dependencies=(0,))))
        >>> graph.users
        ((1,), ())
    """

    nodes: tuple[Node, ...]
    fixed_bytes: int = 0
    name: str = "graph"
    cost_unit: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fixed_bytes", plain(self.fixed_bytes))
        self._check_size(self.fixed_bytes, f"{self.name}: fixed_bytes")
        for number, node in enumerate(self.nodes):
            self._check(number, node)
        # No schedule holds more: of each node one output, and one workspace.
        most = self.fixed_bytes + sum(node.memory for node in self.nodes)
        most += max((node.workspace for node in self.nodes), default=0)
        if most >= 2**63:
            raise GraphError(
                "bytes-too-many", f"{self.name}: {most} bytes in all; that is more than any memory"
            )

    def _check(self, number: int, node: Node) -> None:
        place = f"{self.name}: node {node.name!r} (number {number})"
        if not isinstance(node.cost, int | float) or not 0 <= node.cost <= sys.float_info.max:
            raise GraphError(
                "field-invalid",
                f"{place}: cost is {node.cost!r}; it must be zero or more, and finite",
            )
        self._check_size(node.memory, f"{place}: memory")
        self._check_size(node.workspace, f"{place}: workspace")
        for relation in ("dependencies", "after"):
            for other in getattr(node, relation):
                if not isinstance(other, int) or not 0 <= other < number:
                    raise GraphError(
                        "reference-out-of-order",
                        f"{place}: {relation} names node {other}, which is not earlier",
                    )
        for other in node.expired_by:
            if not isinstance(other, int) or not number < other < len(self.nodes):
                raise GraphError(
                    "reference-out-of-order",
                    f"{place}: expired_by names node {other}, which is not later",
                )

    def _check_size(self, value: object, what: str) -> None:
        if not isinstance(value, int) or value < 0:
            raise GraphError(
                "field-invalid", f"{what} is {value!r}; a whole number of zero or more is expected"
            )

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def costs(self) -> NDArray[np.float64]:
        """Cost of every node, shape (n,)."""
        return np.array([node.cost for node in self.nodes], dtype=np.float64)

    @cached_property
    def memories(self) -> NDArray[np.int64]:
        """Bytes of every node's outputs, shape (n,)."""
        return np.array([node.memory for node in self.nodes], dtype=np.int64)

    @cached_property
    def workspaces(self) -> NDArray[np.int64]:
        """Bytes that every node needs only while it runs, shape (n,)."""
        return np.array([node.workspace for node in self.nodes], dtype=np.int64)

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """For every node, the nodes that read its output, ascending."""
        return tuple(map(tuple, inverse([node.dependencies for node in self.nodes])))

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Every (producer, reader) pair, ordered by reader."""
        return tuple(
            (read, number) for number, node in enumerate(self.nodes) for read in node.dependencies
        )

    @property
    def one_pass_cost(self) -> float:
        """Cost of computing every node once; an overhead is what comes on top of it."""
        return self.sum_of_costs(node.cost for node in self.nodes)

    def sum_of_costs(self, costs: Iterable[float]) -> float:
        """The sum of costs of this graph's nodes.

        Raises:
            GraphError: it is more than a float can be.
        """
        try:
            return math.fsum(costs)
        except OverflowError:
            raise GraphError(
                "costs-too-large",
                f"{self.name}: the costs add up to more than {sys.float_info.max:g}; give them in "
                "a larger unit",
            ) from None

    def save(self, path: str | Path) -> None:
        """Write the graph as JSON, whole or not at all; see `solvers.graph.graph_files`."""
        write_whole(path, json.dumps(self.to_json(), indent=1) + "\n")

    def to_json(self) -> dict[str, Any]:
        """The graph as an object that JSON can hold; `from_json` reads it.

        Example:
            >>> from solvers import ComputationGraph, Node
            >>> graph = ComputationGraph((Node("a", 1.0, 4),))
            >>> ComputationGraph.from_json(graph.to_json()) == graph
            True
        """
        return to_document(**self._contents())

    @classmethod
    def from_json(cls, document: Any) -> ComputationGraph:
        """Read what `to_json` made, or node-link.

        Raises:
            GraphError: as `load`.
        """
        return from_document(document, cls, "graph")

    def _contents(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def to_networkx(self) -> nx.DiGraph[Any]:
        """The graph for networkx: an edge from every node to each that reads it.

        Nodes have the attributes of `solvers.Node` by the same names, the graph has `name`,
        `fixed_bytes`, `cost_unit` and `order`.

        Example:
            >>> from solvers import Node
            >>> a, b = Node("a", 1.0, 4, id="a"), Node("b", 2.0, 8, dependencies=(0,), id="b")
            >>> made = ComputationGraph((a, b)).to_networkx()
            >>> list(made.edges), made.nodes["b"]["cost"]
            ([('a', 'b')], 2.0)
            >>> ComputationGraph.from_networkx(made).nodes == (a, b)
            True
        """
        return to_networkx(**self._contents())

    @classmethod
    def from_networkx(cls, graph: nx.Graph[Any]) -> ComputationGraph:
        """Take a directed graph of networkx; attributes as in `solvers.graph.node_link`.

        Raises:
            GraphError: it is not directed, has a cycle, or a node without cost and bytes.
        """
        return cls(**from_networkx(graph))

    @classmethod
    def load(cls, path: str | Path) -> ComputationGraph:
        """Read a graph from JSON: this project's format or node-link.

        Raises:
            GraphError: the file is cut short, has a cycle, a negative cost, one that is not a
                number, or refers to nodes that are not there; the message names file and place.
                See `solvers.graph.graph_files`.
        """
        return read_graph(path, cls)
