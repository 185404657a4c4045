"""Operators and functions of traced numbers: they agree with the rules of arrays, bit by bit.

What is compared with is `vjp`, whose tape is kept, so that no operation takes the fast path.
"""

from __future__ import annotations

import gc
import math
import operator
import struct
import threading
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad.errors import UnexpectedTracerError
from funcgrad.primitives import elementwise as p
from funcgrad.scalar_tape import operators as number_operators
from funcgrad.scalar_tape import trace as numbers
from funcgrad.scalar_tape.trace import NumberTracer

fg.grad(lambda x: x * x)(1.0)  # writes the operators

EXTREMES = (
    0.0, -0.0, math.inf, -math.inf, math.nan, 1e300, -1e300, 1e-300, -1e-300, 5e-324, 1.0, -1.0,
    0.5, -0.5, 2.0, -3.25, 20.0, 710.0, -745.5,
)  # fmt: skip
OPERATORS = {
    name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "pow", "mod")
}
UFUNCS = sorted(
    {
        u
        for u in vars(np).values()
        if isinstance(u, np.ufunc) and u.nin == 1 and number_operators.FUNCTIONS[u] is not None
    },
    key=lambda u: u.__name__,
)


def bits(x):
    """What tells values apart, signs of zeros included; one nan is as good as another."""
    return "nan" if np.isnan(x) else struct.pack("d", float(x))


def check_as_kept(function, *point, rtol=None):
    argnums = tuple(range(len(point)))
    value, found = fg.value_and_grad(function, argnums)(*point)
    out, pull = fg.vjp(function, *point)
    expected = pull(type(out)(1.0))
    assert type(value) is type(out)
    assert bits(value) == bits(out)
    assert all(type(x) is np.float64 for x in found)
    if rtol is None:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol, atol=1e-300)


def test_the_functions_of_one_number():
    names = {u.__name__ for u in UFUNCS}
    assert names >= {"tanh", "exp", "log", "sqrt", "sin", "cos", "arctan", "negative", "absolute"}
    assert "sign" not in names


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", [float, np.float64])
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_functions_at_extremes_are_as_on_a_kept_tape(ufunc, kind):
    ours = getattr(fg.numpy, ufunc.__name__)
    for x in EXTREMES:
        if ufunc is np.conjugate and kind is float:  # NumPy's result is a float64, ours is weak
            continue
        check_as_kept(ufunc, kind(x))
        check_as_kept(ours, kind(x))
        check_as_kept(lambda x, f=ufunc: f(x * 1.0) * x, kind(x))


@pytest.mark.sampled(8)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", [float, np.float64])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_at_extremes_are_as_on_a_kept_tape(name, kind):
    function = OPERATORS[name]
    for x in EXTREMES:
        for y in EXTREMES:
            check_as_kept(function, kind(x), kind(y))
            check_as_kept(function, x, np.float64(y))
            if name == "pow" or not (y or name not in ("truediv", "mod")):
                continue
            for constant in (y, np.float64(y)):
                check_as_kept(lambda x, c=constant: function(x, c), kind(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("constant", [2.5, -0.0, np.float64(3.0), 7, -2, np.float32(0.1), True])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_with_constants_on_both_sides(name, constant):
    function = OPERATORS[name]
    is_divided = name in ("truediv", "mod")
    for x in (1.5, np.float64(-2.25), 1e300, np.float64(1e-300)):
        if not (is_divided and not constant):
            check_as_kept(lambda x: function(x, constant), x)
        check_as_kept(lambda x: function(constant, x), x)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, -1, -2, 2.0, 3.0, 0.5, -0.5, np.float64(2.0)])
def test_powers(exponent):
    for x in (1.5, np.float64(0.75), 4.0):
        check_as_kept(lambda x: x**exponent, x)
        expected = float(exponent) * x ** (float(exponent) - 1)
        assert fg.grad(lambda x: x**exponent)(x) == pytest.approx(expected, rel=1e-13)


