"""What the types of TensorFlow operations mean for memory and for rewriting."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from checkmate_tf.trace.bodies import RUN_FUNCTIONS, functions_of, functions_of_node
from profiles.tensorflow_internals import (
    function_definition,
    function_in_graph,
    operation_definition,
)

VIEWS = frozenset(
    "Identity IdentityN Reshape Squeeze ExpandDims StopGradient PreventGradient EnsureShape "
    "Bitcast CheckNumerics PlaceholderWithDefault Snapshot".split()
)
"""Their output shares the buffer of the input of the same number; further inputs are shapes."""

NO_GRADIENTS = frozenset(["StopGradient", "PreventGradient"])
"""Views that are their input, but for gradients, which go no further."""

PASS_THROUGH = NO_GRADIENTS | frozenset("Identity IdentityN Snapshot".split())
"""Views that are their input, once gradients have been built."""

READS = frozenset(["ReadVariableOp"])
"""Their output shares the variable's buffer."""

SOURCES = frozenset(["Placeholder", "Const", "VarHandleOp"]) | READS
"""They take no new memory while the step runs."""

READ_ONLY = READS | frozenset(
    "ResourceGather ResourceGatherNd VariableShape VarIsInitializedOp ResourceStridedSlice".split()
)
"""They read a variable and change nothing, so they may run again until it is overwritten."""

_PACKAGES = Path(__file__).parents[2]

_NOT_THE_USERS = (
    "/tensorflow/",
    "/keras/",
    *(f"{_PACKAGES / package}{os.sep}" for package in ("checkmate_tf", "profiles", "solvers")),
)
"""Parts of the names of files whose lines the user hasn't written."""

OVERWRITES = frozenset(["AssignVariableOp"])
"""The variable takes over the buffer of the value, and its old buffer is freed."""

COPIES_ITS_INPUTS = frozenset(["Einsum"])
"""Their kernels transpose their inputs, where they must, before they allocate the output."""

_UNARY = (
    "Abs Neg Exp Expm1 Log Log1p Sqrt Rsqrt Square Inv Reciprocal Sign Sin Cos Tan Tanh Sigmoid "
    "Erf Erfc Ceil Floor Round Rint LogicalNot Relu Relu6 Elu Selu LeakyRelu Softplus Softsign "
    "Softmax LogSoftmax BiasAdd ClipByValue"
)
_BINARY = (
    "Add AddV2 Sub Mul Div RealDiv DivNoNan MulNoNan Maximum Minimum Pow SquaredDifference "
    "FloorDiv FloorMod Xdivy Xlogy"
)
_GRADIENTS = (
    "ReluGrad Relu6Grad EluGrad SeluGrad LeakyReluGrad SoftplusGrad SoftsignGrad TanhGrad "
    "SigmoidGrad SqrtGrad RsqrtGrad InvGrad ReciprocalGrad"
)
ELEMENTWISE = frozenset(f"{_UNARY} {_BINARY} {_GRADIENTS} AddN Select SelectV2".split())
"""Their kernels write the output into the buffer of an input of the same size, if nobody else
holds it."""


_FUNCTIONS: WeakKeyDictionary[Any, dict[str, bool]] = WeakKeyDictionary()
"""By graph: whether functions in it are stateful."""


def is_stateful(operation: Any) -> bool:
    """Whether running the operation twice differs from running it once.

    What runs functions is judged by what they do, not by its type.
    """
    if operation.type not in RUN_FUNCTIONS:
        return _is_stateful_type(operation.type)
    known = _FUNCTIONS.setdefault(operation.graph, {})
    names = functions_of(operation)
    return any(_is_stateful_function(operation.graph, name, known) for name in names)


def _is_stateful_function(graph: Any, name: str, known: dict[str, bool]) -> bool:
    if name not in known:
        function = function_in_graph(graph, name)
        known[name] = function is None or any(
            any(_is_stateful_function(graph, inner, known) for inner in functions_of_node(node))
            if node.op in RUN_FUNCTIONS
            else _is_stateful_type(node.op)
            for node in function_definition(function).node_def
        )
    return known[name]


@functools.cache
def _is_stateful_type(kind: str) -> bool:
    definition = operation_definition(kind)
    return definition is None or (bool(definition.is_stateful) and kind not in READ_ONLY)


def under_views(tensor: Any) -> Any:
    """The tensor whose buffer `tensor` shares."""
    while tensor.op.type in VIEWS:
        tensor = tensor.op.inputs[tensor.value_index if tensor.op.type == "IdentityN" else 0]
    return tensor


def describe(operation: Any) -> str:
    """An operation as an error message names it: its name, type and the user's line.

    Of a layer of Keras it is the line that calls `fit`: this package's, below it, say nothing.
    """
    line = users_line(operation)
    where = f", made at {line}" if line else ""
    return f"{operation.name!r} ({operation.type}{where})"


def users_line(operation: Any) -> str:
    """The line of the user's program that made an operation, "file:line"; "" where none did."""
    for frame in reversed(operation.traceback or []):
        if not any(part in frame.filename for part in _NOT_THE_USERS):
            return f"{frame.filename}:{frame.lineno}"
    return ""
