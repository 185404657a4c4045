"""The pages of the reference, from the docstrings: one for each public module.

``write(folder)`` makes ``index.rst``, a page for every module, and the list of all functions.
Sphinx calls it before it reads the sources.
"""

from __future__ import annotations

import inspect
import itertools
import re
import types
from pathlib import Path

from sphinx.ext.napoleon import Config, GoogleDocstring

from docs.tools.names import Name, all_names, described_as, modules, names_of
from docs.tools.restructured import indented, replace, table, title

NAPOLEON = Config(napoleon_google_docstring=True, napoleon_use_rtype=False)

GROUPS = {
    "Transformations and arrays": (
        "funcgrad", "funcgrad.numpy", "funcgrad.lax", "funcgrad.random", "funcgrad.tree",
        "funcgrad.tree_util", "funcgrad.typing", "funcgrad.errors", "funcgrad.extend",
    ),
    "Models and training": (
        "funcgrad.nn", "funcgrad.optim", "funcgrad.data", "funcgrad.diagnostics", "funcgrad.image",
    ),
    "Science": ("funcgrad.scipy",),
}  # fmt: skip
"""Headings of the index and the modules under them, with their inner modules."""


PAGES = (
    "errors", "environment", "supported_versions", "glossary", "linear_algebra",
    "special_functions", "distributions", "scipy", "signals_and_images", "array_api", "changelog",
)  # fmt: skip
"""Pages written by hand that belong to the reference."""


def write(folder: Path) -> None:
    """Write all pages; a page that would not change is left as it is."""
    found = modules()
    pages = {f"{module.__name__}.rst": page(module) for module in found}
    pages["index.rst"] = index(found)
    pages["all_functions.rst"] = all_functions()
    folder.mkdir(exist_ok=True)
    for old in folder.glob("funcgrad*.rst"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        replace(folder / name, text)


def converted(documentation: str) -> str:
    """A docstring as reStructuredText: its sections become lists of fields."""
    return str(GoogleDocstring(documentation, NAPOLEON))


def first_sentence(text: str) -> str:
    """A text up to the full stop that ends its first sentence, which is none of a literal."""
    found = re.match(r"(?:``.*?``|`[^`]*`|[^`])*?(?=\. [A-Z`]|$)", text)
    return (found[0] if found else text).rstrip(".:") + "."


INSIDE = re.compile(r"\s*This\s+(?:module|package)\s+is\s+a\s+page\s+of\s+names\b(?:.|\n(?!\n))*")
"""What docstrings of modules say to those who read the source."""

ATTRIBUTES = re.compile(r"^Attributes:\n(?: +.*\n?|\n)*", re.MULTILINE)
"""That section of a docstring."""


def page(module: types.ModuleType) -> str:
    """The page of one module: what it is for, a table of its names, and every name."""
    names = names_of(module)
    inner = [m for m in modules() if m.__name__.rpartition(".")[0] == module.__name__]
    parts = [f".. _module-{module.__name__}:\n", title(module.__name__)]
    parts.append(f".. py:module:: {module.__name__}\n")
    parts.append(converted(INSIDE.sub("", inspect.getdoc(module) or "")) + "\n")
    if inner:
        parts.append(title("Modules", "-"))
        parts.append(module_table(inner))
    if names:
        parts.append(title("Names", "-"))
        parts.append(name_table(names))
        parts.append(title("Descriptions", "-"))
        parts.extend(entry(name) for name in names)
    return "\n".join(parts)


def module_table(found: list[types.ModuleType]) -> str:
    rows = []
    for module in found:
        text = inspect.getdoc(module) or ""
        summary = " ".join(text.partition("\n\n")[0].split())
        rows.append((f":ref:`{module.__name__} <module-{module.__name__}>`", summary))
    return table(rows)


def name_table(names: list[Name]) -> str:
    return table([(f":py:obj:`~{name.path}`", first_sentence(name.summary)) for name in names])


def entry(name: Name) -> str:
    """One name: its signature and its docstring, or where the object is described."""
    lines = [f".. py:{name.kind}:: {name.name}{name.signature}", ""]
    lines.append(indented(body(name)))
    if name.link is not None:
        lines += ["", f"   The original is `{name.original} <{name.link}>`__."]
    if name.kind == "class" and name.is_ours and described_as(name).path == name.path:
        lines += ["", indented(members(name))]
    return "\n".join([*lines, ""])


def body(name: Name) -> str:
    described = described_as(name)
    if described.path != name.path:
        return f"{name.summary}\n\nThe same as :py:obj:`{described.path}`."
    if not name.is_ours:
        return name.summary
    # The attributes of an instance are described once, with its class.
    text = name.documentation
    return converted(ATTRIBUTES.sub("", text) if name.kind == "data" else text)


def members(name: Name) -> str:
    """Public methods and properties that a class of funcgrad defines."""
    found = []
    for attribute, value in vars(name.value).items():
        function = getattr(value, "__func__", value)
        text = inspect.getdoc(function) if not attribute.startswith("_") else None
        if not text or not isinstance(function, types.FunctionType | property):
            continue
        if isinstance(function, property):
            head = f".. py:property:: {attribute}\n   :no-index:"
        else:
            head = f".. py:method:: {Name(name.path, attribute, function).signature}"
            head = head.replace(":: (", f":: {attribute}(").replace("(self, ", "(")
            head = head.replace("(self)", "()")
        found.append(f"{head}\n\n{indented(converted(text))}\n")
    return "\n".join(found)


def index(found: list[types.ModuleType]) -> str:
    """All modules in groups, and the other pages of the reference."""
    rest = list(found)
    parts = [
        title("Reference"),
        "Every public name, with its signature and arguments.\n",
    ]
    parts.append(
        "* :doc:`List of all functions <all_functions>`, by name\n"
        "* :doc:`What of NumPy, SciPy and JAX is here <coverage>`\n"
        "* :doc:`Rules of lint <lint_rules>`, each with examples\n"
        f"* {', '.join(f':doc:`/{page}`' for page in PAGES)}\n"
    )
    for heading, roots in GROUPS.items():
        chosen = [m for m in rest if belongs(m.__name__, roots)]
        rest = [m for m in rest if m not in chosen]
        parts += [title(heading, "-"), module_table(chosen)]
    parts += [title("Further modules", "-"), module_table(rest)]
    pages = ["all_functions", "coverage", "lint_rules", *(module.__name__ for module in found)]
    others = [f"/{page}" for page in PAGES]
    parts.append(".. toctree::\n   :hidden:\n   :maxdepth: 1\n")
    parts.append(indented("\n".join(itertools.chain(pages[:3], others, pages[3:]))))
    return "\n".join(parts) + "\n"


def belongs(module: str, roots: tuple[str, ...]) -> bool:
    return any(
        module == root or (root != "funcgrad" and module.startswith(root + ".")) for root in roots
    )


def all_functions() -> str:
    """Every name in alphabetical order, with its modules."""
    parts = [
        title("List of all functions"),
        f"All {len(all_names())} public names in alphabetical order, with links to what they do.\n",
    ]
    ordered = sorted(all_names(), key=lambda name: (name.name.lower(), name.path))
    for letter, group in itertools.groupby(ordered, key=lambda name: name.name[0].upper()):
        parts.append(title(letter, "-"))
        parts.append(
            table([(f":py:obj:`{n.path}`", first_sentence(n.summary)) for n in group], "40 60")
        )
    return "\n".join(parts)
