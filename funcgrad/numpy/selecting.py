"""Functions that choose between elements, look them up, and relate neighbours.

Everything is made of indexing and elementwise operations; loops run over static things only: axes,
conditions, coefficients.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.base.index_rule import INDEX_RULE
from funcgrad.base.placement import check_placement
from funcgrad.base.signatures import explain
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import BOOL, FLOAT64, INT64, is_complex, is_inexact
from funcgrad.errors import (
    ArgumentError,
    ConcretizationTypeError,
    DtypeError,
    OutOfBoundsError,
    ShapeError,
)
from funcgrad.lowering import Slide
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.contracting import dot
from funcgrad.numpy.diagonals import diagonal
from funcgrad.numpy.indexing import at, demanded_places, getitem, indexed
from funcgrad.numpy.meanings import MEANINGS
from funcgrad.numpy.ordering import nonzero, searchsorted, sort
from funcgrad.numpy.promotion import (
    as_value,
    checked_dtype,
    normalize_axes,
    normalize_axis,
    promote,
    promote_inexact,
    promote_to_compare,
    promote_to_double,
    strong,
    to_dtype,
)
from funcgrad.numpy.reducing import all as all_true
from funcgrad.numpy.reducing import average, cumsum, mean, refuse_out, sum
from funcgrad.numpy.shaping import (
    atleast_1d,
    broadcast_arrays,
    broadcast_to,
    concatenate,
    constant_pad,
    expand_dims,
    flip,
    linspace,
    moveaxis,
    ravel,
    reshape,
    stack,
    tile,
    zeros,
)
from funcgrad.observers.messages import message
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.bits import Bitcast
from funcgrad.primitives.convolution import Convolution
from funcgrad.primitives.cumulative import Cumsum
from funcgrad.primitives.indexing import as_index, index_within
from funcgrad.primitives.indexing import take_along_axis as gather_along_axis
from funcgrad.primitives.ordering import ArgSort
from funcgrad.primitives.quotients import quotient
from funcgrad.primitives.shape import shape_of
from funcgrad.primitives.special import i0 as bessel_i0

__all__ = [
    "around", "bartlett", "blackman", "block", "choose", "clip", "compress", "convolve", "corrcoef",
    "correlate", "cov", "delete", "diag_indices", "diff", "ediff1d", "extract", "fix", "geomspace",
    "gradient", "hamming", "hanning", "i0", "indices", "insert", "interp", "isin", "isneginf",
    "isposinf", "ix_", "kaiser", "ldexp", "logspace", "mgrid", "nan_to_num", "ogrid", "piecewise",
    "polyval", "ravel_multi_index", "repeat", "resize", "round", "select", "sinc", "take",
    "take_along_axis", "trapezoid", "tril_indices", "tril_indices_from", "triu_indices",
    "triu_indices_from", "unravel_index", "unwrap", "vander", "where",
]  # fmt: skip

# Functions of numbers that are known before tracing are NumPy's own.
diag_indices, indices, ix_ = np.diag_indices, np.indices, np.ix_
mgrid, ogrid = np.mgrid, np.ogrid


def unravel_index(indices: Any, shape: Any, order: Any = "C") -> tuple[Any, ...]:
    """Index of each axis from indices of the flattened array.

    As `numpy.unravel_index`; ``indices`` may be traced.

    Args:
        indices: Places in an array of the shape, counted along a line.
        shape: Lengths of the axes.
        order: ``"C"`` or ``"F"``: the axis that counts fastest is the last or the first.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> print(fg.jit(lambda x: np.unravel_index(np.argmax(x), x.shape))(np.eye(2)[::-1]))
        (np.int64(0), np.int64(1))
    """
    place = as_value(indices, "unravel_index")
    if not isinstance(place, Tracer):
        return np.unravel_index(place, shape, order)
    if place.dtype.kind not in "iu":
        raise TypeError(f"unravel_index: places are integers, got {place.aval}.")
    lengths = [int(n) for n in np.atleast_1d(shape)]
    size = int(np.prod(lengths, dtype=np.int64))
    message = f"unravel_index: {{}} is out of bounds for an array of size {size}."
    place = clip(demanded_places(place, 0, size - 1, message), 0, size - 1)
    found = []
    for n in reversed(lengths) if order == "C" else lengths:
        found.append(e.remainder(place, n))
        place = e.floor_divide(place, n)
    return tuple(found[::-1] if order == "C" else found)


def ravel_multi_index(
    multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C", *, dtype: Any = None
) -> Any:
    """Indices of the flattened array from an index of each axis, as `numpy.ravel_multi_index`.

    Args:
        multi_index: One array of integers per axis.
        dims: Lengths of the axes.
        mode: What becomes of indices that are none: ``"raise"``, ``"clip"`` or ``"wrap"``, one for
            all axes or one for each.
        order: ``"C"`` or ``"F"``: the axis that counts fastest is the last or the first.
        dtype: Dtype of the result, by default int64.

    Example:
        >>> import funcgrad as fg
        >>> print(fg.numpy.ravel_multi_index(([0, 1], [2, 1]), (2, 3)))
        [2 4]
    """
    wanted = np.dtype(np.int64) if dtype is None else checked_dtype(dtype, "ravel_multi_index")
    indices = [as_value(i, "ravel_multi_index") for i in multi_index]
    lengths = [int(n) for n in np.atleast_1d(dims)]
    modes = [mode] * len(lengths) if isinstance(mode, str) else list(mode)
    for kind in modes:
        if kind not in ("raise", "clip", "wrap"):
            raise ValueError(f"mode must be 'raise', 'clip' or 'wrap', got {kind!r}.")
    rows = zip(indices, lengths, modes, strict=True)
    places = [index_within(*row) for row in rows]
    if not any(isinstance(i, Tracer) for i in indices):
        return np.ravel_multi_index(tuple(places), tuple(lengths), order=order).astype(wanted)
    number: Any = np.int64(0)
    axes = range(len(lengths))
    for axis in axes if order == "C" else reversed(axes):
        place, n = places[axis], lengths[axis]
        if modes[axis] == "raise":
            message = f"ravel_multi_index: {{}} is no index of axis {axis}, which has length {n}."
            place = demanded_places(place, 0, n - 1, message)
        number = e.add(e.multiply(number, n), place)
    return to_dtype(number, wanted)


bartlett, blackman, hamming, hanning, kaiser = (
    np.bartlett, np.blackman, np.hamming, np.hanning, np.kaiser,
)  # fmt: skip
tril_indices, triu_indices = np.tril_indices, np.triu_indices


def part(x: Any, axis: int, start: int | None, stop: int | None, step: int | None = None) -> Any:
    """``x[start:stop:step]`` along one axis, non-negative."""
    return getitem(x, (*(slice(None),) * axis, slice(start, stop, step)))


_INT64 = np.iinfo(np.int64)


# Choice by conditions.


def where(
    condition: Any,
    x: Any = None,
    y: Any = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Elements of one array where a condition holds, and of another one elsewhere.

    As `numpy.where`: elements of ``x`` where the condition holds, of ``y`` elsewhere.

    The side that is not chosen is computed, and contributes nothing to derivatives, however
    singular it is: no argument needs to be replaced beforehand.

    Args:
        condition: Array of truth values.
        x: Array, or None together with ``y`` for `nonzero`.
        y: Array.
        size: For ``where(condition)`` of a traced condition: see `nonzero`.
        fill_value: As in `nonzero`.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> print(fg.numpy.where(np.array([True, False]), 1.0, np.array([2.0, 3.0])))
        [1. 3.]
        >>> float(fg.grad(lambda x: fg.numpy.where(x > 0, np.sqrt(x), 2 * x))(0.0))
        2.0
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    mask = truth_of(condition, "where")
    return p.select.bind(mask, *map(strong, promote(as_value(x, "where"), as_value(y, "where"))))


def truth_of(x: Any, function: str) -> Any:
    """A strong bool value: whether elements differ from zero."""
    return strong(e.truth(as_value(x, function)))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """Elements chosen from several arrays by conditions.

    As `numpy.select`: the choice of the first condition that holds.

    Args:
        condlist: Masks; the first one that is true decides.
        choicelist: Values, one for each condition.
        default: Value where no condition holds.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.select([np.array([True, False]), np.array([True, True])], [1.0, 2.0])
        array([1., 2.])
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError("list of cases must be same length as list of conditions")
    values = promote(*[as_value(c, "select") for c in (*choicelist, default)])
    out = strong(values[-1])
    for condition, choice in zip(reversed(condlist), reversed(values[:-1]), strict=True):
        out = p.select.bind(truth_of(condition, "select"), strong(choice), out)
    return out


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """A function that is defined piece by piece.

    As `numpy.piecewise`, with functions that work on arrays element by element.

    Every function is evaluated on an array of the shape of ``x``, in which elements outside of its
    domain are replaced by one of its domain.

    Args:
        x: Array, number or traced value.
        condlist: Masks; the first one that is true decides.
        funclist: Functions or values, one for each condition.
        *args: Operands: arrays, numbers or traced values. They broadcast.
        **kw: Keywords for the functions.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.piecewise(
        ...     np.array([-1.0, 2.0]), [np.array([True, False])], [lambda x: -x, lambda x: x]
        ... )
        array([1., 2.])
    """
    x = strong(as_value(x, "piecewise"))
    rows = _rows_of_conditions(condlist, shape_of(x), len(funclist))
    conditions = [truth_of(c, "piecewise") for c in rows]
    if len(funclist) == len(conditions) + 1:
        others = conditions[0]
        for c in conditions[1:]:
            others = p.bitwise_or.bind(others, c)
        conditions.append(p.bitwise_not.bind(others))
    if len(funclist) != len(conditions):
        raise ValueError(
            f"piecewise: {len(conditions)} conditions need as many functions, or one more, got "
            f"{len(funclist)}."
        )
    dtype = aval_of(x).dtype
    out = zeros(shape_of(x), dtype)
    for condition, function in zip(conditions, funclist, strict=True):
        value = function(_inside(x, condition), *args, **kw) if callable(function) else function
        out = p.select.bind(condition, to_dtype(as_value(value), dtype), out)
    return out


