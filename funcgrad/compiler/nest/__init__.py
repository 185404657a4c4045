"""Loop nests: what is computed into memory, rewritten until it can be written as kernels."""
