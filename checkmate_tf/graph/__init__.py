"""A `Program` and a cost model in, the `ComputationGraph` that solvers read out."""
