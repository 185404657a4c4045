"""``autograd.util``: arguments with some of them replaced, and a check of older programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from funcgrad.interop.autograd.test_util import check_grads

__all__ = ["quick_grad_check", "subval", "subvals"]


def subvals(x: tuple[Any, ...], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """A tuple with some entries replaced.

    Args:
        x: The tuple.
        ivs: Pairs of a position and its new entry.
    """
    entries = list(x)
    for i, v in ivs:
        entries[i] = v
    return tuple(entries)


def subval(x: tuple[Any, ...], i: int, v: Any) -> tuple[Any, ...]:
    """A tuple with one entry replaced.

    Args:
        x: The tuple.
        i: The position.
        v: The new entry.
    """
    return subvals(x, [(i, v)])


def quick_grad_check(
    fun: Callable[..., Any],
    arg0: Any,
    extra_args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Check reverse mode with respect to the first argument: `check_grads` of older programs.

    Args:
        fun: The function.
        arg0: Its first argument.
        extra_args: The others.
        kwargs: Its keyword arguments.
        **options: Tolerances and steps of older versions, which count no more in autograd either.
    Raises: GradientError: If the derivative differs from differences.
    """
    named = kwargs or {}
    check_grads(lambda x: fun(x, *extra_args, **named), 0, ("rev",), 1)(arg0)
