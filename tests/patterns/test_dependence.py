"""Patterns of programs: no derivative is missed, and few places are there for nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse

import funcgrad as fg
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import Primitive
from funcgrad.errors import DtypeError, MissingRuleError, ShapeError
from funcgrad.patterns.linear_programs import Derivative
from funcgrad.sparsity import hessian_sparsity, jacobian_sparsity
from funcgrad.transforms.programs import stage_closed
from tests.cases import CASES, Case
from tests.fuzz.properties import is_nonzero, pattern_of, quiet, tangents_of
from tests.test_compositions import LETTERS, POINT, SAMPLES


def differentiable(case: Case, args: list[Any]) -> list[bool]:
    return [
        np.asarray(x).dtype.kind in "fc"
        and (case.differentiable is None or i in case.differentiable)
        for i, x in enumerate(args)
    ]


def rows() -> list[tuple[Case, bool]]:
    """Cases with derivatives, and whether other arguments, such as indices, are known."""
    found = []
    for case in CASES:
        active = differentiable(case, case.draw(case.dtypes[0]))
        if any(active):
            found += [(case, known) for known in ([False] if all(active) else [False, True])]
    return found


ROWS = rows()
SECOND = [
    case
    for case in CASES
    if case.order > 1 and "d" in case.dtypes
    and any(differentiable(case, case.draw("d")))
    and sum(np.size(x) for x in case.draw("d")) <= 60
]  # fmt: skip


def derivative_of(function: Callable[..., Any], args: list[Any], active: list[bool]) -> Any:
    """The derivative of a function of flat arguments; others than active ones are constants."""
    chosen = [x for x, on in zip(args, active, strict=True) if on]

    def of_chosen(*xs: Any) -> list[Any]:
        rest = iter(xs)
        return function(*(next(rest) if on else x for x, on in zip(args, active, strict=True)))

    program = stage_closed(of_chosen, [aval_of(x) for x in chosen], "case")
    return Derivative(program, [True] * len(chosen)), chosen


def assert_nothing_is_missed(derivative: Derivative, args: list[Any]) -> None:
    if 0 in derivative.shape:
        return
    units = (1, 1j) if any(np.asarray(x).dtype.kind == "c" for x in args) else (1,)
    pattern = pattern_of(derivative)
    with quiet():
        for unit in units:
            assert not (is_nonzero(tangents_of(derivative, args, unit)) & ~pattern).any()


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("case", "are_known"), ROWS, ids=[f"{c.name}{'-known' if k else ''}" for c, k in ROWS]
)
def test_no_derivative_of_a_primitive_is_missed(case: Case, are_known: bool) -> None:
    args = case.draw(case.dtypes[0])
    active = differentiable(case, args)

    def function(*xs: Any) -> list[Any]:
        out = case.primitive.bind(*xs)
        return list(out) if case.primitive.multiple_results else [out]

    try:
        if are_known:  # indices are constants of the program
            derivative, given = derivative_of(function, args, active)
        else:
            program = stage_closed(function, [aval_of(x) for x in args], "case")
            derivative, given = Derivative(program, active), args
    except MissingRuleError:
        pytest.skip("it is not differentiable in all arguments jointly")
    assert_nothing_is_missed(derivative, given)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("case", SECOND, ids=lambda case: case.name)
def test_no_second_derivative_of_a_primitive_is_missed(case: Case) -> None:
    args = case.draw("d")
    active = differentiable(case, args)
    rng = np.random.default_rng(1)

    def gradient(*xs: Any) -> list[Any]:
        def weighted(chosen: Any) -> Any:
            rest = iter(chosen)
            outs = case.primitive.bind(
                *(next(rest) if on else x for x, on in zip(xs, active, strict=True))
            )
            outs = list(outs) if case.primitive.multiple_results else [outs]
            outs = outs if case.observe is None else case.observe(*outs)
            return sum(
                np.sum(part(out) * rng.uniform(0.5, 1.5, out.shape))
                for out in outs
                if aval_of(out).dtype.kind in "fc"
                for part in (np.real, np.imag)
            )

        return fg.grad(weighted)([x for x, on in zip(xs, active, strict=True) if on])

    try:
        derivative, given = derivative_of(gradient, args, active)
    except (MissingRuleError, ShapeError, DtypeError):
        pytest.skip("its results are no numbers that have second derivatives")
    assert_nothing_is_missed(derivative, given)


@pytest.mark.sampled(32)
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("word", ["", "jit", "vmap", "jvp", "grad", "jit grad", "grad vmap"])
def test_no_derivative_of_a_composition_is_missed(name: str, word: str) -> None:
    function = SAMPLES[name].program
    for letter in word.split():
        function = LETTERS[letter](function)
    found = hessian_sparsity(function)(POINT).toarray()
    assert not ((fg.hessian(function)(POINT) != 0) & ~found).any()


# Exact patterns.


def second_difference(x: Any) -> Any:
    return x[2:] - 2 * x[1:-1] + x[:-2]


def five_points(u: Any) -> Any:
    p = np.pad(u.reshape(6, 5), 1)
    return (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * p[1:-1, 1:-1]).ravel()


def mapped_over_rows(x: Any) -> Any:
    return fg.vmap(lambda a: np.stack([a[0] * a[1], a[2]]))(x.reshape(-1, 3)).ravel()


def step_by_step(x: Any) -> Any:
    return fg.lax.scan(lambda c, t: (c, c * np.sin(t)), 2.0, x)[1]


def delayed(x: Any) -> Any:
    """A filter: what is carried is forgotten after two steps."""
    step = lambda c, t: ((c[1], t * t), c[0] * t + c[1])  # noqa: E731
    return fg.lax.scan(step, (x[0], 2.0 * x[5]), x)[1]


def delayed_backwards(x: Any) -> Any:
    step = lambda c, t: ((c[1], t * t), c[0] * t + c[1])  # noqa: E731
    return fg.lax.scan(step, (x[0], 2.0 * x[5]), x[::2], reverse=True)[1]


def running(x: Any) -> Any:
    """Each step depends on all earlier ones, and on none that follow."""
    return fg.lax.scan(lambda c, t: (0.5 * c + t**2, c * t), x[3], x[2:])[1]


def running_backwards(x: Any) -> Any:
    return fg.lax.scan(lambda c, t: (0.5 * c + t**2, c * t), x[3], x[2:], reverse=True)[1]


def filled(x: Any) -> Any:
    """Each step writes where its number says, of what that and a table say."""
    table = np.random.default_rng(0).permutation(30)

    def step(i: Any, found: Any) -> Any:
        found = found.at[2 * i].set(x[i + 1] ** 2 - x[i])
        return found.at[2 * i + 1].add(fg.numpy.take(x, fg.numpy.take(table, i)) * x[0])

    return fg.lax.fori_loop(0, 29, step, fg.numpy.zeros(60))


def filled_by_python(x: Any) -> Any:
    found = fg.numpy.zeros(60)
    for i in range(1, 30):
        found = found.at[2 * i - 2].set(10 * (x[i] - x[i - 1] ** 2))
        found = found.at[2 * i - 1].set(x[i] - 1.0)
    return found


def counted(x: Any) -> Any:
    """Indices that a loop carries."""
    step = lambda c, _: ((c[0] + 3, c[1]), fg.numpy.take(x, c[0]) * c[1])  # noqa: E731
    return fg.lax.scan(step, (np.int64(1), 2.0), None, length=9)[1]


def counted_in_a_loop(x: Any) -> Any:
    inner = lambda i: fg.lax.scan(lambda c, j: (c, x[5 * i + j] * x[j]), 0, np.arange(5))[1]  # noqa: E731
    return fg.lax.scan(lambda c, i: (c, inner(i)), 0, np.arange(6), reverse=True)[1].ravel()


def with_zeros_of_it(x: Any) -> Any:
    wide = np.concatenate([0 * x[:1], x, x[:1] * 0.0])
    return (3 - 2 * x) * x - wide[:-2] - 2 * wide[2:]


def shifted_four_times(x: Any) -> Any:
    shift = lambda i, v: v + np.concatenate([v[1:], v[-1:]])  # noqa: E731
    return fg.lax.fori_loop(0, 4, shift, x)


def doubled_and_cut(x: Any) -> Any:
    return np.repeat(x, 2).reshape(5, 12)[1:4, ::3].T.ravel()


def chosen(x: Any) -> Any:
    return x[np.array([3, 3, 0, -1])] * x[[1, 2, 0, 5]]


def smoothed(x: Any) -> Any:
    return np.convolve(x, np.array([1.0, 2.0, 3.0]), "same")


def assigned(x: Any) -> Any:
    return fg.numpy.zeros(40).at[np.arange(0, 30, 2)].set(x[:15]).at[5].add(x[0] * x[1])


FACTORS = np.random.default_rng(1).uniform(1.0, 2.0, (3, 10, 5))
FACTORS[np.random.default_rng(2).uniform(size=FACTORS.shape) < 0.6] = 0.0


def multiplied(x: Any) -> Any:
    return np.concatenate([FACTORS[0] @ x[:5], x[:10] @ FACTORS[1]])


def multiplied_in_stacks(x: Any) -> Any:
    return np.einsum("bij,bjk->kbi", FACTORS, x.reshape(3, 5, 2)).ravel()


EXACT = {
    f.__name__: f
    for f in (
        second_difference, five_points, mapped_over_rows, step_by_step, shifted_four_times,
        delayed, delayed_backwards, running, running_backwards,
        filled, filled_by_python, counted, counted_in_a_loop, with_zeros_of_it,
        doubled_and_cut, chosen, smoothed, assigned, multiplied, multiplied_in_stacks,
    )
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", EXACT)
def test_patterns_of_affine_programs_are_exact(name: str) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, 30)
    found = jacobian_sparsity(EXACT[name])(x).toarray()
    np.testing.assert_array_equal(found, fg.jacfwd(EXACT[name])(x) != 0)


def test_patterns_need_types_alone_and_time_that_does_not_grow() -> None:
    struct = fg.ShapeDtypeStruct((10**6,), np.float64)

    def grid(u: Any) -> Any:
        p = np.pad(u.reshape(1000, 1000), 1)
        return (p[2:, 1:-1] * p[:-2, 1:-1] + p[1:-1, 2:] * p[1:-1, :-2]).ravel()

    pattern = jacobian_sparsity(grid)(struct)
    assert pattern.shape == (10**6, 10**6)
    assert all(r.extra is None and len(r.pieces) <= 8 for r, _ in pattern.relations)
    assert pattern.bound <= 4 * 10**6


def test_branches_are_unions() -> None:
    def either(x: Any) -> Any:
        return fg.lax.cond(x[0] > 0, lambda v: v * v, lambda v: v[::-1], x)

    found = jacobian_sparsity(either)(np.ones(4)).toarray()
    np.testing.assert_array_equal(found, (np.eye(4) + np.eye(4)[::-1]) != 0)


def test_what_a_loop_carries_has_a_fixed_point() -> None:
    def spread(x: Any) -> Any:
        def step(state: Any) -> Any:
            count, v = state
            return count + 1, v + np.concatenate([v[1:2], v[:1], v[2:]])

        return fg.lax.while_loop(lambda s: s[0] < 5, step, (0, x))[1]

    found = jacobian_sparsity(spread)(np.ones(4)).toarray()
    expected = np.eye(4, dtype=bool)
    expected[:2, :2] = True
    np.testing.assert_array_equal(found, expected)


def test_nonlinear_interactions() -> None:
    def energy(x: Any) -> Any:
        return np.sum(x[:-2] * x[1:-1] ** 2) + np.sum(3 * x) + np.sin(x[0] * x[-1])

    x = np.random.default_rng(0).uniform(0.5, 1.5, 12)
    found = hessian_sparsity(energy)(x).toarray()
    np.testing.assert_array_equal(found, fg.hessian(energy)(x) != 0)


def test_known_indices_may_be_computed_and_passed_to_functions() -> None:
    take = fg.jit(lambda x, i: x[i] ** 2)

    def gathered(x: Any) -> Any:
        return take(x, (np.arange(4) * 2) % 6)

    found = jacobian_sparsity(gathered)(np.ones(6)).toarray()
    np.testing.assert_array_equal(found, np.eye(6, dtype=bool)[[0, 2, 4, 0]])


def test_rules_of_derivatives_count_and_not_what_they_replace() -> None:
    @fg.custom_jvp
    def rounded(x: Any) -> Any:
        return np.round(x)

    rounded.defjvp(lambda primals, tangents: (rounded(*primals), tangents[0][::-1]))
    found = jacobian_sparsity(rounded)(np.ones(3)).toarray()
    np.testing.assert_array_equal(found, np.eye(3, dtype=bool)[::-1])


@dataclass(frozen=True)
class Mixed(Primitive):
    """An operation of which nothing is known: it has no form."""

    weights: ClassVar[Any] = np.array([1.0, 2.0, 3.0])

    def impl(self, x: Any) -> Any:
        return self.weights * x.sum()

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        return x

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self.bind(*primals), self.bind(*tangents)


def test_a_primitive_without_a_form_depends_on_everything() -> None:
    found = jacobian_sparsity(lambda x: Mixed().bind(x[:3]) + x[3:])(np.ones(6)).toarray()
    expected = np.concatenate([np.ones((3, 3)), np.eye(3)], 1) != 0
    np.testing.assert_array_equal(found, expected)


def test_loops_whose_steps_cannot_be_mapped_have_patterns() -> None:
    def f(x: Any) -> Any:
        def step(c: Any, i: Any) -> Any:
            fg.debug.callback(lambda v: None, c[0])
            return c.at[i].set(x[i] ** 2), Mixed().bind(x[:3])

        return fg.lax.scan(step, fg.numpy.zeros(6), np.arange(6))[0]

    found = jacobian_sparsity(f)(np.ones(6)).toarray()
    assert found.diagonal().all()


def test_hessians_of_sums_by_loops_have_the_terms_of_each_step() -> None:
    def f(x: Any) -> Any:
        term = lambda i, s: s + (x[i + 1] - x[i]) ** 4  # noqa: E731
        return fg.lax.fori_loop(0, 19, term, 0.0)

    found = hessian_sparsity(f)(np.ones(20)).toarray()
    np.testing.assert_array_equal(
        found, np.tri(20, k=1, dtype=bool) & ~np.tri(20, k=-2, dtype=bool)
    )


def test_long_loops_that_write_what_they_carry() -> None:
    """Elements at places that are known, of an array with as many."""
    n = 4000

    def f(x: Any) -> Any:
        step = lambda i, y: fg.numpy.at(fg.numpy.at(y)[i].set(x[i] * x[i - 1]))[0].set(x[i])  # noqa: E731
        return fg.lax.fori_loop(1, n, step, fg.numpy.zeros(n))

    assert fg.sparsity.jacobian_sparsity(f)(np.ones(n)).nnz == 2 * (n - 1) + n - 1


def test_long_loops_whose_results_do_not_read_what_is_carried() -> None:
    def f(x: Any) -> Any:
        return fg.lax.scan(lambda c, t: (c + t, t**2), 0.0, x)[1]

    pattern = jacobian_sparsity(f)(np.ones(7000))
    assert (pattern.matrix != scipy.sparse.eye_array(7000, dtype=bool)).nnz == 0


def test_what_loops_carry_along_unchanged_is_a_constant() -> None:
    def f(x: Any) -> Any:
        step = lambda x, i: (x, x[i - 1] * np.sin(x[i]))  # noqa: E731
        return np.sum(fg.lax.scan(step, x, np.arange(1, 2000))[1])

    assert hessian_sparsity(f)(np.ones(2000)).nnz == 3 * 2000 - 3  # not (0, 0)


def test_long_chains_of_known_values() -> None:
    def f(x: Any) -> Any:
        w = fg.numpy.cos(np.float64(1.0))
        for _ in range(1500):
            w = w * 0.5 + 1.0
        return x * w

    with fg.reroll_loops(False):
        assert jacobian_sparsity(f)(np.ones(3)).nnz == 3


IS_EVEN = np.arange(12) % 2 == 0


@pytest.mark.parametrize(
    ("f", "entries"),
    [
        (lambda x: np.where(IS_EVEN, x, 0.0), 6),
        (lambda x: np.where(IS_EVEN, x, x[::-1]), 12),
        (lambda x: x * IS_EVEN, 6),
        (lambda x: np.sum(x.reshape(3, 4), where=IS_EVEN.reshape(3, 4)[0])[None], 6),
        (lambda x: fg.lax.cond(IS_EVEN[1], lambda: x[:, None] + x, lambda: np.diag(x)), 12),
        (lambda x: fg.vmap(lambda i: fg.lax.cond(i > 5, lambda: x[i], lambda: 2 * x[0]))(
            np.arange(12)), 12),
    ],
)  # fmt: skip
def test_known_masks_and_branches(f: Callable[..., Any], entries: int) -> None:
    x = np.linspace(1.0, 2.0, 12)
    pattern = jacobian_sparsity(f)(x)
    dense = fg.jacfwd(f)(x).reshape(-1, 12)
    assert not np.any(dense[~pattern.toarray()])
    assert pattern.nnz <= entries


def test_masked_sums_are_no_hubs_of_what_is_masked() -> None:
    assert hessian_sparsity(lambda x: np.sum(x, where=IS_EVEN) ** 2)(np.ones(12)).nnz == 6 * 6
