"""A plan belongs to what was traced: results are those of the step without the decorator.

Every test compares with the plain step: Keras' own `fit`, or `tf.function`.
"""

from __future__ import annotations

import copy
import gc
import json
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import checkmate_tf
from checkmate_tf.measure import held_bytes
from solvers import BudgetError, CheckmateError

QUICK = {"budget": 0.9, "solver": "linearized_greedy", "rehearse": False}
"""By a rule, which takes the same time and finds the same on every machine."""
SIZE, BATCH = 64, 256


def dense_model(seed=0, depth=6):
    """Layers whose activations outweigh their kernels."""
    keras.utils.set_random_seed(seed)
    inputs = x = keras.Input((SIZE,))
    for number in range(depth):
        x = layers.Dense(SIZE, activation="tanh", name=f"dense_{number}")(x)
    return keras.Model(inputs, layers.Dense(1, name="last")(x))


def numbers(batch=BATCH, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(batch, SIZE)).astype("float32")
    return x, x[:, :1].copy()


def variables(model):
    return [np.array(each) for each in (*model.variables, *model.optimizer.variables)]


def same(ours, plain):
    assert len(ours) == len(plain)
    for one, other in zip(ours, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def both(story):
    """The variables after `story(model, decorate)`, with the decorator and without."""

    def decorated(model, **options):
        model.train_step = checkmate_tf.rematerialize(model.train_step, **{**QUICK, **options})

    ours, plain = dense_model(), dense_model()
    story(ours, decorated)
    story(plain, lambda model, **options: None)
    same(variables(ours), variables(plain))
    return ours


def fit(model, batch=BATCH, **options):
    model.fit(*numbers(2 * batch), batch_size=batch, epochs=1, verbose=0, shuffle=False, **options)


def test_a_new_optimizer_is_used_after_a_second_compile():
    def story(model, decorate):
        decorate(model, batch_size=BATCH)
        model.compile("sgd", "mse", jit_compile=False)
        fit(model)
        model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=False)
        fit(model)

    assert int(both(story).optimizer.iterations) == 2


def test_a_new_optimizer_is_used_by_a_loop_of_ones_own():
    def story(model, decorate):
        decorate(model)
        x, y = map(tf.constant, numbers())
        for optimizer in ("sgd", keras.optimizers.Adam(0.01)):
            model.compile(optimizer, "mse", jit_compile=False)
            model.optimizer.build(model.trainable_variables)
            for _ in range(2):
                model.train_step((x, y))

    assert int(both(story).optimizer.iterations) == 2


@pytest.mark.parametrize("in_fit", [True, False])
def test_what_is_trainable_may_change_between_fits(in_fit):
    def train(model):
        if in_fit:
            fit(model)
        else:
            model.train_step(tuple(map(tf.constant, numbers())))

    def story(model, decorate):
        decorate(model, batch_size=BATCH)
        for trainable in (False, True):
            model.get_layer("dense_1").trainable = trainable
            model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
            model.optimizer.build(model.trainable_variables)
            train(model)

    both(story)


@pytest.mark.parametrize("how", ["method", "closure", "global"])
def test_a_decorator_after_fit_is_not_ignored(how):
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    fit(model)
    if how == "method":
        step = checkmate_tf.rematerialize(model.train_step, batch_size=BATCH, **QUICK)
    elif how == "closure":
        original = model.train_step
        step = checkmate_tf.rematerialize(lambda data: original(data), batch_size=BATCH, **QUICK)
    else:
        names = {"model": model, "original": model.train_step}
        exec("def own_step(data):\n    return original(data) if model else None", names)
        step = checkmate_tf.rematerialize(names["own_step"], batch_size=BATCH, **QUICK)
    model.train_step = step
    fit(model)
    assert step.plan is not None


def test_to_decorate_twice_is_to_plan_anew():
    """As when a cell of a notebook runs twice."""
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    budgets = []
    for budget in (0.95, 0.8):
        model.train_step = checkmate_tf.rematerialize(
            model.train_step, batch_size=BATCH, **{**QUICK, "budget": budget}
        )
        fit(model)
        budgets.append(model.train_step.plan.budget)
    assert budgets[1] < budgets[0]
    assert not hasattr(model.train_step.function, "plan")


