"""scipy.special: every name against SciPy, eagerly and transformed; sums of exponentials."""

from __future__ import annotations

import pickle

import mpmath
import numpy as np
import pytest
import scipy.special as reference
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad.errors import ArgumentError, ConcretizationTypeError, MissingRuleError
from funcgrad.primitives.special import SCIPY_UFUNCS
from funcgrad.scipy import special
from funcgrad.testing import check_grads

# Ranges in which all of them are smooth; the default is (0.2, 0.8).
RANGES = {"binom": (2.0, 3.0), "spence": (1.2, 1.8), "gamma": (1.0, 3.0)}
UFUNCS = sorted(name for name in SCIPY_UFUNCS if not name.startswith("_"))
FIRST_ORDER = {"betainc", "gammainc", "gammaincc", "gammaincinv", "gammainccinv"}


def arguments(name, dtype, shape=(3, 4)):
    rng = np.random.default_rng(len(name))
    low, high = RANGES.get(name, (0.2, 0.8))
    count = getattr(reference, name).nin
    return [rng.uniform(low, high, shape).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs_agree_with_scipy(name, dtype):
    args = arguments(name, dtype)
    ours, theirs = getattr(special, name), getattr(reference, name)
    expected = theirs(*args)
    actual = ours(*args)
    assert actual.dtype == expected.dtype == dtype
    # NumPy and SciPy differ by a unit of the last place where both have the function.
    rtol = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(actual, expected, rtol)
    np.testing.assert_array_equal(fg.vmap(ours)(*args), actual)
    shape = fg.eval_shape(ours, *args)
    assert (shape.shape, shape.dtype) == (expected.shape, expected.dtype)


@pytest.mark.parametrize("name", UFUNCS)
def test_derivatives_against_differences(name):
    args = arguments(name, np.float64, (3,))
    order = 1 if name in FIRST_ORDER else 2
    check_grads(getattr(special, name), tuple(args), order=order)


@pytest.mark.parametrize("name", UFUNCS)
def test_scipys_own_ufuncs_take_traced_values(name):
    args = arguments(name, np.float64)
    shape = fg.eval_shape(getattr(reference, name), *args)
    assert shape.shape == args[0].shape


def test_arguments_broadcast_and_promote():
    x = np.arange(1, 4, dtype=np.int32)
    np.testing.assert_array_equal(special.gammaln(x), reference.gammaln(x))
    np.testing.assert_array_equal(special.xlogy(x[:, None], x), reference.xlogy(x[:, None], x))
    assert special.erf(np.float32(1)).dtype == np.float32
    assert special.erf(1).dtype == np.float64
    assert special.xlogy(2.0, np.float32(1)).dtype == np.float32
    with pytest.raises(TypeError, match=r"xlogy\(x, y\) got 1"):
        special.xlogy(1.0)


def test_aliases_and_table():
    assert special.digamma is special.psi
    assert {n for n in SCIPY_UFUNCS if not n.startswith("_")} <= set(special.__all__)
    assert all(callable(getattr(special, name)) for name in special.__all__)


def test_functions_are_pickled_by_their_names():
    for name in special.__all__:
        function = getattr(special, name)
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_polygamma(n):
    x = np.array([0.3, 1.5, 20.0])
    np.testing.assert_allclose(special.polygamma(n, x), reference.polygamma(n, x), 1e-14)
    assert special.polygamma(n, np.float32(1.5)).dtype == np.float32
    slope = fg.vmap(fg.grad(lambda v: special.polygamma(n, v)))(x)
    np.testing.assert_allclose(slope, reference.polygamma(n + 1, x), 1e-13)


def test_zeta():
    q = np.array([0.5, 1.0, 7.0])
    np.testing.assert_allclose(special.zeta(2.5, q), reference.zeta(2.5, q), 1e-15)
    np.testing.assert_allclose(special.zeta(3.0), reference.zeta(3.0), 1e-15)
    np.testing.assert_allclose(fg.grad(special.zeta, 1)(2.5, 0.5), -2.5 * reference.zeta(3.5, 0.5))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("s", "q"), [(2.5, 0.5), (1.01, 3.0), (30.0, 0.2), (4.0, 90.0)])
