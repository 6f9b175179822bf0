"""Run a step a few times for trial, on copies of the variables that it writes.

A plan rests on a model of memory. A trial run measures what the allocator really holds, before
any training is done. It uses made-up inputs and touches nothing of the user's, so that there is
nothing to put back, whenever and however it ends.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import (
    counts_small_buffers,
    held_bytes,
    measure_peak,
    peak_bytes,
)
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.phases import phase
from checkmate_tf.planning.settings import (
    COPIES_MATTER,
    EPOCH,
    EQUAL_STEPS,
    FIRST_TRIAL_STEPS,
    TRIAL_SECONDS,
    TRIAL_STEPS,
    UNCHANGED_STEPS,
)
from checkmate_tf.planning.trial.input_pipeline import batches_like
from checkmate_tf.planning.trial.made_up import made_up_arguments
from checkmate_tf.planning.trial.variable_copies import (
    can_copy,
    copied_bytes,
    copy_written,
    run_on_copies,
    written_bytes,
)
from checkmate_tf.planning.variable_places import gaps_filled, variables_aside
from checkmate_tf.program.masks import mask_bytes
from checkmate_tf.program.rewrite import as_function
from checkmate_tf.trace.inlining import as_traced
from checkmate_tf.trace.program import Program
from checkmate_tf.trace.side_effects import changes_only_variables, draws_by_seed
from profiles.tensorflow_internals import cancellable, function_again
from solvers import Schedule

_NO_ROOM = "the device has no room for copies of the variables beside the step"


def can_run_for_trial(extracted: Extraction) -> bool:
    """Whether the step can run without a trace outside copies, and its peak can be seen."""
    return not why_no_trial(extracted)


def why_no_trial(extracted: Extraction) -> str:
    """Why not, in a few words; "" where it can."""
    if tf.distribute.has_strategy():
        return "a distribution strategy runs the step"
    return _why_not(extracted.program.concrete)


def can_try(concrete: Any) -> bool:
    """As `can_run_for_trial`, of a function."""
    return not _why_not(concrete)


def _why_not(concrete: Any) -> str:
    if held_bytes() is None:
        return "the allocator keeps no count"
    if not changes_only_variables(concrete):
        return "the step changes more than variables"
    return "" if can_copy(concrete) else "the step's variables can't be copied"


def has_generators(extracted: Extraction) -> bool:
    """Whether kernels draw random numbers that begin anew in another function."""
    return draws_by_seed(extracted.program.concrete)


class TrialRunError(Exception):
    """No trial run is possible here; the message says why.

    Attributes:
        may_pass: one may be possible at another time.
        held: bytes that the device held at most until it had no room for the copies beside the
            step; None where that was not the reason.
    """

    def __init__(self, why: str, may_pass: bool = False, held: int | None = None) -> None:
        """With `may_pass`, the reason is of this moment."""
        super().__init__(why)
        self.may_pass = may_pass
        self.held = held


@dataclass(frozen=True)
class TrialRun:
    """What a trial run of a plan showed.

    Attributes:
        peaks: bytes that the device held at most in each step, the copies not counted, but all of
            the step's variables, for which some optimizers take memory only when they are written.
            A step in which the device tried kernels is none of them.
        ran: what ran, on flat arguments.
        is_spent: training has no use for it: its kernels have drawn random numbers, which training
            would miss, or training's arguments come from the host of a GPU.
        scatter: bytes by which the highest step exceeded the lowest one after the first; 0 if the
            last ones were equal. None where this says nothing of training, because the copies lay
            elsewhere than the variables do, or other batches were made meanwhile, or small buffers
            are not counted.
        first: as `peaks`, of the step before them in which the device may have tried kernels;
            None where it never does.
        seconds: of each step, that one and the first one of all included.
    """

    peaks: tuple[int, ...]
    ran: Callable[..., Any] | None
    scatter: int | None = None
    first: int | None = None
    is_spent: bool = False
    seconds: tuple[float, ...] = ()

    @property
    def function(self) -> Callable[..., Any] | None:
        """What training can run, on flat arguments, if it has a use for that."""
        return None if self.is_spent else self.ran


SaysEnough = Callable[[int], bool]
"""Whether steps that hold at most so many bytes leave no doubt about their plan."""

TrialRunner = Callable[[Schedule, SaysEnough], TrialRun | None]
"""Runs a step a few times by a schedule, as `run_for_trial`."""


def _never(peak: int) -> bool:
    return False


def run_for_trial(
    extracted: Extraction,
    schedule: Schedule,
    says_enough: SaysEnough = _never,
    arriving: int | None = None,
    steps: int = TRIAL_STEPS,
) -> TrialRun | None:
    """Run a few steps by `schedule`; None if they were too large for the device.

    They are fewer if they repeat themselves, or the highest peak of the first ones `says_enough`.
    Before them comes one in which the device tries kernels, where it does.
    Of the step's arguments `arriving` bytes are not on the device yet, by default all.

    Raises:
        TrialRunError: the step refused its made-up inputs, or took very long on them, or the
            device has no room for the copies beside the step.
    """
    function = as_function(extracted, schedule)
    program = extracted.program
    added = _tried(function, program, program.fixed_bytes, says_enough, arriving, steps)
    if added is None:
        return None
    # Given arguments of another device TensorFlow makes it once more, with constants of its own.
    from_elsewhere = current_device().tries_kernels and arriving != 0
    return TrialRun(
        added.over(program.fixed_bytes),
        function,
        added.scatter,
        added.first_over(program.fixed_bytes),
        is_spent=from_elsewhere or has_generators(extracted),
        seconds=added.seconds,
    )


def warm_up(extracted: Extraction, schedule: Schedule, arriving: int) -> TrialRun | None:
    """Run one step by `schedule`, where the device tries kernels when they first run.

    The first step of training then holds what all later ones hold. None where the device does not,
    or the step can't run for trial.
    """
    if current_device().tries_kernels and can_run_for_trial(extracted):
        with suppress(TrialRunError), phase("trials"):
            return run_for_trial(extracted, schedule, arriving=arriving, steps=0)
    return None


def peaks_on_trial(
    function: Any,
    program: Program,
    fixed_bytes: int,
    says_enough: SaysEnough = _never,
    arriving: int | None = None,
) -> tuple[int, ...] | None:
    """Bytes held at most in each of a few calls of `function`, the copies not counted.

    Args:
        function: a ConcreteFunction of the flat arguments of the step.
        program: of the step.
        fixed_bytes: of its variables and inputs on the device; some may not be there yet.
        says_enough: of the highest peak of the first few calls: more are made only if it does not.
        arriving: bytes of the step's arguments that are not on the device yet, by default all.

    Raises:
        TrialRunError: as `run_for_trial`.
    """
    added = _tried(function, program, fixed_bytes, says_enough, arriving)
    return None if added is None else added.over(fixed_bytes)


@dataclass(frozen=True)
class UnchangedRun:
    """What a few steps in TensorFlow's own order showed.

    Attributes:
        added: bytes that each of them, but one in which kernels were tried, adds to what is
            resident.
        seconds: of each of them.
    """

    added: tuple[int, ...]
    seconds: tuple[float, ...]


def run_unchanged(extracted: Extraction) -> UnchangedRun:
    """Run a few steps in TensorFlow's own order.

    Raises:
        TrialRunError: as above; or they were too large for the device.
    """
    program = extracted.program
    function = plain_function(program)
    ends = current_device().has_seen_enough
    added = _added(program, function, UNCHANGED_STEPS, ends=ends)
    if added is None:
        raise TrialRunError("it exhausted the device's memory")
    without_constants = added.before - added.constants
    resident = max(without_constants + program.constant_bytes, program.fixed_bytes)
    return UnchangedRun(
        tuple(peak - resident for peak in added.over(program.fixed_bytes)), added.seconds
    )


def plain_function(program: Program) -> Any:
    """The step as it was traced, as another function.

    The traced one would hold its constants as long as it lives, and its kernels would miss the
    random numbers that they had drawn.
    """
    return function_again(as_traced(program.concrete))


def _tried(
    function: Any,
    program: Program,
    fixed_bytes: int,
    says_enough: SaysEnough,
    arriving: int | None,
    steps: int = TRIAL_STEPS,
) -> _Added | None:
    """What the steps of a trial run add, as `peaks_on_trial`."""
    return _added(
        program,
        function,
        steps,
        lambda held, most: says_enough(max(held, fixed_bytes) + most),
        arriving,
    )


@dataclass(frozen=True)
class _Added:
    """What was seen of some steps.

    Attributes:
        before: bytes that are held before each but the first, the step's inputs among them.
        constants: bytes of them that the first step has left, as TensorFlow's constants, and those
            that the function has captured.
        peaks: bytes that each step adds to those at most.
        scatter: see `TrialRun`.
        first: as `peaks`, of a step before them in which the device tried kernels, if any.
        seconds: see `TrialRun`.
    """

    before: int
    constants: int
    peaks: tuple[int, ...]
    scatter: int | None
    first: int | None
    seconds: tuple[float, ...]

    def over(self, fixed_bytes: int) -> tuple[int, ...]:
        """The peaks where a step is known to have so many bytes beside what it adds."""
        return tuple(max(self.before, fixed_bytes) + each for each in self.peaks)

    def first_over(self, fixed_bytes: int) -> int | None:
        """As `over`, of the first step."""
        return None if self.first is None else max(self.before, fixed_bytes) + self.first


def _added(
    program: Program,
    function: Any,
    steps: int,
    says_enough: Callable[[int, int], bool] = lambda held, most: False,
    arriving: int | None = None,
    ends: Ends | None = None,
) -> _Added | None:
    """What some steps on copies add to what is held; None if they were too large for the device.

    They are FIRST_TRIAL_STEPS if what was held before and what these add at most `says_enough`, and
    no more from where their peaks say that it `ends`: by default where they repeat themselves.
    Made-up inputs lie beside the step's own ones, which count instead. The copies lie where the
    variables lie in training, if those can be put aside; else they are made anew after the first
    step, out of the way.
    """
    gc.collect()  # functions that were tried before hold the constants that TensorFlow made there
    before = held_bytes() or 0
    with variables_aside(function) as aside:
        return _added_by_copies(
            program, function, steps, says_enough, arriving, before, aside, ends or _repeat
        )


def _added_by_copies(
    program: Program,
    function: Any,
    steps: int,
    says_enough: Callable[[int, int], bool],
    arriving: int | None,
    before: int,
    in_place: bool,
    ends: Ends,
) -> _Added | None:
    """As `_added`: `before` bytes were held; copies are `in_place`, where the variables were."""
    try:
        copies = laid_down(function, in_place)
    except tf.errors.ResourceExhaustedError as error:
        raise TrialRunError(_NO_ROOM, may_pass=True) from error
    copied, device = copied_bytes(copies), current_device()
    masks = mask_bytes(function, program)  # these count as what the first step leaves
    before -= masks
    try:
        made_up = program.argument_bytes
        arriving = made_up if arriving is None else arriving
        several = in_place and arriving > made_up
        # Where the step's own are on the device already, nothing may take another piece of it.
        arguments = made_up_arguments(program, several or (in_place and arriving == 0))
        beside = (held_bytes() or 0) - masks if in_place else before + copied + made_up
        before += arriving
        batches: Iterator[Any] = repeat(arguments)
        peaks, seconds = list[int](), list[float]()
        first: int | None = None
        constants, has_run = 0, False
        while len(peaks) < steps or not has_run:
            since = time.perf_counter()
            with at_most(TRIAL_SECONDS):
                peak = measure_peak(_run_step, function, batches, copies, device=device.name)
            seconds.append(time.perf_counter() - since)
            if not has_run:
                constants = max(0, (held_bytes() or 0) - beside)
                if not (in_place or device.tries_kernels):
                    copies = _out_of_the_way(function, copies)
            if not has_run and device.tries_kernels:
                first = peak - beside - constants
            else:
                peaks.append(peak - beside - constants)
            has_run = True
            if several and len(peaks) == 1:
                beside += arriving
            if several and len(peaks) % EPOCH == 1:
                del batches
                batches = batches_like(arguments)
            if len(peaks) == FIRST_TRIAL_STEPS and says_enough(before + constants, max(peaks)):
                break
            if ends(peaks):
                break
    except tf.errors.ResourceExhaustedError as error:
        held = peak_bytes() or 0
        if in_place or copied < COPIES_MATTER * held:
            return None
        raise TrialRunError(_NO_ROOM, may_pass=True, held=held) from error
    except tf.errors.CancelledError as error:
        why = f"a run on made-up inputs took over {TRIAL_SECONDS:g} s"
        raise TrialRunError(why, may_pass=True) from error
    except tf.errors.OpError as error:
        raise TrialRunError(f"the step refuses made-up inputs: {_reason(error)}") from error
    scatter = None
    lie_alike = in_place or device.tries_kernels
    if lie_alike and not several and len(peaks) > 1 and counts_small_buffers():
        scatter = 0 if _repeat(peaks) else max(peaks) - min(peaks[1:])
    return _Added(before + constants, constants, tuple(peaks), scatter, first, tuple(seconds))


def laid_down(function: Any, in_place: bool) -> dict[str, tf.Variable]:
    """Copies of the variables that `function` may write, as `copy_written` makes them.

    Args:
        function: of the step.
        in_place: the variables have been put aside, and the copies are to lie where they lay.
    """
    with gaps_filled(written_bytes(function)) if in_place else nullcontext():
        return copy_written(function)


Ends = Callable[[Sequence[int]], bool]
"""Whether steps with such peaks are enough."""


def _repeat(peaks: Sequence[int]) -> bool:
    """Whether the last steps held the same bytes."""
    return len(peaks) >= EQUAL_STEPS and len(set(peaks[-EQUAL_STEPS:])) == 1


def _run_step(function: Any, batches: Iterator[Any], copies: dict[str, tf.Variable]) -> list[Any]:
    return run_on_copies(function, next(batches), copies)


def _out_of_the_way(function: Any, copies: dict[str, tf.Variable]) -> dict[str, tf.Variable]:
    """New copies, made while the old ones still lie in the gaps between other buffers.

    The allocator gives out the smallest free piece that is large enough, whole unless half of it is
    enough. Copies in those gaps leave the step one large piece: it would hold up to a sixth less
    than in training, where it gets the gaps. The first run of a step leaves constants for good, so
    it comes before this: they would take the gaps that variables move to in training.
    """
    try:
        return copy_written(function)
    except tf.errors.ResourceExhaustedError:
        return copies


def _reason(error: tf.errors.OpError) -> str:
    """The line of the message that a kernel has written, among those that say where it ran."""
    lines = [each.strip() for each in error.message.splitlines()]
    return next((each for each in reversed(lines) if each and not each.startswith("[[")), "")


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Cancel the functions that still run after so many seconds."""
    with cancellable() as cancel:
        timer = threading.Timer(seconds, cancel)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
