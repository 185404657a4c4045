"""The array API standard 2024.12: names, parameters, special cases, and what arrays answer.

The lists are the standard's. Parameters that can only be given by position have its names too,
which are not compared.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import errors
from tests import array_api_of_libraries as libraries

MAIN = """
abs(x) acos(x) acosh(x) add(x1,x2) all(x,axis,keepdims) any(x,axis,keepdims)
arange(start,stop,step,dtype,device) argmax(x,axis,keepdims) argmin(x,axis,keepdims)
argsort(x,axis,descending,stable) asarray(obj,dtype,device,copy) asin(x) asinh(x)
astype(x,dtype,copy,device) atan(x) atan2(x1,x2) atanh(x) bitwise_and(x1,x2) bitwise_invert(x)
bitwise_left_shift(x1,x2) bitwise_or(x1,x2) bitwise_right_shift(x1,x2) bitwise_xor(x1,x2)
broadcast_arrays() broadcast_to(x,shape) can_cast(from_,to) ceil(x) clip(x,min,max)
concat(arrays,axis) conj(x) copysign(x1,x2) cos(x) cosh(x) count_nonzero(x,axis,keepdims)
cumulative_prod(x,axis,dtype,include_initial) cumulative_sum(x,axis,dtype,include_initial)
diff(x,axis,n,prepend,append) divide(x1,x2) empty(shape,dtype,device) empty_like(x,dtype,device)
equal(x1,x2) exp(x) expand_dims(x,axis) expm1(x) eye(n_rows,n_cols,k,dtype,device) finfo(type)
flip(x,axis) floor(x) floor_divide(x1,x2) from_dlpack(x,device,copy)
full(shape,fill_value,dtype,device) full_like(x,fill_value,dtype,device) greater(x1,x2)
greater_equal(x1,x2) hypot(x1,x2) iinfo(type) imag(x) isdtype(dtype,kind) isfinite(x) isinf(x)
isnan(x) less(x1,x2) less_equal(x1,x2) linspace(start,stop,num,dtype,device,endpoint) log(x)
log10(x) log1p(x) log2(x) logaddexp(x1,x2) logical_and(x1,x2) logical_not(x) logical_or(x1,x2)
logical_xor(x1,x2) matmul(x1,x2) matrix_transpose(x) max(x,axis,keepdims) maximum(x1,x2)
mean(x,axis,keepdims) meshgrid(indexing) min(x,axis,keepdims) minimum(x1,x2)
moveaxis(x,source,destination) multiply(x1,x2) negative(x) nextafter(x1,x2) nonzero(x)
not_equal(x1,x2) ones(shape,dtype,device) ones_like(x,dtype,device) permute_dims(x,axes)
positive(x) pow(x1,x2) prod(x,axis,dtype,keepdims) real(x) reciprocal(x) remainder(x1,x2)
repeat(x,repeats,axis) reshape(x,shape,copy) result_type() roll(x,shift,axis) round(x)
searchsorted(x1,x2,side,sorter) sign(x) signbit(x) sin(x) sinh(x) sort(x,axis,descending,stable)
sqrt(x) square(x) squeeze(x,axis) stack(arrays,axis) std(x,axis,correction,keepdims)
subtract(x1,x2) sum(x,axis,dtype,keepdims) take(x,indices,axis) take_along_axis(x,indices,axis)
tan(x) tanh(x) tensordot(x1,x2,axes) tile(x,repetitions) tril(x,k) triu(x,k) trunc(x)
unique_all(x) unique_counts(x) unique_inverse(x) unique_values(x) unstack(x,axis)
var(x,axis,correction,keepdims) vecdot(x1,x2,axis) where(condition,x1,x2)
zeros(shape,dtype,device) zeros_like(x,dtype,device) __array_namespace_info__()
"""
LINALG = """
cholesky(x,upper) cross(x1,x2,axis) det(x) diagonal(x,offset) eigh(x) eigvalsh(x) inv(x)
matmul(x1,x2) matrix_norm(x,keepdims,ord) matrix_power(x,n) matrix_rank(x,rtol)
matrix_transpose(x) outer(x1,x2) pinv(x,rtol) qr(x,mode) slogdet(x) solve(x1,x2)
svd(x,full_matrices) svdvals(x) tensordot(x1,x2,axes) trace(x,offset,dtype) vecdot(x1,x2,axis)
vector_norm(x,axis,keepdims,ord)
"""
FFT = """
fft(x,n,axis,norm) ifft(x,n,axis,norm) fftn(x,s,axes,norm) ifftn(x,s,axes,norm)
rfft(x,n,axis,norm) irfft(x,n,axis,norm) rfftn(x,s,axes,norm) irfftn(x,s,axes,norm)
hfft(x,n,axis,norm) ihfft(x,n,axis,norm) fftfreq(n,d,dtype,device) rfftfreq(n,d,dtype,device)
fftshift(x,axes) ifftshift(x,axes)
"""
BY_NAME = frozenset(
    [
        "append",
        "axes",
        "axis",
        "copy",
        "correction",
        "descending",
        "device",
        "dtype",
        "endpoint",
        "full_matrices",
        "include_initial",
        "indexing",
        "k",
        "keepdims",
        "max",
        "min",
        "mode",
        "n",
        "norm",
        "offset",
        "ord",
        "prepend",
        "rtol",
        "side",
        "sorter",
        "stable",
        "upper",
    ]
)
"""Parameters that the standard lets be given by name."""
ROWS = [
    (module, *re.fullmatch(r"(\w+)\((.*)\)", row).groups())  # type: ignore[union-attr]
    for module, rows in ((fnp, MAIN), (fnp.linalg, LINALG), (fnp.fft, FFT))
    for row in rows.split()
]


@pytest.mark.parametrize(("module", "name", "parameters"), ROWS, ids=lambda x: str(x)[:24])
def test_functions_and_their_parameters(module: Any, name: str, parameters: str) -> None:
    here = inspect.signature(getattr(module, name)).parameters
    assert [p for p in parameters.split(",") if p in BY_NAME and p not in here] == []


def test_constants_and_dtypes() -> None:
    assert (fnp.pi, fnp.e, fnp.inf, fnp.newaxis) == (np.pi, np.e, np.inf, None)
    assert np.isnan(fnp.nan)
    names = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64"
    for name in [*names.split(), "complex128"]:
        assert np.dtype(getattr(fnp, name)) == np.dtype(name)


def test_traced_arrays_name_the_namespace() -> None:
    def ask(x: Any) -> Any:
        assert x.__array_namespace__() is fnp
        assert x.__array_namespace__(api_version="2024.12") is fnp
        assert fnp.zeros(2).__array_namespace__() is fnp
        assert x.device == "cpu"
        assert x.to_device("cpu") is x
        return x * 2

    for transform in (fg.jit, fg.vmap, lambda f: lambda x: fg.vjp(f, x)[0]):
        np.testing.assert_array_equal(transform(ask)(np.ones(3)), 2 * np.ones(3))


def test_the_namespace_tells_about_itself() -> None:
    info = fnp.__array_namespace_info__()
    assert info.devices() == ["cpu"]
    assert info.default_device() == "cpu"
    assert set(info.capabilities()) >= {"boolean indexing", "data-dependent shapes"}
    assert info.default_dtypes()["real floating"] == np.float64
    assert info.default_dtypes(device="cpu")["indexing"] == np.int64
    assert list(info.dtypes(kind="complex floating")) == ["complex64", "complex128"]
    assert next(iter(info.dtypes(kind=("bool", "unsigned integer")))) == "bool"
    assert len(info.dtypes()) == 13
    with pytest.raises(ValueError, match="one device"):
        info.dtypes(device="gpu")


KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating",
         "complex floating", "numeric", np.float32, ("bool", "integral"))  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_isdtype(kind: Any) -> None:
    for dtype in fnp.__array_namespace_info__().dtypes().values():
        assert fnp.isdtype(dtype, kind) == np.isdtype(dtype, kind)
    with pytest.raises(errors.ArgumentError, match="kind must be one of"):
        fnp.isdtype(np.float32, "real")


MAKERS = {
    "zeros": lambda **k: fnp.zeros(2, **k),
    "ones": lambda **k: fnp.ones(2, **k),
    "empty": lambda **k: fnp.empty(2, **k),
    "full": lambda **k: fnp.full(2, 1.0, **k),
    "arange": lambda **k: fnp.arange(2, **k),
    "linspace": lambda **k: fnp.linspace(0, 1, 2, **k),
    "eye": lambda **k: fnp.eye(2, **k),
    "asarray": lambda **k: fnp.asarray([1.0], **k),
    "astype": lambda **k: fnp.astype(np.ones(2), np.float32, **k),
    "zeros_like": lambda **k: fnp.zeros_like(np.ones(2), **k),
    "ones_like": lambda **k: fnp.ones_like(np.ones(2), **k),
    "empty_like": lambda **k: fnp.empty_like(np.ones(2), **k),
    "full_like": lambda **k: fnp.full_like(np.ones(2), 3, **k),
    "from_dlpack": lambda **k: fnp.from_dlpack(np.ones(2), **k),
    "fftfreq": lambda **k: fnp.fft.fftfreq(2, **k),
    "rfftfreq": lambda **k: fnp.fft.rfftfreq(2, **k),
}


@pytest.mark.parametrize("name", MAKERS)
def test_there_is_one_device(name: str) -> None:
    make = MAKERS[name]
    np.testing.assert_array_equal(make(device="cpu"), make())
    np.testing.assert_array_equal(fg.vmap(lambda _: make(device="cpu"))(np.ones(1))[0], make())
    with pytest.raises(ValueError, match=r"one device, the CPU, .* got device='cuda'"):
        make(device="cuda")


def test_copies() -> None:
    x = np.arange(6.0)
    assert fnp.asarray(x) is x
    assert fnp.asarray(x, copy=False) is x
    assert not np.shares_memory(fnp.asarray(x, copy=True), x)
    with pytest.raises(ValueError, match="copy=False"):
        fnp.asarray([1.0], copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        fnp.asarray(x, np.float32, copy=False)
    assert not np.shares_memory(fnp.astype(x, float, copy=True), x)
    assert np.shares_memory(fnp.reshape(x, (2, 3)), x)
    assert not np.shares_memory(fnp.reshape(x, (2, 3), copy=True), x)
    with pytest.raises(ValueError, match="needs a copy"):
        fnp.reshape(x.reshape(2, 3).T, (6,), copy=False)

    def changed(x: Any) -> Any:
        y = fnp.asarray(x, copy=True)
        y[0] = 0.0
        z = fnp.reshape(y, (2, 3), copy=True)
        z[:] = 1.0
        return y

    np.testing.assert_array_equal(fg.jit(changed)(x + 1), np.concatenate([[0], x[1:] + 1]))


def test_types_of_arrays() -> None:
    def ask(x: Any) -> Any:
        assert fnp.finfo(x).eps == np.finfo(np.float32).eps
        assert fnp.iinfo(fnp.ones(2, np.int8)).max == 127
        assert fnp.common_type(x, np.ones(1, int)) is np.float64
        assert fnp.min_scalar_type(x) == np.float32
        assert fnp.iterable(x)
        assert not fnp.iterable(x[0])
        assert fnp.isdtype(x.dtype, "real floating")
        return x

    fg.jit(ask)(np.ones(2, np.float32))
    assert isinstance(fnp.add, fnp.ufunc)
    assert isinstance(np.sin, fnp.ufunc)
    assert not isinstance(fnp.sum, fnp.ufunc)
    assert (fnp.single, fnp.double) == (np.float32, np.float64)
    assert (fnp.csingle, fnp.cdouble) == (np.complex64, np.complex128)


def test_conversions() -> None:
    x = np.arange(3.0)
    for convert in (fnp.asanyarray, fnp.ascontiguousarray, fnp.asarray_chkfinite, fnp.from_dlpack):
        np.testing.assert_array_equal(convert(x), x)
        np.testing.assert_array_equal(fg.jacrev(lambda v, c=convert: c(v) * 2)(x), 2 * np.eye(3))
    assert fnp.ascontiguousarray(2.0).shape == (1,)
    for bad in (np.array([1.0, np.nan]), np.array([np.inf])):
        with pytest.raises(ValueError, match="infs or nans"):
            fnp.asarray_chkfinite(bad)
        with pytest.raises(ValueError, match="infs or nans"):
            fg.grad(lambda v: fnp.sum(fnp.asarray_chkfinite(v)))(bad)
    np.testing.assert_array_equal(fnp.fromiter(range(4), float, 3), [0.0, 1.0, 2.0])
    got = fg.jacrev(lambda v: fnp.fromiter((e * e for e in v), float))(x)
    np.testing.assert_array_equal(got, np.diag(2 * x))
    with pytest.raises(ValueError, match="3 were asked for"):
        fnp.fromiter([1.0], float, 3)
    np.testing.assert_array_equal(fnp.row_stack([x, x]), np.vstack([x, x]))


CASES = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5, -3.0])
LEFT, RIGHT = (a.ravel() for a in np.meshgrid(CASES, CASES))


def same(x: Any, y: Any) -> bool:
    is_number = ~np.isnan(x)
    signs = np.array_equal(np.signbit(x)[is_number], np.signbit(y)[is_number])
    return signs and np.allclose(x, y, rtol=1e-14, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    "name",
    ["floor_divide", "remainder", "divide", "pow", "atan2", "hypot", "logaddexp", "nextafter"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_cases_of_two_numbers(name: str) -> None:
    function = getattr(fnp, name)
    expected = getattr(np, name)(LEFT, RIGHT)
    assert same(expected, function(LEFT, RIGHT))
    assert same(expected, fg.vjp(function, LEFT, RIGHT)[0])
    assert same(expected, fg.jit(function)(LEFT, RIGHT))


@pytest.mark.parametrize("name", ["expm1", "exp", "sqrt", "log", "tanh"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_cases_of_complex_numbers(name: str) -> None:
    z = np.array([complex(a, b) for a, b in zip(LEFT, RIGHT, strict=True)])
    function = getattr(fnp, name)
    expected = getattr(np, name)(z)
    for got in (function(z), fg.vmap(function)(z), fg.jit(function)(z)):
        assert same(expected.real, got.real)
        assert same(expected.imag, got.imag)


WEIGHTED = ("quantile", "nanquantile", "percentile", "nanpercentile")


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_weighted_quantiles(name: str, axis: Any) -> None:
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 4, (4, 5)) * 1.0
    weights[:, 0] = weights[0] = 1.0
    for has_nan in (False, True):
        a = rng.normal(size=(4, 5))
        a[1, 2] = np.nan if has_nan else a[1, 2]
        for q in (0.0, 0.3, 1.0, np.array([0.1, 0.5, 0.9])):
            level = q * (100 if "per" in name else 1)
            options = {"axis": axis, "weights": weights, "method": "inverted_cdf"}
            # The first releases of NumPy 2 give elements without weight at 0, and wrong ones along
            # several axes, which are all of them here.
            plain = options | {"axis": None if axis == (0, 1) else axis}
            expected = getattr(np, name)(a, np.maximum(level, 1e-9), **plain)
            got = getattr(fnp, name)(a, level, **options)
            np.testing.assert_allclose(got, expected)
            assert np.shape(got) == np.shape(expected)
    traced = fg.vjp(lambda v: getattr(np, name)(v, level, **options), a)
    np.testing.assert_allclose(traced[0], expected)


def test_weights_of_quantiles_are_checked() -> None:
    a = np.arange(6.0).reshape(2, 3)
    line = np.array([1.0, 0.0, 2.0])
    options = {"weights": line, "axis": 1, "method": "inverted_cdf"}
    np.testing.assert_array_equal(fnp.quantile(a, 0.5, **options), np.quantile(a, 0.5, **options))
    gradient = fg.grad(lambda a: fnp.quantile(a, 0.5, **options)[0])(a)
    np.testing.assert_array_equal(gradient, [[0, 0, 1], [0, 0, 0]])
    with pytest.raises(ValueError, match="inverted_cdf"):
        fnp.quantile(a, 0.5, weights=line, axis=1)
    with pytest.raises(errors.ShapeError, match="weights must have the shape"):
        fnp.quantile(a, 0.5, weights=line[:2], axis=1, method="inverted_cdf")


@pytest.mark.nightly
def test_the_table_of_libraries_is_up_to_date() -> None:
    pytest.importorskip("sklearn")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-m", "tests.array_api_of_libraries"]
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert text.stdout.strip() in libraries.PAGE.read_text()
