"""The table of cases: one or more rows for every first-order primitive.

A row names a primitive, how its arguments are drawn, the dtypes it is tried with, the arguments in
which it is linear and the highest order of derivatives to check. The laws of `test_laws.py` hold
for every row. Rows with ties, zeros and other singular places have order 0: what happens there is
a convention, tested in the files of the families.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import scipy.special

from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Linear, Primitive
from funcgrad.lowering import Slide
from funcgrad.primitives import bits, gamma_functions, incomplete, log_incomplete
from funcgrad.primitives import elementwise as el
from funcgrad.primitives import special as sp
from funcgrad.primitives.banded import (
    BandedCholesky,
    BandedFactor,
    BandedSolve,
    EighTridiagonal,
    FactoredBandedSolve,
    PositiveBandedSolve,
    ToeplitzSolve,
)
from funcgrad.primitives.bits import Bitcast, gcd_of, population_count
from funcgrad.primitives.collectives import (
    AllGather,
    AllToAll,
    AxisIndex,
    PMax,
    PMin,
    PPermute,
    PSum,
    ReduceScatter,
)
from funcgrad.primitives.contraction import Contract
from funcgrad.primitives.convolution import Convolution
from funcgrad.primitives.creation import Full, Iota, Unset
from funcgrad.primitives.cumulative import (
    Cumlogsumexp,
    Cummax,
    Cummin,
    Cumprod,
    Cumsum,
    LinearRecurrence,
)
from funcgrad.primitives.deviance import binet, binet_slope, deviance
from funcgrad.primitives.elimination import FactoredSparseSolve, SparseFactor, Tables
from funcgrad.primitives.fft import Fft, Irfft, PairedFft, Rfft
from funcgrad.primitives.gamma_samples import (
    gamma_sample,
    gamma_slope,
    log_gamma_sample,
    log_gamma_slope,
)
from funcgrad.primitives.indexing import (
    Demand,
    DynamicSlice,
    DynamicUpdateSlice,
    Gather,
    ScatterAdd,
    ScatterMax,
    ScatterMin,
    ScatterMul,
    ScatterSet,
)
from funcgrad.primitives.linalg import (
    Cholesky,
    Cofactors,
    Det,
    Eig,
    Eigh,
    Eigvals,
    Eigvalsh,
    FactoredSolve,
    Inv,
    LuFactor,
    Permutation,
    Pinv,
    Qr,
    RawQr,
    SingularValues,
    Slogdet,
    Solve,
    Svd,
    TriangularSolve,
)
from funcgrad.primitives.matrices import adjoint, matmul
from funcgrad.primitives.matrix_functions import (
    Frechet,
    MatrixFunction,
    Signm,
    Sqrtm,
    Sylvester,
)
from funcgrad.primitives.ordering import ArgSort, SearchSorted
from funcgrad.primitives.pencils import (
    Balance,
    ColumnPivots,
    ContinuousRiccati,
    Cossin,
    DiscreteRiccati,
    GeneralizedEig,
    Ldl,
    NullSpace,
    TwoSidedEig,
)
from funcgrad.primitives.random import erfinv_giles, threefry2x32
from funcgrad.primitives.reductions import (
    ArgMax,
    ArgMin,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
)
from funcgrad.primitives.schur import (
    GeneralizedSchur,
    Hessenberg,
    PackedHessenberg,
    PackedTridiagonal,
    Schur,
)
from funcgrad.primitives.shape import (
    BroadcastTo,
    Concatenate,
    Pad,
    ReduceSum,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)
from funcgrad.primitives.sorting import Sort, TopK
from funcgrad.primitives.sparse import (
    Constants,
    MatrixProduct,
    Pattern,
    SampledProduct,
    SparseProduct,
)
from funcgrad.primitives.special_tables import primitive_of
from funcgrad.primitives.windows import (
    WindowChosen,
    WindowFind,
    WindowMax,
    WindowMin,
    WindowSum,
)
from funcgrad.scipy.sparse.arrays import SparseArray
from funcgrad.scipy.sparse.elimination import elimination_table
from funcgrad.transforms.batch import batch_flat
from tests.scipy.record_special import ROWS, Row

Make = Callable[[np.random.Generator, np.dtype], Any]
"""Draws one argument; inexact ones in the dtype that is given."""


def uniform(*shape: int, low: float = -1.0, high: float = 1.0) -> Make:
    """Real parts, and imaginary parts of complex dtypes, in an interval."""

    def make(rng: np.random.Generator, dtype: np.dtype) -> Any:
        x = rng.uniform(low, high, shape)
        if dtype.kind == "c":
            x = x + 1j * rng.uniform(low, high, shape)
        return np.asarray(x, dtype)

    return make


def real_uniform(*shape: int, low: float = -1.0, high: float = 1.0) -> Make:
    """Real also where the row is tried with complex dtypes."""
    return lambda rng, dtype: np.asarray(
        rng.uniform(low, high, shape), np.empty(0, dtype).real.dtype
    )


def nonzero(*shape: int, least: float = 0.3, most: float = 1.5) -> Make:
    """Of both signs, away from zero."""

    def make(rng: np.random.Generator, dtype: np.dtype) -> Any:
        size = rng.uniform(least, most, shape)
        if dtype.kind == "c":
            return np.asarray(size * np.exp(2j * np.pi * rng.uniform(size=shape)), dtype)
        return np.asarray(size * rng.choice([-1.0, 1.0], shape), dtype)

    return make


def distinct(*shape: int) -> Make:
    """Numbers in random order that differ by much more than a step of finite differences."""

    def make(rng: np.random.Generator, dtype: np.dtype) -> Any:
        n = int(np.prod(shape))
        x = (rng.permutation(n) - n / 2 + rng.uniform(0.1, 0.4, n)) * 0.25
        x = x + 1j * rng.uniform(size=n) if dtype.kind == "c" else x
        return np.asarray(x.reshape(shape), dtype)

    return make


def ints(*shape: int, low: int = -4, high: int = 5, dtype: Any = np.int64) -> Make:
    """Integers in ``low .. high - 1``, whatever the row's dtype."""
    return lambda rng, _: np.asarray(rng.integers(low, high, shape), dtype)


def bools(*shape: int) -> Make:
    return lambda rng, _: np.asarray(rng.integers(0, 2, shape), bool)


def fixed(values: Any) -> Make:
    """These values; floating ones in the row's dtype."""
    array = np.asarray(values)
    return lambda _, dtype: array.astype(dtype) if array.dtype.kind in "fc" else array.copy()


def constant(value: float) -> Callable[..., Make]:
    return lambda *shape: fixed(np.full(shape, value))


def permutation(n: int) -> Make:
    return lambda rng, _: rng.permutation(n)


def ascending(*shape: int) -> Make:
    return lambda rng, dtype: np.sort(uniform(*shape)(rng, dtype), -1)


def regular(*shape: int) -> Make:
    """Matrices far from singular, square or not."""
    return lambda rng, dtype: uniform(*shape)(rng, dtype) + 2 * np.eye(*shape[-2:], dtype=dtype)


def hermitian(*shape: int) -> Make:
    """Hermitian matrices with eigenvalues that are far apart."""

    def make(rng: np.random.Generator, dtype: np.dtype) -> Any:
        x = uniform(*shape)(rng, dtype)
        spread = np.diag(3 * rng.permutation(shape[-1])).astype(dtype)
        return (x + np.conj(x.swapaxes(-1, -2))) / 2 + spread

    return make


def positive_definite(*shape: int) -> Make:
    def make(rng: np.random.Generator, dtype: np.dtype) -> Any:
        x = regular(*shape)(rng, dtype)
        return x @ np.conj(x.swapaxes(-1, -2))

    return make


