"""The conventions where a derivative does not exist, or is infinite: the table of derivatives.md.

`KINKS` is the table. Every row is tested eagerly and compiled, forward and reverse, and the page
must have the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special as special

import funcgrad as fg

INF, NAN = np.inf, np.nan
PAGE = Path(__file__).parents[1] / "docs" / "derivatives.md"


@dataclass(frozen=True)
class Kink:
    """One row.

    Args:
        name: The function, as the page shows it.
        function: Of a number or of a vector.
        at: The point.
        first: The gradient.
        second: The Hessian, or ``None`` where it is not finite.
    """

    name: str
    function: Callable[[Any], Any]
    at: Any
    first: Any
    second: Any = None

    @property
    def row(self) -> str:
        """The line of the page."""
        second = "-" if self.second is None else shown(self.second)
        return f"| `{self.name}` | {shown(self.at)} | {shown(self.first)} | {second} |"

    @property
    def point(self) -> Any:
        return np.array(self.at, float) if np.ndim(self.at) else float(self.at)


def shown(x: Any) -> str:
    if np.ndim(x) == 2:
        return "0" if not np.any(x) else "; ".join(map(shown, x))
    if np.ndim(x) == 1:
        return ", ".join(map(shown, x))
    return f"{x:.6g}"


def of_two(function: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda z: function(z[0], z[1])


def zeros(n: int) -> Any:
    return np.zeros((n, n))


LN2 = np.log(2)
TIE = [[0.25, -0.25], [-0.25, 0.25]]

KINKS = [
    # Absolute values, signs, choices.
    Kink("abs(x)", np.abs, 0, 0, 0),
    Kink("sign(x)", np.sign, 0, 0, 0),
    Kink("floor(x)", np.floor, 1, 0, 0),
    Kink("remainder(x, 1)", lambda x: x % 1.0, 2, 1, 0),
    Kink("copysign(x, 1)", lambda x: np.copysign(x, 1.0), 0, 0, 0),
    Kink("heaviside(x, 0.5)", lambda x: np.heaviside(x, 0.5), 0, 0, 0),
    Kink("nn.relu(x)", fg.nn.relu, 0, 0, 0),
    Kink("nn.leaky_relu(x)", fg.nn.leaky_relu, 0, 1, 0),
    Kink("maximum(x, y)", of_two(np.maximum), [1, 1], [0.5, 0.5], zeros(2)),
    Kink("minimum(x, y)", of_two(np.minimum), [1, 1], [0.5, 0.5], zeros(2)),
    Kink("fmax(x, y)", of_two(np.fmax), [1, 1], [0.5, 0.5], zeros(2)),
    Kink("clip(x, 0, 1)", lambda x: np.clip(x, 0.0, 1.0), 0, 0.5, 0),
    Kink("clip(x, 0, 1)", lambda x: np.clip(x, 0.0, 1.0), 1, 0.5, 0),
    Kink("max(x)", np.max, [1, 1, 0], [0.5, 0.5, 0], zeros(3)),
    Kink("min(x)", np.min, [1, 1, 2], [0.5, 0.5, 0], zeros(3)),
    Kink("ptp(x)", np.ptp, [1, 1], [0, 0], zeros(2)),
    Kink(
        "maximum.accumulate(x)[-1]",
        lambda x: np.maximum.accumulate(x)[-1],
        [1, 1, 0],
        [0.5, 0.5, 0],
        zeros(3),
    ),
    Kink("sort(x)[-1]", lambda x: np.sort(x)[-1], [1, 1, 0], [0, 1, 0], zeros(3)),
    Kink("median(x)", np.median, [1, 1, 0], [1, 0, 0], zeros(3)),
    Kink("median(x)", np.median, [1, 1, 1, 1], [0, 0.5, 0.5, 0], zeros(4)),
    Kink("nan_to_num(x)", np.nan_to_num, NAN, 0, 0),
    # Lengths and angles at the origin.
    Kink("linalg.norm(x)", np.linalg.norm, [0, 0], [0, 0], zeros(2)),
    Kink("linalg.norm(x, 1)", lambda x: np.linalg.norm(x, 1), [0, 0], [0, 0], zeros(2)),
    Kink("linalg.norm(x, 3)", lambda x: np.linalg.norm(x, 3), [0, 0], [0, 0], zeros(2)),
    Kink("linalg.norm(x, 0.5)", lambda x: np.linalg.norm(x, 0.5), [0, 0], [0, 0], zeros(2)),
    Kink("linalg.norm(x, inf)", lambda x: np.linalg.norm(x, INF), [0, 0], [0, 0], zeros(2)),
    Kink("linalg.norm(x, -inf)", lambda x: np.linalg.norm(x, -INF), [0, 0], [0, 0], zeros(2)),
    Kink("linalg.norm(x, inf)", lambda x: np.linalg.norm(x, INF), [1, -1], [0.5, -0.5], zeros(2)),
    Kink("hypot(x, y)", of_two(np.hypot), [0, 0], [0, 0], zeros(2)),
    Kink("abs(x + 1j * y)", of_two(lambda x, y: np.abs(x + 1j * y)), [0, 0], [0, 0], zeros(2)),
    Kink("arctan2(y, x)", of_two(np.arctan2), [0, 0], [0, 0], zeros(2)),
    Kink("angle(x + 1j * y)", of_two(lambda x, y: np.angle(x + 1j * y)), [0, 0], [0, 0], zeros(2)),
    Kink("std(x)", np.std, [1, 1], [0, 0], zeros(2)),
    Kink("var(x)", np.var, [1, 1], [0, 0], [[0.5, -0.5], [-0.5, 0.5]]),
    Kink(
        "scipy.spatial.distance.euclidean(x, 0 * x)",
        lambda x: fg.scipy.spatial.distance.euclidean(x, 0 * x),
        [0, 0],
        [0, 0],
        zeros(2),
    ),
    # Infinite slopes are infinite.
    Kink("sqrt(x)", np.sqrt, 0, INF),
    Kink("cbrt(x)", np.cbrt, 0, INF),
    Kink("log(x)", np.log, 0, INF),
    Kink("log1p(x)", np.log1p, -1, INF),
    Kink("1 / x", lambda x: 1 / x, 0, -INF),
    Kink("arcsin(x)", np.arcsin, 1, INF),
    Kink("arccos(x)", np.arccos, 1, -INF),
    Kink("arctanh(x)", np.arctanh, 1, INF),
    Kink("scipy.special.erfinv(x)", special.erfinv, 1, INF),
    Kink("scipy.special.entr(x)", special.entr, 0, INF),
    # Powers.
    Kink("x**0", lambda x: x**0, 0, 0, 0),
    Kink("x**0.0", lambda x: x**0.0, 0, 0, 0),
    Kink("x**1", lambda x: x**1, 0, 1, 0),
    Kink("x**1.0", lambda x: x**1.0, 0, 1, 0),
    Kink("x**2.0", lambda x: x**2.0, 0, 0, 2),
    Kink("x**1.5", lambda x: x**1.5, 0, 0),
    Kink("x**0.5", lambda x: x**0.5, 0, INF),
    Kink("x**-1", lambda x: x**-1, 0, -INF),
    Kink("x**y", of_two(np.power), [0, 0], [0, 0]),
    Kink("x**y", of_two(np.power), [0, 1], [1, 0]),
    Kink("x**y", of_two(np.power), [0, 2], [0, 0], [[2, 0], [0, 0]]),
    Kink("x**y", of_two(np.power), [-2, 2], [-4, NAN]),
    Kink("x**y", of_two(np.power), [2, 0], [0, LN2], [[0, 0.5], [0.5, LN2**2]]),
    Kink("0.0**y", lambda y: np.power(0.0, y), 2, 0, 0),
    # Logarithms of sums, and products with logarithms.
    Kink("logaddexp(x, y)", of_two(np.logaddexp), [0, 0], [0.5, 0.5], TIE),
    Kink("logaddexp(x, y)", of_two(np.logaddexp), [-INF, 0], [0, 1], zeros(2)),
    Kink("logaddexp(x, y)", of_two(np.logaddexp), [-INF, -INF], [0, 0], zeros(2)),
    Kink("logaddexp(x, y)", of_two(np.logaddexp), [INF, INF], [0, 0], zeros(2)),
    Kink("scipy.special.logsumexp(x)", fg.scipy.special.logsumexp, [-INF, 0], [0, 1], zeros(2)),
    Kink("scipy.special.logsumexp(x)", fg.scipy.special.logsumexp, [-INF, -INF], [0, 0], zeros(2)),
    Kink(
        "nn.softmax(x)[1]",
        lambda x: fg.nn.softmax(x)[1],
        [-INF, 0, 0],
        [0, 0.25, -0.25],
        zeros(3),
    ),
    Kink(
        "nn.log_softmax(x)[1]",
        lambda x: fg.nn.log_softmax(x)[1],
        [-INF, 0, 0],
        [0, 0.5, -0.5],
        [[0, 0, 0], [0, -0.25, 0.25], [0, 0.25, -0.25]],
    ),
    Kink("scipy.special.xlogy(x, y)", of_two(special.xlogy), [0, 1], [0, 0], [[0, 1], [1, 0]]),
    Kink(
        "scipy.special.xlogy(x, y)", of_two(special.xlogy), [0, 2], [LN2, 0], [[0, 0.5], [0.5, 0]]
    ),
    Kink("scipy.special.xlogy(x, y)", of_two(special.xlogy), [0, 0], [-INF, 0]),
    Kink("scipy.special.xlog1py(x, y)", of_two(special.xlog1py), [0, -1], [-INF, 0]),
    Kink("scipy.special.rel_entr(x, y)", of_two(special.rel_entr), [0, 0], [0, 0], zeros(2)),
    Kink("scipy.special.rel_entr(x, y)", of_two(special.rel_entr), [0, 1], [-INF, 0]),
    Kink("scipy.special.kl_div(x, y)", of_two(special.kl_div), [0, 0], [0, 0], zeros(2)),
    # Removable singularities, and products with zeros: derivatives exist and are right.
    Kink("sinc(x)", np.sinc, 0, 0, -(np.pi**2) / 3),
    Kink("prod(x)", np.prod, [0, 3, 2], [6, 0, 0], [[0, 2, 3], [2, 0, 0], [3, 0, 0]]),
    Kink("prod(x)", np.prod, [0, 0, 2], [0, 0, 0], [[0, 2, 0], [2, 0, 0], [0, 0, 0]]),
    Kink(
        "cumprod(x)[-1]",
        lambda x: np.cumprod(x)[-1],
        [0, 3, 2],
        [6, 0, 0],
        [[0, 2, 3], [2, 0, 0], [3, 0, 0]],
    ),
]

every_kink = pytest.mark.parametrize("kink", KINKS, ids=[f"{k.name} {shown(k.at)}" for k in KINKS])


def quietly(function: Any) -> Any:
    """The functions themselves warn as NumPy's do, such as of the logarithm of 0."""

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return call


