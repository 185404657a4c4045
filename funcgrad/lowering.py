"""The forms: what a kernel computes, as data.

Primitives say *what* they compute in one of these forms; the compiler knows how to turn each form
into native code and knows no primitive by name. A new primitive that fits a form needs no change
in the compiler.

Scalar expressions are templates over ``{0}``, ``{1}``, ... in the vocabulary of generated kernels
(`docs/compiler.md` lists it). They contain no text from user data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Equation, Program


@dataclass(frozen=True)
class Pointwise:
    """``out[i] = expr(in0[i], in1[i], ...)`` with NumPy's broadcasting of the inputs.

    Args:
        expr: Scalar expression, such as ``"{0} * {1}"`` or ``"exp({0})"``. Its value is cast to
            the dtype of the output.
        counts: Inputs, of integers, that count something: negative elements are refused
            (`Primitive.refusal`).
    Example: fg.extend.Pointwise("2 * {0}").expr -> '2 * {0}'
    """

    expr: str
    counts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reindex:
    """A strided view: ``out[i] = in[index(i)]``, no arithmetic.

    Args:
        axes: For every output axis, the input axis that it runs along, or ``None`` where
            the input is repeated. An input axis that no output axis runs along stays at
            its start.
        starts: First index along every input axis.
        steps: Step along every output axis (in elements of the input axis; may be negative).
    """

    axes: tuple[int | None, ...]
    starts: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Reshape:
    """The same elements in row-major order under another shape: that of the output."""


@dataclass(frozen=True)
class Reduction:
    """A fold over ``axes``; reduced axes are dropped from the output.

    Args:
        axes: Reduced axes, ascending.
        init: Scalar expression without arguments: the neutral element. ``{lowest}`` and
            ``{highest}`` stand for the extreme values of the dtype.
        step: Scalar expression that folds ``{1}`` into the accumulator ``{0}``. It is associative
            and commutative up to rounding, so that it also combines partial results.
        accurate: Whether rounding errors must not grow with the length (sums): partial results
            are formed in fixed blocks.
    """

    axes: tuple[int, ...]
    init: str
    step: str
    accurate: bool = False


@dataclass(frozen=True)
class PrefixScan:
    """A running fold along one axis; the output has the type of every input.

    Args:
        axis: Axis of the scan.
        reverse: Whether it starts at the far end.
        init: As in `Reduction`: what comes before the first element.
        step: Scalar expression: the next element, of the one before, ``{0}``, and of an element of
            each input, ``{1}`` and so on.
    """

    axis: int
    reverse: bool
    init: str
    step: str


@dataclass(frozen=True)
class Slide:
    """A window that slides along an axis.

    Tap ``k`` of window ``o`` is the element ``i`` for which

        base * i + low == stride * o + dilation * k,

    and nothing, a zero of sums, where no element is that one. Elements, windows and taps play
    equal parts: what is a slide for two of them is one for every other two, so that transposing
    what slides gives what slides.

    Args:
        windows: How many windows there are.
        taps: How many elements a window has.
        stride: Distance of windows; not 0.
        dilation: Distance of taps; not 0.
        low: Place of the first element.
        base: Distance of elements; positive.
    """

    windows: int
    taps: int
    stride: int = 1
    dilation: int = 1
    low: int = 0
    base: int = 1

    @property
    def reach(self) -> tuple[int, int]:
        """The least and the greatest place of a tap."""
        ends = [(self.windows - 1) * self.stride, (self.taps - 1) * self.dilation]
        return sum(min(0, n) for n in ends), sum(max(0, n) for n in ends)

    def from_windows(self, length: int) -> Slide:
        """The same of windows as elements: for each of the ``length`` elements its taps."""
        return _facing_up(length, self.taps, self.base, -self.dilation, -self.low, self.stride)

    def over_windows(self) -> Slide:
        """The same with taps for windows and windows for taps."""
        return Slide(self.taps, self.windows, self.dilation, self.stride, self.low, self.base)


def _facing_up(windows: int, taps: int, stride: int, dilation: int, low: int, base: int) -> Slide:
    """A slide, of which both sides of the equation are negated if the base is negative."""
    sign = -1 if base < 0 else 1
    return Slide(windows, taps, sign * stride, sign * dilation, sign * low, sign * base)


@dataclass(frozen=True)
class Contraction:
    """Sum of products of two arrays, by labels, such as ``"bij,bjk->bik"``.

    Args:
        lhs: One letter per axis of the first input; no letter repeats within an operand.
        rhs: One letter per axis of the second input.
        out: One letter per axis of the output. Letters in both inputs and the output are batch
            axes, those in both inputs only are summed, the others are free.
        slides: For letters of all three, how windows of the first input slide: the axis of the
            output counts windows, that of the second input taps, which are summed.
    """

    lhs: str
    rhs: str
    out: str
    slides: tuple[tuple[str, Slide], ...] = ()


@dataclass(frozen=True)
class WindowFold:
    """A fold over the taps of windows: ``out[o]`` folds ``expr(in0[i], ...)`` over taps.

    Args:
        slides: For every axis of the output, how windows slide along that axis of the inputs.
        sliding: For every input whether it slides; others have the shape of the output.
        fills: For every input that slides what stands where it has no element, as in
            `Reduction.init`, or an integer.
        expr: Scalar expression of the inputs and, last, the row-major number of the tap.
        init: As in `Reduction`.
        step: As in `Reduction`.
        accurate: As in `Reduction`.
    """

    slides: tuple[Slide, ...]
    sliding: tuple[bool, ...]
    fills: tuple[str, ...]
    expr: str
    init: str
    step: str
    accurate: bool = False


@dataclass(frozen=True)
class Piece:
    """Place of one input of an `Assemble` in its output.

    Args:
        starts: Index of its first element along every output axis.
        steps: Distance of neighbouring elements along every output axis.
        lows: First element of the input that is used, along every axis.
        sizes: How many elements are used, along every axis.
    """

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    lows: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Assemble:
    """The output is put together from copies of the inputs (concatenation, padding).

    Args:
        pieces: One for every input that is copied.
        fill: Whether a further, last, scalar input fills what no piece covers.
    """

    pieces: tuple[Piece, ...]
    fill: bool


@dataclass(frozen=True)
class Lookup:
    """Elements of the first input at places that the other inputs, arrays of integers, name.

    The index arrays broadcast together; the output has their axes first, then those axes of the
    first input that are not indexed, in order.

    Args:
        axes: The axis that each index array counts along, all different.
        mode: What an index ``i`` means along an axis of length ``n``. ``"raise"``: ``-n .. n-1``,
            negative ones from the end; others are refused (`Primitive.refusal`). ``"fill"``: the
            same, others read ``fill``. ``"clip"``: the nearest of ``0 .. n-1``. ``"wrap"``:
            ``i`` modulo ``n``. The last two need axes with elements.
        fill: Scalar of the dtype of the output, for mode "fill".
    """

    axes: tuple[int, ...]
    mode: str
    fill: Any = None


@dataclass(frozen=True)
class Scatter:
    """A copy of the first input in which places take in the second: the converse of `Lookup`.

    The inputs after the second are index arrays; the second has the shape that a `Lookup` of the
    first would have. Its elements are taken in one after the other, in row-major order.

    Args:
        axes: As in `Lookup`.
        mode: As in `Lookup`; where it would fill, the element is left out.
        step: Scalar expression: what the place holds when ``{1}`` comes to ``{0}``.
    """

    axes: tuple[int, ...]
    mode: str
    step: str


@dataclass(frozen=True)
class Window:
    """The part of the first input that starts at the other inputs, one integer for every axis.

    Starts are moved so that the part lies inside.
    """

    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Replace:
    """A copy of the first input with a part replaced by the second: the converse of `Window`.

    The inputs after the second are its starts.
    """


@dataclass(frozen=True)
class ArgReduction:
    """The index of the first extreme element along one axis, which the output does not have.

    Args:
        axis: The axis.
        step: Scalar expression: the more extreme of ``{0}`` and ``{1}``.
        better: Scalar expression: whether ``{0}`` is more extreme than ``{1}``. It orders all
            values, of which equal ones are extreme alike.
    """

    axis: int
    step: str
    better: str


@dataclass(frozen=True)
class Search:
    """How many elements of an ascending array come before each value.

    The first input is the array, with a last axis that is searched, the second has the values.

    Args:
        lanes: Number of leading axes of both that count separate searches.
        before: Scalar expression: whether the element ``{0}`` comes before the value ``{1}``.
    """

    lanes: int
    before: str


@dataclass(frozen=True)
class Constant:
    """No inputs: evaluated once, when the plan is made."""


@dataclass(frozen=True)
class Extern:
    """A call of the primitive's own NumPy evaluation: what nothing else can express."""


