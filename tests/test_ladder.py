"""The import ladder: imports point down, nothing is circular, and passes know no primitive.

Read from the sources alone, so that an import inside a function counts like any other, and so does
one under ``if TYPE_CHECKING``: what two files must know of each other belongs in one.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "funcgrad"

# One rung per row, from the bottom. Rung 0, the user-facing namespaces and the interfaces are
# ordered within themselves.
LADDER = (
    (
        "digests",
        "forking",
        "recent",
        "records",
        "stacks",
        "exact",
        "environment",
        "errors",
        "scalars",
        "signatures",
        "dtypes",
        "tree_code",
        "pytree",
        "namespaces",
    ),
    ("core",),
    ("intrinsics",),
    ("lowering",),
    ("passes",),
    ("primitives", "compiler"),
    ("transforms",),
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
    ),
    (
        "api",
        "testing",
        "ad_checkpoint",
        "checkify",
        "custom_batching",
        "custom_derivatives",
        "debug",
        "stages",
        "test_util",
        "typing",
    ),
    ("data", "optim", "scipy", "nn", "diagnostics", "image", "experimental"),
    ("interop", "distributed"),
    ("",),  # funcgrad/__init__.py
    ("__main__",),
)
# The rooms of the compiler, likewise: what they agree on, what libraries offer, the machine's
# language, loop nests, what runs, what tells about it, and the list of passes. Loop nests do not
# see what runs.
ROOMS = ("", "abi", "foreign", "native", "nest", "runtime", "report", "pipeline")
ORDERED = (0, 8, 9, 10)
# Files that import a module whose name they compute, and why no name can be written down. What they
# load of ours are public modules, which stand above all others. Any other file names what it loads,
# at the first use as at the top, so that the ladder sees it.
MAY_COMPUTE_NAMES = {
    "funcgrad.compiler.foreign": "libraries of NumPy and SciPy, of calls that primitives describe",
    "funcgrad.compiler.runtime.imports": "modules of others, by a list",
    "funcgrad.interop.autograd.installing": "all modules of its own package",
    "funcgrad.interop.jax.installing": "what stands for a module of JAX",
    "funcgrad.interop.jax.modules": "what stands for a module of JAX",
    "funcgrad.namespaces": "public modules, when they are first asked for",
    "funcgrad.numpy.borrowing": "the module of NumPy whose function is borrowed",
    "funcgrad.primitives.families": "the module of NumPy or SciPy that has a ufunc",
}
MAY_LOAD_LLVM = PACKAGE + ".compiler."
# Kernels that Numba compiles, and what was asked for of Numba itself.
MAY_LOAD_NUMBA = (
    PACKAGE + ".compiler.native.numba_path",
    PACKAGE + ".interop.numba.calling",
    PACKAGE + ".interop.numba.installing",
)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path for path in sorted((ROOT / PACKAGE).rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(), str(path)) for name, path in SOURCES.items()}


def imports_of(module: str) -> Iterator[str]:
    """Absolute names of all modules that ``module`` imports, statically or by name."""
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from names_imported_from(base_of(node, module), node)
        elif isinstance(node, ast.Call) and called_name(node) in ("import_module", "__import__"):
            yield from (a.value for a in node.args if isinstance(a, ast.Constant))


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


def called_name(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]


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


@pytest.mark.parametrize("module", SOURCES)
def test_imports_point_down(module):
    wrong = sorted(name for name in own_imports(module) if not points_down(module, name))
    assert not wrong, f"{module} (rung {rung(module)}) must not import {', '.join(wrong)}"


def room(module: str) -> int:
    """Height in the compiler of one of its modules."""
    return ROOMS.index((*module.split("."), "")[2])


@pytest.mark.parametrize("module", [m for m in SOURCES if part(m) == "compiler"])
def test_imports_within_the_compiler_point_down(module):
    inside = [name for name in own_imports(module) if part(name) == "compiler"]
    assert not sorted(name for name in inside if room(name) > room(module))


def loads(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls that import a module by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called_name(node) in ("import_module", "__import__"):
            yield node


def is_absolute(name: str) -> bool:
    """Whether it names a module of another package, or one that we have."""
    return name in SOURCES if name.split(".")[0] in (PACKAGE, "") else True


def test_modules_that_are_imported_by_name_are_named():
    """Computed names hide edges of the graph; where there are some, they are declared."""
    computed = {
        module
        for module, tree in TREES.items()
        for call in loads(tree)
        if not (isinstance(call.args[0], ast.Constant) and is_absolute(call.args[0].value))
    }
    assert computed == MAY_COMPUTE_NAMES.keys()


def test_no_import_is_circular():
    graph = {module: own_imports(module) for module in SOURCES}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


@pytest.mark.parametrize("module", SOURCES)
def test_no_own_module_is_imported_inside_a_function(module):
    functions = [n for n in ast.walk(TREES[module]) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    hidden = [
        ast.unparse(node)
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and is_own(node)
    ]
    assert not hidden


def is_own(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return bool(node.level) or (node.module or "").split(".")[0] == PACKAGE
    return any(alias.name.split(".")[0] == PACKAGE for alias in node.names)


@pytest.mark.parametrize("module", SOURCES)
def test_only_the_compiler_imports_llvm_and_few_files_numba(module):
    loaded = {name.split(".")[0] for name in imports_of(module)}
    assert "llvmlite" not in loaded or module.startswith(MAY_LOAD_LLVM)
    assert "numba" not in loaded or module in MAY_LOAD_NUMBA


PASSES = [m for m in SOURCES if part(m) == "transforms" or m.startswith("funcgrad.compiler")]


@pytest.mark.parametrize("module", PASSES)
def test_transformations_and_compiler_import_no_primitive(module):
    assert not {name for name in own_imports(module) if part(name) == "primitives"}


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


def strings_that_decide(tree: ast.AST) -> Iterator[str]:
    """String constants that something is compared with or matched against."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.MatchValue):
            for below in ast.walk(node):
                if isinstance(below, ast.Constant) and isinstance(below.value, str):
                    yield below.value


@pytest.mark.parametrize("module", PASSES)
def test_transformations_and_compiler_decide_nothing_by_a_primitive_name(module):
    names = primitive_names()
    assert {"sin", "mul"} <= names
    assert not set(strings_that_decide(TREES[module])) & names