def test_zeta_in_the_exponent(s, q):
    slope = fg.jit(fg.grad(special.zeta))(s, q)
    np.testing.assert_allclose(slope, float(mpmath.zeta(s, q, 1)), 1e-13)
    second = fg.grad(fg.grad(special.zeta))(s, q)
    np.testing.assert_allclose(second, float(mpmath.zeta(s, q, 2)), 1e-11)


@pytest.mark.parametrize(
    ("a", "b", "x"),
    [(0.5, 1.5, 2.0), (3.0, 0.7, -20.0), (2.0, 5.0, 300.0), (-1.5, 2.5, 4.0), (1.3, 2.8, -900.0),
     (2.0, 1.0, -800.0)],
)  # fmt: skip
def test_hyp1f1_in_its_parameters(a, b, x):
    found = fg.jit(fg.grad(special.hyp1f1, (0, 1, 2)))(a, b, x)
    with mpmath.workdps(60):
        at = [mpmath.mpf(v) for v in (a, b, x)]
        expected = [
            float(mpmath.diff(mpmath.hyp1f1, at, tuple(int(i == k) for i in range(3)), h=1e-20))
            for k in range(3)
        ]
    np.testing.assert_allclose(found, expected, 1e-12)
    if abs(x) < 10:
        check_grads(lambda x: fg.grad(special.hyp1f1, (0, 1))(a, b, x), (x,), order=1)
    with pytest.raises(MissingRuleError, match="complex"):
        fg.grad(lambda a: special.hyp1f1(a, b, 1j).real)(a)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_multigammaln(d):
    a = np.array([[2.5, 3.0], [7.1, 40.0]])
    np.testing.assert_allclose(special.multigammaln(a, d), reference.multigammaln(a, d), 1e-14)
    assert special.multigammaln(a.astype(np.float32), d).dtype == np.float32
    check_grads(lambda v: special.multigammaln(v, d), (a,), order=2)


def test_multigammaln_refuses_other_dimensions():
    for d in (0, 1.5):
        with pytest.raises(ArgumentError, match="positive integer"):
            special.multigammaln(3.0, d)


def test_factorial_and_comb():
    n = np.array([-2.0, 0, 1, 4.5, 10])
    np.testing.assert_allclose(special.factorial(n), reference.factorial(n), 1e-14)
    N, k = np.meshgrid(np.arange(-1, 7), np.arange(-1, 8))
    np.testing.assert_allclose(special.comb(N, k), reference.comb(N, k), 1e-14)
    N, k = np.meshgrid(np.arange(0, 6), np.arange(0, 5))
    np.testing.assert_allclose(
        special.comb(N, k, repetition=True), reference.comb(N, k, repetition=True), 1e-13
    )
    assert fg.grad(special.factorial)(-2.0) == 0
    np.testing.assert_allclose(fg.grad(special.factorial)(2.0), 2 * reference.psi(3.0))
    for call in (special.factorial, lambda n, **kw: special.comb(n, 2, **kw)):
        assert type(call(5, exact=True)) is int
        with pytest.raises(ConcretizationTypeError, match="needs known values, but got a traced"):
            fg.grad(lambda n, call=call: call(n, exact=True))(5.0)


X = np.random.default_rng(0).normal(size=(3, 4, 5))
AXES = [None, 0, -1, (0, 2)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("axis", AXES)
def test_softmax_and_log_softmax(axis, scale, dtype):
    x = (scale * X).astype(dtype)
    rtol = 1e-5 if dtype == "float32" else 1e-13
    for name in ("softmax", "log_softmax"):
        ours = getattr(special, name)(x, axis)
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, getattr(reference, name)(x, axis), rtol, 1e-30)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("axis", AXES)
def test_derivatives_of_sums_of_exponentials(name, axis):
    check_grads(lambda x: getattr(special, name)(x, axis), (X,), order=2)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES)
