"""Folds under every combination of their keywords, against NumPy: eager, compiled and mapped.

`KEYWORDS` says which keywords a function takes, `values` what they are tried with: axes of every
spelling and out of range, dtypes of every kind, masks, starts. Arrays are of every kind of dtype,
without axes, and with axes of length 0. A sample of the product runs always, more of it with the
slow tests. Where NumPy raises, so must we, and the other way round; `differs` lists the exceptions.
"""

from __future__ import annotations

import inspect
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.errors import DtypeError, ShapeError

FOLD = "axis keepdims"
KEYWORDS = {
    **dict.fromkeys(["sum", "prod", "nansum", "nanprod"], f"{FOLD} dtype where initial"),
    **dict.fromkeys(["mean", "nanmean"], f"{FOLD} dtype where"),
    **dict.fromkeys(["var", "std", "nanvar", "nanstd"], f"{FOLD} dtype where ddof correction"),
    **dict.fromkeys(["max", "min", "amax", "amin", "nanmax", "nanmin"], f"{FOLD} initial where"),
    **dict.fromkeys(["any", "all"], f"{FOLD} where"),
    **dict.fromkeys(["count_nonzero", "ptp", "median", "nanmedian", "average"], FOLD),
    **dict.fromkeys(["quantile", "percentile", "nanquantile", "nanpercentile"], f"{FOLD} q"),
    **dict.fromkeys(["argmax", "argmin", "nanargmax", "nanargmin"], "one_axis keepdims"),
    **dict.fromkeys(["cumsum", "cumprod", "nancumsum", "nancumprod"], "one_axis dtype"),
    **dict.fromkeys(["cumulative_sum", "cumulative_prod"], "one_axis dtype include_initial"),
}
DTYPES = ("?", "i1", "u1", "i8", "f4", "f8", "c16")
SHAPES = ((), (1,), (2, 3), (0,), (2, 0, 3), (2, 3, 2))
MAPPED = 3
QUANTILES = ("median", "nanmedian", "quantile", "percentile", "nanquantile", "nanpercentile")


def values(keyword: str, shape: tuple[int, ...], rng: np.random.Generator) -> list[Any]:
    """What a keyword is tried with, for an array of a shape."""
    ndim = len(shape)
    match keyword:
        case "axis":
            axes = [None, 0, -1, 1, (), tuple(range(ndim)), (0, -1), (-1, 0), (0,), np.int64(0)]
            return [*axes, ndim, -ndim - 1, (0, ndim), (0, 0), [0], 1.0, "0"]
        case "one_axis":
            return [None, 0, -1, 1, np.int64(-1), ndim, -ndim - 1, 1.0]
        case "dtype":
            return [None, *DTYPES, "u2", "f4", "f8", int, float, bool]
        case "keepdims" | "include_initial":
            return [False, True]
        case "where":
            masks = [
                rng.random(shape) < 0.6,
                rng.random(shape[-1:]) < 0.6,
                np.ones((5, *shape)) > 0,
            ]
            return [True, False, 1, [True], *masks, np.ones(shape), np.ones(shape, int)]
        case "initial":
            return [2, 2.5, True, -1, 1 + 2j, np.inf, np.float32(1.5), np.array(3.0)]
        case "ddof" | "correction":
            return [0, 1, 2, 1.5, 10]
        case "q":
            return [0.5, 0.0, 1.0, [0.25, 0.75], 1.5]
    raise AssertionError(keyword)


def array(dtype: Any, shape: tuple[int, ...], rng: np.random.Generator, is_exact: bool) -> Any:
    """Small numbers; also nan, unless they are to become integers."""
    x = np.asarray(rng.normal(size=shape) * 3)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.asarray(x > 0)
    # No negative numbers become unsigned ones, which is undefined.
    x = np.abs(x) if dtype.kind == "u" or is_exact else x
    if dtype.kind == "c":
        x = np.asarray(x + 1j * rng.normal(size=shape))
    if dtype.kind in "fc" and not is_exact and x.size > 2:
        x.flat[1] = np.nan
    return x.astype(dtype)


