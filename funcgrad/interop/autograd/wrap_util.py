"""``autograd.wrap_util``: operators on functions of one argument, for functions of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.api.arguments import check_callable, name_of
from funcgrad.errors import ArgumentError

Function = Callable[..., Any]
__all__ = ["get_name", "unary_to_nary", "wraps"]

get_name = name_of


def wraps(fun: Function, namestr: str = "{fun}", docstr: str = "{doc}", **kwargs: Any) -> Any:
    """A decorator that gives a function the name and the documentation of another.

    Args:
        fun: The other.
        namestr: Pattern of the name, with ``{fun}`` for the other's.
        docstr: Pattern of the documentation, with ``{fun}`` and ``{doc}``.
        **kwargs: Further words in the patterns.
    """

    def rename(function: Function) -> Function:
        name = name_of(fun)
        function.__name__ = namestr.format(fun=name, **kwargs)
        function.__doc__ = docstr.format(fun=name, doc=fun.__doc__ or "", **kwargs)
        return function

    return rename


def unary_to_nary(unary_operator: Function) -> Function:
    """Make ``operator(fun, argnum)`` of an operator that takes a function and its one argument.

    Args: unary_operator: ``operator(fun, x, ...)``.
    Returns: ``operator(fun, argnum=0, ...)``, which returns a function of the arguments of ``fun``.
        With a tuple or list of positions, ``x`` is the tuple of those arguments.

    Example:
        >>> from funcgrad.interop.autograd.wrap_util import unary_to_nary
        >>> @unary_to_nary
        ... def twice(fun, x):
        ...     return fun(2 * x)
        >>> twice(lambda a, b: a - b, 1)(10, 1)
        8
    """
    what = name_of(unary_operator)

    def nary_operator(fun: Function, argnum: Any = 0, *op_args: Any, **op_kwargs: Any) -> Function:
        check_callable(fun, what)
        if type(argnum) not in (int, tuple, list):
            raise ArgumentError(
                f"{what}({name_of(fun)}): argnum must be an int, or a tuple or list of them, got "
                f"{type(argnum).__name__}."
            )

        def of_many(*args: Any, **kwargs: Any) -> Any:
            if argnum == 0 and len(args) == 1 and not kwargs:
                return unary_operator(fun, *args, *op_args, **op_kwargs)
            numbers = _positions(argnum, len(args), what, fun)
            chosen = tuple(args[i] for i in numbers)

            def of_one(x: Any) -> Any:
                given = list(args)
                new = (x,) if isinstance(argnum, int) else x
                for i, value in zip(numbers, new, strict=True):
                    given[i] = value
                return fun(*given, **kwargs)

            of_one.__name__ = name_of(fun)
            x = chosen[0] if isinstance(argnum, int) else chosen
            return unary_operator(of_one, x, *op_args, **op_kwargs)

        of_many.__name__ = f"{what}_of_{name_of(fun)}_wrt_argnum_{argnum}"
        of_many.__doc__ = f"{what} of {name_of(fun)} with respect to argument {argnum}."
        return of_many

    nary_operator.__name__ = nary_operator.__qualname__ = what
    nary_operator.__module__ = unary_operator.__module__
    nary_operator.__doc__ = unary_operator.__doc__
    return nary_operator


def _positions(argnum: Any, n: int, what: str, fun: Function) -> list[int]:
    numbers = [argnum] if isinstance(argnum, int) else list(argnum)
    for i in numbers:
        if not -n <= i < n:
            raise ArgumentError(
                f"{what}({name_of(fun)}, argnum={argnum}) was called with {n} positional "
                f"argument{'s' * (n != 1)}: pass the argument to differentiate by position."
            )
    return [i % n for i in numbers]
