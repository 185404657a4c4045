"""What LLVM is asked to do for a kernel: as much as it needs, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.loops.hoist import hoist
from funcgrad.compiler.loops.language import SCOPES, For, Function
from funcgrad.compiler.loops.library.tiles import TileRows, Tiles
from funcgrad.compiler.native import elementary, llvm, llvm_backend
from funcgrad.compiler.native import translate as front
from funcgrad.compiler.native.translate import Translation
from funcgrad.compiler.native.vocabulary import WORDS
from funcgrad.compiler.runtime import kernel_store
from funcgrad.higher_order.remembered import forget_all
from tests.compiler.kernels import read

pytestmark = pytest.mark.lean

X = np.linspace(-2.0, 2.0, 6 * 700).reshape(6, 700)
SMALL = X[:, :17].copy()


def often(n: int) -> Callable[[Any], Any]:
    """So many steps of the same formula."""

    def f(x: Any) -> Any:
        for k in range(n):
            x = np.tanh(x * 1.5 + 0.1 * k)
        return x

    return f


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def smooth(x: Any) -> Any:
    return np.where(x[:, 1:-1] > 0, x[:, :-2] + x[:, 2:], -x[:, 1:-1] / 3)


# Whether the kernels of a program are written in vectors, or LLVM would find none; the program.
PROGRAMS: dict[str, tuple[bool, Callable[[Any], Any], np.ndarray]] = {
    "light": (True, lambda x: 2 * x + 1, X),
    "heavy": (True, lambda x: np.exp(-x) * np.sin(x) + np.arctan(x), X),
    "flags": (True, lambda x: (x > 0.5) | (x < -1.0), X),
    "integers": (True, lambda x: np.floor(x).astype(np.int32) // 3, X),
    "rows": (True, softmax, X),
    "slices": (True, smooth, X),
    "a number": (True, lambda x: np.sqrt(np.float64(2.0) + x[0, 0]) / 3, X),
    "one formula often": (True, often(9), X),
    "short rows": (True, lambda x: (2 * x - x[0]) * x[:, :1], SMALL),
    "shorter than a vector": (True, lambda x: (2 * x - x[0]) * x[:, :1], X.reshape(700, 6)),
    "of few elements": (False, lambda x: (2 * x - x[0]) * x[:, :1], X.reshape(1400, 3)),
    "few rows": (True, lambda x: (2 * x - x[0]) * x[:, :1], SMALL[:, :6]),
    "few elements": (True, lambda x: np.exp(x) * x[::-1], SMALL[0, :3]),
    "short rows of work": (True, lambda x: np.exp(x - x[0]) * x[:, :1], SMALL),
    "short columns": (True, lambda x: x - np.mean(x, axis=0), SMALL),
    "transposed": (True, lambda x: x[:, :6] + x[:, :6].T, X),
    "short rows in a frame": (True, lambda x: np.pad(2 * x, ((1, 2), (0, 0))) + x[0], SMALL),
    "few edges": (True, lambda x: np.pad(np.sin(x), (3, 2)) * 2, X.ravel()),
    "few edges of numbers": (True, lambda x: np.pad(np.sin(x[::-1]), (3, 2)) * 2, X.ravel()),
    "many edges": (True, lambda x: np.pad(np.sin(x), (700, 0)) * 2, X.ravel()),
    "edges of what lies apart": (True, lambda x: np.tanh(np.pad(x, ((0, 0), (1, 0)))[:, :-1].T), X),
    "edges, backwards": (True, lambda x: np.pad(np.exp(1j * x), ((0, 0), (1, 1)))[:, ::-1], X),
    "short columns of work": (True, lambda x: np.max(np.exp(x - x[0]) * x[0], axis=0), SMALL),
    "running": (True, lambda x: np.cumsum(x, axis=1), X),
    "a vector for all rows": (True, lambda x: np.sum(np.maximum(x, 0.1), axis=0), SMALL[:, :7]),
    "looked up": (False, lambda x: x[:, [3, 1, 2]] * 2, X),
}


def compiled(f: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled anew, whatever is known of it."""
    kernel_store._ADDRESSES.clear()
    forget_all()
    return fg.jit(lambda *args: f(*args))


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[Translation]:
    """What becomes of kernels that are compiled; none comes from disk."""
    kernel_store.executor()
    monkeypatch.setattr(kernel_store, "_ADDRESSES", {})
    monkeypatch.setattr(kernel_store._Disk, "cache", None)
    translate, found = front.translate, []

    def noted(source: Function, symbol: str) -> Translation:
        made = translate(source, symbol)
        found.extend([] if source.is_brief else [made])
        return made

    monkeypatch.setattr(front, "translate", noted)
    return found


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_few_passes_give_what_all_of_them_give(
    name: str, kernels: list[Translation], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_in_vectors, f, x = PROGRAMS[name]
    few = compiled(f)(x)
    assert kernels
    assert all(kernel.is_in_vectors for kernel in kernels) == is_in_vectors
    np.testing.assert_allclose(few, f(x), rtol=1e-14, atol=1e-14)
    translate = front.translate
    monkeypatch.setattr(
        front, "translate", lambda *args: translate(*args)._replace(is_in_vectors=False)
    )
    every = compiled(f)(x)
    assert few.dtype == every.dtype
    assert few.tobytes() == every.tobytes()


def test_vectors_without_a_register_lie_in_one_cache_line(kernels: list[Translation]) -> None:
    compiled(np.exp)(X)
    assert kernels
    assert all('"stackrealign"' in kernel.assembly for kernel in kernels)


def test_flags_of_lanes_come_from_no_other_block(kernels: list[Translation]) -> None:
    """Without registers for flags, LLVM took four times as long to translate them."""
    compiled(lambda x: 2 * x + 1)(X)
    assert kernels
    assert "masked.load" in "".join(kernel.assembly for kernel in kernels)
    assert not any("x i1> %a" in kernel.assembly for kernel in kernels)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i2", "?", "c8"])
def test_processors_that_load_and_store_no_lanes(
    dtype: str, kernels: list[Translation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llvm, "_HELPERS", {})
    monkeypatch.setattr(llvm_backend, "has_masks", lambda verb, width: False)
    f = compiled(lambda x, y: np.pad(np.where(y > 0, x + y, x), ((0, 0), (0, 2))))
    for n in (1, 2, 15, 31, 33, 64, 127, 130, 300):
        x, y = (X.ravel()[: 5 * n].reshape(5, n) * k for k in (50, 60))
        x, y = x.astype(dtype), y.astype(dtype)
        np.testing.assert_array_equal(f(x, y), f.__wrapped__(x, y))
    text = "".join(kernel.assembly for kernel in kernels)
    assert "masked" not in text


@pytest.mark.parametrize(("n_edges", "is_cold"), [(5, True), (700, False)])
def test_loops_of_few_iterations_are_not_made_vectors(
    n_edges: int, is_cold: bool, kernels: list[Translation]
) -> None:
    def f(x: Any) -> Any:
        return np.pad(np.exp(1j * x[::-1]), (n_edges, 0)) * 2

    x = X.ravel()
    np.testing.assert_allclose(compiled(f)(x), f(x), rtol=1e-14)
    text = "".join(kernel.assembly for kernel in kernels)
    assert ("llvm.loop.vectorize.enable" in text) == is_cold
    assert text.count("distinct !{") == is_cold


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_one_kernel_for_short_rows_of_all_lengths(dtype: str, kernels: list[Translation]) -> None:
    """Whole vectors, what is left of a row, or both; nothing beyond it is written."""
    f = compiled(lambda x, y: (x + y) * x)
    longest = 64 * min(kernel_store.vectors_held() // 4, 4) - 1
    for n in (32, 33, 47, 48, 63, 64, 65, 96, 127, 130, 255)[: 9 if longest < 255 else None]:
        x, y = (X.ravel()[: 9 * n].reshape(9, n) * k for k in (100, 70))
        x, y = x.astype(dtype), y[0].astype(dtype)
        np.testing.assert_array_equal(f(x, y), (x + y) * x)
    assert [kernel.is_in_vectors for kernel in kernels] == [True]


def test_what_decides_and_calls_is_translated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    brief = kernel_store.executor_code(), Tiles.named("s", 4)
    tiles = TileRows.named("s", 4, (1, 1))
    found = []

    def noted(assembly: str, effort: Any, *others: Any) -> Any:
        found.append(effort)
        return emission(assembly, effort, *others)

    emission = llvm_backend.Emission
    monkeypatch.setattr(llvm_backend, "Emission", noted)
    monkeypatch.setattr(kernel_store, "_ADDRESSES", {})
    monkeypatch.setattr(kernel_store._Disk, "cache", None)
    for code in (*brief, tiles):
        assert kernel_store.code_address(code)
    assert [effort.name for effort in found] == ["BRIEF", "BRIEF", "TILES"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", [elementary.MOST_COPIES, elementary.MOST_COPIES + 1, 20])
def test_a_formula_that_is_used_often_is_called(
    n: int, kernels: list[Translation], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = compiled(often(n))(X)
    modules = [kernel.assembly for kernel in kernels]
    heads = [line for text in modules for line in text.splitlines() if line.startswith("define")]
    heads = [line for line in heads if "@tanh." in line]
    is_called = n > elementary.MOST_COPIES
    assert heads
    assert {("noinline" in line, "alwaysinline" in line) for line in heads} == {
        (is_called, not is_called)
    }
    kernels.clear()
    monkeypatch.setattr(elementary, "MOST_COPIES", 1000)
    assert compiled(often(n))(X).tobytes() == result.tobytes()
    size, size_of_copies = (
        sum(
            len(llvm_backend.Emission(text, llvm_backend.Effort.VECTORS).result()) for text in texts
        )
        for texts in (modules, [kernel.assembly for kernel in kernels])
    )
    assert size <= size_of_copies
    assert size < size_of_copies / 2 or n < 20


def test_scalars_are_computed_by_copies(kernels: list[Translation]) -> None:
    """Loops over few numbers call nothing: their variables stay in registers."""

    def f(x: Any) -> Any:
        return fg.lax.fori_loop(0, 3, lambda i, c: often(9)(c), x)

    x = X[0, :2].copy()
    np.testing.assert_allclose(compiled(f)(x), f(x), rtol=1e-14)
    assert "tanh" in kernels[0].assembly
    assert "noinline" not in kernels[0].assembly.replace("noinline cold", "")


HOISTED = [
    ("v = select(c == 0, x, x * c)", "v = select(h1, x, x * c)", "h1 = c == 0"),
    ("v = x + (c + d) * x", "v = x + (h1 * x)", "h1 = c + d"),
    ("v = x * -c", "v = x * h1", "h1 = negative(c)"),
    ("v = x * (c + exp(d) / 2)", "v = x * h1", "h1 = c + (exp(d) / 2)"),
    ("v = load(p, i, 1) + x", "v = load(p, i, 1) + x", ""),
    ("v = load(r, 0, 3) + x", "v = h1 + x", "h1 = load(r, 0, 3)"),
    # The loop writes to memory of this scope, or of another kernel.
    ("v = load(r, 0, 2) + x", "v = load(r, 0, 2) + x", ""),
    (f"v = load(r, 0, {SCOPES + 1}) + x", f"v = load(r, 0, {SCOPES + 1}) + x", ""),
]


@pytest.mark.parametrize(("statement", "left", "moved"), HOISTED)
def test_what_does_not_vary_is_moved_before_the_loop(statement: str, left: str, moved: str) -> None:
    lines = ["def kernel(slots, args):", "    for i in range(0, n):"]
    lines += ["        x = load(q, i, 1)", f"        {statement}", "        store(p, i, v, 2)"]
    function = read("\n".join([*lines, "    return 0"]))
    text = function.text
    *before, loop = hoist(function, lambda name: name in WORDS and WORDS[name].is_pure).body
    assert [line for x in before for line in x.lines()] == ([moved] if moved else [])
    assert isinstance(loop, For)
    assert [*loop.body[1].lines()] == [left]
    assert function.text == text  # it is another one


STAYS = {
    "where not every iteration loads": ["if x > 0:", "    v = load(r, 0, 3)"],
    "whose scope begins anew": ["scope(3)", "v = load(r, 0, 3)"],
    "beside a word that may write to any memory": ["room(1)", "v = load(r, 0, 3)"],
}


@pytest.mark.parametrize("name", STAYS)
def test_loads_stay_in_the_loop(name: str) -> None:
    lines = ["def kernel(slots, args):", "    for i in range(0, n):", "        x = load(q, i, 1)"]
    lines += [f"        {line}" for line in STAYS[name]] + ["    return 0"]
    function = read("\n".join(lines))
    assert hoist(function, lambda name: WORDS[name].is_pure).text == function.text


@pytest.mark.parametrize(("to", "is_apart"), [("p1", False), ("offset(p1, i * args[3])", True)])
def test_llvm_looks_for_no_vectors_where_elements_are_stored_apart(to: str, is_apart: bool) -> None:
    kernel = f"""def kernel(slots, args):
    p0 = ptr_f64(slots[args[0]])
    p1 = ptr_f64(slots[args[1]])
    for i in range(0, args[2]):
        store({to}, {0 if is_apart else "i"}, load(p0, i, 1) * 2, 2)
    return 0
"""
    assert front.translate(read(kernel), "kernel").is_in_vectors == is_apart
