"""Distributions as functions: SciPy's values, derivatives, transformations, arguments, messages."""

from __future__ import annotations

import inspect
import pickle
import re

import numpy as np
import pytest
import scipy.stats

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.scipy import stats
from funcgrad.scipy.stats.families import Distribution
from funcgrad.testing import check_grads
from tests.scipy.stats.cases import CONTINUOUS, DISCRETE

LAST = {name: choices[0] for name, choices in {**CONTINUOUS, **DISCRETE}.items()}
Q = np.array([0.1, 0.35, 0.8])
ALL = (*CONTINUOUS, *DISCRETE)
SAMPLE = ("norm", "gamma", "t", "beta", "truncnorm", "binom", "poisson")
# Every law on every row at night; in every run on some, whose formulas are the most involved.
SOME = [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.nightly) for name in ALL]
SCIPYS_ARE_WRONG = [("truncnorm", x) for x in ((-1e-3, 2e-3), (40.0, 41.0), (-60.0, -45.0))]
"""Its moments have few digits, or none: they are differences of large numbers, as ours are."""
NO_MOMENTS = {"vonmises": "vsk", "wrapcauchy": "k"}


def numbers(name):
    return getattr(scipy.stats, name).ppf(Q, *LAST[name])


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", ALL)
def test_summaries_are_scipys(name):
    ours, reference = getattr(stats, name), getattr(scipy.stats, name)
    places = {"loc": 0.5, "scale": 2.0} if name in CONTINUOUS else {"loc": 2}
    for parameters in {**CONTINUOUS, **DISCRETE}[name]:
        if (name, parameters) in SCIPYS_ARE_WRONG:
            continue
        expected = reference.entropy(*parameters, **places)
        np.testing.assert_allclose(ours.entropy(*parameters, **places), expected, 1e-9, 1e-9)
        for letter in "mvsk":
            if letter in NO_MOMENTS.get(name, ""):
                continue
            expected = reference.stats(*parameters, moments=letter, **places)
            actual = ours.stats(*parameters, moments=letter, **places)
            np.testing.assert_allclose(actual, expected, 1e-8, 1e-10, err_msg=letter)
        np.testing.assert_allclose(
            ours.median(*parameters, **places), reference.median(*parameters, **places), 1e-12
        )
        np.testing.assert_allclose(
            ours.support(*parameters, **places), reference.support(*parameters, **places)
        )


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_derivatives(name):
    ours, x, parameters = getattr(stats, name), numbers(name), LAST[name]
    for method in ("logpdf", "pdf"):
        function = getattr(ours, method)
        check_grads(
            lambda x, s, *p, function=function: function(x, *p, loc=0.1 * s, scale=s),
            (1.1 * x + 0.11, 1.1, *parameters),
            order=2 if method == "logpdf" else 1,
            rtol=1e-4,
        )
    for method in ("cdf", "sf", "logcdf", "logsf"):
        check_grads(getattr(ours, method), (x, *parameters), order=1, rtol=1e-4)
    for method in ("ppf", "isf"):
        check_grads(getattr(ours, method), (Q, *parameters), order=1, rtol=1e-4)
    if parameters:
        check_grads(ours.entropy, parameters, order=1, rtol=1e-4)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["binom", "bernoulli", "nbinom", "geom", "poisson", "betabinom"])
