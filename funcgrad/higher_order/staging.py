"""User functions of pytrees as programs, for primitives that hold programs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Self, SupportsIndex, TypeVar

import numpy as np

from funcgrad.base import pytree
from funcgrad.base.dialect import dialect
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.program import Program, Var
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.higher_order.cells import Cell, arranged
from funcgrad.higher_order.remembered import remembered
from funcgrad.observers.captures import noticing_draws
from funcgrad.observers.source import current_location
from funcgrad.primitives.elementwise import Convert
from funcgrad.primitives.objects import flatten_values, unwrapped
from funcgrad.transforms.programs import Replay
from funcgrad.transforms.stage import StageTrace, stage_with_cells

E = TypeVar("E", bound=Exception)


class Staged:
    """A function of pytrees, traced.

    Args:
        function: The function.
        in_tree: Structure of its arguments.
        avals: Types of their leaves.
        what: How messages call who traces it.
        carries: Whether that hands over, and puts back, the contents of cells of outside.

    Attributes:
        program: Its leading inputs are the traced values that the function closes over.
        captured: Those values.
        cells: The cells of outside that it uses, whose contents are the next inputs.
        changed: Those of them that it changes.
        out_tree: Structure of the result.
        paths: Path of every result.
    """

    given: Callable[[Sequence[Any]], Sequence[Any]]
    """From a function and its traced arguments to those that it gets; set by `funcgrad.numpy`."""

    def __init__(
        self,
        function: Callable[..., Any],
        in_tree: pytree.PyTreeDef,
        avals: Sequence[ShapedArray],
        what: str,
        carries: bool = False,
    ) -> None:
        self.out_tree: pytree.PyTreeDef = in_tree
        self.paths: list[str] = []

        def flat(*leaves: Any) -> list[Any]:
            out = function(*pytree.tree_unflatten(in_tree, self.given(leaves)))
            results, paths, self.out_tree = leaves_with_paths(out, "")
            self.paths = paths
            for leaf, path in zip(results, paths, strict=True):
                check_leaf(leaf, f"result{path}", what)
            return results

        with noticing_draws(what, function):
            self.program, self.captured, self._held = stage_with_cells(
                flat, avals, name_of(function), what, allows_cells=carries
            )
        self.cells: list[Cell] = [h.cell for h in self._held]
        self.changed: list[Cell] = [h.cell for h in self._held if h.final is not None]
        self.out_avals = self.program.out_avals

    def carrying(self, given: Sequence[Cell], left: Sequence[Cell]) -> Self:
        """The same with contents of cells as arguments in front, and as results in front.

        Args:
            given: Cells whose contents are arguments. Those of others that the function reads are
                values that it closes over.
            left: Those of them that it gives back.
        """
        if not given and not self.cells:
            return self
        read = [c for c in self.cells if not any(c is each for each in given)]
        found = copy.copy(self)
        n = len(self.captured)
        found.program = arranged(self.program, n, self._held, [*read, *given], left)
        found.captured = [*self.captured, *(c.content() for c in read)]
        return found


def stage_once(
    function: Callable[..., Any],
    in_tree: pytree.PyTreeDef,
    avals: Sequence[ShapedArray],
    what: str,
    carries: bool = False,
) -> Staged:
    """A function of pytrees, traced now or when it was given before; see `Staged`."""
    return remembered(
        [function],
        ("staged", in_tree, tuple(avals), what),
        lambda: Staged(function, in_tree, avals, what, carries),
        lambda staged: staged,
    )


def stage_again(
    staged: Staged,
    function: Callable[..., Any],
    in_tree: pytree.PyTreeDef,
    avals: Sequence[ShapedArray],
    what: str,
) -> Staged:
    """Trace again, for arguments of other dtypes, by converting them to those of the first trace.

    The function itself is not called a second time: it may count its calls.

    Args:
        staged: The function, traced; it uses no cells.
        function: The function.
        in_tree: Structure of its arguments.
        avals: Types of their leaves.
        what: How messages call who traces it.
    """

    def run(*args: Any) -> Any:
        program, values = staged.program, list(staged.captured)
        for x, aval in zip(flatten_values(args)[0], program.in_avals[len(values) :], strict=True):
            is_same = aval_of(x) == aval
            values.append(x if is_same else Convert(aval.dtype, weak=aval.weak_type).bind(x))
        trace = current_trace()
        assert isinstance(trace, StageTrace)
        return pytree.tree_unflatten(staged.out_tree, Replay(trace, program)(*values))

    run.__name__ = name_of(function)
    key = ("staged again", in_tree, tuple(avals), tuple(staged.program.in_avals), what)
    make = partial(Staged, run, in_tree, avals, what, True)
    return remembered([function], key, make, lambda made: made)


def each_once(cells: Iterable[Cell]) -> list[Cell]:
    """Cells without those that came before."""
    return list({id(cell): cell for cell in cells}.values())


def put_back(cells: Sequence[Cell], results: Sequence[Any], what: str) -> Sequence[Any]:
    """Give cells the leading results; the others are returned."""
    for cell, value in zip(cells, results, strict=False):
        cell.put(value, what)
    return results[len(cells) :]


def kept_weak(results: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Results of control flow; those of weak types are weak if the dialect has such.

    Args:
        results: Strong values.
        avals: The types that the traced functions gave them.
    """
    weak = dialect().weak
    if weak is None or not any(a.weak_type for a in avals):
        return list(results)
    narrowed = dialect().dtypes

    def kept(x: Any, aval: ShapedArray) -> Any:
        if not aval.weak_type or (aval.dtype.kind in "fc" and aval.dtype in narrowed):
            return x
        return Convert(aval.dtype, weak=True).bind(x) if isinstance(x, Tracer) else weak(x)

    return list(map(kept, results, avals))


