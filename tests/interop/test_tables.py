"""Tables and labelled arrays carry data into transformations; arrays come back."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

VALUES = np.array([1.0, 2.0, 3.0])
TABLE = np.array([[1.0, 3.0], [2.0, 4.0]])


def series():
    return pytest.importorskip("pandas").Series(VALUES, index=list("abc"), name="s")


def frame():
    return pytest.importorskip("pandas").DataFrame({"x": TABLE[:, 0], "y": TABLE[:, 1]})


def labelled():
    coordinates = {"t": [10, 20, 30]}
    return pytest.importorskip("xarray").DataArray(VALUES, dims="t", coords=coordinates)


CARRIERS = {
    "Series": (series, VALUES),
    "DataFrame": (frame, TABLE),
    "DataArray": (labelled, VALUES),
}
FUNCTIONS = {
    "methods": lambda a: (a * a).sum(),
    "NumPy": lambda a: np.sum(np.sin(a) * 2),
    "funcgrad.numpy": lambda a: fnp.mean(fnp.exp(a)),
    "statistics": lambda a: np.std(a) + a.mean(),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("carrier", CARRIERS)
def test_arguments(carrier, function):
    make, values = CARRIERS[carrier]
    data, f = make(), FUNCTIONS[function]
    for transformed in (fg.grad(f), fg.jit(f), fg.jit(fg.grad(f)), fg.vmap(f)):
        got, expected = transformed(data), transformed(values)
        assert type(got) is type(expected)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_constants_meet_traced_values(carrier):
    make, values = CARRIERS[carrier]
    data = make()
    for f in (
        lambda w: np.sum(w * data),
        lambda w: np.sum(data * w),
        lambda w: np.sum(np.exp(w * np.asarray(data))) - np.sum(data - w),
        lambda w: fnp.sum(fnp.multiply(data, w)),
    ):
        h = 1e-6
        difference = (np.sum(f(2.0 + h)) - np.sum(f(2.0 - h))) / (2 * h)
        np.testing.assert_allclose(fg.grad(f)(2.0), difference, rtol=1e-7)
        np.testing.assert_allclose(fg.jit(fg.grad(f))(2.0), difference, rtol=1e-7)
        np.testing.assert_array_equal(np.sum(fg.jit(f)(2.0)), np.sum(f(2.0)))
    weights = np.arange(1.0, 1 + values.shape[-1])
    exact = np.atleast_2d(values).sum(axis=0)
    np.testing.assert_allclose(fg.grad(lambda w: np.sum(np.dot(data, w)))(weights), exact)


def test_labels_come_back_by_writing_them():
    data = frame()
    slope = fg.grad(lambda a: np.sum(a**2))(data)
    again = type(data)(slope, index=data.index, columns=data.columns)
    assert again["y"].tolist() == [6.0, 8.0]
    array = labelled()
    assert array.copy(data=fg.grad(lambda a: np.sum(a**2))(array)).sel(t=20).item() == 4.0


def test_whole_datasets_are_passed_as_dicts():
    xarray = pytest.importorskip("xarray")
    data = xarray.Dataset({"u": labelled(), "v": 2 * labelled()})
    got = fg.grad(lambda d: np.sum(d["u"] * d["v"]))(dict(data))
    np.testing.assert_array_equal(got["u"], 2 * VALUES)
    columns = dict(frame())
    np.testing.assert_array_equal(fg.grad(lambda d: np.sum(d["x"] ** 2))(columns)["x"], [2.0, 4.0])


@pytest.mark.parametrize("kind", ["text", "mixed"])
def test_what_holds_no_numbers_is_refused(kind):
    pandas = pytest.importorskip("pandas")
    mixed = {"a": [1.0], "b": ["x"]}
    data = pandas.Series(["a", "b"]) if kind == "text" else pandas.DataFrame(mixed)
    with pytest.raises(TypeError, match=r"argument `args\[0\]` of jit"):
        fg.jit(lambda a: a)(data)
