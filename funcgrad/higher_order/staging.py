"""User functions of pytrees as programs, for primitives that hold programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.program import Program, Var
from funcgrad.core.source import current_location
from funcgrad.core.surroundings import noticing_draws
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.higher_order.remembered import remembered
from funcgrad.primitives.objects import settled
from funcgrad.pytree import (
    PyTreeDef,
    keystr,
    tree_flatten_with_path,
    tree_structure,
    tree_unflatten,
)
from funcgrad.transforms.stage import stage


class Staged:
    """A function of pytrees, traced.

    Attributes:
        program: Its leading inputs are the traced values that the function closes over.
        captured: Those values.
        out_tree: Structure of the result.
        paths: Path of every result.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        in_tree: PyTreeDef,
        avals: Sequence[ShapedArray],
        what: str,
    ) -> None:
        self.out_tree: PyTreeDef = in_tree
        self.paths: list[str] = []

        def flat(*leaves: Any) -> list[Any]:
            out = function(*tree_unflatten(in_tree, leaves))
            results, paths, self.out_tree = leaves_with_paths(out, "")
            self.paths = paths
            for leaf, path in zip(results, paths, strict=True):
                check_leaf(leaf, f"result{path}", what)
            return results

        with noticing_draws(what, function):
            self.program, self.captured = stage(flat, avals, name_of(function), what)

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.program.out_avals


def stage_once(
    function: Callable[..., Any], in_tree: PyTreeDef, avals: Sequence[ShapedArray], what: str
) -> Staged:
    """A function of pytrees, traced now or when it was given before."""
    return remembered(
        [function],
        ("staged", in_tree, tuple(avals), what),
        lambda: Staged(function, in_tree, avals, what),
        lambda staged: staged,
    )


def check_leaf(leaf: Any, path: str, what: str) -> ShapedArray:
    """The type of a leaf, or an error that names it."""
    try:
        return aval_of(leaf)
    except (DtypeError, TypeError, ValueError) as error:
        if isinstance(leaf, np.ndarray | np.generic):  # an array of a dtype that is not supported
            raise DtypeError(located(f"{what}: `{path}`: {error}")) from None
        kind = type(leaf).__name__
        cure = (
            "Return numbers, arrays or pytrees of them."
            if path.startswith("result")
            else "Pass numbers, arrays or pytrees of them, and close over anything else."
        )
        raise DtypeError(
            located(f"{what}: `{path}` is a {kind}, which is neither an array nor a number.", cure)
        ) from None


def check_function(function: Any, name: str, what: str) -> None:
    """An error if an argument that should be a function is none."""
    if not callable(function):
        raise ArgumentError(
            located(
                f"{what}: `{name}` must be a function, got {described(function)}.",
                "Wrap values in a function: lambda *args: value.",
            )
        )


def checked_integer(value: Any, name: str, what: str, least: int | None = None) -> int:
    """An argument that must be a known integer."""
    if not isinstance(value, SupportsIndex):
        raise ArgumentError(
            located(f"{what}: `{name}` must be an integer, got {described(value)}.")
        )
    found = value.__index__()
    if least is not None and found < least:
        raise ArgumentError(located(f"{what}: `{name}` must be at least {least}, got {found}."))
    return found


def described(value: Any) -> str:
    """What a value is, for messages."""
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, Tracer | np.ndarray | np.generic):
        return str(aval_of(value).strong())
    if isinstance(value, float | complex):
        return repr(value)
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def located(problem: str, *lines: str) -> str:
    """A message: what is wrong, the user's line, and what else there is to say, line by line."""
    location = current_location()
    where = [] if location is None else [f"  at            {location}"]
    return "\n".join([problem, *where, *lines])


def place() -> str:
    """The user's line, for messages."""
    location = current_location()
    return f"\n  at            {location}\n" if location is not None else ""


def join_captured(staged: Sequence[Staged]) -> tuple[list[Program], list[Any]]:
    """Programs that take the captured values of all of them in front, and these values."""
    values: dict[int, Any] = {}
    for each in staged:
        values.update((id(x), x) for x in each.captured)
    position = {key: i for i, key in enumerate(values)}
    if not values:
        return [each.program for each in staged], []
    programs = []
    for each in staged:
        inputs = [Var(aval_of(x).strong()) for x in values.values()]
        for var, x in zip(each.program.inputs, each.captured, strict=False):
            inputs[position[id(x)]] = var
        own = each.program.inputs[len(each.captured) :]
        p = each.program
        programs.append(Program([*inputs, *own], p.equations, p.outputs, p.name, p.constants))
    return programs, list(values.values())


def name_of(function: Any) -> str:
    """Name of a function, for messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def arguments_tree(*trees: PyTreeDef) -> PyTreeDef:
    """The structure of a tuple of arguments."""
    return tree_structure(tuple(tree_unflatten(t, [0] * t.num_leaves) for t in trees))


def leaves_with_paths(tree: Any, root: str) -> tuple[list[Any], list[str], PyTreeDef]:
    """Leaves, their paths from ``root``, and the structure."""
    rows, treedef = tree_flatten_with_path(tree)
    return [settled(x) for _, x in rows], [root + keystr(path) for path, _ in rows], treedef
