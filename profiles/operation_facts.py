"""What is known of types of TensorFlow operations: one table, in which every type has one row.

What a rule does that a row names stands in the module that the rule's attribute names below.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What holds for a type of operation; the defaults hold for those that the table leaves out.

    Attributes:
        buffer: where its output lies. "new": in a buffer of its own. "view": in that of the input
            of the same number; further inputs are shapes. "in place": its kernel writes into the
            buffer of an input of the same size, if nobody else holds it. "given": it takes no new
            memory while the step runs.
        is_its_input: of a view: it is its input, once gradients have been built.
        stops_gradients: of such a view: gradients go no further.
        workspace: what its kernel needs only while it runs. "measured": as
            `profiles.measure.workspaces` finds. "none": it goes through its inputs once. "little":
            no reason to let it wait inside a function, where Grappler would then not rewrite it.
            "copies": of its inputs, transposed, before it allocates the output; measured, too.
        variable: what it does to a variable. "reads": and changes nothing, so that it may run again
            until the variable is overwritten. "overwrites": the variable takes over the value's
            buffer, and its old one is freed. "adds": in the variable's buffer. "writes": anything,
            `tf.random.Generator`'s variables included.
        draws: from a generator in its kernel, of which every function has its own. Without a seed
            it begins anywhere.
        only_checks: it is stateful only because it may fail.
        runs: functions, whose doing is its own: as a "loop", a "branch" or a "call".
        fuses_into: types of readers that oneDNN makes one kernel with it, where nobody else reads
            its output.
        sibling: a type that oneDNN makes one kernel with it, where both read the same gradient.
        shared_gradient: number of the input that is this gradient.
        xla: what XLA makes of it. "alone": a loop or a library's kernel. "in readers": a part of
            the loops of what reads it. "anew": the same, and it ends in no product, so that keeping
            it changes no bit. "product": the same, but it ends in one, which is rounded together
            with a sum that reads it.
        adds_up: what it reads.
        early_and_late: of a convolution's gradient: the number of the operand that is there long
            before, and of the gradient that comes late.
        arithmetic: floating-point operations for each element of its largest tensor, or the rule
            by which `profiles.roofline` counts them. "shapes": it looks at shapes only.
        depthwise: a convolution of single channels.
        one_number: when all that it makes is one number. "always", or "passed on": if its first
            input is. Views pass it on, too, and what writes in place does if all inputs are.
        rows: the rule by which `trace.guessed_sizes` says how many there are, where data decide.
            "drawn": as many as a data set's batches have (`trace.sizes`).
        elements: of the TensorList that it makes: "none"; counted "elsewhere"; or those of another
            list, and the input of this number (`trace.tensor_lists`).
        indices: the rule by which `profiles.measure.random_inputs` makes them up; or the number of
            the input that holds them, and of the one that holds what they are under.
    """

    buffer: Literal["new", "view", "in place", "given"] = "new"
    is_its_input: bool = False
    stops_gradients: bool = False
    workspace: Literal["measured", "none", "little", "copies"] = "measured"
    variable: Literal["", "reads", "overwrites", "adds", "writes"] = ""
    draws: bool = False
    only_checks: bool = False
    runs: Literal["", "loop", "branch", "call"] = ""
    fuses_into: tuple[str, ...] = ()
    sibling: str | None = None
    shared_gradient: int | None = None
    xla: Literal["", "alone", "in readers", "anew", "product"] = ""
    adds_up: bool = False
    early_and_late: tuple[int, int] | None = None
    arithmetic: (
        int
        | Literal["shapes", "convolution", "input gradient", "filter gradient", "matrix product"]
        | Literal["einsum", "terms", "pooling", "pooling gradient"]
    ) = 1
    depthwise: bool = False
    one_number: Literal["", "always", "passed on"] = ""
    rows: Literal["", "short", "divided", "stitched", "joined", "true", "indexed", "drawn"] = ""
    elements: Literal["", "none", "elsewhere"] | int = ""
    indices: Literal["", "classes", "along axis", "along axes"] | tuple[int, int] = ""


