"""Writing at places, in NumPy's words; and joining with indices instead of calls.

`put` and its kin change their argument in NumPy. They do here where it is an ndarray and everything
is known; ``inplace=False`` returns a changed copy instead, which is differentiable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.base.index_rule import INDEX_RULE
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy import creating, joining, shaping
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.indexing import at, getitem
from funcgrad.numpy.ordering import known_values
from funcgrad.numpy.promotion import as_value, holds_tracer, normalize_axis, promote, strong
from funcgrad.numpy.running import cumsum
from funcgrad.numpy.selecting import truth_of, where
from funcgrad.numpy.taking import take
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.indexing import index_within
from funcgrad.primitives.shape import shape_of

__all__ = [
    "c_", "diag_indices_from", "dsplit", "fill_diagonal", "fromfunction", "index_exp",
    "mask_indices", "place", "put", "put_along_axis", "r_", "real_if_close", "s_", "trim_zeros",
]  # fmt: skip

# Functions of numbers that are known before tracing are NumPy's own.
fromfunction, index_exp, s_ = np.fromfunction, np.index_exp, np.s_


def _changed(name: str, inplace: bool, a: Any, *args: Any) -> bool:
    """Whether the caller wants an ndarray changed; an error if that cannot be.

    Raises: ArgumentError: If ``a`` is traced, or what is to be written into it.
    """
    if not inplace:
        return False
    if isinstance(a, np.ndarray) and not any(map(holds_tracer, args)):
        return True
    what = f"a traced {aval_of(a)}" if isinstance(a, Tracer) else "what it is given"
    raise ArgumentError(
        f"{name}(a, ...) writes into its argument, and traced values can neither be written into, "
        f"nor into an ndarray: it would change {what}.\n"
        f"Write a = funcgrad.numpy.{name}(a, ..., inplace=False), which returns a changed copy."
    )


def put(a: Any, ind: Any, v: Any, mode: Any = "raise", *, inplace: bool = True) -> Any:
    """An array with values at indices of the flattened array.

    As `numpy.put`: ``a.flat[ind] = v``, with the values repeated as often as needed.

    Args:
        ind: Places in ``a`` as one line.
        mode: What becomes of places that are none: ``"raise"``, ``"clip"`` or ``"wrap"``.
    Returns: None, or the changed copy.
    Raises: ArgumentError: If a traced value would have to be written in place.
    Example: print(fg.numpy.put(np.zeros(4), [0, 2], [5.0, 7.0], inplace=False)) -> [5. 0. 7. 0.]
    """
    if _changed("put", inplace, a, ind, v):
        return np.put(a, ind, v, mode or "raise")
    x, index = strong(as_value(a, "put")), shaping.ravel(strong(as_value(ind, "put")))
    values, count = shaping.ravel(as_value(v, "put")), shape_of(index)[0]
    if not count or not aval_of(values).size:
        return x
    given = shape_of(values)[0]
    values = take(values, np.arange(count) % given) if given != count else values
    n = aval_of(x).size
    if mode not in ("raise", "clip", "wrap", None):
        raise ValueError(f"put: mode must be 'raise', 'clip' or 'wrap', got {mode!r}.")
    index = index_within(index, n, mode or "raise")
    return shaping.reshape(
        at(shaping.ravel(x))[index].set(values, mode=INDEX_RULE.mode), shape_of(x)
    )


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Any:
    """An array with values where a mask is true.

    As `numpy.place`: writes values, one after the other, where a mask holds.

    Args:
        mask: As many truth values.
        vals: Values, repeated as often as needed.
    Returns: None, or the changed copy.
    Raises: ArgumentError: If a traced value would have to be written in place.
    Example: print(fg.numpy.place(np.arange(4), [True, False, True, True], [7, 8], inplace=False))
        -> [7 1 8 7]
    """
    if _changed("place", inplace, arr, mask, vals):
        return np.place(arr, mask, vals)
    x, values = strong(as_value(arr, "place")), shaping.ravel(as_value(vals, "place"))
    chosen = shaping.ravel(truth_of(mask, "place"))
    if aval_of(chosen).size != aval_of(x).size:
        raise ShapeError(f"place: mask and array differ in size, got {aval_of(x)}.")
    if not aval_of(values).size:
        if isinstance(chosen, Tracer) or np.any(chosen):
            raise ValueError("place: there are no values to write.")
        return x
    if not aval_of(x).size:
        return x
    number = e.subtract(cumsum(chosen, dtype=np.int64), 1)
    index = e.maximum(e.remainder(number, shape_of(values)[0]), 0)
    written = p.convert(strong(take(values, index)), aval_of(x).dtype)
    return where(shaping.reshape(chosen, shape_of(x)), shaping.reshape(written, shape_of(x)), x)


def put_along_axis(
    arr: Any,
    indices: Any,
    values: Any,
    axis: int | None = -1,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Any:
    """An array with values at indices along an axis.

    As `numpy.put_along_axis`: the counterpart of `take_along_axis` for writing.

    Args:
        indices: Integers; its other axes broadcast with those of ``arr``.
        values: What to write, which broadcasts to ``indices``.
        axis: The axis, or None for one line.
        mode: Of a copy: what becomes of places that are none, as in ``x.at[...]``; by default they
            raise.
    Returns: None, or the changed copy.
    Raises: ArgumentError: If a traced value would have to be written in place.
    Example: print(fg.numpy.put_along_axis(np.eye(2), np.array([[1], [1]]), 9.0, 1, inplace=False))
        -> [[1. 9.]
            [0. 9.]]
    """
    if _changed("put_along_axis", inplace, arr, indices, values):
        return np.put_along_axis(arr, indices, values, axis)
    x, index = strong(as_value(arr, "put_along_axis")), as_value(indices, "put_along_axis")
    shape = shape_of(x)
    line = shaping.ravel(x) if axis is None else x
    axis = 0 if axis is None else normalize_axis(axis, len(shape), "put_along_axis")
    own, lengths = shape_of(index), shape_of(line)
    if len(own) != len(lengths):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    full = tuple(m if i == axis else n for i, (m, n) in enumerate(zip(own, lengths, strict=True)))
    numbers: list[Any] = list(np.ogrid[tuple(slice(n) for n in full)])
    numbers[axis] = shaping.broadcast_to(index, full)
    value = shaping.broadcast_to(as_value(values, "put_along_axis"), full)
    mode = INDEX_RULE.mode if mode is None else mode
    return shaping.reshape(at(line)[tuple(numbers)].set(value, mode=mode), shape)


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """An array with another main diagonal.

    As `numpy.fill_diagonal`.

    Args:
        a: Array of at least two axes, equal in length if they are more than two.
        wrap: Whether the diagonal of a tall matrix begins again below.
    Returns: None, or the changed copy.
    Raises: ArgumentError: If a traced value would have to be written in place.
    Example: print(fg.numpy.fill_diagonal(np.zeros((2, 2)), [3, 4], inplace=False))
        -> [[3. 0.]
            [0. 4.]]
    """
    if _changed("fill_diagonal", inplace, a, val):
        return np.fill_diagonal(a, val, wrap)
    x = strong(as_value(a, "fill_diagonal"))
    marked = np.zeros(shape_of(x), bool)
    np.fill_diagonal(marked, True, wrap)
    value = as_value(val, "fill_diagonal")
    if not shape_of(value):
        return at(x)[np.nonzero(marked)].set(value)
    return put(x, np.flatnonzero(marked), value, inplace=False)


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """Indices of the main diagonal of an array.

    As `numpy.diag_indices_from`.

    Args: arr: Array of at least two axes, equal in length.
    Raises: ValueError: If the axes differ.
    Example: fg.numpy.diag_indices_from(np.ones((2, 2))) -> (array([0, 1]), array([0, 1]))
    """
    return np.diag_indices_from(np.empty(shape_of(as_value(arr, "diag_indices_from")), bool))


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: Any = 0, *, size: int | None = None
) -> tuple[Any, ...]:
    """Indices of the elements that a mask of a square matrix selects.

    As `numpy.mask_indices`: where a function such as `triu` leaves elements of a square.

    Args:
        n: Length of both axes.
        mask_func: Called with a matrix and ``k``.
        k: Passed on.
        size: Number of places to return, as in `nonzero`.
    Example: print(*fg.numpy.mask_indices(2, fg.numpy.triu)) -> [0 0 1] [0 1 1]
    """
    return where(e.not_equal(mask_func(np.ones((n, n), int), k), 0), size=size)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Equal parts of an array along the third axis.

    As `numpy.dsplit`: parts along the third axis.

    Raises: ValueError: If there is no third axis, or a number of parts does not divide its length.
    Example: fg.numpy.dsplit(np.arange(4.0).reshape(1, 2, 2), 2)
        -> [array([[[0.],
                   [2.]]]), array([[[1.],
                   [3.]]])]
    """
    x = as_value(ary, "dsplit")
    if len(shape_of(x)) < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return _parts(x, indices_or_sections)


