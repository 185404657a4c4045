"""Loops that Python unrolls become scans, and results keep their bits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.core.program import Program, evaluate
from funcgrad.core.typecheck import check_program
from funcgrad.higher_order.scan import Scan
from funcgrad.passes.repeats import Repeats
from tests.higher_order import random_loops

RNG = np.random.default_rng(7)


def scans_of(program: Program) -> Iterator[Scan]:
    """All scans of a program, also those inside of others and of compiled calls."""
    for equation in program.equations:
        if isinstance(equation.primitive, Scan):
            yield equation.primitive
        for value in equation.primitive.params().values():
            if isinstance(value, Program):
                yield from scans_of(value)


def lengths(function: Any, *args: Any) -> list[int]:
    return [scan.length for scan in scans_of(fg.make_jaxpr(function)(*args).program)]


def unrolled(function: Any, *args: Any) -> Any:
    with fg.reroll_loops(False):
        program = fg.make_jaxpr(function)(*args)
    assert not list(scans_of(program.program))
    return program.eval(*args)


def assert_same_bits(function: Any, *args: Any) -> None:
    """The program with loops, evaluated by NumPy and compiled, gives what the unrolled one does."""
    program = fg.make_jaxpr(function)(*args)
    check_program(program.program)
    wanted = random_loops.bits(unrolled(function, *args))
    with fg.disable_jit():
        assert random_loops.bits(program.eval(*args)) == wanted
    got = fg.jit(lambda *xs: program.eval(*xs))(*args)
    for x, y in zip(got, unrolled(function, *args), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)


# Properties.


@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_programs_keep_their_bits(first: int) -> None:
    assert random_loops.compared(10, first).wrong == []


@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_wider_random_programs_keep_their_bits(first: int) -> None:
    assert random_loops.compared(10, first, random_loops.Wider, 5).wrong == []


@pytest.mark.nightly
@pytest.mark.parametrize("writer", [random_loops.Writer, random_loops.Wider])
def test_thousands_of_random_programs_keep_their_bits(writer: type[random_loops.Writer]) -> None:
    assert random_loops.compared(3000, 100, writer, 20).wrong == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [1100077, 1104023])
def test_elements_of_different_lengths_are_not_read_in_turn(seed: int) -> None:
    """Pieces of one array from stacks of two loops, of which one has longer elements."""
    assert random_loops.compared(1, seed).wrong == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [12, 39])
def test_gradients_of_random_programs(seed: int) -> None:
    text, plain, rolled = random_loops.traced(seed)
    assert rolled is not plain, text

    def loss(program: Program) -> Any:
        return lambda *xs: sum(np.sum(y * y) for y in evaluate(program, xs))

    args = random_loops.arguments(seed)
    with np.errstate(all="ignore"):
        wanted = fg.grad(loss(plain), (0, 1, 2))(*args)
        got = fg.jit(fg.grad(loss(rolled), (0, 1, 2)))(*args)
    for x, y in zip(got, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("period", [1, 2, 3, 7])
def test_repeats_are_found(period: int) -> None:
    tokens = np.concatenate([[91, 92], np.tile(np.arange(period), 9), [93, 94, 95]])
    runs = list(Repeats(tokens, 4).runs())
    assert (2, period, 9 * period) in runs


def test_loops_around_loops_come_first() -> None:
    inner = [*[1, 2] * 6, 3]
    runs = list(Repeats(np.array(inner * 5), 4).runs())
    assert runs[0] == (0, 13, 65)
    assert (0, 2, 12) in runs


# Programs.


def heat(u0: Any, steps: int) -> Any:
    u, v = u0.copy(), u0.copy()
    for _ in range(steps):
        v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u, v = v, u
    return u


def test_a_loop_over_time_steps() -> None:
    u = RNG.normal(size=12)
    assert lengths(lambda u: heat(u, 100), u) == [50]  # two buffers: two steps at a time
    assert_same_bits(lambda u: [heat(u, 101)], u)


def test_the_number_of_operations_does_not_depend_on_that_of_steps() -> None:
    u = RNG.normal(size=12)
    for transformed in (fg.grad, lambda f: fg.grad(fg.jit(f))):
        short, long = (
            len(fg.make_jaxpr(transformed(lambda u, n=n: heat(u, n).sum()))(u).eqns)
            for n in (200, 400)
        )
        assert short == long < 60


@pytest.mark.parametrize("order", ["jit of grad", "grad of jit"])
def test_gradients_are_those_of_scans(order: str) -> None:
    u = RNG.normal(size=12)

    def loss(u: Any) -> Any:
        return np.sum(heat(u, 100) ** 2)

    both = fg.jit(fg.grad(loss)) if order == "jit of grad" else fg.grad(fg.jit(loss))
    np.testing.assert_allclose(both(u), fg.grad(loss)(u), rtol=1e-12)
    assert lengths(both, u) == [50, 50]


def test_indices_scalars_and_tables() -> None:
    table = np.arange(60) ** 2 % 7 + 0.5
    order = RNG.permutation(60).tolist()

    def f(x: Any, y: Any) -> list[Any]:
        out = fnp.zeros(60)
        total = 0.0 * x[0]
        for i in range(1, 60):
            out[i] = out[i - 1] * table[i] + x[i] * (0.5 * i)
            total = total + x[59 - i] * y[order[i], 1:3].sum() + y[i, i]
        return [out, total]

    x, y = RNG.normal(size=60), RNG.normal(size=(60, 60))
    assert lengths(f, x, y) == [59]
    assert_same_bits(f, x, y)


def test_loops_inside_of_loops() -> None:
    def f(a: Any) -> list[Any]:
        a = a.copy()
        for i in range(1, 24):
            for j in range(10):
                a[i, j] = a[i - 1, j] + 0.5 * a[i, j] * a[i, 9 - j]
            a[i] *= 0.9
        return [a]

    a = RNG.normal(size=(24, 10))
    assert lengths(f, a) == [23]  # the inner loop saves too little
    assert_same_bits(f, a)

    def g(a: Any) -> list[Any]:
        a = a.copy()
        for i in range(1, 8):
            for j in range(64):
                a[i, j] = a[i - 1, j] + 0.5 * a[i, j] * a[i, 63 - j]
        return [a]

    a = RNG.normal(size=(8, 64))
    assert lengths(g, a) == [7, 64]
    assert_same_bits(g, a)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("k", [1, 3])
def test_convolutions_over_pixels(k: int) -> None:
    """Both loops are found, however few operations a pixel has, and read windows in place."""
    x, w = RNG.uniform(size=(4, 10, 12, 8)), RNG.uniform(size=(k, k, 8, 6))

    def convolved(x: Any, w: Any) -> Any:
        out = fnp.zeros((4, 11 - k, 13 - k, 6))
        for i in range(11 - k):
            for j in range(13 - k):
                window = x[:, i : i + k, j : j + k, :, None]
                out[:, i, j] = np.sum(window * w[None], axis=(1, 2, 3))
        return out

    assert lengths(convolved, x, w) == [11 - k, 13 - k]
    assert "concatenate" not in str(fg.make_jaxpr(convolved)(x, w))
    assert_same_bits(convolved, x, w)
    fg.test_util.check_grads(convolved, (x, w), 1, modes=("rev",))


def test_a_loop_whose_body_is_another_loop() -> None:
    def f(a: Any) -> list[Any]:
        a = a.copy()
        for i in range(2, 12):
            for j in range(10):
                a[i, j] = np.sin(a[i - 1, j]) * a[i - 2, 9 - j]
        return [a]

    a = RNG.normal(size=(12, 10))
    assert lengths(f, a) == [10]
    assert_same_bits(f, a)


def test_rows_that_read_what_the_row_before_has_made() -> None:
    """Elements are written to a new array in every step, or to two in turn."""

    def f(u: Any) -> list[Any]:
        for _ in range(12):
            w = u.copy()
            for i in range(1, 11):
                w[i] = u[i] + 0.2 * (u[i - 1] - 2 * u[i] + u[i + 1])
            u = w
        a, b = u.copy(), u.copy()
        for _ in range(20):
            for i in range(1, 11):
                b[i] = np.sin(a[i - 1]) * a[i + 1]
            a, b = b, a
        return [a, b]

    u = RNG.normal(size=12)
    assert lengths(f, u)[0] == 12
    assert len(fg.make_jaxpr(f)(u).eqns) < 8
    assert_same_bits(f, u)


def test_single_elements_are_read_and_assigned() -> None:
    """Also of arrays of one element, of numbers, and where nothing repeats."""

    def f(x: Any, a: Any) -> list[Any]:
        one, y, a = fnp.zeros(1), x.copy(), a.copy()
        one[0] = x[-1]
        y[0], y[-1] = y[2], y[0]
        a[1, -1] = y[0] * a[2, 0]
        a[0, 0] = 2
        a[0, 1] = np.float32(3)
        a[..., 2, 2] = a[1, 1, ...]
        return [one, y, a, a[2, 2], one[0]]

    args = RNG.normal(size=5), RNG.normal(size=(3, 3))
    assert {e.primitive.name for e in fg.make_jaxpr(f)(*args).program.equations}.isdisjoint(
        ("element_at", "element_set")
    )
    assert_same_bits(f, *args)


def test_conditions_on_the_counter() -> None:
    def f(x: Any) -> list[Any]:
        for i in range(120):
            x = np.sin(x) if i % 3 else 0.5 * np.cos(x) + 0.1
            x = x * 1.01
        return [x]

    assert lengths(f, RNG.normal(size=3)) == [40]
    assert_same_bits(f, RNG.normal(size=3))


def test_branches_and_calls_in_steps() -> None:
    """Every step has programs of its own, which are equal."""

    def chosen(x: Any) -> Any:
        for i in range(100):
            x = lax.cond(x.sum() > i, lambda x: x * 1.1, lambda x: x - 0.1, x)
        return x

    def called(x: Any) -> Any:
        for _ in range(60):
            x = fg.checkpoint(lambda x: np.sin(x) * 0.9)(x)
            x = np.tanh(np.cos(x * x) - 1) * 2 + 0.1
        return x

    def different(x: Any) -> Any:
        for i in range(100):
            x = lax.cond(x.sum() > i, lambda x, i=i: x * (1 + i % 7 * 0.1), lambda x: x - 0.1, x)
        return x

    assert lengths(chosen, np.ones(5)) == [100]
    assert lengths(called, np.ones(5)) == [60]
    assert lengths(different, np.ones(5)) == [14]  # seven steps at a time
    for function in (chosen, called, different):
        assert_same_bits(function, np.linspace(0.0, 2.0, 5))


@pytest.mark.parametrize("call", [fg.jit, fg.checkpoint])
def test_what_calls_hold_counts(call: Any) -> None:
    @call
    def step(x: Any) -> Any:
        for _ in range(3):
            x = np.sin(x) * 0.9
        return x

    def f(x: Any) -> Any:
        for _ in range(60):
            x = step(x)
        return [x]

    assert lengths(f, RNG.normal(size=3)) == [60]
    assert_same_bits(f, RNG.normal(size=3))


def test_lists_of_results() -> None:
    def f(x: Any) -> list[Any]:
        rows = []
        for i in range(100):
            x = np.sin(x) + 0.1 * i
            x = x - 0.5 * x * x
            rows.append(x)
        return [np.stack(rows), x]

    x = RNG.normal(size=3)
    assert len(fg.make_jaxpr(f)(x).eqns) < 12
    assert_same_bits(f, x)


def in_turn(x: Any) -> Any:
    found = []
    for k in range(0, 150, 3):
        found.append(x[k] ** 2 + 3.0 * x[k + 1])
        found.append(x[k + 2] ** 2 + x[k + 3] - 2.0 * x[k + 4])
        found.append(x[k + 1] ** 2 - x[k + 4])
    return found


def column_by_column(x: Any) -> Any:
    found = []
    for i in range(1, 13):
        for j in range(1, 13):
            k = 14 * j + i
            found.append(4.0 * x[k] - x[k - 1] - x[k + 1] - x[k - 14] - x[k + 14] - np.exp(x[k]))
    return found


def rows_in_turn(x: Any) -> Any:
    rows = []
    for i in range(100):
        rows.append(np.sin(x[:3]) + 0.1 * i)
        rows.append(np.cos(x[3:6] * x[i]))
    return rows[::-1]


@pytest.mark.parametrize(
    ("listed", "most"), [(in_turn, 20), (column_by_column, 100), (rows_in_turn, 20)]
)
def test_results_of_loops_that_are_read_in_turn(listed: Any, most: int) -> None:
    """Lists to which each iteration appends several results, or a row of them."""
    f = lambda x: [np.stack(listed(x))]  # noqa: E731
    x = RNG.normal(size=210)
    assert len(fg.make_jaxpr(f)(x).eqns) < most
    assert_same_bits(f, x)


def test_loops_over_results_in_turn() -> None:
    def f(x: Any) -> list[Any]:
        total = 0.0
        for term in reversed(in_turn(x)):
            total = 0.9 * total + np.sin(term)
        return [total]

    x = RNG.normal(size=210)
    assert lengths(f, x) == [50, 149]  # the first term is added to a number
    assert len(fg.make_jaxpr(f)(x).eqns) < 30
    assert_same_bits(f, x)


def test_loops_over_lists_of_results() -> None:
    def f(x: Any) -> list[Any]:
        terms = [np.sin(x * (0.1 * i)) * np.cos(x) - x / 3.0 for i in range(100)]
        total = 0.0 * x
        for term in reversed(terms):
            total = 0.9 * total + term
        return [total]

    x = RNG.normal(size=3)
    assert lengths(f, x) == [100, 100]
    assert len(fg.make_jaxpr(f)(x).eqns) < 12
    assert_same_bits(f, x)


def test_results_in_between_end_a_loop() -> None:
    def f(x: Any) -> list[Any]:
        frames = []
        for i in range(640):
            x = np.sin(x) + 0.1 * x
            if i % 160 == 159:
                frames.append(x)
        return frames

    x = np.linspace(0, 1, 1000)
    assert lengths(f, x) == [160, 160, 160, 160]
    assert_same_bits(f, x)


def test_numbers_of_python_that_loops_hand_on() -> None:
    """What is computed of Python's numbers alone is read behind loops, as weak as before."""

    def run(x: Any) -> Any:
        found = [np.sin(x * k) for k in range(300)]
        total = found[0]
        for a, b in pairwise(found):
            total = total + a * b
        return total * np.float32(0.5), total, found[7]

    assert lengths(run, 0.7) == [300, 299]
    assert_same_bits(run, 0.7)
    weak = [a.weak_type for a in fg.make_jaxpr(run)(0.7).out_avals]
    with fg.reroll_loops(False):
        assert [a.weak_type for a in fg.make_jaxpr(run)(0.7).out_avals] == weak


