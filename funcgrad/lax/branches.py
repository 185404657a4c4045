"""Choices as values: cond and switch.

All branches are traced, one of them runs. Everything works at every nesting with the
transformations; under `vmap`, where lanes choose differently, all branches run and the arms that a
lane did not choose contribute nothing, not even to its derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.base.annotations import Function
from funcgrad.base.pytree import tree_unflatten
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.program import Program, evaluate
from funcgrad.core.trace import Tracer, current_trace
from funcgrad.dtypes import INT64
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, TreeError
from funcgrad.higher_order.elements import spelled_out
from funcgrad.higher_order.staging import (
    Staged,
    check_function,
    check_leaf,
    closing_over_cells,
    described,
    each_once,
    join_captured,
    kept_weak,
    leaves_with_paths,
    located,
    name_of,
    put_back,
    stage_once,
    type_texts,
)
from funcgrad.higher_order.switch import Switch
from funcgrad.passes.common import shared, without_unused
from funcgrad.primitives.elementwise import convert, not_equal
from funcgrad.primitives.indexing import as_index
from funcgrad.transforms.programs import stage_closed
from funcgrad.transforms.stage import StageTrace, StageTracer

_NOT_GIVEN: Any = object()
"""None is an operand: a pytree without leaves."""


def cond(
    pred: Any, true_fun: Function, false_fun: Function, *operands: Any, operand: Any = _NOT_GIVEN
) -> Any:
    """``true_fun(*operands)`` if ``pred`` holds, else ``false_fun(*operands)``.

    Args:
        pred: Scalar bool; a number holds if it is not zero.
        true_fun: The first branch.
        false_fun: The second branch; its results have the structure and types of the first.
        operands: Pytrees, the arguments of both.
        operand: One argument, for programs that pass it by name.
    Returns: The results of the chosen branch.

    Raises:
        ShapeError: If ``pred`` is not a scalar, or the types of results differ.
        TreeError: If the structures of results differ.

    Example:
        >>> safe_log = lambda x: fg.lax.cond(x > 0, fg.numpy.log, lambda x: 0.0, x)
        >>> print(safe_log(1.0), fg.grad(safe_log)(0.0))
        0.0 0.0
    """
    what = f"cond({name_of(true_fun)}, {name_of(false_fun)})"
    operands = _joined(operands, operand, what)
    check_function(true_fun, "true_fun", what)
    check_function(false_fun, "false_fun", what)
    aval = check_leaf(pred, "pred", what)
    if aval.shape:
        raise located(
            ShapeError,
            f"{what}: `pred` must be a scalar, got {aval}.",
            "Reduce it with .any() or .all(), choose element by element with numpy.where, or "
            "map the function with vmap.",
        )
    holds = pred if aval.dtype.kind == "b" else not_equal.bind(pred, aval.dtype.type(0))
    return _choose(
        convert(holds, INT64), (false_fun, true_fun), ("false_fun", "true_fun"), operands, what
    )


def switch(
    index: Any, branches: Sequence[Function], *operands: Any, operand: Any = _NOT_GIVEN
) -> Any:
    """``branches[index](*operands)``, the index clipped to the branches that exist.

    Args:
        index: Scalar integer.
        branches: Functions whose results have equal structures and types.
        operands: Pytrees, the arguments of all.
        operand: One argument, for programs that pass it by name.
    Returns: The results of the chosen branch.

    Raises:
        ArgumentError: If there is no branch.
        DtypeError: If the index is not an integer.
        ShapeError: If the index is not a scalar, or the types of results differ.
        TreeError: If the structures of results differ.

    Example:
        >>> branches = [fg.numpy.sin, fg.numpy.cos, lambda x: 3 * x]
        >>> f = lambda i, x: fg.lax.switch(i, branches, x)
        >>> print(f(2, 2.0), fg.grad(f, 1)(9, 2.0))
        6.0 3.0
    """
    if not isinstance(branches, Sequence):
        raise located(
            ArgumentError,
            f"switch: `branches` must be a list of functions, got {described(branches)}.",
        )
    what = f"switch({', '.join(map(name_of, branches))})"
    if not branches:
        raise located(ArgumentError, "switch: there must be at least one branch.")
    operands = _joined(operands, operand, what)
    labels = [f"branches[{i}]" for i in range(len(branches))]
    for branch, label in zip(branches, labels, strict=True):
        check_function(branch, label, what)
    aval = check_leaf(index, "index", what)
    if aval.shape:
        raise located(
            ShapeError,
            f"{what}: `index` must be a scalar, got {aval}.",
            "Map the function with vmap to choose for every element.",
        )
    if aval.dtype.kind not in "iu":
        raise located(
            DtypeError,
            f"{what}: `index` must be an integer, got {aval}.",
            "Convert it with .astype(int), or use cond for a bool.",
        )
    if len(branches) == 1:
        return branches[0](*operands)
    return _choose(as_index(index), branches, labels, operands, what)


def _joined(operands: tuple[Any, ...], operand: Any, what: str) -> tuple[Any, ...]:
    if operand is _NOT_GIVEN:
        return operands
    if operands:
        raise located(
            ArgumentError, f"{what}: pass operands by position, or one by name, not both."
        )
    return (operand,)


def _choose(
    index: Any,
    branches: Sequence[Function],
    labels: Sequence[str],
    operands: tuple[Any, ...],
    what: str,
) -> Any:
    branches, operands = closing_over_cells(branches, operands)
    leaves, paths, tree = leaves_with_paths(operands, "operands")
    avals = [check_leaf(x, p, what) for x, p in zip(leaves, paths, strict=True)]
    staged = [stage_once(f, tree, avals, what, True) for f in branches]
    types = _common_types(staged, labels, what)
    cells = each_once(cell for each in staged for cell in each.cells)
    changed = each_once(cell for each in staged for cell in each.changed)
    programs, captured = join_captured([each.carrying(cells, changed) for each in staged])
    dtypes = [*(cell.inside.dtype for cell in changed), *(a.dtype for a in types)]
    programs = [_converted(p, dtypes) for p in programs]
    values = [
        x if isinstance(x, Tracer) else np.asarray(x, a.dtype)
        for x, a in zip(leaves, avals, strict=True)
    ]
    values = [*captured, *(cell.content() for cell in cells), *values]
    programs, values = _hoisted(programs, values)
    results = Switch(tuple(programs)).bind(index, *values)
    rest = kept_weak(put_back(changed, results, what), types)
    return tree_unflatten(staged[0].out_tree, rest)


_NEAR = 24
"""How many of the operations around a branch are looked at for some that it repeats."""


def _hoisted(programs: list[Program], values: list[Any]) -> tuple[list[Program], list[Any]]:
    """Hoist common subexpressions out of branches; returns these with their new operands."""
    trace = current_trace()
    if not isinstance(trace, StageTrace):
        return programs, values
    near = Program([trace.atom(x) for x in values], trace.equations[-_NEAR:], ())  # type: ignore[misc]
    around = spelled_out(near)
    trace.equations[-_NEAR:] = around.equations
    found = shared(programs, around)
    if found is None:
        return programs, values
    values += [StageTracer(trace, var, None) for var in found.known]
    values += evaluate(found.before, values)
    programs, kept = without_unused(found.rest)
    return programs, [values[i] for i in kept]


def _common_types(staged: Sequence[Staged], names: Sequence[str], what: str) -> list[ShapedArray]:
    """The types of results; Python's scalars take those of the other branches."""
    first = staged[0]
    if any(other.out_tree != first.out_tree for other in staged):
        trees = [f"  {n:<13} {s.out_tree}" for n, s in zip(names, staged, strict=True)]
        raise located(TreeError, f"{what}: branches must return equal structures.", *trees)
    types: list[ShapedArray] = []
    wrong = []
    for i, (path, *avals) in enumerate(
        zip(first.paths, *(s.out_avals for s in staged), strict=True)
    ):
        common = _common_type(avals)
        if common is None:
            texts = (type_texts(s.out_tree, s.out_avals)[i] for s in staged)
            rows = (f"{text} from {name}" for text, name in zip(texts, names, strict=True))
            wrong.append(f"  `result{path}`: {', '.join(rows)}")
        else:
            types.append(common)
    if wrong:
        raise located(
            ShapeError,
            f"{what}: branches must return equal types.",
            *wrong,
            "Convert them (.astype, np.broadcast_to).",
        )
    return types


def _common_type(avals: Sequence[ShapedArray]) -> ShapedArray | None:
    shape = avals[0].shape
    strong = {a.dtype for a in avals if not a.weak_type}
    if len(strong) > 1 or any(a.shape != shape for a in avals):
        return None
    weak = [a.dtype for a in avals if a.weak_type]
    if not strong:
        return shaped(shape, np.result_type(*weak), True)
    (dtype,) = strong
    ranks = ["biufc".index(d.kind) for d in weak]
    fits = all(rank <= "biufc".index(dtype.kind) for rank in ranks)
    return shaped(shape, dtype) if fits else None


def _converted(program: Program, dtypes: Sequence[Any]) -> Program:
    if [a.dtype for a in program.out_avals] == list(dtypes):
        return program

    def convert_results(*args: Any) -> list[Any]:
        outs = evaluate(program, args)
        return [
            convert(x, d) if aval_of(x).dtype != d else x for x, d in zip(outs, dtypes, strict=True)
        ]

    return program.memo(
        ("converted", tuple(dtypes)),
        lambda: stage_closed(convert_results, program.in_avals, program.name),
    )
