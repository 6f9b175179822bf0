"""The computation graph: what is computed, what it costs, and who reads what.

Nodes are numbered 0 … n−1 in a topological order, the *input order*; every reference between
nodes is by that number. The memory rule that these fields obey is in `solvers.simulate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from solvers.errors import GraphError


@dataclass(frozen=True, slots=True)
class Node:
    """A unit of work that is computed as a whole: one operation, or a few that stay together.

    Attributes:
        name: what a person calls it.
        cost: time of one computation, in the graph's `cost_unit`.
        memory: bytes of its outputs that others read.
        workspace: bytes needed only while it runs.
        operations: the types of the operations it is made of.
        backward: part of the backward pass.
        recomputable: may be computed more than once; stateful operations may not.
        dependencies: nodes whose outputs every computation of this one reads.
        first_reads: nodes whose outputs only its first computation reads.
        after: nodes that must be computed once before its first computation; nothing is read.
        expired_by: nodes after whose first computation this one can no longer be computed,
            because they overwrite a variable that it reads.
        id: what its file calls it; its number where nothing else was said.
    """

    name: str
    cost: float
    memory: int
    workspace: int = 0
    operations: tuple[str, ...] = ()
    backward: bool = False
    recomputable: bool = True
    dependencies: tuple[int, ...] = ()
    first_reads: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    expired_by: tuple[int, ...] = ()
    id: int | str | None = None


@dataclass(frozen=True)
class ComputationGraph:
    """An immutable graph of `Node`s in topological order.

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
        if self.fixed_bytes < 0:
            raise GraphError(
                f"{self.name}: fixed_bytes is {self.fixed_bytes}; it can't be negative"
            )
        for number, node in enumerate(self.nodes):
            self._check(number, node)

    def _check(self, number: int, node: Node) -> None:
        place = f"{self.name}: node {node.name!r} (number {number})"
        for quantity in ("cost", "memory", "workspace"):
            value = getattr(node, quantity)
            is_number = isinstance(value, Real)
            if not is_number or not 0 <= value < math.inf:
                raise GraphError(f"{place}: {quantity} is {value!r}; it must be zero or more")
        for relation in ("dependencies", "first_reads", "after"):
            for other in getattr(node, relation):
                if not 0 <= other < number:
                    raise GraphError(
                        f"{place}: {relation} names node {other}, which is not earlier"
                    )
        for other in node.expired_by:
            if not number < other < len(self.nodes):
                raise GraphError(f"{place}: expired_by names node {other}, which is not later")

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
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """What the first computation of every node reads: `dependencies` and `first_reads`."""
        return tuple(tuple(sorted({*node.dependencies, *node.first_reads})) for node in self.nodes)

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """For every node, the nodes that read its output in some computation, ascending."""
        users: list[list[int]] = [[] for _ in self.nodes]
        for number, reads in enumerate(self.reads):
            for read in reads:
                users[read].append(number)
        return tuple(tuple(each) for each in users)

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Every (producer, reader) pair, ordered by reader."""
        return tuple((read, number) for number, reads in enumerate(self.reads) for read in reads)

    @property
    def one_pass_cost(self) -> float:
        """Cost of computing every node once; an overhead is what comes on top of it."""
        return math.fsum(node.cost for node in self.nodes)

    @cached_property
    def input_order_peak(self) -> int:
        """Peak in bytes, `fixed_bytes` included, of computing every node once in input order."""
        from solvers.schedule import Schedule
        from solvers.simulate import simulate

        return simulate(self, Schedule(range(len(self)))).peak

    def with_costs(self, costs: Sequence[float], unit: str = "") -> ComputationGraph:
        """The same graph with other costs, one a node."""
        if len(costs) != len(self):
            raise GraphError(f"{self.name}: {len(costs)} costs given for {len(self)} nodes")
        nodes = tuple(
            replace(node, cost=float(cost)) for node, cost in zip(self.nodes, costs, strict=True)
        )
        return replace(self, nodes=nodes, cost_unit=unit)

    def save(self, path: str | Path) -> None:
        """Write the graph as JSON; see `solvers.graph_io`."""
        from solvers.graph_io import save_graph

        save_graph(self, path)

    @staticmethod
    def load(path: str | Path) -> ComputationGraph:
        """Read a graph from JSON: this project's format or node-link; see `solvers.graph_io`."""
        from solvers.graph_io import load_graph

        return load_graph(path)
