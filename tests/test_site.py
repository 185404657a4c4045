"""The built site: it builds without a warning, its search finds, its links lead somewhere.

It is built once, at night, where the extra ``docs`` is installed. The search is that of the site,
run by node (`tests/search_of_site.js`), or skipped where there is no node.
"""

from __future__ import annotations

import fcntl
import importlib
import importlib.util
import json
import os
import posixpath
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs.tools.names import all_names, modules

ROOT = Path(__file__).parents[1]
NEEDED = ("sphinx", "myst_parser", "pydata_sphinx_theme", "sphinx_copybutton", "sphinx_design")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in NEEDED),
        reason="the extra `docs` is not installed",
    ),
]

QUESTIONS = {
    "list of all functions": "reference/all_functions",
    "donate_argnums": "tutorials/compilation#donate-argnums",
    "use several cores": "howto/make_it_fast#use-several-cores",
    "where the cache is": "howto/deploy#where-the-cache-is",
    "deploy to another machine": "howto/deploy",
    "supported versions": "supported_versions",
    "contribute": "contribute",
    "keep float32": "keeping_float32",
    "save parameters": "howto/save_and_load#save-parameters",
    "write an optimiser": "howto/train#write-an-optimiser",
    "find the slow line": "howto/make_it_fast#find-the-slow-line",
    "what plain NumPy cannot do": "start/which_of_my_code#what-plain-numpy-cannot-do",
    "why does it recompile": "howto/recompiles",
    "NaN": "howto/find_nan",
    "port from JAX": "howto/from_jax",
}
"""What somebody types into the search, and the heading that has to come first."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by whichever process of the tests comes first."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with open(folder.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            options = ["-W", "-q", "-b", "html", "-d", str(folder / "doctrees")]
            command = [sys.executable, "-m", "sphinx", *options, "docs", str(folder / "html")]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            (folder / "built").touch()
    return folder / "html"


class Page(HTMLParser):
    """The anchors of a page, and what it refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def has(self, anchor: str) -> bool:
        """Whether the page has an anchor; the empty one is its beginning."""
        return not anchor or anchor in self.anchors

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name == "href" or (name == "src" and tag in ("img", "script", "iframe")):
                self.links.add(value)


def pages_of(site: Path) -> dict[str, Page]:
    """The pages of a site by their paths; those without text of ours are left out."""
    paths = (path for path in site.glob("**/*.html") if "_static" not in path.parts)
    return {path.relative_to(site).as_posix(): Page(path) for path in paths}


def broken_links(site: Path) -> Iterator[str]:
    """Links to files and anchors of the site that are not there."""
    pages = pages_of(site)
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            file = urllib.parse.unquote(parts.path)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
            target = target if file else path
            anchor = urllib.parse.unquote(parts.fragment)
            has_anchor = target not in pages or pages[target].has(anchor)
            if not (site / target).is_file() or not has_anchor:
                yield f"{path}: {link}"


def test_no_link_is_broken(site: Path) -> None:
    assert sorted(broken_links(site)) == []


def test_the_site_is_small(site: Path) -> None:
    size = sum(path.stat().st_size for path in site.glob("**/*") if path.is_file())
    assert size < 40_000_000


def test_every_public_name_is_on_the_page_of_its_module(site: Path) -> None:
    """And nothing else is on the pages of the reference but for members of classes."""
    pages = pages_of(site)
    expected = {f"reference/{module.__name__}.html": set() for module in modules()}
    for name in all_names():
        expected[f"reference/{name.module}.html"].add(name.path)
    shown = {path for path in pages if path.startswith("reference/funcgrad")}
    assert shown == set(expected)
    for path, names in expected.items():
        module = Path(path).name.removesuffix(".html")
        described = {a for a in pages[path].anchors if a.startswith(f"{module}.")}
        assert names <= described
        for member in described - names:
            parent, _, attribute = member.rpartition(".")
            assert parent in names, f"{member} is no public name"
            assert not attribute.startswith("_")


def test_every_page_can_be_edited_and_says_its_version(site: Path) -> None:
    for name in ("index.html", "howto/find_nan.html"):
        text = (site / name).read_text(encoding="utf-8")
        assert "funcgrad 0." in text
        assert f"/edit/main/docs/{name.removesuffix('.html')}.md" in text


@pytest.fixture(scope="session")
def answers(site: Path) -> dict[str, list[str]]:
    """The first result of the search for every question."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node to run the search of the site")
    program = [node, str(ROOT / "tests" / "search_of_site.js"), str(site)]
    questions = json.dumps(list(QUESTIONS))
    done = subprocess.run(program, input=questions, capture_output=True, text=True, check=True)
    return dict(zip(QUESTIONS, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_search_finds_the_heading_first(answers: dict[str, list], question: str) -> None:
    title, page, anchor, _ = answers[question][0]
    assert page + anchor == QUESTIONS[question], answers[question]
    heading = title.rpartition(" > ")[2].lower()
    assert question.lower() in heading