def _rows_of_conditions(condlist: Any, shape: tuple[int, ...], functions: int) -> list[Any]:
    """The conditions, of which a single one may be given as it is."""
    if isinstance(condlist, list | tuple):
        is_one = functions <= 2 and shape and not shape_of(condlist[0])
        return [condlist] if is_one else list(condlist)
    given = as_value(condlist, "piecewise")
    own = shape_of(given)
    if not own or (shape and (len(own) == 1 or own == shape)):
        return [given]
    return [getitem(given, i) for i in range(own[0])]


def _inside(x: Any, condition: Any) -> Any:
    """``x`` where the condition holds, elsewhere its first element that meets it."""
    flat = ravel(broadcast_to(condition, shape_of(x)))
    if not aval_of(x).size:
        return x
    first = getitem(ravel(x), nonzero(flat, size=1)[0][0])
    return p.select.bind(condition, x, first)


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """Elements chosen from several arrays by index, as `numpy.choose`.

    Args:
        choices: Arrays to choose from.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.choose(
        ...     np.array([0, 1, 0]), [np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])]
        ... )
        array([ 1., 20.,  3.])
    """
    refuse_out(out, "choose")
    values = promote(*[as_value(c, "choose") for c in choices])
    index, *rows = broadcast_arrays(as_value(a, "choose"), *values)
    index = p.convert(index, INT64) if aval_of(index).dtype == BOOL else index
    return getitem_along(stack(rows), reshape(index, (1, *shape_of(index))), 0, mode)[0]


def clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: None = None,
    *,
    min: Any = None,
    max: Any = None,
) -> Any:
    """Elements limited to an interval.

    As `numpy.clip`: elements outside of bounds become the bound they are beyond.

    Python's integers beyond the range of the array's dtype are no bounds.

    Args:
        a: Array, number or traced value.
        a_min: Lower bound.
        a_max: Upper bound.
        out: ``None``; results are new arrays.
        min: Lower bound, by the name of the array API.
        max: Upper bound, by the name of the array API.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.clip(np.array([-1.0, 0.5, 2.0]), 0.0, 1.0)
        array([0. , 0.5, 1. ])
    """
    refuse_out(out, "clip")
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    x = as_value(a, "clip")
    dtype = aval_of(x).dtype
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low = None if type(low) is int and low <= info.min else _within(low, info)
        high = None if type(high) is int and high >= info.max else _within(high, info)
    bounds = [as_value(b, "clip") for b in (low, high) if b is not None]
    x, *bounds = promote(x, *bounds)
    if is_complex(aval_of(x).dtype):
        raise DtypeError(
            f"clip: complex numbers have no order, got {aval_of(x)}. Clip the real and the "
            "imaginary part, or scale by the absolute value."
        )
    if low is not None:
        x = p.maximum.bind(x, bounds[0])
    return x if high is None else p.minimum.bind(x, bounds[-1])


