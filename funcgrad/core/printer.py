"""Printing of programs, with types and the user's lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Atom, Equation, Literal, Program, Var

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Names:
    """Short names for variables: a, b, ..., z, aa, ab, ...; others for operations if need be.

    ``words : equation -> (name of the operation, parameters)``
    """

    def __init__(self, words: Callable[[Equation], Any] | None = None) -> None:
        self._names: dict[Var, str] = {}
        self.words = words

    def __call__(self, atom: Atom) -> str:
        if isinstance(atom, Literal):
            return _literal(atom)
        if atom not in self._names:
            self._names[atom] = _letters(len(self._names))
        return self._names[atom]

    def typed(self, atom: Atom) -> str:
        return f"{self(atom)}:{atom.aval}"


def _literal(literal: Literal) -> str:
    value = literal.value
    text = repr(value.item() if hasattr(value, "item") else value)
    return text if literal.aval.weak_type else f"{text}:{literal.aval}"


def _letters(index: int) -> str:
    text = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, len(_LETTERS))
        text = _LETTERS[digit] + text
    return text


def format_program(
    program: Program, with_source: bool = False, indent: str = "", names: Names | None = None
) -> str:
    """The program as text.

    Args:
        program: The program to print.
        with_source: Whether every equation shows the user's line that made it.
        indent: Text in front of every line.
        names: Names of variables, to be used further.
    """
    lines = _lines(program, with_source, Names() if names is None else names)
    return "\n".join(indent + line for line in lines)


def _lines(program: Program, with_source: bool, names: Names) -> Iterator[str]:
    inputs = " ".join(names.typed(v) for v in program.inputs)
    yield f"{{ lambda {inputs} ." if inputs else "{ lambda ."
    for var, _ in program.constants:
        yield f"    {names.typed(var)} = constant"
    for equation in program.equations:
        yield from _equation_lines(equation, names, with_source)
    outputs = ", ".join(names(a) for a in program.outputs)
    yield f"  in ({outputs}{',' if len(program.outputs) == 1 else ''}) }}"


def _equation_lines(equation: Equation, names: Names, with_source: bool) -> Iterator[str]:
    inputs = " ".join(names(a) for a in equation.inputs)
    outputs = " ".join(names.typed(v) for v in equation.outputs) or "_"
    own = equation.primitive
    name, params = names.words(equation) if names.words else (own.name, own.params())
    plain, programs = split_params(params)
    line = f"    {outputs} = {name}{plain} {inputs}".rstrip()
    if with_source and equation.source is not None:
        line = f"{line:<60} # {equation.source.short()}"
    yield line
    for key, program in programs:
        yield f"      {key}:"
        for inner in _lines(program, with_source, Names(names.words)):
            yield "        " + inner


def split_params(params: dict[str, Any]) -> tuple[str, list[tuple[str, Program]]]:
    """Parameters of a primitive as text, and the programs among them, with their names."""
    programs: list[tuple[str, Program]] = []
    plain: list[str] = []
    for key, value in params.items():
        if isinstance(value, Program):
            programs.append((key, value))
        elif isinstance(value, tuple) and value and all(isinstance(v, Program) for v in value):
            programs += [(f"{key}[{i}]", v) for i, v in enumerate(value)]
        elif isinstance(value, Primitive):  # of which this one is a derivative
            own, inner = split_params(value.params())
            plain.append(f"{key}={value.name}{own}")
            programs += [(f"{key}.{name}", v) for name, v in inner]
        else:
            plain.append(f"{key}={_param(value)}")
    return ("[" + " ".join(plain) + "]" if plain else ""), programs


def _param(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + ",".join(map(_param, value)) + ")"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return str(value)
