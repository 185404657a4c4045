"""Stacked matrices, written with primitives, and what their operations have in common.

The last two axes are the matrix, the others count matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from funcgrad import lowering as forms
from funcgrad.base.imports import load
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.dtypes import BOOL, complex_dtype, is_complex, real_dtype
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.contraction import Contract
from funcgrad.primitives.families import Recipe, places_in, shape_of, stacked_batch
from funcgrad.primitives.ordering import stacked
from funcgrad.primitives.reductions import ReduceAll
from funcgrad.primitives.shape import (
    BroadcastTo,
    Concatenate,
    ReduceSum,
    Reshape,
    Slice,
    Transpose,
    moveaxis_from_front,
    moveaxis_to_front,
    reshape,
)

_LETTERS = "abcdefghijklmnopqrstuvw"

# ---------------------------------------------------------------- matrices, written with primitives


def matmul(x: Value, y: Value) -> Value:
    """Product of stacked matrices with equal stacks."""
    return product(len(shape_of(x))).bind(x, y)


def product(ndim: int) -> Contract:
    """The primitive of `matmul`."""
    stack = _LETTERS[: ndim - 2]
    return Contract(stack + "xy", stack + "yz", stack + "xz")


def matrix_transpose(x: Value) -> Value:
    """Swap the last two axes."""
    ndim = len(shape_of(x))
    return Transpose((*range(ndim - 2), ndim - 1, ndim - 2)).bind(x)


def adjoint(x: Value) -> Value:
    """Conjugate transpose."""
    return matrix_transpose(conjugated(x))


def conjugated(x: Value) -> Value:
    return p.conj.bind(x) if is_complex(aval_of(x).dtype) else x


def real_of(x: Value) -> Value:
    return p.real.bind(x) if is_complex(aval_of(x).dtype) else x


def zero_of(x: Value) -> Any:
    return aval_of(x).dtype.type(0)


def where_held(mask: Any, x: Value) -> Value:
    """``x`` where a concrete or traced mask holds, else zero."""
    return p.select.bind(mask, x, zero_of(x))


def strictly_lower(x: Value) -> Value:
    rows, columns = shape_of(x)[-2:]
    return where_held(np.tri(rows, columns, -1, dtype=BOOL), x)


def upper(x: Value) -> Value:
    rows, columns = shape_of(x)[-2:]
    return where_held(~np.tri(rows, columns, -1, dtype=BOOL), x)


def diagonal_part(x: Value) -> Value:
    """``x`` with all elements off its diagonal zero."""
    return where_held(np.eye(*shape_of(x)[-2:], dtype=BOOL), x)


def diagonal(x: Value) -> Value:
    """The diagonal, along the last axis."""
    return ReduceSum((len(shape_of(x)) - 1,)).bind(diagonal_part(x))


def as_row(w: Value) -> Value:
    """A vector per matrix as a row, to multiply columns with."""
    shape = shape_of(w)
    return reshape(w, (*shape[:-1], 1, shape[-1]))


def as_column(w: Value) -> Value:
    """A vector per matrix as a column, to multiply rows with."""
    return reshape(w, (*shape_of(w), 1))


def hermitian_of_lower(x: Value) -> Value:
    """The Hermitian matrix whose lower triangle is that of ``x``; of the diagonal the real part."""
    lower = strictly_lower(x)
    diagonal = p.convert(real_of(diagonal_part(x)), aval_of(x).dtype)
    return p.add.bind(p.add.bind(lower, adjoint(lower)), diagonal)


def part(x: Value, rows: slice, columns: slice) -> Value:
    """A block of every matrix."""
    shape = shape_of(x)
    (r0, r1, _), (c0, c1, _) = rows.indices(shape[-2]), columns.indices(shape[-1])
    stack = shape[:-2]
    zeros = (0,) * len(stack)
    return Slice((*zeros, r0, c0), (*stack, r1, c1), (1,) * len(shape)).bind(x)


# ------------------------------------------------------------------------------------------- checks


def check_matrix(name: str, x: ShapedArray) -> None:
    if x.ndim < 2:
        raise ShapeError(f"{name} needs a matrix or a stack of matrices, got {x}.")
    if x.dtype.kind not in "fc":
        raise DtypeError(
            f"{name} needs a float or complex matrix, got {x}. Convert it with .astype(float)."
        )


def check_square(name: str, x: ShapedArray) -> None:
    check_matrix(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} needs square matrices (the last two axes equal), got {x}.")


_CHECKS = {"nn": check_square, "mn": check_matrix}
"""Checks of the first argument, by its axes."""


def check_system(name: str, a: ShapedArray, b: ShapedArray) -> None:
    check_square(name, a)
    if b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1] or b.dtype != a.dtype:
        raise ShapeError(
            f"{name}: for matrices {a} the right-hand sides must have shape "
            f"{(*a.shape[:-1], 'k')} and the same dtype, got {b}."
        )


def double(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that `numpy.linalg` computes in."""
    return np.dtype(np.complex128 if is_complex(dtype) else np.float64)


