"""Whose rules traced arrays follow where the libraries' rules differ.

In NumPy arrays change: ``x.copy()`` can be assigned to, ``x.sort()`` sorts ``x``. In JAX they do
not: both give an array. The rule is that of the code that makes the transformation, so it belongs
to the context of a call: programs for either library run side by side in one process.
"""

from __future__ import annotations

from contextvars import ContextVar

NUMPY, JAX = "numpy", "jax"
_dialect: ContextVar[str] = ContextVar("funcgrad_dialect", default=NUMPY)

dialect = _dialect.get
"""The library whose rules hold in this thread and context: `NUMPY` or `JAX`."""

enter_dialect = _dialect.set
"""Follow the rules of a library; returns the token for `leave_dialect`."""

leave_dialect = _dialect.reset
