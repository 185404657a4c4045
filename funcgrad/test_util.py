"""Checks of derivatives under the names of ``jax.test_util``.

`check_grads` is that of `funcgrad.testing`; the others check functions that claim to be
derivatives, along one random direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.base.namespaces import present
from funcgrad.base.pytree import tree_leaves, tree_map
from funcgrad.testing import GradientError, check_grads, direction

__all__ = ["check_grads", "check_jvp", "check_vjp"]

Function = Callable[..., Any]

_RELATIVE = {4: 3e-2, 8: 1e-5}
"""Relative tolerances of differences, by the bytes of the least precise real number."""


def check_jvp(
    f: Function,
    f_jvp: Function,
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare a function for tangents with central differences.

    Args:
        f: Function of arrays or pytrees of floats.
        f_jvp: From arguments and tangents, two tuples, to results and their tangents.
        args: The point.
        atol: Absolute tolerance; by default ``rtol``.
        rtol: Relative tolerance; by default 1e-5 for double and 3e-2 for single precision.
        eps: Step of the differences; by default the cube root of the machine epsilon.
        err_msg: What an error begins with.
    Raises: GradientError: If results or tangents differ.

    Example:
        >>> fg.test_util.check_jvp(np.sin, lambda args, dots: fg.jvp(np.sin, args, dots), (0.5,))
    """
    check = _Comparison(args, atol, rtol, eps, err_msg)
    directions = check.directions(args)
    out, out_dots = f_jvp(tuple(args), directions)
    check.compare("fwd", "results", out, f(*args))
    check.compare("fwd", "tangents", out_dots, check.difference(f, args, directions))


def check_vjp(
    f: Function,
    f_vjp: Function,
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare a function for cotangents with central differences.

    Args:
        f: Function of arrays or pytrees of floats.
        f_vjp: From arguments to results and a function, from a cotangent to those of the arguments.
        args: The point.
        atol: Absolute tolerance; by default ``rtol``.
        rtol: Relative tolerance; by default 1e-5 for double and 3e-2 for single precision.
        eps: Step of the differences; by default the cube root of the machine epsilon.
        err_msg: What an error begins with.
    Raises: GradientError: If results or cotangents differ.

    Example:
        >>> fg.test_util.check_vjp(np.sin, lambda x: fg.vjp(np.sin, x), (0.5,))
    """
    check = _Comparison(args, atol, rtol, eps, err_msg)
    directions = check.directions(args)
    out, pull = f_vjp(*args)
    check.compare("rev", "results", out, f(*args))
    ct = check.directions(out)
    moved = check.difference(f, args, directions)
    check.compare("rev", "cotangents", _product(pull(ct), directions), _product(ct, moved))


class _Comparison:
    """Directions, differences and tolerances."""

    def __init__(
        self, args: Any, atol: float | None, rtol: float | None, eps: float | None, err_msg: str
    ) -> None:
        real = [np.asarray(x).real.dtype for x in tree_leaves(args)]
        coarsest = max((np.finfo(d) for d in real if d.kind == "f"), key=lambda f: f.eps)
        self.rtol = _RELATIVE[coarsest.dtype.itemsize] if rtol is None else rtol
        self.atol = self.rtol if atol is None else atol
        self.eps = float(np.cbrt(coarsest.eps)) if eps is None else eps
        self.err_msg = err_msg
        self.rng = np.random.default_rng(0)

    def directions(self, tree: Any) -> Any:
        """A direction for every array."""
        found = tree_map(lambda x: direction(x, self.rng)[()], tree)
        return tuple(found) if isinstance(tree, list) else found

    def difference(self, f: Function, args: Sequence[Any], directions: Any) -> Any:
        """The derivative along the directions."""
        high = tree_map(lambda x, d: x + self.eps * d, tuple(args), directions)
        low = tree_map(lambda x, d: x - self.eps * d, tuple(args), directions)
        return tree_map(lambda a, b: (a - b) / (2 * self.eps), f(*high), f(*low))

    def compare(self, mode: str, what: str, got: Any, expected: Any) -> None:
        """Raise if arrays differ."""
        for x, y in zip(tree_leaves(got), tree_leaves(expected), strict=True):
            size = float(np.max(np.abs(y), initial=0.0))
            error = float(np.max(np.abs(np.asarray(x) - y), initial=0.0))
            if not error <= self.atol + self.rtol * size:
                raise GradientError(
                    f"{self.err_msg}{self.err_msg and ': '}{what} are wrong: the absolute error is "
                    f"{error:.2e}, differences are of size {size:.2e}, tolerance {self.atol:.1e} + "
                    f"{self.rtol:.1e} * size.",
                    what,
                    mode,
                    1,
                    error,
                )


def _product(a: Any, b: Any) -> Any:
    """The sum of products over all arrays."""
    pairs = zip(tree_leaves(a), tree_leaves(b), strict=True)
    return sum(np.sum(np.asarray(x) * y) for x, y in pairs)


present(__name__)