Group = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One row.

    Args:
        primitive: With its static parameters.
        args: How each argument is drawn.
        label: Distinguishes rows of one primitive.
        dtypes: Characters of the dtypes to try: d f (floating), D F (complex).
        order: Highest order of derivatives to check.
        linear: Groups of arguments in which the operation is linear jointly.
        differentiable: The arguments that have derivatives, by default all inexact ones. That the
            others have none is declared by the primitive and tested.
        observe: What is compared instead of the results: functions of them that do not depend on
            choices, such as the phase of an eigenvector. Written with primitives.
        rtol: Tolerance of finite differences.
        compiled_daily: The dtypes in which every run compiles derivatives; the nightly run compiles
            those in all others, too.
    """

    primitive: Primitive
    args: tuple[Make, ...]
    label: str = ""
    dtypes: str = "df"
    order: int = 2
    linear: tuple[Group, ...] = ()
    differentiable: Group | None = None
    observe: Callable[..., list[Any]] | None = None
    rtol: float = 1e-6
    compiled_daily: str = "dfDF"

    @property
    def name(self) -> str:
        return f"{self.primitive.name}-{self.label}" if self.label else self.primitive.name

    def draw(self, dtype: str = "d", seed: int = 0) -> list[Any]:
        """Arguments; those of different seeds agree in types."""
        rng = np.random.default_rng([seed, *map(ord, self.name)])
        return [make(rng, np.dtype(dtype)) for make in self.args]


FIRST: tuple[Group, ...] = ((0,),)
SECOND: tuple[Group, ...] = ((1,),)
EACH: tuple[Group, ...] = ((0,), (1,))
JOINTLY: tuple[Group, ...] = ((0, 1), (0,), (1,))


def one(
    primitive: Primitive, low: float, high: float, dtypes: str = "df", **options: Any
) -> list[Case]:
    """Rows of a function of one argument: a matrix, a scalar, no elements, one element."""

    def row(label: str, *shape: int, **more: Any) -> Case:
        args = (uniform(*shape, low=low, high=high),)
        return Case(primitive, args, label, **{"dtypes": dtypes, **options, **more})

    return [
        row("matrix", 2, 3),
        row("scalar", dtypes="d", order=min(1, options.get("order", 1))),
        row("empty", 2, 0, dtypes="d", order=min(1, options.get("order", 1))),
        row("single", 1, 1, dtypes="d", order=min(1, options.get("order", 1))),
    ]


def two(
    primitive: Primitive,
    x: Callable[..., Make],
    y: Callable[..., Make],
    label: str = "",
    **options: Any,
) -> list[Case]:
    """Rows of a function of two arguments: equal shapes, broadcasting, a scalar, no elements."""
    light = {**options, "dtypes": "d", "order": min(1, options.get("order", 1))}
    label = f"{label}-" if label else ""
    return [
        Case(primitive, (x(2, 3), y(2, 3)), label + "matrix", **options),
        Case(primitive, (x(2, 1), y(3)), label + "broadcast", **options),
        Case(primitive, (x(), y(3)), label + "scalar", **light),
        Case(primitive, (x(0, 2), y(2)), label + "empty", **light),
    ]


def between(low: float, high: float) -> Callable[..., Make]:
    return lambda *shape: uniform(*shape, low=low, high=high)


ALL = "dfDF"


def integer_rows(primitive: Primitive, n: int, low: int = -4, high: int = 5) -> list[Case]:
    """Rows of exact arguments, which have no derivatives."""
    rows = []
    for dtype in (np.int64, np.int32, np.uint8):
        start = max(low, 0) if dtype is np.uint8 else low
        args = tuple(ints(2, 3, low=start, high=high, dtype=dtype) for _ in range(n))
        rows.append(Case(primitive, args, np.dtype(dtype).name, "d", 0))
    return rows


def bool_row(primitive: Primitive, n: int) -> Case:
    return Case(primitive, (bools(2, 3),) * n, "bool", "d", 0)


def zeros_of_tangents() -> list[Case]:
    """Tangents of 0 and coefficients that would spoil them."""
    t = fixed([0.0, 0.0, 0.0, 2.0, 2.0, np.nan, 0.0])
    c = fixed([np.inf, np.nan, 0.0, 0.0, np.inf, 1.0, 3.0])
    return [
        Case(p, args, label, "dfDF", 0)
        for p in (el.scale, el.unscale, el.pair)
        for label, args in (("zeros", (t, c)), ("zeros-exchanged", (c, t)))
    ]


ARITHMETIC = [
    *two(el.add, uniform, uniform, dtypes=ALL, linear=JOINTLY),
    *two(el.sub, uniform, uniform, dtypes=ALL, linear=JOINTLY),
    *two(el.mul, uniform, uniform, dtypes=ALL, linear=EACH),
    *two(el.div, uniform, nonzero, dtypes=ALL, linear=FIRST),
    *two(el.scale, uniform, uniform, dtypes=ALL, linear=FIRST),
    *two(el.unscale, uniform, nonzero, dtypes=ALL, linear=FIRST),
    *two(el.pair, uniform, uniform, dtypes=ALL, linear=EACH),
    Case(
        el.SumOfTerms((el.unscale, el.scale)),
        (uniform(2, 3), nonzero(3), uniform(2, 1), uniform(3)),
        linear=((0, 2), (0,), (2,)),
    ),
    *zeros_of_tangents(),
    *one(el.neg, -1, 1, ALL, linear=FIRST),
    *two(el.floor_divide, uniform, nonzero, order=1),
    *two(el.remainder, uniform, between(0.3, 0.5)),
    *two(el.fmod, uniform, between(0.3, 0.5)),
    *two(el.power, between(0.3, 2), uniform, dtypes="df"),
    *two(el.plain_power, between(0.3, 2), uniform, dtypes="df"),
    Case(el.power, (uniform(2, 3, low=0.5, high=2), uniform(2, 3)), "complex", "DF"),
    *two(el.maximum, distinct, nonzero),
    *two(el.minimum, distinct, nonzero),
    *two(el.arctan2, nonzero, nonzero),
    *two(el.hypot, nonzero, nonzero),
    *two(el.copysign, nonzero, nonzero),
    *two(bits.nextafter, uniform, uniform, order=0),
    *(row for p in (el.add, el.sub, el.mul, el.maximum, el.minimum) for row in integer_rows(p, 2)),
    *(row for p in (el.floor_divide, el.remainder) for row in integer_rows(p, 2, low=1)),
    *integer_rows(el.power, 2, low=0),
    *integer_rows(el.neg, 1),
    *(bool_row(p, 2) for p in (el.add, el.mul, el.maximum, el.minimum)),
    *(Case(el.IntegerPower(n), (nonzero(2, 3),), str(n), ALL) for n in (-2, -1, 0, 1, 2, 3, 4, 7)),
]

COMPARISONS = [
    *(
        row
        for p in (el.equal, el.not_equal, el.less, el.less_equal, el.greater, el.greater_equal)
        for row in (
            Case(
                p, (fixed([0.0, 1.0, 2.0, np.nan]), fixed([1.0, 1.0, 1.0, np.nan])), "ties", "df", 0
            ),
            *integer_rows(p, 2),
            bool_row(p, 2),
        )
    ),
    *(
        row
        for p in (el.bitwise_and, el.bitwise_or, el.bitwise_xor)
        for row in (*integer_rows(p, 2), bool_row(p, 2))
    ),
    *integer_rows(el.bitwise_not, 1),
    bool_row(el.bitwise_not, 1),
    *integer_rows(el.left_shift, 2, low=0),
    *integer_rows(el.right_shift, 2, low=0),
    Case(
        el.select,
        (bools(2, 3), uniform(2, 3), uniform(2, 3)),
        "matrix",
        ALL,
        linear=((1, 2), (1,), (2,)),
    ),
    Case(
        el.select,
        (bools(3), uniform(2, 1), uniform()),
        "broadcast",
        ALL,
        linear=((1, 2), (1,), (2,)),
    ),
    Case(el.select, (bools(2, 3), ints(2, 3), ints(2, 3)), "int", "d", 0),
]

EDGES = [0.0, -0.0, 1.0, -1.5, 2.5, -2.5, np.inf, -np.inf, np.nan]

ROUNDING = [
    *(
        row
        for p in (el.sign, el.floor, el.ceil, el.trunc, el.rint)
        for row in (*one(p, 0.1, 0.4, order=1), Case(p, (fixed(EDGES),), "edges", "df", 0))
    ),
    *integer_rows(el.sign, 1),
    Case(el.sign, (nonzero(3),), "complex", "DF", 0),
    Case(el.rint, (nonzero(3),), "complex", "DF", 0),
    *(
        Case(p, (fixed(EDGES),), "edges", "df", 0)
        for p in (el.isnan, el.isinf, el.isfinite, el.signbit)
    ),
    *(Case(p, (fixed(EDGES),), "complex", "DF", 0) for p in (el.isnan, el.isinf, el.isfinite)),
]

_EXACT_CASTS = ("bool", "int32", "int64", "uint8")
CONVERSIONS = [
    *(
        Case(
            el.Convert(np.dtype(to)),
            (uniform(2, 3),),
            f"to-{np.dtype(to).name}",
            "df",
            order,
            FIRST,
        )
        for to, order in (("d", 1), ("f", 0), ("D", 1), ("F", 0))
    ),
    *(
        Case(
            el.Convert(np.dtype(to)),
            (uniform(2, 3),),
            f"complex-to-{np.dtype(to).name}",
            "DF",
            order,
            FIRST,
        )
        for to, order in (("d", 1), ("f", 0), ("D", 1), ("F", 0))
    ),
    *(
        Case(el.Convert(np.dtype(to)), (uniform(2, 3, low=0, high=9),), f"to-{to}", "df", 0)
        for to in _EXACT_CASTS
    ),
    *(
        Case(
            el.Convert(np.dtype(to)),
            (ints(2, 3, low=0, dtype=source),),
            f"{source}-to-{to}",
            "d",
            0,
        )
        for source in _EXACT_CASTS
        for to in (*_EXACT_CASTS, "float32", "float64", "complex128")
    ),
    Case(el.real, (uniform(2, 3),), "", "DF", 1, FIRST),
    Case(el.imag, (uniform(2, 3),), "", "DF", 1, FIRST),
    Case(el.conj, (uniform(2, 3),), "", "DF", 1, FIRST),
    Case(el.from_parts, (uniform(2, 3), uniform(3)), "", "df", 1, ((0, 1),)),
    Case(el.absolute, (nonzero(2, 3),), "", ALL),
    *integer_rows(el.absolute, 1),
    *one(el.stop_gradient, -1, 1, ALL, order=0),
    Case(el.relu, (nonzero(2, 3),)),
    *integer_rows(el.relu, 1),
]

ELEMENTARY = [
    *one(el.exp, -1, 1, ALL),
    *one(el.exp2, -1, 1),
    *one(el.expm1, -1, 1, ALL),
    *one(el.log, 0.5, 2, ALL),
    *one(el.log2, 0.5, 2),
    *one(el.log10, 0.5, 2),
    *one(el.log1p, -0.5, 1, ALL),
    *one(el.sqrt, 0.5, 2, ALL),
    *one(el.rsqrt, 0.5, 2, ALL),
    *one(el.cbrt, 0.5, 2),
    Case(el.complex_reciprocal, (nonzero(2, 3),), "", "DF"),
    *one(el.sin, -2, 2, ALL),
    *one(el.cos, -2, 2, ALL),
    *one(el.tan, -1, 1, ALL),
    *one(el.arcsin, -0.8, 0.8, ALL),
    *one(el.arccos, -0.8, 0.8, ALL),
    *one(el.arctan, -0.8, 0.8, ALL),
    *one(el.sinh, -1, 1, ALL),
    *one(el.cosh, -1, 1, ALL),
    *one(el.tanh, -1, 1, ALL),
    *one(el.arcsinh, -1, 1),
    *one(el.arccosh, 1.3, 3),
    *one(el.arctanh, -0.8, 0.8, ALL),
    *one(el.logistic, -3, 3, ALL),
]


def linear_row(primitive: Primitive, *shape: int, label: str = "") -> Case:
    return Case(primitive, (uniform(*shape),), label, ALL, 1, FIRST)


def with_exact(row: Case) -> list[Case]:
    """A row, and the same shapes with integers and bools."""
    shapes = [make(np.random.default_rng(0), np.dtype("d")).shape for make in row.args]
    label = f"{row.label}-" if row.label else ""
    return [
        row,
        Case(row.primitive, tuple(ints(*s) for s in shapes), label + "int", "d", 0),
        Case(row.primitive, tuple(bools(*s) for s in shapes), label + "bool", "d", 0),
    ]


SHAPES = [
    *with_exact(linear_row(Reshape((3, 2)), 2, 3)),
    linear_row(Reshape(()), 1, 1, label="to-scalar"),
    linear_row(Reshape((0, 5)), 2, 0, label="empty"),
    *with_exact(linear_row(Transpose((2, 0, 1)), 2, 3, 4)),
    linear_row(Transpose(()), label="scalar"),
    linear_row(Transpose((1, 0)), 0, 3, label="empty"),
    *with_exact(linear_row(BroadcastTo((4, 2, 3)), 2, 1)),
    linear_row(BroadcastTo((2, 3)), label="scalar"),
    linear_row(BroadcastTo((0, 3)), 1, 3, label="empty"),
    *with_exact(linear_row(ReduceSum((0, 2)), 2, 3, 4))[:2],
    linear_row(ReduceSum((1,)), 3, 5, label="rows"),
    linear_row(ReduceSum((0,)), 3, 5, label="columns"),
    linear_row(ReduceSum(()), 2, 3, label="no-axes"),
    linear_row(ReduceSum((1,)), 3, 0, label="empty"),
    *with_exact(linear_row(Slice((1, 0), (4, 3), (2, 1)), 5, 3)),
    linear_row(Slice((2, 0), (2, 3), (1, 2)), 5, 3, label="empty"),
    *with_exact(linear_row(Reverse((0, 2)), 2, 3, 4)),
    linear_row(Reverse((0,)), 0, label="empty"),
    Case(Pad((1, 0), (2, 1), (0, 2)), (uniform(3, 2), uniform()), "", ALL, 1, JOINTLY),
    Case(Pad((-1, 1), (1, -2), (0, 0)), (uniform(3, 4), uniform()), "cut", ALL, 1, JOINTLY),
    Case(Pad((-2,), (-3,), (1,)), (uniform(5), uniform()), "cut-interior", "d", 1, JOINTLY),
    Case(Pad((2, 0), (1, 0), (1, 0)), (uniform(0, 3), uniform()), "empty", "d", 1, JOINTLY),
    Case(Pad((1,), (1,), (1,)), (ints(3), ints()), "int", "d", 0),
    Case(Pad((1,), (1,), (0,)), (bools(3), bools()), "bool", "d", 0),
    Case(
        Concatenate(1), (uniform(2, 3), uniform(2, 1), uniform(2, 0)), "", ALL, 1, ((0, 1, 2), (1,))
    ),
    Case(Concatenate(0), (uniform(2),), "one", "d", 1, FIRST),
    Case(Concatenate(0), (ints(2), ints(3)), "int", "d", 0),
]

CREATION = [
    linear_row(Full((2, 3))),
    linear_row(Full((0,)), label="empty"),
    Case(Full((2,)), (ints(),), "int", "d", 0),
    Case(Iota((2, 3), 1, np.dtype(np.int32)), (), "int", "d", 0),
    Case(Iota((4,), 0, np.dtype(np.float64)), (), "float", "d", 0),
    Case(Unset((0, 3), np.dtype(np.float64)), (), "without elements", "d", 0),
]

REDUCTIONS = [
    *(
        row
        for kind in (ReduceMax, ReduceMin)
        for row in (
            Case(kind((1,)), (distinct(3, 4),), "rows"),
            Case(kind((0, 2)), (distinct(2, 3, 2),), "two-axes"),
            Case(kind((0,)), (distinct(1),), "single"),
            Case(kind((0,)), (fixed([[1.0, np.nan, 2.0], [1.0, 0.0, np.inf]]),), "edges", "df", 0),
            Case(kind((1,)), (uniform(0, 3),), "empty", "d", 1),
            Case(kind((0,)), (ints(4, 3),), "int", "d", 0),
            Case(kind((0,)), (bools(4, 3),), "bool", "d", 0),
        )
    ),
    Case(ReduceProd((1,)), (nonzero(3, 4),), "rows", ALL),
    Case(ReduceProd((0, 2)), (nonzero(2, 3, 2),), "two-axes"),
    Case(
        ReduceProd((0,)),
        (fixed([[0.0, 2.0, 0.0], [3.0, 0.0, 0.0], [2.0, 5.0, 1.0]]),),
        "zeros",
        "df",
    ),
    Case(ReduceProd((0,)), (uniform(0, 3),), "empty", "d", 1),
    Case(ReduceProd((0,)), (uniform(1),), "single", "d", 1),
    Case(ReduceProd((0,)), (ints(4, 3),), "int", "d", 0),
    *(
        row
        for kind in (ReduceAny, ReduceAll)
        for row in (
            Case(kind((0,)), (bools(4, 3),), "columns", "d", 0),
            Case(kind((0, 1)), (bools(0, 3),), "empty", "d", 0),
        )
    ),
    *(
        row
        for kind in (ArgMax, ArgMin)
        for row in (
            Case(kind(1), (distinct(3, 4),), "rows", "df", 1),
            Case(kind(0), (fixed([1.0, 0.0, 1.0, 0.0, np.nan]),), "edges", "df", 0),
            Case(kind(0), (ints(5, 2),), "int", "d", 0),
        )
    ),
]

SLIDES = {
    "pairs": ((Slide(2, 2, 2), Slide(3, 2, 1)), (4, 4)),
    "around": ((Slide(3, 3, 1, 1, 1),), (3,)),
    "dilated": ((Slide(2, 2, 1, 2, 1), Slide(2, 2, 2, 1)), (3, 4)),
    "spread": ((Slide(6, 3, 1, 1, 1, 2),), (3,)),
    "phases": ((Slide(4, 4, 2, 1, 2, 3),), (3,)),
    "backward": ((Slide(4, 2, 1, -1),), (3,)),
    "long": ((Slide(4, 40, 1, 1, 3),), (40,)),
    "scalar": ((), ()),
    "no-windows": ((Slide(0, 3),), (2,)),
    "no-elements": ((Slide(2, 1, 1, 1, 1),), (0,)),
}

WINDOWS = [
    *(
        Case(WindowSum(slides), (uniform(*shape),), label, ALL, 2, FIRST)
        for label, (slides, shape) in SLIDES.items()
    ),
    *(
        row
        for kind in (WindowMax, WindowMin)
        for row in (
            *(
                Case(kind(slides), (distinct(*shape),), label, "df", 2 if label != "long" else 1)
                for label, (slides, shape) in SLIDES.items()
                if label not in ("spread", "phases", "no-elements")
            ),
            Case(kind((Slide(2, 2, 2),)), (fixed([1.0, 1.0, np.nan, 2.0]),), "edges", "df", 0),
            Case(kind((Slide(2, 2, 2, 1, 1),)), (ints(4),), "int", "d", 0),
            Case(kind((Slide(2, 2, 2, 1, 1),)), (bools(4),), "bool", "d", 0),
        )
    ),
    Case(WindowSum((Slide(2, 2, 2),)), (ints(4),), "int", "d", 0),
    *(
        Case(WindowFind(slides, "{lowest}"), (x, y), label, "df", 1)
        for label, slides, x, y in (
            ("first", (Slide(2, 2, 2),), fixed([1.0, 1.0, np.nan, 2.0]), fixed([1.0, np.nan])),
            ("long", (Slide(1, 40),), fixed(np.arange(40.0) // 3), fixed([7.0])),
            ("around", (Slide(2, 3, 2, 1, 1),), fixed([1.0, -np.inf, 5.0]), fixed([1.0, 5.0])),
        )
    ),
    *(
        Case(
            WindowChosen(slides, is_backward),
            (uniform(*shape), ints(*numbers, low=0, high=4, dtype=np.int32)),
            label,
            ALL,
            2,
            FIRST,
        )
        for label, slides, shape, numbers, is_backward in (
            ("pairs", (Slide(2, 2, 2), Slide(3, 2)), (4, 4), (2, 3), False),
            ("spread", (Slide(4, 2, 1, -1, 0, 2), Slide(4, 2, 1, -1)), (2, 3), (2, 3), True),
            ("long", (Slide(3, 40, 1, 1, 3),), (40,), (3,), False),
            ("scalar", (), (), (), False),
        )
    ),
]

CONTRACTIONS = [
    Case(Contract("ij", "jk", "ik"), (uniform(2, 3), uniform(3, 4)), "matmul", ALL, 2, EACH),
    Case(
        Contract("bij", "kjb", "bki"), (uniform(2, 3, 4), uniform(2, 4, 2)), "batched", ALL, 2, EACH
    ),
    *(
        Case(
            Convolution(lhs, rhs, out, tuple(zip("xy", slides, strict=False))),
            (uniform(*x), uniform(*y)),
            label,
            dtypes,
            order,
            EACH,
        )
        for label, lhs, rhs, out, slides, x, y, dtypes, order in (
            ("plain", "ncx", "ocx", "nox", (Slide(4, 2),), (2, 2, 5), (3, 2, 2), ALL, 2),
            ("last", "xnc", "xco", "xno", (Slide(3, 3, 2, 1, 1),), (5, 1, 2), (3, 2, 2), ALL, 2),
            ("full", "x", "x", "x", (Slide(6, 3, 1, -1),), (4,), (3,), ALL, 2),
            ("correlate", "x", "x", "x", (Slide(5, 3, 1, 1, 2),), (4,), (3,), "df", 2),
            ("turned", "bx", "bx", "bx", (Slide(5, 2, -1, 1, -4),), (2, 3), (2, 2), "d", 2),
            ("beyond", "x", "x", "x", (Slide(9, 2, 1, -1, 5),), (2,), (2,), "d", 2),
            ("valid", "x", "x", "x", (Slide(3, 2, 1, -1, -1),), (4,), (2,), ALL, 2),
            (
                "spread",
                "ncx",
                "ocx",
                "nox",
                (Slide(5, 2, 1, 1, 1, 3),),
                (1, 2, 2),
                (1, 2, 2),
                "df",
                2,
            ),
            (
                "phases",
                "ncx",
                "ocx",
                "nox",
                (Slide(5, 3, 2, 2, 3, 4),),
                (1, 1, 3),
                (2, 1, 3),
                "df",
                2,
            ),
            (
                "backward",
                "ncx",
                "ocx",
                "nox",
                (Slide(3, 2, -1, 2, 0, 1),),
                (1, 1, 3),
                (2, 1, 2),
                "d",
                2,
            ),
            ("groups", "ngcx", "gocx", "ngox", (Slide(2, 2),), (2, 2, 1, 3), (2, 1, 1, 2), "df", 2),
            ("cut", "ncx", "ocx", "nox", (Slide(2, 2, 1, 1, -1),), (1, 1, 5), (1, 1, 2), "d", 2),
            (
                "planes",
                "ncxy",
                "ocxy",
                "noxy",
                (Slide(2, 2), Slide(3, 2, 1, 1, 1)),
                (1, 2, 3, 2),
                (2, 2, 2, 2),
                "df",
                2,
            ),
            ("points", "nc", "oc", "no", (), (2, 3), (2, 3), "d", 1),
            ("empty", "ncx", "ocx", "nox", (Slide(0, 4),), (1, 1, 2), (1, 1, 4), "d", 1),
            (
                "no-elements",
                "ncx",
                "ocx",
                "nox",
                (Slide(2, 2, 1, 1, 2),),
                (1, 1, 0),
                (1, 1, 2),
                "d",
                1,
            ),
            ("no-batch", "ncx", "ocx", "nox", (Slide(3, 2),), (0, 1, 4), (1, 1, 2), "d", 1),
            # Enough work for kernels that read windows where they are.
            ("rows", "ncx", "ocx", "nox", (Slide(20, 3, 1, 1, 1),), (2, 7, 20), (9, 7, 3), "df", 1),
            (
                "strides",
                "nxc",
                "xco",
                "nxo",
                (Slide(19, 3, 2, 2, 1),),
                (2, 40, 3),
                (3, 3, 13),
                "df",
                1,
            ),
        )
    ),
    Case(
        Convolution("ncx", "ocx", "nox", (("x", Slide(3, 2)),)),
        (ints(2, 2, 4), ints(3, 2, 2)),
        "int",
        "d",
        0,
    ),
    Case(Contract("i", "i", ""), (uniform(5), uniform(5)), "dot", ALL, 2, EACH),
    Case(Contract("i", "j", "ij"), (uniform(2), uniform(3)), "outer", ALL, 2, EACH),
    Case(Contract("ij", "j", "i"), (uniform(2, 3), uniform(3)), "matvec", ALL, 2, EACH),
    Case(Contract("ij", "ij", "ij"), (uniform(2, 3), uniform(2, 3)), "product", "d", 2, EACH),
    Case(Contract("", "i", "i"), (uniform(), uniform(3)), "scalar", "d", 2, EACH),
    Case(Contract("ij", "jk", "ik"), (uniform(2, 0), uniform(0, 4)), "empty-sum", "d", 1, EACH),
    Case(Contract("ij", "jk", "ik"), (uniform(0, 3), uniform(3, 4)), "empty", "d", 1, EACH),
    Case(Contract("ij", "jk", "ik"), (ints(2, 3), ints(3, 4)), "int", "d", 0),
]


def scatter_rows(kind: Any, linear: tuple[Group, ...], numbers: Callable[..., Make]) -> list[Case]:
    """The same places, read by `Gather`, for every way to combine."""
    every = {"dtypes": "df", "linear": linear}
    return [
        Case(kind((0,)), (numbers(4), numbers(3), fixed([2, 0, -1])), "vector", **every),
        Case(kind((0,)), (numbers(4), numbers(5), fixed([2, 0, 2, -2, 2])), "repeated", **every),
        Case(kind((1,)), (numbers(2, 4), numbers(3, 2), fixed([1, 1, 3])), "columns", **every),
        Case(kind((0,)), (numbers(3), numbers(), ints(low=-3, high=3)), "scalar", **every),
        Case(
            kind((2, 0)),
            (numbers(2, 3, 4), numbers(2, 2, 3), ints(2, 1, high=4), ints(2, low=-2, high=2)),
            "two-axes",
            **every,
        ),
        Case(kind((0,), "fill"), (numbers(3), numbers(4), fixed([0, 5, -4, 0])), "drop", **every),
        Case(kind((0,), "clip"), (numbers(3), numbers(4), fixed([0, 5, -4, 0])), "clip", **every),
        Case(kind((0,), "wrap"), (numbers(3), numbers(4), fixed([0, 5, -4, 7])), "wrap", **every),
        Case(
            kind((0,), "raise", True), (numbers(5), numbers(5), permutation(5)), "unique", **every
        ),
        Case(
            kind((0,)),
            (numbers(3, 40), numbers(4, 40), ints(4, high=3, low=-3)),
            "long-rows",
            **every,
        ),
        Case(kind((0,)), (numbers(3), numbers(0), fixed(np.zeros(0, int))), "no-places", **every),
        Case(kind((0,)), (numbers(3, 0), numbers(2, 0), ints(2, low=0, high=3)), "empty", **every),
        Case(kind((0,)), (ints(4), ints(3), fixed([1, 1, 0])), "int", "d", 0),
    ]


INDEXING = [
    Case(Gather((0,)), (uniform(4, 3), ints(2, 5, high=4)), "rows", ALL, 1, FIRST),
    Case(Gather((1,)), (uniform(2, 4), ints(3, high=4)), "columns", "df", 1, FIRST),
    Case(Gather((0,)), (uniform(4), ints(high=4)), "scalar", "df", 1, FIRST),
    Case(
        Gather((2, 0)),
        (uniform(2, 3, 4), ints(3, 1, high=4), ints(2, low=-2, high=2)),
        "two-axes",
        "df",
        1,
        FIRST,
    ),
    Case(
        Gather((0, 1)),
        (uniform(3, 3), ints(4, low=-3, high=3), ints(4, low=-3, high=3)),
        "all",
        ALL,
        1,
        FIRST,
    ),
    Case(Demand((0,), message="{}"), (uniform(1), fixed([0, -1, 0])), "", "df", 1, FIRST),
    Case(Gather((0,), "fill"), (uniform(3, 2), fixed([0, 5, -4, 2])), "fill", "df", 0),
    Case(
        Gather((0,), "fill", 0), (uniform(3, 2), fixed([0, 5, -4, 2])), "fill-zero", "df", 1, FIRST
    ),
    Case(
        Gather((0, 1), "fill", 0),
        (uniform(3, 2), fixed([[0], [5]]), fixed([1, 2])),
        "fill-two",
        "d",
        1,
        FIRST,
    ),
    Case(Gather((0,), "fill"), (ints(3), fixed([0, 5, -4, 2])), "fill-int", "d", 0),
    Case(Gather((0,), "fill"), (bools(3), fixed([0, 5, -4, 2])), "fill-bool", "d", 0),
    Case(Gather((0,), "clip"), (uniform(3, 2), fixed([0, 5, -4, 2])), "clip", "df", 1, FIRST),
    Case(Gather((0,), "wrap"), (uniform(3, 2), fixed([0, 5, -4, 2])), "wrap", "df", 1, FIRST),
    Case(Gather((0,)), (uniform(4, 2), fixed(np.zeros(0, int))), "no-places", "d", 1, FIRST),
    Case(Gather((0,)), (uniform(4, 0), ints(3, high=4)), "empty", "d", 1, FIRST),
    Case(Gather((0,)), (uniform(4), ints(3, high=4, dtype=np.int32)), "int32", "d", 1, FIRST),
    Case(
        Gather((0,)), (uniform(4), ints(3, low=0, high=4, dtype=np.uint64)), "uint64", "d", 1, FIRST
    ),
    *scatter_rows(ScatterAdd, JOINTLY, uniform),
    *scatter_rows(ScatterSet, JOINTLY, uniform),
    *scatter_rows(ScatterMul, FIRST, uniform),
    *scatter_rows(ScatterMax, (), lambda *shape: uniform(*shape, low=-9, high=9)),
    *scatter_rows(ScatterMin, (), lambda *shape: uniform(*shape, low=-9, high=9)),
    Case(
        ScatterMul((0,)),
        (fixed([0.0, 2.0]), fixed([0.0, 0.0, 3.0, 0.0]), fixed([0, 0, 0, 1])),
        "zeros",
        linear=FIRST,
    ),
    Case(DynamicSlice((2, 3)), (uniform(4, 3), ints(), ints()), "", ALL, 1, FIRST),
    Case(DynamicSlice((2, 1)), (uniform(4, 3), ints(), ints()), "both-axes", "df", 1, FIRST),
    Case(DynamicSlice((3,)), (uniform(3), ints()), "whole", "d", 1, FIRST),
    Case(DynamicSlice((0,)), (uniform(3), ints()), "empty", "d", 1, FIRST),
    Case(DynamicSlice((2,)), (ints(3), ints(dtype=np.int32)), "int", "d", 0),
    Case(DynamicUpdateSlice(), (uniform(4, 3), uniform(2, 3), ints(), ints()), "", ALL, 1, JOINTLY),
    Case(
        DynamicUpdateSlice(),
        (uniform(4, 3), uniform(2, 1), ints(), ints()),
        "both-axes",
        "d",
        1,
        JOINTLY,
    ),
    Case(DynamicUpdateSlice(), (uniform(3), uniform(3), ints()), "whole", "d", 1, JOINTLY),
    Case(DynamicUpdateSlice(), (ints(3), ints(2), ints()), "int", "d", 0),
]

CUMULATIVE = [
    *(
        row
        for kind, numbers, dtypes in (
            (Cumsum, uniform, ALL),
            (Cumprod, uniform, ALL),
            (Cummax, distinct, "df"),
            (Cummin, distinct, "df"),
            (Cumlogsumexp, uniform, "df"),
        )
        for linear in (FIRST if kind is Cumsum else (),)
        for row in (
            Case(kind(1), (numbers(2, 5),), "rows", dtypes, linear=linear),
            Case(kind(0), (numbers(4, 2),), "columns", "d", linear=linear),
            Case(kind(0, True), (numbers(4, 2),), "reverse", dtypes, linear=linear),
            Case(kind(0), (numbers(1),), "single", "d", 1, linear=linear),
            Case(kind(0), (numbers(0, 2),), "empty", "d", 1, linear=linear),
            Case(kind(0), (numbers(130),), "long", "d", 1, linear=linear),
        )
    ),
    *(Case(kind(0), (ints(5, 2),), "int", "d", 0) for kind in (Cumsum, Cumprod, Cummax, Cummin)),
    Case(Cummax(0), (bools(5),), "bool", "d", 0),
    Case(Cumprod(0), (fixed([2.0, 0.0, 3.0, 0.0, 5.0]),), "zeros"),
    Case(Cummax(0), (fixed([1.0, 0.0, 1.0, np.nan, 3.0]),), "edges", "df", 0),
    Case(Cumlogsumexp(0), (fixed([-np.inf, -np.inf, 0.0, 1.0, np.inf]),), "edges", "df", 0),
    Case(LinearRecurrence(0), (uniform(5), uniform(5)), "", ALL, linear=SECOND),
    Case(LinearRecurrence(1, True), (uniform(2, 4), uniform(2, 4)), "reverse", "df", linear=SECOND),
    Case(LinearRecurrence(0), (uniform(130, 2), uniform(130, 2)), "blocked", "d", linear=SECOND),
    Case(LinearRecurrence(0), (uniform(0, 2), uniform(0, 2)), "empty", "d", 1, SECOND),
]

ORDERS = [
    Case(ArgSort(1), (distinct(2, 5),), "rows", "df", 1),
    Case(ArgSort(0, False), (distinct(4, 2),), "unstable", "d", 0),
    Case(ArgSort(0), (fixed([1.0, 0.0, 1.0, np.nan, 0.0]),), "ties", "df", 0),
    Case(ArgSort(0), (ints(7, high=3), ints(7, high=3), distinct(7)), "keys", "d", 0),
    Case(ArgSort(0), (ints(0),), "empty", "d", 0),
    Case(SearchSorted(), (ascending(5), uniform(2, 3)), "left", "df", 1),
    Case(SearchSorted("right"), (fixed([1, 2, 2, 3]), fixed([0, 1, 2, 3, 4])), "right", "d", 0),
    Case(SearchSorted("left", 1), (ascending(2, 5), uniform(2, 3)), "lanes", "d", 0),
    Case(Sort(1), (distinct(2, 5),), "rows", ALL),
    Case(Sort(0), (distinct(4, 2),), "columns"),
    Case(Sort(0), (fixed([1.0, 0.0, 1.0, np.nan, 0.0]),), "ties", "df", 0),
    Case(Sort(0), (ints(5),), "int", "d", 0),
    Case(Sort(0), (uniform(0, 2),), "empty", "d", 1),
    Case(TopK(2), (distinct(3, 5),), "rows"),
    Case(TopK(3), (fixed([1.0, 0.0, 1.0, np.nan, 1.0]),), "ties", "df", 0),
    Case(TopK(2), (ints(5),), "int", "d", 0),
    Case(TopK(0), (uniform(5),), "none", "d", 1),
    Case(TopK(2), (distinct(3, 70),), "few_of_rows"),
    Case(TopK(3), (fixed([1.0, 0.0, 1.0, np.nan] * 10),), "few_with_ties", "df", 0),
]


def _special_rows(name: str, row: Row) -> list[Case]:
    """Rows of a function of `scipy.special` with exact values."""
    primitive: Any = primitive_of(getattr(scipy.special, name).__name__)
    options = {"dtypes": ALL if "c" in primitive.kinds else "df", "order": row.order}
    if len(row.laws) == 2:
        return two(primitive, *(between(*bounds) for bounds in row.laws), **options)
    near = [Case(primitive, (fixed(row.also_at),), "also", "d")] if row.also_at else []
    return [*one(primitive, *row.laws[0], **options), *near]


SPECIAL = [
    *(case for name, row in ROWS.items() if row.laws for case in _special_rows(name, row)),
    *one(sp.erfcinv, 0.3, 1.7),
    *one(sp.normal_hazard, -2, 2),
    *one(sp.rgamma, 0.4, 3),
    *one(gamma_functions.real_trigamma, 0.5, 3),
    *two(sp.betaln, between(0.5, 3), between(0.5, 3)),
    *two(sp.binom, between(3, 5), between(1, 2)),
    *two(sp.xlogy, between(0.5, 3), between(0.5, 3), dtypes=ALL),
    *two(sp.xlog1py, between(0.5, 3), between(0.5, 3), dtypes=ALL),
    *one(sp.entr, 0.2, 3),
    *two(sp.log_ratio, between(0.5, 3), between(0.5, 3)),
    *two(sp.rel_entr, between(0.5, 3), between(0.5, 3)),
    *two(sp.kl_div, between(0.5, 3), between(0.5, 3)),
    *one(sp.logit, 0.2, 0.8),
    *one(sp.log_expit, -3, 3),
    *(row for p in (sp.i0, sp.i1, sp.j0, sp.j1) for row in one(p, -2, 2)),
    *(row for p in (sp.bessel_i(2), sp.bessel_j(2)) for row in one(p, -2, 2)),
    *(row for p in (sp.i0e, sp.i1e, sp.bessel_ie(2)) for row in one(p, 0.3, 3)),
    *(row for p in (sp.k0, sp.k1, sp.k0e, sp.k1e, sp.y0, sp.y1) for row in one(p, 0.7, 3)),
    *one(sp.exp10, -0.5, 0.5),
    *one(sp.cosm1, -2, 2),
    *one(sp.exprel, -2, 2),
    Case(sp.exprel, (fixed([0.0, 0.005, -0.005, 0.02]),), "near-zero", "d"),
    *two(gamma_functions.polygamma, constant(2.0), between(0.5, 3), differentiable=(1,)),
    *two(sp.zeta, between(1.5, 4), between(0.5, 3)),
    *two(incomplete.gammainc_da, between(0.5, 3), between(0.5, 3), differentiable=(1,)),
    Case(
        sp.betainc,
        (
            uniform(3, low=0.5, high=2),
            uniform(2, 1, low=0.5, high=2),
            uniform(3, low=0.2, high=0.8),
        ),
        order=1,
    ),
    *(
        Case(
            slope,
            (
                uniform(3, low=0.5, high=2),
                uniform(2, 1, low=0.5, high=2),
                uniform(3, low=0.2, high=0.8),
            ),
            differentiable=(2,),
        )
        for slope in (incomplete.betainc_da, incomplete.betainc_db)
    ),
    *(
        Case(
            logarithm,
            (uniform(2, 1, low=0.5, high=3), uniform(3, low=0.5, high=3)),
            dtypes="d",
            order=1,
            compiled_daily="",
        )
        for logarithm in (log_incomplete.log_gammainc, log_incomplete.log_gammaincc)
    ),
    *(
        Case(
            logarithm,
            (
                uniform(3, low=0.5, high=2),
                uniform(2, 1, low=0.5, high=2),
                uniform(3, low=0.2, high=0.8),
            ),
            dtypes="d",
            order=1,
            compiled_daily="",
        )
        for logarithm in (log_incomplete.log_betainc, log_incomplete.log_betaincc)
    ),
    *two(deviance, between(0.5, 3), between(0.5, 3)),
    Case(deviance, (fixed([1.0, 2.0, 3.0]), fixed([1.001, 2.3, 2.9])), "near", "d"),
    # In single precision the closed forms below 10 have errors of the size of its epsilon, of 1.
    *one(binet, 0.5, 20, "d"),
    *one(binet_slope, 0.5, 20, "d"),
    *two(gamma_slope, between(0.5, 3), between(0.5, 3), differentiable=(1,)),
    *two(log_gamma_slope, between(0.5, 3), between(-1, 1), differentiable=(1,)),
    # Their values do not depend on the parameter: derivatives are those of the distribution.
    *two(gamma_sample, between(0.5, 3), between(0.5, 3), order=0),
    *two(log_gamma_sample, between(0.5, 3), between(-1, 1), order=0),
]


def _matrix_rows(primitive: Primitive, make: Callable[..., Make], **options: Any) -> list[Case]:
    """Rows of a function of square matrices: one, a stack, 1 by 1, none."""
    light = {**options, "dtypes": "d", "order": 1}
    return [
        Case(primitive, (make(3, 3),), "matrix", ALL, **options),
        Case(primitive, (make(2, 2, 2),), "stack", **light),
        Case(primitive, (make(1, 1),), "single", **light),
        Case(primitive, (make(0, 0),), "empty", **light),
    ]


def _squares(x: Any) -> Any:
    """``|x|^2``: the phase does not show."""
    return el.mul.bind(x, el.conj.bind(x) if x.dtype.kind == "c" else x)


def observe_eigh(w: Any, v: Any) -> list[Any]:
    return [w, _squares(v)]


def observe_svd(u: Any, s: Any, vh: Any) -> list[Any]:
    return [_squares(u), s, _squares(vh), matmul(u, vh)]


def observe_eig(w: Any, v: Any) -> list[Any]:
    """Squares without conjugation: LAPACK fixes the phase, but not the sign."""
    return [w, el.mul.bind(v, v)]


def _factored(n: int, *columns: int) -> tuple[Make, ...]:
    """Arguments of `FactoredSolve`: a permuted triangular matrix, whose factors are itself."""

    def matrix(rng: np.random.Generator, dtype: np.dtype) -> Any:
        return np.triu(regular(n, n)(rng, dtype))

    return (matrix, matrix, fixed(np.arange(n, dtype=np.int32)), uniform(n, *columns))


LINALG = [
    *(
        row
        for lower in (True, False)
        for turned in (True, False)
        for row in (
            Case(
                TriangularSolve(lower, turned),
                (regular(3, 3), uniform(3, 2)),
                f"{'lower' if lower else 'upper'}{'-transposed' if turned else ''}",
                ALL,
                linear=SECOND,
            ),
        )
    ),
    Case(TriangularSolve(True, False, True), (regular(3, 3), uniform(3, 2)), "unit", linear=SECOND),
    Case(
        TriangularSolve(False, True, True),
        (regular(3, 3), uniform(3, 2)),
        "unit-upper",
        "d",
        linear=SECOND,
    ),
    Case(TriangularSolve(True), (regular(2, 3, 3), uniform(2, 3, 1)), "stack", "dD", 1, SECOND),
    Case(TriangularSolve(True), (regular(30, 30), uniform(30, 2)), "large", "d", 1, SECOND),
    Case(TriangularSolve(True), (regular(0, 0), uniform(0, 2)), "empty", "d", 1, SECOND),
    Case(TriangularSolve(True), (regular(2, 2), uniform(2, 0)), "no-columns", "d", 1, SECOND),
    Case(Solve(), (regular(3, 3), uniform(3, 2)), "", ALL, linear=SECOND),
    Case(Solve(), (regular(2, 3, 3), uniform(2, 3, 1)), "stack", "dD", linear=SECOND),
    Case(Solve(), (regular(0, 0), uniform(0, 2)), "empty", "d", 1, SECOND),
    Case(FactoredSolve(), _factored(3, 2), "", ALL, 0, ((3,),)),
    Case(FactoredSolve(True), _factored(3, 2), "transposed", ALL, 0, ((3,),)),
    Case(FactoredSolve(), _factored(0, 2), "empty", "d", 0, ((3,),)),
    *_matrix_rows(Inv(), regular),
    *_matrix_rows(Cofactors(), regular),
    Case(Cofactors(), (fixed([[1.0, 2.0], [2.0, 4.0]]),), "singular", "d", 0),
    *_matrix_rows(Det(), regular),
    Case(Det(), (fixed([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [1.0, 1.0, 3.0]]),), "singular", "d", 1),
    *_matrix_rows(Slogdet(), regular),
    *_matrix_rows(LuFactor(), regular),
    Case(LuFactor(), (regular(4, 2),), "tall", ALL),
    Case(LuFactor(), (regular(2, 4),), "wide", ALL),
    *_matrix_rows(Cholesky(), positive_definite),
    *_matrix_rows(Cholesky(nan_if_indefinite=True), positive_definite),
    *_matrix_rows(Eigh(), hermitian, observe=observe_eigh),
    *_matrix_rows(Eigvalsh(), hermitian),
    *_matrix_rows(Eig(), regular, observe=observe_eig),
    *_matrix_rows(Eigvals(), regular),
    Case(Permutation(), (fixed(np.array([[1, 1, 2], [2, 1, 2]], np.int32)),), "", "d", 0),
    *_matrix_rows(Pinv(1e-6), regular),
    Case(Pinv(1e-6), (regular(4, 2),), "tall", ALL),
    Case(Pinv(1e-6), (regular(2, 4),), "wide", ALL),
    *_matrix_rows(Qr(), regular),
    Case(Qr(), (regular(4, 2),), "tall", ALL),
    Case(Qr(), (regular(2, 4),), "wide", ALL),
    Case(Qr(), (regular(0, 2),), "no-rows", "d", 1),
    Case(Qr(True), (regular(4, 2),), "full", "d", 0),
    Case(Qr(True), (regular(2, 4),), "full-wide", "d", 1),
    *_matrix_rows(Svd(), regular, observe=observe_svd),
    Case(Svd(), (regular(4, 2),), "tall", ALL, observe=observe_svd),
    Case(Svd(), (regular(2, 4),), "wide", ALL, observe=observe_svd),
    Case(Svd(True), (regular(3, 3),), "full", "d", 1, observe=observe_svd),
    Case(Svd(True), (regular(4, 2),), "full-tall", "d", 0),
    *_matrix_rows(SingularValues(), regular),
    Case(SingularValues(), (regular(2, 4),), "wide", ALL),
]


def stable(*shape: int) -> Make:
    """Matrices whose eigenvalues have positive real parts, and are far from each other."""

    def make(rng: np.random.Generator, dtype: np.dtype) -> Any:
        x = uniform(*shape)(rng, dtype) * dtype.type(0.3)
        return x + np.diag(1 + np.arange(shape[-1])).astype(dtype)

    return make


def turning(*shape: int) -> Make:
    """Matrices with a pair of complex eigenvalues among others."""

    def make(rng: np.random.Generator, dtype: np.dtype) -> Any:
        x = stable(*shape)(rng, dtype)
        x[..., 0, 1] += 2
        x[..., 1, 0] -= 2
        return x

    return make


def indefinite(*shape: int) -> Make:
    """The same, and a last eigenvalue on the left: the sign of the others alone is constant."""

    def make(rng: np.random.Generator, dtype: np.dtype) -> Any:
        x = turning(*shape)(rng, dtype)
        x[..., -1, :] *= -1
        return x

    return make


def band(rows: int, main: int, n: int, *stack: int) -> Make:
    """Diagonals of matrices, of which the one of number ``main`` is real and large."""

    def make(rng: np.random.Generator, dtype: np.dtype) -> Any:
        x = uniform(*stack, rows, n)(rng, dtype)
        x[..., main, :] = x[..., main, :].real + 6
        return x

    return make


def columns(below: int, above: int, n: int, *stack: int) -> Make:
    """The same column by column, after zeros for diagonals that exchanges of rows fill."""

    def make(rng: np.random.Generator, dtype: np.dtype) -> Any:
        x = np.moveaxis(band(2 * below + above + 1, below + above, n, *stack)(rng, dtype), -1, -2)
        x[..., :below] = 0
        return x

    return make


def unitary(n: int) -> Make:
    """Square matrices with orthonormal columns."""
    return lambda rng, dtype: np.linalg.qr(regular(n, n)(rng, dtype))[0]


def observe_columns(*places: int) -> Callable[..., list[Any]]:
    """Of the results at these places projections on single columns, which show no phases."""

    def observe(*outs: Any) -> list[Any]:
        return [_projected(x) if i in places else x for i, x in enumerate(outs)]

    return observe


def _projected(x: Any) -> Any:
    weights = np.arange(1.0, 1.0 + aval_of(x).shape[-1]).astype(aval_of(x).dtype)
    return matmul(el.mul.bind(x, weights), adjoint(x))


def observe_complex_schur(t: Any, z: Any, count: Any) -> list[Any]:
    """What does not depend on the phases of the columns of ``z``."""
    weights = np.arange(1.0, 1.0 + aval_of(z).shape[-1]).astype(aval_of(z).dtype)
    return [_projected(z), matmul(z, matmul(el.mul.bind(t, weights), adjoint(z)))]


_RICCATI = (
    stable(3, 3),
    uniform(3, 2),
    fixed(np.diag([3.0, 4.0, 5.0])),
    fixed(np.array([[2.0, 0.5], [0.5, 1.0]])),
    fixed(np.full((3, 2), 0.1)),
)
_COLUMNS: dict[str, Any] = {"observe": observe_columns(1, 2)}
_FACTORED = (columns(1, 2, 5), fixed([2, 2, 3, 5, 5]), uniform(5, 2))


def _eliminated() -> tuple[int, Any, tuple[Make, ...]]:
    """A pattern with its diagonal: how many numbers its factors have, its table, and factors."""
    places = np.eye(6, dtype=bool)
    places[[0, 1, 1, 2, 3, 4, 4, 5, 5], [5, 0, 4, 1, 0, 1, 2, 0, 3]] = True
    pattern = SparseArray.of(places).pattern
    table = elimination_table(pattern)
    count = Tables(table).n_factors
    entries = np.where(pattern.rows == pattern.indices, 4.0, np.linspace(-1, 1, pattern.size))
    factors = SparseFactor(6, count).bind(table, entries)
    return count, table, (fixed(table), fixed(factors), uniform(6))


_ELIMINATED = _eliminated()
_IN_SIDES: dict[str, Any] = {"linear": ((2,),), "differentiable": (2,)}

SQUARE_MATRICES = [
    Case(Sylvester(), (stable(3, 3), stable(2, 2), uniform(3, 2)), "", "dD", linear=((2,),)),
    Case(
        Sylvester(), (stable(2, 1, 1), stable(2, 2, 2), uniform(2, 1, 2)), "stack", "d", 1, ((2,),)
    ),
    Case(Sylvester(), (stable(0, 0), stable(2, 2), uniform(0, 2)), "empty", "d", 1, ((2,),)),
    Case(MatrixFunction("expm"), (stable(3, 3),), "expm", "dD"),
    Case(MatrixFunction("logm"), (stable(3, 3),), "logm", "D"),
    Case(MatrixFunction("power", 0.3), (stable(3, 3),), "power", "D"),
    Case(MatrixFunction("logm"), (fixed(np.eye(2)),), "equal", "D", 1),
    Case(MatrixFunction("expm"), (uniform(2, 2, 2),), "stack", "d", 1),
    Case(MatrixFunction("expm"), (uniform(0, 0),), "empty", "d", 1),
    Case(Frechet("expm"), (uniform(3, 3), uniform(3, 3)), "expm", "dD", linear=SECOND),
    Case(Frechet("logm"), (stable(2, 2), uniform(2, 2)), "logm", "D", linear=SECOND),
    Case(Sqrtm(), (stable(3, 3),), "", "D"),
    Case(Sqrtm(), (fixed(np.eye(2)),), "equal", "D"),
    Case(Signm(), (indefinite(3, 3),), "", "dD"),
    Case(Schur(), (stable(3, 3),), "", "d"),
    Case(Schur(), (turning(4, 4),), "pairs", "d"),
    Case(Schur(), (stable(3, 3),), "complex", "D", observe=observe_complex_schur),
    Case(Schur("lhp"), (regular(3, 3),), "sorted", "d", 1),
    Case(Schur(), (stable(2, 3, 3),), "stack", "d", 1),
    Case(Hessenberg(), (regular(4, 4),), "", "dD"),
    Case(Hessenberg(), (regular(2, 3, 3),), "stack", "d", 1),
    Case(Hessenberg(), (regular(2, 2),), "small", "d", 1),
    Case(RawQr(), (regular(4, 3),), "", "dD", 0),
    Case(PackedHessenberg(), (regular(4, 4),), "", "dD", 0),
    Case(PackedTridiagonal(True), (hermitian(4, 4),), "", "dD", 0),
    Case(PackedTridiagonal(False), (hermitian(4, 4),), "upper", "dD", 0),
    Case(GeneralizedSchur(), (regular(3, 3), regular(3, 3)), "", "dD", 0),
    Case(GeneralizedSchur("lhp"), (regular(3, 3), regular(3, 3)), "sorted", "dD", 0),
    Case(BandedSolve(1, 2), (band(4, 2, 5), uniform(5, 2)), "", "dD", linear=SECOND),
    Case(BandedSolve(2, 0), (band(3, 0, 4, 2), uniform(2, 4, 1)), "stack", "d", 1, SECOND),
    Case(BandedSolve(1, 1), (band(3, 1, 0), uniform(0, 1)), "empty", "d", 1, SECOND),
    Case(BandedFactor(1, 2), (columns(1, 2, 5),), "", "dfD", 0),
    Case(BandedFactor(2, 1), (uniform(2, 4, 6),), "stack-exchanged", "d", 0),
    Case(BandedFactor(1, 1), (columns(1, 1, 0),), "empty", "d", 0),
    Case(FactoredBandedSolve(1, 2), _FACTORED, "", "dD", **_IN_SIDES),
    Case(FactoredBandedSolve(1, 2, True), _FACTORED, "transposed", "dfD", **_IN_SIDES),
    Case(SparseFactor(6, _ELIMINATED[0]), (fixed(_ELIMINATED[1]), uniform(15)), "", "df", 0),
    Case(FactoredSparseSolve(), _ELIMINATED[2], "", "df", **_IN_SIDES),
    Case(FactoredSparseSolve(True), _ELIMINATED[2], "transposed", "df", **_IN_SIDES),
    Case(PositiveBandedSolve(True), (band(3, 0, 5), uniform(5, 2)), "", "dD", linear=SECOND),
    Case(PositiveBandedSolve(False), (band(3, 2, 5), uniform(5, 2)), "upper", "dD", 1, SECOND),
    Case(BandedCholesky(True), (band(3, 0, 5),), "", "dD"),
    Case(BandedCholesky(False), (band(3, 2, 5),), "upper", "dD", 1),
    Case(EighTridiagonal(), (uniform(4), uniform(3)), "", "d", observe=observe_columns(1)),
    Case(EighTridiagonal(), (uniform(1), uniform(0)), "small", "d", 1, observe=observe_columns(1)),
    Case(
        ToeplitzSolve(),
        (fixed([6.0, 1.0, 0.3]), fixed([6.0, 2.0, 0.7]), uniform(3, 2)),
        "",
        "dD",
        linear=((2,),),
    ),
    Case(TwoSidedEig(), (stable(3, 3),), "", "dD", **_COLUMNS),
    Case(GeneralizedEig(), (stable(3, 3), positive_definite(3, 3)), "", "dD", **_COLUMNS),
    Case(Ldl(), (hermitian(4, 4),), "", "dD"),
    Case(Ldl(False), (hermitian(4, 4),), "upper", "dD", 1),
    Case(Ldl(hermitian=False), (hermitian(4, 4),), "symmetric", "D", 1),
    Case(Ldl(), (fixed([[0.1, 2.0, 0.3], [2.0, 0.2, 0.5], [0.3, 0.5, 3.0]]),), "blocks", "dD"),
    Case(ColumnPivots(), (uniform(4, 3),), "", "dD"),
    Case(NullSpace(2), (uniform(2, 4),), "", "dD", observe=lambda x: [matmul(x, adjoint(x))]),
    Case(Balance(), (fixed([[1.0, 100.0, 0.0], [0.01, 2.0, 0.0], [3.0, 4.0, 5.0]]),), "", "dD"),
    Case(Cossin(1, 2), (unitary(4),), "", "dD", 0),
    Case(ContinuousRiccati(), _RICCATI, "", "dD"),
    Case(DiscreteRiccati(), _RICCATI, "", "dD"),
]

COMPILED_SQUARE_MATRICES = ("matrix_function-expm", "banded_solve", "sqrtm", "toeplitz_solve")
"""The others are evaluated as these are: by SciPy, with rules made of common primitives."""

FOURIER = [
    Case(Fft((0,)), (uniform(5),), "", "DF", 1, FIRST),
    Case(Fft((1, 2)), (uniform(2, 3, 4),), "two-axes", "D", 1, FIRST),
    Case(Fft((0,), True), (uniform(4, 2),), "inverse", "DF", 1, FIRST),
    Case(Fft((1,)), (uniform(0, 2),), "empty", "D", 1, FIRST),
    Case(PairedFft(), (uniform(2, 6),), "", "df", 1, FIRST),
    Case(PairedFft(True), (uniform(2, 3),), "inverse", "DF", 1, FIRST),
    *(Case(Rfft(1), (uniform(2, n),), str(n), "df", 1, FIRST) for n in (1, 2, 5, 6)),
    *(Case(Irfft(1, n), (uniform(2, n // 2 + 1),), str(n), "DF", 1, FIRST) for n in (1, 2, 5, 6)),
]


def words(*shape: int) -> Make:
    return ints(*shape, low=0, high=2**32, dtype=np.uint32)


BITS = [
    Case(Bitcast(np.dtype(np.int32)), (real_uniform(3),), "wide-or-narrow", "df", 1),
    Case(Bitcast(np.dtype(np.float64)), (ints(3, 2, dtype=np.int32),), "joined", "d", 0),
    Case(Bitcast(np.dtype(np.uint64)), (ints(3),), "same", "d", 0),
    *integer_rows(population_count, 1),
    *integer_rows(gcd_of, 2),
    Case(threefry2x32, (words(), words(), words(4), words(4)), "few", "d", 0),
    Case(threefry2x32, (words(3, 1), words(3, 1), words(7), words(7)), "broadcast", "d", 0),
    Case(threefry2x32, (words(), words(), words(0), words(0)), "empty", "d", 0),
    *one(erfinv_giles, -0.9, 0.9, rtol=1e-5),
]

LANES = 4


class OverLanes:
    """A collective as a function of the values of all lanes, stacked in front."""

    multiple_results = False

    def __init__(self, collective: Primitive) -> None:
        self.collective = collective
        self.name = collective.name

    def bind(self, *args: Any) -> Any:
        return self._mapped(self.collective.bind, *args)

    def transpose(self, ct: Any, x: Any) -> Any:
        lane = Linear(x.aval.update(shape=x.aval.shape[1:]))
        return (self._mapped(lambda ct: self.collective.transpose(ct, lane)[0], ct),)

    def abstract_eval(self, *avals: Any) -> Any:
        out = self.collective.abstract_eval(*[a.update(shape=a.shape[1:]) for a in avals])
        return out.update(shape=(LANES, *out.shape))

    def batch(self, args: Any, dims: Any) -> Any:
        size = next(a.shape[0] for a, d in zip(args, dims, strict=True) if d == 0)
        outs, out_dims = batch_flat(lambda *xs: [self.bind(*xs)], args, dims, size, "law", None)
        return outs[0], out_dims[0]

    @staticmethod
    def _mapped(function: Any, *args: Any) -> Any:
        flags = [0] * len(args)
        outs, dims = batch_flat(lambda *xs: [function(*xs)], args, flags, LANES, "law", "lanes")
        if dims[0] is None:
            return el.add.bind(np.zeros((LANES, *(1,) * outs[0].ndim), outs[0].dtype), outs[0])
        return outs[0]


def over_lanes(collective: Primitive, make: Make, what: str = "", order: int = 2) -> Case:
    linear = FIRST if order else ()
    if isinstance(collective, PMax | PMin):
        linear = ()
    return Case(OverLanes(collective), (make,), what, "dF" if linear else "d", order, linear)


AXIS = ("lanes", LANES)

COLLECTIVES = [
    over_lanes(PSum((AXIS,)), uniform(LANES, 3)),
    over_lanes(PMax((AXIS,)), distinct(LANES, 3)),
    over_lanes(PMin((AXIS,)), distinct(LANES, 3)),
    Case(OverLanes(AxisIndex(*AXIS)), (), "", "d", 0),
    over_lanes(AllGather(*AXIS, 1, False), uniform(LANES, 2, 3)),
    over_lanes(AllGather(*AXIS, 1, True), uniform(LANES, 2, 3), "tiled"),
    over_lanes(ReduceScatter(*AXIS, 0, False), uniform(LANES, LANES, 3)),
    over_lanes(ReduceScatter(*AXIS, 1, True), uniform(LANES, 3, 2 * LANES), "tiled"),
    over_lanes(PPermute(*AXIS, ((0, 1), (1, 3))), uniform(LANES, 3)),
    over_lanes(AllToAll(*AXIS, 0, 1, False), uniform(LANES, LANES, 3)),
    over_lanes(AllToAll(*AXIS, 0, 1, True), uniform(LANES, 2 * LANES, 3), "tiled"),
]


def sparse_matrix(lengths: Sequence[int], columns: int, seed: int = 0) -> Any:
    """SciPy's matrix with rows of so many entries at random places."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = [np.sort(rng.choice(columns, n, replace=False)) for n in lengths]
    data = rng.uniform(0.5, 1.5, len(rows))
    shape = (len(lengths), columns)
    return scipy.sparse.csr_array((data, (rows, np.concatenate(places))), shape)


