"""Indices and functional updates against NumPy's own indexing, and their derivatives."""

from __future__ import annotations

import re
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    IndexTypeError,
    NonConcreteBooleanIndexError,
    OutOfBoundsError,
    ShapeError,
)
from funcgrad.numpy import at

X = np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5) - 30
MASK = np.array([True, False, True])
INDICES: list[Any] = [
    0,
    -1,
    np.int64(1),
    slice(None),
    slice(1, 2),
    slice(None, None, -1),
    (slice(None), slice(None, None, -2)),
    slice(1, 1),
    slice(5, 1, -1),
    Ellipsis,
    None,
    (Ellipsis, 0),
    (0, Ellipsis, None, slice(1, 3)),
    (slice(None), None, 1, None),
    (1, 2, 3, 4),
    [],
    [0, 1],
    [[0, 1], [1, 0]],
    np.array([1, -1]),
    (slice(None), [0, 2]),
    ([0, 1], slice(None), [1, 2]),
    (slice(None), [0, 1], [1, 2]),
    (0, slice(None), [1, 2]),
    (slice(None), 0, [1, 2]),
    (slice(0, 2), 2, slice(1, 4, 2), [0, 0]),
    (slice(None, None, -1), slice(None), [0, 1], slice(3, 0, -2)),
    (np.array([[0], [1]]), np.array([0, 2])),
    (Ellipsis, [0, 1, 1], [2, 2, 2]),
    (None, [0, 1], None, slice(1, 3)),
    (slice(None), None, [0, 1], None, [1]),
    (slice(None), MASK),
    (slice(None), MASK, [0]),
    ([0], MASK, slice(1, 3), slice(None, None, -1)),
    X[..., 0] > 10,
    (X[..., 0] > 10, 2),
    X > 20,
    True,
    False,
    np.True_,
    (None, True),
    (True, 0),
    (0, slice(None), True),
    (slice(None), True, [0, 1]),
    (slice(None), True, MASK, [[0]]),
    (slice(None), [[0]], False),
    (Ellipsis, True, slice(1, 3)),
    (True, Ellipsis, False),
]
UPDATES = {
    "set": None,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "min": np.minimum,
    "max": np.maximum,
}


def traced(function: Any, x: Any) -> Any:
    """The result with every operation seen by a transformation."""
    return fg.jvp(function, (x,), (np.ones_like(x),))[0]


def updated(x: Any, index: Any, value: Any, kind: str) -> Any:
    """What NumPy makes of an update."""
    out = x.copy()
    if kind == "set":
        out[index] = value
    else:
        UPDATES[kind].at(out, index, value)
    return out


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_reads_as_numpy(index: Any) -> None:
    got = traced(lambda x: x[index], X)
    assert np.shape(got) == np.shape(X[index])
    np.testing.assert_array_equal(got, X[index])


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_gradient_goes_to_the_places_that_were_read(index: Any) -> None:
    ct = np.random.default_rng(0).normal(size=X[index].shape)
    (got,) = fg.vjp(lambda x: x[index], X)[1](ct)
    np.testing.assert_allclose(got, updated(np.zeros_like(X), index, ct, "add"))


@pytest.mark.parametrize("kind", UPDATES)
@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_updates_as_numpy(index: Any, kind: str) -> None:
    value = np.random.default_rng(1).normal(size=X[index].shape) + 3
    expected = updated(X, index, value, kind)
    np.testing.assert_allclose(traced(lambda x: getattr(x.at[index], kind)(value), X), expected)
    np.testing.assert_allclose(getattr(at(X)[index], kind)(value), expected)


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_gradient_of_an_update_splits_between_array_and_value(index: Any) -> None:
    shape = X[index].shape
    value = np.zeros(shape)
    ct = np.random.default_rng(2).normal(size=X.shape)
    ct_x, ct_value = fg.vjp(lambda x, v: x.at[index].set(v), X, value)[1](ct)
    # Which of the values for one element was written last: that one has the derivative.
    numbers = np.arange(value.size, dtype=float).reshape(shape)
    writer = updated(np.full(X.shape, -1.0), index, numbers, "set")
    np.testing.assert_allclose(ct_x, np.where(writer < 0, ct, 0))
    expected = np.zeros(value.size)
    expected[writer[writer >= 0].astype(int)] = ct[writer >= 0]
    np.testing.assert_allclose(ct_value, expected.reshape(shape))


