"""The methods of ufuncs: `reduce`, `accumulate`, `outer`, `reduceat`; and ufuncs from functions.

NumPy folds from the left. Functions that are associative are folded in pairs here, which takes a
number of steps that is the logarithm of the length; of the others, quotients and differences are
one operation with a fold of the rest, and what remains runs one element after the other in a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.numpy import mapping
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.promotion import as_value, checked_dtype, normalize_axis, strong, to_dtype
from funcgrad.numpy.selecting import where as choose_where
from funcgrad.numpy.shaping import concatenate, expand_dims, moveaxis, reshape, stack
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


def _front(array: Any, axis: int, dtype: Any, name: str) -> Any:
    """The array in the dtype of the fold, with the folded axis in front."""
    x = strong(as_value(array, name))
    if dtype is not None:
        x = to_dtype(x, checked_dtype(dtype, name))
    if not shape_of(x):
        raise TypeError(f"cannot {name} on a scalar")
    return moveaxis(x, normalize_axis(axis, len(shape_of(x)), name), 0)


def reduce(
    function: Function,
    is_associative: bool,
    identity: Any,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Fold a function of two arguments over axes.

    Args:
        function: Of two arrays of one shape.
        is_associative: Whether it may be folded in pairs.
        identity: What a fold of nothing gives, or None.
        array: Array.
        axis: One, several, or None for all.
        dtype: To fold in.
        keepdims: Whether to keep axes of length 1.
        initial: To start with.
        where: Which elements to fold; that needs ``initial`` or an identity.

    Raises:
        ValueError: If there is nothing to fold, and no identity.
    """
    x = strong(as_value(array, "reduce"))
    ndim = len(shape_of(x))
    axes = range(ndim) if axis is None else np.atleast_1d(axis).tolist()
    folded = sorted(normalize_axis(i, ndim, "reduce") for i in axes)
    if len(folded) > 1 and not is_associative:
        raise ValueError("reduction operation is not reorderable, so at most one axis may be given")
    start = identity if initial is None else initial
    if where is not True and where is not None:
        if start is None:
            raise ValueError("reduction with where= needs initial=, as it has no identity")
        x = choose_where(where, x, to_dtype(start, aval_of(x).dtype))
    for i in reversed(folded):
        x = _fold(function, is_associative, start, _front(x, i, dtype, "reduce"))
    if initial is not None:
        x = function(to_dtype(initial, aval_of(x).dtype), x)
    return expand_dims(x, tuple(folded)) if keepdims and folded else x


def _fold(function: Function, is_associative: bool, identity: Any, x: Any) -> Any:
    n = shape_of(x)[0]
    if not n:
        if identity is None:
            raise ValueError("zero-size array to a reduction that has no identity")
        return np.full(shape_of(x)[1:], identity, aval_of(x).dtype)
    if not is_associative:
        return _last(_running(function, x))
    x = _as_results(function, x)
    while n > 1:
        half = n // 2
        pairs = function(getitem(x, slice(0, 2 * half, 2)), getitem(x, slice(1, 2 * half, 2)))
        x = concatenate([pairs, getitem(x, slice(2 * half, n))]) if n % 2 else pairs
        n = shape_of(x)[0]
    return getitem(x, 0)


def _as_results(function: Function, x: Any) -> Any:
    """The array in the dtype of the function's results."""
    one = aval_of(x).dtype.type(1)
    return to_dtype(x, aval_of(function(one, one)).dtype)


def _last(x: Any) -> Any:
    return getitem(x, -1)


def _running(function: Function, x: Any) -> Any:
    """All folds from the left, one after the other."""
    first = getitem(x, 0)
    dtype = aval_of(function(first, first)).dtype
    first, rest = to_dtype(first, dtype), getitem(x, slice(1, None))

    def step(carry: Any, element: Any) -> tuple[Any, Any]:
        out = function(carry, element)
        return out, out

    outs = lax.scan(step, first, rest)[1]
    return concatenate([expand_dims(first, 0), outs])


def accumulate(
    function: Function, is_associative: bool, array: Any, axis: int = 0, dtype: Any = None
) -> Any:
    """All folds of a function of two arguments from the start of an axis."""
    x = _front(array, axis, dtype, "accumulate")
    if shape_of(x)[0] > 1:
        if is_associative:
            x = lax.associative_scan(function, _as_results(function, x))
        else:
            x = _running(function, x)
    return moveaxis(x, 0, normalize_axis(axis, len(shape_of(x)), "accumulate"))


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
    starts = np.asarray(indices)
    n = shape_of(x)[0]
    if starts.size and not 0 <= starts.min() <= starts.max() < n:
        raise IndexError(f"reduceat: indices must lie in 0 .. {n - 1}, got {starts.tolist()}.")
    parts = []
    for start, stop in zip(starts, [*starts[1:], n], strict=True):
        part = getitem(x, slice(int(start), max(int(stop), int(start) + 1)))
        parts.append(_fold(function, is_associative, None, part))
    out = stack(parts) if parts else getitem(x, slice(0, 0))
    return moveaxis(out, 0, normalize_axis(axis, len(shape_of(out)), "reduceat"))


def outer(function: Function, x: Any, y: Any, **kwargs: Any) -> Any:
    """A function of all pairs of elements."""
    x, y = as_value(x, "outer"), as_value(y, "outer")
    column = reshape(strong(x), (*shape_of(x), *(1,) * len(shape_of(y))))
    return function(column, y, **kwargs)


class ElementwiseFunction:
    """What `frompyfunc` returns: a function of scalars, of arrays, with the methods of a ufunc.

    Args:
        function: Of ``nin`` scalars. It must be associative for `reduce` over several axes only.
        nin: Number of arguments.
        nout: Number of results.
        identity: What a fold of nothing gives, or None.
    """

    def __init__(self, function: Function, nin: int, nout: int, identity: Any = None) -> None:
        self.nin, self.nout, self.identity = nin, nout, identity
        self.nargs = nin + nout
        self.__name__ = getattr(function, "__name__", "function")
        self._mapped = mapping.vectorize(function)

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __call__(self, *args: Any) -> Any:
        """The function of all elements; arguments broadcast."""
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__} takes {self.nin} arguments, got {len(args)}.")
        return self._mapped(*args)

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
    """As `numpy.frompyfunc`: a function of scalars becomes one of arrays, with folds.

    The function is called once, with a traced value that stands for all elements, as under `vmap`.

    Args:
        func: Function of ``nin`` scalars, with ``nout`` results.
        nin: Number of arguments.
        nout: Number of results.
        identity: What a fold of nothing gives.

    Returns:
        A callable with the methods ``reduce``, ``accumulate``, ``reduceat`` and ``outer``. Results
        have the dtypes that ``func`` gives them (NumPy's are objects).

    Raises:
        ArgumentError: If a function of other than two arguments is folded.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> longer = fnp.frompyfunc(lambda x, y: (x**2 + y**2) ** 0.5, 2, 1)
        >>> print(longer([3.0, 5.0], [4.0, 12.0]), float(longer.reduce([1.0, 2.0, 2.0])))
        [ 5. 13.] 3.0
    """
    if nin < 1 or nout < 1:
        raise ArgumentError(f"frompyfunc: nin and nout must be at least 1, got {nin} and {nout}.")
    return ElementwiseFunction(func, nin, nout, identity)