def test_derivatives_in_the_parameters_of_integers(name):
    ours, k, parameters = getattr(stats, name), numbers(name), LAST[name]
    k = k[:2]  # of the last one of a bounded support nothing is above
    fixed = 1 if name in ("binom", "betabinom") else 0
    moving = parameters[fixed:]
    for method in ("logpmf", "pmf", "cdf", "logsf"):
        function = getattr(ours, method)
        check_grads(
            lambda *p, function=function: function(k, *parameters[:fixed], *p),
            moving,
            order=2 if method == "logpmf" else 1,
            rtol=1e-4,
        )
    slopes = fg.grad(lambda k: ours.logpmf(k, *parameters).sum())(k)
    np.testing.assert_array_equal(slopes, 0)
    assert fg.grad(lambda q: ours.ppf(q, *parameters))(0.3) == 0


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", SOME)
def test_beyond_the_support_and_at_its_ends(name):
    ours, parameters = getattr(stats, name), LAST[name]
    low, high = (float(v) for v in scipy.stats.__dict__[name].support(*parameters))
    x = np.array([-np.inf, low - 1, low, high, high + 1, np.inf])
    method = "pdf" if name in CONTINUOUS else "pmf"
    beyond = (x < low) | (x > high) | np.isinf(x)
    density = getattr(ours, method)(x, *parameters)
    np.testing.assert_array_equal(density[beyond], 0)
    np.testing.assert_array_equal(getattr(ours, "log" + method)(x, *parameters)[beyond], -np.inf)
    np.testing.assert_array_equal(ours.cdf(x, *parameters)[[0, -1]], [0, 1])
    np.testing.assert_array_equal(ours.sf(x, *parameters)[[0, -1]], [1, 0])
    for function in (method, "log" + method, "cdf", "sf", "logcdf", "logsf"):
        for place in x:
            arguments = (place, *map(float, parameters))
            slopes = fg.grad(getattr(ours, function), range(len(arguments)))(*arguments)
            assert np.isfinite(slopes).all(), (function, place, slopes)
    assert np.isnan(getattr(ours, method)(np.nan, *parameters))
    np.testing.assert_array_equal(np.isnan(ours.ppf([-0.1, 1.1, np.nan], *parameters)), True)
    ends = [low if name in CONTINUOUS else low - 1, high]
    np.testing.assert_array_equal(ours.ppf([0, 1], *parameters), ends)
    np.testing.assert_array_equal(ours.isf([1, 0], *parameters), ends)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SOME)
def test_mapped_single_precision_and_empty(name):
    ours, x, parameters = getattr(stats, name), numbers(name), LAST[name]
    method = "logpdf" if name in CONTINUOUS else "logpmf"
    function = getattr(ours, method)
    mapped = fg.vmap(lambda v: function(v, *parameters))(x)
    np.testing.assert_allclose(mapped, function(x, *parameters), 1e-14)
    single = [np.float32(v) for v in parameters]
    for f, argument in ((method, x), ("cdf", x), ("sf", x), ("ppf", Q)):
        narrow = getattr(ours, f)(np.asarray(argument, np.float32), *single)
        assert narrow.dtype == np.float32
        wide = getattr(ours, f)(np.asarray(argument, np.float32).astype(float), *map(float, single))
        np.testing.assert_allclose(narrow, wide, 2e-4, 2e-6)
        assert getattr(ours, f)(np.zeros((0, 2)), *parameters).shape == (0, 2)
        assert np.ndim(getattr(ours, f)(argument[1], *parameters)) == 0


def compiled(name):
    ours, x, parameters = getattr(stats, name), numbers(name), LAST[name]
    methods = ("logpdf", "cdf", "ppf") if name in CONTINUOUS else ("logpmf", "sf", "ppf")
    for method in methods:
        function = getattr(ours, method)
        argument = Q if method == "ppf" else x
        actual = fg.jit(lambda v, *p, function=function: function(v, *p))(argument, *parameters)
        np.testing.assert_allclose(actual, function(argument, *parameters), 1e-12)


@pytest.mark.parametrize("name", ["norm", "gamma", "poisson"])
def test_compiled(name):
    compiled(name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(set(ALL) - {"norm", "gamma", "poisson"}))
def test_all_compiled(name):
    compiled(name)


AUTOGRADS = {
    "beta": (("cdf", "logpdf", "pdf"), (2.0, 3.0)),
    "chi2": (("cdf", "logpdf", "pdf"), (4.0,)),
    "gamma": (("cdf", "logpdf", "pdf"), (2.5,)),
    "norm": (("cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"), (0.3, 1.2)),
    "poisson": (("cdf", "logpmf", "pmf"), (3.3,)),
    "t": (("cdf", "logcdf", "logpdf", "pdf"), (3.5, 0.2, 1.3)),
}


