"""checkpoint and its relatives: less memory for a derivative, for some work that is done twice."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from funcgrad.api.arguments import (
    Function,
    call_untraced,
    check_callable,
    leaf_paths,
    name_of,
    normalize_argnums,
    positional_parameters,
)
from funcgrad.api.staging import ShapeDtypeStruct, StagedFunction, argument_paths, without_float0
from funcgrad.base.annotations import Keywords
from funcgrad.base.pytree import tree_unflatten
from funcgrad.base.records import dataclass
from funcgrad.base.transformed import Transformed
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.program import Equation, Program, Var, makers
from funcgrad.core.trace import EVAL, Tracer, current_trace, using_trace
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.higher_order.budget import Budgeted, MemoryPlan, plan_memory
from funcgrad.higher_order.cells import Cell
from funcgrad.higher_order.checkpoint import Checkpoint, CheckpointName, effect_of, split_program
from funcgrad.higher_order.policies import (
    Policy,
    check_policy,
    everything_saveable,
    nothing_saveable,
)
from funcgrad.higher_order.remembered import remembered
from funcgrad.higher_order.reroll import is_rerolling
from funcgrad.higher_order.staging import closing_over_cells
from funcgrad.observers.limits import format_bytes
from funcgrad.primitives.objects import flatten_held, map_values, unwrapped


def checkpoint(
    fun: Function,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] | None = None,
    budget: int | str | None = None,
) -> Function:
    """Make the derivative of a function compute intermediate results again, to save memory.

    The forward pass keeps the arguments, and the results that ``policy`` selects; the backward pass
    runs the function a second time. `remat` is another name for `checkpoint`.

    Args:
        fun: Function of arrays or pytrees. It may close over anything.
        prevent_cse: Whether compiled code must compute the results again. If it is false, the
            compiler may keep results of the forward pass.
        policy: Which intermediate results are saved, one of `checkpoint_policies`, or a function
            ``policy(primitive, *avals, **params) -> bool``. By default none.
        budget: Instead of a policy: the memory in bytes, or as text such as ``"50MB"``, that value
            and gradient may take beyond the arguments. The function is cut into segments, and what
            is saved is chosen such that little work is done twice.
    Returns: A function of the same arguments. With a budget its attribute ``plan`` is a function of
        them (or of `ShapeDtypeStruct`) that returns the `MemoryPlan`: the predicted peak and the
        extra work.
    Raises: MemoryBudgetError: On differentiation, if the budget is too small; the message says
            which one would do.

    Source:
        Griewank and Walther, Algorithm 799: revolve, ACM TOMS 26 (2000); Chen et al., Training deep
        nets with sublinear memory cost, arXiv:1604.06174.

    Example:
        >>> layer = fg.checkpoint(lambda w, x: np.tanh(x @ w))
        >>> w, x = np.eye(2), np.zeros((1, 2))
        >>> fg.grad(lambda w: layer(w, layer(w, x)).sum())(w)
        array([[0., 0.],
               [0., 0.]])
    """
    check_callable(fun, "checkpoint")
    what = f"checkpoint({name_of(fun)})"
    if policy is not None:
        check_policy(policy, what)
    if policy is not None and budget is not None:
        raise ArgumentError(f"{what}: give a policy or a budget, not both: a budget chooses.")
    limit = None if budget is None else parse_bytes(budget, what)

    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames or ())
    by_name = {i for i, name in enumerate(positional_parameters(fun)) if name in names}

    def static_positions(args: tuple[Any, ...]) -> tuple[int, ...]:
        named = tuple(i for i in by_name if i < len(args))
        if static_argnums == ():
            return named
        return tuple({*normalize_argnums(static_argnums, len(args), what), *named})

    def staged_call(args: tuple[Any, ...], kwargs: Keywords) -> tuple[StagedFunction, list[Any]]:
        """The function, traced now or before, and the values of its arguments."""
        static = static_positions(args)
        dynamic = [a for i, a in enumerate(args) if i not in static]
        options = {name: value for name, value in kwargs.items() if name in names}
        kwargs = {name: value for name, value in kwargs.items() if name not in names}

        def of_dynamic(*inner: Any, **inner_kwargs: Any) -> Any:
            rest = iter(inner)
            full = [a if i in static else next(rest) for i, a in enumerate(args)]
            return fun(*full, **options, **inner_kwargs)

        of_dynamic.__name__ = name_of(fun)

        def stage() -> StagedFunction:
            paths = argument_paths(args, kwargs, static)
            made = StagedFunction(of_dynamic, dynamic, kwargs, what, paths, carries=True)
            made.leaves = []  # what is remembered must not keep the arguments of this call alive
            return made

        held, in_tree = flatten_held(without_float0((tuple(dynamic), kwargs)))
        leaves = list(map(unwrapped, held))
        if not all(isinstance(x, _PLAIN) for x in leaves) or any(map(_holds_objects, leaves)):
            if any(isinstance(x, Cell) for x in leaves):
                staged = closing_over(of_dynamic, dynamic, kwargs)
            else:
                paths = argument_paths(args, kwargs, static)
                staged = StagedFunction(of_dynamic, dynamic, kwargs, what, paths, carries=True)
            return staged, staged.leaves
        key = ("checkpoint", in_tree, is_rerolling(), *(_signature_of(x) for x in leaves))
        fixed = [(i, args[i]) for i in sorted(static)]
        return remembered([fun, fixed, sorted(options.items())], key, stage, lambda s: s), leaves

    def closing_over(of_dynamic: Function, dynamic: list[Any], kwargs: Keywords) -> StagedFunction:
        """The function of the arguments that are no references."""

        def of_both(inner: list[Any], inner_kwargs: dict[str, Any]) -> Any:
            return of_dynamic(*inner, **inner_kwargs)

        of_both.__name__ = name_of(fun)
        (function,), given = closing_over_cells([of_both], (dynamic, kwargs))
        return StagedFunction(function, given, {}, what, carries=True)

    def run(args: tuple[Any, ...], kwargs: Keywords) -> Any:
        if current_trace() is EVAL:
            return call_untraced(fun, args, kwargs, static_positions(args))
        staged, leaves = staged_call(args, kwargs)
        if limit is not None:
            call: Checkpoint = Budgeted(staged.program, prevent_cse=prevent_cse, limit=limit)
        else:
            call = Checkpoint(staged.program, policy or nothing_saveable, prevent_cse)
        outs = call.bind(*staged.captured_values(), *leaves)
        return tree_unflatten(staged.out_tree, staged.put_back(outs, what))

    def plan(*args: Any, **kwargs: Any) -> MemoryPlan:
        staged, _ = staged_call(args, kwargs)
        is_active = tuple(a.dtype.kind in "fc" for a in staged.program.in_avals)
        assert limit is not None
        return plan_memory(staged.program, is_active, limit, prevent_cse)

    checkpointed = Transformed(
        run,
        checkpoint,
        fun,
        prevent_cse=prevent_cse,
        policy=policy,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        budget=budget,
    )
    if limit is not None:
        checkpointed.plan = plan  # type: ignore[attr-defined]
    return checkpointed


_PLAIN = (bool, int, float, complex, np.ndarray, np.generic, Tracer, ShapeDtypeStruct)
"""Arguments that programs take as they are."""


def _holds_objects(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and leaf.dtype.hasobject


def _signature_of(leaf: Any) -> Any:
    """Key by which arguments have equal types."""
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf
    try:
        return aval_of(leaf)
    except DtypeError:
        return type(leaf)  # refused when it is traced


remat = checkpoint

_BYTES = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?i?)b?\s*", re.IGNORECASE)
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_PREFIXES = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_bytes(size: Any, what: str) -> int:
    """A number of bytes from an int or a text such as ``"1.5 GiB"``."""
    if isinstance(size, str):
        match = _BYTES.fullmatch(size)
        factor = {**_PREFIXES, **_BINARY_PREFIXES}.get(match[2].lower()) if match else None
        if match and factor:
            return _positive(int(float(match[1]) * factor), size, what)
    elif isinstance(size, int | np.integer) and not isinstance(size, bool):
        return _positive(int(size), size, what)
    raise ArgumentError(
        f"{what}: memory is a number of bytes, or a text such as '50MB', '1.5 GiB' (units B, kB, "
        f"MB, GB, KiB, MiB, GiB), got {size!r}."
    )


def _positive(n: int, size: Any, what: str) -> int:
    if n <= 0:
        raise ArgumentError(f"{what}: memory must be at least one byte, got {size!r}.")
    return n


def checkpoint_sequential(
    functions: Iterable[Function], segments: int | None = None, *, policy: Policy | None = None
) -> Function:
    """The composition of functions, in checkpointed segments.

    With the square root of their number as the number of segments, which is the default, memory for
    the gradient grows with that square root, for one more forward pass.

    Args:
        functions: The first one is applied first, each to the result of the one before.
        segments: How many checkpoints there are.
        policy: As for `checkpoint`.
    Returns: A function of one argument, an array or a pytree.

    Source:
        Chen et al., Training deep nets with sublinear memory cost, arXiv:1604.06174, section 4.

    Example:
        >>> deep = fg.checkpoint_sequential([np.sin] * 100)
        >>> float(fg.grad(deep)(0.0))
        1.0
    """
    steps = list(functions)
    for step in steps:
        check_callable(step, "checkpoint_sequential")
    n = len(steps)
    count = math.isqrt(max(n - 1, 0)) + 1 if segments is None else segments
    if not isinstance(count, int | np.integer) or count < 1:
        raise ArgumentError(
            f"checkpoint_sequential: segments must be a positive int, got {segments!r}."
        )
    count = min(int(count), max(n, 1))
    bounds = [n * i // count for i in range(count + 1)]
    parts = [
        checkpoint(Composition(steps[a:b], "segment"), policy=policy) for a, b in pairwise(bounds)
    ]
    return Composition(parts, "checkpoint_sequential")


class Composition:
    """Functions of one argument, one after the other."""

    def __init__(self, steps: Sequence[Function], name: str) -> None:
        self.steps = steps
        self.__name__ = self.__qualname__ = name

    def __call__(self, x: Any) -> Any:
        for step in self.steps:
            x = step(x)
        return x


def checkpoint_name(x: Any, name: str) -> Any:
    """The same value, under a name that policies of `checkpoint` know.

    Args: name: What `save_only_these_names` and its relatives call it.

    Example:
        >>> policy = fg.checkpoint_policies.save_only_these_names("hidden")
        >>> f = lambda x: np.sin(fg.checkpoint_name(np.exp(x), "hidden"))
        >>> rows = fg.saved_residuals(fg.checkpoint(f, policy=policy), 1.0)
        >>> [row.what for row in rows]
        ['named `hidden`']
    """
    if not isinstance(name, str):
        raise ArgumentError(f"checkpoint_name(x, name) needs a str as name, got {name!r}.")
    return map_values(CheckpointName(name).bind, x)


@dataclass(frozen=True)
class Residual:
    """A value that is kept from the forward pass for the backward pass.

    Attributes:
        shape: Its shape.
        dtype: Its dtype.
        what: The argument, such as ``args[0]['w']``, or the operation, that it comes from.
        place: The user's line of the operation, if there is one.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    what: str
    place: str

    @property
    def nbytes(self) -> int:
        return self.aval.nbytes

    @property
    def aval(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype)

    def __str__(self) -> str:
        where = f"   {self.place}" if self.place else ""
        return f"{self.aval!s:<16} {format_bytes(self.nbytes):>9}   {self.what}{where}"


