"""A function as the straight line of operations that it applied, with all intermediate values.

``record : (a -> b) -> a -> Record (a -> b)``

`Recorder` is a trace that computes while it stages: Python may branch on values, as in eager code.
Compiled and checkpointed calls are entered, so that their operations are seen; loops, branches and
functions with rules of their own are single operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad.api.arguments import leaf_paths, name_of
from funcgrad.api.differentiation import grad
from funcgrad.api.staging import ShapeDtypeStruct, aval_like
from funcgrad.base.annotations import Function
from funcgrad.base.pytree import tree_unflatten
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.observers import describe_location
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Atom, Equation, Literal, Program, Var, evaluate
from funcgrad.core.trace import Trace, Tracer, current_trace, run_under, using_trace
from funcgrad.lowering import Call
from funcgrad.observers.source import SourceLocation, current_location
from funcgrad.primitives.elementwise import add
from funcgrad.primitives.objects import flatten_values

OPTIONS = (bool, str, bytes)
"""Types of arguments that say what a function does, and are never traced."""

Group = tuple[tuple[str, int], ...]
"""Groups around an operation, from the outside inwards: scopes, numbered 0, and numbered calls."""


class Record:
    """Record of all operations of a function at given arguments.

    Attributes:
        name: Name of the function.
        inputs: Names of the leaves of the arguments.
        paths: What messages call them.
        equations: The operations in order.
        groups: For every operation, what it is in.
        outputs: Names or literals of the leaves of the result.
        out_paths: What messages call them.
        constants: Arrays that the function closed over.
        values: Values of all names; of the constants only if the arguments were types.
        has_values: Whether there are all.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[Var] = []
        self.paths: list[str] = []
        self.equations: list[Equation] = []
        self.groups: list[Group] = []
        self.outputs: list[Atom] = []
        self.out_paths: list[str] = []
        self.constants: dict[Var, Any] = {}
        self.values: dict[Var, Any] = {}
        self.has_values = True

    def value(self, atom: Atom) -> Any:
        """Value of a name or literal."""
        return atom.value if isinstance(atom, Literal) else self.values[atom]

    def program(self) -> Program:
        """The operations as a program."""
        return Program(
            self.inputs, self.equations, self.outputs, self.name, tuple(self.constants.items())
        )

    def readers(self) -> dict[Atom, list[Equation]]:
        """For every name the operations that read it."""
        found: dict[Atom, list[Equation]] = {}
        for equation in self.equations:
            for atom in dict.fromkeys(equation.inputs):
                if isinstance(atom, Var):
                    found.setdefault(atom, []).append(equation)
        return found

    def run(
        self,
        args: Sequence[Any],
        shifts: Mapping[Var, Any],
        after: Callable[[Equation, Sequence[Any], Sequence[Any]], None] | None = None,
    ) -> list[Any]:
        """Run the operations again, under the current trace.

        Args:
            args: Values of the inputs.
            shifts: What is added to intermediate results.
            after: Called with every operation, its operands and its results.
        """
        environment: dict[Atom, Any] = {}
        environment.update(self.constants.items())
        environment.update(zip(self.inputs, args, strict=True))
        for equation in self.equations:
            inputs = [
                a.value if isinstance(a, Literal) else environment[a] for a in equation.inputs
            ]
            out = equation.primitive.bind(*inputs)
            outs = out if equation.primitive.multiple_results else [out]
            if after is not None:
                after(equation, inputs, outs)
            for var, x in zip(equation.outputs, outs, strict=True):
                environment[var] = add.bind(x, shifts[var]) if var in shifts else x
        return [a.value if isinstance(a, Literal) else environment[a] for a in self.outputs]

    def gradients(self, names: Sequence[Var]) -> dict[Var, np.ndarray]:
        """Derivatives of the one result, a real number, with respect to intermediate results.

        They are those with respect to a number that is added to each of them, at 0.
        """
        own = dict.fromkeys(self.inputs)
        wanted = [v for v in dict.fromkeys(names) if v.aval.dtype.kind in "fc"]
        inner = [v for v in wanted if v not in own and v not in self.constants]
        args = [self.values[v] for v in self.inputs]

        def shifted(active: list[Any], shifts: list[Any]) -> Any:
            rest = iter(active)
            full = [
                next(rest) if v.aval.dtype.kind in "fc" else x
                for v, x in zip(self.inputs, args, strict=True)
            ]
            return self.run(full, dict(zip(inner, shifts, strict=True)))[0]

        active = [v for v in self.inputs if v.aval.dtype.kind in "fc"]
        zeros = [np.zeros(v.aval.shape, v.aval.dtype) for v in inner]
        of_inputs, of_inner = grad(shifted, argnums=(0, 1))([self.values[v] for v in active], zeros)
        found = {
            **dict(zip(active, of_inputs, strict=True)),
            **dict(zip(inner, of_inner, strict=True)),
        }
        return {v: np.asarray(found[v]) for v in wanted if v in found}


