"""Rigid transforms of space: rotations with translations, as pytrees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import factorial
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.pytree import register_pytree_node
from funcgrad.core.avals import aval_of
from funcgrad.errors import ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import floating
from funcgrad.scipy.spatial.transform import quaternions as formulas
from funcgrad.scipy.spatial.transform.rotations import Rotation, vectors_of

__all__ = ["RigidTransform"]


def _cotangent(n_terms: int) -> list[float]:
    """The power series of `_logarithm`, by the recurrence of its Bernoulli numbers."""
    found = [1 / 12]
    for n in range(2, n_terms + 1):
        pairs = zip(found, reversed(found), strict=True)
        found.append(sum(a * b for a, b in pairs) / (2 * n + 1))
    return found


_SERIES = [[(-1) ** k / factorial(2 * k + n) for k in range(16)] for n in (2, 3)]
_COTANGENT = _cotangent(32)


class RigidTransform:
    """Rotations followed by translations, one or an array of them.

    As `scipy.spatial.transform.RigidTransform`. It is a pytree with two leaves, translations and
    quaternions: it may be an argument or a result of transformed functions, and its parts may be
    traced. Derivatives exist of all orders, also at the identity.

    Args:
        matrix: Matrices ``(..., 4, 4)``: an orthogonal part, a column of the translation, and
            the last row 0, 0, 0, 1.
        normalize: Accepted for SciPy's signature; as a unit quaternion the rotation is always one.
        copy: Accepted for SciPy's signature.

    Raises:
        ShapeError: If it is no matrix of four rows and columns.
        ValueError: If a known last row is another.

    Example:
        >>> from funcgrad.scipy.spatial.transform import RigidTransform, Rotation
        >>> quarter = Rotation.from_euler("z", 90, degrees=True)
        >>> move = RigidTransform.from_components(np.array([0.0, 0.0, 1.0]), quarter)
        >>> print(np.round(move.apply(np.array([1.0, 0.0, 0.0])), 12) + 0.0)
        [0. 1. 1.]
        >>> print(np.round((move * move.inv()).as_exp_coords(), 12) + 0.0)
        [0. 0. 0. 0. 0. 0.]
    """

    __array_ufunc__ = None

    def __init__(self, matrix: Any, normalize: bool = True, copy: bool = True) -> None:
        (m,) = floating("RigidTransform", matrix)
        if shape_of(m)[-2:] != (4, 4):
            raise ShapeError(f"RigidTransform needs (..., 4, 4), got {aval_of(m)}.")
        if not is_traced(m) and np.any(m[..., 3, :] != np.array([0, 0, 0, 1])):
            raise ValueError("RigidTransform: the last row of a matrix must be 0, 0, 0, 1.")
        self._translation = m[..., :3, 3]
        self._quat = formulas.from_matrix(m[..., :3, :3])

    # Makers.

    @classmethod
    def from_matrix(cls, matrix: Any) -> RigidTransform:
        """Transforms by matrices ``(..., 4, 4)``."""
        return cls(matrix)

    @classmethod
    def from_components(cls, translation: Any, rotation: Rotation) -> RigidTransform:
        """Transforms that rotate and then move by ``translation`` ``(..., 3)``."""
        t = vectors_of("RigidTransform.from_components", translation, 3)
        lengths = np.broadcast_shapes(shape_of(t)[:-1], rotation.shape)
        return _made(
            (fnp.broadcast_to(t, (*lengths, 3)), fnp.broadcast_to(rotation.quat, (*lengths, 4)))
        )

    @classmethod
    def from_rotation(cls, rotation: Rotation) -> RigidTransform:
        """Transforms that only rotate."""
        return cls.from_components(fnp.zeros_like(rotation.quat[..., :3]), rotation)

    @classmethod
    def from_translation(cls, translation: Any) -> RigidTransform:
        """Transforms that only move, by vectors ``(..., 3)``."""
        t = vectors_of("RigidTransform.from_translation", translation, 3)
        return cls.from_components(t, Rotation.identity(dtype=aval_of(t).dtype))

    @classmethod
    def from_exp_coords(cls, exp_coords: Any) -> RigidTransform:
        """Transforms by exponential coordinates ``(..., 6)``: a rotation vector, then the rest.

        A transform moves along a screw; its coordinates are those of the motion's velocity.

        Reference:
            K. M. Lynch and F. C. Park, Modern Robotics, 2017, section 3.3.3.
        """
        x = vectors_of("RigidTransform.from_exp_coords", exp_coords, 6)
        v, rest = x[..., :3], x[..., 3:]
        first, second = _exponential(fnp.sum(v * v, axis=-1, keepdims=True))
        rotated = fnp.cross(v, rest)
        moved = rest + first * rotated + second * fnp.cross(v, rotated)
        return _made((moved, formulas.from_rotvec(v)))

    @classmethod
    def from_dual_quat(cls, dual_quat: Any, *, scalar_first: bool = False) -> RigidTransform:
        """Transforms by dual quaternions ``(..., 8)``, of any length, the real part first.

        Args:
            dual_quat: The real parts and the dual parts.
            scalar_first: Whether scalars come first in both.
        """
        x = vectors_of("RigidTransform.from_dual_quat", dual_quat, 8)
        real, dual = (
            fnp.roll(v, -1, axis=-1) if scalar_first else v for v in (x[..., :4], x[..., 4:])
        )
        size = fnp.sum(real * real, axis=-1, keepdims=True)
        # A unit dual quaternion has no part along the real part.
        dual = dual - real * (fnp.sum(real * dual, axis=-1, keepdims=True) / size)
        moved = 2 * formulas.product(dual, formulas.conjugate(real))[..., :3] / size
        return _made((moved, formulas.normalized(real)))

    @classmethod
    def identity(cls, num: int | None = None, *, shape: Any = None) -> RigidTransform:
        """Transforms that change nothing: one, ``num``, or an array of a shape."""
        return cls.from_rotation(Rotation.identity(num, shape=shape))

    @classmethod
    def concatenate(cls, transforms: RigidTransform | Iterable[RigidTransform]) -> RigidTransform:
        """Transforms one after the other along a first axis."""
        given = [transforms] if isinstance(transforms, RigidTransform) else list(transforms)
        rows = [(t._translation, t._quat) for t in given]
        parts = zip(*((m[None], q[None]) if m.ndim == 1 else (m, q) for m, q in rows), strict=True)
        return _made([fnp.concatenate(list(part), 0) for part in parts])

    # Forms.

    def as_matrix(self) -> Any:
        """Matrices ``(..., 4, 4)``."""
        upper = fnp.concatenate([formulas.to_matrix(self._quat), self._translation[..., None]], -1)
        last = fnp.broadcast_to(np.array([0, 0, 0, 1], aval_of(upper).dtype), (*self.shape, 1, 4))
        return fnp.concatenate([upper, last], -2)

    def as_components(self) -> tuple[Any, Rotation]:
        """Translations ``(..., 3)`` and rotations."""
        return self.translation, self.rotation

    def as_exp_coords(self) -> Any:
        """Exponential coordinates ``(..., 6)``."""
        v = formulas.to_rotvec(self._quat)
        scale = _logarithm(fnp.sum(v * v, axis=-1, keepdims=True))
        rotated = fnp.cross(v, self._translation)
        rest = self._translation - rotated / 2 + scale * fnp.cross(v, rotated)
        return fnp.concatenate([v, rest], -1)

    def as_dual_quat(self, *, scalar_first: bool = False) -> Any:
        """Dual quaternions ``(..., 8)``, the real part first.

        Args: scalar_first: Whether scalars come first in both parts.
        """
        move = fnp.concatenate([self._translation, fnp.zeros_like(self._quat[..., :1])], -1)
        parts = [self._quat, formulas.product(move, self._quat) / 2]
        return fnp.concatenate([fnp.roll(q, 1, axis=-1) if scalar_first else q for q in parts], -1)

    @property
    def rotation(self) -> Rotation:
        """The rotations."""
        return Rotation(self._quat, normalize=False)

    @property
    def translation(self) -> Any:
        """The translations, ``(..., 3)``."""
        return self._translation

    # Operations.

    def apply(self, vector: Any, inverse: bool = False) -> Any:
        """Transformed vectors ``(..., 3)``; transforms and vectors broadcast."""
        v = vectors_of("RigidTransform.apply", vector, 3)
        move = self.inv() if inverse else self
        return formulas.applied(move._quat, v) + move._translation

    def inv(self) -> RigidTransform:
        """The transforms back."""
        back = formulas.conjugate(self._quat)
        return _made((-formulas.applied(back, self._translation), back))

    def mean(self, weights: Any = None, axis: Any = None) -> RigidTransform:
        """The mean translation with the mean rotation (see `Rotation.mean`).

        Args:
            weights: Of the transforms; 1 by default.
            axis: Must be None: the mean of all.
        """
        rotation = self.rotation.mean(weights, axis)
        moves = fnp.reshape(self._translation, (-1, 3))
        if weights is None:
            return _made((fnp.mean(moves, axis=0), rotation.quat))
        w = fnp.ravel(as_value(weights, "RigidTransform.mean"))
        return _made((fnp.einsum("n,ni->i", w, moves) / fnp.sum(w), rotation.quat))

    def __mul__(self, other: RigidTransform) -> RigidTransform:
        """The transforms by ``other`` and then by these."""
        if not isinstance(other, RigidTransform):
            return NotImplemented
        return _made((self.apply(other._translation), formulas.product(self._quat, other._quat)))

    def __pow__(self, n: Any) -> RigidTransform:
        """The transforms ``n`` times, which may be a fraction: along the same screw."""
        power = as_value(n, "RigidTransform.__pow__")
        return type(self).from_exp_coords(power * self.as_exp_coords())

    def __getitem__(self, index: Any) -> RigidTransform:
        """Some of the transforms."""
        if self.single:
            raise TypeError("one transform has no index.")
        index = (*(index if isinstance(index, tuple) else (index,)), slice(None))
        return _made((self._translation[index], self._quat[index]))

    def __len__(self) -> int:
        """How many transforms there are along the first axis."""
        if self.single:
            raise TypeError("one transform has no len().")
        return self.shape[0]

    def __iter__(self) -> Iterator[RigidTransform]:
        """The transforms along the first axis."""
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        """Source that makes an equal one."""
        return f"RigidTransform.from_components({self._translation!r}, {self.rotation!r})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of transforms."""
        return shape_of(self._quat)[:-1]

    @property
    def single(self) -> bool:
        """Whether this is one transform, not an array of them."""
        return not self.shape


