"""Functions of integers that take a loop: powers, and greatest common divisors.

A vector goes on until the last of its elements is done; those that are done stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from funcgrad.compiler.native.scalars import I1, Emitted, declared

State = Sequence[Emitted]


def power(base: Emitted, exponent: Emitted) -> Emitted:
    """The product of as many factors, modulo two to the width, by squares.

    Args:
        base: The factor.
        exponent: How many, read without its sign.
    """

    def step(state: State) -> State:
        result, square, left = state
        is_odd = (left & 1) != 0
        return is_odd.select(result * square, result), square * square, _unsigned(left) >> 1

    return _repeated(
        "power",
        (base, exponent),
        lambda x, n: (x.constant(1), x, n),
        lambda state: state[2] != 0,
        step,
    )


def gcd(x: Emitted, y: Emitted) -> Emitted:
    """The greatest common divisor of the magnitudes, by halving and subtracting (Stein, 1967).

    The least integer is its own magnitude, read without a sign.
    """

    def start(x: Emitted, y: Emitted) -> State:
        a, b = (_unsigned(v.absolute()) for v in (x, y))
        return _odd(a), b, a | b

    def step(state: State) -> State:
        a, b, either = state
        odd = _odd(b)
        is_last, is_less = (a == 0) | (b == 0), odd < a
        smaller, rest = is_less.select(odd, a), is_less.select(a - odd, odd - a)
        return is_last.select(a | odd, smaller), is_last.select(0, rest), either

    def shared(state: State) -> Emitted:
        """The common factors of two were left out."""
        a, _, either = state
        return a << _trailing(either)

    return _repeated("gcd", (x, y), start, lambda state: state[1] != 0, step, shared)


def _unsigned(x: Emitted) -> Emitted:
    return Emitted(x.builder, x.value, "u")


def _trailing(x: Emitted) -> Emitted:
    """How many of the lowest bits are 0; 0 of 0."""
    kind = ir.FunctionType(x.type, [x.type, I1])
    count = x.builder.call(declared(x.builder, f"llvm.cttz.{x.suffix}", kind), [x.value, I1(0)])
    return (x == 0).select(0, x.like(count))


def _odd(x: Emitted) -> Emitted:
    """A number without its factors of two; 0 of 0."""
    return x >> _trailing(x)


def _repeated(
    name: str,
    args: Sequence[Emitted],
    start: Callable[..., State],
    is_open: Callable[[State], Emitted],
    step: Callable[[State], State],
    result: Callable[[State], Emitted] = lambda state: state[0],
) -> Emitted:
    """The call of a function of a module that repeats a step as long as any element is open."""
    first = args[0]
    module = first.builder.module
    symbol = f"{name}.{first.kind}.{first.suffix}"
    function = module.globals.get(symbol)
    if function is None:
        function = ir.Function(module, ir.FunctionType(first.type, [x.type for x in args]), symbol)
        function.linkage = "internal"
        for attribute in ("alwaysinline", "nounwind"):
            function.attributes.add(attribute)
        _write(function, first.kind, start, is_open, step, result)
    return first.like(first.builder.call(function, [x.value for x in args]))


def _write(
    function: ir.Function,
    kind: str,
    start: Callable[..., State],
    is_open: Callable[[State], Emitted],
    step: Callable[[State], State],
    result: Callable[[State], Emitted],
) -> None:
    entry, head, body, end = (
        function.append_basic_block(name) for name in ("entry", "head", "body", "end")
    )
    builder = ir.IRBuilder(entry)
    initial = start(*(Emitted(builder, x, kind) for x in function.args))
    builder.branch(head)
    builder.position_at_end(head)
    state = [x.like(builder.phi(x.type)) for x in initial]
    test: Any = is_open(state)
    builder.cbranch((test.across("or") if test.lanes else test).value, body, end)
    builder.position_at_end(body)
    following = step(state)
    builder.branch(head)
    for variable, first, next_one in zip(state, initial, following, strict=True):
        variable.value.add_incoming(first.value, entry)
        variable.value.add_incoming(next_one.value, body)
    builder.position_at_end(end)
    builder.ret(result(state).value)