_ROWS = {
    # Views, and what takes no memory.
    "Identity IdentityN Snapshot": Facts(buffer="view", is_its_input=True, xla="in readers"),
    "StopGradient PreventGradient": Facts(
        buffer="view", is_its_input=True, stops_gradients=True, xla="in readers"
    ),
    "Reshape Squeeze ExpandDims EnsureShape Bitcast CheckNumerics PlaceholderWithDefault": Facts(
        buffer="view", xla="in readers"
    ),
    "Const VarHandleOp": Facts(buffer="given"),
    "Placeholder": Facts(buffer="given", elements="elsewhere"),
    # Variables.
    "ReadVariableOp": Facts(buffer="given", variable="reads"),
    "ResourceGather ResourceGatherNd VariableShape VarIsInitializedOp": Facts(variable="reads"),
    "AssignVariableOp": Facts(variable="overwrites", workspace="none"),
    "AssignAddVariableOp AssignSubVariableOp": Facts(variable="adds", workspace="none"),
    "ResourceApply* ResourceSparseApply* ResourceStridedSliceAssign*": Facts(variable="writes"),
    "ResourceScatter*": Facts(variable="writes", xla="alone"),
    "RngReadAndSkip* RngSkip* StatefulRandomBinomial* StatefulStandardNormal* "
    "StatefulTruncatedNormal* StatefulUniform*": Facts(variable="writes"),
    # Elementwise.
    "Abs Expm1 Inv Reciprocal Sign Tan Erfc Ceil Floor Round Rint LogicalNot Elu Selu Softsign "
    "ClipByValue Div DivNoNan MulNoNan FloorDiv FloorMod Xdivy Xlogy EluGrad SeluGrad "
    "LeakyReluGrad SoftplusGrad SoftsignGrad SqrtGrad RsqrtGrad InvGrad ReciprocalGrad "
    "Acos Acosh Asin Asinh Atan Atan2 Atanh Cosh Sinh LogicalAnd LogicalOr Mod NextAfter "
    "TruncateDiv TruncateMod Xlog1py BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 "
    "BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Dawsn Digamma Erfinv Expint "
    "FresnelCos FresnelSin Igamma IgammaGradA Igammac Lgamma Ndtri Polygamma RandomGammaGrad "
    "Spence Zeta FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient": Facts(buffer="in place"),
    "Add AddV2 Sub Maximum Minimum Relu Relu6 ReluGrad Relu6Grad": Facts(
        buffer="in place", workspace="none", xla="anew"
    ),
    "AddN": Facts(buffer="in place", workspace="none", xla="anew", arithmetic="terms"),
    "BiasAdd LeakyRelu Select SelectV2": Facts(buffer="in place", xla="anew"),
    "Neg": Facts(buffer="in place", workspace="none", xla="in readers"),
    "Mul RealDiv Square SquaredDifference": Facts(
        buffer="in place", workspace="none", xla="product"
    ),
    "TanhGrad SigmoidGrad": Facts(buffer="in place", xla="product"),
    "Sqrt Rsqrt": Facts(buffer="in place", workspace="none", arithmetic=4),
    "Exp": Facts(buffer="in place", workspace="none", arithmetic=10),
    "Tanh Sigmoid": Facts(buffer="in place", workspace="none", arithmetic=15),
    "Log Log1p": Facts(buffer="in place", arithmetic=10),
    "Sin Cos": Facts(buffer="in place", arithmetic=15),
    "Erf Softplus": Facts(buffer="in place", arithmetic=20),
    "Pow": Facts(buffer="in place", arithmetic=30),
    "Softmax LogSoftmax": Facts(buffer="in place", arithmetic=20, adds_up=True),
    # Other copies, shapes and places of values.
    "Cast Tile": Facts(workspace="none", xla="anew", one_number="passed on"),
    "Transpose": Facts(workspace="little", xla="anew", one_number="passed on"),
    "BroadcastTo": Facts(one_number="passed on"),
    "Fill": Facts(workspace="none", one_number="always"),
    "ZerosLike": Facts(workspace="none", one_number="always"),  # of lists: trace/tensor_lists.py
    "OnesLike": Facts(one_number="always"),
    "Slice": Facts(workspace="none", xla="anew"),
    "StridedSlice MirrorPad PadV2": Facts(xla="anew"),
    "Pad": Facts(xla="anew", fuses_into=("Conv2D", "Conv3D")),
    "ConcatV2": Facts(workspace="none", xla="anew", rows="joined"),
    "DynamicPartition": Facts(rows="divided"),
    "DynamicStitch ParallelDynamicStitch": Facts(rows="stitched"),
    "Where": Facts(rows="true"),
    "GatherV2": Facts(rows="indexed", indices="along axis"),
    "GatherNd": Facts(rows="indexed", indices="along axes"),
    "OneHot": Facts(indices=(0, 1)),
    "Shape ShapeN": Facts(workspace="none", arithmetic="shapes"),
    "Size Rank NoOp": Facts(arithmetic="shapes"),
    "BroadcastGradientArgs": Facts(arithmetic="shapes", rows="short"),
    "DebugNumericSummaryV2": Facts(rows="short"),
    "IteratorGetNext IteratorGetNextSync": Facts(rows="drawn"),
    # Sums, and what has sums in it.
    "Sum Mean Prod L2Loss SoftmaxCrossEntropyWithLogits": Facts(adds_up=True),
    "SparseSoftmaxCrossEntropyWithLogits": Facts(adds_up=True, indices="classes"),
    "UnsortedSegmentSum": Facts(indices=(1, 2)),
    "BiasAddGrad": Facts(adds_up=True, shared_gradient=0),
    "FusedBatchNormV3": Facts(adds_up=True, xla="anew", arithmetic=8),
    "FusedBatchNormGradV3": Facts(adds_up=True, arithmetic=12),
    # Products and convolutions.
    "MatMul": Facts(
        workspace="little", fuses_into=("BiasAdd",), xla="alone", arithmetic="matrix product"
    ),
    "BatchMatMulV2": Facts(workspace="little", xla="alone", arithmetic="matrix product"),
    "BatchMatMul BatchMatMulV3": Facts(xla="alone", arithmetic="matrix product"),
    "Einsum": Facts(workspace="copies", xla="alone", arithmetic="einsum"),
    "Conv2D Conv3D": Facts(fuses_into=("BiasAdd",), xla="alone", arithmetic="convolution"),
    "DepthwiseConv2dNative": Facts(
        fuses_into=("BiasAdd",), xla="alone", arithmetic="convolution", depthwise=True
    ),
    "Conv2DBackpropInput Conv3DBackpropInputV2": Facts(
        xla="alone", early_and_late=(1, 2), arithmetic="input gradient"
    ),
    "DepthwiseConv2dNativeBackpropInput": Facts(
        xla="alone", early_and_late=(1, 2), arithmetic="input gradient", depthwise=True
    ),
    "Conv2DBackpropFilter Conv3DBackpropFilterV2": Facts(
        sibling="BiasAddGrad",
        shared_gradient=2,
        xla="alone",
        early_and_late=(0, 2),
        arithmetic="filter gradient",
    ),
    "DepthwiseConv2dNativeBackpropFilter": Facts(
        xla="alone", early_and_late=(0, 2), arithmetic="filter gradient", depthwise=True
    ),
    "Conv2DBackpropInputV2": Facts(xla="alone", arithmetic="input gradient"),
    "Conv2DBackpropFilterV2": Facts(xla="alone", arithmetic="filter gradient"),
    # XLA's gradient of max pooling is written anew: program/max_pool_gradient.py.
    "MaxPool*Grad* AvgPool*Grad*": Facts(xla="alone", arithmetic="pooling gradient"),
    "MaxPool* AvgPool*": Facts(xla="alone", arithmetic="pooling"),
    # Random numbers, checks, functions and lists.
    "RandomUniform": Facts(draws=True, arithmetic=20),
    "RandomStandardNormal": Facts(draws=True, arithmetic=40),
    "Multinomial ParameterizedTruncatedNormal RandomGamma RandomPoissonV2 RandomShuffle "
    "RandomUniformInt TruncatedNormal": Facts(draws=True),
    "CudnnRNN*": Facts(draws=True),  # for their dropout
    "StatelessRandomUniformV2": Facts(arithmetic=20),
    "StatelessRandomNormalV2": Facts(arithmetic=40),
    "Assert CheckNumericsV2": Facts(only_checks=True),
    "While StatelessWhile": Facts(runs="loop"),
    "If StatelessIf Case StatelessCase": Facts(runs="branch"),
    "PartitionedCall StatefulPartitionedCall": Facts(runs="call"),
    "TensorListReserve EmptyTensorList": Facts(elements="none"),
    "TensorListPopBack OptionalNone OptionalFromValue": Facts(elements="elsewhere"),
    "TensorListPushBack": Facts(elements=1),
    "TensorListSetItem": Facts(elements=2),
    # All others with such a name, also those that are fused and named like "Pad+Conv2D".
    "*Depthwise*": Facts(xla="alone", depthwise=True),
    "*Conv* *MatMul* *Einsum* *Pool* *Cum* *Sort* *TopK* *Scatter*": Facts(xla="alone"),
}
"""By types of which the same is known. `*` stands for anything: such a row holds for types that
have no row of their own, and the first one that fits does."""

TABLE = {kind: row for kinds, row in _ROWS.items() for kind in kinds.split() if "*" not in kind}
"""By type."""

_FAMILIES = {kind: row for kinds, row in _ROWS.items() for kind in kinds.split() if "*" in kind}


@functools.cache
def facts(kind: str) -> Facts:
    """What is known of a type of operation.

    Example:
        >>> facts("Conv2D").fuses_into, facts("Relu").buffer, facts("ResourceApplyAdam").variable
        (('BiasAdd',), 'in place', 'writes')
        >>> facts("ATypeOfSomeoneElse") == Facts()
        True
    """
    known = TABLE.get(kind)
    return next(iter(families(kind)), Facts()) if known is None else known


def families(kind: str) -> list[Facts]:
    """The rows for types of such a name, whether or not it has a row of its own."""
    return [row for name, row in _FAMILIES.items() if fnmatchcase(kind, name)]


def types(test: Callable[[Facts], bool]) -> frozenset[str]:
    """The types with a row of their own of which `test` is true.

    Example:
        >>> sorted(types(lambda row: row.variable == "adds"))
        ['AssignAddVariableOp', 'AssignSubVariableOp']
    """
    return frozenset(kind for kind, row in TABLE.items() if test(row))