@st.composite
def arrays_and_indices(draw: st.DrawFn) -> tuple[np.ndarray, Any]:
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, max_side=4))
    x = np.arange(np.prod(shape), dtype=float).reshape(shape)
    kind = draw(st.sampled_from(["basic", "integer", "mixed"]))
    if kind == "basic":
        return x, draw(hnp.basic_indices(shape, allow_newaxis=True))
    if kind == "integer":
        return x, draw(hnp.integer_array_indices(shape))
    return x, tuple(draw(_entry(n)) for n in shape)


def _entry(n: int) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.slices(n),
        st.integers(-n, n - 1),
        st.lists(st.integers(-n, n - 1), min_size=2, max_size=2),
    )


@given(arrays_and_indices())
def test_reads_any_index_as_numpy(case: tuple[np.ndarray, Any]) -> None:
    x, index = case
    np.testing.assert_array_equal(traced(lambda x: x[index], x), x[index])


@given(arrays_and_indices(), st.sampled_from(["set", "add", "max"]))
def test_updates_any_index_as_numpy(case: tuple[np.ndarray, Any], kind: str) -> None:
    x, index = case
    expected = updated(x, index, 7.0, kind)
    np.testing.assert_array_equal(traced(lambda x: getattr(x.at[index], kind)(7.0), x), expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [*UPDATES, "power"])
@pytest.mark.parametrize("index", [0, (slice(None), slice(0, 3, 2)), [0, 2, 0]], ids=repr)
def test_second_derivatives_of_updates(index: Any, kind: str) -> None:
    random = np.random.default_rng(3)
    x = random.normal(size=(3, 4)) + 3
    value = random.normal(size=x[index].shape) + 3
    if kind == "power":  # of an element that is named twice, sin(x**9) has no useful differences
        value = value / 3
    fg.testing.check_grads(lambda x, v: np.sin(getattr(at(x)[index], kind)(v)), (x, value), order=2)


def primitives_of(function: Any, *args: Any) -> set[str]:
    text = str(fg.make_jaxpr(function)(*args))
    return {name for name in ("gather", "scatter", "slice", "reverse", "pad") if name in text}


def test_known_slices_and_integers_need_no_gather() -> None:
    assert primitives_of(lambda x: x[0], X) == {"slice"}
    assert primitives_of(lambda x: x[:, ::-1], X) == {"reverse"}
    assert primitives_of(lambda x: x[None, ..., None], X) == set()
    assert primitives_of(lambda x: x.at[0, 1:3].add(1.0), X) == {"pad"}
    assert "scatter" not in primitives_of(lambda x: x.at[0, 1:3].set(1.0), X)


# Traced indices.


@pytest.mark.parametrize(
    ("i", "expected"), [(0, 10.0), (2, 30.0), (-1, 30.0), (7, 30.0), (-9, 10.0)]
)
def test_traced_reads_count_from_the_end_once_and_are_clamped(i: int, expected: float) -> None:
    x = np.array([10.0, 20.0, 30.0])
    assert fg.vmap(lambda i: at(x)[i].get())(np.array([i]))[0] == expected


@pytest.mark.parametrize(
    ("i", "expected"), [(0, [9, 2, 3]), (-1, [1, 2, 9]), (3, [1, 2, 3]), (-4, [1, 2, 3])]
)
def test_traced_writes_out_of_bounds_are_dropped(i: int, expected: list[float]) -> None:
    x = np.array([1.0, 2.0, 3.0])
    got = fg.vmap(lambda i: at(x)[i].set(9.0))(np.array([i]))[0]
    np.testing.assert_array_equal(got, expected)


