"""Rigid transforms against SciPy, against mpmath's exponential, and their derivatives."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.spatial.transform import RigidTransform as Theirs
from scipy.spatial.transform import Rotation as TheirRotation

import funcgrad as fg
from funcgrad import errors
from funcgrad.scipy.spatial.transform import RigidTransform, Rotation
from funcgrad.testing import check_grads

RNG = np.random.default_rng(0)
COORDS = RNG.normal(size=(5, 6))
COORDS[0] = 0.0
COORDS[1, :3] *= 1e-2
COORDS[2, :3] *= 1e-8
MOVES = RNG.normal(size=(5, 3))
DUAL = RNG.normal(size=(4, 8))
WEIGHTS = np.arange(1.0, 6.0)
OURS = RigidTransform.from_exp_coords(COORDS)
REFERENCE = Theirs.from_exp_coords(COORDS)


def turned(kind: Any) -> Any:
    """The rotation of the library that transforms are of."""
    return (Rotation if kind is RigidTransform else TheirRotation).from_rotvec(MOVES)


@pytest.mark.parametrize(
    "make",
    [
        lambda kind, t: t,
        lambda kind, t: t.inv(),
        lambda kind, t: t * t[::-1],
        lambda kind, t: t[1] * t,
        lambda kind, t: t.mean(),
        lambda kind, t: t.mean(WEIGHTS),
        lambda kind, t: kind.concatenate([t, t[0]]),
        lambda kind, t: kind.from_matrix(t.as_matrix()),
        lambda kind, t: kind.from_dual_quat(DUAL),
        lambda kind, t: kind.from_dual_quat(DUAL, scalar_first=True),
        lambda kind, t: kind.from_translation(MOVES),
        lambda kind, t: kind.from_rotation(turned(kind)),
        lambda kind, t: kind.from_components(MOVES[0], turned(kind)),
        lambda kind, t: kind.identity(3),
        lambda kind, t: t[3] ** 2,
    ],
)
def test_transforms_are_scipy_s(make):
    ours, theirs = make(RigidTransform, OURS), make(Theirs, REFERENCE)
    assert ours.shape == theirs.shape
    assert ours.single == theirs.single
    np.testing.assert_allclose(ours.as_matrix(), theirs.as_matrix(), 1e-13, 1e-13)
    np.testing.assert_allclose(ours.translation, theirs.translation, 1e-13, 1e-13)
    for vectors, inverse in ((MOVES[0], False), (MOVES[1], True)):
        found, expected = (t.apply(vectors, inverse=inverse) for t in (ours, theirs))
        np.testing.assert_allclose(found, expected, 1e-13, 1e-13)
    for first in (False, True):
        found, expected = (t.as_dual_quat(scalar_first=first) for t in (ours, theirs))
        real = slice(0, 1) if first else slice(3, 4)
        signs = np.sign(found[..., real] * expected[..., real])
        np.testing.assert_allclose(found * signs, expected, 1e-13, 1e-13)


@pytest.mark.parametrize("coordinates", COORDS)
@pytest.mark.parametrize("power", [1, 0.3])
def test_coordinates_are_those_of_the_exponential(coordinates, power):
    with mpmath.workdps(40):
        x, y, z, *moves = (mpmath.mpf(float(c)) for c in coordinates)
        generator = mpmath.matrix(
            [[0, -z, y, moves[0]], [z, 0, -x, moves[1]], [-y, x, 0, moves[2]], [0, 0, 0, 0]]
        )
        exact = np.array(mpmath.expm(power * generator).tolist(), float)
    transform = RigidTransform.from_exp_coords(coordinates)
    np.testing.assert_allclose((transform**power).as_matrix(), exact, 1e-15, 5e-16)
    np.testing.assert_allclose(transform.as_exp_coords(), coordinates, 1e-15, 5e-16)


def test_derivatives_at_and_near_the_identity():
    def back(x: Any) -> Any:
        return RigidTransform.from_exp_coords(x).inv().as_exp_coords()

    for x in COORDS:
        np.testing.assert_allclose(fg.jacrev(back)(x), -np.eye(6), atol=1e-14)
        np.testing.assert_allclose(fg.jacfwd(back)(x), -np.eye(6), atol=1e-14)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", range(len(COORDS)))
def test_derivatives_of_compositions(row: int) -> None:
    def distance(x: Any, v: Any) -> Any:
        turned = RigidTransform.from_exp_coords(x) * RigidTransform.from_exp_coords(-x[::-1])
        return (turned.apply(v) ** 2).sum() + (turned.as_dual_quat() ** 3).sum()

    check_grads(distance, (COORDS[row], MOVES), order=2)


def test_they_are_pytrees_of_arrays_that_may_be_traced():
    moved = fg.vmap(lambda t, v: t.apply(v))(OURS, MOVES)
    np.testing.assert_allclose(moved, REFERENCE.apply(MOVES), 1e-13)
    gradient = fg.grad(lambda t: t.apply(MOVES).sum())(OURS)
    assert isinstance(gradient, RigidTransform)
    np.testing.assert_allclose(gradient.translation, np.ones((5, 3)))
    assert len(list(OURS)) == len(OURS) == 5
    assert repr(OURS[0]).startswith("RigidTransform.from_components(array(")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: RigidTransform(np.eye(3)), errors.ShapeError, "needs (..., 4, 4), got f64[3,3]"),
        (lambda: RigidTransform(np.ones((4, 4))), ValueError, "last row"),
        (lambda: OURS.apply(np.ones(2)), errors.ShapeError, "needs (..., 3) numbers"),
        (lambda: OURS[0][0], TypeError, "one transform has no index"),
        (lambda: len(OURS[0]), TypeError, "no len"),
    ],
)
def test_messages(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
