"""What results of numbers are: numbers, as NumPy's, and no arrays without axes.

A number can be a key, is formatted and printed as one, and cannot be changed from elsewhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.numpy import reexported

NUMBERS: dict[str, Any] = {
    "float": 0.5, "int": 2, "bool": True, "complex": 0.5 + 1j, "float64": np.float64(0.5),
    "float32": np.float32(0.5), "int64": np.int64(2), "bool_": np.bool_(True),
    "complex128": np.complex128(0.5 + 1j),
}  # fmt: skip
X = np.array([3.0, 1.0, 2.0])
OF_ARRAYS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        ("all", "any", "argmax", "argmin", "average", "count_nonzero", "max", "mean", "median",
         "min", "nanargmax", "nanmax", "nanmean", "nanmedian", "nanmin", "nanprod", "nanstd",
         "nansum", "nanvar", "prod", "ptp", "std", "sum", "trapezoid", "var"),
        (X,),
    ),
    "dot": (X, X), "inner": (X, X), "vdot": (X, X), "einsum": ("i,i", X, X), "take": (X, 1),
    "trace": (np.eye(2),), "interp": (0.5, X, X), "searchsorted": (np.sort(X), 1.5),
    "percentile": (X, 50), "quantile": (X, 0.5), "polyval": (X, 2.0), "digitize": (1.5, np.sort(X)),
    "linalg.norm": (X,), "linalg.det": (np.eye(2),), "linalg.slogdet": (np.eye(2),),
    "linalg.cond": (np.eye(2),), "linalg.matrix_rank": (np.eye(2),), "linalg.vector_norm": (X,),
}  # fmt: skip
NAMES = sorted(
    name
    for name in fnp.__all__
    if callable(getattr(np, name, None))
    and not isinstance(getattr(fnp, name), type)
    and not hasattr(reexported, name)
)


def kind(x: Any) -> str:
    """What a result is: an array without axes, or anything else."""
    if isinstance(x, tuple | list):
        return ",".join(map(kind, x))
    return "array" if isinstance(x, np.ndarray) and not x.ndim else "other"


def called(function: Callable[..., Any], *args: Any) -> Any:
    """The result, or `None` where there is none."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function(*args)
    except Exception:  # of arguments that it does not take
        return None


@pytest.mark.parametrize("count", [1, 2, 3])
def test_functions_of_numbers_give_numbers(count):
    wrong = []
    for name in NAMES:
        for label, number in NUMBERS.items():
            args = [number] * count
            found = called(getattr(fnp, name), *args)
            expected = called(getattr(np, name), *args)
            if expected is not None and "array" in kind(found) and "array" not in kind(expected):
                wrong.append(f"{name} of {label}")
    assert not wrong


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_functions_of_arrays_give_numbers(name):
    function: Any = fnp
    for part in name.split("."):
        function = getattr(function, part)
    assert kind(function(*OF_ARRAYS[name])) == kind(function(*OF_ARRAYS[name])).replace(
        "array", "other"
    )


def test_parts_and_conversions_of_numbers_are_numbers():
    assert type(fnp.imag(0.5)) is float
    assert type(fnp.real(np.float32(0.5))) is np.float32
    assert type(fnp.where(True, 1.0, 2.0)) is np.float64
    assert {fnp.sinc(0.0): "a key"}[np.float64(1.0)] == "a key"
    assert fnp.asarray(2.0).shape == fnp.zeros(()).shape == ()
    assert isinstance(fnp.asarray(2, np.float32), np.ndarray)


@pytest.mark.parametrize("name", ["meshgrid", "broadcast_arrays"])
def test_several_arrays_are_what_numpy_returns(name):
    x, y = np.arange(3.0), np.arange(2.0)[:, None]
    for options in ({}, {"indexing": "ij"}, {"sparse": True}):
        if name == "broadcast_arrays" and options:
            continue
        args = (x, y[:, 0]) if name == "meshgrid" else (x, y)
        found = getattr(fnp, name)(*args, **options)
        expected = getattr(np, name)(*args, **options)
        traced = fg.make_jaxpr(lambda *xs: getattr(np, name)(*xs, **options))  # noqa: B023
        assert type(found) is type(expected)
        assert [a.shape for a in found] == [a.shape for a in expected]
        assert len(traced(*args).out_avals) == len(expected)
