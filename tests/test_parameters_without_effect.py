"""Parameters that functions take for the sake of another library's signature.

A parameter that a function does not read either cannot change its result, and is listed here with
the reason, or is refused by `funcgrad.base.defaults.only_defaults` where it is not the default.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import funcgrad as fg
from funcgrad import lax
from funcgrad import numpy as fnp
from funcgrad.errors import ArgumentError
from funcgrad.scipy import fft, linalg, stats

PACKAGE = Path(fg.__file__).parent
PUBLIC = ("numpy", "scipy", "lax", "nn", "random", "image", "ops.py")

WITHOUT_EFFECT = {
    "arguments are never written into, and results never share memory with them": """
        copy overwrite_A overwrite_a overwrite_a_band overwrite_ab overwrite_b overwrite_c
        overwrite_data overwrite_input""",
    "values are not checked, or always are": "assume_unique check_finite debug upper_triangular",
    "how it is computed: there is one way, whose results are as accurate": """
        _split_transpose algorithm balanced blocksize cache_size driver
        implementation indices_are_sorted kind lapack_driver lwork max_ev method n_iter precision
        quadrature recall_target series_order solve_method stable turbo unique_indices unroll
        use_magma use_umfpack workers is_stable prevent_mlir_dce aggregate_to_topk
        reduction_input_size_override shardings version k max_iterations
        max_squarings eps tol n_max rng numpy_resid""",
    "what is derived needs no help: derivatives are those of the function": """
        Dfun band bc_jac col_deriv diff_step enable_eigvec_derivs fprime fprime2 fun_jac hess
        hessp jac ml mu vectorized x1 diag factor epsfcn hmin ixpr mxhnil mxordn mxords tcrit""",
    "nothing is printed": "disp printmessg show",
    "it holds of the values already, or more is returned than was asked for": """
        hermitian is_hermitian lower sort_eigenvalues sorted compute_u compute_vh complex_func""",
    "options of what is not taken: weights of integrands, weights of a number of bins": """
        limlst maxp1 wopts wvar weights""",
    "memory layouts and subclasses, which traced arrays do not have": "order subok",
    "there is one library of arrays": "xp",
    "what the callback gets is the same for all": "callback_type",
    "the key of what draws nothing, or its other arguments": "key _",
}
DECLARED = {name for names in WITHOUT_EFFECT.values() for name in names.split()}


def unread() -> Iterator[tuple[str, str]]:
    """Public functions, with a parameter that they do not read."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] not in PUBLIC:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            read = {n.id for b in node.body for n in ast.walk(b) if isinstance(n, ast.Name)}
            parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            for parameter in parameters:
                if parameter.arg not in read:
                    yield f"{path.stem}.{node.name}", parameter.arg


def test_what_is_not_read_is_declared() -> None:
    found = set(unread())
    undeclared = sorted(row for row in found if row[1] not in DECLARED)
    assert not undeclared, f"declare these, with a reason, or refuse them: {undeclared}"
    stale = sorted(DECLARED - {name for _, name in found})
    assert not stale, f"no function takes these without reading them: {stale}"


MATRIX = np.array([[2.0, 1.0], [1.0, 3.0]])
REFUSED: dict[str, Callable[[Any], Any]] = {
    r"eigh\(eigvals=\(0, 0\)\) is not supported": lambda a: linalg.eigh(a, eigvals=(0, 0)),
    r"lax.linalg.schur\(sort_eig_vals=True\)": lambda a: lax.linalg.schur(a, sort_eig_vals=True),
    r"lax.linalg.schur\(select_callable=": lambda a: lax.linalg.schur(a, select_callable=np.real),
    r"view\(type=<class 'numpy.matrix'>\)": lambda a: fnp.asarray(a).view(np.int64, np.matrix),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_would_change_the_result_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        fg.jit(REFUSED[text])(MATRIX)


def test_the_device_is_the_processor() -> None:
    for function in (fft.fftfreq, fft.rfftfreq):
        assert function(4, device="cpu").shape == function(4).shape
        with pytest.raises(ArgumentError, match="device"):
            function(4, device="gpu")


def test_sums_of_frequencies_are_compared() -> None:
    seen, expected = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 9.0])
    for f in (scipy.stats.chisquare, stats.chisquare):
        with pytest.raises(ValueError, match="the sum of the"):
            f(seen, expected)
    with pytest.raises(ValueError, match="the sum of the expected"):
        fg.grad(lambda x: stats.chisquare(x, expected).statistic)(seen)
    unchecked = stats.chisquare(seen, expected, sum_check=False)
    theirs = scipy.stats.chisquare(seen, expected, sum_check=False)
    np.testing.assert_allclose(unchecked.statistic, theirs.statistic, 1e-14)
