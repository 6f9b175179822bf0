"""In: a train step and an example. Out: budget against extra time, with a plan for each."""
