"""Derivatives of high order where formulas change over to limits and series, against mpmath."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.experimental import jet
from funcgrad.scipy import special
from funcgrad.scipy.spatial.transform import RigidTransform, Rotation

ORDER = 8
X = np.array([1.0, 0.0, 0.0])


def derivatives(f: Callable[[Any], Any], x: float, order: int) -> list[float]:
    found = []
    for _ in range(order + 1):
        found.append(float(f(x)))
        f = (lambda g: lambda x: fg.jvp(g, (x,), (1.0,))[1])(f)
    return found


def references(f: Callable[[Any], Any], x: float, order: int) -> list[float]:
    with mp.workdps(60):
        return [float(mp.diff(f, mp.mpf(x), n)) for n in range(order + 1)]


ELLIPTIC: dict[str, tuple[Any, Any, list[float]]] = {
    "elliprf": (
        lambda x: special.elliprf(x, 1.0, 2.0),
        lambda x: mp.elliprf(x, 1, 2),
        [1.0, 1.0001, 1.08, 1.12, 2.0],
    ),
    "elliprf of equals": (
        lambda x: special.elliprf(x, 1.0, 1.0),
        lambda x: mp.elliprf(x, 1, 1),
        [1.0, 1.000001, 1.01, 0.3, 1.9],
    ),
    "elliprd": (
        lambda x: special.elliprd(x, 1.0, 2.0),
        lambda x: mp.elliprd(x, 1, 2),
        [1.0, 2.0, 1.98, 2.3],
    ),
    "elliprd, last": (
        lambda x: special.elliprd(1.0, 1.0, x),
        lambda x: mp.elliprd(1, 1, x),
        [1.0, 1.01],
    ),
    "elliprj": (
        lambda x: special.elliprj(x, 0.3, 2.0, 1.0),
        lambda x: mp.elliprj(x, mp.mpf(0.3), 2, 1),
        [1.0, 1.00001, 1.4, 2.9, 3.1],
    ),
    "elliprj of equals": (
        lambda x: special.elliprj(x, 1.0, 1.0, 1.0),
        lambda x: mp.elliprj(x, 1, 1, 1),
        [1.0, 1.01],
    ),
    "elliprj, last": (
        lambda x: special.elliprj(0.5, 1.2, 2.0, x),
        lambda x: mp.elliprj(0.5, mp.mpf(1.2), 2, x),
        [0.5, 1.2, 2.00001],
    ),
    "elliprg": (lambda x: special.elliprg(x, 1.0, 1.0), lambda x: mp.elliprg(x, 1, 1), [1.0]),
    "elliprc": (lambda x: special.elliprc(x, 1.0), lambda x: mp.elliprc(x, 1), [1.0, 1.001]),
    "ellipk": (special.ellipk, mp.ellipk, [0.0, 1e-6, -0.08, 0.3]),
    "ellipe": (special.ellipe, mp.ellipe, [0.0, 1e-6, -0.08, 0.3]),
    "ellipkinc": (
        lambda m: special.ellipkinc(4.0, m),
        lambda m: mp.ellipf(mp.mpf(4), m),
        [0.0, 1e-4, 0.2],
    ),
    "ellipeinc": (
        lambda m: special.ellipeinc(0.8, m),
        lambda m: mp.ellipe(mp.mpf(0.8), m),
        [0.0, 1e-4, 0.2],
    ),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", ELLIPTIC)
def test_of_elliptic_integrals(name: str) -> None:
    ours, theirs, places = ELLIPTIC[name]
    for x in places:
        found = derivatives(ours, x, 4)
        np.testing.assert_allclose(found, references(theirs, x, 4), 1e-10)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["elliprd", "elliprj of equals"])
def test_no_order_is_the_last_one(name: str) -> None:
    ours, theirs, _ = ELLIPTIC[name]
    value, found = jet.jet(ours, (1.0,), ((1.0, *[0.0] * 8),))
    np.testing.assert_allclose([value, *found], references(theirs, 1.0, 9), 1e-13)


def test_backwards_and_compiled() -> None:
    third = fg.grad(fg.grad(fg.grad(special.ellipk)))
    for x in (0.0, 0.05):
        expected = references(mp.ellipk, x, 3)[3]
        np.testing.assert_allclose([third(x), fg.jit(third)(x)], expected, 1e-12)


def rotated(a: Any) -> Any:
    return Rotation.from_rotvec(a * X).as_quat()


def moved(a: Any) -> Any:
    """The translation of a screw: ``sin a / a`` along the second, ``(1 - cos a) / a`` along z."""
    return RigidTransform.from_exp_coords(fnp.concatenate([a * X, [0.0, 1.0, 0.0]])).translation


def chart(a: Any) -> Any:
    """What turns by the angle ``a`` and moves along the next axis, in its coordinates."""
    quaternion = fnp.stack([fnp.sin(a / 2), 0 * a, 0 * a, fnp.cos(a / 2)])
    made = RigidTransform.from_components(np.array([0.0, 1.0, 0.0]), Rotation(quaternion))
    return made.as_exp_coords()[4]


ROTATIONS: dict[str, tuple[Any, Any]] = {
    "sine": (lambda a: rotated(a)[0], lambda a: mp.sin(a / 2)),
    "cosine": (lambda a: rotated(a)[3], lambda a: mp.cos(a / 2)),
    "arc": (
        lambda a: Rotation(fnp.stack([a, 0 * a, 0 * a, 1 + 0 * a])).as_rotvec()[0],
        lambda a: 2 * mp.atan(a),
    ),
    "along": (lambda a: moved(a)[1], lambda a: mp.sinc(a)),
    "across": (lambda a: moved(a)[2], lambda a: (1 - mp.cos(a)) / a if a else mp.mpf(0)),
    "cotangent": (chart, lambda a: a / 2 * mp.cot(a / 2) if a else mp.mpf(1)),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", ROTATIONS)
def test_of_rotations(name: str) -> None:
    ours, theirs = ROTATIONS[name]
    for x in (0.0, 0.03, 0.11, 0.5, 1.9, 2.1):
        seeds = (1.0, *[0.0] * (ORDER - 1))
        value, found = jet.jet(ours, (x,), (seeds,))
        # At 0 the limits of the quotients are those of the derivatives beside it.
        expected = references(theirs, x or 1e-15, ORDER)
        np.testing.assert_allclose([value, *found], expected, 1e-7, 1e-9)
