"""A train step at any batch size: its trace, its sizes, and one graph that stands for all.

The size of a tensor is affine in the batch: so many bytes, and so many more for each example
(Jain et al., MLSys 2020, section 6.4 with equation 10). Two sizes are enough to know all; a third
one shows whether it is true.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from checkmate_tf.batches.examples import ExampleBatch
from checkmate_tf.graph.passes import behind_gradients
from checkmate_tf.trace.buffers import peak_of_run
from checkmate_tf.trace.program import Program, resolve
from checkmate_tf.trace.sizes import has_unknown_sizes
from solvers import CheckmateError, ComputationGraph


class SizedStep:
    """The traces of one step, and its operations with their sizes, by batch size."""

    def __init__(
        self, trace: Callable[[tuple[Any, ...] | None], Any], example: ExampleBatch | None
    ) -> None:
        """Trace a step.

        Args:
            trace: from the step's arguments as types, or None, to its ConcreteFunction.
            example: of its arguments; None where the step's own signature says them.

        Raises:
            CheckmateError: the step was traced for one batch size only.
        """
        self._trace = trace
        self._example = example
        self._programs: dict[int, Program] = {}
        self._for_any: Any = self._traced_for_any()

    @property
    def takes_any_batch(self) -> bool:
        """Whether one trace serves all sizes."""
        return self._for_any is not None

    def concrete(self, size: int) -> Any:
        """The ConcreteFunction for batches of `size`."""
        if self._for_any is not None:
            return self._for_any
        assert self._example is not None
        return self._trace(self._example.at(size))

    def as_trained(self, size: int) -> Any:
        """As `concrete`, but traced for that size alone where there is an example of its arguments.

        So training traces a step whose batches all have one size.
        """
        return self._for_any if self._example is None else self._trace(self._example.at(size))

    def program(self, size: int) -> Program:
        """The step, resolved for batches of `size`.

        Raises:
            CheckmateError: TensorFlow can't say its sizes.
        """
        if size not in self._programs:
            try:
                self._programs[size] = resolve(self.concrete(size), size)
            except CheckmateError:
                raise
            except (TypeError, ValueError) as error:  # too large a number is the one or the other
                raise CheckmateError(
                    "batch-refused", f"the step refuses a batch of {size}: {error}"
                ) from error
        return self._programs[size]

    def _traced_for_any(self) -> Any:
        if self._example is None:
            concrete = self._trace(None)
            if not has_unknown_sizes(concrete):
                raise CheckmateError(
                    "step-of-one-batch-size",
                    "the step is traced for one batch size: give its input_signature None as first "
                    "dimension of what grows with the batch",
                )
            return concrete
        try:
            return self._trace(self._example.at(None))
        except CheckmateError:
            raise
        except (TypeError, ValueError):
            # It reads the size while it is traced, so each size has a trace of its own; if the
            # step itself is wrong, its error comes out there.
            return None


def activation_bytes(program: Program) -> int:
    """Bytes that the unchanged step holds at most beside what is fixed, workspaces left out."""
    everything = range(len(program.operations))
    return peak_of_run(program, everything, program.outputs, lambda operation: 0)


@dataclass(frozen=True)
class GraphOfBatch:
    """A graph whose sizes are affine in the batch, told by two of them; costs are of the larger.

    Attributes:
        sizes: two batch sizes.
        graphs: of both.

    Example:
        >>> from solvers import Node
        >>> one, four = (ComputationGraph((Node("a", 1, 10 + 2 * n),)) for n in (1, 4))
        >>> GraphOfBatch((1, 4), (one, four)).at(100).nodes[0].memory
        210
    """

    sizes: tuple[int, int]
    graphs: tuple[ComputationGraph, ComputationGraph]

    def at(self, size: int) -> ComputationGraph:
        """The graph at a batch of `size`."""
        smaller, larger = self.graphs
        nodes = tuple(
            replace(
                most,
                memory=self._between(least.memory, most.memory, size),
                workspace=self._between(least.workspace, most.workspace, size),
            )
            for least, most in zip(smaller.nodes, larger.nodes, strict=True)
        )
        fixed = self._between(smaller.fixed_bytes, larger.fixed_bytes, size)
        return replace(larger, nodes=nodes, fixed_bytes=fixed)

    def _between(self, least: int, most: int, size: int) -> int:
        start, end = self.sizes
        return max(0, round(least + Fraction((most - least) * (size - start), end - start)))


def not_affine(programs: dict[int, Program]) -> list[Any]:
    """Operations whose outputs' bytes are not affine in the batch: three sizes disagree.

    Args:
        programs: the step at three batch sizes, with equal operations.
    """
    (a, small), (b, middle), (c, large) = sorted(programs.items())
    found = []
    for operation, *outputs in zip(
        middle.operations, small.produced, middle.produced, large.produced, strict=True
    ):
        for first, second, third in zip(*outputs, strict=True):
            if (second.bytes - first.bytes) * (c - a) != (third.bytes - first.bytes) * (b - a):
                found.append(operation)
                break
    return found


def forward_cost(graph: ComputationGraph) -> float:
    """Cost of one more forward pass: of all that waits for no gradient and is none."""
    pairs = zip(graph.nodes, behind_gradients(graph), strict=True)
    return sum(node.cost for node, is_behind in pairs if not is_behind)
