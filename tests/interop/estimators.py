"""Which functions of scikit-learn have derivatives: ``python -m tests.interop.estimators``.

Each is called with traced arrays under its dispatch to the array API, and the gradient is compared
with differences. What stops the others is the first line of the error.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
CLASSES = (X[:, 0] > 0).astype(float)
ROWS = """
preprocessing.StandardScaler().fit_transform(x) * X
preprocessing.MinMaxScaler().fit_transform(x) * X
preprocessing.MaxAbsScaler().fit_transform(x)
preprocessing.RobustScaler().fit_transform(x)
preprocessing.normalize(x)
preprocessing.PolynomialFeatures(2).fit_transform(x)
preprocessing.KernelCenterer().fit_transform(x @ x.T) * X[:, :1]
decomposition.PCA(2, svd_solver='full').fit_transform(x) ** 2
decomposition.PCA(2, svd_solver='covariance_eigh').fit_transform(x) ** 2
linear_model.Ridge(solver='svd').fit(x, x[:, 0] ** 2).coef_
linear_model.LinearRegression().fit(x, x[:, 0] ** 2).coef_
linear_model.LogisticRegression().fit(x, CLASSES).coef_
discriminant_analysis.LinearDiscriminantAnalysis().fit(x, CLASSES).transform(x) ** 2
naive_bayes.GaussianNB().fit(x, CLASSES).predict_log_proba(x)
metrics.mean_squared_error(x, x ** 2)
metrics.mean_absolute_error(x, x ** 2)
metrics.mean_pinball_loss(x, x ** 2)
metrics.mean_tweedie_deviance(x[:, 0] ** 2 + 1, x[:, 1] ** 2 + 1, power=1)
metrics.r2_score(x, x ** 2)
metrics.explained_variance_score(x, x ** 2)
metrics.log_loss(CLASSES, 1 / (1 + np.exp(-x[:, 0])))
metrics.pairwise.euclidean_distances(x, x[:3] + 1)
metrics.pairwise.cosine_similarity(x, x[:3])
metrics.pairwise.linear_kernel(x, x[:3])
metrics.pairwise.polynomial_kernel(x, x[:3])
metrics.pairwise.rbf_kernel(x, x[:3])
metrics.pairwise.laplacian_kernel(x, x[:3])
metrics.pairwise.sigmoid_kernel(x, x[:3])
""".strip().splitlines()


def gradient_agrees(f: Callable[[Any], Any]) -> bool:
    """Whether the gradient is that of differences, in one direction."""
    direction, h = np.sin(np.arange(X.size)).reshape(X.shape), 1e-6
    difference = (np.sum(f(X + h * direction)) - np.sum(f(X - h * direction))) / (2 * h)
    slope = np.sum(fg.grad(lambda x: np.sum(f(x)))(X) * direction)
    return bool(abs(slope - difference) < 1e-4 * (1 + abs(difference)))


def main() -> None:
    os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is loaded
    warnings.simplefilter("ignore")
    sklearn = __import__("sklearn", fromlist=["metrics"])
    sklearn.set_config(array_api_dispatch=True)
    parts = {row.split(".")[0] for row in ROWS}
    names: dict[str, Any] = {"np": np, "X": X, "CLASSES": CLASSES}
    names |= {part: __import__(f"sklearn.{part}", fromlist=["x"]) for part in parts}
    names["metrics"].pairwise = __import__("sklearn.metrics.pairwise", fromlist=["x"])
    print("| function | derivative |\n|---|---|")
    for row in ROWS:
        try:
            answer = "yes" if gradient_agrees(eval(f"lambda x: {row}", names)) else "WRONG"
        except Exception as error:
            answer = f"no: {type(error).__name__}: {str(error).splitlines()[0][:90]}"
        print(f"| `{row}` | {answer} |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
