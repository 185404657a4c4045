"""`funcgrad.scipy.spatial` and `.cluster.vq` against SciPy."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.spatial.distance
from scipy.spatial.transform import Rotation as Theirs
from scipy.spatial.transform import RotationSpline as TheirSpline
from scipy.spatial.transform import Slerp as TheirSlerp

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import errors
from funcgrad.scipy.cluster import vq
from funcgrad.scipy.spatial import distance
from funcgrad.scipy.spatial.transform import Rotation, RotationSpline, Slerp
from funcgrad.testing import check_grads
from tests.scipy.rows import (
    Row,
    check_compiled,
    check_derivatives,
    check_mapped,
    check_value,
    each,
    row,
)

RNG = np.random.default_rng(0)
A, B, W = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3)), RNG.uniform(0.5, 1, 3)
P, Q = RNG.uniform(0.1, 1, (2, 5))
TRUE, FALSE = RNG.uniform(size=(2, 9)) > 0.4
ROTATIONS = RNG.normal(size=(6, 4))
VECTORS = RNG.normal(size=(6, 3))
SEQUENCES = ["".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] != s[2]]

REAL = (
    "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "euclidean",
    "minkowski", "seuclidean", "sqeuclidean",
)  # fmt: skip
OF_TRUTH = (
    "dice", "hamming", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule",
)  # fmt: skip

ROWS = [
    *(row("cdist", A, B, name, argnums=(0, 1)) for name in REAL),
    row("cdist", A, B, "minkowski", p=3.5, w=W, argnums=(0, 1)),
    row("cdist", A, B, "cosine", w=W, argnums=(0, 1)),
    row("pdist", B),
    row("pdist", B, "mahalanobis"),
    row("euclidean", A[0], B[0], W, argnums=(0, 1, 2)),
    row("minkowski", A[0], B[0], 2.5, W, argnums=(0, 1)),
    row("correlation", A[0], B[0]),
    row("mahalanobis", A[0], B[0], np.eye(3) + 0.1, argnums=(0, 1, 2)),
    row("seuclidean", A[0], B[0], W, argnums=(0, 1, 2)),
    row("jensenshannon", P, Q, 2.0, argnums=(0, 1)),
    row("squareform", scipy.spatial.distance.pdist(B)),
]


@each(ROWS)
def test_distances(row: Row) -> None:
    check_value(distance, scipy.spatial.distance, row)
    check_derivatives(distance, scipy.spatial.distance, row)
    check_mapped(distance, scipy.spatial.distance, row)


@each(ROWS, fast=1)
def test_compiled_distances(row: Row) -> None:
    check_compiled(distance, row)


@pytest.mark.parametrize("name", OF_TRUTH)
def test_distances_of_truth_values(name: str) -> None:
    ours, theirs = getattr(distance, name), getattr(scipy.spatial.distance, name)
    np.testing.assert_allclose(ours(TRUE, FALSE), theirs(TRUE, FALSE), 1e-12)
    both = np.stack([TRUE, FALSE])
    expected = scipy.spatial.distance.cdist(both, both, name)
    np.testing.assert_allclose(distance.cdist(both, both, name), expected, 1e-12)


@pytest.mark.parametrize("name", ["euclidean", "cityblock", "minkowski", "jensenshannon"])
def test_derivatives_at_distance_zero_are_zero(name: str) -> None:
    gradient = fg.grad(getattr(distance, name))(P, P)
    np.testing.assert_array_equal(gradient, np.zeros(5))
    assert np.all(np.isfinite(fg.grad(lambda x: fnp.sum(distance.cdist(x, x)))(A)))


def test_any_function_is_a_metric() -> None:
    found = distance.cdist(A, B, lambda u, v: fnp.sum(u * v))
    np.testing.assert_allclose(found, A @ B.T, 1e-12)


def test_forms_of_rotations() -> None:
    ours, theirs = Rotation.from_quat(ROTATIONS), Theirs.from_quat(ROTATIONS)
    for name in ("as_quat", "as_matrix", "as_rotvec", "as_mrp", "magnitude"):
        found, expected = getattr(ours, name)(), getattr(theirs, name)()
        np.testing.assert_allclose(found, expected, 1e-11, 1e-12)
    found = ours.as_quat(canonical=True, scalar_first=True)
    np.testing.assert_allclose(found, theirs.as_quat(canonical=True, scalar_first=True), 1e-11)
    quats = theirs.as_quat()
    for made in (
        Rotation.from_matrix(theirs.as_matrix()),
        Rotation.from_rotvec(theirs.as_rotvec(degrees=True), degrees=True),
        Rotation.from_mrp(theirs.as_mrp()),
        Rotation.from_quat(theirs.as_quat(scalar_first=True), scalar_first=True),
        Rotation.concatenate([Rotation(q) for q in quats]),
    ):
        np.testing.assert_allclose(made.as_matrix(), theirs.as_matrix(), 1e-11, 1e-12)


@pytest.mark.parametrize("seq", [*SEQUENCES, *(s.upper() for s in SEQUENCES)])
def test_euler_angles(seq: str) -> None:
    ours, theirs = Rotation.from_quat(ROTATIONS), Theirs.from_quat(ROTATIONS)
    np.testing.assert_allclose(ours.as_euler(seq), theirs.as_euler(seq), 1e-10, 1e-11)
    made, expected = Rotation.from_euler(seq, VECTORS), Theirs.from_euler(seq, VECTORS)
    np.testing.assert_allclose(made.as_quat(), expected.as_quat(), 1e-11, 1e-12)
    for lock in (0.0, np.pi, np.pi / 2, -np.pi / 2):
        locked = Theirs.from_euler(seq, [0.3, lock, 0.5])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = locked.as_euler(seq)
        found = Rotation.from_quat(locked.as_quat()).as_euler(seq)
        np.testing.assert_allclose(np.cos(found - expected), 1, 1e-12)


def test_what_is_done_with_rotations() -> None:
    ours, theirs = Rotation.from_quat(ROTATIONS), Theirs.from_quat(ROTATIONS)
    other, weights = RNG.normal(size=(6, 3)), RNG.uniform(size=6)
    pairs: list[tuple[Any, Any]] = [
        (ours * ours[::-1], theirs * theirs[::-1]),
        (ours.inv(), theirs.inv()),
        (ours**0.3, theirs**0.3),
        (ours.mean(weights), theirs.mean(weights)),
        (
            Rotation.align_vectors(VECTORS, other, weights)[0],
            Theirs.align_vectors(VECTORS, other, weights)[0],
        ),
        (Rotation.identity(2), Theirs.identity(2)),
        (Rotation.create_group("T"), Theirs.create_group("T")),
        (
            Slerp(np.arange(6.0), ours)(np.array([0.2, 3.4, 5.0])),
            TheirSlerp(np.arange(6.0), theirs)([0.2, 3.4, 5.0]),
        ),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(found.as_matrix(), expected.as_matrix(), 1e-10, 1e-11)
    np.testing.assert_allclose(ours.apply(VECTORS), theirs.apply(VECTORS), 1e-12)
    np.testing.assert_allclose(ours.apply(VECTORS, True), theirs.apply(VECTORS, True), 1e-12)
    np.testing.assert_allclose(ours[0].apply(VECTORS), theirs[0].apply(VECTORS), 1e-12)
    error = Theirs.align_vectors(VECTORS, other, weights)[1]
    np.testing.assert_allclose(Rotation.align_vectors(VECTORS, other, weights)[1], error, 1e-10)
    assert len(ours) == 6
    assert ours[2].single
    assert ours.approx_equal(ours * Rotation.identity()).all()


SPLINE_TIMES = np.array([0.0, 0.4, 1.0, 2.5, 2.8, 4.0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("count", [2, 6])
def test_splines_of_rotations(count: int) -> None:
    known, quats = SPLINE_TIMES[:count], ROTATIONS[:count].copy()
    if count > 3:
        quats[3] = quats[2]  # where nothing turns
    ours = RotationSpline(known, Rotation.from_quat(quats))
    theirs = TheirSpline(known, Theirs.from_quat(quats))
    times = np.linspace(-0.1, known[-1] + 0.1, 23)
    # SciPy's iteration ends earlier.
    np.testing.assert_allclose(ours(times).as_matrix(), theirs(times).as_matrix(), 0, 1e-6)
    for order in (1, 2):
        np.testing.assert_allclose(ours(times, order), theirs(times, order), 1e-5, 1e-6)
        np.testing.assert_allclose(ours(0.3, order), theirs(0.3, order), 1e-5, 1e-6)
        inside = known[1:-1]
        jumps = ours(inside, order) - ours(np.nextafter(inside, 0), order)
        np.testing.assert_allclose(jumps, 0, atol=1e-9)


# Its formula alone has thousands of operations, without a loop.
@pytest.mark.filterwarnings("ignore::funcgrad.errors.LongProgramWarning")
@pytest.mark.parametrize("count", [2, 3, 6])
@pytest.mark.nightly
def test_derivatives_of_splines_of_rotations(count: int) -> None:
    def ours(t: Any, v: Any, x: Any) -> Any:
        spline = RotationSpline(t, Rotation.from_rotvec(v))
        return fnp.sum(spline(x).as_matrix()[..., 0] ** 3) + fnp.sum(spline(x, 2) ** 2) / 100

    def theirs(t: Any, v: Any, x: Any) -> Any:
        spline = TheirSpline(t, Theirs.from_rotvec(v))
        return np.sum(spline(x).as_matrix()[..., 0] ** 3) + np.sum(spline(x, 2) ** 2) / 100

    vectors = Theirs.from_quat(ROTATIONS[:count]).as_rotvec()
    point = (SPLINE_TIMES[:count], vectors, np.array([0.1, 0.3]))
    along = [RNG.normal(size=x.shape) for x in point]
    h = 1e-5
    ends = [theirs(*(x + s * d for x, d in zip(point, along, strict=True))) for s in (h, -h)]
    expected = (ends[0] - ends[1]) / (2 * h)
    forward = fg.jvp(ours, point, tuple(along))[1]
    np.testing.assert_allclose(forward, expected, 1e-4)
    found = fg.jit(fg.grad(ours, (0, 1, 2)))(*point)
    backward = sum(np.sum(g * d) for g, d in zip(found, along, strict=True))
    np.testing.assert_allclose(backward, forward, 1e-9)
    check_grads(ours, point, order=2)
    lanes = np.stack([vectors, vectors + 0.1])
    mapped = fg.vmap(ours, in_axes=(None, 0, None))(point[0], lanes, point[2])
    np.testing.assert_allclose(mapped, [ours(point[0], v, point[2]) for v in lanes], 1e-9)


def test_random_rotations_turn_vectors_anywhere() -> None:
    turned = Rotation.random(fg.random.key(0), 4000).apply(np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(np.mean(turned, axis=0), 0, atol=0.05)
    np.testing.assert_allclose(np.mean(turned**2, axis=0), 1 / 3, atol=0.02)


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 3e-2, 0.5, 2.0])
def test_rotations_have_derivatives_everywhere(size: float) -> None:
    v = size * np.array([0.6, 0.0, 0.8])
    there_and_back = fg.jacfwd(lambda v: Rotation.from_rotvec(v).as_rotvec())
    np.testing.assert_allclose(there_and_back(v), np.eye(3), 0, 1e-12)
    np.testing.assert_allclose(fg.jacrev(there_and_back)(v), 0, atol=1e-9)
    through_matrix = fg.jacrev(
        lambda v: Rotation.from_matrix(Rotation.from_rotvec(v).as_matrix()).as_rotvec()
    )
    np.testing.assert_allclose(through_matrix(v), np.eye(3), 0, 1e-11)
    t, h = np.array([0.3, -0.5, 0.2]), 1e-4
    _, slope = fg.jvp(lambda v: Rotation.from_rotvec(v).apply(VECTORS[0]), (v,), (t,))
    ends = [Theirs.from_rotvec(v + s * t).apply(VECTORS[0]) for s in (h, -h)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), 1e-6, 1e-8)


def test_rotations_pass_through_transformations() -> None:
    ours = Rotation.from_quat(ROTATIONS)
    back = fg.jit(lambda r: r.inv() * r)(ours)
    np.testing.assert_allclose(back.magnitude(), 0, atol=1e-7)
    matrices = fg.vmap(lambda r, v: r.apply(v))(ours, VECTORS)
    np.testing.assert_allclose(matrices, Theirs.from_quat(ROTATIONS).apply(VECTORS), 1e-12)
    angles = fg.grad(lambda v: fnp.sum(Rotation.from_rotvec(v).as_euler("xyz")))(np.zeros(3))
    np.testing.assert_allclose(angles, np.ones(3), 1e-12)
    assert fg.grad(lambda v: Rotation.from_rotvec(v).magnitude())(np.zeros(3)).tolist() == [0] * 3


def test_quantisation() -> None:
    for a, b in ((A, B), (A[:, 0], B[:, 0])):
        for found, expected in zip(vq.vq(a, b), scipy.cluster.vq.vq(a, b), strict=True):
            np.testing.assert_allclose(found, expected, 1e-12)
    np.testing.assert_allclose(vq.whiten(A), scipy.cluster.vq.whiten(A), 1e-12)
    data = RNG.normal(size=(40, 2))
    expected = scipy.cluster.vq.kmeans2(data, data[:3], minit="matrix")
    found = vq.kmeans2(data, data[:3], minit="matrix")
    np.testing.assert_allclose(found[0], expected[0], 1e-12)
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.nightly
def test_means_of_clusters_have_derivatives() -> None:
    data = RNG.normal(size=(40, 2))
    slopes = fg.jacrev(lambda x: vq.kmeans2(x, x[:3], minit="matrix")[0])(data)
    np.testing.assert_allclose(np.sum(slopes, axis=(2)), np.ones((3, 2))[..., None] * np.eye(2), 1)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: Rotation.from_quat(VECTORS), errors.ShapeError, r"\(..., 4\) numbers"),
        (lambda: Rotation.from_quat(np.zeros(4)), ValueError, "length 0"),
        (lambda: Rotation.from_euler("xx", A[:, :2]), errors.ArgumentError, "different letters"),
        (lambda: Rotation.from_euler("xyz", A[:, :2]), errors.ShapeError, r"\(..., 3\) angles"),
        (lambda: len(Rotation.identity()), TypeError, "one rotation"),
        (lambda: Slerp([0.0], Rotation.identity(1)), errors.ShapeError, "at least two times"),
        (lambda: Slerp([0, 1.0], Rotation.identity(2))(2.0), errors.ArgumentError, "from 0.0 to"),
        (lambda: RotationSpline([0], Rotation.identity(1)), errors.ShapeError, "at least two t"),
        (lambda: RotationSpline([1, 0], Rotation.identity(2)), errors.ArgumentError, "increase"),
        (lambda: RotationSpline([0, 1], Rotation.identity(2))(0, 3), errors.ArgumentError, "order"),
        (lambda: distance.cdist(A, A[:, :2]), errors.ShapeError, "rows of one length"),
        (lambda: distance.cdist(A, B, "x"), errors.ArgumentError, "metric must be"),
        (lambda: distance.minkowski(P, Q, -1), errors.ArgumentError, "must be positive"),
        (lambda: distance.euclidean(A, B), errors.ShapeError, "needs vectors"),
        (lambda: distance.squareform(A), errors.ShapeError, "a square matrix"),
        (lambda: distance.squareform(A[:3]), errors.ArgumentError, "must be symmetric"),
        (lambda: vq.vq(A, P), errors.ShapeError, "vectors of one length"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
