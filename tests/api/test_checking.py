"""checkify: every transformation around a check and inside of one, and what messages say."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import checkify, lax
from funcgrad.errors import ArgumentError, FailedCheckError, MissingRuleError

LINE = "test_checking.py"


def positive(x):
    checkify.check(x > 0, "x is {}", x)
    return fnp.sqrt(x * x)


def summed(x):
    def step(total, y):
        checkify.check(y < 3, "step {y} at {total:.1f}", y=y, total=total)
        return total + y * x, total

    return lax.scan(step, x, np.arange(5.0))[0]


def powers(x):
    def goes_on(state):
        i, y = state
        checkify.check(y < 100, "asked at {}", y)
        return i < 4

    def step(state):
        i, y = state
        checkify.check(y < 10, "step {} at {}", i, y)
        return i + 1, y * x

    return lax.while_loop(goes_on, step, (0, 1.0))[1]


def branched(x):
    def large(x):
        checkify.check(x < 2, "{} is too large", x)
        return x

    def small(x):
        checkify.check(x > -2, "{} is too small", x)
        return 2 * x

    return lax.cond(x > 0, large, small, x)


@fg.custom_jvp
def with_jvp(x):
    checkify.check(x > 0, "x is {}", x)
    return x * x


with_jvp.defjvp(lambda primals, tangents: (with_jvp(*primals), 7.0 * tangents[0]))


@fg.custom_vjp
def with_vjp(x):
    checkify.check(x > 0, "x is {}", x)
    return x * x


with_vjp.defvjp(lambda x: (with_vjp(x), x), lambda x, ct: (7.0 * ct,))

# function, arguments, first lines of the messages, derivative
CASES = {
    "check": (positive, (1.0, -2.0), (None, "x is -2.0"), (1.0, -1.0)),
    "jit": (fg.jit(positive), (1.0, -2.0), (None, "x is -2.0"), (1.0, -1.0)),
    "checkpoint": (fg.checkpoint(positive), (1.0, -2.0), (None, "x is -2.0"), (1.0, -1.0)),
    "scan": (summed, (1.0, 2.0), ("step 3.0 at 4.0", "step 3.0 at 8.0"), (11.0, 11.0)),
    "while": (powers, (1.5, 3.0, 12.0), (None, "step 3 at 27.0", "step 2 at 144.0"), None),
    "cond": (
        branched,
        (1.0, 2.5, -1.0, -3.0),
        (None, "2.5 is too large", None, "-3.0 is too small"),
        (1.0, 1.0, 2.0, 2.0),
    ),
    "custom_jvp": (with_jvp, (1.0, -2.0), (None, "x is -2.0"), (7.0, 7.0)),
    "custom_vjp": (with_vjp, (1.0, -2.0), (None, "x is -2.0"), (7.0, 7.0)),
}
# The condition of "while" fails before its body does: at 144, asked after the second step.
CASES["while"] = (
    powers,
    (1.5, 3.0, 12.0),
    (None, "step 3 at 27.0", "step 1 at 12.0"),
    (4 * 1.5**3, 4 * 3.0**3, 4 * 12.0**3),
)
ALL = pytest.mark.parametrize("name", CASES)


def first_lines(error):
    text = error.get()
    return None if text is None else text.split("\n")[0]


@ALL
@pytest.mark.parametrize("around", [lambda f: f, fg.jit], ids=["eager", "jit"])
def test_a_failure_is_the_first_result(name, around):
    fun, args, messages, _ = CASES[name]
    f = around(checkify.checkify(fun))
    for x, message in zip(args, messages, strict=True):
        error, _ = f(x)
        assert first_lines(error) == message
        if message is None:
            error.throw()
        else:
            assert LINE in error.get()
            with pytest.raises(FailedCheckError, match=message.replace(".", r"\.")):
                error.throw()


@ALL
def test_lanes_have_errors_of_their_own(name):
    fun, args, messages, _ = CASES[name]
    error, _ = fg.vmap(checkify.checkify(fun))(np.array(args))
    lines = [] if error.get() is None else error.get().split("\n")[::2]
    assert lines == [f"[{i}] {m}" for i, m in enumerate(messages) if m is not None]


@ALL
def test_the_first_lane_counts_inside(name):
    fun, args, messages, _ = CASES[name]
    f = checkify.checkify(fg.vmap(fun))
    failing = [m for m in messages if m is not None]
    assert first_lines(f(np.array(args))[0]) in failing  # the first step, then the first lane
    fine = [x for x, m in zip(args, messages, strict=True) if m is None]
    if fine:  # what is computed for lanes that do not want it is no failure
        assert f(np.array(fine))[0].get() is None


@pytest.mark.sampled(2)
@ALL
@pytest.mark.parametrize("around", [lambda f: f, fg.jit], ids=["eager", "jit"])
def test_derivatives_of_checked_functions(name, around):
    fun, args, messages, slopes = CASES[name]
    checked = checkify.checkify(fun)
    outside = around(fg.value_and_grad(lambda x: checked(x)[::-1], has_aux=True))
    inside = around(checkify.checkify(fg.grad(fun)))
    for x, message, slope in zip(args, messages, slopes, strict=True):
        (_, error), found = outside(x)
        np.testing.assert_allclose(found, slope, rtol=1e-13)
        assert first_lines(error) == message
        error, found = inside(x)
        np.testing.assert_allclose(found, slope, rtol=1e-13)
        assert first_lines(error) == message


def test_a_lane_that_has_ended_is_not_checked():
    def count(n):
        def step(i):
            checkify.check(i < n, "{} of {}", i, n)
            return i + 1

        return lax.while_loop(lambda i: i < n, step, 0)

    error, out = checkify.checkify(fg.vmap(count))(np.array([1, 3]))
    assert error.get() is None
    assert out.tolist() == [1, 3]


def f_nan(x):
    return fnp.log(x)


def f_divide(x):
    return 1.0 / x


AUTOMATIC = {  # function, argument, errors, the line that is expected
    "nan": (f_nan, -1.0, checkify.nan_checks, "log gave a nan."),
    "nan in a loop": (
        lambda x: lax.fori_loop(0, 3, lambda i, y: fnp.sqrt(y - 1.0), x),
        2.0,
        checkify.float_checks,
        "sqrt gave a nan.",
    ),
    "nan of a value": (lambda x: fnp.sin(x), np.nan, checkify.all_checks, "sin gave a nan."),
    "moved nan": (lambda x: fnp.where(x > 0, x, np.nan), -1.0, checkify.all_checks, None),
    "complex nan": (lambda x: fnp.log(x) * 0, 0j, checkify.nan_checks, "mul gave a nan."),
    "division": (f_divide, 0.0, checkify.div_checks, "division by zero"),
    "whole division": (lambda n: 7 // n, 0, checkify.automatic_checks, "division by zero"),
    "remainder": (lambda n: 7 % n, 0, checkify.div_checks, "division by zero"),
    "index": (
        lambda i: fnp.arange(3.0)[i],
        5,
        checkify.index_checks,
        "index 5 is out of bounds for axis 0 of f64[3], which has length 3",
    ),
    "negative index": (lambda i: fnp.arange(3.0)[i], -3, checkify.index_checks, None),
    "some indices": (
        lambda i: fnp.ones((2, 3))[:, i],
        np.array([2, -4, 9]),
        checkify.index_checks,
        "index -4 is out of bounds for axis 1 of f64[2,3], which has length 3",
    ),
    "clamped index": (
        lambda i: fnp.arange(3.0).at[i].get(),
        5,
        checkify.index_checks,
        "index 5, counted from the start, is out of bounds for axis 0 of f64[3], which has "
        "length 3",
    ),
    "no indices": (lambda i: fnp.arange(3.0)[i], np.zeros(0, int), checkify.index_checks, None),
    "writing": (
        lambda i: fnp.arange(3.0).at[i].add(1.0),
        4,
        checkify.all_checks,
        "index 4 is out of bounds for axis 0 of f64[3], which has length 3",
    ),
    "slice": (
        lambda i: lax.dynamic_slice(fnp.arange(3.0), (i,), (2,)),
        2,
        checkify.index_checks,
        "start 2 of a window of length 2 is out of bounds for axis 0 of f64[3], which has length 3",
    ),
    "other kinds": (f_divide, 0.0, checkify.nan_checks | checkify.index_checks, None),
    "user only": (f_nan, -1.0, checkify.user_checks, None),
}


@pytest.mark.parametrize("name", AUTOMATIC)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_automatic_checks(name):
    fun, x, errors, message = AUTOMATIC[name]
    error, _ = checkify.checkify(fun, errors=errors)(x)
    assert first_lines(error) == message
    assert message is None or LINE in error.get()


def test_checks_that_are_not_asked_for_are_left_out():
    error, y = fg.jit(checkify.checkify(positive, errors=checkify.nan_checks))(-4.0)
    assert (error.get(), y) == (None, 4.0)


def test_the_first_failure_counts():
    def f(x):
        checkify.check(x > 2, "first {}", x)
        checkify.check(x > 3, "second {}", x)
        return x

    f = fg.jit(checkify.checkify(f))
    assert [first_lines(f(x)[0]) for x in (1.0, 2.5, 4.0)] == ["first 1.0", "second 2.5", None]


def test_known_values_raise_at_once():
    for f in (positive, fg.vmap(positive), fg.grad(positive)):
        with pytest.raises(FailedCheckError, match=r"x is -1\.0\n  at +test_checking\.py"):
            f(np.array([-1.0]) if f is not positive and "vmap" in repr(f) else -1.0)
    with fg.disable_jit(), pytest.raises(FailedCheckError, match=r"step 3\.0"):
        fg.jit(summed)(1.0)


@pytest.mark.parametrize("f", [fg.jit(positive), summed], ids=["jit", "scan"])
def test_compiled_checks_must_be_functionalised(f):
    with pytest.raises(ArgumentError) as caught:
        f(1.0)
    assert str(caught.value).startswith("a check must be functionalised before it is compiled: ")
    assert LINE in str(caught.value)
    assert "jit(checkify(f))" in str(caught.value)


def test_debug_checks_count_in_checkify_only():
    def f(x):
        checkify.debug_check(x > 0, "x is {}", x)
        return 2 * x

    assert f(-1.0) == fg.jit(f)(-1.0) == -2.0
    assert fg.vmap(f)(np.array([-1.0])) == -2.0
    error, _ = checkify.checkify(f)(-1.0)
    assert first_lines(error) == "x is -1.0"
    with pytest.raises(FailedCheckError, match=r"x is -1\.0"):
        error.throw()


def test_an_error_is_a_check_again():
    inner = checkify.checkify(positive)

    def f(x):
        error, y = inner(x)
        checkify.check_error(error)
        return y

    for again in (checkify.checkify(f), fg.jit(checkify.checkify(f)), checkify.checkify(fg.jit(f))):
        assert first_lines(again(-1.0)[0]) == "x is -1.0"
        assert again(1.0)[0].get() is None
    with pytest.raises(FailedCheckError, match=r"x is -1\.0"):
        f(-1.0)
    many = fg.vmap(inner)(np.array([1.0, -1.0, -2.0]))[0]
    assert first_lines(checkify.checkify(lambda: checkify.check_error(many))()[0]) == "x is -1.0"


def test_an_error_is_a_pytree():
    f = checkify.checkify(positive)
    error, _ = fg.jit(lambda x: f(x))(-1.0)
    again = fg.jit(lambda e: e)(error)
    assert again.get() == error.get()
    assert fg.tree_util.tree_structure(again) == fg.tree_util.tree_structure(error)
    _, errors = lax.scan(lambda c, x: (c, f(x)[0]), 0, np.array([1.0, -1.0, -3.0]))
    assert errors.get().split("\n")[::2] == ["[1] x is -1.0", "[2] x is -3.0"]
    assert checkify.init_error.get() is None
    assert isinstance(error.get_exception(), checkify.JaxRuntimeError)


def test_messages_take_pytrees_of_arrays():
    def f(x):
        checkify.check(x["a"] > 0, "{0[a]} of {tree[0]} {tree[1]:.2f}", x, tree=(x["b"], 1.0))

    error, _ = checkify.checkify(f)({"a": -1, "b": np.arange(2)})
    assert first_lines(error) == "-1 of [0 1] 1.00"


MISTAKES = {
    "many": (lambda x: checkify.check(x > 0, "x"), np.ones(2), r"one bool, got bool\[2\]"),
    "number": (lambda x: checkify.check(x, "x"), 1.0, "one bool, got"),
    "text": (lambda x: checkify.check(x > 0, "{}", "name"), 1.0, "str cannot fill a gap of '{}'"),
    "gap": (lambda x: checkify.check(x > 0, "{} {}", x), 1.0, "do not fit"),
    "named": (lambda x: checkify.check(x > 0, "{y}", x), 1.0, "do not fit: 'y'"),
    "format": (lambda x: checkify.check(x > 0, "{:d}", x), 1.0, "do not fit"),
    "message": (lambda x: checkify.check(x > 0, x), 1.0, "must be a str"),
    "error": (lambda x: checkify.check_error(x), 1.0, "expected an Error"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    f, x, message = MISTAKES[name]
    with pytest.raises(ArgumentError, match=message):
        checkify.checkify(f)(x)


def test_errors_must_be_known():
    with pytest.raises(ArgumentError, match="united by"):
        checkify.checkify(positive, errors=frozenset({"typo"}))


def test_rules_of_vmap_do_not_tell_of_checks():
    @fg.custom_vmap
    def f(x):
        checkify.check(x > 0, "x is {}", x)
        return x

    f.def_vmap(lambda size, mapped, x: (x, True))
    with pytest.raises(MissingRuleError, match="does not tell what checks"):
        checkify.checkify(f)(1.0)


def test_checked_loops_run_natively():
    with fg.debug_python_loops():
        fg.jit(checkify.checkify(summed, errors=checkify.all_checks))(1.0)


def test_references_are_carried():
    ref = fg.new_ref(np.zeros(2))

    def f(x):
        checkify.check(x > 0, "x is {}", x)
        ref[0] += x

    assert first_lines(checkify.checkify(f)(-1.0)[0]) == "x is -1.0"
    assert ref[0] == -1.0


@pytest.mark.nightly  # JAX compiles for half a minute
def test_as_jax_does():
    """Whether something is wrong, and what the message begins with, in programs for both."""
    jax = pytest.importorskip("jax")
    theirs = pytest.importorskip("jax.experimental.checkify")

    def program(lib, check, jit, vmap, lax):
        def loop(x):
            def step(c, y):
                check.check(y < 2, "y is {}", y)
                return c + y, y

            return lax.scan(step, x, lib.arange(4.0))

        def f(x):
            check.check(x > 0, "x is {}", x)
            return lib.sin(x) / x

        kinds = [check.user_checks, check.nan_checks, check.div_checks, check.all_checks]
        values = [1.0, 0.0, -1.0, np.inf]
        for errors in kinds:
            for fun in (f, jit(f), loop, jit(loop)):
                for x in values:
                    yield jit(check.checkify(fun, errors=errors))(lib.asarray(x))[0]
            yield vmap(check.checkify(f, errors=errors))(lib.asarray(values))[0]
            yield check.checkify(vmap(f), errors=errors)(lib.asarray(values))[0]

    def told(error):
        text = error.get()
        return (
            text is not None,
            text is not None and "x is" in text,
            text is not None and ("division by zero" in text),
        )

    ours = program(fnp, checkify, fg.jit, fg.vmap, lax)
    expected = program(jax.numpy, theirs, jax.jit, jax.vmap, jax.lax)
    assert [told(e) for e in ours] == [told(e) for e in expected]
