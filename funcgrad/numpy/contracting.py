"""Products of arrays: matrix products and all their generalisations.

Everything here chooses letters for axes and binds `Contract`; an `einsum` of more than two operands
is a sequence of such products. ``preferred_element_type`` is the dtype to multiply and add in, and
``precision`` is taken for JAX's signatures: all products are of full precision.

No loop over elements and no matrix library is in this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from funcgrad.base.placement import check_placement
from funcgrad.core.avals import Shape, ShapedArray, aval_of
from funcgrad.dtypes import BOOL, INT64
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.diagonals import diagonal
from funcgrad.numpy.promotion import (
    as_value,
    check_casting,
    checked_dtype,
    normalize_axis,
    promote,
    strong,
)
from funcgrad.numpy.reducing import refuse_out
from funcgrad.numpy.shaping import moveaxis
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.contraction import Contract
from funcgrad.primitives.matrices import conjugated
from funcgrad.primitives.shape import ReduceSum, shape_of

__all__ = [
    "cross", "dot", "einsum", "einsum_path", "inner", "kron", "matmul", "matvec", "outer",
    "tensordot", "vdot", "vecdot", "vecmat",
]  # fmt: skip

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _operands(function: str, *args: Any, dtype: Any = None) -> list[Any]:
    """Values of one strong dtype."""
    values = promote(*[as_value(a, function) for a in args])
    for v in values:
        if aval_of(v).weak_type:
            values = list(map(strong, values))
            break
    if dtype is None:
        return values
    wanted = checked_dtype(dtype, function)
    return [p.convert(v, wanted) for v in values]


def _multiply_sum(x_labels: str, y_labels: str, out: str, x: Any, y: Any) -> Any:
    """A product by letters. Each letter is of one length in all operands, and none repeats.

    Letters of one operand only that are not in the result are summed first; where nothing but
    elementwise products is left, it is a product of broadcast arrays.
    """
    x_alone, y_alone, product = _product_plan(x_labels, y_labels, out)
    x = x_alone.bind(x) if x_alone is not None else x
    y = y_alone.bind(y) if y_alone is not None else y
    if product is None:
        x_labels = "".join(c for c in x_labels if c in out)
        y_labels = "".join(c for c in y_labels if c in out)
        return p.mul.bind(_aligned(x, x_labels, out), _aligned(y, y_labels, out))
    is_bool = aval_of(x).dtype == BOOL
    if is_bool:
        # A sum of bools is true if any is.
        x, y = p.convert(x, INT64), p.convert(y, INT64)
    total = product.bind(x, y)
    return p.not_equal.bind(total, p.zero_of(total)) if is_bool else total


@lru_cache(maxsize=4096)
def _product_plan(
    x_labels: str, y_labels: str, out: str
) -> tuple[ReduceSum | None, ReduceSum | None, Contract | None]:
    """Sums over letters of one operand only, and the product if letters of both are summed."""
    x_alone, x_kept = _lonely(x_labels, y_labels + out)
    y_alone, y_kept = _lonely(y_labels, x_labels + out)
    is_elementwise = all(c in out for c in x_kept + y_kept)
    product = None if is_elementwise else Contract(x_kept, y_kept, out)
    return (
        ReduceSum(x_alone) if x_alone else None,
        ReduceSum(y_alone) if y_alone else None,
        product,
    )


def _lonely(labels: str, others: str) -> tuple[tuple[int, ...], str]:
    """Axes whose letters do not occur among ``others``, and the letters that do."""
    axes = tuple(i for i, c in enumerate(labels) if c not in others)
    return axes, "".join(c for c in labels if c in others)


def _sum_lonely(x: Any, labels: str, others: str) -> tuple[Any, str]:
    axes, kept = _lonely(labels, others)
    return (ReduceSum(axes).bind(x) if axes else x), kept


def _aligned(x: Any, labels: str, out: str) -> Any:
    """``x`` with its axes in the order of ``out``, and axes of length 1 for letters it lacks."""
    order = tuple(labels.index(c) for c in out if c in labels)
    x = x if order == tuple(range(len(order))) else s.Transpose(order).bind(x)
    lengths = iter(shape_of(x))
    return s.reshape(x, tuple(next(lengths) if c in labels else 1 for c in out))


def _permuted(x: Any, labels: str, out: str) -> Any:
    return x if labels == out else s.Transpose(tuple(labels.index(c) for c in out)).bind(x)


def _require_axes(function: str, aval: ShapedArray, count: int) -> None:
    if aval.ndim < count:
        raise ShapeError(
            f"{function}: {aval} needs at least {count} axes; use funcgrad.numpy.multiply "
            "to scale by a number."
        )


def _stack_labels(
    x_stack: Shape, y_stack: Shape, letters: str
) -> tuple[str, str, str, list[int], list[int]]:
    """Letters of broadcasting stack axes, and the axes of each operand of length 1 to drop."""
    ndim = max(len(x_stack), len(y_stack))
    shape = np.broadcast_shapes(x_stack, y_stack)
    out = letters[:ndim]
    labels: list[str] = []
    dropped: list[list[int]] = []
    for stack in (x_stack, y_stack):
        lead = ndim - len(stack)
        drop = [i for i, n in enumerate(stack) if n == 1 and shape[i + lead] != 1]
        dropped.append(drop)
        labels.append("".join(out[i + lead] for i in range(len(stack)) if i not in drop))
    return labels[0], labels[1], out, dropped[0], dropped[1]


@lru_cache(maxsize=4096)
def _stacked_plan(
    function: str, x: ShapedArray, y: ShapedArray, core: str
) -> tuple[Shape, Shape, str, str, str]:
    """Shapes without axes of length 1 that broadcast, and the letters of a stacked product."""
    sides, result = core.split("->")
    x_core, y_core = sides.split(",")
    _require_axes(function, x, len(x_core))
    _require_axes(function, y, len(y_core))
    i, j = x.ndim - len(x_core), y.ndim - len(y_core)
    _check_lengths(function, x, y, x_core, y_core)
    letters = _LETTERS.translate({ord(c): None for c in x_core + y_core})
    try:
        plan = _stack_labels(x.shape[:i], y.shape[:j], letters)
    except ValueError:
        raise ShapeError(f"{function}: the leading axes of {x} and {y} do not broadcast.") from None
    x_stack, y_stack, stack, x_drop, y_drop = plan
    shapes = s.drop_axes(x.shape, x_drop), s.drop_axes(y.shape, y_drop)
    return (*shapes, x_stack + x_core, y_stack + y_core, stack + result)


@lru_cache(maxsize=4096)
def _product_alone(function: str, x: ShapedArray, y: ShapedArray, core: str) -> Contract | None:
    """The operation that a product of the last axes is, if it is one alone."""
    x_shape, y_shape, x_labels, y_labels, out = _stacked_plan(function, x, y, core)
    x_alone, y_alone, product = _product_plan(x_labels, y_labels, out)
    is_whole = x_shape == x.shape and y_shape == y.shape and x.dtype != BOOL
    return product if is_whole and x_alone is y_alone is None else None


def _stacked_product(function: str, x: Any, y: Any, core: str) -> Any:
    """A product of the last axes, by ``core`` such as ``"ij,jk->ik"``, over broadcast stacks.

    Stack axes that only one operand has are free axes of the product: nothing is repeated.
    """
    x_aval, y_aval = aval_of(x), aval_of(y)
    product = _product_alone(function, x_aval, y_aval, core)
    if product is not None:
        return product.bind(x, y)
    plan = _stacked_plan(function, x_aval, y_aval, core)
    x_shape, y_shape, x_labels, y_labels, out = plan
    return _multiply_sum(x_labels, y_labels, out, s.reshape(x, x_shape), s.reshape(y, y_shape))


def _check_lengths(function: str, x: ShapedArray, y: ShapedArray, x_core: str, y_core: str) -> None:
    lengths = dict(zip(reversed(x_core), reversed(x.shape), strict=False))
    for label, n in zip(reversed(y_core), reversed(y.shape), strict=False):
        if lengths.get(label, n) != n:
            raise ShapeError(
                f"{function}: {x} and {y} do not fit: an axis of length "
                f"{lengths[label]} meets one of length {n}."
            )


_MATMUL = {
    (False, False): "j,j->",
    (False, True): "j,jk->k",
    (True, False): "ij,j->i",
    (True, True): "ij,jk->ik",
}
"""The product of the last axes, by whether each operand is a matrix."""


def matmul(
    a: Any,
    b: Any,
    out: None = None,
    *,
    dtype: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Matrix product.

    As `numpy.matmul`: products of matrices, vectors, and broadcasting stacks of matrices.

    Example: fg.numpy.matmul(np.ones((5, 2, 3)), np.ones((3, 4))).shape -> (5, 2, 4)
    """
    refuse_out(out, "matmul")
    check_placement("matmul", out_sharding=out_sharding)
    x, y = _operands("matmul", a, b, dtype=preferred_element_type if dtype is None else dtype)
    core = _MATMUL[len(shape_of(x)) > 1, len(shape_of(y)) > 1]
    return _stacked_product("matmul", x, y, core)


