"""Batches of Keras' `fit`: by which train function each runs, and what is seen of its steps."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import tensorflow as tf

from checkmate_tf.batch_sizes import tell_larger_sizes
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import held_bytes, reset_peak
from checkmate_tf.planning.compiled.without_xla import WithoutXla
from checkmate_tf.planning.monitor import BudgetWatch
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.retries import Retries
from checkmate_tf.trace.first_batches import (
    FirstBatches,
    Shapes,
    largest,
    shapes_of,
    sizes_vary,
)
from checkmate_tf.trace.keras_models import (
    as_keras_made_it,
    forget_functions,
    new_train_function,
    run_training_by,
    switch_off_xla,
    switch_on_xla,
)
from checkmate_tf.trace.train_functions import TrainFunctions
from profiles.tensorflow_internals import compile_mark
from solvers import BudgetError


class FitBatches:
    """The batches that `fit` gives to one model, whose step is planned while they come.

    Attributes:
        model: whose step it is; None where it is of none, so that no batches come.
        when_refused: is called where no plan was found for the batches that came.
        held_already: batches that were looked at, while the step is traced for them.
        may_leave_xla: the train function that is being traced may be made anew, without XLA.
        left: why XLA was left, while a train function without it is traced.
        neither: neither with XLA nor without it there is a plan.
        xla_was_on: what marks the `compile` of the model for which XLA was switched off, if any.
    """

    def __init__(self, model: Any, say_once: Callable[[str, str], None]) -> None:
        """No batch has come.

        Args:
            model: the Keras model that the step belongs to; None where there is none.
            say_once: warns the user of what has not been said before.
        """
        self.model = model
        self._say_once = say_once
        self._watch: BudgetWatch | None = None
        self._retries = Retries()
        self._plan_again: Callable[[Outcome, int, int], None] | None = None
        self._train_functions = TrainFunctions()
        self._first_batches = FirstBatches()
        self._seen: Shapes | None = None  # of the largest batches so far
        self._are_larger = False  # the batches under way, than all before
        self._iterator: Callable[[], Any] = lambda: None
        self._train_by = self._train  # one object, by which it is known again
        self.when_refused: Callable[[], None] = lambda: None
        self.held_already = 0
        self.may_leave_xla = False
        self.left: WithoutXla | None = None
        self.neither: BudgetError | None = None
        self.xla_was_on: Any = None

    def attend(self) -> None:
        """Be asked about each batch, for Keras has made a function of the model."""
        if self.model is not None:
            run_training_by(self.model, self._train_by)

    def begin_trace(self, concrete: Any) -> None:
        """Be asked about each batch: the train function is being traced, with `concrete` in it."""
        function = getattr(self.model, "train_function", None)
        if function is not None:
            self._train_functions.note(as_keras_made_it(function), concrete)
            run_training_by(self.model, self._train_by)

    def sizes_seen(self, tensors: Sequence[Any]) -> Shapes | None:
        """How large arguments were that came from `fit`; None where these seem to be others."""
        seen = self._seen
        if seen is None or len(seen) != len(tensors):
            return None
        return seen if all(map(_may_have_shape, tensors, seen)) else None

    def note_sizes(self, shapes: Shapes) -> None:
        """Batches of such sizes come from `fit`."""
        known = self._seen
        alike = known is not None and [*map(len, known)] == [*map(len, shapes)]
        self._seen = largest(known, shapes) if alike and known is not None else shapes

    def watch_by(self, watch: BudgetWatch | None) -> None:
        """Let `watch` look at the steps from now on."""
        if self._watch is not None:
            self._watch.end()  # over the batch under way, in which planning took memory
        self._watch = watch

    def plan_by(
        self,
        planned: Outcome | None,
        coming: int = 0,
        plan_again: Callable[[Outcome, int, int], None] | None = None,
    ) -> None:
        """Steps run by this plan from now on.

        Args:
            planned: the step and its plan; None where it has none.
            coming: bytes of batches that may not be on the device yet before a step.
            plan_again: finds a leaner plan than one, within so many bytes of which so many are left
                alone, or raises a CheckmateError.
        """
        self._plan_again = plan_again
        self._retries.plan_by(planned, coming)

    def end_trace(self) -> None:
        """What planning took is no part of the first step."""
        if self._watch is not None:
            reset_peak()

    def plan_again(self) -> None:
        """Let Keras make its functions anew with the next batch."""
        forget_functions(self.model)

    def _train(self, function: Callable[..., Any], iterator: Any) -> Any:
        """Run a batch by the train function for its size, and say if it is over budget."""
        if isinstance(iterator, types.GeneratorType):  # that of `train_on_batch`, asked for twice
            iterator = [*iterator]
        its_own = as_keras_made_it(function)
        fitting = self._train_functions.fitting(
            its_own, iterator, partial(new_train_function, self.model, self._train_by)
        )
        if fitting is not its_own:
            function = fitting
        at_once, held = self.model.steps_per_execution, held_bytes() or 0
        begins, is_new = self._train_functions.begins(fitting, iterator), self._is_new(iterator)
        if isinstance(iterator, list):
            sizes = shapes_of(iterator)
            self._are_larger = self._exceed_those_seen(sizes)
            is_another = self._seen is None or self._are_larger
            at_risk = is_another and _can_fail()
            self.note_sizes(sizes)
        else:
            may_be_others = begins or is_new
            shapes, iterator = self._looked_at(iterator, at_once, may_be_others)
            is_larger = self._are_larger = False
            if shapes is not None:
                is_larger = self._exceed_those_seen(shapes)
                if is_larger and not begins:
                    function = self._made_for_larger(shapes)
                self.note_sizes(shapes)
                self.held_already = at_once + may_be_others
            is_another = begins or is_larger
            at_risk = is_another and _can_fail()
            at_risk = at_risk or (may_be_others and self._retries.may_fail(held))
        at_risk = at_risk or self._retries.is_at_risk(held)
        batches = self._first_batches.repeatable(iterator, at_once) if at_risk else None
        watch = self._watch
        step = partial(self._run, function, iterator if batches is None else batches(), watch)
        self.may_leave_xla = True
        try:
            again = None if batches is None else partial(self._again, batches)
            result = self._retries.run(step, again, held, at_risk, not is_another)
        except BudgetError:
            self._seen = None  # smaller ones may come next
            self.when_refused()
            raise
        finally:
            self.may_leave_xla = False
            self.held_already = 0
        if self._watch is not watch and self._watch is not None:
            self._watch.look(held)  # after the first step by a new plan
        return result

    def _looked_at(self, iterator: Any, at_once: int, ahead: bool) -> tuple[Shapes | None, Any]:
        """The shapes of the next batches where they may be larger than those before, and they."""
        if ahead or sizes_vary(iterator):
            return self._first_batches.looked_at(iterator, at_once, ahead)
        return None, self._first_batches.next_ones(iterator, at_once)

    def _made_for_larger(self, shapes: Shapes) -> Callable[..., Any]:
        """Another train function, for batches larger than all before; it is said."""
        tell_larger_sizes(shapes)
        return cast(Callable[..., Any], new_train_function(self.model, self._train_by))

    def _is_new(self, iterator: Any) -> bool:
        """Whether these are the first batches of an epoch, on a device whose limit they may reach.

        They may be larger, and what ran in between may have left the free memory in other pieces.
        """
        if not isinstance(iterator, tf.data.Iterator) or iterator is self._iterator():
            return False
        self._iterator = weakref.ref(iterator)
        return _can_fail()

    def _exceed_those_seen(self, shapes: Shapes) -> bool:
        seen = self._seen
        if seen is None or [*map(len, seen)] != [*map(len, shapes)]:
            return False
        return largest(seen, shapes) != seen

    def _run(self, function: Callable[..., Any], iterator: Any, watch: BudgetWatch | None) -> Any:
        """What a train function returns, made anew without XLA where there is no plan with it."""
        with current_device().as_planned():
            try:
                return function(iterator) if watch is None else watch.run(function, iterator)
            except WithoutXla as left:
                return self._trained_without_xla(left, iterator)

    def _again(
        self, batches: Callable[[], Any], planned: Outcome, budget: int, margin: int
    ) -> Callable[[], Any]:
        """The same batches by a leaner plan, as `retries.PlanAgain`."""
        assert self._plan_again is not None
        self.held_already = self.model.steps_per_execution
        if self._are_larger:
            self._are_larger = False  # what is traced now is a step that has no plan yet
        else:
            self._plan_again(planned, budget, margin)
        function = new_train_function(self.model, self._train_by)
        return partial(self._run, function, batches(), None)

    def _trained_without_xla(self, left: WithoutXla, iterator: Any) -> Any:
        """Run a batch by a plan without XLA, which is said; none with it is to be had."""
        compile_of_keras = compile_mark(self.model)
        switch_off_xla(self.model)
        self.may_leave_xla = False
        self.left = left
        try:
            result = new_train_function(self.model, self._train_by)(iterator)
        except BudgetError as error:
            switch_on_xla(self.model, compile_of_keras)
            self.left, self.neither = None, left.and_without(error)
            return new_train_function(self.model, self._train_by)(iterator)
        finally:
            self.left = self.neither = None
        self.xla_was_on = compile_of_keras
        self._say_once("xla-left", left.in_words)
        return result


def _can_fail() -> bool:
    return current_device().raises_when_full()


def _may_have_shape(tensor: Any, shape: tuple[int, ...]) -> bool:
    return bool(tensor.shape.is_compatible_with(shape))
