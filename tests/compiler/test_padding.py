"""Sums of arrays that are padded alike are padded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.core.program import Program, evaluate
from funcgrad.core.typecheck import check_program
from funcgrad.passes.padding import add_padded

RNG = np.random.default_rng(3)


def around(x: Any, low: int, high: int, fill: float = 0.0) -> Any:
    return lax.pad(x, fill, [(low, high, 0)])


def names(program: Program) -> list[str]:
    return [e.primitive.name for e in program.equations]


@pytest.mark.parametrize(
    ("function", "n_pads", "n_sums"),
    [
        (lambda x, y, z: around(x, 1, 2) + around(y, 1, 2), 1, 1),
        (lambda x, y, z: around(x, 1, 2) + around(z, 2, 1) + (around(y, 1, 2) + 1.0), 3, 3),
        (
            lambda x, y, z: around(x, 1, 2) + around(z, 2, 1) + around(y, 1, 2) + around(z, 1, 2),
            2,
            3,
        ),
        (lambda x, y, z: around(x, 1, 2, 1.0) + around(y, 1, 2, 1.0), 2, 1),
        (lambda x, y, z: around(z, 2, 1) * (around(x, 1, 2) + around(y, 1, 2) + z[0]), 2, 2),
    ],
)
def test_what_is_padded_alike_is_padded_once(function: Any, n_pads: int, n_sums: int) -> None:
    args = [RNG.integers(-9, 9, 5).astype(np.float64) for _ in range(3)]
    program = fg.make_jaxpr(function)(*args).program
    found = add_padded(program)
    check_program(found)
    assert names(found).count("pad") == n_pads
    assert names(found).count("add") == n_sums
    np.testing.assert_array_equal(evaluate(found, args), evaluate(program, args))


def test_sums_that_are_read_twice_stay() -> None:
    def function(x: Any, y: Any) -> Any:
        part = around(x, 1, 1)
        return part + around(y, 1, 1), part

    program = fg.make_jaxpr(function)(np.ones(3), np.ones(3)).program
    assert add_padded(program) is program


def test_gradients_of_stencils_with_edges() -> None:
    """Kernels of a gradient ask for each part of an array once, however often it is read."""

    def loss(u: Any) -> Any:
        for _ in range(3):
            inner = u[1:-1, 1:-1] * (u[1:-1, 2:] - u[1:-1, :-2]) + u[2:, 1:-1] ** 2
            edge = u[1:-1, 0] * u[1:-1, -1] + u[2:, 0] - u[:-2, 0] + u[1:-1, 1]
            u = u.copy()
            u[1:-1, 1:-1], u[1:-1, 0] = inner, edge
        return np.sum(u**2)

    u = RNG.normal(size=(6, 7))
    np.testing.assert_allclose(fg.jit(fg.grad(loss))(u), fg.grad(loss)(u), rtol=1e-11, atol=1e-11)
    fg.test_util.check_grads(loss, (0.1 * u,), 2, modes=("rev",))
