"""What a process remembers is bounded: every table of every module is here, with its bound.

A table is what a module holds and functions write to, or a function that keeps its results. The
sources are read, so that a new one is noticed. docs/reliability.md shows the bounds.
"""

from __future__ import annotations

import ast
import collections
import gc
import re
import threading
import warnings
import weakref
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.base import pytree
from funcgrad.compiler.runtime import fourier
from funcgrad.core import avals
from funcgrad.lowering import FourierCall
from funcgrad.observers import captures, notices, source
from funcgrad.observers.source import SourceLocation
from funcgrad.scalar_tape import operators as number_operators
from funcgrad.scalar_tape import trace as numbers
from tests.sources import PACKAGE, SOURCES, nodes_of, text_of, tree_of

IMPORT = "what modules register while they are imported"
WEAK = "lives as long as its keys or values are in use"
CODE = "one for every kernel that is loaded, as docs/reliability.md says"
DTYPES = "one for every dtype, layout or name in the library"
LIBRARY = "one for every library that the system has"
USE = "what is in use at this moment"

TABLES = {
    "api.branching._assigned": WEAK,
    "api.compilation._ALL": WEAK,
    "api.sparse_derivatives._COLORINGS": WEAK,
    "compiler.native.llvm._HELPERS": DTYPES,
    "compiler.native.llvm_backend._RUNNING": USE,
    "compiler.native.words.WORDS": IMPORT,
    "compiler.nest.gather_scatter.GENERATORS": IMPORT,
    "compiler.one_thread._DISTANCES": LIBRARY,
    "compiler.one_thread._LIBRARIES": LIBRARY,
    "compiler.runtime.blas._KEPT": LIBRARY,
    "compiler.runtime.executable._idle": WEAK,
    "compiler.runtime.fourier._in_use": WEAK,
    "base.imports._IMPORTING": USE,
    "compiler.runtime.in_flight._kept": USE,
    "compiler.runtime.kernel_store._ADDRESSES": CODE,
    "compiler.runtime.kernel_store._BY_NUMBA": CODE,
    "compiler.runtime.kernel_store._LINED": CODE,
    "compiler.runtime.kernel_store._SIZES": CODE,
    "compiler.runtime.threads._POOLS": "one for every fork that led to this process",
    "core.avals.INTERNED": "_INTERN_LIMIT",
    "core.avals._SCALARS": DTYPES,
    "observers.notices._warned_loops": "_MAX_WARNED",
    "observers.notices._warned_of": "_MAX_WARNED",
    "observers.source._locations": "_MAX_LOCATIONS",
    "observers.source._owners": "_MAX_FILES",
    "observers.source._places": "_MAX_LOCATIONS",
    "observers.source._shared": "_MAX_LOCATIONS",
    "observers.source._stand_ins": IMPORT,
    "observers.captures._reported_draws": "_MAX_REPORTED",
    "base.transformed._stand_ins": WEAK,
    "base.transformed._stood_for": WEAK,
    "core.observers._attached": USE,
    "distributed.failing._exit_code": "one number",
    "distributed.failing._watched": "one communicator",
    "extend.composites._programs": "_MOST_PROGRAMS",
    "higher_order.budget._CHOICES": "_MAX_CHOICES",
    "higher_order.remembered._remembered": "_MAX_REMEMBERED",
    "interop.autograd.extend.WITH_RULES": WEAK,
    **{
        f"interop.jax.primitives.{name}": "one rule for every primitive that a library defines"
        for name in ("BATCHERS", "JVPS", "LOWERINGS", "TRANSPOSES")
    },
    "interop.jax.vmappables._RULES": "one for every class that a program maps by rules of its own",
    "interop.numba.installing._installed": "one patch",
    "interop.numba.installing._originals": "one patch",
    "interop.numba.tracing._made": WEAK,
    "interop.scipy.installing._classes": "one patch",
    "interop.scipy.installing._installed": "one patch",
    "interop.scipy.installing._made": WEAK,
    "interop.scipy.installing._objects": "one patch",
    "interop.scipy.installing._originals": "one patch",
    "base.namespaces._fallbacks": IMPORT,
    "base.namespaces._presented": IMPORT,
    "base.signatures._COMPLETE": IMPORT,
    "base.signatures._TABLES": IMPORT,
    "linting.rule.RULES": IMPORT,
    "profiling.what_if.trial.TRIALS": IMPORT,
    "numpy.dispatch._functions": IMPORT,
    "numpy.elementwise.UFUNCS": IMPORT,
    "scalar_tape.operators._PRIMITIVES": IMPORT,
    "scalar_tape.operators._pairs": IMPORT,
    "primitives.objects._READY": DTYPES,
    "base.pytree._holders": IMPORT,
    "base.pytree._interned": "_INTERN_LIMIT",
    "base.pytree._leaf_types": "_MAX_KINDS",
    "base.pytree._met": "_MAX_KINDS",
    "base.pytree._met_before": "_INTERN_LIMIT",
    "base.pytree._nodes": "classes that are registered, and those of `_met`",
    "base.pytree._sorted_keys": "_INTERN_LIMIT",
    "base.records._UNFINISHED": USE,
    "base.stacks._waiting": USE,
    "scalar_tape.trace._ended": "_MOST_ENDED",
    "scalar_tape.trace._preparations": IMPORT,
}
"""The table -> the name of its bound in the same module, or why it needs none."""

