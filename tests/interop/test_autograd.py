"""HIPS autograd's names mean here what they mean there."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings

import numpy as onp
import pytest
import scipy.linalg

import funcgrad as fg
import funcgrad.interop.autograd as ag
import funcgrad.interop.autograd.numpy as np
from funcgrad.interop.autograd import builtins, core, misc
from funcgrad.interop.autograd.builtins import DictBox, SequenceBox
from funcgrad.interop.autograd.builtins import isinstance as is_instance
from funcgrad.interop.autograd.builtins import type as type_of
from funcgrad.interop.autograd.extend import (
    Box,
    VSpace,
    def_linear,
    defjvp,
    defjvp_argnum,
    defvjp,
    defvjp_argnum,
    notrace_primitive,
    primitive,
    register_notrace,
    vspace,
)
from funcgrad.interop.autograd.installing import NAMES
from funcgrad.interop.autograd.misc import optimizers
from funcgrad.interop.autograd.misc.fixed_points import fixed_point
from funcgrad.interop.autograd.misc.flatten import flatten_func
from funcgrad.interop.autograd.numpy.numpy_vjps import unbroadcast_f
from funcgrad.interop.autograd.scipy.signal import convolve
from funcgrad.interop.autograd.test_util import check_equivalent, check_grads, combo_check
from funcgrad.interop.autograd.tracer import getval, isbox
from funcgrad.interop.autograd.util import quick_grad_check
from funcgrad.interop.missing import Missing, MissingNameError

X = onp.array([0.5, 1.5, 2.0])
A = onp.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 3.0]])


# The same program under both libraries: a function of the library and its NumPy.
SAME = {
    "grad": lambda ag, np: ag.grad(lambda x: np.sum(x**3))(X),
    "grad of shape (1,)": lambda ag, np: ag.grad(lambda x: x[:1] ** 2)(X),
    "grad float32": lambda ag, np: ag.grad(np.sin)(onp.float32(1)),
    "grad of a dict": lambda ag, np: ag.grad(lambda d: d["a"] * np.sum(d["b"][0]))(
        {"a": 2.0, "b": [X, 3.0]}
    ),
    "argnum tuple": lambda ag, np: ag.grad(lambda x, y: x * y, (0, 1))(1.0, 2.0),
    "argnum list": lambda ag, np: ag.grad(lambda x, y: x * y, [1])(1.0, 2.0),
    "negative argnum": lambda ag, np: ag.grad(lambda x, y: x * x * y, -1)(3.0, 2.0),
    "keywords": lambda ag, np: ag.grad(lambda x, a=1.0: x * a)(3.0, a=4.0),
    "constant": lambda ag, np: ag.grad(lambda x: 3.0)(1.0),
    "value_and_grad": lambda ag, np: ag.value_and_grad(lambda x: np.sum(np.sin(x)))(X),
    "grad_and_aux": lambda ag, np: ag.grad_and_aux(lambda x: (np.sum(x**2), x * 3))(X),
    "elementwise": lambda ag, np: ag.elementwise_grad(lambda x, y: np.tanh(x * y), 1)(X, X),
    "third elementwise": lambda ag, np: ag.elementwise_grad(
        ag.elementwise_grad(ag.elementwise_grad(np.tanh))
    )(X),
    "deriv": lambda ag, np: ag.deriv(np.sin)(1.0),
    "jacobian": lambda ag, np: ag.jacobian(lambda x: np.outer(x, np.exp(x)))(X),
    "jacobian scalar": lambda ag, np: ag.jacobian(lambda x: x * np.ones(2))(3.0),
    "jacobian of jacobian": lambda ag, np: ag.jacobian(ag.jacobian(lambda x: np.dot(A, x**3)))(X),
    "hessian": lambda ag, np: ag.hessian(lambda x: np.sum(np.exp(np.dot(A, x))))(X),
    "hvp": lambda ag, np: ag.hessian_vector_product(lambda x: np.sum(np.prod(x) * x))(X, X),
    "htp of a matrix": lambda ag, np: ag.hessian_tensor_product(
        lambda x: np.sum(np.linalg.inv(x)) ** 2
    )(A, A + 1),
    "tjp": lambda ag, np: ag.tensor_jacobian_product(lambda x: np.outer(x, x))(X, A),
    "tjp of fewer axes": lambda ag, np: ag.tensor_jacobian_product(lambda x: np.outer(x, x**2))(
        X, X
    ),
    "vjp": lambda ag, np: ag.make_vjp(lambda x: np.dot(A, x))(X)[0](X),
    "vjp of a tuple": lambda ag, np: ag.make_vjp(lambda x, y: x * y, (0, 1))(2.0, X)[0](X),
    "jvp": lambda ag, np: ag.make_jvp(lambda x: np.dot(A, x))(X)(X),
    "jvp in two": lambda ag, np: ag.make_jvp(lambda x, y: x * y, (0, 1))(1.0, 2.0)((1.0, 1.0)),
    "hvp at a point": lambda ag, np: ag.make_hvp(lambda x: np.sum(x**4))(X)[0](X),
    "ggnvp": lambda ag, np: ag.make_ggnvp(lambda x: np.tanh(np.dot(A, x)))(X)(X),
    "complex": lambda ag, np: ag.grad(lambda z: np.abs(z) ** 2)(1 + 2j),
    "holomorphic": lambda ag, np: ag.holomorphic_grad(lambda z: np.exp(z) * z)(1 + 2j),
    "named": lambda ag, np: ag.grad_named(lambda a, b: a * b * b, "b")(3.0, 2.0),
    "checkpoint": lambda ag, np: ag.grad(ag.checkpoint(lambda x: np.sum(np.sin(x) * x)))(X),
    "branches": lambda ag, np: ag.grad(lambda x: x**2 if x > 0 else -x)(3.0),
    "iteration": lambda ag, np: ag.grad(
        lambda x: sum(a * b for a, b in zip(x, x[::-1], strict=True))
    )(X),
    "stacked list": lambda ag, np: ag.grad(lambda x: np.sum(np.array([x[0], [x[1]][0]]) ** 2))(X),
    "where": lambda ag, np: ag.elementwise_grad(lambda x: np.where(x > 1, x**2, -x))(X),
    "einsum": lambda ag, np: ag.grad(lambda m: np.einsum("ij,jk,ki->", m, m, A))(A),
    "fft": lambda ag, np: ag.grad(lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2))(X),
    "slogdet": lambda ag, np: ag.grad(lambda m: np.linalg.slogdet(m)[1])(A),
    "logsumexp": lambda ag, np: ag.hessian(lambda x: np.logaddexp(x[0], x[1]) * x[2])(X),
    "diagonals": lambda ag, np: ag.grad(
        lambda x: np.sum(np.make_diagonal(x, axis1=-1, axis2=-2) * A)
    )(X),
    "where of Python's numbers": lambda ag, np: [np.where(c, 1, 2.5) for c in (True, False)],
    "where by names": lambda ag, np: ag.grad(
        lambda x: np.sum(np.where(condition=x > 1, x=x**2, y=-x))
    )(X),
    "integers": lambda ag, np: ag.grad(lambda x: x * np.int64(x))(2.7),
    "const_graph": lambda ag, np: misc.const_graph(lambda x: x**2)(3.0),
}


@pytest.mark.parametrize("name", SAME)
def test_derivatives_are_those_of_autograd(name):
    original = pytest.importorskip("autograd")
    their_numpy = pytest.importorskip("autograd.numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = SAME[name](original, their_numpy)
    got = SAME[name](ag, np)
    assert fg.tree.structure(got) == fg.tree.structure(expected)
    for a, b in zip(fg.tree.leaves(got), fg.tree.leaves(expected), strict=True):
        onp.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
        assert onp.shape(a) == onp.shape(b)
        assert onp.asarray(a).dtype == onp.asarray(b).dtype


def test_all_names_of_autograd_are_here():
    """All can be imported; those of autograd's inner parts say that they are missing when used."""
    missing = set()
    for path, names in NAMES.items():
        module = importlib.import_module(ag.__name__ + path.removeprefix("autograd"))
        found = {name: getattr(module, name) for name in names.split()}
        missing |= {f"{path}.{name}" for name, x in found.items() if type(x) is Missing}
    public = {
        "builtins": "DictBox SequenceBox container_take make_sequence type_ vspace",
        "core": "Box primitive_vjps defjvp vspace",
        "extend": "defvjp_argnums primitive register_notrace",
        "numpy.numpy_vjps": "unbroadcast unbroadcast_f anp defvjp",
        "numpy.numpy_boxes": "ArrayBox Box",
        "numpy.numpy_vspaces": "ArrayVSpace ComplexArrayVSpace",
        "scipy.special": "unbroadcast_f primitive",
        "util": "subval subvals",
    }
    for path, names in public.items():
        listed = {f"autograd.{path}.{name}" for name in names.split()}
        assert not listed & missing
        assert {name.rpartition(".")[2] for name in listed} <= set(
            NAMES[f"autograd.{path}"].split()
        )
    with pytest.raises(MissingNameError, match=r"^autograd\.core\.backward_pass is not th"):
        core.backward_pass(1.0, None)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = core.no_such_name


