"""TensorFlow's insides do what is relied on, and no other module touches them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from profiles import tensorflow_internals as internals
from tests.steps import small_cnn

ROOT = Path(internals.__file__).parents[1]
OF_OTHERS = frozenset("tf tensorflow keras graph func_graph operation op concrete function".split())
"""Names under which the sources know things of TensorFlow and Keras."""


@pytest.mark.slow
@pytest.mark.parametrize("on", ["0", "1"])
def test_one_dnn_is_on_where_it_is_asked_for(on: str) -> None:
    code = "from profiles.tensorflow_internals import one_dnn_is_on; print(one_dnn_is_on())"
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": on}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(on == "1")


def test_definitions_tell_inputs_and_statefulness() -> None:
    product = internals.operation_definition("MatMul")
    assert product is not None
    assert [each.name for each in product.input_arg] == ["a", "b"]
    assert not product.is_stateful
    write = internals.operation_definition("AssignVariableOp")
    assert write is not None
    assert write.is_stateful
    assert internals.operation_definition("NoSuchOperation") is None


def test_an_operation_is_made_as_by_the_public_way() -> None:
    made = []
    for device in ("", "/device:CPU:0"):
        with tf.Graph().as_default() as graph, tf.device("/device:GPU:1"):
            one = tf.compat.v1.placeholder(tf.float32, (2, 3))
            types, attributes = [tf.float32], tf.tanh(one).op.node_def.attr
            with tf.device(None), tf.device(device or None):
                public = graph.create_op("Tanh", [one], types, name="it", attrs=dict(attributes))
            own = internals.create_operation(
                graph, "Tanh", [one], [], "it", dict(attributes), device
            )
        assert own.outputs[0].shape == (2, 3)
        made.append([(e.type, e.device, e.node_def.attr["T"].type) for e in (public, own)])
    assert all(public == own for public, own in made)


def test_an_operation_with_lists_of_inputs_waits_for_what_it_is_told_alone() -> None:
    with tf.Graph().as_default() as graph:
        one, other = (tf.compat.v1.placeholder(tf.float32, (2,)) for _ in range(2))
        first, around = tf.no_op(), tf.no_op()
        for kind in (tf.add_n([one, other]).op, tf.raw_ops.IdentityN(input=[one, other])[0].op):
            with tf.control_dependencies([around]):
                own = internals.create_operation(
                    graph,
                    kind.type,
                    [one, other],
                    [first, first, one.op],
                    "it",
                    dict(kind.node_def.attr),
                    "",
                )
            assert [each.name for each in own.inputs] == [one.name, other.name]
            assert list(own.control_inputs) == [first]


def test_an_operation_captures_what_is_not_of_its_graph() -> None:
    outside = tf.constant([1.0])
    attributes = {"T": tf.compat.v1.AttrValue(type=tf.float32.as_datatype_enum)}

    @tf.function
    def negated() -> Any:
        graph = tf.compat.v1.get_default_graph()
        made = internals.create_operation(graph, "Neg", [outside], [], "it", attributes, "")
        return made.outputs[0]

    assert negated().numpy().tolist() == [-1]


def test_an_operation_that_refuses_its_inputs() -> None:
    with tf.Graph().as_default() as graph:
        one = tf.compat.v1.placeholder(tf.float32, (2, 3))
        attributes = dict(tf.matmul(one, one, transpose_b=True).op.node_def.attr)
        del attributes["transpose_b"]
        with pytest.raises(ValueError, match="must be equal"):
            internals.create_operation(graph, "MatMul", [one, one], [], "it", attributes, "")


@pytest.mark.slow
def test_grapplers_memory_optimizer_is_set() -> None:
    code = (
        "import tensorflow as tf; from profiles import tensorflow_internals as internals;"
        "internals.optimize_memory('RECOMPUTATION_HEURISTICS', 'gradients/');"
        "from tensorflow.python.eager import context;"
        "options = context.context().config.graph_options.rewrite_options;"
        "print(options.memory_optimization, options.memory_optimizer_target_node_name_scope)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["5", "gradients/"]


def test_the_calls_of_a_layer() -> None:
    layer = keras.layers.Dense(3)
    inputs = keras.Input((3,))
    outputs = layer(layer(inputs))
    first, second = internals.calls_of(layer)
    assert first.input_tensors == [inputs]
    assert second.output_tensors == [outputs]


def test_the_state_of_a_model_is_built_without_a_step() -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    assert internals.metrics_are_built(model)
    model.compile("sgd", "mse", metrics=["mae"])
    assert not internals.metrics_are_built(model)
    internals.build_state(model, (tf.ones((4, 3)), tf.ones((4, 2))))
    assert internals.metrics_are_built(model)
    assert model.optimizer.built
    assert int(model.optimizer.iterations) == 0


def test_an_error_names_the_lines_of_the_traceback_that_was_set() -> None:
    graph = tf.Graph()
    with graph.as_default():
        original = tf.constant(1.0).op
        copy = tf.constant(2.0).op
    lines = [frame.lineno for frame in original.traceback]
    assert [frame.lineno for frame in copy.traceback] != lines
    internals.set_traceback(copy, original.traceback[:])
    assert [frame.lineno for frame in copy.traceback] == lines


def captured(function: Callable[[], Any]) -> Any:
    """The placeholder of the one thing that a function captures."""
    (placeholder,) = tf.function(function, autograph=False).get_concrete_function().inputs
    return placeholder


def test_the_content_of_a_handle_is_that_of_its_variable() -> None:
    variable = tf.Variable(tf.zeros((2, 3), tf.float64))
    content = internals.variable_content(captured(lambda: variable + 1.0))
    assert content is not None
    assert tf.as_dtype(content.dtype) == tf.float64
    assert tf.TensorShape(content.shape) == (2, 3)
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    assert internals.variable_content(captured(table.size)) is None


def test_a_handle_with_content_can_be_read_with_its_shape() -> None:
    variable = tf.Variable(tf.zeros((2, 3)))
    known = captured(lambda: variable + 1.0)
    with tf.Graph().as_default():
        handle = tf.raw_ops.Placeholder(dtype=tf.resource, shape=())
        unknown = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
        assert unknown.shape.rank is None
        internals.copy_variable_content(known, handle)
        assert tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32).shape == (2, 3)


def test_a_plain_variable_belongs_to_no_strategy() -> None:
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        distributed = tf.Variable(1.0)
        plain = internals.plain_variable(initial_value=1.0, trainable=False)
    assert hasattr(distributed, "values")
    assert not hasattr(plain, "values")
    assert plain.numpy() == 1


def calling_another() -> tf.types.experimental.ConcreteFunction:
    inner = tf.function(lambda x: x * 2.0, autograph=False)
    outer = tf.function(lambda x: inner(x) + 1.0, autograph=False)
    return outer.get_concrete_function(tf.TensorSpec([None]))


def call_in(graph: tf.Graph) -> tf.Operation:
    (call,) = (each for each in graph.get_operations() if "Call" in each.type)
    return call


def test_the_body_of_a_call_is_found() -> None:
    call = call_in(calling_another().graph)
    function = internals.function_in_graph(call.graph, call.get_attr("f").name)
    with call.graph.as_default():
        body = internals.body_of_function(function, [tf.TensorShape([5])])
    assert "Mul" in {each.type for each in body.get_operations()}
    assert [each.shape.as_list() for each in body.outputs] == [[5]]
    with call.graph.as_default():
        body = internals.body_of_function(function, None)
    assert [each.shape.as_list() for each in body.outputs] == [[None]]


def test_a_body_tells_what_has_side_effects() -> None:
    variable = tf.Variable(1.0)
    inner = tf.function(lambda x: x + variable.assign_add(x), autograph=False)
    outer = tf.function(lambda x: inner(x), autograph=False)
    call = call_in(outer.get_concrete_function(tf.TensorSpec([])).graph)
    function = internals.function_in_graph(call.graph, call.get_attr("f").name)
    body = internals.body_of_function(function, None)
    assert [each.dtype for each in body.inputs] == [tf.float32, tf.resource]
    assert "AssignAddVariableOp" in {each.type for each in body.control_outputs}


def test_a_function_is_known_to_graphs_inside_the_one_that_knows_it() -> None:
    call = call_in(calling_another().graph)
    name = call.get_attr("f").name
    with call.graph.as_default():
        inner = internals.body_of_function(internals.function_in_graph(call.graph, name), None)
    assert internals.function_in_graph(inner, name) is not None
    assert internals.function_in_graph(inner, "no such function") is None


def test_a_registered_function_can_be_called_by_its_name() -> None:
    call = call_in(calling_another().graph)
    function = internals.function_in_graph(call.graph, call.get_attr("f").name)
    definition = type(function.cached_definition)()
    definition.CopyFrom(internals.function_definition(function))
    definition.signature.name = "twice_by_another_name"
    internals.register_function(definition)
    internals.register_function(definition)  # what is there already is no error
    name = tf.compat.v1.NameAttrList(name="twice_by_another_name")
    called = tf.raw_ops.PartitionedCall(args=[[1.0, 2.0]], Tout=[tf.float32], f=name)
    assert called[0].numpy().tolist() == [2.0, 4.0]


def test_a_call_runs_in_another_graph_once_its_functions_are_there() -> None:
    call = call_in(calling_another().graph)

    @tf.function(input_signature=[tf.TensorSpec([2])], autograph=False)
    def copied(x: tf.Tensor) -> tf.Tensor:
        graph = tf.compat.v1.get_default_graph()
        function = internals.function_in_graph(call.graph, call.get_attr("f").name)
        internals.add_function(function, graph)
        internals.add_function(function, graph)  # what is there already is no error
        attributes = dict(call.node_def.attr.items())
        return graph.create_op(call.type, [x], dtypes=[tf.float32], attrs=attributes).outputs[0]

    assert copied([1.0, 2.0]).numpy().tolist() == [2.0, 4.0]


@tf.function
def drawn(x: Any) -> Any:
    return x + tf.random.normal((2,))


kept_whole = tf.function(drawn.python_function, experimental_attributes={"_noinline": True})


@pytest.mark.parametrize(
    "draw",
    [
        drawn.python_function,
        drawn,
        kept_whole,
        lambda x: tf.cond(x[0] > -9, lambda: drawn(x), lambda: x),
        lambda x: tf.while_loop(lambda y: y[0] < 9, lambda y: [drawn(y) + 3], [x], None, 1)[0],
        lambda x: tf.map_fn(lambda y: y + tf.random.uniform(()), x, parallel_iterations=1),
    ],
)
def test_a_function_that_is_made_again_takes_no_random_numbers_from_the_first(draw: Any) -> None:
    series = []
    for times in (0, 2):
        tf.random.set_seed(5)
        concrete = tf.function(draw).get_concrete_function(tf.TensorSpec((2,)))
        again = internals.function_again(concrete)
        series.append([])
        for _ in range(3):
            for _ in range(times):
                again(tf.zeros(2))
            series[-1].append(tf.convert_to_tensor(concrete(tf.zeros(2))).numpy().tolist())
    np.testing.assert_allclose(series[0], series[1], rtol=1e-5)


@pytest.mark.parametrize("autograph", [True, False])
@pytest.mark.parametrize("reduce_retracing", [True, False])
def test_another_function_can_be_traced_alike(autograph: bool, reduce_retracing: bool) -> None:
    options = {"autograph": autograph, "reduce_retracing": reduce_retracing, "jit_compile": True}
    assert internals.tracing_options(tf.function(abs, **options)) == options


def test_compilation_by_xla_is_seen() -> None:
    assert internals.is_compiled_by_xla(tf.function(abs, jit_compile=True))
    assert not internals.is_compiled_by_xla(tf.function(abs, jit_compile=False))
    assert not internals.is_compiled_by_xla(tf.function(abs))
    assert not internals.is_compiled_by_xla(abs)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_a_trace_for_xla_is_known_as_one(compiled: bool, nested: bool) -> None:
    seen = []

    @tf.function
    def inner(x: Any) -> Any:
        seen.append(internals.is_traced_for_xla())
        return x + 1

    function = (lambda x: inner(x)) if nested else inner.python_function
    tf.function(function, jit_compile=compiled).get_concrete_function(tf.TensorSpec([2]))
    assert seen == [compiled]
    assert not internals.is_traced_for_xla()


def test_the_compiler_tells_its_buffers_and_draws_no_random_number() -> None:
    size = tf.TensorSpec((64, 64))
    function = tf.function(lambda x: tf.reduce_sum(x @ x), jit_compile=True)
    concrete = function.get_concrete_function(size)
    tf.random.set_seed(3)
    expected = float(tf.random.uniform(()))
    tf.random.set_seed(3)
    report = internals.report_of_compiler(concrete, [size], "CPU:0")
    buffers = report.buffer_assignment.buffer_allocations
    assert float(tf.random.uniform(())) == expected
    (argument,) = [each for each in buffers if each.is_entry_computation_parameter]
    assert argument.size == 4 * 64 * 64
    assert sum(each.size for each in buffers if each.maybe_live_out) >= 4


def test_arguments_are_bound_as_the_function_itself_does() -> None:
    function = tf.function(lambda x, factor, y: x * factor + y, autograph=False)
    spec = tf.TensorSpec(())
    kind = function.get_concrete_function(spec, 3, y=spec).function_type
    bound = internals.bound_arguments(kind, (tf.constant(1.0), 3), {"y": tf.constant(2.0)})
    assert [float(each) for each in kind.unpack_inputs(bound)] == [1.0, 2.0]
    with pytest.raises(TypeError):
        internals.bound_arguments(kind, (), {})


def test_the_device_that_is_asked_for_is_the_one_that_functions_run_on() -> None:
    function = tf.function(lambda x: x + 1.0)
    with tf.device(None):  # whatever other tests have left
        assert internals.device_asked_for() == ""
    with tf.device("CPU"):
        asked = internals.device_asked_for()
        assert asked == function(tf.zeros(2)).device
        with tf.device(None):
            assert internals.device_asked_for() == ""
        traced = []
        tf.function(lambda: traced.append(internals.device_asked_for()))()
    assert traced == [asked]


def test_captured_tensors_can_be_exchanged_for_one_call() -> None:
    variable, copy = tf.Variable(1.0), tf.Variable(10.0)
    function = tf.function(lambda x: variable.assign_add(x), autograph=False)
    concrete = function.get_concrete_function(tf.TensorSpec(()))
    internals.call_with_captures(concrete, [tf.constant(2.0)], [copy.handle])
    assert (variable.numpy(), copy.numpy()) == (1.0, 12.0)
    concrete(tf.constant(2.0))
    assert (variable.numpy(), copy.numpy()) == (3.0, 12.0)


def test_captured_tensors_are_told_without_making_them() -> None:
    made: list[int] = []

    def make() -> tf.Tensor:
        made.append(1)
        return tf.constant(3.0)

    variable = tf.Variable(1.0)

    @tf.function(autograph=False)
    def function() -> tf.Tensor:
        graph = tf.compat.v1.get_default_graph()
        return variable + graph.capture_call_time_value(make, tf.TensorSpec(()))

    concrete = function.get_concrete_function()
    handle, later = internals.captured_tensors(concrete)
    assert handle is variable.handle
    assert callable(later)
    assert not made
    assert float(concrete()) == 4
    assert made


def test_one_process_shares_with_nobody() -> None:
    """What workers share is tested where they do: tests/checkmate_tf/distribution."""
    assert internals.first_job() is None


def test_a_tape_is_noticed() -> None:
    assert not internals.a_tape_may_record()
    with tf.GradientTape():
        assert internals.a_tape_may_record()


def test_a_tape_finds_the_variables_that_a_function_is_told_of() -> None:
    variable = tf.Variable(3.0)
    square = tf.function(lambda: variable**2).get_concrete_function()
    told = tf.function(lambda: internals.note_variables(square)).get_concrete_function()
    assert told.variables == (variable,)


def test_an_endless_function_can_be_cancelled() -> None:
    endless = tf.function(
        lambda: tf.while_loop(lambda x: x >= 0.0, lambda x: [x + 1.0], [0.0]), autograph=False
    ).get_concrete_function()
    with internals.cancellable() as cancel:
        timer = threading.Timer(0.5, cancel)
        timer.start()
        with pytest.raises(tf.errors.CancelledError):
            endless()
        timer.join()
    assert tf.function(lambda: tf.constant(1))().numpy() == 1, "others run on"


def test_every_compilation_of_a_model_is_another() -> None:
    model = small_cnn()
    mark = internals.compile_mark(model)
    assert mark is not None
    assert internals.compile_mark(model) is mark
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    assert internals.compile_mark(model) is not mark


def sources() -> list[Path]:
    packages = ("checkmate_tf", "profiles", "solvers", "experiments")
    found = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return [path for path in found if path != Path(internals.__file__)]


def private_uses(tree: ast.AST) -> list[str]:
    """Imports of TensorFlow's and Keras' insides, and private attributes of their objects."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names if is_inside(each.name)]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{each.name}" for each in node.names]
            found += [name for name in names if is_inside(name)]
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else None
            owner = node.value.id if isinstance(node.value, ast.Name) else owner
            found += [f"{owner}.{node.attr}"] if owner in OF_OTHERS else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            is_access = node.func.id in ("getattr", "setattr", "hasattr") and len(node.args) > 1
            name = node.args[1] if is_access else None
            if isinstance(name, ast.Constant) and is_private(str(name.value)):
                found.append(f"{node.func.id} {name.value}")
    return found


