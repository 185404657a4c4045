"""Control flow in plain Python, and derivatives of what is written with it.

Programs take this module or `funcgrad.lax` as an argument, so that each is written once and runs
without funcgrad as well. Derivatives are complex steps, exact to rounding, and differences of these
for second ones; programs are analytic where they are tested (comparisons of complex numbers are
NumPy's: real parts first).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]


def tree_map(f: Function, *trees: Any) -> Any:
    first = trees[0]
    if first is None:
        return None
    if isinstance(first, dict):
        return {key: tree_map(f, *(t[key] for t in trees)) for key in first}
    if isinstance(first, tuple | list):
        return type(first)(tree_map(f, *parts) for parts in zip(*trees, strict=True))
    return f(*trees)


def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    if xs is not None and length is None:
        lengths: list[int] = []
        tree_map(lambda x: lengths.append(len(x)), xs)
        length = lengths[0]
    assert length
    ys: list[Any] = [None] * length
    carry = init
    for i in reversed(range(length)) if reverse else range(length):
        carry, ys[i] = f(carry, tree_map(lambda x, i=i: x[i], xs))
    return carry, tree_map(lambda *parts: np.stack(parts), *ys)


def while_loop(condition: Function, body: Function, value: Any, **_options: Any) -> Any:
    while condition(value):
        value = body(value)
    return value


def fori_loop(lower: int, upper: int, body: Function, value: Any, **_options: Any) -> Any:
    for i in range(int(np.real(lower)), int(np.real(upper))):
        value = body(i, value)
    return value


def map(f: Function, xs: Any, batch_size: int | None = None) -> Any:
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def cond(holds: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    return true_fun(*operands) if holds else false_fun(*operands)


def switch(index: Any, branches: Any, *operands: Any) -> Any:
    return branches[min(max(int(np.real(index)), 0), len(branches) - 1)](*operands)


def associative_scan(f: Function, xs: Any, reverse: bool = False) -> Any:
    def step(carry: Any, x: Any) -> Any:
        total = f(carry, x)
        return total, total

    order = slice(None, None, -1) if reverse else slice(None)
    rows = tree_map(lambda x: x[order], xs)
    first = tree_map(lambda x: x[0], rows)
    rest = scan(step, first, tree_map(lambda x: x[1:], rows))[1]
    return tree_map(lambda a, b: np.concatenate([a[None], b])[order], first, rest)


# Derivatives.


def jacobian(f: Function, x: np.ndarray) -> np.ndarray:
    """Of a function of a vector: one complex step per column."""
    step = 1e-30
    columns = [np.imag(f(x + 1j * step * e)) / step for e in np.eye(len(x))]
    return np.stack(columns, -1)


def hessian(f: Function, x: np.ndarray) -> np.ndarray:
    """Differences of fourth order of the Jacobian."""
    h = 2e-4

    def along(e: np.ndarray) -> np.ndarray:
        near = jacobian(f, x + h * e) - jacobian(f, x - h * e)
        far = jacobian(f, x + 2 * h * e) - jacobian(f, x - 2 * h * e)
        return (8 * near - far) / (12 * h)

    return np.stack([along(e) for e in np.eye(len(x))], -1)
