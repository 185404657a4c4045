"""`scipy.spatial.distance` on arrays and traced values: distances of vectors, and of all pairs.

All metrics are one table of functions of differences along the last axis, so that one function
makes distances of two vectors, of rows of two matrices, and of pairs of rows of one. Where a
distance is 0, and has a kink, its derivative is taken to be 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.signatures import call_of, docstring, rows_of, with_dtype
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.host_functions import host_functions
from funcgrad.numpy.promotion import as_value, strong
from funcgrad.numpy.public_functions import present_results
from funcgrad.numpy.reducing import safe_sqrt
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy import special
from funcgrad.scipy.lines import floating

__all__ = [
    "braycurtis", "canberra", "cdist", "chebyshev", "cityblock", "correlation", "cosine", "dice",
    "directed_hausdorff", "euclidean", "hamming", "is_valid_dm", "is_valid_y", "jaccard",
    "jensenshannon", "mahalanobis", "minkowski", "num_obs_dm", "num_obs_y", "pdist",
    "rogerstanimoto", "russellrao", "seuclidean", "sokalsneath", "sqeuclidean", "squareform",
    "yule",
]  # fmt: skip

Metric = Callable[..., Any]

directed_hausdorff, is_valid_dm, is_valid_y, num_obs_dm, num_obs_y = host_functions(
    "scipy.spatial.distance", "directed_hausdorff is_valid_dm is_valid_y num_obs_dm num_obs_y"
).values()


def _total(x: Any, w: Any) -> Any:
    return fnp.sum(x if w is None else w * x, axis=-1)


def _quotient(a: Any, b: Any, at_zero: float = 0.0) -> Any:
    """``a / b``, or a number where ``b`` is 0."""
    return fnp.where(b == 0, at_zero, a / fnp.where(b == 0, 1.0, b))


def _sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    return _total(fnp.square(u - v), w)


def _euclidean(u: Any, v: Any, w: Any = None) -> Any:
    return safe_sqrt(_sqeuclidean(u, v, w))


def _seuclidean(u: Any, v: Any, V: Any) -> Any:
    return safe_sqrt(fnp.sum(fnp.square(u - v) / V, axis=-1))


def _mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    d = u - v
    return safe_sqrt(fnp.sum((d @ VI) * d, axis=-1))


def _cityblock(u: Any, v: Any, w: Any = None) -> Any:
    return _total(fnp.abs(u - v), w)


def _chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    size = fnp.abs(u - v)
    return fnp.max(size if w is None else (w > 0) * size, axis=-1)


def _minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    if isinstance(p, int | float):
        if p <= 0:
            raise ArgumentError(f"minkowski: p must be positive, got {p}.")
        known = {1: _cityblock, 2: _euclidean, math.inf: _chebyshev}.get(p)
        if known is not None:
            return known(u, v, w)
    size = fnp.abs(u - v)
    is_apart = size > 0
    powers = fnp.where(is_apart, fnp.power(fnp.where(is_apart, size, 1.0), p), 0.0)
    sums = _total(powers, w)
    return fnp.where(sums > 0, fnp.power(fnp.where(sums > 0, sums, 1.0), 1 / p), 0.0)


def _braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    return _total(fnp.abs(u - v), w) / _total(fnp.abs(u + v), w)


def _canberra(u: Any, v: Any, w: Any = None) -> Any:
    return _total(_quotient(fnp.abs(u - v), fnp.abs(u) + fnp.abs(v)), w)


def _correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    weights = None if w is None else w / fnp.sum(w)
    if centered:
        u, v = (x - _mean(x, weights)[..., None] for x in (u, v))
    both, own, other = _total(u * v, weights), _total(u * u, weights), _total(v * v, weights)
    return fnp.clip(1.0 - both / fnp.sqrt(own * other), 0.0, 2.0)


def _mean(x: Any, weights: Any) -> Any:
    return fnp.mean(x, axis=-1) if weights is None else _total(x, weights)


def _cosine(u: Any, v: Any, w: Any = None) -> Any:
    return _correlation(u, v, w, centered=False)


def _hamming(u: Any, v: Any, w: Any = None) -> Any:
    return _mean(1.0 * (u != v), None if w is None else w / fnp.sum(w))


# Of truth values: how many are true in both, in none, in one.


def _counts(u: Any, v: Any, w: Any) -> tuple[Any, Any, Any, Any]:
    """Both, the first alone, the second alone, none."""
    a, b = 1.0 * u, 1.0 * v
    return (
        _total(a * b, w), _total(a * (1 - b), w), _total((1 - a) * b, w),
        _total((1 - a) * (1 - b), w),
    )  # fmt: skip


def _yule(u: Any, v: Any, w: Any = None) -> Any:
    both, first, second, none = _counts(u, v, w)
    half = first * second
    return _quotient(2.0 * half, both * none + half)


def _jaccard(u: Any, v: Any, w: Any = None) -> Any:
    a, b = u != 0, v != 0
    return _quotient(_total(1.0 * (a != b), w), _total(1.0 * (a | b), w))


def _dice(u: Any, v: Any, w: Any = None) -> Any:
    both, first, second, _ = _counts(u, v, w)
    return (first + second) / (2.0 * both + first + second)


def _rogerstanimoto(u: Any, v: Any, w: Any = None) -> Any:
    both, first, second, none = _counts(u, v, w)
    return 2.0 * (first + second) / (both + none + 2.0 * (first + second))


def _russellrao(u: Any, v: Any, w: Any = None) -> Any:
    both = _total(1.0 * u * v, w)
    count = shape_of(u)[-1] if w is None else fnp.sum(w)
    return (count - both) / count


def _sokalsneath(u: Any, v: Any, w: Any = None) -> Any:
    both, first, second, _ = _counts(u, v, w)
    return 2.0 * (first + second) / (both + 2.0 * (first + second))


_METRICS: dict[str, Metric] = {
    metric.__name__.removeprefix("_"): metric
    for metric in (
        _braycurtis, _canberra, _chebyshev, _cityblock, _correlation, _cosine, _dice, _euclidean,
        _hamming, _jaccard, _mahalanobis, _minkowski, _rogerstanimoto, _russellrao, _seuclidean,
        _sokalsneath, _sqeuclidean, _yule,
    )
}  # fmt: skip

_ALIASES = {
    "cheb": "chebyshev", "cheby": "chebyshev", "chebychev": "chebyshev", "ch": "chebyshev",
    "cblock": "cityblock", "cb": "cityblock", "c": "cityblock", "co": "correlation",
    "cos": "cosine", "euclid": "euclidean", "eu": "euclidean", "e": "euclidean",
    "hamm": "hamming", "ha": "hamming", "h": "hamming", "matching": "hamming", "jacc": "jaccard",
    "ja": "jaccard", "j": "jaccard", "mahal": "mahalanobis", "mah": "mahalanobis",
    "mi": "minkowski", "m": "minkowski", "pnorm": "minkowski", "se": "seuclidean",
    "s": "seuclidean", "sqe": "sqeuclidean", "sqeuclid": "sqeuclidean", "manhattan": "cityblock",
}  # fmt: skip


def _vectors(function: str, *args: Any) -> list[Any]:
    values = floating(function, *args)
    for value in values:
        if len(shape_of(value)) != 1:
            raise ShapeError(f"{function} needs vectors, got {aval_of(value)}.")
    return values


_ROWS = rows_of("""
braycurtis | ``sum |u - v| / sum |u + v|``. | numbers -> 0.45454545454545453
canberra | ``sum |u - v| / (|u| + |v|)``, where elements that are both 0 add nothing.
    | numbers -> 0.9285714285714286
