"""Real models on real data, each training in a process of its own, for demos and experiments."""
