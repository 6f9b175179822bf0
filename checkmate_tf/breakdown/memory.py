"""`memory`: what a step of a batch holds, and the batches that devices hold, before training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from numbers import Integral
from typing import Any

from checkmate_tf.batches.sized_step import SizedStep
from checkmate_tf.breakdown.device_sizes import Sizes, largest_batches
from checkmate_tf.breakdown.parts import activations_by_layer, timeline_of
from checkmate_tf.breakdown.result import StepMemory
from checkmate_tf.devices.current import current_device, planned_as
from checkmate_tf.devices.elsewhere import device_of_kind
from checkmate_tf.graph.cost_models import known_workspaces, step_costs
from checkmate_tf.graph.extraction import Extraction, extract_program
from checkmate_tf.interrupts import Interrupts, noted_interrupts
from checkmate_tf.planning.compiled.planner import CompiledPlanner
from checkmate_tf.planning.preparation import device_workspaces
from checkmate_tf.planning.request import parse_request
from checkmate_tf.plans.layers import model_name
from checkmate_tf.program.unchanged import forecast_unchanged
from checkmate_tf.progress import spoken_progress
from checkmate_tf.sizing.arguments import Target, parse_batch, parse_overhead, parse_step
from checkmate_tf.sizing.one_trace import traced_with
from checkmate_tf.sizing.without_xla import say_it_is_compiled_elsewhere, say_it_leaves_xla
from profiles.devices import default_device
from profiles.measure.compilation import NotCompilableError
from solvers import BudgetError, CheckmateError, parse_budget

CARDS = ("8GiB", "16GiB", "24GiB", "40GiB", "80GiB")
"""Memory of usual GPUs."""

_KINDS = ("CPU", "GPU")


def memory(
    step: Any,
    batch_size: int | None = None,
    batch: Any = None,
    *,
    device: str | None = None,
    device_memory: Sequence[int | str] = CARDS,
    overhead: float | str | None = None,
    time_limit: float = 30.0,
) -> StepMemory:
    """What a step of a batch holds as it is, and the largest batches that devices hold.

    Nothing is trained. The peak is a forecast of what the device's allocator holds, or, of a step
    that XLA compiles, what the compiler says; nothing else is taken to be on the device. Batches
    are looked for on the step's graph, whose sizes are affine in the batch (Jain et al., MLSys
    2020, equation 10).

    Args:
        step: a compiled Keras model, a function, or what `rematerialize` returned.
        batch_size: examples in a batch; by default as many as `batch` has.
        batch: an example of what the step is called with, as for `largest_batch`. Not needed for
            a Keras model that tells its inputs and outputs, nor for a step with an input_signature.
        device: "CPU" or "GPU", also one that is not here; by default the one that is.
        device_memory: bytes of devices for which the largest batches are told; () for none.
        overhead: extra time that a plan may take, as a share (0.2, "20%"); by default, that of one
            more forward pass.
        time_limit: seconds for the search for the largest batches, about.

    Raises:
        CheckmateError: sizes don't grow with the batch, or an argument is not what it should be.

    Example:
        >>> import keras
        >>> model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256)])
        >>> model.compile("sgd", "mse")
        >>> found = memory(model, 1024, device_memory=())
        >>> found.peak == sum(found.parts.values()), found.parts["weights"]
        (True, 66560)
    """
    target = parse_step(step)
    sizes = tuple(map(_device_bytes, device_memory))
    example = parse_batch(batch, target)
    size = _size(batch_size, None if example is None else example.size)
    here = default_device().partition(":")[0]
    kind = here if device is None else _kind(device)
    with ExitStack() as stack:
        if kind != here:
            stack.enter_context(planned_as(device_of_kind(kind)))
        is_compiled = target.is_compiled and kind == here
        if target.is_compiled and not is_compiled:
            say_it_is_compiled_elsewhere()
        interrupts = stack.enter_context(noted_interrupts())
        asked = Sizes(kind, sizes, parse_overhead(overhead), time_limit)
        told = partial(_Told, target, example, size, asked)
        try:
            found = told(is_compiled, interrupts).run()
        except NotCompilableError as error:
            say_it_leaves_xla(error)
            found = told(False, interrupts).run()
        interrupts.pass_on()
        return found


class _Told:
    """One question from beginning to end: sizes, the peak, the largest batches."""

    def __init__(
        self,
        target: Target,
        example: Any,
        size: int,
        asked: Sizes,
        is_compiled: bool,
        interrupts: Interrupts,
    ) -> None:
        self.target, self.example, self.size, self.asked = target, example, size, asked
        self.is_compiled, self.interrupts = is_compiled, interrupts
        self.device = current_device()
        self.batches = self.device.batches_held() if target.model is not None else 1

    def run(self) -> StepMemory:
        with spoken_progress("memory:") as show:
            show("tracing the step")
            trace = partial(traced_with, self.target, compiled=self.is_compiled)
            self.sized = SizedStep(trace, self.example)
            show("sizes of its tensors")
            program = self.sized.program(self.size)
            costs = step_costs(_costs(self.asked.kind), program)
            extracted = extract_program(program, costs.model, self._workspace())
            self.interrupts.pass_on()
            timeline = timeline_of(extracted, self.target.model, self.batches)
            live = int(timeline.total.max())
            fixed = sum(timeline.fixed.values())
            if self.is_compiled:
                show("compiling the step as it is")
                added = self._compiled()
            else:
                seen = forecast_unchanged(extracted, self.device, extracted.graph.fixed_bytes)
                added = seen.highest_of_ten - extracted.graph.fixed_bytes
            fits, notes = largest_batches(
                self.sized,
                extracted,
                (self.size, self.batches),
                added / max(1, live - fixed),
                self.is_compiled,
                self.asked,
                show,
                self.interrupts.pass_on,
            )
        rest = {"saved by XLA" if self.is_compiled else "gaps and reuse": fixed + added - live}
        if self.is_compiled and (larger := self.device.held_for_block(added) - added):
            rest["gaps"] = larger
        parts = {**timeline.at_peak(), **rest}
        return StepMemory(
            name=_name(self.target, extracted),
            batch_size=self.size,
            device=f"a {self.asked.kind}, {'with' if self.is_compiled else 'without'} XLA",
            peak=sum(parts.values()),
            how="compiled" if self.is_compiled else "forecast",
            parts=parts,
            layers=activations_by_layer(extracted.graph),
            fits=fits,
            timeline=timeline,
            notes=notes,
        )

    def _workspace(self) -> Callable[..., int]:
        if self.device.is_here and not self.is_compiled:
            return device_workspaces(default_device())
        return known_workspaces(_costs(self.asked.kind))

    def _compiled(self) -> int:
        """Bytes that XLA takes beside the arguments."""
        request = parse_request("100%", "auto", None, "roofline", 1.0, "fixed", False)
        planner = CompiledPlanner(request)
        concrete = self.sized.concrete(self.size)
        return planner.search(concrete, self.size, 0, self.interrupts).plain.added


def _costs(kind: str) -> str:
    return f"roofline:{kind}"


def _name(target: Target, extracted: Extraction) -> str:
    name = getattr(target.model, "name", "") or model_name(
        each.name for each in extracted.graph.nodes
    )
    step = getattr(target.function, "__name__", extracted.graph.name)
    return f"{name} ({step})" if name else step


def _size(asked: Any, of_example: int | None) -> int:
    """Examples in a batch.

    Raises:
        CheckmateError: nothing says how many, or it is no number.
    """
    if asked is None:
        if of_example is None:
            raise CheckmateError(
                "argument-missing",
                "batch_size= is missing: give the number of examples in a batch",
            )
        return of_example
    if not isinstance(asked, Integral) or isinstance(asked, bool) or asked < 1:
        raise CheckmateError(
            "argument-invalid", f"batch_size is {asked!r}; give the number of examples in a batch"
        )
    return int(asked)


def _kind(device: Any) -> str:
    kind = str(device).partition(":")[0].upper()
    if kind not in _KINDS:
        raise CheckmateError("argument-invalid", f"device is {device!r}; give 'CPU' or 'GPU'")
    return kind


def _device_bytes(size: Any) -> int:
    parsed = parse_budget(size).bytes
    if parsed is None:
        raise BudgetError(
            "argument-invalid", f"device_memory holds {size!r}; give bytes, like '16GiB'"
        )
    return parsed
