"""A ConcreteFunction and a schedule in, a function that runs the step by that schedule out."""
