"""Typed programs in A-normal form.

``Program : (types of inputs) -> (types of outputs)``. Every intermediate result has a name, every
name has a type and is assigned once. Programs are closed: concrete arrays that the traced function
closed over are its constants (they are passed to kernels like inputs, never compiled into them);
traced ones became leading inputs. So the transformations of a program can be memoised on it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from funcgrad.base.tables import keep, used
from funcgrad.base.transformed import BelongsToProcess
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.axes import mapped_axis
from funcgrad.core.facets import Facet
from funcgrad.core.observers import Location
from funcgrad.core.primitive import Primitive

T = TypeVar("T")

axis_names: Facet[tuple[Hashable, ...]] = Facet("axis_names", ())
"""Names of the mapped axes along which a collective communicates."""


class Var:
    """A name with a type; compared by identity."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var({self.aval})"


class Literal:
    """A scalar constant inside a program.

    Args: value: A Python or NumPy scalar.
    """

    __slots__ = ("aval", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.aval = aval_of(value)

    def __repr__(self) -> str:
        return f"Literal({self.value!r})"


Atom = Var | Literal


class Equation:
    """``outputs = primitive inputs``, and the user's line that made it."""

    # One or two are kept without a tuple: fewer objects for the garbage collector to traverse.
    __slots__ = ("_inputs", "_outputs", "_second", "primitive", "source")

    def __init__(
        self,
        primitive: Primitive,
        inputs: Sequence[Atom],
        outputs: Sequence[Var],
        source: Location | None = None,
    ) -> None:
        self.primitive = primitive
        self._second: Atom | None = None
        if len(inputs) == 1:
            self._inputs: Any = inputs[0]
        elif len(inputs) == 2:
            self._inputs, self._second = inputs
        else:
            self._inputs = tuple(inputs)
        self._outputs: Any = outputs[0] if len(outputs) == 1 else tuple(outputs)
        self.source = source

    @property
    def inputs(self) -> tuple[Atom, ...]:
        if self._second is not None:
            return self._inputs, self._second
        return self._inputs if type(self._inputs) is tuple else (self._inputs,)

    @property
    def outputs(self) -> tuple[Var, ...]:
        return self._outputs if type(self._outputs) is tuple else (self._outputs,)

    def __repr__(self) -> str:
        return f"Equation({self.primitive.name}, {self.inputs} -> {self.outputs})"


def all_inputs(equations: Sequence[Equation]) -> tuple[list[Atom], list[int]]:
    """The inputs of equations, one behind the other, and where those of each end."""
    found: list[Atom] = []
    ends: list[int] = []
    for first, second in zip(map(_FIRST, equations), map(_SECOND, equations), strict=True):
        if second is not None:
            found += first, second
        elif type(first) is tuple:
            found += first
        else:
            found.append(first)
        ends.append(len(found))
    return found, ends


_FIRST, _SECOND = attrgetter("_inputs"), attrgetter("_second")


MAX_FACTS = 512
"""Most entries of a program's memo: `vmap` over batches of many lengths adds one for each."""

_MISSING = object()


class Program(BelongsToProcess):
    """A closed first-order program.

    Args:
        inputs: Names of the inputs.
        equations: In order of execution.
        outputs: Names or literals.
        name: What messages and kernels call it.
        constants: Names that stand for concrete arrays, with the arrays.
    """

    called = "a traced program"
    instead = "Pickle the function, and trace it again."

    __slots__ = ("__weakref__", "_memo", "constants", "equations", "inputs", "name", "outputs")

    def __init__(
        self,
        inputs: Sequence[Var],
        equations: Sequence[Equation],
        outputs: Sequence[Atom],
        name: str = "main",
        constants: Sequence[tuple[Var, Any]] = (),
    ) -> None:
        self.constants = tuple(constants)
        self.inputs = tuple(inputs)
        self.equations = tuple(equations)
        self.outputs = tuple(outputs)
        self.name = name
        self._memo: dict[Hashable, Any] = {}

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.inputs]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [a.aval for a in self.outputs]

    @property
    def is_effectful(self) -> bool:
        return self.memo(
            "is effectful", lambda: any(e.primitive.is_effectful for e in self.equations)
        )

    @property
    def axis_names(self) -> frozenset[Hashable]:
        """Names of the mapped axes that collectives in it, at any depth, work along."""
        return self.memo(
            "axis names",
            lambda: frozenset().union(*(axis_names_of(e.primitive) for e in self.equations)),
        )

    def described(self) -> str:
        """The name, and the user's line of the first equation that has one."""
        source = next(filter(None, (e.source for e in self.equations)), None)
        return self.name if source is None else f"{self.name}\n  at            {source}"

    def memo(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a value derived from this program, computed once and kept with the program.

        Within a batch rule it may depend on the mapped axis, which is then a part of the key.
        """
        axis = mapped_axis()
        if axis is not None:
            key = (key, axis)
        found: Any = self._memo.get(key, _MISSING)
        if found is _MISSING:
            found = make()
            keep(self._memo, key, found, MAX_FACTS)
        else:
            used(self._memo, key, found, MAX_FACTS)
        return found


def axis_names_of(value: Any) -> frozenset[Hashable]:
    """Names of the mapped axes that a primitive, or the programs that it holds, work along."""
    if isinstance(value, Program):
        return value.axis_names
    if isinstance(value, tuple):
        return frozenset().union(*map(axis_names_of, value))
    if isinstance(value, Primitive):
        return frozenset(axis_names(value)).union(*map(axis_names_of, value.params().values()))
    return frozenset()


def evaluate(
    program: Program, args: Sequence[Any], after: Callable[[Equation], None] | None = None
) -> list[Any]:
    """Run a program, one primitive after the other, under the current trace.

    Intermediate results are dropped when their last reader has run, so that their memory is free.

    Args:
        program: The program.
        args: Values of its inputs.
        after: Called with every equation that has been run.
    """
    environment: dict[Var, Any] = dict(program.constants)
    environment.update(zip(program.inputs, args, strict=True))

    def read(atom: Atom) -> Any:
        return environment[atom] if type(atom) is Var else atom.value  # type: ignore[union-attr]

    for equation, dying in zip(program.equations, last_uses(program), strict=True):
        result = equation.primitive.bind(*map(read, equation.inputs))
        if equation.primitive.multiple_results:
            environment.update(zip(equation.outputs, result, strict=True))
        else:
            environment[equation.outputs[0]] = result
        result = None
        for var in dying:
            del environment[var]
        if after is not None:
            after(equation)
    return [read(atom) for atom in program.outputs]


def makers(program: Program) -> dict[Atom, tuple[Equation, int]]:
    """Defining equation of every intermediate result, and its position among the outputs."""
    return program.memo(
        "makers", lambda: {v: (e, i) for e in program.equations for i, v in enumerate(e.outputs)}
    )


def last_uses(program: Program) -> Iterator[list[Var]]:
    """For every equation, in order, the names that nothing reads after it."""
    # One long list instead of many short ones, which the garbage collector would have to traverse.
    dying, ends = program.memo("last uses", lambda: _last_uses(program))
    start = 0
    for end in ends:
        yield dying[start:end]
        start = end


def _last_uses(program: Program) -> tuple[list[Var], list[int]]:
    """The names in the order of their last uses, and how many have died after every equation."""
    seen: set[Atom] = set(program.outputs)
    dying: list[Var] = []
    counts = []
    for equation in reversed(program.equations):
        names = [a for a in (*equation.inputs, *equation.outputs) if type(a) is Var]
        counts.append(len(dying))
        dying += [var for var in dict.fromkeys(reversed(names)) if var not in seen]
        seen.update(names)
    dying.reverse()
    return dying, [len(dying) - count for count in reversed(counts)]
