"""What TensorFlow says of a step that exhausted the memory: of which operation, for how much."""

from __future__ import annotations

import re

from checkmate_tf.graph.extraction import Extraction

_NODE = re.compile(r"\{\{node (\S+?)\}\}")
_CALLS = re.compile(r"^(?:.*PartitionedCall(?:_\d+)?/)")


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
