"""What a run of operations holds in memory, buffer by buffer, in one given order.

TensorFlow's elementwise kernels write into the buffer of an input that nobody else holds; a plan
that ignores this predicts too much. This walk knows about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from checkmate_tf.trace.operations import ELEMENTWISE
from checkmate_tf.trace.program import Program, Tensor

_MOST_ORDERED = 12
"""Operations for which every order is tried."""


def peak_of_run(
    program: Program,
    sequence: Sequence[int],
    kept: Iterable[Tensor],
    workspace: Callable[[int], int],
) -> int:
    """Most bytes held while the operations of `sequence` run, inputs from elsewhere not counted.

    Args:
        sequence: operation numbers, each once, in a valid order.
        kept: tensors that are still needed at the end.
        workspace: bytes that an operation needs only while it runs.
    """
    kept = set(kept)
    inside = set(sequence)
    uses = Counter(t for number in sequence for t in program.reads[number] if t.producer in inside)
    held = peak = 0
    for number in sequence:
        released = []
        for tensor in program.reads[number]:
            if tensor.producer in inside:
                uses[tensor] -= 1
                if not uses[tensor] and tensor not in kept:
                    released.append(tensor)
        made = program.produced[number]
        taken_over = _taken_over(program, number, released)
        held += sum(t.bytes for t in made) - taken_over
        peak = max(peak, held + workspace(number))
        held -= sum(t.bytes for t in released) - taken_over
        held -= sum(t.bytes for t in made if not uses[t] and t not in kept)
    return peak


def leanest_order(program: Program, members: Sequence[int], kept: Iterable[Tensor]) -> list[int]:
    """The members in the valid order that holds the least memory, in their own order at a tie.

    Exact for small groups, by dynamic programming over the sets of operations already run, since
    what a set leaves in memory does not depend on its order; larger groups keep their order.
    """
    members = sorted(members)
    if not 2 < len(members) <= _MOST_ORDERED:
        return members
    run = _Run(program, members, frozenset(kept))
    orders: dict[frozenset[int], tuple[int, tuple[int, ...]]] = {frozenset(): (0, ())}
    for _ in members:
        longer: dict[frozenset[int], tuple[int, tuple[int, ...]]] = {}
        for done, (peak, order) in orders.items():
            for member in run.ready(done):
                reached = done | {member}
                candidate = (max(peak, run.held_while(done, member)), (*order, member))
                if reached not in longer or candidate < longer[reached]:
                    longer[reached] = candidate
        orders = longer
    ((_, best),) = orders.values()
    return list(best)


class _Run:
    """A few operations that may run in several orders."""

    def __init__(self, program: Program, members: list[int], kept: frozenset[Tensor]) -> None:
        self._program = program
        self._members = members
        self._kept = kept
        inside = set(members)
        self._before = {m: inside & program.before(m) for m in members}
        self._readers: dict[Tensor, set[int]] = {
            tensor: {m for m in members if tensor in program.reads[m]}
            for member in members
            for tensor in program.produced[member]
        }

    def ready(self, done: Collection[int]) -> list[int]:
        """Members that can run next."""
        return [m for m in self._members if m not in done and self._before[m] <= set(done)]

    def held_while(self, done: Collection[int], member: int) -> int:
        """Bytes held while `member` runs after `done`."""
        live = [
            tensor
            for tensor, readers in self._readers.items()
            if tensor.producer in done and (tensor in self._kept or not readers <= set(done))
        ]
        released = [
            tensor
            for tensor in live
            if tensor not in self._kept and self._readers[tensor] <= {*done, member}
        ]
        made = sum(tensor.bytes for tensor in self._program.produced[member])
        taken_over = _taken_over(self._program, member, released)
        return sum(tensor.bytes for tensor in live) + made - taken_over


def donor(program: Program, number: int, released: Iterable[Tensor]) -> Tensor | None:
    """The input whose buffer the operation's output takes over, of those that are released."""
    made = program.produced[number]
    if program.operations[number].type not in ELEMENTWISE or len(made) != 1:
        return None
    return next((t for t in released if t.bytes == made[0].bytes), None)


def _taken_over(program: Program, number: int, released: Iterable[Tensor]) -> int:
    """Bytes of the operation's output that lie in the buffer of an input that is released."""
    given = donor(program, number, released)
    return given.bytes if given is not None else 0
