"""Primitives that users define: every rule, every transformation, and what a missing rule says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import extend
from funcgrad.errors import ArgumentError, MissingRuleError


@extend.primitive
class Neighbours(extend.Primitive):
    """The mean of both neighbours on a ring."""

    axis: int = 0

    def impl(self, x):
        return (np.roll(x, 1, self.axis) + np.roll(x, -1, self.axis)) / 2

    def abstract_eval(self, x):
        return x

    jvp = extend.linear_jvp

    def transpose(self, ct, x):
        return [self(ct)]

    def batch(self, args, dims):
        return Neighbours(self.axis + 1)(*args), 0

    lower = extend.by_function(impl)


@extend.primitive
class Polar(extend.Composite):
    """Radius and angle: two results."""

    multiple_results = True

    def decompose(self, x, y):
        return [np.hypot(x, y), np.arctan2(y, x)]


@extend.primitive
class Root(extend.Primitive):
    """The real root of ``y**3 + y = x``, found by Newton's method in Python."""

    steps: int = 60

    def impl(self, x):
        y = np.asarray(x, float) / 2
        for _ in range(self.steps):
            y = y - (y**3 + y - x) / (3 * y**2 + 1)
        return y[()]

    def abstract_eval(self, x):
        return extend.ShapedArray(x.shape, np.dtype(float))

    def jvp(self, primals, tangents):
        y = self(*primals)
        return y, tangents[0] / (3 * y * y + 1)

    def batch(self, args, dims):
        return self(*args), 0

    lower = extend.by_callback


def ring(x: Any) -> Any:
    return Neighbours()(x)


def ring_reference(x: Any) -> Any:
    return (np.roll(x, 1) + np.roll(x, -1)) / 2


def polar(x: Any) -> Any:
    radius, angle = Polar()(x, x[::-1] + 2)
    return radius * angle


def polar_reference(x: Any) -> Any:
    return np.hypot(x, x[::-1] + 2) * np.arctan2(x[::-1] + 2, x)


def root(x: Any) -> Any:
    return Root()(x)


def root_reference(x: Any) -> Any:
    q = np.sqrt(x * x / 4 + 1 / 27)
    return np.cbrt(x / 2 + q) - np.cbrt(q - x / 2)


PAIRS = {
    "by a function": (ring, ring_reference),
    "several results": (polar, polar_reference),
    "by a callback": (root, root_reference),
}
X = np.array([0.3, 1.2, 0.7])


def scanned(f: Any) -> Any:
    return lambda x: fg.lax.scan(lambda c, _: (f(c), np.sum(c)), x, None, length=3)[0]


def branched(f: Any) -> Any:
    return lambda x: fg.lax.cond(np.sum(x) > 0, f, lambda x: 0 * x, x)


def repeated(f: Any) -> Any:
    def run(x: Any) -> Any:
        return fg.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]

    return run


def mapped(f: Any) -> Any:
    return lambda x: fg.vmap(f)(np.stack([x, 2 * x]))[1]