def test_logsumexp(axis, keepdims):
    b = np.abs(np.random.default_rng(1).normal(size=5))
    for factors in (None, b):
        np.testing.assert_allclose(
            special.logsumexp(1e3 * X, axis, factors, keepdims),
            reference.logsumexp(1e3 * X, axis, factors, keepdims),
            1e-14,
        )


def test_logsumexp_with_signs():
    b = np.random.default_rng(2).normal(size=5)
    ours = special.logsumexp(X, 1, b, return_sign=True)
    for a, e in zip(ours, reference.logsumexp(X, 1, b, return_sign=True), strict=True):
        np.testing.assert_allclose(a, e, 1e-12)
    assert np.isnan(special.logsumexp(np.zeros(2), b=np.array([1.0, -2.0])))
    z = X + 1j * X[::-1]
    np.testing.assert_allclose(special.logsumexp(z, 0), reference.logsumexp(z, 0), 1e-13)
    check_grads(lambda x, f: special.logsumexp(x, -1, f, return_sign=True)[0], (X, b), order=2)


def test_logsumexp_at_infinity():
    inf = np.inf
    rows = np.array([[-inf, -inf], [inf, 1.0], [inf, inf], [-inf, 2.0], [np.nan, 1.0]])
    expected = [-inf, inf, inf, 2.0, np.nan]
    np.testing.assert_array_equal(special.logsumexp(rows, 1), expected)
    assert special.logsumexp(np.zeros(0)) == -inf
    np.testing.assert_array_equal(fg.grad(special.logsumexp)(rows[3]), [0.0, 1.0])


def test_logsumexp_in_factors_that_are_zero():
    x, b = np.array([0.3, -0.2, 1e4]), np.array([1.0, 0.0, 0.0])
    assert special.logsumexp(x, b=b) == 0.3
    slope = fg.grad(lambda f: special.logsumexp(x[:2], b=f))(b[:2])
    np.testing.assert_allclose(slope, np.exp(x[:2] - 0.3), 1e-15)
    assert np.all(np.isfinite(fg.grad(lambda v: special.logsumexp(v, b=b))(x)))


@given(st.lists(st.floats(-700, 700), min_size=1, max_size=6), st.floats(-1e3, 1e3))
def test_shifting_all_exponents(values, shift):
    x = np.array(values)
    total = special.logsumexp(x)
    np.testing.assert_allclose(special.logsumexp(x + shift), total + shift, 1e-12, 1e-10)
    np.testing.assert_allclose(special.softmax(x + shift), special.softmax(x), 1e-9)
    np.testing.assert_allclose(np.sum(special.softmax(x)), 1.0, 1e-14)
    np.testing.assert_allclose(fg.grad(special.logsumexp)(x), special.softmax(x), 1e-12, 1e-300)


def test_logsumexp_against_mpmath():
    x = [-3.25, 0.5, 700.0, 699.0]
    with mpmath.workdps(40):
        expected = float(mpmath.log(sum(mpmath.exp(v) for v in x)))
    np.testing.assert_allclose(special.logsumexp(x), expected, 1e-15)


def test_logsumexp_of_chosen_elements():
    where = X > 0
    expected = reference.logsumexp(np.where(where, X, -np.inf), 1)
    np.testing.assert_allclose(special.logsumexp(X, 1, where=where), expected, 1e-14)


def test_softmax_of_nothing_and_of_integers():
    assert special.softmax(np.zeros((2, 0)), 1).shape == (2, 0)
    assert special.softmax(np.zeros(2, np.int64)).dtype == np.float64
    np.testing.assert_array_equal(special.softmax([0, 0]), [0.5, 0.5])


def test_softmax_is_made_of_five_steps():
    program = str(fg.make_jaxpr(lambda x: special.softmax(x, -1))(X))
    for operation in ("reduce_max", "stop_gradient", "sub", "exp", "reduce_sum", "div"):
        assert program.count(f" {operation}") == 1
