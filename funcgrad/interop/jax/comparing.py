"""Comparisons of JAX's own tests, which tests of libraries import: tolerances by dtype."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad.base.pytree import tree_flatten, tree_leaves, tree_map
from funcgrad.interop.jax.widths import HALVES, canonical
from funcgrad.interop.jax.words import asarray, jvp, linearize, vjp

Function = Callable[..., Any]

_TOLERANCES = {2: 1e-3, 4: 1e-6, 8: 1e-15}
"""Absolute and relative, by the bytes of a real number."""


Tolerance = float | Mapping[Any, float] | None
"""A number, or one for each dtype; those that are missing are found by the dtype."""


def _named(kind: Any) -> np.dtype[Any]:
    """The dtype that a dtype, a class of NumPy's scalars or a function for numbers stands for."""
    found = getattr(kind, "dtype", None)
    return found if isinstance(found, np.dtype) else np.dtype(kind)


def tolerance(dtype: Any, tol: Tolerance = None) -> float:
    """How much results of a dtype may differ: by default nothing, if they are exact."""
    known = np.dtype(dtype)
    if isinstance(tol, int | float):
        return float(tol)
    for other, given in (tol or {}).items():
        if _named(other) == known:
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
        atol: Absolute tolerance, for each element; that of the less precise dtype counts.
        rtol: Relative tolerance; likewise.
        err_msg: What an error begins with.
    Raises: AssertionError: If structures, shapes or values differ.
    """
    (found, tree), (expected, other) = tree_flatten(xs), tree_flatten(ys)
    assert tree == other, f"{err_msg}{tree} is not of the structure {other}"
    for x, y in zip(found, expected, strict=True):
        a, b = np.asarray(x), np.asarray(y)
        assert a.shape == b.shape, f"{err_msg}shapes {a.shape} and {b.shape} differ"
        np.testing.assert_allclose(
            a,
            b,
            atol=a.size * max(tolerance(a.dtype, atol), tolerance(b.dtype, atol)),
            rtol=b.size * max(tolerance(a.dtype, rtol), tolerance(b.dtype, rtol)),
            err_msg=err_msg,
        )


EPS = 1e-4
"""Step of differences."""

_OF_DERIVATIVES = {
    **dict.fromkeys(HALVES, 0.1),
    np.dtype(np.float16): 1e-2,
    np.dtype(np.float32): 2e-3,
    np.dtype(np.float64): 1e-5,
    np.dtype(np.complex64): 1e-3,
    np.dtype(np.complex128): 1e-5,
}
"""Absolute and relative tolerances of derivatives."""


def _of_derivatives(tol: Tolerance) -> Tolerance:
    """A tolerance, by default that of derivatives of each dtype."""
    if isinstance(tol, int | float):
        return tol
    given = {_named(k): v for k, v in (tol or {}).items()}
    return {**_OF_DERIVATIVES, **given}


def _is_number(x: Any) -> bool:
    return type(x) in (bool, int, float, complex)


def _dtype(x: Any) -> np.dtype[Any]:
    return canonical(np.result_type(x))


def _like(x: Any, values: Any) -> Any:
    """Values in the dtype of an array, or as the number that stands in its place."""
    made = np.asarray(values, _dtype(x))
    return made.item() if _is_number(x) else asarray(made)


def _directions(rng: np.random.RandomState, tree: Any) -> Any:
    """A random direction for every array."""

    def direction(x: Any) -> Any:
        draw = rng.randn(*np.shape(x))
        return _like(x, draw + 1j * rng.randn(*np.shape(x)) if _dtype(x).kind == "c" else draw)

    return tree_map(direction, tree)


def _difference(f: Function, args: Sequence[Any], directions: Any, eps: float) -> Any:
    """The derivative along directions by a central difference; 0 of equal infinities."""

    def moved(sign: int) -> Any:
        def shift(x: Any, d: Any) -> Any:
            step = np.multiply(np.asarray(d), np.asarray(sign * eps, _dtype(d)))
            return _like(x, np.add(np.asarray(x), step))

        return f(*tree_map(shift, tuple(args), tuple(directions)))

    def quotient(high: Any, low: Any) -> Any:
        a, b = np.asarray(high), np.asarray(low)
        with np.errstate(invalid="ignore"):
            return _like(high, np.where(a == b, 0, a - b) * np.asarray(0.5 / eps, _dtype(high)))

    return tree_map(quotient, moved(1), moved(-1))


def _check_dtypes(xs: Any, ys: Any) -> None:
    for x, y in zip(tree_leaves(xs), tree_leaves(ys), strict=True):
        assert _dtype(x) == _dtype(y), f"dtypes {_dtype(x)} and {_dtype(y)} differ"


def check_jvp(
    f: Function,
    f_jvp: Function,
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Compare a function for tangents with a difference along one random direction.

    Args:
        f: The function.
        f_jvp: From arguments and tangents, two tuples, to results and their tangents.
        args: The point.
        atol: Absolute tolerance, for each element of an array.
        rtol: Relative tolerance, likewise.
        eps: Step of the difference.
        err_msg: What an error begins with.
    Raises: AssertionError: If results, tangents or dtypes differ.
    """
    atol, rtol = _of_derivatives(atol), _of_derivatives(rtol)
    directions = _directions(np.random.RandomState(0), args)
    out, dots = f_jvp(args, directions)
    _check_dtypes(out, dots)
    expected = f(*args)
    _check_dtypes(out, expected)
    check_close(out, expected, atol, rtol, f"{err_msg} primal")
    check_close(dots, _difference(f, args, directions, eps), atol, rtol, f"{err_msg} tangent")