def directions(x: Any) -> Any:
    return np.eye(np.size(x)).reshape((-1, *np.shape(x)))


@pytest.mark.sampled(4, wrap=quietly)
@every_kink
@pytest.mark.parametrize("wrap", [quietly, fg.jit], ids=["eager", "compiled"])
def test_first(kink: Kink, wrap: Any) -> None:
    def forward(x: Any) -> Any:
        columns = [fg.jvp(kink.function, (x,), (v,))[1] for v in directions(kink.at)]
        return np.stack(columns).reshape(np.shape(kink.at))

    for way in (fg.grad(kink.function), forward):
        np.testing.assert_allclose(wrap(way)(kink.point), kink.first, 1e-12, 1e-15)


@pytest.mark.sampled(4, wrap=quietly)
@pytest.mark.parametrize(
    "kink",
    [k for k in KINKS if k.second is not None],
    ids=[f"{k.name} {shown(k.at)}" for k in KINKS if k.second is not None],
)
@pytest.mark.parametrize("wrap", [quietly, fg.jit], ids=["eager", "compiled"])
def test_second(kink: Kink, wrap: Any) -> None:
    for way in (fg.hessian(kink.function), fg.jacrev(fg.grad(kink.function))):
        np.testing.assert_allclose(wrap(way)(kink.point), kink.second, 1e-12, 1e-12)


def test_the_page_has_the_same_rows() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows == [kink.row for kink in KINKS]