def _parts(x: Any, indices_or_sections: Any) -> list[Any]:
    n = shape_of(x)[2]
    if isinstance(indices_or_sections, int | np.integer) and n % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return joining.array_split(x, indices_or_sections, 2)


def real_if_close(a: Any, tol: float = 100) -> Any:
    """Real part, if all imaginary parts are nearly zero.

    As `numpy.real_if_close`, of known values: the real part, if imaginary ones are tiny.

    Args:
        a: Array. A traced complex one stays complex, as its dtype must not depend on values.
        tol: Bound of imaginary parts, in units of the precision of the dtype if above 1.
    Example: fg.numpy.real_if_close(np.array([1.0 + 0.0j, 2.0])) -> array([1., 2.])
    """
    x = as_value(a, "real_if_close")
    return x if isinstance(x, Tracer) else np.real_if_close(x, tol)


def trim_zeros(filt: Any, trim: Any = "fb", axis: Any = None) -> Any:
    """An array without the zeros at its ends.

    As `numpy.trim_zeros`: without the zeros at its ends.

    Args:
        filt: Array whose values are known, also where it is traced by an eager gradient.
        trim: ``"f"`` for the front, ``"b"`` for the back, or both.
        axis: The axes to shorten; by default all.
    Raises: ConcretizationTypeError: If the values are not known.
    Example: fg.numpy.trim_zeros(np.array([0.0, 2.0, 0.0, 3.0])) -> array([2., 0., 3.])
    """
    x = as_value(filt, "trim_zeros")
    kept = np.nonzero(known_values(x, "trim_zeros"))
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis) % x.ndim
    cuts = [slice(None)] * x.ndim
    for i in axes:
        places = kept[i]
        first = int(places.min()) if places.size else x.shape[i]
        last = int(places.max()) + 1 if places.size else 0
        cuts[i] = slice(
            first if "f" in trim.lower() else 0, last if "b" in trim.lower() else x.shape[i]
        )
    return getitem(x, tuple(cuts))


