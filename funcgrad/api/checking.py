"""checkify: checks inside of traced and compiled functions, whose outcome is a value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from funcgrad.api.arguments import Function, Owner, aval_of_argument, check_callable, name_of
from funcgrad.api.staging import StagedFunction, argument_paths
from funcgrad.base.error_state import without_warnings
from funcgrad.base.pytree import register_pytree_node, tree_flatten, tree_unflatten
from funcgrad.base.transformed import Transformed
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Value
from funcgrad.core.program import evaluate
from funcgrad.core.trace import EVAL, Tracer, current_trace
from funcgrad.errors import ArgumentError, DtypeError, FailedCheckError
from funcgrad.higher_order.checked_programs import check_program
from funcgrad.higher_order.checks import FINE, Check, Failure, nothing, text_of
from funcgrad.observers.checks import DIVISION, INDEX, NAN, USER, Kinds, Site
from funcgrad.observers.source import current_location
from funcgrad.primitives.objects import flatten_held

user_checks: Kinds = frozenset({USER})
"""Kinds of errors that `check` and `debug_check` look for."""
nan_checks: Kinds = frozenset({NAN})
"""Operations that give a nan."""
div_checks: Kinds = frozenset({DIVISION})
"""Divisions by zero."""
index_checks: Kinds = frozenset({INDEX})
"""Indices out of bounds, which then do not raise; also starts of slices, which are clamped."""
float_checks: Kinds = nan_checks | div_checks
"""Checks of numbers: NaN, and division by zero."""
automatic_checks: Kinds = float_checks | index_checks
"""All that need no `check`."""
all_checks: Kinds = automatic_checks | user_checks
"""All."""


class Error:
    """The result of the checks of `checkify`: the first error, if any; a pytree.

    With an axis in front for every `vmap`, or for the steps of a loop, it holds one for each.

    Example:
        >>> def f(x):
        ...     fg.checkify.check(x > 0, "x must be positive, it is {}", x)
        ...     return x
        >>> error, _ = fg.jit(fg.checkify.checkify(f))(-1.0)
        >>> print(error.get().splitlines()[0])
        x must be positive, it is -1.0
    """

    __slots__ = ("_code", "_sites", "_values")

    def __init__(self, sites: tuple[Site, ...], code: Value, values: Sequence[Value]) -> None:
        self._sites = sites
        self._code = code
        self._values = values

    def get(self) -> str | None:
        """The message, with the line of the function; ``None`` if nothing is wrong.

        Of several errors a line for each, with the place in the array of errors.
        """
        code = self._known()
        if not code.ndim:
            return text_of(self._sites, code, self._values)
        lines = []
        for place in np.argwhere(code):
            index = tuple(place)
            text = text_of(self._sites, code[index], [np.asarray(v)[index] for v in self._values])
            lines.append(f"[{', '.join(map(str, place))}] {text}")
        return "\n".join(lines) or None

    def get_exception(self) -> FailedCheckError | None:
        """Message that `throw` raises; ``None`` if nothing is wrong."""
        text = self.get()
        return None if text is None else FailedCheckError(text)

    def throw(self) -> None:
        """Raise what was found wrong, if anything.

        In a function that is traced this is a check, as by `check_error`.

        Raises: FailedCheckError: With the message.
        """
        if not self._sites:
            return
        if isinstance(self._code, Tracer) or current_trace() is not EVAL:
            self._check()
            return
        error = self.get_exception()
        if error is not None:
            raise error

    def _check(self) -> None:
        """Bind the check of the first error that there is, as one operation."""
        sites = tuple(replace(site, is_debugging=False) for site in self._sites)
        failure = Failure.of_array(sites, [self._code, *self._values])
        Check(sites).bind(*failure.flat)

    def _known(self) -> Any:
        if isinstance(self._code, Tracer):
            return bool(self._code)
        return np.asarray(self._code)

    def __repr__(self) -> str:
        if isinstance(self._code, Tracer):
            return f"Error({self._code!r})"
        return f"Error({self.get()!r})"


register_pytree_node(
    Error,
    lambda error: ([error._code, *error._values], error._sites),
    lambda sites, leaves: Error(sites, leaves[0], tuple(leaves[1:])),
)

init_error = Error((), FINE, ())
"""The error of a function in which nothing is looked for."""


def checkify(f: Function, errors: Kinds = user_checks) -> Function:
    """A function that also returns whether a check in it has failed.

    Checks inside of compiled functions, loops and branches, and of functions that are mapped or
    differentiated, become values, which the result carries out; of several failures the first one
    counts. Nothing ends early: what follows a failure is computed like everything else. The first
    call traces ``f``, as `jit` does.

    Args:
        f: Function of arrays or pytrees. Bools of Python's, strings and functions are passed to it
            as they are.
        errors: What is looked for: any of `user_checks`, `nan_checks`, `div_checks` and
            `index_checks`, united by ``|``; checks of other kinds are left out.
    Returns: A function of the same arguments. It returns a pair: an `Error`, and what ``f``
        returns.

    Example:
        >>> f = fg.checkify.checkify(lambda x: np.log(x) / x, errors=fg.checkify.float_checks)
        >>> error, y = fg.jit(f)(-1.0)
        >>> print(error.get().splitlines()[0])
        log gave a nan.
        >>> error, y = fg.jit(f)(1.0)
        >>> error.throw()
        >>> float(y)
        0.0
    """
    check_callable(f, "checkify")
    kinds = _checked_kinds(errors)
    what = f"checkify({name_of(f)})"

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        if any(map(_is_opaque, leaves)):
            return run_on_arrays(leaves, tree)
        paths = argument_paths(args, kwargs, ())
        staged = StagedFunction(f, args, kwargs, what, paths, carries=True)
        inner = check_program(staged.program, kinds)
        given = [*staged.captured_values(), *staged.leaves]
        with without_warnings() as block, block:
            results = evaluate(inner.program, given)
        outs = staged.put_back(results[: inner.n_outputs], what)
        own = Owner(given)
        found = own_error(inner.failure(results) if inner.sites else nothing(()))
        return found, tree_unflatten(staged.out_tree, [own(_strong(x)) for x in outs])

    def run_on_arrays(leaves: list[Any], tree: Any) -> Any:
        """Pass bools of Python's and what is no array to the function as they are."""

        def of_arrays(*arrays: Any) -> Any:
            rest = iter(arrays)
            args, kwargs = tree_unflatten(
                tree, [x if _is_opaque(x) else next(rest) for x in leaves]
            )
            return f(*args, **kwargs)

        of_arrays.__name__ = name_of(f)
        return checkify(of_arrays, errors)(*(x for x in leaves if not _is_opaque(x)))

    return Transformed(run, checkify, f, errors=errors)