def test_models_with_the_same_name_as_arguments_are_two():
    def make():
        models = [dense_model(seed) for seed in (1, 2)]
        for model in models:
            model.name = "twin"
        return models

    def step(model, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        for weight, gradient in zip(
            model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
        ):
            weight.assign_sub(0.1 * gradient)
        return loss

    x, y = map(tf.constant, numbers())
    ours, plain = make(), make()
    rematerialized = checkmate_tf.rematerialize(step, **QUICK)
    traced = tf.function(step)
    for one, other in zip(ours, plain, strict=True):
        np.testing.assert_allclose(rematerialized(one, x, y), traced(other, x, y), rtol=1e-5)
    for one, other in zip(ours, plain, strict=True):
        same([np.array(v) for v in one.variables], [np.array(v) for v in other.variables])


def test_variables_as_arguments_are_told_apart():
    """Of equal shapes, too, also where only the values in them differ."""

    def step(weights, x):
        with tf.GradientTape() as tape:
            y = x
            for _ in range(8):
                y = tf.tanh(y @ weights[0])
            loss = tf.reduce_sum(y)
        weights[0].assign_sub(1e-5 * tape.gradient(loss, weights[0]))
        return loss

    def make():
        return [tf.Variable(tf.eye(SIZE) * number) for number in (0.5, 0.9)]

    step_of_ours = checkmate_tf.rematerialize(step, **QUICK)
    x = tf.random.stateless_normal((512, SIZE), (1, 2))
    ours, plain = make(), make()
    for _ in range(2):
        for one, other in zip(ours, plain, strict=True):
            loss = step_of_ours([one], x)
            np.testing.assert_allclose(loss, tf.function(step)([other], x), rtol=1e-4)
    same([each.numpy() for each in ours], [each.numpy() for each in plain])


class Scale:
    """All scales look alike."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return "Scale()"


def scaled_loss(scale, x):
    return tf.reduce_sum(tf.exp(x) * tf.exp(-x)) * scale.value


def test_objects_with_equal_texts_are_two():
    step = checkmate_tf.rematerialize(scaled_loss, **{**QUICK, "budget": 1.0})
    x = tf.ones((256, 256))
    scales = [Scale(1.0), Scale(2.0)]
    assert [float(step(each, x)) for each in scales] == [256.0**2, 2 * 256.0**2]


def loss_and_gradient(weights, depth=8):
    def step(x, rate=1.0):
        with tf.GradientTape() as tape:
            for _ in range(depth):
                x = tf.tanh(x @ weights)
            loss = rate * tf.reduce_sum(x)
        return loss, tape.gradient(loss, weights)

    return step


@pytest.fixture
def weights():
    return tf.Variable(tf.random.stateless_normal((SIZE, SIZE), (3, 4)) / 8)


def test_a_changing_number_keeps_the_plan_and_is_named(weights):
    plain = loss_and_gradient(weights)
    step = checkmate_tf.rematerialize(plain, **QUICK)
    x = tf.ones((1024, SIZE))
    solutions = []

    def train(rate):
        loss, gradient = step(x, rate)
        expected_loss, expected = tf.function(plain)(x, rate)
        np.testing.assert_allclose(loss, expected_loss, rtol=1e-4)
        np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-4)
        solutions.append(step.plan.solution)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rate in (0.1, 0.2, 0.3):
            train(rate)
    with pytest.warns(UserWarning, match=r"'rate'.*tensor") as caught:
        train(0.4)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(0.5)
    assert all(each is solutions[0] for each in solutions)


def test_arguments_as_python_binds_them(weights):
    step = checkmate_tf.rematerialize(loss_and_gradient(weights), **QUICK)
    x = tf.ones((512, SIZE))
    first = float(step(x)[0])
    assert float(step(x=x)[0]) == first
    assert float(step(x, rate=1.0)[0]) == first
    assert float(step(rate=2.0, x=x)[0]) == pytest.approx(2 * first, rel=1e-5)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        step()


def test_a_larger_batch_than_was_said_gets_a_plan_of_its_own(weights):
    step = checkmate_tf.rematerialize(loss_and_gradient(weights), batch_size=64, **QUICK)
    step(tf.ones((64, SIZE)))
    small = step.plan
    with pytest.warns(UserWarning, match=r"batch of 512.*batch_size=64") as caught:
        step(tf.ones((512, SIZE)))
    assert caught[0].filename == __file__
    large = step.plan
    assert large.baseline_peak > small.baseline_peak
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(tf.ones((512, SIZE)))
        step(tf.ones((100, SIZE)))
    assert step.plan is large


def test_a_larger_batch_than_was_said_in_fit():
    """The graph is built by then; Keras makes another for the steps that follow."""
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    model.train_step = checkmate_tf.rematerialize(model.train_step, batch_size=4, **QUICK)
    x, y = numbers(8 * 32)
    with pytest.warns(UserWarning, match=r"batch of 32.*batch_size=4") as caught:
        model.fit(x, y, batch_size=32, epochs=2, verbose=0, shuffle=False)
    assert len([each for each in caught if "batch of" in str(each.message)]) == 1
    sized = {out for node in model.train_step.plan.graph.nodes for out in [node.memory]}
    assert max(sized) >= 32 * SIZE * 4
    plain = dense_model()
    plain.compile("sgd", "mse", jit_compile=False)
    plain.fit(x, y, batch_size=32, epochs=2, verbose=0, shuffle=False)
    same(variables(model), variables(plain))


def test_functions_that_run_eagerly_run_the_plain_step(weights):
    step = checkmate_tf.rematerialize(loss_and_gradient(weights), **QUICK)
    x = tf.ones((256, SIZE))
    tf.config.run_functions_eagerly(True)
    try:
        with pytest.warns(UserWarning, match="eagerly"):
            loss, _ = step(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert float(step(x)[0]) == float(loss)
    finally:
        tf.config.run_functions_eagerly(False)
    assert step.plan is None
    assert float(step(x)[0]) == pytest.approx(float(loss), rel=1e-5)
    assert step.plan is not None


def test_a_model_that_runs_eagerly_runs_the_plain_step():
    model = dense_model()
    model.train_step = checkmate_tf.rematerialize(model.train_step, **QUICK)
    model.compile("sgd", "mse", run_eagerly=True)
    with pytest.warns(UserWarning, match="eagerly"):
        fit(model)
    assert model.train_step.plan is None


def test_a_share_counts_from_the_largest_signature(weights):
    step = checkmate_tf.rematerialize(
        loss_and_gradient(weights), budget=0.6, time_limit=1, rehearse=False
    )
    step(tf.ones((8192, SIZE)))
    assert step.plan.budget < step.plan.baseline_peak
    step(tf.ones((7, SIZE)))
    assert step.plan.budget > step.plan.baseline_peak
    assert len(step.plan.schedule) == len(step.plan.graph)


def test_training_goes_on_when_a_smaller_batch_comes(weights):
    """Even where its plan can't keep a budget that is used up by what else is held now."""
    plain = loss_and_gradient(weights)
    x = tf.ones((4096, SIZE))
    peak = checkmate_tf.measure_peak(tf.function(plain), x)
    step = checkmate_tf.rematerialize(plain, budget=int(0.9 * peak), time_limit=1, rehearse=False)
    step(x)
    beside = tf.ones((int(0.9 * peak) // 4,))
    small = tf.ones((1024, SIZE))
    with pytest.warns(UserWarning, match="too small"):
        loss, _ = step(small)
    np.testing.assert_allclose(loss, tf.function(plain)(small)[0], rtol=1e-4)
    del beside


def test_a_smaller_last_batch_of_a_data_set_with_known_shapes():
    """Keras traces again, for batches of any size."""
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    model.train_step = checkmate_tf.rematerialize(model.train_step, **QUICK)
    x, y = numbers(100)
    pieces = [(x[:64], y[:64]), (x[64:], y[64:])]
    for piece in pieces:
        model.fit(tf.data.Dataset.from_tensors(piece), verbose=0)
    plain = dense_model()
    plain.compile("sgd", "mse", jit_compile=False)
    for piece in pieces:
        plain.fit(tf.data.Dataset.from_tensors(piece), verbose=0)
    same(variables(model), variables(plain))


def test_too_small_a_budget_inside_a_function_of_ones_own(weights):
    step = checkmate_tf.rematerialize(
        loss_and_gradient(weights), **{**QUICK, "budget": "1MB"}, time_limit=1
    )

    @tf.function
    def outer(x):
        return step(x)

    with pytest.raises(BudgetError, match=r"^budget .* is too small") as caught:
        outer(tf.ones((1024, SIZE)))
    assert caught.value.least > 2**20


def test_a_budget_error_in_fit_is_a_budget_error():
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    model.train_step = checkmate_tf.rematerialize(
        model.train_step, budget=100_000, batch_size=BATCH, time_limit=1
    )
    with pytest.raises(BudgetError, match=r"^budget .* is too small"):
        fit(model)


class Owner(keras.Model):
    """The decorator where users put it."""

    def __init__(self):
        super().__init__()
        self.hidden = [layers.Dense(SIZE, activation="tanh") for _ in range(6)]
        self.last = layers.Dense(1)

    def call(self, x):
        for layer in self.hidden:
            x = layer(x)
        return self.last(x)

    @checkmate_tf.rematerialize(batch_size=BATCH, **QUICK)
    def train_step(self, data):
        return super().train_step(data)


def method_of_a_class():
    model = Owner()
    model.compile("sgd", "mse", jit_compile=False)
    return model


def method_of_a_model():
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    model.train_step = checkmate_tf.rematerialize(model.train_step, batch_size=BATCH, **QUICK)
    return model


def trained(make, in_fit):
    """Weak references to a model that has been trained, and to a variable of it."""
    model = make()
    if in_fit:
        fit(model)
    else:
        x, y = map(tf.constant, numbers())
        model(x)
        model.optimizer.build(model.trainable_variables)
        model.train_step((x, y))
    assert model.train_step.plan is not None
    return [weakref.ref(model), weakref.ref(model.weights[0].value)]


@pytest.mark.parametrize("make", [method_of_a_class, method_of_a_model])
@pytest.mark.parametrize("in_fit", [True, False])
def test_no_model_outlives_its_last_reference(make, in_fit):
    alive = [each for _ in range(3) for each in trained(make, in_fit)]
    keras.utils.clear_session()
    gc.collect()
    assert [each for each in alive if each() is not None] == []


def test_a_copy_of_a_model_trains_itself():
    class Plain:
        def __init__(self):
            self.weights = tf.Variable(tf.ones((SIZE, SIZE)))

        @checkmate_tf.rematerialize(**QUICK)
        def step(self, x):
            self.weights.assign_add(tf.ones_like(self.weights))
            return tf.reduce_sum(tf.exp(x) * tf.exp(-x))

    x = tf.ones((512, SIZE))
    one = Plain()
    one.step(x)
    for other in (copy.copy(one), copy.deepcopy(one)):
        other.weights = tf.Variable(tf.zeros((SIZE, SIZE)))
        before = one.weights.numpy().copy()
        other.step(x)
        assert np.array_equal(one.weights, before)
        assert np.array_equal(other.weights, np.ones((SIZE, SIZE)))


def test_two_threads_call_one_step(weights):
    plain = loss_and_gradient(weights)
    inputs = [number * tf.ones((256, SIZE)) / 10 for number in range(1, 9)]
    expected = [tf.function(plain)(x)[1].numpy() for x in inputs]
    step = checkmate_tf.rematerialize(plain, **QUICK)
    found = [None] * len(inputs)
    plans = set()

    def work(first):
        for number in range(first, len(inputs), 2):
            found[number] = step(inputs[number])[1].numpy()
            plans.add(id(step.plan))

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 1)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    assert len(plans) == 1


def test_a_concrete_function_is_planned(weights):
    plain = tf.function(loss_and_gradient(weights))
    x = tf.random.stateless_normal((512, SIZE), (1, 2))
    step = checkmate_tf.rematerialize(plain.get_concrete_function(x), **QUICK)
    np.testing.assert_allclose(step(x)[0], plain(x)[0], rtol=1e-4)
    assert step.plan is not None


def test_a_method_that_is_a_tf_function_is_planned_for_each_object():
    class Trainer:
        def __init__(self, factor):
            self.weights = tf.Variable(factor * tf.eye(SIZE))

        @checkmate_tf.rematerialize(**QUICK)
        @tf.function
        def step(self, x):
            return loss_and_gradient(self.weights)(x)

    x = tf.random.stateless_normal((512, SIZE), (1, 2))
    for each in (Trainer(0.5), Trainer(0.7)):
        expected = tf.function(loss_and_gradient(each.weights))(x)[0]
        np.testing.assert_allclose(each.step(x)[0], expected, rtol=1e-4)
        assert each.step.plan is not None


def test_an_input_signature_is_kept(weights):
    signature = [tf.TensorSpec((None, SIZE), tf.float32)]
    plain = tf.function(lambda x: loss_and_gradient(weights)(x), input_signature=signature)
    step = checkmate_tf.rematerialize(plain, batch_size=512, **QUICK)
    x = np.full((512, SIZE), 0.1)
    np.testing.assert_allclose(step(x.tolist())[0], plain(x.tolist())[0], rtol=1e-4)
    assert step.plan is not None
    with pytest.raises(TypeError, match="cast"):
        step(tf.ones((3, SIZE + 1)))


@pytest.mark.parametrize("value", [tf.ragged.constant([[1.0], [2.0, 3.0]]), tf.sparse.eye(3)])
def test_arguments_whose_size_depends_on_values_are_refused(value):
    step = checkmate_tf.rematerialize(lambda x: x, **QUICK)
    with pytest.raises(CheckmateError, match=f"{type(value).__name__}.*make it dense"):
        step(value)


def test_planning_leaves_no_batch_allocated(weights):
    def step(x):
        with tf.GradientTape() as tape:
            y = x
            for _ in range(8):
                y = tf.tanh(y @ weights)
        # Without a sum, whose gradient TensorFlow keeps as a constant of the batch's size.
        return tape.gradient(y, weights, output_gradients=x)

    kept = checkmate_tf.rematerialize(step, budget=0.9, time_limit=2)
    x = tf.ones((20_000, SIZE))
    gc.collect()
    gc.disable()
    try:
        before = held_bytes()
        kept(x)
        left = held_bytes() - before
    finally:
        gc.enable()
    assert kept.plan.measured_peak is not None
    assert left < 20_000 * SIZE * 4 / 2


REPLICAS = """
    import json
    import keras
    import numpy as np
    import tensorflow as tf
    import checkmate_tf
    from solvers import CheckmateError

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    QUICK = dict(budget=0.9, solver="linearized_greedy", rehearse=False)

    with strategy.scope():
        weights = tf.Variable(tf.random.stateless_normal((64, 64), (3, 4)) / 8)
        counter = tf.Variable(
            0.0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
            trainable=False,
        )
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((64,))] + [keras.layers.Dense(64) for _ in range(6)])
        model.compile("sgd", "mse", jit_compile=False)

    def step(x):
        counter.assign_add(tf.cast(tf.shape(x)[0], tf.float32))
        with tf.GradientTape() as tape:
            y = x
            for _ in range(8):
                y = tf.tanh(y @ weights)
            loss = tf.reduce_sum(y)
        return loss, tape.gradient(loss, weights)

    x = tf.random.stateless_normal((128, 64), (1, 2))
    halves = strategy.experimental_distribute_values_from_function(
        lambda context: tf.split(x, 2)[context.replica_id_in_sync_group])

    def on_every_replica(outer):
        def run(one):
            def replicated(values):
                loss, gradient = strategy.run(one, args=(values,))
                return (strategy.reduce("SUM", loss, axis=None),
                        strategy.reduce("SUM", gradient, axis=None))
            return outer(replicated)(halves)

        for each in strategy.experimental_local_results(counter):
            each.assign(0.0)
        kept = checkmate_tf.rematerialize(step, **QUICK)
        loss, gradient = run(kept)
        counts = [float(v.read_value()) for v in strategy.experimental_local_results(counter)]
        expected_loss, expected = run(tf.function(step))
        distance = tf.reduce_max(abs(gradient - expected)) / tf.reduce_max(abs(expected))
        return counts, float(loss), float(expected_loss), float(distance), kept.plan is not None

    def whole(x):
        losses, gradients = strategy.run(step, args=(x,))
        return strategy.reduce("SUM", gradients, axis=None)

    def words_of(function, *args, **kwargs):
        try:
            function(*args, **kwargs)
        except CheckmateError as error:
            return str(error)
        return "ran"

    model.train_step = checkmate_tf.rematerialize(model.train_step, batch_size=64, **QUICK)
    data = np.ones((256, 64))
    print(json.dumps({
        "tf.function": on_every_replica(tf.function),
        "eager": on_every_replica(lambda function: function),
        "inside": words_of(checkmate_tf.rematerialize(whole, **QUICK), tf.ones((128, 64))),
        "fit": words_of(model.fit, data, data, batch_size=128, verbose=0),
    }))
"""


@pytest.fixture(scope="module")
def on_replicas():
    """What a process with two devices has seen."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(REPLICAS)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("outer", ["tf.function", "eager"])
def test_every_replica_has_a_trace_of_its_own(on_replicas, outer):
    counts, loss, expected, distance, planned = on_replicas[outer]
    assert counts == [64, 64]
    assert loss == pytest.approx(expected, rel=1e-4)
    assert distance < 1e-4
    assert planned


def test_replicas_inside_the_step_are_refused(on_replicas):
    assert "strategy.run" in on_replicas["inside"]


def test_fit_on_two_replicas_is_refused_in_words(on_replicas):
    assert "replica" in on_replicas["fit"]


def test_errors_pass_through_autograph_unchanged():
    error = CheckmateError("what and where")

    @tf.function
    def outer(x):
        raise error

    with pytest.raises(CheckmateError) as caught:
        outer(tf.ones(3))
    assert caught.value is error
