"""Which functions of SciPy and scikit-learn differentiate, because they follow the array API.

With ``SCIPY_ARRAY_API=1`` SciPy asks its arguments for their namespace, and traced arrays answer
with `funcgrad.numpy`. ``python -m tests.array_api_of_libraries`` tries a function of every row
below under `vjp`, `jvp`, `vmap` and `jit`, with finite differences of the function itself on
NumPy's arrays as the reference, and prints the table of `docs/array_api.md`; ``--write`` puts it
there.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp

PAGE = Path(__file__).parent.parent / "docs" / "array_api.md"
START, END = "<!-- table: begin -->", "<!-- table: end -->"

X = np.array([0.3, 0.7, 0.45, 0.62, 0.81, 0.24, 0.55, 0.9])
Y = np.array([0.5, 0.2, 0.8, 0.33, 0.61, 0.95, 0.12, 0.4])
M = X[:4].reshape(2, 2) + 2 * np.eye(2)

Call = Callable[[Any, Any], Any]
"""Of a module and of an array."""


def plain(name: str, *others: Any, **options: Any) -> Call:
    """A function of the array, with known further arguments."""
    return lambda module, x: getattr(module, name)(x, *others, **options)


def after(order: Any, name: str) -> Call:
    """A function whose first argument is known."""
    return lambda module, x: getattr(module, name)(order, x)


def with_known(name: str, *others: Any, **options: Any) -> Call:
    """A function of several arrays, of which the others are made traced too."""
    return lambda module, x: getattr(module, name)(x, *(x * 0 + o for o in others), **options)


SPECIAL = (
    "betainc betaincc", "entr erf erfc exp1 expit gammaln i0 i0e i1 i1e log_ndtr logit ndtr ndtri "
    "psi gamma digamma", "gammainc gammaincc rel_entr xlogy kl_div chdtr chdtrc stdtr stdtrit "
    "xlog1py",
)  # fmt: skip
ROWS: dict[str, dict[str, tuple[Call, Any]]] = {
    "scipy.special": {
        **{n: (plain(n), X) for n in SPECIAL[1].split()},
        **{n: (with_known(n, Y), X) for n in SPECIAL[2].split()},
        **{n: (with_known(n, Y, Y), X) for n in SPECIAL[0].split()},
        "logsumexp": (plain("logsumexp"), X),
        "softmax": (plain("softmax"), X),
        "log_softmax": (plain("log_softmax"), X),
        "poch": (with_known("poch", Y), X),
        "betaln": (with_known("betaln", Y), X),
        "beta": (with_known("beta", Y), X),
        "multigammaln": (plain("multigammaln", 1), X + 2),
        "jv": (after(1.5, "jv"), X),
        "hyp2f1": (lambda m, x: m.hyp2f1(1.0, 2.0, 3.0, x), X),
    },
    "scipy.stats": {
        **{
            n: (plain(n), X)
            for n in (
                "zscore", "skew", "kurtosis", "gmean", "hmean", "sem", "variation", "entropy",
                "tmean", "tvar", "tstd", "tsem", "tmin", "tmax", "circmean", "circvar", "circstd",
                "boxcox_llf", "kstat", "kstatvar", "iqr", "median_abs_deviation", "expectile",
                "describe", "skewtest", "kurtosistest", "normaltest", "jarque_bera", "rankdata",
                "gstd", "zmap", "mode",
            )
        },
        "moment": (plain("moment", 3), X),
        "pmean": (plain("pmean", 2.0), X),
        "boxcox_llf": (lambda m, x: m.boxcox_llf(0.5, x), X),
        "zmap": (with_known("zmap", Y), X),
        "kl entropy": (lambda m, x: m.entropy(x, x[::-1]), X),
        "pearsonr": (lambda m, x: m.pearsonr(x, x**2 + 0.1 * (x * 0 + Y)).statistic, X),
        "spearmanr": (lambda m, x: m.spearmanr(x, x**2).statistic, X),
        "ttest_1samp": (lambda m, x: m.ttest_1samp(x, 0.5).statistic, X),
        "ttest_1samp, p": (lambda m, x: m.ttest_1samp(x, 0.5).pvalue, X),
        "ttest_ind": (lambda m, x: m.ttest_ind(x, x[::-1] ** 2).statistic, X),
        "ttest_rel": (lambda m, x: m.ttest_rel(x, x**2).statistic, X),
        "bartlett": (lambda m, x: m.bartlett(x, x**2).statistic, X),
        "f_oneway": (lambda m, x: m.f_oneway(x, x**2).statistic, X),
        "chisquare": (lambda m, x: m.chisquare(x).statistic, X),
        "power_divergence": (lambda m, x: m.power_divergence(x, lambda_=0.5).statistic, X),
        "directional_stats": (
            lambda m, x: m.directional_stats(x.reshape((4, 2))).mean_direction, X
        ),
        "differential_entropy": (plain("differential_entropy"), X),
        "quantile": (plain("quantile", 0.3), X),
        "linregress": (lambda m, x: m.linregress(x, x**2).slope, X),
        "Normal.logpdf": (lambda m, x: m.Normal().logpdf(x), X),
        "norm.logpdf": (lambda m, x: m.norm.logpdf(x), X),
        "skew, p": (lambda m, x: m.skewtest(x).pvalue, X),
    },
    "scipy.signal": {
        "detrend": (plain("detrend"), X),
        "hilbert": (lambda m, x: abs(m.hilbert(x)), X),
        "convolve, fft": (lambda m, x: m.convolve(x, x, method="fft"), X),
        "fftconvolve": (lambda m, x: m.fftconvolve(x, x), X),
        "oaconvolve": (lambda m, x: m.oaconvolve(x, x[:3]), X),
        "correlate": (lambda m, x: m.correlate(x, x, method="direct"), X),
        "lfilter": (lambda m, x: m.lfilter([1.0], [1.0, 0.5], x), X),
        "sosfilt": (lambda m, x: m.sosfilt(np.array([[1.0, 0, 0, 1, 0.5, 0]]), x), X),
        "savgol_filter": (plain("savgol_filter", 3, 1), X),
        "resample": (plain("resample", 5), X),
        "welch": (lambda m, x: m.welch(x, nperseg=4)[1], X),
        "medfilt": (plain("medfilt", 3), X),
        "freqz": (lambda m, x: abs(m.freqz(x, worN=4)[1]), X),
        "sawtooth": (plain("sawtooth"), X),
        "gausspulse": (plain("gausspulse"), X),
        "windows.tukey times": (lambda m, x: x * m.windows.tukey(8), X),
    },
    "scipy.ndimage": {
        "gaussian_filter": (plain("gaussian_filter", 1.0), X),
        "map_coordinates": (lambda m, x: m.map_coordinates(x, np.array([[0.5, 2.5]]), order=1), X),
        "uniform_filter": (plain("uniform_filter", 3), X),
        "center_of_mass": (plain("center_of_mass"), X),
        "sum_labels": (plain("sum_labels"), X),
    },
    "scipy.linalg": {
        "det": (plain("det"), M),
        "inv": (plain("inv"), M),
        "solve": (lambda m, x: m.solve(x, x[0]), M),
        "expm": (plain("expm"), M),
        "cholesky": (lambda m, x: m.cholesky(x @ x.T), M),
        "norm": (plain("norm"), M),
        "svdvals": (plain("svdvals"), M),
        "block_diag": (lambda m, x: m.block_diag(x, x), M),
        "toeplitz": (plain("toeplitz"), X),
    },
    "scipy.fft": {
        "fft": (lambda m, x: abs(m.fft(x)), X),
        "ifft": (lambda m, x: abs(m.ifft(x)), X),
        "rfft": (lambda m, x: abs(m.rfft(x)), X),
        "irfft": (lambda m, x: m.irfft(m.rfft(x)), X),
        "fft2": (lambda m, x: abs(m.fft2(x)), M),
        "hfft": (plain("hfft"), X),
        "dct": (plain("dct"), X),
        "dst": (plain("dst"), X),
        "fftshift": (plain("fftshift"), X),
        "fht": (plain("fht", 0.1, 0.5), X),
    },
    "scipy.integrate": {
        "trapezoid": (plain("trapezoid"), X),
        "simpson": (plain("simpson"), X),
        "cumulative_trapezoid": (plain("cumulative_trapezoid"), X),
        "cumulative_simpson": (plain("cumulative_simpson"), X),
        "romb": (lambda m, x: m.romb(x[:5]), X),
    },
    "scipy.cluster.vq": {
        "whiten": (lambda m, x: m.whiten(x.reshape((4, 2))), X),
        "vq": (lambda m, x: m.vq(x.reshape((4, 2)), np.eye(2))[1], X),
        "py_vq": (lambda m, x: m.py_vq(x.reshape((4, 2)), x.reshape((4, 2))[:2])[1], X),
    },
    "scipy.spatial.transform": {
        "Rotation.from_rotvec": (lambda m, x: m.Rotation.from_rotvec(x[:3]).as_matrix(), X),
        "Rotation.apply": (lambda m, x: m.Rotation.from_quat(x[:4]).apply(x[4:7]), X),
        "Slerp": (lambda m, x: m.Rotation.from_euler("xyz", x[:3]).as_quat(), X),
    },
    "scipy.spatial.distance": {"cdist": (lambda m, x: m.cdist(x.reshape((4, 2)), np.eye(2)), X)},
    "scipy.interpolate": {
        "CubicSpline": (lambda m, x: m.CubicSpline(np.arange(8.0), np.sin(Y))(x), X),
        "make_interp_spline": (lambda m, x: m.make_interp_spline(np.arange(8.0), x)(2.5), X),
        "BarycentricInterpolator": (
            lambda m, x: m.BarycentricInterpolator(np.arange(3.0), Y[:3])(x), X
        ),
    },
    "scipy.optimize": {
        "rosen": (plain("rosen"), X),
        "rosen_der": (plain("rosen_der"), X),
    },
    "sklearn.metrics": {
        n: (lambda m, x, n=n: getattr(m, n)(x, x * 0 + Y), X)
        for n in (
            "mean_squared_error", "root_mean_squared_error", "mean_absolute_error", "r2_score",
            "explained_variance_score", "mean_squared_log_error", "mean_tweedie_deviance",
            "mean_gamma_deviance", "mean_poisson_deviance", "max_error", "mean_pinball_loss",
            "mean_absolute_percentage_error", "d2_tweedie_score", "median_absolute_error",
        )
    },
    "sklearn.metrics.pairwise": {
        n: (lambda m, x, n=n: getattr(m, n)(x.reshape((4, 2)), x.reshape((4, 2)) ** 2), X)
        for n in (
            "euclidean_distances", "cosine_similarity", "cosine_distances", "rbf_kernel",
            "polynomial_kernel", "sigmoid_kernel", "linear_kernel", "laplacian_kernel",
            "manhattan_distances", "chi2_kernel", "additive_chi2_kernel", "paired_cosine_distances",
            "paired_euclidean_distances", "pairwise_distances",
        )
    },
    "sklearn.preprocessing": {
        "scale": (lambda m, x: m.scale(x.reshape((4, 2))), X),
        "normalize": (lambda m, x: m.normalize(x.reshape((4, 2))), X),
        "minmax_scale": (lambda m, x: m.minmax_scale(x.reshape((4, 2))), X),
        **{
            n: (lambda m, x, n=n: getattr(m, n)().fit_transform(x.reshape((4, 2))), X)
            for n in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer",
                      "PolynomialFeatures", "KernelCenterer")
        },
    },
    "sklearn.decomposition": {
        "PCA": (lambda m, x: m.PCA(svd_solver="full").fit(x.reshape((4, 2))).explained_variance_, X)
    },
    "sklearn.linear_model": {
        "Ridge": (lambda m, x: m.Ridge(solver="svd").fit(x.reshape((4, 2)), x[:4]).coef_, X)
    },
}  # fmt: skip


def differences(function: Callable[[Any], Any], x: Any) -> Any:
    h = 1e-6
    steps = np.eye(x.size).reshape(x.size, *x.shape)
    return np.stack([(function(x + h * e) - function(x - h * e)) / (2 * h) for e in steps], -1)


def outcome(call: Call, module: Any, x: Any) -> str:
    """``""`` if everything is right, else what is not."""

    def function(x: Any) -> Any:
        found = call(module, x)
        is_one = isinstance(found, float) or hasattr(found, "shape")
        return found if is_one else sum(fnp.sum(part) for part in found)

    try:
        value = function(x)
        jacobian = differences(function, x)
        jacobian = jacobian.reshape(*jacobian.shape[:-1], *x.shape)
        for transform in (fg.jacrev, fg.jacfwd):
            got = transform(function)(x)
            if not np.allclose(got, jacobian, rtol=1e-4, atol=1e-5):
                return "a wrong derivative"
    except Exception as error:
        return type(error).__name__ + ": " + str(error).splitlines()[0]
    missing = []
    for name, run in (
        ("vmap", lambda: fg.vmap(function)(x[None])[0]),
        ("jit", lambda: fg.jit(function)(x)),
    ):
        try:
            if not np.allclose(run(), value, rtol=1e-8, atol=1e-10):
                return f"a wrong value under {name}"
        except Exception:
            missing.append(name)
    return f"without {' and '.join(missing)}" if missing else ""


def results() -> Iterator[tuple[str, str, str]]:
    """Module, function, and what is wrong with it."""
    for path, rows in ROWS.items():
        try:
            module = importlib.import_module(path)
        except ImportError:
            continue
        for name, (call, x) in rows.items():
            yield path, name, outcome(call, module, x)


def table() -> str:
    sklearn = importlib.import_module("sklearn")
    lines = [
        "| module | differentiates | only outside of `vmap` or `jit` | does not |",
        "|---|---|---|---|",
    ]
    found: dict[str, list[list[str]]] = {}
    with sklearn.config_context(array_api_dispatch=True):
        for path, name, problem in results():
            columns = found.setdefault(path, [[], [], []])
            partly = problem.startswith("without")
            columns[0 if not problem else 1 if partly else 2].append(f"`{name}`")
    for path, columns in found.items():
        cells = " | ".join(", ".join(sorted(c)) or "–" for c in columns)
        lines.append(f"| `{path}` | {cells} |")
    return "\n".join(lines)


def main() -> None:
    if os.environ.get("SCIPY_ARRAY_API") != "1":
        environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
        sys.exit(
            subprocess.call([sys.executable, "-m", __spec__.name, *sys.argv[1:]], env=environment)
        )
    warnings.simplefilter("ignore")
    if "--problems" in sys.argv:
        sklearn = importlib.import_module("sklearn")
        with sklearn.config_context(array_api_dispatch=True):
            for path, name, problem in results():
                print(f"{path}.{name}: {problem or 'ok'}")
        return
    text = table()
    print(text)
    if "--write" in sys.argv:
        page = PAGE.read_text()
        before, rest = page.split(START)
        PAGE.write_text(f"{before}{START}\n{text}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
