"""The first-order primitives, one file per family, each with all of its rules.

A rule may use other primitives of this package and nothing above it. Programs as parameters
(jit, loops, branches) belong to `funcgrad.higher_order`.
"""