def _within(bound: Any, info: np.iinfo) -> Any:
    """A traced Python integer as the nearest one that the dtype of the array can hold."""
    aval = aval_of(bound) if isinstance(bound, Tracer) else None
    if aval is None or not aval.weak_type or is_inexact(aval.dtype):
        return bound
    least, largest = builtins.max(info.min, _INT64.min), builtins.min(info.max, _INT64.max)
    return e.minimum(e.maximum(bound, least), largest)


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Elements with nan and infinities replaced by numbers, as `numpy.nan_to_num`.

    Args:
        x: Array, number or traced value.
        copy: Whether the result never shares memory with the argument.
        nan: Value for nan.
        posinf: Value for infinity; by default the greatest finite number.
        neginf: Value for minus infinity; by default the least finite number.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.nan_to_num(np.array([1.0, np.nan]))
        array([1., 0.])
    """
    x = strong(as_value(x, "nan_to_num"))
    dtype = aval_of(x).dtype
    if is_complex(dtype):
        real, imag = (nan_to_num(q.bind(x), copy, nan, posinf, neginf) for q in (p.real, p.imag))
        return p.from_parts.bind(real, imag)
    if not is_inexact(dtype):
        return x
    info = np.finfo(dtype)
    largest = info.max if posinf is None else posinf
    least = info.min if neginf is None else neginf
    for special, value in ((np.inf, largest), (-np.inf, least)):
        x = p.select.bind(p.equal.bind(x, dtype.type(special)), to_dtype(value, dtype), x)
    return p.select.bind(p.isnan.bind(x), to_dtype(nan, dtype), x)


def isposinf(x: Any, out: None = None) -> Any:
    """Whether each element is plus infinity, as `numpy.isposinf`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.isposinf(np.array([-np.inf, 1.0, np.inf]))
        array([False, False,  True])
    """
    refuse_out(out, "isposinf")
    return _is_infinite(x, np.inf, "isposinf")


def isneginf(x: Any, out: None = None) -> Any:
    """Whether each element is minus infinity, as `numpy.isneginf`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.isneginf(np.array([-np.inf, 1.0, np.inf]))
        array([ True, False, False])
    """
    refuse_out(out, "isneginf")
    return _is_infinite(x, -np.inf, "isneginf")


def _is_infinite(x: Any, end: float, function: str) -> Any:
    x = as_value(x, function)
    if is_complex(aval_of(x).dtype):
        raise TypeError(f"{function}: complex infinities have no sign, got {aval_of(x)}.")
    return e.equal(x, end)


def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
    method: str = "auto",
) -> Any:
    """Whether each element is among given values.

    As `numpy.isin`, by binary search in the sorted test elements.

    ``assume_unique``, ``kind`` and ``method`` are of no effect, as results do not depend on them.

    Args:
        element: Object, or values that are looked up.
        test_elements: Values to compare the elements with.
        assume_unique: Without effect: values need not be distinct.
        invert: Whether to say which elements are not found.
        kind: Without effect: sorting is always stable.
        method: Accepted; one way is used, which gives the same.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.isin(np.array([1, 2, 3]), [2, 5])
        array([False,  True, False])
    """
    x, tests = promote_to_compare(as_value(element, "isin"), as_value(test_elements, "isin"))
    if not aval_of(tests).size:
        found = zeros(shape_of(x), BOOL)
    elif is_complex(aval_of(x).dtype):
        column = reshape(x, (*shape_of(x), 1))
        same = p.equal.bind(column, ravel(tests))
        found = e.greater(sum(same, -1), 0)
    else:
        ordered = sort(tests, None)
        place = e.minimum(searchsorted(ordered, x), shape_of(ordered)[0] - 1)
        found = p.equal.bind(getitem(ordered, place), x)
    return p.bitwise_not.bind(found) if invert else found


# Rounding and elementary functions that NumPy composes.


def round(a: Any, decimals: int = 0, out: None = None) -> Any:
    """Elements rounded to a number of decimals.

    As `numpy.round`: halves go to the even neighbour; the derivative is 0.

    Where there are more ``decimals`` than the dtype has digits, ``x`` is its own rounding (NumPy's
    intermediate product overflows to nan).

    Args:
        a: Array, number or traced value.
        decimals: Number of decimals to round to; negative ones count before the point.
        out: ``None``; results are new arrays.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.round(np.array([-1.5, 0.5, 2.5]))
        array([-2.,  0.,  2.])
    """
    refuse_out(out, "round")
    x = strong(as_value(a, "round"))
    dtype = aval_of(x).dtype
    if dtype == BOOL:
        if decimals:
            raise TypeError("round: bools have no decimals. Convert them with .astype(float).")
        return p.convert(x, FLOAT64)  # where NumPy has float16
    if not is_inexact(dtype):
        return x if decimals >= 0 else p.convert(round(p.convert(x, FLOAT64), decimals), dtype)
    if decimals == 0:
        return p.rint.bind(x)
    places = decimals.__index__()
    if builtins.abs(places) > np.finfo(dtype).maxexp * np.log10(2):
        # The factor overflows: there are no such digits, or no number is that large.
        return x if places > 0 else e.multiply(x, 0)
    factor = dtype.type(10.0 ** builtins.abs(places))
    forth, back = (p.mul, p.div) if decimals > 0 else (p.div, p.mul)
    return back.bind(p.rint.bind(forth.bind(x, factor)), factor)


around = round


def fix(x: Any, out: None = None) -> Any:
    """Nearest integer towards zero.

    As `numpy.fix`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.fix(np.array([-1.5, 0.5, 2.5]))
        array([-1.,  0.,  2.])
    """
    refuse_out(out, "fix")
    return e.trunc(x)


def ldexp(x1: Any, x2: Any) -> Any:
    """x1 times 2 to the power x2.

    As `numpy.ldexp`: ``x1 * 2**x2``, rounded once.

    The power may lie outside of the numbers of the dtype, so it is multiplied in three steps. All
    of them but one are by 1 where it does not, and a step that may leave the normal numbers is
    followed by none that rounds again.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.ldexp(0.75, 3)
        np.float64(6.0)
    """
    (x,) = promote_inexact(as_value(x1, "ldexp"))
    dtype = aval_of(x).dtype
    n = as_value(x2, "ldexp")
    if is_complex(dtype) or not np.can_cast(aval_of(n).dtype, INT64):
        raise DtypeError(
            f"ldexp multiplies a real number by a power of 2 whose exponent is an integer that "
            f"int64 can hold, got {aval_of(x)} and {aval_of(n)}."
        )
    n, info = to_dtype(n, INT64), np.finfo(dtype)
    highest, lowest = np.int64(info.maxexp - 1), np.int64(info.minexp)
    for _ in range(2):
        down = p.select.bind(p.less.bind(n, lowest), lowest + np.int64(info.nmant + 1), n)
        step = p.select.bind(p.greater.bind(n, highest), highest, down)
        x = p.mul.bind(x, _power_of_two(step, dtype))
        n = p.sub.bind(n, step)
    rest = p.maximum.bind(p.minimum.bind(n, highest), lowest)
    return p.mul.bind(x, _power_of_two(rest, dtype))


def _power_of_two(n: Any, dtype: np.dtype[Any]) -> Any:
    """``2**n`` as a normal number, from its bits: `exp2` is not exact."""
    info = np.finfo(dtype)
    word = np.dtype(f"i{dtype.itemsize}")
    field = p.convert(p.add.bind(n, np.int64(info.maxexp - 1)), word)
    return Bitcast(dtype).bind(p.left_shift.bind(field, word.type(info.nmant)))


def _widened(x: Any, name: str) -> Any:
    """A floating value, of integers float64: these functions are no ufuncs in NumPy."""
    (x,) = promote_inexact(as_value(x, name), 0.0)[:1]
    return x


def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x), 1 at 0.

    As `numpy.sinc`: ``sin(pi x) / (pi x)``, with derivatives of every order at 0.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.sinc(np.array([0.0, 0.5]))
        array([1.        , 0.63661977])
    """
    x = _widened(x, "sinc")
    return quotient("sin").bind(p.mul.bind(x, aval_of(x).dtype.type(np.pi)))


def polyval(p: Any, x: Any, *, unroll: int = 16) -> Any:
    """Values of a polynomial.

    As `numpy.polyval`, by Horner's rule; ``unroll`` is of no effect.

    Args:
        unroll: Accepted for JAX's signature; without effect.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.polyval([1.0, 0.0, -1.0], 3.0)
        np.float64(8.0)
    """
    coefficients, x = as_value(p, "polyval"), as_value(x, "polyval")
    n = shape_of(coefficients)[0]
    if not n:
        return np.zeros(shape_of(x), aval_of(x).dtype)
    coefficients, x = map(strong, promote(coefficients, x))
    zero = aval_of(x).dtype.type(0)
    out = e.multiply(x, zero)
    for i in range(n):
        out = e.add(e.multiply(out, x), getitem(coefficients, i))
    return out


