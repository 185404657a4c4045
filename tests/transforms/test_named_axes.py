"""Collectives under vmap, against NumPy on the array of all lanes and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.api.custom import custom_vjp
from funcgrad.errors import ArgumentError, AxisNameError, ShapeError
from funcgrad.lax.loops import scan, while_loop

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3, 2))
SQUARE = RNG.normal(size=(4, 4, 3))
LONG = RNG.normal(size=(4, 8, 3))

MODES = {
    "eager": lambda f, **kw: fg.vmap(f, axis_name="i", **kw),
    "jit inside": lambda f, **kw: fg.vmap(fg.jit(f), axis_name="i", **kw),
    "jit outside": lambda f, **kw: fg.jit(fg.vmap(f, axis_name="i", **kw)),
    "jit around jit": lambda f, **kw: fg.jit(fg.vmap(fg.jit(f), axis_name="i", **kw)),
}


def every_lane(value):
    return np.broadcast_to(value, (4, *np.shape(value)))


def swapped(x, split, concat):
    """all_to_all, lane by lane."""
    return np.stack(
        [np.stack([np.take(x[k], j, split) for k in range(len(x))], concat) for j in range(len(x))]
    )


def swapped_tiled(x, split, concat):
    parts = [np.split(lane, len(x), split) for lane in x]
    return np.stack(
        [np.concatenate([parts[k][j] for k in range(len(x))], concat) for j in range(len(x))]
    )


ROWS = {
    "psum": (lambda x: lax.psum(x, "i"), X, every_lane(X.sum(0))),
    "pmean": (lambda x: lax.pmean(x, "i"), X, every_lane(X.mean(0))),
    "pmax": (lambda x: lax.pmax(x, "i"), X, every_lane(X.max(0))),
    "pmin": (lambda x: lax.pmin(x, "i"), X, every_lane(X.min(0))),
    "psum of bools": (lambda x: lax.psum(x > 0, "i"), X, every_lane((X > 0).sum(0))),
    "all_gather": (lambda x: lax.all_gather(x, "i"), X, every_lane(X)),
    "all_gather behind": (
        lambda x: lax.all_gather(x, "i", axis=-1),
        X,
        every_lane(np.moveaxis(X, 0, -1)),
    ),
    "all_gather tiled": (
        lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
        X,
        every_lane(np.concatenate(list(X), 1)),
    ),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), SQUARE, SQUARE.sum(0)),
    "psum_scatter tiled": (
        lambda x: lax.psum_scatter(x, "i", tiled=True),
        LONG,
        LONG.sum(0).reshape(4, 2, 3),
    ),
    "axis_index": (lambda x: x * lax.axis_index("i"), X, X * np.arange(4.0)[:, None, None]),
    "ppermute": (
        lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (3, 0)]),
        X,
        np.stack([X[3], X[0], X[1], 0 * X[0]]),
    ),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [3, 1, 0, 2]), X, X[[3, 1, 0, 2]]),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 1), SQUARE, swapped(SQUARE, 0, 1)),
    "all_to_all tiled": (
        lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
        LONG,
        swapped_tiled(LONG, 0, 1),
    ),
    "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 0), SQUARE, np.swapaxes(SQUARE, 0, 1)),
}
SMOOTH = [name for name in ROWS if name not in ("psum of bools",)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ROWS)
def test_values(name, mode):
    f, x, expected = ROWS[name]
    np.testing.assert_allclose(MODES[mode](f)(x), expected, rtol=1e-13)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_around_the_map_agree_with_finite_differences(name):
    f, x, expected = ROWS[name]
    weights = RNG.normal(size=expected.shape)

    def loss(x):
        return (fg.vmap(f, axis_name="i")(x) * weights).sum()

    direction = RNG.normal(size=x.shape)
    h = 1e-6
    slope = (loss(x + h * direction) - loss(x - h * direction)) / (2 * h)
    np.testing.assert_allclose((fg.grad(loss)(x) * direction).sum(), slope, rtol=1e-6)
    np.testing.assert_allclose(fg.jvp(loss, (x,), (direction,))[1], slope, rtol=1e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_inside_the_map_are_those_of_the_sum_of_all_losses(name, mode):
    # The cotangent of what a lane sends is what all lanes that received it send back.
    f, x, expected = ROWS[name]
    weights = RNG.normal(size=expected.shape)
    inside = MODES[mode](fg.grad(lambda x, w: (f(x) * w).sum()))(x, weights)
    around = fg.grad(lambda x: (fg.vmap(f, axis_name="i")(x) * weights).sum())(x)
    np.testing.assert_allclose(inside, around, rtol=1e-12)


def test_extremes_share_the_derivative_among_ties():
    x = np.array([1.0, 3.0, 3.0])
    g = fg.grad(lambda x: fg.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(x)[0])(x)
    np.testing.assert_array_equal(g, [0.0, 0.5, 0.5])


@pytest.mark.parametrize("mode", MODES)
def test_values_that_are_equal_in_all_lanes(mode):
    run = MODES[mode](
        lambda x, c: (
            lax.psum(c, "i"),
            lax.pmax(c, "i"),
            lax.all_gather(c, "i"),
            lax.psum_scatter(c, "i"),
            lax.psum(2, "i"),
        ),
        in_axes=(0, None),
        out_axes=(None, None, None, 0, None),
    )
    c = np.arange(4.0)
    out = run(np.zeros(4), c)
    expected = (4 * c, c, np.stack([c] * 4), 4 * c, 8)
    for a, b in zip(out, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_sum_of_a_constant_is_a_python_int():
    seen = []
    fg.vmap(lambda x: seen.append((lax.psum(1, "i"), lax.axis_size("i"))) or x, axis_name="i")(
        np.zeros(5)
    )
    assert seen == [(5, 5)]
    assert type(seen[0][0]) is int


def test_pytrees_and_dtypes():
    x = {"a": np.ones(3, np.float32), "b": (np.arange(3, dtype=np.int16),)}
    out = fg.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(x)
    assert out["a"].dtype == np.float32
    assert out["b"][0].dtype == np.int16
    np.testing.assert_array_equal(out["b"][0], [3, 3, 3])
    assert fg.vmap(lambda x: lax.axis_index("i"), axis_name="i")(np.ones(2)).dtype == np.int32


def nested(f):
    return fg.vmap(fg.vmap(f, axis_name="j"), axis_name="i")


TWO = {
    "both sums": (lambda x: lax.psum(x, ("i", "j")), lambda x: x.sum((0, 1))[None, None]),
    "outer sum": (lambda x: lax.psum(x, "i"), lambda x: x.sum(0)[None]),
    "inner mean": (lambda x: lax.pmean(x, "j"), lambda x: x.mean(1)[:, None]),
    "outer gather": (lambda x: lax.all_gather(x, "i"), lambda x: np.moveaxis(x, 0, 1)[None]),
    "both gathers": (
        lambda x: lax.all_gather(x, ("i", "j")),
        lambda x: x.reshape(12, 2)[None, None],
    ),
    "both tiled": (
        lambda x: lax.all_gather(x, ("i", "j"), tiled=True),
        lambda x: x.reshape(24)[None, None],
    ),
    "index": (
        lambda x: x + lax.axis_index(("i", "j")),
        lambda x: x + np.arange(12).reshape(4, 3, 1),
    ),
    "outer exchange": (
        lambda x: lax.ppermute(x, "i", [(k, (k + 1) % 4) for k in range(4)]),
        lambda x: np.roll(x, 1, 0),
    ),
}


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("compiled", [False, True])
def test_two_names(name, compiled):
    f, reference = TWO[name]
    run = nested(fg.jit(f)) if compiled else nested(f)
    out = (fg.jit(run) if compiled else run)(X)
    np.testing.assert_allclose(out, np.broadcast_to(reference(X), out.shape), rtol=1e-13)


def test_an_inner_axis_hides_an_outer_one_of_the_same_name():
    run = fg.vmap(fg.vmap(lambda x: lax.psum(x, "i"), axis_name="i"), axis_name="i")
    np.testing.assert_allclose(run(X), np.broadcast_to(X.sum(1)[:, None], X.shape))


def test_nameless_maps_in_between():
    run = fg.vmap(fg.vmap(lambda x: lax.all_gather(x, "i", axis=1)), axis_name="i")
    expected = np.broadcast_to(np.moveaxis(X, 0, -1), (4, 3, 2, 4))
    np.testing.assert_array_equal(run(X), expected)


@pytest.mark.parametrize("mode", MODES)
def test_in_bodies_of_loops(mode):
    def f(c, xs):
        def body(c, x):
            c = c + lax.psum(c * x, "i")
            return c, c * lax.axis_index("i")

        return scan(body, c, xs)

    c = np.array([1.0, 2.0, 3.0])
    xs = np.array([0.5, -1.0])
    expected_ys = []
    expected = c
    for x in xs:
        expected = expected + (expected * x).sum()
        expected_ys.append(expected * np.arange(3))
    out, ys = MODES[mode](f, in_axes=(0, None))(c, xs)
    np.testing.assert_allclose(out, expected)
    np.testing.assert_allclose(ys, np.stack(expected_ys, 1))


@pytest.mark.parametrize("mode", MODES)
def test_gradient_of_a_loop_with_a_collective(mode):
    def f(c):
        return scan(lambda c, _: (c * lax.pmean(c, "i"), None), c, None, length=3)[0]

    def reference(c):
        for _ in range(3):
            c = c * c.mean()
        return c.sum()

    c = np.array([0.5, 0.7, 1.1])
    h = 1e-6
    slopes = [(reference(c + h * e) - reference(c - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(fg.grad(lambda c: MODES[mode](f)(c).sum())(c), slopes, rtol=1e-8)
    np.testing.assert_allclose(MODES[mode](fg.grad(f))(c), slopes, rtol=1e-8)


@pytest.mark.parametrize("mode", MODES)
def test_while_loop_that_ends_for_all_lanes_together(mode):
    def f(x):
        return while_loop(lambda x: lax.psum(x, "i") < 100.0, lambda x: x + lax.psum(x, "i"), x)

    x = np.array([1.0, 2.0])
    expected = x
    while expected.sum() < 100:
        expected = expected + expected.sum()
    np.testing.assert_allclose(MODES[mode](f)(x), expected)


@pytest.mark.parametrize("mode", MODES)
def test_in_rules_by_the_user(mode):
    @custom_vjp
    def f(x):
        return lax.psum(x, "i") * x

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (lax.psum(ct * x, "i") + 10 * ct,))
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(MODES[mode](f)(x), 6 * x)
    np.testing.assert_array_equal(MODES[mode](fg.grad(f))(x), [16.0, 16.0, 16.0])
    np.testing.assert_array_equal(fg.grad(lambda x: MODES[mode](f)(x).sum())(x), [16.0] * 3)


INSIDE = {
    "plain": lambda f: f,
    "jit": fg.jit,
    "checkpoint": fg.checkpoint,
    "scan": lambda f: lambda x: scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "cond": lambda f: lambda x: lax.cond(x > 0, f, f, x),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("kind", ["vjp", "jvp"])
def test_rules_that_alone_name_the_axis(mode, inside, kind):
    """The call is the same in all lanes, so it leaves the map; its rules are run within."""
    if kind == "vjp":
        f = custom_vjp(np.sin)
        f.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (lax.psum(np.cos(x) * ct, "i"),))
    else:
        f = fg.custom_jvp(np.sin)
        f.defjvp(lambda p, t: (np.sin(p[0]), lax.psum(np.cos(p[0]) * t[0], "i")))
    mapped = MODES[mode](INSIDE[inside](f), in_axes=None, out_axes=None, axis_size=4)
    np.testing.assert_allclose(mapped(0.3), np.sin(0.3))
    for g in (mapped, fg.jit(mapped)):
        np.testing.assert_allclose(fg.grad(g)(0.3), 4 * np.cos(0.3))
        np.testing.assert_allclose(fg.jvp(g, (0.3,), (1.0,))[1], 4 * np.cos(0.3))
        np.testing.assert_allclose(fg.grad(fg.grad(g))(0.3), -4 * np.sin(0.3))


def test_rules_must_not_tell_lanes_apart_that_have_the_same_arguments():
    f = custom_vjp(np.sin)
    f.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (lax.axis_index("i") * ct,))

    def each(x):
        return f(x) * 1.0

    mapped = fg.vmap(each, in_axes=None, out_axes=None, axis_name="i", axis_size=4)
    message = (
        r"a rule of sin gives another result in every lane(?s:.*)test_named_axes.*f\(x\) \* 1.0"
    )
    for way in (mapped, fg.jit(mapped)):
        with pytest.raises(ArgumentError, match=message):
            fg.grad(way)(0.3)


def test_one_compiled_function_under_axes_of_different_lengths():
    f = fg.jit(lambda x: x * lax.axis_size("i"))
    np.testing.assert_array_equal(fg.vmap(f, axis_name="i")(np.ones(3)), [3, 3, 3])
    np.testing.assert_array_equal(fg.vmap(f, axis_name="i")(np.ones(2)), [2, 2])
    g = fg.jit(lambda x: x + lax.psum(x, "a"))
    np.testing.assert_array_equal(fg.vmap(g, axis_name="a")(np.arange(3.0)), [3, 4, 5])
    with pytest.raises(AxisNameError):
        fg.vmap(g, axis_name="b")(np.arange(3.0))


def test_data_parallel_training_equals_training_on_all_data():
    x, y, w = RNG.normal(size=(4, 8, 3)), RNG.normal(size=(4, 8)), RNG.normal(size=3)

    def step(w, x, y):
        g = fg.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
        return w - 0.1 * lax.pmean(g, "batch")

    mapped = fg.vmap(step, in_axes=(None, 0, 0), out_axes=None, axis_name="batch")
    flat, target = x.reshape(32, 3), y.reshape(32)
    expected = w - 0.1 * 2 * flat.T @ (flat @ w - target) / 32
    np.testing.assert_allclose(mapped(w, x, y), expected)
    np.testing.assert_allclose(fg.jit(mapped)(w, x, y), expected)


def test_an_unknown_name_is_reported_with_those_that_exist():
    with pytest.raises(AxisNameError) as caught:
        fg.vmap(lambda x: lax.psum(x, "rows"), axis_name="columns")(np.ones(3))
    message = str(caught.value)
    assert "psum: no mapped axis is named 'rows' here" in message
    assert "test_named_axes.py" in message
    assert "in scope      'columns' (length 3)" in message
    assert "vmap(f, axis_name='rows')" in message
    with pytest.raises(NameError, match="in scope      none"):
        lax.axis_index("i")


def test_axes_that_cannot_be_divided_are_reported():
    with pytest.raises(ShapeError, match=r"psum_scatter: axis 0 of f64.2. must have length 3"):
        fg.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(np.ones((3, 2)))
    with pytest.raises(ShapeError, match="a multiple of 3"):
        fg.vmap(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), axis_name="i")(np.ones((3, 2)))
    with pytest.raises(fg.errors.ArgumentError, match="every destination must be named once"):
        fg.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 1)]), axis_name="i")(np.ones(2))


def test_programs_show_collectives():
    shown = []
    fg.vmap(lambda x: shown.append(str(fg.make_jaxpr(lambda y: lax.all_gather(y, "i"))(1.0))) or x,
            axis_name="i")(np.ones(3))  # fmt: skip
    assert "all_gather" in shown[0]
    assert "f64[3]" in shown[0]