def pattern_of(matrix: Any) -> Pattern:
    return Pattern(matrix.indptr, matrix.indices, matrix.shape)


TRIDIAGONAL = scipy.sparse.diags_array(
    [np.arange(1.0, 4.0), np.full(4, -2.0), np.ones(3)], offsets=[-1, 0, 1]
)
MATRICES = {
    "diagonals": TRIDIAGONAL,
    "rows": sparse_matrix([2, 2, 1, 2, 2], 7),
    "uneven": sparse_matrix([90, *[1] * 30], 90),
    "empty": scipy.sparse.csr_array((3, 2)),
}


def sparse_rows() -> list[Case]:
    """Every layout, as it is and transposed, times vectors and matrices."""
    rows = []
    for name, matrix in MATRICES.items():
        n_rows, n_columns = matrix.shape
        pattern = pattern_of(matrix.tocsr())
        data = uniform(matrix.nnz)
        for flip in (False, True):
            n = n_rows if flip else n_columns
            title = f"{name} transposed" if flip else name
            product = MatrixProduct(Constants(matrix), flip)
            rows.append(Case(product, (uniform(n),), title, "d", 2, FIRST))
            if name in ("rows", "uneven"):
                tracked = SparseProduct(pattern, flip)
                rows.append(Case(tracked, (data, uniform(n)), title, "dF", 2, EACH))
                columns = (data, uniform(n, 2))
                rows.append(Case(tracked, columns, f"{title}, columns", "d", 2, EACH))
        if name == "empty":
            given = (data, uniform(n_columns))
            rows.append(Case(SparseProduct(pattern), given, name, "d", 2, EACH))
        if name != "empty":
            product = MatrixProduct(Constants(matrix))
            rows.append(Case(product, (uniform(n_columns, 2),), f"{name}, columns", "d", 2, FIRST))
    sampled = SampledProduct(pattern_of(MATRICES["rows"]))
    m, n = MATRICES["rows"].shape
    rows.append(Case(sampled, (uniform(m), uniform(n)), "vectors", "dF", 2, EACH))
    rows.append(Case(sampled, (uniform(m, 2), uniform(n, 2)), "columns", "d", 2, EACH))
    return rows


