"""What a run of operations holds in memory, buffer by buffer, in one given order.

TensorFlow's elementwise kernels write into the buffer of an input that nobody else holds; a plan
that ignores this predicts too much. This walk knows about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

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
    kept, inside = frozenset(kept), set(members)
    before = {member: inside & program.before(member) for member in members}
    readers = {
        tensor: {each for each in members if tensor in program.reads[each]}
        for member in members
        for tensor in program.produced[member]
    }

    def held_while(done: frozenset[int], member: int) -> int:
        """Bytes held while `member` runs after `done`."""
        live = [
            tensor
            for tensor, those in readers.items()
            if tensor.producer in done and (tensor in kept or not those <= done)
        ]
        released = [
            tensor for tensor in live if tensor not in kept and readers[tensor] <= {*done, member}
        ]
        made = sum(tensor.bytes for tensor in program.produced[member])
        taken_over = _taken_over(program, member, released)
        return sum(tensor.bytes for tensor in live) + made - taken_over

    orders: dict[frozenset[int], tuple[int, tuple[int, ...]]] = {frozenset(): (0, ())}
    for _ in members:
        longer: dict[frozenset[int], tuple[int, tuple[int, ...]]] = {}
        for done, (peak, order) in orders.items():
            for member in members:
                if member not in done and before[member] <= done:
                    reached = done | {member}
                    candidate = (max(peak, held_while(done, member)), (*order, member))
                    if reached not in longer or candidate < longer[reached]:
                        longer[reached] = candidate
        orders = longer
    ((_, best),) = orders.values()
    return list(best)


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
