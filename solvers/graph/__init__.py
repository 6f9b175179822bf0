"""What every solver reads and writes: graphs and schedules, and the simulator that judges them.

node, computation_graph   what is computed, and who reads what
schedule, matrices        when it is computed, as steps or as the paper's (R, S)
simulator                 what a schedule costs, and its memory at every step
bounds, order             what follows from a graph alone
budget                    memory budgets as people write them
layer_graphs              the paper's graphs, from tables
graph_files, node_link    graphs as JSON
"""

from solvers.graph.computation_graph import ComputationGraph
from solvers.graph.node import Node
from solvers.graph.schedule import BoolMatrix, Schedule
from solvers.graph.simulator import Simulation, input_order_peak, simulate

__all__ = [
    "BoolMatrix",
    "ComputationGraph",
    "Node",
    "Schedule",
    "Simulation",
    "input_order_peak",
    "simulate",
]
