"""Bits, divisors, sets, writing in NumPy's words, joining, histograms of points; against NumPy."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.errors import ArgumentError, ConcretizationTypeError, DtypeError, ShapeError
from funcgrad.testing import check_grads

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3, 4))
LINE = np.array([3.0, 1.0, 2.0, 3.0, 1.0, 7.0])
OTHER = np.array([2.0, 3.0, 5.0])
N = np.array([[12, -18, 0], [7, 5, -64]])
BITS = RNG.integers(0, 2, (3, 10))
BYTES = RNG.integers(0, 256, (2, 3)).astype(np.uint8)
EXTREMES = np.array([0.0, -0.0, 1.0, -3.0, 0.1, 5e-324, -1e-310, 1.7e308, np.finfo(float).max])
POINTS = RNG.uniform(-1, 1, (20, 2))
NO = np.zeros(0)
Z = np.array([1 + 2j, 3 - 1j, 1 + 2j])


def check(found, expected):
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check(one, other)
        return
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, 1e-12, 1e-300)


# Name, arguments (the first is traced under jit), keywords.
CASES = [
    ("frexp", (EXTREMES,), {}),
    ("frexp", (np.float32([0, 1e-40, 3, -1e38]),), {}),
    ("frexp", (NO,), {}),
    ("frexp", (2.5,), {}),
    ("spacing", (EXTREMES[:-1],), {}),
    ("spacing", (np.float32([0, 1e-40, 3, -1e38]),), {}),
    ("spacing", (np.float32([0.5, 3, -1e38]),), {}),
    ("gcd", (N, 6), {}),
    ("gcd", (N, np.int8([4, 10, 0])), {}),
    ("lcm", (N, 6), {}),
    ("lcm", (N, True), {}),
    ("gcd", (N.astype(np.int8), np.arange(N.size).reshape(N.shape) % 2 == 0), {}),
    ("lcm", (N.astype(np.int32), np.uint8([4, 10, 0])), {}),
    ("bitwise_count", (N,), {}),
    ("bitwise_count", (BYTES,), {}),
    ("bitwise_count", (BITS > 0,), {}),
    ("packbits", (BITS,), {}),
    ("packbits", (BITS,), {"axis": 1}),
    ("packbits", (BITS > 0,), {"axis": 0, "bitorder": "little"}),
    ("packbits", (NO.astype(int),), {}),
    ("unpackbits", (BYTES,), {}),
    ("unpackbits", (BYTES,), {"axis": 0, "bitorder": "little"}),
    ("unpackbits", (BYTES,), {"axis": 1, "count": 13}),
    ("unpackbits", (BYTES,), {"axis": 1, "count": 30}),
    ("unpackbits", (BYTES,), {"axis": 1, "count": -3}),
    ("diag_indices_from", (np.eye(3),), {}),
    ("dsplit", (np.arange(12.0).reshape(1, 2, 6), 3), {}),
    ("dsplit", (np.arange(12.0).reshape(1, 2, 6), [1, 4]), {}),
    ("histogram2d", (POINTS[:, 0], POINTS[:, 1], 3), {}),
    ("histogram2d", (POINTS[:, 0], POINTS[:, 1], [3, 4]), {"range": [[-1, 1], [0, 0.5]]}),
    ("histogram2d", (POINTS[:, 0], POINTS[:, 1], [-1, 0, 0.5, 1]), {"density": True}),
    ("histogramdd", (POINTS, 3), {}),
    ("histogramdd", (POINTS, (2, [-1, 0, 1])), {"weights": np.arange(20.0)}),
    ("histogramdd", (POINTS[:, 0],), {}),
    ("histogramdd", (np.zeros((0, 2)), 2), {}),
    ("histogram", (POINTS[:, 0].astype(np.float32),), {"range": (-1, 1)}),
    ("histogram", (BYTES,), {"range": (0, 3), "bins": 2}),
    ("sinc", (BYTES,), {}),
    ("i0", (BYTES[:, :1] % 7,), {}),
    ("sort_complex", (np.int16([3, 1, 2]),), {}),
    ("sort_complex", (np.int32([3, 1, 2]),), {}),
    ("tril", (EXTREMES[:3],), {}),
    ("triu", (NO,), {}),
    ("triu", (BYTES[0],), {"k": 1}),
    ("sort", (LINE,), {"stable": True}),
    ("take_along_axis", (X, np.array([[1], [-1], [0]]), 1), {}),
]


COMPILED = [case for i, case in enumerate(CASES) if case[0] not in {c[0] for c in CASES[:i]}]
"""The first case of each function."""


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_agrees_with_numpy(name, args, kwargs):
    expected = getattr(np, name)(*args, **kwargs)
    check(getattr(fnp, name)(*args, **kwargs), expected)
    stack = np.stack([np.asarray(args[0])] * 2)
    mapped = fg.vmap(lambda first: getattr(np, name)(first, *args[1:], **kwargs))(stack)
    for row in (0, 1) if name != "diag_indices_from" else ():
        check(fg.tree.map(lambda x, i=row: x[i], mapped), expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "args", "kwargs"), COMPILED)
def test_compiled(name, args, kwargs):
    function = fg.jit(lambda first: getattr(np, name)(first, *args[1:], **kwargs))
    check(function(args[0]), getattr(np, name)(*args, **kwargs))


def test_spacing_of_the_largest_number():
    largest = np.finfo(np.float32).max
    assert fnp.spacing(-largest) == np.nextafter(largest, np.float32(0)) - largest


SETS = [
    ("union1d", (LINE, OTHER), {}),
    ("intersect1d", (LINE, OTHER), {}),
    ("intersect1d", (LINE, OTHER), {"return_indices": True}),
    ("intersect1d", (OTHER, OTHER[::-1]), {"assume_unique": True}),
    ("setdiff1d", (LINE, OTHER), {}),
    ("setdiff1d", (OTHER[::-1], LINE), {"assume_unique": True}),
    ("setdiff1d", (np.int8([4, 1, 2]), np.array([7, 1])), {}),
    ("setdiff1d", (np.array([4, 1, 2]), OTHER), {}),
    ("setxor1d", (LINE, OTHER), {}),
    ("setxor1d", (OTHER, OTHER + 1), {"assume_unique": True}),
    ("setxor1d", (LINE, [np.nan, 1.0]), {}),
    ("union1d", (NO, OTHER), {}),
    ("intersect1d", (LINE, OTHER + 100), {}),
    ("setdiff1d", (X, X[0]), {}),
    ("union1d", (Z, Z[1:]), {}),
    ("setdiff1d", (Z, Z[1:2]), {}),
    ("intersect1d", (N, [7, 12, 3]), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), SETS)
def test_sets(name, args, kwargs):
    expected = getattr(np, name)(*args, **kwargs)
    ours = getattr(fnp, name)
    check(ours(*args, **kwargs), expected)
    values = expected[0] if isinstance(expected, tuple) else expected
    n = len(values)
    # Traced values need a size: exactly as many, more, fewer.
    for size in (n, n + 2, max(n - 1, 0)):
        found = through_vmap(
            lambda a, b, size=size: ours(a, b, **kwargs, size=size, fill_value=-9)
        )(np.asarray(args[0]), np.asarray(args[1]))
        found = found[0] if isinstance(expected, tuple) else found
        padded = np.concatenate([values, np.full(2, -9, values.dtype)])[:size]
        check(found, padded.astype(found.dtype))
    if values.dtype == float and np.asarray(args[0]).size:
        # Values of eager gradients are known.
        slopes = fg.grad(lambda a: fnp.sum(as_first(ours(a, args[1], **kwargs)) ** 2))(args[0])
        assert slopes.shape == np.shape(args[0])


def through_vmap(function):
    """The function, traced: its arguments are one lane."""

    def traced(*args):
        out = fg.vmap(function)(*[np.asarray(x)[None] for x in args])
        return fg.tree.map(lambda x: x[0], out)

    return traced


def as_first(found):
    return found[0] if isinstance(found, tuple) else found


@pytest.mark.parametrize("sample", [POINTS.T.tolist(), (POINTS[:, 0], POINTS[:, 1])])
def test_points_as_lines_of_coordinates(sample):
    check(fnp.histogramdd(sample, 3), np.histogramdd(sample, 3))


def test_places_of_an_intersection_that_is_padded():
    found = fg.jit(lambda a: fnp.intersect1d(a, OTHER, return_indices=True, size=3))(LINE)
    check(found, (np.array([2.0, 3.0, 2.0]), np.array([2, 0, 6]), np.array([0, 1, 3])))


@pytest.mark.parametrize("x", [LINE, np.array([np.nan, 1.0, np.nan]), N])
def test_unique_of_the_standard(x):
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        found, expected = getattr(fnp, name)(x), getattr(np, name)(x)
        assert found._fields == expected._fields
        check(found, expected)
    check(fnp.unique_values(x), np.sort(np.unique_values(x)))
    check(
        fg.jit(lambda x: fnp.unique_counts(x, size=7, fill_value=0).counts)(LINE),
        np.array([2, 1, 2, 1, 0, 0, 0]),
    )


def test_slopes_of_chosen_values():
    check(
        fg.grad(lambda x: fnp.setdiff1d(x, [2.0]) @ np.array([1.0, 2, 3]))(LINE),
        np.array([2.0, 1, 0, 0, 0, 3]),
    )
    check(fg.grad(lambda x: fnp.union1d(x, [2.5]).sum())(OTHER), np.ones(3))
    check(fg.grad(lambda x: np.frexp(x)[0].sum())(np.array([3.0, 0.7])), np.array([0.25, 1.0]))
    check(fg.grad(lambda x: np.spacing(x).sum())(np.array([3.0, 0.7])), np.array([0.0, 0.0]))
    weights = np.arange(20.0)
    check_grads(lambda w: np.histogram2d(*POINTS.T, 3, weights=w)[0], (weights,), order=2)
    check_grads(
        lambda w: fnp.histogramdd(POINTS, 3, weights=w, density=True)[0] ** 2,
        (weights + 1,),
        order=2,
    )


# Function that changes its first argument, in NumPy; arguments; keywords of copies.
WRITING = [
    ("put", (X, [0, -1, 5], [1.0, 2.0]), {}),
    ("put", (X, [], 2.0), {}),
    ("put", (X, [[40, -20]], 3.0, "clip"), {}),
    ("put", (X, [40, -20], [3.0, 4.0], "wrap"), {}),
    ("put", (N, [0, 1], 2.7), {}),
    ("place", (X, X > 0, [1.0, 2.0, 3.0]), {}),
    ("place", (X, X > 9, [1.0]), {}),
    ("place", (X, X > 9, []), {}),
    ("place", (N, N > 0, [5]), {}),
    ("put_along_axis", (X, np.array([[1], [0], [3]]), 5.0, 1), {}),
    ("put_along_axis", (X, np.array([[1, 0, -1, 2]]), X[0], 0), {}),
    ("put_along_axis", (X, np.array([1, 5, -1]), X[:, 0], None), {}),
    ("fill_diagonal", (X, 5.0), {}),
    ("fill_diagonal", (X, [5.0, 6.0]), {}),
    ("fill_diagonal", (np.zeros((7, 3)), 5.0), {"wrap": True}),
    ("fill_diagonal", (np.zeros((2, 2, 2)), 5.0), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), WRITING)
def test_writing(name, args, kwargs):
    x, *rest = args
    ours = functools.partial(getattr(fnp, name), **kwargs)
    expected, in_place = x.copy(), x.copy()
    getattr(np, name)(expected, *rest, **kwargs)
    assert ours(in_place, *rest) is None
    check(in_place, expected)
    before = x.copy()
    if rest[-1] == 2.7:
        rest[-1] = 2
    check(ours(x, *rest, inplace=False), expected)
    check(x, before)
    stacked = fg.vmap(lambda x: ours(x, *rest, inplace=False))(np.stack([x, x]))
    check(stacked[1], expected)
    if x.dtype == float:
        check_grads(lambda x: ours(x, *rest, inplace=False) ** 2, (x,), order=2)
    with pytest.raises(ArgumentError, match="inplace=False"):
        fg.jit(lambda x: getattr(np, name)(x, *rest, **kwargs))(x)


def test_what_is_written_has_slopes():
    at = np.array([[1], [0], [3]])
    check_grads(lambda v: fnp.put(X, [0, 7], v, inplace=False) ** 2, (np.ones(2),), order=2)
    check_grads(lambda v: fnp.place(X, X > 0, v, inplace=False) ** 2, (np.ones(3),), order=2)
    check_grads(lambda v: fnp.fill_diagonal(X, v, inplace=False) ** 2, (2.0,), order=2)
    check_grads(
        lambda v: fnp.put_along_axis(X, at, v, 1, inplace=False) ** 2, (np.ones((3, 1)),), order=2
    )


JOINED = [
    (slice(1, 5),),
    (slice(0, 1, 5j), 7),
    (LINE, 0, slice(3)),
    (LINE.astype(np.float32), 1.5),
    (N[0], 2.5),
    ("1", X, X),
    ("0,2", LINE, LINE),
    ("0,2,0", LINE, LINE),
    ("1,2,0", LINE, LINE),
    ("0,3,1", X, X),
    (NO, 1.0),
    (Z, 1),
]


@pytest.mark.parametrize("key", JOINED)
def test_joining(key):
    check(fnp.r_[key], np.r_[key])
    arrays = [x for x in key if isinstance(x, np.ndarray)]
    if len(arrays) == len(key) or isinstance(key[0], str):
        check(fnp.c_[key], np.c_[key])
    if arrays:
        traced = fg.jit(lambda x: fnp.r_[tuple(x if item is arrays[0] else item for item in key)])(
            arrays[0]
        )
        check(traced, np.r_[key])


def test_lines_as_columns():
    check(
        fnp.c_[LINE, LINE * 2, np.stack([LINE, LINE], 1)],
        np.c_[LINE, LINE * 2, np.stack([LINE, LINE], 1)],
    )
    check(fnp.c_[1.0, 2.0], np.c_[1.0, 2.0])
    check(fg.jit(lambda x: fnp.c_[x, x])(LINE), np.c_[LINE, LINE])
    check_grads(lambda x: fnp.c_[x, x * x] ** 2, (LINE,), order=2)
    assert fnp.s_[1:2, ...] == np.s_[1:2, ...]
    assert fnp.index_exp[1] == (1,)


def test_descending():
    x = np.array([[2.0, 1.0, 2.0], [np.nan, 0.0, 1.0]])
    check(fnp.sort(x, descending=True), np.sort(x)[:, ::-1])
    places = fnp.argsort(x, descending=True, dtype=np.int32)
    check(places, np.array([[0, 2, 1], [0, 2, 1]], np.int32))
    check(fg.jit(lambda x: fnp.argsort(x, axis=0, descending=True))(x), [[1, 0, 0], [0, 1, 1]])
    check(fnp.argsort(NO, descending=True), np.argsort(NO))


def test_fixed_sizes():
    def chosen(x):
        return (
            fnp.compress(x[:, 0] > 0, x, 0, size=3, fill_value=9.0),
            fnp.compress(x > 0, x, size=4),
            fnp.extract(x > 0, x, size=12, fill_value=-1.0),
            fnp.delete(x, fnp.argmax(x, 1)[:2] + np.array([0, 4]), assume_unique_indices=True),
        )

    rows, positive = X[X[:, 0] > 0], X[X > 0]
    expected = (
        np.concatenate([rows, np.full((3, 4), 9.0)])[:3],
        np.concatenate([positive, np.zeros(4)])[:4],
        np.concatenate([positive, np.full(12 - len(positive), -1.0)]),
        np.delete(X, X.argmax(1)[:2] + np.array([0, 4])),
    )
    check(chosen(X), expected)
    check(fg.jit(chosen)(X), expected)
    check_grads(lambda x: [y**2 for y in chosen(x)], (X,), order=2)


def test_places_that_are_none():
    places = np.array([[0, -1, 4, -5]])
    nan = np.nan
    row = X[:1]
    for take in (fnp.take_along_axis, fg.jit(fnp.take_along_axis, static_argnums=(2, 3, 4))):
        check(take(row, places, 1, "fill", 7.0), [[row[0, 0], row[0, 3], 7.0, 7.0]])
        check(take(row, places, 1, "clip"), row[:, [0, 0, 3, 0]])
        check(take(row, places, 1, "wrap"), row[:, [0, 3, 0, 3]])
    filled = fnp.take_along_axis(row, places, 1, mode="fill", wrap_negative_indices=False)
    check(filled, [[row[0, 0], nan, nan, nan]])
    check(
        fnp.take(row[0], places[0], mode="fill", fill_value=0.0), [row[0, 0], row[0, 3], 0.0, 0.0]
    )
    check(fnp.take_along_axis(NO, np.array([0]), mode="fill"), [nan])


def test_trimmed():
    x = np.array([0.0, 0.0, 1.0, 0.0, 2.0, 0.0])
    for trim in ("fb", "f", "b"):
        check(fnp.trim_zeros(x, trim), np.trim_zeros(x, trim))
        check(
            fg.grad(lambda x, t=trim: np.trim_zeros(x, t).sum())(x).sum(),
            float(np.trim_zeros(x, trim).size),
        )
    check(fnp.trim_zeros(NO), NO)
    check(fnp.real_if_close([1 + 1e-20j]), np.ones(1))
    assert fg.jit(fnp.real_if_close)(np.array([1 + 0j])).dtype == complex
    check(fnp.mask_indices(3, fnp.triu, 1), np.mask_indices(3, np.triu, 1))
    check(fnp.fromfunction(lambda i, j: i + j, (2, 3)), np.fromfunction(lambda i, j: i + j, (2, 3)))


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda: fnp.gcd(1.5, 2), DtypeError, "gcd needs integers"),
        (lambda: fnp.lcm(True, False), DtypeError, "lcm needs integers"),
        (lambda: fnp.gcd(np.uint64(3), np.int64(2)), DtypeError, "no integer dtype holds both"),
        (lambda: fnp.bitwise_count(1.5), DtypeError, "bitwise_count needs integers"),
        (lambda: fnp.frexp(1j), DtypeError, "frexp is not defined for complex"),
        (lambda: fnp.spacing(1j), DtypeError, "spacing is not defined for complex"),
        (lambda: fnp.unpackbits([1, 2]), DtypeError, "unpackbits needs an array of uint8"),
        (lambda: fnp.packbits([1], bitorder="up"), ArgumentError, "'big' or 'little', got 'up'"),
        (lambda: fnp.dsplit(X, 2), ValueError, "3 or more"),
        (lambda: fnp.dsplit(np.zeros((1, 1, 3)), 2), ValueError, "equal division"),
        (lambda: fnp.place(X, [True], 1.0, inplace=False), ShapeError, "differ in size"),
        (lambda: fnp.histogramdd(POINTS, [2]), ShapeError, "for 2 axes"),
        (lambda: fnp.histogramdd(POINTS, [2, [1, 0]]), ValueError, "increase monotonically"),
        (lambda: fnp.r_["x", X], ArgumentError, "up to three integers"),
        (lambda: fnp.put(X, 0, 1.0, "up", inplace=False), ValueError, "got 'up'"),
        (lambda: fnp.take_along_axis(X, [[0]], 1, "up"), ValueError, "got 'up'"),
        (lambda: fg.jit(fnp.setxor1d)(LINE, LINE), ConcretizationTypeError, "setxor1d"),
        (lambda: fg.jit(fnp.trim_zeros)(LINE), ConcretizationTypeError, "trim_zeros"),
        (lambda: fg.jit(lambda x: fnp.put(X, 0, x))(1.0), ArgumentError, "inplace=False"),
    ],
)
def test_messages(function, error, words):
    with pytest.raises(error, match=words):
        function()