def by_numpy(
    names: Sequence[str],
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    n_stack: int,
    may_fail: bool = False,
) -> forms.Routine:
    """The form of an operation that is a generalised ufunc of `numpy.linalg`.

    Args:
        names: Its name, and those in other versions of NumPy.
        avals: Types of the arguments.
        outs: Types of the results.
        n_stack: Number of axes that count matrices.
        may_fail: Whether it fails for some matrices, such as singular ones.
    """
    n = len(avals)
    arrays = tuple(forms.Array(aval.shape, double(aval.dtype)) for aval in (*avals, *outs))
    numbers = tuple(range(len(arrays)))
    call = forms.UfuncCall(NUMPY_LOOPS, tuple(names), numbers, may_fail)
    return forms.Routine(arrays, numbers[n:], (call,), n_stack)


def is_small(*avals: ShapedArray) -> bool:
    """Whether there are kernels for matrices, the first argument, and what belongs to them."""
    a = avals[0]
    is_known = a.dtype.char in "fdFD" and max(a.shape[-2:]) <= forms.MOST_SMALL
    return is_known and all(math.prod(x.shape) for x in avals)


def by_kernel(
    name: str,
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    columns: int = 0,
    may_fail: bool = False,
    reads: Sequence[int] | None = None,
    **options: bool,
) -> forms.Routine:
    """The form of an operation on small matrices, of which the compiler has a kernel.

    Args:
        name: The kernel.
        avals: Types of the arguments, the matrices first.
        outs: Types of the results.
        columns: Number of right-hand sides.
        may_fail: Whether it fails for some matrices, such as singular ones.
        reads: The arguments that the kernel reads; by default all of them.
        options: Further arguments of `SmallCall`.
    """
    arrays = tuple(forms.Array(aval.shape, aval.dtype) for aval in (*avals, *outs))
    numbers = tuple(range(len(arrays)))
    results = numbers[len(avals) :]
    m, n = avals[0].shape[-2:]
    used = (*(numbers[: len(avals)] if reads is None else reads), *results)
    call = forms.SmallCall(name, used, (m, n, columns), may_fail, **options)
    return forms.Routine(arrays, results, (call,), avals[0].ndim - 2)


NUMPY_LOOPS = "numpy.linalg._umath_linalg"
BLOCK = 32
"""Columns that LAPACK's functions of reflections take together."""

INT32 = np.dtype(np.int32)


def by_columns(x: ShapedArray) -> tuple[int, ...]:
    """The axes of stacked matrices as LAPACK wants them: column by column."""
    return (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)


class Factorization(Primitive):
    """Function of one argument that maps over leading axes."""

    failure: ClassVar[str] = ""
    """Property of the matrix for which it fails."""

    def refusal(self, operand: int, value: int, position: int, *avals: Any, **_: Any) -> Exception:
        return np.linalg.LinAlgError(self.failure)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        out = self.bind(*args)
        return out, [0] * len(out) if self.multiple_results else 0


class System(Primitive):
    """A solution of equations, linear in the right-hand sides, its last argument."""

    def refusal(self, operand: int, value: int, position: int, *avals: Any, **_: Any) -> Exception:
        return np.linalg.LinAlgError("Singular matrix")

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        if any(d is not None for d in dims[:-1]):
            return self.bind(*stacked(args, dims)), 0
        # One matrix, many right-hand sides: they are more columns.
        b = args[-1]
        size, *shape = shape_of(b)
        wide = reshape(moveaxis_from_front(b, len(shape)), (*shape[:-1], shape[-1] * size))
        out = reshape(self.bind(*args[:-1], wide), (*shape, size))
        return moveaxis_to_front(out, len(shape)), 0


def per_matrix(function: Callable[..., Any], *stacks: Any) -> list[Any]:
    """Results of a function of single matrices, as a list in the order of the stack."""
    lead = stacks[0].shape[:-2]
    return [function(*(s[place] for s in stacks)) for place in places_in(lead)]


def scipy_linalg() -> Any:
    return load("scipy.linalg")


