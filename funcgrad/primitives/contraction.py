"""Sums of products of two arrays, by labels: every matrix product there is.

``Contract("bij", "bjk", "bik")`` says it all: letters of both operands and the result are batch
axes, letters of both operands only are summed. Transposition permutes the three strings, batching
adds a fresh letter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from funcgrad.core.avals import Shape, ShapedArray, shaped
from funcgrad.core.primitive import BatchDim, Linear, Primitive, Value, is_linear, with_differential
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lowering import Contraction, Form
from funcgrad.primitives.elementwise import SumOfTerms, add

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _bilinear_differential(
    self: Primitive, primals: Sequence[Value], slots: Sequence[Linear | None]
) -> tuple[Any, Any, Any]:
    x, y = primals
    tx, ty = slots
    out = self.impl(x, y)
    if ty is None:
        return out, self, [tx, y]
    if tx is None:
        return out, self, [x, ty]
    return out, SumOfTerms((self, self)), [tx, y, x, ty]


@with_differential(_bilinear_differential)
def bilinear_jvp(
    self: Primitive, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Any, Any]:
    """JVP rule of a product of two arguments, linear in each."""
    x, y = primals
    tx, ty = tangents
    out = self.bind(x, y)
    if ty is None:
        return out, self.bind(tx, y)
    if tx is None:
        return out, self.bind(x, ty)
    return out, add.bind(self.bind(tx, y), self.bind(x, ty))


class Contract(Primitive):
    """``out[...] = sum over letters not in out of lhs[...] * rhs[...]``.

    Every letter stands in at least two of the three operands; none repeats within one.
    """

    lhs: str
    rhs: str
    out: str

    jvp = bilinear_jvp
    is_bilinear = True

    def impl(self, x: Any, y: Any) -> Any:
        plan = _matmul_plan(self.lhs, self.rhs, self.out)
        x, y = np.asarray(x), np.asarray(y)
        if plan is None or not x.size or not y.size:
            return np.einsum(f"{self.lhs},{self.rhs}->{self.out}", x, y)
        return plan(x, y)

    def abstract_eval(self, x: ShapedArray, y: ShapedArray) -> ShapedArray:
        if x.dtype != y.dtype:
            raise DtypeError(f"contract needs arguments of one dtype, got {x} and {y}.")
        sizes = self._sizes(x, y)
        return shaped(tuple(sizes[c] for c in self.out), x.dtype)

    def _sizes(self, x: ShapedArray, y: ShapedArray) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for labels, aval in ((self.lhs, x), (self.rhs, y)):
            if len(labels) != aval.ndim:
                raise ShapeError(
                    f"contract: labels {labels!r} need {len(labels)} axes, got {aval}."
                )
            for label, n in zip(labels, aval.shape, strict=True):
                if sizes.setdefault(label, n) != n:
                    raise ShapeError(
                        f"the contracted or batched axes of {x} and {y} differ in length: "
                        f"{sizes[label]} and {n} (axis {label!r} of {self._equation()})."
                    )
        return sizes

    def _equation(self) -> str:
        return f"{self.lhs},{self.rhs}->{self.out}"

    def transpose(self, ct: Any, x: Any, y: Any) -> Sequence[Any]:
        if is_linear(x):
            return Contract(self.out, self.rhs, self.lhs).bind(ct, y), None
        return None, Contract(self.lhs, self.out, self.rhs).bind(x, ct)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.with_lanes(dims[0] is not None, dims[1] is not None).bind(*args), 0

    def with_lanes(self, in_lhs: bool, in_rhs: bool) -> Contract:
        """The contraction of operands of which some have another axis in front."""
        used = self.lhs + self.rhs + self.out
        fresh = next(c for c in LETTERS if c not in used)
        lhs, rhs = fresh * in_lhs + self.lhs, fresh * in_rhs + self.rhs
        return Contract(lhs, rhs, fresh + self.out)

    def lower(self, x: ShapedArray, y: ShapedArray) -> Form:
        return Contraction(self.lhs, self.rhs, self.out)

    def params(self) -> dict[str, Any]:
        return {"labels": self._equation()}


class _MatmulPlan:
    """A contraction as permutations and reshapes around one ``np.matmul``."""

    def __init__(self, lhs: str, rhs: str, out: str) -> None:
        self.batch = [c for c in out if c in lhs and c in rhs]
        self.rows = [c for c in lhs if c not in rhs]
        self.columns = [c for c in rhs if c not in lhs]
        self.summed = [c for c in lhs if c in rhs and c not in out]
        self.lhs_order = _order([*self.batch, *self.rows, *self.summed], lhs)
        self.rhs_order = _order([*self.batch, *self.summed, *self.columns], rhs)
        self.out_order = _order(list(out), "".join([*self.batch, *self.rows, *self.columns]))
        self.is_number = not out
        groups = (self.rows, self.columns, self.summed)
        are_there = not self.batch or (self.rows and self.columns)  # matmul has no stacked vectors
        self.is_matmul = len(self.summed) == 1 and max(map(len, groups)) == 1 and bool(are_there)

    def __call__(self, x: Any, y: Any) -> Any:
        if self.lhs_order is not None:
            x = x.transpose(self.lhs_order)
        if self.rhs_order is not None:
            y = y.transpose(self.rhs_order)
        if self.is_matmul:
            out = np.matmul(x, y)
            return out if self.out_order is None else out.transpose(self.out_order)
        b, m = len(self.batch), len(self.batch) + len(self.rows)
        s = len(self.batch) + len(self.summed)
        batch: Shape = x.shape[:b]
        rows, columns = x.shape[b:m], y.shape[s:]
        k = math.prod(x.shape[m:])
        left = x.reshape((*batch, math.prod(rows), k))
        right = y.reshape((*batch, k, math.prod(columns)))
        out = np.matmul(left, right).reshape((*batch, *rows, *columns))
        if self.is_number:
            return out[()]
        return out if self.out_order is None else out.transpose(self.out_order)


def _order(wanted: list[str], labels: str) -> list[int] | None:
    """The order in which axes are wanted, or ``None`` if they are in it."""
    order = [labels.index(c) for c in wanted]
    return None if order == list(range(len(labels))) else order


@lru_cache(4096)
def _matmul_plan(lhs: str, rhs: str, out: str) -> _MatmulPlan | None:
    return _MatmulPlan(lhs, rhs, out)
