"""Operations that compiled programs make of functions of LAPACK, against SciPy's evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.primitive import Primitive
from funcgrad.primitives.banded import BandedCholesky, EighTridiagonal
from funcgrad.primitives.linalg import Eig, Eigvals
from funcgrad.primitives.matrix_functions import Sylvester
from funcgrad.primitives.pencils import TwoSidedEig
from funcgrad.primitives.schur import Schur

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
SIZES = [(0,), (1,), (2,), (7,), (3, 5), (40,)]


def drawn(dtype: Any, *shape: int) -> Any:
    rng = np.random.default_rng(shape)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def square(dtype: Any, *size: int) -> tuple[Any, ...]:
    return (drawn(dtype, *size, size[-1]),)


def band(lower: bool) -> Any:
    def make(dtype: Any, *size: int) -> tuple[Any, ...]:
        ab = drawn(dtype, *size[:-1], 3, size[-1])
        ab[..., 0 if lower else -1, :] = 9
        return (ab,)

    return make


def equation(dtype: Any, *size: int) -> tuple[Any, ...]:
    return (
        *square(dtype, *size),
        drawn(dtype, *size[:-1], 3, 3),
        drawn(dtype, *size, 3),
    )


def diagonals(dtype: Any, *size: int) -> tuple[Any, ...]:
    real = np.zeros((), dtype).real.dtype
    return drawn(real, *size), drawn(real, *size[:-1], max(size[-1] - 1, 0))


OPERATIONS: dict[str, tuple[Primitive, Any]] = {
    "eig": (Eig(), square),
    "eigvals": (Eigvals(), square),
    "two-sided": (TwoSidedEig(), square),
    "schur": (Schur(), square),
    **{f"schur, {sort}": (Schur(sort), square) for sort in ("lhp", "rhp", "iuc", "ouc")},
    "sylvester": (Sylvester(), equation),
    "banded": (BandedCholesky(True), band(True)),
    "banded, upper": (BandedCholesky(False), band(False)),
    "tridiagonal": (EighTridiagonal(), diagonals),
}


def listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", OPERATIONS)
def test_compiled_operations_equal_scipys(name: str, dtype: Any) -> None:
    primitive, draw = OPERATIONS[name]
    compiled = fg.jit(lambda *args: primitive.bind(*args))
    bound = 1e-3 if np.dtype(dtype).char in "fF" else 1e-10
    for size in SIZES:
        args = draw(dtype, *size)
        found, expected = listed(compiled(*args)), listed(primitive.impl(*args))
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == np.asarray(b).dtype
            np.testing.assert_allclose(
                a, b, rtol=0, atol=bound * max(size) * np.max(np.abs(b), initial=1)
            )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OPERATIONS)
def test_plans_call_no_numpy(name: str) -> None:
    primitive, draw = OPERATIONS[name]
    args = draw(np.float64, 3, 5)
    text = fg.jit(lambda *args: primitive.bind(*args)).lower(*args).as_text()
    assert "numpy:" not in text.partition("\nplan\n")[2]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", [n for n in OPERATIONS if not n.startswith("eig")])
def test_matrices_that_are_not_finite_are_nan_and_others_are_not(name: str, bad: float) -> None:
    primitive, draw = OPERATIONS[name]
    args = draw(np.float64, 3, 5)
    args[0][1, ..., 2] = bad
    found = listed(fg.jit(lambda *args: primitive.bind(*args))(*args))
    for a, b in zip(found, listed(primitive.impl(*args)), strict=True):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        assert a.dtype.kind == "i" or np.isnan(a[1]).all()


@pytest.mark.parametrize("function", [np.linalg.eig, np.linalg.eigvals])
def test_eigenvalues_of_matrices_that_are_not_finite_are_refused(function: Any) -> None:
    x = drawn(np.float64, 3, 5, 5)
    x[1, 2, 2] = np.nan
    with pytest.raises(np.linalg.LinAlgError, match="must not contain infs or NaNs"):
        fg.jit(lambda x: function(x))(x)


def test_bands_that_are_not_positive_definite_are_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="1-th leading minor"):
        fg.jit(lambda x: BandedCholesky(True).bind(x))(np.full((2, 4), -1.0))
