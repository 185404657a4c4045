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
from funcgrad.numpy.borrowing import borrow
from funcgrad.patterns.arrays import SparseArray
from funcgrad.scipy.sparse.arrays import coo_array, csc_array, csr_array

if TYPE_CHECKING:  # it is loaded on first use
    from funcgrad.scipy.sparse import linalg

block_array = borrow("scipy.sparse", "block_array")
block_diag = borrow("scipy.sparse", "block_diag")
bmat = borrow("scipy.sparse", "bmat")
diags = borrow("scipy.sparse", "diags")
diags_array = borrow("scipy.sparse", "diags_array")
expand_dims = borrow("scipy.sparse", "expand_dims")
eye = borrow("scipy.sparse", "eye")
eye_array = borrow("scipy.sparse", "eye_array")
find = borrow("scipy.sparse", "find")
get_index_dtype = borrow("scipy.sparse", "get_index_dtype")
hstack = borrow("scipy.sparse", "hstack")
identity = borrow("scipy.sparse", "identity")
issparse = borrow("scipy.sparse", "issparse")
isspmatrix = borrow("scipy.sparse", "isspmatrix")
isspmatrix_bsr = borrow("scipy.sparse", "isspmatrix_bsr")
isspmatrix_coo = borrow("scipy.sparse", "isspmatrix_coo")
isspmatrix_csc = borrow("scipy.sparse", "isspmatrix_csc")
isspmatrix_csr = borrow("scipy.sparse", "isspmatrix_csr")
isspmatrix_dia = borrow("scipy.sparse", "isspmatrix_dia")
isspmatrix_dok = borrow("scipy.sparse", "isspmatrix_dok")
isspmatrix_lil = borrow("scipy.sparse", "isspmatrix_lil")
kron = borrow("scipy.sparse", "kron")
kronsum = borrow("scipy.sparse", "kronsum")
load_npz = borrow("scipy.sparse", "load_npz")
matrix_transpose = borrow("scipy.sparse", "matrix_transpose")
permute_dims = borrow("scipy.sparse", "permute_dims")
rand = borrow("scipy.sparse", "rand")
random = borrow("scipy.sparse", "random")
random_array = borrow("scipy.sparse", "random_array")
safely_cast_index_arrays = borrow("scipy.sparse", "safely_cast_index_arrays")
save_npz = borrow("scipy.sparse", "save_npz")
spdiags = borrow("scipy.sparse", "spdiags")
swapaxes = borrow("scipy.sparse", "swapaxes")
tril = borrow("scipy.sparse", "tril")
triu = borrow("scipy.sparse", "triu")
vstack = borrow("scipy.sparse", "vstack")

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
