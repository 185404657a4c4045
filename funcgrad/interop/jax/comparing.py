"""Comparisons of JAX's own tests, which tests of libraries import: tolerances by dtype."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad import test_util
from funcgrad.base.pytree import tree_flatten, tree_map
from funcgrad.interop.jax.words import asarray

_TOLERANCES = {2: 1e-3, 4: 1e-6, 8: 1e-15}
"""Absolute and relative, by the bytes of a real number."""


Tolerance = float | Mapping[Any, float] | None
"""A number, or one for each dtype; those that are missing are found by the dtype."""


def tolerance(dtype: Any, tol: Tolerance = None) -> float:
    """How much results of a dtype may differ: by default nothing, if they are exact."""
    known = np.dtype(dtype)
    if isinstance(tol, int | float):
        return float(tol)
    for other, given in (tol or {}).items():
        if np.dtype(getattr(other, "dtype", other)) == known:
            return float(given)
    if known.kind not in "fc":
        return 0.0
    return _TOLERANCES[known.itemsize // 2 if known.kind == "c" else known.itemsize]


def check_close(
    xs: Any, ys: Any, atol: Tolerance = None, rtol: Tolerance = None, err_msg: str = ""
) -> None:
    """Compare two pytrees of arrays.

    Args:
        xs: Computed.
        ys: Expected, of the same structure.
        atol: Absolute tolerance; that of the less precise dtype counts.
        rtol: Relative tolerance; likewise.
        err_msg: What an error begins with.

    Raises:
        AssertionError: If structures, shapes or values differ.
    """
    (found, tree), (expected, other) = tree_flatten(xs), tree_flatten(ys)
    assert tree == other, f"{err_msg}{tree} is not of the structure {other}"
    for x, y in zip(found, expected, strict=True):
        a, b = np.asarray(x), np.asarray(y)
        assert a.shape == b.shape, f"{err_msg}shapes {a.shape} and {b.shape} differ"
        np.testing.assert_allclose(
            a,
            b,
            atol=max(tolerance(a.dtype, atol), tolerance(b.dtype, atol)),
            rtol=max(tolerance(a.dtype, rtol), tolerance(b.dtype, rtol)),
            err_msg=err_msg,
        )


def _at_arrays(check: Callable[..., Any]) -> Callable[..., Any]:
    """A check of derivatives, at arrays in the bits that there are."""
    place = 1 if check is test_util.check_grads else 2

    @functools.wraps(check)
    def compute(*args: Any, **options: Any) -> Any:
        if len(args) > place:
            point: Sequence[Any] = tree_map(asarray, args[place])
            args = (*args[:place], point, *args[place + 1 :])
        elif "args" in options:
            options["args"] = tree_map(asarray, options["args"])
        return check(*args, **options)

    return compute


check_grads = _at_arrays(test_util.check_grads)
check_jvp = _at_arrays(test_util.check_jvp)
check_vjp = _at_arrays(test_util.check_vjp)
