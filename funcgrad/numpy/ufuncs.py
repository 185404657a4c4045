"""The methods of ufuncs: `reduce`, `accumulate`, `outer`, `reduceat`; and ufuncs from functions.

NumPy folds from the left. Functions that are associative are folded in pairs here, which takes a
number of steps that is the logarithm of the length; of the others, quotients and differences are
one operation with a fold of the rest, and what remains runs one element after the other in a loop.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.base.pytree import tree_map
from funcgrad.base.records import dataclass
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.numpy import joining, mapping, shaping
from funcgrad.numpy.indexing import IndexUpdateRef, getitem
from funcgrad.numpy.promotion import as_value, checked_dtype, normalize_axis, strong, to_dtype
from funcgrad.numpy.selecting import truth_of
from funcgrad.numpy.selecting import where as choose_where
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.shape import shape_of

__all__ = ["frompyfunc"]

Function = Callable[..., Any]

ASSOCIATIVE = frozenset(
    (
        np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2,
        np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_and, np.logical_or,
        np.logical_xor, np.gcd, np.lcm, np.hypot,
    )
)  # fmt: skip
"""NumPy's ufuncs that may be folded in pairs."""


NOT_GIVEN = np._NoValue
"""The default of ``initial``, for which None is a value: there is nothing to start with."""


def _values(array: Any, dtype: Any, name: str) -> Any:
    """The array in the dtype of the fold."""
    x = strong(as_value(array, name))
    return x if dtype is None else to_dtype(x, checked_dtype(dtype, name))


def _front(array: Any, axis: int, dtype: Any, name: str) -> Any:
    """The array in the dtype of the fold, with the folded axis in front."""
    x = _values(array, dtype, name)
    if not shape_of(x):
        raise TypeError(f"cannot {name} on a scalar")
    return shaping.moveaxis(x, normalize_axis(axis, len(shape_of(x)), name), 0)


def _folded_axes(axis: Any, ndim: int) -> list[int]:
    """The axes that a reduction folds; a scalar has a last axis here, as in NumPy."""
    if not ndim and type(axis) is int and axis in (0, -1):
        return []
    axes = range(ndim) if axis is None else axis if np.iterable(axis) else (axis,)
    return sorted(normalize_axis(i, ndim, "reduce") for i in axes)