def draw(name: str, rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    shape = SHAPES[rng.integers(len(SHAPES))]
    chosen: dict[str, Any] = {}
    for keyword in KEYWORDS[name].split():
        # Half of the keywords are left away, so that a wrong one does not hide all others.
        if keyword == "q" or rng.random() < 0.5:
            options = values(keyword, shape, rng)
            chosen[keyword.removeprefix("one_")] = options[rng.integers(len(options))]
    wanted = chosen.get("dtype")
    is_exact = wanted is not None and np.dtype(wanted).kind in "biu"
    return array(DTYPES[rng.integers(len(DTYPES))], shape, rng, is_exact), chosen


def result(function: Callable[[Any], Any], x: Any) -> Any:
    """The value, or the exception."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(x)
        except Exception as error:
            return error


def differs(name: str, x: Any, keywords: dict[str, Any], theirs: Any) -> bool:
    """Whether NumPy's answer is not ours, on purpose."""
    wanted = keywords.get("dtype")
    is_exact = wanted is not None and np.dtype(wanted).kind in "biu"
    axis = keywords.get("axis")
    if not x.ndim and axis is not None and not isinstance(axis, tuple):
        return True  # NumPy's sums, though not its means, take axis 0 of an array that has none.
    if name in QUANTILES and (x.dtype.kind in "bc" or not x.size):
        return True  # They have no order, or no difference, and nothing has no median.
    if name == "average" and not x.size:
        return True  # ZeroDivisionError there, as for weights that sum to zero.
    dtype = np.result_type(x.dtype, wanted or x.dtype)
    if name in ("prod", "nanprod") and dtype.kind == "c" and x.size > 1:
        # What infinite factors give depends on the order of multiplication.
        return bool(np.isinf(keywords.get("initial", 1)))
    if name in ("var", "nanvar", "std", "nanstd") and keywords.get("ddof", 0) and not is_exact:
        # What is divided by zero is a rounding error, or none.
        return not isinstance(theirs, Exception) and not np.isfinite(theirs).all()
    if name in ("mean", "nanmean", "var", "nanvar", "std", "nanstd") and is_exact:
        plain = result(lambda x: getattr(np, name)(x, **(keywords | {"dtype": "f8"})), x)
        # A quotient by zero has no integer; NumPy takes roots of integer scalars only.
        return not np.isfinite(plain).all() if not isinstance(theirs, Exception) else "std" in name
    return False


def check(ours: Any, theirs: Any, x: Any, message: str) -> None:
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        both = isinstance(ours, Exception) and isinstance(theirs, Exception)
        assert both, f"{message}: {ours!r} is not {theirs!r}"
        return
    assert np.shape(ours) == np.shape(theirs), message
    assert np.asarray(ours).dtype == np.asarray(theirs).dtype, message
    digits = 1e-4 if np.float32 in (x.dtype, np.asarray(theirs).dtype) else 1e-10
    for part in (np.real, np.imag):  # infinite numbers of two parts would have to be equal
        np.testing.assert_allclose(part(ours), part(theirs), digits, digits, err_msg=message)


def show(name: str, x: Any, keywords: dict[str, Any]) -> str:
    return f"{name}({x.dtype}{list(x.shape)}, {keywords})"


def agrees(name: str, seed: int, count: int) -> None:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    for _ in range(count):
        x, keywords = draw(name, rng)

        def ours(x: Any, keywords: dict[str, Any] = keywords) -> Any:
            return getattr(fnp, name)(x, **keywords)

        theirs = result(lambda x, k=keywords: getattr(np, name)(x, **k), x)
        if differs(name, x, keywords, theirs):
            continue
        message = show(name, x, keywords)
        check(result(ours, x), theirs, x, f"eager {message}")
        check(result(fg.jit(ours), x), theirs, x, f"compiled {message}")
        lanes = np.stack([x] * MAPPED)
        stacked = theirs if isinstance(theirs, Exception) else np.stack([theirs] * MAPPED)
        check(result(fg.vmap(ours), lanes), stacked, x, f"mapped {message}")


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", [n for n in KEYWORDS if hasattr(np, n)])
def test_keywords(name: str) -> None:
    agrees(name, 0, 20)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("name", KEYWORDS)
def test_more_keywords(name: str, seed: int) -> None:
    agrees(name, seed, 200)


def test_every_fold_is_in_the_table() -> None:
    """Every function with an axis and another keyword of folds."""
    marks = {"keepdims", "where", "initial", "include_initial", "ddof"}
    functions = {n: f for n in dir(fnp) if inspect.isfunction(f := getattr(fnp, n)) and n[0] != "_"}
    folds = {n for n, f in functions.items() if marks & set(inspect.signature(f).parameters)}
    assert folds - set(KEYWORDS) - {"cov"} == set()
    running = {n for n in functions if n.startswith(("cum", "nancum"))}
    assert running - set(KEYWORDS) == set()


# What NumPy does not say, or says by accident.

MASKED = ("sum", "prod", "mean", "var", "std", "any", "all", "nansum", "nanmean", "nanvar")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MASKED)
def test_a_mask_of_none_masks_nothing(name: str) -> None:
    """As in JAX; NumPy takes None as False."""
    x = np.array([[1.0, 2.0], [4.0, 8.0]])
    expected = getattr(np, name)(x, axis=0)
    for f in (fnp, np):
        for wrap in (lambda g: g, fg.jit) if f is fnp else (fg.jit, fg.jit):
            found = wrap(lambda x, f=f: getattr(f, name)(x, axis=0, where=None))(x)
            np.testing.assert_allclose(found, expected, 1e-12)
    assert fnp.max(x, where=None) == 8.0
    assert fnp.max(x, initial=9.0, where=None) == 9.0


@pytest.mark.parametrize("name", [*MASKED, "max", "min", "nanmax", "nanmin"])
@pytest.mark.parametrize("mask", [np.ones(3), np.ones(3, int), np.float32(1.0)])
def test_a_mask_is_bool(name: str, mask: Any) -> None:
    keywords = {"initial": 0.0} if name.endswith(("max", "min")) else {}
    for wrap in (lambda f: f, fg.jit, lambda f: lambda x: fg.vmap(f)(x[None])):
        with pytest.raises(DtypeError, match=f"{name.removeprefix('nan')}.*where= must be a bool"):
            wrap(lambda x: getattr(fnp, name)(x, where=mask, **keywords))(np.ones(3))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "nansum", "nanmax"])
@pytest.mark.parametrize("initial", [np.ones(1), np.ones((2, 1)), [0.0, 1.0]])
def test_a_start_is_a_scalar(name: str, initial: Any) -> None:
    for wrap in (lambda f: f, fg.jit):
        with pytest.raises(ShapeError, match="initial= must be a scalar"):
            wrap(lambda x: getattr(fnp, name)(x, initial=initial))(np.ones(3))
    with pytest.raises(ShapeError, match=r"initial= must be a scalar, got f64\[2\]"):
        fg.jit(lambda x: getattr(fnp, name)(x, initial=x))(np.ones(2))


def test_a_start_may_be_traced() -> None:
    assert fg.grad(lambda c: fnp.prod(np.array([2.0, 3.0]), initial=c))(1.0) == 6.0


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_two_names_of_one_number(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: ddof= and correction="):
        getattr(fnp, name)(np.ones(3), ddof=1, correction=1)
