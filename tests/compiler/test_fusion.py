"""Random programs: native code computes what NumPy computes, whatever shares a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings

import funcgrad as fg
from tests.compiler.programs import RandomProgram, programs

EXAMPLES = 20


def assert_close(found: Any, expected: Any, rtol: float, scale: float) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * scale)
    else:
        np.testing.assert_array_equal(found, expected)


def assert_separate(results: Any, args: list[np.ndarray]) -> None:
    """No result shares memory with an argument or with another result."""
    arrays = [x for x in results if isinstance(x, np.ndarray)]
    for k, array in enumerate(arrays):
        for other in [*args, *arrays[:k]]:
            assert not np.shares_memory(array, other)


def check_values(program: RandomProgram, rtol: float) -> None:
    with np.errstate(all="ignore"):
        expected = program.function(*program.args)
    before = [a.copy() for a in program.args]
    f = fg.jit(program.function)
    for _ in range(2):  # the general path, and that of repeated calls
        found = f(*program.args)
        for x, y in zip(found, expected, strict=True):
            assert_close(x, y, rtol, program.scale)
        assert_separate(found, program.args)
        for x, y in zip(program.args, before, strict=True):
            np.testing.assert_array_equal(x, y)


@settings(max_examples=EXAMPLES)
@given(programs("f8"))
def test_double(program: RandomProgram) -> None:
    check_values(program, 1e-11)


@settings(max_examples=EXAMPLES)
@given(programs("f4"))
def test_single(program: RandomProgram) -> None:
    check_values(program, 1e-5)


def check_gradients(program: RandomProgram, rtol: float) -> None:
    def loss(*args: Any) -> Any:
        return sum(np.sum(np.sin(x)) for x in program.function(*args))

    argnums = tuple(range(len(program.args)))
    expected = fg.grad(loss, argnums)(*program.args)
    scale = program.scale * max(1.0, *(float(np.max(np.abs(g), initial=0.0)) for g in expected))
    for derived in (fg.jit(fg.grad(loss, argnums)), fg.grad(fg.jit(loss), argnums)):
        found = derived(*program.args)
        for x, y in zip(found, expected, strict=True):
            assert_close(x, y, rtol, scale)


@settings(max_examples=EXAMPLES)
@given(programs("f8", is_smooth=True))
def test_gradients(program: RandomProgram) -> None:
    check_gradients(program, 1e-10)


@settings(max_examples=EXAMPLES)
@given(programs("f8", is_smooth=True))
def test_batches(program: RandomProgram) -> None:
    expected = program.function(*program.args)
    stacked = [np.stack([a, a * 0.5]) for a in program.args]
    found = fg.jit(fg.vmap(program.function))(*stacked)
    for x, y in zip(found, expected, strict=True):
        assert_close(x[0], y, 1e-11, program.scale)
