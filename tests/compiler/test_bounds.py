"""Compilation ends: bounds on what LLVM is given, on its time, and on the length of programs.

Kernels of chains of elementary functions are made as text, on operands that vary in the loop and on
such as do not; what becomes of them is measured in bytes of object code and in processor time.
"""

from __future__ import annotations

import cProfile
import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import funcgrad as fg
from funcgrad.compiler.native import llvm_backend, translate
from funcgrad.compiler.native.vocabulary import WORDS
from funcgrad.compiler.runtime import kernel_store
from funcgrad.errors import CompilerError
from funcgrad.intrinsics import INTRINSICS
from tests.compiler.kernels import read

pytestmark = pytest.mark.filterwarnings("ignore::funcgrad.errors.LongProgramWarning")

SECONDS = 20.0
"""Processor time for one kernel; the slowest of thousands took 0.15 s."""

BYTES = 6000
"""Object code per call of an elementary function, and of what is around them.

The longest function alone but for those with reflections, erfc of doubles, takes 8,152 with all of
its kernel: a loop of vectors, and one for what is left of them. Where functions of float32 are
computed in double precision beside others that are not, each vector of 16 is two registers of
doubles: 23,616 for four of them.
"""

REFLECTED = {"lgamma", "digamma"}
"""They count twice: negative numbers take a sine or tangent, and a logarithm, besides."""

_TWO = {"pow", "atan2", "hypot", "copysign", "maximum", "minimum", "fmod", "nextafter"}
_NAMES = {x.name for x in INTRINSICS.values() if x.code}
UNARY = sorted(_NAMES & WORDS.keys() - _TWO - {"fma"})
BINARY = sorted(_NAMES & WORDS.keys() & _TWO)


# --------------------------------------------------------------------------- chains of functions


def chain_kernel(rng: random.Random, functions: list[str], width: int, n_results: int) -> str:
    """A kernel that applies functions one after the other and stores some of the results."""
    is_nested = rng.random() < 0.3
    lines = ["begin = args[0]", "end = args[1]"]
    lines += [
        f"p{k} = ptr_f{width}(slots[args[{2 + 2 * k}]] + args[{3 + 2 * k}])"
        for k in range(2 + n_results)
    ]
    lines.append("x0 = load(p0, 0, 1)")
    pool, depth = ["x0"], 1
    if is_nested:
        lines += ["for r in range(begin, end):", "    y0 = load(p0, r, 1)"]
        lines.append("    for i in range(args[40]):")
        pool.append("y0")
        depth = 2
    else:
        lines.append("for i in range(begin, end):")
    inner = ["x1 = load(p1, i, 2)"]
    pool = rng.choice([["x0"], ["x1"], [*pool, "x1"]])
    last = rng.choice(pool)
    for k, name in enumerate(functions):
        operands = [last] if name in UNARY else [last, rng.choice(pool)]
        rng.shuffle(operands)
        inner.append(f"v{k} = {name}({', '.join(operands)})")
        if rng.random() < 0.2:
            inner.append(f"w{k} = select(v{k} > {last}, v{k} * {last}, v{k} + {rng.choice(pool)})")
        last = f"w{k}" if inner[-1].startswith("w") else f"v{k}"
        pool = [*pool, last]
    for k in range(n_results):
        inner.append(f"store(p{2 + k}, i, {last if k == 0 else rng.choice(pool)}, {3 + k})")
    lines += ["    " * depth + line for line in inner]
    return "\n".join(
        ["def kernel(slots, args):", *("    " + line for line in [*lines, "return 0"])]
    )


def assert_bounded(source: str, functions: list[str]) -> None:
    """LLVM's time and the size of its result stay within their bounds."""
    n_calls = len(functions) + sum(name in REFLECTED for name in functions)
    code = llvm_backend.Emission(
        translate.translate(read(source), "kernel").assembly
    ).result()  # within MAX_SECONDS
    assert len(code) <= BYTES * (1 + n_calls), f"{len(code)} bytes\n{source}"


