"""Reverse mode of scalar code: one room for the rules, the tape and the operators of its tracers.

A function of Python's floats and float64 scalars is many operations of next to no work each, so
that interpreting is what costs. `linearize_once` takes the place of `linearize_flat` where a
gradient is pulled once, and is the only entry. Without the room (``FUNCGRAD_SCALAR_TAPE=0``) such
functions are differentiated as all others are, with equal results. Processor time without it, in
pairs: 2.5 times that of a gradient of 4 operations, 16 of 100, 13 of Rosenbrock's function of 20
numbers. Of that, tracers that are kept for the next function save a fifth to two fifths.
"""

from funcgrad.scalar_tape.operators import FUNCTIONS, install
from funcgrad.scalar_tape.trace import NumberTracer, linearize_once

__all__ = ["FUNCTIONS", "NumberTracer", "install", "linearize_once"]
