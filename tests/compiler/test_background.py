"""Messages that begin early and go on in the background, with a library that pretends to send."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.compiler.runtime import in_flight
from tests.alarms import signal_within
from tests.compiler.pretended import pretended

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 160))
W = RNG.normal(size=(160, 160)) / 13
Tree = Any


def total(x: Tree) -> Tree:
    return lax.psum(x, "data")


def twice(x: Tree) -> Tree:
    """What `total` gives."""
    return fg.tree.map(lambda leaf: 2 * leaf, x)


def changed(p: Callable[[Tree], Tree], x: Any, w: Any) -> Tree:
    y = x * 3.0
    t = p(y)
    y = fnp.at(y)[5].set((w @ x)[3])
    return t, y


def looped(p: Callable[[Tree], Tree], x: Any, w: Any) -> Tree:
    def step(c: Any, _: Any) -> Any:
        t = p(c * 0.5)
        return np.sin(c @ w) + t, t.sum()

    if p is total:
        return lax.scan(step, x, None, length=3)
    sums = []
    for _ in range(3):
        x, y = step(x, None)
        sums.append(y)
    return x, np.stack(sums)


def repeated(p: Callable[[Tree], Tree], x: Any, w: Any) -> Tree:
    def step(s: Any) -> Any:
        return s[0] + 1, np.cos(s[1] @ w) + p(s[1])

    s = (0, x)
    if p is total:
        return lax.while_loop(lambda s: s[0] < 3, step, s)[1]
    for _ in range(3):
        s = step(s)
    return s[1]


def branched(p: Callable[[Tree], Tree], x: Any, w: Any) -> Tree:
    def one(x: Any) -> Any:
        t = p(x + 1.0)
        return np.tanh(x @ w) * t

    return lax.cond(p(x[0, 0]) < 1e9, one, lambda x: x, x) if p is total else one(x)


def small_ones(p: Callable[[Tree], Tree], x: Any, w: Any) -> Tree:
    rows = [np.sin(x[k] @ w) for k in range(4)]
    sums = [p(rows[k]) for k in range(3)]
    more = p({"i": (x[:2] * 9).astype(np.int32), "n": x[:0], "s": x[0, 0], "f": rows[3] @ x})
    return sums, more, rows[0] @ rows[1]


def read_between(p: Callable[[Tree], Tree], x: Any, w: Any) -> Tree:
    a = p(np.sin(x[0] @ w))
    b = np.cos(a @ w)
    return p(b), p(x[1]) + b


# Functions of a sum over processes, and two arrays.
PROGRAMS: dict[str, Callable[[Callable[[Tree], Tree], Any, Any], Tree]] = {
    "an argument": lambda p, x, w: p(x) + w @ w,
    "what is computed": lambda p, x, w: p(x * 3.0) + w @ x,
    "what is read again": lambda p, x, w: (lambda y: p(y) + y.T @ w + y)(x * 3.0),
    "a part": lambda p, x, w: (lambda t, y: t.sum() + y)(p(x[20:]), w @ x),
    "a product": lambda p, x, w: p(x @ w) + np.sin(w @ x) @ w,
    "a result": lambda p, x, w: (p(x * 3.0), w @ x),
    "a result of the argument": lambda p, x, w: (w @ x, p(x)),
    "what nobody reads": lambda p, x, w: (p(x * 3.0), np.tanh(w @ x))[1],
    "a sum": lambda p, x, w: p(p(np.sin(x)) + w @ x) * (x @ x),
    "what is changed": changed,
    "through NumPy": lambda p, x, w: (p(np.fft.fft(x).real), np.fft.fft(w @ x).imag),
    "a loop": looped,
    "a loop without an end": repeated,
    "a branch": branched,
    "small ones": small_ones,
    "small ones that are read between": read_between,
    "single precision": lambda p, x, w: p(x.astype(np.float32) * 2) + (w @ x).astype(np.float32),
}


def assert_close(found: Tree, expected: Tree) -> None:
    for a, b in zip(fg.tree.leaves(found), fg.tree.leaves(expected), strict=True):
        single = np.asarray(b).dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=1e-4 if single else 1e-10, atol=1e-4 * single + 1e-10)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("in_place", [True, False])
def test_results_are_those_of_sums_at_their_places(name: str, in_place: bool) -> None:
    program = PROGRAMS[name]
    with pretended(in_place=in_place) as ranks:
        f = fg.jit(lambda x, w: program(total, x, w))
        x = X.copy()
        for scale in (1.0, 1.5):
            assert_close(f(x, scale * W), program(twice, X, scale * W))
            np.testing.assert_array_equal(x, X)
        # The memory of a donated argument may be what is sent.
        g = fg.jit(lambda x, w: program(total, x, w), donate_argnums=0)
        assert_close(g(X.copy(), W), program(twice, X, W))
        assert not ranks.under_way
    kinds = {kind for kind, _ in ranks.log}
    assert ("begin" in kinds) == (not name.startswith("small"))
    assert ("ask" in kinds) <= ("begin" in kinds)


def loss(params: Any, x: Any) -> Any:
    for w, b in params:
        x = np.tanh(x @ w + b)
    return (x**2).sum()


def layers(widths: tuple[int, ...]) -> Any:
    return [
        (RNG.normal(size=(m, n)) / m, RNG.normal(size=n)) for m, n in itertools.pairwise(widths)
    ]


@pytest.mark.parametrize("batch", [1, 2, 31])
def test_gradients_begin_in_the_order_in_which_they_exist(batch: int) -> None:
    params, x = layers((100, 110, 120, 130)), RNG.normal(size=(batch, 100))
    with pretended() as ranks:
        f = fg.jit(lambda params, x: total(fg.grad(loss)(params, x)))
        found = f(params, x)
        assert_close(found, twice(fg.grad(loss)(params, x)))
    begun = [n for kind, n in ranks.log if kind == "begin"]
    assert begun[:2] == [120 * 130, 110 * 120], "the last layer is the first"
    messages = begun + [n for kind, n in ranks.log if kind == "total"]
    assert sorted(messages) == [110 + 120 + 130, 100 * 110, 110 * 120, 120 * 130]


def test_the_plan_says_what_goes_on_in_the_background() -> None:
    with pretended():
        text = fg.jit(lambda x, w: lax.psum(x * 2.0, "data") + w @ w).lower(X, W).as_text()
        assert "psum[ranks='data' in_background=True]" in text
        assert text.index("by begin in place") < text.index("matrix product")
        assert text.index("matrix product") < text.index("by ask") < text.index("by end")
        both = fg.jit(lambda x, y: (total(x[:5]), total(y[:7]))).lower(X[0], X[1]).as_text()
        assert both.count("group=1") == 2
        assert both.count("psum by total") == 1


def test_what_has_nothing_beside_it_is_not_begun_apart() -> None:
    with pretended() as ranks:
        assert_close(fg.jit(lambda x: total(x * 2.0) + 1.0)(X), 4 * X + 1.0)
        assert_close(fg.jit(lambda x, w: total(x[:9]) @ w + w[:9])(X, W), 2 * X[:9] @ W + W[:9])
    assert {kind for kind, _ in ranks.log} == {"total"}


# Calls that fail while something is under way.


def endless(x: Any, w: Any, i: Any) -> Any:
    t = total(x * 2.0)
    return t, lax.fori_loop(0, 10**9 * (i > 9) + 1, lambda k, w: np.cos(w @ w), w)[i - i]


def singular(x: Any, w: Any, i: Any) -> Any:
    t = total(x * 2.0)
    return t, np.linalg.inv(w @ w * (i < 9))


def called(x: Any, w: Any, i: Any) -> Any:
    t = total(np.fft.fft(x).real)
    return t, fg.pure_callback(raising, fg.ShapeDtypeStruct((), np.float64), i, (w @ w).sum())


def raising(i: Any, y: Any) -> Any:
    if i > 9:
        raise KeyError("the callback")
    return np.float64(y)


def alarmed(*_: Any) -> None:
    raise TimeoutError("the alarm")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("function", "error"),
    [(singular, np.linalg.LinAlgError), (endless, TimeoutError), (called, KeyError)],
)
@pytest.mark.parametrize("in_place", [True, False])
def test_memory_lives_until_the_library_is_done_with_it(
    function: Any, error: type[Exception], in_place: bool
) -> None:
    assert in_flight.release() == 0
    before = signal.signal(signal.SIGALRM, alarmed)
    try:
        with pretended(in_place=in_place) as ranks:
            f = fg.jit(lambda x, w, i: function(x, w, i))
            expected = f(X, W, 3)
            ranks.is_stuck = True
            for k in range(2):
                ends = function is not endless
                alarm = nullcontext() if ends else signal_within(0.3, signal.SIGALRM)
                with pytest.raises(error), alarm:
                    f(X, W, 1000)
                assert in_flight.release() == k + 1
            assert_close(f(X, W, 3), expected)
            assert len(ranks.under_way) == 2, "of the calls that failed"
            ranks.is_stuck = False
            while in_flight.release():
                pass
            assert not ranks.under_way
            assert_close(f(X, W, 3), expected)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_code_without_python_takes_no_part() -> None:
    def f(x: Any) -> Any:
        y = x * np.ones((100, 100))
        return (total(y) + y @ y).sum()

    with pretended(), pytest.raises(fg.errors.ArgumentError, match="go on in the background"):
        fg.interop.numba.cfunc(f, "float64(float64)")
