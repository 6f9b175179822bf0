"""Devices: how operations are ordered there, and what their allocators hold and count."""
