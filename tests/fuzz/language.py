"""Programs as data: steps with their text, functions inside of them, arguments in their layouts.

A program reads as a Python function ``f(m, v0, v1, ...)``: ``np`` is NumPy, whose functions work on
traced arrays as well, and ``m`` is what NumPy does not have: loops, branches, custom rules and the
rows of the law table. With ``PLAIN`` in the place of ``m`` no transformation of funcgrad takes part
in the result, and arrays are NumPy's; with ``FUNCGRAD`` it is the function under test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.extend.laws import observed
from funcgrad.primitives.objects import unwrapped
from tests.cases import CASES, Case
from tests.higher_order import plain

LAWS: dict[str, Case] = {case.name: case for case in CASES}


def law(name: str, *args: Any) -> Any:
    """The results of a row of the law table, or what does not depend on choices among them."""
    return observed(LAWS[name], *args)


def traced_law(name: str, *args: Any) -> Any:
    """The same of arguments that may stand for traced arrays, which primitives do not know."""
    return law(name, *map(unwrapped, args))


# What the text of programs calls, beside NumPy.


def _ruled_forward(f: Callable[..., Any]) -> Any:
    ruled = fg.custom_jvp(f)
    ruled.defjvp(lambda primals, tangents: fg.jvp(f, primals, tangents))
    return ruled


def _ruled_backward(f: Callable[..., Any]) -> Any:
    ruled = fg.custom_vjp(f)
    ruled.defvjp(lambda *xs: (f(*xs), xs), lambda xs, ct: fg.vjp(f, *xs)[1](ct))
    return ruled


def _same(f: Callable[..., Any]) -> Callable[..., Any]:
    return f


def _lane_by_lane(f: Callable[..., Any]) -> Callable[..., Any]:
    def looped(*stacks: Any) -> Any:
        return np.stack([f(*row) for row in zip(*stacks, strict=True)])

    return looped


def _counted(lower: int, upper: int, body: Callable[..., Any], value: Any) -> Any:
    return plain.fori_loop(lower, upper, lambda i, x: body(np.int64(i), x), value)


# Reading and writing rows at any places at all. What an index means is computed with Python's
# integers, which have no width; `hidden` keeps transformations from knowing it.


def _hidden(x: Any, index: Any) -> Any:
    return index + np.any(x != x).astype(index.dtype) * index.dtype.type(0)


def _read(x: Any, index: Any, mode: str) -> Any:
    return fg.numpy.at(x)[index].get(mode=mode, fill_value=1)


def _write(x: Any, index: Any, value: Any, mode: str, how: str) -> Any:
    return getattr(fg.numpy.at(x)[index], how)(value, mode=mode)


def _place(i: int, n: int, mode: str) -> int | None:
    if mode == "wrap":
        return i % n
    if mode == "clip":
        return min(max(i + n if i < 0 else i, 0), n - 1)
    return i % n if -n <= i < n else None


def _plain_read(x: Any, index: Any, mode: str) -> Any:
    out = np.ones((len(index), *np.shape(x)[1:]), x.dtype)
    for k, i in enumerate(index.tolist()):
        place = _place(i, len(x), mode)
        if place is not None:
            out[k] = x[place]
    return out


def _plain_write(x: Any, index: Any, value: Any, mode: str, how: str) -> Any:
    out = np.array(x)
    for i in index.tolist():
        place = _place(i, len(x), mode)
        if place is not None:
            out[place] = value[0] if how == "set" else out[place] + value[0]
    return out


FUNCGRAD = SimpleNamespace(
    array=fg.numpy.array,
    asarray=fg.numpy.asarray,
    scan=fg.lax.scan,
    while_loop=fg.lax.while_loop,
    fori_loop=fg.lax.fori_loop,
    map=fg.lax.map,
    cond=fg.lax.cond,
    switch=fg.lax.switch,
    checkpoint=fg.checkpoint,
    jit=fg.jit,
    vmap=fg.vmap,
    custom_jvp=_ruled_forward,
    custom_vjp=_ruled_backward,
    law=traced_law,
    hidden=_hidden,
    read=_read,
    write=_write,
)
PLAIN = SimpleNamespace(
    array=np.array,
    asarray=np.asarray,
    scan=plain.scan,
    while_loop=plain.while_loop,
    fori_loop=_counted,
    map=plain.map,
    cond=plain.cond,
    switch=plain.switch,
    checkpoint=_same,
    jit=_same,
    vmap=_lane_by_lane,
    custom_jvp=_same,
    custom_vjp=_same,
    law=law,
    hidden=lambda x, index: index,
    read=_plain_read,
    write=_plain_write,
)


# Arguments.


def _misaligned(x: np.ndarray) -> np.ndarray:
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:]
    view = raw.view(x.dtype) if x.size else np.zeros(0, x.dtype)
    view = view.reshape(x.shape)
    view[...] = x
    return view


def _spread(x: np.ndarray) -> np.ndarray:
    """Every other element of a larger array, along every axis."""
    room = np.full([2 * n + 1 for n in x.shape], x.dtype.type(1))
    view = room[(*(slice(0, 2 * n, 2) for n in x.shape), ...)]
    view[...] = x
    return view


def _backward(x: np.ndarray) -> np.ndarray:
    every = (slice(None, None, -1),) * x.ndim
    return x[every].copy()[every]


def _read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def _part(x: np.ndarray) -> np.ndarray:
    """Contiguous, in the midst of a larger array."""
    room = np.ones(x.size + 3, x.dtype)
    room[1 : 1 + x.size] = x.ravel()
    return room[1 : 1 + x.size].reshape(x.shape)


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "plain": np.copy,
    "backward": _backward,
    "columns first": lambda x: np.array(x, order="F"),
    "spread": _spread,
    "read-only": _read_only,
    "misaligned": _misaligned,
    "part": _part,
    "one row": lambda x: np.broadcast_to(x[:1].copy(), x.shape) if x.ndim else x.copy(),
    "one element": lambda x: (
        np.broadcast_to(x.ravel()[:1].copy()[0], x.shape) if x.size else x.copy()
    ),
}
"""How an argument lies in memory. The last two have strides of zero."""


@dataclass(frozen=True, eq=False)
class Argument:
    """An array, another one of the same type for a second lane, and how they lie in memory."""

    value: np.ndarray
    other: np.ndarray
    layout: str = "plain"

    def laid_out(self, lane: int = 0) -> np.ndarray:
        """The argument of a call."""
        return LAYOUTS[self.layout]((self.value, self.other)[lane])

    @property
    def text(self) -> str:
        same = self.other is self.value or np.array_equal(self.other, self.value, equal_nan=True)
        parts = [_literal(self.value), *([] if same else [_literal(self.other)])]
        parts += [f"layout={self.layout!r}"] if self.layout != "plain" else []
        return f"argument({', '.join(parts)})"


def argument(value: Any, other: Any = None, layout: str = "plain") -> Argument:
    """An argument as printed programs write it."""
    value = np.asarray(value)
    return Argument(value, value if other is None else np.asarray(other), layout)


def _literal(x: np.ndarray) -> str:
    dtype = f"np.{x.dtype.name}"
    if not x.size:
        return f"np.zeros({x.shape}, {dtype})"
    if x.size > 1 and np.array_equal(x, np.broadcast_to(x.ravel()[0], x.shape)):
        return f"np.full({x.shape}, {_number(x.ravel()[0])}, {dtype})"
    text = re.sub(r"\b(inf|nan)", r"np.\1", repr(x.tolist()))
    return f"np.array({text}, {dtype})"


def _number(x: Any) -> str:
    return re.sub(r"\b(inf|nan)", r"np.\1", repr(x.item()))


# Programs.


@dataclass(frozen=True)
class Block:
    """A function inside of a step.

    Attributes:
        params: Numbers of its parameters.
        steps: Its steps; they may read what stands around it.
        results: The text of what it returns, with ``{0}``, ``{1}``, ... for `reads`.
        reads: Numbers of variables.
    """

    params: tuple[int, ...]
    steps: tuple[Step, ...]
    results: str
    reads: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """An operation.

    Attributes:
        out: The number of the variable that it makes.
        text: Its lines, with ``{out}``, ``{0}``, ``{1}``, ... and ``{f0}``, ``{f1}``, ... for the
            names of the variables and functions that it uses.
        operands: Numbers of variables.
        blocks: Functions.
        is_exact: Whether its result has no rounding errors.
        is_smooth: Whether differences of it agree with its derivative.
        has_choices: Whether its derivative depends on the last digit of an operand.
        law: The name of the row of the law table that it calls, if any.
    """

    out: int
    text: str
    operands: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()
    is_exact: bool = False
    is_smooth: bool = True
    has_choices: bool = False
    law: str = ""

    def every(self) -> Iterator[Step]:
        """This step, and those of the functions inside."""
        yield self
        for block in self.blocks:
            for step in block.steps:
                yield from step.every()

    @property
    def reads(self) -> set[int]:
        """What it reads of the variables around it."""
        found = set(self.operands)
        for block in self.blocks:
            inside = set(block.reads).union(*(step.reads for step in block.steps))
            found |= inside - set(block.params) - {step.out for step in block.steps}
        return found

    def lines(self) -> list[str]:
        """Its text."""
        names = {"out": f"v{self.out}"}
        lines = []
        for k, block in enumerate(self.blocks):
            name = names[f"f{k}"] = f"f{self.out}_{k}"
            lines.append(f"def {name}({', '.join(f'v{i}' for i in block.params)}):")
            body = [line for step in block.steps for line in step.lines()]
            returned = block.results.format(*(f"v{i}" for i in block.reads))
            lines += [f"    {line}" for line in [*body, f"return {returned}"]]
        operands = [f"v{i}" for i in self.operands]
        return [*lines, *self.text.format(*operands, **names).split("\n")]


@dataclass(frozen=True)
class Program:
    """A function of arrays, and arguments for it.

    Attributes:
        args: The arguments, by the number of their variable.
        steps: What it computes.
        outputs: The variables that it returns.
        scale: The largest number on the way.
    """

    args: dict[int, Argument]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    scale: float = field(default=1.0, compare=False)

    @cached_property
    def lines(self) -> list[str]:
        names = ", ".join(f"v{i}" for i in self.args)
        body = [f"    {line}" for step in self.steps for line in step.lines()]
        results = "".join(f"v{i}, " for i in self.outputs)
        return [f"def f(m, {names}):", *body, f"    return ({results})"]

    @cached_property
    def text(self) -> Callable[..., Any]:
        """The function of what ``m`` is and of the arguments."""
        scope: dict[str, Any] = {"np": np}
        exec("\n".join(self.lines), scope)
        return scope["f"]

    @cached_property
    def values(self) -> list[np.ndarray]:
        """The arguments, laid out."""
        return [a.laid_out() for a in self.args.values()]

    @property
    def function(self) -> Callable[..., Any]:
        """The function under test."""
        return partial(self.text, FUNCGRAD)

    @property
    def reference(self) -> Callable[..., Any]:
        """What it has to agree with."""
        return partial(self.text, PLAIN)

    def every(self) -> Iterator[Step]:
        for step in self.steps:
            yield from step.every()

    @cached_property
    def is_smooth(self) -> bool:
        return all(step.is_smooth for step in self.every())

    @cached_property
    def has_choices(self) -> bool:
        return any(step.has_choices for step in self.every())

    @cached_property
    def has_derivatives(self) -> bool:
        """Whether every row of the law table in it has derivatives in all arguments."""
        rows = [LAWS[step.law] for step in self.every() if step.law]
        return all(row.order >= 1 and row.differentiable is None for row in rows)

    @cached_property
    def is_single(self) -> bool:
        """Whether it computes in single precision anywhere."""
        texts = " ".join(self.lines)
        return any(a.value.dtype.char in "fFe" for a in self.args.values()) or "float32" in texts

    def __repr__(self) -> str:
        types = [f"v{i}: {a.value.dtype}{list(a.value.shape)}" for i, a in self.args.items()]
        return "\n".join([f"# {', '.join(types)}", *self.lines])

    def as_test(self, name: str) -> str:
        """A test that checks a property of it."""
        lines = ["def test_found() -> None:", *(f"    {line}" for line in self.lines), ""]
        calls = "".join(f"        {a.text},\n" for a in self.args.values())
        options = "".join(
            f"        {key}={value!r},\n"
            for key, value in (
                ("scale", float(self.scale)),
                ("is_smooth", self.is_smooth),
                ("has_choices", self.has_choices),
            )
        )
        return (
            "\n".join(lines)
            + f"\n    check(\n        {name!r},\n        f,\n{calls}{options}    )\n"
        )
