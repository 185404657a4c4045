"""Kernels compiled by Numba's public interface: the reference for the default translation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.compiler.runtime import kernel_store, releases
from funcgrad.errors import ArgumentError, UntestedVersionWarning
from funcgrad.extend import laws
from tests.cases import Case
from tests.compiler.kernels import read
from tests.test_laws import every_row, is_single

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((37, 5))
Y = RANDOM.standard_normal((5, 4)).astype(np.float32)
I = RANDOM.integers(-5, 5, 37)  # noqa: E741
B = RANDOM.integers(-128, 128, (9, 33), np.int8)

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda x: np.where(x > 0, np.sin(x) ** 2, np.exp(-x) + 3), (X,)),
    "single precision": (lambda y: np.tanh(y) / (2 - y * y), (Y,)),
    "integers": (lambda i: (i // 3, i % 4, i << 2, np.abs(i)), (I,)),
    "products": (lambda x, b: (x.T @ x, b @ b.T, b.astype(np.int32) @ b.T), (X, B)),
    "complex": (lambda x: (x + 1j * x[::-1]) * np.exp(1j * x), (X,)),
    "picks": (lambda x, i: x[i] * 2 + fnp.zeros(37).at[i].set(1.0)[:, None], (X, I)),
    "sums": (lambda x: (x.sum(0), (x * x).max(1), np.cumsum(x, 0)), (X,)),
    "gradient of a loop": (
        fg.grad(
            lambda x: fg.lax.scan(lambda c, row: (np.sin(c) + row, c), x[0], x)[1].sum(),
        ),
        (X,),
    ),
    "while": (lambda x: fg.lax.while_loop(lambda s: s < 100, lambda s: s * 1.5 + 1, x), (0.25,)),
    "joined loops": (
        lambda x: fg.lax.fori_loop(
            0, 5, lambda i, c: fg.lax.fori_loop(0, 3, lambda j, c: c.at[i, j].add(c[j, i]), c), x
        ),
        (X,),
    ),
    "small matrices": (lambda x: np.linalg.solve(x[:5] + 9 * np.eye(5), x[5]), (X,)),
    "literals": (lambda x: (x * -0.0, x * 0.0, x + 1, x + True), (X[0],)),
}


def computed(function: Callable[..., Any], args: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in fg.tree_util.tree_leaves(fg.jit(function)(*args))]


@pytest.fixture
def by_numba(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Compile by Numba from now on."""

    def begin() -> None:
        fg.clear_caches()
        monkeypatch.setattr(kernel_store, "_ADDRESSES", {})
        monkeypatch.setenv("FUNCGRAD_NUMBA", "public")

    return begin


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_the_default_translation(
    name: str, by_numba: Callable[[], None]
) -> None:
    function, args = PROGRAMS[name]
    expected = computed(function, args)
    by_numba()
    before = len(kernel_store._BY_NUMBA)
    found = computed(lambda *args: function(*args), args)
    assert len(kernel_store._BY_NUMBA) > before
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        if name in ("sums", "gradient of a loop"):  # whose order LLVM may choose
            np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)
        else:
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(np.signbit(a.real), np.signbit(b.real))


