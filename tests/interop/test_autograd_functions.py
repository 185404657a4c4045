"""Functions of ``autograd.numpy`` and ``autograd.scipy`` have autograd's gradients."""

from __future__ import annotations

import importlib
import warnings

import numpy as onp
import pytest

import funcgrad.interop.autograd as ag
import funcgrad.interop.autograd.numpy as np

X = onp.array([0.3, 0.7, 1.2])
C = onp.array([[2.0, 0.3], [0.3, 1.0]])


def in_place(np, z):
    y = z * 1.0
    y += z
    y *= 2
    return np.sum(y**2)


def matrix(np, z):
    return np.diag(z) + np.outer(z, z)


NUMPY = {
    "array of numbers": lambda np, z: np.sum(np.array([[z[0], z[1]], [1.0, z[2]]]) ** 2),
    "sum of a list": lambda np, z: np.sum([z[0], z[1]]),
    "hstack": lambda np, z: np.sum(np.hstack([z, 1.0]) ** 2),
    "concatenate": lambda np, z: np.sum(np.concatenate(([z[0]], [z[1]])) ** 2),
    "append": lambda np, z: np.sum(np.append(z, z[0]) ** 2),
    "linspace": lambda np, z: np.sum(np.linspace(z[0], z[1], 5) ** 2),
    "full": lambda np, z: np.sum(np.full((2, 2), z[0]) ** 2),
    "vstack": lambda np, z: np.sum(np.vstack((z, z**2)) ** 2),
    "column_stack": lambda np, z: np.sum(np.column_stack([z, z]) ** 2),
    "tensordot": lambda np, z: np.tensordot(z, z, 1),
    "kron": lambda np, z: np.sum(np.kron(z, z) ** 2),
    "cross": lambda np, z: np.sum(np.cross(z, onp.ones(3)) ** 2),
    "inv": lambda np, z: np.sum(np.linalg.inv(np.diag(z) + 0.1)),
    "det": lambda np, z: np.linalg.det(np.diag(z) + 0.1),
    "solve": lambda np, z: np.sum(np.linalg.solve(np.diag(z) + 0.1, z)),
    "eigh": lambda np, z: np.linalg.eigh(matrix(np, z))[0][1],
    "cholesky": lambda np, z: np.sum(np.linalg.cholesky(matrix(np, z))),
    "norm": lambda np, z: np.linalg.norm(z),
    "pinv": lambda np, z: np.sum(np.linalg.pinv(np.stack([z, z**2]))),
    "sort": lambda np, z: np.dot(np.sort(z), onp.arange(3)),
    "partition": lambda np, z: np.partition(z, 1)[1],
    "cumsum": lambda np, z: np.sum(np.cumsum(z) ** 2),
    "tile": lambda np, z: np.sum(np.tile(z, (2, 2)) ** 2),
    "repeat": lambda np, z: np.sum(np.repeat(z, 2) ** 2),
    "roll": lambda np, z: np.dot(np.roll(z, 1), z),
    "pad": lambda np, z: np.sum(np.pad(z, 1, mode="constant") ** 2),
    "rot90": lambda np, z: np.sum(np.rot90(np.outer(z, z))[0] ** 2),
    "statistics": lambda np, z: np.std(z) + np.var(z, ddof=1) + np.prod(z) + np.mean(z),
    "logaddexp": lambda np, z: np.sum(np.logaddexp(z, 1.0)),
    "clip": lambda np, z: np.sum(np.clip(z, 0.4, 1.0) * z),
    "select": lambda np, z: np.sum(np.select([z > 1, z > 0.5], [z**2, z**3], 0.0)),
    "nan_to_num": lambda np, z: np.sum(np.nan_to_num(z) ** 2),
    "sinc": lambda np, z: np.sum(np.sinc(z)),
    "diff": lambda np, z: np.sum(np.diff(z) ** 2),
    "fft": lambda np, z: np.sum(np.abs(np.fft.ifft(np.fft.fft(z) ** 2)) ** 2),
    "where of one argument": lambda np, z: z[np.where(z > 0.5)[0]].sum(),
    "masks": lambda np, z: np.sum(z[z > 0.5] ** 2) + np.sum(z[~np.isnan(z)]),
    "lists of indices": lambda np, z: np.sum(z[[0, 0, 2]] ** 2),
    "float32": lambda np, z: np.sum(z.astype(np.float32)),
    "iteration": lambda np, z: sum(t * t for t in z),
    "mod": lambda np, z: np.sum(np.mod(z, 0.5) * z),
    "split": lambda np, z: np.sum(np.split(z, 3)[1] ** 2),
    "columns first": lambda np, z: np.sum(np.ravel(np.outer(z, z**2), order="F")[:4]),
    "triu": lambda np, z: np.sum(np.triu(np.outer(z, z))),
    "arctan2": lambda np, z: np.sum(np.arctan2(z, 1.0)),
    "branches": lambda np, z: np.sum(z) if np.any(z > 1) and np.allclose(z, z) else 0.0,
    "argmax": lambda np, z: z[np.argmax(z)] ** 2,
    "shapes": lambda np, z: np.sum(z) * z.shape[0] * np.shape(z)[0] * z.size * len(z) * z.ndim,
    "augmented assignment": in_place,
    "power": lambda np, z: np.sum(np.power(2.0, z) + z**z),
    "complex": lambda np, z: np.real(np.sum((z + 1j * z) ** 2)),
    "empty": lambda np, z: np.sum(z[3:]) + z[0],
}
STATS = {
    "norm": lambda s, np, z: np.sum(s.norm.logpdf(X, z[0], z[1]) + s.norm.pdf(z, 0.0, 1.5)),
    "norm tails": lambda s, np, z: np.sum(s.norm.logcdf(z, 0.2, 1.5) * s.norm.sf(z, 0.2, 1.5)),
    "t": lambda s, np, z: np.sum(s.t.logpdf(X, z[0], z[1], z[2]) + s.t.cdf(z, 3.0, 0.2, 1.5)),
    "beta": lambda s, np, z: np.sum(s.beta.logpdf(X / 2, z[0], z[1]) + s.beta.cdf(z / 2, 2.0, 3.0)),
    "chi2": lambda s, np, z: np.sum(s.chi2.logpdf(z, 3.0) + s.chi2.cdf(z, 3.0)),
    "gamma": lambda s, np, z: np.sum(s.gamma.logpdf(z, z[1]) + s.gamma.cdf(z, 2.0)),
    "poisson": lambda s, np, z: np.sum(s.poisson.logpmf(onp.array([1, 2, 3]), z)),
    "dirichlet": lambda s, np, z: s.dirichlet.logpdf(onp.array([0.2, 0.3, 0.5]), z),
    "normal of vectors": lambda s, np, z: np.sum(
        s.multivariate_normal.logpdf(onp.ones((4, 2)), z[:2], C * z[2])
    ),
    "entropy": lambda s, np, z: s.multivariate_normal.entropy(onp.zeros(2), C * z[0]),
}


