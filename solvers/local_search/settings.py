"""Every tuned constant of the search. Kernels compile these values in."""

# Size of a search state
BLOCK_BITS = 6  # log2 of the positions in one block of the memory profile
BLOCK = 1 << BLOCK_BITS  # positions in one block of the memory profile
FEWEST_POSITIONS = 128  # positions of the smallest search state
POSITIONS_PER_NODE = 4  # positions per node of a large graph
SMALL_GRAPH = 1000  # nodes up to which a graph counts as small
SMALL_GRAPH_POSITIONS = 8  # positions per node of a small graph
MOST_FILLED = 0.8  # share of the positions up to which moves add computations
MOST_COMPUTATIONS = 20  # computations of one node that are allowed; each makes a move slower
JOURNAL_LENGTH = 4096  # changes that one move can take back

# Choice of a move, in percent; what is left to 100 shifts one computation
ADD_PERCENT = 50  # add a recomputation
DROP_PERCENT = 22  # drop a recomputation
MERGE_PERCENT = 3  # drop a first computation; in a fixed order, a recomputation
DRAG_PERCENT = 10  # drag computations along, in a free order only
FOCUSED_ONE_IN = 2  # moves over budget: that one in so many aims at a position over budget

# Moves
SEARCHED_POSITIONS = 96  # positions on either side that are looked at for an empty one
RETAINED_TRIES = 24  # nodes that are looked at for one that is retained at a position
MOST_DRAGGED = 24  # computations that one move takes along, at most
SHORTEST_DRAG_LOG2 = 3.0  # log2 of the positions of the shortest drag
FREES_NOTHING_ONE_IN = 8  # recomputations that lower no violation: one in so many is tried
INPUT_ONE_IN = 4  # inputs that are gone: one in so many is recomputed, not retained
DEAR_INPUT = 2.0  # an input is dear if retaining it costs so many times its recomputation
DEAR_INPUT_ONE_IN = 2  # dear inputs: one in so many is recomputed besides
EARLY_ONE_IN = 4  # recomputations: one in so many is made early, while its inputs still live
EARLY_OVER_BUDGET_ONE_IN = 2  # the same where a position is over budget

# Penalty of a budget violation; its unit is mean cost ÷ mean memory of a node
FIRST_PENALTY = 0.02  # penalty at the start of a chain
HIGHEST_PENALTY = 3e2  # penalty above which it starts again from low down
PENALTY_RANGE = 2e2  # highest penalty ÷ the penalty from which it starts again
PENALTY_MOVES = 64  # moves between two changes of the penalty
PENALTY_FACTOR = 1.05  # one change of the penalty, as a factor
UNDER_BUDGET_SHARE = 0.25  # share of moves that end under budget above which the penalty falls

# Temperatures, in mean costs of a node
HOT = 0.6  # start of a chain that begins from scratch
WARM = 0.1  # start of a chain that begins from a good schedule
COLD = 0.006  # end of every chain

# Rounds
CHAINS = 4  # chains side by side, at most
MOVES_PER_NODE = 3000  # moves of one chain in one round, per node
FEWEST_MOVES = 50_000  # moves of one chain in one round, at least
MOST_MOVES = 20_000_000  # moves of one chain in one round, at most
CHUNK_SECONDS = 0.2  # seconds between two looks at the clock
CHUNK_MOVES = 2000  # moves between two looks at the clock, at least
PATIENCE = 8  # rounds without an improvement after which the search ends
IMPROVEMENT = 1e-6  # relative gain in cost that counts as an improvement
CLOSE = 1e-3  # relative gap to a bound below which searching on is hopeless
ROUNDING = 1e-9  # relative difference of costs that is floating-point noise

# Least memory
LEAST_MEMORY_SHARE = 0.15  # share of the time limit for the least memory if nothing is under budget
LEAST_MEMORY_ROUND = 4  # moves of a usual round ÷ moves of a round for the least memory
FIRST_AMBITION = 0.5  # share of the way down to the bound at which the first round aims
LAST_AMBITION = 0.004  # share of the way down to the bound below which no round aims

# Heuristics
HEURISTICS_SHARE = 0.02  # share of the time limit for the heuristics, before the search, at most

# Units of memory: a block of the profile is summed in 32 bits
MOST_UNITS_OF_ONE = 2**24  # units of one value, at most
MOST_UNITS = 2**30  # units of all values together, at most
