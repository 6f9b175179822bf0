"""The two changes that every move is made of, and taking them back; everything is compiled.

`insert` adds a computation at an empty position, `remove` takes one away. Both keep lifetimes,
memory, cost and journal up to date. The first computations must always be in an order that the
graph allows; the callers see to that.
"""

from __future__ import annotations

from solvers.local_search.compilation import compiled, compiled_entry, inlined
from solvers.local_search.memory_profile import add_memory
from solvers.local_search.search_state import (
    COMPUTATIONS,
    EMPTY,
    JOURNALED,
    RECOMPUTED,
    VIOLATION,
    Integers,
    SearchState,
)


@compiled
def latest_before(state: SearchState, node: int, position: int) -> int:
    """Index of the last computation of `node` before `position`, or −1."""
    k = int(state.times_computed[node]) - 1
    while k >= 0 and state.position[node, k] >= position:
        k -= 1
    return k


@compiled
def last_reader(state: SearchState, node: int, computed: int, limit: int) -> int:
    """The last position in (computed, limit) that reads `node`; `computed` if there is none."""
    last = computed
    for link in range(state.users.start[node], state.users.start[node + 1]):
        user = state.users.node[link]
        k = latest_before(state, user, limit)
        if k >= 0:
            last = max(last, state.position[user, k])
    return last


@compiled
def begin_read(state: SearchState, node: int, position: int) -> None:
    """The computation at `position` now reads `node`: its value lives at least as long."""
    if state.memory[node] == 0:
        return
    k = latest_before(state, node, position)
    if k >= 0 and state.last_read[node, k] < position:
        add_memory(state, state.last_read[node, k] + 1, position, state.memory[node])
        state.last_read[node, k] = position


@compiled
def end_read(state: SearchState, node: int, position: int) -> None:
    """The computation at `position` no longer reads `node`: its value may end earlier."""
    if state.memory[node] == 0:
        return
    k = latest_before(state, node, position)
    if k >= 0 and state.last_read[node, k] == position:
        last = last_reader(state, node, state.position[node, k], position)
        add_memory(state, last + 1, position, -state.memory[node])
        state.last_read[node, k] = last


@compiled
def insert(state: SearchState, node: int, position: int) -> None:
    """Compute `node` at the empty `position`."""
    count = state.times_computed[node]
    k = latest_before(state, node, position) + 1
    for later in range(count, k, -1):
        state.position[node, later] = state.position[node, later - 1]
        state.last_read[node, later] = state.last_read[node, later - 1]
    state.position[node, k] = position
    state.last_read[node, k] = position
    state.times_computed[node] = count + 1
    state.node_at[position] = node
    begin_lifetime(state, node, k)
    if state.workspace[node] > 0:
        add_memory(state, position, position, state.workspace[node])
    for link in range(state.dependencies.start[node], state.dependencies.start[node + 1]):
        begin_read(state, state.dependencies.node[link], position)
    if count == 1:
        state.recomputed_index[node] = state.totals[RECOMPUTED]
        state.recomputed[state.totals[RECOMPUTED]] = node
        state.totals[RECOMPUTED] += 1
    state.totals[COMPUTATIONS] += 1
    state.total_cost[0] += state.cost[node]
    record(state, 1, node, position)


@inlined
def begin_lifetime(state: SearchState, node: int, k: int) -> None:
    """Computation k of `node` is new: it serves later readers, and the one before it no longer."""
    memory = state.memory[node]
    if memory == 0:
        return
    position = state.position[node, k]
    if k == 0:
        limit = state.position[node, 1] if state.times_computed[node] > 1 else len(state.node_at)
        state.last_read[node, 0] = last_reader(state, node, position, limit)
        add_memory(state, position, state.last_read[node, 0], memory)
    elif state.last_read[node, k - 1] > position:
        state.last_read[node, k] = state.last_read[node, k - 1]
        last = last_reader(state, node, state.position[node, k - 1], position)
        state.last_read[node, k - 1] = last
        add_memory(state, last + 1, position - 1, -memory)
    else:
        add_memory(state, position, position, memory)


@compiled
def remove(state: SearchState, node: int, position: int) -> None:
    """Undo `insert`."""
    k = latest_before(state, node, position + 1)
    end_lifetime(state, node, k)
    count = state.times_computed[node] - 1
    for later in range(k, count):
        state.position[node, later] = state.position[node, later + 1]
        state.last_read[node, later] = state.last_read[node, later + 1]
    state.times_computed[node] = count
    state.node_at[position] = EMPTY
    if state.workspace[node] > 0:
        add_memory(state, position, position, -state.workspace[node])
    for link in range(state.dependencies.start[node], state.dependencies.start[node + 1]):
        end_read(state, state.dependencies.node[link], position)
    if count == 1:
        state.totals[RECOMPUTED] -= 1
        last = state.recomputed[state.totals[RECOMPUTED]]
        state.recomputed[state.recomputed_index[node]] = last
        state.recomputed_index[last] = state.recomputed_index[node]
    state.totals[COMPUTATIONS] -= 1
    state.total_cost[0] -= state.cost[node]
    record(state, -1, node, position)


@inlined
def end_lifetime(state: SearchState, node: int, k: int) -> None:
    """Computation k of `node` goes: the one before it serves its readers."""
    memory = state.memory[node]
    if memory == 0:
        return
    position, last = state.position[node, k], state.last_read[node, k]
    if k == 0:
        add_memory(state, position, last, -memory)
    elif last > position:
        add_memory(state, state.last_read[node, k - 1] + 1, position - 1, memory)
        state.last_read[node, k - 1] = last
    else:
        add_memory(state, position, position, -memory)


@compiled
def record(state: SearchState, change: int, node: int, position: int) -> None:
    """Write a change into the journal; moves leave room, so that it is never full."""
    entry = state.totals[JOURNALED]
    if entry < len(state.journal):
        state.journal[entry, 0] = change
        state.journal[entry, 1] = node
        state.journal[entry, 2] = position
    state.totals[JOURNALED] = entry + 1


@compiled
def undo(state: SearchState) -> None:
    """Take back every change in the journal, the latest first."""
    for entry in range(state.totals[JOURNALED] - 1, -1, -1):
        if state.journal[entry, 0] == 1:
            remove(state, state.journal[entry, 1], state.journal[entry, 2])
        else:
            insert(state, state.journal[entry, 1], state.journal[entry, 2])
    state.totals[JOURNALED] = 0


@compiled_entry
def load(state: SearchState, steps: Integers, budget: int) -> None:
    """Replace the schedule by `steps`, spread evenly over the positions."""
    state.node_at[:] = EMPTY
    state.times_computed[:] = 0
    state.profile[:] = -budget
    state.block_addend[:] = 0
    state.block_max[:] = -budget
    state.block_min[:] = -budget
    state.totals[VIOLATION] = 0
    state.totals[COMPUTATIONS] = 0
    state.totals[RECOMPUTED] = 0
    state.total_cost[0] = 0.0
    spacing = len(state.node_at) / (len(steps) + 1)
    for step in range(len(steps)):
        insert(state, steps[step], int((step + 1) * spacing))
    state.totals[JOURNALED] = 0


@compiled_entry
def keep_best(state: SearchState) -> int:
    """Copy the schedule to `state.best`; return its length."""
    length = 0
    for position in range(len(state.node_at)):
        if state.node_at[position] >= 0:
            state.best[length] = state.node_at[position]
            length += 1
    return length
