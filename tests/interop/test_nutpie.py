"""nutpie's sampler: what it is given, and the arrays that its tables become."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from funcgrad.errors import ArgumentError, LibraryError
from funcgrad.interop import nutpie
from funcgrad.interop.samplers import LogDensity, positive

Y = np.array([1.0, 2.5, 0.3, 1.7])

STAND_IN = textwrap.dedent(
    '''
    """What of nutpie's library is called: chains of random steps in place of its sampler."""
    import ctypes
    import types

    import numpy as np

    class Column:
        null_count = 0

        def __init__(self, values):
            self.values, self.type = values, str(values.dtype) if values.ndim == 1 else "List"

        def to_numpy(self):
            assert self.type != "List"
            return self.values

    class Table:
        def __init__(self, columns):
            self.columns, self.column_names = columns, list(columns)

        def column(self, name):
            return Column(self.columns[name])

    class Settings:
        num_draws = num_tune = num_chains = maxdepth = 0

        def __init__(self, seed):
            self.seed = seed

    class Function:
        kinds = ctypes.c_size_t, *4 * [ctypes.c_void_p]
        result = ctypes.c_int

        def __init__(self, *given):
            self.call = ctypes.CFUNCTYPE(self.result, *self.kinds)(given[-3])
            self.alive = given[-1]

    class Expand(Function):
        kinds = ctypes.c_uint64, ctypes.c_uint64, *3 * [ctypes.c_void_p]
        result = ctypes.c_int64

    class Sampler:
        is_broken = False

        def __init__(self, settings, cores, model, progress, storage):
            self.settings, self.model, self.states = settings, model, []

        def chain(self, number):
            logp, expand, variables, n, _, _, start, _ = self.model
            assert variables[1:] == (["float64"] * n, [()] * n, {}, {})
            random = np.random.default_rng([self.settings.seed, number])
            x, gradient, value = start(int(random.integers(1 << 30))), np.empty(n), np.empty(1)
            count = self.settings.num_tune + self.settings.num_draws
            rows, values = np.empty((count, n)), np.full(count, -np.inf)
            for k in range(count):
                y = x + 0.5 * random.standard_normal(n)
                args = y.ctypes.data, gradient.ctypes.data, value.ctypes.data, None
                assert logp.call(n, *args) == 0
                last = values[k - 1] if k else -np.inf
                is_taken = value[0] - last > np.log(random.random())
                x, values[k] = (y, value[0]) if is_taken else (x, last)
                assert expand.call(n, n, x.ctypes.data, rows[k:].ctypes.data, None) == 0
            flags = np.arange(count) < self.settings.num_tune
            draws = Table(dict(zip(variables[0], rows.T)))
            return draws, Table({"logp": values, "tuning": flags, "gradient": rows})

        def wait(self, timeout):
            self.states.append("waits")
            if self.is_broken:
                raise KeyboardInterrupt
            self.found = list(zip(*map(self.chain, range(self.settings.num_chains))))

        def abort(self):
            self.states.append("aborts")
            Sampler.last = self.states

        def take_results(self):
            return types.SimpleNamespace(get_arrow_trace=lambda: self.found)

    PyNutsSettings = types.SimpleNamespace(Diag=Settings)
    ProgressType = types.SimpleNamespace(none=lambda: None)
    PyStorage = types.SimpleNamespace(arrow=lambda: None)
    PySampler = types.SimpleNamespace(from_pymc=Sampler)
    PyVariable = types.SimpleNamespace(new_variables=lambda *given: given)
    LogpFunc, ExpandFunc = Function, Expand
    PyMcModel = lambda *given: given
    '''
)


def log_density(p):
    z = (Y - p["mu"]) / p["sigma"]
    return -0.5 * np.sum(z**2) - len(Y) * np.log(p["sigma"]) - p["sigma"] - 0.5 * p["mu"] ** 2


def density():
    return LogDensity(log_density, {"mu": 0.0, "sigma": 1.0}, {"sigma": positive})


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package nutpie that fails where it is imported, around a library that works."""
    folder = tmp_path / "nutpie"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('the package is imported')\n")
    (folder / "_lib.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("nutpie", "nutpie._lib"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield tmp_path
    sys.modules.pop("nutpie._lib", None)


def test_draws_are_arrays_without_those_of_tuning(package):
    found = nutpie.sample(density(), draws=30, tune=20, chains=3, seed=4)
    assert found.vectors.shape == (3, 30, 2)
    assert repr(found) == "<3 chains of 30 draws of 2 numbers>"
    assert list(found.statistics) == ["logp"]
    values = [[density()(x) for x in chain[-2:]] for chain in found.vectors]
    np.testing.assert_allclose(found.statistics["logp"][:, -2:], values, rtol=1e-12)
    parameters = found.parameters
    np.testing.assert_array_equal(parameters["mu"], found.vectors[..., 0])
    np.testing.assert_allclose(parameters["sigma"], np.exp(found.vectors[..., 1]), rtol=1e-14)
    again = nutpie.sample(density(), draws=30, tune=20, chains=3, seed=4)
    np.testing.assert_array_equal(again.vectors, found.vectors)


def test_settings(package):
    nutpie.sample(density(), draws=2, tune=1, chains=1, seed=4, maxdepth=3)
    with pytest.raises(ArgumentError, match=r"nutpie has no setting max_depth\."):
        nutpie.sample(density(), max_depth=3)
    with pytest.raises(ArgumentError, match=r"takes a LogDensity, got function\. Write"):
        nutpie.sample(lambda p: 0.0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"draws at least once.* got draws=1, tune=1, chains=0"):
        nutpie.sample(density(), draws=1, tune=1, chains=0)


def test_interrupts_end_the_chains(package, monkeypatch):
    library = nutpie._library()
    monkeypatch.setattr(library.Sampler, "is_broken", True)
    with pytest.raises(KeyboardInterrupt):
        nutpie.sample(density(), seed=4)
    assert library.Sampler.last == ["waits", "aborts"]


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "nutpie._lib", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LibraryError, match="needs the package nutpie"):
        nutpie.sample(density())


@pytest.mark.skipif(importlib.util.find_spec("nutpie") is None, reason="needs nutpie")
def test_nutpie_itself_in_a_process_without_its_package():
    code = """
import sys
import numpy as np
from funcgrad.interop import nutpie
from tests.interop.test_nutpie import density
found = nutpie.sample(density(), draws=2000, seed=1)
assert "nutpie" not in sys.modules and "pandas" not in sys.modules and "arviz" not in sys.modules
x, y = np.linspace(-6, 6, 301), np.linspace(-6, 4, 301)
weights = np.exp(density().batch(np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)))
mean = weights @ np.stack(np.meshgrid(x, y), -1).reshape(-1, 2) / weights.sum()
assert np.abs(found.vectors.mean((0, 1)) - mean).max() < 0.06, (found.vectors.mean((0, 1)), mean)
import nutpie as package
assert package._lib is sys.modules["nutpie._lib"] and package.sample
"""
    subprocess.run([sys.executable, "-c", code], check=True)
