"""Random damage to the files of the cache: no crash, and nothing but what was written is used.

Every run tries two hundred changes, the nightly one a hundred thousand. Whatever was changed,
`DiskCache.read` gives the very bytes that were kept, or nothing; processes of their own then show
that a damaged folder leads to right results.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.loops.language import Function
from funcgrad.compiler.native import llvm_backend, llvmlite_path
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.disk_cache import DiskCache
from funcgrad.compiler.runtime.linker import link
from tests.compiler.kernels import read

pytestmark = pytest.mark.lean

Rng = np.random.Generator
FACTS = {"symbol": "f", "abi": 6, "cpu": "of this machine"}
SUFFIXES = (".py", ".o", ".json")


IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder, in memory where there is such a place: disks take milliseconds for a change."""
    is_there = IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK)
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if is_there else None) as folder:
        yield Path(folder)


def _place(rng: Rng, data: bytes) -> int:
    return int(rng.integers(0, len(data) + 1))


def flip(rng: Rng, data: bytes) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(int(rng.integers(1, 4))):
        changed[int(rng.integers(0, len(changed)))] ^= 1 << int(rng.integers(0, 8))
    return bytes(changed)


def overwrite(rng: Rng, data: bytes) -> bytes:
    start = _place(rng, data)
    more = rng.bytes(int(rng.integers(1, 40)))
    return data[:start] + more + data[start + len(more) :]


def insert(rng: Rng, data: bytes) -> bytes:
    start = _place(rng, data)
    return data[:start] + rng.bytes(int(rng.integers(1, 40))) + data[start:]


def remove(rng: Rng, data: bytes) -> bytes:
    start, end = sorted((_place(rng, data), _place(rng, data)))
    return data[:start] + data[end:]


def cut(rng: Rng, data: bytes) -> bytes:
    return data[: _place(rng, data)]


def extend(rng: Rng, data: bytes) -> bytes:
    return data + (rng.bytes(int(rng.integers(1, 40))) if rng.integers(2) else b" \n")


def repeat(rng: Rng, data: bytes) -> bytes:
    start, end = sorted((_place(rng, data), _place(rng, data)))
    return data[:end] + data[start:end] + data[end:]


def edit(rng: Rng, data: bytes) -> bytes:
    """What JSON is made of, at any place."""
    start = _place(rng, data)
    pieces = [
        b"{",
        b"}",
        b"[",
        b'"',
        b",",
        b":",
        b"null",
        b"1e999",
        b"NaN",
        b"\\u0000",
        b"0",
        b"\n",
    ]
    return data[:start] + pieces[int(rng.integers(len(pieces)))] + data[start:]


CHANGES: list[Callable[[Rng, bytes], bytes]] = [
    flip, overwrite, insert, remove, cut, extend, repeat, edit,
]  # fmt: skip


def damage(rng: Rng, paths: list[Path], others: list[bytes]) -> Path:
    """Change one of some files, or put the content of another in its place."""
    path = paths[int(rng.integers(len(paths)))]
    kind = int(rng.integers(len(CHANGES) + 1))
    if kind == len(CHANGES):
        path.write_bytes(others[int(rng.integers(len(others)))])
    else:
        path.write_bytes(CHANGES[kind](rng, path.read_bytes()))
    return path