def identity_like(x: Value) -> Any:
    return np.eye(shape_of(x)[-1], dtype=aval_of(x).dtype)


def block(a: Value, b: Value, c: Value, d: Value) -> Value:
    """Stacked matrices of four blocks: ``[[a, b], [c, d]]``."""
    rows = Concatenate(len(shape_of(a)) - 1)
    return Concatenate(len(shape_of(a)) - 2).bind(rows.bind(a, b), rows.bind(c, d))


class ByMatrix(Primitive):
    """An operation on matrices that SciPy evaluates one after the other.

    Compiled programs do so, too, unless it is made of operations that compile (`natively`).

    All arguments have the same stack. Where one of them has an element that is not finite, results
    are nan (and 0 where they are integers).
    """

    signature: ClassVar[str]
    """Letters for the axes of arguments and results, such as ``"mm,mn->mn"``."""
    kinds: ClassVar[str] = ""
    """The dtype of each result: that of the first argument ("a", by default of all), its real or
    complex counterpart ("r", "c"), int32 ("i"), or that of an argument by its number."""
    takes_nan: ClassVar[bool] = False
    """Whether elements that are not finite are left to the evaluation."""
    batch = stacked_batch

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        signature = vars(cls).get("signature", "")
        if isinstance(signature, str):  # else it depends on parameters
            cls.multiple_results |= "," in signature.partition("->")[2]

    def lower(self, *avals: Any, **_: Any) -> Any:
        if type(self).natively is ByMatrix.natively:
            return forms.Extern()
        recipe = Recipe(*avals)
        found = self.abstract_eval(*avals)
        outs = found if self.multiple_results else [found]
        if not (avals[0].size and outs[0].size):
            zeros = [recipe(BroadcastTo(x.shape), np.zeros((), x.dtype)) for x in outs]
            return recipe.form(*zeros)
        flag = self._are_finite(recipe)
        safe = [_where(recipe, flag, x, self.harmless(x.aval)) for x in recipe.inputs]
        results = self.natively(recipe, *safe)
        return recipe.form(*(_where(recipe, flag, x, np.nan) for x in results))

    def harmless(self, aval: ShapedArray) -> Any:
        """A number or a matrix that takes the place of matrices that have nan."""
        return 0

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        """The results by operations that compile, if there are such.

        Args:
            recipe: Where they are written.
            inputs: The arguments, finite and not empty.
        """
        raise NotImplementedError

    def _are_finite(self, recipe: Recipe) -> Any:
        """For each element of the stack, whether all elements of its matrices are finite."""
        words = self.signature.split("->")[0].split(",")
        flag: Any = None
        for x, word in zip(recipe.inputs, words, strict=True):
            axes = tuple(range(x.aval.ndim - len(word), x.aval.ndim))
            one = recipe(ReduceAll(axes), recipe(p.isfinite, x))
            flag = one if flag is None else recipe(p.bitwise_and, flag, one)
        return flag

    def one(self, *matrices: Any) -> Any:
        """The results for one element of the stack."""
        raise NotImplementedError

    def refusal(self, operand: int, value: int, position: int, *avals: Any, **_: Any) -> Exception:
        return np.linalg.LinAlgError(f"{self.name} did not converge (LAPACK info={value})")

    def dtypes(self, *avals: ShapedArray) -> Sequence[np.dtype[Any]]:
        """The dtypes of the results."""
        own = avals[0].dtype
        known = {"a": own, "r": real_dtype(own), "c": complex_dtype(own), "i": INT32}
        kinds = self.kinds or "a" * (self.signature.partition("->")[2].count(",") + 1)
        return [avals[int(k)].dtype if k.isdigit() else known[k] for k in kinds]

    def lengths(self, avals: Sequence[ShapedArray]) -> dict[str, int]:
        """How long the axes are that the signature names."""
        found: dict[str, int] = {}
        words = self.signature.split("->")[0].split(",")
        if words[0] in _CHECKS:
            _CHECKS[words[0]](self.name, avals[0])
        stacks = {a.shape[: max(a.ndim - len(w), 0)] for a, w in zip(avals, words, strict=True)}
        for aval, word in zip(avals, words, strict=True):
            axes = aval.shape[aval.ndim - len(word) :]
            fits = len(axes) == len(word) and len(stacks) == 1
            for letter, length in zip(word, axes, strict=False):
                fits &= found.setdefault(letter, length) == length
            if not fits:
                types = ", ".join(map(str, avals))
                wanted = ", ".join(f"(..., {', '.join(w)})" for w in words)
                raise ShapeError(f"{self.name} needs arguments of shapes {wanted}, got {types}.")
        return found

    def abstract_eval(self, *avals: ShapedArray) -> Any:
        lengths = self.lengths(avals)
        first = self.signature.split("->")[0].split(",")[0]
        stack = avals[0].shape[: avals[0].ndim - len(first)]
        words = self.signature.split("->")[1].split(",")
        outs = [
            shaped((*stack, *(lengths[c] for c in word)), dtype)
            for word, dtype in zip(words, self.dtypes(*avals), strict=True)
        ]
        return outs if self.multiple_results else outs[0]

    def impl(self, *args: Any) -> Any:
        args = tuple(map(np.asarray, args))
        avals = self.abstract_eval(*map(aval_of, args))
        outs = [np.zeros(a.shape, a.dtype) for a in (avals if self.multiple_results else [avals])]
        words = self.signature.split("->")[0].split(",")
        ranks = [a.ndim - len(word) for a, word in zip(args, words, strict=True)]
        for place in places_in(args[0].shape[: ranks[0]]):
            self._fill([out[(*place, ...)] for out in outs], [a[place] for a in args])
        return outs if self.multiple_results else outs[0]

    def _fill(self, outs: Sequence[Any], matrices: Sequence[Any]) -> None:
        if not self.takes_nan and not all(np.isfinite(m).all() for m in matrices):
            for out in outs:
                out[...] = np.nan if out.dtype.kind in "fc" else 0
        elif matrices[0].size:
            for out, found in zip(outs, self.one(*matrices), strict=True):
                out[...] = found


