"""Steps that XLA compiles: what a plan does to their memory, bits and time."""
