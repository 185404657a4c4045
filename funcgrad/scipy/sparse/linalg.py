"""`scipy.sparse.linalg` on traced values: linear systems, and operators.

What has no derivative rule here is SciPy's own and takes concrete values.
"""

from scipy.sparse import linalg as _scipy
from scipy.sparse.linalg import (
    ArpackError,
    ArpackNoConvergence,
    LaplacianNd,
    MatrixRankWarning,
    SuperLU,
)

from funcgrad.namespaces import present
from funcgrad.scipy.passing import passed
from funcgrad.scipy.sparse.operators import LinearOperator, aslinearoperator
from funcgrad.scipy.sparse.solvers import bicgstab, cg, gmres, spsolve, spsolve_triangular

bicg = passed(_scipy, "bicg")
cgs = passed(_scipy, "cgs")
eigs = passed(_scipy, "eigs")
eigsh = passed(_scipy, "eigsh")
expm = passed(_scipy, "expm")
expm_multiply = passed(_scipy, "expm_multiply")
factorized = passed(_scipy, "factorized")
funm_multiply_krylov = passed(_scipy, "funm_multiply_krylov")
gcrotmk = passed(_scipy, "gcrotmk")
inv = passed(_scipy, "inv")
is_sptriangular = passed(_scipy, "is_sptriangular")
lgmres = passed(_scipy, "lgmres")
lobpcg = passed(_scipy, "lobpcg")
lsmr = passed(_scipy, "lsmr")
lsqr = passed(_scipy, "lsqr")
matrix_power = passed(_scipy, "matrix_power")
minres = passed(_scipy, "minres")
norm = passed(_scipy, "norm")
onenormest = passed(_scipy, "onenormest")
qmr = passed(_scipy, "qmr")
spbandwidth = passed(_scipy, "spbandwidth")
spilu = passed(_scipy, "spilu")
splu = passed(_scipy, "splu")
svds = passed(_scipy, "svds")
tfqmr = passed(_scipy, "tfqmr")
use_solver = passed(_scipy, "use_solver")

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
