"""Every ufunc in the tables of special functions: values, derivatives, transformations."""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
from typing import Any

import numpy as np
import pytest
import scipy.special
from scipy.special import _ufuncs as scipys

import funcgrad as fg
from funcgrad import primitives
from funcgrad.core.primitive import Primitive
from funcgrad.errors import ConcretizationTypeError, DtypeError, MissingRuleError
from funcgrad.numpy.elementwise import of_scipy
from funcgrad.primitives.special import SCIPY_UFUNCS
from funcgrad.primitives.special_rows import Counted, Improved
from funcgrad.primitives.special_tables import all_ufuncs
from funcgrad.scipy import special
from tests.scipy.special_samples import NAMES, SAMPLES, sample

# Second derivatives that are declared not to exist, by the arguments.
FIRST_ORDER = {
    **dict.fromkeys(["betaincc", "betaincinv", "betainccinv", "fdtr", "fdtrc", "fdtri"], (0, 1)),
    **dict.fromkeys(["stdtr", "stdtrit"], (0,)),
    **dict.fromkeys(["stdtridf", "hyp1f1"], (0, 1)),
    **dict.fromkeys(["btdtria", "btdtrib", "fdtridfd"], (0, 1, 2)),
    **dict.fromkeys(["bdtrik", "bdtrin", "nbdtrik", "nbdtrin"], (0, 1, 2)),
    **dict.fromkeys(["chdtr", "chdtrc", "chdtri", "ncx2_pdf"], (0,)),
    **dict.fromkeys(["chdtriv", "pdtrik"], (0, 1)),
    **dict.fromkeys(["gdtr", "gdtrc", "gdtria", "gdtrix"], (1,)),
    "gdtrib": (0, 1, 2),
    **dict.fromkeys(["kolmogorov", "kolmogi"], (0,)),
    **dict.fromkeys(["smirnov", "smirnovi"], (1,)),
    "ncfdtr": (3,),
    "ncfdtri": (2, 3),
    "ncfdtrinc": (3,),
}
SCIPYS_OWN = {"hyperu": 1e-8, **dict.fromkeys(["ker", "kei", "kerp", "keip"], 1e-12)}
"""How far SciPy's values are from those of mpmath, to which ours are compared elsewhere."""
LOOSE = {"ncfdtrinc": 1e-4}
"""SciPy's search for the value ends when the probability is right to 1e-6."""
COMPILED = ("betaincinv", "jv", "airy", "eval_legendre", "_spherical_jn", "obl_rad1", "ellipkinc")
"""What every run compiles: each kind of row."""


def outputs(name: str, args: Any) -> list[Any]:
    """The results of a function as a list."""
    out = of_scipy(all_ufuncs()[name])(*args)
    return out if isinstance(out, list) else [out]


def dtypes(name: str) -> list[str]:
    kinds = all_ufuncs()[name].kinds
    return ["float64", "float32"] * ("f" in kinds) + ["complex128", "complex64"] * ("c" in kinds)


def moving(name: str) -> list[int]:
    """Arguments in which there are derivatives."""
    primitive, args = all_ufuncs()[name], sample(name, dtypes(name)[0])
    found = []
    for i, x in enumerate(args):
        if x.dtype.kind != "i":
            f, t = along(name, args, i), np.ones_like(x)
            if is_declared(f, x, t, f"argument {primitive.arguments[i]}"):
                continue
            found.append(i)
    return found


def is_declared(function: Any, x: Any, t: Any, argument: str) -> bool:
    """Whether it is declared that there is no derivative; the message names the argument."""
    try:
        fg.jvp(function, (x,), (t,))
    except MissingRuleError as error:
        return f"has no derivative with respect to its {argument}" in str(error)
    return False


def along(name: str, args: list[Any], i: int) -> Any:
    return lambda x: outputs(name, [x if k == i else v for k, v in enumerate(args)])


def slope(function: Any, x: Any, t: Any) -> Any:
    """The derivative, and the same by differences of fourth order."""
    found = fg.jvp(function, (x,), (t,))[1]
    h = 2e-3 * max(1.0, float(np.min(np.abs(x))))
    steps = [[np.asarray(v) for v in function(x + k * h * t)] for k in (1, -1, 2, -2)]
    numeric = [(8 * (a - b) - (c - d)) / (12 * h) for a, b, c, d in zip(*steps, strict=True)]
    return found, numeric


