from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.errors import ArgumentError, ShapeError

DTYPES = (np.bool_, np.int8, np.int64, np.float32, np.float64, np.complex64, np.complex128)


def sample(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 2
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return np.asarray(x).astype(dtype)


def check(ours, theirs):
    assert np.shape(ours) == np.shape(theirs)
    assert np.asarray(ours).dtype == np.asarray(theirs).dtype
    single = np.asarray(theirs).dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(
        ours, theirs, rtol=1e-5 if single else 1e-12, atol=1e-5 if single else 1e-12
    )


PRODUCTS = [
    ("matmul", (3,), (3,)),
    ("matmul", (2, 3), (3,)),
    ("matmul", (3,), (3, 4)),
    ("matmul", (2, 3), (3, 4)),
    ("matmul", (5, 2, 3), (3, 4)),
    ("matmul", (2, 3), (5, 3, 4)),
    ("matmul", (5, 2, 3), (5, 3, 4)),
    ("matmul", (6, 1, 2, 3), (5, 3, 4)),
    ("matmul", (1, 2, 3), (1, 3, 4)),
    ("matmul", (3,), (5, 3, 4)),
    ("matmul", (2, 0), (0, 3)),
    ("dot", (), (3,)),
    ("dot", (3,), (3,)),
    ("dot", (4, 2, 3), (5, 3, 2)),
    ("dot", (4, 3), (3,)),
    ("vdot", (2, 3), (2, 3)),
    ("vecdot", (4, 3), (3,)),
    ("vecdot", (4, 1, 3), (5, 3)),
    ("matvec", (4, 2, 3), (3,)),
    ("vecmat", (2,), (4, 2, 3)),
    ("inner", (2, 3), (4, 3)),
    ("inner", (), (4, 3)),
    ("outer", (2, 3), (4,)),
    ("tensordot", (2, 3, 4), (3, 4, 5)),
    ("kron", (2, 3), (4, 5)),
    ("kron", (2,), (4, 5)),
]
PRODUCTS = [row for row in PRODUCTS if hasattr(np, row[0])]  # the newer ones came with NumPy 2.2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "left", "right"), PRODUCTS)
def test_product(name, left, right, dtype):
    x, y = sample(left, dtype), sample(right, dtype, 1)
    check(getattr(fnp, name)(x, y), getattr(np, name)(x, y))


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "left", "right"), PRODUCTS)
def test_gradient_and_compilation_of_products(name, left, right):
    x, y = sample(left), sample(right, seed=1)
    function = getattr(fnp, name)
    fg.testing.check_grads(lambda a, b: fnp.sum(fnp.sin(function(a, b))), (x, y), order=2)
    np.testing.assert_allclose(
        fg.jit(function)(x, y), getattr(np, name)(x, y), rtol=1e-12, atol=1e-12
    )


def test_mixed_dtypes_promote():
    x, y = sample((2, 3), np.float32), sample((3, 4), np.int64)
    check(fnp.matmul(x, y), np.matmul(x, y))
    assert fnp.dot(sample((3,), np.float32), 2.0).dtype == np.float32


def test_operators_and_methods():
    x, y = sample((2, 3)), sample((3, 4))
    check(fg.jit(lambda a: a @ y)(x), x @ y)
    check(fg.jit(lambda b: x @ b)(y), x @ y)
    check(fg.jit(lambda a: a.dot(y))(x), x @ y)


@pytest.mark.parametrize("axes", [1, 0, ([2], [0]), ((1, 2), (1, 0)), (-1, 0), ([1], [1])])
def test_tensordot(axes):
    x, y = sample((2, 3, 4)), sample((4, 3, 5), seed=1)
    check(fnp.tensordot(x, y, axes), np.tensordot(x, y, axes))


