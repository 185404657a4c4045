"""What primitives have without saying so: rules that are missing, and lengths of named axes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.core.primitive import Primitive
from funcgrad.errors import MissingRuleError

X = np.array([0.5, 1.0, 2.0])


class Unfinished(Primitive):
    """An operation of the library without rules; `tests/extend` has those of users."""

    __module__ = "funcgrad.primitives.unfinished"


UNFINISHED = Unfinished()

MISSING = {
    "evaluation": lambda: UNFINISHED.bind(1.0),
    "abstract evaluation": lambda: fg.jit(UNFINISHED.bind)(1.0),
    "differentiation": lambda: fg.jvp(UNFINISHED.bind, (1.0,), (1.0,)),
    "differentiation ": lambda: fg.grad(UNFINISHED.bind)(1.0),
    "batching": lambda: fg.vmap(UNFINISHED.bind)(X),
    "compilation": lambda: UNFINISHED.lower(),
}


@pytest.mark.parametrize("what", MISSING)
def test_a_rule_that_is_missing_is_named(what):
    rule = what.strip()
    expected = (
        f"unfinished has no rule for {rule}. If this value does not need one, wrap the argument in "
        "funcgrad.stop_gradient, or give the enclosing function its own rule with "
        "funcgrad.custom_jvp."
    )
    with pytest.raises(MissingRuleError, match=f"^{re.escape(expected)}"):
        MISSING[what]()


def test_an_operation_that_is_not_linear_has_no_transpose():
    with pytest.raises(MissingRuleError) as caught:
        UNFINISHED.transpose(1.0, 2.0)
    assert str(caught.value) == (
        "unfinished cannot be transposed, because it is not linear in this argument. "
        "linear_transpose needs a function that is linear in its arguments (use vjp for others), "
        "and rules of derivatives must be linear in the tangents."
    )


def lane():
    return lax.axis_index("lanes")


@fg.custom_jvp
def with_jvp(y):
    return y * lane()


with_jvp.defjvp(lambda primals, tangents: (with_jvp(*primals), tangents[0] * lane()))


@fg.custom_vjp
def with_vjp(y):
    return y * lane()


with_vjp.defvjp(lambda y: (y * lane(), None), lambda _, ct: (ct * lane(),))

# Only the name of the axis tells these how long it is: no argument is mapped.
UNMAPPED = {
    "jit": lambda: fg.jit(lambda y: y * lane())(2.0),
    "jit of nothing": lambda: fg.jit(lambda: 2.0 * lane())(),
    "checkpoint": lambda: fg.checkpoint(lambda y: y * lane())(2.0),
    "its gradient": lambda: 2 * fg.grad(fg.checkpoint(lambda y: y * lane()))(2.0),
    "scan": lambda: lax.scan(lambda c, _: (c + lane(), None), 0.0, length=2)[0],
    "while_loop": lambda: lax.while_loop(lambda c: c < 2 * lane(), lambda c: c + 1, 0),
    "cond": lambda: fg.jit(lambda p: lax.cond(p, lambda y: y * lane(), lambda y: y, 2.0))(True),
    "custom_jvp": lambda: with_jvp(2.0),
    "its derivative": lambda: 2 * fg.jvp(with_jvp, (3.0,), (1.0,))[1],
    "custom_vjp": lambda: with_vjp(2.0),
    "its derivative too": lambda: 2 * fg.grad(with_vjp)(3.0),
}


@pytest.mark.parametrize("name", UNMAPPED)
def test_programs_along_a_named_axis_without_mapped_arguments(name):
    mapped = fg.vmap(lambda x: UNMAPPED[name]() + 0 * x, axis_name="lanes")
    np.testing.assert_array_equal(mapped(X), [0.0, 2.0, 4.0])
