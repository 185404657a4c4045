"""`funcgrad.scipy.fft` against SciPy: values, derivatives, `vmap` and `jit`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.fft

import funcgrad as fg
from funcgrad import errors
from funcgrad.scipy import fft
from tests.scipy.rows import (
    Row,
    check_compiled,
    check_derivatives,
    check_mapped,
    check_value,
    each,
    row,
)

RNG = np.random.default_rng(0)
X, BOX = RNG.normal(size=(2, 7)), RNG.normal(size=(3, 4, 2))
Z = X + 1j * X[::-1]
TYPES = (1, 2, 3, 4)
FAMILIES = ("dct", "idct", "dst", "idst")

ROWS = [
    *(row(name, X, kind) for name in FAMILIES for kind in TYPES),
    row("dct", Z, 2),
    row("dct", X, 3, norm="ortho", axis=0),
    row("idct", X, 1, norm="forward", n=5),
    row("dst", X, 4, n=9, norm="ortho"),
    row("dctn", BOX, axes=(0, 2)),
    row("idctn", BOX, 2, (4, 5), norm="ortho"),
    row("dstn", BOX, 3),
    row("idstn", BOX, 4, norm="forward"),
    row("fft", Z, 9),
    row("rfft", X),
    row("irfft", Z),
    row("hfft", Z),
    row("ihfft", X),
    row("rfft2", X),
    row("irfft2", Z, norm="ortho"),
    row("hfft2", Z),
    row("ihfft2", X),
    row("fftn", Z),
    row("hfftn", Z, norm="forward"),
    row("ihfftn", BOX, axes=(0, 1)),
    row("fht", X, 0.1, 0.5, offset=0.2),
    row("ifht", X, 0.1, 0.5, offset=0.2, bias=0.3),
]


@each(ROWS)
def test_values(row: Row) -> None:
    check_value(fft, scipy.fft, row)


@each(ROWS)
def test_derivatives(row: Row) -> None:
    check_derivatives(fft, scipy.fft, row)


@each(ROWS)
def test_vmap(row: Row) -> None:
    check_mapped(fft, scipy.fft, row)


@pytest.mark.sampled(2)
@each(ROWS, fast=4)
def test_compiled(row: Row) -> None:
    check_compiled(fft, row)


@pytest.mark.parametrize("name", FAMILIES)
def test_all_normalisations_and_lengths(name: str) -> None:
    norms = itertools.product(TYPES, (None, "ortho", "forward"), (None, True, False), range(2, 9))
    for kind, norm, orthogonalize, n in norms:
        x = RNG.normal(size=n)
        options: Any = {"norm": norm, "orthogonalize": orthogonalize}
        expected = getattr(scipy.fft, name)(x, kind, **options)
        np.testing.assert_allclose(getattr(fft, name)(x, kind, **options), expected, 1e-9, 1e-12)


def test_orthogonal_transforms_are_undone_by_their_transposes() -> None:
    for kind in TYPES:
        matrix = fg.jacfwd(lambda x, k=kind: fft.dct(x, k, norm="ortho"))(X[0])
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(7), 0, 1e-12)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fft.dct(X, 5), errors.ArgumentError, "type must be 1, 2, 3 or 4"),
        (lambda: fft.dct(X, norm="x"), errors.ArgumentError, "norm must be"),
        (lambda: fft.dct(X[:, :1], 1), errors.ShapeError, "at least 2 elements"),
        (lambda: fft.dct(X[:, :0]), errors.ShapeError, "must be elements"),
        (lambda: fft.dctn(X, s=(2,), axes=(0, 1)), errors.ShapeError, "different lengths"),
        (lambda: fft.fft(X, plan=1), errors.ArgumentError, "plan must be None"),
        (lambda: fft.hfftn(Z, norm="x"), errors.ArgumentError, "norm must be"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
