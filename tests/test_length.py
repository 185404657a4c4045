"""Programs may be long and wide: nothing recurses along them, and time is linear in them.

Recursion is found with a low recursion limit, so that programs of some hundred operations tell.
Linearity is measured by counting calls of functions, which is exact where clocks are not; what a
count does not see, work inside of one operation on a large container, is left to processor time in
the long tests. Derivatives are compared with Taylor arithmetic on Python numbers.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.higher_order.remembered import forget_all

X = 0.7
POLICIES = fg.checkpoint_policies


class Taylor:
    """A number with first and second derivative."""

    def __init__(self, value: float, first: float = 0.0, second: float = 0.0) -> None:
        self.parts = (value, first, second)

    @staticmethod
    def of(x: Any) -> Taylor:
        return x if isinstance(x, Taylor) else Taylor(x)

    def __add__(self, other: Any) -> Taylor:
        pairs = zip(self.parts, Taylor.of(other).parts, strict=True)
        return Taylor(*(a + b for a, b in pairs))

    def __mul__(self, other: Any) -> Taylor:
        a, da, dda = self.parts
        b, db, ddb = Taylor.of(other).parts
        return Taylor(a * b, da * b + a * db, dda * b + 2 * da * db + a * ddb)

    def __sub__(self, other: Any) -> Taylor:
        return self + Taylor.of(other) * -1.0

    __radd__ = __add__
    __rmul__ = __mul__

    def sin(self) -> Taylor:
        a, da, dda = self.parts
        s, c = math.sin(a), math.cos(a)
        return Taylor(s, c * da, c * dda - s * da * da)


# Programs of n operations, in plain NumPy and Python.


def chain(n: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for _ in range(n // 2):
            x = np.sin(x) * 1.0
        return x

    return f


def wide_sum(n: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(n // 2):
            total = total + x * (1e-3 * (i % 7))
        return total

    return f


def sum_of_list(n: int) -> Callable[[Any], Any]:
    return lambda x: sum([np.sin(x) * 1e-3 for _ in range(n // 3)])


def runge_kutta(n: int) -> Callable[[Any], Any]:
    """Predators and prey, about 50 operations a step."""

    def rhs(a: Any, b: Any) -> tuple[Any, Any]:
        return a * 1.1 - a * b * 0.4, a * b * 0.1 - b * 0.4

    def f(x: Any) -> Any:
        a, b, h = x, 1.0, 0.01
        for _ in range(n // 50):
            k1, l1 = rhs(a, b)
            k2, l2 = rhs(a + k1 * (h / 2), b + l1 * (h / 2))
            k3, l3 = rhs(a + k2 * (h / 2), b + l2 * (h / 2))
            k4, l4 = rhs(a + k3 * h, b + l3 * h)
            a = a + (k1 + k2 * 2.0 + k3 * 2.0 + k4) * (h / 6)
            b = b + (l1 + l2 * 2.0 + l3 * 2.0 + l4) * (h / 6)
        return a

    return f


PROGRAMS = {"chain": chain, "sum": wide_sum, "list": sum_of_list, "runge-kutta": runge_kutta}


def expected(f: Callable[[Any], Any], order: int) -> float:
    """A derivative at `X`."""
    return float(f(Taylor(X, 1.0)).parts[order])


# Transformations, each with the order of the derivative that it returns, or None.


def _custom_jvp(f: Any) -> Any:
    g = fg.custom_jvp(f)
    g.defjvp(lambda primals, tangents: fg.jvp(f, primals, tangents))
    return g


def _custom_vjp(f: Any) -> Any:
    g = fg.custom_vjp(f)
    g.defvjp(lambda x: (f(x), x), lambda x, ct: fg.vjp(f, x)[1](ct))
    return g


def _staged(f: Any, x: Any = X) -> Any:
    return fg.make_jaxpr(f)(x).eval(x)[0]


def _watched(f: Any) -> Any:
    with fg.debug_nans():
        return fg.grad(f)(X)


def _stepwise(f: Any) -> Any:
    with fg.disable_jit():
        return fg.grad(fg.jit(f))(X)


def _in_scan(f: Any) -> Any:
    return lambda v: lax.scan(lambda c, _: (f(c), None), v, None, length=1)[0]


def _in_while(f: Any) -> Any:
    return lambda v: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1])), (0, v))[1]


def _in_cond(f: Any) -> Any:
    return lambda v: lax.cond(v < 1e9, f, lambda x: x, v)


def _names(f: Any) -> Any:
    policy = POLICIES.save_only_these_names("a")
    return fg.checkpoint(lambda x: f(fg.checkpoint_name(x, "a")), policy=policy)


TRANSFORMATIONS: dict[str, tuple[Callable[[Any], Any], int | None]] = {
    "grad": (lambda f: fg.grad(f)(X), 1),
    "vjp": (lambda f: fg.vjp(f, X)[1](np.float64(1.0))[0], 1),
    "jvp": (lambda f: fg.jvp(f, (X,), (1.0,))[1], 1),
    "linearize": (lambda f: fg.linearize(f, X)[1](1.0), 1),
    "linear_transpose": (
        lambda f: fg.linear_transpose(fg.linearize(f, X)[1], X)(np.float64(1.0))[0],
        1,
    ),
    "grad of grad": (lambda f: fg.grad(fg.grad(f))(X), 2),
    "jvp of grad": (lambda f: fg.jvp(fg.grad(f), (X,), (1.0,))[1], 2),
    "hessian": (lambda f: fg.hessian(f)(X), 2),
    "vmap": (lambda f: fg.vmap(f)(np.full(2, X))[1], 0),
    "vmap of grad": (lambda f: fg.vmap(fg.grad(f))(np.full(2, X))[1], 1),
    "grad of vmap": (lambda f: fg.grad(lambda x: np.sum(fg.vmap(f)(x)))(np.full(2, X))[1], 1),
    "staged": (lambda f: _staged(f), 0),
    "staged grad": (lambda f: _staged(fg.grad(f)), 1),
    "staged grad of grad": (lambda f: _staged(fg.grad(fg.grad(f))), 2),
    "staged vmap": (lambda f: _staged(fg.vmap(f), np.full(2, X))[1], 0),
    "grad of staged": (lambda f: fg.grad(lambda x: fg.make_jaxpr(f)(X).eval(x)[0])(X), 1),
    "printed": (lambda f: str(fg.make_jaxpr(f)(X)) + fg.make_jaxpr(f)(X).pretty(), None),
    "eval_shape": (lambda f: fg.eval_shape(f, X), None),
    "checkpoint": (lambda f: fg.grad(fg.checkpoint(f))(X), 1),
    "checkpoint, policy": (
        lambda f: fg.grad(fg.checkpoint(f, policy=POLICIES.dots_saveable))(X),
        1,
    ),
    "checkpoint, names": (lambda f: fg.grad(_names(f))(X), 1),
    "checkpoint, budget": (lambda f: fg.grad(fg.checkpoint(f, budget=10**9))(X), 1),
    "staged checkpoint": (lambda f: _staged(fg.grad(fg.checkpoint(f))), 1),
    "saved_residuals": (lambda f: str(fg.saved_residuals(f, X)), None),
    "custom_jvp": (lambda f: fg.grad(_custom_jvp(f))(X), 1),
    "custom_vjp": (lambda f: fg.grad(_custom_vjp(f))(X), 1),
    "staged custom_vjp": (lambda f: _staged(fg.grad(_custom_vjp(f))), 1),
    "watched": (_watched, 1),
    "stepwise": (_stepwise, 1),
    "scan": (lambda f: fg.make_jaxpr(fg.grad(_in_scan(f)))(X), None),
    "while": (lambda f: fg.make_jaxpr(fg.grad(_in_while(f)))(X), None),
    "cond": (lambda f: fg.make_jaxpr(fg.grad(_in_cond(f)))(X), None),
    "vmap of cond": (lambda f: fg.make_jaxpr(fg.vmap(_in_cond(f)))(np.full(2, X)), None),
}


def check(result: Any, f: Callable[[Any], Any], order: int | None) -> None:
    if order is not None:
        np.testing.assert_allclose(result, expected(f, order), rtol=1e-9)


# No recursion along programs.

ROOM = 250
"""Frames for what does nest: transformations in each other, rules in them."""


@contextmanager
def shallow_stack() -> Iterator[None]:
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + ROOM)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_recurses_along_a_program(program: str, transformation: str) -> None:
    transform, order = TRANSFORMATIONS[transformation]
    transform(PROGRAMS[program](50))  # imports what it needs
    f = PROGRAMS[program](2 * ROOM)
    with shallow_stack():
        result = transform(f)
    check(result, f, order)


FUNCTIONS = sorted(name for name in fnp.__all__ if callable(getattr(fnp, name)))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_meets_itself_when_numpy_is_asked(name: str) -> None:
    """NumPy hands traced values back to funcgrad, wherever they stand among the arguments."""
    x = np.arange(1.0, 8.0)
    for function in (getattr(fnp, name), getattr(np, name, None)):
        for before, after in (((x,), ()), ((x,), (1,)), ((), (x,))):
            call = lambda i, f=function, a=before, b=after: f(*a, i, *b)  # noqa: E731
            try:
                fg.make_jaxpr(call)(2)
            except RecursionError:
                pytest.fail(f"{name} recurses with a traced integer between {before} and {after}")
            except Exception:
                continue  # arguments that it does not take


# Linear time.


def calls(function: Callable[[], Any]) -> int:
    """How many functions are called, of Python and of C."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    enabled = gc.isenabled()
    gc.disable()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
        if enabled:
            gc.enable()
    return count


