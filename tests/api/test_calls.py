"""Calls of jitted functions: containers, scalars, unusual arrays, static values, errors.

Every call is made several times, for the second one takes another path than the first.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import errors, tree_util
from funcgrad.errors import ImpureFunctionWarning

Pair = namedtuple("Pair", ["left", "right"])
X = np.linspace(-1.0, 2.0, 5)


class Marked(np.ndarray):
    """A subclass of arrays."""


def marked(values: Any) -> Any:
    return np.asarray(values).view(Marked)


def thrice(f: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of a call, which the next two must repeat."""
    first = f(*args, **kwargs)
    for _ in range(2):
        again = f(*args, **kwargs)
        assert repr(again) == repr(first)
        assert fg.tree_util.tree_structure(again) == fg.tree_util.tree_structure(first)
    return first


@pytest.mark.parametrize(
    "tree",
    [
        1.5,
        X,
        [],
        (),
        {},
        None,
        [None, X],
        (X,),
        [X, (X, [X])],
        {"b": X, "a": [None, {}]},
        {3: X, 1: 2.0},
        Pair(X, None),
        Pair(Pair(1.0, ()), {"x": [X]}),
        OrderedDict([("z", X), ("a", 1)]),
        defaultdict(list, {"x": X}),
        [True, 1, 1.0, 1j, np.float32(2), np.int8(3), np.bool_(False)],
        functools.reduce(lambda inner, _: [inner], range(40), X),
        list(np.arange(300.0)),
    ],
    ids=lambda tree: type(tree).__name__,
)
def test_containers(tree: Any) -> None:
    found = thrice(fg.jit(lambda t: (t, [t])), tree)
    leaves, structure = fg.tree_util.tree_flatten((tree, [tree]))
    found_leaves, found_structure = fg.tree_util.tree_flatten(found)
    assert found_structure == structure
    for x, y in zip(found_leaves, leaves, strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_array_equal(x, y)
        assert isinstance(x, np.ndarray if isinstance(y, np.ndarray) else np.generic)


def test_no_arguments() -> None:
    f = fg.jit(lambda *args, **kwargs: (args, kwargs, np.zeros(2)))
    args, kwargs, zeros = thrice(f)
    assert (args, kwargs) == ((), {})
    np.testing.assert_array_equal(zeros, [0.0, 0.0])


def test_registered_dataclass() -> None:
    @fg.tree_util.register_dataclass
    @dataclass
    class Layer:
        w: Any
        b: Any

    found = thrice(fg.jit(lambda p: Layer(p.w * 2, p.b)), Layer(X, 3))
    assert isinstance(found, Layer)
    np.testing.assert_array_equal(found.w, X * 2)
    assert found.b == 3


def test_other_structures_after_the_first() -> None:
    f = fg.jit(lambda t: t)
    trees: list[Any] = [
        [X], (X,), {"a": X}, {"b": X}, {"a": X, "b": X}, X, None, [X, None], [None, X],
        Pair(X, X), (X, X), [[X], X], [X, [X]], np.float64(1),
    ]  # fmt: skip
    for tree in trees * 3:
        assert repr(f(tree)) == repr(tree)
    assert f.cache_info().traces == len(trees)


@pytest.mark.parametrize(
    "fun", [lambda x: x * 2, lambda x: np.sort(x) * 2], ids=["native", "numpy"]
)
def test_changing_types(fun: Any) -> None:
    f = fg.jit(fun)
    arrays = [
        X, X.astype(np.float32), np.arange(4), np.arange(4, dtype=np.uint8), X[:2], X[:0],
        X.reshape(1, -1), np.array([True, False]).view(np.int8), X + 1j, np.array([1.0]),
    ]  # fmt: skip
    for x in arrays * 3:
        expected = fun(x)
        found = f(x)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert f.cache_info().traces == len(arrays)


def test_scalars_keep_their_kinds() -> None:
    f = fg.jit(lambda x: x + 1)
    values = [True, 2, 2.5, 2j, np.float32(2), np.float64(2), np.int8(2), np.uint64(2), np.bool_(1)]
    for value in values * 3:
        expected = np.asarray(value) + 1
        assert f(value).dtype == expected.dtype
        assert f(value) == expected
    # A Python number does not widen an array; a NumPy scalar does.
    g = fg.jit(lambda x, a: x * a)
    x = X.astype(np.float32)
    for _ in range(2):
        assert g(x, 2.0).dtype == np.float32
        assert g(x, np.float64(2.0)).dtype == np.float64
        assert g(x, 2).dtype == np.float32
        assert g(np.arange(3), 2.0).dtype == np.float64


KINDS_OF_NUMBERS = {
    "floats": lambda i: 0.5 + i,
    "doubles": lambda i: np.float64(0.5 + i),
    "arrays": lambda i: np.array(0.5 + i),
    "singles": lambda i: np.float32(0.5 + i),
    "ints": lambda i: i,
    "mixed": lambda i: (0.5 + i, np.float64(i), np.array(i * 1.0), i, np.float32(i))[i % 5],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("donates", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", KINDS_OF_NUMBERS)
def test_numbers_go_in_and_out(kind: str, count: int, donates: bool) -> None:
    """Scalars and arrays between each other, as arguments and as results."""

    @functools.partial(fg.jit, donate_argnums=(0,) if donates else ())
    def f(numbers: list[Any], x: Any) -> Any:
        return [n * 2.0 for n in numbers], x + numbers[0], sum(numbers, 0.0), np.sum(x)

    for turn in range(4):
        numbers = [KINDS_OF_NUMBERS[kind](i + 3 * turn) for i in range(count)]
        expected = [float(n) for n in numbers]
        doubled, moved, total, sum_of_x = f(list(numbers), X)
        assert doubled == [2.0 * n for n in expected]
        assert {type(n) for n in doubled} <= {np.float64, np.float32}
        np.testing.assert_array_equal(moved, X + expected[0])
        assert total == sum(expected)
        assert sum_of_x == pytest.approx(X.sum())
        if not donates:
            assert [float(n) for n in numbers] == expected


def test_numbers_of_changing_kinds_find_their_own_path() -> None:
    f = fg.jit(lambda a, b, c, d: (a + b, c * d, a, d))
    for turn in range(3):
        for make in KINDS_OF_NUMBERS.values():
            a, b, c, d = (make(i + turn) for i in range(4))
            found = f(a, b, c, d)
            assert found == (float(a) + float(b), float(c) * float(d), float(a), float(d))


def test_results_that_are_numbers_stay_what_they_are() -> None:
    f = fg.jit(lambda a, b, c: [a * b, b * c, c * a])
    first = f(1.0, 2.0, 3.0)
    second = f(1.0, 2.0, 3.0)
    f(5.0, 6.0, 7.0)
    assert first == second == [2.0, 6.0, 3.0]


def test_numbers_of_several_threads_do_not_meet() -> None:
    f = fg.jit(lambda a, b, c, x: ([a * 2, b * 3, c * 4], x.sum() + a))
    f(1.0, 2.0, 3.0, X)

    def client(k: int) -> bool:
        a, b, c = float(k), k + 0.5, -float(k)
        given = (([2 * a, 3 * b, 4 * c], X.sum() + a), f(a, b, c, X))
        return all(f(a, b, c, X) == given[1] == given[0] for _ in range(2000))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(client, range(8)))


def test_numbers_after_a_call_that_was_refused() -> None:
    f = fg.jit(lambda i, a, b, c: (fg.numpy.at(X)[i].get() * a, b + c, b * c))
    for _ in range(2):
        assert f(np.array([1]), 1.0, 2.0, 3.0)[1:] == (5.0, 6.0)
        with pytest.raises(TypeError):
            f(np.array(["no"]), 1.0, 2.0, 3.0)
        with pytest.raises(TypeError):
            f(np.array([1]), 1.0, "no", 3.0)
    assert f(np.array([1]), 1.0, 4.0, 3.0)[1:] == (7.0, 12.0)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**70, 10**400])
