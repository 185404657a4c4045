"""The documentation runs: every Python block of README.md and docs/, and every doctest.

`tests/pages.py` says how results are written into pages, runs them, and writes them anew.
"""

from __future__ import annotations

import doctest
import importlib
import io
import math
import pkgutil
import re
import types
from pathlib import Path

import pytest

import funcgrad
from tests import pages

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
DOCTEST_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT).with_suffix(""))


def page_parameters() -> list[object]:
    nightly = {page: [pytest.mark.nightly] for page in PAGES if pages.is_nightly(page)}
    return [pytest.param(page, id=name_of(page), marks=nightly.get(page, [])) for page in PAGES]


@pytest.mark.parametrize("page", page_parameters())
def test_code_blocks_run_and_show_what_they_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    for expected, shown, line, _ in pages.run(page):
        assert pages.agrees(expected, shown), f"{page.name}:{line}: {expected!r} is {shown!r}"
    made = {path.name for path in tmp_path.iterdir()}
    assert set(pages.pictures_of(page)) <= made, "pictures are made by the page that shows them"


def test_pictures_are_shown_and_small():
    shown = {name for page in PAGES for name in pages.pictures_of(page)}
    files = [path for path in pages.PICTURES.iterdir() if path != pages.RUNS]
    assert shown == {path.name for path in files}
    assert sum(path.stat().st_size for path in files) < 2_000_000


def test_pictures_were_made_by_these_pages_with_this_release():
    """If not: ``python -m tests.pages --write --due``."""
    assert pages.due() == []


NUMBER = re.compile(r"[+-]?\d+\.\d*(?:e[+-]\d+)?")
LONG = 8
"""Digits from which on a number is compared as a number: the last ones differ with libraries."""


class Checker(doctest.OutputChecker):
    """Compares text, and long numbers up to the last digits of a print of an array."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        want, got = ("".join(text.split()) for text in (want, got))
        if NUMBER.sub("#", want) != NUMBER.sub("#", got):
            return False
        pairs = zip(NUMBER.findall(want), NUMBER.findall(got), strict=True)
        return all(
            x == y or (len(x) > LONG and math.isclose(float(x), float(y), rel_tol=1e-7))
            for x, y in pairs
        )


def test_only_the_last_digits_of_long_numbers_may_differ():
    check = Checker().check_output
    assert check("np.float64(0.5204998778130465)\n", "np.float64(0.5204998778130463)\n", 0)
    assert check("array([0.11920292, 2.5])\n", "array([0.11920293, 2.5])\n", 0)
    assert not check("np.float64(0.5204998778130465)\n", "np.float64(0.5204998)\n", 0)
    assert not check("array([0.1, 2.5])\n", "array([0.1, 2.6])\n", 0)
    assert not check("np.float64(0.52049987)\n", "np.float32(0.52049987)\n", 0)


def modules() -> list[str]:
    found = pkgutil.walk_packages(funcgrad.__path__, "funcgrad.")
    return ["funcgrad", *(info.name for info in found)]


@pytest.fixture(scope="module")
def _all_imported() -> None:
    """Packages complete the examples of what they publish when they load it."""
    for name in modules():
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            getattr(module, public)


def doctests_of(name: str) -> list[doctest.DocTest]:
    """The examples of a module, but for those of functions that its package publishes."""
    module = importlib.import_module(name)
    assert isinstance(module, types.ModuleType)
    found = doctest.DocTestFinder(exclude_empty=True).find(module, name)
    return [test for test in found if not is_published(test, name)]


def is_published(test: doctest.DocTest, module: str) -> bool:
    package, leaf = module.rpartition(".")[0], test.name.removeprefix(module + ".")
    public = getattr(importlib.import_module(package), leaf, None) if package else None
    return getattr(public, "__module__", None) == package and public.__doc__ == test.docstring


SLOW = {
    f"funcgrad.{name}"
    for name in (
        "experimental.ode", "observers.leaks", "optim.line_search", "profiling.profiler",
        "random.compound", "random.counts", "scipy.integrate", "scipy.optimize",
        "scipy.spatial.transform.splines",
    )
}  # fmt: skip
"""Modules whose examples take seconds; what they show has tests of its own."""


def is_in_every_run(name: str) -> bool:
    """Examples of rules are run by tests/linting/test_pages_of_rules.py, too."""
    return name not in SLOW and not name.startswith("funcgrad.linting.rules.")


@pytest.mark.usefixtures("_all_imported")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if is_in_every_run(name) else pytest.mark.nightly)
        for name in modules()
    ],
)
def test_doctests(name):
    failures = io.StringIO()
    runner = doctest.DocTestRunner(Checker(), optionflags=DOCTEST_FLAGS, verbose=False)
    for test in doctests_of(name):
        runner.run(test, out=failures.write)
    assert not runner.failures, failures.getvalue()


def links_of(page: Path) -> list[str]:
    """Relative links of a page, without their anchors."""
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    return [link for link in links if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    assert [link for link in links_of(page) if not (page.parent / link).exists()] == []


def test_links_lead_to_headings():
    for page in PAGES:
        for file, anchor in re.findall(
            r"\]\(([a-z_/.]*(?:\.md)?)#([a-z0-9-]+)\)", page.read_text()
        ):
            target = (page.parent / file).resolve() if file else page
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^a-z0-9_ -]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in anchors, f"{page.name}: {file}#{anchor}"


def test_every_error_and_warning_is_listed():
    page = (ROOT / "docs" / "errors.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) | {"FuncgradError"}
    assert set(funcgrad.errors.__all__) - listed == {"FuncgradWarning"}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_every_block_of_python_runs():
    """Other names of the language would be shown and not run; `py` is for whole programs."""
    others = {"call_from_c.md": {"c", "cpp", "rust", "r", "julia"}}  # tests/interop/test_export.py
    for page in PAGES:
        languages = set(re.findall(r"^`{3,}(\w+)$", page.read_text(), re.MULTILINE))
        known = {"python", "py", "output", "sh", "text", "dockerfile", "markdown"}
        assert languages <= known | others.get(page.name, set()), page


WORDS_OF_OTHERS = (
    *("Value", "data", "grad", "backward", "_prev", "computational graph", "topological"),
    *("Module", "parameters", "zero_grad", "step", "no_grad", "detach", "epoch", "batch"),
    *("learning-rate decay", "weight decay", "clip", "hook", "dead unit", "dead ReLU"),
    *("gradient flow", "accumulation", "checkpoint"),
)


@pytest.mark.parametrize("word", WORDS_OF_OTHERS)
def test_words_of_other_engines_are_two_clicks_from_the_start_page(word):
    docs = ROOT / "docs"
    assert "tutorials/scalar_engine.md#your-words" in (docs / "index.md").read_text()
    table = (docs / "tutorials" / "scalar_engine.md").read_text().partition("## Your words")[2]
    rows = [row.split("|") for row in table.splitlines() if row.startswith("| ")]
    assert any(word in row[1] and "](" in row[3] for row in rows)
    if word != "_prev":
        assert word.lower() in " ".join((docs / "glossary.md").read_text().lower().split())
