"""The best published overheads on public instances, to print beside one's own.

Sources: Checkmate's MILP and Moccasin from the Moccasin poster (ICML 2023), order fixed; FastSA
from its paper's table, order free. On a random layered graph of one's own that is only like the
instance the figures are a landmark, no comparison. Those of networks are of the authors' profiles,
and are printed beside these only.
"""

from __future__ import annotations

_ROWS = """
layered-100 fixed 90 0.8    layered-100 fixed 80 2.3
layered-100 free 90 0.0     layered-100 free 80 0.3
layered-250 fixed 90 0.9    layered-250 fixed 80 4.9
layered-250 free 90 0.0     layered-250 free 80 0.0     layered-250 free 70 2.6
layered-500 fixed 90 0.7    layered-500 fixed 80 3.4
layered-500 free 90 0.03    layered-500 free 80 2.3
layered-1000 fixed 90 0.7   layered-1000 fixed 80 3.4
layered-1000 free 90 0.4    layered-1000 free 80 2.5    layered-1000 free 70 7.4
FCN8 fixed 90 0.0           FCN8 fixed 80 0.1
FCN8 free 90 0.1            FCN8 free 80 0.1            FCN8 free 70 3.0
ResNet50 fixed 90 0.1       ResNet50 fixed 80 0.3
ResNet50 free 90 0.2        ResNet50 free 80 0.4        ResNet50 free 70 0.8
"""


_PUBLIC = {
    "ResNet50 (MLSys)": "ResNet50",
    "random_layered_n250": "layered-250",
}
"""How the names of the public graphs begin, and the instances that they are."""


def public_instance(graph_name: str) -> str:
    """The instance that a saved graph is; empty if it is none.

    Example:
        >>> public_instance("ResNet50 (MLSys)_256_(224, 224, 3)_train"), public_instance("ResNet50")
        ('ResNet50', '')
    """
    return next((each for start, each in _PUBLIC.items() if graph_name.startswith(start)), "")


def published_overhead(instance: str, order: str, budget: int) -> float | None:
    """Overhead in % of one pass at `budget` % of the input-order peak; None if nobody says.

    Args:
        instance: "layered-250" is the random layered graph of 250 nodes; or a network's name, with
            the authors' profile.

    Example:
        >>> published_overhead("layered-250", "fixed", 80)
        4.9
    """
    words = _ROWS.split()
    for at in range(0, len(words), 4):
        if words[at : at + 3] == [instance, order, str(budget)]:
            return float(words[at + 3])
    return None