def dot(
    a: Any,
    b: Any,
    out: None = None,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Product of vectors or matrices.

    As `numpy.dot`: the last axis of ``a`` meets the last but one of ``b``.

    Example: fg.numpy.dot([1.0, 2.0], [3.0, 4.0]) -> np.float64(11.0)
    """
    refuse_out(out, "dot")
    check_placement("dot", out_sharding=out_sharding)
    x, y = _operands("dot", a, b, dtype=preferred_element_type)
    i, j = len(shape_of(x)), len(shape_of(y))
    if not i or not j:
        return p.mul.bind(x, y)
    if i <= 2 and j <= 2:
        return _stacked_product("dot", x, y, _MATMUL[i > 1, j > 1])
    x_labels = _LETTERS[:i]
    y_labels = _LETTERS[i : i + j]
    place = max(j - 2, 0)
    y_labels = y_labels[:place] + x_labels[-1] + y_labels[place + 1 :]
    _check_meeting("dot", x, y, i - 1, place)
    result = x_labels[:-1] + y_labels.replace(x_labels[-1], "")
    return _multiply_sum(x_labels, y_labels, result, x, y)


def _check_meeting(function: str, x: Any, y: Any, i: int, j: int) -> None:
    if shape_of(x)[i] != shape_of(y)[j]:
        raise ShapeError(
            f"{function}: axis {i} of {aval_of(x)} and axis {j} of {aval_of(y)} differ in length."
        )


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sum of products of two flattened arrays, the first one conjugated.

    As `numpy.vdot`: the sum of products of all elements, those of ``a`` conjugated.

    Example: fg.numpy.vdot([1.0, 2.0], [3.0, 4.0]) -> np.float64(11.0)
    """
    x, y = _operands("vdot", a, b, dtype=preferred_element_type)
    x, y = (s.reshape(v, (aval_of(v).size,)) for v in (x, y))
    _check_meeting("vdot", x, y, 0, 0)
    return _multiply_sum("a", "a", "", conjugated(x), y)


def vecdot(
    x1: Any,
    x2: Any,
    /,
    out: None = None,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Sums of products of vectors, the first one conjugated.

    As `numpy.vecdot`: products of stacks of vectors, those of ``x1`` conjugated.

    Example: fg.numpy.vecdot(np.array([1.0, 2.0]), np.array([3.0, 4.0])) -> np.float64(11.0)
    """
    refuse_out(out, "vecdot")
    x, y = _operands("vecdot", x1, x2, dtype=preferred_element_type)
    x, y = (_axis_last(v, axis, "vecdot") for v in (x, y))
    return _stacked_product("vecdot", conjugated(x), y, "j,j->")


def _axis_last(x: Any, axis: int, function: str) -> Any:
    ndim = len(shape_of(x))
    index = normalize_axis(axis, ndim, function)
    if index == ndim - 1:
        return x
    return s.Transpose((*(i for i in range(ndim) if i != index), index)).bind(x)


def matvec(x1: Any, x2: Any, /, out: None = None) -> Any:
    """Product of matrices and vectors.

    As `numpy.matvec`: stacks of matrices times stacks of vectors.

    Example: fg.numpy.matvec(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, -1.0]))
        -> array([-1., -1.])
    """
    refuse_out(out, "matvec")
    x, y = _operands("matvec", x1, x2)
    return _stacked_product("matvec", x, y, "ij,j->i")


def vecmat(x1: Any, x2: Any, /, out: None = None) -> Any:
    """Product of vectors and matrices.

    As `numpy.vecmat`: stacks of vectors, conjugated, times stacks of matrices.

    Example: fg.numpy.vecmat(np.array([1.0, -1.0]), np.array([[1.0, 2.0], [3.0, 4.0]]))
        -> array([-2., -2.])
    """
    refuse_out(out, "vecmat")
    x, y = _operands("vecmat", x1, x2)
    return _stacked_product("vecmat", conjugated(x), y, "i,ij->j")


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sum of products along the last axes.

    As `numpy.inner`: the last axes meet.

    Example: fg.numpy.inner([1.0, 2.0], [3.0, 4.0]) -> np.float64(11.0)
    """
    x, y = _operands("inner", a, b, dtype=preferred_element_type)
    i, j = len(shape_of(x)), len(shape_of(y))
    if not i or not j:
        return p.mul.bind(x, y)
    _check_meeting("inner", x, y, i - 1, j - 1)
    x_labels = _LETTERS[:i]
    y_labels = _LETTERS[i : i + j - 1] + x_labels[-1]
    return _multiply_sum(x_labels, y_labels, x_labels[:-1] + y_labels[:-1], x, y)


