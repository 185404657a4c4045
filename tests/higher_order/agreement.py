"""A program with control flow under every transformation, against the one in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
from tests.higher_order import plain

Program = Callable[[Any, Any], Any]
"""From a module with control flow and a vector to an array."""


def close(actual: Any, expected: Any, rtol: float, what: str) -> None:
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, what
    assert actual.dtype == expected.dtype, what
    scale = float(np.max(np.abs(expected), initial=0))
    np.testing.assert_allclose(actual, expected, rtol, rtol * scale, err_msg=what)


def results(f: Any, points: Any, ct: Any) -> dict[str, Any]:
    """A function and its derivatives, at the first point and over lanes."""
    x = points[0]
    return {
        "f": f(x),
        "vmap": fg.vmap(f)(points),
        "vjp": fg.vjp(f, x)[1](ct)[0],
        "vmap jacfwd": fg.vmap(fg.jacfwd(f))(points),
        "vmap jacrev": fg.vmap(fg.jacrev(f))(points),
        "jacrev jacrev": fg.jacrev(fg.jacrev(f))(x),
    }


def further_results(f: Any, points: Any, ct: Any) -> dict[str, Any]:
    """The same in further ways."""
    x = points[0]
    tangent = np.cos(np.arange(1.0, 1 + len(x)))
    return {
        "jvp": fg.jvp(f, (x,), (tangent,))[1],
        "linearize": fg.linearize(f, x)[1](tangent),
        "grad vmap": fg.grad(lambda ps: (fg.vmap(f)(ps) * ct).sum())(points),
        "jacrev jacfwd": fg.jacrev(fg.jacfwd(f))(x),
        "vmap hessian": fg.vmap(fg.hessian(f))(points),
    }


def expected_results(reference: Any, points: np.ndarray, ct: np.ndarray) -> dict[str, Any]:
    values = np.stack([reference(p) for p in points])
    slopes = np.stack([plain.jacobian(reference, p) for p in points])
    curvatures = np.stack([plain.hessian(reference, p) for p in points])
    tangent = np.cos(np.arange(1.0, 1 + points.shape[1]))
    pulled = np.stack([np.tensordot(ct, s, np.ndim(ct)) for s in slopes])
    return {
        "f": values[0],
        "vmap": values,
        "jvp": slopes[0] @ tangent,
        "linearize": slopes[0] @ tangent,
        "vjp": pulled[0],
        "vmap jacfwd": slopes,
        "vmap jacrev": slopes,
        "grad vmap": pulled,
        "jacrev jacrev": curvatures[0],
        "jacrev jacfwd": curvatures[0],
        "vmap hessian": curvatures,
    }


TOLERANCES = {"f": 1e-13, "vmap": 1e-13}
SECOND = ("jacrev jacrev", "jacrev jacfwd", "vmap hessian")


def check(program: Program, points: Any) -> None:
    """Interpreted in all ways, compiled (which takes long) in some."""
    points = np.asarray(points, float)

    def f(x: Any) -> Any:
        return program(fg.lax, x)

    def reference(x: Any) -> Any:
        return program(plain, x)

    value = reference(points[0])
    ct = np.sin(1.0 + np.arange(np.size(value)).reshape(np.shape(value)))
    expected = expected_results(reference, points, ct)
    with fg.disable_jit():
        interpreted = results(f, points, ct) | further_results(f, points, ct)
    _compare(interpreted, expected, "interpreted")
    _compare(fg.jit(results, static_argnums=0)(f, points, ct), expected, "jit")
    _compare({"vjp": fg.vjp(f, points[0])[1](ct)[0]}, expected, "eager")


def _compare(actual: dict[str, Any], expected: dict[str, Any], how: str) -> None:
    for what, value in actual.items():
        rtol = 1e-8 if what in SECOND else TOLERANCES.get(what, 1e-11)
        close(value, expected[what], rtol, f"{how} {what}")
