"""A step at every batch size in; the largest batch that fits some bytes, and its plan, out."""
