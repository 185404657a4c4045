"""Dtypes and values of all pairs of dtypes and scalars, against NumPy.

Every operator and every function of two arguments, on arrays, NumPy's scalars, arrays without axes
and Python's numbers: called eagerly, mapped and compiled. What differs on purpose is written in
`expected`, and in docs/coming_from_numpy.md.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

DTYPES = [
    np.dtype(code)
    for code in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16")
]
NUMBERS: list[Any] = [
    True, 0, 2, -1, 255, 256, 300, -129, 2**40, 2**63, 2**70, 1.5, -0.5, 1e300, 2j,
]  # fmt: skip
MASK = np.array([True, False, True, False])

Function = Callable[[Any, Any, Any, Any], Any]
"""From a module (NumPy or ours), a mask and two operands to the result."""

OPERATORS = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift",
    "rshift", "eq", "ne", "lt", "le", "gt", "ge",
]  # fmt: skip
UFUNCS = [
    "add", "subtract", "multiply", "divide", "floor_divide", "mod", "fmod", "maximum",
    "minimum", "fmax", "fmin", "power", "float_power", "arctan2", "hypot", "copysign",
    "nextafter", "logaddexp", "logaddexp2", "heaviside", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "divmod", "ldexp",
]  # fmt: skip


def of_operator(name: str) -> Function:
    symbol = getattr(operator, name)
    return lambda module, mask, x, y: symbol(x, y)


def of_ufunc(name: str) -> Function:
    return lambda module, mask, x, y: getattr(module, name)(x, y)


FUNCTIONS: dict[str, Function] = {
    **{f"operator {name}": of_operator(name) for name in OPERATORS},
    "operator divmod": lambda module, mask, x, y: divmod(x, y),
    **{name: of_ufunc(name) for name in UFUNCS},
    "where": lambda module, mask, x, y: module.where(mask, x, y),
    "where by comparison": lambda module, mask, x, y: module.where(module.greater(x, y), x, y),
    "clip": lambda module, mask, x, y: module.clip(x, y, y),
    "clip from below": lambda module, mask, x, y: module.clip(x, y, None),
    "clip from above": lambda module, mask, x, y: module.clip(x, None, y),
}
ALLOWED = frozenset(("logaddexp", "logaddexp2"))
"""Functions that take complex numbers here, and do not in NumPy."""


def array_of(dtype: np.dtype[Any], first: bool) -> Any:
    """Four elements, among them the ends of the range."""
    if dtype.kind == "b":
        values: list[Any] = [True, True, False, False] if first else [True, False, True, False]
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        middle = min(2**53 + 1, info.max) if dtype.kind == "i" else min(2**53, info.max)
        values = [info.max, info.min, 7, middle] if first else [2, 3, info.max, 5]
        if first and dtype.kind == "i":
            values[2] = -3
    elif dtype.kind == "f":
        values = [1.5, -2.25, 300.0, 0.5] if first else [2.0, 0.75, -1.5, 3.0]
    else:
        values = [1.5 + 1j, -2.25, 3j, 0.5 - 1j] if first else [2.0, 0.75 - 1j, -1.5j, 3.0]
    return np.array(values, dtype)


class Pair(NamedTuple):
    x: Any
    y: Any
    is_traced: tuple[bool, bool]


def pairs_of(dtype: np.dtype[Any]) -> Iterator[Pair]:
    """An array of the dtype with everything else, on either side."""
    x = array_of(dtype, True)
    for other in DTYPES:
        y = array_of(other, False)
        yield Pair(x, y, (True, True))
        yield Pair(x, np.array(y[3]), (True, False))
        yield Pair(x, y[3], (True, False))
        yield Pair(y[3], x, (False, True))
    for number in NUMBERS:
        yield Pair(x, number, (True, False))
        yield Pair(number, x, (False, True))


def run_quietly(function: Callable[..., Any], *args: Any) -> Any:
    """The result, without warnings of numbers that overflow."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """The result or the error."""
    try:
        return run_quietly(function, *args)
    except (OverflowError, TypeError, ValueError) as error:
        return error


def dtype_of(value: Any) -> np.dtype[Any]:
    return np.asarray(value).dtype


def fits(number: Any, dtype: np.dtype[Any]) -> bool:
    if type(number) is not int or dtype.kind not in "biu":
        return True
    info = np.iinfo(np.int64 if dtype.kind == "b" else dtype)
    return bool(info.min <= number <= info.max)


# What NumPy 2.0 does otherwise than later ones; here it does not depend on NumPy.
LIMITS_MUST_FIT = isinstance(outcome(np.clip, np.int8(0), None, 300), OverflowError)
ALL_NUMBERS_HAVE_A_TRUTH = not isinstance(outcome(np.logical_and, True, 2**70), OverflowError)


def reference(name: str, x: Any, y: Any) -> Any:
    """What a NumPy of today makes of two operands, also where an older one is installed."""
    are_long = not (fits(x, np.dtype(np.int64)) and fits(y, np.dtype(np.int64)))
    if name.startswith("logical") and ALL_NUMBERS_HAVE_A_TRUTH and are_long:
        return OverflowError()
    is_limit = name.startswith("clip") and type(y) is int and dtype_of(x).kind in "iu"
    if is_limit and LIMITS_MUST_FIT:
        # A limit beyond the range, on the side where nothing can reach it, limits nothing.
        info = np.iinfo(dtype_of(x))
        low = info.min if name == "clip from above" else max(y, info.min)
        high = info.max if name == "clip from below" else min(y, info.max)
        return outcome(np.clip, x, low, high)
    return outcome(FUNCTIONS[name], np, MASK, x, y)


def expected(name: str, x: Any, y: Any) -> Any:
    """What NumPy makes of two operands; `None` where that is no reference."""
    numbers_fit = fits(x, dtype_of(y)) and fits(y, dtype_of(x))
    if name in ALLOWED and "c" in dtype_of(x).kind + dtype_of(y).kind:
        return None
    if name == "where" and not numbers_fit:
        return OverflowError()  # NumPy wraps silently
    if name == "where by comparison" and not numbers_fit:
        return OverflowError()
    if name.startswith("clip") and "c" in dtype_of(x).kind + dtype_of(y).kind:
        return TypeError()  # complex numbers have no order
    if name.startswith("clip") and type(x) in (bool, int, float):
        return None  # weak here, an array of 64 bits in NumPy
    if name == "ldexp" and type(y) is int and abs(y) >= 2**31 and dtype_of(x).kind != "c":
        return None  # exponents have 64 bits here, 32 bits in NumPy
    if name == "operator pow" and type(y) is int and y == 2:
        return outcome(np.power, x, y)  # NumPy's operator squares bools as int8
    want = reference(name, x, y)
    first = want[0] if isinstance(want, tuple) else want
    if not isinstance(want, Exception) and first.dtype == np.float16:
        return in_full_precision(name, x, y)
    return want


def in_full_precision(name: str, x: Any, y: Any) -> Any:
    """Where NumPy computes in float16: float32, and float64 of bools and Python's numbers alone."""
    deciding = (x,) if name == "ldexp" else (x, y)
    has_dtype = [type(v) is not int and dtype_of(v) != np.bool_ for v in deciding]
    dtype = np.float32 if any(has_dtype) else np.float64
    x = np.asarray(x).astype(dtype)
    y = y if name == "ldexp" else np.asarray(y).astype(dtype)
    return outcome(FUNCTIONS[name], np, MASK, x, y)