def outer(a: Any, b: Any, out: None = None) -> Any:
    """Products of all pairs of elements of two vectors.

    As `numpy.outer`: all products of an element of ``a`` and one of ``b``.

    Example: fg.numpy.outer([1.0, 2.0], [3.0, 4.0])
        -> array([[3., 4.],
                  [6., 8.]])
    """
    refuse_out(out, "outer")
    x, y = _operands("outer", a, b)
    return p.mul.bind(s.reshape(x, (aval_of(x).size, 1)), s.reshape(y, (1, aval_of(y).size)))


def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Sum of products over chosen axes.

    As `numpy.tensordot`: pairs of axes meet, or the last of ``a`` and the first of ``b``.

    Args: axes: Axes, as integers.
    Example: fg.numpy.tensordot(np.ones((2, 3)), np.ones((3, 2)), axes=1)
        -> array([[3., 3.],
                  [3., 3.]])
    """
    check_placement("tensordot", out_sharding=out_sharding)
    x, y = _operands("tensordot", a, b, dtype=preferred_element_type)
    i, j = len(shape_of(x)), len(shape_of(y))
    if not np.iterable(axes):
        pairs = [(i - int(axes) + k, k) for k in range(int(axes))]
    else:
        left, right = (np.atleast_1d(side).tolist() for side in axes)
        if len(left) != len(right):
            raise ShapeError(f"tensordot: {len(left)} axes cannot meet {len(right)}.")
        pairs = list(zip(left, right, strict=True))
    x_labels, y_labels = list(_LETTERS[:i]), list(_LETTERS[i : i + j])
    for one, other in pairs:
        k, m = normalize_axis(one, i, "tensordot"), normalize_axis(other, j, "tensordot")
        _check_meeting("tensordot", x, y, k, m)
        y_labels[m] = x_labels[k]
    shared = set(x_labels) & set(y_labels)
    result = "".join(c for c in (*x_labels, *y_labels) if c not in shared)
    return _multiply_sum("".join(x_labels), "".join(y_labels), result, x, y)


def kron(a: Any, b: Any) -> Any:
    """Kronecker product of two arrays, as `numpy.kron`.

    Example: fg.numpy.kron([1.0, 2.0], [3.0, 4.0]) -> array([3., 4., 6., 8.])
    """
    x, y = _operands("kron", a, b)
    ndim = max(len(shape_of(x)), len(shape_of(y)))
    rows, columns = ((1,) * (ndim - len(shape_of(v))) + shape_of(v) for v in (x, y))
    x = s.reshape(x, tuple(k for n in rows for k in (n, 1)))
    y = s.reshape(y, tuple(k for n in columns for k in (1, n)))
    merged = tuple(m * n for m, n in zip(rows, columns, strict=True))
    return s.reshape(p.mul.bind(x, y), merged)


def _components(x: Any) -> list[Any]:
    """The elements along the last axis."""
    *lead, n = shape_of(x)
    parts = []
    for i in range(n):
        starts, limits = (*(0,) * len(lead), i), (*lead, i + 1)
        part = s.Slice(starts, limits, (1,) * (len(lead) + 1)).bind(x)
        parts.append(s.reshape(part, tuple(lead)))
    return parts


def _difference(a: Any, b: Any, c: Any, d: Any) -> Any:
    """``a b - c d``."""
    return p.sub.bind(p.mul.bind(a, b), p.mul.bind(c, d))


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """Cross product of vectors of three, or of two, elements.

    As `numpy.cross`, for vectors of three components or two; a missing third one is 0.

    Args:
        axisa: The axis of the vectors of ``a``.
        axisb: The axis of the vectors of ``b``.
        axisc: The axis of the vectors of the result.
        axis: The axis of all three, in place of ``axisa``, ``axisb`` and ``axisc``.
    Example: fg.numpy.cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
        -> array([0., 0., 1.])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = _operands("cross", a, b)
    x, y = _axis_last(x, axisa, "cross"), _axis_last(y, axisb, "cross")
    lengths = shape_of(x)[-1], shape_of(y)[-1]
    if lengths == (2, 2):
        (x0, x1), (y0, y1) = _components(x), _components(y)
        return _difference(x0, y1, x1, y0)
    if not {2, 3}.issuperset(lengths):
        raise ShapeError(
            f"cross: vectors must have 2 or 3 components, got {aval_of(x)} and {aval_of(y)}."
        )
    x, y = (_with_third(v) for v in (x, y))
    (x0, x1, x2), (y0, y1, y2) = _components(x), _components(y)
    parts = [_difference(x1, y2, x2, y1), _difference(x2, y0, x0, y2), _difference(x0, y1, x1, y0)]
    shape = shape_of(parts[0])
    joined = s.Concatenate(0).bind(*[s.reshape(q, (1, *shape)) for q in parts])
    return s.moveaxis_from_front(joined, normalize_axis(axisc, len(shape) + 1, "cross"))


