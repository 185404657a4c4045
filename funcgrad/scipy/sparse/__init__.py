"""`scipy.sparse` beside traced values: constant matrices, and matrices with traced entries.

Constant matrices are SciPy's own, and multiply traced values as they are: ``A @ x``, ``x @ A``.
"""

from typing import TYPE_CHECKING

from scipy import sparse as _scipy
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

from funcgrad.namespaces import present
from funcgrad.scipy.passing import passed
from funcgrad.scipy.sparse.arrays import SparseArray, coo_array, csc_array, csr_array

if TYPE_CHECKING:  # it is loaded on first use
    from funcgrad.scipy.sparse import linalg

block_array = passed(_scipy, "block_array")
block_diag = passed(_scipy, "block_diag")
bmat = passed(_scipy, "bmat")
diags = passed(_scipy, "diags")
diags_array = passed(_scipy, "diags_array")
expand_dims = passed(_scipy, "expand_dims")
eye = passed(_scipy, "eye")
eye_array = passed(_scipy, "eye_array")
find = passed(_scipy, "find")
get_index_dtype = passed(_scipy, "get_index_dtype")
hstack = passed(_scipy, "hstack")
identity = passed(_scipy, "identity")
issparse = passed(_scipy, "issparse")
isspmatrix = passed(_scipy, "isspmatrix")
isspmatrix_bsr = passed(_scipy, "isspmatrix_bsr")
isspmatrix_coo = passed(_scipy, "isspmatrix_coo")
isspmatrix_csc = passed(_scipy, "isspmatrix_csc")
isspmatrix_csr = passed(_scipy, "isspmatrix_csr")
isspmatrix_dia = passed(_scipy, "isspmatrix_dia")
isspmatrix_dok = passed(_scipy, "isspmatrix_dok")
isspmatrix_lil = passed(_scipy, "isspmatrix_lil")
kron = passed(_scipy, "kron")
kronsum = passed(_scipy, "kronsum")
load_npz = passed(_scipy, "load_npz")
permute_dims = passed(_scipy, "permute_dims")
rand = passed(_scipy, "rand")
random = passed(_scipy, "random")
random_array = passed(_scipy, "random_array")
safely_cast_index_arrays = passed(_scipy, "safely_cast_index_arrays")
save_npz = passed(_scipy, "save_npz")
spdiags = passed(_scipy, "spdiags")
swapaxes = passed(_scipy, "swapaxes")
tril = passed(_scipy, "tril")
triu = passed(_scipy, "triu")
vstack = passed(_scipy, "vstack")

__all__ = [
    "SparseArray",
    "SparseEfficiencyWarning",
    "SparseWarning",
    "block_array",
    "block_diag",
    "bmat",
    "bsr_array",
    "bsr_matrix",
    "coo_array",
    "coo_matrix",
    "csc_array",
    "csc_matrix",
    "csr_array",
    "csr_matrix",
    "dia_array",
    "dia_matrix",
    "diags",
    "diags_array",
    "dok_array",
    "dok_matrix",
    "expand_dims",
    "eye",
    "eye_array",
    "find",
    "get_index_dtype",
    "hstack",
    "identity",
    "issparse",
    "isspmatrix",
    "isspmatrix_bsr",
    "isspmatrix_coo",
    "isspmatrix_csc",
    "isspmatrix_csr",
    "isspmatrix_dia",
    "isspmatrix_dok",
    "isspmatrix_lil",
    "kron",
    "kronsum",
    "lil_array",
    "lil_matrix",
    "linalg",
    "load_npz",
    "permute_dims",
    "rand",
    "random",
    "random_array",
    "safely_cast_index_arrays",
    "save_npz",
    "sparray",
    "spdiags",
    "spmatrix",
    "swapaxes",
    "tril",
    "triu",
    "vstack",
]

present(__name__)
