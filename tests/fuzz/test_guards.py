"""Native code touches nothing but its buffers; unusual arguments; sizes at the ends of integers."""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.compiler.runtime import kernel_store
from funcgrad.errors import ShapeError
from funcgrad.extend.laws import observed
from funcgrad.extend.laws import results as results_of
from tests.cases import CASES, Case
from tests.compiler.kernels import read
from tests.fuzz.guards import SIDES, guarded, survives
from tests.fuzz.language import LAWS, LAYOUTS, Program, Step, argument
from tests.fuzz.properties import COMPILED, compare
from tests.fuzz.running import problem

BEYOND = {("packed_tridiagonal-upper", "D")}
"""Rows whose LAPACK reads beyond its own arrays: OpenBLAS's `zhemv`, behind the factors of `zhetrd`
that are not there yet, called by whomever."""
ROWS = [(c, dtype) for c in CASES for dtype in c.dtypes if (c.name, dtype) not in BEYOND]
SAMPLED = 120
"""One of so many rows runs in every run."""


def is_sampled(case: Case, dtype: str) -> bool:
    return zlib.crc32(f"{case.name}-{dtype}".encode()) % SAMPLED == 0


def run_row(case: Case, dtype: str) -> None:
    """A row of the law table, compiled, between guard pages."""
    drawn = [np.asarray(x) for x in case.draw(dtype)]
    with np.errstate(all="ignore"):
        expected = results_of(case, *drawn)
        for side in SIDES:
            with guarded(side) as place:
                found = fg.jit(lambda *xs: results_of(case, *xs))(*map(place, drawn))
    for x, y in zip(found, expected, strict=True):
        compare(x, y, 1e-4 if dtype in "fF" else 1e-9, 1.0, case.name)


def run_rows(rows: Any) -> list[str]:
    """What is wrong, for every row; rows share a child as long as none ends it."""
    wrong = []
    for case, dtype in rows:
        message = survives(partial(run_row, case, dtype))
        if message:
            wrong.append(f"{case.name} {dtype}: {message}")
    return wrong


def test_a_sample_of_the_law_table_between_guard_pages() -> None:
    rows = [row for row in ROWS if is_sampled(*row) and row[0].compiled_daily]
    assert len(rows) > 3

    def all_of_them() -> None:
        for row in rows:
            run_row(*row)

    # Together in one child; one by one only to tell which of them is to blame.
    assert not survives(all_of_them), run_rows(rows)


@pytest.mark.nightly
@pytest.mark.parametrize("k", range(8))
def test_the_law_table_between_guard_pages(k: int) -> None:
    assert not run_rows(ROWS[k::8])


@pytest.mark.nightly
def test_derivatives_of_the_law_table_between_guard_pages() -> None:
    wrong = []
    for name, case in LAWS.items():
        if case.order < 1 or case.differentiable is not None or "d" not in case.dtypes:
            continue
        args = [np.asarray(x) for x in case.draw("d")]

        def run(case: Case = case, args: Any = args) -> None:
            active = [i for i, x in enumerate(args) if x.dtype.kind in "fc"]
            for side in SIDES:
                with guarded(side) as place:
                    placed = [place(x) for x in args]

                    def function(*xs: Any) -> Any:
                        full = list(placed)  # noqa: B023
                        for i, x in zip(active, xs, strict=True):
                            full[i] = x
                        return [x for x in observed(case, *full) if x.dtype.kind in "fc"]

                    def both(*xs: Any) -> Any:
                        outs, pull = fg.vjp(function, *xs)
                        return pull(outs), fg.jvp(function, xs, xs)[1]

                    fg.jit(both)(*(placed[i] for i in active))

        message = survives(run)
        if message:
            wrong.append(f"{name}: {message}")
    assert not wrong, "\n".join(wrong)


