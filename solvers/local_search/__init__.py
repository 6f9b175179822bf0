"""Local search: a graph and a budget in, ever cheaper schedules out, in any order.

    solver, least_memory   what others call
    search                 rounds of chains side by side
    chain                  one run of simulated annealing
    annealing              the loop over moves: objective, temperature, penalty
    recomputations, shifts the moves
    positions              where computations stand, and where they may
    changes                inserting and removing one computation
    memory_profile         the memory at every position, and the violation of the budget
    search_state, layout   the arrays, and how large they are
    settings               every tuned constant

All below `chain` is compiled by numba, see `compilation`.
"""