def disagreement(want: Any, got: Any) -> str | None:
    """How a result differs from the expected one, if it does."""
    if want is None:
        return None
    if isinstance(want, Exception):
        kind = next(k for k in (OverflowError, TypeError, ValueError) if isinstance(want, k))
        return None if isinstance(got, kind) else f"{kind.__name__} expected, got {got!r:.90}"
    if isinstance(got, Exception):
        return f"{want!r:.60} expected, got {got!r:.90}"
    wants = want if isinstance(want, tuple) else (want,)
    gots = got if isinstance(got, tuple | list) else (got,)
    for w, g in zip(wants, gots, strict=True):
        if dtype_of(w) != g.dtype:
            return f"{dtype_of(w)} expected, got {g.dtype}"
        if not equal(np.asarray(w), np.asarray(g)):
            return f"{w} expected, got {g}"
    return None


def equal(want: Any, got: Any) -> bool:
    if want.shape != got.shape:
        return False
    if want.dtype.kind not in "fc":
        return bool(np.array_equal(want, got))
    is_narrow = want.dtype in (np.float32, np.complex64)
    rtol, atol = (2e-6, 1e-6) if is_narrow else (1e-14, 1e-12)
    return bool(np.allclose(want, got, rtol, atol, equal_nan=True))


def report(rows: list[str]) -> None:
    assert not rows, f"{len(rows)} differ:\n" + "\n".join(rows[:20])


def label(name: str, x: Any, y: Any) -> str:
    shown = [v if type(v) in (bool, int, float, complex) else f"{v.dtype}{v.shape}" for v in (x, y)]
    return f"{name} of {shown[0]} and {shown[1]}"


