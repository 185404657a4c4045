"""What every row of a table of functions is checked for, against SciPy's function and differences.

A row is a name, arguments, keywords and the numbers of the arguments that are differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp


class Row(NamedTuple):
    """A call of a function that both modules have."""

    name: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    argnums: tuple[int, ...]
    is_slow: bool

    @property
    def label(self) -> str:
        options = ",".join(f"{k}={v}" for k, v in self.keywords.items() if np.ndim(v) == 0)
        return f"{self.name}({options})"


def row(name: str, *args: Any, argnums: Any = 0, slow: bool = False, **keywords: Any) -> Row:
    """A row, by default with its first argument differentiated."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    return Row(name, args, keywords, numbers, slow)


def each(rows: Sequence[Row], fast: int | None = None) -> Any:
    """Parametrise by rows; the slow ones, or all but some, are run at night."""
    step = 1 if fast is None else max(len(rows) // fast, 1)
    marked = [
        pytest.param(r, id=r.label, marks=[pytest.mark.nightly] if r.is_slow or i % step else [])
        for i, r in enumerate(rows)
    ]
    return pytest.mark.parametrize("row", marked)


def leaves(out: Any) -> list[Any]:
    """Floating arrays of a result, of complex ones both parts."""
    parts = out if isinstance(out, tuple | list) else [out]
    found = []
    for part in parts:
        if isinstance(part, tuple | list):
            found += leaves(part)
            continue
        kind = part.dtype.kind if hasattr(part, "dtype") else np.asarray(part).dtype.kind
        if kind == "c":
            found += [part.real, part.imag]
        elif kind == "f":
            found.append(part)
    return found


def compared(found: Any, expected: Any, rtol: float, atol: float) -> None:
    """Values, shapes and dtypes agree."""
    pairs = zip(_listed(found), _listed(expected), strict=True)
    for ours, theirs in pairs:
        assert np.shape(ours) == np.shape(theirs)
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(ours, theirs, rtol, atol)


def _listed(out: Any) -> Iterable[Any]:
    return out if isinstance(out, tuple | list) else [out]


def check_value(ours: Any, theirs: Any, row: Row) -> None:
    """The values of SciPy's function, in float64 and in float32."""
    f, g = getattr(ours, row.name), getattr(theirs, row.name)
    compared(f(*row.args, **row.keywords), g(*row.args, **row.keywords), 1e-9, 1e-10)
    single = [_single(a) if i in row.argnums else a for i, a in enumerate(row.args)]
    found = leaves(f(*single, **row.keywords))
    for ours_, theirs_ in zip(found, leaves(g(*row.args, **row.keywords)), strict=True):
        scale = np.max(np.abs(theirs_), initial=1e-3)
        np.testing.assert_allclose(ours_, theirs_, 2e-3, 2e-3 * scale)


def _single(a: Any) -> Any:
    x = np.asarray(a)
    return x.astype({"f": np.float32, "c": np.complex64}.get(x.dtype.kind, x.dtype))


def summary(row: Row, f: Callable[..., Any], library: Any) -> Callable[..., Any]:
    """A weighted sum of everything that the function returns, of the differentiated arguments."""

    def total(*values: Any) -> Any:
        args = list(row.args)
        for i, value in zip(row.argnums, values, strict=True):
            args[i] = value
        out = 0.0
        for part in leaves(f(*args, **row.keywords)):
            w = np.cos(np.arange(int(np.prod(np.shape(part)))) + 1.0).reshape(np.shape(part))
            out = out + library.sum(w * part * (1 + 0.1 * part))
        return out

    return total


def check_derivatives(ours: Any, theirs: Any, row: Row, has_curvature: bool = True) -> None:
    """First and second derivatives against differences of SciPy's function."""
    f = summary(row, getattr(ours, row.name), fnp)
    g = summary(row, getattr(theirs, row.name), np)
    x = [np.asarray(row.args[i]) for i in row.argnums]
    rng = np.random.default_rng(0)
    t = [
        rng.normal(size=v.shape) + (1j * rng.normal(size=v.shape) if v.dtype.kind == "c" else 0)
        for v in x
    ]

    def at(h: float) -> float:
        return float(g(*(v + h * d for v, d in zip(x, t, strict=True))))

    value, slope = fg.jvp(f, tuple(x), tuple(t))
    np.testing.assert_allclose(value, at(0.0), 1e-8, 1e-9)
    scale = max(abs(at(0.0)), 1.0)
    h = 1e-4
    central = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    np.testing.assert_allclose(slope, central, 1e-6, 1e-6 * scale)
    grads = fg.grad(f, tuple(range(len(x))))(*x)
    # Of complex arguments the gradient is the conjugate of the steepest ascent.
    pulled = sum(np.sum(a * d).real for a, d in zip(grads, t, strict=True))
    np.testing.assert_allclose(pulled, slope, 1e-8, 1e-8 * scale)
    if not has_curvature:
        return

    def gradient(*values: Any) -> Any:
        parts = fg.grad(f, tuple(range(len(x))))(*values)
        return sum(fnp.sum(a * d) for a, d in zip(parts, t, strict=True))

    if any(np.iscomplexobj(v) for v in x):
        return
    _, curvature = fg.jvp(gradient, tuple(x), tuple(t))
    h = 3e-3
    second = (-at(2 * h) + 16 * at(h) - 30 * at(0.0) + 16 * at(-h) - at(-2 * h)) / (12 * h * h)
    np.testing.assert_allclose(curvature, second, 1e-4, 1e-4 * max(scale, abs(slope)))


def check_mapped(ours: Any, theirs: Any, row: Row) -> None:
    """`vmap` over stacks of the differentiated arguments, against a loop of SciPy's function."""
    f, g = getattr(ours, row.name), getattr(theirs, row.name)

    def call(function: Any, values: Sequence[Any]) -> Any:
        args = list(row.args)
        for i, value in zip(row.argnums, values, strict=True):
            args[i] = value
        return tuple(leaves(function(*args, **row.keywords)))

    first = [np.asarray(row.args[i]) for i in row.argnums]
    second = [v * 1.01 for v in first]
    stacked = [np.stack(pair) for pair in zip(first, second, strict=True)]
    found = fg.vmap(lambda *v: call(f, v))(*stacked)
    for k, values in enumerate((first, second)):
        for ours_, theirs_ in zip(found, call(g, values), strict=True):
            shape = np.shape(theirs_)
            got = ours_[k] if np.shape(ours_)[1:] == shape else ours_
            np.testing.assert_allclose(got, theirs_, 1e-9, 1e-10)


def check_compiled(ours: Any, row: Row) -> None:
    """`jit` of the function and of its gradient, against evaluation without it."""
    f = summary(row, getattr(ours, row.name), fnp)
    x = [np.asarray(row.args[i]) for i in row.argnums]
    both = fg.value_and_grad(f, tuple(range(len(x))))
    value, grads = both(*x)
    found, found_grads = fg.jit(both)(*x)
    np.testing.assert_allclose(found, value, 1e-10, 1e-10)
    for a, b in zip(found_grads, grads, strict=True):
        np.testing.assert_allclose(a, b, 1e-8, 1e-9)
