"""Which library multiplies matrices, and what funcgrad says that it runs on."""

from __future__ import annotations

import ctypes.util
import importlib.metadata

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.runtime import blas, kernel_store
from funcgrad.compiler.runtime.threads import is_available
from funcgrad.errors import ArgumentError, LibraryError

RANDOM = np.random.default_rng(3)
PRODUCTS = {
    "plain": lambda a, b: a @ b,
    "left transposed": lambda a, b: a.swapaxes(1, 2) @ b,
    "right transposed": lambda a, b: a @ b.swapaxes(1, 2),
    "both transposed": lambda a, b: a[0].T @ b[1].T,
    "parts": lambda a, b: a[0, :, :2].T @ b[1, :, :1],
    "of a row": lambda a, b: a[:, :1] @ b,
}


def installed():
    """Libraries that are here."""
    yield "scipy"
    for name in ("mkl",):
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        yield name


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("library", list(installed()))
def test_chosen_libraries_multiply(monkeypatch, library, name, dtype):
    monkeypatch.setenv("FUNCGRAD_BLAS", library)
    a, b = (RANDOM.standard_normal((2, 7, 7)) for _ in range(2))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * RANDOM.standard_normal(a.shape)
    a, b = a.astype(dtype), b.astype(dtype)
    lowered = fg.jit(PRODUCTS[name]).lower(a, b)
    assert f" by {library}" in lowered.as_text()
    expected = PRODUCTS[name](a.astype("complex128"), b.astype("complex128"))
    rounding = 1e-4 if np.dtype(dtype).itemsize < 8 or dtype == "complex64" else 1e-12
    np.testing.assert_allclose(lowered.compile()(a, b), expected, rounding, rounding)


@pytest.mark.skipif(not is_available(), reason="products go to SciPy's BLAS here")
@pytest.mark.parametrize("value", ["own", "", None])
def test_own_tiles_are_the_default(monkeypatch, value):
    monkeypatch.delenv("FUNCGRAD_BLAS", raising=False)
    if value is not None:
        monkeypatch.setenv("FUNCGRAD_BLAS", value)
    assert blas.chosen() is None
    assert fg.show_config("dicts")["matrix products"] == {"by": "own tiles"}


def test_a_library_can_be_named_by_its_path(monkeypatch, tmp_path):
    monkeypatch.setenv("FUNCGRAD_BLAS", str(tmp_path / "libnone.so"))
    with pytest.raises(LibraryError, match=r"libnone.so: .*cannot open|not found") as caught:
        fg.jit(lambda x: x @ x)(np.eye(30))
    assert "FUNCGRAD_BLAS=" in str(caught.value)
    assert isinstance(caught.value, ImportError)
    assert "cannot be used" in fg.show_config("dicts")["matrix products"]["by"]


def test_a_library_without_products_is_refused(monkeypatch):
    path = ctypes.util.find_library("m")
    if path is None or ctypes.CDLL(path) is None:
        pytest.skip("no library of mathematical functions")
    monkeypatch.setattr(blas, "_installed", lambda name: iter([path]))
    with pytest.raises(LibraryError, match="has no sgemm_, dgemm_, cgemm_, zgemm_"):
        blas.library.__wrapped__("mkl")


@pytest.mark.parametrize("name", ["mkl"])
def test_what_was_looked_for_is_named(monkeypatch, name):
    monkeypatch.setattr(blas, "_installed", lambda name: iter(()))
    pattern = rf"neither the package {name} nor the system has .*{name}.*pip install {name}"
    with pytest.raises(LibraryError, match=pattern):
        blas.library.__wrapped__(name)


def test_unknown_names_are_refused():
    with pytest.raises(LibraryError, match="give own, scipy, mkl, or a path"):
        blas.library("atlas")


@pytest.mark.skipif(is_available(), reason="there are threads here")
def test_own_tiles_need_threads():
    with pytest.raises(LibraryError, match="on Linux only"):
        blas.library("own")


@pytest.fixture
def own_cache(tmp_path):
    """A folder that nobody else writes to meanwhile: reports state its size."""
    folder = kernel_store.cache_dir()
    kernel_store.set_cache_dir(tmp_path)
    yield
    kernel_store.set_cache_dir(folder)


@pytest.mark.usefixtures("own_cache")
def test_the_configuration_has_all_that_a_report_needs(monkeypatch, capsys):
    monkeypatch.setenv("FUNCGRAD_NUM_THREADS", "3")
    monkeypatch.setenv("MKL_NUM_THREADS", "1")
    config = fg.show_config("dicts")
    assert config["versions"]["numpy"] == np.__version__
    assert set(config["versions"]) >= {"funcgrad", "python", "numba", "llvmlite", "llvm"}
    assert config["threads"]["by default"] == (3 if is_available() else 1)
    assert config["processor"]["vector"] in ("128 bits", "256 bits", "512 bits")
    assert config["environment"]["FUNCGRAD_NUM_THREADS"] == "3"
    assert config["environment"]["MKL_NUM_THREADS"] == "1"
    assert fg.show_config() is None
    printed = capsys.readouterr().out
    assert "matrix products" in printed
    assert fg.print_environment_info(return_string=True) == printed.rstrip("\n")
    assert fg.print_environment_info() is None
    assert capsys.readouterr().out == printed


def test_the_configuration_is_printed_or_returned():
    with pytest.raises(ArgumentError, match='"stdout" or "dicts"'):
        fg.show_config("yaml")
