"""Kinds of train steps as people write them in, a table of what the decorator makes of each out."""
