"""Keras models on a GPU, as they are and within a budget: bytes, times, bits."""