def i0(x: Any) -> Any:
    """Modified Bessel function of the first kind, of order 0.

    As `numpy.i0`.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.i0(0.5)
        np.float64(1.0634833707413234)
    """
    x = _widened(x, "i0")
    return bessel_i0.bind(x)


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Powers of a base, whose exponents are at equal distances.

    As `numpy.logspace`; bounds and bases may be traced.

    Args:
        base: Base of the powers.
        axis: The axis, counted from the end if negative.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.logspace(0.0, 2.0, 3)
        array([  1.,  10., 100.])
    """
    values = [as_value(v, "logspace") for v in (start, stop, base)]
    if shape_of(values[2]):
        rank = builtins.max(len(shape_of(v)) for v in values)
        values = [reshape(v, (*(1,) * (rank - len(shape_of(v))), *shape_of(v))) for v in values]
        values[2] = expand_dims(values[2], axis)
    start, stop, base = values
    out = e.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return out if dtype is None else p.convert(out, checked_dtype(dtype, "logspace"))


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Numbers at equal ratios, with given ends.

    As `numpy.geomspace`: bounds of one sign, or complex ones; they may be traced.

    Args:
        axis: The axis, counted from the end if negative.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.geomspace(1.0, 8.0, 4)
        array([1., 2., 4., 8.])
    """
    bounds = [as_value(v, "geomspace") for v in (start, stop)]
    if builtins.any(not isinstance(v, Tracer) and np.any(np.equal(v, 0)) for v in bounds):
        raise ValueError("Geometric sequence cannot include zero")
    start, stop = broadcast_arrays(*promote_to_double(*bounds))
    # The direction of `start`, of which the result does not depend if it is turned back.
    sign = p.stop_gradient.bind(e.sign(start))
    first, last = e.divide(start, sign), e.divide(stop, sign)
    line = e.exp(linspace(e.log(first), e.log(last), num, endpoint))
    places = np.arange(num).reshape((num, *(1,) * len(shape_of(start))))
    line = where(places == 0, first, line)
    if endpoint and num > 1:
        line = where(places == num - 1, last, line)
    out = moveaxis(e.multiply(sign, line), 0, axis)
    return out if dtype is None else p.convert(out, checked_dtype(dtype, "geomspace"))


# Looking up.


def _resolved(index: Any, n: int, mode: str, function: str) -> tuple[Any, str]:
    """Integer indices, and the mode in which to read with them.

    Indices must lie inside, unless ``mode`` says otherwise. By JAX's rule (`index_rule`) traced
    ones are counted from the end if negative and clamped to the array.
    """
    index = strong(as_value(index, function))
    if aval_of(index).dtype.kind not in "iu":
        raise IndexError(f"{function}: indices must be integers, got {aval_of(index)}.")
    if mode in ("clip", "wrap"):
        return index, mode
    if mode != "raise":
        raise ValueError(f"{function}: mode must be 'raise', 'clip' or 'wrap', got {mode!r}.")
    if not (isinstance(index, Tracer) and INDEX_RULE.clamps):
        return index, "raise"
    index = as_index(index)
    is_negative = p.less.bind(index, np.int64(0))
    return p.select.bind(is_negative, p.add.bind(index, np.int64(n)), index), "clip"


def getitem_along(x: Any, index: Any, axis: int, mode: str = "raise") -> Any:
    """``x`` at ``index`` along ``axis``, element by element in the other axes."""
    index, reading = _resolved(index, shape_of(x)[axis], mode, "take_along_axis")
    return gather_along_axis(x, index, axis, reading)


def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool = True,
) -> Any:
    """Elements at indices along an axis, an index for each place, as `numpy.take_along_axis`.

    Args:
        arr: Array.
        indices: Integers; its other axes broadcast with those of ``arr``.
        axis: The axis, or None for one line.
        mode: What becomes of places that are none: ``"clip"``, ``"wrap"``, ``"fill"``. By default
            they raise.
        fill_value: What ``"fill"`` reads there; by default nan, or an extreme integer.
        wrap_negative_indices: Whether negative places count from the end. Otherwise they are none.

    Raises:
        OutOfBoundsError: If a place is none, without ``mode``.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.take_along_axis(
        ...     np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1], [0]]), axis=1
        ... )
        array([[2.],
               [3.]])
    """
    x, index = strong(as_value(arr, "take_along_axis")), as_value(indices, "take_along_axis")
    if axis is None:
        if len(shape_of(index)) != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        x, axis = ravel(x), 0
    if len(shape_of(index)) != len(shape_of(x)):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    axis = normalize_axis(axis, len(shape_of(x)), "take_along_axis")
    if not wrap_negative_indices:
        # Indices that count from the end are replaced by one that is out of bounds.
        index = where(e.less(index, 0), shape_of(x)[axis], as_index(index))
    mode = mode or ("raise" if fill_value is None else "fill")
    if mode in ("raise", "clip", "wrap"):
        return getitem_along(x, index, axis, mode)
    if mode == "promise_in_bounds":
        return getitem_along(x, index, axis)
    if mode != "fill":
        raise ValueError(
            f"take_along_axis: mode must be 'raise', 'clip', 'wrap' or 'fill', got {mode!r}."
        )
    return gather_along_axis(x, strong(index), axis, "fill", fill_value)


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = "raise",
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """Elements at indices along an axis.

    As `numpy.take`. Traced indices out of bounds raise, too, as in ``x[index]``.

    ``mode="fill"`` reads ``fill_value`` there, by default nan or an extreme integer;
    ``unique_indices`` and ``indices_are_sorted`` are promises that are not needed.

    Args:
        indices: Indices along the axis.
        axis: The axis, counted from the end if negative. By default the array is flattened.
        unique_indices: Accepted for JAX's signature; without effect.
        indices_are_sorted: Accepted for JAX's signature; without effect.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.take(np.array([1.0, 4.0, 9.0]), np.array([2, 0]))
        array([9., 1.])
    """
    refuse_out(out, "take")
    x = strong(as_value(a, "take"))
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis(axis, len(shape_of(x)), "take")
    index = strong(as_value(indices, "take"))
    place = (*(slice(None),) * axis, index)
    if mode in ("clip", "wrap"):
        return at(x)[place].get(mode=mode, wrap_negative_indices=False)
    if mode == "fill" or (mode is None and fill_value is not None):
        return at(x)[place].get(mode="fill", fill_value=fill_value)
    if mode not in ("raise", "promise_in_bounds", None):
        raise ValueError(f"take: mode must be 'raise', 'clip', 'wrap' or 'fill', got {mode!r}.")
    return indexed(x, place)


