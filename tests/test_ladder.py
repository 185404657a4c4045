"""The import ladder: imports point down, nothing is circular, and passes know no primitive.

Read from the sources alone, so that an import inside a function counts like any other, and so does
one under ``if TYPE_CHECKING``: what two files must know of each other belongs in one.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter

from tests.sources import PACKAGE, SOURCES, nodes_of, statements_of, text_of

# One rung per row, from the bottom. The user-facing namespaces and the interfaces are
# ordered within themselves.
LADDER = (
    ("errors", "base", "dtypes"),
    ("core",),
    ("transforms",),
    ("observers",),
    ("scalar_tape",),
    ("intrinsics",),
    ("lowering",),
    ("passes",),
    ("primitives", "compiler"),
    ("costs",),
    ("reports",),
    ("higher_order",),
    (
        "checkpoint_policies",
        "tree_util",
        "tree",
        "flatten_util",
        "lax",
        "numpy",
        "random",
        "ops",
        "ref",
        "patterns",
    ),
    (
        "api",
        "testing",
        "ad",
        "ad_checkpoint",
        "checkify",
        "custom_batching",
        "custom_derivatives",
        "debug",
        "stages",
        "test_util",
        "typing",
    ),
    ("sparsity", "data", "optim", "scipy", "nn", "diagnostics", "image", "experimental", "extend"),
    ("linting", "profiling"),
    ("distributed",),
    ("sharding",),
    ("interop",),
    ("",),  # funcgrad/__init__.py
    ("__main__",),
)
# The rooms of the compiler, likewise: what they agree on, libraries, what they offer, the loop
# language, the machine's language, loop nests, what runs, what is known of it, what of that is on
# disk, and the list of passes. Loop nests do not see what runs.
ROOMS = (
    "",
    "machine",
    "abi",
    "one_thread",
    "foreign",
    "loops",
    "native",
    "nest",
    "runtime",
    "plans",
    "fingerprints",
    "kept_plans",
    "pipeline",
)
ORDERED = [i for i, row in enumerate(LADDER) if {"base", "lax", "api", "nn"} & {*row}]
# Files that import a module whose name they compute, and why no name can be written down. What they
# load of ours are public modules, which stand above all others. Any other file names what it loads,
# at the first use as at the top, so that the ladder sees it.
MAY_COMPUTE_NAMES = {
    "funcgrad.compiler.foreign": "libraries of NumPy and SciPy, of calls that primitives describe",
    "funcgrad.base.imports": "the function `load`, by which all others import by name",
    "funcgrad.interop.autograd.installing": "all modules of its own package",
    "funcgrad.interop.jax.installing": "what stands for a module of JAX",
    "funcgrad.interop.jax.modules": "what stands for a module of JAX",
    "funcgrad.interop.scipy.installing": "modules of SciPy that have a counterpart",
    "funcgrad.base.namespaces": "public modules, when they are first asked for",
    "funcgrad.numpy.host_functions": "the module of NumPy or SciPy whose function is called",
    "funcgrad.primitives.families": "the module of NumPy or SciPy that has a ufunc",
}
MAY_LOAD_LLVM = PACKAGE + ".compiler."
# Kernels that Numba compiles, and what was asked for of Numba itself.
MAY_LOAD_NUMBA = (
    PACKAGE + ".compiler.native.numba_path",
    PACKAGE + ".compiler.native.numba_words",
    PACKAGE + ".interop.numba.installing",
)


@cache
def imports_of(module: str) -> frozenset[str]:
    """Absolute names of all modules that ``module`` imports, statically or by name."""
    found: set[str] = set()
    for node in statements_of(module):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(names_imported_from(base_of(node, module), node))
    for call in loads(module):
        found.update(a.value for a in call.args if isinstance(a, ast.Constant))
    return frozenset(found)


def base_of(node: ast.ImportFrom, module: str) -> str:
    """The module after ``from``, made absolute."""
    if not node.level:
        return node.module or ""
    is_package = SOURCES[module].name == "__init__.py"
    parents = module.split(".")[: len(module.split(".")) - node.level + is_package]
    return ".".join([*parents, *([node.module] if node.module else [])])


def names_imported_from(base: str, node: ast.ImportFrom) -> Iterator[str]:
    """``from base import name``: the submodule if there is one, else the base itself."""
    for alias in node.names:
        submodule = f"{base}.{alias.name}"
        yield submodule if submodule in SOURCES else base


def loads(module: str) -> Iterator[ast.Call]:
    """The calls that import a module by its name."""
    text = text_of(module)
    if "base.imports" not in text and not any(word in text for word in IMPORTS_BY_NAME):
        return
    for node in nodes_of(module):
        if isinstance(node, ast.Call) and called_name(node) in ("load", *IMPORTS_BY_NAME):
            yield node


def called_name(node: ast.Call) -> str:
    """The name of a function that is called: of methods, only of those that import by name."""
    name = ast.unparse(node.func)
    method = name.rpartition(".")[2]
    return method if method in IMPORTS_BY_NAME else name


IMPORTS_BY_NAME = ("import_module", "__import__")


def own_imports(module: str) -> set[str]:
    """Imports of our own modules."""
    return {name for name in imports_of(module) if name in SOURCES} - {module}


def part(module: str) -> str:
    """The first component below the package: ``core`` of ``funcgrad.core.avals``."""
    return module.split(".")[1] if "." in module else ""


def rung(module: str) -> int:
    name = part(module)
    return next(height for height, names in enumerate(LADDER) if name in names)


def points_down(module: str, imported: str) -> bool:
    if part(module) == part(imported) or rung(imported) < rung(module):
        return True
    height = rung(module)
    if height == rung(imported) and height in ORDERED:
        return LADDER[height].index(part(imported)) < LADDER[height].index(part(module))
    return False


def test_imports_point_down():
    wrong = [
        f"{module} (rung {rung(module)}) must not import {name}"
        for module in SOURCES
        for name in sorted(own_imports(module))
        if not points_down(module, name)
    ]
    assert not wrong, "\n".join(wrong)


CALCULUS = [m for m in SOURCES if part(m) in ("core", "transforms")]


def test_the_calculus_imports_nothing_but_what_it_stands_on():
    """Trees, dtypes, errors and other ground, and NumPy; observers attach themselves."""
    known = {*sys.stdlib_module_names, "numpy"}
    assert not [
        f"{module} must not import {name}"
        for module in CALCULUS
        for name in sorted(imports_of(module))
        if name.split(".")[0] not in known
        and part(name) not in ("core", "transforms", "base", "dtypes", "errors")
    ]


def test_the_calculus_is_read_in_an_afternoon():
    assert sum(len(SOURCES[module].read_text().splitlines()) for module in CALCULUS) <= 3000


def room(module: str) -> int:
    """Height in the compiler of one of its modules."""
    return ROOMS.index((*module.split("."), "")[2])


def test_imports_within_the_compiler_point_down():
    inside = [module for module in SOURCES if part(module) == "compiler"]
    assert not [
        f"{module} must not import {name}"
        for module in inside
        for name in sorted(own_imports(module).intersection(inside))
        if room(name) > room(module)
    ]


def is_absolute(name: str) -> bool:
    """Whether it names a module of another package, or one that we have."""
    return name in SOURCES if name.split(".")[0] in (PACKAGE, "") else True


def test_modules_that_are_imported_by_name_are_named():
    """Computed names hide edges of the graph; where there are some, they are declared."""
    computed = {
        module
        for module in SOURCES
        for call in loads(module)
        if not (isinstance(call.args[0], ast.Constant) and is_absolute(call.args[0].value))
    }
    assert computed == MAY_COMPUTE_NAMES.keys()


def test_all_imports_by_name_go_through_one_function():
    direct = {
        module
        for module in SOURCES
        for call in loads(module)
        if called_name(call) in IMPORTS_BY_NAME
    }
    assert direct == {"funcgrad.base.imports"}


def test_no_import_is_circular():
    graph = {module: own_imports(module) for module in SOURCES}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


def is_indented(node: ast.stmt) -> bool:
    """Whether it is an import that may stand inside of a function."""
    return isinstance(node, ast.Import | ast.ImportFrom) and node.col_offset > 0


def test_no_own_module_is_imported_inside_a_function():
    hidden = [
        f"{module}: {ast.unparse(node)}"
        for module in SOURCES
        if any(is_indented(node) for node in statements_of(module))
        for function in statements_of(module)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and is_own(node)
    ]
    assert not hidden


def is_own(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return bool(node.level) or (node.module or "").split(".")[0] == PACKAGE
    return any(alias.name.split(".")[0] == PACKAGE for alias in node.names)


def modules_that_load(package: str) -> set[str]:
    """Our modules that import another package, or a module of it."""
    return {m for m in SOURCES if any(n.split(".")[0] == package for n in imports_of(m))}


def test_only_the_compiler_imports_llvm_and_few_files_numba():
    assert all(module.startswith(MAY_LOAD_LLVM) for module in modules_that_load("llvmlite"))
    assert modules_that_load("numba") <= set(MAY_LOAD_NUMBA)


PASSES = [m for m in SOURCES if part(m) == "transforms" or m.startswith("funcgrad.compiler")]


def test_transformations_and_compiler_import_no_primitive():
    assert not [
        f"{module} must not import {name}"
        for module in PASSES
        for name in own_imports(module)
        if part(name) == "primitives"
    ]


def primitive_names() -> set[str]:
    """The name of every primitive, instance or class, below the transformations."""
    primitive = importlib.import_module("funcgrad.core.primitive").Primitive
    package = importlib.import_module("funcgrad.primitives")
    names = set()
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        for value in vars(importlib.import_module(info.name)).values():
            is_class = inspect.isclass(value) and issubclass(value, primitive)
            if is_class or isinstance(value, primitive):
                names.add(value.name)
    return names - {"", "primitive"}


def strings_that_decide(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """String constants that something is compared with or matched against."""
    for node in nodes:
        if isinstance(node, ast.Compare | ast.MatchValue):
            for below in ast.walk(node):
                if isinstance(below, ast.Constant) and isinstance(below.value, str):
                    yield below.value


def test_transformations_and_compiler_decide_nothing_by_a_primitive_name():
    names = primitive_names()
    assert {"sin", "mul"} <= names
    assert not [
        f"{module} decides by the name {name}"
        for module in PASSES
        for name in strings_that_decide(nodes_of(module))
        if name in names
    ]
