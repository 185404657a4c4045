"""Rotations in three dimensions, as pytrees of unit quaternions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.spatial.transform

import funcgrad.numpy.values as fnp
from funcgrad import random
from funcgrad.base.pytree import register_pytree_node
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.numpy.reducing import safe_sqrt
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import floating
from funcgrad.scipy.spatial.transform import quaternions as formulas

__all__ = ["Rotation", "Slerp"]

_DEGREE = np.pi / 180


def vectors_of(function: str, value: Any, length: int) -> Any:
    """Floating vectors along the last axis, whose length is checked."""
    (x,) = floating(function, value)
    if shape_of(x)[-1:] != (length,):
        raise ShapeError(f"{function} needs (..., {length}) numbers, got {aval_of(x)}.")
    return x


def _of_scale(value: Any, degrees: bool) -> Any:
    return value * _DEGREE if degrees else value


class Rotation:
    """Rotations in three dimensions, one or an array of them.

    As `scipy.spatial.transform.Rotation` and JAX's. It is a pytree with one leaf, its quaternions:
    it may be an argument or a result of transformed functions, and its parts may be traced.
    Derivatives exist of all orders, also at the identity; where angles have kinks (`magnitude`,
    and Euler angles in gimbal lock) they are 0 or those of one side.

    Args:
        quat: Quaternions, the scalar last.
        normalize: Whether quaternions are divided by their length.
        copy: Without effect: rotations are never changed.

    Example:
        >>> quarter = fg.scipy.spatial.transform.Rotation.from_euler("z", 90, degrees=True)
        >>> print(np.round(quarter.apply(np.array([1.0, 0.0, 0.0])), 12) + 0.0)
        [0. 1. 0.]
        >>> print(np.round((quarter * quarter).magnitude(), 12))
        3.14159265359
    """

    __array_ufunc__ = None
    quat: Any
    """Unit quaternions ``(..., 4)``, the scalar last."""

    def __init__(self, quat: Any, normalize: bool = True, copy: bool = True) -> None:
        """Make rotations as `from_quat`; ``copy`` is accepted for SciPy's signature."""
        q = vectors_of("Rotation", quat, 4)
        if normalize and not is_traced(q) and not np.all(np.any(q != 0, axis=-1)):
            raise ValueError("Rotation: a quaternion of length 0 is no rotation.")
        self.quat = formulas.normalized(q) if normalize else q

    # Makers.

    @classmethod
    def from_quat(cls, quat: Any, *, scalar_first: bool = False) -> Rotation:
        """Rotations by quaternions ``(..., 4)`` of any length, the scalar last by default."""
        q = vectors_of("Rotation.from_quat", quat, 4)
        return cls(fnp.roll(q, -1, axis=-1) if scalar_first else q)

    @classmethod
    def from_matrix(cls, matrix: Any, *, assume_valid: bool = False) -> Rotation:
        """Rotations by orthogonal matrices ``(..., 3, 3)``, which are not made so."""
        (m,) = floating("Rotation.from_matrix", matrix)
        if shape_of(m)[-2:] != (3, 3):
            raise ShapeError(f"Rotation.from_matrix needs (..., 3, 3), got {aval_of(m)}.")
        return cls(formulas.from_matrix(m), normalize=False)

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Rotations by vectors ``(..., 3)`` along the axis, as long as the angle."""
        v = _of_scale(vectors_of("Rotation.from_rotvec", rotvec, 3), degrees)
        return cls(formulas.from_rotvec(v), normalize=False)

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Rotations by modified Rodrigues parameters ``(..., 3)``."""
        return cls(formulas.from_mrp(vectors_of("Rotation.from_mrp", mrp, 3)), normalize=False)

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Rotations about one to three axes, one after the other.

        Args:
            seq: The axes: small letters for those that stay, capitals for those that turn along.
            angles: One angle for each axis, ``(..., len(seq))``; for one axis also a number or a
                vector of angles.
            degrees: Whether they are in degrees.
        """
        _check_sequence("Rotation.from_euler", seq, (1, 2, 3))
        (a,) = floating("Rotation.from_euler", angles)
        a = _of_scale(a, degrees)
        if len(seq) == 1 and (len(shape_of(a)) < 2 or shape_of(a)[-1] != 1):
            a = a[..., None]
        if shape_of(a)[-1:] != (len(seq),):
            raise ShapeError(
                f"Rotation.from_euler({seq!r}) needs (..., {len(seq)}) angles, got {aval_of(a)}."
            )
        parts = [formulas.about_axis(formulas.axis_of(c), a[..., i]) for i, c in enumerate(seq)]
        q = parts[0]
        for part in parts[1:]:
            q = formulas.product(part, q) if seq.islower() else formulas.product(q, part)
        return cls(q, normalize=False)

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float, *, shape: Any = None) -> Rotation:
        """Rotations that change nothing: one, ``num``, or an array of a shape."""
        lengths = () if num is None else (int(num),)
        lengths = lengths if shape is None else tuple(np.atleast_1d(shape).tolist())
        q = np.zeros((*lengths, 4), dtype)
        q[..., 3] = 1
        return cls(q, normalize=False)

    @classmethod
    def random(cls, random_key: Any, num: int | None = None, *, shape: Any = None) -> Rotation:
        """Rotations of uniform distribution.

        Args:
            random_key: A key of `funcgrad.random`.
            num: How many; one, without an axis, by default.
            shape: Shape of an array of them instead.
        """
        lengths = () if num is None else (int(num),)
        lengths = lengths if shape is None else tuple(np.atleast_1d(shape).tolist())
        return cls(random.normal(random_key, (*lengths, 4)))

    @classmethod
    def concatenate(cls, rotations: Rotation | Iterable[Rotation]) -> Rotation:
        """Rotations one after the other along a first axis."""
        if isinstance(rotations, Rotation):
            return cls(rotations.quat, normalize=False)
        quats = [r.quat[None] if r.single else r.quat for r in rotations]
        return cls(fnp.concatenate(quats, 0), normalize=False)

    @classmethod
    def create_group(cls, group: str, axis: str = "Z") -> Rotation:
        """The rotations of a group of symmetries, such as "I", "O", "T", "C3" or "D4"."""
        known = scipy.spatial.transform.Rotation.create_group(group, axis)
        return cls(known.as_quat(), normalize=False)

    @classmethod
    def align_vectors(cls, a: Any, b: Any, weights: Any = None) -> tuple[Rotation, Any]:
        """The rotation that best turns vectors ``b`` into ``a``, and the root of the squared error.

        Args:
            a: Vectors ``(n, 3)``, or one.
            b: Vectors like ``a``.
            weights: Of the pairs; 1 by default.

        Reference:
            G. Wahba, A least squares estimate of satellite attitude, 1965; P. B. Davenport's
            solution by an eigenvector.
        """
        name = "Rotation.align_vectors"
        a, b = (fnp.atleast_2d(vectors_of(name, v, 3)) for v in (a, b))
        if shape_of(a) != shape_of(b):
            raise ShapeError(f"{name}: {aval_of(a)} and {aval_of(b)} must have one shape.")
        w = np.ones(shape_of(a)[0]) if weights is None else as_value(weights, name)
        outer = fnp.einsum("n,ni,nj->ij", w, a, b)
        twist = fnp.stack([outer[2, 1] - outer[1, 2], outer[0, 2] - outer[2, 0],
                           outer[1, 0] - outer[0, 1]])  # fmt: skip
        trace = fnp.trace(outer)
        upper = fnp.concatenate([outer + outer.T - trace * np.eye(3), twist[:, None]], 1)
        lower = fnp.concatenate([twist, trace[None]])[None]
        rotation = cls(formulas.largest_eigenvector(fnp.concatenate([upper, lower], 0)))
        rest = a - rotation.apply(b)
        return rotation, safe_sqrt(fnp.sum(w[:, None] * rest * rest))

    # Forms.

    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Any:
        """Quaternions ``(..., 4)``.

        Args:
            canonical: Whether, of both quaternions of a rotation, the one with a scalar of at least
                0 is returned.
            scalar_first: Whether the scalar comes first.
        """
        q = formulas.upper(self.quat) if canonical else self.quat
        return fnp.roll(q, 1, axis=-1) if scalar_first else q

    def as_matrix(self) -> Any:
        """Orthogonal matrices ``(..., 3, 3)``."""
        return formulas.to_matrix(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Vectors ``(..., 3)`` along the axis, as long as the angle."""
        v = formulas.to_rotvec(self.quat)
        return v / _DEGREE if degrees else v

    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters ``(..., 3)``."""
        return formulas.to_mrp(self.quat)

    def as_euler(self, seq: str, degrees: bool = False, *, suppress_warnings: bool = False) -> Any:
        """Angles ``(..., 3)`` of rotations about three axes; the third is 0 in gimbal lock.

        Args:
            seq: Three axes: small letters for those that stay, capitals for those that turn along.
            degrees: Whether they are in degrees.
            suppress_warnings: Accepted for SciPy's signature; there are none.
        """
        _check_sequence("Rotation.as_euler", seq, (3,))
        angles = formulas.to_euler(self.quat, seq)
        return angles / _DEGREE if degrees else angles

    # Operations.

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Rotated vectors ``(..., 3)``; rotations and vectors broadcast."""
        v = vectors_of("Rotation.apply", vectors, 3)
        return formulas.applied(self.inv().quat if inverse else self.quat, v)

    def inv(self) -> Rotation:
        """The rotations back."""
        return type(self)(formulas.conjugate(self.quat), normalize=False)

    def magnitude(self) -> Any:
        """Angles from 0 to pi."""
        return formulas.magnitude(self.quat)

    def mean(self, weights: Any = None, axis: Any = None) -> Rotation:
        """The mean rotation: the one with the least sum of squared distances of matrices.

        Args:
            weights: Of the rotations; 1 by default.
            axis: Must be None: the mean of all.
        """
        if axis is not None:
            raise ArgumentError("Rotation.mean: axis must be None, for the mean of all rotations.")
        q = fnp.reshape(self.quat, (-1, 4))
        w = np.ones(shape_of(q)[0]) if weights is None else fnp.ravel(as_value(weights, "mean"))
        matrix = fnp.einsum("n,ni,nj->ij", w, q, q)
        return type(self)(formulas.largest_eigenvector(matrix))

    def approx_equal(
        self, other: Rotation, atol: float | None = None, degrees: bool = False
    ) -> Any:
        """Whether the angle between rotations is less than ``atol``, 1e-8 radians by default."""
        limit = 1e-8 if atol is None else _of_scale(atol, degrees)
        return (other * self.inv()).magnitude() < limit

    def __mul__(self, other: Rotation) -> Rotation:
        """The rotations by ``other`` and then by these."""
        if not isinstance(other, Rotation):
            return NotImplemented
        return type(self)(formulas.product(self.quat, other.quat))

    def __pow__(self, n: Any) -> Rotation:
        """The rotations ``n`` times, which may be a fraction."""
        return type(self).from_rotvec(as_value(n, "Rotation.__pow__") * self.as_rotvec())

    def __getitem__(self, index: Any) -> Rotation:
        """Some of the rotations."""
        if self.single:
            raise TypeError("one rotation has no index.")
        index = index if isinstance(index, tuple) else (index,)
        return type(self)(self.quat[(*index, slice(None))], normalize=False)

    def __len__(self) -> int:
        """How many rotations there are along the first axis."""
        if self.single:
            raise TypeError("one rotation has no len().")
        return shape_of(self.quat)[0]

    def __repr__(self) -> str:
        """Source that makes an equal one."""
        return f"Rotation.from_quat({self.quat!r})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of rotations."""
        return shape_of(self.quat)[:-1]

    @property
    def single(self) -> bool:
        """Whether this is one rotation, not an array of them."""
        return not self.shape


