"""Keeps the user's cache out of all tests, doctests too, and the tests out of the user's cache."""

from __future__ import annotations

import os
import tempfile

_CACHE = tempfile.TemporaryDirectory(prefix="checkmate_tf-tests-")  # until the process ends
os.environ["CHECKMATE_TF_CACHE"] = _CACHE.name
os.environ["CHECKMATE_TF_PLANS"] = "off"
