"""Primitives of your own, which work under every transformation as those of funcgrad do.

A primitive is a class: its fields are static parameters and its methods are rules, of evaluation,
types, derivatives, batches and compilation. `check` compares the rules with each other.
"""

from funcgrad.base.namespaces import present
from funcgrad.core.avals import ShapedArray
from funcgrad.core.primitive import Linear, Primitive, is_linear
from funcgrad.extend.checking import check
from funcgrad.extend.composites import Composite, by_function, primitive
from funcgrad.extend.laws import LawError
from funcgrad.lowering import Pointwise
from funcgrad.primitives.elementwise import Unary
from funcgrad.primitives.families import Elementwise, linear_jvp, stacked_batch, zero_jvp
from funcgrad.primitives.families import extern_lower as by_callback

__all__ = [
    "Composite", "Elementwise", "LawError", "Linear", "Pointwise", "Primitive", "ShapedArray",
    "Unary", "by_callback", "by_function", "check", "is_linear", "linear_jvp", "primitive",
    "stacked_batch", "zero_jvp",
]  # fmt: skip

present(__name__)
