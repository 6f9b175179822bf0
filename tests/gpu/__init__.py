"""Tests for GPUs: on a real one where there is one, else over a stand-in for CUDA's libraries.

    make gpu
    python -m tests.gpu [ARGUMENTS OF PYTEST]

What is true over the stand-in, and what is not, is said in `stand_in/cuda.c`. A test of what is not
asks `is_stand_in`. One that needs another GPU, two for instance, starts a process of its own, with
`tests.gpu.processes`.
"""

from __future__ import annotations


def is_stand_in() -> bool:
    """Whether the GPU that TensorFlow sees is none, so that values and times mean nothing."""
    import tensorflow as tf

    gpu = tf.config.list_physical_devices("GPU")[0]
    return bool(tf.config.experimental.get_device_details(gpu)["device_name"].startswith("no GPU"))
