"""Everything that is used of TensorFlow and Keras without being part of their public interface.

No other module imports `tensorflow.python` or touches an attribute of TensorFlow or Keras that
begins with an underscore. A new release is checked by the test file of this one.

It lies at the bottom of `profiles`, the lowest package that needs TensorFlow, so that
`checkmate_tf` may use it as well. Each name was run in TensorFlow 2.16, 2.21 and 2.22.0rc0.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import tensorflow as tf

from profiles.supported_versions import refuse_old_tensorflow

refuse_old_tensorflow(tf.__version__)  # some of what follows is not in older ones

from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl import api as autograph_api
from tensorflow.python.client import device_lib, pywrap_tf_session
from tensorflow.python.eager import cancellation, context, record
from tensorflow.python.eager.polymorphic_function import atomic_function, function_type_utils
from tensorflow.python.framework import func_graph, op_def_registry, ops
from tensorflow.python.framework.function_def_to_graph import function_def_to_graph
from tensorflow.python.ops import control_flow_util, handle_data_util
from tensorflow.python.ops.variables import default_variable_creator_v2
from tensorflow.python.util import _pywrap_util_port

_SET_TRACEBACK = getattr(pywrap_tf_session, "TF_SetOpStackTrace", None)

# Operations and kernels.


def one_dnn_is_on() -> bool:
    """Whether kernels of oneDNN run, which TensorFlow decides when it is imported."""
    return bool(_pywrap_util_port.IsMklEnabled())


def operation_definition(kind: str) -> Any:
    """The OpDef of a type of operation: inputs, attributes, statefulness; None if there is none."""
    return op_def_registry.get(kind)


def create_operation(
    graph: Any,
    kind: str,
    inputs: Sequence[Any],
    control_inputs: Iterable[Any],
    name: str,
    attributes: Mapping[str, Any],
    device: str,
) -> Any:
    """A new operation of `graph`, on exactly that device, or on any if `device` is empty.

    It waits for `control_inputs`, and for nothing that a `tf.control_dependencies` around it says.
    `Graph.create_op` takes several times as long: it describes the operation twice, asks every
    `tf.device` around it, and records the lines that create it.

    Raises:
        ValueError: TensorFlow does not accept such inputs.
    """
    with graph.control_dependencies(None):
        given = [_inside(graph, each) for each in inputs]
        with graph._c_graph.get() as c_graph:
            new = pywrap_tf_session.TF_NewOperation(c_graph, kind, graph.unique_name(name))
        if device:
            pywrap_tf_session.TF_SetDevice(new, device)
        definition = operation_definition(kind)
        for each in ops._reconstruct_sequence_inputs(definition, given, attributes):
            if isinstance(each, list):
                pywrap_tf_session.TF_AddInputList(new, [one._as_tf_output() for one in each])
            else:
                pywrap_tf_session.TF_AddInput(new, each._as_tf_output())
        read = {each.op for each in given}
        for other in dict.fromkeys(control_inputs):
            if other not in read:
                pywrap_tf_session.TF_AddControlInput(new, other._c_op)
        for attribute, value in attributes.items():
            pywrap_tf_session.TF_SetAttrValueProto(new, attribute, value.SerializeToString())
        try:
            made = pywrap_tf_session.TF_FinishOperation(new)
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(error.message) from error
        return graph._create_op_from_tf_operation(made, compute_device=False)


def _inside(graph: Any, tensor: Any) -> Any:
    """The tensor, captured if it is not of `graph`."""
    return tensor if getattr(tensor, "graph", None) is graph else graph.capture(tensor)


def optimize_memory(setting: str, gradients: str) -> None:
    """Set the mode of Grappler's memory optimizer for all that is traced from now on.

    Args:
        setting: a name of RewriterConfig.MemOptType, for instance "RECOMPUTATION_HEURISTICS".
        gradients: how the names of gradients begin, whose inputs may be computed again.
    """
    config = config_pb2.ConfigProto()
    options = config.graph_options.rewrite_options
    options.memory_optimization = getattr(rewriter_config_pb2.RewriterConfig, setting)
    options.memory_optimizer_target_node_name_scope = gradients
    context.context()._config = config


def set_traceback(operation: Any, traceback: Any) -> None:
    """Let the errors of `operation` name the lines of `traceback`; where it can't, do nothing.

    The traceback of another operation must be given as a slice, which lives on by itself.
    """
    if _SET_TRACEBACK is not None:
        _SET_TRACEBACK(operation._c_op, traceback)


# Resource handles and variables.


def variable_content(handle: Any) -> Any | None:
    """`dtype` and static `shape` of the variable behind a handle in a graph, if it is plain."""
    data = handle_data_util.get_resource_handle_data(handle)
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        return None
    return data.shape_and_type[0]


def copy_variable_content(source: Any, target: Any) -> None:
    """Let shape inference know of the handle `target` what it knows of `source`."""
    handle_data_util.copy_handle_data(source, target)


def plain_variable(**arguments: Any) -> Any:
    """A variable as `tf.Variable` makes it where no strategy and no function interferes."""
    return default_variable_creator_v2(None, **arguments)


# Graphs and the functions in them.


def function_in_graph(graph: Any, name: str) -> Any:
    """The function that operations of `graph` call by `name`; None if it is not known there.

    A graph knows what the graphs around it know.
    """
    while graph is not None:
        function = graph._get_function(name)
        if function is not None:
            return function
        graph = getattr(graph, "outer_graph", None)
    return None


def add_function(function: Any, target: Any) -> None:
    """Add a function, and those that it calls, to the graph `target`, where it lacks them."""
    if not target._is_function(function.name):
        target._add_function_recursive(function)


def body_of_function(
    function: Any, shapes: Sequence[Any] | None, elements: Mapping[int, Sequence[int]] | None = None
) -> Any:
    """A new graph of the function's operations, with `inputs`, `outputs` and `control_outputs`.

    Its inputs have these shapes, whatever shapes it was traced with; None leaves those. Of inputs
    that are lists, `elements` says by place which shape the elements have that are taken out.
    """
    definition = function_definition(function)
    if shapes is not None:
        definition = copy_of_definition(definition)
        for described in (*definition.arg_attr.values(), *definition.node_def):
            described.attr.pop("_output_shapes", None)
        _say_variables(definition, getattr(function, "graph", None))
        _say_elements(definition, elements or {})
    return function_def_to_graph(definition, input_shapes=shapes)


def _say_variables(definition: Any, traced: Any) -> None:
    """Say the shapes of the variables that it reads, as they were known when it was traced."""
    for node in definition.node_def if traced is not None else ():
        if node.op == "ReadVariableOp":
            (value,) = traced.get_operation_by_name(node.name).outputs
            node.attr["_output_shapes"].list.shape.append(value.shape.as_proto())


def _say_elements(definition: Any, elements: Mapping[int, Sequence[int]]) -> None:
    """Exchange the constants by which shapes of elements are inferred."""
    arguments = definition.signature.input_arg
    shapes = {arguments[place].name: shape for place, shape in elements.items()}
    said = {
        node.input[2].partition(":")[0]: shapes[node.input[0]]
        for node in definition.node_def
        if node.op == "TensorListGetItem" and node.input[0] in shapes
    }
    for node in definition.node_def:
        if node.op == "Const" and node.name in said:
            kind = tf.as_dtype(node.attr["dtype"].type)
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(said[node.name], kind))


def function_again(concrete: Any) -> Any:
    """A ConcreteFunction that does the same; what TensorFlow keeps for it is freed with it.

    Its kernels are its own: random numbers that they draw are not missing elsewhere.
    """
    return type(concrete).from_func_graph(concrete.graph, concrete.function_type, {})


def function_definition(function: Any) -> Any:
    """The FunctionDef of a function in a graph."""
    return getattr(function, "cached_definition", None) or function.definition


def copy_of_definition(definition: Any) -> Any:
    """Another FunctionDef with the same content."""
    return type(definition).FromString(definition.SerializeToString())


def function_of_definition(definition: Any, called: Sequence[Any]) -> Any:
    """The function that a FunctionDef describes, for `add_function`; it is freed with its users.

    Args:
        definition: whose name no other function has.
        called: functions that its operations name and that the default graph doesn't know.
    """
    around = func_graph.FuncGraph("around")  # knows what the default graph knows, and `called`
    for function in called:
        add_function(function, around)
    with around.as_default():
        graph = function_def_to_graph(definition)
    for function in called:
        add_function(function, graph)
    return atomic_function.from_func_graph(definition.signature.name, graph, {})


def register_function(definition: Any) -> None:
    """Let operations call the function of a FunctionDef by its name, wherever they are.

    A function of that name that is there already stays, and is taken to be the same.
    """
    if not context.context().has_function(definition.signature.name):
        context.context().add_function_def(definition)


# Calls of functions.


@contextmanager
def grappler_with(**modes: str) -> Iterator[None]:
    """Grappler optimizes the functions that this thread calls inside in these modes.

    The public `tf.config.optimizer.set_experimental_options` would change what other threads call,
    and functions that have run before: called in other modes a function is optimized once more, and
    gets new kernels. So one whose kernels count is to be called inside always, or never.

    Args:
        modes: names of values by options of RewriterConfig, as `memory_optimization="NO_MEM_OPT"`.
    """
    here = context.context()
    before = here.function_call_options
    inside = here.function_call_options = _in_modes(
        before.config_proto_serialized, before.executor_type, tuple(modes.items())
    )
    try:
        yield
    finally:
        if here.function_call_options is inside:  # else the user has set options meanwhile
            here.function_call_options = before


@functools.cache
def _in_modes(config: bytes, executor: str | None, modes: tuple[tuple[str, str], ...]) -> Any:
    """The options of calls of functions, those exchanged that Grappler reads."""
    options = config_pb2.ConfigProto.FromString(config)
    for option, mode in modes:
        value = getattr(rewriter_config_pb2.RewriterConfig, mode)
        setattr(options.graph_options.rewrite_options, option, value)
    return context.FunctionCallOptions(executor, options)


def device_asked_for() -> str:
    """The full name of the device that a `tf.device` around this asks for; "" without one.

    On it run the functions that are called here.
    """
    return context.context().device_name or ""


CPU_LIMIT = "TF_CPU_BFC_MEM_LIMIT_IN_MB"
"""The environment variable that limits the CPU's allocator."""


