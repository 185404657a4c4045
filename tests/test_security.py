"""What `.github/SECURITY.md` promises of code that is made from text, and of data that is read."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.base import tree_code
from funcgrad.compiler.runtime import kernel_store
from funcgrad.higher_order.remembered import forget_all
from tests.sources import SOURCES, nodes_of, text_of

ROOT = Path(fg.__file__).parent

# Reading data never runs code.

WORDS = re.compile(
    r"\b(exec|eval|compile|__import__|_?pickle|cPickle|marshal|shelve|dill|cloudpickle|joblib"
    r"|load|fromfile|CDLL|PyDLL|LoadLibrary|allow_pickle)\b"
)
RUNS_TEXT = {"exec", "eval", "compile", "__import__"}
UNPICKLES = {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}

ALLOWED = {
    ("base/tree_code.py", "exec"): "trees and call paths: text without names and values of users",
    ("base/tree_code.py", "compile"): "the same",
    ("scalar_tape/rules.py", "exec"): "operators of numbers, of the rules of primitives",
    ("scalar_tape/rules.py", "compile"): "the same",
    ("compiler/native/numba_path.py", "exec"): "kernels, whose text has words and numbers alone",
    ("compiler/native/numba_path.py", "compile"): "the same",
    ("compiler/native/llvm_library.py", "CDLL"): "LLVM, from the folder of llvmlite",
    ("compiler/native/llvm_library.py", "PyDLL"): "the same",
    ("base/stacks.py", "CDLL"): "the C library that the process has loaded",
    ("api/rewriting.py", "compile"): "the tree of a function that runs already, read from its file",
    ("base/records.py", "exec"): "constructors of our own classes, of the names of their fields",
    ("compiler/runtime/blas.py", "CDLL"): "the library that FUNCGRAD_BLAS names",
    ("compiler/one_thread.py", "CDLL"): "NumPy's and SciPy's own libraries, copied in memory",
    ("compiler/foreign.py", "CDLL"): "SciPy's own library, found by the address of its functions",
    ("distributed/processes.py", "CDLL"): "the MPI library that mpi4py has loaded, by its own path",
    ("__main__.py", "pickle"): "a jitted function of its own, pickled and read back at once",
    (
        "profiling/instruction_sampler.py",
        "CDLL",
    ): "the process itself, for two system calls: no library is loaded",
    ("interop/jax/words.py", "np.load"): "NumPy's own under JAX's name: without pickles",
}
"""Where code is made of text or loaded, and why that is not a way for data."""


def findings(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (a.name for a in names if a.name.split(".")[0] in UNPICKLES)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in UNPICKLES:
                yield module
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="load"),
                args=[ast.Constant(name), *_],
            ):
                if str(name).split(".")[0] in UNPICKLES:
                    yield str(name)
            case ast.Name(id=name) if name in RUNS_TEXT:
                yield name
            case ast.Attribute(value=ast.Name(id="builtins"), attr=name) if name in RUNS_TEXT:
                yield name
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="load" | "fromfile" as name):
                yield f"np.{name}"
            case ast.Attribute(attr="CDLL" | "PyDLL" | "LoadLibrary" as name):
                yield name
            case ast.keyword(arg="allow_pickle", value=ast.Constant(value=True)):
                yield "allow_pickle"


def test_nothing_is_unpickled_and_little_is_made_of_text() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), what)
        for module, path in SOURCES.items()
        if WORDS.search(text_of(module))
        for what in findings(nodes_of(module))
    }
    assert found == set(ALLOWED)


def test_the_search_finds_what_it_is_for() -> None:
    text = (
        "import pickle\nfrom marshal import loads\nimport builtins, importlib, ctypes\n"
        "importlib.import_module('dill')\nload('shelve')\neval('1')\nbuiltins.exec('1')\n"
        "np.load('x', allow_pickle=True)\nctypes.CDLL('x')\n"
    )
    assert WORDS.search(text)
    assert sorted(findings(ast.walk(ast.parse(text)))) == sorted(
        ["pickle", "marshal", "dill", "shelve", "eval", "exec", "np.load", "allow_pickle", "CDLL"]
    )


# Generated code holds no text of users.

MARK = "hostile"
NAMES = [
    f'{MARK}\n"""; import os; os._exit(3)  # ',
    f"{MARK}'); raise SystemExit('{MARK}') #",
    f"{MARK}{{0}}%s\\n\x00\r\n\u2028'''",
    f"    return MISS  # {MARK}",
]