def test_huge_ints(value: int) -> None:
    f = fg.jit(lambda n, x: x["a"] + n, static_argnums=())
    for _ in range(2):
        with pytest.raises(
            OverflowError, match=r"argument `args\[0\]` of jit\(<lambda>\) is an int"
        ):
            f(value, {"a": X})
        np.testing.assert_array_equal(f(1, {"a": X}), X + 1)
    g = fg.jit(lambda x: x + 0)
    assert g(2**63 - 1) == 2**63 - 1
    assert g(-(2**63)) == -(2**63)


@pytest.mark.parametrize(
    "fun", [lambda x: x * 2, lambda x: np.sort(x) * 2], ids=["native", "numpy"]
)
def test_subclasses_are_arrays_of_their_own_type(fun: Any) -> None:
    f = fg.jit(fun)
    for values in ([1.5, 2.0], [1, 2], [1.0, 2.0, 3.0], [True, False], [[1.5]]) * 2:
        found = f(marked(values))
        expected = fun(np.asarray(values))
        assert type(found) is np.ndarray
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_memory_maps(tmp_path: Path) -> None:
    path = tmp_path / "array"
    X.tofile(path)
    f = fg.jit(lambda x: x * x)
    np.testing.assert_array_equal(thrice(f, np.memmap(path, X.dtype, "r")), X * X)


