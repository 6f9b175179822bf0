"""How many bytes TensorFlow had no memory for, as its error says."""

from __future__ import annotations

import re
from math import prod

_TENSOR = re.compile(r"allocating tensor with shape\[([\d,]*)\] and type (\w+)")

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