SPARSE = sparse_rows()


def in_every_run(case: Case) -> Case:
    """A row of a special function, with a sample of the derivatives that every run compiles.

    Kernels of special functions are long, and shapes do not matter to their formulas: every run
    compiles rows of matrices in double precision, and of broadcasting in single. Elementary
    functions, of the same tables `one` and `two`, are compiled in all shapes.
    """
    if case.label in ("scalar", "empty", "single"):
        return replace(case, compiled_daily="")
    left_out = "d" if case.label == "broadcast" else "f"
    return replace(case, compiled_daily=case.compiled_daily.replace(left_out, ""))


CASES: Sequence[Case] = [
    *ARITHMETIC,
    *COMPARISONS,
    *ROUNDING,
    *CONVERSIONS,
    *ELEMENTARY,
    *SHAPES,
    *CREATION,
    *REDUCTIONS,
    *CONTRACTIONS,
    *WINDOWS,
    *INDEXING,
    *CUMULATIVE,
    *ORDERS,
    *map(in_every_run, SPECIAL),
    *LINALG,
    *(
        case if case.name in COMPILED_SQUARE_MATRICES else replace(case, compiled_daily="")
        for case in SQUARE_MATRICES
    ),
    *FOURIER,
    *BITS,
    *COLLECTIVES,
    *SPARSE,
]

IMPOSSIBLE: dict[str, dict[str, str]] = {
    "cossin": {
        "jvp": "its factors may be turned against each other in each block",
    },
    "generalized_schur": {
        "jvp": "its factors depend on the order of the eigenvalues; those have derivatives by eig",
    },
    "banded_factor": {
        "jvp": "factors are of no use without solutions, whose derivatives take the matrix",
    },
    "raw_qr": {
        "jvp": "reflections are of no use without their products, which have one by qr",
    },
    "packed_hessenberg": {
        "jvp": "reflections are of no use without their products, which have one by hessenberg",
    },
    "packed_tridiagonal": {
        "jvp": "reflections are of no use without their products, which have one by hessenberg",
    },
    "axis_index": {
        "batch": "it has no arguments",
    },
    "unset": {
        "jvp": "it has no arguments",
        "batch": "it has no arguments",
    },
    "iota": {
        "jvp": "it has no arguments",
        "batch": "it has no arguments",
    },
}
"""Rules that are declared not to exist, by name of the primitive, with the reason."""

NOT_ADJOINT = {
    "stop_gradient": "no cotangent passes it, whatever it does to values",
}
"""Primitives whose transpose rule is not the adjoint, with the reason."""
