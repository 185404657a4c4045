"""Functions of NumPy and SciPy in compiled programs: called without Python, with equal results.

The references are NumPy's and SciPy's own functions, in loops of Python, and finite differences.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import funcgrad as fg
import funcgrad.scipy.linalg
import funcgrad.scipy.special
from funcgrad import lax
from funcgrad.compiler import foreign
from funcgrad.compiler.foreign import LAPACK_MODULE
from funcgrad.compiler.runtime import routines
from funcgrad.core.avals import aval_of
from funcgrad.primitives.linalg import LuFactor
from funcgrad.primitives.sorting import Sort
from funcgrad.primitives.special import rgamma

RNG = np.random.default_rng(0)


def plan(function: Callable[..., Any], *args: Any) -> str:
    text: str = fg.jit(function).lower(*args).as_text()
    return text.partition("\nplan\n")[2].partition("\n# kernel")[0]


def is_native(function: Callable[..., Any], *args: Any) -> bool:
    return not any(word in plan(function, *args) for word in ("numpy:", "python:"))


def arrays(x: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in fg.tree.leaves(x)]


# Loops, against the same loops in Python.


def kalman(np_: Any, scan: Any, solve_triangular: Any, x: Any) -> Any:
    """The likelihood of observations under a linear model, two states of two numbers."""
    move = np.array([[1.0, 0.1], [-0.2, 0.9]])

    def step(state: Any, y: Any) -> Any:
        mean, cov = state
        mean = move @ mean
        cov = move @ cov @ move.T + 0.01 * np.eye(2)
        spread = cov + 0.1 * np.eye(2)
        gain = np_.linalg.solve(spread, cov).T
        root = np_.linalg.cholesky(spread)
        left = y - mean
        z = solve_triangular(root, left, lower=True)
        fit = -0.5 * (z * z).sum() - np_.log(np_.diagonal(root)).sum()
        return (mean + gain @ left, cov - gain @ cov), fit

    return scan(step, (np.zeros(2), np.eye(2)), x)[1].sum()


def newton(np_: Any, scan: Any, solve_triangular: Any, x: Any) -> Any:
    def step(y: Any, _: Any) -> Any:
        slope = np_.diag(3 * y[:, 0] ** 2 + 1)
        return y - np_.linalg.solve(slope, y**3 + y - x[:, :1]), y[0, 0]

    return scan(step, np.ones((x.shape[0], 1)), np.zeros(6))[0].sum()


def powers(np_: Any, scan: Any, solve_triangular: Any, x: Any) -> Any:
    matrix = x[:2].T @ x[:2] + np.diag([3.0, 1.0])

    def step(q: Any, _: Any) -> Any:
        q, r = np_.linalg.qr(matrix @ q)
        return q, r[0, 0]

    return scan(step, np.eye(2), np.zeros(5))[1].sum()


def spectral(np_: Any, scan: Any, solve_triangular: Any, x: Any) -> Any:
    decay = np.exp(-(np.arange(4) ** 2) / 7)

    def step(u: Any, _: Any) -> Any:
        v = np_.fft.irfft(decay[:, None] * np_.fft.rfft(u, axis=0), 6, 0)
        return v - 0.1 * u * np_.fft.ifft(1j * np_.fft.fft(v.T)).real.T, v[0, 0]

    return (scan(step, x, np.zeros(5))[0] ** 2).sum()


def quantiles(np_: Any, scan: Any, solve_triangular: Any, x: Any) -> Any:
    def step(u: Any, row: Any) -> Any:
        ordered = np_.sort(u)
        middle = 0.5 * (ordered[2] + ordered[3])
        place = np_.searchsorted(ordered, row[0])
        return u[np_.argsort(u)[::-1]] * 0.9 + row[1] * middle + 0.1 * place, middle

    out, middles = scan(step, x[:, 0], x)
    return (out * np.arange(6)).sum() + middles.sum()


LOOPS = {f.__name__: f for f in (kalman, newton, powers, spectral, quantiles)}
X = RNG.normal(size=(6, 2))


def python_scan(step: Any, carry: Any, xs: Any) -> Any:
    ys = []
    for x in xs:
        carry, y = step(carry, x)
        ys.append(y)
    return carry, np.array(ys)


def traced(name: str) -> Callable[[Any], Any]:
    loop = LOOPS[name]
    return lambda x: loop(fg.numpy, lax.scan, fg.scipy.linalg.solve_triangular, x)


def expected(name: str, x: Any) -> Any:
    return LOOPS[name](np, python_scan, scipy.linalg.solve_triangular, x)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", LOOPS)
def test_loops_run_natively(name: str) -> None:
    function = traced(name)
    np.testing.assert_allclose(fg.jit(function)(X), expected(name, X), rtol=1e-12)
    assert is_native(function, X)
    assert is_native(fg.grad(function), X)
    assert is_native(fg.vmap(function), np.stack([X, X]))
    assert is_native(fg.vmap(fg.grad(function)), np.stack([X, X]))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", LOOPS)
def test_loops_have_derivatives_and_map(name: str) -> None:
    function, stack = traced(name), np.stack([X, X[::-1], X * 0.9])
    gradient = fg.jit(fg.grad(function))(X)
    direction, h = RNG.normal(size=X.shape), 1e-6
    slope = (expected(name, X + h * direction) - expected(name, X - h * direction)) / (2 * h)
    np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=1e-5, atol=1e-7)
    found = fg.jit(fg.vmap(function))(stack)
    np.testing.assert_allclose(found, [expected(name, x) for x in stack], rtol=1e-11)
    found = fg.jit(fg.vmap(fg.grad(function)))(stack)
    np.testing.assert_allclose(found[0], gradient, rtol=1e-9, atol=1e-12)


def test_while_loops_and_branches_run_natively() -> None:
    def function(a: Any) -> Any:
        def step(state: Any) -> Any:
            x, i = state
            regular = lax.cond(i % 2 == 0, np.linalg.inv, lambda y: np.linalg.pinv(y).T, x)
            return 0.5 * (x + regular), i + 1

        return lax.while_loop(lambda s: np.linalg.det(s[0]) ** 2 > 1 + 1e-9, step, (a, 0))[0]

    a = np.array([[2.0, 0.5], [0.5, 3.0]])
    assert is_native(function, a)
    x, i = a, 0
    while np.linalg.det(x) ** 2 > 1 + 1e-9:
        x, i = 0.5 * (x + (np.linalg.inv(x) if i % 2 == 0 else np.linalg.pinv(x).T)), i + 1
    np.testing.assert_allclose(fg.jit(function)(a), x, rtol=1e-12, atol=1e-15)


# Single operations: equal to the last bit.


def symmetric(x: Any) -> Any:
    return x @ np.conj(np.swapaxes(x, -1, -2)) + 4 * np.eye(x.shape[-2], dtype=x.dtype)


EXACT: dict[str, Callable[[Any], Any]] = {
    "svd": lambda x: tuple(np.linalg.svd(x, full_matrices=False)),
    "svd full": lambda x: tuple(np.linalg.svd(x)),
    "singular values": lambda x: np.linalg.svd(x, compute_uv=False),
    "qr wide": lambda x: tuple(np.linalg.qr(x)),
    "qr tall": lambda x: tuple(np.linalg.qr(np.swapaxes(x, -1, -2))),
    "qr complete": lambda x: tuple(np.linalg.qr(np.swapaxes(x, -1, -2), "complete")),
    "sort": lambda x: np.sort(x, axis=-1),
    "sort first": lambda x: np.sort(x, axis=0),
    "argsort": lambda x: np.argsort(x, axis=-2),
    "argsort stable": lambda x: np.argsort(x, axis=-1, kind="stable"),
}
STACKS: dict[str, Callable[[Any], Any]] = {
    "one": lambda x: x[0, 0],
    "stack": lambda x: x,
    "transposed": lambda x: np.asfortranarray(x[0]),
    "part": lambda x: x[:, ::2][::-1],
    "none": lambda x: x[:0],
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", EXACT)
def test_results_are_those_of_numpy(name: str, stack: str) -> None:
    function = EXACT[name]
    for dtype in "fdD":
        x = RNG.normal(size=(2, 3, 3, 5)).astype(dtype)
        if dtype == "D":
            x = x + 1j * RNG.normal(size=x.shape)
        x = STACKS[stack](x)
        found = arrays(fg.jit(function)(x))
        for got, wanted in zip(found, arrays(function(x)), strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted, strict=True)
        assert is_native(function, x)


@pytest.mark.parametrize("stack", ["one", "stack", "transposed", "none"])
def test_symmetric_eigenvalues(stack: str) -> None:
    for dtype in "fdD":
        x = symmetric(
            RNG.normal(size=(2, 3, 3, 3)).astype(dtype) * (1 + (1j if dtype == "D" else 0))
        )
        x = STACKS[stack](x)
        for function in (np.linalg.eigvalsh, lambda a: tuple(np.linalg.eigh(a))):
            for got, wanted in zip(arrays(fg.jit(function)(x)), arrays(function(x)), strict=True):
                np.testing.assert_array_equal(got, wanted, strict=True)
            assert is_native(function, x)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 4, 4), (0, 4, 4), (2, 0, 0), (1, 1)])
def test_factors_and_triangular_systems(shape: tuple[int, ...], dtype: str) -> None:
    a = RNG.normal(size=shape).astype(dtype)
    b = RNG.normal(size=(*shape[:-1], 2)).astype(dtype)
    tolerance = 1e-4 if dtype in "fF" else 1e-12
    for trans in (0, 1):

        def solve(a: Any, b: Any, trans: int = trans) -> Any:
            factors = fg.scipy.linalg.lu_factor(a)
            return fg.scipy.linalg.lu_solve(factors, b, trans=trans)

        assert is_native(solve, a, b)
        wanted = np.linalg.solve(np.swapaxes(a, -1, -2) if trans else a, b)
        np.testing.assert_allclose(fg.jit(solve)(a, b), wanted, tolerance, tolerance)
        for lower in (False, True):
            for unit in (False, True):
                options = {"lower": lower, "trans": trans, "unit_diagonal": unit}

                def substitute(a: Any, b: Any, options: Any = options) -> Any:
                    return fg.scipy.linalg.solve_triangular(a, b, **options)

                triangle = np.tril(a) if lower else np.triu(a)
                if unit:
                    i = np.arange(shape[-1])
                    triangle[..., i, i] = 1
                triangle = np.swapaxes(triangle, -1, -2) if trans else triangle
                assert is_native(substitute, a, b)
                found = fg.jit(substitute)(a, b)
                assert found.dtype == b.dtype
                np.testing.assert_allclose(triangle @ found, b, 20 * tolerance, 20 * tolerance)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 3)])
def test_factors_multiply_to_the_matrix(shape: tuple[int, ...]) -> None:
    a = RNG.normal(size=shape)
    packed, pivots, permutation = fg.jit(LuFactor().bind)(a)
    m, n = shape[-2:]
    k = min(m, n)
    left = np.tril(packed[..., :k], -1) + np.eye(m, k)
    rows = np.take_along_axis(a, permutation[..., None].astype(np.int64), -2)
    np.testing.assert_allclose(left @ np.triu(packed[..., :k, :]), rows, atol=1e-12)
    assert pivots.dtype == permutation.dtype == np.int32


def test_nan_ties_and_signed_zeros_are_sorted_as_by_numpy() -> None:
    x = RNG.integers(-3, 4, size=(7, 90)).astype(float)
    x[:, 3] = np.nan
    x[:, 5::7] = -0.0
    for dtype in "?bBhHiIlLqQfdFD":
        with np.errstate(invalid="ignore"):
            values = np.nan_to_num(x).astype(dtype) if dtype not in "fdFD" else x.astype(dtype)
        for function in (EXACT["sort"], EXACT["argsort"], EXACT["argsort stable"]):
            found, wanted = fg.jit(function)(values), function(values)
            assert found.tobytes() == wanted.tobytes(), dtype
            assert is_native(function, values)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 64, 1000])
def test_searching(n: int, side: str) -> None:
    for dtype in "bHilfd":
        ordered = np.sort(RNG.integers(0, 100, size=n).astype(dtype))
        values = RNG.integers(0, 100, size=(3, 5)).astype(dtype)
        if dtype in "fd":
            ordered[n - n // 7 :], values[0, :2] = np.nan, (np.nan, np.inf)
        search = fg.jit(lambda a, v: fg.numpy.searchsorted(a, v, side=side))
        wanted = np.searchsorted(ordered, values, side)
        np.testing.assert_array_equal(search(ordered, values), wanted)
        np.testing.assert_array_equal(search(ordered, values.T), wanted.T)


SPECIAL = {
    "dawsn": scipy.special.dawsn,
    "rgamma": scipy.special.rgamma,
    "k0e": scipy.special.k0e,
    "betainc": lambda x: scipy.special.betainc(x, 2.5, 0.3),
    "gammaincinv": lambda x: scipy.special.gammaincinv(x, 0.4),
    "poch": lambda x: scipy.special.poch(x + 1, 2.5),
}
SPECIAL_TRACED = {
    "betainc": lambda x: fg.scipy.special.betainc(x, x * 0 + 2.5, x * 0 + 0.3),
    "gammaincinv": lambda x: fg.lax.stop_gradient(fg.scipy.special.gammaincinv(x, x * 0 + 0.4)),
    "poch": lambda x: fg.scipy.special.poch(x + 1, x * 0 + 2.5),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_in_loops(name: str) -> None:
    if not hasattr(fg.scipy.special, name):
        pytest.skip(f"funcgrad.scipy.special has no {name}")
    evaluate = SPECIAL_TRACED.get(name, getattr(fg.scipy.special, name))
    xs = RNG.uniform(1, 3, size=(5, 40))

    def function(xs: Any) -> Any:
        return lax.scan(lambda c, x: (c + evaluate(x), evaluate(x)), np.zeros(40), xs)

    assert is_native(function, xs)
    total, stacked = fg.jit(function)(xs)
    wanted = np.array([SPECIAL[name](x) for x in xs])
    np.testing.assert_array_equal(stacked, wanted)
    np.testing.assert_allclose(total, wanted.sum(0), rtol=1e-14)


def test_one_element_for_all() -> None:
    """Operands that broadcast: scalars, rows, and literals."""
    for x, y in ((2.5, X), (X, X[:1]), (X[:, :1], X[0]), (np.array([[1.5]]), X), (X, 2.0)):
        function = fg.scipy.special.beta
        x, y = np.abs(x) + 1, np.abs(y) + 1
        found = fg.jit(function)(x, y)
        np.testing.assert_array_equal(found, scipy.special.beta(x, y))


# Failures.


def singular(x: Any) -> Any:
    def step(c: Any, s: Any) -> Any:
        return np.linalg.solve(np.diag(s), c), None  # here

    return lax.scan(step, x, np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]]))[0]


def indefinite(x: Any) -> Any:
    def step(c: Any) -> Any:
        return np.linalg.cholesky(c) - 2 * np.eye(2)  # here

    return lax.while_loop(lambda c: c.sum() > -100, step, x)


def resolved(x: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        return fg.scipy.linalg.solve_triangular(np.diag(c[:, 0] - i), c)  # here

    return lax.fori_loop(0, 9, step, x)


def chosen(x: Any) -> Any:
    return lax.cond(x[0, 0] > 0, np.linalg.inv, lambda a: a, x - x)  # here


FAILING = {
    "solve": (singular, "Singular matrix"),
    "cholesky": (indefinite, "Matrix is not positive definite"),
    "triangular": (resolved, "singular matrix: resolution failed at diagonal 0"),
    "branch": (chosen, "Singular matrix"),
}


@pytest.mark.parametrize("name", FAILING)
def test_failures_name_the_line(name: str) -> None:
    function, text = FAILING[name]
    x = np.array([[1.0, 0.5], [0.5, 2.0]])
    assert is_native(function, x)
    compiled = fg.jit(function)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError) as caught:
            compiled(x)
        first, place = str(caught.value).splitlines()
        assert first == text
        assert "test_routines.py:" in place
        assert place.endswith("# here")
    with pytest.raises(np.linalg.LinAlgError) as eager:
        function(x)
    assert str(eager.value).splitlines()[0] == text


def test_nan_is_no_failure_and_stale_flags_are_none() -> None:
    """Other operations raise the flags, too."""
    solve = fg.jit(lambda a, x: np.linalg.solve(a, np.sqrt(x)))
    found = solve(np.eye(2), np.array([[-1.0, 9.0], [4.0, 1.0]]))
    np.testing.assert_array_equal(found[:, 1], [3.0, 1.0])
    assert np.isnan(found[0, 0])
    found = solve(np.full((2, 2), np.nan), np.ones((2, 1)))
    assert np.isnan(found).all()


def test_one_bad_matrix_of_a_stack_fails() -> None:
    stack = np.stack([np.eye(2), np.zeros((2, 2)), np.eye(2)])
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        fg.jit(np.linalg.inv)(stack)


# Threads and processes.


def test_calls_from_several_threads() -> None:
    compiled = fg.jit(traced("kalman"))
    inputs = [X + 0.1 * k for k in range(8)]
    wanted = [expected("kalman", x) for x in inputs]
    found: list[Any] = [None] * 8

    def work(k: int) -> None:
        for _ in range(20):
            found[k] = compiled(inputs[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_calls_after_a_fork() -> None:
    compiled = fg.jit(traced("spectral"))
    wanted = compiled(X)
    child = os.fork()
    if not child:
        os._exit(0 if compiled(X) == wanted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# What is missing is said.


def test_ufuncs_of_another_layout_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    form = rgamma.lower(aval_of(np.ones(3)))
    assert foreign.resolve(form) is not None
    foreign.ufunc_loop.cache_clear()
    try:
        monkeypatch.setattr(foreign, "_fields", lambda ufunc: None)
        assert foreign.resolve(form) is None

        def step(i: Any, c: Any) -> Any:
            return c * np.linalg.eigvalsh(c)

        text = plan(lambda x: lax.fori_loop(0, 3, step, x), np.eye(2))
        assert "numpy: eigvalsh" in text
    finally:
        monkeypatch.undo()
        foreign.ufunc_loop.cache_clear()


def test_functions_that_do_not_sort_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    form = Sort(0).lower(aval_of(np.ones(3)))
    assert foreign.resolve(form) is not None
    foreign.sort_function.cache_clear()
    try:
        monkeypatch.setattr(foreign, "_array_functions", lambda dtype: 0)
        assert foreign.resolve(form) is None
        assert "numpy: sort" in plan(lambda x: np.sort(x) + 1.25, np.ones(3))
    finally:
        monkeypatch.undo()
        foreign.sort_function.cache_clear()


def test_single_precision_keeps_its_mode() -> None:
    """Whatever the precision of a decomposition beside it is."""
    tiny = np.float32(1e-38)

    def function(a: Any, x: Any) -> Any:
        return np.linalg.inv(a), x * np.float32(0.1)

    for a in (np.eye(2, dtype=np.float32), np.eye(2)):
        _, product = fg.jit(function)(a, np.full(4, tiny))
        assert (product == 0).all()


STACK = np.stack([np.eye(60) * (k + 2) + 0.1 for k in range(60)])
IN_PARTS: dict[str, Callable[[Any], Any]] = {
    "lapack": lambda a: fg.scipy.linalg.qr(a)[1],
    "ufunc": lambda a: np.linalg.svd(a)[1],
    "factors": lambda a: fg.scipy.linalg.lu_factor(a[0])[0],
}


@pytest.mark.skipif(not foreign._asks_for_threads(LAPACK_MODULE), reason="it is not OpenBLAS")
@pytest.mark.parametrize("name", IN_PARTS)
def test_the_threads_of_libraries_are_theirs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = foreign._asks_for_threads(LAPACK_MODULE)
    assert asked is not None
    before = asked()
    seen: set[int] = set()
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.0001):
            seen.add(asked())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        found = []
        for is_threaded in (False, True):
            monkeypatch.setattr(foreign, "has_threads", lambda module, x=is_threaded: x)
            compiled = fg.jit(lambda a: IN_PARTS[name](a) * 1.0, threads=4).lower(STACK).compile()
            found.append(compiled(STACK))
    finally:
        stop.set()
        watching.join()
    assert seen <= {before}
    assert asked() == before
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("is_threaded", [False, True])
@pytest.mark.parametrize("is_possible", [False, True])
def test_who_takes_part_where_a_library_has_threads(
    is_threaded: bool, is_possible: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "has_threads", lambda module: is_threaded)
    monkeypatch.setattr(foreign, "distance_to_one_thread", lambda module: 64 * is_possible)
    threads: list[int] = []
    step_of = routines.step_of

    def noted(kernel: int, parts: Any, n_threads: int, *rest: Any) -> Any:
        threads.append(n_threads)
        return step_of(kernel, parts, n_threads, *rest)

    monkeypatch.setattr(routines, "step_of", noted)
    fg.jit(lambda a: np.linalg.svd(a)[1], threads=4).lower(STACK).compile()
    assert threads == [1 if is_threaded and not is_possible else 4]


@pytest.mark.parametrize(
    ("shape", "threads", "expected"),
    [
        ((100, 16, 16), 4, False),  # OpenBLAS has one thread for these
        ((60, 60), 4, True),
        ((100, 60, 60), 4, True),
        ((100, 60, 60), 1, True),
        ((700, 700), 4, False),  # its threads are worth it
        ((700, 700), 1, True),  # which nobody wants here
    ],
)
def test_which_matrices_are_for_one_thread(
    shape: tuple[int, ...], threads: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(foreign, "has_threads", lambda module: True)
    monkeypatch.setattr(foreign, "distance_to_one_thread", lambda x: asked.append(x) or 64)
    fg.jit(lambda a: np.linalg.svd(a)[1], threads=threads).lower(np.zeros(shape)).compile()
    assert bool(asked) == expected


def test_how_many_threads_a_library_has() -> None:
    asked = foreign._asks_for_threads(LAPACK_MODULE)
    assert foreign.has_threads(LAPACK_MODULE) == (asked is not None and asked() > 1)
