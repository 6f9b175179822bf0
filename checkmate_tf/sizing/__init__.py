"""In: a train step, an example batch, bytes. Out: the largest batch that fits, with its plan."""