def test_every_row_has_a_sample() -> None:
    assert set(SAMPLES) == set(NAMES)
    # Every primitive of the files is in a table, belongs to a derivative, or is tried elsewhere.
    loose = {"ncx2_pdf", "nct_pdf", "ncf_pdf", "kolmogorov_slope", "smirnov_slope"}
    loose |= {"ellipkinc_slope", "ellipeinc_slope", "sph_legendre_p"}
    found = set()
    for info in pkgutil.iter_modules(primitives.__path__):
        if info.name.startswith("special_"):
            module = importlib.import_module(f"{primitives.__name__}.{info.name}")
            found |= {v.name for v in vars(module).values() if isinstance(v, Primitive)}
    assert found - set(NAMES) - loose <= {p.name for p in SCIPY_UFUNCS.values()} | known()


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_is_given(name: str) -> None:
    kind = type(all_ufuncs()[name])
    for rule in ("impl", "abstract_eval", "jvp", "batch", "lower"):
        assert getattr(kind, rule) is not getattr(Primitive, rule), rule


def known() -> set[str]:
    """Primitives that have rows in the table of cases."""
    return set(importlib.import_module("tests.test_laws").PRIMITIVES)


@pytest.mark.parametrize("name", NAMES)
def test_values_are_scipys(name: str) -> None:
    ufunc = getattr(scipys, name)
    primitive = all_ufuncs()[name]
    for dtype in dtypes(name):
        args = sample(name, dtype)
        is_improved = isinstance(primitive, Improved) and dtype.startswith("float")
        is_double = is_improved or getattr(primitive, "is_double", False)
        wide = [np.asarray(x, np.float64) for x in args] if is_double else list(args)
        if isinstance(primitive, Counted):
            wide[1] = wide[1].astype(np.int64)
        expected = ufunc(*wide)
        expected = expected if isinstance(expected, tuple) else [expected]
        found = outputs(name, args)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == dtype
            assert np.isfinite(theirs).all()
            if is_improved:
                bound = max(SCIPYS_OWN.get(name, 1e-13), float(np.finfo(dtype).eps))
                np.testing.assert_allclose(ours, theirs, bound)
            else:
                np.testing.assert_array_equal(ours, theirs.astype(dtype))
        mapped = fg.vmap(lambda *xs: outputs(name, xs))(*args)
        for ours, lanes in zip(found, mapped, strict=True):
            np.testing.assert_array_equal(lanes, ours)
        # 0-d, empty, broadcast.
        first = outputs(name, [args[0][:1, None], *args[1:]])
        assert all(out.shape == (1, 3) if len(args) > 1 else (1, 1) for out in first)
        assert all(out.shape == (0,) for out in outputs(name, [x[:0] for x in args]))
        assert all(np.ndim(out) == 0 for out in outputs(name, [x[0] for x in args]))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_against_differences(name: str) -> None:
    kind = np.dtype(dtypes(name)[0]).kind
    for dtype in ["float64"] * (kind == "f") + ["complex128"] * ("c" in all_ufuncs()[name].kinds):
        args = sample(name, dtype)
        for i in moving(name):
            x = args[i]
            t = np.ones_like(x)
            if x.dtype.kind == "c":
                if name == "airye":
                    continue
                t = t * np.exp(0.7j)
            f = along(name, args, i)
            if is_declared(f, x, t, f"argument {all_ufuncs()[name].arguments[i]}"):
                continue  # of complex numbers alone
            functions = [f]
            if i not in FIRST_ORDER.get(name, ()):
                functions.append(lambda v, f=f, t=t: fg.jvp(f, (v,), (t,))[1])
            for order, function in enumerate(functions):
                for found, numeric in zip(*slope(function, x, t), strict=True):
                    scale = 1 + np.max(np.abs(numeric))
                    message = f"argument {i}, order {order + 1}"
                    rtol = LOOSE.get(name, 3e-6)
                    np.testing.assert_allclose(found, numeric, rtol, 3e-7 * scale, err_msg=message)
            outs = f(x)
            if x.dtype.kind == "f" and outs[0].dtype.kind == "f":
                weights = [np.cos(np.arange(3.0) + k) for k in range(len(outs))]

                def total(v: Any, f: Any = f, weights: Any = weights) -> Any:
                    return sum((w * y).sum() for w, y in zip(weights, f(v), strict=True))

                forward = fg.jvp(total, (x,), (t,))[1]
                np.testing.assert_allclose(fg.grad(total)(x) @ t, forward, 1e-12, 1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_mixed_derivatives_do_not_depend_on_the_order(name: str) -> None:
    args = sample(name, dtypes(name)[0])
    places = [i for i in moving(name) if i not in FIRST_ORDER.get(name, ())]
    for i, j in itertools.combinations(places, 2):
        first, second = (mixed(name, args, *pair) for pair in ((i, j), (j, i)))
        for a, b in zip(first, second, strict=True):
            np.testing.assert_allclose(a, b, 1e-9, 1e-11, err_msg=f"arguments {i} and {j}")


def mixed(name: str, args: list[Any], i: int, j: int) -> Any:
    """The derivative in the argument ``j`` of that in the argument ``i``."""
    x, y = args[i], args[j]

    def inner(v: Any) -> Any:
        full = [v if k == j else arg for k, arg in enumerate(args)]
        return fg.jvp(along(name, full, i), (x,), (np.ones_like(x),))[1]

    return fg.jvp(inner, (y,), (np.ones_like(y),))[1]


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_missing_second_derivatives_say_so(name: str) -> None:
    if name == "ncx2_pdf":
        return
    args = sample(name)
    for i in FIRST_ORDER[name]:
        f = along(name, args, i)
        with pytest.raises(
            MissingRuleError, match="has no derivative with respect to its argument"
        ):
            fg.hessian(lambda v, f=f: f(v)[0].sum())(args[i])


def check_compiled(name: str, precisions: list[str]) -> None:
    for dtype in precisions:
        args = sample(name, dtype)
        rtol = 1e-5 if np.dtype(dtype).char in "fF" else 1e-13
        expected = outputs(name, args)
        compiled = fg.jit(lambda *xs: outputs(name, xs))
        for ours, theirs in zip(compiled(*args), expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name: str) -> None:
    check_compiled(name, dtypes(name))
    args = sample(name, "float64")
    i = moving(name)[-1]
    f = along(name, args, i)
    gradient = fg.grad(lambda v: f(v)[0].sum())
    np.testing.assert_allclose(fg.jit(gradient)(args[i]), gradient(args[i]), 1e-12)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_all_compiled(name: str) -> None:
    check_compiled(name, dtypes(name))
    args = sample(name, dtypes(name)[0])
    for i in moving(name):
        f = along(name, args, i)
        t = np.ones_like(args[i])
        expected = fg.jvp(f, (args[i],), (t,))[1]
        found = fg.jit(lambda v, f=f, t=t: fg.jvp(f, (v,), (t,))[1])(args[i])
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-10, 1e-14)