def reduce(
    function: Function,
    is_associative: bool,
    identity: Any,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Any:
    """Fold a function of two arguments over axes: ``f(f(f(initial, x[0]), x[1]), x[2])``.

    Args:
        function: Of two arrays of one shape.
        is_associative: Whether it may be folded in pairs.
        identity: What a fold of nothing gives, or None.
        array: Array.
        axis: One, several, or None for all.
        dtype: To fold in.
        keepdims: Whether to keep axes of length 1.
        initial: To start with; None for nothing at all, not even the identity.
        where: Which elements to fold; that needs ``initial`` or an identity.
    Raises: ValueError: If there is nothing to fold, and nothing to start with.
    """
    x = _values(array, dtype, "reduce")
    shape = shape_of(x)
    axes = _folded_axes(axis, len(shape))
    if len(axes) > 1 and not is_associative:
        raise ValueError("reduction operation is not reorderable, so at most one axis may be given")
    start = initial
    if initial is NOT_GIVEN:
        start = None if identity is None else strong(as_value(identity, "reduce"))
    mask = None
    if where is not True and where is not None:
        if start is None:
            raise ValueError("reduction with where= needs initial=, as it has no identity")
        mask = _in_line(shaping.broadcast_to(truth_of(where, "reduce"), shape), axes)
    x = _in_line(x, axes)
    n, rest = shape_of(x)[0], shape_of(x)[1:]
    if not n and start is None:
        raise ValueError("zero-size array to a reduction that has no identity")
    dtype = _dtype_of(function, is_associative, x)
    first = None
    # The identity of a single element counts: the greatest common divisor of -3 and 0 is 3.
    if start is not None and (initial is not NOT_GIVEN or mask is not None or n < 2):
        first = shaping.broadcast_to(to_dtype(as_value(start, "reduce"), dtype), rest)
    if is_associative:
        x = to_dtype(x, dtype)
        if mask is not None and identity is not None:
            x, mask = choose_where(mask, x, to_dtype(strong(identity), dtype)), None
        if first is not None:
            x = joining.concatenate([shaping.expand_dims(first, 0), x])
            mask = None if mask is None else joining.concatenate([np.ones((1, *rest), bool), mask])
        out = _fold_in_pairs(function, x, mask)
    else:
        out = _fold_from_left(function, first, x, mask, dtype)
    return shaping.expand_dims(out, tuple(axes)) if keepdims and axes else out


def _in_line(x: Any, axes: Sequence[int]) -> Any:
    """An array whose first axis runs over all elements along some axes."""
    x = shaping.moveaxis(x, axes, range(len(axes)))
    shape = shape_of(x)
    return shaping.reshape(x, (prod(shape[: len(axes)]), *shape[len(axes) :]))


def _skipping(function: Function) -> Function:
    """The function of pairs of a value and whether it counts; others are passed over."""

    def combined(left: Any, right: Any) -> Any:
        (x, counts_x), (y, counts_y) = left, right
        either = choose_where(counts_x, x, y)
        both = counts_x & counts_y
        return choose_where(both, function(x, y), either), counts_x | counts_y

    return combined


def _at(parts: Any, index: Any) -> Any:
    return tree_map(lambda v: getitem(v, index), parts)


def _fold_in_pairs(function: Function, x: Any, mask: Any = None) -> Any:
    """The fold along the first axis, of the elements where a mask holds."""
    step = function if mask is None else _skipping(function)
    parts = x if mask is None else (x, mask)
    n = shape_of(x)[0]
    while n > 1:
        even = n - n % 2
        pairs = step(_at(parts, slice(0, even, 2)), _at(parts, slice(1, even, 2)))
        last = _at(parts, slice(even, n))
        parts = tree_map(lambda *v: joining.concatenate(v), pairs, last) if n % 2 else pairs
        n = (n + 1) // 2
    out = _at(parts, 0)
    return out if mask is None else out[0]


def _fold_from_left(function: Function, first: Any, x: Any, mask: Any, dtype: np.dtype[Any]) -> Any:
    """The fold along the first axis, one element after the other."""
    if first is None:
        first, x = to_dtype(getitem(x, 0), dtype), getitem(x, slice(1, None))
    if mask is None:
        return lax.scan(lambda carry, y: (function(carry, y), None), first, x)[0]

    def step(carry: Any, element: Any) -> tuple[Any, None]:
        y, counts = element
        return choose_where(counts, function(carry, y), carry), None

    return lax.scan(step, first, (x, mask))[0]


def _dtype_of(function: Function, is_associative: bool, x: Any) -> np.dtype[Any]:
    """The dtype of the results of a fold."""
    dtype = aval_of(x).dtype
    result = aval_of(function(dtype.type(1), dtype.type(1))).dtype
    if result.kind == "b" != dtype.kind and not is_associative:
        raise TypeError(f"a fold would compare {aval_of(x)} with bool, the results of comparisons.")
    return result


def _running(function: Function, x: Any) -> Any:
    """All folds from the left, one after the other."""
    first = to_dtype(getitem(x, 0), _dtype_of(function, False, x))

    def step(carry: Any, element: Any) -> tuple[Any, Any]:
        out = function(carry, element)
        return out, out

    outs = lax.scan(step, first, getitem(x, slice(1, None)))[1]
    return joining.concatenate([shaping.expand_dims(first, 0), outs])


def accumulate(
    function: Function, is_associative: bool, array: Any, axis: int = 0, dtype: Any = None
) -> Any:
    """All folds of a function of two arguments from the start of an axis."""
    x = _front(array, axis, dtype, "accumulate")
    if is_associative or shape_of(x)[0] < 2:
        x = to_dtype(x, _dtype_of(function, is_associative, x))
    if shape_of(x)[0] > 1:
        x = lax.associative_scan(function, x) if is_associative else _running(function, x)
    return shaping.moveaxis(x, 0, normalize_axis(axis, len(shape_of(x)), "accumulate"))


def reduceat(
    function: Function,
    is_associative: bool,
    array: Any,
    indices: Any,
    axis: int = 0,
    dtype: Any = None,
) -> Any:
    """Folds of parts of an axis, from each known index to the next; see `numpy.ufunc.reduceat`."""
    x = _front(array, axis, dtype, "reduceat")
    dtype = _dtype_of(function, is_associative, x)
    x = to_dtype(x, dtype) if is_associative else x
    n = shape_of(x)[0]
    if is_traced(indices):
        out = _folds_from(function, x, as_value(indices, "reduceat"))
        return shaping.moveaxis(out, 0, normalize_axis(axis, len(shape_of(out)), "reduceat"))
    starts = [operator.index(i) for i in indices]
    for i in starts:
        if not 0 <= i < n:
            raise IndexError(f"reduceat: indices must lie in 0 .. {n - 1}, got {i}.")
    parts = []
    for start, stop in zip(starts, [*starts[1:], n], strict=True) if starts else ():
        part = getitem(x, slice(start, max(stop, start + 1)))
        parts.append(
            _fold_in_pairs(function, part)
            if is_associative
            else _fold_from_left(function, None, part, None, dtype)
        )
    out = joining.stack(parts) if parts else to_dtype(getitem(x, slice(0, 0)), dtype)
    return shaping.moveaxis(out, 0, normalize_axis(axis, len(shape_of(out)), "reduceat"))


def _folds_from(function: Function, x: Any, starts: Any) -> Any:
    """The folds of `reduceat` for traced indices, all in one loop over the axis in front."""
    n, count = shape_of(x)[0], shape_of(starts)[0]
    column = (count, *(1,) * (len(shape_of(x)) - 1))
    begin, dtype = shaping.reshape(starts, column), aval_of(starts).dtype
    end = joining.concatenate([getitem(begin, slice(1, None)), np.full((1, *column[1:]), n, dtype)])

    def step(folds: Any, row: Any) -> tuple[Any, None]:
        place, elements = row
        is_within = (place > begin) & (place < end)
        return choose_where(is_within, function(folds, elements), folds), None

    return lax.scan(step, getitem(x, starts), (np.arange(n, dtype=dtype), x))[0]


def outer(function: Function, x: Any, y: Any, **kwargs: Any) -> Any:
    """A function of all pairs of elements."""
    x, y = strong(as_value(x, "outer")), strong(as_value(y, "outer"))
    column = shaping.reshape(x, (*shape_of(x), *(1,) * len(shape_of(y))))
    return function(column, y, **kwargs)


def at(function: Function, a: Any, indices: Any, *b: Any) -> Any:
    """A copy of an array, a function applied to some of its elements, one after the other.

    Args:
        function: Of one or two arguments.
        a: The array.
        indices: Of elements, which may be named more than once.
        *b: The second argument, for every index.
    """
    x = strong(as_value(a, "at"))
    places = getitem(shaping.reshape(np.arange(prod(shape_of(x))), shape_of(x)), indices)
    rows = tuple(
        shaping.reshape(shaping.broadcast_to(as_value(y, "at"), shape_of(places)), (-1,)) for y in b
    )

    def step(x: Any, row: Any) -> tuple[Any, None]:
        place, *others = row
        new = function(getitem(x, place), *others)
        return IndexUpdateRef(x, place).set(new), None

    flat, _ = lax.scan(step, shaping.reshape(x, (-1,)), (shaping.reshape(places, (-1,)), *rows))
    return shaping.reshape(flat, shape_of(x))


@dataclass(frozen=True)
class ElementwiseFunction:
    """A function of scalars, of arrays, with the methods of a ufunc: the result of `frompyfunc`.

    Args:
        function: Of ``nin`` scalars. It must be associative for `reduce` over several axes only.
        nin: Number of arguments.
        nout: Number of results.
        identity: What a fold of nothing gives, or None.
    """

    function: Function
    nin: int
    nout: int
    identity: Any = None

    @property
    def nargs(self) -> int:
        """Number of arguments, with those for results."""
        return self.nin + self.nout

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", "function")

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __call__(self, *args: Any) -> Any:
        """The function of all elements; arguments broadcast."""
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__} takes {self.nin} arguments, got {len(args)}.")
        return mapping.vectorize(self.function)(*args)

    def at(self, a: Any, indices: Any, *b: Any, inplace: bool = True) -> Any:
        """A copy, the function applied to some elements, as `numpy.ufunc.at` changes an array."""
        if inplace:
            raise ArgumentError(f"{self.__name__}.at changes no array: pass inplace=False.")
        return at(self, a, indices, *b)

    def _pairwise(self, method: str) -> None:
        if (self.nin, self.nout) != (2, 1):
            raise ArgumentError(
                f"{self.__name__}.{method} folds a function of two arguments to one result; this "
                f"one has {self.nin} arguments and {self.nout} results."
            )

    def reduce(self, a: Any, axis: Any = 0, dtype: Any = None, **options: Any) -> Any:
        """The fold over axes from the left; ``keepdims``, ``initial``, ``where`` as in NumPy."""
        self._pairwise("reduce")
        return reduce(self, False, self.identity, a, axis, dtype, **options)

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None) -> Any:
        """All folds from the start of an axis."""
        self._pairwise("accumulate")
        return accumulate(self, False, a, axis, dtype)

    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Any:
        """Folds of parts of an axis."""
        self._pairwise("reduceat")
        return reduceat(self, False, a, indices, axis, dtype)

    def outer(self, a: Any, b: Any) -> Any:
        """The function of all pairs of elements."""
        self._pairwise("outer")
        return outer(self, a, b)


def frompyfunc(func: Function, /, nin: int, nout: int, *, identity: Any = None) -> Any:
    """A ufunc made from a function of numbers.

    As `numpy.frompyfunc`: a function of scalars becomes one of arrays, with folds.

    The function is called once, with a traced value that stands for all elements, as under `vmap`.

    Args:
        func: Function of ``nin`` scalars, with ``nout`` results.
        nin: Number of arguments.
        nout: Number of results.
        identity: What a fold of nothing gives.

    Returns:
        A callable with the methods ``reduce``, ``accumulate``, ``reduceat`` and ``outer``. Results
        have the dtypes that ``func`` gives them (NumPy's are objects).
    Raises: ArgumentError: If a function of other than two arguments is folded.

    Example:
        >>> longer = fg.numpy.frompyfunc(lambda x, y: (x**2 + y**2) ** 0.5, 2, 1)
        >>> print(longer([3.0, 5.0], [4.0, 12.0]), float(longer.reduce([1.0, 2.0, 2.0])))
        [ 5. 13.] 3.0
    """
    if nin < 1 or nout < 1:
        raise ArgumentError(f"frompyfunc: nin and nout must be at least 1, got {nin} and {nout}.")
    return ElementwiseFunction(func, nin, nout, identity)
