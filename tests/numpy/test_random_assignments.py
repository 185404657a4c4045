"""Random programs that write in place, into views and aliases, against NumPy and complex steps.

The programs are analytic, so that NumPy's values at ``x + ih`` have the derivative as their
imaginary part. A program may be refused, with the line; else it does what NumPy does.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad.errors import ArgumentError

N = 4
X = np.array([0.3, -0.8, 1.2, 0.6])
SHAPES: tuple[tuple[int, ...], ...] = ((N,), (N, N))

Names = dict[str, tuple[int, ...]]
Draw = Callable[[st.SearchStrategy[Any]], Any]


def index(draw: Draw, n: int) -> tuple[str, int | None]:
    """An index of one axis, and the length that it leaves; None for an integer."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return str(draw(st.integers(-n, n - 1))), None
    start = draw(st.integers(0, n - 1))
    stop = draw(st.integers(start + 1, n))
    text = ("{}:{}:2", "{}:{}", ":")[kind - 1].format(start, stop)
    text = "::-1" if text == ":" and draw(st.booleans()) else text
    return text, len(range(n)[slice(*(int(x) if x else None for x in text.split(":")))])


def part(draw: Draw, names: Names) -> tuple[str, tuple[int, ...]]:
    """A view of an array, and its shape."""
    name = draw(st.sampled_from(sorted(names)))
    shape = names[name]
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return name, shape
    if kind == 1:
        return f"{name}.T", shape[::-1]
    if kind == 2 and len(shape) == 2:
        return f"{name}.reshape(-1)", (shape[0] * shape[1],)
    found = [index(draw, n) for n in shape[: draw(st.integers(1, len(shape)))]]
    left = tuple(n for _, n in found if n is not None) + shape[len(found) :]
    return f"{name}[{', '.join(text for text, _ in found)}]", left


def fitting(draw: Draw, names: Names, shape: tuple[int, ...]) -> str:
    """An expression that broadcasts to a shape."""
    for _ in range(3):
        text, found = part(draw, names)
        if found == shape[len(shape) - len(found) :]:
            return draw(st.sampled_from(("{}", "0.5 * {}", "np.sin({})", "({0} * {0})"))).format(
                text
            )
    return draw(st.sampled_from(("0.7", "x[1]", "x[0] * x[2]")))


def statement(draw: Draw, names: Names) -> str:
    """A line that makes an array or a view, or writes into one."""
    target, shape = part(draw, names)
    kind = draw(st.integers(0, 9))
    new = f"a{len(names)}"
    if kind == 0:
        names[new] = shape if shape else (N,)
        return f"{new} = 2 * {target}" + " * np.ones(4)" * (not shape)
    if kind in (1, 2) and shape:
        names[new] = shape
        return f"{new} = {target}"
    if kind == 3 and shape:
        names[new] = shape
        return f"{new} = {target}.copy()"
    value = fitting(draw, names, shape)
    if kind == 4 and "[" in target:
        other = draw(st.integers(0, N - 1))
        return f"y[{other}], y[0] = y[0], y[{other}] + {fitting(draw, names, ())}"
    if kind == 5 and shape:
        return f"np.multiply({target}, {value}, out={target})"
    if kind == 6 and shape:
        return f"np.copyto({target}, {value})"
    if kind == 7:
        return f"np.add.at(y, [0, 0, {draw(st.integers(0, N - 1))}], {fitting(draw, names, (3,))})"
    operator = draw(st.sampled_from(("=", "+=", "*=", "-=")))
    is_name = target in names and operator != "="
    target = target if is_name or target.endswith("]") else f"{target}[...]"
    return f"{target} {operator} {value}"


@st.composite
def programs(draw: Draw) -> str:
    names: Names = {"x": (N,), "y": (N,), "m": (N, N)}
    lines = ["y = np.sin(x)", "m = np.outer(y, x + 1)"]
    lines += [statement(draw, names) for _ in range(draw(st.integers(1, 8)))]
    total = " + ".join(f"({k + 1} * {name}).sum()" for k, name in enumerate(names))
    return "\n    ".join(["def f(x):", *lines, f"return {total}"])


def compiled(text: str) -> Callable[[Any], Any]:
    """The function, whose lines messages can show."""
    name = "random_assignments.py"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"np": np}
    exec(compile(text, name, "exec"), space)
    return space["f"]


def check(text: str, transforms: dict[str, Callable[[Any], Any]]) -> None:
    f = compiled(text)
    x, h = X.copy(), 1e-30
    value = f(x.copy())
    wanted = [f(x + 1j * h * e).imag / h for e in np.eye(N)]
    if not np.isfinite([value, *wanted]).all() or np.max(np.abs(wanted)) > 1e6:
        return
    for name, transform in transforms.items():
        try:
            found = transform(f)(x)
        except ArgumentError as error:
            message = str(error)
        else:
            message = None
        if message is not None:
            assert "\n  at " in message, (name, text)
            continue
        np.testing.assert_allclose(
            found, value if name == "jit" else wanted, 1e-7, 1e-7, err_msg=f"{name} of {text}"
        )
    np.testing.assert_array_equal(x, X)


EAGER: dict[str, Callable[[Any], Any]] = {
    "grad": fg.grad,
    "grad of vmap": lambda f: lambda x: fg.grad(lambda r: fg.vmap(f)(r).sum())(np.stack([x, x]))[1],
    "jvp": lambda f: lambda x: [fg.jvp(f, (x,), (e,))[1] for e in np.eye(N)],
    "vmap of grad": lambda f: lambda x: fg.vmap(fg.grad(f))(np.stack([2 * x, x]))[1],
    "checkpoint": lambda f: fg.grad(fg.checkpoint(f)),
    "in scan": lambda f: fg.grad(
        lambda x: fg.lax.scan(lambda c, _: (c, f(c)), x, None, length=1)[1].sum()
    ),
}


@given(programs())
def test_random_programs(text: str) -> None:
    check(text, EAGER)


@given(programs())
@settings(max_examples=4, deadline=None)
def test_random_programs_compiled(text: str) -> None:
    check(text, {"jit": fg.jit, "jit of grad": lambda f: fg.jit(fg.grad(f))})
