"""Signatures of functions of C: types of arguments and results, with sizes by name.

A signature is text such as ``"float64[n, m], float64[m] -> float64[n]"``: parameters on the left,
results on the right. ``{w: float64[n, m], b: float64[m]}`` is a dict and ``(float64, float64[n])``
a tuple, which C sees as a structure of pointers. Sizes are numbers, names, and what ``+ - * //``
make of them. ``"float64(float64, float64[3])"`` is C's own order, for functions that return a
number.

The same types are printed as C declarations by `Signature.declaration`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad.base.pytree import tree_leaves
from funcgrad.base.records import dataclass
from funcgrad.dtypes import SUPPORTED
from funcgrad.errors import ArgumentError

DTYPES = {dtype.name: dtype for dtype in SUPPORTED}

C_TYPES = {
    "bool": "bool", "float32": "float", "float64": "double", "complex64": "fg_complex64",
    "complex128": "fg_complex128",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""Names of dtypes in C."""

COMPLEX_TYPES = """\
#ifndef FG_COMPLEX
#define FG_COMPLEX
typedef struct { float re, im; } fg_complex64;
typedef struct { double re, im; } fg_complex128;
#endif
"""
"""Complex numbers for C and C++: laid out as those of both languages."""

RESERVED = frozenset((
    "alignas", "alignof", "and", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch",
    "char", "class", "compl", "const", "constexpr", "continue", "decltype", "default", "delete",
    "do", "double", "else", "enum", "explicit", "export", "extern", "false", "float", "for",
    "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept",
    "not", "nullptr", "operator", "or", "private", "protected", "public", "register", "restrict",
    "return", "scratch", "short", "signed", "sizeof", "static", "struct", "switch", "template",
    "this", "throw", "true", "try", "typedef", "typename", "union", "unsigned", "using", "virtual",
    "void", "volatile", "while", "xor",
))  # fmt: skip
"""Keywords of C and C++, and a name of ours."""

_OF_NUMBERS = """
acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor lgamma log
log10 log1p log2 logb nearbyint rint round sin sinh sqrt tan tanh tgamma trunc lrint lround llrint
llround ilogb atan2 copysign fdim fmax fmin fmod hypot nextafter nexttoward pow remainder remquo
scalbn scalbln frexp ldexp modf fma nan"""
LIBRARY = frozenset((
    *(name + suffix for name in _OF_NUMBERS.split() for suffix in ("", "f", "l")),
    "j0", "j1", "jn", "y0", "y1", "yn", "gamma", "abs", "labs", "llabs", "div", "ldiv", "lldiv",
    "rand", "random", "malloc", "calloc", "realloc", "free", "abort", "exit", "system", "qsort",
    "bsearch", "memcpy", "memmove", "memset", "memcmp", "strlen", "index", "main", "run",
))  # fmt: skip
"""Functions that the headers of C declare, and one of ours."""

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}

_EXAMPLE = "'float64[n, m], float64[m] -> float64[n]' and 'float64(float64, float64[3])'"


@dataclass(frozen=True)
class ArrayType:
    """Dtype and sizes of an argument or result.

    Attributes:
        dtype: The dtype.
        sizes: Texts of expressions of names and numbers, one for each axis.
    """

    dtype: np.dtype[Any]
    sizes: tuple[str, ...] = ()

    def shape(self, known: Mapping[str, int]) -> tuple[int, ...]:
        """The shape for sizes that are known by name."""
        return tuple(_size(ast.parse(text, mode="eval").body, known) for text in self.sizes)

    @property
    def is_value(self) -> bool:
        """Whether an argument of this type is passed by value."""
        return not self.sizes and self.dtype.kind != "c"

    @property
    def c_type(self) -> str:
        return C_TYPES[self.dtype.name]

    def __str__(self) -> str:
        return self.dtype.name + (f"[{', '.join(self.sizes)}]" if self.sizes else "")


Tree = Any
"""A pytree of `ArrayType`: one of them, or dicts and tuples."""


@dataclass(frozen=True)
class Signature:
    """Types of arguments and results.

    Attributes:
        arguments: One tree for each argument.
        results: One tree for each result.
        returns: Whether the result is the value of the function of C, and no status is.
    """

    arguments: tuple[Tree, ...]
    results: tuple[Tree, ...]
    returns: bool = False

    @property
    def names(self) -> list[str]:
        """The names of sizes, in the order in which they appear."""
        found: dict[str, None] = {}
        for leaf in tree_leaves((self.arguments, self.results)):
            for text in leaf.sizes:
                for node in ast.walk(ast.parse(text, mode="eval")):
                    if isinstance(node, ast.Name):
                        found[node.id] = None
        return list(found)

    @property
    def leaves(self) -> list[ArrayType]:
        """The types of all arrays of the arguments."""
        return tree_leaves(self.arguments)

    @property
    def outs(self) -> list[ArrayType]:
        """The types of all arrays of the results."""
        return tree_leaves(self.results)

    def __str__(self) -> str:
        arguments, results = (", ".join(map(_text, x)) for x in (self.arguments, self.results))
        return f"{results}({arguments})" if self.returns else f"{arguments} -> {results}"

    def declaration(self, name: str, parameters: Sequence[str]) -> str:
        """The function in C, with the structures that it takes.

        Args:
            name: Of the function.
            parameters: Names of its arguments.
        """
        structures: list[str] = []
        given = [
            self._parameter(tree, f"{name}_{own}", own, "const ", structures)
            for tree, own in zip(self.arguments, identifiers(parameters), strict=True)
        ]
        numbered = [f"out{k if len(self.results) > 1 else ''}" for k in range(len(self.results))]
        given += [
            self._parameter(tree, f"{name}_{own}", own, "", structures)
            for tree, own in zip(self.results, numbered, strict=True)
        ]
        sizes = [f"int64_t {size}" for size in identifiers(self.names)]
        text = f"int32_t {name}({', '.join([*sizes, *given, 'void *scratch'])});"
        return "\n".join([*structures, text])

    def prototype(self, name: str, parameters: Sequence[str]) -> str:
        """The function in C on one line, without the structures."""
        if not self.returns:
            return self.declaration(name, parameters).splitlines()[-1].removesuffix(";")
        (result,) = self.results
        given = [t.c_type if t.is_value else f"const {t.c_type} *" for t in self.arguments]
        given = ["int64_t"] * len(self.names) + given
        if result.is_value:
            return f"{result.c_type} {name}({', '.join(given)})"
        return f"void {name}({', '.join([*given, f'{result.c_type} *'])})"

    def _parameter(
        self, tree: Tree, kind: str, name: str, const: str, structures: list[str]
    ) -> str:
        """The declaration of one parameter; a structure is added to the others."""
        if isinstance(tree, ArrayType):
            if const and tree.is_value:
                return f"{tree.c_type} {name}"
            return f"{const}{tree.c_type} *{name}"
        members = "".join(f"    {line}\n" for line in _members(tree, const))
        structures.append(f"typedef struct {{\n{members}}} {kind};")
        return f"const {kind} *{name}"