def _check_sequence(name: str, seq: str, lengths: Sequence[int]) -> None:
    is_known = set(seq) <= set("xyz") or set(seq) <= set("XYZ")
    is_repeated = any(a == b for a, b in pairwise(seq))
    if len(seq) not in lengths or not is_known or is_repeated:
        raise ArgumentError(
            f"{name}: seq must be {' or '.join(map(str, lengths))} different letters in a row, of "
            f"'xyz' or of 'XYZ', got {seq!r}."
        )


def _rotation(_: Any, children: Sequence[Any]) -> Rotation:
    made = object.__new__(Rotation)
    (made.quat,) = children
    return made


register_pytree_node(Rotation, lambda r: ((r.quat,), None), _rotation)


def times_of(function: str, times: Any, rotations: Rotation) -> Any:
    """Times of rotations, which increase."""
    (found,) = floating(function, times)
    count = shape_of(found)
    if rotations.single or len(count) != 1 or count[0] < 2 or rotations.shape != count:
        raise ShapeError(
            f"{function} needs at least two times and as many rotations, got {aval_of(found)} and "
            f"rotations of shape {rotations.shape}."
        )
    if not is_traced(found) and np.any(np.diff(found) <= 0):
        raise ArgumentError(f"{function}: times must increase.")
    return found


