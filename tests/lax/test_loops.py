"""`scan`, `while_loop`, `fori_loop`, `map`: what they accept, return, and refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad import errors, lax
from tests.higher_order import plain

X = np.arange(3.0)


def same(actual: Any, expected: Any) -> None:
    """Equal structures, types and values."""
    assert fg.tree.structure(actual) == fg.tree.structure(expected)
    for a, e in zip(fg.tree.leaves(actual), fg.tree.leaves(expected), strict=True):
        assert np.asarray(a).dtype == np.asarray(e).dtype
        np.testing.assert_array_equal(a, e)


def everywhere(f: Any, *args: Any) -> list[Any]:
    """Results eagerly, compiled, and interpreted."""
    with fg.disable_jit():
        interpreted = f(*args)
    return [f(*args), fg.jit(f)(*args), interpreted]


# scan: shapes, structures, types.


def test_partial_sums():
    for carry, ys in everywhere(lambda xs: lax.scan(lambda c, x: (c + x, c * x), 10.0, xs), X):
        same((carry, ys), (np.float64(13.0), np.array([0.0, 10.0, 22.0])))


def test_reverse_keeps_places():
    def f(xs: Any) -> Any:
        return lax.scan(lambda c, x: (c + x, c), 0.0, xs, reverse=True)

    for result in everywhere(f, X):
        same(result, (np.float64(3.0), np.array([3.0, 2.0, 0.0])))


def test_trees_with_none():
    def step(c: Any, x: Any) -> Any:
        total, (none, n) = c["t"], c["n"]
        return {"t": total + x["a"] * x["b"][0], "n": (none, n + 1)}, [None, (x["a"], n)]

    init = {"t": np.zeros(2), "n": (None, 0)}
    xs = {"a": X, "b": (np.arange(6.0).reshape(3, 2), None)}
    expected_ys = [None, (X, np.arange(3))]
    for result in everywhere(lambda i, x: lax.scan(step, i, x), init, xs):
        same(result, ({"t": np.array([10.0, 13.0]), "n": (None, np.int64(3))}, expected_ys))


def test_length_without_arrays():
    def f(c: Any) -> Any:
        return lax.scan(lambda c, x: (2 * c, (c, x)), c, length=3)

    for result in everywhere(f, 1.5):
        same(result, (np.float64(12.0), (np.array([1.5, 3.0, 6.0]), None)))
    same(lax.scan(lambda c, x: (c + x, None), 0.0, X, length=np.int32(3))[0], np.float64(3.0))


def test_no_steps():
    def f(c: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (c * x, {"y": x + c}), c, xs)

    for result in everywhere(f, np.ones(2), np.zeros((0, 2), np.float32)):
        same(result, (np.ones(2), {"y": np.zeros((0, 2))}))
    same(lax.scan(lambda c, _: (c, c), 1, length=0), (np.int64(1), np.zeros(0, int)))
    slope = fg.grad(lambda c: f(c, np.zeros((0, 2)))[0].sum())(np.ones(2))
    same(slope, np.ones(2))
    same(fg.grad(lambda x: f(np.ones(2), x)[0].sum())(np.zeros((0, 2))), np.zeros((0, 2)))


def test_empty_carry_and_nothing_returned():
    for result in everywhere(lambda xs: lax.scan(lambda c, x: ((), x * 2), (), xs), X):
        same(result, ((), X * 2))
    same(lax.scan(lambda c, x: (None, None), None, X), (None, None))


@pytest.mark.parametrize(
    ("init", "step"),
    [
        (np.int8(1), lambda c, x: (c * np.int8(2), c > 2)),
        (np.uint64(1), lambda c, x: (c << np.uint64(40), c)),
        (True, lambda c, x: (~c, c)),
        (np.float32(0.5), lambda c, x: (c * 2, c)),
        (np.complex64(1 + 1j), lambda c, x: (c * 1j, c.real)),
        (1j, lambda c, x: (c * x, c)),
    ],
    ids=["int8", "uint64", "bool", "float32", "complex64", "complex128"],
)
def test_types_of_carries(init, step):
    carry, ys = init, []
    for x in X:
        carry, y = step(np.asarray(carry)[()], x)
        ys.append(y)
    for result in everywhere(lambda c, xs: lax.scan(step, c, xs), np.asarray(init)[()], X):
        same(result, (carry, np.stack(ys)))


def test_python_numbers_take_the_type_that_is_returned():
    for result in everywhere(lambda: lax.scan(lambda c, x: (c + x, None), 0, X)[0]):
        same(result, np.float64(3.0))
    # In two rounds: the second value becomes complex, then the first does.
    carry, _ = lax.scan(lambda c, x: ((c[0] + c[1], c[1] * 1j), None), (0, 1), X)
    same(carry, (np.complex128(1j), np.complex128(-1j)))
    single = lax.scan(lambda c, x: (c * x, None), 1, X.astype(np.float32))[0]
    same(single, np.float32(0.0))
    same(lax.scan(lambda c, x: (c + 1, None), 0, X)[0], np.int64(3))
    same(lax.while_loop(lambda c: c < 3, lambda c: c * 1.5, 1), np.float64(3.375))
    same(lax.fori_loop(0, 3, lambda i, c: c + i.astype(np.float32), 0), np.float32(3))


def test_closures_over_tracers_and_arrays():
    w = np.arange(9.0).reshape(3, 3)

    def f(a: Any, b: Any) -> Any:
        return lax.scan(lambda c, x: (c + a * np.dot(w @ b, b) * x, None), a, X)[0]

    a, b = 2.0, np.array([1.0, -1.0, 0.5])
    expected = a + 3 * a * (b @ w @ b)
    for result in everywhere(f, a, b):
        np.testing.assert_allclose(result, expected)
    slopes = fg.jit(fg.grad(f, (0, 1)))(a, b)
    np.testing.assert_allclose(slopes[0], 1 + 3 * b @ w @ b)
    np.testing.assert_allclose(slopes[1], 3 * a * (w + w.T) @ b)


def test_results_are_own_arrays():
    """Writing into a result changes neither arguments nor other results."""
    init, xs = np.ones(2), np.ones((3, 2))
    carry, (first, second) = lax.scan(lambda c, x: (c, (x, x)), init, xs)
    for result in (carry, first):
        if result.flags.writeable:
            result[...] = 7.0
    np.testing.assert_array_equal(init, np.ones(2))
    np.testing.assert_array_equal(xs, np.ones((3, 2)))
    np.testing.assert_array_equal(second, np.ones((3, 2)))


def test_body_is_traced_a_fixed_number_of_times():
    calls = []

    def step(c: Any, x: Any) -> Any:
        calls.append(0)
        return c + x, None

    lax.scan(step, 0.0, np.arange(1000.0))
    assert len(calls) <= 2


# Derivatives by arguments that are not floats, of complex numbers, in single precision.


def test_integers_have_no_derivatives():
    def f(x: Any, n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, y: y * x + i, 1.0)

    np.testing.assert_allclose(fg.grad(f)(2.0, 3), 12.0 + 1.0)
    np.testing.assert_allclose(fg.jit(fg.grad(f))(2.0, 3), 12.0 + 1.0)
    slope = fg.grad(f, 1, allow_int=True)(2.0, 3)
    assert slope.dtype == fg.float0


def test_complex_carries():
    def f(z: Any) -> Any:
        return lax.scan(lambda c, x: (c * z + x, None), z, X)[0]

    z = 0.6 - 0.3j
    # z^4 + z + 2
    np.testing.assert_allclose(f(z), z**4 + z + 2)
    np.testing.assert_allclose(fg.grad(f, holomorphic=True)(z), 4 * z**3 + 1)
    second = fg.grad(fg.grad(f, holomorphic=True), holomorphic=True)
    np.testing.assert_allclose(fg.jit(second)(z), 12 * z**2)


def test_single_precision():
    def f(x: Any) -> Any:
        return lax.while_loop(lambda y: y < 100, lambda y: y * x, np.float32(1))

    for result in (fg.grad(f)(np.float32(3)), fg.jit(fg.grad(f))(np.float32(3))):
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, 5 * 3.0**4, rtol=1e-6)


# while_loop and fori_loop.


def test_while_with_trees():
    def f(limit: Any) -> Any:
        return lax.while_loop(
            lambda s: (s["n"] < limit) & (s["y"][0] < 100),
            lambda s: {"n": s["n"] + 1, "y": (s["y"][0] * 3, None)},
            {"n": 0, "y": (1.0, None)},
        )

    for result in everywhere(f, 3):
        same(result, {"n": np.int64(3), "y": (np.float64(27.0), None)})
    same(f(50)["n"], np.int64(5))


def test_while_without_a_step_returns_copies():
    start = np.ones(2)
    result = lax.while_loop(lambda y: y.sum() < 0, lambda y: y, start)
    assert result is not start
    assert not np.shares_memory(result, start)


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (0, 4, [0, 1, 2, 3]),
        (-2, 1, [-2, -1, 0]),
        (3, 3, []),
        (5, 2, []),
        (np.int8(1), np.int8(3), [1, 2]),
        (np.uint8(250), 255, [250, 251, 252, 253, 254]),
    ],
)
def test_ranges(lower, upper, expected):
    def f(lower: Any, upper: Any) -> Any:
        return lax.fori_loop(lower, upper, lambda i, s: (s[0] * 10 + i, s[1] + 1), (np.int64(0), 0))

    total = 0
    for i in expected:
        total = total * 10 + i
    for result in (f(lower, upper), fg.jit(f)(lower, upper)):
        assert result[1] == len(expected)
        assert result[0] == total


def test_index_has_the_type_of_the_bounds():
    seen = []

    def body(i: Any, y: Any) -> Any:
        seen.append(fg.eval_shape(lambda j: j, i).dtype)
        return y

    lax.fori_loop(np.int32(0), 3, body, 0.0)
    fg.jit(lambda n: lax.fori_loop(0, n, body, 0.0))(np.int16(3))
    assert set(seen) == {np.dtype(np.int32), np.dtype(np.int16)}


def test_batched_bounds():
    power = fg.vmap(lambda x, n: lax.fori_loop(0, n, lambda i, y: y * x, 1.0))
    xs, ns = np.array([2.0, 3.0, 0.5]), np.array([3, 0, 5])
    np.testing.assert_allclose(power(xs, ns), xs**ns)
    slopes = fg.vmap(fg.grad(lambda x, n: lax.fori_loop(0, n, lambda i, y: y * x, 1.0)))(xs, ns)
    np.testing.assert_allclose(slopes, ns * xs ** np.maximum(ns - 1, 0))


# map.


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 5, 7])
def test_batches(batch_size):
    xs = {"a": np.arange(5.0), "b": np.arange(10).reshape(5, 2)}

    def f(xs: Any) -> Any:
        return lax.map(
            lambda x: (x["a"] + x["b"].sum(), x["b"] > 3, None), xs, batch_size=batch_size
        )

    expected = (xs["a"] + xs["b"].sum(1), xs["b"] > 3, None)
    for result in everywhere(f, xs):
        same(result, expected)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_map_over_nothing(batch_size):
    same(lax.map(lambda x: x * 2.0, np.zeros((0, 3)), batch_size=batch_size), np.zeros((0, 3)))


def test_map_of_constants():
    same(lax.map(lambda x: 1.5, X, batch_size=2), np.full(3, 1.5))
    same(lax.map(lambda x: 1.5, X), np.full(3, 1.5))


# Loops that are written at random.

STEPS = {
    "sum": lambda c, x, w: c + x,
    "product": lambda c, x, w: c * w + 0.3,
    "sine": lambda c, x, w: np.sin(c * x),
    "mean": lambda c, x, w: (c + w * w) / 2,
    "exponential": lambda c, x, w: np.exp(-c * c) * x,
}
BLOCKS = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4)


def random_loop(names: list[str], length: int, reverse: bool, use_xs: bool) -> Any:
    """From control flow and a vector to a number."""

    def f(control: Any, v: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            new = c["c"]
            for name in names:
                new = STEPS[name](new, c["w"] if x is None else x, v[1])
            return {"c": new, "w": c["w"] * v[0]}, new * v[2]

        xs = np.cos(np.arange(length)) * v[2] if use_xs else None
        carry, ys = control.scan(step, {"c": v[0], "w": v[1]}, xs, length, reverse=reverse)
        return carry["c"] + carry["w"] + (ys * np.arange(1.0, length + 1)).sum()

    return f


@given(BLOCKS, st.integers(1, 5), st.booleans(), st.booleans())
def test_random_bodies(names, length, reverse, use_xs):
    loop = random_loop(names, length, reverse, use_xs)
    point = np.array([0.7, -0.4, 1.2])
    points = np.stack([point, point[::-1]])
    expected = loop(plain, point)
    slope = plain.jacobian(lambda v: loop(plain, v), point)

    def f(v: Any) -> Any:
        return loop(lax, v)

    np.testing.assert_allclose(fg.jit(f)(point), expected, rtol=1e-12, atol=1e-12)
    with fg.disable_jit():
        np.testing.assert_allclose(f(point), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(fg.grad(f)(point), slope, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(fg.jacfwd(f)(point), slope, rtol=1e-11, atol=1e-11)
        over_lanes = fg.vmap(fg.grad(f))(points)
        np.testing.assert_allclose(over_lanes[0], slope, rtol=1e-11, atol=1e-11)


# Mistakes.


def vector(c: Any, x: Any) -> Any:
    return {"p": c["p"], "q": (c["q"][0] + X,)}, x


MISTAKES = {
    "structure of a carry": (
        lambda: lax.scan(lambda c, x: ({"a": c}, x), 1.0, X),
        errors.TreeError,
        "scan(<lambda>): the carry must keep its structure.",
        "  initially     PyTreeDef(*)\n  returned      PyTreeDef({'a': *})",
    ),
    "shape of a carry": (
        lambda: lax.scan(vector, {"p": 1.0, "q": (2.0,)}, X),
        errors.ShapeError,
        "scan(vector): the carry must keep its types.",
        "  `init['q'][0]`: f64[] initially, f64[3] returned\n  changed at    test_loops.py:",
    ),
    "dtype of a carry": (
        lambda: lax.scan(lambda c, x: (c + 0.5, x), np.int32(1), X),
        errors.ShapeError,
        "the carry must keep its types",
        "  `init`: i32[] initially, f64[] returned\n  changed at    test_loops.py:",
    ),
    "no pair": (
        lambda: lax.scan(lambda c, x: c + X, 1.0, X),
        errors.TreeError,
        "must return a pair (carry, y), got f64[3].",
        "\nReturn `carry, None` if there is nothing to stack.",
    ),
    "nothing": (
        lambda: lax.scan(lambda c, x: None, 1.0, X),
        errors.TreeError,
        "must return a pair (carry, y), got None.",
        "\nReturn `carry, None`",
    ),
    "three results": (
        lambda: lax.scan(lambda c, x: (c, x, x), 1.0, X),
        errors.TreeError,
        "must return a pair (carry, y), got a tuple of 3.",
        "\nReturn `carry, None`",
    ),
    "no axis": (
        lambda: lax.scan(lambda c, x: (c, x), 1.0, {"a": X, "b": 2.0}),
        errors.ShapeError,
        "`xs['b']` is ~f64[], which has no axis to scan over.",
        "\nClose over what is the same in all steps. A list of numbers is a pytree: make it an",
    ),
    "lengths": (
        lambda: lax.scan(lambda c, x: (c, x[0]), 1.0, {"a": X, "b": np.ones(4)}),
        errors.ShapeError,
        "`xs['b']` has length 4, but `xs['a']` has length 3.",
        "\nAll arrays of xs need equal leading lengths.",
    ),
    "length and arrays": (
        lambda: lax.scan(lambda c, x: (c, x), 1.0, X, length=5),
        errors.ShapeError,
        "`xs` has length 3, but length=5 was given.",
        "\nAll arrays of xs",
    ),
    "no length": (
        lambda: lax.scan(lambda c, x: (c, x), 1.0),
        errors.ArgumentError,
        "xs has no arrays, so the number of steps is unknown.",
        "\nPass length=...",
    ),
    "negative length": (
        lambda: lax.scan(lambda c, x: (c, x), 1.0, length=-1),
        errors.ArgumentError,
        "`length` must be at least 0, got -1.",
        "",
    ),
    "length that is no integer": (
        lambda: lax.scan(lambda c, x: (c, x), 1.0, length=3.0),
        errors.ArgumentError,
        "`length` must be an integer, got 3.0.",
        "",
    ),
    "text in a carry": (
        lambda: lax.scan(lambda c, x: (c, x), {"k": "a"}, X),
        errors.DtypeError,
        "scan(<lambda>): `init['k']` is a str, which is neither an array nor a number.",
        "\nPass numbers, arrays or pytrees of them, and close over anything else.",
    ),
    "text among results": (
        lambda: lax.scan(lambda c, x: (c, [x, "y"]), 1.0, X),
        errors.DtypeError,
        "scan(<lambda>): `result[1][1]` is a str",
        "\nReturn numbers, arrays or pytrees of them.",
    ),
    "no function": (
        lambda: lax.scan(3, 1.0, X),
        errors.ArgumentError,
        "scan(int): `f` must be a function, got an int.",
        "\nWrap values in a function",
    ),
    "structure in while_loop": (
        lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: [c[0] + 1, c[1]], (0, 1.0)),
        errors.TreeError,
        "while_loop(<lambda>): the carry must keep its structure.",
        "  initially     PyTreeDef((*, *))\n  returned      PyTreeDef([*, *])",
    ),
    "types in while_loop": (
        lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * X), (0, 1.0)),
        errors.ShapeError,
        "while_loop(<lambda>): the carry must keep its types.",
        "  `init_val[1]`: f64[] initially, f64[3] returned",
    ),
    "condition with axes": (
        lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1, X),
        errors.ShapeError,
        "<lambda> must return one bool, got bool[3].",
        "\nReduce it with .any() or .all(), or compare numbers: x != 0.",
    ),
    "condition that is a number": (
        lambda: lax.while_loop(lambda c: c, lambda c: c - 1, 1.0),
        errors.ShapeError,
        "<lambda> must return one bool, got f64[].",
        "\nReduce it",
    ),
    "condition that is a pair": (
        lambda: lax.while_loop(lambda c: (c < 3, c < 4), lambda c: c + 1, 1.0),
        errors.ShapeError,
        "<lambda> must return one bool, got PyTreeDef((*, *)).",
        "\nReduce it",
    ),
    "checkpoints": (
        lambda: lax.while_loop(lambda c: c < 1, lambda c: c + 1, 0.0, max_checkpoints=0),
        errors.ArgumentError,
        "`max_checkpoints` must be at least 1, got 0.",
        "",
    ),
    "float bounds": (
        lambda: lax.fori_loop(0, 3.5, lambda i, v: v, 1.0),
        errors.DtypeError,
        "fori_loop(<lambda>): `upper` must be an integer, got ~f64[].",
        "\nConvert it with int(...) or .astype(int).",
    ),
    "bounds with axes": (
        lambda: lax.fori_loop(np.arange(3), 3, lambda i, v: v, 1.0),
        errors.ShapeError,
        "fori_loop(<lambda>): `lower` must be a scalar, got i64[3].",
        "",
    ),
    "structure in fori_loop": (
        lambda: lax.fori_loop(0, 3, lambda i, v: (v, v), 1.0),
        errors.TreeError,
        "fori_loop(<lambda>): the carry must keep its structure.",
        "  initially     PyTreeDef(*)\n  returned      PyTreeDef((*, *))",
    ),
    "types in fori_loop": (
        lambda: fg.jit(lambda n: lax.fori_loop(0, n, lambda i, v: {"a": v["a"] + X}, {"a": 1.0}))(
            3
        ),
        errors.ShapeError,
        "fori_loop(<lambda>): the carry must keep its types.",
        "  `init_val['a']`: f64[] initially, f64[3] returned",
    ),
    "map of nothing": (
        lambda: lax.map(lambda x: x, None),
        errors.ArgumentError,
        "map(<lambda>): xs has no arrays, so the number of steps is unknown.",
        "",
    ),
    "lengths in map": (
        lambda: lax.map(lambda x: x, (X, np.ones(4)), batch_size=2),
        errors.ShapeError,
        "map(<lambda>): `xs[1]` has length 4, but `xs[0]` has length 3.",
        "\nAll arrays of xs",
    ),
    "batch_size": (
        lambda: lax.map(lambda x: x, X, batch_size=0),
        errors.ArgumentError,
        "map(<lambda>): `batch_size` must be at least 1, got 0.",
        "",
    ),
    "text in map": (
        lambda: lax.map(lambda x: {"k": "x"}, X, batch_size=2),
        errors.DtypeError,
        "map(<lambda>): `result['k']` is a str",
        "\nReturn numbers",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    run, kind, problem, cure = MISTAKES[name]
    with pytest.raises(kind) as caught:
        run()
    text = str(caught.value)
    assert problem in text
    assert "\n  at            test_loops.py:" in text
    assert cure in text
    assert text.strip() == text


def test_the_line_that_changes_a_type_is_named():
    def step(total, x):
        y = 2 * x
        total = total - np.log(16)  # a float64
        return 2 * total + y, y

    with pytest.raises(errors.ShapeError) as caught:
        lax.scan(step, np.float32(0), np.ones(3, np.float32))
    (line,) = (x for x in str(caught.value).splitlines() if x.startswith("  changed at"))
    assert line.endswith("total = total - np.log(16)  # a float64")


def test_traced_lengths():
    with pytest.raises(errors.TracerIntegerConversionError, match="static argument"):
        fg.jit(lambda n: lax.scan(lambda c, x: (c, x), 1.0, length=n))(3)


def test_python_conditions_in_bodies():
    with pytest.raises(errors.TracerBoolConversionError, match=r"inside while_loop\(<lambda>\)"):
        lax.while_loop(lambda c: c < 1 and c > 0, lambda c: c + 1, 0.0)
    with pytest.raises(errors.TracerBoolConversionError, match=r"lax\.cond"):
        lax.scan(lambda c, x: (c if x > 0 else -c, None), 1.0, X)


@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["eager", "jit"])
def test_indices_between_python_numbers_promote_as_in_python(wrap):
    x = np.float32(2.0)
    assert wrap(lambda x: lax.fori_loop(0, 3, lambda i, c: c + i * x, 0.0))(x).dtype == np.float32
    traced = wrap(lambda x, n: lax.fori_loop(0, n, lambda i, c: c + i * x, x))(x, 3)
    assert (traced, traced.dtype) == (8.0, np.float32)
    index = wrap(lambda n: lax.fori_loop(0, n, lambda i, c: i, 0))(3)
    assert (index, index.dtype) == (2, np.int64)
    strong = wrap(lambda x: lax.fori_loop(np.int64(0), 3, lambda i, c: c + i * x, 0.0))(x)
    assert strong.dtype == np.float64


WEAK_FORMULAS = {
    "i * 0.1": lambda i: i * 0.1,
    "0.1 * i": lambda i: 0.1 * i,
    "i / 2": lambda i: i / 2,
    "1 / (i + 1)": lambda i: 1 / (i + 1),
    "0.5 ** i": lambda i: 0.5**i,
    "i ** 0.5": lambda i: i**0.5,
    "i ** 2": lambda i: i**2,
    "i // 2 + i % 2": lambda i: i // 2 + i % 2,
    "i // 1.5": lambda i: i // 1.5,
    "-i * 0.1": lambda i: -i * 0.1,
    "abs(i - 2)": lambda i: abs(i - 2),
    "i * True": lambda i: i * True,
    "1 - 0.9 ** (i + 1)": lambda i: 1 - 0.9 ** (i + 1),
    "i * 0.5 + i * 2 - 1": lambda i: i * 0.5 + i * 2 - 1,
}


@pytest.mark.sampled(24)
@pytest.mark.parametrize("formula", WEAK_FORMULAS.values(), ids=WEAK_FORMULAS)
def test_counters_are_weak_as_python_s(formula: Any):
    x = np.linspace(0.5, 1.5, 3, dtype=np.float32)
    expected = x
    for i in range(4):
        expected = expected + x * formula(i)
    loops = {
        "fori_loop": lambda x: lax.fori_loop(0, 4, lambda i, c: c + x * formula(i), x),
        "fori_loop, traced end": lambda x, n: lax.fori_loop(
            0, n, lambda i, c: c + x * formula(i), x
        ),
        "while_loop": lambda x: lax.while_loop(
            lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] + x * formula(c[0])), (0, x)
        )[1],
        "scan": lambda x: lax.scan(
            lambda c, _: ((c[0] + 1, c[1] + x * formula(c[0])), None), (0, x), None, length=4
        )[0][1],
        "unrolled": lambda x, n: sum((x * formula(n - k) for k in range(4, 0, -1)), x),
    }
    for name, loop in loops.items():
        args = (x, 4) if "traced" in name or name == "unrolled" else (x,)
        for run in (fg.jit(loop), *([] if name == "unrolled" else [loop])):
            got = run(*args)
            assert got.dtype == np.float32, name
            np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=name)
        in_axes = (0, None)[: len(args)]
        assert fg.jit(fg.vmap(loop, in_axes))(*args).dtype == np.float32, name
        slope = fg.jit(fg.grad(lambda *a, loop=loop: loop(*a).sum()))(*args)
        assert slope.dtype == np.float32, name
        np.testing.assert_allclose(slope, expected / x, rtol=1e-6, err_msg=name)


def test_carried_numbers_become_arrays_of_their_own_dtype_at_the_end():
    for function in (
        lambda: lax.fori_loop(0, 3, lambda i, c: c + i, 0),
        lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0),
    ):
        for run in (function, fg.jit(function)):
            assert (run(), run().dtype) == (3, np.int64)
    x = np.ones(2, np.float32)
    for run in (lambda f: f, fg.jit):
        total = run(lambda x: x * lax.fori_loop(0, 3, lambda i, c: c * 0.5, 1.0))(x)
        assert total.dtype == np.float64  # a result of a loop is an array, in every mode


def test_arrays_of_other_dtypes_are_refused_by_their_dtype():
    with pytest.raises(errors.DtypeError, match=r"`xs`: .* float16 has no arithmetic on CPUs"):
        lax.scan(lambda c, x: (c + x, None), 0.0, np.ones(2, np.float16))


def test_tracers_of_steps_are_named_for_the_function_of_the_user():
    def add(c: Any, x: Any) -> Any:
        return float(c) + x, None

    with pytest.raises(errors.FuncgradError, match=r"argument 0 of add"):
        lax.scan(add, 0.0, X)


def test_printed_derivatives_of_loops_show_the_loop():
    slope = fg.grad(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * x, x))
    text = str(fg.make_jaxpr(slope)(2.0))
    assert "while_pull[loop=while]" in text
    assert "loop.body:" in text
    assert "object at" not in text