def check_vjp(
    f: Function,
    f_vjp: Function,
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Compare a function for cotangents with a difference along one random direction.

    Args:
        f: The function.
        f_vjp: From arguments to results and a function, from a cotangent to those of the arguments.
        args: The point.
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        eps: Step of the difference.
        err_msg: What an error begins with.
    Raises: AssertionError: If results or projections of cotangents differ.
    """
    atol, rtol = _of_derivatives(atol), _of_derivatives(rtol)
    rng = np.random.RandomState(0)
    out, pull = f_vjp(*args)
    check_close(out, f(*args), atol, rtol, f"{err_msg} primal")
    directions = _directions(rng, args)
    dots = _difference(f, args, directions, eps)
    cotangent = _directions(rng, out)
    pulled = _conjugates(pull(_conjugates(cotangent)))
    found, expected = _product(directions, pulled), _product(dots, cotangent)
    check_close(found, expected, atol, rtol, f"{err_msg} cotangent projection")


def _conjugates(tree: Any) -> Any:
    return tree_map(lambda x: _like(x, np.conj(np.asarray(x))), tree)


def _product(xs: Any, ys: Any) -> Any:
    """The real part of the inner product of two pytrees."""
    pairs = zip(tree_leaves(xs), tree_leaves(ys), strict=True)
    return sum(np.real(np.vdot(np.asarray(x), np.asarray(y))) for x, y in pairs)


def check_grads(
    f: Function,
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
) -> None:
    """Compare derivatives up to an order with differences along random directions.

    Args:
        f: The function.
        args: The point.
        order: The highest order.
        modes: "fwd", "rev" and "lin", of each order.
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        eps: Step of the differences.
    Raises: AssertionError: If they differ.
    """
    checks: dict[str, Callable[[Function], tuple[Any, Function, Function]]] = {
        "fwd": lambda f: (check_jvp, functools.partial(jvp, f), functools.partial(jvp, f)),
        "rev": lambda f: (check_vjp, functools.partial(vjp, f), _pulled_back(f)),
        "lin": lambda f: (check_jvp, _by_linearize(f), _by_linearize(f)),
    }

    def check(f: Function, args: tuple[Any, ...], order: int, name: str) -> None:
        for mode in modes:
            compare, derivative, next_one = checks[mode](f)
            words = f"{mode} {name}".strip()
            compare(f, derivative, args, atol, rtol, eps or EPS, words)
            if order > 1:
                check(next_one, args if mode == "rev" else (args, args), order - 1, words)

    check(f, tuple(args), order, "")


def _pulled_back(f: Function) -> Function:
    """The function that pulls back its own result."""

    def run(*args: Any) -> Any:
        out, pull = vjp(f, *args)
        return pull(out)

    return run


def _by_linearize(f: Function) -> Function:
    """The JVP of a function by `linearize`."""

    def run(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        out, push = linearize(f, *primals)
        return out, push(*tangents)

    return run