def _members(tree: Tree, const: str) -> Iterator[str]:
    """The members of a structure, line by line."""
    pairs = sorted(tree.items()) if isinstance(tree, dict) else enumerate(tree)
    for key, part in pairs:
        (name,) = identifiers([key if isinstance(key, str) else f"x{key}"])
        if isinstance(part, ArrayType):
            sizes = f"  /* {part} */" if part.sizes else ""
            yield f"{const}{part.c_type} *{name};{sizes}"
        else:
            yield "struct {"
            yield from (f"    {line}" for line in _members(part, const))
            yield f"}} {name};"


def _text(tree: Tree) -> str:
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key}: {_text(x)}" for key, x in tree.items()) + "}"
    if isinstance(tree, tuple):
        return "(" + ", ".join(map(_text, tree)) + ("," if len(tree) == 1 else "") + ")"
    return str(tree)


def identifiers(names: Sequence[str], others: Collection[str] = ()) -> list[str]:
    """Names that C and C++ take for variables, all different, and none of some others."""
    found: list[str] = []
    for name in names:
        name = name if name.isascii() and name.isidentifier() else "x"
        while name in RESERVED or name in found or name in others:
            name += "_"
        found.append(name)
    return found


def parse(text: str, what: str) -> Signature:
    """Parse a signature.

    Args:
        text: The signature.
        what: What messages call it.
    Raises: ArgumentError: It is not of the form, or names no dtype.
    """
    given, arrow, results = text.partition("->")
    try:
        if arrow:
            arguments = _trees(given, what)
            return Signature(arguments, _trees(results, what))
        elements = _elements(given)
        call = elements[0] if len(elements) == 1 else None
        if not isinstance(call, ast.Call) or call.keywords:
            raise SyntaxError
    except SyntaxError:
        raise ArgumentError(
            f"{what}: a signature is written such as {_EXAMPLE}: dtypes with their sizes, "
            "which are numbers or names; {w: float64[n], b: float64} is a dict, (float64, "
            "float64[n]) a tuple."
        ) from None
    result = _tree(call.func, what)
    arguments = tuple(_tree(x, what) for x in call.args)
    if not all(isinstance(x, ArrayType) for x in (result, *arguments)):
        raise ArgumentError(
            f"{what}: dicts and tuples are structures of pointers, which functions with a status "
            "take: write 'arguments -> results'."
        )
    return Signature(arguments, (result,), returns=True)


def _trees(text: str, what: str) -> tuple[Tree, ...]:
    return tuple(_tree(x, what) for x in _elements(text))


def _elements(text: str) -> list[ast.expr]:
    """Split a text at its commas."""
    body = ast.parse(f"[{text.strip()}]", mode="eval").body
    assert isinstance(body, ast.List)
    return body.elts


def _tree(node: ast.expr, what: str) -> Tree:
    if isinstance(node, ast.Dict):
        keys = [key.id if isinstance(key, ast.Name) else None for key in node.keys]
        if not keys or None in keys:
            raise SyntaxError
        return {key: _tree(x, what) for key, x in zip(keys, node.values, strict=True)}
    if isinstance(node, ast.Tuple) and node.elts:
        return tuple(_tree(x, what) for x in node.elts)
    sizes: Sequence[ast.expr] = ()
    if isinstance(node, ast.Subscript):
        sizes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        node = node.value
    if not isinstance(node, ast.Name):
        raise SyntaxError
    if node.id not in DTYPES:
        raise ArgumentError(f"{what}: {node.id} is no dtype; there are {', '.join(DTYPES)}.")
    for size in sizes:
        _check_size(size)
    return ArrayType(DTYPES[node.id], tuple(map(ast.unparse, sizes)))


def _check_size(node: ast.expr) -> None:
    """Refuse what is no size."""
    match node:
        case ast.BinOp(left, kind, right) if type(kind) in _OPERATORS:
            _check_size(left)
            _check_size(right)
        case ast.Name():
            pass
        case ast.Constant(value) if type(value) is int:
            pass
        case _:
            raise SyntaxError


def _size(node: ast.expr, known: Mapping[str, int]) -> int:
    """The value of a size."""
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_size(node.left, known), _size(node.right, known))
    if isinstance(node, ast.Name):
        return known[node.id]
    assert isinstance(node, ast.Constant)
    return int(node.value)  # type: ignore[arg-type]
