"""Kernels in machine code: the words of kernels, formulas, LLVM, and Numba as the reference."""
