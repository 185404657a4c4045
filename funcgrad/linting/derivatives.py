"""Derivatives of a function by all ways against each other, along random directions.

Every number in the table is a derivative of ``t -> <w, f(x + t d)>``: of first order, forwards,
backwards, compiled and by a complex step, and of second order, all beside differences that come
with an estimate of their error. `diagnostics.check_gradients` looks at single entries instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from funcgrad.api.arguments import check_callable, name_of
from funcgrad.api.compilation import jit
from funcgrad.api.differentiation import jvp, vjp
from funcgrad.api.floats import OfFloats, slope_at_zero
from funcgrad.base.records import dataclass
from funcgrad.core.avals import aval_of
from funcgrad.diagnostics.tables import table
from funcgrad.errors import ArgumentError, FuncgradError, ShapeError

NO_STEP = 1e-10
"""A step that is none in single precision."""
HALVINGS = 10
"""Steps of Ridders' method at most."""
TINY = 1e-30
"""The complex step: its square is nothing beside the numbers."""


@dataclass(frozen=True)
class DerivativeRow:
    """A derivative along one direction.

    Attributes:
        point: 0 for the arguments, 1 and more for points beside them.
        order: 1 or 2.
        way: How it was computed.
        found: The derivative.
        expected: The same by differences, or by the other order of two directions.
        error: Estimate of the error of what is expected.
        verdict: ``"ok"``, ``"wrong"``, ``"not finite"``, or ``"not analytic"`` for a complex step.
    """

    point: int
    order: int
    way: str
    found: float
    expected: float
    error: float
    verdict: str


@dataclass(frozen=True)
class DerivativeChecks:
    """Derivatives that were checked; true if none is wrong; prints as a table.

    Attributes:
        name: Name of the function.
        rows: The derivatives.
    """

    name: str
    rows: tuple[DerivativeRow, ...]

    def __bool__(self) -> bool:
        return not self.wrong

    @property
    def wrong(self) -> list[DerivativeRow]:
        """The rows that are not right."""
        return [row for row in self.rows if row.verdict in ("wrong", "not finite")]

    @property
    def exit_status(self) -> int:
        """0 if all is right, else 1: for scripts."""
        return int(bool(self.wrong))

    def __str__(self) -> str:
        head = ("point", "order", "way", "found", "expected", "error", "verdict")
        rows = [
            (str(r.point), str(r.order), r.way, f"{r.found:.9g}", f"{r.expected:.9g}",
             f"{r.error:.1e}", r.verdict)
            for r in self.rows
        ]  # fmt: skip
        state = "all right" if self else f"{len(self.wrong)} of {len(self.rows)} wrong"
        return f"derivatives of {self.name}: {state}\n{table(head, rows)}"


def check_derivatives(
    f: Callable[..., Any],
    *args: Any,
    order: int = 2,
    points: int = 2,
    directions: int = 2,
    rtol: float | None = None,
    seed: int = 0,
    **kwargs: Any,
) -> DerivativeChecks:
    """Check derivatives of a function by all ways against each other and against differences.

    Args:
        f: Function of arrays or pytrees with real floating results.
        *args: Its arguments; floating ones are differentiated.
        order: The highest order: 1 or 2.
        points: The arguments, and points beside them at a distance of a hundredth.
        directions: Random directions at each point.
        rtol: Relative tolerance, besides the estimated error of the differences; 1e-7 by default,
            1e-3 if anything is in single precision.
        seed: Of the random directions.
        **kwargs: Keyword arguments of the function, which are not differentiated.
    Returns: `DerivativeChecks`: true if all is right.
    Raises: ArgumentError: No argument is a floating array, or a result is none.

    Example:
        >>> checks = fg.check_derivatives(lambda x: np.sum(np.sin(x) ** 2), np.linspace(0, 1, 5))
        >>> bool(checks), checks.exit_status, len(checks.rows)
        (True, 0, 24)
    """
    check_callable(f, "check_derivatives")
    if order not in (1, 2):
        raise ArgumentError(f"check_derivatives: order must be 1 or 2, but is {order!r}.")
    checker = _Checker(f, args, kwargs, rtol, np.random.default_rng(seed))
    rows: list[DerivativeRow] = []
    for point in range(points):
        x = checker.start if not point else checker.beside()
        for _ in range(directions):
            rows += checker.check(point, x, order)
    return DerivativeChecks(name_of(f), tuple(rows))


Vector = list[Any]
"""Arrays in the place of the floating arguments."""


