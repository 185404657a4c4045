"""The floating-point control word: whose subnormal numbers are zero, and who sees which word.

Arithmetic of single precision treats subnormal numbers as zero, whatever else a program computes.
Python that runs while a program does sees the word of whoever has called the program.
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.compiler.native import processor
from tests.alarms import signal_within
from tests.compiler.pretended import pretended

HALF = np.float32(0.5)
TINY, SMALL = np.float32(1e-40), 1e-310
"""Subnormal numbers of single and of double precision."""

if not (processor.is_x86() or processor.is_arm()):
    pytest.skip("no mode is known on this processor", allow_module_level=True)


def both(x: Any, y: Any) -> Any:
    return x * HALF, y * 0.5


def scanned(x: Any, y: Any) -> Any:
    """Loops of which each computes in one precision."""
    first = fg.lax.fori_loop(0, 1, lambda i, x: x * HALF, x)
    return first, fg.lax.fori_loop(0, 1, lambda i, y: y * 0.5, y)


def wide(x: Any, y: Any) -> Any:
    """A loop whose kernels share nothing: each of them has its mode."""
    x, y = fnp.tile(x, 5000), fnp.tile(y, 5000)

    def body(i: Any, c: Any) -> Any:
        return c[0] * HALF + 0 * c[0].sum(), c[1] * 0.5 + 0 * c[1].sum()

    x, y = fg.lax.fori_loop(0, 1, body, (x, y))
    return x[:3], y[:3]


def from_double(x: Any, y: Any) -> Any:
    """Single precision first, which double precision reads."""
    z = x * HALF
    return z, z.astype(float) * 2 + y * 0.5


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "arrays": both,
    "sums": lambda x, y: (fnp.sum(x * HALF) / 3, fnp.sum(y * 0.5) / 3),
    "batched": fg.vmap(both),
    "differentiated": lambda x, y: (
        fg.grad(lambda x, y: (x * HALF).sum() + (y * 0.5).sum())(x, y) * x
    ),
    "loops": scanned,
    "a wide loop": wide,
    "conversions": from_double,
    "product": lambda x, y: (fnp.diag(x) @ fnp.full((3, 3), HALF), fnp.diag(y) @ np.eye(3) * 0.5),
    "scatters": lambda x, y: (
        fnp.zeros(2, np.float32).at[np.array([0, 1, 1])].add(x * HALF),
        fnp.zeros(3).at[np.array([0, 1, 2])].add(y * 0.5),
    ),
    "transform": lambda x, y: (fnp.fft.fft(fnp.tile(x, 8)).real[:1] / 24, y * 0.5),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_double_precision_changes_nothing_for_single(name: str) -> None:
    x, y = np.full(3, TINY), np.full(3, SMALL)
    found = fg.jit(PROGRAMS[name])(x, y)
    single, double = found if isinstance(found, tuple) else (found, y * 0.5)
    assert single.dtype in (np.float32, np.complex64)
    assert not np.any(single)
    np.testing.assert_allclose(np.max(double), SMALL / 2, rtol=1e-12)


def test_numbers_without_axes() -> None:
    single, double = fg.jit(both)(TINY, SMALL)
    assert (single, double) == (0, SMALL / 2)


def test_a_conversion_keeps_what_it_converts() -> None:
    x = np.full(3, TINY)
    np.testing.assert_array_equal(fg.jit(lambda x: x.astype(float) * 0.5)(x), x.astype(float) * 0.5)


def test_code_by_address_gives_the_mode_back() -> None:
    single, double, before = np.full(3, TINY), np.full(3, SMALL), seen()[:2]
    halved = fg.cfunc(lambda x: x * 0.5, "float32[3] -> float32[3]")
    np.testing.assert_array_equal(halved(single), 0)
    assert seen()[:2] == before
    halved = fg.cfunc(both, "float32[3], float64[3] -> float32[3], float64[3]")
    np.testing.assert_array_equal(halved(single, double), (np.zeros(3), double / 2))
    assert seen()[:2] == before
    halved = fg.cfunc(lambda x: x * 0.5, "float64[3] -> float64[3]")
    np.testing.assert_array_equal(halved(double), double / 2)
    assert seen()[:2] == before


def test_a_loop_in_one_kernel_has_one_mode() -> None:
    def loop(x: Any, y: Any) -> Any:
        return fg.lax.fori_loop(0, 2, lambda i, c: both(*c), (x, y))

    assert fg.jit(loop)(TINY, SMALL) == (TINY * HALF * HALF, SMALL / 4)
    single = fg.jit(lambda x: fg.lax.fori_loop(0, 2, lambda i, x: x * HALF, x))
    assert single(TINY) == 0


def test_what_only_moves_numbers_keeps_them() -> None:
    x = np.array([3, -1, 2], np.float32) * TINY
    np.testing.assert_array_equal(fg.jit(np.sort)(x), np.sort(x))
    np.testing.assert_array_equal(fg.jit(lambda x: x[::-1])(x), x[::-1])
    largest = fg.jit(lambda x: fg.lax.top_k(x, 2)[0])(x)
    np.testing.assert_array_equal(largest, x[[0, 2]])


# What runs while a program does.

FE_ALL = 0x3D if processor.is_x86() else 0x1F
UPWARD = 0x800 if processor.is_x86() else 0x400000
DOWNWARD = 0x400 if processor.is_x86() else 0x800000
LIBM = ctypes.CDLL(None)
NEEDS_FENV = pytest.mark.skipif(not hasattr(LIBM, "fesetround"), reason="no fenv.h in this process")


@pytest.fixture(name="rounding")
def with_rounding() -> Iterator[None]:
    before = LIBM.fegetround()
    yield
    LIBM.fesetround(before)
    LIBM.feclearexcept(FE_ALL)


def seen() -> tuple[bool, int, int]:
    """Whether subnormal numbers are zero, how numbers are rounded, which flags are set."""
    flags = LIBM.fetestexcept(FE_ALL)
    return float("5e-324") * 1.0 == 0.0, LIBM.fegetround(), flags


def endless(x: Any) -> Any:
    return fg.lax.while_loop(lambda x: (x >= 0).all(), lambda x: x * np.float32(0.9), x)


def endless_product(x: Any) -> Any:
    return fg.lax.while_loop(lambda x: (x >= 0).all(), lambda x: (x @ x) * HALF, x)


LONG: dict[str, tuple[Callable[[Any], Any], np.ndarray, int]] = {
    "numbers": (endless, np.ones(2, np.float32), 1),
    "arrays": (endless, np.ones(5000, np.float32), 1),
    "parts": (endless, np.ones(1 << 20, np.float32), 2),
    "products": (endless_product, np.ones((300, 300), np.float32), 2),
}


class Enough(Exception):
    """Raised by the handler of a signal."""


@pytest.mark.sampled(2)
@NEEDS_FENV
@pytest.mark.usefixtures("rounding")
@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no such signals here")
@pytest.mark.parametrize("name", LONG)
def test_handlers_of_signals_see_the_callers_word(name: str) -> None:
    function, x, threads = LONG[name]
    compiled = fg.jit(function, threads=threads).lower(x).compile()
    found: list[Any] = []

    def handle(number: int, frame: Any) -> None:
        found.append(seen())
        LIBM.fesetround(DOWNWARD)
        raise Enough

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        LIBM.fesetround(UPWARD)
        LIBM.feclearexcept(FE_ALL)
        with pytest.raises(Enough), signal_within(0.3, signal.SIGUSR1):
            compiled(x)
        after = seen()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert found == [(False, UPWARD, 0)]
    assert after[:2] == (False, DOWNWARD)  # as the handler has left it


def branches(x: Any) -> Any:
    return fg.lax.cond((x / 3).sum() > 0, lambda x: x / 7, lambda x: x * 2, x)


def loops(x: Any) -> Any:
    return fg.lax.fori_loop(0, 3, lambda i, c: (c @ c) / 3 + i, x / 3)


@NEEDS_FENV
@pytest.mark.usefixtures("rounding")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", [lambda x: (fnp.exp(x) / 3, x @ x), branches, loops])
def test_the_word_after_a_call_is_that_before(dtype: Any, function: Any) -> None:
    compiled = fg.jit(function)
    x = np.full((40, 40), 0.1, dtype)
    compiled(x)
    LIBM.fesetround(UPWARD)
    LIBM.feclearexcept(FE_ALL)
    compiled(x)
    found = seen()
    assert found == (False, UPWARD, 0)


def test_rows_that_are_moved_have_no_precision() -> None:
    """A loop of both precisions is one kernel, however many elements it copies as they are."""

    def turned(x: Any, scale: Any) -> Any:
        def step(k: Any, x: Any) -> Any:
            i, j = k % 40, (7 * k + 1) % 40
            up, down = x[i] + scale, x[j] - scale
            return x.at[i].set(down.astype(np.float32)).at[j].set(up.astype(np.float32))

        return fg.lax.fori_loop(0, 50, step, x)

    x, scale = np.linspace(0.0, 1.0, 40 * 40, dtype=np.float32).reshape(40, 40), np.float64(0.1)
    plan = fg.jit(turned).lower(x, scale).as_text().partition("\nplan\n")[2]
    assert " times" not in plan.partition("# kernel 0")[0]
    expected = x.copy()
    for k in range(50):
        i, j = k % 40, (7 * k + 1) % 40
        up, down = expected[i] + scale, expected[j] - scale
        expected[i] = down
        expected[j] = up
    np.testing.assert_array_equal(fg.jit(turned)(x, scale), expected)


def test_rows_that_are_moved_are_computed_with_in_either_precision() -> None:
    """Rows of single precision are turned by numbers of double precision where they are."""

    def turned(x: Any, angles: Any) -> Any:
        def step(k: Any, x: Any) -> Any:
            i, j, c, s = k % 40, (7 * k + 1) % 40, fnp.cos(angles[k]), fnp.sin(angles[k])
            up, down = c * x[i] - s * x[j], s * x[i] + c * x[j]
            return x.at[i].set(down.astype(np.float32)).at[j].set(up.astype(np.float32))

        return fg.lax.fori_loop(0, 50, step, x)

    x = np.linspace(0.0, 1.0, 40 * 40, dtype=np.float32).reshape(40, 40)
    angles = np.linspace(0.0, 3.0, 50)
    text = fg.jit(turned).lower(x, angles).as_text()
    assert " times" not in text.partition("\nplan\n")[2].partition("# kernel 0")[0]
    expected = x.copy()
    for k in range(50):
        i, j, c, s = k % 40, (7 * k + 1) % 40, np.cos(angles[k]), np.sin(angles[k])
        up, down = c * expected[i] - s * expected[j], s * expected[i] + c * expected[j]
        expected[i], expected[j] = down, up
    np.testing.assert_allclose(fg.jit(turned)(x, angles), expected, rtol=1e-6, atol=1e-7)


def test_callbacks_see_subnormal_numbers() -> None:
    found: list[Any] = []

    def note(x: Any) -> Any:
        found.append(seen()[0] if hasattr(LIBM, "fetestexcept") else 5e-324 * 1.0 == 0.0)
        return x

    def f(x: Any) -> Any:
        y = fg.pure_callback(note, x * HALF, x * HALF)
        return fg.lax.fori_loop(0, 2, lambda i, x: fg.pure_callback(note, x, x) * HALF, y)

    fg.jit(f)(np.ones(3, np.float32))
    assert found == [False] * 3


def test_functions_of_libraries_see_subnormal_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []
    with pretended() as ranks:
        total = ranks.total

        def noted(x: Any) -> Any:
            found.append(float("5e-324") * 1.0 == 0.0)
            return total(x)

        monkeypatch.setattr(ranks, "total", noted)
        compiled = fg.jit(lambda x: fg.lax.psum(x * HALF, "data") * HALF)
        compiled(np.ones(3, np.float32))
    assert found
    assert not any(found)


def test_workers_have_the_mode_of_the_step() -> None:
    x = np.full(1 << 21, TINY)
    f = fg.jit(lambda x: fnp.sin(x * HALF) + x * HALF, threads=2)
    for _ in range(5):
        assert not f(x).any()
    y = x.astype(float) * 1e-270
    g = fg.jit(lambda y: y * 0.5, threads=2)
    for _ in range(5):
        np.testing.assert_array_equal(g(y), y * 0.5)
        assert not f(x).any()


def test_a_process_that_flushes_is_left_alone() -> None:
    """The caller's own mode is kept, and is what double precision has."""
    if not processor.is_x86():
        pytest.skip("the mode is set by code for x86")
    program = (
        "import ctypes, mmap, numpy as np, funcgrad as fg\n"
        "page = mmap.mmap(-1, 4096, prot=7)\n"
        # sub rsp, 8; stmxcsr [rsp]; or dword [rsp], 0x8040; ldmxcsr [rsp]; add rsp, 8; ret
        "page.write(bytes.fromhex('4883ec08 0fae1c24 810c2440800000 0fae1424 4883c408 c3'))\n"
        "place = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "f, x = fg.jit(lambda x: x * 0.5), np.full(3, 1e-310)\n"
        "assert f(x).all()\n"
        "ctypes.CFUNCTYPE(None)(place)()\n"
        "assert float('5e-324') * 1.0 == 0 and not f(x).any()\n"
        "assert float('5e-324') * 1.0 == 0\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0
