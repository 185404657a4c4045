"""Programs: printing, type checking, evaluation, locations."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.core import avals
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.primitive import Linear
from funcgrad.core.printer import Names, format_program
from funcgrad.core.program import Equation, Literal, Program, Var, evaluate
from funcgrad.core.typecheck import check_program
from funcgrad.errors import DtypeError, ProgramTypeError, ShapeError
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
    wrong = Program([], [], [x], constants=[(x, np.ones(4))])
    with pytest.raises(ProgramTypeError, match=r"^after cse: a constant of main is not f64\[3\]$"):
        check_program(wrong, "cse")
    with pytest.raises(ProgramTypeError, match=r"main returns an unbound name Var\(f64\[3\]\)$"):
        check_program(Program([], [], [x]))


def test_parts_of_programs_in_the_console() -> None:
    x, y = (Var(shaped((3,), F64)) for _ in range(2))
    assert repr(Equation(add, [x, Literal(2.0)], [y])) == (
        "Equation(add, (Var(f64[3]), Literal(2.0)) -> (Var(f64[3]),))"
    )
    assert repr(Linear(shaped((3,), F64))) == "Linear(f64[3])"


def test_derivatives_of_loops_are_printed_with_their_programs() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c < 3, lambda c: c * c, x)

    text = str(fg.make_jaxpr(fg.grad(f))(1.5))
    assert "= while_pull[loop=while] " in text
    assert "\n      loop.condition:\n        { lambda " in text
    assert (
        "\n      loop.body:\n        { lambda a:~f64[] .\n            b:~f64[] = mul a a\n" in text
    )


def test_functions_that_are_parameters_are_printed_by_name() -> None:
    policy = fg.checkpoint_policies.dots_saveable
    text = str(fg.make_jaxpr(fg.checkpoint(np.sin, policy=policy))(1.0))
    assert "policy=dots_saveable" in text
    assert " at 0x" not in text


def test_the_first_line_that_is_known_describes_a_program() -> None:
    def f(x: Any) -> Any:
        return np.sin(x) + 1

    known = fg.make_jaxpr(f)(1.0).program
    line = f"  at            test_program.py:{f.__code__.co_firstlineno + 1}   return np.sin(x) + 1"
    assert known.described() == f"f\n{line}"
    first, second = known.equations
    unknown = Equation(first.primitive, first.inputs, first.outputs)
    mixed = Program(known.inputs, [unknown, second], known.outputs, "f")
    assert mixed.described() == f"f\n{line}"
    assert Program(known.inputs, [unknown], known.outputs, "f").described() == "f"


def test_types_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avals, "INTERNED", {})
    monkeypatch.setattr(avals, "_INTERN_LIMIT", 4)
    for n in range(20):
        assert shaped((n,), F64).shape == (n,)
        assert aval_of(np.ones((n, 2))) == ShapedArray((n, 2), F64)
        assert len(avals.INTERNED) <= 4


def test_arrays_that_no_address_can_count() -> None:
    for transform in (fg.jit, lambda f: fg.jit(fg.grad(f))):
        with pytest.raises(ShapeError) as caught:
            transform(lambda x: fnp.broadcast_to(x, (2**31, 2**31)).sum())(np.ones(1))
        assert str(caught.value).partition("\n")[0] == (
            "broadcast_to: an array of float64 of shape (2147483648, 2147483648) would have "
            "2**65.0 bytes, more than addresses can count, and no NumPy array can be so large. "
            "Make it smaller, or compute with its parts, for example by lax.scan or lax.map."
        )


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
        (
            np.array([object()]),
            "object arrays stand for arrays only if each of their objects is a number",
        ),
        (np.ones(2, ">f8"), "byte order"),
    ],
)
def test_refused_dtypes(value: np.ndarray, text: str) -> None:
    with pytest.raises(DtypeError, match=text):
        aval_of(value)


def test_equations_of_one_name_hold_no_tuple() -> None:
    """Loops of indexing leave two objects per equation for the collector of garbage, not four."""
    with fg.reroll_loops(False):
        program = fg.make_jaxpr(lambda x: [x[k] ** 2 for k in range(50)])(np.ones(50)).program
    assert [e.primitive.name for e in program.equations[:3]] == [
        "slice", "reshape", "integer_power",
    ]  # fmt: skip
    held = [x for e in program.equations for x in gc.get_referents(e)]
    assert not any(isinstance(x, tuple) for x in held)
    assert len({id(e.primitive) for e in program.equations}) == 50 + 1 + 1