def test_matrices_are_refused_whatever_was_compiled() -> None:
    f = fg.jit(lambda x: x * x)
    matrix = np.asarray([[1.0, 2.0], [3.0, 4.0]]).view(np.matrix)
    for _ in range(2):
        with pytest.raises(errors.ArgumentError, match=r"np\.matrix is not supported"):
            f(matrix)
        f(np.asarray(matrix))


def test_masked_arrays_are_refused() -> None:
    f = fg.jit(lambda x: x * 2)
    f(np.ones(2))
    for _ in range(2):
        with pytest.raises(errors.ArgumentError, match=r"`args\[0\]` of .* is a masked array"):
            f(np.ma.array([1.0, 2.0], mask=[False, True]))


OTHER_ARRAYS: list[Any] = [
    lambda m, x: fg.jit(lambda x: x * m)(x),
    lambda m, x: fg.grad(lambda x: np.sum(x * m))(x),
    lambda m, x: fg.value_and_grad(np.sum)(m),
    lambda m, x: fg.jvp(np.sum, (m,), (x,)),
    lambda m, x: fg.vjp(np.sum, m),
    lambda m, x: fg.vmap(np.sum)(m),
    lambda m, x: fg.hessian(np.sum)(m),
    lambda m, x: fnp.sum(m),
    lambda m, x: fg.lax.scan(lambda c, y: (c + y, y), 0.0, m),
]


@pytest.mark.parametrize("call", OTHER_ARRAYS)
def test_masks_are_never_ignored(call: Any) -> None:
    m, x = np.ma.array([1.0, 2.0], mask=[False, True]), np.ones(2)
    with pytest.raises(TypeError, match="masked arrays are not supported"):
        call(m, x)


@pytest.mark.parametrize(
    "call",
    [
        *OTHER_ARRAYS,
        lambda m, x: fg.jit(lambda x: m * x)(x),
        lambda m, x: fg.grad(lambda x: np.sum(m * x))(x),
        lambda m, x: fg.jit(lambda x: m @ x)(x),
    ],
)
def test_products_of_matrices_are_not_mistaken(call: Any) -> None:
    m, x = np.asarray([[1.0, 2.0], [3.0, 4.0]]).view(np.matrix), np.ones(2)
    with pytest.raises(TypeError, match=r"np\.matrix is not supported.*np\.asarray\(x\)"):
        call(m, x)


def test_types_are_not_values() -> None:
    f = fg.jit(lambda x: x * 2)
    f(np.ones(2))
    with pytest.raises(errors.ArgumentError, match="is a ShapeDtypeStruct, a type without values"):
        f(fg.ShapeDtypeStruct((2,), np.float64))
    assert f.eval_shape(fg.ShapeDtypeStruct((2,), np.float64)).shape == (2,)


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (X.astype(X.dtype.newbyteorder()), "its byte order is not this machine's"),
        (X.astype(np.float16), "float16"),
        (X.astype(np.longdouble), "longdouble"),
        (np.array([None]), "object arrays"),
        ("text", "is a str"),
        (object(), "is a object"),
    ],
    ids=lambda value: str(value)[:10],
)
def test_refused_arguments(value: Any, match: str) -> None:
    f = fg.jit(lambda x, y: (x, y))
    f(1.0, X)
    for _ in range(2):
        with pytest.raises(errors.DtypeError, match=match):
            f(1.0, value)
    np.testing.assert_array_equal(f(1.0, X)[1], X)


