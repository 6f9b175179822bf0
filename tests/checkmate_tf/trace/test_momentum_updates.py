"""Updates by momentum that one kernel does: which are found, and that they keep every bit."""

from __future__ import annotations

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.in_place import in_place
from checkmate_tf.program.rewrite import as_function
from checkmate_tf.trace.momentum_updates import KERNEL, has_same_bits
from checkmate_tf.trace.program import resolve
from profiles.devices import default_device
from solvers import Schedule
from tests.costs import sweep
from tests.steps import random_batch, small_cnn

pytestmark = [
    pytest.mark.skipif(default_device() != "CPU:0", reason="other devices have no one order"),
    pytest.mark.skipif(
        not has_same_bits(tf.float32), reason="this processor's kernel rounds otherwise"
    ),
]

SHAPE = (33, 65)

OPTIMIZERS = {
    "momentum": {},
    "Nesterov": {"nesterov": True},
    "decay and clipping": {"weight_decay": 1e-3, "global_clipnorm": 0.5},
    "average of weights": {"use_ema": True},
    "rate that falls": {"learning_rate": keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.9)},
}


def rewritten(concrete):
    extracted = extract_step(concrete)
    return as_function(extracted, Schedule(range(len(extracted.graph))))


def kernels(run):
    return [each for each in run.graph.get_operations() if each.type == KERNEL]


@pytest.fixture
def without_grappler():
    """It computes products with constants in another order, where it may."""
    before = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    yield
    # What it was, said as a whole: one option alone would leave the others.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False, **before})


