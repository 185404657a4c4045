"""Formulas of unit quaternions ``(x, y, z, w)``, with derivatives of high order at the identity.

Lengths of vectors have a kink at 0, but what is made of them here has none: functions of the square
of an angle, which are summed as series near 0. "Near" is far, and the series have many terms: that
many derivatives of a short one would be 0, and the closed form loses a digit more with each of them
where it is close to 0. At the identity 30 derivatives are right to the last digits, elsewhere 8
(tested); a rotation has no use for the thirty-first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.numpy.reducing import safe_sqrt

__all__ = [
    "about_axis", "applied", "axis_of", "conjugate", "from_matrix", "from_mrp", "from_rotvec",
    "largest_eigenvector", "magnitude", "normalized", "product", "to_euler", "to_matrix", "to_mrp",
    "to_rotvec", "upper",
]  # fmt: skip

NEAR = 4.0
"""Squares of angles up to which series of sines are summed."""
_NEAR_TANGENT = 0.05
"""The same for squares of tangents: the series of the arc ends at 1."""
_SINE, _COSINE = ([(-1) ** k / factorial(2 * k + n) for k in range(16)] for n in (1, 0))
_ARC = [(-1) ** k / (2 * k + 1) for k in range(24)]


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """The polynomial with these coefficients, the lowest first."""
    total = 0.0 * x + coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def normalized(q: Any) -> Any:
    """A quaternion of length 1."""
    return q / fnp.sqrt(fnp.sum(q * q, axis=-1, keepdims=True))


def product(p: Any, q: Any) -> Any:
    """The rotation by ``q`` and then by ``p``."""
    (a, s), (b, t) = ((v[..., :3], v[..., 3:]) for v in (p, q))
    vector = s * b + t * a + _cross(a, b)
    scalar = s * t - fnp.sum(a * b, axis=-1, keepdims=True)
    return fnp.concatenate([vector, scalar], -1)


def _cross(a: Any, b: Any) -> Any:
    x, y = ([v[..., i] for i in range(3)] for v in (a, b))
    return fnp.stack(
        [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]], axis=-1
    )


def conjugate(q: Any) -> Any:
    """The rotation back."""
    return fnp.concatenate([-q[..., :3], q[..., 3:]], -1)


def applied(q: Any, vectors: Any) -> Any:
    """Rotated vectors."""
    axis, w = q[..., :3], q[..., 3:]
    rotated = 2 * _cross(axis, vectors)
    return vectors + w * rotated + _cross(axis, rotated)


def to_matrix(q: Any) -> Any:
    """Rotation matrices."""
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return fnp.stack([fnp.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(m: Any) -> Any:
    """Quaternions of rotation matrices, from the largest of their four components.

    Reference:
        F. L. Markley, Unit quaternion from rotation matrix, 2008.
    """
    d = [m[..., i, i] for i in range(3)]
    trace = d[0] + d[1] + d[2]
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts: list[Any] = [None] * 4
        parts[i] = 1 - trace + 2 * d[i]
        parts[j] = m[..., j, i] + m[..., i, j]
        parts[k] = m[..., k, i] + m[..., i, k]
        parts[3] = m[..., k, j] - m[..., j, k]
        candidates.append(fnp.stack(parts, axis=-1))
    parts = [m[..., (i + 2) % 3, (i + 1) % 3] - m[..., (i + 1) % 3, (i + 2) % 3] for i in range(3)]
    candidates.append(fnp.stack([*parts, 1 + trace], axis=-1))
    largest = fnp.argmax(fnp.stack([*d, trace], axis=-1), axis=-1)[..., None]
    q = candidates[3]
    for i in range(3):
        q = fnp.where(largest == i, candidates[i], q)
    return normalized(q)


def from_rotvec(v: Any) -> Any:
    """Quaternions of vectors along the axis, as long as the angle."""
    square = fnp.sum(v * v, axis=-1, keepdims=True)
    is_near = square < NEAR
    half = fnp.sqrt(fnp.where(is_near, 1.0, square)) / 2
    quarter = fnp.where(is_near, square, 0.0) / 4
    scale = fnp.where(is_near, polynomial(_SINE, quarter) / 2, fnp.sin(half) / (2 * half))
    w = fnp.where(is_near, polynomial(_COSINE, quarter), fnp.cos(half))
    return fnp.concatenate([v * scale, w], -1)


def upper(q: Any) -> Any:
    """The one of both quaternions of a rotation whose last component is not negative."""
    return fnp.where(q[..., 3:] < 0, -q, q)


def to_rotvec(q: Any) -> Any:
    """Vectors along the axis, as long as the angle, which is at most pi."""
    q = upper(q)
    v, w = q[..., :3], q[..., 3:]
    square = fnp.sum(v * v, axis=-1, keepdims=True)
    is_near = square < _NEAR_TANGENT * w * w
    length = fnp.sqrt(fnp.where(is_near, 1.0, square))
    safe = fnp.where(is_near, w, 1.0)
    t = fnp.where(is_near, square / (safe * safe), 0.0)
    series = 2 / safe * polynomial(_ARC, t)
    return v * fnp.where(is_near, series, 2 * fnp.arctan2(length, w) / length)


def from_mrp(p: Any) -> Any:
    """Quaternions of modified Rodrigues parameters, the axis times tan(angle / 4)."""
    square = fnp.sum(p * p, axis=-1, keepdims=True)
    return fnp.concatenate([2 * p, 1 - square], -1) / (1 + square)


def to_mrp(q: Any) -> Any:
    """Modified Rodrigues parameters."""
    q = upper(q)
    return q[..., :3] / (1 + q[..., 3:])


def magnitude(q: Any) -> Any:
    """Angles from 0 to pi. At the identity, where there is a kink, the derivative is 0."""
    length = safe_sqrt(fnp.sum(q[..., :3] * q[..., :3], axis=-1))
    return 2 * fnp.arctan2(length, fnp.abs(q[..., 3]))


def largest_eigenvector(matrix: Any) -> Any:
    """The eigenvector of the largest eigenvalue of a symmetric matrix."""
    return fnp.linalg.eigh(matrix)[1][..., -1]


_AXES = {"x": 0, "y": 1, "z": 2}


def axis_of(letter: str) -> int:
    """The number of an axis."""
    return _AXES[letter.lower()]


def about_axis(axis: int, angle: Any) -> Any:
    """Quaternions of rotations about one axis."""
    parts = [fnp.zeros_like(angle)] * 3
    parts[axis] = fnp.sin(angle / 2)
    return fnp.stack([*parts, fnp.cos(angle / 2)], axis=-1)


def to_euler(q: Any, seq: str) -> Any:
    """Angles of rotations about three axes, one after the other.

    Where the second angle makes the others one (gimbal lock), the third one is 0.

    Reference:
        E. Bernardes and S. Viollet, Quaternion to Euler angles conversion, 2022.
    """
    is_extrinsic = seq == seq.lower()
    i, j, k = (axis_of(c) for c in (seq if is_extrinsic else seq[::-1]))
    is_symmetric = i == k
    k = 3 - i - j if is_symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    x = [q[..., n] for n in range(4)]
    if is_symmetric:
        a, b, c, d = x[3], x[i], x[j], x[k] * sign
    else:
        a, b, c, d = x[3] - x[j], x[i] + x[k] * sign, x[j] + x[3], x[k] * sign - x[i]
    near, far = safe_sqrt(a * a + b * b), safe_sqrt(c * c + d * d)
    second = 2 * fnp.arctan2(far, near)
    is_low, is_high = second <= 1e-7, second >= np.pi - 1e-7
    half_sum = fnp.arctan2(fnp.where(is_high, 0.0, b), fnp.where(is_high, 1.0, a))
    half_difference = fnp.arctan2(fnp.where(is_low, 0.0, d), fnp.where(is_low, 1.0, c))
    is_locked = is_low | is_high
    turn = -1 if is_extrinsic else 1
    one = fnp.where(is_low, 2 * half_sum, 2 * turn * half_difference)
    start, end = half_sum - half_difference, half_sum + half_difference
    if not is_extrinsic:
        start, end = end, start
    first, third = fnp.where(is_locked, one, start), fnp.where(is_locked, 0.0, end)
    if not is_symmetric:
        second = second - np.pi / 2
        third = third * sign if is_extrinsic else third
        first = first if is_extrinsic else first * sign
    angles = fnp.stack([first, second, third], axis=-1)
    rotated = fnp.where(angles > np.pi, angles - 2 * np.pi, angles)
    return fnp.where(rotated < -np.pi, rotated + 2 * np.pi, rotated)