class _Checker:
    def __init__(
        self,
        f: Callable[..., Any],
        args: Any,
        kwargs: dict[str, Any],
        rtol: float | None,
        rng: np.random.Generator,
    ) -> None:
        self.results, self.rng = OfFloats(partial(f, **kwargs), args, kinds="f"), rng
        self.start = [np.asarray(x) for x in self.results.point]
        if not self.start:
            raise ArgumentError(
                f"check_derivatives: no argument of {name_of(f)} is an array of real floating "
                "numbers. Write 1.0 instead of 1."
            )
        results = [aval_of(x) for x in self.results(*self.start)]
        for aval in results:
            if aval.dtype.kind != "f":
                raise ArgumentError(
                    f"check_derivatives: {name_of(f)} returned {aval}; its results must be real "
                    "floating numbers. Return those alone."
                )
        self.weights = [self._random(aval) for aval in results]
        self.dtypes = [aval.dtype for aval in results] + [x.dtype for x in self.start]
        self.eps = max(float(np.finfo(dtype).eps) for dtype in self.dtypes)
        found = self.results(*[x.astype(np.float64) for x in self.start])
        self.noise = max(float(np.finfo(aval_of(y).dtype).eps) for y in found)
        self.rtol = (1e-7 if self.eps < 1e-12 else 1e-3) if rtol is None else rtol

    def _random(self, like: Any) -> Any:
        return self.rng.standard_normal(like.shape).astype(like.dtype)

    def beside(self) -> Vector:
        return [x + 0.01 * self._random(x) * (1 + np.abs(x)).astype(x.dtype) for x in self.start]

    def value(self, x: Vector) -> Any:
        """The weighted sum of the results."""
        return sum(np.sum(y * w) for y, w in zip(self.results(*x), self.weights, strict=True))

    def gradient(self, *x: Any) -> Vector:
        _, pull = vjp(self.results, *x)
        return list(pull(self.weights))

    def _wide_gradient(self, x: Vector) -> Vector:
        results, pull = vjp(self.results, *x)
        weights = zip(self.weights, results, strict=True)
        return list(pull([w.astype(np.asarray(y).dtype) for w, y in weights]))

    def check(self, point: int, x: Vector, order: int) -> Iterator[DerivativeRow]:
        """The rows of a point, along a random direction."""
        d, e = ([self._random(v) for v in x] for _ in range(2))

        def row(order: int, way: str, found: Any, expected: float, error: float) -> DerivativeRow:
            return self._row(point, order, way, float(found), expected, error)

        # In double precision, where the function computes in it when it is given such numbers.
        wide, along = ([v.astype(np.float64) for v in vs] for vs in (x, d))
        expected, error = self._differences(lambda t: float(self.value(_along(wide, along, t))))
        _, dots = jvp(self.results, tuple(x), tuple(d))
        yield row(1, "forwards", _dot(dots, self.weights), expected, error)
        yield row(1, "backwards", _dot(self.gradient(*x), d), expected, error)
        yield row(1, "compiled", _dot(jit(self.gradient)(*x), d), expected, error)
        yield from self._complex(point, x, d, expected, error)
        if order == 1:
            return
        try:
            expected, error = self._differences(
                lambda t: _dot(self._wide_gradient(_along(wide, along, t)), e)
            )
        except ShapeError:  # a rule of the user's that gives single precision whatever it is given
            expected, error = self._differences(lambda t: _dot(self.gradient(*_along(x, d, t)), e))
        _, bent = jvp(self.gradient, tuple(x), tuple(d))
        yield row(2, "forwards over backwards", _dot(bent, e), expected, error)
        _, pull = vjp(self.gradient, *x)
        yield row(2, "backwards over backwards", _dot(pull(list(e)), d), expected, error)

    def _complex(
        self, point: int, x: Vector, d: Vector, expected: float, error: float
    ) -> Iterator[DerivativeRow]:
        """A complex step, if the function takes one; others than analytic ones it cannot judge."""
        try:
            with np.errstate(all="ignore"):
                value = self.value([v + 1j * TINY * t for v, t in zip(x, d, strict=True)])
        except (FuncgradError, TypeError, ValueError):
            return
        found = self._row(point, 1, "complex step", float(np.imag(value) / TINY), expected, error)
        if found.verdict != "ok":
            found = DerivativeRow(point, 1, found.way, found.found, expected, error, "not analytic")
        yield found

    def _row(
        self, point: int, order: int, way: str, found: float, expected: float, error: float
    ) -> DerivativeRow:
        allowed = 10 * error + self.rtol * (abs(expected) + abs(found))
        is_right = abs(found - expected) <= allowed
        is_finite = bool(np.isfinite(found) and np.isfinite(expected))
        verdict = "ok" if is_right else "wrong" if is_finite else "not finite"
        return DerivativeRow(point, order, way, found, expected, error, verdict)

    def _differences(self, value: Callable[[float], float]) -> tuple[float, float]:
        """The slope at 0 with an estimate of its error, by Ridders' method (1982).

        A function whose value does not move in a step that single precision cannot make computes
        in it somewhere, whatever the type of its results.
        """
        here = value(0.0)
        noise = self.eps if value(NO_STEP) == here else self.noise
        size = max(abs(here), noise)

        def central(step: float) -> float:
            return (value(step) - value(-step)) / (2 * step)

        best, error, narrow = slope_at_zero(central, 20 * float(np.cbrt(noise)), HALVINGS)
        return best, error + 4 * noise * size / narrow


def _along(x: Vector, d: Vector, t: float) -> Vector:
    return [(v + t * w).astype(v.dtype) for v, w in zip(x, d, strict=True)]


def _dot(a: Sequence[Any], b: Sequence[Any]) -> float:
    rows = zip(a, b, strict=True)
    return float(sum(np.sum(np.multiply(x, y, dtype=np.float64)) for x, y in rows))
