"""What functions are annotated with is not looked at."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import optim
from funcgrad.base.signatures import annotations_of, in_full, signature_of
from funcgrad.core.primitive import Primitive
from funcgrad.interop.autograd import grad_named, multigrad_dict

PACKAGE = Path(fg.__file__).parent

# As in the code of users who annotate with what only type checkers import: since Python 3.14 this
# is evaluated when somebody asks, and then it raises NameError, AttributeError or TypeError.
NAMELESS = """
def power(x: Array, n: np.no_such = 2) -> np[0]:
    return x**n
def by_name(x: Array, *, factor: np.no_such = 2.0) -> np[0]:
    return x * factor
def factory(learning_rate: Array) -> np[0]:
    return sgd(learning_rate)
def callback(intermediate_result: Array) -> np[0]:
    calls.append(intermediate_result.x)
class Nameless(Primitive):
    size: Array
class Named(Primitive):
    name: Array
    size: Array
"""
NEEDS_LATE_ANNOTATIONS = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="annotations are evaluated where they stand"
)


@pytest.fixture(name="made")
def made_of_text() -> dict[str, Any]:
    names = {"np": np, "sgd": optim.sgd, "Primitive": Primitive, "calls": []}
    exec(compile(NAMELESS, "users.py", "exec", dont_inherit=True), names)
    return names


def with_custom_jvp(f):
    f = fg.custom_jvp(f)
    f.defjvp(lambda primals, tangents: (primals[0] ** 2, 2 * primals[0] * tangents[0]))
    return fg.grad(f)


def with_custom_vjp(f):
    f = fg.custom_vjp(f)
    f.defvjp(lambda x, n: (x**2, x), lambda x, ct: (2 * x * ct, None))
    return fg.grad(f)


CALLS = {
    "grad": lambda f: fg.grad(f)(3.0),
    "value_and_grad": lambda f: fg.value_and_grad(f)(3.0)[1],
    "jit of a static argument": lambda f: fg.grad(fg.jit(f, static_argnames="n"))(3.0, n=2),
    "jit of a donated argument": lambda f: fg.grad(fg.jit(f, donate_argnames="x"))(3.0),
    "vmap": lambda f: fg.vmap(fg.grad(f))(np.array([3.0]))[0],
    "checkpoint": lambda f: fg.grad(fg.checkpoint(f))(3.0),
    "custom_jvp": lambda f: with_custom_jvp(f)(3.0),
    "custom_vjp": lambda f: with_custom_vjp(f)(3.0),
    "grad_named": lambda f: grad_named(f, "x")(3.0),
    "multigrad_dict": lambda f: multigrad_dict(lambda x: f(x))(3.0)["x"],
    "a jitted function in a derivative": lambda f: fg.jacfwd(fg.jit(f))(3.0),
}


@NEEDS_LATE_ANNOTATIONS
@pytest.mark.parametrize("call", CALLS)
def test_functions_whose_annotations_have_no_meaning(call, made):
    np.testing.assert_allclose(CALLS[call](made["power"]), 6.0)


@NEEDS_LATE_ANNOTATIONS
def test_what_takes_functions_whose_annotations_have_no_meaning(made):
    state = optim.inject_hyperparams(made["factory"])(learning_rate=0.5).init(1.0)
    assert state.hyperparams["learning_rate"] == 0.5
    found = optim.minimize(
        lambda x: ((x - 1.0) ** 2).sum(), np.zeros(2), method="BFGS", callback=made["callback"]
    )
    np.testing.assert_allclose(found.x, 1.0, rtol=1e-6)
    assert made["calls"]
    graph = fg.diagnostics.draw(made["by_name"])(2.0)
    assert graph.nodes[0].lines[0] == "x"


@NEEDS_LATE_ANNOTATIONS
def test_classes_whose_annotations_have_no_meaning(made):
    assert made["Nameless"].name == "nameless"
    assert "name" not in made["Named"].__dict__
    assert list(annotations_of(made["Named"])) == ["name", "size"]


def test_signatures():
    def f(a: int, *rest: float, b: str = "x") -> None:
        """It does nothing."""

    class Base:
        a: int

    class Derived(Base):
        b: int

    assert list(signature_of(f).parameters) == ["a", "rest", "b"]
    assert signature_of(f).parameters["b"].default == "x"
    assert list(annotations_of(Derived)) == ["b"]
    assert not annotations_of(type("Empty", (Base,), {}))
    with pytest.raises(TypeError):
        signature_of(3)  # type: ignore[arg-type]


def test_nobody_else_asks_for_signatures():
    asks = re.compile(r"inspect\.signature\(|__annotations__|get_type_hints|get_annotations\(")
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if asks.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["base/signatures.py"]


def test_sections_of_one_line_are_shown_in_full() -> None:
    short = """Sum.

    Args:
        x: An array, which may have
            any shape.
    Returns: A number, or an array
        of numbers.
    Raises: ShapeError: If there is none.
    Example: fg.numpy.ones((2, 2))
        -> array([[1., 1.],
                  [1., 1.]])
    """
    assert (
        in_full(short)
        == """Sum.

    Args:
        x: An array, which may have
            any shape.

    Returns:
        A number, or an array
        of numbers.

    Raises:
        ShapeError: If there is none.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.ones((2, 2))
        array([[1., 1.],
               [1., 1.]])
    """
    )
    assert in_full("Sum.\n\nArgs: x: A number.\nExample: fg.sum(1) -> 1\n") == (
        "Sum.\n\nArgs:\n    x: A number.\n\n"
        "Example:\n    >>> import funcgrad as fg\n    >>> fg.sum(1)\n    1\n"
    )
    session = "Example:\n    >>> x = np.ones(2)\n    >>> fg.sum(x)\n    2\n"
    imports = "    >>> import numpy as np, funcgrad as fg\n"
    assert in_full(f"Sum.\n\n{session}") == f"Sum.\n\n{session}".replace(":\n", f":\n{imports}")
