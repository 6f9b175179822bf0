"""What every solver reads and writes: graphs, schedules, and the simulator that judges them."""

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
