"""Every pass keeps the graph whole and the results equal, and can be left out."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import funcgrad as fg
from funcgrad import lax
from funcgrad.compiler.nest import (
    access,
    divide,
    rematerialize,
)
from funcgrad.compiler.nest.access import seen_box
from funcgrad.compiler.nest.arrange import OPTIONAL, SKIP_VARIABLE, VERIFY_VARIABLE
from funcgrad.compiler.nest.layout import Value, View, reindex_of, whole
from funcgrad.compiler.nest.nodes import Graph, Guard, Point
from funcgrad.compiler.nest.verify import verify_graph
from funcgrad.compiler.runtime.threads import is_available
from funcgrad.errors import CompilerError
from funcgrad.lowering import Reindex
from tests.fuzz.language import Program
from tests.fuzz.properties import quiet
from tests.fuzz.writing import programs

RNG = np.random.default_rng(0)
GRID = RNG.normal(size=(9, 12))
LINE = RNG.normal(size=40)
POINTS = RNG.normal(size=(30, 3))
CUBE = RNG.normal(size=(5, 6, 7))


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VERIFY_VARIABLE, "1")
    monkeypatch.setattr(rematerialize, "MIN_BYTES", 0)  # small programs, too
    monkeypatch.setattr(divide, "MIN_WORK", 32)
    monkeypatch.setattr(divide, "MIN_PART", 2)
    monkeypatch.setattr(divide, "MIN_ROW", 4)


def jacobi(a: Any) -> Any:
    inner = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    return put(a, (slice(1, -1),) * 2, inner)


def put(a: Any, where: Any, update: Any) -> Any:
    """``a.at[where].set(update)``, also for arrays of NumPy."""
    if isinstance(a, np.ndarray):
        b = a.copy()
        b[where] = update
        return b
    return a.at[where].set(update)


def heat(a: Any) -> Any:
    c = a[1:-1, 1:-1, 1:-1]
    flux = a[2:, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1] + a[1:-1, 2:, 1:-1] + a[1:-1, :-2, 1:-1]
    return put(a, (slice(1, -1),) * 3, c + 0.1 * (flux - 4 * c))


def limited_diffusion(f: Any) -> Any:
    lap = 4 * f[1:-1, 1:-1] - (f[2:, 1:-1] + f[:-2, 1:-1] + f[1:-1, 2:] + f[1:-1, :-2])
    flx = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flx = np.where(flx * (f[2:-1, 2:-2] - f[1:-2, 2:-2]) > 0, 0, flx)
    return f[2:-2, 2:-2] - 0.1 * (flx[1:] - flx[:-1])


def borders(u: Any) -> Any:
    u = put(u, 0, u[1] * 2)
    u = put(u, (slice(None), -1), np.sin(u[:, -2]))
    return put(u, (slice(None), 0), 1.5)


def gravity(x: Any) -> Any:
    d = x[:, None, :] - x[None, :, :]
    r2 = np.sum(d * d, -1) + 0.5
    return np.sum(d * (r2**-1.5)[:, :, None], 1)


def advection(u: Any) -> Any:
    return lax.fori_loop(0, 4, lambda i, v: v - 0.3 * (v - np.roll(v, 1, 0)), u * 1)


def rational_step(c: Any, row: Any) -> Any:
    v, w = row
    a = c * v / (1.0 + v * v) + 0.1 * w
    return a * a - 0.5 * c, (a, c, a * c * v)


def leapfrog(y: Any) -> Any:
    q, p = y
    p = p - 0.05 * q * (1 + q * q)
    q = q + 0.1 * p
    return q, p - 0.05 * q * (1 + q * q)


PROGRAMS: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "jacobi": (jacobi, GRID),
    "three steps of jacobi": (lambda a: jacobi(jacobi(jacobi(a))), GRID),
    "heat": (heat, CUBE),
    "limited diffusion": (limited_diffusion, GRID),
    "borders": (borders, GRID),
    "rosenbrock": (lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), LINE),
    "rolls": (lambda x: np.roll(x, 1, 0) + np.roll(x, -2, 1) - np.roll(x, (1, 1), (0, 1)), GRID),
    "pads": (lambda x: np.pad(x, 1)[:-1] * np.pad(x * 2, ((0, 1), (2, 0)), mode="edge"), GRID),
    "concatenation": (lambda x: np.concatenate([x, np.sin(x), x[:3]])[2:-1] * 2, GRID),
    "reversed": (lambda x: np.concatenate([x, 2 * x])[::-1] - np.concatenate([x, x]), LINE),
    "steps": (lambda x: put(x * 2, slice(3, 30), x[::-1][3:30])[::3] + x[::3], LINE),
    "interleaved": (lambda x: np.stack([x * 2, x[::-1] - 1], 2).reshape(len(x), -1)[:, 1:], GRID),
    "every other": (
        lambda x: put(put(x * 2, slice(1, None, 2), x[1::2] ** 2), slice(0, None, 2), -x[::2]),
        GRID,
    ),
    "pooling": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (3, 2), (3, 2), "VALID") * 2,
        GRID,
    ),
    "overlapping": (
        lambda x: put(put(x * 2, slice(0, None, 3), x[::3] ** 2), slice(0, None, 2), x[::2] - 1),
        GRID,
    ),
    "stack": (lambda x: np.stack([x + 1, x * 2, x - 3], 1), GRID),
    "prefix of a pad": (lambda x: np.cumsum(np.pad(x, (2, 0))[:-2] * x), LINE),
    "softmax of shifts": (lambda x: fg.nn.softmax(np.pad(x[1:], (0, 1)) - x), LINE),
    "gravity": (gravity, POINTS),
    "functions of rows": (
        lambda x: np.log1p(np.exp(-np.sum(x * np.tanh(x), 1))) * x[::-1, 0],
        RNG.normal(size=(90, 5)),
    ),
    "sum of functions of rows": (
        lambda x: np.sum(np.log(np.sum(np.exp(x - np.max(x, 1, keepdims=True)), 1)) * x[:, 1]),
        RNG.normal(size=(70, 9)),
    ),
    "rows that are needed again": (
        lambda x: x - np.log(np.sum(np.exp(x), 1, keepdims=True)) + np.sin(np.sum(x, 1))[:, None],
        RNG.normal(size=(80, 6)),
    ),
    "directions": (lambda x: x / np.sqrt(np.sum(x * x, -1, keepdims=True)), POINTS),
    "columns": (lambda x: np.sum(x * x[:, :1], 0) + np.max(x.T.copy().T, 0), POINTS),
    "rows": (lambda x: np.prod(x.T * 1.5, 0) + np.sum(x.T * 2, 0), POINTS),
    "cross": (lambda x: np.cross(x, x[::-1]), POINTS),
    "means": (lambda x: np.var(x, -1) * np.mean(x, 0)[:1], POINTS),
    "advection": (advection, GRID),
    "scan": (lambda x: lax.scan(lambda c, v: (np.sin(c) + v, c * v), 0.5, x)[1], LINE),
    "wide scan": (lambda x: lax.scan(lambda c, v: (np.tanh(c) + v, c[::-1]), x[0], x)[1], GRID),
    "reverse scan": (
        lambda x: np.stack(lax.scan(rational_step, x[0], (x, x[:, 0]), reverse=True)[1]),
        GRID,
    ),
    "scan of scans": (
        lambda x: lax.scan(lambda c, v: lax.scan(rational_step, c * v, (x, x[:, 1])), x[0], x)[1][
            2
        ],
        GRID[:5],
    ),
    "orbits": (
        lambda x: lax.scan(lambda y, _: (leapfrog(y), None), (x, x * 0.5), length=6)[0][0],
        POINTS,
    ),
    "scan with a product": (
        lambda x: lax.scan(lambda c, v: (np.tanh(c @ x.T @ x * 0.1 + v * c), c[0]), x[:1], x)[1],
        GRID,
    ),
    "while": (
        lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, jacobi(c[1])), (0, x))[1],
        GRID,
    ),
    "branches": (lambda x: lax.cond(x[0, 0] > 0, jacobi, lambda x: x * 2, x), GRID),
    "lanes": (lambda x: fg.vmap(lambda v: lax.scan(lambda c, u: (c * u, c), 1.0, v)[1])(x), GRID),
    "jacobian": (lambda x: fg.jacfwd(lambda v: np.pad(v[1:] ** 2, (0, 1)) * v)(x), LINE),
    "variances of columns": (lambda x: np.var(x * 2, 0) + np.var(x, (0, 1)), GRID),
    "normalised": (lambda x: (x - np.mean(x, 0)) / np.std(x - np.mean(x, 0), 0) * x, GRID),
    "sides of a product": (lambda x: x.T @ (x + x) + (x.T @ np.sin(x)).T, POINTS),
    "product of stacks": (lambda x: x[0, :3] @ x.transpose(0, 2, 1) * x.sum((0, 1))[:6], CUBE),
    "no rows": (lambda x: np.max(x[:0] * 2, -1) + np.sum(np.min(x[:0], -1)), POINTS),
    "nothing": (lambda x: np.pad(x[:0], (0, 2)) + x[:2], LINE),
    "one": (lambda x: np.concatenate([x[:1], x[1:2]]) * np.pad(x[3:4], (1, 0)), LINE),
}


@cache
def expected_of(name: str) -> tuple[Any, Any]:
    """The result of a program, and the gradient of its `loss`, evaluated."""
    function, x = PROGRAMS[name]
    return function(x), fg.grad(loss_of(function))(x)


def loss_of(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: np.sum(np.sin(function(x) * 0.125))


@pytest.mark.sampled(80, skipped="nothing")
@pytest.mark.parametrize("skipped", ["nothing", *OPTIONAL])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_without_a_pass(name: str, skipped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, x = PROGRAMS[name]
    loss = loss_of(function)
    expected, slope = expected_of(name)
    before = x.copy()
    monkeypatch.setenv(SKIP_VARIABLE, skipped)
    np.testing.assert_allclose(fg.jit(lambda x: function(x))(x), expected, 1e-12, 1e-12)
    np.testing.assert_allclose(fg.jit(fg.grad(lambda x: loss(x)))(x), slope, 1e-10, 1e-10)
    np.testing.assert_array_equal(x, before)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "skipped", ["nothing", *(pytest.param(p, marks=pytest.mark.nightly) for p in OPTIONAL)]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_in_single_precision(
    name: str, skipped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, x = PROGRAMS[name]
    expected, _ = expected_of(name)
    monkeypatch.setenv(SKIP_VARIABLE, skipped)
    single = fg.jit(lambda x: function(x))(x.astype(np.float32))
    np.testing.assert_allclose(single, expected, 2e-4, 2e-4)


@given(programs("f8"))
def test_random_programs_without_a_pass(program: Program) -> None:
    with quiet():
        expected = program.function(*program.values)
    for skipped in ("nothing", *OPTIONAL):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(SKIP_VARIABLE, skipped)
            patch.setenv(VERIFY_VARIABLE, "1")
            found = fg.jit(lambda *args: program.function(*args))(*program.values)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, 1e-11, 1e-11 * program.scale, err_msg=skipped)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("skipped", ["nothing", *OPTIONAL])
@pytest.mark.parametrize("shape", [(1, 1, 2), (1, 3), (2, 1, 3)])
def test_short_rows_less_their_mean(
    shape: tuple[int, ...], skipped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Axes of length 1 that results of sums keep are not the rows' that are written out."""
    monkeypatch.setenv(SKIP_VARIABLE, skipped)
    monkeypatch.setenv(VERIFY_VARIABLE, "1")
    x = np.arange(1.0, math.prod(shape) + 1).reshape(shape)

    def centred(x: Any) -> Any:
        return np.sin(x) - np.mean(np.sin(x), axis=-1, keepdims=True)

    np.testing.assert_allclose(fg.jit(lambda x: centred(x))(x), centred(x), 1e-15, 1e-15)