def test_the_names_are_those_of_autograd():
    pytest.importorskip("autograd")
    modules = {path: importlib.import_module(path) for path in NAMES}
    for path, names in NAMES.items():
        assert not set(names.split()) - set(vars(modules[path])), path


@pytest.mark.parametrize("kind", [list, tuple])
def test_containers_under_the_names_of_builtins(kind):
    assert not is_instance({"a": 1.0}, DictBox)
    assert not is_instance(kind([1.0]), SequenceBox)

    def f(x):
        seq = builtins.sequence_extend_left(builtins.make_sequence(kind, x, 2.0), 3.0)
        seq = builtins.sequence_extend_right(seq, x * x)
        assert type(seq) is kind
        assert len(seq) == 4
        assert not is_instance(seq, SequenceBox)
        return builtins.container_take(seq, 1) * builtins.container_take(seq, 3)

    assert ag.grad(f)(2.0) == 12.0
    assert (builtins.dict_, builtins.list_, builtins.tuple_) == (dict, list, tuple)


def test_numpy_names_are_numpys():
    assert np.pi is onp.pi
    assert np.float64 is onp.float64
    assert np.ndarray is onp.ndarray
    assert np.bool_ is onp.bool_
    assert np.ufunc is onp.ufunc
    assert type(onp.ones(2)) is np.ndarray
    assert np.random.RandomState is onp.random.RandomState
    assert np.testing is onp.testing
    missing = [n for n in onp.__all__ if not hasattr(np, n)]
    assert not missing
    with pytest.raises(AttributeError):
        _ = np.no_such_name


