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

from funcgrad.base.namespaces import present
from funcgrad.numpy.host_functions import host_function
from funcgrad.patterns.arrays import SparseArray
from funcgrad.scipy.sparse.arrays import coo_array, csc_array, csr_array

if TYPE_CHECKING:  # it is loaded on first use
    from funcgrad.scipy.sparse import linalg

block_array = host_function("scipy.sparse", "block_array")
block_diag = host_function("scipy.sparse", "block_diag")
bmat = host_function("scipy.sparse", "bmat")
diags = host_function("scipy.sparse", "diags")
diags_array = host_function("scipy.sparse", "diags_array")
expand_dims = host_function("scipy.sparse", "expand_dims")
eye = host_function("scipy.sparse", "eye")
eye_array = host_function("scipy.sparse", "eye_array")
find = host_function("scipy.sparse", "find")
get_index_dtype = host_function("scipy.sparse", "get_index_dtype")
hstack = host_function("scipy.sparse", "hstack")
identity = host_function("scipy.sparse", "identity")
issparse = host_function("scipy.sparse", "issparse")
isspmatrix = host_function("scipy.sparse", "isspmatrix")
isspmatrix_bsr = host_function("scipy.sparse", "isspmatrix_bsr")
isspmatrix_coo = host_function("scipy.sparse", "isspmatrix_coo")
isspmatrix_csc = host_function("scipy.sparse", "isspmatrix_csc")
isspmatrix_csr = host_function("scipy.sparse", "isspmatrix_csr")
isspmatrix_dia = host_function("scipy.sparse", "isspmatrix_dia")
isspmatrix_dok = host_function("scipy.sparse", "isspmatrix_dok")
isspmatrix_lil = host_function("scipy.sparse", "isspmatrix_lil")
kron = host_function("scipy.sparse", "kron")
kronsum = host_function("scipy.sparse", "kronsum")
load_npz = host_function("scipy.sparse", "load_npz")
matrix_transpose = host_function("scipy.sparse", "matrix_transpose")
permute_dims = host_function("scipy.sparse", "permute_dims")
rand = host_function("scipy.sparse", "rand")
random = host_function("scipy.sparse", "random")
random_array = host_function("scipy.sparse", "random_array")
safely_cast_index_arrays = host_function("scipy.sparse", "safely_cast_index_arrays")
save_npz = host_function("scipy.sparse", "save_npz")
spdiags = host_function("scipy.sparse", "spdiags")
swapaxes = host_function("scipy.sparse", "swapaxes")
tril = host_function("scipy.sparse", "tril")
triu = host_function("scipy.sparse", "triu")
vstack = host_function("scipy.sparse", "vstack")

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
    "matrix_transpose",
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
