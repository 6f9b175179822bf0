"""What TensorFlow says of a step that exhausted the memory: of which operation, for how much."""

from __future__ import annotations

import re
from math import prod

from checkmate_tf.graph.extraction import Extraction

_TENSOR = re.compile(r"allocating tensor with shape\[([\d,]*)\] and type (\w+)")
_NODE = re.compile(r"\{\{node (\S+?)\}\}")
_CALLS = re.compile(r"^(?:.*PartitionedCall(?:_\d+)?/)")

_BYTES = {
    **dict.fromkeys(["double", "int64", "uint64", "complex64"], 8),
    **dict.fromkeys(["half", "bfloat16", "int16", "uint16"], 2),
    **dict.fromkeys(["bool", "int8", "uint8", "qint8", "quint8"], 1),
    "complex128": 16,
}
"""By type as TensorFlow's error names it; of all others four."""


def bytes_asked_for(message: str) -> int:
    """Of the tensor for which there was no memory; 0 where that is not said.

    Example:
        >>> bytes_asked_for("OOM when allocating tensor with shape[2048,512] and type float on …")
        4194304
    """
    found = _TENSOR.search(message)
    if found is None:
        return 0
    return prod(map(int, filter(None, found[1].split(",")))) * _BYTES.get(found[2], 4)


def failed_operation(message: str) -> str:
    """The name of the operation for which there was no memory; "" where that is not said.

    Example:
        >>> failed_operation("[[{{node StatefulPartitionedCall/net/dense/MatMul}}]]")
        'net/dense/MatMul'
    """
    found = _NODE.findall(message)
    return _CALLS.sub("", found[-1]) if found else ""


def failed_node(message: str, extracted: Extraction) -> int | None:
    """The node that the operation is part of; None where that is not known.

    One that is computed again has a number behind its name in the function that runs.
    """
    name = failed_operation(message)
    places = {each.name: place for place, each in enumerate(extracted.program.operations)}
    place = places.get(name, places.get(re.sub(r"_\d+$", "", name)))
    of_nodes = zip(extracted.nodes, extracted.attached, strict=True)
    return next(
        (node for node, (one, other) in enumerate(of_nodes) if place in (*one, *other)), None
    )