def check(name: str, run: Callable[[Pair], Any]) -> None:
    rows = []
    for dtype in DTYPES:
        for pair in pairs_of(dtype):
            problem = disagreement(expected(name, pair.x, pair.y), run(pair))
            if problem is not None:
                rows.append(f"{label(name, pair.x, pair.y)}: {problem}")
    report(rows)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if not n.startswith("operator")])
def test_eager(name: str) -> None:
    check(name, lambda pair: outcome(FUNCTIONS[name], fnp, MASK, pair.x, pair.y))


@pytest.mark.sampled(32)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_mapped(name: str) -> None:
    def run(pair: Pair) -> Any:
        x, y, (is_x, is_y) = pair
        axes = (0, 0 if is_x else None, 0 if is_y else None)
        # What is not mapped is closed over, so that Python's numbers stay such.
        mapped = fg.vmap(
            lambda mask, a, b: FUNCTIONS[name](fnp, mask, a if is_x else x, b if is_y else y), axes
        )
        return outcome(mapped, MASK, x if is_x else None, y if is_y else None)

    check(name, run)


def check_compiled(name: str, dtype: np.dtype[Any]) -> None:
    """All pairs with an array of one dtype in one program."""
    rows = [(pair, expected(name, pair.x, pair.y)) for pair in pairs_of(dtype)]
    # Whether an exponent is negative shows when the program runs, which then returns nothing.
    rows = [(pair, want) for pair, want in rows if not isinstance(want, ValueError)]
    errors: dict[int, Exception] = {}

    def everything(mask: Any, xs: list[Any], ys: list[Any]) -> dict[int, Any]:
        results = {}
        for i, (pair, _) in enumerate(rows):
            x = xs[i] if pair.is_traced[0] else pair.x
            y = ys[i] if pair.is_traced[1] else pair.y
            try:
                results[i] = FUNCTIONS[name](fnp, mask, x, y)
            except (OverflowError, TypeError) as error:
                errors[i] = error
        return results

    xs = [pair.x if pair.is_traced[0] else 0 for pair, _ in rows]
    ys = [pair.y if pair.is_traced[1] else 0 for pair, _ in rows]
    got = errors | run_quietly(fg.jit(everything), MASK, xs, ys)
    problems = [
        f"{label(name, pair.x, pair.y)}: {problem}"
        for i, (pair, want) in enumerate(rows)
        if (problem := disagreement(want, got[i])) is not None
    ]
    report(problems)


def check_traced_numbers(name: str, dtype: np.dtype[Any]) -> None:
    """Python's numbers as arguments of a compiled function: weak, with values not known."""
    x = array_of(dtype, True)
    numbers = [n for n in NUMBERS if fits(n, np.dtype(np.int64))]
    rows = [pair for n in numbers for pair in ((x, n), (n, x))]
    wants = [traced_expected(name, *pair) for pair in rows]
    kept = [i for i, want in enumerate(wants) if not isinstance(want, Exception)]

    def everything(mask: Any, pairs: list[Any]) -> list[Any]:
        return [FUNCTIONS[name](fnp, mask, *pair) for pair in pairs]

    got = run_quietly(fg.jit(everything), MASK, [rows[i] for i in kept])
    problems = []
    for i, ys in zip(kept, got, strict=True):
        if isinstance(wants[i], np.dtype):
            first = ys[0] if isinstance(ys, tuple) else ys
            problem = None if first.dtype == wants[i] else f"{wants[i]} expected, got {first.dtype}"
        else:
            problem = disagreement(wants[i], ys)
        if problem is not None:
            problems.append(f"{label(name, *rows[i])}, traced: {problem}")
    report(problems)


def traced_expected(name: str, x: Any, y: Any) -> Any:
    """As `expected`; only the dtype where NumPy refuses a number, which wraps when traced."""
    want = expected(name, x, y)
    if not isinstance(want, OverflowError) or "pow" in name:  # an exponent may wrap to -1
        return want
    x, y = (1 if type(v) is int else v for v in (x, y))
    want = expected(name, x, y)
    return dtype_of(want[0] if isinstance(want, tuple) else want)


def sampled_dtype(name: str) -> np.dtype[Any]:
    seed = list(FUNCTIONS).index(name)
    return DTYPES[int(np.random.default_rng(seed).integers(len(DTYPES)))]


@pytest.mark.sampled(32)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled(name: str) -> None:
    check_compiled(name, sampled_dtype(name))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", ["add", "divide", "less", "arctan2", "power", "where", "clip"])
def test_traced_numbers(name: str) -> None:
    for dtype in map(np.dtype, ("i1", "u1", "f4")):
        check_traced_numbers(name, dtype)


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_in_full(name: str, dtype: np.dtype[Any]) -> None:
    check_compiled(name, dtype)
    check_traced_numbers(name, dtype)
