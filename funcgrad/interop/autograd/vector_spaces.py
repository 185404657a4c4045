"""Vector spaces of autograd's ``vspace``: what rules ask them for, for pytrees of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from funcgrad.base.pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError

__all__ = ["VSpace", "vspace"]


class VSpace:
    """The space that a value, an array or a pytree of arrays, belongs to.

    Args: value: The value.
    """

    def __init__(self, value: Any) -> None:
        leaves, self.treedef = tree_flatten(value)
        self.avals = [aval_of(leaf).strong() for leaf in leaves]

    @classmethod
    def register(cls, value_type: type, vspace_maker: Any = None) -> NoReturn:
        """Refused: a class is made differentiable as a pytree.

        Args:
            value_type: The class.
            vspace_maker: Not used.
        Raises: ArgumentError: Always.
        """
        raise ArgumentError(
            f"VSpace.register({value_type.__name__}): funcgrad differentiates classes as pytrees. "
            "Register it with funcgrad.tree_util.register_pytree_node or register_dataclass."
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VSpace):
            return NotImplemented
        return (self.treedef, self.avals) == (other.treedef, other.avals)

    def __hash__(self) -> int:
        return hash((self.treedef, tuple(self.avals)))

    def __repr__(self) -> str:
        return f"VSpace({', '.join(map(str, self.avals))})"

    @property
    def iscomplex(self) -> bool:
        """Whether a leaf is complex."""
        return any(a.dtype.kind == "c" for a in self.avals)

    @property
    def size(self) -> int:
        """Number of real coordinates."""
        return sum(a.size * (2 if a.dtype.kind == "c" else 1) for a in self.avals)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self._only.shape

    @property
    def dtype(self) -> Any:
        """Dtype of the array."""
        return self._only.dtype

    @property
    def _only(self) -> Any:
        if len(self.avals) != 1:
            raise ArgumentError("a container has no shape and no dtype: ask its leaves for theirs.")
        return self.avals[0]

    def _full(self, make: Any) -> Any:
        return tree_unflatten(self.treedef, [make(a) for a in self.avals])

    def zeros(self) -> Any:
        """Zeros of the space."""
        return self._full(lambda a: np.zeros(a.shape, a.dtype))

    def ones(self) -> Any:
        """The sum of the unit vectors: of complex numbers ``1 + 1j``."""
        return self._full(lambda a: np.full(a.shape, 1 + 1j if a.dtype.kind == "c" else 1, a.dtype))

    def randn(self) -> Any:
        """Standard normal numbers, from NumPy's global generator."""

        def draw(aval: Any) -> Any:
            real = np.random.standard_normal(aval.shape)
            imag = np.random.standard_normal(aval.shape) if aval.dtype.kind == "c" else 0.0
            return np.asarray(real + 1j * imag if aval.dtype.kind == "c" else real, aval.dtype)

        return self._full(draw)

    def standard_basis(self) -> Iterator[Any]:
        """The unit vectors, one after the other."""
        for i, aval in enumerate(self.avals):
            for j in range(aval.size):
                for unit in (1.0, 1j) if aval.dtype.kind == "c" else (1.0,):
                    leaves = [np.zeros(a.shape, a.dtype) for a in self.avals]
                    leaves[i].reshape(-1)[j] = unit
                    yield tree_unflatten(self.treedef, leaves)

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two vectors."""
        return tree_map(lambda a, b: a + b, x, y)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """A vector times a number."""
        return tree_map(lambda leaf: leaf * a, x)

    def covector(self, x: Any) -> Any:
        """The conjugate: cotangents of complex arrays are conjugate to tangents."""
        return tree_map(np.conj, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The real inner product."""
        pairs = zip(tree_leaves(x), tree_leaves(y), strict=True)
        return sum(np.real(np.vdot(a, b)) for a, b in pairs)


def vspace(value: Any) -> VSpace:
    """The vector space of a value.

    Args: value: An array, a number, or a pytree of them.

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop.autograd.extend import vspace
        >>> vspace({"a": np.ones(2), "b": 1.0}).size
        3
    """
    return VSpace(value)