def test_large_integers_are_refused_as_everywhere():
    for function in (lambda x: x * 10**400, lambda x: 10**400 + x):
        with pytest.raises(OverflowError):
            fg.grad(function)(1.0)
        with pytest.raises(OverflowError):
            fg.vjp(function, 1.0)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda x: x + 1, float),
        (lambda x: 2 * x, float),
        (lambda x: -x, float),
        (lambda x: x**2, float),
        (lambda x: x / 3.0 - x, float),
        (lambda x: abs(x), float),
        (lambda x: x + np.float64(1), np.float64),
        (lambda x: np.float64(2) * x, np.float64),
        (lambda x: np.tanh(x), np.float64),
        (lambda x: np.tanh(x) * x, np.float64),
        (lambda x: x * np.sum(x), np.float64),
        (lambda x: (x + np.float64(0)) ** 2 - x, np.float64),
        (lambda x: x * 1.0 if x > 1 else x, float),
    ],
)
def test_results_are_as_weak_as_their_operands(function, kind):
    assert type(fg.value_and_grad(function)(1.5)[0]) is kind
    assert type(fg.vjp(function, 1.5)[0]) is kind
    assert type(fg.value_and_grad(function)(np.float64(1.5))[0]) is np.float64


def test_rules_as_text_are_those_that_are_called():
    for primitive in vars(p).values():
        code = getattr(primitive, "number_code", None)
        if code is None or isinstance(primitive, type | ModuleType):
            continue
        arguments = (0.75 if primitive is not p.arccosh else 1.75, 1.25)[: len(code.slopes)]
        out, *slopes = primitive.at_numbers(*arguments)
        assert out == primitive.impl(*arguments)
        if hasattr(primitive, "derivative"):
            assert slopes == [primitive.derivative(*arguments, np.float64(out))]


CUBE = lambda x: x * x * x  # noqa: E731 -- as users write it


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: fg.grad(CUBE)(x), lambda x: 6 * x),
        (lambda x: fg.grad(fg.grad(CUBE))(x), lambda x: 6.0),
        (lambda x: fg.grad(CUBE)(x * 1.0) * x, lambda x: 9 * x * x),
        (lambda x: fg.jvp(CUBE, (x,), (x,))[1], lambda x: 9 * x * x),
        (lambda x: fg.jvp(fg.grad(CUBE), (x,), (1.0,))[1], lambda x: 6.0),
        (lambda x: fg.vjp(CUBE, x)[1](x)[0], lambda x: 9 * x * x),
        (lambda x: np.sum(fg.vmap(lambda y: y * x * x)(np.arange(3.0))), lambda x: 6 * x),
        (lambda x: np.sum(fg.vmap(fg.grad(lambda y: y * y * x))(np.arange(3.0))), lambda x: 6.0),
        (lambda x: fg.jit(CUBE)(x), lambda x: 3 * x * x),
        (lambda x: fg.jit(lambda y: y * x * x)(x), lambda x: 3 * x * x),
        (lambda x: fg.jit(fg.grad(CUBE))(x) * x, lambda x: 9 * x * x),
        (lambda x: fg.checkpoint(CUBE)(x) * x, lambda x: 4 * x**3),
        (lambda x: fg.lax.cond(x > 0, CUBE, lambda x: x, x), lambda x: 3 * x * x),
        (lambda x: fg.lax.fori_loop(0, 2, lambda i, c: c * x, x), lambda x: 3 * x * x),
        (lambda x: fg.linearize(CUBE, x)[1](x), lambda x: 9 * x * x),
        (lambda x: fg.stop_gradient(x) * x, lambda x: x),
        (lambda x: x * x if x > 1 else x, lambda x: 2 * x),
    ],
)
def test_transformations_in_a_function_of_a_number(function, expected):
    for x in (1.5, np.float64(1.5)):
        assert fg.grad(function)(x) == pytest.approx(expected(1.5), rel=1e-13)


