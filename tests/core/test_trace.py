"""Traced values where Python asks for plain ones."""

from __future__ import annotations

import operator
import re

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors

V = np.array([1.0, 3.0, 2.0])
WEIGHTS = [1.0, 10.0, 100.0]


# Integers have no derivative: where they are known, as they are while a gradient is taken, Python
# may have them.
KNOWN = {
    "int": lambda k: WEIGHTS[int(k)],
    "float": lambda k: 10.0 * float(k),
    "complex": lambda k: 10.0 * complex(k).real,
    "index": lambda k: WEIGHTS[k],
    "operator.index": lambda k: WEIGHTS[operator.index(k)],
    "range": lambda k: 10.0 * sum(1 for _ in range(k)),
    "bool": lambda k: 10.0 if k else 1.0,
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_integers(name):
    slope = fg.grad(lambda x: x[0] * KNOWN[name](np.argmax(x)))(V)
    np.testing.assert_array_equal(slope, [10.0, 0.0, 0.0])


@pytest.mark.parametrize("name", KNOWN)
def test_integers_that_are_not_known(name):
    with pytest.raises(errors.ConcretizationTypeError) as caught:
        fg.jit(lambda x: x[0] * KNOWN[name](np.argmax(x)))(V)
    assert "a traced i64[] inside jit(<lambda>)." in str(caught.value)
    assert "\n  at            test_trace.py:" in str(caught.value)


@pytest.mark.parametrize("function", [float, complex, int])
@pytest.mark.parametrize("transform", [fg.jit, fg.grad])
def test_python_numbers_would_have_no_derivative(function, transform):
    if (function, transform) == (int, fg.grad):
        pytest.skip("a whole number has none")
    with pytest.raises(errors.ConcretizationTypeError) as caught:
        transform(lambda x: x * function(x).real)(2.0)
    assert str(caught.value).startswith(f"{function.__name__}() needs a concrete value, but this")


def test_a_float_is_no_index():
    with pytest.raises(errors.TracerIntegerConversionError, match="must be a concrete integer"):
        fg.grad(lambda x: x * WEIGHTS[x])(1.0)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i2", "?"])
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (1, 2, 3)])
def test_facts_about_the_type(dtype, shape):
    x = np.ones(shape, dtype)

    def facts(y):
        return [y.shape, y.dtype, y.ndim, y.size, y.nbytes, y.itemsize]

    seen = []
    fg.jit(lambda y: seen.append(facts(y)) or y)(x)
    assert seen == [facts(x)]


def test_lengths():
    seen = []
    fg.jit(lambda y: seen.append(len(y)) or y)(np.ones((4, 2)))
    assert seen == [4]
    with pytest.raises(TypeError) as caught:
        fg.jit(len)(1.0)
    assert str(caught.value) == "len() of unsized object: this traced array has no axes"


@pytest.mark.parametrize("transform", [fg.jit, fg.vmap, lambda f: fg.jit(fg.grad(f))])
def test_text_of_a_traced_value(transform):
    """Where there is no value yet: its type, whatever the format."""
    seen = []

    def f(x):
        y = np.sin(x).sum()
        seen.extend([repr(y), str(y), f"{y}", f"{y:.3f}"])
        return y

    transform(f)(V)
    assert re.fullmatch(r"Traced<f64\[\]> in (jit|vmap|grad)\(f\)", seen[0])
    assert seen == seen[:1] * 4


@pytest.mark.parametrize(
    "transform",
    [
        fg.grad,
        fg.value_and_grad,
        fg.hessian,
        lambda f: lambda x: fg.jvp(f, (x,), (x,)),
        lambda f: lambda x: fg.grad(lambda y: fg.grad(f)(y).sum())(x),
        lambda f: lambda x: fg.linearize(f, x),
        lambda f: lambda x: fg.vjp(f, x),
    ],
)
def test_text_of_a_traced_value_that_is_known(transform):
    """`print` shows numbers where the function runs eagerly: arrays, and numbers of Python."""
    seen = []

    def f(x):
        y = 2 * x
        seen.extend([f"{y}", f"{y.sum():.2f}", f"{y * np.ones((2, 1)):.2f}"])
        return y.sum() if y.ndim else y

    transform(f)(V)
    assert seen[0].startswith(f"Traced<f64[3]>(value={2 * V}) in ")
    assert seen[1] == f"{2 * V.sum():.2f}"
    assert "Traced<f64[2,3]>(value=[[" in seen[2]
    seen.clear()
    fg.grad(f)(0.125)
    assert seen[0] == "Traced<~f64[]>(value=0.25) in grad(f)"
    assert seen[1] == "0.25"


def test_text_of_large_and_empty_values():
    seen = []
    for x in (np.zeros((50, 50)), np.zeros(0), np.zeros((1, 1), np.float32)):
        fg.grad(lambda x: seen.append(repr(x)) or x.sum())(x)
    assert "..." in seen[0]
    assert len(seen[0]) < 1000
    assert seen[1:] == [
        "Traced<f64[0]>(value=[]) in grad(<lambda>)",
        "Traced<f32[1,1]>(value=[[0.]]) in grad(<lambda>)",
    ]
