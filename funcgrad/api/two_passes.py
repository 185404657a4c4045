"""fwd_and_bwd: the passes of a derivative as two compiled functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.api.arguments import Function, check_callable, name_of, normalize_argnums
from funcgrad.api.compilation import jit
from funcgrad.api.differentiation import vjp


def fwd_and_bwd(
    fun: Function, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Function, Function]:
    """Both halves of `vjp` as functions, each compiled once.

    Args: jitted: Whether they are compiled.
    Returns: ``fwd``, which takes the arguments and returns the value, what the other one needs, and
        with ``has_aux`` the extra results; and ``bwd``, which takes that and a cotangent, and
        returns the cotangent of the argument, or a tuple of those of several.

    Example:
        >>> fwd, bwd = fg.fwd_and_bwd(lambda w, x: np.sin(w * x), argnums=0)
        >>> y, kept = fwd(2.0, np.zeros(2))
        >>> print(y, bwd(kept, np.ones(2)))
        [0. 0.] 0.0
    """
    check_callable(fun, "fwd_and_bwd")
    what = f"fwd_and_bwd({name_of(fun)})"

    def fwd(*args: Any) -> tuple[Any, ...]:
        chosen = normalize_argnums(argnums, len(args), what)

        def of_chosen(*values: Any) -> Any:
            full = list(args)
            for i, value in zip(chosen, values, strict=True):
                full[i] = value
            return fun(*full)

        return vjp(of_chosen, *(args[i] for i in chosen), has_aux=has_aux)

    def bwd(kept: Function, cotangent: Any) -> Any:
        found = kept(cotangent)
        return found[0] if isinstance(argnums, int | np.integer) else found

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
