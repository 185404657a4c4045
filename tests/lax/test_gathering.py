"""Windows at many places, against loops that say what they are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.testing import check_grads

RNG = np.random.default_rng(11)

# The shape of the array, starts, dimension numbers, and shapes of windows along all axes.
CASES = {
    "rows": ((4, 3), [[[2]], [[0]]], ((2,), (0,), (0,)), (1, 3)),
    "windows": ((5,), [[1], [3], [-1]], ((1,), (), (0,)), (2,)),
    "elements": ((4, 3), [[1, 2], [3, 0], [4, 1], [0, -2]], ((), (0, 1), (0, 1)), (1, 1)),
    "crossed": ((3, 4, 2), [[1, 0], [3, 2]], ((0, 2), (0,), (1, 0)), (1, 2, 2)),
    "first axis kept": ((3, 4), [[0], [3], [1]], ((0,), (1,), (1,)), (3, 1)),
    "batched": ((2, 4, 3), [[[1], [3]], [[0], [2]]], ((1, 3), (), (2,), (0,), (0,)), (1, 4, 2)),
    "batched behind": ((4, 2), [[1, 2], [3, 0]], ((), (0,), (0,), (1,), (0,)), (1, 1)),
    "whole": ((3,), [[0], [1]], ((1,), (), (0,)), (3,)),
    "one start": ((4, 3), [1, 1], ((0, 1), (), (0, 1)), (2, 2)),
    "no starts": ((4,), np.zeros((0, 1), int), ((1,), (), (0,)), (2,)),
    "empty windows": ((4, 0), [[1], [2]], ((1,), (0,), (0,)), (1, 0)),
    "not mapped": ((3, 2), np.zeros((2, 0), int), ((1,), (0,), ()), (1, 2)),
}
MODES = ("clip", "fill", "promise_in_bounds")


def case_of(name):
    shape, starts, numbers, sizes = CASES[name]
    starts = np.asarray(starts)
    if "batched" in name and starts.ndim == 2:
        starts = starts[..., None]
    return RNG.normal(size=shape), starts, (*numbers, *((), ()))[:5], sizes


def places(shape, starts, numbers, sizes, mode):
    """``(place in the result, place in the array or None)`` of every element."""
    offsets, collapsed, mapped, own_batch, batch = numbers
    kept = [a for a in range(len(shape)) if a not in collapsed and a not in own_batch]
    batch_shape = starts.shape[:-1]
    ndim = len(batch_shape) + len(kept)
    others = [i for i in range(ndim) if i not in offsets]
    for lane in itertools.product(*map(range, batch_shape)):
        first = [0] * len(shape)
        for a, start in zip(mapped, starts[lane], strict=True):
            first[a] = int(start)
        for a, b in zip(own_batch, batch, strict=True):
            first[a] = lane[b]
        inside = all(0 <= f <= n - m for f, n, m in zip(first, shape, sizes, strict=True))
        if mode == "clip":
            rows = zip(first, shape, sizes, strict=True)
            first, inside = [min(max(f, 0), n - m) for f, n, m in rows], True
        for steps in itertools.product(*(range(sizes[a]) for a in kept)):
            target = [0] * ndim
            for i, n in (*zip(others, lane, strict=True), *zip(offsets, steps, strict=True)):
                target[i] = n
            own = list(first)
            for a, n in zip(kept, steps, strict=True):
                own[a] += n
            yield tuple(target), tuple(own) if inside else None


def result_shape(starts, numbers, sizes):
    offsets, collapsed, _, own_batch, _ = numbers
    kept = iter(n for a, n in enumerate(sizes) if a not in (*collapsed, *own_batch))
    batch = iter(starts.shape[:-1])
    ndim = starts.ndim - 1 + len(offsets)
    return tuple(next(kept) if i in offsets else next(batch) for i in range(ndim))


def gathered(x, starts, numbers, sizes, mode):
    out = np.full(result_shape(starts, numbers, sizes), np.nan)
    for target, own in places(
        x.shape, starts, numbers, sizes, "fill" if mode == "fill" else "clip"
    ):
        if own is not None:
            out[target] = x[own]
    return out


COMBINE = {
    "scatter": lambda old, new: new,
    "scatter_add": lambda old, new: old + new,
    "scatter_sub": lambda old, new: old - new,
    "scatter_mul": lambda old, new: old * new,
    "scatter_min": min,
    "scatter_max": max,
}


def scattered(name, x, starts, updates, numbers, sizes, mode):
    out = x.copy()
    for target, own in places(
        x.shape, starts, numbers, sizes, "clip" if mode == "clip" else "fill"
    ):
        if own is not None:
            out[own] = COMBINE[name](out[own], updates[target])
    return out


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_gather(name, mode):
    x, starts, numbers, sizes = case_of(name)
    numbers = lax.GatherDimensionNumbers(*numbers)
    expected = gathered(x, starts, numbers, sizes, mode)

    def function(x, starts):
        return lax.gather(x, starts, numbers, sizes, mode=mode)

    np.testing.assert_array_equal(function(x, starts), expected)
    aval = fg.eval_shape(function, x, starts)
    assert (aval.shape, aval.dtype) == (expected.shape, x.dtype)
    np.testing.assert_array_equal(function(x, starts.astype(np.int8)), expected)
    if expected.size and not np.isnan(expected).any():
        check_grads(lambda x: function(x, starts) ** 2, (x,), order=2)
    weights = RNG.normal(size=expected.shape)
    adjoint = np.zeros_like(x)
    kind = "fill" if mode == "fill" else "clip"
    for target, own in places(x.shape, starts, numbers, sizes, kind):
        if own is not None:
            adjoint[own] += weights[target]
    _, pull = fg.vjp(lambda x: function(x, starts), x)
    np.testing.assert_allclose(pull(weights)[0], adjoint)
    for axes in ((0, 0), (0, None), (None, 0)):
        both = [
            np.stack([v, v[::-1]]) if a == 0 else v for v, a in zip((x, starts), axes, strict=True)
        ]
        lanes = [[v[i] if a == 0 else v for v, a in zip(both, axes, strict=True)] for i in range(2)]
        lanes = [gathered(*lane, numbers, sizes, mode) for lane in lanes]
        np.testing.assert_array_equal(fg.vmap(function, axes)(*both), np.stack(lanes))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_scatters(case, mode):
    x, starts, numbers, sizes = case_of(case)
    updates = RNG.normal(size=result_shape(starts, numbers, sizes))
    for name in COMBINE:
        own = lax.ScatterDimensionNumbers(*numbers)

        def function(x, updates, starts=starts, name=name, own=own):
            return getattr(lax, name)(x, starts, updates, own, mode=mode)

        expected = scattered(name, x, starts, updates, numbers, sizes, mode)
        np.testing.assert_allclose(function(x, updates), expected, 1e-13)
        both = fg.vmap(function, (0, None, 0))(
            np.stack([x, x]), updates, np.stack([starts, starts])
        )
        np.testing.assert_allclose(both[1], expected, 1e-13)
        if x.size and case in ("windows", "crossed", "batched"):
            check_grads(function, (x, updates), order=2, modes=["rev", "fwd"])


def test_compiled():
    x, starts, numbers, sizes = case_of("crossed")
    for mode in MODES:
        own = lax.GatherDimensionNumbers(*numbers)
        jitted = fg.jit(lambda x, s, m=mode, d=own: lax.gather(x, s, d, sizes, mode=m))
        np.testing.assert_array_equal(jitted(x, starts), gathered(x, starts, numbers, sizes, mode))
    updates = RNG.normal(size=result_shape(starts, numbers, sizes))
    own = lax.ScatterDimensionNumbers(*numbers)
    add = fg.jit(lambda x, s, u: lax.scatter_add(x, s, u, own))
    expected = scattered("scatter_add", x, starts, updates, numbers, sizes, "fill")
    np.testing.assert_allclose(add(x, starts, updates), expected)


def test_fill_values():
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    starts = np.array([[3], [1], [-1]])
    for x, fill in (
        (np.arange(3), np.iinfo(int).min),
        (np.arange(3, dtype=np.uint8), 255),
        (np.array([True, False, True]), True),
        (np.arange(3, dtype=np.float32), np.nan),
    ):
        out = lax.gather(x, starts, numbers, (1,))
        assert out.dtype == x.dtype
        np.testing.assert_array_equal(out, np.array([fill, x[1], fill], x.dtype))
        given = lax.gather(x, starts, numbers, (1,), mode="fill", fill_value=x[1])
        np.testing.assert_array_equal(given, x[[1, 1, 1]])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unique", [False, True])
def test_applied(unique):
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    starts = np.array([[2], [0]] if unique else [[2], [0], [2], [9]])
    x = np.array([1.5, 2.0, -0.5])
    expected = [x[0] ** 2 + 1, x[1], (x[2] ** 2 + 1) if unique else (x[2] ** 2 + 1) ** 2 + 1]

    def function(x):
        return lax.scatter_apply(
            x,
            starts,
            lambda v: v * v + 1,
            numbers,
            update_shape=(len(starts),),
            unique_indices=unique,
        )

    np.testing.assert_allclose(function(x), expected)
    np.testing.assert_allclose(fg.vmap(function)(np.stack([x, x]))[1], expected)
    check_grads(function, (x,), order=2)
    np.testing.assert_array_equal(
        lax.scatter_apply(x, starts, lambda v: 7.0, numbers, update_shape=(len(starts),)),
        [7.0, 2.0, 7.0],
    )


def test_index_take():
    x = RNG.normal(size=(2, 3, 4))
    i, j = np.array([1, -1, 2]), np.array([5, 2, -5])
    out = lax.index_take(x, (i, j), (0, 2))
    np.testing.assert_array_equal(
        out, np.stack([x[a % 2, :, b % 4] for a, b in zip(i, j, strict=True)])
    )
    check_grads(lambda x: lax.index_take(x, (i, j), (0, 2)) ** 2, (x,), order=2)
    with pytest.raises(ShapeError, match=r"axes \(0, 2\) need one line of indices each"):
        lax.index_take(x, (i,), (0, 2))


@pytest.mark.parametrize(
    ("error", "text", "numbers", "sizes", "options"),
    [
        (ShapeError, r"have 1 elements each", ((1,), (), (0, 1)), (2, 3), {}),
        (ShapeError, r"windows of shape \(5, 3\) do not fit", ((1, 2), (), (0,)), (5, 3), {}),
        (ShapeError, r"along axes \[0\]; collapsed", ((1,), (0,), (0,)), (2, 3), {}),
        (ShapeError, r"one size per axis, got \(2,\)", ((1,), (), (0,)), (2,), {}),
        (ShapeError, r"offset_dims must name, in asc", ((2, 1), (), (0,)), (2, 3), {}),
        (ShapeError, r"different axes out of 0 \.\. 1", ((1,), (7,), (0,)), (1, 3), {}),
        (ShapeError, r"must be other axes than", ((1,), (), (0,), (0,), (0,)), (1, 3), {}),
        (ShapeError, r"their lengths differ", ((1,), (), (1,), (0,), (0,)), (1, 2), {}),
        (ArgumentError, r"one of 'fill', 'drop'", ((1,), (0,), (0,)), (1, 3), {"mode": "never"}),
        (
            ArgumentError,
            r"ONE_HOT is a product",
            ((1,), (0,), (0,)),
            (1, 3),
            {"mode": lax.GatherScatterMode.ONE_HOT},
        ),
    ],
)
def test_refused(error, text, numbers, sizes, options):
    x, starts = np.ones((4, 3)), np.array([[1], [2]])
    with pytest.raises(error, match=text):
        lax.gather(x, starts, lax.GatherDimensionNumbers(*numbers), sizes, **options)


def test_refused_updates():
    x, starts = np.ones((4, 3)), np.array([[1], [2]])
    rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    with pytest.raises(ShapeError, match=r"there are starts of shape \(2,\)"):
        lax.scatter(x, starts, np.ones((5, 3)), rows)
    with pytest.raises(ShapeError, match=r"must name one axis for each of the axes \(1,\)"):
        lax.scatter(x, starts, np.ones((2, 3)), lax.ScatterDimensionNumbers((), (0,), (0,)))
    with pytest.raises(DtypeError, match=r"starts must be integers"):
        lax.scatter_add(x, starts * 1.0, np.ones((2, 3)), rows)
    with pytest.raises(DtypeError, match=r"one dtype"):
        lax.scatter_add(x, starts, np.ones((2, 3), np.float32), rows)