RESULTS = {
    "compiler.foreign._table": LIBRARY,
    "compiler.foreign.linear_algebra_function": DTYPES,
    "compiler.foreign.sort_function": DTYPES,
    "compiler.foreign._asks_for_threads": LIBRARY,
    "compiler.foreign.ufunc_loop": DTYPES,
    "compiler.machine.registers": "the processor",
    "compiler.native.llvm.integer": DTYPES,
    "compiler.native.llvm.vector_of": DTYPES,
    "compiler.native.types.lanes": DTYPES,
    "compiler.native.types.vector": DTYPES,
    "compiler.runtime.blas.library": LIBRARY,
    "compiler.loops.builder.named": DTYPES,
    "compiler.runtime.kernel_store.tile_shape": DTYPES,
    "compiler.runtime.releases._is_tested": "the release that is installed",
    "compiler.runtime.threads.pool": "one for every process that forks",
    "distributed.processes._address": DTYPES,
    "distributed.processes._alone": "labels of axes in the text of a program",
    "base.namespaces._names_in_source": IMPORT,
    "interop.jax.arrays._of_any": "methods of the class of arrays",
    "interop.jax.widths._chosen_rules": "generators of random bits, each with two flags",
    "reports._mention_once": "one for every folder of kernels",
    "primitives.quadrature.unit_legendre": "the rules that modules ask for while they are imported",
}
"""Functions of arguments that keep all their results, and why these are few."""

_MAKERS = {
    "WeakKeyDictionary", "WeakSet", "WeakValueDictionary", "OrderedDict", "dict", "list", "set",
    "defaultdict", "deque",
}  # fmt: skip
_CHANGING = {"add", "append", "appendleft", "extend", "insert", "setdefault", "update"}


_SUSPECTED = re.compile(
    r"^\w+(: .*)? = .*([{\[]|set|list|dict|Dict|Set|deque)|cache\b|local\b", re.M
)


@cache
def modules() -> list[str]:
    """Those that may have tables."""
    return [name for name in SOURCES if _SUSPECTED.search(text_of(name))]


def inside(name: str) -> str:
    """What stands behind the name of the package."""
    return name.removeprefix(PACKAGE).removeprefix(".")


def written_to(module: str, tables: set[str]) -> set[str]:
    """Which of the tables of a module functions put something into."""
    # Reading the text is quicker than walking the tree, which is done where it may find something.
    if not tables or not re.search(rf"\b({'|'.join(tables)})[\[.,)]", text_of(module)):
        return set()
    found = set()
    functions = (n for n in tree_of(module).body if isinstance(n, ast.FunctionDef | ast.ClassDef))
    for node in (n for function in functions for n in ast.walk(function)):
        place: ast.AST | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            place = node.value
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
                place = node.func.value
            elif isinstance(node.func, ast.Name) and node.func.id == "keep":
                place = node.args[0]
        if isinstance(place, ast.Name):
            found.add(place.id)
    return found & tables


