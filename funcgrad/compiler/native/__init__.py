"""Kernels in machine code: the words of kernels, formulas, Numba, LLVM."""
