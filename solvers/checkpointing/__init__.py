"""Rules that choose what to keep: a graph in, checkpoints and the schedules they lead to out."""
