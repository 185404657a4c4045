"""`scipy.sparse.linalg` on traced values: linear systems, and operators.

What has no derivative rule here is SciPy's own and takes concrete values.
"""

# ruff: noqa: F401

from typing import TYPE_CHECKING, Any

from scipy.sparse.linalg import (
    ArpackError,
    ArpackNoConvergence,
    LaplacianNd,
    MatrixRankWarning,
    SuperLU,
)

from funcgrad.base.namespaces import page
from funcgrad.numpy.host_functions import host_functions
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.sparse.operators import LinearOperator, aslinearoperator
from funcgrad.scipy.sparse.solvers import bicgstab, cg, gmres, spsolve, spsolve_triangular

if TYPE_CHECKING:  # the names that are added below

    def __getattr__(name: str) -> Any: ...


vars().update(
    host_functions(
        "scipy.sparse.linalg",
        """
        bicg cgs eigs eigsh expm expm_multiply factorized funm_multiply_krylov gcrotmk inv
        is_sptriangular lgmres lobpcg lsmr lsqr matrix_power minres norm onenormest qmr spbandwidth
        spilu splu svds tfqmr use_solver
        """,
    )
)

__all__ = page(vars())

present_results(__name__)
