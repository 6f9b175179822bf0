"""An exact method for a fixed order: a graph and a budget in, a schedule and a bound out."""