class Slerp:
    """Rotations between rotations, each pair joined by one of constant speed.

    As `scipy.spatial.transform.Slerp`.

    Args:
        times: Increasing, a vector of at least two; they may be traced.
        rotations: As many rotations.

    Example:
        >>> from funcgrad.scipy.spatial.transform import Rotation, Slerp
        >>> ends = Rotation.from_euler("x", np.array([0.0, 90.0]), degrees=True)
        >>> print(np.round(Slerp([0.0, 1.0], ends)(0.5).as_euler("xyz", degrees=True), 9))
        [45.  0.  0.]
    """

    def __init__(self, times: Any, rotations: Rotation) -> None:
        self.times = times_of("Slerp", times, rotations)
        self.rotations = rotations[:-1]
        self.rotvecs = (self.rotations.inv() * rotations[1:]).as_rotvec()

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """Make rotations as the class itself does: JAX's name."""
        return cls(times, rotations)

    def __call__(self, times: Any) -> Rotation:
        """The rotations at times, which must be between the first and the last one."""
        (t,) = floating("Slerp", times)
        known = self.times
        is_known = not is_traced(t) and not is_traced(known)
        if is_known and np.any((t < known[0]) | (t > known[-1])):
            raise ArgumentError(
                f"Slerp: times must be from {known[0]} to {known[-1]}, got {times!r}."
            )
        last = shape_of(known)[0] - 2
        place = fnp.clip(fnp.searchsorted(known, t, side="right") - 1, 0, last)
        start, end = fnp.take(known, place), fnp.take(known, place + 1)
        share = (t - start) / (end - start)
        step = Rotation.from_rotvec(fnp.take(self.rotvecs, place, axis=0) * share[..., None])
        base = Rotation(fnp.take(self.rotations.quat, place, axis=0), normalize=False)
        return base * step