@pytest.mark.parametrize("name", sweep(OPTIMIZERS))
@pytest.mark.usefixtures("without_grappler")
def test_a_model_trains_to_the_same_bits(monkeypatch, name):
    """Beside TensorFlow's single operations, in the same order."""
    model = small_cnn(side=32)
    options = {"learning_rate": 0.05, "momentum": 0.9, **OPTIMIZERS[name]}
    model.compile(keras.optimizers.SGD(**options), model.loss, jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    batch = random_batch(side=32)
    concrete = tf.function(model.train_step).get_concrete_function(batch)
    variables = [*model.variables, *model.optimizer.variables]
    begin = [each.numpy() for each in variables]
    runs = [rewritten(concrete)]
    assert len(kernels(runs[0])) == len(model.trainable_variables)
    monkeypatch.setattr("checkmate_tf.program.in_place.momentum_updates", lambda *_: [])
    runs.append(rewritten(tf.function(model.train_step).get_concrete_function(batch)))
    assert not kernels(runs[1])
    trained = []
    for run in runs:
        for each, value in zip(variables, begin, strict=True):
            each.assign(value)
        for _ in range(4):
            run(*tf.nest.flatten(batch))
        trained.append([each.numpy().tobytes() for each in variables])
    assert trained[0] == trained[1]
    assert trained[0] != [each.tobytes() for each in begin]


@pytest.mark.parametrize("adds", ["what is read", "what was written"])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_a_step_written_by_hand_has_the_bits_of_the_plain_step(dtype, adds):
    def variables():
        start = tf.random.stateless_normal((2, *SHAPE), (3, 4), dtype=dtype)
        return tf.Variable(start[0]), tf.Variable(start[1])

    def step_on(weight, slot):
        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weight))
            new = 0.9 * slot - 0.1 * tape.gradient(loss, weight)
            slot.assign(new)
            weight.assign_add(slot if adds == "what is read" else new)
            return loss

        return tf.function(step).get_concrete_function(tf.TensorSpec((7, SHAPE[0]), dtype))

    ours, theirs = variables(), variables()
    run, plain = rewritten(step_on(*ours)), step_on(*theirs)
    assert len(kernels(run)) == 1
    for number in range(5):
        x = tf.random.stateless_normal((7, SHAPE[0]), (number, 0), dtype=dtype)
        np.testing.assert_array_equal(run(x)[0], plain(x))
    for one, other in zip(ours, theirs, strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()


def update(weight, slot, gradient, rate=0.1, momentum=0.9):
    slot.assign(slot * momentum - gradient * rate)
    weight.assign_add(slot)


def unlike_the_kernel():
    """By name: a step on (weight, slot, gradient) in which the kernel would change something."""

    def returns_the_slot(weight, slot, gradient):
        update(weight, slot, gradient)
        return slot.read_value()

    def reads_the_slot_before(weight, slot, gradient):
        norm = tf.norm(slot)
        update(weight, slot, gradient)
        return norm

    def reads_the_slot_after(weight, slot, gradient):
        update(weight, slot, gradient)
        return tf.norm(slot)

    def returns_the_difference(weight, slot, gradient):
        new = slot * 0.9 - gradient * 0.1
        slot.assign(new)
        weight.assign_add(new)
        return new

    def twice(weight, slot, gradient):
        update(weight, slot, gradient)
        update(weight, slot, gradient)

    def subtracts(weight, slot, gradient):
        slot.assign(slot * 0.9 - gradient * 0.1)
        weight.assign_sub(slot)

    def other_order(weight, slot, gradient):
        slot.assign(gradient * 0.1 - slot * 0.9)
        weight.assign_add(slot)

    def adds(weight, slot, gradient):
        slot.assign(slot * 0.9 + gradient * 0.1)
        weight.assign_add(slot)

    def a_momentum_for_each(weight, slot, gradient):
        update(weight, slot, gradient, momentum=tf.fill(SHAPE, 0.9))

    def a_row_as_gradient(weight, slot, gradient):
        update(weight, slot, gradient[:1])

    def another_rate_by_nesterov(weight, slot, gradient):
        slot.assign(slot * 0.9 - gradient * 0.1)
        weight.assign_add(slot * 0.9 - gradient * 0.2)

    def old_slot(weight, slot, gradient):
        old = slot.read_value()
        slot.assign(slot * 0.9 - gradient * 0.1)
        weight.assign_add(old)

    def adds_the_old_slot_first(weight, slot, gradient):
        weight.assign_add(slot)
        slot.assign(slot * 0.9 - gradient * 0.1)

    def adds_the_old_slot_by_nesterov(weight, slot, gradient):
        weight.assign_add(slot * 0.9 - gradient * 0.1)
        slot.assign(slot * 0.9 - gradient * 0.1)

    def is_checked(weight, slot, gradient):
        slot.assign(tf.debugging.check_numerics(slot * 0.9 - gradient * 0.1, "no number"))
        weight.assign_add(slot)

    def is_turned(weight, slot, gradient):
        slot.assign(slot * 0.9 - gradient * 0.1)
        weight.assign_add(tf.reshape(tf.transpose(slot), SHAPE))

    def of_itself(weight, slot, gradient):
        slot.assign(slot * 0.9 - gradient * 0.1)
        slot.assign_add(slot)

    def in_a_loop(weight, slot, gradient):
        for _ in tf.range(2):
            update(weight, slot, gradient)

    def python_looks(weight, slot, gradient):
        new = slot * 0.9 - gradient * 0.1
        write = tf.raw_ops.AssignVariableOp(resource=slot.handle, value=new)
        with tf.control_dependencies([write]):
            seen = tf.numpy_function(lambda: slot.numpy().sum(), [], tf.float32)
        with tf.control_dependencies([seen]):
            weight.assign_add(slot)
        return seen

    return {key: value for key, value in locals().items() if callable(value)}


def three_steps(name, ours):
    """The bits of all that three steps return, and of both variables afterwards."""
    start = tf.random.stateless_normal((3, *SHAPE), (1, 2))
    weight, slot = tf.Variable(start[0]), tf.Variable(start[1])
    step = tf.function(unlike_the_kernel()[name])
    concrete = tf.function(lambda gradient: step(weight, slot, gradient)).get_concrete_function(
        tf.TensorSpec(SHAPE)
    )
    run = rewritten(concrete) if ours else concrete
    if ours:
        assert not kernels(run)
    returned = [tf.nest.flatten(run(start[2])) for _ in range(3)]
    values = [each for each in tf.nest.flatten(returned) if each is not None]
    return [each.numpy().tobytes() for each in (*values, weight, slot)]


@pytest.mark.parametrize("name", unlike_the_kernel())
def test_other_updates_run_as_they_are_written(name):
    assert three_steps(name, ours=True) == three_steps(name, ours=False)


def test_the_kernel_waits_for_readers_of_the_weight():
    weight, slot = (tf.Variable(tf.ones(SHAPE)) for _ in range(2))

    @tf.function
    def step(gradient):
        before = tf.reduce_sum(weight)
        update(weight, slot, gradient)
        return before, tf.reduce_sum(weight)

    run = rewritten(step.get_concrete_function(tf.TensorSpec(SHAPE)))
    assert len(kernels(run)) == 1
    for number in range(3):
        total = float(tf.reduce_sum(weight))
        before, after = run(tf.ones(SHAPE) * number)
        assert float(before) == total
        assert float(after) == float(tf.reduce_sum(weight))


def test_what_the_kernel_replaces_is_not_counted():
    weight, slot = (tf.Variable(tf.ones(SHAPE)) for _ in range(2))

    @tf.function
    def step(gradient):
        update(weight, slot, tf.tanh(gradient))

    program = resolve(step.get_concrete_function(tf.TensorSpec(SHAPE)))
    updates = in_place(program)
    ((last, kernel),) = updates.kernels.items()
    assert program.operations[last].type == "AssignAddVariableOp"
    kinds = sorted(program.operations[each].type for each in updates.left_out)
    assert kinds == ["AssignVariableOp", "Mul", "Mul", "Sub"]
    (read,) = kernel.reads
    assert program.operations[read.producer].type == "Tanh"
    assert kernel.inputs[0].name != kernel.inputs[1].name


def random_statements(seed):
    """A step of a few updates, reads and returns in a random order."""
    numbers = np.random.default_rng(seed)
    kinds = numbers.choice(
        ["write", "add slot", "add new", "add both", "step again", "return slot", "return weight"],
        size=numbers.integers(2, 7),
        p=[0.35, 0.25, 0.1, 0.1, 0.1, 0.05, 0.05],
    )
    which = numbers.integers(0, 2, size=(len(kinds), 2))

    def step(weights, slots, gradient):
        returned, new = [], [gradient, gradient]
        for kind, (one, other) in zip(kinds, which, strict=True):
            weight, slot = weights[one], slots[other if kind == "add both" else one]
            if kind == "write":
                new[one] = slot * 0.9 - gradient * 0.1
                slot.assign(new[one])
            elif kind in ("add slot", "add both"):
                weight.assign_add(slot)
            elif kind == "add new":
                weight.assign_add(new[other])
            elif kind == "step again":
                weight.assign_add(slot * 0.9 - gradient * 0.1)
            else:
                returned.append((slot if kind == "return slot" else weight).read_value())
        return returned

    return step


@pytest.mark.slow
def test_any_order_of_updates_has_the_bits_of_the_plain_step():
    found = 0
    for seed in range(60):
        results = []
        for ours in (True, False):
            start = tf.random.stateless_normal((5, *SHAPE), (seed, 2))
            weights, slots = (
                [tf.Variable(start[place + each]) for each in (0, 1)] for place in (0, 2)
            )
            step = random_statements(seed)
            concrete = tf.function(functools.partial(step, weights, slots)).get_concrete_function(
                tf.TensorSpec(SHAPE)
            )
            run = rewritten(concrete) if ours else concrete
            found += len(kernels(run))
            values = [run(start[4]) for _ in range(3)]
            values = [*tf.nest.flatten(values), *weights, *slots]
            results.append([each.numpy().tobytes() for each in values if each is not None])
        assert results[0] == results[1], seed
    assert found > 5


def test_a_function_that_is_traced_meanwhile_is_traced_once():
    """TensorFlow traces a function again where variables are made while it is traced."""
    traces = []

    @tf.function
    def step(x):
        traces.append(has_same_bits.__wrapped__(tf.float32))
        return x

    step(tf.constant(1.0))
    assert traces == [True]