def _is_opaque(leaf: Any) -> bool:
    return isinstance(leaf, bool | str | bytes) or callable(leaf)


def own_error(failure: Failure) -> Error:
    """The value of a failure."""
    code, *values = failure.flat
    return Error(failure.sites, code, tuple(values))


def _strong(value: Any) -> Any:
    """A result of Python's kind as one of NumPy's."""
    if isinstance(value, Tracer | np.ndarray | np.generic):
        return value
    return aval_of(value).dtype.type(value)


def _checked_kinds(errors: Any) -> Kinds:
    if isinstance(errors, Collection) and all_checks.issuperset(errors):
        return frozenset(errors)
    raise ArgumentError(
        "checkify: errors must be user_checks, nan_checks, div_checks, index_checks, or some of "
        f"them united by |, got {errors!r}."
    )


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Demand that something holds.

    Inside of a function that is given to `checkify` a failure becomes its first result. Otherwise
    it raises at once where values are known, and where programs are compiled, by `jit` or for a
    loop, the check itself is refused.

    Args: debug: Whether to do nothing outside of `checkify`, as `debug_check`.
    Raises: FailedCheckError: If it does not hold, where that is known.

    Example:
        >>> fg.checkify.check(1 < 2, "{} is too large", 1)
    """
    _check(pred, msg, fmt_args, fmt_kwargs, debug)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Check a condition inside of `checkify` only; elsewhere nothing happens.

    Example:
        >>> fg.checkify.debug_check(1 > 2, "{} is too large", 1)
    """
    _check(pred, msg, fmt_args, fmt_kwargs, True)


def _check(
    pred: Any, msg: str, fmt_args: tuple[Any, ...], fmt_kwargs: dict[str, Any], is_debugging: bool
) -> None:
    if not isinstance(msg, str):
        raise ArgumentError(f"check: the message must be a str, got {type(msg).__name__}.")
    aval = aval_of_argument(pred, "pred", "check")
    if aval.shape or aval.dtype.kind != "b":
        raise ArgumentError(
            f"check: pred must be one bool, got {aval}. Reduce it: np.all(pred); compare a number."
        )
    leaves, structure = flatten_held((fmt_args, fmt_kwargs))
    slot = tuple(_aval_of_gap(x, msg) for x in leaves)
    location = current_location()
    line = None if location is None else str(location)
    site = Site(USER, msg, structure, slot, line, is_debugging)
    if current_trace() is not EVAL:
        _try_message(site)
    failure = Failure.of_check(site, pred, leaves)
    Check((site,)).bind(*failure.flat)


def _aval_of_gap(value: Any, msg: str) -> Any:
    try:
        return aval_of(value).strong()
    except DtypeError:
        raise ArgumentError(
            f"check: {type(value).__name__} cannot fill a gap of {msg!r}, only arrays and numbers "
            "can, whose values are those of the run. Write it into the message: f'...'."
        ) from None


def _try_message(site: Site) -> None:
    """Raise now, and not when it fails, if the gaps and their values do not fit."""
    try:
        site.text([np.ones(a.shape, a.dtype) for a in site.slot])
    except (LookupError, ValueError, TypeError) as error:
        _refuse_message(site, error)


def _refuse_message(site: Site, error: Exception) -> NoReturn:
    raise ArgumentError(
        f"check: the gaps of {site.message!r} and the values given for them do not fit: {error}."
    ) from None


def check_error(error: Error) -> None:
    """Demand that nothing is wrong: an `Error` of a function made by `checkify` is a check again.

    Args: error: The error.
    Raises: FailedCheckError: With its message, where values are known; see `check`.

    Example:
        >>> error, _ = fg.checkify.checkify(lambda x: x + 1)(1.0)
        >>> fg.checkify.check_error(error)
    """
    if not isinstance(error, Error):
        raise ArgumentError(
            f"check_error: expected an Error, the first result of a function made by checkify, got "
            f"{type(error).__name__}."
        )
    error.throw()
