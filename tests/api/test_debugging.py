"""Callbacks, the first NaN, and leaks, against closed forms and what Python itself prints."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    MissingRuleError,
    NonFiniteError,
    ShapeError,
    TreeError,
    UnexpectedTracerError,
)
from funcgrad.lax.loops import scan, while_loop


def identity(f):
    return f


MODES = pytest.mark.parametrize("mode", [identity, fg.jit], ids=["eager", "jit"])
F64 = fg.ShapeDtypeStruct((), np.float64)


class Log(list):
    """What callbacks have seen, as Python numbers and lists."""

    def __call__(self, *values):
        self.append([np.asarray(v).tolist() for v in values])


# debug.callback and debug.print.


@MODES
def test_print_formats_values(mode, capsys):
    @mode
    def f(x):
        fg.debug.print("a {:.2f} b {b} {{}} {name!r}", x, b=x + 1, name="n")
        return x

    f(1.0)
    f(2.0)
    assert capsys.readouterr().out == "a 1.00 b 2.0 {} 'n'\na 2.00 b 3.0 {} 'n'\n"


def test_compiled_code_prints_though_nothing_is_used():
    log = Log()

    @fg.jit
    def f(x):
        fg.debug.callback(log, x, {"k": 2 * x}["k"])

    for i in range(3):
        assert f(float(i)) is None
    assert log == [[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]]
    fg.jit(lambda x: (f(x), f(x + 1), x)[2])(5.0)
    assert log[3:] == [[5.0, 10.0], [6.0, 12.0]]


def test_branches_that_give_nothing():
    log = Log()

    def told(x):
        fg.lax.cond(x > 1, lambda: fg.debug.callback(log, x), lambda: None)

    def step(state):
        told(state[1])
        return state[0] + 1, 2 * state[1]

    fg.jit(told)(2.0)
    fg.jit(told)(1.0)
    assert log == [[2.0]]
    assert fg.jit(lambda x: while_loop(lambda s: s[0] < 3, step, (0, x))[1])(1.0) == 8.0
    assert log[1:] == [[2.0], [4.0]]


def test_program_order_is_kept():
    log = Log()

    @fg.jit
    def f(x):
        fg.debug.callback(log, 0)
        a = np.linalg.inv(x)
        fg.debug.callback(log, 1)
        y = fg.io_callback(lambda v: (log(2), v)[1], x, a @ x)
        fg.debug.callback(log, 3)
        z = fg.pure_callback(np.sort, x, np.sin(x))
        fg.debug.callback(log, 4)
        return z.sum(), (y * a).sum()

    f(np.eye(3))
    assert log == [[i] for i in range(5)]


@MODES
def test_in_every_step_of_loops(mode):
    log = Log()

    def f(x):
        def body(c, i):
            fg.debug.callback(log, i, c)
            return c * 2, None

        c, _ = scan(body, x, np.arange(3))
        return while_loop(lambda c: c < 50, lambda c: (fg.debug.callback(log, c), c * 2)[1], c)

    assert mode(f)(1.0) == 64.0
    assert log == [[0, 1.0], [1, 2.0], [2, 4.0], [8.0], [16.0], [32.0]]


@MODES
def test_once_per_lane(mode):
    log = Log()

    def f(x, y):
        fg.debug.callback(log, x, y)
        fg.debug.callback(log, y)
        return x * y

    out = mode(fg.vmap(mode(f), in_axes=(0, None)))(np.arange(3.0), 2.0)
    np.testing.assert_array_equal(out, [0, 2, 4])
    assert log == [[0.0, 2.0], [1.0, 2.0], [2.0, 2.0], [2.0]]
    log.clear()
    fg.vmap(fg.vmap(lambda x: fg.debug.callback(log, x), out_axes=None), out_axes=None)(np.eye(2))
    assert log == [[1.0], [0.0], [0.0], [1.0]]


@MODES
def test_in_the_forward_pass_once(mode):
    log = Log()

    def f(x):
        y = np.sin(x)
        fg.debug.callback(log, y)
        return y * x

    x = 0.7
    np.testing.assert_allclose(mode(fg.grad(mode(f)))(x), np.cos(x) * x + np.sin(x))
    assert log == [[np.sin(x)]]
    fg.jvp(mode(f), (x,), (1.0,))
    assert log == [[np.sin(x)]] * 2


@MODES
def test_in_loops_that_are_differentiated_once_per_step(mode):
    log = Log()

    def body(c, _):
        fg.debug.callback(log, c)
        return c * c, None

    assert mode(fg.grad(lambda x: scan(body, x, None, length=3)[0]))(1.5) == 8 * 1.5**7
    assert log == [[1.5], [1.5**2], [1.5**4]]
    log.clear()
    loop = mode(fg.grad(lambda x: while_loop(lambda c: c < 5, lambda c: body(c, 0)[0], x)))
    np.testing.assert_allclose(loop(1.5), 4 * 1.5**3)
    assert log == [[1.5], [1.5**2]]


def test_in_loops_with_large_products_once_per_step():
    log = Log()
    xs, w = np.ones((3, 64)), np.ones((64, 64))

    def body(c, x):
        fg.debug.callback(log, x[0], c[0])
        return np.tanh(c + x @ w), None

    fg.jit(fg.grad(lambda w: scan(body, np.zeros(64), xs * w[0, 0])[0].sum()))(w)
    assert [row[0] for row in log] == [1.0, 1.0, 1.0]
    assert log[0][1] == 0.0
    assert log[1][1] == np.tanh(64.0)


def test_callbacks_get_copies():
    kept = []

    @fg.jit
    def f(x):
        fg.debug.callback(kept.append, x * 2)
        return x * 2 + 1

    x = np.arange(4.0)
    f(x)
    f(x + 1)
    np.testing.assert_array_equal(kept, [[0, 2, 4, 6], [2, 4, 6, 8]])
    fg.debug.callback(kept.append, x)
    kept[-1][...] = -1
    np.testing.assert_array_equal(x, np.arange(4.0))


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (("{} {}", 1), {}, "asks for an argument that was not given"),
        (("{x}",), {"y": 1}, "asks for an argument that was not given: 'x'"),
        (("loss", 1), {}, "has no place for argument 0"),
        (("{0}", 1), {"x": 2}, "has no place for argument 'x'"),
        (("{", 1), {}, "is not a format string"),
        ((1.5,), {}, "first argument must be a format string"),
    ],
)
def test_format_strings_are_checked_where_they_are_written(args, kwargs, message):
    with pytest.raises(ArgumentError, match=r"debug\.print") as caught:
        fg.jit(lambda x: fg.debug.print(*args, **kwargs))(1.0)
    assert message in str(caught.value)
    assert "test_debugging.py" in str(caught.value)


def test_errors_of_callbacks_pass_through():
    def fail(x):
        raise KeyError("mine")

    f = fg.jit(lambda x: (fg.debug.callback(fail, x), x)[1])
    with pytest.raises(KeyError, match="mine"):
        f(1.0)


# pure_callback and io_callback.


@MODES
def test_pure_callback(mode):
    def host(x, scale):
        return {"sorted": np.sort(x) * scale, "n": len(x)}

    def f(x):
        types = {"sorted": x, "n": fg.ShapeDtypeStruct((), np.int64)}
        out = fg.pure_callback(host, types, x, scale=2.0)
        return out["sorted"] + out["n"]

    x = np.array([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(mode(f)(x), np.sort(x) * 2 + 3)
    loop = mode(lambda x: scan(lambda c, _: (c + f(c), None), x, None, length=2)[0])
    expected = x
    for _ in range(2):
        expected = expected + np.sort(expected) * 2 + 3
    np.testing.assert_array_equal(loop(x), expected)


SHAPES = {
    "sequential": [((2,), ())] * 3,
    "sequential_unrolled": [((2,), ())] * 3,
    "expand_dims": [((3, 2), (1,))],
    "broadcast_all": [((3, 2), (3,))],
    "legacy_vectorized": [((3, 2), ())],
}


@MODES
@pytest.mark.parametrize("method", SHAPES)
def test_vmap_methods(method, mode):
    shapes = []

    def host(x, s):
        shapes.append((np.shape(x), np.shape(s)))
        return np.sort(x) * np.reshape(s, np.shape(s) + (1,) * bool(np.ndim(s)))

    def f(x, s):
        return fg.pure_callback(host, fg.ShapeDtypeStruct((2,), np.float64), x, s,
                                vmap_method=method)  # fmt: skip

    x = np.array([[2.0, 1.0], [0.0, 5.0], [4.0, -4.0]])
    out = fg.vmap(mode(f), in_axes=(0, None))(x, 10.0)
    np.testing.assert_array_equal(out, np.sort(x) * 10)
    assert shapes == SHAPES[method]


def test_vmap_without_a_method_is_refused():
    f = fg.vmap(lambda x: fg.pure_callback(np.sin, F64, x))
    with pytest.raises(MissingRuleError, match="vmap_method") as caught:
        f(np.ones(3))
    assert "pure_callback(sin)" in str(caught.value)
    assert "test_debugging.py" in str(caught.value)
    with pytest.raises(ArgumentError, match="vmap_method must be one of sequential"):
        fg.pure_callback(np.sin, F64, 1.0, vmap_method="parallel")


def test_differentiating_a_callback_is_refused_unless_a_rule_says_how():
    def f(x):
        return fg.pure_callback(np.sin, F64, x)

    with pytest.raises(MissingRuleError, match="custom_jvp"):
        fg.grad(f)(1.0)
    g = fg.custom_jvp(f)
    g.defjvp(lambda x, t: (f(x[0]), np.cos(x[0]) * t[0]))
    np.testing.assert_allclose(fg.grad(g)(1.0), np.cos(1.0))
    np.testing.assert_allclose(fg.jit(fg.grad(g))(1.0), np.cos(1.0))
    np.testing.assert_allclose(fg.grad(lambda x: x * f(fg.stop_gradient(x)))(1.0), np.sin(1.0))


@MODES
@pytest.mark.parametrize(
    ("host", "error", "expected", "got"),
    [
        (lambda x: np.ones(3), ShapeError, "f64[2]", "f64[3]"),
        (lambda x: np.ones(2, np.float32), DtypeError, "f64[2]", "f32[2]"),
        (lambda x: (x, x), TreeError, "*", "(*, *)"),
    ],
)
def test_results_are_checked(mode, host, error, expected, got):
    f = mode(lambda x: fg.pure_callback(host, fg.ShapeDtypeStruct((2,), np.float64), x))
    with pytest.raises(error) as caught:
        f(np.ones(2))
    message = str(caught.value)
    assert "pure_callback(<lambda>)" in message
    assert "test_debugging.py" in message
    assert f"expected      {expected}" in message or error is TreeError
    assert f"got           {got}" in message or error is TreeError


@MODES
def test_io_callback(mode):
    calls = []

    def read(x):
        calls.append(float(x))
        return x + len(calls)

    f = mode(lambda x: (fg.io_callback(read, F64, x), fg.io_callback(read, F64, x)))
    assert f(0.0) == (1.0, 2.0)
    out = fg.vmap(mode(lambda x: fg.io_callback(read, F64, x)))(np.array([10.0, 20.0]))
    np.testing.assert_array_equal(out, [13.0, 24.0])
    assert calls == [0.0, 0.0, 10.0, 20.0]
    assert mode(lambda x: fg.io_callback(lambda v: None, None, x))(1.0) is None
    with pytest.raises(MissingRuleError, match="io_callback"):
        fg.grad(mode(lambda x: fg.io_callback(read, F64, x)))(1.0)


# debug_nans and debug_infs.


def located(caught, text):
    """The message, which must name the line of this file that holds ``text``."""
    message = str(caught.value)
    line = next(row for row in message.splitlines() if row.startswith("  at "))
    assert "test_debugging.py:" in line
    assert text in line
    return message


@MODES
def test_the_first_nan_forwards(mode):
    def f(x):
        y = x - 1
        z = np.log(y)  # here
        return z * 2 + np.sqrt(z)

    assert np.isnan(mode(fg.jit(f))(0.5)) if mode is fg.jit else True
    with fg.debug_nans(), pytest.raises(NonFiniteError) as caught:
        fg.jit(f)(np.array([2.0, 0.5, 4.0]))
    message = located(caught, "np.log(y)  # here")
    assert message.startswith("log gave the first nan")
    assert "operand       f64[3] [ 1. -0.5 3. ]" in message
    assert "result        f64[3]" in message
    assert "first at      [1], 1 in all" in message
    assert isinstance(caught.value, FloatingPointError)
    np.testing.assert_array_equal(fg.jit(f)(np.array([2.0])), [0.0])


def backward(x):
    y = x * 0
    return np.sqrt(y) * 3  # here


@pytest.mark.parametrize(
    "f",
    [fg.grad(backward), fg.jit(fg.grad(backward)), fg.grad(fg.jit(backward))],
    ids=["eager", "jit outside", "jit inside"],
)
def test_the_first_infinity_backwards(f):
    with np.errstate(all="ignore"), fg.debug_infs(), pytest.raises(NonFiniteError) as caught:
        f(1.0)
    located(caught, "np.sqrt(y) * 3  # here")


def chain(x):
    def body(c, x):
        d = c * x
        return d * np.sqrt(d), d  # in the loop

    return scan(body, 1.0, x)[0]


@pytest.mark.parametrize(
    "f",
    [fg.jit(fg.grad(chain)), fg.grad(fg.jit(chain)), fg.jit(fg.grad(fg.jit(chain)))],
    ids=["jit outside", "jit inside", "jit around jit"],
)
def test_a_nan_of_the_backward_pass_of_a_loop_names_line_and_step(f):
    # d * sqrt(d) is finite at 0 with a finite derivative; its two terms are 0 and 0 * inf.
    x = np.array([2.0, 3.0, 0.0, 5.0])
    with np.errstate(all="ignore"), fg.debug_infs(), pytest.raises(NonFiniteError) as caught:
        f(x)
    message = located(caught, "np.sqrt(d), d  # in the loop")
    assert "in step       2 of 4 of the loop" in message


def test_a_nan_of_a_backward_loop_from_a_rule_by_the_user():
    @fg.custom_vjp
    def f(x):
        return 2 * x

    def pull(x, ct):
        return (np.log(x - 3) * ct,)  # the rule

    f.defvjp(lambda x: (2 * x, x), pull)

    def loss(x):
        return scan(lambda c, x: (c + f(c) * x, None), x, np.ones(4))[0]

    grad = fg.jit(fg.grad(loss))
    with fg.debug_nans(), pytest.raises(NonFiniteError) as caught:
        grad(1.0)
    message = located(caught, "# the rule")
    assert "in step       0 of 4" in message  # c is 1, then 3: log(-2); log(0) is no nan


@MODES
def test_steps_of_while_loops(mode):
    def f(x):
        return while_loop(lambda c: c > -5, lambda c: c - 1 + 0 * np.sqrt(c), x)  # the loop

    with fg.debug_nans(), pytest.raises(NonFiniteError) as caught:
        mode(f)(2.5)
    message = located(caught, "# the loop")
    assert "in step       3 of the loop" in message

    step = np.array([1.0, 0.0])

    def h(x):
        y = while_loop(lambda c: c[0] < 3, lambda c: c + step + np.sqrt(c[1]), x)  # backward
        return y.sum()

    with np.errstate(all="ignore"), fg.debug_infs(), pytest.raises(NonFiniteError) as caught:
        mode(fg.grad(h))(np.array([1.0, 0.0]))
    message = located(caught, "# backward")
    assert "in step       0 of the loop" in message


def test_what_comes_in_and_is_replaced_is_not_reported():
    f = fg.jit(lambda x: np.where(np.isnan(x), 0.0, 2 * x) + np.float64(np.inf))
    with fg.debug_nans(), fg.debug_infs():
        np.testing.assert_array_equal(f(np.array([np.nan, 1.0])), [np.inf, np.inf])
    with fg.debug_nans():
        assert fg.jit(lambda x: 1 / x)(0.0) == np.inf
    with fg.debug_nans(), fg.debug_nans(False):
        assert np.isnan(fg.jit(np.log)(-1.0))
        assert np.isnan(fg.jit(lambda x: x)(np.nan))
    assert np.isnan(fg.jit(np.log)(-1.0))


HOLE = np.array([1.0, np.nan])
WEIGHTS = {"w": HOLE, "b": np.ones(2)}


def affine(p, x):
    y = x * 2
    return (p["w"] * y + p["b"]).sum()  # reads it


def with_constant(x):
    return (x * HOLE).sum()  # reads it


def with_scalar(x):
    return np.where(x > 5, x, np.nan).sum()  # reads it


def with_marker(x):
    return np.sum(np.where(x > 5, x, np.full(2, np.nan)) * 2)  # reads it


def in_a_loop(x):
    return scan(lambda c, h: (c + h * x.sum(), None), 0.0, HOLE)[0]  # reads it


def affine_of(x):
    return affine(WEIGHTS, x)


FUNCTIONS = [affine_of, with_constant, with_scalar, with_marker, in_a_loop]
OF_VALUES = {
    "jit": lambda f: fg.jit(fg.value_and_grad(f)),
    "value_and_grad": lambda f: fg.value_and_grad(fg.jit(f)),
    "vmap": lambda f: lambda x: fg.vmap(f)(np.stack([x, x])),
    "jvp": lambda f: lambda x: fg.jvp(f, (x,), (x,)),
    "vjp": lambda f: lambda x: fg.vjp(f, x),
    "linearize": lambda f: lambda x: fg.linearize(f, x),
}
OF_DERIVATIVES = {
    "grad": fg.grad,
    "jacfwd": fg.jacfwd,
    "jacrev": fg.jacrev,
}


@pytest.mark.parametrize(
    ("what", "transform", "f"),
    [
        *((what, t, f) for what, t in OF_VALUES.items() for f in FUNCTIONS),
        *((what, t, f) for what, t in OF_DERIVATIVES.items() for f in FUNCTIONS[:2]),
    ],
)
def test_nans_of_constants_are_reported_with_the_line_that_reads_them(what, transform, f):
    with fg.debug_nans(), pytest.raises(NonFiniteError) as caught:
        transform(f)(np.ones(2))
    message = located(caught, "# reads it")
    assert message.startswith(f"{what}(")
    assert "returned a nan that no operation has made: it came in from outside." in message
    assert "operand       f64" in message
    assert "np.where(np.isnan(x), 0, x)" in message


@pytest.mark.parametrize("inner", [identity, fg.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("transform", [fg.jit, fg.grad, fg.value_and_grad])
def test_nans_of_arguments_are_reported_with_their_path(transform, inner):
    with fg.debug_nans(), pytest.raises(NonFiniteError) as caught:
        transform(inner(affine))(WEIGHTS, np.ones(2))
    message = located(caught, "# reads it")
    assert "argument      `args[0]['w']`, f64[2] [ 1. nan]" in message
    assert "['b']" not in message
    with fg.debug_nans(), pytest.raises(NonFiniteError, match=r"`kwargs\['x'\]`"):
        transform(inner(affine))({"w": np.ones(2), "b": np.ones(2)}, x=HOLE)


def test_a_nan_that_nothing_reads():
    with fg.debug_nans(), pytest.raises(NonFiniteError, match=r"`args\[0\]`"):
        fg.jit(lambda x: x)(np.nan)
    with fg.debug_nans(), pytest.raises(NonFiniteError, match="came in from outside"):
        fg.jit(lambda x: (x, np.nan))(1.0)


def test_what_an_earlier_call_read_is_not_blamed():
    clean = fg.jit(lambda x: np.where(np.isnan(x), 0.0, x * 2))
    with fg.debug_nans():
        clean(HOLE)
        with pytest.raises(NonFiniteError) as caught:
            fg.jit(lambda x: x + 1)(HOLE)  # the second
        located(caught, "# the second")


@MODES
def test_results_do_not_depend_on_watching(mode):
    def loss(w, x):
        h = np.tanh(x @ w)
        c, ys = scan(lambda c, r: (c * 0.9 + r.sum(), c), 0.0, h)
        return c + (ys**2).sum()

    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(3, 2)), rng.normal(size=(5, 3))
    plain = mode(fg.value_and_grad(loss))(w, x)
    with fg.debug_nans(), fg.debug_infs():
        watched = mode(fg.value_and_grad(loss))(w, x)
    for a, b in zip(plain, watched, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_environment_variable():
    code = "import funcgrad as fg, numpy as np; fg.jit(lambda x: np.log(x))(-1.0)"
    env = {**os.environ, "FUNCGRAD_DEBUG_NANS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode != 0
    assert "NonFiniteError: log gave the first nan" in done.stderr


def test_equations_of_derivatives_carry_the_lines_of_the_function():
    text = fg.make_jaxpr(fg.grad(fg.jit(chain)))(np.ones(3)).pretty()
    here = os.path.basename(__file__)
    lines = {int(row.rpartition(":")[2]) for row in text.splitlines() if here in row}
    first = chain.__code__.co_firstlineno
    inner = {n for n in lines if first < n <= first + 5}
    assert {first + 2, first + 3} <= inner
    transposed = [row for row in text.splitlines() if "reverse=True" in row]
    assert transposed
    assert all(here in row for row in transposed)


# checking_leaks.


class Holder:
    value = None


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("transform", "what"),
    [
        (fg.jit, "jit(f)"),
        (fg.grad, "grad(f)"),
        (lambda f: lambda x: fg.vmap(f)(np.full(2, x)), "vmap(f)"),
        (lambda f: lambda x: fg.jvp(f, (x,), (1.0,)), "jvp(f)"),
        (fg.make_jaxpr, "make_jaxpr(f)"),
    ],
)
@pytest.mark.usefixtures("small_heap")
def test_leaks_are_found_where_the_transformation_ends(transform, what, monkeypatch):
    # In a module that is made here: what was there before is hidden from searches of the heap.
    module = types.ModuleType("keeping")
    monkeypatch.setitem(sys.modules, "keeping", module)
    module.STASH = []

    def f(x):
        y = x * 2  # made here
        module.STASH.append(y)
        return y

    with fg.checking_leaks(), pytest.raises(UnexpectedTracerError) as caught:
        transform(f)(1.0)
    message = str(caught.value)
    assert f"{what} has ended, but a traced" in message
    assert "global variable `STASH` of keeping" in message
    if "jit" in what or "jaxpr" in what:
        assert "# made here" in message


@pytest.mark.usefixtures("small_heap")
def test_attributes_that_hold_leaks_are_named():
    holder = Holder()

    def f(x):
        holder.value = x
        return x

    with fg.checking_leaks(), pytest.raises(UnexpectedTracerError, match="Holder"):
        fg.jit(f)(1.0)
    holder.value = None


def test_no_leaks_are_seen_where_there_are_none():
    def loss(w):
        def body(c, x):
            return np.tanh(c * w + x), c

        c, ys = scan(body, 0.0, np.ones(3))
        return c + ys.sum() + fg.vmap(lambda v: v * w)(np.ones(2)).sum()

    with fg.checking_leaks():
        fg.jit(fg.value_and_grad(fg.jit(loss)))(0.5)
        fg.hessian(loss)(0.5)
        fg.jit(fg.vmap(fg.grad(loss)))(np.ones(2))


def free_rule(kind):
    """A function with a rule that closes over nothing."""
    if kind == "custom_jvp":
        f = fg.custom_jvp(lambda x: x * 2.0)
        f.defjvp(lambda p, t: (f(*p), 2.0 * t[0]))
    elif kind == "custom_vjp":
        f = fg.custom_vjp(lambda x: x * 2.0)
        f.defvjp(lambda x: (x * 2.0, x), lambda res, ct: (2.0 * ct,))
    elif kind == "custom_vmap":
        f = fg.custom_vmap(lambda x: x * 2.0)
        f.def_vmap(lambda n, batched, x: (x * 2.0, batched[0]))
    else:
        f = fg.custom_gradient(lambda x: (x * 2.0, lambda ct: 2.0 * ct))
    return f


def closing_rule(kind):
    """A function of a function with a rule that closes over a value."""

    def outer(x):
        y = x + 1.0
        if kind == "custom_jvp":
            f = fg.custom_jvp(lambda z: z * y)
            f.defjvp(lambda p, t: (p[0] * y, y * t[0]))
        elif kind == "custom_vjp":
            f = fg.custom_vjp(lambda z: z * y)
            f.defvjp(lambda z: (z * y, z), lambda res, ct: (y * ct,))
        elif kind == "custom_vmap":
            f = fg.custom_vmap(lambda z: z * y)
            f.def_vmap(lambda n, batched, z: (z * y, batched[0]))
        else:
            f = fg.custom_gradient(lambda z: (z * y, lambda ct: y * ct))
        return f(x)

    return outer


THREE = np.ones(3)
HOLDERS = {
    "jit": lambda f: fg.jit(f)(1.0),
    "grad": lambda f: fg.grad(f)(1.0),
    "jit of grad": lambda f: fg.jit(fg.grad(f))(1.0),
    "grad of jit": lambda f: fg.grad(fg.jit(f))(1.0),
    "grad of grad": lambda f: fg.grad(fg.grad(lambda x: f(x) * x))(1.0),
    "jvp": lambda f: fg.jvp(f, (1.0,), (1.0,)),
    "vmap": lambda f: fg.vmap(f)(THREE),
    "jit of vmap": lambda f: fg.jit(fg.vmap(f))(THREE),
    "vmap of grad": lambda f: fg.vmap(fg.grad(f))(THREE),
    "scan": lambda f: fg.lax.scan(lambda c, x: (f(c), x), 1.0, THREE),
    "grad of scan": lambda f: fg.grad(lambda x: fg.lax.scan(lambda c, y: (f(c), y), x, THREE)[0])(
        1.0
    ),
    "while": lambda f: fg.lax.while_loop(lambda c: c < 5, lambda c: f(c) + 1, 1.0),
    "grad of while": lambda f: fg.grad(
        lambda x: fg.lax.while_loop(lambda c: c < 5, lambda c: f(c) + 1, x)
    )(1.0),
    "cond": lambda f: fg.lax.cond(True, f, f, 1.0),
    "checkpoint": lambda f: fg.grad(fg.checkpoint(f))(1.0),
    "hessian": lambda f: fg.hessian(f)(1.0),
    "jacfwd": lambda f: fg.jacfwd(f)(1.0),
    "linearize": lambda f: fg.linearize(f, 1.0)[1](1.0),
    "vjp returned by jit": lambda f: fg.jit(lambda x: fg.vjp(f, x))(1.0)[1](1.0),
    "make_jaxpr": lambda f: fg.make_jaxpr(f)(1.0),
    "eval_shape": lambda f: fg.eval_shape(f, 1.0),
}


@pytest.mark.sampled(24)
@pytest.mark.parametrize("how", HOLDERS)
@pytest.mark.parametrize("make", [free_rule, closing_rule])
@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp", "custom_vmap", "custom_gradient"])
def test_rules_in_programs_are_no_leaks(kind, make, how):
    if make is closing_rule and kind == "custom_vmap" and "vmap" in how:
        return  # refused: the rule would not see the closed-over value that is mapped too
    with fg.checking_leaks():
        HOLDERS[how](make(kind))


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_leaks_from_rules_are_found(kind):
    stash = []
    f = fg.custom_jvp(lambda x: x * 2.0)
    f.defjvp(lambda p, t: (stash.append(p[0]) or p[0] * 2.0, t[0]))
    g = fg.custom_vjp(lambda x: x * 2.0)
    g.defvjp(lambda x: (stash.append(x) or x * 2.0, x), lambda res, ct: (ct,))
    rule = {"custom_jvp": f, "custom_vjp": g}[kind]
    with fg.checking_leaks(), pytest.raises(UnexpectedTracerError, match="still alive"):
        fg.jit(fg.grad(rule))(1.0)


def test_an_argument_that_a_rule_closes_over_is_a_leak_elsewhere():
    stash = []

    def outer(x):
        f = fg.custom_jvp(lambda z: z * x)
        f.defjvp(lambda p, t: (p[0] * x, x * t[0]))
        y = x + 1.0
        stash.append(y)
        return f(x)

    with fg.checking_leaks(), pytest.raises(UnexpectedTracerError, match="still alive"):
        fg.jit(outer)(1.0)
