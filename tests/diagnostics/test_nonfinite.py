"""find_nan: the phase, the operation, the line and the values of the first NaN."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.diagnostics import find_nan


def log_of_difference(x):
    return np.sum(np.log(x - 2))  # here


def vanishing_root(x):
    return np.sum(np.sqrt(x * 0) * x)  # here


def in_a_loop(x):
    return fg.lax.scan(lambda c, _: (np.sqrt(c - 1), None), x, None, length=5)[0]  # here


def zero_times_infinity(x):
    return np.sum(np.log(x * 0) * 0)  # here


def branching(x):
    return np.arccos(x + 3) if x > 0 else x  # here


@pytest.mark.parametrize("compile_it", [lambda f: f, fg.jit, fg.checkpoint])
@pytest.mark.parametrize(
    ("function", "x", "phase", "operation", "operands"),
    [
        (log_of_difference, np.ones(2), "forward", "log", [[-1, -1]]),
        (vanishing_root, np.ones(2), "backward", None, None),
        (in_a_loop, 3.0, "forward", "sqrt", [np.sqrt(np.sqrt(2) - 1) - 1]),
        (zero_times_infinity, np.ones(2), "forward", "mul", [[-np.inf, -np.inf], 0]),
    ],
)
def test_the_first_nan_is_found(function, x, phase, operation, operands, compile_it):
    found = find_nan(compile_it(function), x)
    assert (found.kind, found.phase) == ("nan", phase)
    assert found.line.startswith("test_nonfinite.py:")
    assert "# here" in found.line
    assert np.isnan(found.result).any()
    if operation is not None:
        assert found.operation == operation
        for value, expected in zip(found.operands, operands, strict=True):
            np.testing.assert_allclose(value, expected)
    assert f"in the {phase} pass" in str(found)


def test_the_step_of_a_loop_is_told():
    found = find_nan(in_a_loop, 3.0)
    assert found.steps == ("2 of 5 of the loop <lambda>",)
    assert "in step       2 of 5" in str(found)


def test_the_infinity_behind_a_nan_is_told():
    found = find_nan(zero_times_infinity, np.ones(2)).infinity
    assert (found.kind, found.operation) == ("inf", "log")
    assert "log gave that infinity" in str(find_nan(zero_times_infinity, np.ones(2)))
    assert "sqrt" in find_nan(vanishing_root, np.ones(2)).infinity.operation


def clipped(x):
    """Infinities that spoil nothing."""
    return np.maximum(np.log(x * 0), -1.0) + np.minimum(1.0 / (x * 0), 1.0)


def overflows(x):
    bad = np.exp(x * 1000)  # cause
    return np.sum(clipped(x) * bad - bad)


def overflows_in_a_loop(x):
    def step(c, t):
        c = c * t  # cause
        return c, c

    last, all_steps = fg.lax.scan(step, x * 1e300, np.array([10.0, 1e9, 1e9]))
    return np.sum(last * 0 + all_steps * 0 + clipped(x))


def moved(x):
    bad = np.concatenate([np.ones(2), x / 0.0])  # cause
    return np.sum(clipped(x)) + np.sum(bad[::-1].reshape(2, 2) * 0)


def given(x):
    return np.sum(clipped(x) + x * np.inf * 0)


def vanishing_root_beside_others(x):
    return np.sum(np.sqrt(x * 0) * x) + np.sum(clipped(x))  # cause


def negative_root(x):
    return np.sum(clipped(x) + np.sqrt(x - 5))


@pytest.mark.parametrize("compile_it", [lambda f: f, fg.jit, fg.checkpoint])
@pytest.mark.parametrize(
    ("function", "operation", "phase", "steps"),
    [
        (overflows, "exp", "forward", ()),
        (overflows_in_a_loop, "mul", "forward", ("1 of 3 of the loop step",)),
        (moved, "div", "forward", ()),
        (given, None, "forward", ()),
        (vanishing_root_beside_others, "", "backward", ()),
    ],
)
def test_the_infinity_that_fed_the_nan_is_told(function, operation, phase, steps, compile_it):
    with np.errstate(all="ignore"):
        found = find_nan(compile_it(function), np.ones(2))
    cause = found.infinity
    assert (cause.kind, cause.phase, cause.steps) == ("inf", phase, steps)
    assert operation in ("", cause.operation)
    if operation is None:
        assert str(cause) == "the infinity came in from outside, in a constant of the function"
    else:
        assert "# cause" in cause.line
        assert f"{cause.operation} gave that infinity, in the {phase} pass" in str(found)


def test_an_infinite_argument_is_named():
    with np.errstate(all="ignore"):
        found = find_nan(lambda x, m: clipped(x) + m["a"] * 0, 1.0, {"a": np.array([1.0, np.inf])})
    assert found.infinity.arguments == ("args[1]['a']",)
    assert "the infinity came in from outside, in args[1]['a']" in str(found)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_infinities_of_all_dtypes_are_followed(dtype):
    with np.errstate(all="ignore"):
        found = find_nan(lambda x: (x + 1j) / 0.0 * 0, dtype(1), backward=False)
        assert found.infinity is None or found.infinity.operation == "div"
        found = find_nan(lambda x: np.exp(x * 1000) * 0 + np.abs(clipped(1.0)), dtype(1))
    assert "exp" in (found.operation, found.infinity and found.infinity.operation)


def test_a_nan_of_finite_operands_has_no_infinity():
    with np.errstate(all="ignore"):
        found = find_nan(negative_root, np.ones(2))
    assert (found.operation, found.infinity) == ("sqrt", None)


def test_the_first_bad_entry_is_told_with_its_operands():
    x = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, 4.0]])
    found = find_nan(lambda x: np.sum(x * np.log(x)), x)
    assert found.index == (1, 1)
    assert "first at      [1, 1], from 0, -inf" in str(found)
    assert find_nan(np.log, -1.0).index == ()


def test_only_the_phases_that_are_asked_for_are_searched():
    assert find_nan(vanishing_root, np.ones(2), backward=False) is None
    assert find_nan(fg.grad(vanishing_root), np.ones(2)).phase == "forward"
    assert find_nan(fg.jit(fg.grad(vanishing_root)), np.ones(2)).phase == "forward"


def test_python_may_branch_on_values():
    assert find_nan(branching, 1.0).operation == "arccos"
    assert find_nan(branching, -1.0) is None


def test_what_comes_in_is_told_from_what_is_made():
    x = {"a": np.ones(2), "b": np.array([1.0, np.nan])}
    found = find_nan(lambda x: x["a"] + x["b"], x)
    assert (found.operation, found.arguments) == (None, ("args[0]['b']",))
    assert str(found) == "the NaN came in from outside, in args[0]['b']"
    constant = np.array([np.nan])
    assert "a constant of the function" in str(find_nan(lambda x: x * constant, 1.0))
    assert find_nan(lambda x: np.where(np.isnan(x["b"]), 0, x["a"]), x) is None


def test_infinities_are_found_where_there_is_no_nan():
    found = find_nan(lambda x: np.exp(x), 1000.0)
    assert (found.kind, found.phase, found.operation) == ("inf", "forward", "exp")
    found = find_nan(np.sqrt, 0.0)
    assert (found.kind, found.phase) == ("inf", "backward")
    assert find_nan(lambda x: np.where(x > 0, -np.inf, x), 0.0) is None


def test_all_is_well():
    assert find_nan(lambda x, n: np.sum(np.sin(x)) * n, np.ones(3), 2) is None
    assert find_nan(lambda n: n + 1, 2) is None
    assert find_nan(lambda x: np.where(x > 0, np.sqrt(x), 0.0), np.array([0.0, 1.0])) is None
