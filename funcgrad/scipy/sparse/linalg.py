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
from funcgrad.numpy.host_functions import host_function
from funcgrad.scipy.sparse.operators import LinearOperator, aslinearoperator
from funcgrad.scipy.sparse.solvers import bicgstab, cg, gmres, spsolve, spsolve_triangular

bicg = host_function("scipy.sparse.linalg", "bicg")
cgs = host_function("scipy.sparse.linalg", "cgs")
eigs = host_function("scipy.sparse.linalg", "eigs")
eigsh = host_function("scipy.sparse.linalg", "eigsh")
expm = host_function("scipy.sparse.linalg", "expm")
expm_multiply = host_function("scipy.sparse.linalg", "expm_multiply")
factorized = host_function("scipy.sparse.linalg", "factorized")
funm_multiply_krylov = host_function("scipy.sparse.linalg", "funm_multiply_krylov")
gcrotmk = host_function("scipy.sparse.linalg", "gcrotmk")
inv = host_function("scipy.sparse.linalg", "inv")
is_sptriangular = host_function("scipy.sparse.linalg", "is_sptriangular")
lgmres = host_function("scipy.sparse.linalg", "lgmres")
lobpcg = host_function("scipy.sparse.linalg", "lobpcg")
lsmr = host_function("scipy.sparse.linalg", "lsmr")
lsqr = host_function("scipy.sparse.linalg", "lsqr")
matrix_power = host_function("scipy.sparse.linalg", "matrix_power")
minres = host_function("scipy.sparse.linalg", "minres")
norm = host_function("scipy.sparse.linalg", "norm")
onenormest = host_function("scipy.sparse.linalg", "onenormest")
qmr = host_function("scipy.sparse.linalg", "qmr")
spbandwidth = host_function("scipy.sparse.linalg", "spbandwidth")
spilu = host_function("scipy.sparse.linalg", "spilu")
splu = host_function("scipy.sparse.linalg", "splu")
svds = host_function("scipy.sparse.linalg", "svds")
tfqmr = host_function("scipy.sparse.linalg", "tfqmr")
use_solver = host_function("scipy.sparse.linalg", "use_solver")

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