ERRORS = {
    "int": (lambda: ag.grad(np.sin)(1), TypeError, r"can't differentiate w.r.t. `x`, ~i64\[\]"),
    "ints in a container": (
        lambda: ag.grad(lambda d: d["a"] * 2.0)({"a": 1.0, "n": 3}),
        TypeError,
        r"can't differentiate w.r.t. `x\['n'\]`",
    ),
    "vector": (lambda: ag.grad(lambda x: x)(X), TypeError, r"scalar-output.*returned f64\[3\]"),
    "tuple": (lambda: ag.grad(lambda x: (x, x))(1.0), TypeError, "scalar-output"),
    "nothing": (lambda: ag.grad(lambda x: None)(1.0), TypeError, "returned None"),
    "complex": (lambda: ag.grad(lambda z: z * z)(1 + 2j), TypeError, "returned ~?c128"),
    "complex elements": (
        lambda: ag.elementwise_grad(lambda z: z * z)(1 + 2j), TypeError, "real-output",
    ),
    "argnum": (lambda: ag.grad(np.sin, "x"), TypeError, "argnum must be an int"),
    "too few": (lambda: ag.grad(np.sin, 1)(1.0), TypeError, "was called with 1 positional arg"),
    "no such name": (lambda: ag.grad_named(lambda a: a, "b"), TypeError, "no argument 'b' among a"),
    "no function": (lambda: ag.grad(3.0), TypeError, "needs a function"),
    "Box": (lambda: Box.register(dict), TypeError, "funcgrad.tree_util.register_pytree_node"),
    "VSpace": (lambda: VSpace.register(dict), TypeError, "differentiates classes as pytrees"),
    "bad rule": (lambda: defvjp(primitive(onp.sin), 3), TypeError, "bad VJP 3"),
    "no rule": (
        lambda: ag.grad(primitive(onp.sin))(1.0), NotImplementedError,
        "sin is a primitive whose derivative with respect to argument 0 is not defined",
    ),
    "no rule for this one": (
        lambda: ag.grad(power, 1)(2.0, 3.0), NotImplementedError, "VJP of power wrt argnum 1",
    ),
    "mode": (lambda: convolve(X, X, mode="all"), TypeError, "mode must be one of"),
}  # fmt: skip


