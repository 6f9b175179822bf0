"""A schedule in, the instructions that run it out; what they hold, and the function they become."""