def allocator_limit(device: str) -> int | None:
    """Bytes that TensorFlow's allocator may have in all; None where nothing limits it.

    It takes no memory, and for a GPU some milliseconds the first time.
    """
    if device.startswith("CPU"):
        with suppress(KeyError, ValueError):
            return int(os.environ[CPU_LIMIT]) << 20
        return None
    return _limit_of(device)


@functools.cache
def _limit_of(device: str) -> int | None:
    every = device_lib.list_local_devices(context.context().config)
    limits = (each.memory_limit for each in every if each.name.endswith(f"device:{device}"))
    return next((int(each) for each in limits if each > 0), None)


def tracing_options(function: Any) -> dict[str, Any]:
    """The arguments of `tf.function` that `function` was made with, to make another like it."""
    return {
        "autograph": function._autograph,
        "reduce_retracing": function._reduce_retracing,
        "jit_compile": function._jit_compile,
    }


def converted_by_autograph(function: Any) -> Any:
    """`function` as a tf.function converts it, callable from one that is not to be converted."""
    enabled = ag_ctx.ControlStatusCtx(status=ag_ctx.Status.ENABLED)
    return autograph_api.tf_convert(function, enabled)


def caller_is_converted() -> bool:
    """Whether AutoGraph may convert the caller of the function, not to be converted, that asks."""
    statuses = [each.status for each in ag_ctx._control_ctx()]
    return bool(statuses[-2:-1] != [ag_ctx.Status.DISABLED])


