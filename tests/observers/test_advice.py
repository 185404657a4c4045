"""Advice that follows the user's line: what asked for a traced value, and what to write instead."""

from __future__ import annotations

import cmath
import importlib.util
import math
import pickle
import sys

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats
from numpy import random as npr
from scipy.special import logsumexp
from scipy.stats import norm

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import errors

X = np.arange(6.0).reshape(3, 2)
V = np.arange(3.0)
TABLE = [1.0, 2.0, 3.0]
RNG = np.random.default_rng(0)


class Model:
    weights = X

    def __init__(self):
        self.data = X


MODEL = Model()


def text_of(function, *args):
    with pytest.raises(errors.FuncgradError) as caught:
        function(*args)
    return str(caught.value)


def advice(function, *args):
    """The lines below the place, which must be in this file."""
    text = text_of(function, *args)
    places = [i for i, row in enumerate(text.splitlines()) if row.startswith("  ")]
    assert "test_advice.py:" in text.splitlines()[places[0]]
    return "\n".join(text.splitlines()[places[-1] + 1 :])


def store(x):
    y = np.zeros(3)
    y[0] = x
    return y


def spread(x):
    return X.take(
        x,
        axis=0,
    )


ARRAYS = {
    "asarray": (
        lambda x: np.asarray(x, float),
        "NumPy does not redirect np.asarray: write funcgrad",
    ),
    "float32": (lambda x: np.float32(x), "Instead of np.float32(x) write x.astype(np.float32)."),
    "index": (lambda x: V[x], "If it is an index into an ndarray"),
    "store": (store, "Instead of `y[i] = x` write y = funcgrad.numpy.at(y)[i].set(x)"),
    "take": (lambda x: X.take(x), "instead of X.take(x) write np.take(X, x), or pass X as an"),
    "of an object": (lambda x: MODEL.data.take(x), "write np.take(MODEL.data, x)"),
    "over lines": (spread, "write np.take(X, x)"),
    "np.random": (lambda x: np.random.normal(x), "funcgrad.random.normal(key, ...)"),
    "renamed": (lambda x: npr.uniform(x), "funcgrad.random.uniform(key, ...)"),
    "generator": (lambda x: RNG.normal(x), "funcgrad.random.normal(key, ...)"),
    "new generator": (lambda x: np.random.default_rng(0).normal(x), "funcgrad.random.normal(key"),
    "poisson": (lambda x: np.random.poisson(x), "funcgrad.random.key(seed)"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_numpy_needs_an_array(name):
    function, words = ARRAYS[name]
    found = advice(fg.jit(function), 1)
    assert words in found
    assert found.count("nstead of") <= 1, "one piece of advice, not all"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: math.sin(x), "Write np.sin(x) instead of math.sin(x)"),
        (lambda x: math.erf(x), "Write funcgrad.scipy.special.erf(x) instead of math.erf(x)"),
        (lambda x: float(x), "Keep the value an array"),
        (
            lambda x: scipy.integrate.quad(lambda t: t * x, 0, 1)[0],
            "Write funcgrad.scipy.integrate.quad instead of scipy.integrate.quad.",
        ),
        # NumPy's function of the same name computes something else, or refuses complex results.
        (lambda x: math.remainder(x, 2.0), "Write x - y * np.rint(x / y) instead of math.remai"),
        (lambda x: cmath.sqrt(x), "Write np.sqrt(x + 0j) instead of cmath.sqrt(x)"),
        (lambda x: math.ulp(x), "Keep the value an array"),
    ],
)
@pytest.mark.parametrize("transform", [fg.jit, fg.grad])
def test_a_number_is_needed(function, words, transform):
    assert words in advice(transform(function), 1.0)


REFUSED = "takes known values only. Call it outside of the transformed function, or, if its"
GENERAL = "Of SciPy's functions only the ufuncs are redirected."
SPLINE = scipy.interpolate.BSpline(np.arange(9.0), np.arange(5.0), 3)
FROZEN = norm(0.0, 1.0)

