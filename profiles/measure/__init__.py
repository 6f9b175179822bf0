"""Measurement: an operation in, the seconds and bytes that it took on a device out."""