def _exponential(square: Any) -> tuple[Any, Any]:
    """``(1 - cos a) / a^2`` and ``(a - sin a) / a^3`` of the square of an angle."""
    is_near = square < formulas.NEAR
    near = fnp.where(is_near, square, 0.0)
    angle = fnp.sqrt(fnp.where(is_near, 1.0, square))
    half = fnp.sin(angle / 2) / angle
    beyond = 2 * half * half, (angle - fnp.sin(angle)) / angle**3
    first, second = (
        fnp.where(is_near, formulas.polynomial(series, near), far)
        for series, far in zip(_SERIES, beyond, strict=True)
    )
    return first, second


def _logarithm(square: Any) -> Any:
    """``(1 - a / 2 cot(a / 2)) / a^2`` of the square of an angle."""
    is_near = square < formulas.NEAR
    angle = fnp.sqrt(fnp.where(is_near, 1.0, square))
    beyond = (1 - angle / 2 / fnp.tan(angle / 2)) / (angle * angle)
    near = fnp.where(is_near, square, 0.0)
    return fnp.where(is_near, formulas.polynomial(_COTANGENT, near), beyond)


def _made(parts: Sequence[Any]) -> RigidTransform:
    """A transform of a translation and a unit quaternion."""
    made = object.__new__(RigidTransform)
    made._translation, made._quat = parts
    return made


register_pytree_node(
    RigidTransform,
    lambda t: ((t._translation, t._quat), None),
    lambda _, children: _made(tuple(children)),
)