SCIPY = [
    (lambda x: logsumexp(x), "Write funcgrad.scipy.special.logsumexp instead of logsumexp."),
    (lambda x: scipy.linalg.solve(x, x), "Write funcgrad.scipy.linalg.solve instead of scipy"),
    (lambda x: scipy.linalg.eigvalsh(x), "Write funcgrad.scipy.linalg.eigvalsh instead"),
    (
        lambda x: scipy.optimize.minimize(lambda y: (y - x).sum(), 0.0),
        "Write funcgrad.scipy.optimize.minimize instead of scipy.optimize.minimize.",
    ),
    # Methods of the objects that SciPy's modules show.
    (
        lambda x: scipy.stats.norm.pdf(x),
        "Write funcgrad.scipy.stats.norm instead of scipy.stats.norm.",
    ),
    (lambda x: norm.logsf(x), "Write funcgrad.scipy.stats.norm instead of norm."),
    (lambda x: norm(0.0, 2.0).pdf(x), "Write funcgrad.scipy.stats.norm instead of norm."),
    (lambda x: FROZEN.pdf(x), GENERAL),
    (lambda x: SPLINE(x), GENERAL),
    # SciPy's own functions have their names here, too, and refuse traced values.
    (lambda x: scipy.stats.kstest(x[0], "norm"), f"scipy.stats.kstest {REFUSED}"),
    (lambda x: scipy.stats.alpha.pdf(x, 1.0), f"scipy.stats.alpha {REFUSED}"),
    (lambda x: scipy.signal.firls(3, x, x), f"scipy.signal.firls {REFUSED}"),
]


@pytest.mark.parametrize(("function", "words"), SCIPY)
def test_functions_of_scipy_are_named_with_their_counterparts(function, words):
    text = text_of(fg.jit(function), np.eye(2))
    assert text.startswith("SciPy asked for the values")
    assert advice(fg.jit(function), np.eye(2)).startswith(words)
    assert "site-packages" not in text


def looped(x):
    while x > 1:
        x = x / 2
    return x


def looped_over_lines(x):
    while (
        x.sum()
        > 1
    ):  # fmt: skip
        x = x / 2
    return x


def inside_a_known_loop(x):
    while True:
        if x > 1:
            return x


def negated_in_a_known_loop(x):
    while True:
        return not x


def asserted(x):
    assert x > 0
    return x


CONDITIONS = {
    "while": (looped, "lax.while_loop(condition, body, state)"),
    "while over lines": (looped_over_lines, "lax.while_loop"),
    "if in while": (inside_a_known_loop, "np.where(condition, a, b), or lax.cond"),
    "not in while": (negated_in_a_known_loop, "np.where(condition, a, b), or lax.cond"),
    "if expression": (lambda x: 1.0 if x > 0 else x, "Instead of `a if condition else b`"),
    "and": (lambda x: x > 0 and x < 1, "write a & b (np.logical_and)"),
    "not or": (lambda x: not (x > 0 or x < 1), "write a | b"),
    "chain": (lambda x: 0 < x < 1, "Instead of `a < b < c` write (a < b) & (b < c)."),
    "assert": (asserted, "funcgrad.debug.callback"),
    "max": (lambda x: max(x, 0.0), "Instead of max(...) write np.maximum(a, b)"),
    "comprehension": (lambda x: [v for v in (x, 2 * x) if v > 0], "np.where(condition, value, 0)"),
    "bool": (lambda x: bool(x), "np.where(condition, a, b), or lax.cond"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_is_needed(name):
    function, words = CONDITIONS[name]
    assert words in advice(fg.jit(function), 3.0)
    assert ("while_loop" in words) == ("while_loop" in advice(fg.jit(function), 3.0))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda n: TABLE[n], "funcgrad.numpy.stack(items)[i], or choose between functions with"),
        (lambda n: V[:n], "lax.dynamic_slice_in_dim(x, start, length)"),
        (lambda n: fnp.zeros(n), "static argument"),
        (lambda n: [0 for _ in range(n)], "static argument"),
    ],
)
def test_an_integer_is_needed(function, words):
    found = advice(fg.jit(function), 2)
    assert words in found