def is_inside(module: str) -> bool:
    return module.startswith(("tensorflow.python", "tensorflow.core", "keras.src")) or (
        ".pywrap" in module or ("._" in module and module.startswith(("tensorflow", "keras")))
    )


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@pytest.mark.parametrize(
    "code",
    [
        "from tensorflow.python.eager import record",
        "from tensorflow.python import pywrap_tfe",
        "import keras.src.models",
        "graph._functions",
        "operation.graph._get_function(name)",
        "self.concrete._call_flat([])",
        "getattr(function, '_jit_compile', None)",
    ],
)
def test_a_private_use_is_found(code: str) -> None:
    assert private_uses(ast.parse(code))


def test_nobody_else_uses_what_is_private() -> None:
    assert len(sources()) > 100
    found = {
        str(path.relative_to(ROOT)): uses
        for path in sources()
        if (uses := private_uses(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert not found


def test_a_function_that_autograph_converts_inside_one_that_it_does_not() -> None:
    def branches(x):  # type: ignore[no-untyped-def]
        if tf.reduce_sum(x) > 0:
            return x + 1
        return x - 1

    converted = internals.converted_by_autograph(branches)
    outer = tf.function(tf.autograph.experimental.do_not_convert(lambda x: converted(x)))
    assert [float(outer(tf.constant(value))) for value in (2.0, -2.0)] == [3.0, -3.0]


def test_modes_of_grappler_for_the_functions_that_are_called_inside() -> None:
    def negations(x: Any) -> int:
        """How many are left of two that undo each other."""
        with internals.graphs_that_run() as found:
            tf.function(lambda x: 2 * tf.negative(tf.negative(x)))(x)
        nodes = [node.op for graphs in found for graph in graphs for node in graph.node]
        assert nodes
        return nodes.count("Neg")

    x = tf.ones((2, 3))
    assert negations(x) == 0
    with internals.grappler_with(arithmetic_optimization="OFF"):
        with internals.grappler_with(memory_optimization="NO_MEM_OPT"):
            assert negations(x) == 2
        assert negations(x) == 2
    assert negations(x) == 0
    off, on = ({"arithmetic_optimization": switch} for switch in (False, True))
    with internals.grappler_with(memory_optimization="NO_MEM_OPT"):
        tf.config.optimizer.set_experimental_options(off)
    try:
        assert negations(x) == 2
    finally:
        tf.config.optimizer.set_experimental_options(on)


def test_the_graphs_of_functions_that_run_for_the_first_time() -> None:
    @tf.function
    def step(x):  # type: ignore[no-untyped-def]
        return tf.tanh(x) * 2

    for operations in ({"Tanh", "Mul"}, set[str]()):
        with internals.graphs_that_run() as found:
            step(tf.constant(1.0))
        nodes = [node for graphs in found for graph in graphs for node in graph.node]
        assert operations <= {node.op for node in nodes}
        assert bool(nodes) == bool(operations)
        assert all("device:CPU:0" in node.device for node in nodes)
