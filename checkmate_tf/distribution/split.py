"""Split the step of several replicas: what each computes by itself, and what they do together.

A replica computes its gradients on its own device, and reads nothing of the others. Then the
replicas exchange what they have found, and each updates its variables. The first part is planned,
for each replica by itself. The exchange and all that follows it stays as TensorFlow made it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from checkmate_tf.trace.program import Program, Tensor

_COLLECTIVES = ("Collective", "Nccl")
"""How the types of operations begin that wait for their like on other devices."""


@dataclass(frozen=True)
class Split:
    """Numbers of a program's operations, by what they belong to; each in the program's order.

    Attributes:
        devices: of the replicas.
        before: operations that belong to no replica and come before all of them.
        alone: per replica, those that it runs by itself.
        together: the exchange, and all that depends on it.
        together_on: per replica, those of them that run on its device.
        kept: tensors of the first two that are needed by `together` or returned.
    """

    devices: tuple[str, ...]
    before: tuple[int, ...]
    alone: tuple[tuple[int, ...], ...]
    together: tuple[int, ...]
    together_on: tuple[tuple[int, ...], ...]
    kept: frozenset[Tensor]


def has_several_replicas(program: Program) -> bool:
    """Whether a step runs on several devices of one kind, or exchanges values with workers."""
    return len(_devices(program)) > 1 or any(
        op.type.startswith(_COLLECTIVES) for op in program.operations
    )


def split(program: Program) -> Split:
    """Split the step of several replicas."""
    devices = _devices(program) or ("",)
    replica = _Labels(program, devices).replica
    together = tuple(number for number in range(len(replica)) if replica[number] == _TOGETHER)
    read = {tensor for number in together for tensor in program.reads[number]}
    after = set(together)
    return Split(
        devices=devices,
        before=tuple(number for number, label in enumerate(replica) if label == _BEFORE),
        alone=tuple(
            tuple(number for number, label in enumerate(replica) if label == each)
            for each in range(len(devices))
        ),
        together=together,
        together_on=tuple(
            tuple(each for each in together if _device(program.operations[each]) == device)
            for device in devices
        ),
        kept=frozenset(t for t in program.outputs | read if t.producer not in after),
    )


_BEFORE, _TOGETHER = -1, -2


class _Labels:
    """The replica that each operation belongs to, or one of the marks above."""

    def __init__(self, program: Program, devices: tuple[str, ...]) -> None:
        self._program = program
        self._of_device = {device: number for number, device in enumerate(devices)}
        self.replica: list[int] = []
        for number in range(len(program.operations)):
            self.replica.append(self._label(number))

    def _label(self, number: int) -> int:
        program = self._program
        operation = program.operations[number]
        read = {self.replica[each.producer] for each in program.reads[number]}
        waited_for = {self.replica[each] for each in program.order[number]}
        if operation.type.startswith(_COLLECTIVES) or _TOGETHER in read | waited_for:
            return _TOGETHER
        read.discard(_BEFORE)
        waited_for.discard(_BEFORE)
        own = self._of_device.get(_device(operation))
        if own is None and len(self._of_device) == 1:
            own = 0
        if own is None and len(read) == 1:
            (own,) = read
        if own is None:
            return _TOGETHER if read | waited_for else _BEFORE
        return own if read | waited_for <= {own} else _TOGETHER


def _devices(program: Program) -> tuple[str, ...]:
    """The devices of the replicas: of the kind that computes, accelerators where there are any."""
    named = {_device(op): tf.DeviceSpec.from_string(op.device) for op in program.operations}
    known = {name: each for name, each in named.items() if each.device_index is not None}
    kinds = {each.device_type for each in known.values()}
    chosen = kinds - {"CPU"} or kinds
    return tuple(sorted(name for name, each in known.items() if each.device_type in chosen))


def _device(operation: Any) -> str:
    """In the one way to write it; "" where TensorFlow chooses it."""
    return str(tf.DeviceSpec.from_string(operation.device).to_string())
