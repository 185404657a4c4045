"""The tables of what NumPy, SciPy and JAX have and funcgrad has, by module: counts and names.

What is compared is the business of `tests.surface`: NumPy and SciPy as they are installed, JAX as
it was recorded.
"""

from __future__ import annotations

from pathlib import Path

from docs.tools.restructured import indented, replace, table, title
from tests import surface

LIBRARIES = {"NumPy and SciPy": "numpy", "JAX": "jax"}
TOP = "top level"
WHY = {"numpy": "/coming_from_numpy", "jax": "/coming_from_jax"}


def write(folder: Path) -> None:
    """Write the page."""
    replace(folder / "coverage.rst", page())


def page() -> str:
    """Both comparisons: a table of counts, and of what is there and what is not."""
    found = surface.references()
    parts = [
        title("Coverage of NumPy, SciPy and JAX"),
        "For each module of NumPy, SciPy and JAX, this page lists the names that funcgrad has, and"
        " the names and keywords that it does not have. :doc:`/coming_from_numpy` and"
        " :doc:`/coming_from_jax` give the reasons. Exceptions, dtypes and constants count, too.\n",
    ]
    for library, key in LIBRARIES.items():
        parts += [title(library, "-"), counts(found[key])]
        for module, names in sorted(found[key].items()):
            parts += [title(f"{library}: {module or TOP}", "~"), lists(module, names, WHY[key])]
    return "\n".join(parts)


def missing_from(module: str, names: dict[str, list[str] | None]) -> list[str]:
    return [hole.removeprefix(f"{module}.") for hole in surface.holes({module: names})]


def counts(found: surface.Surface) -> str:
    """A row for each module: how many of its names are here."""
    rows = []
    for module, names in sorted(found.items()):
        holes = missing_from(module, names)
        here = len(names) - sum("(" not in hole for hole in holes)
        rows.append((f"``{module}``" if module else TOP, f"{here} of {len(names)}"))
    return table(rows)


def lists(module: str, names: dict[str, list[str] | None], why: str) -> str:
    """What is here, with links, and what is not."""
    ours = f"funcgrad.{module}".rstrip(".")
    holes = missing_from(module, names)
    here = surface.find_ours(module)
    if here is None:
        return "funcgrad does not have this module.\n"
    public = getattr(here, "__all__", ())
    absent = {hole for hole in holes if "(" not in hole}
    links = [
        f":py:obj:`~{ours}.{name}`" if name in public else f"``{name}``"
        for name in sorted(names)
        if name not in absent
    ]
    parts = ["Available: " + ", ".join(links) + ".\n"]
    if holes:
        text = ", ".join(f"``{hole}``" for hole in sorted(holes))
        parts.append(f"Missing (:doc:`why <{why}>`):\n\n{indented(text)}\n")
    return "\n".join(parts)
