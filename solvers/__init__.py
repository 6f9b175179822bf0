"""Graphs, schedules, the simulator and every solver. Works without TensorFlow."""

from solvers.api import SOLVERS, find_solver, register, solve
from solvers.errors import (
    AnswerError,
    BudgetError,
    CheckmateError,
    CheckmateWarning,
    GraphError,
    ScheduleError,
    SolverError,
)
from solvers.graph import ComputationGraph, Node, Schedule, Simulation, simulate
from solvers.graph.budget import Budget, format_bytes, parse_budget
from solvers.problem import Problem, Progress, Solution, Status, answer

__all__ = [
    "SOLVERS",
    "AnswerError",
    "Budget",
    "BudgetError",
    "CheckmateError",
    "CheckmateWarning",
    "ComputationGraph",
    "GraphError",
    "Node",
    "Problem",
    "Progress",
    "Schedule",
    "ScheduleError",
    "Simulation",
    "Solution",
    "SolverError",
    "Status",
    "answer",
    "find_solver",
    "format_bytes",
    "parse_budget",
    "register",
    "simulate",
    "solve",
]