def test_traced_indices_mix_with_slices_and_integers() -> None:
    i = np.array([[2, 0], [1, 1]])
    for function in (
        lambda x, i: at(x)[0, :, i].get(),
        lambda x, i: at(x)[:, i, 1:3].get(),
        lambda x, i: at(x)[..., i].get(),
        lambda x, i: at(x)[1, i, ::-1, [0]].get(),
        lambda x, i: at(x)[:, None, i].get(),
        lambda x, i: at(x)[:, i, 1:3].add(1.0),
        lambda x, i: at(x)[0, :, i].set(1.0),
    ):
        got = fg.vmap(function, in_axes=(None, 0))(X, i)
        np.testing.assert_array_equal(got, [function(X, row) for row in i])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x[i],
        lambda x, i: x[:, i % 3],
        lambda x, i: x[:, i % 3, None, ::-1],
        lambda x, i: x.at[i].set(7.0),
        lambda x, i: x.at[:, i % 3, 1:3].add(x[0, 0, 0, 0]),
    ],
    ids=range(5),
)
def test_traced_indices_when_compiled(function: Any) -> None:
    for i in (0, 1, np.array([0, 1]), np.array([[1], [0]])):
        expected = fg.vmap(lambda i: function(X_AT, i))(np.asarray(i)[None])[0]
        np.testing.assert_array_equal(fg.jit(function)(X, i), expected)
        weights = np.arange(expected.size).reshape(expected.shape)
        got = fg.jit(fg.grad(lambda x, i, w=weights: fnp.sum(function(x, i) * w)))(X, i)
        eager = fg.grad(lambda x, i=i, w=weights: fnp.sum(function(x, i) * w))(X)
        np.testing.assert_allclose(got, eager)


class _Indexable:
    """An array of NumPy that takes traced indices and has ``at``, as traced arrays do."""

    at = at(X)

    def __getitem__(self, index: Any) -> Any:
        return fnp.asarray(at(X)[index].get())


X_AT = _Indexable()


def test_list_of_traced_integers_is_an_index_array() -> None:
    got = fg.vmap(lambda i, j: at(X)[[i, j], 0].get())(np.array([0, 1]), np.array([1, 1]))
    np.testing.assert_array_equal(got, np.stack([X[[0, 1], 0], X[[1, 1], 0]]))


def test_small_and_unsigned_traced_indices() -> None:
    x = np.arange(300.0)
    for dtype in (np.int8, np.uint8):
        got = fg.vmap(lambda i: at(x)[i].get())(np.array([3, 100], dtype))
        np.testing.assert_array_equal(got, [3.0, 100.0])
    assert fg.vmap(lambda i: at(x)[i].get())(np.array([-1], np.int8))[0] == 299.0


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("clip", [10, 30, 30]),
        ("wrap", [10, 30, 20]),
        ("fill", [10, 30, -5]),
        ("drop", [10, 30, -5]),
    ],
)
def test_modes_of_reading(mode: str, expected: list[float]) -> None:
    x = np.array([10.0, 20.0, 30.0])
    fill = -5.0 if mode in ("fill", "drop") else None
    got = traced(lambda x: x.at[np.array([0, -1, 4])].get(mode=mode, fill_value=fill), x)
    np.testing.assert_array_equal(got, expected)


def test_fill_value_alone_means_mode_fill_and_nan_is_its_default() -> None:
    x = np.ones(2)
    assert at(x)[5].get(fill_value=3.0) == 3.0
    assert np.isnan(at(x)[5].get(mode="fill"))


def test_modes_of_writing() -> None:
    x, index = np.zeros(3), np.array([0, 4])
    np.testing.assert_array_equal(at(x)[index].add(1.0, mode="drop"), [1, 0, 0])
    np.testing.assert_array_equal(at(x)[index].add(1.0, mode="clip"), [1, 0, 1])
    np.testing.assert_array_equal(at(x)[index].add(1.0, mode="wrap"), [1, 1, 0])
    np.testing.assert_array_equal(at(x)[7].set(1.0, mode="drop"), x)