@pytest.mark.parametrize("name", AUTOGRADS)
def test_what_autograd_has(name):
    methods, parameters = AUTOGRADS[name]
    x = getattr(scipy.stats, name).ppf(0.4, *parameters)
    for method in methods:
        function = getattr(getattr(stats, name), method)
        expected = getattr(getattr(scipy.stats, name), method)(x, *parameters)
        np.testing.assert_allclose(function(x, *parameters), expected, 1e-12)
        check_grads(lambda *p, function=function: function(x, *p), parameters, order=1)


def test_frozen_distributions():
    frozen = stats.norm(1.0, scale=2.0)
    np.testing.assert_allclose(frozen.pdf(0.5), scipy.stats.norm(1, 2).pdf(0.5), 1e-15)
    np.testing.assert_allclose(frozen.interval(0.9), scipy.stats.norm(1, 2).interval(0.9), 1e-14)
    np.testing.assert_allclose(frozen.moment(4), scipy.stats.norm(1, 2).moment(4), 1e-14)
    assert fg.grad(lambda m: stats.norm(m).logpdf(0.5))(1.0) == -0.5
    assert repr(stats.gamma) == "<distribution gamma(a, loc, scale)>"


def test_parameters_that_are_none():
    assert np.isnan(stats.norm.pdf(0.0, scale=-1.0))
    np.testing.assert_array_equal(np.isnan(stats.gamma.cdf(1.0, [-1.0, 0.0, 1.0])), [1, 1, 0])
    assert np.isnan(stats.binom.pmf(1, 2.5, 0.5))
    assert np.isnan(stats.truncnorm.logpdf(0.0, 1.0, -1.0))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: stats.gamma.pdf(1.0), ArgumentError, r"gamma.pdf needs the parameters a\."),
        (lambda: stats.norm.cdf(1.0, 0, 1, 2), ArgumentError, "parameters loc, scale, got 3"),
        (lambda: stats.norm.cdf(1.0, mu=2), ArgumentError, "no parameter 'mu': it takes loc"),
        (lambda: stats.norm.cdf(1.0, 0, loc=2), ArgumentError, "two values for 'loc'"),
        (lambda: stats.norm.logpdf(1j), DtypeError, "norm.logpdf needs real numbers"),
        (lambda: stats.norm.rvs(size=3), ArgumentError, "explicit keys"),
        (lambda: stats.norm.fit([1.0]), ArgumentError, "scipy.stats.norm.fit on known values"),
        (lambda: stats.norm.expect(np.sin), ArgumentError, "average over samples"),
        (lambda: stats.norm.stats(moments="x"), ArgumentError, "some of 'mvsk', got 'x'"),
        (lambda: stats.norm.moment(5), ArgumentError, "an int up to 4, got 5"),
        (lambda: stats.vonmises.var(1.0), ArgumentError, "has no stats"),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_scipys_own_distributions_take_known_values():
    expected = scipy.stats.skewnorm.pdf(0.3, 2.0)
    assert stats.skewnorm.pdf(0.3, 2.0) == expected
    with pytest.raises(fg.errors.ConcretizationTypeError, match=r"scipy.stats.skewnorm.pdf"):
        fg.grad(lambda x: stats.skewnorm.pdf(x, 2.0))(0.3)


def test_help_describes_every_parameter():
    families = [v for v in vars(fg.scipy.stats).values() if isinstance(v, Distribution)]
    assert len(families) > 30
    for family in families:
        rows = re.findall(r"^    (\w+): \w", inspect.getdoc(family), re.MULTILINE)
        assert rows == [*family.shapes, *family.placed], family.name


def test_distributions_travel_between_processes():
    for family in (stats.norm, stats.f, stats.t, stats.poisson):
        assert pickle.loads(pickle.dumps(family)) is family
    frozen = pickle.loads(pickle.dumps(stats.norm(1.0, scale=2.0)))
    assert frozen.logpdf(0.5) == stats.norm.logpdf(0.5, 1.0, 2.0)