@pytest.mark.parametrize("code", "bBhHiIlLqQfdFD?")
def test_every_type_code(code: str) -> None:
    x = np.array([0, 1, 1], code)
    f = fg.jit(lambda x: (x[::-1], x.sum(), np.where(x == 0, x, x)))
    flipped, total, same = thrice(f, x)
    assert flipped.dtype == same.dtype == x.dtype
    np.testing.assert_array_equal(flipped, x[::-1])
    assert total == 2
    assert total.dtype == x.sum().dtype


@pytest.mark.parametrize("fun", [np.sin, np.sort], ids=["native", "numpy"])
def test_layouts_of_arguments(fun: Any) -> None:
    base = np.random.default_rng(0).normal(size=(6, 8))
    read_only = base.copy()
    read_only.flags.writeable = False
    unaligned = np.frombuffer(b"x" + base.tobytes(), np.uint8)[1:].view(np.float64).reshape(6, 8)
    assert not unaligned.flags.aligned
    arrays = [
        base, base.T, base[::2, ::-1], base[:, 3], base[1:, 1:], np.asfortranarray(base), read_only,
        np.broadcast_to(base[0], (6, 8)), unaligned, base[::-1],
    ]  # fmt: skip
    f = fg.jit(fun)
    for x in arrays * 2:
        before = x.copy()
        np.testing.assert_allclose(f(x), fun(x), rtol=1e-14)
        np.testing.assert_array_equal(x, before)


# Static arguments.


def test_static_values_are_told_apart_by_type() -> None:
    seen: list[Any] = []

    @functools.partial(fg.jit, static_argnums=0)
    def f(n: Any, x: Any) -> Any:
        seen.append(n)
        return x * (2 if n is True else 3 if type(n) is float else 4)

    for _ in range(3):
        assert [f(n, 1.0) for n in (1, True, 1.0)] == [4.0, 2.0, 3.0]
    assert len(seen) == 3


def test_static_nan() -> None:
    seen = []
    f = fg.jit(lambda n, x: (seen.append(n), x)[1], static_argnums=0)
    for _ in range(3):
        assert f(np.nan, 2.0) == 2.0
    assert len(seen) == 1


@pytest.mark.parametrize("value", [[1], {}, np.ones(2), {1}], ids=lambda v: type(v).__name__)
def test_static_values_must_be_hashable(value: Any) -> None:
    f = fg.jit(lambda n, x: x, static_argnums=0)
    for _ in range(2):
        with pytest.raises(errors.ArgumentError, match=r"static argument args\[0\] of .* hashable"):
            f(value, 1.0)
        assert f(1, 1.0) == 1.0


def test_static_by_name_and_by_position() -> None:
    def power(x: Any, n: int = 2, *, sign: int = 1) -> Any:
        return sign * x**n

    f = fg.jit(power, static_argnames=("n", "sign"))
    for _ in range(2):
        assert f(3.0) == 9.0
        assert f(3.0, 3) == 27.0
        assert f(3.0, n=3) == 27.0
        assert f(3.0, 1, sign=-1) == -3.0
        assert f(x=2.0, n=1) == 2.0
    g = fg.jit(power, static_argnums=-1)
    assert g(3.0, 3) == 27.0


# What is callable.


def test_methods() -> None:
    class Model:
        def __init__(self, w: float) -> None:
            self.w = w

        @functools.partial(fg.jit, static_argnums=0)
        def apply(self, x: Any) -> Any:
            return self.w * x

    a, b = Model(2.0), Model(3.0)
    for _ in range(3):
        np.testing.assert_array_equal(a.apply(X), 2 * X)
        np.testing.assert_array_equal(b.apply(X), 3 * X)
    np.testing.assert_array_equal(fg.jit(a.apply)(X), 2 * X)


def test_methods_of_pytrees_see_what_changes() -> None:
    @tree_util.register_pytree_node_class
    class Model:
        def __init__(self, w: float) -> None:
            self.w = w

        def tree_flatten(self) -> Any:
            return (self.w,), None

        @classmethod
        def tree_unflatten(cls, _: None, children: Any) -> Any:
            return cls(*children)

        @fg.jit
        def apply(self, x: Any) -> Any:
            return self.w * x

    model = Model(2.0)
    for w in (2.0, 3.0, 4.0):
        model.w = w
        np.testing.assert_array_equal(model.apply(X), w * X)
    assert Model.apply.cache_info().traces == 1


