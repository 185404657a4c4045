"""Elementary functions as branch-free formulas that vectorise.

Every function takes and gives scalars of one float type (32 or 64 bits) with Python's operators and
the methods of `native.scalars.Emitted`; LLVM turns a loop around it into vector code, because it
holds selections instead of branches. All are right for signed zeros, subnormals, infinities and
NaN. Polynomials are Chebyshev fits of the remainder after the exact leading terms; their errors
stay below 0.15 units in the last place, and rounding does the rest. Bounds are asserted by
`tests/compiler/test_vecmath.py`.

This package knows arithmetic only. Functions that are not here are libm's (`native.elementary`).
"""
