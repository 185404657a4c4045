"""`scipy.sparse` beside traced values: constant matrices, and matrices with traced entries.

Constant matrices are SciPy's own, and multiply traced values as they are: ``A @ x``, ``x @ A``.
"""

# ruff: noqa: F401

from typing import TYPE_CHECKING, Any

from scipy.sparse import (
    SparseEfficiencyWarning,
    SparseWarning,
    bsr_array,
    bsr_matrix,
    coo_matrix,
    csc_matrix,
    csr_matrix,
    dia_array,
    dia_matrix,
    dok_array,
    dok_matrix,
    lil_array,
    lil_matrix,
    sparray,
    spmatrix,
)

from funcgrad.base.namespaces import page
from funcgrad.base.signatures import share
from funcgrad.numpy.host_functions import host_functions
from funcgrad.numpy.public_functions import present_results
from funcgrad.patterns.arrays import SparseArray
from funcgrad.scipy.sparse.arrays import coo_array, csc_array, csr_array
from funcgrad.scipy.sparse.meanings import MEANINGS

if TYPE_CHECKING:  # it is loaded on first use
    from funcgrad.scipy.sparse import linalg

    def __getattr__(name: str) -> Any: ...


vars().update(
    host_functions(
        "scipy.sparse",
        """
        block_array block_diag bmat diags diags_array expand_dims eye eye_array find get_index_dtype
        hstack identity issparse isspmatrix isspmatrix_bsr isspmatrix_coo isspmatrix_csc
        isspmatrix_csr isspmatrix_dia isspmatrix_dok isspmatrix_lil kron kronsum load_npz
        matrix_transpose permute_dims rand random random_array safely_cast_index_arrays save_npz
        spdiags swapaxes tril triu vstack
        """,
    )
)

__all__ = page(vars(), "linalg")

share(__name__, MEANINGS)
present_results(__name__)