def closing_over_cells(
    functions: Sequence[Callable[..., Any]], arguments: Any
) -> tuple[Sequence[Callable[..., Any]], Any]:
    """Functions that close over the cells among their arguments, and the other arguments."""
    leaves, tree = pytree.tree_flatten(arguments)
    is_cell = [isinstance(x, Cell) for x in leaves]
    if not any(is_cell):
        return functions, arguments

    def closing(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            rest = iter(values)
            inner = [x if here else next(rest) for x, here in zip(leaves, is_cell, strict=True)]
            return function(*pytree.tree_unflatten(tree, inner))

        call.__name__ = name_of(function)
        return call

    others = tuple(x for x, here in zip(leaves, is_cell, strict=True) if not here)
    return [closing(f) for f in functions], others


def check_leaf(leaf: Any, path: str, what: str) -> ShapedArray:
    """The type of a leaf, or an error that names it."""
    if isinstance(leaf, Cell):
        leaf.refuse_as_array(f"{what}: `{path}`")
    try:
        return aval_of(leaf)
    except (DtypeError, TypeError, ValueError) as error:
        if isinstance(leaf, np.ndarray | np.generic):  # an array of a dtype that is not supported
            raise located(DtypeError, f"{what}: `{path}`: {error}") from None
        kind = type(leaf).__name__
        cure = (
            "Return numbers, arrays or pytrees of them."
            if path.startswith("result")
            else "Pass numbers, arrays or pytrees of them, and close over anything else."
        )
        raise located(
            DtypeError,
            f"{what}: `{path}` is a {kind}, which is neither an array nor a number.",
            cure,
        ) from None


def check_function(function: Any, name: str, what: str) -> None:
    """An error if an argument that should be a function is none."""
    if not callable(function):
        raise located(
            ArgumentError,
            f"{what}: `{name}` must be a function, got {described(function)}.",
            "Wrap values in a function: lambda *args: value.",
        )


def checked_integer(value: Any, name: str, what: str, least: int | None = None) -> int:
    """An argument that must be a known integer."""
    if not isinstance(value, SupportsIndex):
        raise located(
            ArgumentError, f"{what}: `{name}` must be an integer, got {described(value)}."
        )
    found = value.__index__()
    if least is not None and found < least:
        raise located(ArgumentError, f"{what}: `{name}` must be at least {least}, got {found}.")
    return found


def described(value: Any) -> str:
    """Description of a value, for messages."""
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    value = unwrapped(value)
    if isinstance(value, Tracer | np.ndarray | np.generic):
        return str(aval_of(value).strong())
    if isinstance(value, float | complex):
        return repr(value)
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def located(error: Callable[[str], E], problem: str, *lines: str) -> E:
    """An error that says what is wrong, the user's line, and what else there is, line by line."""
    location = current_location()
    where = [] if location is None else [f"  at            {location}"]
    return error("\n".join([problem, *where, *lines]))


def place() -> str:
    """The user's line, for messages."""
    location = current_location()
    return f"\n  at            {location}\n" if location is not None else ""


def type_texts(treedef: pytree.PyTreeDef, avals: Sequence[ShapedArray]) -> list[str]:
    """Types of leaves as messages show them: those of holders by their own names."""
    return [
        str(a.strong()) if name is None else type_text(name, a)
        for name, a in zip(treedef.held_names(), avals, strict=True)
    ]


def type_text(name: str, aval: ShapedArray) -> str:
    """The type of an array of a dtype that NumPy does not have."""
    return f"{name}[{','.join(map(str, aval.shape))}]"


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
        inputs = [Var(aval_of(x)) for x in values.values()]
        for var, x in zip(each.program.inputs, each.captured, strict=False):
            inputs[position[id(x)]] = var
        own = each.program.inputs[len(each.captured) :]
        p = each.program
        programs.append(Program([*inputs, *own], p.equations, p.outputs, p.name, p.constants))
    return programs, list(values.values())


def name_of(function: Any) -> str:
    """Name of a function, for messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def arguments_tree(*trees: pytree.PyTreeDef) -> pytree.PyTreeDef:
    """The structure of a tuple of arguments."""
    return pytree.tuple_of(trees)


def leaves_with_paths(tree: Any, root: str) -> tuple[list[Any], list[str], pytree.PyTreeDef]:
    """Leaves, their paths from ``root``, and the structure."""
    rows, treedef = pytree.tree_flatten_with_path(tree)
    narrow = dialect().narrow
    given = [x if narrow is None else narrow(x) for _, x in rows]
    leaves, treedef = pytree.opened(given, treedef)
    paths = [root + pytree.keystr(path) for path, x in rows for _ in pytree.all_held_in(x)]
    return list(map(unwrapped, leaves)), paths, treedef