CHAIN = Program(
    {0: argument(np.arange(5.0)), 1: argument(np.arange(15.0).reshape(3, 5))},
    (
        Step(2, "{out} = np.sin({0}) * 2", (0,)),
        Step(3, "{out} = np.cumsum({0})", (2,)),
        Step(4, "{out} = np.sum({0} * {1})", (2, 3)),
        Step(5, "{out} = np.sum({0}, axis=0) * {1}", (1, 2)),
    ),
    (3, 4, 5),
)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("cold(0, n_j0)", "cold(0, n_j0 + 1)"),
        pytest.param(
            "minimum(q + 512, n_j0)", "minimum(q + 512, n_j0 + 1)", marks=pytest.mark.nightly
        ),
        pytest.param(
            "first_lanes(m, stop, 8)", "first_lanes(m, stop + 1, 8)", marks=pytest.mark.nightly
        ),
    ],
)
def test_kernels_that_read_an_element_too_far_are_found(
    line: str, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_kernels = kernel_store.compile_kernels

    def compiled(functions: Any, codes: Any) -> Any:
        changed = [read(function.text.replace(line, instead)) for function in functions]
        found = compile_kernels(changed, codes)
        pairs = zip(functions, changed, strict=True)
        return {function.text: found[other.text] for function, other in pairs}

    assert problem("compiled", CHAIN) == ""
    assert problem("guarded", CHAIN) == ""
    monkeypatch.setattr(kernel_store, "compile_kernels", compiled)
    assert problem("guarded", CHAIN) in ("SIGSEGV", "SIGBUS")


# Arguments that share memory, or lie where no array of NumPy begins.


def both(x: Any, y: Any) -> Any:
    return x[::-1] + y * 2, np.cumsum(y) - x


def pairs() -> dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]]:
    def line() -> np.ndarray:
        return np.arange(1.0, 12.0)

    def misaligned() -> tuple[np.ndarray, np.ndarray]:
        raw = np.zeros(81, np.uint8)
        raw[1:].view("f8")[:] = np.arange(10.0)
        return raw[1:65].view("f8"), raw[9:73].view("f8")

    return {
        "the same": lambda: (x := line(), x),
        "one further": lambda: (lambda x: (x[:-1], x[1:]))(line()),
        "one before": lambda: (lambda x: (x[1:], x[:-1]))(line()),
        "backward": lambda: (lambda x: (x, x[::-1]))(line()),
        "interleaved": lambda: (lambda x: (x[::2][:5], x[1::2]))(line()),
        "a view of the same": lambda: (lambda x: (x, x[:]))(line()),
        "misaligned": misaligned,
    }


def one_after_the_other(x: Any, y: Any) -> Any:
    """The first result may take the memory of `x`, and is there before `y` is read."""
    return x * 2.0, np.cumsum(y)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", [both, one_after_the_other])
@pytest.mark.parametrize("donated", [(), (0,), (1,), (0, 1)])
def test_arguments_that_overlap(function: Callable[..., Any], donated: tuple[int, ...]) -> None:
    compiled = fg.jit(function, donate_argnums=donated)
    for name, make in pairs().items():
        x, y = (a.copy() for a in make())
        expected = function(x, y)
        for _ in range(2):
            given = make()
            kept = [a for i, a in enumerate(given) if i not in donated]
            before = [a.copy() for a in kept]
            found = compiled(*given)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=name)
            assert not np.shares_memory(*found), name
            if not donated:
                for a, b in zip(kept, before, strict=True):
                    np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_donated_arguments_of_every_layout(layout: str) -> None:
    x = np.arange(12.0).reshape(3, 4)
    f = fg.jit(lambda x: np.cumsum(x, axis=0) + x[:, ::-1], donate_argnums=0)
    for _ in range(2):
        given = LAYOUTS[layout](x)
        expected = np.cumsum(given, axis=0) + given[:, ::-1]
        np.testing.assert_array_equal(f(given), expected)


# Sizes whose products no integer holds.

HUGE = 2**62
WIDE = 2**33


def stretched(x: Any, *shape: int) -> Any:
    return np.broadcast_to(x[:1], shape)


