"""What pages state as a fact about the code, the examples or other pages, compared with these.

What a page shows as the output of a program runs in `tests/test_docs.py`.
"""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.observers import EVENTS
from tests.sources import SOURCES, nodes_of, text_of

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / ".github" / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
]
HISTORY = {ROOT / "docs" / "changelog.md"}
"""What was true when it was written."""

K, M = 2**10, 2**20

# Page, words with a number, its unit, and the constant that it tells of.
CONSTANTS = [
    ("reliability", r"Programs of a jitted function; .*\| (\d+) each", 1,
     "funcgrad.api.compilation.MAX_PROGRAMS"),
    ("reliability", r"facts derived from a program \| (\d+) each", 1,
     "funcgrad.core.program.MAX_FACTS"),
    ("reliability", r"Traces that are shared .*\| (\d+), least", 1,
     "funcgrad.higher_order.remembered._MAX_REMEMBERED"),
    ("reliability", r"constants of (\d+) kB each", K,
     "funcgrad.higher_order.remembered._MAX_BYTES"),
    ("reliability", r"Decisions of `checkpoint` with a budget \| (\d+)", 1,
     "funcgrad.higher_order.budget._MAX_CHOICES"),
    ("reliability", r"blocks of more than 1 MB: (\d+) MB", M,
     "funcgrad.compiler.runtime.executable.MAX_IDLE_BYTES"),
    ("reliability", r"Shapes with their dtypes \| ([\d,]+), then", 1,
     "funcgrad.core.avals._INTERN_LIMIT"),
    ("reliability", r"Structures of pytrees; .*\| ([\d,]+) each", 1,
     "funcgrad.base.pytree._INTERN_LIMIT"),
    ("reliability", r"Source lines; file names \| ([\d,]+), then", 1,
     "funcgrad.observers.source._MAX_LOCATIONS"),
    ("reliability", r"Source lines; file names \| .*; ([\d,]+) \|", 1,
     "funcgrad.observers.source._MAX_FILES"),
    ("reliability", r"Lines that a warning was shown for \| ([\d,]+)", 1,
     "funcgrad.observers.notices._MAX_WARNED"),
    ("compiler", r"working memory for their next call: at most (\d+) MiB", M,
     "funcgrad.compiler.runtime.executable.MAX_IDLE_BYTES"),
    ("compiler", r"arrays of up to\n(\d+) KiB, are compared", K,
     "funcgrad.higher_order.remembered._MAX_BYTES"),
    ("compiler", r"sums of less than (\d+) KiB", K, "funcgrad.passes.advance.SMALL_BYTES"),
    ("howto/deploy", r"When it exceeds (\d+) MB", M,
     "funcgrad.compiler.runtime.disk_cache.DEFAULT_SIZE"),
]  # fmt: skip


@pytest.mark.parametrize(("page", "words", "unit", "constant"), CONSTANTS)
def test_limits_are_those_of_the_code(page: str, words: str, unit: int, constant: str) -> None:
    found = re.search(words, (ROOT / "docs" / f"{page}.md").read_text())
    assert found is not None, f"docs/{page}.md no longer says it"
    module, _, name = constant.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    assert int(found[1].replace(",", "")) * unit == value


# Figures that were measured: each page that has some, and of what. Others link there.
MEASURED = re.compile(r"\d (?:ns|us|µs|ms|images/s|GB/s|Gflop/s)(?!\w)|`core` \d[\d.]* %")
HOMES = {
    "docs/benchmarks.md": "calls, first calls, memory: every row of the benchmarks",
    "docs/compiler.md": "how often signals are looked for, what loading a library takes",
    "docs/contribute/start_up.md": "what each part of start-up saves",
    "docs/contribute/tests.md": "coverage",
    "docs/interop.md": "a call of a compiled function from Numba",
    "docs/interop_jax.md": "programs of libraries for JAX, on JAX and here",
    "docs/scale.md": "messages between processes",
    "docs/scipy.md": "solvers of differential equations beside SciPy's",
    "docs/tutorials/scalar_engine.md": "the engine of that page, beside funcgrad",
}


