"""What NumPy, SciPy and JAX offer that funcgrad does not: names, and parameters of functions.

``python -m tests.surface`` prints every hole that the documentation does not explain, and what it
explains although it is there. ``--write`` brings the tables under "Not there yet" up to date, and
``--record`` (where JAX is installed) the list of JAX's names, so that no test needs JAX.

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
from collections.abc import Iterable, Iterator
from pathlib import Path

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
            "lax", "lax.linalg", "random", "ref", "nn", "nn.initializers", "tree_util", "tree",
        )
    },
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

HEADING = "## Not there yet"


def find(path: str) -> types.ModuleType | None:
    """The module of that name, or None."""
    try:
        return importlib.import_module(path)
    except ImportError:
        return None


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


def members(module: types.ModuleType) -> Iterator[tuple[str, object]]:
    """Public names of a module and what they stand for; no modules."""
    for name in dir(module):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            member = getattr(module, name, None)
        if not name.startswith("_") and not isinstance(member, types.ModuleType):
            yield name, member


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
        module = find(f"funcgrad.{path}")
        if module is None:
            yield f"{path}.*"
            continue
        for name, parameters in names.items():
            if not hasattr(module, name):
                yield f"{path}.{name}"
                continue
            ours = named(getattr(module, name))
            if ours is not None and not ours[1]:
                yield from (f"{path}.{name}({q})" for q in parameters or () if q not in ours[0])


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
    """Replace the table under the page's last heading."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(HEADING)
    missing = unexplained(found, entries_of(before))
    introduction = rest.split("\n| ")[0].rstrip()
    page.write_text(f"{before}{HEADING}{introduction}\n\n{table(missing)}\n", encoding="utf-8")


def stale(page: Path, found: Iterable[str]) -> list[str]:
    """Entries under "Not there yet" that are there."""
    _, _, rest = page.read_text(encoding="utf-8").partition(HEADING)
    known = set(found)
    return [entry for entry in entries_of(rest) if entry not in known]


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
        for hole in stale(page, found):
            print(f"filled, but still in {page.name}: {hole}")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
