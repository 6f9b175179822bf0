"""Tests: a file for every source file, and end-to-end tests."""

import os

# For those that are commands of their own; pytest has it from conftest.py.
os.environ.setdefault("CHECKMATE_TF_PLANS", "off")
