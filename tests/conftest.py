"""What every test runs under: a cache of compiled kernels of its own, and settings of hypothesis.

The folder for compiled kernels is made anew for each run, shared by its worker processes (which
inherit the environment) and removed by the process that made it.

A run says something about the code, not about chance: what hypothesis tries follows from the tests
alone, and random generators of modules start anew for each test, whichever ran before it in its
process. The nightly command tries others, with ``--hypothesis-profile nightly``.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import hypothesis
import numpy as np
import pytest

from tests.heap import hide_from_collector, rest_collector, small_heap

CACHE_VARIABLE = "FUNCGRAD_CACHE_DIR"
_made_here = pytest.StashKey[str]()

_ALWAYS: dict[str, Any] = {
    "deadline": None,  # a first call may compile
    "database": None,
    "print_blob": True,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
}
hypothesis.settings.register_profile("funcgrad", max_examples=8, derandomize=True, **_ALWAYS)
hypothesis.settings.register_profile("nightly", max_examples=250, **_ALWAYS)
hypothesis.settings.load_profile("funcgrad")

_renew: dict[str, list[Callable[[], object]]] = {}
"""What sets the random generators of a module of tests back to how they were after its import."""


def _share_processors(config: pytest.Config) -> None:
    """Give each worker's BLAS its share of the processors, before the workers import NumPy.

    Threads that wait for each other's turn spin: with two workers on two processors, products of
    a few hundred rows took three times the time that they take on one thread.
    """
    workers = getattr(config.option, "numprocesses", None) or 0
    if workers > 1:
        threads = max(1, (os.cpu_count() or 1) // workers)
        os.environ.setdefault("OPENBLAS_NUM_THREADS", str(threads))


def pytest_configure(config: pytest.Config) -> None:
    # Tests that stand together share programs, references and fixtures: with pytest-xdist's default
    # every process would make them.
    if getattr(config.option, "dist", None) == "load":
        config.option.dist = "worksteal"
    if not hasattr(config, "workerinput"):
        _share_processors(config)
        config.stash[_made_here] = tempfile.mkdtemp(prefix="funcgrad-tests-")
        os.environ[CACHE_VARIABLE] = config.stash[_made_here]
        # Tests change what plans depend on, such as the machine, which no process does.
        os.environ["FUNCGRAD_REUSE_PLANS"] = "0"


def _told_by(x: Any) -> Any:
    """Something hashable that is equal for the same parameters only."""
    return (type(x), x) if isinstance(x, str | int) else id(x)


_places: dict[int, tuple[pytest.Mark, list[str], dict[tuple[Any, ...], int]]] = {}
"""By the identity of a table's mark: the mark, names of parameters, and places of rows."""


def _place(mark: pytest.Mark, params: dict[str, Any]) -> int:
    """The place of an item's row in a table of parameters."""
    if id(mark) not in _places:
        names = mark.args[0]
        names = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
        places: dict[tuple[Any, ...], int] = {}
        for place, row in enumerate(mark.args[1]):
            is_row = len(names) > 1 or hasattr(row, "marks")
            values = getattr(row, "values", row) if is_row else [row]
            places.setdefault(tuple(map(_told_by, values)), place)
        _places[id(mark)] = mark, names, places
    _, names, places = _places[id(mark)]
    return places[tuple(_told_by(params[name]) for name in names)]


def is_in_every_run(item: pytest.Item) -> bool:
    """Whether a row of a table is in the sample that its mark ``sampled`` leaves to every run.

    Rows take turns: the places of its parameters, added up, are a multiple of the mark's number. So
    each value of one parameter is tried with some of every other, and the rule is no chance.
    """
    mark = item.get_closest_marker("sampled")
    if mark is None:
        return True
    params = item.callspec.params  # type: ignore[attr-defined]
    if any(params[name] == value for name, value in mark.kwargs.items()):
        return True
    tables = item.iter_markers("parametrize")
    return sum(_place(table, params) for table in tables) % int(mark.args[0]) == 0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not is_in_every_run(item):
            item.add_marker(pytest.mark.nightly)
    if os.environ.get("FUNCGRAD_NUMBA") == "public":
        reason = "about kernels that Numba does not compile"
        for item in items:
            if item.get_closest_marker("lean") is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection() -> None:
    rest_collector()


def pytest_collection_finish(session: pytest.Session) -> None:
    hide_from_collector()
    _find_generators()


def _find_generators() -> None:
    """Remember the states of generators of modules, when all tests have been collected."""
    for name, module in [*sys.modules.items()]:
        if not name.startswith("tests."):
            continue
        for value in vars(module).values():
            if isinstance(value, np.random.Generator):
                bits = value.bit_generator
                again = partial(setattr, bits, "state", bits.state)
            elif isinstance(value, np.random.RandomState):
                again = partial(value.set_state, value.get_state(legacy=False))
            else:
                continue
            of_one = name.rpartition(".")[2].startswith("test_")
            _renew.setdefault(name if of_one else "", []).append(again)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the generators of the test's module, and of modules that serve several, start anew."""
    module = getattr(item, "module", None)
    for again in (*_renew.get("", ()), *_renew.get(getattr(module, "__name__", ""), ())):
        again()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _made_here in config.stash:
        shutil.rmtree(config.stash[_made_here], ignore_errors=True)


@pytest.fixture(name="small_heap")
def with_small_heap() -> Iterator[None]:
    """Hide other tests from the collector of cycles."""
    with small_heap():
        yield