class _Joining:
    """``r_[...]`` and ``c_[...]``: ranges and arrays, joined.

    Args:
        name: In messages.
        axis: Where to join.
        ndmin: Least number of axes of the parts.
        shift: Where the axes of a part stand among them; -1 for the end.
    """

    def __init__(self, name: str, axis: int, ndmin: int, shift: int) -> None:
        self.name, self.axis, self.ndmin, self.shift = name, axis, ndmin, shift

    def __repr__(self) -> str:
        return f"funcgrad.numpy.{self.name}"

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        axis, ndmin, shift = self.axis, self.ndmin, self.shift
        form = ""
        if parts and isinstance(parts[0], str):
            if parts[0] in ("r", "c"):
                form = parts[0]
            else:
                axis, ndmin, shift = self._directive(parts[0])
            parts = parts[1:]
        if not parts:
            raise ValueError("need at least one array to concatenate")
        arrays = [strong(x) for x in promote(*map(self._part, parts))]
        made = joining.concatenate([self._spread(x, max(ndmin, 1), shift) for x in arrays], axis)
        if not form or len(shape_of(made)) != 1:
            return made
        return shaping.reshape(made, (1, -1) if form == "r" else (-1, 1))

    def _directive(self, text: str) -> tuple[int, int, int]:
        words = text.split(",")
        try:
            numbers = [int(word) for word in words]
        except ValueError:
            raise ArgumentError(
                f"{self!r}: the directive must be up to three integers, as in '0,2,1', or 'r' or "
                f"'c' for an array of one row or column, got {text!r}."
            ) from None
        axis, ndmin, shift = (*numbers, *(self.axis, self.ndmin, self.shift)[len(numbers) :])
        return axis, ndmin, shift

    def _part(self, part: Any) -> Any:
        if not isinstance(part, slice):
            return as_value(part, self.name)
        start = 0 if part.start is None else part.start
        step = 1 if part.step is None else part.step
        if isinstance(step, complex):
            return creating.linspace(start, part.stop, int(abs(step)))
        return creating.arange(start, part.stop, step)

    def _spread(self, x: Any, ndmin: int, shift: int) -> Any:
        """``x`` with axes of length 1, where ``shift`` says."""
        ndim = len(shape_of(x))
        added = ndmin - ndim
        if added <= 0:
            return x
        first = shift if shift >= 0 else shift + added + 1
        axes = [i for i in range(ndmin) if not first <= i < first + ndim]
        return shaping.expand_dims(x, tuple(axes))


r_ = _Joining("r_", 0, 1, -1)
"""Joined pieces, as `numpy.r_`: ``r_[x, 0, 1:4, 0:1:5j]`` of arrays, numbers and ranges."""

c_ = _Joining("c_", -1, 2, 0)
"""Joined columns, as `numpy.c_`: ``c_[x, y]`` takes lines as columns and joins them."""
