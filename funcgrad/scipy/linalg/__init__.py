"""`scipy.linalg` on arrays and traced values: factorisations, systems, functions of matrices.

SciPy's names, arguments and defaults; stacks of matrices are allowed everywhere. Options about
memory and about checking values (``overwrite_a``, ``check_finite``) are accepted without effect.

This module is a page of names; the work is in the modules that it names.
"""
# ruff: noqa: F403, F405

from typing import TYPE_CHECKING

from funcgrad.base.signatures import share
from funcgrad.numpy.linalg import LinAlgError
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.linalg.eigen import *
from funcgrad.scipy.linalg.factorizing import *
from funcgrad.scipy.linalg.functions import *
from funcgrad.scipy.linalg.meanings import MEANINGS
from funcgrad.scipy.linalg.solving import *
from funcgrad.scipy.linalg.spaces import *
from funcgrad.scipy.linalg.structured import *

if TYPE_CHECKING:
    from scipy.linalg import LinAlgWarning

__all__ = [
    "LinAlgError", "LinAlgWarning", "bandwidth", "block_diag", "cdf2rdf", "cho_factor", "cho_solve",
    "cho_solve_banded", "cholesky", "cholesky_banded", "circulant", "clarkson_woodruff_transform",
    "companion", "convolution_matrix", "coshm", "cosm", "cossin", "det", "dft", "diagsvd", "eig",
    "eig_banded", "eigh", "eigh_tridiagonal", "eigvals", "eigvals_banded", "eigvalsh",
    "eigvalsh_tridiagonal", "expm", "expm_cond", "expm_frechet", "fiedler", "fiedler_companion",
    "find_best_blas_type", "fractional_matrix_power", "funm", "get_blas_funcs", "get_lapack_funcs",
    "hadamard", "hankel", "helmert", "hessenberg", "hilbert", "inv", "invhilbert", "invpascal",
    "ishermitian", "issymmetric", "khatri_rao", "ldl", "leslie", "logm", "lstsq", "lu", "lu_factor",
    "lu_solve", "matmul_toeplitz", "matrix_balance", "norm", "null_space", "ordqz", "orth",
    "orthogonal_procrustes", "pascal", "pinv", "pinvh", "polar", "qr", "qr_delete", "qr_insert",
    "qr_multiply", "qr_update", "qz", "rq", "rsf2csf", "schur", "signm", "sinhm", "sinm", "solve",
    "solve_banded", "solve_circulant", "solve_continuous_are", "solve_continuous_lyapunov",
    "solve_discrete_are", "solve_discrete_lyapunov", "solve_lyapunov", "solve_sylvester",
    "solve_toeplitz", "solve_triangular", "solveh_banded", "sqrtm", "subspace_angles", "svd",
    "svdvals", "tanhm", "tanm", "toeplitz",
]  # fmt: skip

share(__name__, MEANINGS)
present_results(__name__, fallback="scipy.linalg")
