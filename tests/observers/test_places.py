"""Places in the user's code, where Python knows little of them: generated code, threads of C."""

from __future__ import annotations

import _thread
import contextvars
import copy
import importlib.util
import linecache
import sys
import threading

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors
from funcgrad.observers import source
from funcgrad.observers.notices import warn_at
from funcgrad.observers.source import SourceLocation

# Kinds of entries in a code object's table of places, as PEP 657 has them.
LINE_ONLY, NOTHING = 13, 15


def asks(x):
    return np.asarray(x, float)


def does_not_fit(x):
    return x + np.ones(7)


def decides(x):
    return 1.0 if x.sum() > 0 else x


def with_places(function, kind):
    """A function whose instructions all have entries of a kind."""
    code = function.__code__
    entry = bytes([0x80 | kind << 3, *([0] if kind == LINE_ONLY else [])])
    table = entry * (len(code.co_code) // 2)
    return type(function)(code.replace(co_linetable=table), function.__globals__)


def text_of(function, *args):
    with pytest.raises(errors.FuncgradError) as caught:
        function(*args)
    return str(caught.value)


@pytest.mark.parametrize("kind", [LINE_ONLY, NOTHING], ids=["no_debug_ranges", "no lines"])
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (asks, "Other functions that NumPy does not redirect have counterparts in funcgrad.numpy."),
        (decides, "Use np.where(condition, a, b), or lax.cond, or make the argument that it"),
        (does_not_fit, "add: the shapes of f64[3] and f64[7] do not broadcast together."),
    ],
)
def test_without_places_the_line_of_the_function_is_named(kind, function, words):
    text = text_of(fg.jit(with_places(function, kind)), np.ones(3))
    line = function.__code__.co_firstlineno
    where = linecache.getline(__file__, line).strip()
    assert f"  at            test_places.py:{line}   {where}" in text.splitlines()
    assert words in text


def test_compiled_functions_without_places():
    f = fg.jit(with_places(lambda x: np.sin(x) + 1, NOTHING))
    np.testing.assert_allclose(f(np.ones(3)), np.sin(1.0) + 1)
    assert "test_places.py:" in f.lower(np.ones(3)).as_text()


def test_a_file_that_was_edited_since_it_was_imported(tmp_path):
    path = tmp_path / "edited.py"
    path.write_text("import numpy as np\ndef f(x):\n    return np.asarray(x, float)\n")
    spec = importlib.util.spec_from_file_location("edited", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.write_text("import numpy as np\ndef f(x):\n    return np.asarray(x,\n")
    text = text_of(fg.jit(module.f), 1.0)
    assert "  at            edited.py:3" in text
    assert "Other functions that NumPy does not redirect" in text


# Threads that a library of C starts: nothing but funcgrad and NumPy is on their stacks.


@pytest.fixture
def bare(monkeypatch):
    """Call something in such a thread; gives the exception that it raised."""

    def call(function, *args):
        raised, ended = [], threading.Event()

        def hook(unraisable):
            raised.append(unraisable.exc_value)
            ended.set()

        monkeypatch.setattr(sys, "unraisablehook", hook)
        _thread.start_new_thread(function, args)
        assert ended.wait(60)
        return raised[0]

    return call


def test_errors_without_a_line_are_whole(bare):
    assert str(bare(fg.jit(bool), 1.0)).splitlines()[:2] == [
        "`if`, `while`, `and`, `or`, `not` and `bool()` need a concrete bool, but this is a traced "
        "~f64[] inside jit(bool).",
        "  from          argument `args[0]` of bool, ~f64[]",
    ]
    refused = str(bare(fg.jit(np.asarray, static_argnums=1), 1.0, int))
    assert refused.startswith("NumPy asked for the values of an array, but it is a traced ~f64[]")
    assert "\n  at " not in refused


def test_nans_without_a_line(bare):
    with fg.debug_nans():
        error = bare(contextvars.copy_context().run, fg.grad(np.log), -1.0)
    assert isinstance(error, errors.NonFiniteError)
    assert str(error).splitlines()[:3] == [
        "log gave the first nan.",
        "  operand       f64[] -1.",
        "  result        f64[] nan",
    ]
    assert error.line is None


def test_a_warning_without_a_line():
    with pytest.warns(errors.FuncgradWarning, match="nobody knows where") as caught:
        warn_at(None, errors.FuncgradWarning("nobody knows where"))
    assert caught[0].filename == __file__ or caught[0].filename.endswith("notices.py")


# Locations as objects.


def test_a_location_is_its_own_copy():
    (equation,) = fg.make_jaxpr(np.sin)(1.0).eqns
    assert copy.copy(equation.source) is equation.source
    assert copy.deepcopy(equation).source is equation.source


def test_the_number_of_locations_is_bounded(monkeypatch):
    monkeypatch.setattr(source, "_locations", {})
    monkeypatch.setattr(source, "_MAX_LOCATIONS", 3)
    code = asks.__code__
    kept = [SourceLocation(code, line) for line in range(10)]
    assert [location.line for location in kept] == list(range(10))
    assert len(source._locations) <= 3
    assert SourceLocation(code, 9) is kept[9]
