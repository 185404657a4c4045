"""What NumPy, SciPy and JAX offer that funcgrad does not: names, and parameters of functions.

``python -m tests.surface`` prints every hole that the documentation does not explain, and what it
explains although it is there, and how many names and parameters the documentation explains.
``--write`` brings the tables under "Not there yet" up to date, and ``--record`` (where JAX is
installed) the list of JAX's names, so that no test needs JAX.

A name is what a library offers: what is in the ``__all__`` of a module that has one, but for the
library's own tests. JAX's modules have none: their names are all but modules, the objects that
stand for primitives, and what its libraries of examples import for themselves.

A hole is named by its path without the library: ``numpy.roots``, ``numpy.prod(promote_integers)``.
The first column of a table of `docs/coming_from_jax.md` or `docs/coming_from_numpy.md` explains
it: by its path, a pattern of paths (``numpy.linalg.*``), or a keyword of all functions (``out=``).
"""

from __future__ import annotations

import fnmatch
import importlib
import importlib.util
import inspect
import json
import re
import sys
import types
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import funcgrad

HERE = Path(__file__).parent
RECORDED = HERE / "surface_of_jax.json"
DOCS = HERE.parent / "docs"
PAGES = {"numpy": DOCS / "coming_from_numpy.md", "jax": DOCS / "coming_from_jax.md"}

OF_NUMPY = {"numpy": "numpy", "numpy.linalg": "numpy.linalg", "numpy.fft": "numpy.fft"}
OF_SCIPY = {
    f"scipy.{name}": f"scipy.{name}"
    for name in (
        "cluster.vq", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
        "sparse", "sparse.linalg", "spatial.transform", "special", "stats",
    )
}  # fmt: skip
OF_JAX = {
    **{f"numpy{sub}": f"jax.numpy{sub}" for sub in ("", ".linalg", ".fft")},
    **{
        name: f"jax.{name}"
        for name in (
            "lax", "lax.linalg", "random", "nn", "nn.initializers", "tree_util", "tree", "debug",
            "ops", "image", "flatten_util", "typing", "custom_batching", "custom_derivatives",
            "ad", "ad_checkpoint", "errors", "dtypes", "stages", "sharding", "profiler", "export",
            "ffi", "dlpack", "monitoring", "ref", "test_util", "experimental.ode",
            "experimental.jet", "experimental.checkify", "experimental.sparse",
        )
    },
    "": "jax",
    "checkpoint_policies": "jax.checkpoint_policies",
    "interop.jax.example_libraries.optimizers": "jax.example_libraries.optimizers",
    "interop.jax.example_libraries.stax": "jax.example_libraries.stax",
    **{
        f"scipy.{name}": f"jax.scipy.{name}"
        for name in (
            "cluster.vq", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize",
            "signal", "sparse.linalg", "spatial.transform", "special", "stats",
        )
    },
}  # fmt: skip

Surface = dict[str, dict[str, list[str] | None]]
"""Module -> name -> parameters that can be given by name; None if that cannot be known."""

INNER = ("Primitive", "PytestTester")
"""Types of what is no name of the interface: primitives of JAX, and tests of NumPy and SciPy."""

DOCUMENTED = {"jax.experimental.ode": {"odeint"}, "jax.experimental.jet": {"jet"}}
"""Names of modules that show what they are made of as well."""

HEADING = "## Not there yet"
PLANNED = "These names are planned, by module. `module.*` is a whole module."


def find(path: str) -> Any:
    """The module or the namespace of that name, or None."""
    try:
        return importlib.import_module(path)
    except ImportError:
        parent, _, name = path.rpartition(".")
        return getattr(find(parent), name, None) if parent else None


def find_ours(path: str) -> Any:
    """The public module of funcgrad of that name, or None."""
    module: Any = funcgrad
    for name in path.split(".") if path else ():
        if name not in module.__all__:
            return None
        module = getattr(module, name)
    return module if isinstance(module, types.ModuleType) else None


def named(member: object) -> tuple[list[str], bool] | None:
    """Parameters that can be given by name, and whether any others can; None for no function.

    Ufuncs have none: their keywords are one matter, not one of each ufunc.
    """
    if not callable(member) or isinstance(member, type):
        return None
    if type(member).__name__ == "ufunc":
        return [], False
    try:
        parameters = inspect.signature(member).parameters.values()
    except (TypeError, ValueError):
        return None
    takes = [q.name for q in parameters if q.kind in (q.KEYWORD_ONLY, q.POSITIONAL_OR_KEYWORD)]
    return takes, any(q.kind == q.VAR_KEYWORD for q in parameters)


