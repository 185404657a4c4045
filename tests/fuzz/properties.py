"""What has to hold for every program.

Each property is a function of a program that raises where it does not hold. `CHEAP` run without
compiling anything, a few milliseconds each; `COMPILED` compile kernels.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.compiler.nest import divide, rematerialize
from funcgrad.compiler.nest.arrange import OPTIONAL, SKIP_VARIABLE, VERIFY_VARIABLE
from funcgrad.core.program import evaluate
from funcgrad.extend.laws import doubled
from funcgrad.patterns.linear_programs import Derivative
from tests.fuzz import guards
from tests.fuzz.language import Argument, Program, Step

Arrays = list[np.ndarray]
Property = Callable[[Program], None]


class Different(AssertionError):
    """Two ways to compute the same that do not agree."""


def laid_out(program: Program, lane: int = 0) -> Arrays:
    return [a.laid_out(lane) for a in program.args.values()]


def reference(program: Program, lane: int = 0) -> list[Any]:
    with quiet():
        return [np.asarray(x) for x in program.reference(*laid_out(program, lane))]


@contextmanager
def quiet() -> Iterator[None]:
    """Programs divide by zero as well as others do."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tolerance(program: Program) -> float:
    return 1e-4 if program.is_single else 1e-9


def compare(found: Any, expected: Any, rtol: float, scale: float, what: str) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise Different(
            f"{what}: {found.dtype}{list(found.shape)} instead of "
            f"{expected.dtype}{list(expected.shape)}"
        )
    if np.array_equal(found, expected):
        return
    if expected.dtype.kind not in "fc":
        raise Different(f"{what}: {found.tolist()} instead of {expected.tolist()}")
    if expected.dtype.kind == "c":
        # BLAS multiplies products by one, so infinite ones by infinity times 0, which is NaN.
        with np.errstate(invalid="ignore"):
            scaled = found * expected.dtype.type(1)
        found = np.where(np.isnan(expected) & np.isnan(scaled), scaled, found)
    finite = np.abs(expected[np.isfinite(expected)])
    scale = max(scale, float(np.max(finite, initial=0.0)))
    # Of a complex number with an infinite part, the finite one is rounded as any other number is.
    whole = np.isnan(expected) | ~np.isinf(expected)
    pairs = [(x[whole], x[~whole].real, x[~whole].imag) for x in (found, expected)]
    for x, y in zip(*pairs, strict=True):
        if not np.allclose(x, y, rtol=rtol, atol=rtol * scale, equal_nan=True):
            raise Different(f"{what}: {found.tolist()} instead of {expected.tolist()}")


def compare_all(found: Any, expected: Any, program: Program, what: str, rtol: float = 0.0) -> None:
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        compare(x, y, max(rtol, tolerance(program)), program.scale, what)


# Directions.


def inexact(program: Program) -> list[int]:
    """The positions of arguments that have derivatives."""
    args = list(program.args.values())
    return [k for k, a in enumerate(args) if a.value.dtype.kind in "fc"]


_APART = 1 << 10
_NORMAL = np.random.default_rng(7).standard_normal(_APART << 7)
"""What directions are made of: to draw them anew takes longer than most operations."""


def direction(x: Any, number: int) -> Any:
    """A vector of the type of ``x``, another one for every number below 128."""
    x = np.asarray(x)
    start = _APART * number
    v = _NORMAL[start : start + x.size].reshape(x.shape)
    if x.dtype.kind == "c":
        v = v + 1j * _NORMAL[::-1][start : start + x.size].reshape(x.shape)
    return v.astype(x.dtype)


