"""The best published overheads on public instances, to print beside one's own.

Sources: Checkmate's MILP and Moccasin from the Moccasin poster (ICML 2023), order fixed; FastSA
from its paper's table, order free. The instances are recognized by their numbers of nodes and
edges: on a graph of one's own with the same numbers the figures are a landmark, no comparison.
"""

from __future__ import annotations

_ROWS = """
100 236 fixed 90 0.8    100 236 fixed 80 2.3    100 236 free 90 0.0    100 236 free 80 0.3
250 944 fixed 90 0.9    250 944 fixed 80 4.9
250 944 free 90 0.0     250 944 free 80 0.0     250 944 free 70 2.6
500 2461 fixed 90 0.7   500 2461 fixed 80 3.4   500 2461 free 90 0.03  500 2461 free 80 2.3
1000 5875 fixed 90 0.7  1000 5875 fixed 80 3.4
1000 5875 free 90 0.4   1000 5875 free 80 2.5   1000 5875 free 70 7.4
73 149 fixed 90 0.0     73 149 fixed 80 0.1
73 149 free 90 0.1      73 149 free 80 0.1      73 149 free 70 3.0
353 751 fixed 90 0.1    353 751 fixed 80 0.3
353 751 free 90 0.2     353 751 free 80 0.4     353 751 free 70 0.8
"""


def published_overhead(nodes: int, edges: int, order: str, budget: int) -> float | None:
    """Overhead in % of one pass at `budget` % of the input-order peak; None if nobody says.

    Example:
        >>> published_overhead(250, 944, "fixed", 80)
        4.9
    """
    words = _ROWS.split()
    for at in range(0, len(words), 5):
        if words[at : at + 4] == [str(nodes), str(edges), order, str(budget)]:
            return float(words[at + 4])
    return None