@pytest.mark.parametrize("name", [n for n in NAMES if hasattr(scipy.special, n)])
def test_scipys_own_ufuncs_take_traced_values(name: str) -> None:
    args = sample(name, dtypes(name)[0])
    found = fg.eval_shape(getattr(scipy.special, name), *args)
    found = found if isinstance(found, list | tuple) else [found]
    for ours, theirs in zip(found, outputs(name, args), strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith("_")])
def test_arguments_have_names(name: str) -> None:
    function = getattr(special, name)
    args = sample(name, dtypes(name)[0])
    names = list(inspect.signature(function).parameters)
    by_name = function(**dict(zip(names, args, strict=True)))
    for ours, theirs in zip(
        by_name if isinstance(by_name, tuple) else [by_name], outputs(name, args), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert function.__doc__ is not None
    assert name in function.__doc__


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(TypeError, match=r"stdtr\(df, t\) got 1 arguments\."):
        special.stdtr(1.0)
    with pytest.raises(TypeError, match=r"stdtr\(df, t\) got 1 arguments, x=\."):
        special.stdtr(1.0, x=2.0)
    with pytest.raises(TypeError, match=r"stdtr\(df, t\) got 2 arguments, df=\."):
        special.stdtr(1.0, 2.0, df=1.0)
    with pytest.raises(DtypeError, match="the argument n counts and must be an integer"):
        special.eval_hermite(1.5, 0.2)
    with pytest.raises(DtypeError, match=r"the argument v of jv is not defined for complex"):
        special.jv(1j, 0.2)


def test_arguments_promote() -> None:
    assert special.jv(2, np.float32(1)).dtype == np.float32
    assert special.jv(np.int32(2), 1.0).dtype == np.float64
    assert special.wofz(np.float32(1)).dtype == np.complex64
    assert special.eval_legendre(3, np.float32(0.5)).dtype == np.float32
    assert special.eval_legendre(np.int8(3), np.complex64(0.5)).dtype == np.complex64
    # With an integer degree SciPy evaluates a recurrence, which is accurate for high degrees.
    n, x = 3000, 0.3
    assert special.eval_legendre(n, x) == scipy.special.eval_legendre(n, x)
    assert special.hyp1f1(1, 2, 0.5j).dtype == np.complex128


def test_scipys_calls_inside_derivatives() -> None:
    np.testing.assert_allclose(
        fg.grad(lambda x: scipy.special.jv(2, x))(0.7), scipy.special.jvp(2, 0.7), 1e-14
    )
    slope = fg.grad(lambda x: scipy.special.airy(x)[0])(0.7)
    np.testing.assert_allclose(slope, scipy.special.airy(0.7)[1], 1e-14)


# Where formulas meet 0 / 0, or an order below 0: the first derivative and the second.
AT_SINGULAR_POINTS = [
    (lambda x: special.jv(0, x), 0.0, 0.0, -0.5),
    (lambda x: special.jv(1, x), 0.0, 0.5, 0.0),
    (lambda x: special.iv(1, x), 0.0, 0.5, 0.0),
    (lambda x: special.spherical_jn(0, x), 0.0, 0.0, -1 / 3),
    (lambda x: special.spherical_in(1, x), 0.0, 1 / 3, 0.0),
    (lambda x: special.struve(0, x), 0.0, 2 / np.pi, 0.0),
    (lambda x: special.modstruve(0, x), 0.0, 2 / np.pi, 0.0),
    (special.bei, 0.0, 0.0, 0.5),
    (special.ellipk, 0.0, np.pi / 8, 9 * np.pi / 64),
    (special.ellipe, 0.0, -np.pi / 8, -3 * np.pi / 64),
    (lambda x: special.agm(x, 1.0), 1.0, 0.5, -0.125),
    (lambda x: special.elliprf(x, 1.0, 1.0), 1.0, -1 / 6, 3 / 20),
    (lambda x: special.elliprd(x, 1.0, 1.0), 1.0, -3 / 10, 9 / 28),
    (lambda x: special.elliprj(x, 1.0, 1.0, 1.0), 1.0, -3 / 10, 9 / 28),
    (lambda x: special.boxcox(2.0, x), 0.0, np.log(2) ** 2 / 2, np.log(2) ** 3 / 3),
    (lambda x: special.powm1(2.0, x), 0.0, np.log(2), np.log(2) ** 2),
    (lambda x: special.sici(x)[0], 0.0, 1.0, 0.0),
    (lambda x: special.shichi(x)[0], 0.0, 1.0, 0.0),
    (lambda x: special.eval_legendre(3, x), -1.0, 6.0, -15.0),
    (lambda x: special.eval_hermite(0, x), 1.0, 0.0, 0.0),
    (lambda x: special.huber(1.0, x), 0.0, 0.0, 1.0),
    (lambda x: special.pseudo_huber(1.0, x), 0.0, 0.0, 1.0),
    (lambda x: special.stdtr(np.inf, x), 0.0, 1 / np.sqrt(2 * np.pi), 0.0),
    (lambda x: special.diric(x, 3), 0.0, 0.0, -2 / 3),
    (lambda x: special.lambertw(x).real, 0.0, 1.0, -2.0),
    (lambda x: special.expn(0, x), 1.0, -2 / np.e, 5 / np.e),
    (lambda x: special.tklmbda(x, 0.5), 5.0, 0.0, 0.0),
    (special.gammasgn, 1.5, 0.0, 0.0),
]


@pytest.mark.parametrize(("function", "x", "first", "second"), AT_SINGULAR_POINTS)
def test_derivatives_at_singular_points(function: Any, x: float, first: Any, second: Any) -> None:
    np.testing.assert_allclose(fg.grad(function)(x), first, 1e-13, 1e-15)
    np.testing.assert_allclose(fg.grad(fg.grad(function))(x), second, 1e-9, 1e-12)


def test_constants_refuse_traced_values() -> None:
    nodes, _ = special.roots_legendre(4)
    np.testing.assert_array_equal(nodes, scipy.special.roots_legendre(4)[0])
    np.testing.assert_array_equal(special.jn_zeros(0, 3), scipy.special.jn_zeros(0, 3))
    with special.errstate(all="ignore"):
        assert special.legendre(2)(1.0) == 1.0
    with pytest.raises(
        ConcretizationTypeError, match=r"scipy\.special\.lqn is SciPy's own function"
    ):
        fg.grad(lambda x: special.lqn(2, x)[0].sum())(0.3)