@dataclass(frozen=True)
class Array:
    """Memory that the calls of a `Routine` read and write: contiguous.

    Args:
        shape: Its shape; its first axes are those of the stack, or it has none of these.
        dtype: Its dtype, to which inputs, and from which results are converted. ``None`` for what
            the ufunc that reads or writes it has for the dtypes of its inputs.
        order: Its axes as they are stored, the outermost first; by default row-major.
        start: The input that it is a copy of at first.
        counts: Whether it holds 0, 1, 2, ... along its last axis at first.
        value: A scalar that it always holds.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None = None
    order: tuple[int, ...] | None = None
    start: int | None = None
    counts: bool = False
    value: Any = None


@dataclass(frozen=True)
class UfuncCall:
    """The loop of a ufunc, or generalised ufunc, over all elements of the stack.

    Args:
        module: Where it is found.
        names: Its name there; in other versions of the library the next ones.
        arrays: The numbers of its arrays, inputs first.
        may_fail: Whether it raises the floating-point flag "invalid" where it fails
            (`Primitive.refusal`), and only there.
    """

    module: str
    names: tuple[str, ...]
    arrays: tuple[int, ...]
    may_fail: bool = False

    @property
    def touches(self) -> tuple[int, ...]:
        """The arrays that it reads or writes."""
        return self.arrays


@dataclass(frozen=True)
class Ref:
    """An argument of LAPACK: the array of this number, at one element of the stack.

    Args:
        array: The number.
        offset: Elements that are left out.
        step: Elements from what one block concerns to the next one (`LapackCall.blocks`).
    """

    array: int
    offset: int = 0
    step: int = 0


@dataclass(frozen=True)
class LapackCall:
    """A function of LAPACK or BLAS for every element of the stack.

    Args:
        name: Without the letter for the dtype.
        dtype: Whose function it is.
        arguments: Characters, integers and arrays.
        may_fail: Whether the last argument is ``info``, of which another value than 0 is a failure
            (`Primitive.refusal`).
        blocks: How often it is called for a single element of the stack, on parts of arrays
            (`Ref.step`) that do not concern each other.
    """

    name: str
    dtype: np.dtype[Any]
    arguments: tuple[str | int | Ref, ...]
    may_fail: bool = False
    blocks: int = 1

    @property
    def touches(self) -> tuple[int, ...]:
        """The arrays that it reads or writes."""
        return tuple(x.array for x in self.arguments if isinstance(x, Ref))


@dataclass(frozen=True)
class FourierCall:
    """Transforms of complex numbers: ``sum over j of x[j] exp(-2 pi i j k / n)``, many at a time.

    The arrays are complex, or real: then neighbours are the parts of complex numbers. Distances are
    counted in complex numbers. Lanes, or elements, lie side by side in each of them.

    Args:
        source: The number of the array that is transformed.
        target: The number of the array of results.
        n: Elements of a transform: a product of primes up to 13.
        blocks: How many blocks of lanes there are.
        lanes: How many lanes a block has.
        read: Distances of blocks, of elements, of lanes.
        written: The same of results.
        inverse: Whether the sign of the exponent is positive.
        scale: What results are multiplied by.
        turns: If not 0: the element ``k`` of lane ``l`` is multiplied by
            ``exp(-2 pi i k l / turns)``, or its inverse.
    """

    source: int
    target: int
    n: int
    blocks: int
    lanes: int
    read: tuple[int, int, int]
    written: tuple[int, int, int]
    inverse: bool
    scale: float = 1.0
    turns: int = 0

    @property
    def touches(self) -> tuple[int, ...]:
        """The arrays that it reads or writes."""
        return self.source, self.target


@dataclass(frozen=True)
class Together:
    """Calls that do not concern each other: threads may run them at the same time.

    Args: calls: Calls of one function with arguments of the same kinds, none of which may fail.
    """

    calls: tuple[LapackCall, ...]

    @property
    def touches(self) -> tuple[int, ...]:
        """The arrays that they read or write."""
        return tuple(sorted({i for call in self.calls for i in call.touches}))


@dataclass(frozen=True)
class SortCall:
    """NumPy's sorting of the last stored axis, nan last.

    Args:
        values: The array to be sorted, or compared.
        order: The array of places (int64) to be sorted by these values, which stay as they are.
        stable: Whether equal elements keep their order.
    """

    values: int
    order: int | None = None
    stable: bool = True

    @property
    def touches(self) -> tuple[int, ...]:
        """The arrays that it reads or writes."""
        return (self.values,) if self.order is None else (self.values, self.order)


@dataclass(frozen=True)
class SelectCall:
    """The greatest numbers along the last axis of an array, in order, and their places (int64).

    nan counts as the greatest number; of equal ones the first comes first.

    Args:
        source: The number of the array, of real numbers.
        values: The number of the array of results.
        places: The number of the array of places.
    """

    source: int
    values: int
    places: int

    @property
    def touches(self) -> tuple[int, ...]:
        """The arrays that it reads or writes."""
        return self.source, self.values, self.places


@dataclass(frozen=True)
class Background:
    """Background part of a `NativeCall`, after it has returned.

    Attributes:
        ask: The call by which it goes on; it does nothing at the end.
        end: The call that waits for its end.
        nothing: The word where nothing is under way: before the first call, and after the end.

    All three calls take array 2: a word for what is under way, and another one to be written to.
    That of the input must not change until the end, that of the result must not be read.
    """

    ask: NativeCall
    end: NativeCall
    nothing: int


@dataclass(frozen=True)
class NativeCall:
    """A function of a library, ``int function(...)``, by its address.

    Args:
        name: What plans call it.
        address: Where it is in this process.
        arguments: Integers, pointers among them, and arrays. A result other than 0 is a failure
            (`Primitive.refusal`).
        in_place: The arguments where the first result has the memory of the first input; empty if
            it must not.
        background: What goes on when it has returned.
    """

    name: str
    address: int
    arguments: tuple[int | Ref, ...]
    in_place: tuple[int | Ref, ...] = ()
    background: Background | None = None

    @property
    def touches(self) -> tuple[int, ...]:
        """The arrays that it reads or writes."""
        return tuple(x.array for x in self.arguments if isinstance(x, Ref))


MOST_SMALL = 128
"""Rows and columns of the largest matrix of a `SmallCall`."""


@dataclass(frozen=True)
class SmallCall:
    """A kernel of the compiler's own for matrices that are not empty, up to `MOST_SMALL`.

    Args:
        name: What it computes.
        arrays: The numbers of its arrays, inputs first.
        sizes: Rows and columns of a matrix, and number of its right-hand sides.
        may_fail: Whether what fails for a matrix is a failure (`Primitive.refusal`, with the number
            of the pivot, from 1 on); else its results are nan where they do not exist.
        lower: Of a triangular system, which triangle is read.
        transposed: Whether a system is solved with the transpose.
        unit: Whether the diagonal is taken to be 1.
    """

    name: str
    arrays: tuple[int, ...]
    sizes: tuple[int, int, int]
    may_fail: bool = False
    lower: bool = False
    transposed: bool = False
    unit: bool = False

    @property
    def touches(self) -> tuple[int, ...]:
        """The arrays that it reads or writes."""
        return self.arrays


GROUP_ROWS = 4
"""Rows that an `EliminationCall` works on at a time, at most."""

ELIMINATION_HEAD = (
    "size", "groups", "records", "columns", "sources", "rows", "places", "numbers", "order",
)  # fmt: skip
"""First integers in the table of an `EliminationCall`: numbers of unknowns and of groups of rows,
and where its parts begin.