TOO_LARGE: dict[str, Callable[[Any], Any]] = {
    "a product of 2**64 elements": lambda x: np.sum(stretched(x, HUGE, 4)),
    "2**64 bytes": lambda x: np.sum(stretched(x, 2**61)),
    "an axis beyond 2**64": lambda x: stretched(x, 2**64),
    "no elements beside": lambda x: stretched(x, 0, HUGE, HUGE),
    "full": lambda x: lax.full((2**32, 2**32), x[0]),
    "zeros": lambda x: fnp.zeros((HUGE, 4)) + x[0],
    "iota": lambda x: fnp.arange(HUGE) + x[0],
    "tile": lambda x: np.tile(x, HUGE),
    "repeat": lambda x: np.repeat(x, HUGE),
    "outer": lambda x: np.sum(np.outer(stretched(x, WIDE), stretched(x, WIDE))),
    "matmul": lambda x: stretched(x, WIDE, 1) @ stretched(x, 1, WIDE),
    "kron": lambda x: np.sum(np.kron(stretched(x, WIDE), stretched(x, WIDE))),
    "pad": lambda x: np.pad(x, 2**63 - 2),
    "pad with gaps": lambda x: lax.pad(x, 0.0, [(HUGE, HUGE, HUGE)]),
    "scan": lambda x: lax.scan(lambda c, _: (c, x), 0.0, None, length=HUGE)[1],
    "concatenate": lambda x: np.concatenate([stretched(x, 2**59)] * 2),
    "stack": lambda x: np.stack([stretched(x, 2**59)] * 3),
    "reshape": lambda x: np.reshape(stretched(x, 2**32, 2**32), (-1,)),
    "comparison": lambda x: stretched(x, WIDE, 1) < stretched(x, 1, WIDE),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_sizes_beyond_addresses_are_refused(name: str) -> None:
    f, x = TOO_LARGE[name], np.ones(3)
    said = r"an array of \w+ of shape \(.*\) would have 2\*\*\d+\.\d bytes, more than addresses"
    for transformed in (
        fg.jit(f),
        partial(fg.eval_shape, f),
        fg.jit(lambda x: fg.vjp(f, x)[0]),
        fg.jit(lambda x: fg.vmap(f)(x[None])),
    ):
        with pytest.raises(ShapeError, match=said):
            transformed(x)


def test_the_largest_sizes_are_types() -> None:
    shape = (2**31, 2**29 - 1)
    assert fg.eval_shape(lambda x: stretched(x, *shape), np.ones(1)).shape == shape
    out = fg.eval_shape(lambda x: stretched(x, 2**62, 0, 1), np.ones(1, np.uint8))
    assert out.shape == (2**62, 0, 1)


# Arrays of more than 2**31 elements, of pages that nobody has written to.

MANY = 2**31 + 11


def sparse(n: int, dtype: Any) -> np.ndarray:
    memory = mmap.mmap(-1, n * np.dtype(dtype).itemsize, flags=mmap.MAP_PRIVATE)
    return np.frombuffer(memory, dtype)


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_more_elements_than_an_int32_counts(dtype: Any) -> None:
    x = sparse(MANY, dtype)
    places = np.array([0, 2**31 - 1, 2**31, 2**31 + 5, MANY - 1])
    x[places] = [1, 2, 3, 4, 5]

    def read(x: Any, places: Any) -> Any:
        return (
            np.sum(x, dtype=np.float64), np.max(x), np.argmax(x), x[places], x[-1], x[2**31 + 5],
            x[2**31 - 3 : 2**31 + 3], x[::-1][:3], x[:: 2**30], np.any(x == 4),
            lax.dynamic_slice(x, (places[3],), (4,)), np.count_nonzero(x), x[places - MANY],
        )  # fmt: skip

    for threads in (1, 2):
        found = fg.jit(read, threads=threads)(x, places)
        assert found[0] == 15
        assert found[1] == 5
        assert found[2] == MANY - 1
        np.testing.assert_array_equal(found[3], [1, 2, 3, 4, 5])
        assert (found[4], found[5]) == (5, 4)
        np.testing.assert_array_equal(found[6], [0, 0, 2, 3, 0, 0])
        np.testing.assert_array_equal(found[7], [5, 0, 0])
        np.testing.assert_array_equal(found[8], x[:: 2**30])
        assert found[9]
        np.testing.assert_array_equal(found[10], [4, 0, 0, 0])
        assert found[11] == 5
        np.testing.assert_array_equal(found[12], [1, 2, 3, 4, 5])
    # Places beside it are clamped, as those of small arrays.
    beside = fg.jit(lambda x, i: x[i])(x, np.array([MANY, 2**40, -(2**40)]))
    np.testing.assert_array_equal(beside, [5, 5, 1])


@pytest.mark.nightly
def test_rows_of_more_elements_than_an_int32_counts() -> None:
    x = sparse(3 * 2**30, np.uint8).reshape(3, 2**30)
    x[2, 5], x[1, -1] = 7, 9
    f = fg.jit(lambda x: (np.max(x, axis=1), x[2, 3:7], np.sum(x[:, -1], dtype=np.int64), x.T[5]))
    largest, part, total, row = f(x)
    np.testing.assert_array_equal(largest, [0, 9, 7])
    np.testing.assert_array_equal(part, [0, 0, 7, 0])
    assert total == 9
    np.testing.assert_array_equal(row, [0, 0, 7])


@pytest.mark.nightly
def test_writing_to_more_elements_than_an_int32_counts() -> None:
    x = sparse(MANY, np.uint8)
    f = fg.jit(lambda x, i: fnp.at(x)[i].set(7), donate_argnums=0)
    y = f(x, np.array([2**31 + 5, 3]))
    assert np.shares_memory(x, y)
    assert (y[2**31 + 5], y[3], y[4], y[MANY - 1]) == (7, 7, 0, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["compiled", "guarded", "donated"])
def test_every_layout_of_an_argument(name: str) -> None:
    assert name in COMPILED
    for layout in LAYOUTS:
        args = {i: replace(a, layout=layout) for i, a in CHAIN.args.items()}
        assert problem(name, replace(CHAIN, args=args)) == "", layout
