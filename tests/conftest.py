"""What every test runs under: a cache of compiled kernels of its own, and settings of hypothesis.

The folder for compiled kernels is made anew for each run, shared by its worker processes (which
inherit the environment) and removed by the process that made it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator

import hypothesis
import pytest

from tests.heap import hide_from_collector, small_heap

CACHE_VARIABLE = "FUNCGRAD_CACHE_DIR"
_made_here = pytest.StashKey[str]()

hypothesis.settings.register_profile(
    "funcgrad",
    deadline=None,  # a first call may compile
    max_examples=25,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("funcgrad")


def pytest_configure(config: pytest.Config) -> None:
    # Tests that stand together share programs, references and fixtures: with pytest-xdist's default
    # every process would make them.
    if getattr(config.option, "dist", None) == "load":
        config.option.dist = "worksteal"
    if not hasattr(config, "workerinput"):
        config.stash[_made_here] = tempfile.mkdtemp(prefix="funcgrad-tests-")
        os.environ[CACHE_VARIABLE] = config.stash[_made_here]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("FUNCGRAD_NUMBA") == "public":
        reason = "about kernels that Numba does not compile"
        for item in items:
            if item.get_closest_marker("lean") is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish(session: pytest.Session) -> None:
    hide_from_collector()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _made_here in config.stash:
        shutil.rmtree(config.stash[_made_here], ignore_errors=True)


@pytest.fixture(name="small_heap")
def with_small_heap() -> Iterator[None]:
    """Hide other tests from the collector of cycles."""
    with small_heap():
        yield