def double(x):
    return x + x


@primitive
def power(x, n, scale=1.0):
    """A function that needs concrete values."""
    assert isinstance(x, onp.ndarray | float)
    y = onp.empty_like(x)
    y[...] = scale * x**n
    return y


defvjp(power, lambda ans, x, n, scale=1.0: lambda g: g * scale * n * power(x, n - 1), argnums=[0])


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_was_meant(name):
    run, kind, text = ERRORS[name]
    with pytest.raises(kind, match=text):
        run()


def test_functions_that_are_no_primitives_keep_their_derivatives():
    """Programs give NumPy's what autograd lacks, and their own rules that autograd never asks."""
    with pytest.warns(UserWarning, match="function double is no primitive"):
        defvjp(double, lambda ans, x: lambda g: 7.0 * g)
    assert ag.grad(double)(1.0) == 2.0
    with pytest.warns(UserWarning, match=r"ufunc sin is no primitive.*no effect"):
        defvjp(onp.sin, lambda ans, x: lambda g: 0.0)
    with pytest.warns(UserWarning, match="where is no primitive"):
        defjvp(np._original_where, None, "same", "same")
    assert ag.grad(np.sin)(0.0) == 1.0


def test_what_stands_for_a_traced_array_is_a_box():
    found = []

    def f(x):
        copied = x.copy()
        copied[0] = 1.0
        found.extend(isinstance(v, np.numpy_boxes.ArrayBox) for v in (x, copied, x[x > 0], 1.0))
        return np.sum(copied)

    ag.grad(f)(X)
    assert found == [True, True, True, False]


def test_a_primitive_sees_concrete_values_in_every_derivative():
    def f(x):
        return np.sum(power(x, 3, scale=2.0))

    onp.testing.assert_allclose(ag.grad(f)(X), 6 * X**2)
    onp.testing.assert_allclose(ag.hessian(f)(X), onp.diag(12 * X))
    onp.testing.assert_allclose(ag.jacobian(lambda x: power(x, 3))(X), onp.diag(3 * X**2))
    onp.testing.assert_allclose(ag.make_jvp(lambda x: power(x, 3))(X)(X)[1], 3 * X**3)
    onp.testing.assert_allclose(fg.vmap(lambda x: power(x, 3))(A), A**3)
    onp.testing.assert_allclose(fg.vmap(fg.grad(f))(A), 6 * A**2)
    check_grads(lambda x: power(x, 3), order=2)(X)


