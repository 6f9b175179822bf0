"""A schedule in, the bytes that a device holds while it runs out: forecast, and measured."""