def test_without_source_the_advice_is_general():
    namespace = {"np": np}
    exec(compile("def f(x): return np.asarray(x, float)", "<typed>", "exec"), namespace)
    assert "Other functions that NumPy does not redirect" in text_of(fg.jit(namespace["f"]), 1.0)
    exec(compile("def g(x): return 1 if x else 2", "<typed>", "exec"), namespace)
    assert "np.where(condition, a, b)" in text_of(fg.jit(namespace["g"]), 1.0)


def test_objects_met_a_function_that_takes_none():
    def f(x):
        return np.linalg.inv(np.array([[x, 1.0], [1.0, 2 * x]]).astype(object))

    text = text_of(fg.jit(f), 1.0)
    assert text.startswith(
        "an array of objects that stand for traced values inside jit(f) met a function that does "
        "not take objects ("
    )
    assert advice(fg.jit(f), 1.0).endswith("Write np.stack([x, y]), which is traced as a whole.")


@pytest.mark.parametrize("transform", [fg.grad, fg.jit], ids=["grad", "jit"])
@pytest.mark.parametrize(
    "use",
    [np.asarray, float, bool, int, hash, np.sin, lambda x: x + 1, lambda x: V * x, V.__getitem__],
)
def test_whatever_asks_an_escaped_value_hears_that_it_has_escaped(transform, use):
    kept = []
    transform(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(errors.UnexpectedTracerError, match="has escaped"):
        use(kept[0])


# Places.


@pytest.fixture
def installed(tmp_path):
    """A package as pip would install it."""
    folder = tmp_path / "lib" / "site-packages" / "frames"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        "import numpy as np\n"
        "def column(x):\n    return np.asarray(x, float)\n"
        "def through(f, x):\n    return f(x)\n"
        "def product(x):\n    return x @ np.ones((7, 7))\n"
        "def outer(f, x):\n    return f(x)(x)\n"
    )
    spec = importlib.util.spec_from_file_location("frames", folder / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["frames"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["frames"]


def test_installed_packages_are_not_the_users(installed):
    text = text_of(fg.jit(lambda x: installed.column(x)), V)  # the user's
    assert text.startswith("frames asked for the values of an array")
    assert "# the user's" in text
    assert "installed.column cannot be traced. Compute it with funcgrad.numpy" in text
    text = text_of(fg.jit(lambda x: installed.product(x)), V)  # the user's too
    assert "# the user's too" in text
    assert text.count("\n  at ") == 1


def test_equations_carry_the_users_line(installed):
    program = fg.make_jaxpr(lambda x: installed.through(np.sin, x))(V)  # sine
    assert "# sine" in program.eqns[0].source.text()
    program = fg.make_jaxpr(lambda x: installed.through(lambda x: np.sin(x), x))(V)
    assert "test_advice" in program.eqns[0].source.file


def test_where_everything_is_installed_the_innermost_line_is_named(installed):
    text = text_of(installed.outer, fg.jit(installed.column), V)
    assert "test_advice.py" in text  # this line called it
    location = fg.make_jaxpr(installed.product.__globals__["np"].sin)(V).eqns[0].source
    assert location is not None


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("function", "matrix"),
    [
        (np.linalg.inv, np.zeros((2, 2))),
        (lambda a: np.linalg.solve(a, a), np.zeros((2, 2))),  # here
        (np.linalg.cholesky, -np.eye(2)),
    ],
)
@pytest.mark.parametrize(
    "transform",
    [
        fg.jit,
        lambda f: fg.grad(lambda a: f(a).sum()),
        lambda f: fg.jit(fg.grad(lambda a: f(a).sum())),
        lambda f: fg.grad(fg.jit(lambda a: f(a).sum())),
        lambda f: lambda a: fg.jit(fg.vmap(f))(np.stack([a, a])),
        lambda f: fg.jit(lambda a: fg.lax.scan(lambda c, _: (f(c), None), a, length=3)[0]),
        lambda f: fg.jit(lambda a: fg.lax.cond(a[0, 0] < 9, f, lambda a: a, a)),
    ],
    ids=["jit", "grad", "jit grad", "grad jit", "jit vmap", "scan", "cond"],
)
def test_errors_of_lapack_have_a_place(transform, function, matrix):
    compiled = transform(lambda a: function(a) + 1)  # here
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError) as caught:
            compiled(matrix)
        text = str(caught.value)
        assert text.count("\n  at            test_advice.py:") == 1
        assert "# here" in text


