"""``autograd.test_util``: derivatives against differences.

`funcgrad.testing.check_grads` does the work, along random directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from funcgrad import testing
from funcgrad.interop.autograd.wrap_util import unary_to_nary

__all__ = ["check_grads", "combo_check"]


@unary_to_nary
def check_grads(
    fun: Callable[..., Any], x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2
) -> None:
    """Check derivatives: ``check_grads(fun, argnum, modes, order)(*args)``.

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop.autograd.test_util import check_grads
        >>> check_grads(np.sin)(1.0)
    """
    testing.check_grads(fun, (x,), order, tuple(modes))


def combo_check(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., None]:
    """Check derivatives for all combinations of the arguments given.

    Args:
        fun: The function.
        *args: As for `check_grads`.
        **kwargs: As for `check_grads`.

    Returns:
        A function that takes a sequence of values for every argument of ``fun``.
    """
    check = check_grads(fun, *args, **kwargs)

    def check_all(*choices: Any, **named: Any) -> None:
        for given in product(*choices):
            for values in product(*named.values()):
                check(*given, **dict(zip(named, values, strict=True)))

    return check_all