def _with_third(vectors: Any) -> Any:
    """Vectors of two components in space."""
    *rest, n = shape_of(vectors)
    if n == 3:
        return vectors
    none = (0,) * len(rest)
    zero = aval_of(vectors).dtype.type(0)
    return s.Pad((*none, 0), (*none, 1), (*none, 0)).bind(vectors, zero)


# Sums by labels.


def _interleaved(args: Sequence[Any]) -> tuple[str, list[Any]]:
    """``einsum(x, [0, 1], y, [1, 2], [0, 2])`` as a subscript string and operands."""
    operands = list(args[: len(args) - len(args) % 2][::2])
    lists = list(args[: len(args) - len(args) % 2][1::2])

    def spelled(labels: Sequence[Any]) -> str:
        return "".join("..." if c is Ellipsis else _LETTERS[int(c)] for c in labels)

    subscripts = ",".join(map(spelled, lists))
    return (f"{subscripts}->{spelled(args[-1])}" if len(args) % 2 else subscripts), operands


@lru_cache(maxsize=4096)
def _spell_ellipses(subscripts: str, ndims: tuple[int, ...]) -> tuple[list[str], str]:
    """Letters for every axis of every operand and of the result."""
    subscripts = subscripts.replace(" ", "")
    left, arrow, right = subscripts.partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise ArgumentError(
            f"einsum: {subscripts!r} names {len(terms)} operands, {len(ndims)} were given."
        )
    spare = [c for c in reversed(_LETTERS) if c not in subscripts]
    widths = []
    for term, ndim in zip(terms, ndims, strict=True):
        width = ndim - len(term.replace("...", ""))
        if width < 0 or ("..." not in term and width):
            raise ShapeError(f"einsum: the labels {term!r} do not fit an operand of {ndim} axes.")
        widths.append(width)
    widest = max(widths, default=0)
    dots = "".join(reversed(spare[:widest]))
    spelled = [
        term.replace("...", dots[widest - width :])
        for term, width in zip(terms, widths, strict=True)
    ]
    if arrow:
        result = right.replace("...", dots)
    else:
        named = left.replace("...", "").replace(",", "")
        result = dots + "".join(sorted(c for c in set(named) if named.count(c) == 1))
    return spelled, result