def is_compiled_by_xla(function: Any) -> bool:
    """Whether `function` is a tf.function with jit_compile=True."""
    return bool(getattr(function, "_jit_compile", None))


def is_traced_for_xla() -> bool:
    """Whether what is being traced will be compiled by XLA, here or in a function around it."""
    graph = tf.compat.v1.get_default_graph()
    return bool(control_flow_util.GraphOrParentsInXlaContext(graph))


def report_of_compiler(concrete: Any, sizes: Sequence[Any], device: str) -> Any:
    """The HloProto of a ConcreteFunction compiled for "CPU:0", "GPU:0", …, with its buffers.

    It is compiled once more for that, and does not run. The public way to the same,
    `tf.function.experimental_get_compiler_ir`, draws a random number to find a device, which would
    change those that the user draws later.

    Args:
        concrete: a ConcreteFunction that was traced to be compiled.
        sizes: a TensorSpec of known shape for each flat argument.
        device: where its variables are.

    Raises:
        tf.errors.OpError, ValueError: XLA can't compile it.
    """
    report: bytes = context.context().get_compiler_ir(
        device_name=f"/job:localhost/replica:0/task:0/device:{device}",
        platform_name=None,
        function_name=concrete.name,
        flat_args=list(sizes),
        captured_inputs=concrete.captured_inputs,
        stage="optimized_hlo_proto_serialized",
    )
    return hlo_pb2.HloProto.FromString(report)