def test_a_rule_may_use_what_takes_concrete_values_only():
    factor = scipy.linalg.cho_factor(A)
    solve = primitive(lambda b: scipy.linalg.cho_solve(factor, b))
    defvjp(solve, lambda ans, b: lambda g: scipy.linalg.cho_solve(factor, g))
    onp.testing.assert_allclose(ag.jacobian(solve)(X), onp.linalg.inv(A), atol=1e-14)


def test_forward_rules():
    product = primitive(lambda x, y: onp.multiply(x, y))
    defjvp(product, lambda g, ans, x, y: g * y, lambda g, ans, x, y: x * g)
    onp.testing.assert_allclose(ag.make_jvp(product, (0, 1))(X, X)((X, X))[1], 2 * X * X)
    onp.testing.assert_allclose(ag.grad(lambda x: np.sum(product(x, x)))(X), 2 * X)
    triple = primitive(lambda x: onp.multiply(3.0, x))
    def_linear(triple)
    onp.testing.assert_allclose(ag.make_jvp(triple)(X)(X)[1], 3 * X)
    same = primitive(lambda x: onp.multiply(3.0, x))
    defjvp(same, "same")
    onp.testing.assert_allclose(ag.grad(lambda x: np.sum(same(x)))(X), [3.0] * 3)
    by_number = primitive(lambda *xs: onp.sum(onp.stack(xs), 0))
    defvjp_argnum(by_number, lambda argnum, ans, args, kwargs: lambda g: (argnum + 1) * g)
    defjvp_argnum(by_number, lambda argnum, g, ans, args, kwargs: (argnum + 1) * g)
    onp.testing.assert_allclose(ag.grad(lambda x: np.sum(by_number(1.0 * X, x)))(X), [2.0] * 3)
    assert ag.make_jvp(by_number, (0, 1))(1.0, 1.0)((1.0, 1.0))[1] == 3.0
    flat = primitive(onp.round)
    register_notrace(None, flat)
    assert ag.grad(lambda x: x * flat(x))(1.75) == 2.0


def test_a_rule_is_asked_once_for_a_gradient_whatever_it_closes_over():
    asked = []

    def loss(x):
        scale = np.sum(x)
        scaled = primitive(lambda y: asked.append(1) or y * (1.0 if len(asked) < 9 else scale))
        defvjp(scaled, lambda ans, y: lambda g: g * scale)
        return np.sum(scaled(x))

    def closing_over_numbers(x, factor=2.0):
        scaled = primitive(lambda y: asked.append(1) or factor * y)
        defvjp(scaled, lambda ans, y: lambda g: g * factor)
        return np.sum(scaled(x[:2]) * scaled(x[1:]))

    x = onp.array([1.0, 2.0, 3.0])
    # The derivative with respect to what the rule closes over is that of the function, which is 0.
    onp.testing.assert_allclose(ag.grad(loss)(x), [6.0, 6.0, 6.0])
    del asked[:]
    onp.testing.assert_allclose(ag.grad(closing_over_numbers)(x), [8.0, 16.0, 8.0])
    assert len(asked) == 2
    f = primitive(lambda x: onp.multiply(x, x))
    defvjp(f, lambda ans, x: lambda g: 2 * g * x)
    linear = fg.linearize(lambda x: np.sum(f(x)), x)[1]
    onp.testing.assert_allclose(linear(onp.ones(3)), 12.0)
    onp.testing.assert_allclose(ag.hessian(lambda x: np.sum(f(x)))(x), 2 * onp.eye(3))
    wrong = primitive(lambda x: onp.multiply(x, x))
    defvjp(wrong, lambda ans, x: lambda g: onp.ones(2))
    with pytest.raises(fg.errors.FuncgradError, match="backward rule of <lambda>"):
        ag.grad(lambda x: np.sum(wrong(x)))(x)


