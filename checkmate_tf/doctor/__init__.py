"""This installation in, findings out: what is there, and whether a step trains by a plan here."""
