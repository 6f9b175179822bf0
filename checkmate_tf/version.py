"""The version of this package: the only place of it."""

__version__ = "0.1.0"