class Residuals(list[Residual]):
    """The residuals of a function.

    Attributes:
        without_effect: For every `checkpoint` inside that saves no memory, what it is and why.
    """

    def __init__(self, rows: Iterable[Residual], without_effect: Iterable[str]) -> None:
        super().__init__(rows)
        self.without_effect = list(without_effect)

    @property
    def nbytes(self) -> int:
        return sum(row.nbytes for row in self)

    def __str__(self) -> str:
        lines = [str(row) for row in self]
        noun = "residual" if len(self) == 1 else "residuals"
        lines.append(f"{len(self)} {noun}, {format_bytes(self.nbytes)}")
        return "\n".join([*lines, *self.without_effect])


def saved_residuals(f: Function, *args: Any, **kwargs: Any) -> Residuals:
    """Residuals: the values that the forward pass of a function keeps for its backward pass.

    Args: *args: Arguments, or `ShapeDtypeStruct`. All floating ones are differentiated.
    Returns: A list of `Residual`, with the attributes ``nbytes`` and ``without_effect``.

    Example:
        >>> rows = fg.saved_residuals(fg.checkpoint(lambda x: np.sin(np.sin(x))), np.ones(3))
        >>> [(row.what, row.nbytes) for row in rows]
        [('argument `args[0]`', 24)]
    """
    check_callable(f, "saved_residuals")
    what = f"saved_residuals({name_of(f)})"
    with using_trace(EVAL):
        staged = StagedFunction(f, args, kwargs, what)
        program = staged.program
        is_active = tuple(a.dtype.kind in "fc" for a in program.in_avals)
        split = split_program(program, is_active, everything_saveable)
        paths = leaf_paths(args) + (leaf_paths(kwargs, "kwargs") if kwargs else [])
        rows = [_argument(program.inputs[i], paths[i]) for i in split.inputs]
        rows += [_output(equation, i) for equation, i in split.saved]
        rows += [_constant(var) for var, _ in split.tangent.constants]
        return Residuals(rows, _without_effect(program, set(program.inputs)))


