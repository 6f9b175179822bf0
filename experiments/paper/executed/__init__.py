"""Real training steps, measured: what the paper never did. In: networks; out: peaks and times."""
