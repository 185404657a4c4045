"""Programs: printing, type checking, evaluation, locations."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.printer import Names, format_program
from funcgrad.core.program import Equation, Literal, Program, Var, evaluate
from funcgrad.core.typecheck import check_program
from funcgrad.errors import DtypeError, ProgramTypeError
from funcgrad.primitives.elementwise import add, sin

F64 = np.dtype(np.float64)


def _sine_plus_one() -> Program:
    x, s, y = (Var(shaped((3,), F64)) for _ in range(3))
    equations = [Equation(sin, [x], [s]), Equation(add, [s, Literal(np.float64(1.0))], [y])]
    return Program([x], equations, [y])


def test_evaluate() -> None:
    x = np.arange(3.0)
    np.testing.assert_allclose(evaluate(_sine_plus_one(), [x])[0], np.sin(x) + 1)


def test_print() -> None:
    assert format_program(_sine_plus_one()) == (
        "{ lambda a:f64[3] .\n    b:f64[3] = sin a\n    c:f64[3] = add b 1.0:f64[]\n  in (c,) }"
    )


def test_names_are_letters() -> None:
    names = Names()
    letters = [names(Var(shaped((), F64))) for _ in range(28)]
    assert letters[:2] + letters[25:] == ["a", "b", "z", "aa", "ab"]


def test_source_lines_are_kept() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return np.sin(x)

    (equation,) = fg.make_jaxpr(f)(1.0).eqns
    assert equation.source is not None
    assert equation.source.short().startswith("test_program.py:")
    assert equation.source.text() == "return np.sin(x)"


def test_type_checker_accepts_a_good_program() -> None:
    check_program(_sine_plus_one())


def test_type_checker_finds_unbound_names_and_wrong_types() -> None:
    x, y = Var(shaped((3,), F64)), Var(shaped((4,), F64))
    with pytest.raises(ProgramTypeError, match="uses an unbound name"):
        check_program(Program([], [Equation(sin, [x], [y])], [y]))
    with pytest.raises(ProgramTypeError, match=r"has type \[f64\[3\]\], but claims \[f64\[4\]\]"):
        check_program(Program([x], [Equation(sin, [x], [y])], [y]))
    with pytest.raises(ProgramTypeError, match="a second time"):
        check_program(Program([x, x], [], [x]))


def test_avals() -> None:
    assert str(aval_of(np.ones((2, 3), np.float32))) == "f32[2,3]"
    assert str(aval_of(1.0)) == "~f64[]"
    assert aval_of(np.ones(3)) is aval_of(np.zeros(3))
    assert ShapedArray((2,), F64) == shaped((2,), F64)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.ones(2, np.float16), "float16 has no arithmetic on CPUs"),
        (np.ones(2, np.longdouble), "longdouble differs between platforms"),
        (np.array(["a"]), "strings cannot be differentiated"),
        (np.array([object()]), "object arrays hold Python objects"),
        (np.ones(2, ">f8"), "byte order"),
    ],
)
def test_refused_dtypes(value: np.ndarray, text: str) -> None:
    with pytest.raises(DtypeError, match=text):
        aval_of(value)
