"""A stand-in for CUDA's libraries, over which TensorFlow's GPU build sees GPUs: `cuda.c`."""
