"""The sparse matrices of ``jax.experimental.sparse`` as far as they are `SparseArray`.

Places must be known: traced ones, batches and dense blocks are not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import numpy
from funcgrad.base.pytree import register_pytree_node
from funcgrad.errors import ArgumentError
from funcgrad.interop.jax.arrays import adopt, plain
from funcgrad.patterns.arrays import SparseArray, from_places
from funcgrad.primitives.sparse import Pattern


class BCOO(SparseArray):
    """A matrix of entries at places that are listed; those of one place are added.

    Args:
        args: The entries, and for each its row and column.
        shape: Numbers of rows and columns.
        indices_sorted: Accepted for JAX's signature: places are sorted here.
        unique_indices: Accepted for JAX's signature.
    """

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: tuple[int, int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        data, places = plain(args[0]), np.asarray(args[1])
        if len(shape) != 2 or places.ndim != 2 or places.shape[1] != 2 or np.ndim(data) != 1:
            raise ArgumentError(
                f"BCOO: matrices are sparse here, not batches of them or dense blocks, got entries "
                f"of shape {np.shape(data)}, indices of shape {places.shape} and shape={shape}."
            )
        found = from_places(data, places[:, 0], places[:, 1], shape)
        super().__init__(found.data, found.pattern)

    @classmethod
    def fromdense(cls, mat: Any, **options: Any) -> BCOO:
        """The elements of a known matrix that are not zero."""
        found = SparseArray.of(mat if hasattr(mat, "tocsr") else np.asarray(mat))
        return _of(found.data, found.pattern)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, **options: Any) -> BCOO:
        """The entries of a matrix of SciPy's."""
        return cls.fromdense(mat)

    @property
    def indices(self) -> Any:
        """For each entry its row and column."""
        return adopt(np.stack(self.coords, 1))

    @property
    def nse(self) -> int:
        """The number of entries."""
        return self.nnz

    @property
    def T(self) -> BCOO:
        """The transpose."""
        found = super().T
        return _of(found.data, found.pattern)

    def with_data(self, data: Any) -> BCOO:
        """Other entries at the same places."""
        return _of(data, self.pattern)

    def __matmul__(self, x: Any) -> Any:
        return adopt(super().__matmul__(plain(x)))

    def __rmatmul__(self, x: Any) -> Any:
        return adopt(super().__rmatmul__(plain(x)))

    def todense(self) -> Any:
        """The dense matrix."""
        return adopt(self.toarray())

    def transpose(self) -> BCOO:
        """The transpose."""
        return self.T


def bcoo_dot_general(
    lhs: BCOO, rhs: Any, *, dimension_numbers: Any, preferred_element_type: Any = None
) -> Any:
    """A matrix times a dense array.

    Args:
        lhs: The matrix.
        rhs: The array.
        dimension_numbers: The axis of each that is summed over; without batches.
        preferred_element_type: Dtype of the result.
    Raises: ArgumentError: If there are batches, or more axes than one.
    """
    (ours, theirs), batches = dimension_numbers
    if any(map(len, batches)) or len(ours) != 1 or len(theirs) != 1:
        raise ArgumentError(
            f"bcoo_dot_general: one axis of a matrix is summed over here, got {dimension_numbers}."
        )
    matrix = lhs if ours[0] == 1 else lhs.T
    lines = numpy.moveaxis(numpy.asarray(rhs), theirs[0], 0)
    flat = matrix @ lines.reshape((lines.shape[0], -1))
    found = flat.reshape((flat.shape[0], *lines.shape[1:]))
    return found if preferred_element_type is None else found.astype(preferred_element_type)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """The function: matrices are multiplied by their operators, in any function.

    Args:
        f: The function.
        use_tracer: Accepted for JAX's signature.
    """
    return f


def _of(data: Any, pattern: Pattern) -> BCOO:
    found = BCOO.__new__(BCOO)
    SparseArray.__init__(found, data, pattern)
    return found


register_pytree_node(
    BCOO, lambda a: ([a.data], a.pattern), lambda pattern, data: _of(data[0], pattern)
)

OF_BCOO: dict[str, Any] = {"BCOO": BCOO, "bcoo_dot_general": bcoo_dot_general}
"""Names of ``jax.experimental.sparse.bcoo``."""
