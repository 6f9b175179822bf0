"""The figures that the portfolio was tuned with."""

HEAD_START = 1.5
"""Seconds that the passes get alone in a fixed order; small problems need nothing else."""

LARGEST_RELAXED = 10_000
"""Nodes up to which a relaxation is known to be worth its time; more were not tried."""

PATIENCE, SETTLED_PATIENCE = 6, 3
"""Rounds without a gain worth having after which the search ends; the second once the incumbent
is optimal for its order."""

WORTH = 2e-4
"""A gain worth having, relative to the cost."""

SHORTEST_PASS, PASS_SHARE = 3.0, 0.4
"""What a pass gets in a free order: seconds at least, and share of the time left."""

ASIDE_SHARE = 0.1
"""Share of the time left that a pass gets about where the search is stuck."""

SHORT_PASSES = 1.0
"""Seconds in which passes follow each other at once: a round of the search takes longer."""

FIRST_ADVANCE = 0.5
"""Share of the way from the least peak so far to the budget at which the intermediate budget is.
It is halved after each miss."""

CLOSE_ENOUGH = 0.01
"""The least peak's distance to the budget, relative to it, below which there is none."""

LOWER_BY, LOWER_ONE_IN = 0.05, 3
"""While so little is missing, one round in so many aims below the budget, by a share of it."""

ROUND_SHARE, FIRST_SHARE = 0.12, 0.4
"""Share of the time limit that one round of the search takes at most; the second while nothing is
under budget, since cooling too fast ends over it."""

LOOK = 0.02
"""Seconds between two looks at the clock while a pass works alone."""
