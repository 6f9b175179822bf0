"""A step, run on copies of its variables, and the bytes that the device held."""
