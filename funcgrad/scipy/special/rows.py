"""The public function of a ufunc of `scipy.special`: its arguments by position or by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from funcgrad.numpy.elementwise import of_scipy
from funcgrad.primitives.special_tables import primitive_of

Function = Callable[..., Any]


def ufunc(name: str, summary: str, arguments: str = "", of: str = "") -> Function:
    """The public function of a ufunc of `scipy.special`.

    Args:
        name: The name of the function.
        summary: What it computes.
        arguments: Names of the arguments, separated by blanks; by default those of the primitive,
            or ``x``.
        of: The name of the ufunc where it is another one.
    """
    primitive: Any = primitive_of(of or name)
    names = tuple(arguments.split()) or getattr(primitive, "arguments", ("x",))
    results: tuple[str, ...] = getattr(primitive, "results", ())
    compute = of_scipy(primitive)

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != len(names):
            args = _ordered(name, names, args, kwargs)
        out = compute(*args)
        return tuple(out) if results else out

    function.__name__ = function.__qualname__ = name
    function.__module__ = __package__
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    vars(function)["__signature__"] = inspect.Signature(
        [inspect.Parameter(argument, kind) for argument in names]
    )
    returned = f" Returns ``({', '.join(results)})``." if results else ""
    function.__doc__ = (
        f"{summary}\n\nElementwise, as `scipy.special.{name}`; arguments broadcast.{returned}"
    )
    return function


def _ordered(
    name: str, names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """All arguments in order."""
    rest = names[len(args) :]
    unknown = [k for k in kwargs if k not in rest]
    if len(args) > len(names) or unknown or len(kwargs) != len(rest):
        given = f"{len(args)} arguments" + "".join(f", {k}=" for k in kwargs)
        raise TypeError(f"{name}({', '.join(names)}) got {given}.")
    return (*args, *(kwargs[k] for k in rest))