def compress(
    condition: Any,
    a: Any,
    axis: int | None = None,
    out: None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """Slices along an axis where a condition holds.

    As `numpy.compress`; a condition that is traced needs ``size``.

    Args:
        condition: Truth values of places along the axis; those that it does not reach are left.
        a: Array.
        axis: The axis; by default ``a`` is one line.
        out: Only None.
        size: How many places to return, of any condition.
        fill_value: What places hold that are missing.

    Example:
        >>> import funcgrad as fg
        >>> import funcgrad.numpy as fnp
        >>> x = fnp.arange(4.0)
        >>> print(fg.jit(lambda x: fnp.compress(x > 1, x, size=3, fill_value=-1))(x))
        [ 2.  3. -1.]
    """
    refuse_out(out, "compress")
    x = strong(as_value(a, "compress"))
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis(axis, len(shape_of(x)), "compress")
    mask = truth_of(condition, "compress")
    if size is not None:
        n = shape_of(x)[axis]
        (places,) = nonzero(ravel(mask), size=size, fill_value=n)
        rest = (1,) * (len(shape_of(x)) - axis - 1)
        places = reshape(places, (*(1,) * axis, size, *rest))
        return take_along_axis(x, places, axis, mode="fill", fill_value=fill_value)
    if isinstance(mask, Tracer):
        return getitem(x, (*(slice(None),) * axis, mask))
    return getitem(x, (*(slice(None),) * axis, np.flatnonzero(mask)))


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """Elements where a condition holds.

    As `numpy.extract`; a condition that is traced needs ``size``, see `compress`.

    Args:
        condition: Mask of the elements to select.
        arr: Array.
        size: Number of results under ``jit``, where it has to be known: fewer are filled up, more
            are cut off.
        fill_value: Value of the elements, or of the elements that ``size`` adds.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.extract(np.array([True, False, True]), np.array([1.0, 2.0, 3.0]))
        array([1., 3.])
    """
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Any:
    """An array without some of its slices along an axis.

    As `numpy.delete`, at known places or at one traced place.

    With ``assume_unique_indices``, which promises that no place is named twice, at any number of
    traced places.

    Args:
        arr: Array.
        obj: Indices, as an integer, a slice or an array.
        axis: The axis, counted from the end if negative. By default the array is flattened.
        assume_unique_indices: Accepted for JAX's signature; without effect.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.delete(np.arange(4.0), 1)
        array([0., 2., 3.])
    """
    x = strong(as_value(arr, "delete"))
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis(axis, len(shape_of(x)), "delete")
    n = shape_of(x)[axis]
    traced = _traced_places(obj, "delete")
    if traced is None:
        kept = np.delete(np.arange(n), obj)
    elif traced.size == 1 and n:
        kept = np.arange(n - 1)
        place = _counted_from_start(ravel(traced), n, n - 1, "delete")
        kept = where(e.greater_equal(kept, place), kept + 1, kept)
    elif assume_unique_indices and traced.size <= n:
        places = _counted_from_start(ravel(traced), n, n - 1, "delete")
        is_kept = e.logical_not(isin(np.arange(n), places))
        (kept,) = nonzero(is_kept, size=n - traced.size)
    else:
        raise ConcretizationTypeError(
            f"the length of delete's result depends on how many places a traced {traced.aval} "
            "names: delete one at a time, promise with assume_unique_indices=True that they are "
            "all different, or keep the shape with np.where."
        )
    return getitem(x, (*(slice(None),) * axis, kept))


def _traced_places(obj: Any, function: str) -> Any:
    """Places in an array that are traced integers, ``None`` for known ones."""
    if isinstance(obj, slice):
        return None
    places = as_value(obj, function)
    if not isinstance(places, Tracer):
        return None
    if places.dtype.kind not in "iu":
        raise ConcretizationTypeError(
            f"{function} needs integers as places if they are traced, got a traced {places.aval}. "
            "A mask would decide the length of the result; keep the shape with np.where."
        )
    return as_index(places)


def _counted_from_start(places: Any, n: int, last: int, function: str) -> Any:
    """Traced places between 0 and ``last``, negative ones counted from the end of ``n``."""
    message = f"{function}: place {{}} is out of bounds for an axis of length {n}."
    places = demanded_places(places, -n, last, message, OutOfBoundsError)
    return clip(where(places < 0, places + n, places), 0, last)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """An array with values inserted along an axis.

    As `numpy.insert`; places may be traced.

    Args:
        arr: Array.
        obj: Indices, as an integer, a slice or an array.
        values: Values to insert, append or put, with a matching shape.
        axis: The axis, counted from the end if negative. By default the array is flattened.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> print(fg.numpy.insert(np.array([1.0, 2.0]), 1, 5.0))
        [1. 5. 2.]
    """
    x = strong(as_value(arr, "insert"))
    if axis is None:
        x, axis = ravel(x), 0
    shape = shape_of(x)
    axis = normalize_axis(axis, len(shape), "insert")
    added = to_dtype(as_value(values, "insert"), aval_of(x).dtype)
    added = reshape(added, (1,) * (len(shape) - len(shape_of(added))) + shape_of(added))
    n = shape[axis]
    traced = _traced_places(obj, "insert")
    places = traced if traced is not None else obj
    if not isinstance(places, slice) and not np.ndim(places):
        added = moveaxis(added, 0, axis)
    places = np.arange(n)[places] if isinstance(places, slice) else atleast_1d(places)
    count = shape_of(added)[axis] if len(places) == 1 else len(places)
    if traced is None:
        order = np.insert(np.arange(n), obj, n + np.arange(count))
    else:
        # New elements stand before old ones of their place, and in their own order.
        new = broadcast_to(_counted_from_start(places, n, n, "insert"), (count,))
        ranks = ArgSort(0, True).bind(concatenate([new, np.arange(n)]))
        order = (ranks + n) % (n + count)
    added = broadcast_to(added, (*shape[:axis], count, *shape[axis + 1 :]))
    return getitem(concatenate([x, added], axis), (*(slice(None),) * axis, order))


def repeat(
    a: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Any:
    """Elements repeated along an axis, as `numpy.repeat`.

    Args:
        a: Array.
        repeats: How often to take every element, one number for all or one for each. They must be
            known, unless ``total_repeat_length`` is given.
        axis: The axis to repeat along; ``None`` for the flattened array.
        total_repeat_length: Length of the result along ``axis``: cut there, or filled up with the
            last element.
        out_sharding: The CPU, if anything.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.repeat(np.array([1.0, 2.0]), 2)
        array([1., 1., 2., 2.])
    """
    check_placement("repeat", out_sharding=out_sharding)
    x = strong(as_value(a, "repeat"))
    if axis is None or not shape_of(x):
        x, axis = ravel(x), axis or 0
    axis = normalize_axis(axis, len(shape_of(x)), "repeat")
    shape = shape_of(x)
    if total_repeat_length is not None:
        index = _repeated_places(repeats, shape[axis], total_repeat_length)
        return getitem(x, (*(slice(None),) * axis, index))
    if isinstance(repeats, Tracer):
        raise ConcretizationTypeError(
            message(
                repeats,
                "the length of the result of repeat depends on values, but `repeats` is",
                "Fix the length: funcgrad.numpy.repeat(x, repeats, total_repeat_length=n); NumPy's "
                "function does not take it.",
            )
        )
    counts = np.asarray(repeats)
    if counts.size != 1:
        index = np.repeat(np.arange(shape[axis]), counts)
        return getitem(x, (*(slice(None),) * axis, index))
    times = int(counts.reshape(()))
    if times < 0:
        raise ValueError("repeats may not contain negative values.")
    before, after = shape[: axis + 1], shape[axis + 1 :]
    wide = s.broadcast_to(reshape(x, (*before, 1, *after)), (*before, times, *after))
    return reshape(wide, (*shape[:axis], shape[axis] * times, *after))


def _repeated_places(repeats: Any, n: int, total: int) -> Any:
    """Index of the element, of ``n``, that stands at each of ``total`` places."""
    ends = cumsum(broadcast_to(as_value(repeats, "repeat"), (n,)))
    return e.minimum(searchsorted(ends, np.arange(total), "right"), n - 1)


def resize(a: Any, new_shape: Any) -> Any:
    """Elements repeated to fill a shape.

    As `numpy.resize`: repeated copies under another shape.

    Args:
        new_shape: Shape of the result; elements are repeated or left out.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.resize(np.array([1.0, 2.0]), (3,))
        array([1., 2., 1.])
    """
    x = ravel(strong(as_value(a, "resize")))
    shape = (new_shape,) if isinstance(new_shape, int | np.integer) else tuple(new_shape)
    size, own = int(np.prod(shape, dtype=np.int64)), aval_of(x).size
    if not size or not own:
        return zeros(shape, aval_of(x).dtype)
    return reshape(part(tile(x, -(-size // own)), 0, 0, size), shape)


def block(arrays: Any) -> Any:
    """An array joined from nested lists of blocks, as `numpy.block`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.block([[np.eye(2), np.zeros((2, 1))]])
        array([[1., 0., 0.],
               [0., 1., 0.]])
    """

    def depth(rows: Any) -> int:
        return 1 + depth(rows[0]) if isinstance(rows, list) else 0

    def ndim(rows: Any) -> int:
        if isinstance(rows, list):
            return builtins.max(map(ndim, rows))
        return len(shape_of(as_value(rows, "block")))

    levels = depth(arrays)
    rank = builtins.max(levels, ndim(arrays))

    def joined(rows: Any, level: int) -> Any:
        if not isinstance(rows, list):
            x = strong(as_value(rows, "block"))
            return reshape(x, (*(1,) * (rank - len(shape_of(x))), *shape_of(x)))
        return concatenate([joined(r, level - 1) for r in rows], rank - level)

    return joined(arrays, levels)


# Diagonals.


def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """Indices of the lower triangle of a matrix, as `numpy.tril_indices_from`.

    Args:
        arr: Array.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.tril_indices_from(np.ones((2, 2)))
        (array([0, 1, 1]), array([0, 0, 1]))
    """
    rows, columns = shape_of(as_value(arr))
    return np.tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """Indices of the upper triangle of a matrix, as `numpy.triu_indices_from`.

    Args:
        arr: Array.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.triu_indices_from(np.ones((2, 2)))
        (array([0, 0, 1]), array([0, 1, 1]))
    """
    rows, columns = shape_of(as_value(arr))
    return np.triu_indices(rows, k, columns)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Vandermonde matrix: powers of a vector as columns.

    As `numpy.vander`: powers of ``x`` as columns.

    Args:
        increasing: Whether powers grow from left to right.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.vander(np.array([1.0, 2.0, 3.0]))
        array([[1., 1., 1.],
               [4., 2., 1.],
               [9., 3., 1.]])
    """
    x = strong(as_value(x, "vander"))
    if len(shape_of(x)) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    dtype = np.promote_types(aval_of(x).dtype, np.int64)
    x = p.convert(x, dtype)
    count = shape_of(x)[0] if N is None else N
    if not count:
        return zeros((shape_of(x)[0], 0), dtype)
    columns = [np.ones(shape_of(x), dtype)]
    for _ in range(count - 1):
        columns.append(p.mul.bind(columns[-1], x))
    return stack(columns if increasing else columns[::-1], 1)


# Neighbours.


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbouring elements along an axis, as `numpy.diff`.

    Args:
        a: Array, number or traced value.
        n: How often to take differences.
        axis: The axis, counted from the end if negative.
        prepend: Values to put before the first one.
        append: Values to append after the last one.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.diff(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([[2., 2.]])
    """
    x = strong(as_value(a, "diff"))
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return x
    axis = normalize_axis(axis, len(shape_of(x)), "diff")
    ends = [None if v is None else _as_end(v, x, axis) for v in (prepend, append)]
    if ends[0] is not None or ends[1] is not None:
        x = concatenate([v for v in (ends[0], x, ends[1]) if v is not None], axis)
    for _ in range(n):
        later, earlier = part(x, axis, 1, None), part(x, axis, None, -1)
        x = (p.not_equal if aval_of(x).dtype == BOOL else p.sub).bind(later, earlier)
    return x


def _as_end(v: Any, x: Any, axis: int) -> Any:
    v = as_value(v, "diff")
    if shape_of(v):
        return v
    return broadcast_to(v, tuple(1 if i == axis else n for i, n in enumerate(shape_of(x))))


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbouring elements of a flattened array, as `numpy.ediff1d`.

    Args:
        ary: Array that is divided.
        to_end: Values behind the differences.
        to_begin: Values in front of the differences.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.ediff1d(np.array([1.0, 2.0, 4.0, 7.0]))
        array([1., 2., 3.])
    """
    x = ravel(strong(as_value(ary, "ediff1d")))
    dtype = aval_of(x).dtype
    parts = [
        to_begin if to_begin is None else to_dtype(ravel(as_value(to_begin)), dtype),
        e.subtract(getitem(x, slice(1, None)), getitem(x, slice(None, -1))),
        to_end if to_end is None else to_dtype(ravel(as_value(to_end)), dtype),
    ]
    return concatenate([q for q in parts if q is not None])


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives of samples by finite differences.

    As `numpy.gradient`: central differences, one-sided at the ends.

    Args:
        f: Samples.
        *varargs: Distances between samples, or their coordinates, for each axis.
        axis: Axis, or tuple of axes, counted from the end if negative; all by default.
        edge_order: Order of the differences at the ends, 1 or 2.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.gradient(np.array([1.0, 2.0, 4.0, 7.0]))
        array([1. , 1.5, 2.5, 3. ])
    """
    x = _not_integer(strong(as_value(f, "gradient")))
    axes = normalize_axes(axis, len(shape_of(x)), "gradient")
    if isinstance(axis, tuple | list):
        axes = tuple(normalize_axis(i, len(shape_of(x)), "gradient") for i in axis)
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError("invalid number of arguments")
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    spacings = varargs if len(varargs) == len(axes) else (varargs or (1.0,)) * len(axes)
    out = []
    for i, spacing in zip(axes, spacings, strict=True):
        if shape_of(x)[i] < edge_order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least "
                "(edge_order + 1) elements are required."
            )
        out.append(_slopes(x, as_value(spacing, "gradient"), i, edge_order))
    return out[0] if axis is not None and not isinstance(axis, tuple | list) else _alone(out)


def _alone(out: list[Any]) -> Any:
    return out[0] if len(out) == 1 else tuple(out)


def _not_integer(x: Any) -> Any:
    """Integers as float64, since their differences would wrap around."""
    return to_dtype(x, np.dtype(np.float64)) if aval_of(x).dtype.kind in "iu" else x


def _slopes(x: Any, spacing: Any, axis: int, edge_order: int) -> Any:
    """Differences along one axis, by the formulas of NumPy, which decide what infinities give."""
    n = shape_of(x)[axis]
    h = spacing
    if shape_of(h):
        if shape_of(h) != (n,):
            raise ShapeError(
                f"gradient: the distances along an axis of length {n} must be a number or the "
                f"coordinates, an array of shape ({n},), got {aval_of(h)}."
            )
        h = diff(_not_integer(h))
        if isinstance(h, np.ndarray) and (h == h[0]).all():
            h = h[0]

    def tap(start: int, stop: int | None) -> Any:
        return part(x, axis, start, stop)

    before, at, after = (tap(i, n - 2 + i) for i in range(3))
    if shape_of(h):
        h = reshape(h, [-1 if i == axis else 1 for i in range(len(shape_of(x)))])
        first, last = part(h, axis, 0, 1), part(h, axis, n - 2, None)
        inner = _through(before, at, after, part(h, axis, 0, n - 2), part(h, axis, 1, None), h)
    else:
        first = last = h
        inner = e.divide(e.subtract(after, before), e.multiply(2.0, h))
    if edge_order == 1:
        ends = [
            e.divide(e.subtract(tap(i + 1, i + 2), tap(i, i + 1)), step)
            for i, step in ((0, first), (n - 2, last))
        ]
    elif shape_of(h):
        second, next_to_last = part(h, axis, 1, 2), part(h, axis, n - 3, n - 2)
        forward = _one_sided(first, second)
        backward = [e.negative(w) for w in _one_sided(last, next_to_last)[::-1]]
        ends = [_weighted(forward, tap, 0), _weighted(backward, tap, n - 3)]
    else:
        forward, backward = ([e.divide(c, h) for c in cs] for cs in (_FORWARD, _BACKWARD))
        ends = [_weighted(forward, tap, 0), _weighted(backward, tap, n - 3)]
    out = concatenate([ends[0], inner, ends[1]], axis)
    dtype = aval_of(x).dtype if is_inexact(aval_of(x).dtype) else FLOAT64
    return out if aval_of(out).dtype == dtype else p.convert(out, dtype)


_FORWARD, _BACKWARD = (-1.5, 2.0, -0.5), (0.5, -2.0, 1.5)


def _through(before: Any, at: Any, after: Any, left: Any, right: Any, steps: Any) -> Any:
    """Slopes in the middle of parabolas through three points at known or traced distances.

    NumPy takes another formula, which does not read the point in the middle, where all distances
    are the same: a traced one then counts for nothing, and still has its derivative.
    """
    both = e.add(left, right)
    first = e.divide(e.negative(right), e.multiply(left, both))
    middle = e.divide(e.subtract(right, left), e.multiply(left, right))
    last = e.divide(left, e.multiply(right, both))
    own = e.multiply(middle, at)
    if not isinstance(steps, np.ndarray):
        weight, point = (strong(v) for v in promote(middle, at))
        unread = p.scale.bind(*(broadcast_to(v, shape_of(own)) for v in (weight, point)))
        own = where(all_true(e.equal(steps, part(ravel(steps), 0, 0, 1))), unread, own)
    return e.add(e.add(e.multiply(first, before), own), e.multiply(last, after))


def _one_sided(near: Any, far: Any) -> list[Any]:
    """The weights of three points in the slope of their parabola at the first of them."""
    both = e.add(near, far)
    return [
        e.divide(e.negative(e.add(e.multiply(2.0, near), far)), e.multiply(near, both)),
        e.divide(both, e.multiply(near, far)),
        e.divide(e.negative(near), e.multiply(far, both)),
    ]


def _weighted(weights: Sequence[Any], tap: Callable[[int, int], Any], start: int) -> Any:
    """A weighted sum of three neighbours."""
    a, b, c = (e.multiply(w, tap(start + i, start + i + 1)) for i, w in enumerate(weights))
    return e.add(e.add(a, b), c)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral along an axis by the trapezoidal rule, as `numpy.trapezoid`.

    Args:
        y: Values; of ``corrcoef`` and ``cov``, further variables.
        x: Array, number or traced value.
        dx: Distance between samples, if ``x`` is not given.
        axis: The axis, counted from the end if negative.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.trapezoid(np.array([1.0, 2.0, 4.0, 7.0]))
        np.float64(10.0)
    """
    y, given = strong(as_value(y, "trapezoid")), axis
    axis = normalize_axis(axis, len(shape_of(y)), "trapezoid")
    if x is None:
        widths = as_value(dx, "trapezoid")
    else:
        widths = diff(x) if len(shape_of(as_value(x))) == 1 else diff(x, axis=given)
        if len(shape_of(widths)) == 1:
            column = [-1 if i == axis else 1 for i in range(len(shape_of(y)))]
            widths = reshape(widths, column)
    pairs = e.add(part(y, axis, 1, None), part(y, axis, None, -1))
    return sum(e.divide(e.multiply(widths, pairs), 2.0), axis)


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    """Angles without jumps of a period.

    As `numpy.unwrap`: jumps of more than half a period are taken out.

    Args:
        p: Coefficients, the highest power first; of ``unwrap``, angles.
        discont: Smallest jump that counts as a turn; by default half of ``period``.
        axis: The axis, counted from the end if negative.
        period: Length of a turn; of ``interp``, of the function.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.unwrap(np.array([0.0, 3.0, 6.5 - 2 * np.pi]))
        array([0.        , 3.        , 0.21681469])
    """
    x = strong(as_value(p, "unwrap"))
    axis = normalize_axis(axis, len(shape_of(x)), "unwrap")
    steps = diff(x, axis=axis)
    if not is_inexact(aval_of(x).dtype) and isinstance(period, float):
        x, steps = e.add(x, 0.0), e.add(steps, 0.0)  # differences of integers are exact before
    exact = not is_inexact(aval_of(x).dtype)
    half = period // 2 if exact else period / 2
    wrapped = e.subtract(e.remainder(e.add(steps, half), period), half)
    if not exact or period % 2 == 0:
        at_edge = e.logical_and(e.equal(wrapped, -half), e.greater(steps, 0))
        wrapped = where(at_edge, half, wrapped)
    correction = e.subtract(wrapped, steps)
    limit = half if discont is None else discont
    correction = where(e.less(e.absolute(steps), limit), 0, correction)
    rest = e.add(part(x, axis, 1, None), Cumsum(axis).bind(correction))
    return concatenate([part(x, axis, 0, 1), rest], axis)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Piecewise linear interpolation.

    As `numpy.interp`; ``xp`` must ascend. All of the arrays may be traced.

    With ``left="extrapolate"`` or ``right="extrapolate"`` the first or the last line goes on.

    Args:
        x: Array, number or traced value.
        xp: Points at which the values are known, increasing.
        fp: Values at the points ``xp``.
        left: Value to the left of the first point, by default the first value.
        right: Whether the right edge belongs to a bin; of ``interp``, the value above the last
            point.
        period: Length of a turn; of ``interp``, of the function.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.interp(np.array([0.5, 2.0]), np.array([0.0, 1.0]), np.array([10.0, 20.0]))
        array([15., 20.])
    """
    for given in (x, xp):
        if is_complex(aval_of(as_value(given, "interp")).dtype):
            raise TypeError(f"interp: places have an order, got {aval_of(as_value(given))}.")
    x, xp = promote_to_double(as_value(x, "interp"), as_value(xp, "interp"))
    (fp,) = promote_to_double(as_value(fp, "interp"))
    if len(shape_of(xp)) != 1 or shape_of(xp) != shape_of(fp):
        raise ShapeError(
            f"interp: xp and fp must be lines of one length, got {aval_of(xp)} and {aval_of(fp)}."
        )
    if not shape_of(xp)[0]:
        raise ShapeError("interp: there are no points, xp is empty.")
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, abs(period))
        left = right = None
    n = shape_of(xp)[0]
    if n == 1:
        inside = broadcast_to(getitem(fp, 0), shape_of(x))
    else:
        after = clip(searchsorted(xp, x, "right"), 1, n - 1)
        before = e.subtract(after, 1)
        x0, x1, f0, f1 = (getitem(v, i) for v in (xp, fp) for i in (before, after))
        width = e.subtract(x1, x0)
        slope = e.divide(e.subtract(f1, f0), where(e.equal(width, 0), 1, width))
        inside = e.add(e.multiply(slope, e.subtract(x, x0)), f0)
        # Infinite values: from the other end, or what both ends have, or what this end has.
        from_end = e.add(e.multiply(slope, e.subtract(x, x1)), f1)
        is_known = e.logical_or(e.equal(x, x0), e.logical_and(e.isnan(from_end), e.equal(f0, f1)))
        inside = where(e.isnan(inside), where(is_known, f0, from_end), inside)
    first, last = (getitem(fp, i) for i in (0, -1))
    out = inside
    if not _goes_on(left, "left"):
        out = where(e.less(x, getitem(xp, 0)), first if left is None else left, out)
    if _goes_on(right, "right"):
        return where(e.equal(x, getitem(xp, -1)), last, out)
    out = where(e.greater_equal(x, getitem(xp, -1)), last, out)
    if right is not None:
        out = where(e.greater(x, getitem(xp, -1)), right, out)
    return where(e.isnan(x), x, out)


def _goes_on(beyond: Any, side: str) -> bool:
    if isinstance(beyond, str) and beyond != "extrapolate":
        raise ArgumentError(f"interp: {side} is a number or 'extrapolate', got {beyond!r}.")
    return isinstance(beyond, str)


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """One period of the support, sorted, with a neighbour on both sides."""
    x, xp = e.remainder(x, period), e.remainder(xp, period)
    order = ArgSort(0).bind(xp)
    xp, fp = getitem(xp, order), getitem(fp, order)
    ends = (slice(-1, None), slice(0, 1))
    xp = concatenate(
        [e.subtract(getitem(xp, ends[0]), period), xp, e.add(getitem(xp, ends[1]), period)]
    )
    return x, xp, concatenate([getitem(fp, ends[0]), fp, getitem(fp, ends[1])])


# Sliding products.


def convolve(
    a: Any,
    v: Any,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Discrete convolution of two vectors, as `numpy.convolve`.

    Args:
        a: Line of numbers.
        v: Another one.
        mode: ``"full"``, ``"same"`` or ``"valid"``.
        precision: Accepted for JAX's signature; products are always of full precision.
        preferred_element_type: Dtype in which products are formed and returned.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.convolve(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        array([ 3., 10.,  8.])
    """
    x, y = _lines("convolve", a, v, preferred_element_type)
    m, n = shape_of(x)[0], shape_of(y)[0]
    if not m or not n:
        raise ValueError(("a" if not m else "v") + " cannot be empty")
    if n > m:
        x, y, m, n = y, x, n, m
    if m * n <= _FEW_PRODUCTS:
        full = _skewed_sum(p.mul.bind(reshape(y, (n, 1)), reshape(x, (1, m))))
    else:
        slides = (("x", Slide(m + n - 1, n, 1, -1)),)
        full = Convolution("x", "x", "x", slides).bind(x, y)
    return _of_mode(full, m, n, mode, (n - 1) // 2)


_FEW_PRODUCTS = 1 << 14
"""Up to this number all products are made at once: kernels can do that, also inside of loops."""


def _skewed_sum(products: Any) -> Any:
    """Sums over the antidiagonals of a matrix: reshaping rows of one more shifts each by one."""
    n, m = shape_of(products)
    wide = constant_pad(products, [(0, 0), (0, n)])
    skewed = part(reshape(wide, (n * (m + n),)), 0, 0, n * (m + n - 1))
    return s.ReduceSum((0,)).bind(reshape(skewed, (n, m + n - 1)))


def _of_mode(full: Any, m: int, n: int, mode: str, start: int) -> Any:
    """The part of a full convolution that a mode names; ``m >= n``."""
    if mode == "full":
        return full
    if mode == "same":
        return part(full, 0, start, start + m)
    if mode == "valid":
        return part(full, 0, n - 1, m)
    raise ValueError(f"mode must be 'full', 'same' or 'valid', got {mode!r}.")


def _lines(name: str, a: Any, v: Any, dtype: Any) -> list[Any]:
    """Two operands of one dtype with at least one axis."""
    values = promote(*[atleast_1d(as_value(q, name)) for q in (a, v)])
    if dtype is None:
        return [strong(x) for x in values]
    return [to_dtype(x, checked_dtype(dtype, name)) for x in values]


def correlate(
    a: Any,
    v: Any,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Cross-correlation of two vectors.

    As `numpy.correlate`, with the options of `convolve`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.correlate(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        array([11.])
    """
    x, y = _lines("correlate", a, v, preferred_element_type)
    m, n = shape_of(x)[0], shape_of(y)[0]
    y = flip(y, 0)
    full = convolve(x, e.conj(y) if is_complex(aval_of(y).dtype) else y, "full")
    if m >= n:
        return _of_mode(full, m, n, mode, (n - 1) // 2)
    return _of_mode(full, n, m, mode, m // 2)


# Covariances.


def _weights_of(fweights: Any, aweights: Any) -> Any:
    given = [as_value(w, "cov") for w in (fweights, aweights) if w is not None]
    if not given:
        return None
    return given[0] if len(given) == 1 else e.multiply(*given)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """Covariance matrix of variables, as `numpy.cov`.

    Args:
        rowvar: Whether rows are variables and columns are observations.
        bias: Whether to divide by the number of observations instead of one less.
        fweights: How often each observation counts, as integers.
        aweights: How much each observation counts, in any unit.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.cov(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 4.0]]))
        array([[1.        , 1.        ],
               [1.        , 2.33333333]])
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"cov: ddof must be an integer, got {ddof}.")
    m = as_value(m, "cov")
    x = _variables(m, not rowvar and len(shape_of(m)) == 2, dtype)
    if not shape_of(x)[0]:
        return np.zeros((0, 0))
    if y is not None:
        y = as_value(y, "cov")
        # As in NumPy, a single row of the second argument is one variable in any case.
        is_table = len(shape_of(y)) == 2 and shape_of(y)[0] != 1
        x = concatenate([x, _variables(y, not rowvar and is_table, dtype)], 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    w = _weights_of(fweights, aweights)
    if w is None:
        center, size = mean(x, 1), shape_of(x)[1] - ddof
        weighted = x = e.subtract(x, reshape(center, (-1, 1)))
    else:
        center, total = average(x, 1, w, True)
        total = getitem(total, 0)
        size = total
        if ddof and aweights is None:
            size = e.subtract(total, ddof)
        elif ddof:
            size = e.subtract(
                total, e.divide(e.multiply(ddof, sum(e.multiply(w, aweights))), total)
            )
        x = e.subtract(x, reshape(center, (-1, 1)))
        weighted = e.multiply(x, w)
    # With as many degrees of freedom as observations, or more, nothing is left.
    out = e.divide(dot(x, e.conj(weighted).T), e.maximum(size, 0))
    n = shape_of(out)[0]
    return reshape(out, ()) if n == 1 else out


def _variables(x: Any, is_transposed: bool, dtype: Any) -> Any:
    """Observations as a floating matrix with a row per variable."""
    if len(shape_of(x)) > 2:
        raise ValueError("m has more than 2 dimensions")
    if len(shape_of(x)) < 2:
        x = reshape(strong(x), (1, aval_of(x).size))
    elif is_transposed:
        x = s.Transpose((1, 0)).bind(x)
    wanted = np.result_type(aval_of(x).dtype, np.float64) if dtype is None else dtype
    return p.convert(strong(x), checked_dtype(wanted, "cov"))


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Correlation coefficients of variables, as `numpy.corrcoef`.

    Args:
        rowvar: Whether rows are variables and columns are observations.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.corrcoef(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 4.0]]))
        array([[1.        , 0.65465367],
               [0.65465367, 1.        ]])
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not shape_of(c):
        return e.divide(c, c)
    deviation = e.sqrt(e.absolute(diagonal(c)))
    out = e.divide(e.divide(c, expand_dims(deviation, 1)), expand_dims(deviation, 0))
    if is_complex(aval_of(out).dtype):
        height = e.multiply(clip(p.imag.bind(out), -1, 1), 1j)
        return e.add(clip(p.real.bind(out), -1, 1), height)
    return clip(out, -1, 1)


explain(globals(), MEANINGS)
