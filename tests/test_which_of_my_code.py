"""The table of `docs/start/which_of_my_code.md`: what each of its rows says is tried here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
import scipy.sparse
import scipy.special
from numpy.testing import assert_allclose

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import DtypeError, FuncgradError, MissingRuleError
from funcgrad.scipy import integrate, interpolate, linalg, optimize, signal, stats
from tests.pages import ROOT

PAGE = ROOT / "docs" / "start" / "which_of_my_code.md"
X = np.array([0.3, 1.2, -0.7, 2.0])


def check_slope(f: Callable[[Any], Any], x: float, step: float = 1e-5) -> None:
    """The derivative against a difference."""
    assert_allclose(fg.grad(f)(x), (f(x + step) - f(x - step)) / (2 * step), rtol=1e-5)


def plain_numpy() -> None:
    def f(t: Any) -> Any:
        a = np.sin(t * X)[::-1] + X[1:].mean()
        solved = np.linalg.solve(np.eye(4) + np.outer(a, a), X)
        spectrum = np.abs(np.fft.fft(solved)) ** 2
        return np.einsum("i,i->", spectrum, a) + np.max(a) - a[2] ** 2

    check_slope(f, 0.7)
    assert_allclose(fg.jit(f)(0.7), f(0.7))


def writes_into_arrays() -> None:
    def fill(x: Any, zeros: Callable[..., Any]) -> Any:
        y = zeros(3)
        y[0], y[1] = x, x**2
        return y.sum()

    assert fg.grad(fill)(2.0, fnp.zeros) == 5.0
    with pytest.raises(TypeError, match=r"begin with y = funcgrad\.numpy\.zeros"):
        fg.grad(fill)(2.0, np.zeros)

    def clear(x: Any) -> Any:
        y = x.copy()
        y[0] = 0.0
        return (y**2).sum()

    assert_allclose(fg.grad(clear)(X), [0.0, *(2 * X[1:])])


def draws_with_numpy() -> None:
    with pytest.warns(UserWarning, match="has drawn random numbers"):
        fg.jit(lambda x: x + np.random.normal())(0.0)
    draw = fg.jit(lambda x, key: x + fg.random.normal(key))
    assert draw(0.0, fg.random.key(0)) != draw(0.0, fg.random.key(1))


def ufuncs_of_scipy() -> None:
    for f in (scipy.special.erf, scipy.special.gammaln, scipy.special.expit):
        check_slope(f, 0.8)


def other_functions_of_scipy() -> None:
    check_slope(lambda a: optimize.brentq(lambda x: x**3 - a, 0.0, 10.0), 8.0)
    check_slope(lambda a: integrate.quad(lambda x: np.exp(-a * x), 0.0, 1.0)[0], 0.5)
    check_slope(lambda a: interpolate.CubicSpline(np.arange(4.0), a * X)(1.5), 0.5)
    check_slope(lambda a: stats.norm.logpdf(0.5, 0.0, a), 1.5)
    check_slope(lambda a: np.sum(signal.convolve(a * X, X) ** 2), 0.5)
    check_slope(lambda a: np.sum(linalg.expm(a * np.outer(X, X) / 5)), 0.5)


def constant_sparse_matrices() -> None:
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix):
        a = kind(np.diag(X) + np.eye(4, k=1))
        assert_allclose(fg.grad(lambda x, a=a: np.sum((a @ x) ** 2))(X), 2 * a.T @ (a @ X))
        assert_allclose(fg.jit(lambda x, a=a: a @ x)(X), a @ X)
        assert_allclose(fg.vmap(lambda x, a=a: x @ a)(np.eye(4)), a.toarray())
        assert_allclose(fg.jit(lambda x, a=a: a.T @ x)(X), a.T @ X)
    own = fg.scipy.sparse.SparseArray.of(scipy.sparse.csr_array(np.diag(X)))
    assert_allclose(fg.jit(lambda a, x: a @ x)(own, X), X**2)


def tables_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"dose": [0.0, 1.0, 2.0], "effect": [0.1, 0.9, 2.2]})

    def misfit(slope: Any, data: Any) -> Any:
        return np.mean((slope * data["dose"] - data["effect"]) ** 2)

    assert_allclose(fg.grad(misfit)(1.0, dict(table)), -0.2)
    assert_allclose(fg.grad(lambda slope: misfit(slope, table))(1.0), -0.2)
    result = fg.jit(lambda x: 2 * x)(table["dose"])
    assert type(result) is np.ndarray
    assert_allclose(result, [0.0, 2.0, 4.0])


def estimators_of_sklearn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    found = linear_model.LinearRegression().fit(X[:, None], 2 * X)
    assert_allclose(fg.grad(lambda x: np.sum(x @ found.coef_))(X[:1]), [2.0])


def run_with(program: str, **imports: str) -> dict[str, Any]:
    """Run a program whose imports are replaced as the table says."""
    for old, new in imports.items():
        assert f"import {old.replace('_', '.')} as" in program
        program = program.replace(f"import {old.replace('_', '.')} as", f"import {new} as")
    names: dict[str, Any] = {}
    exec(program, names)
    return names


def programs_for_jax() -> None:
    program = """