def test_stencils_take_no_memory_between() -> None:
    """A stencil of a stencil, and the sum of padded arrays of a gradient, are one kernel each."""
    n = 400
    diffusion = fg.jit(limited_diffusion).lower(np.ones((n, n))).compile()
    assert str(diffusion.as_text()).count("def kernel") == 1
    rosenbrock = PROGRAMS["rosenbrock"][0]
    gradient = fg.jit(fg.grad(rosenbrock)).lower(np.ones(n)).compile()
    assert str(gradient.as_text()).count("def kernel") == 1


def test_functions_of_rows_are_computed_in_vectors() -> None:
    def loss(w: Any, x: Any, labels: Any) -> Any:
        return np.mean(np.log1p(np.exp(-labels * (x @ w))))

    text = str(
        fg.jit(fg.value_and_grad(loss))
        .lower(np.ones(40), np.ones((20_000, 40)), np.ones(20_000))
        .compile()
        .as_text()
    )
    code = "\n".join(line.split("#")[0] for line in text.splitlines())
    walk, functions = code.split("def kernel")[1:3]
    assert "exp(" not in walk
    assert "log1p(" in functions
    assert "20000 iterations in" in text or not is_available()  # the walk is shared by threads
    softmax = fg.jit(lambda x: x - np.log(np.sum(np.exp(x), 1, keepdims=True)))
    text = str(softmax.lower(np.ones((20_000, 40))).compile().as_text())
    assert text.count("def kernel") == 1  # the row is needed again