def test_transformations_around_a_gradient_of_a_number():
    assert fg.jvp(fg.grad(CUBE), (2.0,), (1.0,))[1] == 12.0
    assert fg.grad(fg.grad(CUBE))(2.0) == 12.0
    np.testing.assert_array_equal(fg.vmap(fg.grad(CUBE))(np.arange(3.0)), [0.0, 3.0, 12.0])
    assert fg.jit(fg.grad(CUBE))(2.0) == 12.0
    assert fg.checkpoint(fg.grad(CUBE))(2.0) == 12.0


def test_rules_of_users_within_numbers():
    @fg.custom_vjp
    def clipped(x):
        return x * 1.0

    clipped.defvjp(lambda x: (x * 1.0, x), lambda x, ct: (np.clip(ct, -1.0, 1.0) * 10.0,))
    assert fg.grad(lambda x: 5.0 * clipped(x * x) + x)(3.0) == 10.0 * 6.0 + 1.0


# Programs of numbers and arrays, mixed.

STEPS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "scale": lambda a, b: 0.5 * a + 1,
    "tanh": lambda a, b: np.tanh(a),
    "ours": lambda a, b: fg.numpy.sin(a),
    "quotient": lambda a, b: a / (b * b + 1.0),
    "square": lambda a, b: a**2,
    "cube": lambda a, b: a**3,
    "twice": lambda a, b: np.hypot(a, a + 2.0),
    "stacked": lambda a, b: np.sum(np.stack([a, b, a]) * np.array([1.0, 2.0, -0.5])),
    "where": lambda a, b: np.where(a > b, a * b, b),
    "element": lambda a, b: np.stack([a, b])[1] * a,
    "choice": lambda a, b: np.maximum(a, b),
    "constant": lambda a, b: fg.stop_gradient(a) * b,
    "negative": lambda a, b: -a,
}


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 30), st.integers(0, 30)),
        min_size=1,
        max_size=14,
    ),
    st.sampled_from([(0.3, -0.7), (np.float64(1.25), np.float64(0.5)), (0.0, np.float64(-2.0))]),
)
def test_programs_are_as_on_a_kept_tape(steps, point):
    def function(x, y):
        values = [x, y]
        for name, i, j in steps:
            values.append(STEPS[name](values[i % len(values)], values[j % len(values)]))
        return values[-1] * 1.0 + x * y

    with np.errstate(all="ignore"):
        check_as_kept(function, *point, rtol=1e-11)


# Tracers are used again, and those that somebody holds are not.


def count_of_tracers():
    return [len(trace.tracers) for trace in numbers._ended]


@pytest.mark.usefixtures("small_heap")
@pytest.mark.skipif(not numbers._MAY_KEEP, reason="the interpreter does not count references")
def test_tracers_are_used_again():
    chain = fg.grad(lambda x: sum((x * k for k in range(20)), x))
    chain(1.5)
    gc.collect()
    before = sum(type(x) is NumberTracer for x in gc.get_objects())
    for _ in range(5):
        assert chain(2.0) == 1.0 + sum(range(20))
    gc.collect()
    assert sum(type(x) is NumberTracer for x in gc.get_objects()) == before


def test_a_tracer_that_is_held_is_not_used_again():
    kept = []

    def function(x):
        kept.append(x * 3.0)
        return x * x + kept[-1]

    for k in range(1, 4):
        assert fg.grad(function)(float(k)) == 2.0 * k + 3.0
    assert len({id(x) for x in kept}) == 3
    for tracer in kept:
        with pytest.raises(UnexpectedTracerError, match=r"grad\(function\)"):
            tracer * 2.0
        with pytest.raises(UnexpectedTracerError, match="has returned"):
            np.tanh(tracer)
        with pytest.raises(UnexpectedTracerError):
            fg.grad(lambda x, t=tracer: x * t)(1.0)
        with pytest.raises(UnexpectedTracerError):
            fg.grad(lambda x, t=tracer: t + x)(1.0)