@pytest.mark.parametrize("n", [200, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_damaged_files_give_what_was_kept_or_nothing(place: Path, n: int) -> None:
    rng = np.random.default_rng(n)
    store = DiskCache(place / "kernels")
    codes = {f"{k:064x}": rng.bytes(int(rng.integers(1, 3000))) for k in range(4)}
    for key, code in codes.items():
        store.write(key, f"# source of {key}\n", code, {**FACTS, "source": key})
    paths = sorted(store.folder.iterdir())
    whole = {path: path.read_bytes() for path in paths}
    others = list(whole.values())
    used = 0
    for step in range(n):
        changed = {damage(rng, paths, others) for _ in range(int(rng.integers(1, 3)))}
        for key in {path.stem for path in changed}:
            found = store.read(key, {**FACTS, "source": key})
            is_whole = all(
                path.read_bytes() == whole[path]
                for path in changed
                if path.stem == key and path.suffix != ".py"
            )
            assert found == (codes[key] if is_whole else None), f"step {step}"
            used += is_whole
        for path in changed:
            path.write_bytes(whole[path])
    assert n / 10 < used < n


@pytest.mark.parametrize("n", [200, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_damaged_notes_give_what_was_noted_or_nothing(place: Path, n: int) -> None:
    rng = np.random.default_rng(n + 2)
    store = DiskCache(place / "kernels")
    notes = {f"{k:064x}": {**FACTS, "number": k} for k in range(3)}
    for key, facts in notes.items():
        store.note(key, facts)
    paths = sorted(store.folder.iterdir())
    whole = {path: path.read_bytes() for path in paths}
    for step in range(n):
        path = damage(rng, paths, list(whole.values()))
        is_whole = path.read_bytes() == whole[path]
        expected = notes[path.stem] if is_whole else None
        assert store.recall(path.stem) == expected, f"step {step}"
        path.write_bytes(whole[path])


class Compiler:
    """In the place of Numba and LLVM: knows what they made of the kernels of a program.

    What is linked must be what was compiled, byte by byte; so nothing else is ever executed.
    """

    Effort = llvm_backend.Effort

    def __init__(self, made: dict[str, tuple[bytes, int]]) -> None:
        self.made = made
        self.n_compiled = 0

    def translate(self, function: Function, symbol: str) -> tuple[str, bool]:
        self.n_compiled += 1
        return symbol, False

    def Emission(self, text: str, effort: Any, *others: Any) -> Any:
        return SimpleNamespace(result=lambda: self.made[text][0], seconds=0.0)

    def link(self, code: bytes, symbol: str) -> int:
        whole, address = self.made[symbol]
        assert code == whole, "something else than what was compiled would run"
        return address


def function(x: Any) -> Any:
    return np.cumsum(np.sqrt(x) * 1.125), np.sum(x * x), np.tanh(x[:, None] - x).max(axis=1)


@pytest.mark.parametrize("n", [100, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_damaged_kernels_are_compiled_again_and_compute_the_same(
    place: Path, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All the way from files to results, in one process, with the kernels of a program."""
    rng = np.random.default_rng(n + 1)
    x = np.linspace(0.0, 1.0, 12)
    before = kernel_store.cache_dir()
    kernel_store.executor()
    monkeypatch.setattr(kernel_store, "_ADDRESSES", {})
    kernel_store.set_cache_dir(place / "kernels")
    try:
        made: dict[str, tuple[bytes, int]] = {}
        with monkeypatch.context() as there:

            def link_and_note(code: bytes, symbol: str) -> int:
                made[symbol] = code, link(code, symbol) or llvmlite_path.load(code, symbol)
                return made[symbol][1]

            there.setattr(kernel_store, "link", link_and_note)
            expected = [y.tobytes() for y in fg.jit(lambda x: function(x))(x)]
        sources = [path.read_text() for path in (place / "kernels").glob("*.py")]
        texts = [text for text in sources if text.startswith("def kernel")]
        known = kernel_store._ADDRESSES
        functions = [x for x in map(read, texts) if x.digest in known]
        addresses = {x.text: known[x.digest] for x in functions}
        compiler = Compiler(made)
        monkeypatch.setattr(kernel_store, "_native", lambda: compiler)
        monkeypatch.setattr(kernel_store, "_frontend", lambda: compiler)
        monkeypatch.setattr(kernel_store, "link", compiler.link)
        kept = (place / "kernels").glob("*.py")
        keys = sorted(path.stem for path in kept if path.read_text() in addresses)
        paths = [place / "kernels" / (key + suffix) for key in keys for suffix in SUFFIXES]
        whole = {path: path.read_bytes() for path in paths}
        others = list(whole.values())
        assert len(keys) == len(functions) > 2
        for step in range(n):
            changed = {damage(rng, paths, others) for _ in range(int(rng.integers(1, 4)))}
            for each in functions:
                del known[each.digest]
            assert kernel_store.compile_kernels(functions) == addresses, step
            for path in changed:
                if path.suffix == ".py":  # for readers only, and never read
                    path.write_bytes(whole[path])
                assert path.read_bytes() == whole[path], f"step {step}: {path.name} was kept"
            if step % 1000 == 0:
                found = fg.jit(lambda x: function(x))(x)
                assert [y.tobytes() for y in found] == expected
        assert compiler.n_compiled > n / 2
    finally:
        monkeypatch.undo()
        kernel_store.set_cache_dir(before)


PROGRAM = """
import numpy as np
import funcgrad as fg

f = fg.jit(lambda x: (np.sqrt(x) * 1.125, np.sum(x * x)))
print([y.tobytes().hex() for y in f(np.linspace(0.0, 1.0, 12))])
"""


@pytest.mark.parametrize("n", [pytest.param(200, marks=pytest.mark.nightly)])
def test_processes_on_damaged_folders_compute_the_same(tmp_path: Path, n: int) -> None:
    rng = np.random.default_rng(n)
    folder, pristine = tmp_path / "kernels", tmp_path / "pristine"

    def result() -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM],
            env={**os.environ, "FUNCGRAD_CACHE_DIR": str(folder)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    expected = result()
    shutil.copytree(folder, pristine)
    others = [path.read_bytes() for path in pristine.iterdir()]
    for _ in range(n):
        paths = sorted(folder.iterdir())
        for _ in range(5):
            damage(rng, paths, others)
        assert result() == expected
        assert {path.name for path in folder.iterdir()} == {p.name for p in pristine.iterdir()}
