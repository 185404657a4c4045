"""Which solvers ask whether a Jacobian is sparse, and what they take for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.api.sparse_derivatives import jacobian_sparsity
from funcgrad.api.staging import ShapeDtypeStruct
from funcgrad.patterns.coloring import Coloring, coloring

SPARSE = 16
"""A matrix is sparse if it has fewer than one of so many entries."""


def colors_of(f: Callable[..., Any], x: Any, *rest: Any, least: int = 256) -> Coloring | None:
    """Colours of the columns of the Jacobian of ``f`` at values like ``x``, if it is sparse.

    Args:
        f: The function.
        x: Of its first argument, a value or its type.
        rest: Of its other arguments.
        least: Unknowns from which the pattern is asked for.
    """
    if x.size < least or x.dtype.kind != "f":
        return None
    types = [ShapeDtypeStruct(a.shape, a.dtype) for a in (x, *rest)]
    pattern = jacobian_sparsity(f)(*types)
    m, n = pattern.shape
    if pattern.bound * SPARSE > m * n:
        return None
    colors = coloring(pattern)
    return colors if colors.n_colors * SPARSE <= n else None
