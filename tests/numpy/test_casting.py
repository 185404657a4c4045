"""Options that say in which dtypes a function is evaluated, and how much may be lost: NumPy's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp

X, Y = np.array([1.0, 2.5]), np.array([2.0, 4.0])
OPERANDS = {
    "f8": X,
    "f4": X.astype("f4"),
    "i8": np.array([3, 5]),
    "i4": np.array([3, 5], "i4"),
    "?": np.array([True, False]),
    "c16": X + 1j,
}
UFUNCS = ["add", "multiply", "divide", "less", "logical_and", "maximum", "floor_divide", "hypot"]
OPTIONS: list[dict[str, Any]] = [
    *({"dtype": d} for d in (np.float64, np.float32, np.int64, bool, complex)),
    *({"casting": c} for c in ("no", "equiv", "safe", "same_kind", "unsafe")),
    *(
        {"dtype": d, "casting": c}
        for d, c in itertools.product((np.int64, np.float32), ("no", "safe", "unsafe"))
    ),
    {"signature": "dd->d"},
    {"signature": (None, None, np.float64)},
    {"signature": "dd->d", "casting": "no"},
    {"order": "F"},
    {"subok": False},
]


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    with np.errstate(all="ignore"):
        try:
            return np.asarray(function(*args))
        except (TypeError, ValueError) as error:
            return type(error).__name__ if isinstance(error, TypeError) else "ValueError"


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs(name: str, options: dict[str, Any]) -> None:
    function = getattr(np, name)
    for x, y in (("f8", "f8"), ("f4", "f8"), ("i8", "f8"), ("i4", "i8"), ("c16", "f8"), ("?", "?")):
        expected = outcome(lambda x, y: function(x, y, **options), OPERANDS[x], OPERANDS[y])
        if isinstance(expected, np.ndarray) and expected.dtype == np.float16:
            continue  # there is no half precision
        found = outcome(
            lambda x, y: fg.vmap(lambda x, y: function(x, y, **options))(x, y),
            OPERANDS[x],
            OPERANDS[y],
        )
        label = f"{name}({x}, {y}, {options})"
        if isinstance(expected, str) or isinstance(found, str):
            assert isinstance(expected, str), f"{label}: {found}"
            assert isinstance(found, str), f"{label}: {expected}"
            continue
        assert found.dtype == expected.dtype, label
        np.testing.assert_allclose(found, expected, 1e-6, err_msg=label)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: np.add(x, x, dtype=np.int64, casting="safe"),
    "add of numbers": lambda x: np.add(x, 1, dtype=np.int64),
    "sqrt": lambda x: np.sqrt(x, dtype=np.int64),
    "sin": lambda x: np.sin(x, casting="no", dtype=np.float32),
    "outer": lambda x: np.add.outer(x + 1j, x, dtype=np.float64),
    "reduce": lambda x: np.logical_xor.reduce(x, dtype=np.float64),
    "reduce of all": lambda x: np.logical_and.reduce(x, dtype=np.float64),
    "accumulate": lambda x: np.logical_or.accumulate(x, dtype=np.float64),
    "matmul": lambda x: np.matmul(x, x, casting="no", dtype=np.float32),
    "einsum": lambda x: np.einsum("i->", x, dtype=np.float32),
    "einsum safely": lambda x: np.einsum("i->", x, dtype=np.float32, casting="safe"),
    "astype": lambda x: x.astype(np.int64, casting="safe"),
    "astype of no rule": lambda x: x.astype(np.int64, casting="bogus"),
    "both": lambda x: np.add(x, x, dtype=float, signature="dd->d"),
    "no loop": lambda x: np.less(x, x, signature="dd->d"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses(name: str) -> None:
    function = REFUSED[name]
    with pytest.raises((TypeError, ValueError)):
        function(X)
    for wrapped in (fg.jit(function), fg.vmap(function), lambda x: fg.jvp(function, (x,), (x,))):
        with pytest.raises((TypeError, ValueError)):
            wrapped(X if wrapped is not fg.vmap(function) else X[None])


def test_text_of_a_refusal() -> None:
    with pytest.raises(TypeError, match=r"Cannot cast ufunc 'add' input 0 .* rule 'safe'"):
        fg.jit(REFUSED["add"])(X)
    with pytest.raises(TypeError, match=r"Cannot cast f64\[2\] to int64 .* rule 'safe'"):
        fg.jit(REFUSED["astype"])(X)


def test_what_is_asked_for_is_done() -> None:
    double = fg.jit(lambda x: np.add(x, x, dtype=np.int64, casting="unsafe"))
    assert double(X).tolist() == [2, 4]
    assert fg.jit(lambda x: x.astype(np.float32, casting="same_kind"))(X).dtype == np.float32
    assert (
        fg.jit(lambda x: np.einsum("i->", x, dtype=np.float32, casting="unsafe"))(X).dtype == "f4"
    )
    wide = fg.jit(lambda x: fnp.einsum("i->", x, preferred_element_type=np.float64))
    assert wide(X.astype("f4")).dtype == np.float64
    assert fg.grad(lambda x: np.multiply(x, x, dtype=np.float64, casting="no"))(3.0) == 6.0
