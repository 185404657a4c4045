"""Laws that hold for every row of the table of cases.

* shape: the abstract evaluation tells shape and dtype of the result;
* forward: tangents agree with central differences, to second order, one argument at a time;
* reverse: ``<ct, J v> = <J^T ct, v>``, and the derivative of the right side agrees likewise;
* transpose: the same for each group of arguments in which the operation is linear;
* batch: every choice of mapped arguments agrees with a loop in Python;
* decided: every rule of every primitive is given, derived or declared impossible.

The inner product is bilinear; for complex numbers its real parts are compared, since a function
may be linear over the reals only.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from funcgrad import primitives
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Linear, Primitive
from funcgrad.errors import MissingRuleError
from funcgrad.transforms.jvp import jvp_flat
from funcgrad.transforms.linearize import linearize_flat
from tests.cases import CASES, IMPOSSIBLE, NOT_ADJOINT, Case

ROWS = [(case, dtype) for case in CASES for dtype in case.dtypes]
IDS = [f"{case.name}-{np.dtype(dtype).name}" for case, dtype in ROWS]
STEP = np.cbrt(np.finfo(np.float64).eps)
SINGLE = {"f": "d", "F": "D"}
"""Single precision is judged against differences in double precision."""

every_row = pytest.mark.parametrize(("case", "dtype"), ROWS, ids=IDS)


def rows_of_order(order: int) -> Any:
    chosen = [(row, i) for row, i in zip(ROWS, IDS, strict=True) if row[0].order >= order]
    return pytest.mark.parametrize(
        ("case", "dtype"), [row for row, _ in chosen], ids=[i for _, i in chosen]
    )


def results(case: Case, *args: Any) -> list[Any]:
    out = case.primitive.bind(*args)
    return list(out) if case.primitive.multiple_results else [out]


def observed(case: Case, *args: Any) -> list[Any]:
    """The results, or what does not depend on choices among them."""
    outs = results(case, *args)
    return outs if case.observe is None else case.observe(*outs)


def is_inexact(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "fc"


def direction(x: Any, rng: np.random.Generator) -> Any:
    """A random tangent or cotangent of ``x``."""
    x = np.asarray(x)
    v = rng.standard_normal(x.shape)
    if x.dtype.kind == "c":
        v = v + 1j * rng.standard_normal(x.shape)
    return np.asarray(v, x.dtype)


def doubled(x: Any) -> Any:
    """``x`` in double precision."""
    x = np.asarray(x)
    return x.astype(SINGLE[x.dtype.char]) if x.dtype.char in SINGLE else x


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


def difference(function: Any, args: list[Any], tangents: list[Any]) -> list[Quotient | None]:
    """Central differences of a function of flat arguments, in double precision."""
    high = [
        x if t is None else doubled(x) + STEP * doubled(t)
        for x, t in zip(args, tangents, strict=True)
    ]
    low = [
        x if t is None else doubled(x) - STEP * doubled(t)
        for x, t in zip(args, tangents, strict=True)
    ]
    high = [doubled(x) for x in high]
    low = [doubled(x) for x in low]
    return [
        quotient(a, b) if is_inexact(a) else None
        for a, b in zip(function(*high), function(*low), strict=True)
    ]


def assert_near(found: Any, numeric: Quotient, rtol: float, what: str) -> None:
    """Compare on the scale of the whole array, however small it is; a symbolic zero is zero."""
    expected = np.asarray(numeric.value)
    found = np.zeros(expected.shape) if found is None else np.asarray(found)
    assert found.shape == expected.shape, what
    if expected.size:
        scale = float(np.max(np.abs(expected)))
        error = float(np.max(np.abs(found - expected)))
        allowed = rtol * scale + numeric.rounding
        assert error <= allowed, f"{what}: error {error:.2e} at scale {scale:.2e}"


@pytest.mark.parametrize("slope", [1.0, 1e-3, 1e-8, 0.0])
def test_small_derivatives_are_judged_on_their_own_scale(slope: float) -> None:
    """Wrong ones of any size are found, but for what rounding hides; right ones pass."""
    right = slope * np.cos(np.ones(2))
    (numeric,) = difference(lambda x: [slope * np.sin(x) + 1e-3], [np.ones(2)], [np.ones(2)])
    assert numeric is not None
    assert_near(right, numeric, 1e-6, "tangent")
    with pytest.raises(AssertionError, match="tangent: error"):
        assert_near(1.001 * right + 1e-11, numeric, 1e-6, "tangent")


def magnitude(x: Any) -> float:
    """The largest finite number of an array."""
    x = np.asarray(x)
    return float(np.max(np.abs(x), where=np.isfinite(x), initial=0))


def is_single(values: list[Any]) -> bool:
    """Whether any value has single precision."""
    return any(np.asarray(x).dtype.char in SINGLE for x in values)


def tolerance(case: Case, dtype: str) -> float:
    return max(case.rtol, 2e-4) if dtype in SINGLE else case.rtol


def active_choices(case: Case, args: list[Any]) -> list[tuple[int, ...]]:
    """Each differentiable argument alone, and all of them together."""
    inexact = [i for i, x in enumerate(args) if is_inexact(x)]
    if case.differentiable is not None:
        inexact = list(case.differentiable)
    return [*((i,) for i in inexact), *([tuple(inexact)] if len(inexact) > 1 else [])]


@every_row
def test_shape(case: Case, dtype: str) -> None:
    args = case.draw(dtype)
    with np.errstate(all="ignore"):
        out = results(case, *args)
    claimed = case.primitive.abstract_eval(*[aval_of(a) for a in args])
    claimed = list(claimed) if case.primitive.multiple_results else [claimed]
    assert [aval_of(x) for x in out] == claimed


@every_row
def test_inputs_are_unchanged(case: Case, dtype: str) -> None:
    args = case.draw(dtype)
    copies = [np.array(a) for a in args]
    with np.errstate(all="ignore"):
        results(case, *args)
    for arg, copy in zip(args, copies, strict=True):
        np.testing.assert_array_equal(arg, copy)


@rows_of_order(1)
def test_forward(case: Case, dtype: str) -> None:
    args = case.draw(dtype)
    rng = np.random.default_rng(1)
    for active in active_choices(case, args):
        tangents = [direction(x, rng) if i in active else None for i, x in enumerate(args)]
        outs, out_dots = jvp_flat(lambda *xs: observed(case, *xs), args, tangents, "law")
        expected = difference(lambda *xs: observed(case, *xs), args, tangents)
        for out, dot, numeric in zip(outs, out_dots, expected, strict=True):
            if numeric is None:
                assert dot is None
                continue
            assert dot is None or np.asarray(dot).dtype == np.asarray(out).dtype
            assert_near(dot, numeric, tolerance(case, dtype), f"tangent in arguments {active}")


PARTIAL = [case for case in CASES if case.differentiable is not None]


@pytest.mark.parametrize("case", PARTIAL, ids=[case.name for case in PARTIAL])
def test_missing_partial_derivatives_are_declared(case: Case) -> None:
    args = case.draw()
    assert case.differentiable is not None
    for i, x in enumerate(args):
        if is_inexact(x) and i not in case.differentiable:
            tangents = [np.ones_like(x) if k == i else None for k in range(len(args))]
            with pytest.raises(MissingRuleError, match="has no derivative with respect to"):
                case.primitive.jvp(args, tangents)


@rows_of_order(2)
def test_forward_second_order(case: Case, dtype: str) -> None:
    args = case.draw(dtype)
    rng = np.random.default_rng(2)
    (active,) = active_choices(case, args)[-1:]
    first = [direction(x, rng) if i in active else None for i, x in enumerate(args)]
    second = [direction(x, rng) if i in active else None for i, x in enumerate(args)]

    def tangent(*xs: Any) -> list[Any]:
        cast = [
            t if t is None else np.asarray(t, aval_of(x).dtype)
            for t, x in zip(first, xs, strict=True)
        ]
        _, dots = jvp_flat(lambda *ys: observed(case, *ys), xs, cast, "law")
        return [np.zeros(()) if d is None else d for d in dots]

    _, found = jvp_flat(tangent, args, second, "law")
    for dot, numeric in zip(found, difference(tangent, args, second), strict=True):
        assert_near(dot, numeric, 10 * tolerance(case, dtype), "second derivative")


def inner(xs: list[Any], ys: list[Any]) -> float:
    """Real part of the bilinear product."""
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None]
    return float(sum(np.sum(doubled(x) * doubled(y)).real for x, y in pairs))


def scale_of(xs: list[Any], ys: list[Any]) -> float:
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None]
    return float(sum(np.sum(np.abs(doubled(x) * doubled(y))) for x, y in pairs))


def pull(case: Case, args: list[Any], active: tuple[int, ...], cts: list[Any]) -> list[Any]:
    """Cotangents of the active arguments."""
    mask = [i in active for i in range(len(args))]
    _, linear = linearize_flat(lambda *xs: observed(case, *xs), args, mask, "law")
    found = linear.pull(
        [c if s is not None else None for c, s in zip(cts, linear.outputs, strict=True)]
    )
    return [found[i] for i in active]


@rows_of_order(1)
def test_reverse(case: Case, dtype: str) -> None:
    args = case.draw(dtype)
    rng = np.random.default_rng(3)
    for active in active_choices(case, args):
        tangents = [direction(x, rng) if i in active else None for i, x in enumerate(args)]
        outs, out_dots = jvp_flat(lambda *xs: observed(case, *xs), args, tangents, "law")
        cts = [direction(x, rng) if is_inexact(x) else None for x in outs]
        pulled = pull(case, args, active, cts)
        moved = [tangents[i] for i in active]
        for ct, i in zip(pulled, active, strict=True):
            assert ct is None or aval_of(ct) == aval_of(args[i]), f"cotangent of argument {i}"
        rtol = 1e-4 if dtype in SINGLE else 1e-9
        assert abs(inner(cts, out_dots) - inner(pulled, moved)) <= rtol * scale_of(cts, out_dots)


@rows_of_order(2)
def test_forward_over_reverse(case: Case, dtype: str) -> None:
    args = case.draw(dtype)
    rng = np.random.default_rng(4)
    (active,) = active_choices(case, args)[-1:]
    moves = [direction(x, rng) if i in active else None for i, x in enumerate(args)]
    with np.errstate(all="ignore"):
        cts = [direction(x, rng) if is_inexact(x) else None for x in observed(case, *args)]

    def pulled(*xs: Any) -> list[Any]:
        char = next(aval_of(xs[i]).dtype.char for i in active)
        wide = [c if c is None or char in SINGLE else doubled(c) for c in cts]
        found = pull(case, list(xs), active, wide)
        return [
            np.zeros(aval_of(args[i]).shape) if c is None else c
            for c, i in zip(found, active, strict=True)
        ]

    _, found = jvp_flat(pulled, args, moves, "law")
    for dot, numeric in zip(found, difference(pulled, args, moves), strict=True):
        assert_near(dot, numeric, 10 * tolerance(case, dtype), "forward over reverse")


LINEAR = [(case, dtype, group) for case in CASES for dtype in case.dtypes for group in case.linear]


@pytest.mark.parametrize(
    ("case", "dtype", "group"),
    LINEAR,
    ids=[f"{c.name}-{np.dtype(d).name}-{''.join(map(str, g))}" for c, d, g in LINEAR],
)
def test_transpose(case: Case, dtype: str, group: tuple[int, ...]) -> None:
    args = case.draw(dtype)
    rng = np.random.default_rng(5)
    values = [
        direction(x, rng)
        if i in group
        else np.zeros_like(x)
        if is_linear_elsewhere(case, i, group)
        else x
        for i, x in enumerate(args)
    ]
    out = results(case, *values)
    cts = [direction(x, rng) for x in out]
    ct = cts if case.primitive.multiple_results else cts[0]
    holes = [Linear(aval_of(x)) if i in group else x for i, x in enumerate(args)]
    pulled = case.primitive.transpose(ct, *holes)
    assert len(pulled) == len(args)
    assert all((c is None) for i, c in enumerate(pulled) if i not in group)
    for i in group:
        assert pulled[i] is None or aval_of(pulled[i]) == aval_of(args[i]), (
            f"cotangent of argument {i}"
        )
    rtol = 1e-4 if is_single([*args, *out]) else 1e-9
    found = inner([pulled[i] for i in group], [values[i] for i in group])
    assert abs(inner(cts, out) - found) <= rtol * scale_of(cts, out)


def is_linear_elsewhere(case: Case, argument: int, group: tuple[int, ...]) -> bool:
    """Whether an argument must vanish for the operation to be linear in ``group`` alone."""
    return any(argument in other and set(group) < set(other) for other in case.linear)


@every_row
def test_batch(case: Case, dtype: str) -> None:
    lanes = [case.draw(dtype, seed) for seed in range(3)]
    n = len(lanes[0])
    subsets = [s for k in range(1, n + 1) for s in itertools.combinations(range(n), k)]
    for mapped in subsets:
        stacked = [
            np.stack([lane[i] for lane in lanes]) if i in mapped else lanes[0][i] for i in range(n)
        ]
        dims = [0 if i in mapped else None for i in range(n)]
        with np.errstate(all="ignore"):
            out, out_dims = case.primitive.batch(stacked, dims)
            if not case.primitive.multiple_results:
                out, out_dims = [out], [out_dims]
            expected = [
                results(case, *[lane[i] if i in mapped else lanes[0][i] for i in range(n)])
                for lane in lanes
            ]
        for k, (x, dim) in enumerate(zip(out, out_dims, strict=True)):
            assert dim in (0, None)
            for i, row in enumerate(expected):
                found = x if dim is None else x[i]
                assert aval_of(np.asarray(found)) == aval_of(np.asarray(row[k])), mapped
                rtol = 1e-5 if np.asarray(row[k]).dtype.char in SINGLE else 1e-12
                atol = rtol * magnitude(row[k])
                np.testing.assert_allclose(found, row[k], rtol, atol, err_msg=f"mapped {mapped}")


RULES = ("impl", "abstract_eval", "jvp", "transpose", "batch", "lower")


def all_primitives() -> dict[str, Any]:
    """Every primitive of the package: instances that are tables' rows, and dataclasses.

    The many rows of ``special_*.py`` obey the laws in `tests/scipy/test_special_tables.py`.
    """
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(primitives.__path__, primitives.__name__ + "."):
        if info.name.startswith(primitives.__name__ + ".special_"):
            continue
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if isinstance(value, Primitive) or (
                inspect.isclass(value)
                and issubclass(value, Primitive)
                and value.__module__ == module.__name__
                and not name.startswith("_")
                and is_table_free(value)
                and module.__name__ != STEPS_OF_PROCESSES
            ):
                found[value.name] = value
    return found


STEPS_OF_PROCESSES = "funcgrad.primitives.ranks"
"""What collectives are made of where lanes are processes: the laws of `tests/distributed` hold for
the collectives, and the steps are never differentiated or mapped."""


def is_table_free(kind: type) -> bool:
    """Whether instances of a class are made with static parameters, not as rows of a table."""
    return "__dataclass_fields__" in vars(kind) or "__dataclass_fields__" in vars(kind.__base__)


def has_rule(primitive: Any, rule: str) -> bool:
    kind = primitive if inspect.isclass(primitive) else type(primitive)
    return getattr(kind, rule) is not getattr(Primitive, rule)


PRIMITIVES = all_primitives()


@pytest.mark.parametrize("name", PRIMITIVES)
def test_every_primitive_has_a_row(name: str) -> None:
    assert any(case.primitive.name == name for case in CASES)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_every_rule_is_decided(name: str) -> None:
    declared = IMPOSSIBLE.get(name, {})
    rows = [case for case in CASES if case.primitive.name == name]
    for rule in RULES:
        if rule == "transpose":
            is_needed = any(case.linear for case in rows) or name in NOT_ADJOINT
            assert has_rule(PRIMITIVES[name], rule) == is_needed, "linear rows and the rule differ"
        else:
            assert has_rule(PRIMITIVES[name], rule) != (rule in declared), rule


def test_declarations_name_primitives() -> None:
    assert set(IMPOSSIBLE) <= set(PRIMITIVES)