def test_primitives_have_several_results_and_containers_as_arguments():
    split = primitive(lambda d: (d["a"] * 2, onp.exp(d["b"])))
    defvjp(split, lambda ans, d: lambda g: {"a": 2 * g[0], "b": g[1] * ans[1]})

    def f(d):
        u, v = split(d)
        return np.sum(u) + 3 * v

    got = ag.grad(f)({"a": X, "b": 1.0})
    onp.testing.assert_allclose(got["a"], [2.0] * 3)
    onp.testing.assert_allclose(got["b"], 3 * onp.e)


def test_methods_may_be_primitives():
    class Scaled:
        factor = 3.0

        @primitive
        def apply(self, x):
            return self.factor * x

    defvjp(Scaled.apply, None, lambda ans, self, x: lambda g: self.factor * g)
    assert ag.grad(Scaled().apply)(1.0) == 3.0


def test_broadcasting_rules():
    plus = primitive(onp.add)
    defvjp(
        plus,
        lambda ans, x, y: unbroadcast_f(x, lambda g: g),
        lambda ans, x, y: unbroadcast_f(y, lambda g: g),
    )
    assert ag.grad(lambda b: np.sum(plus(A, b)))(1.0) == 9.0
    onp.testing.assert_allclose(ag.grad(lambda b: np.sum(plus(A, b)))(X[:, None]), [[3.0]] * 3)


def test_values_behind_traced_ones():
    seen = []

    def f(x):
        seen.extend([isbox(x), float(getval(x)), is_instance(x, float), type_of(x)])
        return notrace_primitive(float)(x) * x

    assert ag.grad(f)(3.0) == 3.0
    assert seen == [True, 3.0, True, onp.float64]
    assert (
        ag.grad(lambda x: np.sum(x) if is_instance(x, np.ndarray) else 0.0)(X).tolist() == [1] * 3
    )
    with pytest.raises(TypeError, match="getval needs a value"):
        fg.vmap(getval)(X)


def test_vector_spaces():
    space = vspace({"a": X, "b": 1.0, "c": 1j})
    assert (space.size, space.iscomplex) == (6, True)
    assert len(list(space.standard_basis())) == 6
    assert vspace(X).shape == (3,)
    assert vspace(X) == vspace(X + 1) != vspace(A)
    assert vspace(X).inner_prod(X, X) == onp.dot(X, X)
    for value in (X, 1j * X, {"a": X, "b": 1j}):
        space = vspace(value)
        total = space.zeros()
        for unit in space.standard_basis():
            total = space.add(total, unit)
        fg.tree.map(onp.testing.assert_array_equal, total, space.ones())


def test_rules_in_the_forms_of_older_programs():
    def product():
        return primitive(lambda x, y: onp.multiply(x, y))

    by_value, by_maker, constant = product(), product(), product()
    by_value.defvjp(lambda g, ans, vs, gvs, x, y: g * y)
    by_value.defvjp(lambda g, ans, vs, gvs, x, y: g * x, argnum=1)
    by_maker.defgrad(lambda ans, x, y: lambda g: g * x, argnum=1)
    by_maker.defgrad(lambda ans, x, y: lambda g: g * y)
    constant.defvjp_is_zero([0, 1])
    for f, expected in ((by_value, (3.0, 2.0)), (by_maker, (3.0, 2.0)), (constant, (0.0, 0.0))):
        assert ag.grad(f, (0, 1))(2.0, 3.0) == expected
    quick_grad_check(by_maker, 2.0, (3.0,))


def test_rules_are_found_by_their_function():
    f = primitive(onp.sin)
    core.primitive_vjps[f] = lambda argnums, ans, args, kwargs: lambda g: [g * onp.cos(*args)]
    assert ag.grad(f)(0.0) == 1.0
    assert f in core.primitive_vjps
    assert f in list(core.primitive_vjps)
    assert f not in core.primitive_jvps
    assert onp.sin not in core.primitive_vjps
    n = len(core.primitive_vjps)
    rule = core.primitive_vjps.pop(f)
    assert len(core.primitive_vjps) == n - 1
    with pytest.raises(NotImplementedError):
        ag.grad(f)(0.0)
    core.primitive_vjps[f] = rule
    assert ag.grad(f)(0.0) == 1.0


