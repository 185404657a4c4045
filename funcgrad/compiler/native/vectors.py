"""Words of vectors: what is made of them and of their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.compiler.native import types
from funcgrad.compiler.native.complexes import llvm_type
from funcgrad.compiler.native.memory import exchanged_blocks
from funcgrad.compiler.native.numbers import select
from funcgrad.compiler.native.scalars import Builder
from funcgrad.compiler.native.words import define, expect, literal_of, promote
from funcgrad.intrinsics import INTRINSICS


def _present_rule(args: Any) -> types.Signature:
    expect(
        len(args) == 3 and isinstance(args[0], types.Lanes), "present(lanes, value, other)", args
    )
    t = types.vector(promote([types.element_of(t) for t in args[1:]]), args[0].count)
    return types.signature(t, args[0], t, t)


@define("present", _present_rule, is_mapped=False)
def _present(builder: Builder, sig: types.Signature, values: list[Any]) -> Any:
    """A value in the lanes that are there, another one elsewhere."""
    index, value, other = values
    if not sig.args[0].is_partial:
        return value
    return select(index.mask(llvm_type(sig.return_type)), value, other)


def _splat_rule(args: Any) -> types.Signature:
    expect(len(args) == 2, "splat(value, count)", args)
    t = types.strong(args[0])
    return types.signature(types.vector(t, literal_of(args[1], args)), t, args[1])


@define("splat", _splat_rule, is_mapped=False)
def _splat(builder: Builder, sig: types.Signature, values: list[Any]) -> Any:
    """A vector of one value."""
    return values[0].splat(sig.return_type.count)


def _half_rule(args: Any) -> types.Signature:
    expect(len(args) == 1 and isinstance(args[0], types.Vector), "half of a vector", args)
    (t,) = args
    return types.signature(types.vector(t.element, t.count // 2), t)


define("low", _half_rule, is_mapped=False)(lambda builder, sig, values: values[0].half(False))
define("high", _half_rule, is_mapped=False)(lambda builder, sig, values: values[0].half(True))


def _across_rule(args: Any) -> types.Signature:
    expect(len(args) == 1 and isinstance(args[0], types.Vector), "a vector", args)
    return types.signature(args[0].element, args[0])


for _intrinsic in INTRINSICS.values():
    if _intrinsic.across:
        define(f"across_{_intrinsic.name}", _across_rule, is_mapped=False)(
            lambda builder, sig, values, fold=_intrinsic.across: values[0].across(fold)
        )


def _trade_rule(args: Any) -> types.Signature:
    expect(
        len(args) == 3 and isinstance(args[0], types.Vector),
        "two vectors and the length of blocks",
        args,
    )
    literal_of(args[2], args)
    return types.signature(args[0], args[0], args[0], args[2])


def _trade(is_high: bool) -> Callable[..., Any]:
    """Exchange blocks of two rows: one step of the transposition of a tile in registers.

    Every second block of the low row is replaced by the block of the high row before it.
    """

    def emission(builder: Builder, sig: types.Signature, values: list[Any]) -> Any:
        low, high, _ = values
        masks = exchanged_blocks(sig.return_type.count, sig.args[2].literal_value)
        return low.mixed(high, masks[is_high])

    return emission


define("trade_low", _trade_rule, is_mapped=False)(_trade(False))
define("trade_high", _trade_rule, is_mapped=False)(_trade(True))