class RecordTracer(Tracer):
    """A name of a record, with its value if there are values."""

    __slots__ = ("atom", "source", "value")

    def __init__(
        self, owner: Recorder, variable: Var, value: Any, source: SourceLocation | str | None
    ) -> None:
        self.owner = owner
        self.atom = variable
        self.value = value
        self.source = source

    @property
    def aval(self) -> ShapedArray:
        return self.atom.aval

    def concrete(self) -> Any:
        return self.value

    def origin(self) -> list[str]:
        if isinstance(self.source, str):
            return [f"  from          {self.source}"]
        return describe_location(self.source, "computed at")


class Recorder(Trace):
    """Computes and stages."""

    __slots__ = ("calls", "captured", "entered", "record")

    def __init__(self, parent: Trace, record: Record) -> None:
        super().__init__(parent, record.name)
        self.is_staged = True
        self.record = record
        self.captured: dict[int, Var] = {}
        self.calls = 0
        self.entered: Group = ()

    def new_input(self, aval: ShapedArray, value: Any, path: str) -> RecordTracer:
        var = Var(aval)
        self.record.inputs.append(var)
        self.record.paths.append(path)
        if self.record.has_values:
            self.record.values[var] = value
        return RecordTracer(self, var, value, f"argument `{path}`, {aval}")

    def process(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        atoms = [self.atom(a) for a in args]
        avals = [a.aval for a in atoms]
        form = primitive.lower(*avals) if primitive.is_composite else None
        if isinstance(form, Call):
            return self._enter(form.program, args)
        result = primitive.abstract_eval(*avals)
        out_avals = result if primitive.multiple_results else [result]
        values: Sequence[Any] = [None] * len(out_avals)
        if self.record.has_values:
            assert self.parent is not None
            with using_trace(self.parent):
                out = primitive.bind(*[self._value(a) for a in args])
            values = out if primitive.multiple_results else [out]
        outputs = [Var(aval) for aval in out_avals]
        source = current_location()
        self.record.equations.append(Equation(primitive, atoms, outputs, source))
        self.record.groups.append((*self.entered, *_scopes(source)))
        if self.record.has_values:
            self.record.values.update(zip(outputs, values, strict=True))
        rows = zip(outputs, values, strict=True)
        tracers = [RecordTracer(self, var, value, source) for var, value in rows]
        return tracers if primitive.multiple_results else tracers[0]

    def _enter(self, program: Program, args: Sequence[Any]) -> list[Any]:
        source = current_location()
        outside = self.entered
        self.calls += 1
        self.entered = (*outside, *_scopes(source), (program.name, self.calls))
        try:
            return evaluate(program, args)
        finally:
            self.entered = outside

    def _value(self, x: Any) -> Any:
        return x.value if isinstance(x, RecordTracer) and x.owner is self else x

    def atom(self, x: Any) -> Atom:
        """The name or literal that stands for a value."""
        if isinstance(x, RecordTracer) and x.owner is self:
            return x.atom
        if not isinstance(x, Tracer | np.ndarray):
            return Literal(x)
        if isinstance(x, np.ndarray) and not x.ndim:
            return Literal(x[()])
        if id(x) not in self.captured:
            var = self.captured[id(x)] = Var(aval_of(x).strong())
            self.record.constants[var] = self.record.values[var] = x
        return self.captured[id(x)]


def _scopes(source: SourceLocation | None) -> Group:
    return () if source is None else tuple((name, 0) for name in source.scope)


def record(
    function: Function, args: Sequence[Any], kwargs: dict[str, Any], what: str, prefix: str = "args"
) -> Record:
    """Run a function and keep what it did.

    Args:
        function: The function.
        args: Pytrees of arrays, or, if there is any `ShapeDtypeStruct`, of types: then there are
            no values.
        kwargs: Keyword arguments, likewise.
        what: How messages call the call.
        prefix: How messages call the positional arguments.
    """
    leaves, tree = flatten_values((tuple(args), kwargs))
    paths = leaf_paths(tuple(args), prefix) + (leaf_paths(kwargs, "kwargs") if kwargs else [])
    result = Record(name_of(function))
    result.has_values = not any(isinstance(x, ShapeDtypeStruct) for x in leaves)

    def flat(*inner: Any) -> list[Any]:
        inner_args, inner_kwargs = tree_unflatten(tree, inner)
        out = function(*inner_args, **inner_kwargs)
        outs, _ = flatten_values(out)
        result.out_paths = leaf_paths(out, "result")
        return outs

    recorder = Recorder(current_trace(), result)
    tracers = [
        x if type(x) in OPTIONS else recorder.new_input(aval_like(x, path, what), x, path)
        for x, path in zip(leaves, paths, strict=True)
    ]
    with np.errstate(all="ignore"):
        outs = run_under(recorder, flat, *tracers)
    result.outputs = [recorder.atom(x) for x in outs]
    return result
