"""autograph: a decorator after which Python's branches and loops take traced conditions."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar

from funcgrad.api import branching
from funcgrad.api.rewriting import rewritten
from funcgrad.errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])


def autograph(fun: F) -> F:
    """Let `if`, `while` and `for` of a function depend on traced values.

    The source of the function is read once, and rewritten: where a condition turns out to be
    traced, a branch is `lax.cond`, and a loop `lax.while_loop` or `lax.fori_loop`. With values that
    are known, everything is as before. So it works with all transformations in any order, and
    eagerly.

    - It takes `break`, `continue`, `return` in branches and loops, ``else`` behind loops, `and`,
      `or`, `not`, conditional expressions, chains of comparisons, and `range`, `min`, `max`, `int`
      and `float` of traced numbers, also in functions that are defined inside.
    - It carries the variables that arms assign, and the arrays that they write into, under all
      names, also through functions that they call. Behind a branch, a variable has a value if it
      has one behind both arms; behind a loop, if it had one before.
    - Functions that it calls are not rewritten: decorate them as well.

    Args: fun: A function that is defined by ``def``, in a file. Other decorators come above.
    Returns: A function of the same arguments.
    Raises: ArgumentError: If the source is not at hand, or the function is a generator or a
            coroutine.

    Example:
        >>> @fg.jit
        ... @fg.autograph
        ... def steps_to_one(n):
        ...     steps = 0
        ...     while n != 1:
        ...         if n % 2 == 0:
        ...             n = n // 2
        ...         else:
        ...             n = 3 * n + 1
        ...         steps += 1
        ...     return steps
        >>> print(steps_to_one(27))
        111
    """
    if not isinstance(fun, FunctionType):
        raise ArgumentError(
            f"autograph needs a function that is defined by `def`, got {type(fun).__name__}. Write "
            "@autograph below other decorators."
        )
    made: Any = update_wrapper(rewritten(fun, branching), fun)
    return made
