"""The ways from a call to the first operation: files that are entered, and calls of Python."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

ROOT = str(Path(fg.__file__).parent)
GENERATED = ("<numbers>", "<call path>")
X = np.linspace(0.0, 1.0, 5)


def calls_of(call, until=""):
    """Files of the library's functions that a call enters, in order, each with that of its caller.

    It is called a few times before: what is written or imported at the first call does not count.
    """
    for _ in range(5):
        call()
    found = []

    def note(frame, event, arg):
        file = frame.f_code.co_filename
        is_over = bool(found) and found[-1][2] == until != ""
        if event == "call" and not is_over and file.startswith((ROOT, *GENERATED)):
            found.append((file, frame.f_back.f_code.co_filename, frame.f_code.co_name))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def files_and_hops(found):
    return len({file for file, *_ in found}), sum(file != caller for file, caller, _ in found)


@pytest.mark.parametrize(
    ("function", "x", "first", "most"),
    [(lambda x: np.sum(np.sin(x)), X, "process", (6, 10)), (lambda x: x * x, 0.5, "mul", (4, 6))],
)
def test_from_a_gradient_to_its_first_operation(function, x, first, most):
    gradient = fg.grad(function)
    files, hops = files_and_hops(calls_of(lambda: gradient(x), first))
    assert files <= most[0]
    assert hops <= most[1]


@pytest.mark.parametrize(("function", "x"), [(lambda x: np.sum(np.sin(x)), X), (np.tanh, 0.5)])
def test_a_compiled_call_takes_three_steps(function, x):
    compiled = fg.jit(function)
    assert len(calls_of(lambda: compiled(x))) <= 3


def test_arrays_in_another_order_take_few_steps_more():
    compiled = fg.jit(lambda x, y: np.sin(x) + y)
    x = np.ones((3, 3))
    assert len(calls_of(lambda: compiled(x.T, x[:, 0]))) <= 8


def calls_per_operation(transform, x, operation, until=""):
    def run(n):
        def function(x):
            y = x
            for _ in range(n):
                y = operation(y, x)
            return y

        return len(calls_of(transform(function, x), until))

    return (run(30) - run(10)) / 20


def test_an_operation_of_a_number_is_one_call():
    def gradient(function, x):
        made = fg.grad(function)
        return lambda: made(x)

    assert calls_per_operation(gradient, 0.5, lambda y, x: y * x) <= 1


OPERATIONS = {
    "a ufunc": lambda y, x: np.sin(y),
    "a ufunc that gives its own derivative": lambda y, x: np.exp(y),
    "a function of ours": lambda y, x: fnp.sin(y),
    "a product": lambda y, x: y * x,
    "a product with a number": lambda y, x: 0.5 * y,
    "a sum": lambda y, x: y + x,
    "a difference": lambda y, x: 1.0 - y,
    "a negative": lambda y, x: -y,
    "a quotient": lambda y, x: x / y,
    "a power": lambda y, x: y**2,
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
@pytest.mark.parametrize("transform", ["vjp", "grad"])
def test_an_operation_of_arrays_is_at_most_six_calls(transform, operation):
    """From the user's line to NumPy's results: dispatch, interpreter, rule, its derivative."""

    def forward(function, x):
        if transform == "vjp":
            return lambda: fg.vjp(function, x)
        gradient = fg.grad(lambda x: fnp.sum(function(x)))
        return lambda: gradient(x)

    assert calls_per_operation(forward, X + 0.5, operation, until="pull") <= 6