def test_measured_figures_stand_where_they_are_kept() -> None:
    found = {
        str(page.relative_to(ROOT))
        for page in PAGES
        if page not in HISTORY and MEASURED.search(page.read_text())
    }
    assert found <= HOMES.keys()


def test_tables_have_rows() -> None:
    empty = re.compile(r"^\|[ :|-]+\|\n(?!\|)", re.MULTILINE)
    assert [page.name for page in PAGES if empty.search(page.read_text())] == []


def test_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "start" / "install.md").read_text()
    table = page.split("| extra | what it adds |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == list(project["optional-dependencies"])


ABSENT = {"fnp.mulitply", "fg.scan", "fg.pmap"}
"""Names that the page on errors asks for, to show what is said then."""


def roots() -> dict[str, Any]:
    """Objects by the names that pages give them."""
    traced = fg.jit(lambda x: x + 1).trace(1.0)
    lowered = traced.lower()
    stages = {"traced": traced, "lowered": lowered, "compiled": lowered.compile()}
    return {"fg": fg, "funcgrad": fg, "fnp": fnp, "np": np, **stages}


def attribute(owner: Any, path: str) -> bool:
    """Whether a dotted name is there; modules that are loaded by their names are."""
    for name in path.split("."):
        if not hasattr(owner, name):
            try:
                importlib.import_module(f"{owner.__name__}.{name}")
            except (AttributeError, ImportError):
                return False
        owner = getattr(owner, name)
    return True


def test_names_in_the_text_of_pages_are_there() -> None:
    owners, missing = roots(), set()
    start = re.compile(rf"({'|'.join(owners)})\.(\w+(?:\.\w+)*)")
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for code in re.findall(r"`([^`\n]+)`", "" if page in HISTORY else text):
            found = start.match(code.replace("lowered.compile()", "compiled"))
            if found is not None and not attribute(owners[found[1]], found[2]):
                missing.add(found[0])
    assert missing == ABSENT


def test_arrays_that_a_function_closes_over_are_constants() -> None:
    """As `docs/how_it_works.md` says."""
    array = np.arange(3.0)
    closed = fg.make_jaxpr(lambda x: x @ array)(array)
    assert len(closed.in_avals) == 1
    assert "b:f64[3] = constant" in str(closed)


def test_files_that_know_a_primitive_are_listed() -> None:
    """As `docs/contribute/primitive.md` lists them for `spence`."""
    page = (ROOT / "docs" / "contribute" / "primitive.md").read_text()
    rows = re.findall(r"^\| (`[^|]*`) \| ", page.split("These are the files for")[1], re.MULTILINE)
    listed = {file for row in rows for file in re.findall(r"`([^`]+)`", row)}
    assert len(listed) == 3
    for file in listed:
        assert re.search(r"\bspence\b", (ROOT / file).read_text()), file
    named = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "funcgrad").rglob("*.py")
        if re.search(r"^(?:spence\b.*(?:=|\| )|    \"?spence\"?,$)", path.read_text(), re.MULTILINE)
    }
    assert named == {file for file in listed if file.startswith("funcgrad/")}
    tables = [ROOT / "tests" / "cases.py", *(ROOT / "tests" / "scipy").glob("record_*.py")]
    rows = [file for file in tables if "spence" in file.read_text()]
    assert [str(file.relative_to(ROOT)) for file in rows] == [f for f in listed if "tests" in f]


def test_facets_are_listed() -> None:
    """As `docs/adding_a_primitive.md` lists them."""
    rows = re.findall(
        r"^\| (`.*?) \| `", (ROOT / "docs" / "adding_a_primitive.md").read_text(), re.MULTILINE
    )
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    declared = {
        call.args[0].value
        for module in SOURCES
        if "Facet(" in text_of(module)
        for call in nodes_of(module)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if call.func.id == "Facet" and isinstance(call.args[0], ast.Constant)
    }
    assert declared <= listed, declared - listed


def test_events_of_observers_are_listed() -> None:
    """As `docs/how_it_works.md` lists them."""
    listed = re.findall(
        r"^\| (`.*?): ",
        (ROOT / "docs" / "how_it_works.md").read_text().split("| event |")[1],
        re.MULTILINE,
    )
    assert {name for row in listed for name in re.findall(r"`(\w+)`", row)} == {"locate", *EVENTS}
