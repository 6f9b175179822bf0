"""The search for a plan of a step that XLA compiles: by what the compiler reports."""