def check_linear(run: Callable[[int], Any], n: int) -> None:
    """Doubling what has been added doubles the calls that it takes."""
    run(4 * n)  # what is done once
    counts = []
    for k in (1, 2, 4):
        forget_all()  # every program is traced anew
        counts.append(calls(lambda k=k: run(k * n)))
    low, middle, high = counts
    assert high - middle <= 2.1 * (middle - low)


@pytest.mark.sampled(32)
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("program", ["chain", "runge-kutta"])
def test_calls_are_linear_in_the_length(program: str, transformation: str) -> None:
    transform, _ = TRANSFORMATIONS[transformation]
    with fg.reroll_loops(False):
        check_linear(lambda n: transform(PROGRAMS[program](n)), 100)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("transformation", ["staged", "staged grad of grad", "vmap of cond"])
@pytest.mark.parametrize("program", ["chain", "runge-kutta"])
def test_calls_are_linear_where_loops_are_found(program: str, transformation: str) -> None:
    """All of these programs are long enough for loops to be looked for."""
    transform, _ = TRANSFORMATIONS[transformation]
    check_linear(lambda n: transform(PROGRAMS[program](n)), 800)


def numbers(n: int) -> list[float]:
    return [0.5 + i % 7 for i in range(n)]


def each(values: Any) -> list[Any]:
    return [np.sin(x) for x in values]


