"""The loop language: what kernels do, as data, and the passes on it."""