def bound_arguments(kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Arguments as a ConcreteFunction of the type `kind` binds them, for `kind.unpack_inputs`.

    Raises:
        TypeError: they don't fit the function.
    """
    return function_type_utils.canonicalize_function_inputs(args, kwargs, kind)


def captured_tensors(concrete: Any) -> Sequence[Any]:
    """What a ConcreteFunction has captured; a function for what is made anew at every call.

    The public `captured_inputs` calls those functions, which counts as a call of the step: workers
    that do it at different times would then wait for each other for ever.
    """
    captured: Sequence[Any] = getattr(concrete, "_captured_inputs", ())
    return captured


def call_with_captures(
    concrete: Any, arguments: Sequence[Any], captured: Sequence[Any]
) -> list[Any]:
    """Call a ConcreteFunction of flat arguments with these in place of its captured tensors."""
    outputs: list[Any] = concrete._call_flat(list(arguments), list(captured))
    return outputs


def a_tape_may_record() -> bool:
    """Whether a tf.GradientTape is open that may record what is done now."""
    return bool(record.could_possibly_record())


def note_variables(concrete: Any) -> None:
    """Let what is being traced know of the variables of a ConcreteFunction, as a call of it would.

    A tape around it looks for those that can be trained.
    """
    graph = tf.compat.v1.get_default_graph()
    for variable in concrete.variables:
        graph.watch_variable(variable)


@contextmanager
def cancellable() -> Iterator[Callable[[], None]]:
    """Gives a function that cancels the functions which run inside; any thread may call it."""
    manager = cancellation.CancellationManager()
    with cancellation.CancellationManagerContext(manager):
        yield manager.start_cancel


@contextmanager
def graphs_that_run() -> Iterator[list[list[Any]]]:
    """Gives a list in which, once it ends, lie the functions that ran inside for the first time.

    Each is a list of GraphDefs, one for each device that it runs on: how TensorFlow has placed its
    operations, with what was copied from one device to another as `_Send` and `_Recv`.
    """
    found: list[list[Any]] = []
    context.context().enable_run_metadata()
    try:
        yield found
    finally:
        metadata = context.context().export_run_metadata()
        context.context().disable_run_metadata()
        found += [list(each.partition_graphs) for each in metadata.function_graphs]


# Several workers.


def share_between_workers(key: str, value: str) -> None:
    """Let all workers of this cluster read `value` under `key`; it can be set once."""
    context.context().set_config_key_value(key, value)


def shared_between_workers(key: str, seconds: float) -> str | None:
    """What a worker has shared under `key`; None if nobody has after so many seconds.

    Raises:
        tf.errors.OpError: the worker that keeps the values for all can't be reached.
    """
    try:
        return str(context.context().get_config_key_value(key, int(1000 * seconds)))
    except tf.errors.DeadlineExceededError:
        return None


def first_job() -> str | None:
    """The job whose task 0 leads this cluster; None where the process is no worker of a cluster."""
    config = context.context().coordination_service
    jobs = [] if config is None else list(config.coordinated_job_list)
    return str(jobs[0].name) if jobs else None


# Keras.


def compile_mark(model: Any) -> Any:
    """An object that every `compile` of a Keras model makes anew; None before the first."""
    return getattr(model, "_compile_config", None)


def metrics_are_built(model: Any) -> bool:
    """Whether the metrics that a Keras model is compiled with have their variables, or none are."""
    metrics = getattr(model, "_compile_metrics", None)
    return metrics is None or bool(metrics.built)


def build_state(model: Any, batch: Any) -> None:
    """Make the variables of a Keras model that its train step would make, as `fit` does.

    Raises:
        Exception: whatever the model's code raises on symbolic tensors like those of `batch`.
    """
    model._symbolic_build(data_batch=batch)


def calls_of(operation: Any) -> Sequence[Any]:
    """The calls of a layer in functional models: each has `input_tensors` and `output_tensors`."""
    nodes: Sequence[Any] = operation._inbound_nodes
    return nodes