class Evil(int):
    """A number whose text is something else."""

    def __repr__(self) -> str:
        return f"__import__('os')._exit(3)  # {MARK}"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)


@fg.tree_util.register_pytree_node_class
class Box:
    """A container whose data beside its children is of users."""

    def __init__(self, x: Any, label: str) -> None:
        self.x, self.label = x, label

    def tree_flatten(self) -> tuple[tuple[Any, ...], str]:
        return (self.x,), self.label

    @classmethod
    def tree_unflatten(cls, label: str, children: Any) -> Box:
        return cls(*children, label)


def hostile(name: str) -> Any:
    """A function of which everything that has a name is named so."""

    def f(tree: Any, mode: Any, **options: Any) -> Any:
        x = tree[name][0].x
        with fg.named_scope(name):
            y = np.sin(x) * 2.125 + options[name]
        y = fg.checkpoint_name(y, name)
        rows = fg.vmap(lambda row: row - fg.lax.psum(row, name), axis_name=name)(
            y.reshape(Evil(2), Evil(3))
        )
        if mode == name:
            rows = rows * 0.5 + 1
        total = fg.lax.scan(lambda c, r: (c + np.sum(r), None), 0.0, rows)[0]
        return {name: Box(total, name)}

    f.__name__ = f.__qualname__ = f.__doc__ = name
    return f


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """All texts that become code, and the files that are kept of them."""
    seen: list[str] = []

    def recorded(source: str, *args: Any, **options: Any) -> Any:
        seen.append(source)
        return compile(source, *args, **options)

    monkeypatch.setattr(tree_code, "compile", recorded, raising=False)  # instead of the builtin
    kernel_store.executor()
    monkeypatch.setattr(kernel_store, "_ADDRESSES", {})
    monkeypatch.setenv("FUNCGRAD_REUSE_PLANS", "1")
    forget_all()
    before = kernel_store.cache_dir()
    kernel_store.set_cache_dir(tmp_path / "kernels")
    try:
        yield seen
    finally:
        kernel_store.set_cache_dir(before)
    files = list((tmp_path / "kernels").iterdir())
    plans = [path for path in files if path.suffix == ".facts"]
    assert plans
    assert len(files) - len(plans) == 3 * len(kernel_store._ADDRESSES) > 0
    contents = [path.read_bytes().decode("latin-1") for path in files]
    for text in (*seen, *contents, *(path.name for path in files)):
        assert MARK not in text
        assert "_exit" not in text


def by_numpy(x: np.ndarray, option: float, is_mode: bool) -> float:
    y = (np.sin(x) * 2.125 + option).reshape(2, 3)
    rows = y - y.sum(axis=0)
    return float(np.sum(rows * 0.5 + 1 if is_mode else rows))


@pytest.mark.parametrize("name", NAMES)
def test_names_of_users_are_not_part_of_code(texts: list[str], name: str) -> None:
    f = fg.jit(hostile(name), static_argnums=1)
    positional = fg.jit(
        lambda tree, mode: hostile(name)(tree, mode, **{name: 3.0}), static_argnums=1
    )
    x = np.linspace(0.0, 1.0, 6)
    for mode, run in itertools.product((name, "other"), (f, positional)):
        expected = by_numpy(x, 3.0, mode == name)
        for _ in range(3):
            out = run({name: [Box(x, name)]}, mode, **({name: 3.0} if run is f else {}))
            np.testing.assert_allclose(out[name].x, expected, rtol=1e-13)
            assert out[name].label == name
    assert texts


def test_numbers_are_known_by_their_value_alone(texts: list[str]) -> None:
    def f(x: Any, n: Any) -> Any:
        return np.sum(x.reshape(n, Evil(3))[Evil(1)] * 1.5)

    compiled, x = fg.jit(f, static_argnums=1), np.arange(6.0)
    for _ in range(3):
        assert compiled(x, Evil(2)) == 18.0


def test_file_names_are_shown_in_comments_alone() -> None:
    scope: dict[str, Any] = {"np": np}
    exec(compile("def f(x):\n    return np.sin(x) * 2.0625\n", NAMES[0], "exec"), scope)
    text = fg.jit(scope["f"]).lower(np.ones(3)).as_text()
    for line in text.splitlines():
        assert "_exit" not in line.split("#")[0], line