WRAPS = {
    "eager": lambda f: f,
    "jit": fg.jit,
    "vmap": mapped,
    "scan": scanned,
    "cond": branched,
    "while": repeated,
    "checkpoint": fg.checkpoint,
    "jit of scan of vmap": lambda f: fg.jit(scanned(mapped(f))),
}
LOOPS = ("while",)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", PAIRS)
def test_every_transformation_sees_the_rules(name: str, wrap: str) -> None:
    mine, reference = (WRAPS[wrap](f) for f in PAIRS[name])
    v = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(mine(X), reference(X), rtol=1e-12)
    for f, g in (
        (fg.jvp(mine, (X,), (v,))[1], fg.jvp(reference, (X,), (v,))[1]),
        (fg.jacfwd(fg.jacfwd(mine))(X), fg.jacfwd(fg.jacfwd(reference))(X)),
    ):
        np.testing.assert_allclose(f, g, rtol=1e-9, atol=1e-12)
    if wrap not in LOOPS:
        found, expected = (fg.grad(lambda x, f=f: np.sum(f(x) ** 2))(X) for f in (mine, reference))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        found, expected = (
            fg.jit(fg.hessian(lambda x, f=f: np.sum(f(x)) ** 2))(X) for f in (mine, reference)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_all_laws_hold() -> None:
    assert extend.check(Neighbours(0), (X,), linear=[(0,)])[:4] == (
        "shape",
        "inputs",
        "batch",
        "transpose",
    )
    assert "compiled derivatives" in extend.check(Root(), (X,), (X + 1,))
    assert len(extend.check(Polar(), (X, X + 1))) == 11


def test_a_composite_is_linear_where_its_function_is() -> None:
    @extend.primitive
    class Weighted(extend.Composite):
        def decompose(self, w, x):
            return w * x

        jvp = extend.linear_jvp

    @extend.primitive
    class Halved(extend.Composite):
        def decompose(self, x):
            return x / 2

        jvp = extend.linear_jvp

    extend.check(Halved(), (X,), linear=[(0,)])
    transposed = fg.linear_transpose(lambda x: Weighted()(X, x), X)
    np.testing.assert_array_equal(transposed(np.ones(3))[0], X)


def test_a_composite_is_traced_once_for_its_types() -> None:
    traced = []

    @extend.primitive
    class Counted(extend.Composite):
        def decompose(self, x):
            traced.append(x)
            return x + 1

    fg.jit(lambda x: Counted()(Counted()(x)))(X)
    assert len(traced) == 1


class Slip(extend.Primitive):
    """A primitive whose rules are right, but for the one that a subclass gets wrong."""

    def impl(self, x):
        return 2 * x

    def abstract_eval(self, x):
        return x

    jvp = extend.linear_jvp

    def transpose(self, ct, x):
        return [2 * ct]

    def batch(self, args, dims):
        return self(*args), 0

    def lower(self, x):
        return extend.Pointwise("2.0 * {0}")


def _overwrite(self: Any, x: Any) -> Any:
    x *= 2
    return x


WRONG = {
    "shape": {"abstract_eval": lambda self, x: x.update(dtype=np.dtype(np.float32))},
    "inputs": {"impl": _overwrite},
    "batch": {"batch": lambda self, args, dims: (self(args[0][::-1]), 0)},
    "forward": {"jvp": lambda self, p, t: (self(*p), 2.001 * t[0])},
    "transpose": {"transpose": lambda self, ct, x: [2.001 * ct]},
    "compiled": {"lower": lambda self, x: extend.Pointwise("2.001 * {0}")},
}


@pytest.mark.parametrize("law", WRONG)
def test_a_wrong_rule_is_found(law: str) -> None:
    extend.check(extend.primitive(type("slip", (Slip,), {}))(), (X.copy(),), linear=[(0,)])
    wrong = extend.primitive(type("slip", (Slip,), WRONG[law]))()
    with pytest.raises(extend.LawError, match=f"slip breaks the law '{law}"):
        extend.check(wrong, (X.copy(),), linear=[(0,)])


@extend.primitive
class Empty(extend.Primitive):
    """A primitive without rules."""


@extend.primitive
class Typed(extend.Primitive):
    """A primitive that knows the type of its result."""

    def abstract_eval(self, x):
        return x

    jvp = extend.linear_jvp


MISSING = {
    "evaluation": (lambda: Empty()(X), "def impl(self, *args)"),
    "abstract evaluation": (lambda: fg.jit(Empty())(X), "def abstract_eval(self, *avals)"),
    "differentiation": (
        lambda: fg.grad(lambda x: Empty()(x))(1.0),
        "def jvp(self, primals, tangents)",
    ),
    "batching": (lambda: fg.vmap(Empty())(X), "def batch(self, args, dims)"),
    "compilation": (lambda: fg.jit(lambda x: Typed()(x))(X), "lower = funcgrad.extend.by_callback"),
}


@pytest.mark.parametrize("rule", MISSING)
def test_a_missing_rule_says_what_to_write(rule: str) -> None:
    run, advice = MISSING[rule]
    with pytest.raises(MissingRuleError) as caught:
        run()
    text = str(caught.value)
    assert f" has no rule for {rule}.\n  at            test_primitives_of_users.py:" in text
    assert f"Write a method of {__name__}." in text
    assert advice in text


def test_a_missing_transpose_says_what_to_write() -> None:
    @extend.primitive
    class OneWay(Slip):
        transpose = extend.Primitive.transpose

    with pytest.raises(MissingRuleError, match="one_way has no rule for transposition") as caught:
        fg.grad(lambda x: np.sum(OneWay()(x)))(X)
    assert "def transpose(self, ct, *args)" in str(caught.value)


def test_effects_happen_once_and_in_order() -> None:
    seen = []

    @extend.primitive
    class Note(extend.Primitive):
        label: str
        multiple_results = True
        is_effectful = True

        def impl(self, x):
            seen.append((self.label, float(x)))
            return []

        def abstract_eval(self, x):
            return []

        lower = extend.by_callback

    @fg.jit
    def f(x):
        Note("first")(x)
        Note("second")(2 * x)
        return fg.lax.fori_loop(0, 2, lambda i, c: (Note("loop")(c), c + 1)[1], x)

    assert f(1.0) == 3.0
    assert seen == [("first", 1.0), ("second", 2.0), ("loop", 1.0), ("loop", 2.0)]


def test_misuse_is_explained() -> None:
    with pytest.raises(ArgumentError, match=r"needs a subclass of funcgrad\.extend\.Primitive"):
        extend.primitive(int)  # type: ignore[type-var]
    with pytest.raises(ArgumentError, match="call its class"):
        extend.check(Neighbours, (X,))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="needs examples, each a tuple"):
        extend.check(Root())
    with pytest.raises(ArgumentError, match="name the arguments in which it is linear"):
        extend.check(Neighbours(0), (X,))
    with pytest.raises(extend.LawError, match="static parameter that cannot be hashed"):
        extend.check(Neighbours([0]), (X,), linear=[(0,)])  # type: ignore[arg-type]


