"""The laws of a primitive: how its rules have to agree with each other.

* shape: the abstract evaluation tells shape and dtype of the result;
* inputs: evaluation leaves its arguments as they are;
* forward: tangents agree with central differences, to second order;
* reverse: ``<ct, J v> = <J^T ct, v>``, and the derivative of the right side agrees likewise;
* transpose: the same for each group of arguments in which the operation is linear;
* batch: every choice of mapped arguments agrees with a loop in Python;
* compiled: so do native code and NumPy, for results, derivatives, derivatives of compiled programs,
  and batches.

No law compares a rule with the formula that it was written from. The inner product is bilinear; for
complex numbers its real parts are compared, since a function may be linear over the reals only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import Linear, Primitive
from funcgrad.errors import FuncgradError
from funcgrad.higher_order.jit import Jit
from funcgrad.testing import direction
from funcgrad.transforms.batch import batch_flat
from funcgrad.transforms.jvp import jvp_flat
from funcgrad.transforms.linearize import linearize_flat
from funcgrad.transforms.stage import stage

STEP = np.cbrt(np.finfo(np.float64).eps)
SINGLE = {"f": "d", "F": "D"}
"""Single precision is judged against differences in double precision."""

Group = tuple[int, ...]
Values = Sequence[Any]
FlatFunction = Callable[..., Sequence[Any]]


class LawError(FuncgradError, AssertionError):
    """Two rules of a primitive do not agree."""


class Subject(Protocol):
    """A primitive, and what is claimed of it."""

    @property
    def primitive(self) -> Primitive:
        """With its static parameters."""

    @property
    def name(self) -> str:
        """Name of the case in messages."""

    @property
    def linear(self) -> tuple[Group, ...]:
        """Groups of arguments in which it is linear jointly."""

    @property
    def differentiable(self) -> Group | None:
        """The arguments that have derivatives; ``None`` for all inexact ones."""

    @property
    def observe(self) -> Callable[..., list[Any]] | None:
        """Function whose value is compared instead of the results, which are not unique."""

    @property
    def rtol(self) -> float:
        """Tolerance of finite differences."""


def require(holds: Any, subject: Subject, law: str, what: str) -> None:
    """Raise unless a law holds.

    Raises: LawError: With the name of the primitive, the law and what was found.
    """
    if not holds:
        raise LawError(f"{subject.name} breaks the law {law!r}: {what}.")


# Values.


def results(subject: Subject, *args: Any) -> list[Any]:
    """The results, as a list."""
    out = subject.primitive.bind(*args)
    return list(out) if subject.primitive.multiple_results else [out]


def observed(subject: Subject, *args: Any) -> list[Any]:
    """The results, or what does not depend on choices among them."""
    outs = results(subject, *args)
    return outs if subject.observe is None else subject.observe(*outs)


def is_inexact(x: Any) -> bool:
    """Whether a value has a derivative."""
    return np.asarray(x).dtype.kind in "fc"


def doubled(x: Any) -> Any:
    """``x`` in double precision."""
    x = np.asarray(x)
    return x.astype(SINGLE[x.dtype.char]) if x.dtype.char in SINGLE else x


def is_single(values: Values) -> bool:
    """Whether any value has single precision."""
    return any(np.asarray(x).dtype.char in SINGLE for x in values)


def magnitude(x: Any) -> float:
    """The largest finite number of an array."""
    x = np.asarray(x)
    return float(np.max(np.abs(x), where=np.isfinite(x), initial=0))


def active_choices(subject: Subject, args: Values) -> list[Group]:
    """Each differentiable argument alone, and all of them together."""
    inexact = [i for i, x in enumerate(args) if is_inexact(x)]
    if subject.differentiable is not None:
        inexact = list(subject.differentiable)
    return [*((i,) for i in inexact), *([tuple(inexact)] if len(inexact) > 1 else [])]


def directions(args: Values, active: Group, rng: np.random.Generator) -> list[Any]:
    """Random tangents of some arguments, ``None`` for the others."""
    return [direction(x, rng) if i in active else None for i, x in enumerate(args)]


def tolerance(subject: Subject, single: bool) -> float:
    """The relative error that derivatives may have."""
    return max(subject.rtol, 2e-4) if single else subject.rtol


def precision(single: bool) -> float:
    """The relative error that compiled results may have."""
    return 2e-5 if single else 1e-11


# Central differences.


@dataclass(frozen=True)
class Quotient:
    """A central difference, and how far the rounding of the two values can have moved it."""

    value: Any
    rounding: float


def quotient(high: Any, low: Any) -> Quotient:
    """The difference of two values at the distance of two steps."""
    high, low = np.asarray(high), np.asarray(low)
    largest = float(np.max(np.abs([high, low]), initial=0.0))
    return Quotient((high - low) / (2 * STEP), np.finfo(np.float64).eps * largest / STEP)


def difference(function: FlatFunction, args: Values, tangents: Values) -> list[Quotient | None]:
    """Central differences of a function of flat arguments, in double precision."""
    pairs = list(zip(args, tangents, strict=True))
    high = [x if t is None else doubled(x) + STEP * doubled(t) for x, t in pairs]
    low = [x if t is None else doubled(x) - STEP * doubled(t) for x, t in pairs]
    values = zip(function(*map(doubled, high)), function(*map(doubled, low)), strict=True)
    return [quotient(a, b) if is_inexact(a) else None for a, b in values]


def check_near(
    subject: Subject, law: str, found: Any, numeric: Quotient | None, rtol: float, what: str
) -> None:
    """Compare on the scale of the whole array, however small it is; a symbolic zero is zero."""
    if numeric is None:
        require(found is None, subject, law, f"{what} of a result that is not floating is no zero")
        return
    expected = np.asarray(numeric.value)
    found = np.zeros(expected.shape) if found is None else np.asarray(found)
    shapes = f"{what} has shape {found.shape}, central differences {expected.shape}"
    require(found.shape == expected.shape, subject, law, shapes)
    if expected.size:
        scale = float(np.max(np.abs(expected)))
        error = float(np.max(np.abs(found - expected)))
        allowed = rtol * scale + numeric.rounding
        wrong = f"{what} differs from central differences: error {error:.2e} at scale {scale:.2e}"
        require(error <= allowed, subject, law, wrong)


def inner(xs: Values, ys: Values) -> float:
    """Real part of the bilinear product."""
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None]
    return float(sum(np.sum(doubled(x) * doubled(y)).real for x, y in pairs))


def scale_of(xs: Values, ys: Values) -> float:
    """The sum of the absolute values of what `inner` adds."""
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None]
    return float(sum(np.sum(np.abs(doubled(x) * doubled(y))) for x, y in pairs))


def check_adjoint(
    subject: Subject,
    law: str,
    cts: Values,
    dots: Values,
    pulled: Values,
    moved: Values,
    rtol: float,
) -> None:
    """The adjoint identity, ``<ct, J v> = <J^T ct, v>``."""
    left, right = inner(cts, dots), inner(pulled, moved)
    holds = abs(left - right) <= rtol * scale_of(cts, dots)
    require(holds, subject, law, f"<ct, J v> is {left!r}, <J^T ct, v> is {right!r}")


def check_type(subject: Subject, law: str, found: Any, aval: ShapedArray, what: str) -> None:
    """Compare the type of a value with what it has to be."""
    own = aval_of(found)
    require(own == aval, subject, law, f"{what} is {own}, not {aval}")


# The laws.


def shape(subject: Subject, args: Values) -> None:
    """The abstract evaluation tells the types of the results."""
    with np.errstate(all="ignore"):
        outs = results(subject, *args)
    claimed = subject.primitive.abstract_eval(*[aval_of(a) for a in args])
    claimed = list(claimed) if subject.primitive.multiple_results else [claimed]
    counts = f"evaluation gives {len(outs)} results, abstract evaluation {len(claimed)}"
    require(len(outs) == len(claimed), subject, "shape", counts)
    for i, (out, aval) in enumerate(zip(outs, claimed, strict=True)):
        check_type(subject, "shape", out, aval, f"result {i}")


def inputs_are_unchanged(subject: Subject, args: Values) -> None:
    """Evaluation does not write to its arguments."""
    copies = [np.array(a) for a in args]
    with np.errstate(all="ignore"):
        results(subject, *args)
    for i, (arg, copy) in enumerate(zip(args, copies, strict=True)):
        same = np.array_equal(arg, copy, equal_nan=copy.dtype.kind in "fc")
        require(same, subject, "inputs", f"evaluation changes argument {i}")


def forward(subject: Subject, args: Values, single: bool) -> None:
    """Tangents agree with central differences."""
    rng = np.random.default_rng(1)

    def function(*xs: Any) -> list[Any]:
        return observed(subject, *xs)

    for active in active_choices(subject, args):
        tangents = directions(args, active, rng)
        outs, dots = jvp_flat(function, args, tangents, "law")
        expected = difference(function, args, tangents)
        what = f"the tangent in arguments {active}"
        for out, dot, numeric in zip(outs, dots, expected, strict=True):
            same = dot is None or np.asarray(dot).dtype == np.asarray(out).dtype
            require(same, subject, "forward", f"{what} is not of the dtype of the result")
            check_near(subject, "forward", dot, numeric, tolerance(subject, single), what)


def forward_twice(subject: Subject, args: Values, single: bool) -> None:
    """So do tangents of tangents."""
    rng = np.random.default_rng(2)
    (active,) = active_choices(subject, args)[-1:]
    first = directions(args, active, rng)
    second = directions(args, active, rng)

    def tangent(*xs: Any) -> list[Any]:
        cast = [
            t if t is None else np.asarray(t, aval_of(x).dtype)
            for t, x in zip(first, xs, strict=True)
        ]
        _, dots = jvp_flat(lambda *ys: observed(subject, *ys), xs, cast, "law")
        return [np.zeros(()) if d is None else d for d in dots]

    _, found = jvp_flat(tangent, args, second, "law")
    rtol = 10 * tolerance(subject, single)
    for dot, numeric in zip(found, difference(tangent, args, second), strict=True):
        check_near(subject, "forward, twice", dot, numeric, rtol, "the second derivative")


def pull(subject: Subject, args: Values, active: Group, cts: Values) -> list[Any]:
    """Cotangents of the active arguments."""
    mask = [i in active for i in range(len(args))]
    _, linear = linearize_flat(lambda *xs: observed(subject, *xs), args, mask, "law")
    found = linear.pull(
        [c if s is not None else None for c, s in zip(cts, linear.outputs, strict=True)]
    )
    return [found[i] for i in active]


def reverse(subject: Subject, args: Values, single: bool) -> None:
    """Cotangents are adjoint to tangents."""
    rng = np.random.default_rng(3)
    for active in active_choices(subject, args):
        tangents = directions(args, active, rng)
        outs, dots = jvp_flat(lambda *xs: observed(subject, *xs), args, tangents, "law")
        cts = [direction(x, rng) if is_inexact(x) else None for x in outs]
        pulled = pull(subject, args, active, cts)
        moved = [tangents[i] for i in active]
        for ct, i in zip(pulled, active, strict=True):
            if ct is not None:
                what = f"the cotangent of argument {i}"
                check_type(subject, "reverse", ct, aval_of(args[i]), what)
        check_adjoint(subject, "reverse", cts, dots, pulled, moved, 1e-4 if single else 1e-9)


def forward_over_reverse(subject: Subject, args: Values, single: bool) -> None:
    """Tangents of cotangents agree with central differences."""
    rng = np.random.default_rng(4)
    (active,) = active_choices(subject, args)[-1:]
    moves = directions(args, active, rng)
    with np.errstate(all="ignore"):
        cts = [direction(x, rng) if is_inexact(x) else None for x in observed(subject, *args)]

    def pulled(*xs: Any) -> list[Any]:
        char = next(aval_of(xs[i]).dtype.char for i in active)
        wide = [c if c is None or char in SINGLE else doubled(c) for c in cts]
        found = pull(subject, list(xs), active, wide)
        return [
            np.zeros(aval_of(args[i]).shape) if c is None else c
            for c, i in zip(found, active, strict=True)
        ]

    _, found = jvp_flat(pulled, args, moves, "law")
    rtol = 10 * tolerance(subject, single)
    for dot, numeric in zip(found, difference(pulled, args, moves), strict=True):
        check_near(subject, "forward over reverse", dot, numeric, rtol, "the tangent")


def transpose(subject: Subject, args: Values, group: Group) -> None:
    """The transpose rule is adjoint to the operation in a group of arguments."""
    rng = np.random.default_rng(5)
    others = {i for other in subject.linear if set(group) < set(other) for i in other}
    values = [
        direction(x, rng) if i in group else np.zeros_like(x) if i in others else x
        for i, x in enumerate(args)
    ]
    outs = results(subject, *values)
    cts = [direction(x, rng) for x in outs]
    ct = cts if subject.primitive.multiple_results else cts[0]
    holes = [Linear(aval_of(x)) if i in group else x for i, x in enumerate(args)]
    pulled = subject.primitive.transpose(ct, *holes)
    counts = f"{len(pulled)} cotangents for {len(args)} arguments"
    require(len(pulled) == len(args), subject, "transpose", counts)
    for i, c in enumerate(pulled):
        what = f"the cotangent of argument {i}"
        is_none = f"{what} is not None, though it is not linear in it here"
        require(c is None or i in group, subject, "transpose", is_none)
        if c is not None:
            check_type(subject, "transpose", c, aval_of(args[i]), what)
    rtol = 1e-4 if is_single([*args, *outs]) else 1e-9
    linear = [values[i] for i in group]
    check_adjoint(subject, "transpose", cts, outs, [pulled[i] for i in group], linear, rtol)


def batch(subject: Subject, lanes: Sequence[Values]) -> None:
    """The batching rule agrees with a loop, for every choice of mapped arguments."""
    n = len(lanes[0])
    primitive = subject.primitive
    for mapped in (s for k in range(1, n + 1) for s in itertools.combinations(range(n), k)):
        stacked = [
            np.stack([lane[i] for lane in lanes]) if i in mapped else lanes[0][i] for i in range(n)
        ]
        dims = [0 if i in mapped else None for i in range(n)]
        with np.errstate(all="ignore"):
            out, out_dims = primitive.batch(stacked, dims)
            if not primitive.multiple_results:
                out, out_dims = [out], [out_dims]
            expected = [
                results(subject, *[lane[i] if i in mapped else lanes[0][i] for i in range(n)])
                for lane in lanes
            ]
        for k, (x, dim) in enumerate(zip(out, out_dims, strict=True)):
            what = f"result {k}, with arguments {mapped} mapped,"
            require(dim in (0, None), subject, "batch", f"{what} is mapped along axis {dim}, not 0")
            for i, row in enumerate(expected):
                found = np.asarray(x if dim is None else x[i])
                _check_lane(subject, found, np.asarray(row[k]), what)


def _check_lane(subject: Subject, found: Any, expected: Any, what: str) -> None:
    check_type(subject, "batch", found, aval_of(expected), what)
    rtol = 1e-5 if expected.dtype.char in SINGLE else 1e-12
    atol = rtol * magnitude(expected)
    near = np.allclose(found, expected, rtol, atol, equal_nan=True)
    require(near, subject, "batch", f"{what} is not what a loop gives")


# Compiled.


def compiled(function: FlatFunction, args: Values) -> list[Any]:
    """The results of a flat function, traced and compiled."""
    program, captured = stage(function, [aval_of(x) for x in args], "law")
    assert not captured
    return Jit(program).bind(*args)


def check_same(
    subject: Subject, law: str, found: Values, expected: Values, rtol: float, what: str
) -> None:
    """Compare arrays: types, integers exactly, floats on the scale of the whole array."""
    for i, (x, y) in enumerate(zip(found, expected, strict=True)):
        x, y = np.asarray(x), np.asarray(y)
        which = f"{what} {i}"
        types = f"{which} is {aval_of(x)}, evaluated {aval_of(y)}"
        require(x.shape == y.shape and x.dtype == y.dtype, subject, law, types)
        if y.dtype.kind not in "fc":
            same = np.array_equal(x, y)
        else:
            finite = y[np.isfinite(y)]
            scale = float(np.max(np.abs(finite))) if finite.size else 1.0
            same = np.allclose(x, y, rtol, rtol * max(scale, 1e-30), equal_nan=True)
        require(same, subject, law, f"{which} differs from what is evaluated")


def compiled_results(subject: Subject, args: Values, single: bool) -> None:
    """Native code computes what NumPy does."""
    with np.errstate(all="ignore"):
        expected = results(subject, *args)
    found = compiled(lambda *xs: results(subject, *xs), args)
    check_same(subject, "compiled", found, expected, precision(single), "result")


def allowed(subject: Subject, single: bool) -> float:
    """Relative error that compiled derivatives may have."""
    return max(10 * precision(single), tolerance(subject, single) if single else 0)


def _tangents_and_cotangents(
    subject: Subject, args: Values, point: Values, function: FlatFunction
) -> list[Any]:
    """Tangents of the results, and cotangents of the arguments, at random directions.

    Args:
        subject: The primitive.
        args: Concrete arguments.
        point: The same, or traced values in their place.
        function: Of which the derivatives are.
    """
    rng = np.random.default_rng(7)
    active = active_choices(subject, args)[-1]
    tangents = directions(args, active, rng)
    outs, dots = jvp_flat(function, point, tangents, "law")
    cts = [direction(np.zeros(aval_of(x).shape, aval_of(x).dtype), rng) for x in outs]
    _, linear = linearize_flat(function, point, [t is not None for t in tangents], "law")
    some = [
        c if s is not None and is_inexact(np.empty(0, aval_of(c).dtype)) else None
        for c, s in zip(cts, linear.outputs, strict=True)
    ]
    pulled = linear.pull(some)
    found = [*outs, *dots, *(pulled[i] for i in active)]
    return [x for x in found if x is not None]


def compiled_derivatives(subject: Subject, args: Values, single: bool) -> None:
    """Differentiated first, and compiled then."""

    def derived(*xs: Any) -> list[Any]:
        return _tangents_and_cotangents(subject, args, xs, lambda *ys: observed(subject, *ys))

    with np.errstate(all="ignore"):
        expected = derived(*args)
    rtol = allowed(subject, single)
    found = compiled(derived, args)
    check_same(subject, "compiled derivatives", found, expected, rtol, "derivative")


def derivatives_of_compiled(subject: Subject, args: Values, single: bool) -> None:
    """Compiled first, and differentiated then."""

    def function(*ys: Any) -> list[Any]:
        return observed(subject, *ys)

    program, _ = stage(function, [aval_of(x) for x in args], "law")
    with np.errstate(all="ignore"):
        expected = _tangents_and_cotangents(subject, args, args, function)
        nested = _tangents_and_cotangents(subject, args, args, lambda *ys: Jit(program).bind(*ys))
    rtol = allowed(subject, single)
    check_same(subject, "derivatives of compiled", nested, expected, rtol, "derivative")


def compiled_batches(subject: Subject, lanes: Sequence[Values], single: bool) -> None:
    """Mapped first, and compiled then."""
    stacked = [np.stack(rows) for rows in zip(*lanes, strict=True)]

    def batched(*xs: Any) -> list[Any]:
        size = len(lanes)
        mapped = [0] * len(xs)
        outs, dims = batch_flat(lambda *ys: observed(subject, *ys), xs, mapped, size, "law")
        return [x for x, d in zip(outs, dims, strict=True) if d is not None]

    with np.errstate(all="ignore"):
        expected = batched(*stacked)
    rtol = 10 * precision(single)
    found = compiled(batched, stacked)
    check_same(subject, "compiled batches", found, expected, rtol, "result")