SUBSCRIPTS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ba,cb", (2, 3), (4, 2)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iij->ji", (3, 3, 2)),
    ("iii->i", (3, 3, 3)),
    ("ij->", (2, 3)),
    ("ij->ji", (2, 3)),
    ("ji", (2, 3)),
    ("i,i->i", (3,), (3,)),
    ("i,j->ij", (3,), (2,)),
    ("i,j->ji", (3,), (2,)),
    ("i,j->", (3,), (2,)),
    ("ij,i->j", (2, 3), (2,)),
    ("ij,kl->k", (2, 3), (4, 5)),
    (",ij->ij", (), (2, 3)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("...ij,...jk", (5, 1, 2, 3), (6, 3, 4)),
    ("i...->...i", (2, 3, 4)),
    ("i...->...", (2, 3, 4)),
    ("...,...", (2, 3), (3,)),
    ("ij,ij->i", (2, 3), (2, 1)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,jk,ik->", (2, 3), (3, 4), (2, 4)),
    ("a,b,c->cab", (2,), (3,), (4,)),
    ("ii,ij,j,jk->k", (3, 3), (3, 2), (2,), (2, 4)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("i,i,i->", (3,), (3,), (3,)),
    ("i,i,i->i", (3,), (3,), (3,)),
]


@pytest.mark.parametrize("optimize", [True, False, "optimal"])
@pytest.mark.parametrize("case", SUBSCRIPTS, ids=lambda c: c[0])
def test_einsum(case, optimize):
    subscripts, *shapes = case
    values = [sample(n, seed=i) for i, n in enumerate(shapes)]
    check(fnp.einsum(subscripts, *values, optimize=optimize), np.einsum(subscripts, *values))


@pytest.mark.parametrize("case", SUBSCRIPTS, ids=lambda c: c[0])
def test_gradient_of_einsum(case):
    subscripts, *shapes = case
    values = tuple(sample(n, seed=i) for i, n in enumerate(shapes))
    fg.testing.check_grads(lambda *a: fnp.sum(fnp.einsum(subscripts, *a) ** 2), values, order=1)


def test_einsum_interleaved():
    x, y = sample((2, 3)), sample((5, 3, 4))
    check(
        fnp.einsum(x, [0, 1], y, [2, 1, 3], [2, 0, 3]),
        np.einsum(x, [0, 1], y, [2, 1, 3], [2, 0, 3]),
    )
    check(fnp.einsum(x, [0, 1], y, [..., 1, 3]), np.einsum(x, [0, 1], y, [..., 1, 3]))


def test_einsum_follows_a_path_of_numpy():
    values = [sample(n) for n in ((2, 3), (3, 4), (4, 5))]
    path = np.einsum_path("ij,jk,kl->il", *values, optimize="optimal")[0]
    check(fnp.einsum("ij,jk,kl->il", *values, optimize=path), values[0] @ values[1] @ values[2])


def test_einsum_of_complex_and_integers():
    x = sample((2, 3), np.complex128)
    check(fnp.einsum("ij,kj->ik", x, x), np.einsum("ij,kj->ik", x, x))
    n = sample((2, 3), np.int64)
    check(fnp.einsum("ij,kj->ik", n, n), np.einsum("ij,kj->ik", n, n))


def test_einsum_names_what_is_wrong():
    with pytest.raises(ShapeError, match="'j'"):
        fnp.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((4, 5)))
    with pytest.raises(ShapeError, match="axes"):
        fnp.einsum("ijk->i", np.ones((2, 3)))
    with pytest.raises(ArgumentError, match="2 operands"):
        fnp.einsum("ij,jk->ik", np.ones((2, 3)))
    with pytest.raises(ArgumentError, match="result"):
        fnp.einsum("ij->k", np.ones((2, 3)))


@pytest.mark.parametrize(
    ("left", "right", "kwargs"),
    [
        ((3,), (3,), {}),
        ((4, 3), (3,), {}),
        ((5, 1, 3), (4, 3), {}),
        ((3, 4), (3, 4), {"axis": 0}),
        ((3, 4), (4, 3), {"axisa": 0, "axisc": 0}),
    ],
)
def test_cross(left, right, kwargs):
    x, y = sample(left), sample(right, seed=1)
    check(fnp.cross(x, y, **kwargs), np.cross(x, y, **kwargs))
    fg.testing.check_grads(lambda a, b: fnp.cross(a, b, **kwargs), (x, y), order=1)


def test_cross_of_plane_vectors():
    assert fnp.cross([1.0, 2.0], [3.0, 5.0]) == -1.0


@pytest.mark.parametrize(
    ("left", "right", "axes"),
    [
        ((2,), (3,), {}),
        ((3,), (2,), {}),
        ((4, 2), (3,), {}),
        ((2, 4), (4, 3), {"axisa": 0, "axisc": 0}),
        ((3, 5), (2, 5), {"axis": 0}),
    ],
)
def test_cross_of_a_plane_vector_and_one_in_space(left, right, axes):
    x, y = sample(left), sample(right)
    axis = {name: axes.get(name, axes.get("axis", -1)) for name in ("axisa", "axisb", "axisc")}

    def in_space(v, axis):
        widths = [(0, 0)] * v.ndim
        widths[axis] = (0, 3 - v.shape[axis])
        return np.pad(v, widths)

    expected = np.cross(in_space(x, axis["axisa"]), in_space(y, axis["axisb"]), **axes)
    for transform in (lambda f: f, fg.jit):
        check(transform(lambda x, y: fnp.cross(x, y, **axes))(x, y), expected)
    fg.testing.check_grads(lambda a, b: fnp.cross(a, b, **axes), (x, y), order=1)


def test_vmap_of_matmul():
    x, y = sample((5, 2, 3)), sample((3, 4, 5))
    out = fg.vmap(fnp.matmul, in_axes=(0, 2))(x, y)
    np.testing.assert_allclose(out, np.einsum("bij,jkb->bik", x, y))


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("matmul", (2, 3), (4, 5)),
        ("matmul", (), (3,)),
        ("matmul", (2, 2, 3), (3, 3, 4)),
        ("dot", (2, 3), (4,)),
        ("inner", (2, 3), (4,)),
        ("vdot", (3,), (4,)),
        ("tensordot", (2, 3), (4, 5)),
        ("cross", (4,), (4,)),
    ],
)
def test_shapes_that_do_not_fit(name, left, right):
    with pytest.raises(ValueError, match=name):
        getattr(fnp, name)(np.ones(left), np.ones(right))


def test_out_is_refused():
    with pytest.raises(ArgumentError, match="out="):
        fnp.dot(np.ones(2), np.ones(2), np.ones(()))


def test_keywords_of_products():
    x, y = np.ones((2, 2), np.int8), np.full((2, 2), 100, np.int8)
    for name in ("dot", "vdot", "vecdot", "inner", "tensordot", "matmul"):
        wide = getattr(np, name)(x.astype(np.int32), y.astype(np.int32))
        options = {"precision": "highest", "preferred_element_type": np.int32}
        found = getattr(fnp, name)(x, y, **options)
        assert np.asarray(found).dtype == np.int32
        np.testing.assert_array_equal(found, wide)
    for function, numpys in ((fnp.sum, np.sum), (fnp.prod, np.prod)):
        found = function(y, promote_integers=False)
        assert found.dtype == np.int8
        assert found == numpys(y, dtype=np.int8)
        assert function(y > 0, promote_integers=False) == numpys(y > 0)