WRONG = {
    "VJP": (lambda f: defvjp(f, lambda ans, x: lambda g: g * 2.001), "rev"),
    "JVP": (lambda f: defjvp(f, lambda g, ans, x: g * 2.001), "fwd"),
}


@pytest.mark.parametrize("mode", WRONG)
def test_wrong_rules_are_found(mode):
    onp.random.seed(0)  # the checks draw directions, and a tiny one hides an error
    f = primitive(lambda x: x * 2.0)
    give_rule, name = WRONG[mode]
    give_rule(f)
    f.__name__ = "twice"
    with pytest.raises(AssertionError, match=rf"\({mode}\) check of twice failed at VSpace"):
        check_grads(f, modes=[name], order=1)(1.0)
    with pytest.raises(TypeError, match="modes are 'fwd' and 'rev', got 'both'"):
        check_grads(f, modes=["both"])(1.0)
    with pytest.raises(AssertionError, match="VSpace mismatch"):
        check_equivalent(X, X[:2])
    with pytest.raises(AssertionError, match="Value mismatch"):
        check_equivalent(X, X + 1)


def test_samples_are_scipys():
    stats = importlib.import_module(f"{ag.__name__}.scipy.stats")
    onp.random.seed(0)
    drawn = stats.norm.rvs(2.0, size=3)
    onp.random.seed(0)
    onp.testing.assert_array_equal(drawn, scipy.stats.norm.rvs(2.0, size=3))
    assert stats.dirichlet.rvs([1.0, 2.0], size=2).shape == (2, 2)
    assert ag.grad(lambda x: stats.norm(0.0, 2.0).logpdf(x))(1.0) == -0.25
    with pytest.raises(NotImplementedError, match="rvs is a primitive"):
        ag.grad(lambda x: np.sum(stats.norm.rvs(x, size=3)))(1.0)


@pytest.mark.parametrize("name", ["sgd", "rmsprop", "adam"])
def test_optimizers_take_the_same_steps(name):
    theirs = pytest.importorskip("autograd.misc.optimizers")
    start = {"a": onp.ones(2), "b": [3.0]}

    def gradient(x, i):
        return {"a": x["a"] + 0.1 * i, "b": [x["b"][0] ** 3]}

    seen = []
    got = getattr(optimizers, name)(
        gradient, start, lambda x, i, g: seen.append(i), num_iters=7, step_size=0.02
    )
    expected = getattr(theirs, name)(gradient, start, num_iters=7, step_size=0.02)
    assert seen == list(range(7))
    onp.testing.assert_allclose(got["a"], expected["a"], rtol=1e-13)
    onp.testing.assert_allclose(got["b"][0], expected["b"][0], rtol=1e-13)


def test_flatten_is_ordered_by_keys():
    theirs = pytest.importorskip("autograd.misc.flatten")
    value = {"z": X, "a": [1.0, (A, 2.0)]}
    vector, unflatten = misc.flatten(value)
    onp.testing.assert_array_equal(vector, theirs.flatten(value)[0])
    onp.testing.assert_array_equal(unflatten(vector)["a"][1][0], A)
    f, _, x = flatten_func(lambda v: {"y": v["z"] * 2}, value)
    onp.testing.assert_array_equal(f(x), 2 * X)