chebyshev | ``max |u - v|``. | numbers -> 3.0
cityblock | ``sum |u - v|``. | numbers -> 5.0
cosine | One less the cosine of the angle between two vectors. | numbers -> 0.002945514498418511
dice | Dice's dissimilarity of truth values. | truths -> 0.5
euclidean | ``sqrt(sum |u - v|**2)``. | numbers -> 3.605551275463989
hamming | The share of elements that differ. | truths -> 0.6666666666666666
jaccard | Of the elements that are not 0 in one of both, how many are 0 in the other.
    | truths -> 0.6666666666666666
rogerstanimoto | Rogers' and Tanimoto's dissimilarity of truth values. | truths -> 0.8
russellrao | Russell's and Rao's dissimilarity of truth values. | truths -> 0.6666666666666666
sokalsneath | Sokal's and Sneath's dissimilarity of truth values. | truths -> 0.8
sqeuclidean | ``sum |u - v|**2``. | numbers -> 13.0
yule | Yule's dissimilarity of truth values. | truths -> 2.0
""")
"""Distances that take weights: name | summary | arguments of the example -> what Python shows."""
_ARGUMENTS = {
    "numbers": "np.array([1.0, 2.0]), np.array([3.0, 5.0])",
    "truths": "np.array([True, False, True]), np.array([True, True, False])",
}


def _weighted(name: str, summary: str, shows: str) -> Metric:
    compute = _METRICS[name]

    def metric(u: Any, v: Any, w: Any = None) -> Any:
        if w is None:
            return compute(*_vectors(name, u, v))
        return compute(*_vectors(name, u, v, w))

    metric.__name__ = metric.__qualname__ = name
    meanings = {
        "u": "Vector.",
        "v": "Vector of the same length.",
        "w": "Weights of the elements, a vector; 1 by default.",
    }
    kind, _, shown = shows.partition(" -> ")
    shows = with_dtype(f"{_ARGUMENTS[kind]} -> {shown}")
    call = call_of(f"fg.scipy.spatial.distance.{name}", shows)
    notes = f"As `scipy.spatial.distance.{name}`."
    metric.__doc__ = docstring(summary, meanings, call, notes)
    return metric


(
    braycurtis, canberra, chebyshev, cityblock, cosine, dice, euclidean, hamming, jaccard,
    rogerstanimoto, russellrao, sokalsneath, sqeuclidean, yule,
) = (_weighted(*row) for row in _ROWS)  # fmt: skip


def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    """One less the correlation of two vectors, as `scipy.spatial.distance.correlation`.

    Args: centered: Whether means are taken off first.
    Returns: A number from 0 to 2.

    Example:
        >>> fg.scipy.spatial.distance.correlation(
        ...     np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 4.0])
        ... )
        np.float64(0.6726731646460113)
    """
    u, v = _vectors("correlation", u, v)
    return _correlation(u, v, None if w is None else as_value(w, "correlation"), centered)


def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    """Minkowski distance ``(sum |u - v|**p)**(1 / p)``.

    As `scipy.spatial.distance.minkowski`.

    Args: p: Positive; it may be traced.
    Returns: A number.
    Raises: ArgumentError: If ``p`` is not positive.

    Example:
        >>> print(fg.grad(fg.scipy.spatial.distance.minkowski)(np.array([3.0, 4.0]), np.zeros(2)))
        [0.6 0.8]
        >>> print(fg.grad(fg.scipy.spatial.distance.minkowski)(np.zeros(2), np.zeros(2)))
        [0. 0.]
    """
    u, v = _vectors("minkowski", u, v)
    return _minkowski(u, v, p, None if w is None else as_value(w, "minkowski"))


def seuclidean(u: Any, v: Any, V: Any) -> Any:
    """Euclidean distance over variances ``V``, as `scipy.spatial.distance.seuclidean`.

    Args: V: Variances of the coordinates.

    Example:
        >>> fg.scipy.spatial.distance.seuclidean(
        ...     np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.array([1.0, 4.0])
        ... )
        np.float64(2.5)
    """
    return _seuclidean(*_vectors("seuclidean", u, v, V))


def mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    """Mahalanobis distance ``sqrt((u - v) @ VI @ (u - v))``.

    As `scipy.spatial.distance.mahalanobis`.

    Args: VI: Inverse of the covariance matrix.

    Example:
        >>> fg.scipy.spatial.distance.mahalanobis(
        ...     np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.eye(2)
        ... )
        np.float64(3.605551275463989)
    """
    u, v = _vectors("mahalanobis", u, v)
    return _mahalanobis(u, v, as_value(VI, "mahalanobis"))


def jensenshannon(
    p: Any, q: Any, base: Any = None, *, axis: int = 0, keepdims: bool = False
) -> Any:
    """Jensen-Shannon distance of two distributions, which need no sum of 1.

    As `scipy.spatial.distance.jensenshannon`.

    Args:
        p: Array of numbers of at least 0.
        q: Array like it.
        base: Of the logarithm; e by default.
        axis: The axis along which they are distributions.

    Returns:
        The square root of the mean divergence from their mean; its derivative is 0 where it is 0.
    Example: fg.scipy.spatial.distance.jensenshannon(np.array([1.0, 2.0]), np.array([3.0, 5.0]))
        -> np.float64(0.030808744942414663)
    """
    p, q = floating("jensenshannon", p, q)
    p, q = (x / fnp.sum(x, axis=axis, keepdims=True) for x in (p, q))
    middle = (p + q) / 2
    divergence = special.rel_entr(p, middle) + special.rel_entr(q, middle)
    total = fnp.sum(divergence, axis=axis, keepdims=keepdims)
    scale = 2.0 if base is None else 2.0 * fnp.log(base)
    # Rounding may leave a sum of equal distributions below 0.
    return safe_sqrt(fnp.maximum(total, 0.0) / scale)


# All pairs.


def _metric_of(function: str, metric: Any, keywords: dict[str, Any]) -> tuple[str | None, Metric]:
    if callable(metric):
        name = next((n for n in _METRICS if globals()[n] is metric), None)
        if name is None:
            return None, metric
        metric = name
    name = _ALIASES.get(metric, metric)
    if name == "jensenshannon":
        return name, lambda u, v, base=None: jensenshannon(u, v, base, axis=-1)
    if name not in _METRICS:
        raise ArgumentError(
            f"{function}: metric must be a function or one of {', '.join(_METRICS)}, "
            f"jensenshannon, got {metric!r}."
        )
    return name, _METRICS[name]


def _distances(
    function: str, xa: Any, xb: Any, samples: Any, metric: Any, keywords: dict[str, Any]
) -> Any:
    """Distances of arrays whose last axes are vectors and whose others broadcast."""
    keywords = {k: v for k, v in keywords.items() if v is not None}
    name, compute = _metric_of(function, metric, keywords)
    if name is None:
        shape = np.broadcast_shapes(shape_of(xa)[:-1], shape_of(xb)[:-1])
        xa, xb = (fnp.broadcast_to(x, (*shape, shape_of(x)[-1])) for x in (xa, xb))
        pairs = [compute(xa[i], xb[i], **keywords) for i in np.ndindex(shape)]
        return fnp.reshape(fnp.stack(pairs), shape) if pairs else np.zeros(shape)
    if name == "seuclidean" and "V" not in keywords:
        keywords["V"] = fnp.var(samples, axis=0, ddof=1)
    if name == "mahalanobis" and "VI" not in keywords:
        keywords["VI"] = fnp.linalg.inv(fnp.atleast_2d(fnp.cov(samples.T))).T
    return compute(xa, xb, **keywords)


def _rows(function: str, *args: Any) -> list[Any]:
    values = floating(function, *args)
    for value in values:
        if len(shape_of(value)) != 2 or shape_of(value)[1] != shape_of(values[0])[1]:
            types = " and ".join(str(aval_of(v)) for v in values)
            raise ShapeError(f"{function} needs matrices of rows of one length, got {types}.")
    return values


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: None = None, **kwargs: Any) -> Any:
    """Distances of all rows of two matrices, as `scipy.spatial.distance.cdist`.

    Args:
        XA: ``(m, n)``.
        XB: ``(k, n)``.
        kwargs: Of the metric: ``p``, ``w``, ``V``, ``VI``.
    Returns: ``(m, k)``.

    Raises:
        ArgumentError: If there is no such metric.
        ShapeError: If rows have different lengths.

    Example:
        >>> from funcgrad.scipy.spatial import distance
        >>> print(distance.cdist(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]])))
        [[5. 1.]]
    """
    if out is not None:
        raise ArgumentError("cdist: results are new arrays; out must be None.")
    xa, xb = _rows("cdist", XA, XB)
    samples = fnp.concatenate([xa, xb], 0)
    return _distances("cdist", xa[:, None, :], xb[None, :, :], samples, metric, kwargs)


def pdist(X: Any, metric: Any = "euclidean", *, out: None = None, **kwargs: Any) -> Any:
    """Distances of all pairs of rows of a matrix, as `scipy.spatial.distance.pdist`.

    Args:
        X: ``(m, n)``.
        kwargs: Of the metric.
    Returns: ``(m * (m - 1) / 2,)``, for `squareform`.
    Raises: ArgumentError: If there is no such metric.
    Example: print(fg.scipy.spatial.distance.pdist(np.array([[0.0], [1.0], [3.0]]))) -> [1. 3. 2.]
    """
    if out is not None:
        raise ArgumentError("pdist: results are new arrays; out must be None.")
    (x,) = _rows("pdist", X)
    first, second = np.triu_indices(shape_of(x)[0], 1)
    return _distances("pdist", x[first], x[second], x, metric, kwargs)


def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """Matrix of distances from a vector, or back, as `scipy.spatial.distance.squareform`.

    Args:
        X: ``(m * (m - 1) / 2,)`` or ``(m, m)``.
        force: "tovector" or "tomatrix", for what ``X`` must not be already.
        checks: Whether a known matrix must be symmetric, with zeros in its diagonal.
    Returns: The other form.

    Raises:
        ArgumentError: If ``X`` has that form already, or is no matrix of distances.
        ShapeError: If there is no such form.
    Example: print(fg.scipy.spatial.distance.squareform(np.array([1.0, 3.0, 2.0])))
        -> [[0. 1. 3.]
            [1. 0. 2.]
            [3. 2. 0.]]
    """
    x = strong(as_value(X, "squareform"))
    shape = shape_of(x)
    is_vector = len(shape) == 1
    if force.lower() == ("tovector" if is_vector else "tomatrix"):
        raise ArgumentError(f"squareform: force={force!r}, but {aval_of(x)} has that form already.")
    if is_vector:
        n = math.ceil(math.sqrt(shape[0] * 2)) if shape[0] else 1
        if n * (n - 1) != shape[0] * 2:
            raise ShapeError(f"squareform: {aval_of(x)} is not a vector of all pairs.")
        first, second = np.triu_indices(n, 1)
        zeros = np.zeros((n, n), aval_of(x).dtype)
        return fnp.at(fnp.at(zeros)[first, second].set(x))[second, first].set(x)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ShapeError(f"squareform needs a vector or a square matrix, got {aval_of(x)}.")
    if checks and isinstance(x, np.ndarray):
        is_valid = np.all(np.diagonal(x) == 0) and np.array_equal(x, x.T)
        if not is_valid:
            raise ArgumentError("squareform: the matrix must be symmetric, with a diagonal of 0.")
    return x[np.triu_indices(shape[0], 1)]


present_results(__name__)