def test_partial_lambda_and_callable_object() -> None:
    class Scale:
        def __call__(self, x: Any) -> Any:
            return 2 * x

    for f in (functools.partial(np.multiply, 2), lambda x: 2 * x, Scale(), np.positive):
        found = thrice(fg.jit(f), X)
        np.testing.assert_array_equal(found, f(X))


def test_keyword_arguments() -> None:
    f = fg.jit(lambda x, **rest: {k: v + x for k, v in rest.items()})
    for _ in range(2):
        assert f(1.0, a=1.0, b=2.0) == {"a": 2.0, "b": 3.0}
        assert f(1.0, b=2.0, a=1.0) == {"a": 2.0, "b": 3.0}
        assert f(1.0) == {}
        assert f(x=1.0, a=2) == {"a": 3.0}
    assert f.cache_info().traces == 3


def test_more_signatures_than_call_paths() -> None:
    f = fg.jit(lambda x: x * 2)
    for _ in range(3):
        for n in range(9):
            np.testing.assert_array_equal(f(np.arange(n)), np.arange(n) * 2)
    assert f.cache_info().traces == 9
    assert f.cache_info().calls == 27


# What a function closes over, and errors inside it.


def test_arrays_closed_over_are_constants() -> None:
    w, single = np.ones(3), np.ones(1)
    f = fg.jit(lambda x: (x + w, x * single, w))
    f(np.zeros(3))
    w[:] = 5.0
    single[:] = 5.0
    with pytest.warns(ImpureFunctionWarning, match="has been written to"):
        results = [f(np.zeros(3)) for _ in range(2)]
    for total, product, same in results:
        np.testing.assert_array_equal(total, np.ones(3))
        np.testing.assert_array_equal(product, np.zeros(3))
        np.testing.assert_array_equal(same, np.ones(3))
        same[:] = 7.0
    np.testing.assert_array_equal(f(np.zeros(3))[2], np.ones(3))


def test_an_error_while_tracing_leaves_nothing_behind() -> None:
    fails = [True]

    def f(x: Any) -> Any:
        y = np.sin(x)
        if fails[0]:
            raise KeyError("half way")
        return y

    jitted = fg.jit(fg.grad(lambda x: fg.jit(f)(x)))
    outer = fg.jit(f)
    for _ in range(2):
        with pytest.raises(KeyError, match="half way"):
            outer(1.0)
        with pytest.raises(KeyError, match="half way"):
            jitted(1.0)
        with pytest.raises(KeyError, match="half way"):
            fg.vmap(outer)(X)
    assert outer.cache_info().traces == 0
    assert isinstance(np.sin(X) + 1, np.ndarray)
    fails[0] = False
    assert outer(1.0) == pytest.approx(np.sin(1.0))
    assert jitted(1.0) == pytest.approx(np.cos(1.0))


def test_an_error_while_running_leaves_nothing_behind() -> None:
    f = fg.jit(lambda a, b: np.linalg.solve(a, b) * 2)
    good = np.array([[2.0, 0.0], [0.0, 4.0]])
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError):
            f(np.zeros((2, 2)), np.ones(2))
        np.testing.assert_allclose(f(good, np.ones(2)), [1.0, 0.5])


def test_wrong_arguments() -> None:
    f = fg.jit(lambda x, y: x + y)
    f(1.0, 2.0)
    for _ in range(2):
        with pytest.raises(TypeError):
            f(1.0)
        with pytest.raises(TypeError):
            f(1.0, 2.0, 3.0)
        with pytest.raises(ValueError, match="broadcast"):
            f(np.ones(2), np.ones(3))
    assert f(1.0, 2.0) == 3.0


def test_inside_other_transformations() -> None:
    f = fg.jit(lambda x, n: (x**n).sum(), static_argnums=1)
    np.testing.assert_allclose(fg.grad(f)(X, 3), 3 * X**2)
    np.testing.assert_allclose(fg.vmap(lambda x: f(x, 2))(X[:, None]), X**2)
    np.testing.assert_allclose(fg.jit(fg.grad(lambda x: f(x, 3) + f(x, 2)))(X), 3 * X**2 + 2 * X)
    w = [1.0]
    g = fg.grad(lambda a: fg.jit(lambda x: (a * x).sum())(X) * w[0])
    for _ in range(2):
        assert g(2.0) == pytest.approx(X.sum())
