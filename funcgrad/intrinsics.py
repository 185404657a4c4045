"""The intrinsics: what scalar expressions of forms are made of, and what each of them costs.

One table, which everything else reads: the typing of kernels takes arity and kinds of dtypes from
it, the elementary functions how they become code, fusion and the choice of checkpoints the cost.
`Expression` is a template of a form, parsed once.

A template is a Python expression over ``{0}``, ``{1}``, ... of operators and calls of intrinsics.
It contains no text from user data.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from funcgrad.base.forking import cached_property
from funcgrad.base.records import dataclass


@dataclass(frozen=True)
class Intrinsic:
    """A function of scalars.

    Attributes:
        name: What expressions call it.
        arity: Number of arguments.
        kinds: Kinds of dtypes that it takes: b, i, u, f, c.
        cost: Additions that take about as long, when a loop around it is vectorised.
        code: Of floats: ``""`` for instructions that `native.numbers` writes, as
            for other kinds; ``"llvm"`` for an intrinsic of LLVM of the same name; ``"formula"`` for
            one of `native.vecmath`; or ``"libm"`` for a call.
        libm: Where there is a formula, when code on single numbers calls libm instead, whose
            branches and tables are sooner there: ``"never"``, ``"few"`` (for few numbers) or
            ``"always"``.
        result: What it gives: a value of the ``"same"`` type, a ``"bool"``, or the ``"real"`` type
            of the parts of a complex one.
        across: The operation of LLVM that folds the elements of a vector by it, if one does.
        is_by_part: Whether folding complex numbers by it is folding their parts.
    """

    name: str
    arity: int
    kinds: str
    cost: int
    code: str = ""
    libm: str = "never"
    result: str = "same"
    across: str = ""
    is_by_part: bool = False


EXPENSIVE = 4
"""Cost from which a value is kept rather than computed a second time."""


def _table() -> Iterator[Intrinsic]:
    for name, kinds in (
        ("add", "biufc"), ("subtract", "iufc"), ("multiply", "biufc"), ("bitwise_xor", "biu"),
        ("left_shift", "iu"), ("right_shift", "iu"),
    ):  # fmt: skip
        yield Intrinsic(name, 2, kinds, 1)
    for name, kinds in (
        ("equal", "biufc"), ("not_equal", "biufc"), ("less", "biuf"), ("less_equal", "biuf"),
        ("greater", "biuf"), ("greater_equal", "biuf"),
    ):  # fmt: skip
        yield Intrinsic(name, 2, kinds, 1, result="bool")
    for name, across in (("maximum", "max"), ("minimum", "min")):
        yield Intrinsic(name, 2, "biuf", 1, "llvm", across=across)
    for name, kinds, across in (
        ("bitwise_and", "biu", "and"),
        ("bitwise_or", "biu", "or"),
        ("radd", "biufc", "add"),
        ("rmul", "biufc", "mul"),
    ):
        yield Intrinsic(name, 2, kinds, 1, across=across, is_by_part=across == "add")
    for name, kinds in (
        ("negative", "iufc"), ("positive", "iufc"), ("bitwise_not", "biu"), ("logical_not", "b"),
        ("sign", "iufc"), ("conj", "iufc"),
    ):  # fmt: skip
        yield Intrinsic(name, 1, kinds, 1)
    for name in ("abs", "real", "imag"):
        yield Intrinsic(name, 1, "iufc", 1, result="real")
    for name, kinds in (("isnan", "fc"), ("isinf", "fc"), ("isfinite", "fc"), ("signbit", "f")):
        yield Intrinsic(name, 1, kinds, 1, result="bool")
    yield Intrinsic("divide", 2, "fc", 2)
    yield Intrinsic("floor_divide", 2, "iuf", 8)
    yield Intrinsic("remainder", 2, "iuf", 8)
    yield Intrinsic("fmod", 2, "iuf", 8, "formula")
    yield Intrinsic("select", 3, "biufc", 1)
    yield Intrinsic("select_unpredictable", 3, "biufc", 1)
    yield Intrinsic("popcount", 1, "iu", 4)
    yield Intrinsic("gcd", 2, "iu", 60)
    yield Intrinsic("fma", 3, "f", 1, "llvm")
    yield Intrinsic("copysign", 2, "f", 1, "llvm")
    yield Intrinsic("nextafter", 2, "f", 8, "libm")
    for name in ("floor", "ceil", "trunc", "rint"):
        yield Intrinsic(name, 1, "f", 1, "llvm")
    yield Intrinsic("sqrt", 1, "f", 4, "llvm")
    for name, cost, libm in (
        ("exp", 8, "few"), ("exp2", 8, "few"), ("expm1", 12, "never"), ("log", 10, "few"),
        ("log2", 10, "few"), ("log10", 10, "few"), ("log1p", 12, "few"), ("cbrt", 12, "never"),
        ("sin", 12, "always"), ("cos", 12, "always"), ("tan", 16, "always"), ("asin", 12, "few"),
        ("acos", 12, "few"), ("atan", 12, "few"), ("sinh", 12, "never"), ("cosh", 12, "never"),
        ("tanh", 12, "never"), ("asinh", 16, "few"), ("acosh", 16, "few"), ("atanh", 16, "never"),
        ("erf", 16, "always"), ("erfc", 20, "always"), ("expit", 10, "never"),
    ):  # fmt: skip
        yield Intrinsic(name, 1, "f", cost, "formula", libm)
    for name, cost in (("exp", 6), ("expm1", 6), ("log", 8), ("log1p", 8)):
        yield Intrinsic(SHORT + name, 1, "f", cost, "formula")
    yield Intrinsic("pow", 2, "iuf", 24, "formula", "always")
    yield Intrinsic("atan2", 2, "f", 16, "formula", "few")
    yield Intrinsic("hypot", 2, "f", 6, "formula")
    for name, cost in (("lgamma", 60), ("digamma", 60), ("trigamma", 40)):
        yield Intrinsic(name, 1, "f", cost, "formula")
    yield Intrinsic("threefry2x32", 4, "u", 60)
    for name in CASTS:
        yield Intrinsic(name, 1, "biufc", 1)
    for a, b in (("f32", "i32"), ("f32", "u32"), ("f64", "i64"), ("f64", "u64")):
        yield Intrinsic(f"bitcast_{a}_{b}", 1, a[0], 0)
        yield Intrinsic(f"bitcast_{b}_{a}", 1, b[0], 0)


CASTS = (
    "b1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "c64", "c128",
)  # fmt: skip
"""Conversions to a dtype, by its name; those to complex dtypes also take two parts."""

SHORT = "short_"
"""Begin of the names of functions of double precision whose values are as exact as those of single
precision: parts of formulas whose results are rounded to that."""

INTRINSICS: dict[str, Intrinsic] = {x.name: x for x in _table()}
"""The table, by name."""

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.FloorDiv: "floor_divide", ast.Mod: "remainder", ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor", ast.LShift: "left_shift",
    ast.RShift: "right_shift", ast.USub: "negative", ast.UAdd: "positive",
    ast.Invert: "bitwise_not", ast.Not: "logical_not", ast.Eq: "equal", ast.NotEq: "not_equal",
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal",
}  # fmt: skip
"""The intrinsic that an operator stands for."""


@dataclass(frozen=True)
class Expression:
    """A parsed template.

    Attributes:
        template: Its text.
        uses: The intrinsics in it, with repetitions, in the order of their text.
        calls: Where the template names intrinsics: begin and end.
        arity: Number of arguments: one more than the largest that occurs.
    """

    template: str
    uses: tuple[Intrinsic, ...]
    calls: tuple[tuple[int, int], ...]
    arity: int

    @cached_property
    def cost(self) -> int:
        """Additions that take about as long."""
        return sum(x.cost for x in self.uses)

    @cached_property
    def is_expensive(self) -> bool:
        """Whether storing its value takes less time than computing it again."""
        return any(x.cost >= EXPENSIVE for x in self.uses)

    @property
    def is_copy(self) -> bool:
        """Whether its value is its only argument."""
        return self.template == "{0}"

    @property
    def is_sum(self) -> bool:
        """Whether it adds its two arguments."""
        return self.arity == 2 and self.uses == (INTRINSICS["add"],)

    def written(self, names: Sequence[str]) -> str:
        """Return its text with variables for the arguments."""
        return self.template.format(*names)

    def renamed(self, new_name: Callable[[Intrinsic], str]) -> str:
        """Return its template with other names for the intrinsics it calls."""
        text, end = "", 0
        for a, b in self.calls:
            text += self.template[end:a] + new_name(INTRINSICS[self.template[a:b]])
            end = b
        return text + self.template[end:]


@lru_cache(4096)
def expression(template: str) -> Expression:
    """A template, parsed.

    Args: template: Its text, such as ``"exp({0}) * {1}"``.
    Raises: ValueError: It is not made of operators and intrinsics.
    """
    # To Python, an argument ``{0}`` is a set of one number: the text can be parsed as it stands.
    uses: list[Intrinsic] = []
    calls: list[tuple[int, int]] = []
    arity = 0
    for node in ast.walk(ast.parse(template, mode="eval")):
        if isinstance(node, ast.Call):
            name = node.func
            if not isinstance(name, ast.Name) or name.id not in INTRINSICS:
                raise ValueError(
                    f"{ast.unparse(name)!r}, in the expression {template!r} of a primitive, is no "
                    "function that kernels have. docs/compiler.md lists them under 'The vocabulary "
                    "of kernels'; other functions are compiled by extend.by_function or "
                    "extend.by_callback."
                )
            uses.append(INTRINSICS[name.id])
            calls.append((name.col_offset, name.col_offset + len(name.id)))
        elif isinstance(node, ast.BinOp | ast.UnaryOp):
            uses.append(INTRINSICS[OPERATORS[type(node.op)]])
        elif isinstance(node, ast.Compare):
            uses += [INTRINSICS[OPERATORS[type(op)]] for op in node.ops]
        elif isinstance(node, ast.Set):
            (index,) = (x.value for x in node.elts if isinstance(x, ast.Constant))
            arity = max(arity, operator.index(index) + 1)  # type: ignore[arg-type]
    return Expression(template, tuple(uses), tuple(sorted(calls)), arity)


_RECIPROCAL = "(1.0 / ({0} + 0.0))"


def _of_reciprocal(product: str) -> str:
    """A power with a half in its exponent; that of a negative number is nan or, at infinity, 0.

    The reciprocal of a huge number may have been flushed to zero, whose root is no nan.
    """
    return f"select({{0}} < 0, select(isinf({{0}}), 0.0, ({{0}} - {{0}}) / 0.0), {product})"


_POWERS = {
    -2.5: _of_reciprocal(f"({_RECIPROCAL} * {_RECIPROCAL}) * sqrt({_RECIPROCAL})"),
    -2.0: "(1.0 / {0}) * (1.0 / {0})",
    -1.5: _of_reciprocal(f"{_RECIPROCAL} * sqrt({_RECIPROCAL})"),
    -1.0: "1.0 / {0}",
    # Not the root of the reciprocal, which overflows at subnormal numbers.
    -0.5: "select(isinf({0}), 0.0, 1.0 / sqrt({0} + 0.0))",
    0.5: "select(isinf({0}), abs({0}), sqrt({0}) + 0.0)",
    1.0: "{0}",
    1.5: "select(isinf({0}), abs({0}), {0} * sqrt({0}))",
    2.0: "{0} * {0}",
    3.0: "{0} * {0} * {0}",
}
"""Formulas of powers, infinite or zero where a partial product overflows or vanishes."""


_BY_BITS = {
    "floor_divide({0}, {1})": "right_shift({0}, {shift})",
    "remainder({0}, {1})": "bitwise_and({0}, {mask})",
}
"""Integer quotients, rounded down, and remainders, where the divisor is a power of two."""


def _unchanged(template: str, x: float) -> str:
    return template


def _quotient(template: str, x: float) -> str:
    """The quotient by a constant, which by a power of two is a product."""
    if x == 1:
        return "{0}"
    is_exact = math.frexp(x)[0] == 0.5 and 2.0**-100 < x < 2.0**100
    return template.replace("/ {1}", f"* {1 / x!r}") if is_exact else template


def _tangent(by: str) -> Callable[[str, float], str]:
    """The product or quotient of a tangent and a constant: zero without computing it."""
    return lambda template, x: _IDENTITIES[by, 1](by, x) if 0 < x < math.inf else template


_PRODUCT, _QUOTIENT, _BOTH = "{0} * {1}", "{0} / {1}", "{0} & {1}"
SCALED, UNSCALED = (f"select({{0}} == 0, {{0}}, {x})" for x in (_PRODUCT, _QUOTIENT))
_IDENTITIES: dict[tuple[str, int], Callable[[str, float], str]] = {
    (_PRODUCT, 0): lambda template, x: "{1}" if x == 1 else template,
    (_PRODUCT, 1): lambda template, x: "{0}" if x == 1 else template,
    (_BOTH, 0): lambda template, x: "{1}" if x == 1 else template,
    (_BOTH, 1): lambda template, x: "{0}" if x == 1 else template,
    (_QUOTIENT, 1): _quotient,
    ("{0} - {1}", 1): lambda template, x: "{0}" if x == 0 and math.copysign(1, x) > 0 else template,
    (SCALED, 0): lambda template, x: (
        _IDENTITIES[_PRODUCT, 0](_PRODUCT, x) if abs(x) > 0 else template
    ),
    (SCALED, 1): _tangent(_PRODUCT),
    (UNSCALED, 1): _tangent(_QUOTIENT),
}
"""Templates whose argument of some number is a constant, and functions of that for others."""

_MAX_BITS = 1 << 62
"""The largest of these powers whose mask is a literal of every type that has it."""


def with_constants(template: str, scalars: Sequence[Any]) -> str:
    """A template that says the same where some arguments are known, and costs less.

    Factors and divisors of one, differences from zero and flags that are set are no operations;
    quotients by powers of two are products. Tangents times finite constants are zero where the
    tangents are. All that is exact, to the sign of a zero. Powers with small exponents are products
    and square roots. Those of floats are exact at zeros and infinities of both signs as `pow` is,
    and within two units in the last place elsewhere. Integers are divided by powers of two by their
    bits, exactly: a shift to the right rounds down, as the quotient does.

    Args:
        template: The template.
        scalars: What is known of every argument: a scalar, or ``None``.
    Returns: A template over the same arguments, of which it may use fewer.
    """
    if len(scalars) != 2:
        return template
    for k, number in enumerate(scalars):
        if number is not None and number.dtype.kind in "fb":
            template = _IDENTITIES.get((template, k), _unchanged)(template, float(number))
    known = scalars[1]
    if known is None:
        return template
    if template == "pow({0}, {1})" and known.dtype.kind == "f":
        return _POWERS.get(float(known), template)
    if template == "pow({0}, {1})":
        return product_of("{0}", int(known)) if 0 < int(known) <= MOST_FACTORS else template
    if template in _BY_BITS and known.dtype.kind in "iu":
        divisor = int(known)
        if 0 < divisor <= _MAX_BITS and divisor & (divisor - 1) == 0:
            shift = divisor.bit_length() - 1
            return _BY_BITS[template].format("{0}", shift=shift, mask=divisor - 1)
    return template


MOST_FACTORS = 8
"""Powers with larger exponents are computed by the general function, which rounds less often."""


def product_of(factor: str, n: int) -> str:
    """The expression of a power, ``n > 0``, by squares."""
    if n == 1:
        return factor
    root = product_of(factor, n // 2)
    return f"({root} * {root})" + (f" * {factor}" if n % 2 else "")