@pytest.mark.parametrize(("rows", "parts"), [((64, 40), 16), ((61, 40), 61), ((3, 900), 2700)])
def test_gradients_of_means_are_shared_by_threads(
    rows: tuple[int, ...], parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(divide, "MIN_WORK", 1 << 19)
    x = RNG.normal(size=(*rows, 256)).astype(np.float32)
    function = fg.value_and_grad(lambda x: np.mean(np.tanh(x) ** 2))
    results = [fg.jit(function, threads=n)(x) for n in (1, 2, 3)]
    for value, gradient in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])
    np.testing.assert_allclose(results[0][0], np.mean(np.tanh(x.astype("f8")) ** 2), 1e-6)
    text = str(fg.jit(function, threads=2).lower(x).compile().as_text())
    assert f"{parts} iterations in" in text or not is_available()


def test_parts_of_divided_walks_are_written_where_they_belong() -> None:
    def function(x: Any) -> Any:
        y = np.tanh(x)
        return np.sum(y), np.stack([y, 2 * x, x * x], -1)

    x = RNG.normal(size=4096)
    for found, expected in zip(fg.jit(function)(x), function(x), strict=True):
        np.testing.assert_allclose(found, expected, 1e-12)
    text = str(fg.jit(function).lower(x).compile().as_text())
    assert text.count("def kernel") == 3  # sums of parts, their sum, and the other columns


