"""What programs for JAX import beside the large namespaces."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import custom_derivatives, lax
from funcgrad.errors import DtypeError, UnexpectedTracerError
from funcgrad.test_util import check_jvp, check_vjp
from funcgrad.testing import GradientError


def test_known_values_in_a_traced_function():
    @fg.jit
    def f(x):
        with fg.ensure_compile_time_eval():
            n = fnp.sum(fnp.arange(4))
            assert n == 6  # a number, which Python may branch on
        return fnp.full(int(n), x)

    assert f(1.5).tolist() == [1.5] * 6

    @fg.jit
    def g(x):
        with fg.ensure_compile_time_eval():
            return x + 1

    with pytest.raises(UnexpectedTracerError, match="escaped"):
        g(1.0)


def test_staged_values_have_traced_indices():
    table = np.arange(5.0)
    assert fg.jit(lambda i: lax.stage(table)[i])(3) == 3.0
    assert fg.grad(lambda x: lax.stage(x) * lax.stage(2.0))(3.0) == 2.0
    assert lax.stage(table) is not table
    assert isinstance(lax.stage(1), np.int64)


def test_sunk_values_are_computed():
    seen = []

    @fg.jit
    def f(x):
        y = fg.pure_callback(lambda v: seen.append(v) or v, fg.ShapeDtypeStruct((), float), x)
        lax.dce_sink({"y": y})
        return x + 1

    assert f(1.0) == 2.0
    assert seen == [1.0]
    assert fg.grad(lambda x: (lax.dce_sink(x * 2), x * 3)[1])(1.0) == 3.0
    assert fg.vmap(lambda x: (lax.dce_sink(x), x)[1])(np.ones(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "same",
    [lambda x: lax.pcast(x, "i", to="varying"), lambda x: lax.with_sharding_constraint(x, None)],
    ids=["pcast", "with_sharding_constraint"],
)
def test_words_about_devices_change_nothing(same):
    f = fg.vmap(lambda x: same({"x": x})["x"] ** 2, axis_name="i")
    assert f(np.arange(3.0)).tolist() == [0.0, 1.0, 4.0]
    slopes = fg.vmap(fg.grad(lambda x: same(x) ** 2), axis_name="i")
    assert slopes(np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


def test_dtypes_that_have_names_only():
    x = np.ones(2, np.float32)
    assert x.dtype not in (fnp.float16, fnp.half, fnp.longdouble, fnp.clongdouble)
    assert fnp.finfo(fnp.float16).bits == 16
    assert fnp.result_type(fnp.float16, fnp.float32) == fnp.float32
    with pytest.raises(DtypeError, match="float16"):
        fnp.sin(np.ones(2, fnp.float16))


def test_logged_values(caplog):
    with caplog.at_level(logging.INFO, "funcgrad.debug"):
        fg.jit(lambda x: fg.debug.log("x = {:.1f}", x))(2.0)
    assert [(r.name, r.getMessage()) for r in caplog.records] == [("funcgrad.debug", "x = 2.0")]


def test_rules_with_symbolic_zeros():
    @fg.custom_vjp
    def f(x, n):
        return x * n

    def forward(x, n):
        x, n = custom_derivatives.custom_vjp_primal_tree_values((x, n))
        return x * n, (n,)

    def backward(kept, ct):
        return ct * kept[0], custom_derivatives.zero_from_primal(kept[0])

    f.defvjp(forward, backward, symbolic_zeros=True)
    assert fg.grad(f)(2.0, 3) == 3.0
    zero = custom_derivatives.zero_from_primal(np.ones(2, np.float32))
    assert (zero.dtype, zero.tolist()) == (np.float32, [0.0, 0.0])
    assert custom_derivatives.zero_from_primal(np.arange(3)).dtype == fg.float0
    symbolic = custom_derivatives.zero_from_primal(1.0, symbolic_zeros=True)
    assert isinstance(symbolic, custom_derivatives.SymbolicZero)
    assert symbolic.dtype == np.float64


def of_dict(x, y):
    return {"a": fnp.sin(x) * y["b"], "c": y["b"] ** 2}


POINT = (np.array([0.3, 1.2]), {"b": np.array([0.5, 2.0])})


def test_functions_that_claim_to_be_derivatives():
    check_jvp(of_dict, lambda args, dots: fg.jvp(of_dict, args, dots), POINT)
    check_vjp(of_dict, lambda *args: fg.vjp(of_dict, *args), POINT)
    single = tuple(fg.tree.map(lambda x: x.astype(np.float32), POINT))
    check_vjp(of_dict, lambda *args: fg.vjp(of_dict, *args), single)
    complex_point = (np.array([0.3 + 1j]), {"b": np.array([2.0 - 1j])})
    check_jvp(of_dict, lambda args, dots: fg.jvp(of_dict, args, dots), complex_point)
    check_vjp(of_dict, lambda *args: fg.vjp(of_dict, *args), complex_point)


def test_wrong_derivatives_are_found():
    def doubled(args, dots):
        out, out_dots = fg.jvp(of_dict, args, dots)
        return out, fg.tree.map(lambda t: 2 * t, out_dots)

    with pytest.raises(GradientError, match="mine: tangents are wrong"):
        check_jvp(of_dict, doubled, POINT, err_msg="mine")

    def swapped(*args):
        out, pull = fg.vjp(of_dict, *args)
        return out, lambda ct: fg.tree.map(lambda t: -t, pull(ct))

    with pytest.raises(GradientError, match="cotangents are wrong"):
        check_vjp(of_dict, swapped, POINT)
    with pytest.raises(GradientError, match="results are wrong"):
        check_vjp(of_dict, lambda *args: (of_dict(args[0] + 1, args[1]), None), POINT)


def test_there_is_one_process():
    assert fg.process_indices() == [0]


def test_numbers_from_a_hidden_state():
    np.random.seed(1)
    draw = fg.jit(lambda: lax.rng_uniform(np.float32(2.0), np.float32(3.0), (4,)))
    first, second = draw(), draw()
    assert first.dtype == np.float32
    assert ((first >= 2) & (first < 3)).all()
    assert first.tolist() != second.tolist()
    assert set(lax.rng_uniform(0, 3, (50,)).tolist()) == {0, 1, 2}
    with pytest.raises(DtypeError, match="must be real and have one dtype"):
        lax.rng_uniform(0, 1.0, ())


def test_what_programs_ask_of_dtypes():
    key = fg.random.key(0)
    assert fg.dtypes.issubdtype(key.dtype, fg.dtypes.prng_key)
    assert fg.dtypes.issubdtype(fg.dtypes.prng_key, fg.dtypes.extended)
    assert fg.dtypes.issubdtype(np.float32, np.floating)
    assert fg.dtypes.canonicalize_dtype("float64") == np.float64
    assert fg.dtypes.itemsize_bits(np.int16) == 16
    assert fg.dtypes.result_type(1.0, return_weak_type_flag=True) == (np.float64, True)
    assert (
        fg.jit(lambda x: x.astype(fg.dtypes.result_type(x, np.float32)))(np.ones(1, int)).dtype
        == float
    )
    assert fg.dtypes.scalar_type_of(np.ones(1)) is float
    with pytest.raises(DtypeError, match="no numbers like those"):
        fg.dtypes.scalar_type_of("U3")


def test_the_registry_as_an_object():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    registry = fg.tree_util.default_registry
    assert not registry.is_node(Pair(1, 2))
    registry.register_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))
    assert registry.flatten(Pair(1, [2, 3]))[0] == [1, 2, 3]
    assert list(registry.flatten_one_level(Pair(1, [2, 3]))[0]) == [1, [2, 3]]
    assert registry.flatten_one_level(3.0) is None
    assert [x for _, x in registry.flatten_with_path({"a": 1})[0]] == [1]