def _label_lengths(terms: Sequence[str], operands: Sequence[Any]) -> dict[str, int]:
    lengths: dict[str, int] = {}
    for term, x in zip(terms, operands, strict=True):
        for label, n in zip(term, shape_of(x), strict=True):
            known = lengths.setdefault(label, n)
            if known == 1:
                lengths[label] = n
            elif n not in (1, known):
                raise ShapeError(
                    f"einsum: label {label!r} stands for axes of lengths {known} and {n}."
                )
    return lengths


def _without_repeats(x: Any, labels: str, lengths: dict[str, int]) -> tuple[Any, str]:
    """Diagonals taken of repeated labels, and axes of length 1 dropped that broadcast."""
    if len(set(labels)) == len(labels) and shape_of(x) == tuple(lengths[c] for c in labels):
        return x, labels
    kept = [i for i, c in enumerate(labels) if shape_of(x)[i] == lengths[c]]
    x = s.reshape(x, tuple(shape_of(x)[i] for i in kept))
    labels = "".join(labels[i] for i in kept)
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            i = labels.index(c)
            j = labels.index(c, i + 1)
            x = moveaxis(diagonal(x, 0, i, j), -1, i)
            labels = labels[:j] + labels[j + 1 :]
    return x, labels


def _path(terms: Sequence[str], out: str, lengths: dict[str, int], optimize: Any) -> list[Any]:
    """Order of pairwise contractions."""
    count = len(terms)
    if count <= 2 or optimize is False:
        return [tuple(range(2))] * (count - 1)
    if isinstance(optimize, list | tuple) and optimize and optimize[0] == "einsum_path":
        return list(optimize[1:])
    shapes = [np.broadcast_to(0.0, tuple(lengths[c] for c in term)) for term in terms]
    method = "optimal" if optimize == "optimal" else "greedy"
    return list(np.einsum_path(f"{','.join(terms)}->{out}", *shapes, optimize=method)[0][1:])


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = True,
    dtype: Any = None,
    casting: str = "safe",
    order: str = "K",
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Sum of products by Einstein's convention.

    As `numpy.einsum`, in both of its spellings.

    Args:
        optimize: Order of the products of more than two operands: ``True`` or "greedy",
            "optimal", ``False`` (from left to right), or a path of `numpy.einsum_path`.
        casting: How much the conversion of operands to ``dtype`` may lose.
        preferred_element_type: JAX's name of ``dtype``, to which operands are always converted.
    Returns: The sum of products.
    Raises: ShapeError: If labels do not fit the operands.
    Example: print(fg.numpy.einsum("ij,j->i", np.eye(2), np.array([3.0, 4.0]))) -> [3. 4.]
    """
    refuse_out(out, "einsum")
    if not isinstance(subscripts, str):
        subscripts, given = _interleaved((subscripts, *operands))
    else:
        given = list(operands)
    check_placement("einsum", out_sharding=out_sharding)
    if dtype is not None:
        for operand in given:
            aval = aval_of(as_value(operand, "einsum"))
            check_casting(aval, checked_dtype(dtype, "einsum"), casting)
    values = _operands("einsum", *given, dtype=preferred_element_type if dtype is None else dtype)
    terms, result = _spell_ellipses(subscripts, tuple(len(shape_of(v)) for v in values))
    unknown = set(result) - set("".join(terms))
    if unknown or len(set(result)) != len(result):
        raise ArgumentError(
            f"einsum: the labels {result!r} of the result must be distinct labels of operands."
        )
    lengths = _label_lengths(terms, values)
    pairs = [_without_repeats(v, t, lengths) for v, t in zip(values, terms, strict=True)]
    for step in _path([t for _, t in pairs], result, lengths, optimize):
        pairs = _contracted(pairs, sorted(step), result)
    (x, labels) = pairs[0]
    x, labels = _sum_lonely(x, labels, result)
    return _permuted(x, labels, result)


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: Any = "greedy", einsum_call: bool = False
) -> tuple[list[Any], str]:
    """Order of the products of an `einsum`, which depends on shapes alone.

    As `numpy.einsum_path`.

    Args:
        optimize: How to look for it, as in `einsum`.
        einsum_call: Whether the result is for NumPy's own use.
    Returns: The path, and a text that describes it.
    Example: fg.numpy.einsum_path("ij,jk,kl->il", *np.ones((3, 2, 2)))[0][1:] -> [(0, 1), (0, 1)]
    """
    given: Sequence[Any] = operands
    if not isinstance(subscripts, str):
        subscripts, given = _interleaved((subscripts, *operands))
    shapes = [np.broadcast_to(0.0, np.shape(as_value(x, "einsum_path"))) for x in given]
    options: Any = {"optimize": optimize, "einsum_call": einsum_call}
    return np.einsum_path(subscripts, *shapes, **options)


def _contracted(pairs: list[Any], step: Sequence[int], result: str) -> list[Any]:
    """The operands after those at ``step`` are multiplied from left to right."""
    taken = [pairs[i] for i in step]
    rest = [pair for i, pair in enumerate(pairs) if i not in step]
    x, x_labels = taken[0]
    for k, (y, y_labels) in enumerate(taken[1:], 1):
        needed = result + "".join(t for _, t in (*rest, *taken[k + 1 :]))
        both = dict.fromkeys(x_labels + y_labels)
        labels = "".join(c for c in both if c in needed)
        labels = (
            result if not rest and k == len(taken) - 1 and set(labels) == set(result) else labels
        )
        x, x_labels = _multiply_sum(x_labels, y_labels, labels, x, y), labels
    return [*rest, (x, x_labels)]