def check_chains(seed: int, count: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        functions = [
            rng.choice(BINARY) if rng.random() < 0.2 else rng.choice(UNARY)
            for _ in range(rng.randint(1, 8))
        ]
        source = chain_kernel(rng, functions, rng.choice([32, 64]), rng.randint(1, 3))
        assert_bounded(source, functions)


@pytest.fixture(autouse=True)
def _bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_backend, "MAX_SECONDS", SECONDS)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_eight_times_the_same_function(name: str) -> None:
    for width in (32, 64):
        assert_bounded(chain_kernel(random.Random(name), [name] * 8, width, 2), [name] * 8)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(4))
def test_chains_of_elementary_functions(seed: int) -> None:
    check_chains(seed, 15)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 108))
def test_many_chains_of_elementary_functions(seed: int) -> None:
    check_chains(seed, 120)


def test_invariant_chains_with_several_results() -> None:
    def f(x: Any) -> Any:
        a = np.tanh(np.cos(np.broadcast_to(x[:1], (4,))))
        return a, np.tanh(expit(a))

    found = fg.jit(f)(np.ones(2))
    for x, y in zip(found, f(np.ones(2)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-14)


@pytest.mark.parametrize("which", ["invariant", "real", "imaginary"])
def test_chains_of_complex_functions(which: str) -> None:
    rng = random.Random(which)
    functions = [np.exp, np.sin, np.cos, np.tanh, np.log, np.sqrt, np.sinh, np.cosh, np.square]
    y = np.linspace(0.0, 1.0, 16)
    for _ in range(4):
        chain = [rng.choice(functions) for _ in range(rng.randint(1, 6))]

        def f(x: Any, y: Any, chain: list[Any] = chain) -> Any:
            one = np.broadcast_to(x[:1], y.shape)
            z = {"invariant": one * (1 + 0.5j), "real": y + 1j * one, "imaginary": one + 1j * y}
            result = z[which]
            for function in chain:
                result = function(result)
            return result

        x = np.array([0.3, 0.5])
        with np.errstate(all="ignore"):
            expected = f(x, y)
        np.testing.assert_allclose(fg.jit(f)(x, y), expected, rtol=1e-9)


# ---------------------------------------------------------------------------- bounds in time


def spinning(seconds: float) -> Callable[..., bytes]:
    """What LLVM would do if it did not end for so long, of processor time."""
    emit = llvm_backend._object_file

    def spin(*args: Any) -> bytes:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            sum(range(1000))
        return emit(*args)

    return spin


@pytest.fixture
def uncached() -> Iterator[None]:
    folder = kernel_store.cache_dir()
    kernel_store.set_cache_dir(None)
    yield
    kernel_store.set_cache_dir(folder)


@pytest.mark.lean
@pytest.mark.usefixtures("uncached")
def test_a_kernel_that_does_not_end_is_an_error_with_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def f(x: Any) -> Any:
        return np.tanh(x) * 2.25 + np.cos(x) / 3.5

    fg.jit(lambda x: x + 1)(np.ones(3))  # all that is no kernel is there
    with monkeypatch.context() as patch:
        patch.setattr(llvm_backend, "_object_file", spinning(1.0))
        patch.setattr(llvm_backend, "MAX_SECONDS", 0.2)
        patch.setattr(llvm_backend, "_LOOK_SECONDS", 0.05)
        with pytest.raises(CompilerError) as caught:
            fg.jit(f)(np.ones(3))
        # It keeps nobody else from compiling.
        patch.undo()
        np.testing.assert_allclose(fg.jit(f)(np.ones(3)), f(np.ones(3)), rtol=1e-14)
    message = str(caught.value)
    assert "LLVM was still busy with it after 0.2 seconds" in message
    assert "def kernel(slots, args):" in message
    assert "tanh(" in message


@pytest.mark.lean
@pytest.mark.usefixtures("uncached")
def test_what_llvm_refuses_is_an_error_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> bytes:
        raise RuntimeError("expected instruction opcode")

    def f(x: Any) -> Any:
        return np.arctan(x) * np.sinh(x) - x  # of no other test: numbers make no other kernel

    fg.jit(lambda x: x + 1)(np.ones(3))  # all that is no kernel is there
    with monkeypatch.context() as patch:
        patch.setattr(llvm_backend, "_object_file", refuse)
        with pytest.raises(CompilerError) as caught:
            fg.jit(f)(np.ones(3))
    head, _, source = str(caught.value).partition("\n\n")
    assert head == (
        "a generated kernel does not compile, which is a defect of funcgrad: expected instruction "
        "opcode\nPlease report it with this source:"
    )
    assert source.startswith("def kernel(slots, args):")
    np.testing.assert_allclose(fg.jit(f)(np.ones(3)), f(np.ones(3)), rtol=1e-14)


@pytest.mark.lean
@pytest.mark.usefixtures("uncached")
def test_a_handler_of_signals_may_end_a_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    def alarm(*_: Any) -> bytes:
        raise TimeoutError("this took more than a minute")

    def f(x: Any) -> Any:
        return np.arctan(x) * np.cosh(x) - x  # of no other test

    with monkeypatch.context() as patch:
        patch.setattr(llvm_backend.Emission, "result", alarm)
        with pytest.raises(TimeoutError, match="more than a minute"):
            fg.jit(f)(np.ones(3))
    np.testing.assert_allclose(fg.jit(f)(np.ones(3)), f(np.ones(3)), rtol=1e-14)


def test_the_time_of_a_thread_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    emission = llvm_backend.Emission("define void @f() {\n  ret void\n}\n")
    assert emission.wait(60)

    def ended(clock: int) -> float:
        raise OSError("Invalid argument")

    monkeypatch.setattr(time, "clock_gettime", ended)
    assert emission._seconds(0.0) == 0
    assert len(emission.result()) > 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_waits_for_no_emission_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, has_begun = threading.Event(), threading.Event()

    def slowly(*args: Any) -> bytes:
        has_begun.set()
        assert goes_on.wait(60)
        return b""

    monkeypatch.setattr(llvm_backend, "_object_file", slowly)
    emission = llvm_backend.Emission("")
    try:
        assert has_begun.wait(60)
        assert emission in llvm_backend._RUNNING
        child = os.fork()
        if child == 0:
            os._exit(bool(llvm_backend._RUNNING))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert emission in llvm_backend._RUNNING
    finally:
        goes_on.set()
    assert emission.result() == b""
    llvm_backend._await_running()


def test_an_array_of_another_layout_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(np.ndarray):
        """As if the class were elsewhere."""

    zeros = np.zeros
    monkeypatch.setattr(np, "zeros", lambda shape: zeros(shape).view(Other))
    with pytest.raises(CompilerError) as caught:
        kernel_store._array_offsets()
    assert str(caught.value) == (
        f"NumPy {np.__version__} keeps the fields of arrays elsewhere than at the offsets of its "
        "stable binary interface. Use another NumPy version; without jit everything works."
    )


@pytest.mark.usefixtures("uncached")
def test_an_interrupt_reaches_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return np.sin(x) * 1.75 + np.exp(x) / 5.5

    has_begun, goes_on, has_ended = (threading.Event() for _ in range(3))
    emit, main = llvm_backend._object_file, threading.get_ident()

    def emit_later(*args: Any) -> bytes:
        has_begun.set()
        goes_on.wait(60)
        has_ended.set()
        return emit(*args)

    def interrupt() -> None:
        assert has_begun.wait(60)
        signal.pthread_kill(main, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    with monkeypatch.context() as patch:
        patch.setattr(llvm_backend, "_object_file", emit_later)
        # It may be ignored in what runs tests.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            interrupting.start()
            with pytest.raises(KeyboardInterrupt):
                fg.jit(f)(np.ones(3))
            assert not has_ended.is_set()
        finally:
            signal.signal(signal.SIGINT, before)
            goes_on.set()
            interrupting.join()
    np.testing.assert_allclose(fg.jit(f)(np.ones(3)), f(np.ones(3)), rtol=1e-14)


# ---------------------------------------------------------------------------- long programs


def rk4(n: int) -> Callable[[Any], Any]:
    """Runge-Kutta's method for predators and prey, unrolled, on numbers."""

    def rates(a: Any, b: Any) -> tuple[Any, Any]:
        return a * (1.1 - 0.4 * b), b * (0.1 * a - 0.4)

    def run(y: Any) -> Any:
        a, b, h = y[0], y[1], 0.01
        for _ in range(n):
            k1 = rates(a, b)
            k2 = rates(a + h / 2 * k1[0], b + h / 2 * k1[1])
            k3 = rates(a + h / 2 * k2[0], b + h / 2 * k2[1])
            k4 = rates(a + h * k3[0], b + h * k3[1])
            a = a + h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
            b = b + h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
        return a + b

    return run


def chain(n: int) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for i in range(n):
            x = np.sin(x) if i % 2 else x * 1.01
        return x

    return run


def wide(n: int) -> Callable[[Any], Any]:
    return lambda x: sum(x * float(i) for i in range(n))


def mixed(n: int) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for i in range(n // 8):
            x = x + np.sum(x) * 1e-9
            x = fg.numpy.concatenate([x[1:], x[:1]])
            x = np.where(x > 0.5, x * 0.9, x + 0.01)
            x = fg.numpy.at(x)[i % 8].set(0.25)
        return x

    return run


def many_results(n: int) -> Callable[[Any], Any]:
    return lambda x: [x * float(i) for i in range(n)]


def calls_of_compiling(f: Callable[[Any], Any], x: Any) -> int:
    """How many calls Python makes for a compilation whose kernels are at hand."""
    compiled = fg.jit(f)
    compiled.lower(x).compile()
    traced = compiled.trace(x)
    profile = cProfile.Profile(builtins=False)
    profile.enable()
    traced.lower().compile()
    profile.disable()
    profile.create_stats()
    return sum(row[1] for row in profile.stats.values())


@pytest.mark.parametrize(
    "family",
    [
        chain,
        *(pytest.param(f, marks=pytest.mark.nightly) for f in (rk4, wide, mixed, many_results)),
    ],
)
def test_compilation_takes_linear_time(family: Callable[[int], Any]) -> None:
    n = 40 if family is rk4 else 1600
    x = np.linspace(0.2, 1.0, 8)
    short, long = (calls_of_compiling(family(k), x) for k in (n, 4 * n))
    assert long <= 4.6 * short


@pytest.mark.parametrize(
    "transform", [lambda f: f, pytest.param(fg.grad, marks=pytest.mark.nightly)]
)
def test_steps_of_an_unrolled_loop_share_kernels(transform: Callable[..., Any]) -> None:
    kernels = []
    for n in (100, 200):
        compiled = fg.jit(transform(rk4(n))).lower(np.ones(2)).compile()
        kernels.append(compiled.as_text().count("def kernel"))
    assert kernels[1] <= kernels[0] + 4


def test_arguments_of_other_forms_are_converted_at_once() -> None:
    f = fg.jit(lambda xs: sum(xs[1:], xs[0]))
    xs = [float(i) for i in range(1200)]
    executable = f.lower(xs).compile()._executable
    starts = []
    start = executable._start
    executable._start = lambda *args: starts.append(1) or start(*args)
    assert executable(*xs) == [sum(xs)]
    assert len(starts) == 2
    views = [np.arange(6.0)[::2] + i for i in range(100)]
    np.testing.assert_array_equal(f([v[::-1] for v in views]), sum(v[::-1] for v in views))


@pytest.mark.nightly
@pytest.mark.parametrize("family", [chain, wide, mixed, many_results])
def test_programs_of_twenty_thousand_operations(family: Callable[[int], Any]) -> None:
    x = np.linspace(0.2, 1.0, 8)
    f = family(20_000)
    for found, expected in itertools.zip_longest(
        np.atleast_2d(fg.jit(f)(x)), np.atleast_2d(f(x)), fillvalue=np.nan
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.nightly
def test_five_hundred_unrolled_steps_and_their_gradient() -> None:
    x = np.array([1.0, 0.5])
    value, gradient = fg.jit(fg.value_and_grad(rk4(500)))(x)
    np.testing.assert_allclose(value, rk4(500)(x), rtol=1e-12)
    for i in range(2):
        h = 1e-6 * np.eye(2)[i]
        slope = (rk4(500)(x + h) - rk4(500)(x - h)) / 2e-6
        np.testing.assert_allclose(gradient[i], slope, rtol=1e-6)
