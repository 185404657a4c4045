"""Warnings about lines that are legal and slow: Python in loops, by request, and long programs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.errors import FuncgradWarning, LongProgramWarning, PythonLoopWarning
from funcgrad.observers import notices
from funcgrad.observers.notices import LONG_PROGRAM, warn_of_length
from funcgrad.observers.source import SourceLocation
from funcgrad.scipy.linalg import solve_toeplitz

V = np.array([3.0, 1.0, 2.0])
UNIT = np.eye(3)[0]


def filtered(c):
    return solve_toeplitz(UNIT, c)  # NumPy's


def rotating(x):
    return lax.fori_loop(0, 3, lambda i, c: filtered(c) * 2, x)


def solving(x):
    def step(c):
        return c + 1e-9 * fg.scipy.linalg.sqrtm(np.diag(c))[0].real + 1  # NumPy's

    return lax.while_loop(lambda c: c.sum() < 9, step, x)


def ordering(x):
    return lax.while_loop(lambda c: filtered(c)[0] < 8, lambda c: c * 2, x)


def choosing(x):
    return lax.cond(x[0] > 0, filtered, lambda c: c + 1, x)


def nested(x):
    def inner(i, c):
        return filtered(c) + i

    return lax.fori_loop(0, 2, lambda i, c: lax.fori_loop(0, 3, inner, c), x)


def calling(x):
    kind = fg.ShapeDtypeStruct((3,), np.float64)
    return lax.fori_loop(0, 3, lambda i, c: fg.pure_callback(np.sort, kind, c), x)  # NumPy's


PYTHON = {
    "scan": (rotating, "toeplitz_solve"),
    "body": (solving, "sqrtm"),
    "condition": (ordering, "toeplitz_solve"),
    "nested": (nested, "toeplitz_solve"),
    "callback": (calling, "pure_callback"),
}
TRANSFORMS = {
    "jit": lambda f: fg.jit(f),
    "jit jit": lambda f: fg.jit(fg.jit(f)),
    "vmap": lambda f: fg.jit(lambda x: fg.vmap(f)(np.stack([x, x]))),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", PYTHON)
def test_calls_of_python_in_loops_are_reported_with_operation_and_line(name, transform):
    function, operation = PYTHON[name]
    if (name, transform) == ("callback", "vmap"):
        pytest.skip("a callback without a method for vmap")
    with fg.debug_python_loops(), pytest.warns(PythonLoopWarning) as caught:
        TRANSFORMS[transform](function)(V)
    (warning,) = caught
    text = str(warning.message)
    assert re.search(rf"^\w*{operation}\w* in a loop of \S+ is evaluated by Python\.", text)
    place = next(row for row in text.splitlines() if row.startswith("  at "))
    assert "test_notices.py:" in place
    assert "# NumPy's" in place
    assert warning.filename == __file__


@pytest.mark.parametrize("name", PYTHON)
def test_loops_around_calls_of_python_are_native(name):
    function, operation = PYTHON[name]
    compiled = fg.jit(function)
    np.testing.assert_allclose(compiled(V), function(V), rtol=1e-12)
    plan = compiled.lower(V).as_text().partition("\nplan\n")[2].partition("# kernel 0")[0]
    assert "python:" not in plan
    rows = plan.splitlines()
    at = next(i for i, row in enumerate(rows) if re.match(rf" +numpy: \w*{operation}", row))
    assert rows[at].startswith("    ")  # in a loop
    assert "# test_notices.py:" in rows[at + 1]


def test_plans_give_the_line_of_every_call_of_numpy():
    plan = fg.jit(lambda x: solve_toeplitz(UNIT, x) + 1).lower(V).as_text()  # found here
    rows = plan.splitlines()
    at = next(i for i, row in enumerate(rows) if row.strip().startswith("numpy: toeplitz_solve"))
    assert "# found here" in rows[at + 1]


def test_backward_passes_of_while_loops_are_native():
    def f(x):
        return lax.while_loop(lambda c: c.sum() < 9, lambda c: c * 1.5, x).sum()

    plan = fg.jit(fg.grad(f)).lower(V).as_text().partition("\nplan\n")[2]
    assert "python:" not in plan
    assert "numpy:" not in plan


def test_by_default_a_line_is_named_once_and_callbacks_are_not():
    def step(i, c):
        return solve_toeplitz(UNIT, c) + i  # named

    with pytest.warns(PythonLoopWarning, match="# named") as caught:
        fg.jit(lambda x: lax.fori_loop(0, 3, step, x))(V)
    assert len(caught) == 1
    assert str(caught[0].message).startswith("toeplitz_solve in a loop of <lambda> is evaluated by")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fg.jit(lambda x: lax.fori_loop(0, 3, step, x) + 1)(V)
        fg.jit(calling)(V)
        with fg.debug_python_loops(False):
            fg.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: filtered(c) - i, x))(V)


def test_native_loops_and_other_times_are_silent():
    def native(x):
        y = np.sort(x)
        return lax.scan(lambda c, r: (np.tanh(c + r), c), y, np.ones((4, 3)))

    with fg.debug_python_loops():
        fg.jit(native)(V)
        with fg.debug_python_loops(False):
            fg.jit(lambda x: rotating(x) + 1)(V)


def test_environment_variable():
    code = (
        "import funcgrad as fg, numpy as np\n"
        "step = lambda i, c: fg.scipy.linalg.sqrtm(c).real * c\n"
        "fg.jit(lambda x: fg.lax.fori_loop(0, 2, step, x))(np.eye(3))"
    )
    env = {**os.environ, "FUNCGRAD_DEBUG_PYTHON_LOOPS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0
    assert "PythonLoopWarning: sqrtm in a loop of <lambda> is evaluated" in done.stderr


# Long programs.


def unrolled(x, steps=1500):
    for _ in range(steps):
        x = np.sin(x) * 0.5 + 1  # the loop
        x = x * x
        x = x - 0.1
    return x


@pytest.fixture
def _few_are_many(monkeypatch):
    """Programs count as long that compile faster than those that are."""
    monkeypatch.setattr(notices, "LONG_PROGRAM", LONG_PROGRAM // 10)


@pytest.mark.usefixtures("_few_are_many")
def test_unrolled_loops_are_reported_once_with_the_line():
    def repeated(x):
        return unrolled(x, 150)

    f = fg.jit(repeated)
    with fg.reroll_loops(False):
        with pytest.warns(LongProgramWarning) as caught:
            f(1.0)
        f(np.float32(1.0))
    assert len(caught) == 1
    text = str(caught[0].message)
    assert re.match(r"repeated has 7\d\d operations, \d\d\d of them from one line\.", text)
    assert "# the loop" in text
    assert "lax.scan" in text
    assert "FUNCGRAD_DEBUG=1" in text
    assert issubclass(LongProgramWarning, FuncgradWarning)


@pytest.mark.usefixtures("_few_are_many")
def test_gradients_are_counted_too():
    def f(x):
        for _ in range(90):
            x = np.sin(x) * 0.9 + 0.1  # in the gradient
        return x

    with fg.reroll_loops(False), pytest.warns(LongProgramWarning, match="# in the gradient"):
        fg.jit(fg.grad(f))(1.0)


def test_loops_that_are_found_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fg.jit(lambda x: unrolled(x))(1.0)


def test_ordinary_programs_are_silent():
    def f(x):
        for _ in range(1000):
            x = np.sin(x) + 1
        return x

    lines = "\n".join(f"    x = x + {i}.5" for i in range(5001))
    namespace: dict = {}
    exec(f"def g(x):\n{lines}\n    return x", namespace)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fg.jit(f)(1.0)
        fg.jit(namespace["g"]).trace(1.0)
        fg.grad(unrolled)(1.0)
        fg.jit(lambda x: lax.fori_loop(0, 10**5, lambda i, c: fnp.sin(c), x))(1.0)


def test_long_programs_of_many_lines_have_no_loop_to_suggest():
    code = filtered.__code__
    n_lines = LONG_PROGRAM // 25
    many = [SourceLocation(code, 1 + i % n_lines) for i in range(LONG_PROGRAM)]
    few = [SourceLocation(code, 1 + i % 100) for i in range(LONG_PROGRAM)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_length("f", many)
        warn_of_length("f", [None] * LONG_PROGRAM)
        warn_of_length("f", few[:-1])
    with pytest.warns(LongProgramWarning, match=r"f has 5000 operations, 50 of them from one line"):
        warn_of_length("f", few)
