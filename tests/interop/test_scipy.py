"""Functions of SciPy take traced values while they are redirected, and are its own afterwards."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.spatial.distance
import scipy.spatial.transform
import scipy.special
import scipy.stats
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.errors import ArgumentError
from funcgrad.interop.scipy import install, uninstall

X = np.array([0.7, 1.3, 0.4, 2.1])
TIMES = np.arange(4.0)


@pytest.fixture
def redirected():
    install()
    yield
    uninstall()


PROGRAMS = {
    "linalg": lambda x: scipy.linalg.expm(x.reshape(2, 2)).sum(),
    "factors": lambda x: scipy.linalg.cho_solve(
        scipy.linalg.cho_factor(np.eye(4) + np.outer(x, x)), x
    ).sum(),
    "special": lambda x: scipy.special.logsumexp(x) + scipy.special.erf(x).sum(),
    "fft": lambda x: (np.abs(scipy.fft.rfft(x)) ** 2 * np.arange(3)).sum(),
    "signal": lambda x: (scipy.signal.lfilter(x[:2], [1.0, -x[2] / 2], x) ** 2).sum(),
    "ndimage": lambda x: (scipy.ndimage.gaussian_filter(x, 1.0) ** 2).sum(),
    "distance": lambda x: scipy.spatial.distance.pdist(x.reshape(2, 2)).sum(),
    "distribution": lambda x: scipy.stats.norm.logpdf(x, loc=x[0], scale=x[1]).sum(),
    "frozen": lambda x: scipy.stats.gamma(2.0, scale=x[0]).sf(1.0),
    "frozen, of known values": lambda x: scipy.stats.t(3.0).cdf(x).sum(),
    "vectors": lambda x: scipy.stats.multivariate_normal.logpdf(x[:2], x[2:], np.eye(2)),
    "spline": lambda x: scipy.interpolate.CubicSpline(TIMES, x)(1.5),
    "spline of known values": lambda x: scipy.interpolate.CubicSpline(TIMES, X)(x).sum(),
    "grid": lambda x: scipy.interpolate.RegularGridInterpolator((TIMES,), X)(x[:2, None]).sum(),
    "rotation": lambda x: scipy.spatial.transform.Rotation.from_rotvec(x[:3]).apply(x[1:]).sum(),
    "a function that closes": lambda x: scipy.integrate.quad(
        lambda s: np.exp(-x[0] * s) * scipy.integrate.quad(lambda r: r * x[1], 0.0, s)[0], 0.0, 1.0
    )[0],
    "root": lambda x: scipy.optimize.brentq(lambda s: s**3 - x[0] * s - x[1], 0.0, 5.0),
    "equation": lambda x: scipy.integrate.odeint(
        lambda y, t: -x[0] * y, x[1], TIMES, rtol=1e-10, atol=1e-10
    ).sum(),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_unmodified_programs_have_derivatives(name, redirected):
    f = PROGRAMS[name]
    step = 1e-5 * np.eye(4)
    differences = [(f(X + h) - f(X - h)) / 2e-5 for h in step]
    assert_allclose(fg.grad(f)(X), differences, rtol=2e-5, atol=1e-7)
    assert_allclose(fg.jit(f)(X), f(X), rtol=1e-7)


def test_known_values_are_still_computed_by_scipy(redirected):
    assert type(scipy.interpolate.CubicSpline(TIMES, X)).__module__.startswith("scipy.")
    assert type(scipy.stats.norm(0.0, 1.0)).__module__.startswith("scipy.")
    found = fg.grad(lambda x: x * scipy.linalg.norm(X))(1.0)
    assert found == scipy.linalg.norm.__wrapped__(X)


def test_classes_stay_classes(redirected):
    spline = scipy.interpolate.CubicSpline

    class Own(spline):
        pass

    assert isinstance(spline(TIMES, X), spline)
    assert isinstance(Own(TIMES, X), spline)
    assert issubclass(Own, scipy.interpolate.PPoly)
    assert fg.grad(lambda t: 1.0 * t * isinstance(spline(TIMES, t * X), spline))(1.0) == 1.0


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array"])
def test_classes_whose_counterpart_is_a_function_stay_classes(kind, redirected):
    made = getattr(scipy.sparse, kind)(np.eye(2))
    assert isinstance(made, getattr(scipy.sparse, kind))
    assert isinstance(made.T.asformat(kind[:3]), getattr(scipy.sparse, kind))
    assert not isinstance(X, getattr(scipy.sparse, kind))


def test_what_is_redirected_can_be_pickled(redirected):
    spline = scipy.interpolate.CubicSpline(TIMES, X)
    assert pickle.loads(pickle.dumps(spline))(0.5) == spline(0.5)
    for found in (scipy.linalg.expm, scipy.interpolate.CubicSpline, scipy.fft.fft):
        assert pickle.loads(pickle.dumps(found)) is found


def test_everything_of_scipy_comes_back():
    modules = (scipy.linalg, scipy.stats, scipy.interpolate, scipy.signal, scipy.optimize)
    owners = [*modules, type(scipy.stats.norm), scipy.interpolate.CubicSpline]
    before = [dict(vars(owner)) for owner in owners]
    install()
    install()
    assert inspect.signature(scipy.linalg.expm)
    uninstall()
    uninstall()
    assert [dict(vars(owner)) for owner in owners] == before


def test_what_another_library_replaced_is_not_taken_back(monkeypatch):
    install()
    with monkeypatch.context() as patch:
        patch.setattr(scipy.linalg, "expm", len)
        with pytest.raises(ArgumentError, match=r"scipy\.linalg\.expm of SciPy back: another lib"):
            uninstall()
    uninstall()


def test_a_script_runs_unchanged(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport numpy as np\n"
        "import funcgrad\n"
        "from scipy.special import logsumexp\n"
        "print(sys.argv[1:], funcgrad.grad(logsumexp)(np.ones(2)))\n"
    )
    command = [sys.executable, "-m", "funcgrad.interop.scipy", str(script), "a"]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert run.stdout == "['a'] [0.5 0.5]\n"