import jax as jax
import jax.numpy as jnp
w = jax.random.normal(jax.random.key(0), (3,), jnp.float32)
slopes = jax.jit(jax.vmap(jax.grad(jnp.tanh)))(w)
"""
    names = run_with(program, jax="funcgrad", jax_numpy="funcgrad.numpy")
    assert_allclose(names["slopes"], 1 - np.tanh(names["w"]) ** 2, rtol=1e-5)


def programs_for_autograd() -> None:
    program = """
import autograd.numpy as np
slopes = elementwise_grad(np.tanh)(np.array([0.0, 1.0]))
"""
    program = "from funcgrad.interop.autograd import elementwise_grad\n" + program
    names = run_with(program, autograd_numpy="funcgrad.interop.autograd.numpy")
    assert_allclose(names["slopes"], 1 - np.tanh([0.0, 1.0]) ** 2)


@numba.njit
def halves(x: Any, n: int) -> Any:
    for _ in range(n):
        x = 0.5 * x if x > 1.0 else 3.0 * x + 1.0
    return x


def doubled(x: Any, out: Any) -> None:
    for i in range(len(x)):
        out[i] = 2 * x[i]


@numba.vectorize
def tripled(x: Any) -> Any:
    return 3 * x


def functions_of_numba() -> None:
    check_slope(lambda x: halves.py_func(x, 5), 3.0)
    followed = fg.interop.numba.traceable(halves)
    assert fg.grad(followed)(3.0, 5) == fg.grad(halves.py_func)(3.0, 5)
    generalised = numba.guvectorize(["(float64[:], float64[:])"], "(n)->(n)")(doubled)
    for refused in (generalised, tripled):
        with pytest.raises(MissingRuleError, match="has no rule for traced arrays"):
            fg.grad(lambda x, f=refused: np.sum(f(x)))(X)


def tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    assert_allclose(fg.jit(lambda x: x * 2)(torch.tensor([1.0, 2.0])), [2.0, 4.0])
    with pytest.raises(TypeError, match="must be Tensor"):
        fg.grad(torch.sin)(2.0)


def branches_of_python() -> None:
    def absolute(x: Any) -> Any:
        return x if x > 0 else -x

    assert fg.grad(absolute)(-2.0) == -1.0
    with pytest.raises(TypeError, match=re.escape("np.where(condition, a, b), or lax.cond")):
        fg.jit(absolute)(-2.0)


def many_processes() -> None:
    with fg.distributed.spmd(axis_name="data"):
        assert fg.jit(lambda x: fg.lax.psum(x, "data"))(2.0) == 2.0


def accelerators() -> None:
    assert [device.platform for device in fg.devices()] == ["cpu"]
    with pytest.raises(Exception, match="gpu"):
        fg.devices("gpu")


def refused_dtypes() -> None:
    for value in (np.float16(1), np.longdouble(1), np.array([object()]), "text",
                  np.array(["2020-01-01"], "datetime64[D]")):  # fmt: skip
        with pytest.raises(DtypeError):
            fg.jit(lambda x: x)(value)


ROWS = {
    "NumPy: ufuncs, operators, indexing, reductions, `linalg`, `fft`, `einsum`": plain_numpy,
    "NumPy that writes into arrays": writes_into_arrays,
    "NumPy with `np.random`": draws_with_numpy,
    "SciPy's ufuncs: `special.erf`, `special.gammaln`, `special.expit`": ufuncs_of_scipy,
    "other SciPy: `optimize`, `integrate`, `interpolate`, `stats`, `signal`, `linalg`":
        other_functions_of_scipy,
    "sparse matrices of SciPy, constant": constant_sparse_matrices,
    "pandas": tables_of_pandas,
    "scikit-learn": estimators_of_sklearn,
    "JAX": programs_for_jax,
    "autograd (HIPS)": programs_for_autograd,
    "Numba: `@njit` functions": functions_of_numba,
    "PyTorch": tensors_of_torch,
    "Python `if`, `for`, `while` on numbers": branches_of_python,
    "several processes or machines": many_processes,
    "GPUs, TPUs": accelerators,
    "`float16`, long doubles, objects, strings, dates": refused_dtypes,
}  # fmt: skip
NIGHTLY = {"PyTorch"}


def test_every_row_is_tried() -> None:
    table = PAGE.read_text().partition("|---|---|---|\n")[2].partition("\n\n")[0]
    assert [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines()] == list(ROWS)


@pytest.mark.parametrize(
    "row",
    [pytest.param(r, marks=[pytest.mark.nightly] if r in NIGHTLY else []) for r in ROWS],
)
def test_rows_say_what_happens(row: str) -> None:
    ROWS[row]()


def written(y: Any, value: Any) -> Any:
    """An array after an assignment to its first element."""
    y[0] = value
    return y.sum()


TABLE = np.array([1.0, 4.0, 9.0])
AT = (2.0, 1)

# Lines that the page says cannot be traced, each with what it says to write instead.
LINES: dict[str, tuple[Callable[..., Any], list[Callable[..., Any]]]] = {
    "`y = np.zeros(3); y[0] = x`, or `np.empty(3)`": (
        lambda x, i: written(np.empty(3), x),
        [lambda x, i: written(fnp.zeros(3), x), lambda x, i: np.stack([x, 0, 0]).sum()],
    ),
    "`x[0] = 0`, where `x` is an argument": (
        lambda x, i: fg.jit(lambda y: written(y, 0))(x * TABLE),
        [
            lambda x, i: fg.jit(lambda y: written(y.copy(), 0))(x * TABLE),
            lambda x, i: fg.jit(lambda y: fnp.at(y)[0].set(0).sum())(x * TABLE),
        ],
    ),
    "`np.asarray(x, float)`": (
        lambda x, i: np.asarray(x * TABLE, float).sum(),
        [
            lambda x, i: np.asarray(x * TABLE).sum(),
            lambda x, i: (x * TABLE).astype(float).sum(),
            lambda x, i: fnp.asarray(x * TABLE, float).sum(),
        ],
    ),
    "`table[i]`, where `table` is an array and `i` is traced": (
        lambda x, i: x * TABLE[i],
        [lambda x, i: x * fnp.asarray(TABLE)[i]],
    ),
    "`np.zeros(n)`, where `n` is traced": (
        lambda x, i: x * np.zeros(i).sum(),
        [lambda x, i: x * np.zeros(i.shape).sum()],
    ),
    "`np.float32(x)`, `float(x)`, `math.sin(x)`": (
        lambda x, i: math.sin(x) + float(x) + np.float32(x),
        [lambda x, i: np.sin(x) + x.astype(np.float32)],
    ),
}


def test_every_line_is_tried() -> None:
    rows = re.findall(r"^\| (`.*?) \| .* \| .* \|$", PAGE.read_text().split("| line |")[1], re.M)
    assert rows == list(LINES)


@pytest.mark.parametrize("line", LINES)
def test_lines_fail_and_what_is_written_instead_works(line: str) -> None:
    fails, work = LINES[line]
    with pytest.raises((FuncgradError, TypeError, ValueError)):
        fg.jit(fails)(*AT)
    values = [fg.jit(f)(*AT) for f in work]
    assert_allclose(values, values[0])
    slopes = [fg.jit(fg.grad(f))(*AT) for f in work]
    assert_allclose(slopes, slopes[0])