BEYOND = [0, -1, 4, -7, 2, 2]
IN_TURN: dict[str, Any] = {
    "set": lambda old: 1.5,
    "add": lambda old: old + 1.5,
    "subtract": lambda old: old - 1.5,
    "mul": lambda old: old * 1.5,
    "divide": lambda old: old / 1.5,
    "power": lambda old: old**1.5,
    "min": lambda old: min(old, 1.5),
    "max": lambda old: max(old, 1.5),
    "apply": np.sqrt,
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", [None, "drop", "clip", "wrap"])
@pytest.mark.parametrize("kind", ["get", *IN_TURN])
def test_negative_places_that_do_not_count_from_the_end(kind: str, mode: str | None) -> None:
    x = np.arange(1.0, 6.0)
    value = {"get": (), "apply": (np.sqrt,)}.get(kind, (1.5,))
    resolve = {"wrap": lambda i: i % 5, "clip": lambda i: min(max(i, 0), 4)}
    reading = "clip" if mode is None and kind == "get" else mode
    places = [resolve.get(str(reading), int)(i) for i in BEYOND]
    if kind == "get":
        expected = np.array([x[i] if 0 <= i < 5 else np.nan for i in places])
    else:
        expected = x.copy()
        for i in places:
            if 0 <= i < 5:
                expected[i] = IN_TURN[kind](expected[i])

    def ours(x: Any, i: Any) -> Any:
        return getattr(at(x)[i], kind)(*value, mode=mode, wrap_negative_indices=False)

    np.testing.assert_allclose(fg.jit(ours)(x, np.array(BEYOND)), expected, 1e-14)
    if mode is None:
        with pytest.raises(IndexError, match="index -"):
            ours(x, np.array(BEYOND))
        return
    np.testing.assert_allclose(ours(x, np.array(BEYOND)), expected, 1e-14)
    np.testing.assert_array_equal(np.ravel(ours(x, -1)), ours(x, [-1]))


def test_one_device_holds_what_is_indexed() -> None:
    assert at(np.ones(2))[0].set(3.0, out_sharding=None)[0] == 3.0
    for kind, value in (("get", ()), ("set", (1.0,))):
        with pytest.raises(ArgumentError, match=f"{kind}: there is one device"):
            getattr(at(np.ones(2))[0], kind)(*value, out_sharding="gpu")


def applied_in_turn(x: np.ndarray, index: Any, function: Any) -> np.ndarray:
    """The elements that an index names, one after the other, by Python."""
    out = x.copy()
    flat = out.reshape(-1)
    for place in np.ravel(np.arange(x.size).reshape(x.shape)[index]):
        flat[place] = function(flat[place])
    return out


M23 = np.arange(1.0, 7.0).reshape(2, 3) / 4
NAMED_TWICE = [
    [0, 0],
    [0, 1, 0, 0],
    np.array([[0, 1], [1, 1]]),
    [-1, 1],
    (slice(None), [0, 0, 2]),
    ([0, 0, 1], [1, 1, 2]),
    ([0, 0], slice(1, None)),
    (np.array([0, 0]), 1),
    ([0, 0], None, [1, 1]),
    ([0, 0], ..., [1, 1]),
    (slice(0, 2), None, [2, 2], None),
    M23 > 0.6,
    [],
    1,
    (slice(None), slice(0, 2)),
    np.empty((0, 2), int),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("index", NAMED_TWICE, ids=range(len(NAMED_TWICE)))
def test_apply_once_for_every_time_that_an_element_is_named(index: Any) -> None:
    def function(v: Any) -> Any:
        return v * v + 0.5

    expected = applied_in_turn(M23, index, function)
    np.testing.assert_allclose(at(M23)[index].apply(function), expected)
    np.testing.assert_allclose(traced(lambda x: x.at[index].apply(function), M23), expected)
    squared = applied_in_turn(M23, index, lambda v: v**2.0)
    np.testing.assert_allclose(traced(lambda x: x.at[index].power(2.0), M23), squared)
    fg.testing.check_grads(lambda x: at(x)[index].apply(function), (M23,), order=2)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("i", "j"),
    [([0, 0], [1, 1]), ([0, 1], [1, 1]), ([0, 0, 0, 1], [2, 2, 2, 0]), ([-1, 1], [0, 0]), ([], [])],
)
def test_apply_at_traced_places(i: Any, j: Any) -> None:
    i, j = np.array(i, int), np.array(j, int)
    expected = applied_in_turn(M23, (i, j), np.exp)
    follow = fg.jit(lambda x, i, j: x.at[i, j].apply(np.exp))
    np.testing.assert_allclose(follow(M23, i, j), expected)
    lanes = fg.vmap(lambda i, j: at(M23)[i, j].apply(np.exp))(np.stack([i, i]), np.stack([j, i]))
    np.testing.assert_allclose(lanes[0], expected)
    np.testing.assert_allclose(lanes[1], applied_in_turn(M23, (i, i), np.exp))
    known = fg.grad(lambda x: np.sin(at(x)[i, j].apply(np.exp)).sum())(M23)
    slope = fg.jit(fg.grad(lambda x, i, j: np.sin(x.at[i, j].apply(np.exp)).sum()))(M23, i, j)
    np.testing.assert_allclose(slope, known)


def test_apply_beyond_the_array() -> None:
    x = np.array([2.0, 3.0])
    np.testing.assert_array_equal(at(x)[[0, 0, 7]].apply(np.square, mode="drop"), [16, 3])
    np.testing.assert_array_equal(at(x)[[0, 7, 7]].apply(np.square, mode="clip"), [4, 81])
    np.testing.assert_array_equal(traced(lambda x: x.at[np.array([0, 0])].power(2), x), [16, 3])
    np.testing.assert_array_equal(at(x)[[0, 0]].power(np.array([2.0, 3.0])), [64, 3])
    once = at(x)[[0, 1]].apply(np.square, unique_indices=True)
    np.testing.assert_array_equal(once, [4, 9])


def test_power_and_apply() -> None:
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(traced(lambda x: x.at[1:].power(2), x), [1, 4, 9])
    np.testing.assert_allclose(traced(lambda x: x.at[[0]].apply(np.exp), x), [np.e, 2, 3])


def test_aliases() -> None:
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(at(x)[0].sub(3.0), at(x)[0].subtract(3.0))
    np.testing.assert_array_equal(at(x)[0].mul(3.0), at(x)[0].multiply(3.0))


def test_values_take_the_dtype_of_the_array() -> None:
    x = np.zeros(3, np.float32)
    assert at(x)[0].set(1).dtype == np.float32
    assert at(x)[0].set(np.float64(1)).dtype == np.float32
    assert at(np.zeros(3, np.uint8))[0].add(np.int64(1)).dtype == np.uint8


# Messages.


def raised(error: type[Exception], function: Any, *args: Any) -> str:
    with pytest.raises(error) as info:
        fg.jvp(function, args or (np.ones(3),), args or (np.ones(3),))
    return str(info.value)


def test_known_indices_out_of_bounds_are_errors() -> None:
    assert "index 3 is out of bounds for axis 0 of f64[3]" in raised(
        OutOfBoundsError, lambda x: x[3]
    )
    assert "element [1]" in raised(OutOfBoundsError, lambda x: x[[0, -4]])
    assert "-3 to 2" in raised(IndexError, lambda x: x.at[5].set(1.0))


def test_too_many_indices() -> None:
    assert "1 axes, 2 were indexed" in raised(IndexError, lambda x: x[0, 0])
    assert "single ellipsis" in raised(IndexError, lambda x: x[..., ...])


def test_masks_of_the_wrong_shape() -> None:
    message = raised(IndexError, lambda x: x[np.array([True])])
    assert "shape (1,)" in message
    assert "test_indexing.py" in message


@pytest.mark.parametrize("index", ["a", 1.5])
def test_what_is_no_index(index: Any) -> None:
    message = raised(IndexError, lambda x: x[index])
    assert "only integers, slices" in message
    assert f"a {type(index).__name__}" in message


def test_traced_masks_say_what_to_do_instead() -> None:
    with pytest.raises(NonConcreteBooleanIndexError) as info:
        fg.make_jaxpr(lambda x: x[x > 0])(np.ones(3))
    assert "bool[3]" in str(info.value)
    assert "test_indexing.py" in str(info.value)
    assert "np.where(mask, x, other)" in str(info.value)


def test_masks_are_concrete_in_eager_gradients() -> None:
    x = np.array([1.0, -2.0, 3.0])
    np.testing.assert_array_equal(fg.grad(lambda x: x[x > 0].sum())(x), [1, 0, 1])


def test_traced_slice_bounds_name_dynamic_slice() -> None:
    with pytest.raises(IndexTypeError, match=re.escape("lax.dynamic_slice")):
        fg.make_jaxpr(lambda x, n: x[:n])(np.ones(3), 2)


def test_traced_float_index() -> None:
    with pytest.raises(IndexError, match=re.escape(".astype(int)")):
        fg.make_jaxpr(lambda x, i: x[i])(np.ones(3), 1.0)


def test_update_that_loses_information() -> None:
    message = raised(DtypeError, lambda x: x.at[0].set(1j))
    assert "~c128[] does not fit into f64[3]" in message
    assert "x.astype(np.complex128)" in message


def test_update_of_the_wrong_shape() -> None:
    message = raised(ShapeError, lambda x: x.at[:2].set(np.ones(3)))
    assert "shape (2,)" in message
    assert "(3,)" in message


def test_unknown_mode() -> None:
    with pytest.raises(ArgumentError, match="mode must be one of"):
        at(np.ones(3))[0].set(1.0, mode="ignore")


def test_fill_value_of_a_write() -> None:
    with pytest.raises(ArgumentError, match="no fill_value"):
        at(np.ones(3))[0].set(1.0, fill_value=0.0)