They are an `ELIMINATION_RECORD` of every group, and one more; of every stored column of U its
number; for each group those that it is reduced by; of every stored column of L the row that was its
pivot; of every entry of the matrix, by groups, its place in memory for `GROUP_ROWS` dense rows, and
its number; the order of the unknowns.
"""

ELIMINATION_RECORD = ("row", "column", "source", "multiple", "entry")
"""Integers of a group: its first row, and the first of its columns of U, sources, columns of L,
entries."""


@dataclass(frozen=True)
class EliminationCall:
    """A kernel of the compiler's own for sparse matrices that are eliminated in a known order.

    Args:
        name: ``"factor"``, ``"solve"`` or ``"solve_transposed"``.
        arrays: The numbers of its arrays: a table of integers, which has no stack, the arguments,
            the result and memory of its own.
    """

    name: str
    arrays: tuple[int, ...]

    @property
    def touches(self) -> tuple[int, ...]:
        """The arrays that it reads or writes."""
        return self.arrays


LibraryCall = (
    UfuncCall
    | LapackCall
    | Together
    | SortCall
    | SelectCall
    | FourierCall
    | NativeCall
    | SmallCall
    | EliminationCall
)


@dataclass(frozen=True)
class Routine:
    """Calls of native functions, most of them of libraries, one after the other.

    Args:
        arrays: Those of the inputs, which are only read; then results and what is needed between.
        results: The arrays that are the results.
        calls: The calls; none for memory that is not set.
        n_stack: The number of leading axes that count elements of the stack.
    """

    arrays: tuple[Array, ...]
    results: tuple[int, ...]
    calls: tuple[LibraryCall, ...]
    n_stack: int = 0


@dataclass(frozen=True)
class Call:
    """Run a sub-program."""

    program: Program


@dataclass(frozen=True)
class Barrier:
    """The inputs, unchanged; what reads the outputs runs after everything that came before.

    Operations behind it are neither merged with equal ones in front of it nor joined to their
    kernels, so that what is computed a second time takes no memory before it is needed.
    """


@dataclass(frozen=True)
class Loop:
    """Run the equation's ``body`` once per step.

    Its inputs are constants, carried values and one element of every scanned array; its outputs the
    carried values and one element of every stacked result.

    Args:
        n_consts: Number of constants.
        n_carry: Number of carried values.
        length: Number of steps.
        reverse: Whether the first step takes the last elements.
    """

    n_consts: int
    n_carry: int
    length: int
    reverse: bool


@dataclass(frozen=True)
class While:
    """Run the equation's ``body`` as long as its ``condition`` holds.

    Inputs are constants of the condition, constants of the body, and the carried values.

    Args:
        n_cond_consts: Number of constants of the condition.
        n_body_consts: Number of constants of the body.
        has_flags: Whether the last carried value has a flag for each lane, along the first axis of
            all that is carried, and the condition is that any of them is set. The body leaves
            values of lanes as they are whose flags are not, and no lane needs another one.
    """

    n_cond_consts: int
    n_body_consts: int
    has_flags: bool = False


@dataclass(frozen=True)
class Branch:
    """Run one of the equation's ``branches``: the first input is its index."""


Form = (
    Pointwise
    | Reindex
    | Reshape
    | Reduction
    | PrefixScan
    | Contraction
    | WindowFold
    | Assemble
    | Lookup
    | Scatter
    | Window
    | Replace
    | ArgReduction
    | Search
    | Constant
    | Extern
    | Routine
    | Barrier
    | Call
    | Loop
    | While
    | Branch
)


def form_of(equation: Equation) -> Form:
    """Form of an equation: its computation, as data.

    Raises: MissingRuleError: If its primitive has no rule for that.
    """
    primitive = equation.primitive
    if type(primitive).lower is Primitive.lower:
        raise primitive.missing("compilation", equation.source)
    return primitive.lower(*(atom.aval for atom in equation.inputs))
