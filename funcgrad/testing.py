"""Checks of derivatives against finite differences.

The references here never use a derivative rule: central differences along random directions,
compared with forward mode, and with reverse mode through the adjoint identity
``<ct, J v> = <J^T ct, v>``. Higher orders check the derivative of the derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.api.arguments import leaf_paths
from funcgrad.api.differentiation import jvp, vjp
from funcgrad.errors import ArgumentError, FuncgradError
from funcgrad.pytree import tree_flatten, tree_leaves, tree_unflatten

Function = Callable[..., Any]

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
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    seed: int = 0,
) -> None:
    """Compare derivatives of ``f`` with central differences along random directions.

    Args:
        f: Function of arrays or pytrees; its floating arguments are checked one by one.
        args: Tuple or list of arguments: the point.
        order: Highest order of derivatives to check, at least 1.
        modes: ``"fwd"``, ``"rev"`` or both.
        atol: Absolute tolerance; by default from the dtype.
        rtol: Relative tolerance; by default 1e-5 for double and 3e-2 for single precision.
        eps: Step of the differences; by default the cube root of the machine epsilon.
        seed: Seed of the directions.

    Raises:
        GradientError: Naming the argument, the mode, the order and the relative error.

    Example:
        >>> import numpy as np
        >>> from funcgrad.testing import check_grads
        >>> check_grads(lambda x: np.sin(x) * x, (np.array([0.5, 1.5]),), order=2)
    """
    unknown = [m for m in modes if m not in ("fwd", "rev")]
    if order < 1 or unknown or not isinstance(args, tuple | list):
        raise ArgumentError(
            "check_grads needs a tuple of arguments, order >= 1 and modes out of 'fwd' and 'rev', "
            f"got args of type {type(args).__name__}, order={order}, modes={modes!r}."
        )
    _Checker(modes, atol, rtol, eps, np.random.default_rng(seed)).check(f, tuple(args), 1, order)


class _Checker:
    def __init__(
        self,
        modes: Sequence[str],
        atol: float | None,
        rtol: float | None,
        eps: float | None,
        rng: np.random.Generator,
    ) -> None:
        self.modes = modes
        self.atol = atol
        self.rtol = rtol
        self.eps = eps
        self.rng = rng

    def check(self, f: Function, args: tuple[Any, ...], order: int, last: int) -> None:
        leaves, treedef = tree_flatten(args)
        paths = leaf_paths(args)
        active = [i for i, x in enumerate(leaves) if np.asarray(x).dtype.kind in "fc"]

        def of_active(*values: Any) -> Any:
            full = list(leaves)
            for i, value in zip(active, values, strict=True):
                full[i] = value
            return f(*tree_unflatten(treedef, full))

        point = [leaves[i] for i in active]
        directions = [self._direction(x) for x in point]
        for i, k in enumerate(active):
            self._check_one(of_active, point, directions, i, paths[k], order)
        if order < last:
            self._descend(of_active, point, directions, order, last)

    def _descend(
        self, f: Function, point: list[Any], directions: list[Any], order: int, last: int
    ) -> None:
        if "fwd" in self.modes:
            self.check(lambda *xs: jvp(f, xs, tuple(directions))[1], tuple(point), order + 1, last)
        if "rev" in self.modes:
            cts = [self._direction(x) for x in tree_leaves(f(*point))]

            def pulled(*xs: Any) -> Any:
                _, pull = vjp(lambda *ys: tree_leaves(f(*ys)), *xs)
                return pull(cts)

            self.check(pulled, tuple(point), order + 1, last)

    def _direction(self, x: Any) -> Any:
        x = np.asarray(x)
        if x.dtype.kind not in "fc":
            return np.zeros(x.shape, x.dtype)
        v = self.rng.standard_normal(x.shape)
        if x.dtype.kind == "c":
            v = v + 1j * self.rng.standard_normal(x.shape)
        return np.asarray(v, x.dtype)

    def _check_one(
        self, f: Function, point: list[Any], directions: list[Any], i: int, path: str, order: int
    ) -> None:
        numeric = self._difference(f, point, directions[i], i)
        moves = [d if k == i else np.zeros_like(d) for k, d in enumerate(directions)]
        if "fwd" in self.modes:
            _, computed = jvp(f, tuple(point), tuple(moves))
            for n, c in zip(numeric, tree_leaves(computed), strict=True):
                if np.asarray(c).dtype.kind in "fc":
                    self._compare(n, np.asarray(c), point[i], path, "fwd", order)
        if "rev" in self.modes:
            value, pull = vjp(lambda *ys: tree_leaves(f(*ys)), *point)
            cts = [self._direction(x) for x in value]
            # Of functions that are not holomorphic only the real part of the product is kept.
            expected = sum(np.sum(c * n).real for c, n in zip(cts, numeric, strict=True))
            computed = np.sum(np.asarray(pull(cts)[i]) * directions[i]).real
            # The product sums over all results, so it is judged on their common scale.
            scale = sum(np.sum(np.abs(c * n)) for c, n in zip(cts, numeric, strict=True))
            self._compare(expected, computed, point[i], path, "rev", order, float(scale))

    def _difference(self, f: Function, point: list[Any], direction: Any, i: int) -> list[Any]:
        eps = self.eps or float(np.cbrt(np.finfo(np.asarray(point[i]).dtype).eps))
        high = [x + eps * direction if k == i else x for k, x in enumerate(point)]
        low = [x - eps * direction if k == i else x for k, x in enumerate(point)]
        dtype = np.asarray(point[i]).dtype
        high[i], low[i] = np.asarray(high[i], dtype), np.asarray(low[i], dtype)
        pairs = zip(tree_leaves(f(*high)), tree_leaves(f(*low)), strict=True)
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
        rtol = default if self.rtol is None else self.rtol
        atol = default if self.atol is None else self.atol
        if np.size(numeric) == 0:
            return
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
