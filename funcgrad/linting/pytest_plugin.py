"""A fixture for pytest, ``lint``, that fails a test in which a rule finds something.

A conftest.py loads it by ``pytest_plugins = ["funcgrad.linting.pytest_plugin"]``. The list
``[tool.funcgrad.lint] ignore`` of pyproject.toml disables rules by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from funcgrad.linting.checker import lint as lint_function
from funcgrad.linting.findings import LintReport
from funcgrad.linting.script import ignored_by_project


@pytest.fixture
def lint(request: pytest.FixtureRequest) -> Callable[..., LintReport]:
    """Function ``lint(f, *args, ignore=(), **kwargs)`` that fails the test if anything is found."""
    of_project = ignored_by_project(request.config.rootpath)

    def check(f: Any, *args: Any, ignore: Iterable[str] = (), **kwargs: Any) -> LintReport:
        report = lint_function(f, *args, ignore=[*ignore, *of_project], **kwargs)
        if any(found.severity != "note" for found in report):
            pytest.fail(str(report), pytrace=False)
        return report

    return check