def test_interleaved_parts_are_written_where_they_belong() -> None:
    def pooled(x: Any) -> Any:
        windows = (1, 2, 2)
        return np.sum(lax.reduce_window(x, -np.inf, lax.max, windows, windows, "VALID") ** 2)

    gradient = fg.jit(fg.grad(pooled)).lower(np.ones((8, 32, 32))).compile()
    assert str(gradient.as_text()).count("def kernel") == 1


@pytest.mark.parametrize("b", [(0, 1, 1), (4, 1, 3), (1, 2, 9), (0, 3, 4), (7, 5, 2), (19, 1, 1)])
@pytest.mark.parametrize("a", [(0, 1, 20), (0, 2, 10), (1, 2, 10), (2, 3, 5), (5, 1, 1), (3, 6, 3)])
def test_parts_that_never_meet(a: tuple[int, int, int], b: tuple[int, int, int]) -> None:
    def places(start: int, step: int, n: int) -> set[int]:
        return {start + step * i for i in range(n)}

    never = access.never_meet(a, b)
    assert never == access.never_meet(b, a)
    assert not never or not places(*a) & places(*b)  # nothing is claimed that is not so


@pytest.mark.parametrize("n", [2, 3, 30])
@pytest.mark.parametrize("base", ["filled", "computed late", "of an argument"])
def test_parts_are_written_after_what_they_are_written_into(base: str, n: int) -> None:
    """A part that is computed early must not go where its array is filled later."""

    def assembled(x: Any) -> Any:
        parts = [np.sin(x[i]) for i in range(n)]
        y = {
            "filled": lambda: lax.full((n,), 7.0),
            "computed late": lambda: np.cumsum(x) * parts[-1],
            "of an argument": lambda: x * 2,
        }[base]()
        for i in range(0, n, 2):
            y = fg.numpy.at(y)[i].set(parts[i])
        return y

    x = np.arange(1.0, n + 1)
    np.testing.assert_allclose(fg.jit(assembled)(x), assembled(x), rtol=1e-14)