@fg.extend.primitive
class EveryOther(fg.extend.Primitive):
    """Every second element, with rules that are written with functions of `funcgrad.numpy`."""

    def impl(self, x):
        return x[..., ::2]

    def abstract_eval(self, x):
        return x.update(shape=(*x.shape[:-1], (x.shape[-1] + 1) // 2))

    jvp = fg.extend.linear_jvp

    def transpose(self, ct, x):
        out = fg.numpy.zeros(x.shape, x.dtype)
        out[..., ::2] = ct
        return [out]

    def batch(self, args, dims):
        return fg.numpy.asarray(self(*args)), 0

    lower = fg.extend.by_callback


def test_rules_may_be_written_with_functions_that_make_writable_arrays():
    x = np.linspace(-1.0, 1.0, 5)
    fg.extend.check(EveryOther(), (x,), linear=[(0,)])
    gradient = fg.jit(fg.grad(lambda x: np.sum(EveryOther()(x) ** 2)))(x)
    np.testing.assert_array_equal(gradient, 2 * x * [1, 0, 1, 0, 1])


@pytest.mark.parametrize(
    "transform", [fg.grad, lambda f: fg.jit(fg.grad(f)), lambda f: fg.grad(fg.jit(f))]
)
def test_arguments_may_be_arrays_that_are_assigned_to(transform):
    def f(x):
        y = 2 * x
        y[0] = 0.0
        return np.sum(EveryOther()(y) ** 2) + np.sum(EveryOther().bind(y))

    x = np.linspace(-1.0, 1.0, 5)
    expected = (8 * x + 2) * [0, 0, 1, 0, 1]
    np.testing.assert_allclose(transform(f)(x), expected, rtol=1e-15)