def print_saved_residuals(f: Function, *args: Any, **kwargs: Any) -> None:
    """Print what `saved_residuals` finds, and which checkpoints have no effect.

    Args: *args: Arguments, or `ShapeDtypeStruct`.
    Example: fg.print_saved_residuals(lambda x: x * x, np.ones(3))
        -> f64[3]                24 B   argument `args[0]`
           1 residual, 24 B
    """
    print(saved_residuals(f, *args, **kwargs))


def _argument(var: Var, path: str) -> Residual:
    return Residual(var.aval.shape, var.aval.dtype, f"argument `{path}`", "")


def _constant(var: Var) -> Residual:
    return Residual(var.aval.shape, var.aval.dtype, "array that the function closes over", "")


def _output(equation: Equation, i: int) -> Residual:
    """A result of an equation; of a call, that of the equation inside."""
    aval = equation.outputs[i].aval
    inner = equation.primitive.params().get("program")
    if isinstance(inner, Program) and len(inner.outputs) == len(equation.outputs):
        out = inner.outputs[i]
        made = makers(inner).get(out)
        if made is not None:
            return _output(*made)
    name = equation.primitive.params().get("value_name")
    what = f"output of {equation.primitive.name}" if name is None else f"named `{name}`"
    return Residual(aval.shape, aval.dtype, what, str(equation.source or ""))


def _without_effect(program: Program, active: set[Var]) -> list[str]:
    """Checkpoints in a program that compute nothing again, for tangents of some inputs."""
    active = {v for v in active if v.aval.dtype.kind in "fc"}
    found = []
    for equation in program.equations:
        mask = tuple(a in active for a in equation.inputs)
        if not any(mask):
            continue
        active.update(v for v in equation.outputs if v.aval.dtype.kind in "fc")
        primitive = equation.primitive
        if isinstance(primitive, Checkpoint) and not isinstance(primitive, Budgeted):
            reason = effect_of(primitive, mask)
            if reason:
                where = f" ({equation.source})" if equation.source is not None else ""
                name = primitive.program.name
                found.append(f"checkpoint({name}){where} has no effect: {reason}")
        for value in primitive.params().values():
            if isinstance(value, Program) and len(value.inputs) == len(mask):
                inner = {v for v, on in zip(value.inputs, mask, strict=True) if on}
                found += _without_effect(value, inner)
    return found


__all__ = [
    "Residual", "Residuals", "checkpoint", "checkpoint_name", "checkpoint_sequential",
    "print_saved_residuals", "remat", "saved_residuals",
]  # fmt: skip