# Where a view leads.


@pytest.mark.parametrize("step", [-3, -2, -1, 1, 2, 3])
@pytest.mark.parametrize("start", [0, 1, 5, 10])
def test_boxes_are_seen_where_they_are(start: int, step: int) -> None:
    for n in range(1, 1 + (10 - start if step > 0 else start) // abs(step)):
        form = Reindex((0,), (start,), (step,))
        view = whole(Value((11,), np.dtype("f8"))).reindexed(form, (n,))
        assert isinstance(view, View)
        assert n == 1 or reindex_of(view) == form
        for a in range(12):
            for b in range(a + 1, 12):
                inside = [i for i in range(n) if a <= start + i * step < b]
                expected = ((inside[0], inside[-1] + 1),) if inside else None
                assert seen_box(((a, b),), form, (n,)) == expected


def test_a_fixed_index_outside_of_a_box_sees_nothing() -> None:
    assert seen_box(((1, 2),), Reindex((), (0,), ()), ()) is None
    assert seen_box(((1, 2),), Reindex((), (1,), ()), ()) == ()


# The verifier.


def graph_of(node: Callable[[Value], Point]) -> Graph:
    x = Value((4,), np.dtype("f8"))
    made = node(x)
    return Graph([x], [], [made], [made.out])


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            lambda x: Point((View(x, (4,), (1,), 1),), (Value((4,), x.dtype),), "-{0}"),
            "reads beside the memory of an operand",
        ),
        (
            lambda x: Point((whole(x),), (Value((3,), x.dtype),), "-{0}"),
            "has an operand of another shape",
        ),
        (
            lambda x: Point((whole(x),), (Value((4,), x.dtype),), "{0} + {1}"),
            "has too few operands",
        ),
        (
            lambda x: Point((whole(Value((4,), x.dtype)),), (Value((4,), x.dtype),), "-{0}"),
            "reads a value that nothing has made yet",
        ),
    ],
)
def test_the_verifier_says_what_is_wrong(node: Any, message: str) -> None:
    with pytest.raises(CompilerError, match=f"after a pass: a Point of .* {message}"):
        verify_graph(graph_of(node), "a pass")


def test_a_guard_may_lead_beside_memory_outside_of_its_box() -> None:
    def guard(x: Value) -> Point:
        shifted = View(x, (4,), (1,), -1)
        return Guard((shifted, whole(x)), (Value((4,), x.dtype),), ((1, 4),))

    verify_graph(graph_of(guard), "a pass")
    too_large = graph_of(
        lambda x: Guard((View(x, (4,), (1,), -1), whole(x)), (Value((4,), x.dtype),), ((0, 3),))
    )
    with pytest.raises(CompilerError, match=r"a Guard of .* reads beside the memory"):
        verify_graph(too_large, "a pass")


def test_arrays_of_many_parts_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: how often the passes ask where a part lies."""
    counts: list[int] = []
    asked = access.box_of

    def counted(place: View) -> Any:
        counts[-1] += 1
        return asked(place)

    monkeypatch.setattr(access, "box_of", counted)
    for n in (50, 100, 200):
        counts.append(0)
        parts = [slice(i, i + 2) for i in range(n)]
        fg.jit(lambda x: np.concatenate([x[s] * 1.5 for s in parts])).lower(np.ones(n + 2))  # noqa: B023
    assert counts[2] <= 2 * counts[1] + 50
    assert counts[1] <= 2 * counts[0] + 50
