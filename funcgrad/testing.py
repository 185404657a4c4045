"""Checks of derivatives against finite differences.

The references here never use a derivative rule: central differences along random directions,
compared with forward mode, and with reverse mode through the adjoint identity
``<ct, J v> = <J^T ct, v>``. Higher orders check the derivative of the derivative. Custom rules are
checked one by one, also for what holds up to rounding: linearity, and the adjoint identity between
two rules of one function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad.api.arguments import leaf_paths
from funcgrad.api.custom import CustomFunction
from funcgrad.api.differentiation import jvp, vjp
from funcgrad.api.floats import OfFloats
from funcgrad.api.vectorization import vmap
from funcgrad.base.namespaces import present
from funcgrad.base.records import dataclass
from funcgrad.errors import ArgumentError, FuncgradError
from funcgrad.primitives.objects import flatten_held

__all__ = [
    "CustomRuleError",
    "GradientError",
    "check_custom_rule",
    "check_grads",
]

Function = Callable[..., Any]
Tolerance = float | Mapping[Any, float] | None

_ROUNDING = {4: 1e-4, 8: 1e-10, 16: 1e-10}
_TOLERANCE = {"f": {4: 3e-2, 8: 1e-5}, "c": {8: 3e-2, 16: 1e-5}}


class GradientError(FuncgradError, AssertionError):
    """A derivative differs from finite differences.

    Attributes:
        path: The argument, such as ``args[0]['w']``.
        mode: ``"fwd"`` or ``"rev"``.
        order: Order of the derivative that is wrong.
        error: Relative error.
    """

    def __init__(self, message: str, path: str, mode: str, order: int, error: float) -> None:
        super().__init__(message)
        self.path = path
        self.mode = mode
        self.order = order
        self.error = error


def check_grads(
    f: Function,
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
    seed: int = 0,
) -> None:
    """Compare derivatives of ``f`` with central differences along random directions.

    Args:
        f: Function of arrays or pytrees; its floating arguments are checked one by one.
        args: Tuple or list of arguments: the point.
        order: Highest order of derivatives to check, at least 1.
        modes: ``"fwd"``, ``"rev"`` or both.
        atol: Absolute tolerance, or one for each of some dtypes; by default from the dtype.
        rtol: Relative tolerance, or one for each of some dtypes; by default 1e-5 for double and
            3e-2 for single precision.
        eps: Step of the differences; by default the cube root of the machine epsilon.
        seed: Seed of the directions.
    Raises: GradientError: Naming the argument, the mode, the order and the relative error.

    Example:
        >>> fg.testing.check_grads(lambda x: np.sin(x) * x, (np.array([0.5, 1.5]),), order=2)
    """
    unknown = [m for m in modes if m not in ("fwd", "rev")]
    if order < 1 or unknown or not isinstance(args, tuple | list):
        raise ArgumentError(
            "check_grads needs a tuple of arguments, order >= 1 and modes out of 'fwd' and 'rev', "
            f"got args of type {type(args).__name__}, order={order}, modes={modes!r}."
        )
    _Checker(modes, atol, rtol, eps, np.random.default_rng(seed)).check(f, tuple(args), 1, order)


def _tolerance(given: Tolerance, dtype: np.dtype[Any], default: float) -> float:
    if isinstance(given, Mapping):
        given = {np.dtype(key): value for key, value in given.items()}.get(dtype)
    return default if given is None else given


def direction(x: Any, rng: np.random.Generator) -> Any:
    """A random tangent or cotangent of ``x``; zeros if it has no derivative."""
    x = np.asarray(x)
    if x.dtype.kind not in "fc":
        return np.zeros(x.shape, x.dtype)
    v = rng.standard_normal(x.shape)
    if x.dtype.kind == "c":
        v = v + 1j * rng.standard_normal(x.shape)
    return np.asarray(v, x.dtype)


@dataclass(eq=False)
class _Checker:
    modes: Sequence[str]
    atol: Tolerance
    rtol: Tolerance
    eps: float | None
    rng: np.random.Generator

    def check(self, f: Function, args: tuple[Any, ...], order: int, last: int) -> None:
        floats = OfFloats(f, args)
        point = floats.point
        directions = [direction(x, self.rng) for x in point]
        for i, k in enumerate(floats.active):
            self._check_one(floats, point, directions, i, floats.paths[k], order)
        if order < last:
            self._descend(floats, point, directions, order, last)

    def _descend(
        self, f: OfFloats, point: list[Any], directions: list[Any], order: int, last: int
    ) -> None:
        if "fwd" in self.modes:
            self.check(lambda *xs: jvp(f, xs, tuple(directions))[1], tuple(point), order + 1, last)
        if "rev" in self.modes:
            cts = [direction(x, self.rng) for x in f(*point)]
            self.check(lambda *xs: vjp(f, *xs)[1](cts), tuple(point), order + 1, last)

    def _check_one(
        self, f: OfFloats, point: list[Any], directions: list[Any], i: int, path: str, order: int
    ) -> None:
        numeric = self._difference(f, point, directions[i], i)
        moves = [d if k == i else np.zeros_like(d) for k, d in enumerate(directions)]
        if "fwd" in self.modes:
            _, computed = jvp(f, tuple(point), tuple(moves))
            for n, c in zip(numeric, computed, strict=True):
                if np.asarray(c).dtype.kind in "fc":
                    self._compare(n, np.asarray(c), point[i], path, "fwd", order)
        if "rev" in self.modes:
            value, pull = vjp(f, *point)
            cts = [direction(x, self.rng) for x in value]
            # Of functions that are not holomorphic only the real part of the product is kept.
            expected = sum(np.sum(c * n).real for c, n in zip(cts, numeric, strict=True))
            computed = np.sum(np.asarray(pull(cts)[i]) * directions[i]).real
            # The product sums over all results, so it is judged on their common scale.
            scale = sum(np.nansum(np.abs(c * n)) for c, n in zip(cts, numeric, strict=True))
            self._compare(expected, computed, point[i], path, "rev", order, float(scale))

    def _difference(self, f: OfFloats, point: list[Any], direction: Any, i: int) -> list[Any]:
        eps = self.eps or float(np.cbrt(np.finfo(np.asarray(point[i]).dtype).eps))
        high = [x + eps * direction if k == i else x for k, x in enumerate(point)]
        low = [x - eps * direction if k == i else x for k, x in enumerate(point)]
        dtype = np.asarray(point[i]).dtype
        high[i], low[i] = np.asarray(high[i], dtype), np.asarray(low[i], dtype)
        pairs = zip(f(*high), f(*low), strict=True)
        return [
            (np.asarray(a) - np.asarray(b)) / (2 * eps)
            if np.asarray(a).dtype.kind in "fc"
            else np.zeros(np.shape(a))
            for a, b in pairs
        ]

    def _compare(
        self,
        numeric: Any,
        computed: Any,
        x: Any,
        path: str,
        mode: str,
        order: int,
        scale: float = 0.0,
    ) -> None:
        dtype = np.asarray(x).dtype
        default = _TOLERANCE[dtype.kind][dtype.itemsize]
        rtol, atol = (_tolerance(given, dtype, default) for given in (self.rtol, self.atol))
        if np.size(numeric) == 0:
            return
        are_nan = np.isnan(numeric) & np.isnan(computed)
        numeric, computed = (np.where(are_nan, 0.0, x) for x in (numeric, computed))
        scale = max(scale, float(np.max(np.abs(numeric))))
        difference = float(np.max(np.abs(np.asarray(numeric) - computed)))
        if not difference <= atol + rtol * scale:
            error = difference / max(scale, np.finfo(dtype).tiny)
            raise GradientError(
                f"the derivative with respect to `{path}` is wrong: {_MODES[mode]}, order {order}, "
                f"relative error {error:.2e} (absolute {difference:.2e}, finite differences are of "
                f"size {scale:.2e}, tolerance {atol:.1e} + {rtol:.1e} * size). Check the rule of "
                "the operations between this argument and the result, or the smoothness of the "
                "function at this point.",
                path,
                mode,
                order,
                error,
            )


_MODES = {"fwd": "forward mode", "rev": "reverse mode"}


class CustomRuleError(FuncgradError, AssertionError):
    """A custom rule contradicts its function, itself, or another rule.

    Attributes:
        rule: ``"jvp"``, ``"vjp"`` or ``"vmap"``.
        path: The argument or result that disagrees, such as ``args[0]['w']``.
        error: Relative error.
    """

    def __init__(self, message: str, rule: str, path: str, error: float) -> None:
        super().__init__(message)
        self.rule = rule
        self.path = path
        self.error = error


def check_custom_rule(
    f: CustomFunction,
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    seed: int = 0,
) -> None:
    """Check the rules of a custom function at one point.

    The values that rules return are compared with the function; tangents with finite differences
    of it; cotangents with them by the adjoint identity. Rules must be linear in tangents and
    cotangents, a forward-mode and a reverse-mode rule must be adjoint up to rounding, and a
    batching rule must do what a loop does.

    Args:
        f: Made by `custom_jvp`, `custom_vjp`, `custom_vmap` or `custom_gradient`.
        args: Tuple or list of arguments: the point. The function should be smooth there.
        atol: Absolute tolerance of finite differences; by default from the dtype.
        rtol: Relative tolerance; by default 1e-5 for double and 3e-2 for single precision.
        eps: Step of the differences; by default the cube root of the machine epsilon.
        seed: Seed of the directions.
    Raises: CustomRuleError: Naming the rule, the argument or result, and the relative error.

    Example:
        >>> @fg.custom_jvp
        ... def square(x):
        ...     return x * x
        >>> square.defjvps(lambda t, value, x: 2 * x * t)
        >>> fg.testing.check_custom_rule(square, (np.array([1.0, 2.0]),))
    """
    if not isinstance(f, CustomFunction) or not isinstance(args, tuple | list):
        raise ArgumentError(
            "check_custom_rule needs a function made by custom_jvp, custom_vjp, custom_vmap or "
            f"custom_gradient, and a tuple of arguments, got {type(f).__name__} and "
            f"{type(args).__name__}. For other functions use check_grads."
        )
    rules = f.rules
    if not rules.functions():
        raise ArgumentError(
            f"{f!r} has no rules to check: give it some with defjvp, defvjp or def_vmap."
        )
    numbers = _Checker((), atol, rtol, eps, np.random.default_rng(seed))
    checker = _RuleChecker(f, tuple(args), numbers)
    if rules.jvp is not None:
        checker.check_jvp()
    if rules.fwd is not None:
        checker.check_vjp()
    if rules.vmap is not None:
        checker.check_vmap()


class _RuleChecker:
    def __init__(self, f: CustomFunction, args: tuple[Any, ...], numbers: _Checker) -> None:
        self.f = f
        self.numbers = numbers
        fixed = [f"args[{i}]" for i in f.rules.nondiff_argnums]
        self.plain, self.ruled = (OfFloats(g, args, fixed=fixed) for g in (f.rules.fun, f))
        self.paths = [self.plain.paths[i] for i in self.plain.active]
        self.point = [np.asarray(x) for x in self.plain.point]
        self.directions = [direction(x, numbers.rng) for x in self.point]
        out = f.rules.fun(*args)
        self.values = [np.asarray(x) for x in flatten_held(out)[0]]
        self.result_paths = leaf_paths(out, "result")
        self.numeric = [
            numbers._difference(self.plain, self.point, d, i) for i, d in enumerate(self.directions)
        ]

    def title(self, rule: str) -> str:
        rules = self.f.rules
        if rule == "jvp":
            return rules.title("jvp", rules.jvp)
        if rule == "vmap":
            return rules.title("batching", rules.vmap)
        return f"{rules.title('forward', rules.fwd)} and {rules.title('backward', rules.bwd)}"

    def check_values(self, values: Sequence[Any], rule: str) -> None:
        for got, expected, path in zip(values, self.values, self.result_paths, strict=True):
            self.compare(expected, got, rule, path, f"the value of {self.f.name} in", exact=True)

    def check_jvp(self) -> None:
        values, tangents = self.push(self.directions)
        self.check_values(values, "jvp")
        self.check_linear(lambda ds: self.push(ds)[1], self.directions, tangents, "jvp")
        for i, path in enumerate(self.paths):
            columns = zip(self.push_one(i), self.numeric[i], self.result_paths, strict=True)
            for got, expected, out in columns:
                against = f"finite differences of `{out}` with respect to"
                self.compare(expected, got, "jvp", path, against)

    def check_vjp(self) -> None:
        values, pull = vjp(self.ruled, *self.point)
        self.check_values(values, "vjp")
        cts = [direction(x, self.numbers.rng) for x in self.values]
        pulled = list(pull(cts))
        self.check_linear(lambda c: list(pull(c)), cts, pulled, "vjp")
        for i, path in enumerate(self.paths):
            got = np.sum(np.asarray(pulled[i]) * self.directions[i]).real
            self.check_product(cts, self.numeric[i], got, path, "finite differences", exact=False)
            if self.f.rules.jvp is not None:
                self.check_product(cts, self.push_one(i), got, path, "the jvp rule", exact=True)

    def check_product(
        self, cts: list[Any], dots: Sequence[Any], got: Any, path: str, source: str, exact: bool
    ) -> None:
        """The adjoint identity, along the direction of one argument."""
        pairs = [(c, d) for c, d in zip(cts, dots, strict=True) if c.dtype.kind in "fc"]
        expected = sum(np.sum(c * d).real for c, d in pairs)
        scale = float(sum(np.sum(np.abs(c * d)) for c, d in pairs))
        against = f"{source} (by <ct, J v> = <J^T ct, v>) with respect to"
        self.compare(expected, got, "vjp", path, against, exact, scale)

    def check_vmap(self) -> None:
        """All arguments mapped, and every argument alone."""
        n = len(self.point)
        for mapped in [set(range(n)), *({i} for i in range(n) if n > 1)]:
            axes = [0 if i in mapped else None for i in range(n)]
            if not mapped:
                continue
            stacked = [
                np.stack([x, x + d, x - d]) if i in mapped else x
                for i, (x, d) in enumerate(zip(self.point, self.directions, strict=True))
            ]
            batched = vmap(self.ruled, in_axes=tuple(axes))(*stacked)
            rows = [
                self.plain(*(x[k] if i in mapped else x for i, x in enumerate(stacked)))
                for k in range(3)
            ]
            for got, column, path in zip(
                batched, zip(*rows, strict=True), self.result_paths, strict=True
            ):
                names = ", ".join(self.paths[i] for i in sorted(mapped))
                against = f"a loop over {names} in"
                self.compare(np.stack(column), got, "vmap", path, against, exact=True)

    def push(self, directions: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        return jvp(self.ruled, tuple(self.point), tuple(directions))

    def push_one(self, i: int) -> list[Any]:
        moves = [d if k == i else np.zeros_like(d) for k, d in enumerate(self.directions)]
        return [
            np.zeros(np.shape(t)) if np.asarray(t).dtype.kind not in "fc" else t
            for t in self.push(moves)[1]
        ]

    def check_linear(
        self, apply: Function, first: list[Any], image: Sequence[Any], rule: str
    ) -> None:
        second = [direction(x, self.numbers.rng) for x in first]
        mixed = [
            np.asarray(2 * a - 3 * b, a.dtype) if a.dtype.kind in "fc" else a
            for a, b in zip(first, second, strict=True)
        ]
        paths = self.result_paths if rule == "jvp" else self.paths
        against = f"itself: it is not linear in the {'co' * (rule == 'vjp')}tangents, as shown by"
        for a, b, got, path in zip(image, apply(second), apply(mixed), paths, strict=True):
            if np.asarray(got).dtype.kind in "fc":
                expected = 2 * np.asarray(a) - 3 * np.asarray(b)
                self.compare(expected, got, rule, path, against, exact=True)

    def compare(
        self,
        expected: Any,
        got: Any,
        rule: str,
        path: str,
        against: str,
        exact: bool = False,
        scale: float = 0.0,
    ) -> None:
        expected, got = np.asarray(expected), np.asarray(got)
        if expected.shape == got.shape and not expected.size:
            return
        dtype = got.dtype if got.dtype.kind in "fc" else np.dtype(np.float64)
        default = _ROUNDING[dtype.itemsize] if exact else _TOLERANCE[dtype.kind][dtype.itemsize]
        given = (None, None) if exact else (self.numbers.rtol, self.numbers.atol)
        rtol, atol = (_tolerance(x, dtype, default) for x in given)
        scale = max(scale, float(np.max(np.abs(expected))))
        difference = (
            float(np.max(np.abs(expected - got))) if expected.shape == got.shape else np.inf
        )
        if not difference <= atol + rtol * scale:
            error = difference / max(scale, float(np.finfo(dtype).tiny))
            raise CustomRuleError(
                f"{self.title(rule)} disagrees with {against} `{path}`: relative error "
                f"{error:.2e} (absolute {difference:.2e}, size {scale:.2e}, tolerance "
                f"{atol:.1e} + {rtol:.1e} * size).",
                rule,
                path,
                error,
            )


present(__name__)