def test_values_that_have_nothing_in_common() -> None:
    weights = [RNG.normal(size=3) for _ in range(90)]

    def f(x: Any, *weights: Any) -> list[Any]:
        for i, w in enumerate(weights):
            x = np.tanh(x * w + constants[i]) - 0.1 * x
        return [x]

    constants = [RNG.normal(size=3) for _ in weights]
    assert lengths(f, np.ones(3), *weights) == [90]
    assert_same_bits(f, np.ones(3), *weights)


def test_large_arrays_are_not_copied_to_be_walked_along(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FUNCGRAD_DEBUG", "1")

    def f(x: Any, *weights: Any) -> Any:
        for w in weights:
            x = np.tanh(x * w) - 0.1 * np.sin(x)
        return x

    weights = [np.broadcast_to(float(i), (2000,)) for i in range(80)]
    assert lengths(f, np.ones(2000), *weights) == []
    said = capsys.readouterr().err
    assert "1280000 bytes of arrays that are different ones in every iteration" in said
    assert "80 times 5 equations of f at test_reroll.py" in said


def test_what_is_mapped_is_a_loop_as_well() -> None:
    us = RNG.normal(size=(4, 12))
    mapped = fg.jit(fg.vmap(lambda u: heat(u, 100)))
    for got, u in zip(mapped(us), us, strict=True):
        np.testing.assert_array_equal(got, heat(u, 100))
    assert lengths(fg.vmap(lambda u: heat(u, 100)), us) == [50]


def test_effects_keep_their_order() -> None:
    seen: list[tuple[int, float]] = []

    @fg.jit
    def step(i: Any, x: Any) -> Any:
        x = 0.5 * x + 0.25
        fg.debug.callback(lambda i, x: seen.append((int(i), float(x))), i, x)
        return x * x + 0.5

    def f(x: Any) -> Any:
        for i in range(300):
            x = step(i, x)
        return x

    assert lengths(f, np.float64(0.3)) == [300]
    fg.jit(f)(np.float64(0.3))
    fg.effects_barrier()
    x = 0.3
    wanted = []
    for i in range(300):
        x = 0.5 * x + 0.25
        wanted.append((i, x))
        x = x * x + 0.5
    assert [i for i, _ in seen] == list(range(300))
    np.testing.assert_allclose([x for _, x in seen], [x for _, x in wanted])


def test_references_and_extra_results_of_what_is_differentiated() -> None:
    @fg.jit
    def f(x: Any) -> Any:
        ref = fg.new_ref(np.zeros(3))

        def loss(x: Any) -> Any:
            ref[...] = ref[...] + fg.stop_gradient(x)
            for _ in range(150):
                x = np.sin(x) * 1.1
            return x.sum(), {"name": "loss", "x": x}

        slope, extra = fg.grad(loss, has_aux=True)(x)
        assert extra["name"] == "loss"
        return slope, extra["x"], ref[...]

    x = RNG.normal(size=3)
    slope, last, total = f(x)

    def chain(x: Any) -> Any:
        for _ in range(150):
            x = np.sin(x) * 1.1
        return x

    np.testing.assert_allclose(slope, fg.grad(lambda x: chain(x).sum())(x), rtol=1e-12)
    np.testing.assert_allclose(last, chain(x), rtol=1e-12)
    np.testing.assert_array_equal(total, x)


def test_errors_name_the_line_inside_of_the_loop() -> None:
    def f(x: Any) -> Any:
        for _ in range(300):
            x = np.sin(x)
        return x

    body = next(scans_of(fg.make_jaxpr(f)(np.ones(2)).program)).body
    assert body.equations[0].source is not None
    assert body.equations[0].source.text() == "x = np.sin(x)"


def test_equal_tables_are_one() -> None:
    def sweeps(a: Any) -> list[Any]:
        a = a.copy()
        for _ in range(5):
            for i in range(1, 13):
                a[i, 1:-1] += a[i - 1, 2:] + a[i + 1, :-2]
                for j in range(1, 13):
                    a[i, j] += a[i, j - 1]
                    a[i, j] /= 9.0
        return [a]

    a = RNG.normal(size=(14, 14))
    program = fg.make_jaxpr(sweeps)(a).program
    assert len(program.constants) < 6
    assert_same_bits(sweeps, a)


def test_it_can_be_switched_off() -> None:
    def f(x: Any) -> Any:
        for _ in range(300):
            x = np.sin(x)
        return x

    with fg.reroll_loops(False):
        assert len(fg.make_jaxpr(f)(np.ones(2)).eqns) == 300
        with fg.reroll_loops():
            assert len(fg.make_jaxpr(f)(np.ones(2)).eqns) == 1
    assert lengths(f, np.ones(2)) == [300]


@pytest.mark.parametrize("transformed", [fg.jit, fg.checkpoint])
def test_programs_that_others_made_are_of_the_same_choice(transformed: Any) -> None:
    def f(x: Any) -> Any:
        for _ in range(300):
            x = np.sin(x)
        return x

    counts = []
    for choice in (True, False):
        with fg.reroll_loops(choice):
            program = fg.make_jaxpr(transformed(f))(np.ones(2)).program
        (inner,) = (e.primitive.params()["program"] for e in program.equations)
        counts.append(len(inner.equations))
    assert counts == [1, 300]
