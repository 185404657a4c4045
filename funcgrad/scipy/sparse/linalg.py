"""`scipy.sparse.linalg` on traced values: linear systems, and operators.

What has no derivative rule here is SciPy's own and takes concrete values.
"""

from scipy.sparse.linalg import (
    ArpackError,
    ArpackNoConvergence,
    LaplacianNd,
    MatrixRankWarning,
    SuperLU,
)

from funcgrad.base.namespaces import present
from funcgrad.numpy.borrowing import borrow
from funcgrad.scipy.sparse.operators import LinearOperator, aslinearoperator
from funcgrad.scipy.sparse.solvers import bicgstab, cg, gmres, spsolve, spsolve_triangular

bicg = borrow("scipy.sparse.linalg", "bicg")
cgs = borrow("scipy.sparse.linalg", "cgs")
eigs = borrow("scipy.sparse.linalg", "eigs")
eigsh = borrow("scipy.sparse.linalg", "eigsh")
expm = borrow("scipy.sparse.linalg", "expm")
expm_multiply = borrow("scipy.sparse.linalg", "expm_multiply")
factorized = borrow("scipy.sparse.linalg", "factorized")
funm_multiply_krylov = borrow("scipy.sparse.linalg", "funm_multiply_krylov")
gcrotmk = borrow("scipy.sparse.linalg", "gcrotmk")
inv = borrow("scipy.sparse.linalg", "inv")
is_sptriangular = borrow("scipy.sparse.linalg", "is_sptriangular")
lgmres = borrow("scipy.sparse.linalg", "lgmres")
lobpcg = borrow("scipy.sparse.linalg", "lobpcg")
lsmr = borrow("scipy.sparse.linalg", "lsmr")
lsqr = borrow("scipy.sparse.linalg", "lsqr")
matrix_power = borrow("scipy.sparse.linalg", "matrix_power")
minres = borrow("scipy.sparse.linalg", "minres")
norm = borrow("scipy.sparse.linalg", "norm")
onenormest = borrow("scipy.sparse.linalg", "onenormest")
qmr = borrow("scipy.sparse.linalg", "qmr")
spbandwidth = borrow("scipy.sparse.linalg", "spbandwidth")
spilu = borrow("scipy.sparse.linalg", "spilu")
splu = borrow("scipy.sparse.linalg", "splu")
svds = borrow("scipy.sparse.linalg", "svds")
tfqmr = borrow("scipy.sparse.linalg", "tfqmr")
use_solver = borrow("scipy.sparse.linalg", "use_solver")

__all__ = [
    "ArpackError",
    "ArpackNoConvergence",
    "LaplacianNd",
    "LinearOperator",
    "MatrixRankWarning",
    "SuperLU",
    "aslinearoperator",
    "bicg",
    "bicgstab",
    "cg",
    "cgs",
    "eigs",
    "eigsh",
    "expm",
    "expm_multiply",
    "factorized",
    "funm_multiply_krylov",
    "gcrotmk",
    "gmres",
    "inv",
    "is_sptriangular",
    "lgmres",
    "lobpcg",
    "lsmr",
    "lsqr",
    "matrix_power",
    "minres",
    "norm",
    "onenormest",
    "qmr",
    "spbandwidth",
    "spilu",
    "splu",
    "spsolve",
    "spsolve_triangular",
    "svds",
    "tfqmr",
    "use_solver",
]

present(__name__)
