"""The site: ``python -m sphinx -W -b html docs build/html`` from the root of the repository."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from docs.tools import coverage, lint_rules, reference  # noqa: E402

PROJECT = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "funcgrad"
author = "funcgrad authors"
release = version = PROJECT["version"]

extensions = ["myst_parser", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["tools"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4
# Programs' outputs and grammars stand in fences without a language.
highlight_language = "none"
default_role = "py:obj"
add_module_names = False
toc_object_entries = False
maximum_signature_line_length = 88
# What a reader copies is the program, not the prompt.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"funcgrad {release}"
html_logo = "_static/logo.svg"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(DOCS / "_static" / "scorer.js")
html_copy_source = False
# Pages that are a section by themselves have nothing to list beside them.
html_sidebars = {"gallery": [], "sharp_bits": []}
html_show_sourcelink = False
html_context = {
    "github_user": "funcgrad",
    "github_repo": "funcgrad",
    "github_version": "main",
    "doc_path": "docs",
    "default_mode": "auto",
}
html_theme_options = {
    "logo": {"text": f"funcgrad {release}"},
    "github_url": "https://github.com/funcgrad/funcgrad",
    "use_edit_page_button": True,
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
    "footer_start": ["copyright"],
    "footer_end": [],
}
copyright = "funcgrad authors, MIT licence"


def setup(app: object) -> None:
    """Write the generated pages before Sphinx looks for sources."""
    reference.write(DOCS / "reference")
    coverage.write(DOCS / "reference")
    lint_rules.write(DOCS / "reference")
