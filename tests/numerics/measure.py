"""Measures the errors of elementary and special functions.

References are mpmath's. The sweeps over the numbers of single precision are compared with NumPy and
SciPy in double precision, whose own errors are half a billion times smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import mpmath
import numpy as np
import scipy.special

import funcgrad as fg
from tests.numerics import elementary, special

DTYPES = ("float64", "float32")
ELEMENTARY = (
    *elementary.DOMAINS,
    *elementary.TWO,
    *elementary.COMPOSED,
    *elementary.COMPOSED_OF_TWO,
)
TABLES = {"elementary": ELEMENTARY, "special": special.MEASURED}
SWEPT = (*elementary.DOMAINS, "sqrt")
STRIDE = 257
"""Of so many neighbours among the numbers of single precision a sweep takes one."""
CHUNK = 2**21

Errors = dict[str, Any]


def by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled loop that computes one element at a time, and stays one."""
    loop = fg.jit(lambda *args: fg.lax.map(lambda xs: function(*xs), args))
    return fg.reroll_loops(False)(loop)


def measured(found: tuple[float, list[Any]]) -> dict[str, Any]:
    return {"ulp": float(f"{found[0]:.3g}"), "at": found[1]}


def of_elementary(name: str) -> Errors:
    """The largest errors of a function over its sample, in three ways, and over the sweep."""
    function, errors = elementary.function(name), {}
    for dtype in DTYPES:
        args = elementary.sample(name, np.dtype(dtype).type)
        ways = {"arrays": fg.jit(function), "single": by_one(function), "numpy": function}
        with np.errstate(all="ignore"):
            errors[dtype] = {
                way: measured(elementary.worst(name, np.asarray(f(*args)), args))
                for way, f in ways.items()
            }
    if name in SWEPT:
        errors["float32"]["sweep"] = measured(sweep(name))
    return errors


def numbers() -> Iterator[np.ndarray]:
    """One of `STRIDE` of the finite numbers of single precision, by their bits."""
    for start in range(0, 2**32, STRIDE * CHUNK):
        bits = np.arange(start, min(start + STRIDE * CHUNK, 2**32), STRIDE, dtype=np.uint32)
        x = bits.view(np.float32)
        yield x[np.isfinite(x)]


def sweep(name: str) -> tuple[float, list[Any]]:
    """The largest error in single precision over the numbers of all sizes."""
    function = fg.jit(elementary.function(name))
    reference = getattr(np, name, None) or getattr(scipy.special, name)
    worst, place = 0.0, [0.0]
    for x in numbers():
        with np.errstate(all="ignore"):
            found, exact = function(x).astype(float), reference(x.astype(float))
            nearest = exact.astype(np.float32)
            unit = np.spacing(np.abs(nearest)).astype(float)
            error = np.abs(found - exact) / unit
        error[(found == nearest) | (np.isnan(found) & np.isnan(nearest))] = 0
        # Where the exact value is above all numbers, the largest of them is as near as infinity.
        error[np.isinf(nearest) & (np.abs(found) == np.finfo(np.float32).max)] = 1
        error = np.where(np.isnan(error), np.inf, error)
        k = int(error.argmax())
        if error[k] > worst:
            worst, place = float(error[k]), [float(x[k])]
    return worst, place


def of_special(name: str) -> Errors:
    """The largest and the middle error of a function over its sample."""
    errors = {}
    for dtype in DTYPES:
        with mpmath.workdps(special.DIGITS):
            rows = sorted(special.errors(name, np.dtype(dtype).type), key=lambda row: row[0])
        errors[dtype] = {
            **measured((rows[-1][0], rows[-1][2])),
            "middle": float(f"{rows[len(rows) // 2][0]:.3g}"),
            "conditioned": float(f"{max(row[1] for row in rows):.3g}"),
        }
    return errors


def measure(names: Iterable[str] = ()) -> dict[str, dict[str, Errors]]:
    """All tables, or those of some functions."""
    wanted = set(names)
    tables: dict[str, dict[str, Errors]] = {table: {} for table in TABLES}
    for table, names_of in TABLES.items():
        for name in names_of:
            if not wanted or name in wanted:
                of = of_elementary if table == "elementary" else of_special
                tables[table][name] = of(name)
                print(name, tables[table][name], flush=True)
    return tables
