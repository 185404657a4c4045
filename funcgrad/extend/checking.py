"""Checks of a primitive of the user's by the laws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Primitive, is_own_module
from funcgrad.errors import ArgumentError
from funcgrad.extend import laws

RULES = ("impl", "abstract_eval", "jvp", "transpose", "batch", "lower")


def has_rule(primitive: Primitive | type[Primitive], rule: str) -> bool:
    """Whether a primitive gives or derives a rule, by its name of `RULES`."""
    kind = primitive if isinstance(primitive, type) else type(primitive)
    return getattr(kind, rule) is not getattr(Primitive, rule)


@dataclass(frozen=True)
class _Claim:
    """A primitive, and what its author says of it: a `laws.Subject`."""

    primitive: Primitive
    linear: tuple[laws.Group, ...]
    differentiable: laws.Group | None
    observe: Callable[..., list[Any]] | None
    rtol: float

    @property
    def name(self) -> str:
        return self.primitive.name


def check(
    primitive: Primitive,
    *examples: Sequence[Any],
    linear: Sequence[Sequence[int]] = (),
    differentiable: Sequence[int] | None = None,
    observe: Callable[..., list[Any]] | None = None,
    order: int = 2,
    rtol: float = 1e-6,
) -> tuple[str, ...]:
    """Compare the rules of a primitive with each other, and with central differences.

    The laws are those that the primitives of funcgrad obey: types, tangents and cotangents to
    second order, transposes, batches over every choice of arguments, and compiled results,
    derivatives and batches. A law whose rule does not exist is not checked.

    Args:
        primitive: With its static parameters.
        *examples: Tuples of arguments, arrays of any shape. Where derivatives do not exist, an
            example must not lie. Examples of equal types are also mapped together.
        linear: Groups of arguments in which the operation is linear jointly, by position, such as
            ``[(0,)]`` for the first. The transpose rule is checked for each.
        differentiable: The positions of the arguments that have derivatives; by default all
            floating and complex ones.
        observe: From the results to a list of what is compared in place of them, if they depend on
            choices, as the sign of an eigenvector does.
        order: Highest order of derivatives to check: 0, 1 or 2.
        rtol: Relative tolerance of central differences in double precision.
    Returns: The names of the laws that were checked.

    Raises:
        LawError: Naming the primitive, the law, and the argument or result.
        ArgumentError: If there is no example, or nothing is known of a transpose rule.

    Example:
        >>> square = fg.extend.Unary("square", np.square, lambda x, y: 2 * x, "{0} * {0}")
        >>> fg.extend.check(square, (np.array([0.5, -2.0]),))[:4]
        ('shape', 'inputs', 'batch', 'forward')
    """
    _check_arguments(primitive, examples, linear)
    groups = tuple(map(tuple, linear))
    some = None if differentiable is None else tuple(differentiable)
    claim = _Claim(primitive, groups, some, observe, rtol)
    done: dict[str, None] = {}
    for example in examples:
        args = [np.asarray(x)[()] for x in example]
        for name, run in _laws(claim, args, _lanes(args, examples), order):
            run()
            done[name] = None
    return tuple(done)


def _laws(
    claim: _Claim, args: list[Any], lanes: list[list[Any]], order: int
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The laws that hold for a primitive with these rules, by name."""
    single = laws.is_single(args)
    is_batched, is_compiled = (has_rule(claim.primitive, rule) for rule in ("batch", "lower"))
    has_derivative = has_rule(claim.primitive, "jvp") and laws.active_choices(claim, args)
    order = order if has_derivative else 0

    def law(name: str, function: Callable[..., Any], *more: Any) -> tuple[str, Callable[[], Any]]:
        return name, lambda: function(claim, *more)

    yield law("shape", laws.shape, args)
    yield law("inputs", laws.inputs_are_unchanged, args)
    if is_batched:
        yield law("batch", laws.batch, lanes)
    for group in claim.linear:
        yield law("transpose", laws.transpose, args, group)
    if order >= 1:
        yield law("forward", laws.forward, args, single)
        yield law("reverse", laws.reverse, args, single)
    if order >= 2:
        yield law("forward, twice", laws.forward_twice, args, single)
        yield law("forward over reverse", laws.forward_over_reverse, args, single)
    if is_compiled:
        yield law("compiled", laws.compiled_results, args, single)
    if is_compiled and order >= 1:
        yield law("compiled derivatives", laws.compiled_derivatives, args, single)
        yield law("derivatives of compiled", laws.derivatives_of_compiled, args, single)
    if is_compiled and is_batched:
        yield law("compiled batches", laws.compiled_batches, lanes, single)


def _check_arguments(primitive: Any, examples: Sequence[Any], linear: Sequence[Any]) -> None:
    if not isinstance(primitive, Primitive):
        raise ArgumentError(
            f"extend.check needs a primitive with its parameters, got {primitive!r}: call its "
            "class."
        )
    if not examples or not all(isinstance(e, tuple | list) for e in examples):
        raise ArgumentError(
            f"extend.check({primitive.name}) needs examples, each a tuple of arguments: "
            "check(primitive, (x, y))."
        )
    if not is_own_module(type(primitive).transpose.__module__) and not linear:
        raise ArgumentError(
            f"{primitive.name} has a rule for transposition: name the arguments in which it is "
            "linear, such as linear=[(0,)], or linear=[(0,), (1,)] if it is so in each of two."
        )
    try:
        hash(primitive)
    except TypeError as error:
        raise laws.LawError(
            f"{primitive.name} has a static parameter that cannot be hashed ({error}), so that no "
            "program could be kept for it: use tuples instead of lists, and make arrays arguments."
        ) from None


def _lanes(args: list[Any], examples: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Arguments of the types of one example: other ones, or the same on other scales."""
    avals = [aval_of(x) for x in args]
    alike = [
        [np.asarray(x)[()] for x in example]
        for example in examples
        if [aval_of(np.asarray(x)[()]) for x in example] == avals
    ]
    if len(alike) > 1:
        return alike
    return [[_scaled(x, scale) for x in args] for scale in (1.0, 0.875, 0.75)]


def _scaled(x: Any, scale: float) -> Any:
    return np.asarray(x * scale, x.dtype)[()] if laws.is_inexact(x) else x
