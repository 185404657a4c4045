"""Kernels that are written down: the text of a function of the loop language, read back.

The inverse of `Function.text`, for tests: kernels of their own, and the law that what is printed is
what was meant. And programs that are written down, as assembly.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import llvmlite.binding as llvm

from funcgrad.compiler.loops import language
from funcgrad.compiler.loops.language import (
    Apply,
    Expression,
    Function,
    NamedFunction,
    Number,
    Variable,
    call,
)
from funcgrad.compiler.loops.library import panels, tiles
from funcgrad.compiler.native import llvm_backend
from funcgrad.compiler.native.translate import translate
from funcgrad.intrinsics import OPERATORS


class Code(NamedTuple):
    """LLVM assembly.

    Attributes:
        text: The assembly.
        symbol: The name of its function.
        is_brief: As of `language.Function`.
    """

    text: str
    symbol: str
    is_brief: bool = False


def translated(program: NamedFunction) -> Code:
    """A program that is no kernel as assembly, written anew, as it becomes native code."""
    for function in (program, *program.inner.values()):
        vars(function).pop("body", None)
    return Code(translate(program, "fg_program").assembly, "fg_program", program.is_brief)


def assembled(program: Function, symbol: str = "fg_program") -> Code:
    """A program as assembly, which is simplified as it is before it becomes native code."""
    module = llvm.parse_assembly(translate(program, symbol).assembly, llvm.create_context())
    generator = llvm_backend._Generator(llvm_backend.FINAL_SELECTION)
    generator.optimise(module, llvm_backend.Effort.TILES)
    return Code(str(module), symbol)


def read(text: str) -> Function:
    """The function of a text, ``def kernel(slots, args): ...``."""
    [function] = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    *body, last = function.body
    assert isinstance(last, ast.Return)
    return Function(_body(body))


def statement(text: str) -> language.Statement:
    """One statement."""
    [tree] = ast.parse(text).body
    return _statement(tree)


def _body(trees: list[ast.stmt]) -> list[language.Statement]:
    return [_statement(tree) for tree in trees if not isinstance(tree, ast.Pass)]


def _statement(tree: ast.stmt) -> language.Statement:
    match tree:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return language.Assign(name, _expression(value))
        case ast.Assign(targets=[ast.Subscript(value=words, slice=index)], value=value):
            return language.Evaluate(call("write_word", *map(_expression, (words, index, value))))
        case ast.Expr(value=value):
            applied = _expression(value)
            assert isinstance(applied, Apply)
            return language.Evaluate(applied)
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id=kind), args=args)):
            span = list(map(_expression, args[:2]))
            start, stop = span if len(span) == 2 else (Number(0), *span)
            step = ast.literal_eval(args[2]) if len(args) == 3 else 1
            return language.For(name, start, stop, step, _body(tree.body), kind == "cold")
        case ast.While(test=test, body=body):
            return language.While(_expression(test), _body(body))
        case ast.If(test=test, body=body, orelse=otherwise):
            return language.If(_expression(test), _body(body), _body(otherwise))
        case ast.Break():
            return language.Break()
        case ast.Return(value=ast.expr() as value):
            return language.Return(_expression(value))
    raise AssertionError(ast.unparse(tree))


def _expression(tree: ast.expr) -> Expression:
    match tree:
        case ast.Name(id="slots"):
            return language.SLOTS
        case ast.Name(id=name):
            return Variable(name)
        case ast.Constant(value=bool() | int() | float() as number):
            return Number(number)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return Number(-number)
        case ast.UnaryOp(op=op, operand=operand):
            return call(OPERATORS[type(op)], _expression(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return call(OPERATORS[type(op)], _expression(left), _expression(right))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return call(OPERATORS[type(op)], _expression(left), _expression(right))
        case ast.Call(func=ast.Name(id=word), args=args):
            return call(word, *map(_expression, args))
        case ast.Subscript(value=words, slice=index):
            return call("read_word", _expression(words), _expression(index))
    raise AssertionError(ast.unparse(tree))


def products(letter: str, shape: tiles.Shape) -> Iterator[tuple[str, NamedFunction]]:
    """The programs of products of a type."""
    rows, widths, _ = shape.fitted(shape.rows, 5)
    for is_tabled in (False, True) if letter in "sd" else (False,):
        yield f"tiles{' by tables' * is_tabled}", tiles.Tiles.named(letter, shape.lanes, is_tabled)
        program = tiles.TileRows.named(letter, shape.lanes, (rows, widths[0]), is_tabled)
        yield f"rows of tiles{' by tables' * is_tabled}", program
    yield "lines", tiles.TileLines.named(letter, shape.lanes, rows)
    for copies in (panels.Copies.ROWS, panels.Copies.COLUMNS):
        yield copies.name, panels.PanelCopy.named(letter, shape.lanes, copies)
    yield "block", panels.BlockCopy.named(letter, shape.lanes, rows)
    yield "mirror", panels.MirrorCopy.named(letter, shape.lanes)
