"""NumPy's own names under ours: one import is enough for what a program does around its arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import ConcretizationTypeError
from funcgrad.numpy import reexported


def test_files_and_text(tmp_path: Path) -> None:
    fnp.savez(tmp_path / "a.npz", x=fnp.arange(3.0))
    assert fnp.load(tmp_path / "a.npz")["x"].tolist() == [0.0, 1.0, 2.0]
    fnp.savetxt(tmp_path / "a.txt", fnp.eye(2))
    np.testing.assert_array_equal(fnp.loadtxt(tmp_path / "a.txt"), np.eye(2))
    with fnp.printoptions(precision=2), fnp.errstate(all="ignore"):
        assert fnp.array2string(fnp.array([np.pi])) == "[3.14]"
    assert fnp.frombuffer(b"\x01\x02", fnp.uint8).tolist() == [1, 2]


@pytest.mark.parametrize("code", "bBhHiIlLqQP")
def test_types_of_c_are_those_with_sizes(code: str) -> None:
    name = np.dtype(code).type.__name__
    found = {
        getattr(fnp, name).dtype for name in reexported.__all__ if hasattr(getattr(fnp, name), "of")
    }
    assert np.dtype(code) in found, name
    assert fnp.byte is fnp.int8
    assert fg.jit(lambda x: fnp.short(x))(2.5).dtype == np.int16


@pytest.mark.parametrize("transform", [fg.grad, fg.jit])
def test_inside_of_a_transformation(transform: Any) -> None:
    def f(x: Any) -> Any:
        y = fnp.zeros(3)
        fnp.copyto(y, fnp.asfortranarray(x))
        fnp.putmask(y, np.array([True, False, False]), 2 * x)
        for i in fnp.ndindex(*x.shape):
            assert fnp.broadcast(x, y).shape == (3,), i
        return (fnp.require(x, np.float64, ["C"]) * y).sum()

    expected = [4.0, 4.0, 6.0] if transform is fg.grad else 15.0
    np.testing.assert_array_equal(transform(f)(np.array([1.0, 2.0, 3.0])), expected)


@pytest.mark.parametrize("name", ["array_repr", "may_share_memory", "savetxt", "isfortran"])
def test_traced_values_are_refused(name: str) -> None:
    message = rf"numpy\.{name} is NumPy's own function and needs known values, but got a traced"
    with pytest.raises(ConcretizationTypeError, match=message):
        fg.jit(lambda x: getattr(fnp, name)(x, x))(np.ones(2))
