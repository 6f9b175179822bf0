"""From a ConcreteFunction to a `ComputationGraph`: nodes, costs, memory, and what must wait.

Tiny tensors (statistics, biases and their slots) are kept once they are computed: their sum,
bounded by `TINY_SHARE` of the peak, counts as fixed memory, and an operation that reads and
makes only tiny ones runs with the node after which it becomes ready.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from checkmate_tf.collector import collector_paused
from checkmate_tf.graph.contraction import group_operations
from checkmate_tf.graph.step_operations import CostModel, costs_of_step, step_operations
from checkmate_tf.trace.buffers import peak_of_run
from checkmate_tf.trace.inputs import waiting_for_arguments
from checkmate_tf.trace.nested import inner_workspaces
from checkmate_tf.trace.operations import is_stateful
from checkmate_tf.trace.program import Program, Tensor, resolve
from checkmate_tf.trace.tensor_lists import holds_a_list
from profiles.devices import default_device
from profiles.operation import Operation
from profiles.roofline import Roofline, device_ceilings
from solvers import CheckmateError, ComputationGraph, Node, Schedule

TINY_SHARE = 0.01
"""Of the activation peak: as much as all tiny tensors together may take."""

_NEGLIGIBLE_SECONDS = 50e-6
"""By a roofline, whatever the cost model: what the nodes are must not depend on what they cost."""


@dataclass(frozen=True)
class Extraction:
    """A graph, and what its nodes are made of.

    Attributes:
        graph: for the solvers.
        program: the resolved step.
        nodes: per node, the operations of every computation, in order.
        attached: per node, the operations that run once, after its first computation.
        prologue: operations that run once, before everything; those that need no argument first.
        tiny: tensors that are kept from their first computation on.
        workspaces: per operation, bytes that it needs only while it runs.
        unknown: operations whose memory can't be told; what was told of it is a guess.
    """

    graph: ComputationGraph
    program: Program
    nodes: tuple[tuple[int, ...], ...]
    attached: tuple[tuple[int, ...], ...]
    prologue: tuple[int, ...]
    tiny: frozenset[Tensor]
    workspaces: tuple[int, ...]
    unknown: tuple[Any, ...]

    def computations(self, schedule: Schedule) -> Iterator[tuple[int, Sequence[int]]]:
        """(node, what is attached to it now) for every computation that `schedule` asks for."""
        seen: set[int] = set()
        for node in schedule.steps:
            if node >= len(self.nodes):
                continue  # the last node only keeps the results
            yield node, () if node in seen else self.attached[node]
            seen.add(node)


def extract(
    concrete: Any,
    batch_size: int | None = None,
    costs: CostModel | None = None,
    workspace: Callable[[Operation], int] | None = None,
) -> ComputationGraph:
    """Extract the computation graph of a ConcreteFunction.

    Args:
        concrete: a whole train step, or a function that returns loss and gradients.
        batch_size: first dimension of inputs that were traced without one.
        costs: the cost model; a roofline of the device that TensorFlow computes on by default.
            What the nodes are does not depend on it.
        workspace: bytes that an operation needs only while it runs; 0 by default.

    Raises:
        CheckmateError: a size is unknown.

    Example:
        >>> import tensorflow as tf
        >>> step = tf.function(lambda x: tf.reduce_sum(tf.nn.softmax(x @ x)))
        >>> graph = extract(step.get_concrete_function(tf.TensorSpec((1024, 1024))))
        >>> sum(node.cost for node in graph.nodes) > 0
        True
    """
    return extract_step(concrete, batch_size, costs, workspace).graph


def extract_step(
    concrete: Any,
    batch_size: int | None = None,
    costs: CostModel | None = None,
    workspace: Callable[[Operation], int] | None = None,
) -> Extraction:
    """As `extract`, with the operations behind every node."""
    return extract_program(resolve(concrete, batch_size), costs, workspace)


def extract_program(
    program: Program,
    costs: CostModel | None = None,
    workspace: Callable[[Operation], int] | None = None,
    workspaces: Sequence[int] | None = None,
) -> Extraction:
    """As `extract_step`, of a step that has been resolved.

    Where `workspaces` are known, one for each operation of `program`, nobody is asked for them.
    """
    if workspaces is not None:
        builder = _Builder(program, costs or _reference(), lambda operation: 0)
        builder.workspaces = tuple(workspaces)
    else:
        builder = _Builder(program, costs or _reference(), workspace or (lambda operation: 0))
    with collector_paused():
        return builder.build()


def extract_like(
    extraction: Extraction, program: Program, costs: CostModel | None = None
) -> Extraction:
    """The step of `extraction` at another batch size, with the same operations in the same nodes.

    So a schedule of one is a schedule of the other. What kernels need while they run is taken to
    be what it is in `extraction`; what loops and calls hold inside is counted anew.

    Args:
        program: the step, resolved at the other size.
        costs: as for `extract`.

    Raises:
        CheckmateError: the step does other operations at that size.
    """
    theirs, ours = ([op.name for op in each.operations] for each in (extraction.program, program))
    if theirs != ours:
        raise CheckmateError(
            "graph-depends-on-the-batch",
            f"the step does {len(ours)} operations at one batch size and {len(theirs)} at another, "
            "or others: one graph can't stand for both",
        )
    builder = _Builder(program, costs or _reference(), lambda operation: 0)
    builder.workspaces = tuple(
        inside or kernel
        for inside, kernel in zip(builder.workspaces, extraction.workspaces, strict=True)
    )
    tiny = frozenset(program.produced[each.producer][each.index] for each in extraction.tiny)
    return builder.extraction(extraction.nodes, extraction.attached, extraction.prologue, tiny)


def _reference() -> Roofline:
    """A roofline of the device that TensorFlow computes on."""
    return Roofline(device_ceilings(default_device().split(":")[0]))


class _Builder:
    """Turns groups of operations into nodes."""

    def __init__(
        self, program: Program, costs: CostModel, workspace: Callable[[Operation], int]
    ) -> None:
        self.program = program
        self.cost_unit = costs.unit
        kernels = step_operations(program)
        self.costs = costs_of_step(kernels, costs)
        reference = _reference()
        same = costs == reference
        self.seconds = self.costs if same else costs_of_step(kernels, reference)
        self.workspaces, self.unknown = inner_workspaces(program, workspace)
        self.users: dict[Tensor, set[int]] = {}
        for number, reads in enumerate(program.reads):
            for tensor in reads:
                self.users.setdefault(tensor, set()).add(number)

    def build(self) -> Extraction:
        program = self.program
        everything = range(len(program.operations))
        unchanged = peak_of_run(program, everything, program.outputs, self.workspaces.__getitem__)
        groups = group_operations(program)
        tiny = self._tiny(groups, TINY_SHARE * unchanged)
        nodes, attached, prologue = self._attach(groups, tiny)
        return self.extraction(nodes, attached, self._ready_first(prologue), tiny)

    def extraction(
        self,
        nodes: Sequence[Sequence[int]],
        attached: Sequence[Sequence[int]],
        prologue: Sequence[int],
        tiny: frozenset[Tensor],
    ) -> Extraction:
        """The graph of these groups of operations."""
        program = self.program
        return Extraction(
            graph=self._graph(nodes, attached, prologue, tiny),
            program=program,
            nodes=tuple(map(tuple, nodes)),
            attached=tuple(map(tuple, attached)),
            prologue=tuple(prologue),
            tiny=tiny,
            workspaces=self.workspaces,
            unknown=tuple({op.name: op for op in (*program.guessed, *self.unknown)}.values()),
        )

    def _outputs(self, members: Sequence[int]) -> list[Tensor]:
        """Tensors that others read, or the caller gets."""
        inside = set(members)
        return [
            tensor
            for member in members
            for tensor in self.program.produced[member]
            if tensor in self.program.outputs or self.users.get(tensor, inside) - inside
        ]

    def _tiny(self, groups: list[list[int]], most: float) -> frozenset[Tensor]:
        """The smallest tensors between groups, as many as take `most` bytes together."""
        tensors = sorted(
            (
                tensor
                for members in groups
                for tensor in self._outputs(members)
                # Of two lists with the same elements one counts; to keep the other keeps them.
                if not holds_a_list(self.program.operations[tensor.producer], tensor.index)
            ),
            key=lambda tensor: tensor.bytes,
        )
        tiny: list[Tensor] = []
        total = 0
        for tensor in tensors:
            total += tensor.bytes
            if total > most:
                # Equal sizes are treated alike, so that repeated blocks stay alike.
                tiny = [each for each in tiny if each.bytes < tensor.bytes]
                break
            tiny.append(tensor)
        return frozenset(tiny)

    def _attach(
        self, groups: list[list[int]], tiny: frozenset[Tensor]
    ) -> tuple[list[list[int]], list[list[int]], list[int]]:
        """Let groups that read and make only tiny tensors run with the node they wait for."""
        nodes: list[list[int]] = []
        attached: list[list[int]] = []
        prologue: list[int] = []
        place: dict[int, int] = {}  # of an operation: its node's number, −1 in the prologue
        for members in groups:
            waits_for = max(
                (
                    place[other]
                    for m in members
                    for other in self.program.before(m)
                    if other in place
                ),
                default=-1,
            )
            host = nodes[waits_for] if waits_for >= 0 else []
            if self._is_tiny(members, tiny, host) and self._fits(members, host):
                (attached[waits_for] if waits_for >= 0 else prologue).extend(members)
            else:
                waits_for = len(nodes)
                nodes.append(members)
                attached.append([])
            place.update((member, waits_for) for member in members)
        return nodes, attached, prologue

    def _ready_first(self, prologue: Sequence[int]) -> list[int]:
        """What needs no batch first, as in the plain step, which runs it while it waits for one.

        So it does at the end of a data set, where none comes: Keras counts one more iteration then.
        """
        operations = {number: self.program.operations[number] for number in prologue}
        waiting = waiting_for_arguments(self.program.concrete, operations.values())
        late: set[int] = set()
        for number, operation in operations.items():
            # A write waits for what reads the value before it, too.
            if operation.name in waiting or not late.isdisjoint(self.program.before(number)):
                late.add(number)
        return sorted(prologue, key=lambda number: number in late)

    def _is_tiny(self, members: list[int], tiny: frozenset[Tensor], host: list[int]) -> bool:
        """Whether they make only tiny tensors from tiny ones, and from what `host` just made."""
        made_here = {*members, *host}
        reads = {t for m in members for t in self.program.reads[m] if t.producer not in made_here}
        return tiny.issuperset(reads) and tiny.issuperset(self._outputs(members))

    def _fits(self, members: list[int], host: list[int]) -> bool:
        """Work that counts may only join a node that is computed once."""
        return sum(self.seconds[m] for m in members) < _NEGLIGIBLE_SECONDS or self._stateful(host)

    def _stateful(self, members: Sequence[int]) -> bool:
        return any(is_stateful(self.program.operations[m]) for m in members)

    def _graph(
        self,
        nodes: Sequence[Sequence[int]],
        attached: Sequence[Sequence[int]],
        prologue: Sequence[int],
        tiny: frozenset[Tensor],
    ) -> ComputationGraph:
        place = dict.fromkeys(prologue, -1)
        for number, members in enumerate(nodes):
            place.update((m, number) for m in (*members, *attached[number]))
        built = [
            self._node(number, members, attached[number], place, tiny)
            for number, members in enumerate(nodes)
        ]
        large_outputs = {place[t.producer] for t in self.program.outputs - tiny}
        if large_outputs:
            built.append(_return_node(built, large_outputs))
        return ComputationGraph(
            tuple(built),
            fixed_bytes=self.program.fixed_bytes + sum(t.bytes for t in tiny),
            name=_readable(self.program.concrete.name),
            cost_unit=self.cost_unit,
        )

    def _node(
        self,
        number: int,
        members: Sequence[int],
        attached: Sequence[int],
        place: dict[int, int],
        tiny: frozenset[Tensor],
    ) -> Node:
        program = self.program
        inside = set(members)
        reads = {t for m in members for t in program.reads[m] if t.producer not in inside}
        waits = {place[other] for m in (*members, *attached) for other in self.program.before(m)}
        dependencies = {place[t.producer] for t in reads - tiny}
        outputs = self._outputs(members)
        memory = sum(t.bytes for t in outputs if t not in tiny)
        held = peak_of_run(program, members, outputs, self.workspaces.__getitem__)
        longest = max(members, key=self.seconds.__getitem__)
        expired_by = {place[w] for m in members for w in program.expires[m]}
        return Node(
            name=program.operations[longest].name,
            cost=sum(self.costs[m] for m in (*members, *attached)),
            memory=memory,
            workspace=max(0, held - memory),
            operations=tuple(program.operations[m].type for m in members),
            backward="gradient" in program.operations[longest].name,
            recomputable=(
                not self._stateful(members) and self._reads_the_same_again(members, attached)
            ),
            dependencies=tuple(sorted(dependencies)),
            after=tuple(sorted(waits - dependencies - {-1, number})),
            expired_by=tuple(sorted(expired_by - {number})),
        )

    def _reads_the_same_again(self, members: Sequence[int], attached: Sequence[int]) -> bool:
        """Whether the members read the same again after what is attached to them has run.

        What a ReadVariableOp has read stays what it was; not so what an operation finds in a
        variable itself.
        """
        program = self.program
        return all(
            program.expires[m].isdisjoint(attached)
            or all(each.dtype != tf.resource for each in program.operations[m].inputs)
            for m in members
        )


def _readable(name: Any) -> str:
    """The user's name of a function that TensorFlow has traced.

    Example:
        >>> _readable(b"__inference_train_step_1234")
        'train_step'
    """
    text = name.decode() if isinstance(name, bytes) else str(name)
    matched = re.fullmatch(r"__(?:inference|forward|backward)_(.+?)_\d+", text)
    return matched[1] if matched else text


def _return_node(nodes: list[Node], outputs: set[int]) -> Node:
    """Large results must be there at the end: a last node reads them."""
    waited_for = {other for node in nodes for other in (*node.dependencies, *node.after)}
    last = set(range(len(nodes))) - waited_for - outputs
    return Node(
        name="return",
        cost=0.0,
        memory=0,
        operations=("Return",),
        backward=True,
        recomputable=False,
        dependencies=tuple(sorted(outputs)),
        after=tuple(sorted(last)),
    )
