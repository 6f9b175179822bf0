"""A graph and a budget in, the best schedule and bound of search and cutting planes out.

Both run side by side, each feeding the other. The search finds schedules. The passes of
`cutting_planes.fixed_order` bound their cost from below, and the candidates that they build are
starts for the search, even over budget.

With a fixed order the bound holds for the problem. With a free order the passes work in the order
of the incumbent's first computations, and move on with it; their bound holds for that order only.
Before that there is one pass in input order, and one bound for all orders at once; see
`cutting_planes.free_order_bound`.
"""