def total(values: Any) -> Any:
    return np.sum(np.stack(each(values)))


def _loop(v: Any) -> Any:
    return total(lax.scan(lambda c, _: (each(c), each(c)), v, None, length=2)[0])


def _chosen(v: Any) -> Any:
    return total(lax.cond(v[0] > 0, each, lambda x: x, v))


# Programs with n inputs, results or operands of one operation.
WIDE: dict[str, Callable[[int], Any]] = {
    "grad": lambda n: fg.grad(total)(numbers(n)),
    "grad, arguments": lambda n: fg.grad(lambda *a: total(a), tuple(range(n)))(*numbers(n)),
    "grad, auxiliary": lambda n: fg.grad(lambda v: (total(v), each(v)), has_aux=True)(numbers(n)),
    "vjp": lambda n: fg.vjp(each, numbers(n))[1](numbers(n)),
    "jvp": lambda n: fg.jvp(each, (numbers(n),), (numbers(n),)),
    "linearize": lambda n: fg.linearize(each, numbers(n))[1](numbers(n)),
    "vmap": lambda n: fg.vmap(each, in_axes=([0] * n,), out_axes=[0] * n)([np.ones(2)] * n),
    "printed": lambda n: str(fg.make_jaxpr(each)(numbers(n))),
    "checkpoint": lambda n: fg.grad(lambda v: total(fg.checkpoint(each)(v)))(numbers(n)),
    "checkpoint, policy": lambda n: fg.grad(fg.checkpoint(total, policy=POLICIES.dots_saveable))(
        numbers(n)
    ),
    "checkpoint, budget": lambda n: fg.grad(fg.checkpoint(total, budget=10**9))(numbers(n)),
    "custom_jvp": lambda n: fg.grad(_custom_jvp(total))(numbers(n)),
    "custom_vjp": lambda n: fg.grad(_custom_vjp(total))(numbers(n)),
    "saved_residuals": lambda n: fg.saved_residuals(total, numbers(n)),
    "scan": lambda n: fg.make_jaxpr(fg.grad(_loop))(numbers(n)),
    "cond": lambda n: fg.make_jaxpr(fg.grad(_chosen))(numbers(n)),
    "concatenate": lambda n: fg.grad(lambda x: np.sum(np.concatenate([x] * n)))(np.ones(2)),
    "rows": lambda n: fg.grad(lambda x: sum(list(x)))(np.ones(n)),
    "elements": lambda n: fg.grad(lambda x: sum(x[i] for i in range(n)))(np.ones(n)),
    "split": lambda n: fg.grad(lambda x: sum(map(np.sum, np.split(x, n))))(np.ones(n)),
    "select": lambda n: fg.grad(
        lambda x: np.select([x > float(i) for i in range(n)], [x * i for i in range(n)])
    )(3.5),
    "updates": lambda n: fg.grad(lambda x: _updated(x, n))(np.ones(4)),
    "ravel": lambda n: fg.grad(lambda v: np.sum(fg.flatten_util.ravel_pytree(v)[0]))(numbers(n)),
    "calls of checkpoint": lambda n: fg.grad(_repeated(fg.checkpoint(np.sin), n))(X),
    "calls of custom_vjp": lambda n: fg.grad(_repeated(_custom_vjp(np.sin), n))(X),
    "calls of grad": lambda n: fg.grad(_repeated(fg.grad(np.sin), n))(X),
    "staged calls of jit": lambda n: fg.make_jaxpr(fg.grad(_repeated(fg.jit(np.sin), n)))(X),
}