class Derived:
    """A program as a function of its inexact arguments, to its inexact results."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.expected = reference(program)
        self.args = laid_out(program)
        self.active = inexact(program)
        self.primals = tuple(self.args[k] for k in self.active)
        self.tangents = tuple(direction(x, 7 + k) for k, x in enumerate(self.primals))
        self.outs = [k for k, x in enumerate(self.expected) if x.dtype.kind in "fc"]
        self.cts = tuple(direction(self.expected[k], 70 + k) for k in self.outs)

    @staticmethod
    def of_program(program: Program) -> Derived:
        """The same one for all properties of a program: what they share is computed once."""
        found = program.__dict__.get("derived")
        if found is None:
            found = program.__dict__["derived"] = Derived(program)
        return found

    @property
    def is_there(self) -> bool:
        """Whether there is anything to differentiate."""
        return bool(self.active and self.outs) and self.program.has_derivatives

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def derived(*primals: Any) -> Any:
            full = list(self.args)
            for k, x in zip(self.active, primals, strict=True):
                full[k] = x
            results = function(*full)
            return tuple(results[k] for k in self.outs)

        return derived

    @cached_property
    def pushed(self) -> Any:
        """Results and tangents at the arguments."""
        return self.forward(self.primals, self.tangents)

    @cached_property
    def pulled(self) -> Any:
        """Results and cotangents at the arguments."""
        return self.backward(self.primals, self.cts)

    def forward(self, primals: Any, tangents: Any) -> Any:
        return fg.jvp(self.of(self.program.function), primals, tangents)

    def backward(self, primals: Any, cts: Any) -> Any:
        outs, pull = fg.vjp(self.of(self.program.function), *primals)
        return outs, pull(cts)

    def backward_in_first(self, others: Any) -> Any:
        """The cotangent of the first argument, in which alone the program is differentiated."""
        function = self.of(self.program.function)
        return fg.vjp(lambda x: function(x, *others), self.primals[0])[1](self.cts)[0]


def inner(xs: Any, ys: Any) -> tuple[float, float]:
    """Real part of the bilinear product, and the sum of the sizes of its terms."""
    products = [
        doubled(np.asarray(x)) * doubled(np.asarray(y)) for x, y in zip(xs, ys, strict=True)
    ]
    total = float(sum(np.sum(p).real for p in products))
    return total, float(sum(np.sum(np.abs(p)) for p in products))


# Without the compiler.


def traced(program: Program) -> None:
    """The values that come with tangents are those of NumPy."""
    derived = Derived.of_program(program)
    if derived.is_there:
        expected = [derived.expected[k] for k in derived.outs]
        compare_all(derived.pushed[0], expected, program, "jvp")


def duality(program: Program) -> None:
    """``<ct, J v> = <J^T ct, v>``."""
    derived = Derived.of_program(program)
    if not derived.is_there:
        return
    outs, moved = derived.pushed
    values, pulled = derived.pulled
    compare_all(values, outs, program, "the values of vjp and jvp")
    assert_as_before(derived.args, laid_out(program))
    for x, y in zip(moved, outs, strict=True):
        if np.asarray(x).dtype != np.asarray(y).dtype or np.shape(x) != np.shape(y):
            raise Different(f"a tangent of {np.asarray(x).dtype} of {np.asarray(y).dtype}")
    left, first = inner(derived.cts, moved)
    right, second = inner(pulled, derived.tangents)
    if not np.isfinite(first + second):
        return
    rtol = 1e-3 if program.is_single else 1e-8
    if abs(left - right) > rtol * max(1.0, first, second):
        raise Different(f"<ct, J v> = {left}, <J^T ct, v> = {right}")


def differences(program: Program) -> None:
    """Tangents are differences of what NumPy computes, where it is smooth."""
    derived = Derived.of_program(program)
    if not derived.is_there or program.is_single or not program.is_smooth or program.has_choices:
        return
    if not all(np.isfinite(x).all() for x in derived.primals):
        return  # which have no neighbours
    _, moved = derived.pushed
    function = derived.of(program.reference)
    slopes = []
    with quiet():
        for h in (3e-5, 1e-5):
            ends = [
                function(
                    *(x + s * h * v for x, v in zip(derived.primals, derived.tangents, strict=True))
                )
                for s in (1, -1)
            ]
            slopes.append([(a - b) / (2 * h) for a, b in zip(*ends, strict=True)])
        here = function(*derived.primals)
        slopes.append([(a - b) / h for a, b in zip(ends[0], here, strict=True)])
    for x, rough, fine, ahead in zip(moved, *slopes, strict=True):
        scale = max(1.0, float(np.max(np.abs(fine), initial=0.0)))
        # They have converged, and there is no kink: a rounding error may stand where it is.
        if np.allclose(rough, fine, rtol=1e-5, atol=1e-5 * scale) and np.allclose(
            ahead, fine, rtol=1e-2, atol=1e-2 * scale
        ):
            compare(x, np.asarray(fine, np.asarray(x).dtype), 1e-3, scale, "jvp and differences")


def lanes(program: Program) -> None:
    """`vmap` of all arguments, and of every other one, against a loop."""
    _lanes(program, fg.vmap)


def _lanes(program: Program, vmap: Callable[..., Any]) -> None:
    n = len(program.args)
    for mapped in {tuple(range(n)), tuple(range(0, n, 2))}:
        rows = [
            [a.laid_out(lane if k in mapped else 0) for k, a in enumerate(program.args.values())]
            for lane in (0, 1)
        ]
        axes = [
            (-1 if a.value.ndim else 0) if k in mapped else None
            for k, a in enumerate(program.args.values())
        ]
        stacked = [
            np.stack([rows[0][k], rows[1][k]], -1 if axes[k] == -1 else 0)
            if k in mapped
            else rows[0][k]
            for k in range(n)
        ]
        with quiet():
            expected = [Derived.of_program(program).expected, program.reference(*rows[1])]
            found = vmap(program.function, tuple(axes))(*stacked)
        for lane in (0, 1):
            mine = [x[lane] for x in found]
            compare_all(mine, expected[lane], program, f"lane {lane} of arguments {mapped}")


def curvature(program: Program) -> None:
    """Second derivatives, forward over reverse: symmetric."""
    derived = Derived.of_program(program)
    laws = [step.law for step in program.every() if step.law]
    if not derived.is_there or laws or program.is_single or program.has_choices:
        return
    if not program.is_smooth or any(x.dtype.kind == "c" for x in derived.primals):
        return

    def slope(*primals: Any) -> Any:
        return derived.backward(primals, derived.cts)[1]

    others = tuple(direction(x, 90 + k) for k, x in enumerate(derived.primals))
    first = fg.jvp(slope, derived.primals, derived.tangents)[1]
    second = fg.jvp(slope, derived.primals, others)[1]
    left, a = inner(first, others)
    right, b = inner(second, derived.tangents)
    if np.isfinite(a + b) and abs(left - right) > 1e-7 * max(1.0, a, b):
        raise Different(f"<v, H u> = {left}, <u, H v> = {right}")


def mixed(program: Program) -> None:
    """Second derivatives by the first argument and then by the others, and by all at once."""
    derived = Derived.of_program(program)
    laws = [step.law for step in program.every() if step.law]
    if not derived.is_there or laws or program.is_single or program.has_choices:
        return
    if len(derived.primals) < 2 or not program.is_smooth:
        return

    def of_first(*others: Any) -> Any:
        return derived.backward_in_first(others)

    def of_all(*primals: Any) -> Any:
        return derived.backward(primals, derived.cts)[1][0]

    first, *others = derived.primals
    moved = derived.tangents[1:]
    found = fg.jvp(of_first, tuple(others), moved)
    still = (np.zeros_like(first), *moved)
    expected = fg.jvp(of_all, derived.primals, still)
    for x, y, what in zip(found, expected, ("slopes", "mixed derivatives"), strict=True):
        scale = max(program.scale, float(np.max(np.abs(y), initial=0.0)))
        if np.isfinite(scale):
            compare(x, np.asarray(y), 1e-7, scale, what)


def program_of(program: Program) -> Any:
    """What is compiled: the program of primitives."""
    return fg.jit(program.function).trace(*laid_out(program)).program


def interpreted(program: Program) -> None:
    """The program that is traced, evaluated operation by operation."""
    derived = Derived.of_program(program)
    found = evaluate(program_of(program), derived.args)
    compare_all(found, derived.expected, program, "the traced program")
    shapes = fg.eval_shape(program.function, *derived.args)
    for x, y in zip(shapes, derived.expected, strict=True):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise Different(f"eval_shape: {x} instead of {y.dtype}{list(y.shape)}")


MOST_PLACES = 1 << 17
"""Elements of the largest matrix of derivatives that is compared with its pattern."""


def pattern(program: Program) -> None:
    """No derivative is there where the pattern of the program has none, nor are summands apart."""
    derived = Derived.of_program(program)
    if not derived.is_there:
        return
    is_active = [k in derived.active for k in range(len(derived.args))]
    found = Derivative(program_of(program), is_active)
    if not 0 < found.shape[0] * found.shape[1] <= MOST_PLACES:
        return
    summands = found.summands or ()
    with quiet():
        whole, *parts = (tangents_of(d, derived.args) for d in (found, *summands))
        total = sum(parts)
    for derivative, tangents in zip((found, *summands), (whole, *parts), strict=True):
        if (is_nonzero(tangents) & ~pattern_of(derivative)).any():
            raise Different("the pattern misses a derivative that is not zero")
    if summands:
        is_finite = np.isfinite(total) & np.isfinite(whole)
        scale = float(np.abs(whole[is_finite]).max(initial=1.0))
        compare(total[is_finite], whole[is_finite], tolerance(program), scale, "sum of derivatives")


def tangents_of(derivative: Derivative, args: Arrays, unit: Any = 1) -> Any:
    """Tangents of unit vectors, a row for every element of the results."""
    m, n = derivative.shape
    _, residuals = derivative.results(args)
    pushed = iter(derivative.push(residuals, np.eye(n) * unit))
    found = np.zeros(
        (m, n), np.result_type(float, *(a.dtype for a in derivative.program.out_avals))
    )
    ends = zip(derivative.out_ends, derivative.out_ends[1:], strict=False)
    for (start, stop), is_active in zip(ends, derivative.linearized.is_active_out, strict=True):
        if is_active:
            found[start:stop] = np.asarray(next(pushed)).reshape(n, stop - start).T
    return found


def is_nonzero(tangents: Any) -> Any:
    """Where tangents are numbers other than zero."""
    return (tangents != 0) & ~np.isnan(tangents)


def pattern_of(derivative: Derivative) -> Any:
    """The same as the program says."""
    rows = [
        np.zeros((stop - start, derivative.shape[1]), np.bool_)
        if relation is None
        else relation.matrix.toarray()
        for relation, start, stop in zip(
            derivative.relations, derivative.out_ends, derivative.out_ends[1:], strict=False
        )
    ]
    return np.concatenate(rows)


# With the compiler.


def assert_separate(results: Any, args: Arrays) -> None:
    """No result shares memory with an argument or with another result."""
    arrays = [x for x in results if isinstance(x, np.ndarray)]
    for k, array in enumerate(arrays):
        if any(np.shares_memory(array, other) for other in [*args, *arrays[:k]]):
            raise Different(f"result {k} shares memory")


def assert_as_before(args: Arrays, before: Arrays) -> None:
    """Nobody has written to the arguments."""
    for x, y in zip(args, before, strict=True):
        if not np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"):
            raise Different("an argument has changed")


def compiled(program: Program) -> None:
    """Native code computes what NumPy computes, and touches nothing else."""
    expected, args = reference(program), laid_out(program)
    before = [a.copy() for a in args]
    function = fg.jit(program.function)
    for _ in range(2):  # the general path, and that of repeated calls
        found = function(*args)
        compare_all(found, expected, program, "jit")
        assert_separate(found, args)
        assert_as_before(args, before)
    other = function(*laid_out(program, 1))
    compare_all(other, reference(program, 1), program, "jit at other arguments")


def compiled_derivatives(program: Program) -> None:
    """Native tangents and cotangents are those of the interpreter."""
    derived = Derived.of_program(program)
    if not derived.is_there or program.has_choices:
        return
    both = lambda ps, ts, cts: (derived.forward(ps, ts), derived.backward(ps, cts))  # noqa: E731
    given = derived.primals, derived.tangents, derived.cts
    with quiet():
        (outs, moved), (_, pulled) = both(*given)
    (found, dots), (_, cts) = fg.jit(both)(*given)
    scale = max([1.0, *(float(np.max(np.abs(x), initial=0.0)) for x in (*moved, *pulled))])
    if not np.isfinite(scale):
        return
    wide = replace(program, scale=max(program.scale, scale))
    rtol = 1e-3 if program.is_single else 1e-8
    compare_all(found, outs, wide, "values of a compiled jvp", rtol)
    compare_all(dots, moved, wide, "a compiled jvp", rtol)
    compare_all(cts, pulled, wide, "a compiled vjp", rtol)


def compiled_lanes(program: Program) -> None:
    """Compiled batches against a loop."""
    _lanes(program, lambda f, axes: fg.jit(fg.vmap(f, axes)))


@contextmanager
def variables(**values: str) -> Iterator[None]:
    """Environment variables for a while; small programs are rewritten as large ones are."""
    before = {name: os.environ.get(name) for name in values}
    sizes = rematerialize.MIN_BYTES, divide.MIN_WORK, divide.MIN_PART, divide.MIN_ROW
    os.environ.update(values)
    rematerialize.MIN_BYTES = 0
    divide.MIN_WORK, divide.MIN_PART, divide.MIN_ROW = 32, 2, 4
    try:
        yield
    finally:
        rematerialize.MIN_BYTES, divide.MIN_WORK, divide.MIN_PART, divide.MIN_ROW = sizes
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def passes(program: Program) -> None:
    """Each pass of the compiler may be left out; the verifier looks after each."""
    expected, args = reference(program), laid_out(program)
    for skipped in ("nothing", *OPTIONAL):
        with variables(**{SKIP_VARIABLE: skipped, VERIFY_VARIABLE: "1"}):
            found = fg.jit(lambda *xs: program.function(*xs))(*args)
        compare_all(found, expected, program, f"without {skipped}")


def donated(program: Program) -> None:
    """Arguments whose memory the results may take."""
    expected = reference(program)
    function = fg.jit(program.function, donate_argnums=tuple(range(len(program.args))))
    for _ in range(2):
        found = function(*laid_out(program))
        compare_all(found, expected, program, "donated")


def interrupted(program: Program) -> None:
    """A call that was stopped, by a limit or by Ctrl-C, leaves nothing behind."""
    expected, args = reference(program), laid_out(program)
    function = fg.jit(program.function)
    function(*args)
    for seconds in (1e-6, 1e-5):
        try:
            with fg.limits(seconds=seconds):
                function(*args)
        except TimeoutError:
            pass
        compare_all(function(*args), expected, program, "after a limit")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    alarm = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        for seconds in (2e-6, 1e-5, 5e-5):
            try:
                signal.setitimer(signal.ITIMER_REAL, seconds)
                function(*args)
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            compare_all(function(*args), expected, program, "after an interrupt")
    except KeyboardInterrupt:  # between the calls
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGINT, before)


def guarded(program: Program) -> None:
    """Every buffer lies against a page that may not be touched, at its end and at its beginning."""
    expected = reference(program)
    for side in guards.SIDES:
        with guards.guarded(side) as place:
            args = [place(a.laid_out()) for a in program.args.values()]
            found = fg.jit(program.function)(*args)
            compare_all(found, expected, program, f"guarded at its {side}")


CHEAP: dict[str, Property] = {
    f.__name__: f
    for f in (traced, duality, differences, lanes, curvature, mixed, interpreted, pattern)
}
COMPILED: dict[str, Property] = {
    f.__name__: f
    for f in (
        compiled, compiled_derivatives, compiled_lanes, passes, donated, interrupted, guarded,
    )
}  # fmt: skip
PROPERTIES = CHEAP | COMPILED


def holds(name: str, program: Program) -> Exception | None:
    """What is wrong, if anything."""
    try:
        _check(name, program)
    except Exception as error:
        return error
    return None


def _check(name: str, program: Program) -> None:
    interpreting = fg.disable_jit() if name in CHEAP else nullcontext()
    with quiet(), interpreting:
        PROPERTIES[name](program)


def check(
    name: str,
    function: Callable[..., Any],
    *args: Argument,
    scale: float = 1.0,
    is_smooth: bool = True,
    has_choices: bool = False,
) -> None:
    """Check a property of a program as `Program.as_test` prints it."""
    program = Program(dict(enumerate(args)), (), (), scale)
    step = Step(-1, "", is_smooth=is_smooth, has_choices=has_choices)
    program = replace(program, steps=(step,))
    program.__dict__["text"] = function
    _check(name, program)
