"""In which order the axes of results lie in memory, where that is for the compiler to choose.

Results lie in row-major order. A sum of products over windows may be fastest in another one, with
positions side by side where there are few channels. Its result is *free*, and what is computed of
it, element by element or window by window, follows: so the order is changed back where somebody
asks for memory, at the end of all that, and not at every step. Where all operands lie in one order
(`exp(x.T)`, `w.T.astype(...)`), it is followed, too: most who read that transpose it once more.
Other inputs and constants lie as they do, and who reads one of them does not follow.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcgrad.compiler.nest import layout

Order = tuple[int, ...]
"""Axes, from the one whose elements lie farthest apart to the one whose lie side by side."""


def followed_order(operands: Sequence[layout.Operand]) -> Order | None:
    """The order in which a function of operands of one shape computes, if not row by row."""
    # Of what is the same along an axis, others decide in which order that is read.
    asked = [x for x in operands if isinstance(x, layout.View) and not x.is_repeated]
    orders = [stored_order(x) for x in asked]
    if len(set(orders)) > 1:
        if any(x.value.maker is None for x in asked):
            return None
        pairs = zip(asked, orders, strict=True)
        orders = [order for x, order in pairs if x.value.is_free and order is not None]
    found = orders[0] if orders else None
    return None if found is None or found == tuple(sorted(found)) else found


def stored_order(x: layout.View) -> Order | None:
    """The order of the axes of a view of a whole value."""
    order = tuple(sorted(range(len(x.shape)), key=lambda i: (-x.strides[i], i)))
    seen = x.permuted(order)
    is_whole = seen.is_whole and layout.same_strides(
        seen.shape, seen.strides, layout.contiguous_strides(seen.shape)
    )
    return order if is_whole else None


def permuted_shape(shape: layout.Shape, order: Order) -> layout.Shape:
    return tuple(shape[i] for i in order)


def inverse(order: Order) -> Order:
    """The order that undoes one."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))