def is_table(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in _MAKERS
    return isinstance(value, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp)


def tables_in_source() -> Iterator[str]:
    for module in modules():
        names = {
            ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
            for node in tree_of(module).body
            if isinstance(node, ast.Assign | ast.AnnAssign) and is_table(node.value)
        }
        yield from (inside(f"{module}.{name}") for name in written_to(module, names))


def test_every_table_is_known() -> None:
    assert sorted(TABLES) == sorted(tables_in_source())


@pytest.mark.parametrize("name", [n for n, why in TABLES.items() if why.isidentifier()])
def test_bounds_are_numbers(name: str) -> None:
    module, _, table = name.rpartition(".")
    module, bound = f"{PACKAGE}.{module}", TABLES[name]
    values = {
        ast.unparse(target): node.value
        for node in tree_of(module).body
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    number = eval(compile(ast.Expression(values[bound]), module, "eval"))
    assert 0 < number <= 1 << 16
    assert any(isinstance(n, ast.Name) and n.id == bound for n in nodes_of(module)), table


def test_results_that_are_kept_have_a_bound() -> None:
    forever = []
    for module in modules():
        if "cache" not in text_of(module):
            continue
        for node in nodes_of(module):
            if not isinstance(node, ast.FunctionDef):
                continue
            for decorator in map(ast.unparse, node.decorator_list):
                name = decorator.partition("(")[0].rpartition(".")[2]
                if name == "cache" and node.args.args:
                    forever.append(inside(f"{module}.{node.name}"))
                elif name == "lru_cache":
                    most = decorator.partition("(")[2].rstrip(")").removeprefix("maxsize=")
                    assert 0 < int(most) <= 4096, f"{module}.{node.name}"
    assert sorted(RESULTS) == sorted(forever)


# That each bound holds.


def few(monkeypatch: pytest.MonkeyPatch, module: Any, bound: str, table: str, most: int = 8) -> Any:
    """An empty table that may have few entries."""
    monkeypatch.setattr(module, bound, most)
    empty = type(getattr(module, table))()
    monkeypatch.setattr(module, table, empty)
    return empty


def test_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = few(monkeypatch, avals, "_INTERN_LIMIT", "INTERNED")
    for n in range(30):
        assert avals.aval_of(np.zeros(n)) == avals.ShapedArray((n,), np.dtype(float))
        assert 0 < len(table) <= 8


def test_files_and_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    files = few(monkeypatch, source, "_MAX_FILES", "_owners")
    lines = few(monkeypatch, source, "_MAX_LOCATIONS", "_locations")
    for k in range(30):
        code = compile("0", f"file{k}.py", "eval")
        assert source.is_users(code)
        assert SourceLocation(code, 1).file == f"file{k}.py"
        assert 0 < len(files) <= 8
        assert 0 < len(lines) <= 8


def test_lines_that_were_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    long = few(monkeypatch, notices, "_MAX_WARNED", "_warned_of")
    loops = few(monkeypatch, notices, "_MAX_WARNED", "_warned_loops")
    drawn = few(monkeypatch, captures, "_MAX_REPORTED", "_reported_draws")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(30):
            line = SourceLocation(compile("0", "file.py", "eval"), k)
            notices.warn_of_length("f", [line] * notices.LONG_PROGRAM)
            notices.warn_of_python_loop("f", "eig", line, is_users=False)
            captures._warn_of_draws(f"jit(f{k})", "numpy.random", line)
            assert len(long) <= 8
            assert len(drawn) <= 8
            assert len(loops) <= 8
            assert line in long
            assert line in loops
            assert (f"jit(f{k})", line) in drawn


def test_draws_are_reported_once_whatever_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch, captures, "_MAX_REPORTED", "_reported_draws", 1)

    def draw(x: Any) -> Any:
        return x * np.random.rand()

    for k in range(3):
        with pytest.warns(fg.errors.ImpureFunctionWarning) as caught:
            fg.jit(lambda x, k=k: fg.jit(draw)(x) + k)(1.0)
        assert len(caught) == 1


def test_classes_of_leaves_and_of_named_tuples(monkeypatch: pytest.MonkeyPatch) -> None:
    leaves = few(monkeypatch, pytree, "_MAX_KINDS", "_leaf_types")
    few(monkeypatch, pytree, "_MAX_KINDS", "_met")
    n_nodes = len(pytree._nodes)
    Kept = collections.namedtuple("Kept", "a b")
    tree = Kept(1.0, [2.0])
    before = pytree.tree_structure(tree)
    for k in range(30):
        leaf = type(f"Leaf{k}", (), {})()
        Made = collections.namedtuple("Made", "a")
        assert pytree.tree_leaves(Made([leaf, 1.0])) == [leaf, 1.0]
        assert len(leaves) <= 8
        assert len(pytree._nodes) <= n_nodes + 8
    # The class has been forgotten, and is known again.
    assert Kept not in pytree._nodes
    assert pytree.tree_structure(tree) == before
    assert before.flatten_up_to(Kept(3.0, [4.0])) == [3.0, 4.0]
    assert before.unflatten([5.0, 6.0]) == Kept(5.0, [6.0])
    with pytest.raises(fg.errors.TreeError, match="expected a Kept, got a Made"):
        before.flatten_up_to(Made([1.0]))


def test_structures(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [
        few(monkeypatch, pytree, "_INTERN_LIMIT", name)
        for name in ("_interned", "_met_before", "_sorted_keys")
    ]
    for k in range(30):
        tree = {f"b{k}": 1.0, "a": [2.0, (3.0, None)]}
        leaves, structure = pytree.tree_flatten(tree)
        assert structure.unflatten(leaves) == tree
        assert structure == pytree.tree_structure(tree)
        assert all(0 < len(table) <= 9 for table in tables)


@pytest.mark.usefixtures("small_heap")
def test_ufuncs_of_users_are_not_kept() -> None:
    def work() -> weakref.ref[Any]:
        function = lambda x: x  # noqa: E731
        ufunc = np.frompyfunc(function, 1, 1)
        assert number_operators.FUNCTIONS[ufunc] is None
        with pytest.raises(Exception, match="lambda"):
            fg.grad(lambda x: ufunc(x))(2.0)
        return weakref.ref(function)

    found = work()
    gc.collect()
    assert found() is None
    assert number_operators.FUNCTIONS.keys() <= number_operators._PRIMITIVES.keys()


def test_traces_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "_MOST_ENDED", 4)
    monkeypatch.setattr(numbers, "_ended", [])

    def slope(k: int) -> Any:
        return fg.grad(lambda x: x * (slope(k - 1) if k else 1.0))(2.0)

    assert slope(20) == 1.0
    assert 0 < len(numbers._ended) <= 4


def test_roots_of_unity_go_with_the_programs_that_know_them() -> None:
    def call(n: int) -> FourierCall:
        return FourierCall(0, 1, n, 1, 4, (0, 1, n), (0, 1, n), False, turns=4 * n)

    dtype = np.dtype(complex)
    before = set(fourier._in_use)  # of programs of other tests
    for n in (12, 20, 24):
        words, held = fourier.words(call(n), dtype)
        again, shared = fourier.words(call(n), dtype)
        assert words == again
        assert all(x is y for x, y in zip(held, shared, strict=True))
        assert {x.ctypes.data for x in held} <= set(words)
        kept = {id(x) for x in fourier._in_use.values()}
        assert {id(x) for x in held} <= kept
        del held, shared
        assert set(fourier._in_use) <= before


def test_threads_have_nothing_of_their_own_that_stays() -> None:
    """Only the stack of counters, which is empty between calls, and the size of their own stack."""
    use = re.compile(r"^[^#\n]*\bthreading\.local\b", re.M)
    found = [inside(m) for m in modules() if use.search(text_of(m))]
    assert found == ["base.stacks", "compiler.runtime.kernel_store"]
    f = fg.jit(lambda x: x + 1)
    worker = threading.Thread(target=f, args=(1.0,))
    worker.start()
    worker.join()