def _where(recipe: Recipe, flag: Any, x: Any, other: Any) -> Any:
    """Matrices for which a flag of the stack holds, else others, or 0 if they are of integers."""
    shape, dtype = x.aval.shape, x.aval.dtype
    column = (*flag.aval.shape, *(1,) * (len(shape) - flag.aval.ndim))
    wide = recipe(BroadcastTo(shape), recipe(Reshape(column), flag))
    known = np.asarray(other if dtype.kind in "fc" else 0, dtype)
    return recipe(p.select, wide, x, recipe(BroadcastTo(shape), known) if known.ndim else known[()])


def assemble(recipe: Recipe, wi: Any, vectors: Any) -> Any:
    """Complex eigenvectors of real matrices, of which LAPACK keeps pairs as parts in two columns.

    Args:
        recipe: Where this is written.
        wi: Imaginary parts of the eigenvalues, of a pair the positive one first.
        vectors: Columns.
    """
    shape, dtype = vectors.aval.shape, vectors.aval.dtype
    ndim, n, zero = len(shape), shape[-1], dtype.type(0)
    row = recipe(BroadcastTo(shape), recipe(Reshape((*shape[:-2], 1, n)), wi))
    start, steps = (0,) * (ndim - 1), (1,) * ndim

    def rotated(k: int) -> Any:
        """Its columns, of which that at ``k`` is the first one."""
        head = recipe(Slice((*start, k), shape, steps), vectors)
        rest = recipe(Slice((*start, 0), (*shape[:-1], k), steps), vectors)
        return recipe(Concatenate(ndim - 1), head, rest)

    is_second = recipe(p.less, row, zero)
    re = recipe(p.select, is_second, rotated(n - 1), vectors)
    of_first = recipe(p.select, recipe(p.less, zero, row), rotated(1 % n), zero)
    im = recipe(p.select, is_second, recipe(p.neg, vectors), of_first)
    return recipe(p.from_parts, re, im)


class ByLapack(ByMatrix):
    """One function of LAPACK, of which the recipes of operations are made."""

    multiple_results = True
    takes_nan = True

    def form(
        self,
        name: str,
        first: ShapedArray,
        words: Sequence[str | int | forms.Ref],
        arrays: Sequence[forms.Array],
        results: Sequence[int],
    ) -> forms.Form:
        """A call for each element of the stack.

        Args:
            name: The function, as in `LapackCall`.
            first: Matrices of its dtype.
            words: Its arguments, of which the last one says whether it failed.
            arrays: As in `Routine`.
            results: As there.
        """
        call = forms.LapackCall(name, first.dtype, tuple(words), may_fail=True)
        return forms.Routine(tuple(arrays), tuple(results), (call,), first.ndim - 2)


def by_column(x: ShapedArray, start: int | None = None) -> forms.Array:
    """Memory of matrices as LAPACK has them: those of an input, or new ones."""
    return forms.Array(x.shape, x.dtype, by_columns(x), start=start)
