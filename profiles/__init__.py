"""What an operation costs: analytic models and measurement on a device."""
