"""`scipy.sparse` beside traced values: constant matrices, and matrices with traced entries.

Constant matrices are SciPy's own, and multiply traced values as they are: ``A @ x``, ``x @ A``.
"""

from typing import TYPE_CHECKING

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

from funcgrad.base.signatures import share
from funcgrad.numpy.host_functions import host_functions
from funcgrad.numpy.public_functions import present_results
from funcgrad.patterns.arrays import SparseArray
from funcgrad.scipy.sparse.arrays import coo_array, csc_array, csr_array
from funcgrad.scipy.sparse.meanings import MEANINGS

if TYPE_CHECKING:  # it is loaded on first use
    from funcgrad.scipy.sparse import linalg

(
    block_array, block_diag, bmat, diags, diags_array, expand_dims, eye, eye_array, find,
    get_index_dtype, hstack, identity, issparse, isspmatrix, isspmatrix_bsr, isspmatrix_coo,
    isspmatrix_csc, isspmatrix_csr, isspmatrix_dia, isspmatrix_dok, isspmatrix_lil, kron, kronsum,
    load_npz, matrix_transpose, permute_dims, rand, random, random_array, safely_cast_index_arrays,
    save_npz, spdiags, swapaxes, tril, triu, vstack,
) = host_functions(
    "scipy.sparse",
    "block_array", "block_diag", "bmat", "diags", "diags_array", "expand_dims", "eye", "eye_array",
    "find", "get_index_dtype", "hstack", "identity", "issparse", "isspmatrix", "isspmatrix_bsr",
    "isspmatrix_coo", "isspmatrix_csc", "isspmatrix_csr", "isspmatrix_dia", "isspmatrix_dok",
    "isspmatrix_lil", "kron", "kronsum", "load_npz", "matrix_transpose", "permute_dims", "rand",
    "random", "random_array", "safely_cast_index_arrays", "save_npz", "spdiags", "swapaxes", "tril",
    "triu", "vstack",
)  # fmt: skip

__all__ = [
    "SparseArray", "SparseEfficiencyWarning", "SparseWarning", "block_array", "block_diag", "bmat",
    "bsr_array", "bsr_matrix", "coo_array", "coo_matrix", "csc_array", "csc_matrix", "csr_array",
    "csr_matrix", "dia_array", "dia_matrix", "diags", "diags_array", "dok_array", "dok_matrix",
    "expand_dims", "eye", "eye_array", "find", "get_index_dtype", "hstack", "identity", "issparse",
    "isspmatrix", "isspmatrix_bsr", "isspmatrix_coo", "isspmatrix_csc", "isspmatrix_csr",
    "isspmatrix_dia", "isspmatrix_dok", "isspmatrix_lil", "kron", "kronsum", "lil_array",
    "lil_matrix", "linalg", "load_npz", "matrix_transpose", "permute_dims", "rand", "random",
    "random_array", "safely_cast_index_arrays", "save_npz", "sparray", "spdiags", "spmatrix",
    "swapaxes", "tril", "triu", "vstack",
]  # fmt: skip

share(__name__, MEANINGS)
present_results(__name__)