REDUCTIONS = [np.sum, np.max, np.argmax, np.cumsum, np.sort, np.mean, np.var, np.median, np.flip]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("transform", [fg.jit, fg.vmap, lambda f: lambda x: fg.jvp(f, (x,), (x,))])
def test_wrong_axes_have_a_place(reduction, transform):
    with pytest.raises(np.exceptions.AxisError) as caught:
        transform(lambda x: reduction(x, axis=5))(X)  # wrong axis
    assert "axis 5 is out of bounds" in str(caught.value)
    assert str(caught.value).count("\n  at            test_advice.py:") == 1
    assert "# wrong axis" in str(caught.value)
    assert isinstance(caught.value, IndexError)
    assert isinstance(caught.value, ValueError)


def test_errors_about_axes_keep_their_facts():
    with pytest.raises(errors.AxisError) as caught:
        fnp.sum(X, axis=-4)
    assert (caught.value.axis, caught.value.ndim) == (-4, 2)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_errors_that_the_user_raises_keep_their_text():
    def f(x):
        raise ValueError("of mine")

    for transform in (fg.jit, fg.grad):
        with pytest.raises(ValueError, match=r"^of mine$"):
            transform(f)(1.0)

    def host(x):
        raise KeyError("mine too")

    call = fg.jit(lambda x: fg.pure_callback(host, fg.ShapeDtypeStruct((), np.float64), x))
    with pytest.raises(KeyError, match=r"^'mine too'$"):
        call(1.0)


RANDOM = {
    "bernoulli": lambda key: fg.random.bernoulli(key),
    "categorical": lambda key: fg.random.categorical(key, V),
    "choice": lambda key: fg.random.choice(key, 5),
    "exponential": lambda key: fg.random.exponential(key),
    "gumbel": lambda key: fg.random.gumbel(key),
    "normal": lambda key: fg.random.normal(key, (3,)),
    "permutation": lambda key: fg.random.permutation(key, 5),
    "randint": lambda key: fg.random.randint(key, (3,), 0, 5),
    "split": lambda key: fg.random.split(key),
    "truncated_normal": lambda key: fg.random.truncated_normal(key, 0.0, 1.0),
    "uniform": lambda key: fg.random.uniform(key),
}


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("transform", [lambda f: f, fg.jit], ids=["eager", "jit"])
def test_messages_about_keys_name_the_function_that_was_called(name, transform):
    assert f"random.{name} needs one key" in text_of(transform(RANDOM[name]), 0)


def test_debug_print_of_an_f_string_where_values_are_known(capsys):
    fg.grad(lambda x: (fg.debug.print(f"x is {x:.1f}, {x}"), x)[1])(1.5)
    assert capsys.readouterr().out.startswith("x is 1.5, Traced<~f64[]>(value=1.5) in grad(")


@pytest.mark.parametrize("transform", [fg.jit, lambda f: fg.jit(fg.grad(f))])
def test_debug_print_of_an_f_string(transform):
    text = text_of(transform(lambda x: (fg.debug.print(f"x is {x}"), x)[1]), 1.0)
    assert "holds a traced value that an f-string, or str(), has formatted" in text
    assert 'debug.print("x = {}", x)' in text