def rotation(np):
    return lambda y, t, a, b: np.array([y[1] * a, -y[0] * b])


TIMES = onp.linspace(0, 1, 5)
INTEGRATE = {
    "odeint": lambda s, np, z: np.sum(s.odeint(rotation(np), z[:2], TIMES, (1.0, 2.0)) ** 2),
    "odeint options": lambda s, np, z: np.sum(
        s.odeint(rotation(np), z[:2], TIMES, (1.0, 2.0), rtol=1e-9, atol=1e-9) ** 2
    ),
}
SPECIAL = {
    name: lambda s, np, z, name=name: np.sum(getattr(s, name)(z * 0.5))
    for name in (
        "gamma", "gammaln", "psi", "digamma", "rgamma", "j0", "j1", "y0", "y1", "i0", "i1", "erf",
        "erfc", "erfinv", "erfcinv", "logit", "expit",
    )
} | {
    "polygamma": lambda s, np, z: np.sum(s.polygamma(2, z)),
    "beta": lambda s, np, z: np.sum(s.beta(z, z[1]) + s.betaln(z[0], z)),
    "incomplete": lambda s, np, z: np.sum(s.betainc(2.0, 3.0, z / 2) * s.gammainc(2.0, z)),
    "multigammaln": lambda s, np, z: np.sum(s.multigammaln(z + 2, 2)),
    "logsumexp": lambda s, np, z: s.logsumexp(z, b=onp.array([1.0, 2.0, 0.5])),
}  # fmt: skip
SCIPY = [
    *(("special", name) for name in SPECIAL),
    *(("stats", name) for name in STATS),
    *(("integrate", name) for name in INTEGRATE),
]
TABLES = {"special": SPECIAL, "stats": STATS, "integrate": INTEGRATE}


def compare(ours, theirs):
    original = pytest.importorskip("autograd")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = original.grad(theirs)(X)
    onp.testing.assert_allclose(ag.grad(ours)(X), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", NUMPY)
def test_numpy(name):
    their_numpy = pytest.importorskip("autograd.numpy")
    f = NUMPY[name]
    compare(lambda z: f(np, z), lambda z: f(their_numpy, z))


@pytest.mark.parametrize(("module", "name"), SCIPY)
def test_scipy(module, name):
    pytest.importorskip(f"funcgrad.scipy.{module}")
    their_numpy = pytest.importorskip("autograd.numpy")
    theirs = importlib.import_module(f"autograd.scipy.{module}")
    ours = importlib.import_module(f"funcgrad.interop.autograd.scipy.{module}")
    f = TABLES[module][name]
    compare(lambda z: f(ours, np, z), lambda z: f(theirs, their_numpy, z))
