"""``autograd.test_util``: derivatives against differences, along one random direction each.

A function ``f`` at ``x`` has the differences ``(f(x + v e/2) - f(x - v e/2)) / e``. Forward mode is
compared with them, and reverse mode by ``<u, J v> = <J' u, v>``, under autograd's tolerances, which
do not depend on the dtype: `funcgrad.check_grads` is the stricter check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from funcgrad.errors import ArgumentError
from funcgrad.interop.autograd.core import make_jvp, make_vjp, vspace
from funcgrad.interop.autograd.wrap_util import get_name, unary_to_nary
from funcgrad.testing import GradientError

Function = Callable[..., Any]
__all__ = [
    "EPS", "RTOL", "TOL", "check_equivalent", "check_grads", "check_jvp", "check_vjp",
    "combo_check", "make_numerical_jvp", "scalar_close",
]  # fmt: skip

EPS = 1e-6
"""Step of the differences."""
TOL = 1e-6
"""Absolute error that is allowed."""
RTOL = 1e-6
"""Error that is allowed, as a part of the sum of both numbers."""


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers agree, up to `TOL` or up to `RTOL`.

    Args:
        a: A number.
        b: A number.

    Example:
        >>> from funcgrad.interop.autograd.test_util import scalar_close
        >>> scalar_close(1e9, 1e9 + 1.0), scalar_close(1.0, 1.1)
        (True, False)
    """
    error = abs(a - b)
    return bool(error < TOL or error < RTOL * abs(a + b))


def make_numerical_jvp(f: Function, x: Any) -> Function:
    """The directional derivative by central differences.

    Args:
        f: A function of one argument.
        x: The point, an array or a pytree of arrays.
    Returns: From a tangent of ``x`` to that of ``f(x)``.
    """
    space, result = vspace(x), vspace(f(x))

    def at(v: Any, step: float) -> Any:
        return f(space.add(x, space.scalar_mul(v, step)))

    def jvp(v: Any) -> Any:
        difference = result.add(at(v, EPS / 2), result.scalar_mul(at(v, -EPS / 2), -1.0))
        return result.scalar_mul(difference, 1.0 / EPS)

    return jvp


def _wrong(f: Function, mode: str, x: Any, exact: Any, numeric: Any) -> GradientError:
    size = max(abs(float(exact)), abs(float(numeric)), TOL)
    return GradientError(
        f"Derivative ({mode}) check of {get_name(f)} failed at {vspace(x)}: along a random "
        f"direction the rules give {float(exact):.9g}, differences {float(numeric):.9g}.",
        "x",
        {"VJP": "rev", "JVP": "fwd"}[mode],
        1,
        abs(float(exact) - float(numeric)) / size,
    )


def check_vjp(f: Function, x: Any) -> None:
    """Compare reverse mode with differences.

    Args:
        f: A function of one argument.
        x: The point.
    Raises: GradientError: If they differ.
    """
    pull, value = make_vjp(f, x)
    of_x, of_value = vspace(x), vspace(value)
    v, u = of_x.randn(), of_value.randn()
    pulled = of_x.covector(pull(of_value.covector(u)))
    _check_same_space(pulled, v)
    exact = of_x.inner_prod(v, pulled)
    numeric = of_value.inner_prod(u, make_numerical_jvp(f, x)(v))
    if not scalar_close(numeric, exact):
        raise _wrong(f, "VJP", x, exact, numeric)


def check_jvp(f: Function, x: Any) -> None:
    """Compare forward mode with differences.

    Args:
        f: A function of one argument.
        x: The point.
    Raises: GradientError: If they differ.
    """
    v = vspace(x).randn()
    pushed, numeric = make_jvp(f, x)(v)[1], make_numerical_jvp(f, x)(v)
    _check_same_space(pushed, numeric)
    space = vspace(pushed)
    u = space.randn()
    a, b = space.inner_prod(u, pushed), space.inner_prod(u, numeric)
    if not scalar_close(a, b):
        raise _wrong(f, "JVP", x, a, b)


def _check_same_space(x: Any, y: Any) -> None:
    a, b = vspace(x), vspace(y)
    if a != b:
        raise AssertionError(f"VSpace mismatch: {a} and {b}.")


def check_equivalent(x: Any, y: Any) -> None:
    """Compare two values of one vector space, along a random direction.

    Args:
        x: An array or a pytree of arrays.
        y: Another.
    Raises: AssertionError: If they differ.

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop.autograd.test_util import check_equivalent
        >>> check_equivalent({"a": np.ones(2)}, {"a": np.array([1.0, 1.0])})
    """
    _check_same_space(x, y)
    space = vspace(x)
    u = space.randn()
    a, b = space.inner_prod(u, x), space.inner_prod(u, y)
    if not scalar_close(a, b):
        raise AssertionError(f"Value mismatch along a random direction: {a} and {b}, of {space}.")


@unary_to_nary
def check_grads(f: Function, x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    """Check derivatives: ``check_grads(fun, argnum, modes, order)(*args)``.

    Raises: GradientError: If one differs from differences.

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop.autograd.test_util import check_grads
        >>> check_grads(np.sin)(1.0)
    """
    unknown = [mode for mode in modes if mode not in ("fwd", "rev")]
    if unknown:
        raise ArgumentError(f"check_grads: modes are 'fwd' and 'rev', got {unknown[0]!r}.")
    for mode in modes:
        (check_jvp if mode == "fwd" else check_vjp)(f, x)
        if order > 1:
            derivative = _push(f) if mode == "fwd" else _pull(f)
            direction = vspace(x if mode == "fwd" else f(x)).randn()
            check_grads(derivative, (0, 1), modes, order - 1)(x, direction)


def _push(f: Function) -> Function:
    def push(x: Any, v: Any) -> Any:
        return make_jvp(f, x)(v)[1]

    push.__name__ = f"jvp_{get_name(f)}"
    return push


def _pull(f: Function) -> Function:
    def pull(x: Any, u: Any) -> Any:
        return make_vjp(f, x)[0](u)

    pull.__name__ = f"vjp_{get_name(f)}"
    return pull


def combo_check(fun: Function, *args: Any, **kwargs: Any) -> Callable[..., None]:
    """Check derivatives for all combinations of the arguments given.

    Args:
        fun: The function.
        *args: As for `check_grads`.
        **kwargs: As for `check_grads`.
    Returns: A function that takes a sequence of values for every argument of ``fun``.
    """
    check = check_grads(fun, *args, **kwargs)

    def check_all(*choices: Any, **named: Any) -> None:
        for given in product(*choices):
            for values in product(*named.values()):
                check(*given, **dict(zip(named, values, strict=True)))

    return check_all
