"""Functions of integers that take a loop: powers, and greatest common divisors.

A vector goes on until the last of its elements is done; those that are done stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from funcgrad.compiler.native.llvm import I1, Function, Module
from funcgrad.compiler.native.scalars import Builder, Emitted, arms

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
    return x.of_kind("u")


def _trailing(x: Emitted) -> Emitted:
    """How many of the lowest bits are 0; 0 of 0."""
    count = x.intrinsic("cttz", x.builder.number(I1, 0))
    return (x == 0).select(0, count)


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
    type, kind = first.type, first.kind

    def write(module: Module, symbol: str) -> None:
        function = Function(symbol, type, [type] * len(args), "alwaysinline nounwind")
        builder = Builder(module, function)
        initial, entry = start(*builder.arguments(kind * len(args))), builder.block
        head, body, end = map(builder.new_block, ("head", "body", "end"))
        builder.jump(head)
        builder.begin(head)
        state = [Emitted(builder, f"%s{k}", type, x.kind, head) for k, x in enumerate(initial)]
        test = is_open(state)
        builder.fork(test.across("or") if test.lanes else test, body, end)
        builder.begin(body)
        cases = zip(state, initial, step(state), strict=True)
        head.phis = [
            f"  {x.text} = phi {type} {arms([(before, entry), (after, body)])}"
            for x, before, after in cases
        ]
        builder.jump(head)
        builder.begin(end)
        builder.end(f"ret {result(state)}")

    symbol = f"{name}.{kind}.{first.suffix}"
    first.builder.module.helper(symbol, write)
    return first.builder.call(symbol, type, kind, *args)
