"""``autograd.scipy``: SciPy's names, those of funcgrad first."""

from funcgrad.interop.autograd.scipy import integrate, linalg, misc, signal, special, stats