def test_a_tracer_of_an_array_that_is_held_is_not_live_again():
    kept = []

    def function(x):
        kept.append(np.stack([x, x * 2.0]))
        return np.sum(kept[-1])

    for _ in range(3):
        assert fg.grad(function)(1.0) == 3.0
    for tracer in kept:
        with pytest.raises(UnexpectedTracerError):
            fg.grad(lambda x, t=tracer: x * np.sum(t))(1.0)


def test_an_argument_that_is_held():
    kept = []
    assert fg.grad(lambda x, y: kept.append(x) or x * y, (0, 1))(2.0, 3.0) == (3.0, 2.0)
    assert fg.grad(lambda x, y: x * y, (0, 1))(5.0, 7.0) == (7.0, 5.0)
    with pytest.raises(UnexpectedTracerError):
        kept[0] + 1.0


def test_functions_that_raise_leave_nothing_behind():
    def broken(x):
        y = x * 2.0
        raise KeyError(str(y.shape))

    for _ in range(3):
        with pytest.raises(KeyError):
            fg.grad(broken)(1.0)
        assert fg.grad(lambda x: x * x)(3.0) == 6.0
    with pytest.raises(TypeError, match="scalar"):
        fg.grad(lambda x: np.stack([x, x]))(1.0)
    assert fg.grad(lambda x: x * x)(3.0) == 6.0


def test_unused_arguments_and_constant_results():
    assert fg.grad(lambda x, y: x * 2.0, (0, 1))(1.0, 2.0) == (2.0, 0.0)
    found = fg.grad(lambda x, y: 3.0, (0, 1))(1.0, 2.0)
    assert [bits(x) for x in found] == [bits(0.0)] * 2
    assert fg.grad(lambda x: x)(1.0) == 1.0
    check_as_kept(lambda x, y: x * -0.0, 1.0, 2.0)


def test_threads_have_tracers_of_their_own():
    found = {}

    def work(k):
        step = fg.grad(lambda x: sum((x * x * i for i in range(30)), x))
        found[k] = [float(step(float(k + i))) for i in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = 2 * sum(range(30))
    assert found == {k: [total * (k + i) + 1.0 for i in range(20)] for k in range(4)}


def test_a_tracer_in_another_thread_is_refused():
    errors = []

    def function(x):
        def work():
            try:
                x * 2.0
            except UnexpectedTracerError as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x * x

    assert fg.grad(function)(3.0) == 6.0
    assert len(errors) == 1


def test_a_gradient_within_an_evaluation_within_a_gradient():
    def inner(x):
        return fg.pure_callback(
            lambda x: fg.grad(lambda y: y * y)(float(x)), fg.ShapeDtypeStruct((), np.float64), x
        )

    assert fg.grad(lambda x: x * fg.stop_gradient(inner(fg.stop_gradient(x))))(3.0) == 6.0


def test_long_programs_keep_few_tracers():
    def long(x):
        for _ in range(numbers.MAX_KEPT + 100):
            x = x + 1.0
        return x

    assert fg.grad(long)(1.0) == 1.0
    assert all(n <= numbers.MAX_KEPT for n in count_of_tracers())


@pytest.mark.usefixtures("small_heap")
def test_leaks_are_found_where_they_are_looked_for():
    stash = []
    gc.collect()
    with fg.checking_leaks(), pytest.raises(UnexpectedTracerError, match="still alive"):
        fg.grad(lambda x: stash.append(x) or x * x)(1.0)


def test_unknown_attributes_of_numbers():
    def function(x):
        assert not hasattr(x, "numpy")
        assert not hasattr(x, "_repr_html_")
        return (x * 2.0).numpy()

    with pytest.raises(AttributeError, match=r"a traced ~f64\[\] inside grad\(function\) has no"):
        fg.grad(function)(1.0)