def _updated(x: Any, n: int) -> Any:
    for i in range(n):
        x = fnp.at(x)[i % 4].set(x[(i + 1) % 4] * 1.01)
    return np.sum(x)


def _repeated(f: Any, n: int) -> Any:
    def g(x: Any) -> Any:
        for _ in range(n):
            x = f(x)
        return x

    return g


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", WIDE)
def test_calls_are_linear_in_the_width(name: str) -> None:
    WIDE[name](30)
    with shallow_stack():
        WIDE[name](2 * ROOM)
    # Loops are searched from a length on, and found from a greater one.
    check_linear(WIDE[name], 480 if name.startswith("staged") else 30)


# Memory.


@pytest.mark.usefixtures("small_heap")
@pytest.mark.parametrize(
    "transformation",
    ["grad", "vjp", "jvp", "linearize", "grad of grad", "vmap of grad", "staged grad", "hessian"],
)
def test_residuals_are_freed_with_their_last_reader(transformation: str) -> None:
    """Not when the garbage collector happens to run: they may be large."""
    transform, _ = TRANSFORMATIONS[transformation]
    transform(chain(20))
    gc.collect()
    gc.disable()
    try:
        transform(chain(20))
        assert gc.collect() == 0
    finally:
        gc.enable()


# Long programs.


def check_time(run: Callable[[int], Any], short: int, long: int) -> Any:
    """Processor time of an operation does not grow.

    A quadratic part would have to be tiny: the long program is at least 20 times the short one. The
    garbage collector is off: it does not start in short programs, and its work in long ones, which
    is in proportion to their length, may be twice that of everything else.
    """

    def timed(n: int) -> tuple[float, Any]:
        forget_all()  # every program is traced anew
        gc.collect()
        gc.disable()
        try:
            start = time.process_time()
            result = run(n)
            return (time.process_time() - start) / n, result
        finally:
            gc.enable()

    fast = min(timed(short)[0] for _ in range(5))
    # The first run takes its memory from the system, page by page.
    slow, result = min((timed(long) for _ in range(2)), key=lambda run: run[0])
    assert slow < 2 * fast
    return result


@pytest.mark.nightly
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradient_of_a_hundred_thousand_operations(program: str) -> None:
    make = PROGRAMS[program]
    result = check_time(lambda n: fg.grad(make(n))(X), 1000, 100_000)
    check(result, make(100_000), 1)


@pytest.mark.nightly
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("program", ["chain", "runge-kutta"])
def test_twenty_thousand_operations(program: str, transformation: str) -> None:
    transform, order = TRANSFORMATIONS[transformation]
    make = PROGRAMS[program]
    result = check_time(lambda n: transform(make(n)), 1000, 20_000)
    check(result, make(20_000), order)


@pytest.mark.nightly
@pytest.mark.parametrize("name", WIDE)
def test_ten_thousand_inputs(name: str) -> None:
    check_time(WIDE[name], 500, 10_000)


@pytest.mark.nightly
def test_a_tape_of_a_million_operations_is_freed() -> None:
    _, push = fg.linearize(chain(1_000_000), X)
    del push