def members(module: Any) -> Iterator[tuple[str, object]]:
    """Names that a module offers, and what they stand for; no modules."""
    path = getattr(module, "__name__", "")
    listed = DOCUMENTED.get(path) or getattr(module, "__all__", dir(module))
    for name in sorted(listed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            member = getattr(module, name, None)
        if not name.startswith("_") and is_offered(member, path):
            yield name, member


def is_offered(member: object, path: str) -> bool:
    """Whether a member of a module is there for its users."""
    if isinstance(member, types.ModuleType) or type(member).__name__.endswith(INNER):
        return False
    is_example = path.startswith("jax.example_libraries.")
    return not is_example or getattr(member, "__module__", path) == path


def surface_of(modules: dict[str, str]) -> Surface:
    """What installed modules offer."""
    out: Surface = {}
    for ours, theirs in modules.items():
        module = find(theirs)
        if module is not None:
            signatures = {name: named(member) for name, member in members(module)}
            out[ours] = {name: s and s[0] for name, s in signatures.items()}
    return out


def holes(surface: Surface) -> Iterator[str]:
    """Paths of names and parameters that funcgrad lacks; of a missing module only its own."""
    for path, names in surface.items():
        module = find_ours(path)
        if module is None:
            yield f"{path}.*"
            continue
        for name, parameters in names.items():
            full = f"{path}.{name}".lstrip(".")
            if name not in module.__all__:
                yield full
                continue
            ours = named(getattr(module, name))
            if ours is not None and not ours[1]:
                yield from (f"{full}({q})" for q in parameters or () if q not in ours[0])


def references() -> dict[str, Surface]:
    """What is compared: NumPy and SciPy as installed, JAX as recorded."""
    return {
        "numpy": surface_of(OF_NUMPY | OF_SCIPY),
        "jax": json.loads(RECORDED.read_text(encoding="utf-8")),
    }


def text_of(surface: Surface) -> str:
    """JSON of a surface, a line for each name."""
    modules = []
    for module, names in sorted(surface.items()):
        lines = [f"{json.dumps(name)}: {json.dumps(q)}" for name, q in sorted(names.items())]
        modules.append(f"{json.dumps(module)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(modules) + "\n}\n"


def entries_of(text: str) -> list[str]:
    """Everything in backticks in the first columns of the tables of a text."""
    rows = re.findall(r"^\| ?([^|]*)\|", text, re.MULTILINE)
    return [entry for row in rows for entry in re.findall(r"`([^`]+)`", row)]


def explained(page: Path) -> list[str]:
    """What a page of the documentation explains."""
    return entries_of(page.read_text(encoding="utf-8"))


def keyword_of(hole: str) -> str | None:
    """``q=`` for a hole that is a parameter ``q``."""
    found = re.search(r"\((.*)\)$", hole)
    return f"{found[1]}=" if found else None


def unexplained(found: Iterable[str], entries: Iterable[str]) -> list[str]:
    """Holes that no entry of the documentation covers."""
    exact = set(entries)
    patterns = [e for e in exact if "*" in e]
    return [
        hole
        for hole in found
        if hole not in exact
        and keyword_of(hole) not in exact
        and not any(fnmatch.fnmatchcase(hole, pattern) for pattern in patterns)
    ]


def all_holes() -> dict[str, list[str]]:
    """Page -> holes; those of NumPy and SciPy are not repeated on JAX's page."""
    surfaces = references()
    numpy = sorted(set(holes(surfaces["numpy"])))
    jax = sorted(set(holes(surfaces["jax"])) - set(numpy))
    return {"numpy": numpy, "jax": jax}


def table(found: Iterable[str]) -> str:
    """The table of holes that are to be filled, a row for each module's names and parameters."""
    rows: dict[tuple[str, str], list[str]] = {}
    for hole in found:
        name, _, _ = hole.partition("(")
        kind = "keywords" if keyword_of(hole) else "names"
        rows.setdefault((name.rpartition(".")[0], kind), []).append(hole)
    lines = [
        f"| {', '.join(f'`{hole}`' for hole in entries)} | {kind} of {module} |"
        for (module, kind), entries in sorted(rows.items())
    ]
    return "\n".join(["| | what |", "|---|---|", *lines])


def write(page: Path, found: list[str]) -> None:
    """Replace the last section of the page: it is there if a name lacks a reason."""
    before = page.read_text(encoding="utf-8").partition(HEADING)[0].rstrip()
    missing = unexplained(found, entries_of(before))
    section = f"\n\n{HEADING}\n\n{PLANNED}\n\n{table(missing)}" if missing else ""
    page.write_text(f"{before}{section}\n", encoding="utf-8")


def stale(page: Path, found: Iterable[str]) -> list[str]:
    """Entries under "Not there yet" that are there."""
    _, _, rest = page.read_text(encoding="utf-8").partition(HEADING)
    known = set(found)
    return [entry for entry in entries_of(rest) if entry not in known]


def counted(found: list[str]) -> str:
    """How many names of each namespace holes are, and how many parameters."""
    names = [hole for hole in found if keyword_of(hole) is None]
    spaces = Counter(hole.partition(".")[0] if "." in hole else "top level" for hole in names)
    listed = ", ".join(f"{space} {n}" for space, n in spaces.most_common())
    parameters = len(found) - len(names)
    return f"{len(names)} names ({listed}) and {parameters} parameters"


def main(arguments: list[str]) -> int:
    """Print holes; 1 if there are any that no page explains."""
    if "--record" in arguments:
        RECORDED.write_text(text_of(surface_of(OF_JAX)), encoding="utf-8")
    count = 0
    for library, found in all_holes().items():
        page = PAGES[library]
        if "--write" in arguments:
            write(page, found)
        missing = unexplained(found, explained(page))
        count += len(missing)
        for hole in missing:
            print(f"neither filled nor explained in {page.name}: {hole}")
        print(f"explained in {page.name}: {counted(sorted(set(found) - set(missing)))}")
        for hole in stale(page, found):
            print(f"filled, but still in {page.name}: {hole}")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
