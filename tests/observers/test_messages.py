"""What users read when a traced value meets something that needs its contents."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import errors

X = np.arange(3.0)


def message_of(kind: type[Exception], function, *args) -> str:
    with pytest.raises(kind) as caught:
        function(*args)
    return str(caught.value)


@pytest.mark.parametrize("transform", [fg.jit, fg.grad, lambda f: fg.jvp(f, (X,), (X,))])
def test_errors_about_shapes_say_where(transform):
    def product(x):
        return fnp.sum(x @ np.ones((4, 2)))  # the line in question

    text = message_of(errors.ShapeError, lambda: transform(product)(X))
    assert "f64[3] and f64[4,2] do not fit" in text
    assert "test_messages.py:" in text
    assert "# the line in question" in text
    assert text.count("\n  at ") == 1


def test_only_the_innermost_place_is_named():
    def inner(x):
        return fnp.reshape(x, (2, 2)).sum()  # inside

    text = message_of(errors.ShapeError, lambda: fg.jit(lambda x: fg.grad(inner)(x))(X))
    assert "# inside" in text
    assert text.count("\n  at ") == 1


def test_places_are_in_users_files_not_in_scipys():
    text = message_of(
        errors.TracerArrayConversionError,
        fg.grad(lambda x: scipy.special.logsumexp(x)),
        X,
    )
    assert "test_messages.py:" in text
    assert "_array_api" not in text
    assert text.startswith("SciPy asked for the values")
    assert "Write funcgrad.scipy.special.logsumexp instead of scipy.special.logsumexp" in text


def test_np_array_with_a_dtype():
    text = message_of(
        errors.TracerArrayConversionError, fg.grad(lambda x: np.array([x, 2 * x], float).sum()), 1.0
    )
    assert text.startswith("NumPy asked for the values")
    assert "Instead of np.array([x, y], dtype=float) write np.stack([x, y])" in text


def test_ndarrays_with_a_traced_index():
    text = message_of(errors.TracerArrayConversionError, fg.jit(lambda i: X[i]), 1)
    assert text.splitlines()[-1].startswith("If it is an index into an ndarray, `y[i]`")
    assert fg.jit(lambda i: fnp.at(X)[i].get())(1) == fg.jit(lambda i: fnp.take(X, i, 0))(1) == 1.0


def test_functions_of_math():
    text = message_of(errors.ConcretizationTypeError, fg.grad(lambda x: math.sin(x)), 1.0)
    assert "Write np.sin(x) instead of math.sin(x)" in text


def test_hash():
    text = message_of(errors.ConcretizationTypeError, fg.jit(lambda x: {x: 1}), 1.0)
    assert "must be hashable" in text
    assert "argument `args[0]`" in text


def test_unknown_attributes():
    text = message_of(AttributeError, fg.jit(lambda x: x.numpy()), X)
    assert "a traced f64[3] inside jit(<lambda>) has no attribute 'numpy'" in text


def test_iteration_over_a_scalar():
    text = message_of(errors.ArgumentError, fg.jit(lambda x: list(x)), 1.0)
    assert "has no axes" in text
    assert "test_messages.py:" in text


def test_addition_in_place_into_an_ndarray():
    def accumulate(x):
        y = np.zeros(3)
        y += x
        return y.sum()

    text = message_of(errors.ArgumentError, fg.grad(accumulate), X)
    assert "for `y += x` write y = y + x" in text


@pytest.mark.parametrize("transform", [lambda f: f, fg.jit, fg.grad])
def test_methods_are_not_hidden_by_what_tracers_keep(transform):
    names = ("var", "std", "mean", "sum", "min", "max", "prod")
    for name in names:
        transform(lambda x, name=name: getattr(x, name)())(X)


def test_arange_of_a_traced_length():
    text = message_of(errors.TracerIntegerConversionError, fg.jit(lambda n: fnp.arange(n)), 3)
    assert "static argument" in text


def test_linear_transpose_of_what_is_not_linear():
    text = message_of(errors.ArgumentError, fg.linear_transpose, lambda x: x**2, X)
    assert "needs a function that is linear in its arguments" in text
    assert "this one applies integer_power to them" in text


def test_results_that_are_no_arrays():
    text = message_of(errors.DtypeError, fg.jit(lambda x: {"a": np.sin}), X)
    assert text.startswith("jit(<lambda>) returned a ufunc as `result['a']`. Return arrays")
    text = message_of(errors.DtypeError, fg.jit(lambda x: "text"), X)
    assert "returned a str as `result`" in text


def test_gradient_of_a_function_that_returns_nothing():
    assert "Is a return missing?" in message_of(errors.ShapeError, fg.grad(lambda x: None), X)


@pytest.mark.parametrize("bad", ["relu", np.ones(3, np.longdouble), np.ones(3, np.float16)])
def test_vmap_names_arguments_that_it_cannot_map(bad):
    text = message_of(errors.DtypeError, fg.vmap(lambda x, y: x), X, bad)
    assert "argument `args[1]` of vmap(<lambda>)" in text


def test_shapes_of_samples_are_integers():
    text = message_of(errors.ArgumentError, fg.random.normal, fg.random.key(0), 3.5)
    assert "a shape consists of integers, got 3.5" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"static_argnums": 3}, "static_argnums=3 names no argument of f, which takes 2"),
        ({"static_argnums": 1.5}, "static_argnums must be ints, got 1.5"),
        ({"static_argnames": "z"}, "static_argnames='z' names no argument of f, which takes x, y"),
        ({"donate_argnums": (0, -3)}, "donate_argnums=-3 names no argument"),
    ],
)
def test_choices_of_arguments_are_checked(options, words):
    def f(x, y):
        return x

    assert words in message_of(errors.ArgumentError, lambda: fg.jit(f, **options))


def test_choices_of_arguments_that_cannot_be_checked():
    fg.jit(lambda *args: args[0], static_argnums=2)
    fg.jit(lambda x, **kwargs: x, static_argnames="mode")
