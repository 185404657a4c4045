"""Vectorisation of passes over rows: the vector axis is the innermost loop.

A pass is written in vectors if all that it touches lies side by side along the row, or near, or is
little beside what is computed, and nothing is asked of single elements. LLVM finds out what to do
elsewhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.compiler import machine
from funcgrad.compiler.nest.accumulate import is_accurate, is_across, is_idempotent, is_ordered
from funcgrad.compiler.nest.bounds import run_of
from funcgrad.compiler.nest.gathers import is_chosen
from funcgrad.compiler.nest.guards import asked, core_of_most
from funcgrad.compiler.nest.iteration import Access, Vectors
from funcgrad.compiler.nest.layout import View
from funcgrad.compiler.nest.nodes import Fold, Guard, Node, Pick, Point
from funcgrad.compiler.nest.plan import Plan, is_function, width


def vectors_of(plan: Plan, body: list[Node], is_inner: bool = False) -> Vectors | None:
    """The vectors of a pass over a row that computes some nodes, if it is written in any.

    In a loop (``is_inner``) a row runs many times, alone as well as among others.
    """
    if not plan.row or plan.row_vectors is not None:
        return plan.row_vectors
    if plan.nest is not None and plan.nest.direction:
        return None  # elements are taken in their order
    if math.prod(plan.space.shape) < machine.FEW:
        return None  # the compiler would take longer for vectors of them
    row = plan.row[-1]
    apart: set[Access] = set()
    scattered: set[Access] = set()
    for node in body:
        read, written = _touched(plan, node, body)
        if any(row.steps[access] == 0 for access in written):
            return None
        if isinstance(node, Fold) and not is_across(node):
            return None  # it is computed for one element at a time
        apart.update(access for access in read if row.steps[access] not in (0, 1))
        scattered.update(access for access in written if row.steps[access] != 1)
    far = scattered | {access for access in apart if plan.space.is_far(access)}
    lookups = [n for n in body if isinstance(n, Pick) and not plan.is_of_row(n)]
    single = [node for node in lookups if not run_of(node) and not is_chosen(plan, node)]
    is_guarded = bool(asked(plan, body))
    cost = _cost(body)
    # LLVM makes vectors by itself of what is written a few elements apart.
    n_single = len(single) + len(far) + sum(map(plan.space.is_apart, scattered))
    sums = [node for node in body if isinstance(node, Fold) and is_accurate(node)]
    # The order of a sum along the only row is ours, which a file of C can follow. Columns are added
    # up as those of a batch are.
    is_sum = sums and len(plan.space.loops) == 1 and all(row.steps[x] < 0 for x in apart)
    # Few rows of a loop's body are vectors of LLVM's, so lookups in less arithmetic are worth it.
    heavy = 2 * machine.LOOKUP if is_inner and n_single else machine.HEAVY
    # Nor does LLVM find vectors for extremes of floats.
    is_extreme = any(isinstance(node, Fold) and is_ordered(node) for node in body)
    least = 0 if is_sum or is_extreme else max(heavy, machine.LOOKUP * n_single)
    kinds = {plan.kind(node) for node in body}
    is_folded = bool(kinds & {"inner", "total"})
    # Of elements in reversed order, a vector is loaded as any other, and reversed.
    is_reversed = is_folded and all(row.steps[access] == -1 for access in apart)
    if ((apart and not is_reversed) or n_single) and cost < least:
        return None
    if not all(map(plan.is_full, lookups)):
        return None
    if not all(_can_be_taken(plan, access) for access in apart - far):
        return None
    narrow_bytes = width(_dtypes(plan, body))
    narrow = machine.VECTOR_BYTES // narrow_bytes
    # Lanes about which something is asked are loaded one by one: few may be outside of a core.
    has_core = row.size > 2 * narrow and core_of_most(plan, body) is not None
    if is_guarded and (apart or n_single) and not has_core:
        return None
    # A formula is a chain of operations: waiting takes longer than a trip to memory.
    is_chain = any(is_function(n) and not (isinstance(n, Pick) and plan.is_of_row(n)) for n in body)
    # Of little arithmetic, edges would be most in all but long rows, and in those of bytes and of
    # complex elements. LLVM also finds out where elements may be narrower.
    is_mixed = any(width([dtype]) > narrow_bytes for dtype in _dtypes(plan, body))
    is_pair = any(dtype.kind == "c" for dtype in _dtypes(plan, body))
    is_long = row.size >= machine.SEVERAL * narrow and narrow_bytes >= machine.WORD_BYTES
    is_light = cost < machine.HEAVY // 2 and (is_pair or not is_long)
    is_easy = (is_light or is_mixed) and not (is_folded or is_chain)
    if is_easy and any(_is_of_edge(plan, node) for node in body):
        return None
    # Of short rows, accesses to a part of long vectors would be most; they take their time.
    is_short = len(plan.space.loops) > 1 and row.size < plan.least_row
    if is_short and not is_folded:
        if kinds != {"point"} and not is_chain:
            # Folds of columns would wait for what the row before has left of a masked vector.
            is_plain = "column" in kinds <= {"point", "column"} and not (
                apart or n_single or is_guarded
            )
            if not is_plain or row.size < narrow:
                return None
            widest = max(plan.sums[node].dtype.itemsize for node in body if isinstance(node, Fold))
            return Vectors(2 * machine.VECTOR_BYTES // widest, 1)
        # LLVM makes vectors of short rows where much is read.
        is_outer = len(plan.accesses) <= machine.FEW < row.size < narrow
        if is_guarded or is_outer:
            return Vectors(narrow, narrow)
        is_heavy = cost >= machine.HEAVY and not is_chain
        if row.size < narrow or (is_heavy and not can_overlap(plan, body, narrow)):
            return None
        if is_chain:
            return Vectors(narrow, narrow)
    wide = narrow * _registers(plan, body, n_single > 0, is_chain, is_folded)
    # In a loop, what whole vectors leave of a row is to be less than they take; elsewhere, rows of
    # other lengths share the kernel. Sums have their order.
    while is_inner and narrow < wide and row.size < (wide // 2 + 1 if is_folded else 2 * wide):
        wide //= 2
    if cost >= machine.HEAVY:
        count = wide if is_chain and not is_short else min(max(plan.at_once // 2, 1) * narrow, wide)
        return Vectors(count, count, is_split=not is_chain)
    if is_inner and row.size < wide:
        wide = narrow
    last = narrow if is_inner or is_short or is_folded else wide
    return Vectors(wide, last, is_split=not is_chain and last == wide)


def can_overlap(plan: Plan, body: list[Node], narrow: int) -> bool:
    """Whether the last vector of a row may compute again some of what the one before has computed.

    Everything that it reads is to be as it was, and extremes have elements twice. Parts of a row
    that run one after the other, or at the same time, have no vectors in common.
    """
    if plan.first is plan.row[-1] or plan.row[-1].size < narrow:
        return False
    folds = [node for node in body if isinstance(node, Fold)]
    if any(plan.kind(node) == "column" or not is_idempotent(node) for node in folds):
        return False
    written = {plan.outs[node].value for node in body if node in plan.outs}
    return not any(access.value in written for node in body for access in plan.read(node))


def has_rows_at_once(plan: Plan, bodies: list[list[Node]], is_inner: bool) -> bool:
    """Whether several rows are computed at a time, as of products with a vector.

    The additions of one wait for each other, at the end those of its lanes, and what is the same in
    all rows is loaded once for them. The text is there so many times: it is for little arithmetic,
    in loops (``is_inner``) and where there is much of it.
    """
    if not plan.outer or len(plan.row) != 1 or plan.row_vectors is not None or plan.scratch:
        return False
    kinds = {plan.kind(node) for node in plan.nodes}
    return (
        ("inner" in kinds <= {"point", "inner", "post"} or (is_inner and _change_in_place(plan)))
        and plan.outer[-1].size >= machine.FEW
        and (is_inner or math.prod(plan.shape) >= machine.JOINED_WORK)
        and all(isinstance(node, Point | Fold) for node in plan.nodes)
        and sum(map(_cost, bodies)) < machine.FEW
    )


def _change_in_place(plan: Plan) -> bool:
    """Whether rows change where they are, each by itself, and all read one and the same.

    Where they are written elsewhere, memory is what they wait for.
    """
    outer, row = plan.outer[-1], plan.row[-1]
    read = {access for node in plan.nodes for access in plan.read(node)}
    written = {access.value: access for access in plan.outs.values()}
    return (
        all(plan.kind(x) == "point" and x.out.placed_by is None for x in plan.nodes)
        and any(row.steps[access] and not outer.steps[access] for access in read)
        and not read.isdisjoint(written.values())
        and all(written.get(access.value, access) is access for access in read)
    )


def _dtypes(plan: Plan, body: list[Node]) -> set[np.dtype[Any]]:
    """The dtypes of what differs from element to element."""
    read = {x.dtype for node in body for x in node.operands if not plan.is_fixed(node, x)}
    return read | {node.out.dtype for node in body}


def _cost(body: list[Node]) -> float:
    """Operations for each element, apart from lookups; on complex numbers they are two at least."""
    others = [node for node in body if not isinstance(node, Pick)]
    return sum(
        (node.cost if isinstance(node, Point) else 1) * (1 + (node.out.dtype.kind == "c"))
        for node in others
    )


def _registers(
    plan: Plan, body: list[Node], is_single: bool, is_chain: bool, is_folded: bool
) -> int:
    """Vectors that an iteration fills with elements, or with partial results of a fold."""
    if is_single:
        return 1  # each lane is loaded by instructions of its own
    # A complex vector is two.
    parts = 2 if any(dtype.kind == "c" for dtype in _dtypes(plan, body)) else 1
    is_sum = is_folded and not is_chain
    registers = max((machine.VECTORS if is_sum else plan.at_once) // parts, 1)
    waiting = plan.most_waiting(body) + parts * is_folded
    # Operations read a few of them in memory.
    most = plan.held + plan.held // machine.FEW
    while registers > 1 and registers * waiting > most and not is_chain:
        registers //= 2
    return registers


def _touched(plan: Plan, node: Node, body: list[Node]) -> tuple[list[Access], list[Access]]:
    """Accesses that a node reads and writes, element by element, in a pass over the row."""
    # Lanes of a lookup read its table wherever they have to, those of a row in their order.
    is_row = isinstance(node, Pick) and plan.is_of_row(node)
    read = node.operands[:1] if is_row else node.operands[isinstance(node, Pick) :]
    accesses = plan.read(node, read)
    # Values that an earlier pass over the row has left in memory.
    values = [x.value for x in read if isinstance(x, View)]
    earlier = {plan.made[value] for value in values if value in plan.made} - {*body}
    accesses += [plan.outs[maker] for maker in earlier if maker in plan.outs]
    if plan.kind(node) in ("inner", "total"):
        return accesses, []
    return accesses, [a for a in (plan.outs.get(node), plan.sums.get(node)) if a is not None]


def _is_of_edge(plan: Plan, node: Node) -> bool:
    """Whether a part of the row has one element, which is loaded for all lanes of some vectors."""
    if not isinstance(node, Guard):
        return False
    axis, inside = plan.row[-1].axis, node.operands[0]
    is_asked = axis in plan.guarded and node.box[axis] != (0, node.space[axis])
    return is_asked and isinstance(inside, View) and not inside.strides[axis]


def _can_be_taken(plan: Plan, access: Access) -> bool:
    """Whether vectors can be taken out of what lies between the elements.

    LLVM has instructions for permuting words. Without AVX-512 it searches for minutes for those
    that permute bytes.
    """
    if access.dtype.itemsize < machine.WORD_BYTES:
        return False
    return plan.space.is_apart(access)
