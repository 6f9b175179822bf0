"""Tests for GPUs are collected only where TensorFlow sees one."""

from __future__ import annotations

import tensorflow as tf

collect_ignore_glob = [] if tf.config.list_physical_devices("GPU") else ["test_*.py"]
