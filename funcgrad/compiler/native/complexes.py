"""Complex numbers while LLVM instructions are written, and conversions between all types."""

from __future__ import annotations

from typing import Any

from funcgrad.compiler.native import elementary, types
from funcgrad.compiler.native.llvm import F32, F64, I1, I8, I64, POINTER, Type, integer, vector_of
from funcgrad.compiler.native.scalars import Builder, Emitted

KINDS: dict[Any, str] = {t: "f" if name[0] == "c" else name[0] for name, t in types.SCALARS.items()}
"""For every scalar type its kind; for a complex one, that of its parts."""

_LLVM: dict[Any, Type] = {
    t: I1 if t is types.BOOL
    else integer(int(name[1:])) if name[0] in "iu"
    else F32 if name in ("f32", "c64")
    else F64
    for name, t in types.SCALARS.items()
}  # fmt: skip


def llvm_type(t: Any) -> Type:
    """The LLVM type of a value; of a complex one, that of a part."""
    if t in _LLVM:
        return _LLVM[t]
    if isinstance(t, types.Vector):
        return vector_of(_LLVM[t.element], t.count)
    if t is types.WEAK_FLOAT:
        return F64
    return POINTER if isinstance(t, types.Pointer | types.Words) else I64  # that of a literal


def memory_type(t: Any) -> Type:
    """The LLVM type of an array element: parts of complex ones, bytes for bools."""
    return I8 if t is types.BOOL else _LLVM[t]


class Complex:
    """A complex scalar, or a vector of them, as its two parts."""

    __slots__ = ("im", "re")

    def __init__(self, re: Emitted, im: Emitted) -> None:
        self.re = re
        self.im = im

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Complex) -> Complex:
        return Complex(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )

    def __truediv__(self, other: Complex) -> Complex:
        # Smith's method: divide by the larger part of the divisor, without overflow between.
        a, b = other.re, other.im
        real_is_larger = a.absolute() >= b.absolute()
        large, small = real_is_larger.select(a, b), real_is_larger.select(b, a)
        ratio = small / large
        scale = large + small * ratio
        p, q = self.re, self.im
        re = real_is_larger.select(p + q * ratio, p * ratio + q)
        im = real_is_larger.select(q - p * ratio, q * ratio - p)
        # By zero both parts are divided without regard to its sign, as in NumPy.
        is_zero = (large == 0) & (small == 0)
        scale = is_zero.select(large.absolute(), scale)
        re, im = is_zero.select(p, re) / scale, is_zero.select(q, im) / scale
        return Complex(re, im)

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)

    def __eq__(self, other: Any) -> Emitted:  # type: ignore[override]
        return (self.re == other.re) & (self.im == other.im)

    def __ne__(self, other: Any) -> Emitted:  # type: ignore[override]
        return (self.re != other.re) | (self.im != other.im)

    __hash__ = None  # type: ignore[assignment]

    def absolute(self) -> Emitted:
        """The magnitude."""
        return elementary.emit("hypot", self.re, self.im)

    @property
    def lanes(self) -> int:
        """Elements of a vector; 0 of a scalar."""
        return self.re.lanes

    def splat(self, lanes: int) -> Complex:
        """A vector of this scalar."""
        return Complex(self.re.splat(lanes), self.im.splat(lanes))

    def half(self, upper: bool) -> Complex:
        """The lower or the upper half of a vector."""
        return Complex(self.re.half(upper), self.im.half(upper))

    def across(self, name: str) -> Complex:
        """All elements of a vector folded into one, by what is one of the parts."""
        return Complex(self.re.across(name), self.im.across(name))


def convert(value: Any, t: Any) -> Any:
    """A scalar or vector converted to type ``t``; a scalar fills a vector."""
    if isinstance(t, types.Vector):
        value = convert(value, t.element)
        return value if value.lanes else value.splat(t.count)
    if isinstance(value, Complex):
        if t not in types.PARTS:
            return convert(value.re, t)
        return Complex(convert(value.re, types.PARTS[t]), convert(value.im, types.PARTS[t]))
    if t in types.PARTS:
        part = convert(value, types.PARTS[t])
        return Complex(part, part.constant(0))
    return value.cast(_LLVM[t], KINDS[t])


def constant(builder: Builder, t: Any, number: Any) -> Any:
    """The constant ``number`` of type ``t``, of a scalar or of a vector."""
    element, type = types.element_of(t), llvm_type(t)
    if element in types.PARTS:
        parts = float(number.real), float(number.imag)
        return Complex(*(builder.number(type, part, "f") for part in parts))
    kind = KINDS[element]
    return builder.number(type, float(number) if kind == "f" else int(number), kind)


def cast(builder: Builder, value: Any, source: Any, target: Any) -> Any:
    """A value of type ``source`` as one of type ``target``; weak ones may be Python's numbers."""
    if source is target and isinstance(value, Emitted):
        return value
    if isinstance(target, types.Literal):
        return None
    if isinstance(source, types.Literal):
        value = source.literal_value
    if isinstance(value, int | float):
        return constant(builder, types.FLOAT64 if target is types.WEAK_FLOAT else target, value)
    if source is target:
        return value
    if isinstance(source, types.Lanes):
        return value.numbers(source.count)
    return convert(value, target)
