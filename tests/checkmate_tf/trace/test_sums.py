"""Sums of three and more are added in the order of the plain step's kernel, to the last bit.

The truth is the plain function: with Grappler, which sorts what is added by name, with options by
which it does not, and without it.
"""

from __future__ import annotations

import json
import textwrap

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.trace.sums import groups
from tests.processes import printed

SCRIPT = """
    import json
    import numpy as np
    import tensorflow as tf
    from checkmate_tf.graph.extraction import extract_step
    from checkmate_tf.program.rewrite import rewrite_extracted
    from solvers import Schedule

    tf.config.optimizer.set_experimental_options(json.loads(input()))
    g, x, c = (tf.random.stateless_normal((3000,), (7, seed)) for seed in range(3))
    mul, add = (lambda a, b: tf.raw_ops.Mul(x=a, y=b)), (lambda *all: tf.raw_ops.AddN(inputs=all))

    def many(count):
        return lambda g, x, c: add(*(tf.exp(g * (1 + number)) for number in range(count)))

    def gradient_of_broadcast(g, x, c):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.exp(x)
            tape.watch(y)
            z = tf.sin(y + y) * y + c * tf.exp(y)
        return tape.gradient(z, y)

    def gradients_of_means(g, x, c):
        with tf.GradientTape() as tape:
            y = tf.exp(x)
            tape.watch(y)
            z = [tf.reduce_sum(tf.sin(y) * c), 7 * tf.reduce_mean(y), 0.3 * tf.reduce_sum(y)]
        return tape.gradient(z, y)

    def with_constant(make, times=1):
        def case(g, x, c):
            g, x = tf.tile(g, [times]), tf.tile(x, [times])
            y = tf.sin(g)
            return (add(y, make(3000 * times), tf.exp(x)) * y)[-3000:]
        return case

    cases = {
        "in order": lambda g, x, c: add(mul(g, x), tf.exp(g), tf.exp(c)),
        "equal ones": lambda g, x, c: add(mul(g, x), mul(x, g), tf.exp(c)),
        "one twice": lambda g, x, c: (lambda p: add(p, p, tf.exp(c)))(mul(g, x)),
        "arguments": lambda g, x, c: add(g, x, tf.exp(c)),
        "all arguments": lambda g, x, c: add(g, x, c),
        "views": lambda g, x, c: (lambda p: add(tf.reshape(p, [-1]), tf.identity(p), tf.exp(c)))(
            mul(g, x)),
        "read later": lambda g, x, c: (lambda p, q: add(p, q, tf.exp(c)) * p * tf.identity(q))(
            mul(g, x), tf.sin(x)),
        "gradients": gradient_of_broadcast,
        "constant gradients": gradients_of_means,
        "a constant": with_constant(lambda size: tf.fill([size], 0.1) * 0.3),
        "a view of one": with_constant(lambda size: tf.reshape(tf.fill([size, 1], 0.2), [-1])),
        "one of many numbers": with_constant(lambda size: tf.sin(tf.range(0.0, size)), 20),
        "one that is too large": with_constant(lambda size: tf.fill([size], 0.4), 1000),
        **{f"{count} inputs": many(count) for count in (3, 8, 9, 10, 11, 16, 17, 26)},
    }
    # Of its own, so that TensorFlow does not merge what is equal in two cases.
    inputs = [[g, x, c]] * len(cases)
    different = []
    for shape in ((3000,), (None,)):
        function = tf.function(
            lambda *inputs: {name: case(*own) for (name, case), own in zip(cases.items(), inputs)},
            input_signature=[[tf.TensorSpec(shape)] * 3] * len(cases),
        )
        extracted = extract_step(function.get_concrete_function(), 3000)
        ours = rewrite_extracted(extracted, Schedule(range(len(extracted.graph))))(*inputs)
        for name, plain in function(*inputs).items():
            if plain.numpy().tobytes() != ours[name].numpy().tobytes():
                different.append(f"{name} {shape}")
    print(json.dumps([len(cases), different]))
"""


GRADIENTS = ["gradients (3000,)", "constant gradients (3000,)"]
"""Other last bits: of known shapes, Grappler takes away a product by ones, and sorts by the name of
what is left; and it adds up constants before all else."""

UNSORTED = {"arithmetic_optimization": False}
"""Options of Grappler with which it sorts no sums."""

LARGE = [f"one that is too large {shape}" for shape in ("(3000,)", "(None,)")]
"""With those options a constant of 12 MB is added in another place; why is not known."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "known"),
    [({}, GRADIENTS), (UNSORTED, GRADIENTS + LARGE), ({"disable_meta_optimizer": True}, [])],
)
@pytest.mark.parametrize("one_dnn", ["0", "1"])
def test_bits_of_sums(one_dnn, options, known):
    said = printed(textwrap.dedent(SCRIPT), json.dumps(options), TF_ENABLE_ONEDNN_OPTS=one_dnn)
    count, different = json.loads(said.splitlines()[-1])
    assert count > 10
    assert set(different) <= set(known)


@pytest.fixture(params=[{}, UNSORTED], ids=["as it is", "unsorted"])
def options_of_grappler(request):
    before = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options(request.param)
    yield
    tf.config.optimizer.set_experimental_options(
        {each: before.get(each, True) for each in request.param}
    )


@pytest.mark.usefixtures("options_of_grappler")
def test_a_weight_that_is_used_often_gets_the_same_gradient():
    """As in a recurrent network: its gradient is a sum, whose inputs have names in any order."""
    weight = tf.Variable(tf.random.stateless_normal((32, 32), (1, 2)) / 6)

    def step(x):
        with tf.GradientTape() as tape:
            for _ in range(12):
                x = tf.tanh(x @ weight)
            loss = tf.reduce_sum(x)
        return loss, tape.gradient(loss, weight)

    x = tf.random.stateless_normal((2048, 32), (3, 4))
    ours = checkmate_tf.rematerialize(step, budget=0.9, time_limit=2, trial_run=False, verbose=0)
    for theirs, own in zip(tf.function(step)(x), ours(x), strict=True):
        assert theirs.numpy().tobytes() == own.numpy().tobytes()
    assert len(ours.plan.schedule) > len(ours.plan.graph)


def test_every_input_is_added_once():
    for count in range(3, 60):
        assert [place for group in groups(count) for place in group] == list(range(count))