@pytest.fixture
def untested(by_numba: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Pretend from now on that llvmlite is newer than all that were tested."""

    def begin() -> None:
        by_numba()
        monkeypatch.delenv("FUNCGRAD_NUMBA")
        monkeypatch.setattr(kernel_store, "_llvmlite_version", lambda: "0.99.1")
        releases._is_tested.cache_clear()

    return begin


def test_the_installed_release_was_tested(recwarn: pytest.WarningsRecorder) -> None:
    llvmlite = pytest.importorskip("llvmlite")
    assert releases._is_tested(llvmlite.__version__)
    assert not recwarn


def test_an_untested_release_compiles_by_numba_and_says_so_once(
    untested: Callable[[], None],
) -> None:
    function, args = PROGRAMS["while"]
    expected = computed(function, args)
    untested()
    before = len(kernel_store._BY_NUMBA)
    with pytest.warns(UntestedVersionWarning, match=r"llvmlite 0\.99\.1 was not tested") as caught:
        twice = [computed(lambda x, k=k: function(x) * k, args)[0] for k in (1, 2)]
    assert len(caught) == 1
    assert len(kernel_store._BY_NUMBA) > before
    np.testing.assert_array_equal(twice, [expected[0], expected[0] * 2])


def test_an_untested_release_is_used_as_usual_on_request(
    untested: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    untested()
    monkeypatch.setenv("FUNCGRAD_NUMBA", "lean")
    before = len(kernel_store._BY_NUMBA)
    assert fg.jit(lambda x: x * 5.25 - 0.125)(2.0) == 10.375
    assert len(kernel_store._BY_NUMBA) == before


@pytest.mark.parametrize("version", ["0.45.1", "0.51.0", "1.0", "unknown", ""])
def test_versions_beyond_the_tested_ones(version: str) -> None:
    releases._is_tested.cache_clear()
    with pytest.warns(UntestedVersionWarning):
        assert not releases._is_tested(version)


def test_public_calls_of_llvm_make_the_same_code() -> None:
    backend = pytest.importorskip("funcgrad.compiler.native.llvm_backend")
    path = pytest.importorskip("funcgrad.compiler.native.llvmlite_path")
    effort, ways = backend.Effort.BRIEF, (None, path)  # Numba compiles all else
    text = (
        "define void @f(ptr noalias %p, ptr noalias %q) {\n  br label %b\nb:\n"
        "  %i = phi i64 [ 0, %0 ], [ %j, %b ]\n  %j = add i64 %i, 1\n"
        "  %a = getelementptr double, ptr %p, i64 %i\n  %x = load double, ptr %a\n"
        "  %y = fmul double %x, %x\n  %c = getelementptr double, ptr %q, i64 %i\n"
        "  store double %y, ptr %c\n  %t = icmp eq i64 %j, 4096\n"
        "  br i1 %t, label %e, label %b\ne:\n  ret void\n}\n"
    )
    codes = [backend.Emission(text, effort, way).result() for way in ways]
    assert codes[0] == codes[1]
    facts = path.facts()
    assert {**backend.facts(), "features": ""} == {**facts, "features": ""}
    assert backend.facts()["features"].startswith(facts["features"])
    for way in ways:
        with pytest.raises(RuntimeError, match="expected"):
            backend.Emission("no assembly", effort, way).result()


@pytest.mark.nightly
@every_row
def test_every_row_is_that_of_numpy(case: Case, dtype: str, by_numba: Callable[[], None]) -> None:
    by_numba()
    laws.compiled_results(case, case.draw(dtype), is_single(dtype))


def test_other_ways_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_NUMBA", "private")
    with pytest.raises(ArgumentError, match="Give lean or public, or leave it out"):
        fg.jit(lambda x: x * 3.0625 + 0.0078125)(X)


def test_the_printed_kernel_is_a_function_of_python() -> None:
    numba_path = pytest.importorskip("funcgrad.compiler.native.numba_path")
    kernel = read(
        "def kernel(slots, args):\n"
        "    p0 = ptr_f64(slots[args[2]] + args[3])\n"
        "    for i in range(0, args[4]):\n"
        "        store(p0, i, load(p0, i, 1) * 2.0, 1)\n"
        "    return 0\n"
    )
    vocabulary = numba_path.Vocabulary()
    text = numba_path.print_kernel(kernel, "doubled", vocabulary)
    first, *_, last = text.splitlines()
    assert first == "def doubled(slots_address, args_address):"
    assert last.startswith("    return number_")
    assert any(line.startswith("    for i in range(number_") for line in text.splitlines())
    assert all(name.isidentifier() for name in vocabulary.words)
