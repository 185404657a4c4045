"""Statistics of samples: SciPy's values, derivatives, transformations, policies for nan."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.scipy import stats
from funcgrad.testing import check_grads

RNG = np.random.default_rng(1)
X = RNG.gamma(2.0, size=(7, 3)) + 0.1
Y = RNG.gamma(2.0, size=(7, 3)) + 0.1
C = RNG.integers(0, 4, (9, 3))
N = X.copy()
N[2, 1] = np.nan

# Name, arguments, keywords.
CASES = [
    ("moment",(X,),{"order": 3}),
    ("moment",(X,),{"order": [1,2,4],"axis": 1}),
    ("skew",(X,),{}),
    ("skew",(X,),{"bias": False,"axis": None}),
    ("kurtosis",(X,),{}),
    ("kurtosis",(X,),{"bias": False,"fisher": False}),
    ("sem",(X,),{}),
    ("variation",(X,),{"ddof": 1}),
    ("gmean",(X,),{}),
    ("gmean",(X,),{"weights": Y}),
    ("hmean",(X,),{}),
    ("pmean",(X,2.5),{}),
    ("pmean",(X,0),{}),
    ("zscore",(X,),{}),
    ("zscore",(X,),{"axis": None,"ddof": 1}),
    ("zmap",(X[0],Y),{}),
    ("gzscore",(X,),{}),
    ("gstd",(X,),{}),
    ("entropy",(X,),{}),
    ("entropy",(X,Y),{"base": 2,"axis": 1}),
    ("tmean",(X,(.5,3.)),{}),
    ("tvar",(X,(.5,3.)),{}),
    ("tstd",(X,(.5,None)),{}),
    ("tsem",(X,(.5,3.)),{}),
    ("tmin",(X,1.),{}),
    ("tmax",(X,2.),{}),
    ("trim_mean",(X,.2),{}),
    ("median_abs_deviation",(X,),{}),
    ("median_abs_deviation",(X,),{"scale": "normal","axis": None}),
    ("iqr",(X,),{}),
    ("iqr",(X,),{"axis": 0,"scale": "normal"}),
    ("kstat",(X,1),{}),
    ("kstat",(X,3),{"axis": 0}),
    ("kstat",(X,4),{"axis": 0}),
    ("kstat",(X,2),{}),
    ("kstatvar",(X,2),{"axis": 0}),
    ("kstatvar",(X,1),{}),
    ("circmean",(X,),{"axis": 0}),
    ("circvar",(X,),{}),
    ("circstd",(X,),{"high": 3,"low": 1,"axis": 1}),
    ("circstd",(X,),{"normalize": True}),
    ("pearsonr",(X,Y),{}),
    ("pearsonr",(X[:,0],Y[:,0]),{"alternative": "less"}),
    ("linregress",(X[:,0],Y[:,0]),{}),
    ("spearmanr",(X[:,0],Y[:,0]),{}),
    ("spearmanr",(X,),{}),
    ("rankdata",(C,),{}),
    ("rankdata",(C,"min"),{"axis": 0}),
    ("rankdata",(C,"max"),{"axis": 1}),
    ("rankdata",(C,"dense"),{"axis": 0}),
    ("rankdata",(C,"ordinal"),{"axis": 0}),
    ("rankdata",(N,),{"axis": 0}),
    ("mode",(C,),{}),
    ("mode",(C,),{"axis": None}),
    ("mode",(C,),{"axis": 1,"keepdims": True}),
    ("mode",(N,),{}),
    ("wasserstein_distance",(X[:,0],Y[:4,0]),{}),
    ("wasserstein_distance",(X[:,0],Y[:,0],Y[:,1],X[:,1]),{}),
    ("energy_distance",(X[:,0],Y[:4,0]),{}),
    ("boxcox",(X[:,0],.3),{}),
    ("boxcox",(X[:,0],0.),{}),
    ("boxcox_llf",(.4,X),{}),
    ("boxcox_llf",(0.,X),{}),
    ("boxcox_llf",(-.4,X),{"axis": None}),
    ("yeojohnson",(X[:,0]-1,.3),{}),
    ("yeojohnson_llf",(.3,X-1),{}),
    ("ttest_1samp",(X,1.),{}),
    ("ttest_rel",(X,Y),{}),
    ("ttest_ind",(X,Y[:5]),{}),
    ("ttest_ind",(X,Y[:5]),{"equal_var": False,"alternative": "less"}),
    ("f_oneway",(X,Y,Y[:4]+X[:4]),{}),
    ("chisquare",(X,),{}),
    ("power_divergence",(X,),{"lambda_": "log-likelihood"}),
    ("power_divergence",(X,),{"lambda_": "cressie-read"}),
    ("pointbiserialr",(X[:,0]>1.5,Y[:,0]),{}),
    *((name, (N,), {"nan_policy": "omit", "axis": 0}) for name in (
        "skew", "kurtosis", "sem", "variation", "gmean", "hmean", "gstd", "tmean", "tvar", "kstat",
        "circmean", "zscore",
    )),
]  # fmt: skip
IDS = [f"{name}-{i}" for i, (name, _, _) in enumerate(CASES)]
RANKS = ("rankdata", "mode", "spearmanr")


def parts(name, found):
    """The numbers of a result, as vectors."""
    if hasattr(found, "pvalue"):
        names = ("slope", "intercept", "rvalue", "stderr", "intercept_stderr", "statistic", "df")
        found = tuple(getattr(found, n) for n in (*names, "pvalue") if hasattr(found, n))
    if name.startswith("ttest") or isinstance(found, tuple):
        return [np.asarray(v, float).ravel() for v in found]
    return [np.ma.filled(np.ma.asarray(found, dtype=float), np.nan).ravel()]


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES, ids=IDS)
def test_values_are_scipys(name, args, kwargs):
    ours = getattr(stats, name)(*args, **kwargs)
    expected = getattr(scipy.stats, name)(*args, **kwargs)
    a, b = parts(name, ours), parts(name, expected)
    assert len(a) >= len(b)
    for mine, reference in zip(a, b, strict=False):
        np.testing.assert_allclose(mine, reference, 1e-11, 1e-12)
    if isinstance(expected, np.ndarray | np.generic):
        assert np.shape(ours) == np.shape(expected)


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [c for c in CASES if c[0] not in RANKS and not c[2].get("nan_policy")],
    ids=[i for i, c in zip(IDS, CASES, strict=True)
         if c[0] not in RANKS and not c[2].get("nan_policy")],
)  # fmt: skip
def test_derivatives_and_maps(name, args, kwargs):
    function = getattr(stats, name)
    moving = [i for i, v in enumerate(args) if isinstance(v, np.ndarray) and v.dtype == float]

    def along(*values):
        full = list(args)
        for i, v in zip(moving, values, strict=True):
            full[i] = v
        found = function(*full, **kwargs)
        # Probabilities are differentiated in the tests of distributions.
        return found[0] if isinstance(found, tuple) else found

    samples = tuple(args[i] for i in moving)
    check_grads(along, samples, order=1, rtol=1e-4)
    stacked = [np.stack([v, 1.1 * v]) for v in samples]
    mapped = fg.vmap(along)(*stacked)
    np.testing.assert_allclose(mapped[0], along(*samples), 1e-11)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["skew", "zscore", "gmean", "pearsonr", "rankdata", "mode"])
def test_compiled(name):
    function = getattr(stats, name)
    args = (X[:, 0], Y[:, 0]) if name == "pearsonr" else (X,)
    actual, expected = fg.jit(function)(*args), function(*args)
    for a, b in zip(fg.tree.leaves(actual), fg.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, 1e-12)


def test_describe_and_cuts():
    ours, reference = stats.describe(X), scipy.stats.describe(X)
    assert ours.nobs == reference.nobs
    np.testing.assert_allclose(ours.minmax, reference.minmax)
    for mine, theirs in zip(ours[2:], reference[2:], strict=True):
        np.testing.assert_allclose(mine, theirs, 1e-11)
    for name, cut in (("trimboth", 0.2), ("trim1", 0.3)):
        found = getattr(stats, name)(X, cut)
        expected = np.sort(getattr(scipy.stats, name)(X, cut), axis=0)
        np.testing.assert_allclose(found, expected)


def test_single_precision_empty_and_dtypes_of_ranks():
    for name in ("skew", "zscore", "gmean", "sem", "entropy", "circmean"):
        assert getattr(stats, name)(X.astype(np.float32)).dtype == np.float32
    assert stats.rankdata(C).dtype == np.float64
    assert stats.rankdata(C, "min").dtype == np.int64
    assert stats.rankdata([]).shape == (0,)
    assert stats.mode(C).mode.dtype == C.dtype
    assert stats.zscore(np.zeros((0, 3))).shape == (0, 3)


def test_samples_that_do_not_vary():
    level = np.full(4, 0.1)
    assert np.isnan(stats.skew(level))
    assert np.isnan(stats.zscore(level)).all()


def test_derivatives_in_exponents():
    for function in (stats.boxcox_llf, stats.yeojohnson_llf):
        for exponent in (0.3, -0.7, 1.4):
            check_grads(lambda lmb, f=function: f(lmb, X[:, 0]), (exponent,), order=2, rtol=1e-4)
    # At 0, where the formula changes, by its series.
    h = 1e-4
    slope = scipy.stats.boxcox(2.0 * np.ones(1), h) - scipy.stats.boxcox(2.0 * np.ones(1), -h)
    np.testing.assert_allclose(fg.grad(lambda e: stats.boxcox(2.0, e))(0.0), slope / (2 * h), 1e-6)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: stats.skew(X, nan_policy="drop"), ArgumentError, "'omit' or 'raise', got 'drop'"),
        (lambda: stats.skew(N, nan_policy="raise"), ArgumentError, "skew: the sample contains nan"),
        (
            lambda: fg.grad(lambda x: stats.sem(x, nan_policy="raise"))(X[:, 0]),
            ArgumentError,
            "needs known values",
        ),
        (lambda: stats.pearsonr(X[:, 0], Y[:4, 0]), ShapeError, "samples of equal size"),
        (lambda: stats.pearsonr(X, Y, alternative="up"), ArgumentError, "'two-sided', 'less'"),
        (lambda: stats.pearsonr(X, Y, method=1), ArgumentError, "resamples"),
        (lambda: stats.rankdata(X, "first"), ArgumentError, "got 'first'"),
        (lambda: stats.trim_mean(X, 0.6), ArgumentError, "leaves nothing"),
        (lambda: stats.trim1(X, 0.1, "up"), ArgumentError, "'left' or 'right', got 'up'"),
        (lambda: stats.trim_mean(N, 0.1, nan_policy="omit"), ArgumentError, "different sizes"),
        (lambda: stats.kstat(X, 5), ArgumentError, "n must be 1, 2, 3 or 4"),
        (lambda: stats.moment(X, 1.5), ArgumentError, "non-negative integer, got 1.5"),
        (lambda: stats.boxcox(X), ArgumentError, "give lmbda"),
        (lambda: stats.boxcox(N, 0.5, nan_policy="raise"), ArgumentError, "contains nan"),
        (lambda: stats.yeojohnson(N, 0.5, nan_policy="raise"), ArgumentError, "contains nan"),
        (lambda: stats.yeojohnson(X, 0.5, nan_policy="?"), ArgumentError, "'propagate', 'omit'"),
        (lambda: stats.entropy(X, base=-1), ArgumentError, "base must be positive"),
        (lambda: stats.iqr(X, scale="big"), ArgumentError, "a number or 'normal', got 'big'"),
        (lambda: stats.spearmanr(X[:, 0]), ShapeError, "two variables"),
        (lambda: stats.f_oneway(X), ArgumentError, "two samples at least"),
        (lambda: stats.power_divergence(X, lambda_="x"), ArgumentError, "got 'x'"),
        (lambda: stats.wasserstein_distance([1.0], [2.0], [1, 2]), ShapeError, "a weight for each"),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words):
        call()