def test_fixed_points_have_implicit_derivatives():
    def newton(a):
        return lambda x: 0.5 * (x + a / x)

    def root(a):
        return fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-13)

    assert abs(root(2.0) - 2**0.5) < 1e-12
    assert abs(ag.grad(root)(2.0) - 0.5 * 2**-0.5) < 1e-9
    assert abs(ag.grad(ag.grad(root))(2.0) + 0.25 * 2**-1.5) < 1e-9


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize("shapes", [((7, 2), (3, 2)), ((3, 4), (5, 4)), ((4, 2), (4, 2))])
def test_convolution_along_axes(mode, shapes):
    rng = onp.random.default_rng(0)
    a, b = (rng.normal(size=s) for s in shapes)
    rows = [[onp.convolve(u, v, "full") for v in b.T] for u in a.T]
    full, n, m = onp.array(rows), len(a), len(b)
    start, length = {
        "full": (0, n + m - 1),
        "valid": (min(n, m) - 1, abs(n - m) + 1),
        "same": ((m - 1) // 2, n),
    }[mode]
    expected = full[..., start : start + length]
    onp.testing.assert_allclose(convolve(a, b, ([0], [0]), mode=mode), expected, atol=1e-12)
    traced = onp.einsum("iik->k", expected)
    got = convolve(a, b, ([0], [0]), dot_axes=([1], [1]), mode=mode)
    onp.testing.assert_allclose(got, traced, atol=1e-12)
    combo_check(lambda a, b: convolve(a, b, ([0], [0]), mode=mode), (0, 1), order=1)([a], [b])


SCRIPT = """
import autograd.numpy as np
from autograd import grad, elementwise_grad
from autograd.scipy.special import logsumexp
import autograd.scipy.stats.norm as norm
from autograd.extend import primitive, defvjp
import sys
print(grad(lambda x: logsumexp(x) ** 2)(np.zeros(2)), grad.__module__, sys.argv[1:], __name__)
"""


def test_programs_run_unchanged(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "funcgrad.interop.autograd", str(script), "--flag"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    module = "funcgrad.interop.autograd.differential_operators"
    assert done.stdout == f"[0.69314718 0.69314718] {module} ['--flag'] __main__\n"
    code = "import autograd\nimport funcgrad.interop.autograd as ours\nours.install()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "autograd was imported by this process before" in done.stderr or (
        "No module named 'autograd'" in done.stderr
    )


AND_BACK = """
import importlib.util, sys
import numpy
import funcgrad as fg
from funcgrad.core.trace import Tracer
before = dict(vars(Tracer))
from funcgrad.interop import autograd as stand_in
assert dict(vars(Tracer)) == before
stand_in.install()
stand_in.install()
import autograd, autograd.numpy as np
from autograd.scipy.stats import norm
from autograd.builtins import DictBox
from autograd import numpy as again
assert autograd.grad(np.sin)(0.0) == 1.0 and again is np
for line in (
    "import autograd.adopting", "import autograd.boxes", "import autograd.anything",
    "import autograd.numpy.anything", "from autograd.core import anything",
    "from autograd import anything",
):
    try:
        exec(line)
    except ImportError:
        continue
    raise AssertionError(line)
assert importlib.util.find_spec("autograd.vector_spaces") is None
stand_in.uninstall()
stand_in.uninstall()
assert not [path for path in sys.modules if path.split(".")[0] == "autograd"]
assert dict(vars(Tracer)) == before
try:
    import autograd
except ImportError:
    pass
else:
    assert "funcgrad" not in autograd.__file__
    sys.exit()
stand_in.install()
import autograd
assert autograd.grad(numpy.sin)(0.0) == 1.0
"""


def test_the_stand_in_is_taken_back():
    subprocess.run([sys.executable, "-c", AND_BACK], check=True)


def test_arrays_of_integers_are_floats():
    """Autograd differentiates with respect to them; numbers of Python are refused as there."""
    x = np.array([1, 2, 3])
    for operator in (ag.elementwise_grad, ag.deriv, lambda f: lambda x: np.diag(ag.jacobian(f)(x))):
        np.testing.assert_array_equal(operator(lambda x: x**2)(x), [2.0, 4.0, 6.0])
    np.testing.assert_array_equal(ag.grad(lambda x: np.sum(x**2))(x), [2.0, 4.0, 6.0])
    with pytest.raises(fg.errors.DtypeError, match="integers and bools have no derivative"):
        ag.grad(lambda x: x**2)(3)
