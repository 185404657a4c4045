"""Summaries and examples of elementary functions: arguments, and what Python shows.

`funcgrad.numpy` and `funcgrad.lax` document their functions by them, under NumPy's names.
"""

from __future__ import annotations

TEXTS: dict[str, tuple[str, str]] = {
    "add": ("Sum of two operands.", "3.0, 4.0 -> 7.0"),
    "subtract": ("Difference of two operands.", "3.0, 4.0 -> -1.0"),
    "multiply": ("Product of two operands.", "3.0, 4.0 -> 12.0"),
    "divide": ("Quotient of two operands.", "3.0, 4.0 -> 0.75"),
    "floor_divide": ("Quotient, rounded down.", "np.array([-7.0, 7.0]), 3.0 -> array([-3.,  2.])"),
    "remainder": (
        "Remainder with the sign of the divisor.",
        "np.array([-7.0, 7.0]), 3.0 -> array([2., 1.])",
    ),
    "fmod": (
        "Remainder with the sign of the dividend.",
        "np.array([-7.0, 7.0]), 3.0 -> array([-1.,  1.])",
    ),
    "negative": (
        "Negative of each element.",
        "np.array([-1.5, 0.5, 2.5]) -> array([ 1.5, -0.5, -2.5])",
    ),
    "positive": (
        "Each element as it is.",
        "np.array([-1.5, 0.5, 2.5]) -> array([-1.5,  0.5,  2.5])",
    ),
    "absolute": (
        "Absolute value of each element.",
        "np.array([-1.5, 0.5, 2.5]) -> array([1.5, 0.5, 2.5])",
    ),
    "fabs": (
        "Absolute value, in floating point.",
        "np.array([-1.5, 0.5, 2.5]) -> array([1.5, 0.5, 2.5])",
    ),
    "sign": (
        "Sign of each element: -1, 0 or 1.",
        "np.array([-1.5, 0.5, 2.5]) -> array([-1.,  1.,  1.])",
    ),
    "maximum": (
        "Greater one of two operands; nan if one is.",
        "np.array([1.0, 5.0]), np.array([3.0, 2.0]) -> array([3., 5.])",
    ),
    "minimum": (
        "Smaller one of two operands; nan if one is.",
        "np.array([1.0, 5.0]), np.array([3.0, 2.0]) -> array([1., 2.])",
    ),
    "square": ("Square of each element.", "2.0 -> np.float64(4.0)"),
    "reciprocal": ("1 / x.", "2.0 -> np.float64(0.5)"),
    "fmax": (
        "Greater one of two operands; nan only if both are.",
        "np.array([1.0, 5.0]), np.array([3.0, 2.0]) -> array([3., 5.])",
    ),
    "fmin": (
        "Smaller one of two operands; nan only if both are.",
        "np.array([1.0, 5.0]), np.array([3.0, 2.0]) -> array([1., 2.])",
    ),
    "power": ("First operand to the power of the second one.", "2.0, 3.0 -> 8.0"),
    "float_power": ("Powers in at least double precision.", "2.0, 3.0 -> np.float64(8.0)"),
    "sqrt": ("Square root.", "2.0 -> np.float64(1.4142135623730951)"),
    "cbrt": ("Real cube root.", "8.0 -> np.float64(2.0)"),
    "exp": ("Exponential function.", "0.5 -> np.float64(1.6487212707001282)"),
    "exp2": ("Powers of 2.", "2.0 -> np.float64(4.0)"),
    "expm1": ("exp(x) - 1, accurate near 0.", "0.5 -> np.float64(0.6487212707001282)"),
    "log": ("Natural logarithm.", "10.0 -> np.float64(2.302585092994046)"),
    "log2": ("Logarithm to base 2.", "8.0 -> np.float64(3.0)"),
    "log10": ("Logarithm to base 10.", "1000.0 -> np.float64(3.0)"),
    "log1p": ("log(1 + x), accurate near 0.", "0.5 -> np.float64(0.4054651081081644)"),
    "sin": ("Sine of angles in radians.", "0.5 -> np.float64(0.479425538604203)"),
    "cos": ("Cosine of angles in radians.", "0.5 -> np.float64(0.8775825618903728)"),
    "tan": ("Tangent of angles in radians.", "0.5 -> np.float64(0.5463024898437905)"),
    "arcsin": ("Inverse sine, in radians.", "0.5 -> np.float64(0.5235987755982989)"),
    "arccos": ("Inverse cosine, in radians.", "0.5 -> np.float64(1.0471975511965976)"),
    "arctan": ("Inverse tangent, in radians.", "0.5 -> np.float64(0.4636476090008061)"),
    "arctan2": (
        "Angle of the point (x2, x1), in radians.",
        "1.0, 2.0 -> np.float64(0.4636476090008061)",
    ),
    "sinh": ("Hyperbolic sine.", "0.5 -> np.float64(0.5210953054937474)"),
    "cosh": ("Hyperbolic cosine.", "0.5 -> np.float64(1.1276259652063807)"),
    "tanh": ("Hyperbolic tangent.", "0.5 -> np.float64(0.46211715726000974)"),
    "arcsinh": ("Inverse hyperbolic sine.", "0.5 -> np.float64(0.48121182505960347)"),
    "arccosh": ("Inverse hyperbolic cosine.", "2.0 -> np.float64(1.3169578969248168)"),
    "arctanh": ("Inverse hyperbolic tangent.", "0.5 -> np.float64(0.5493061443340549)"),
    "hypot": ("Length of the hypotenuse of a right triangle.", "3.0, 4.0 -> np.float64(5.0)"),
    "copysign": (
        "Absolute value of the first operand with the sign of the second one.",
        "3.0, -4.0 -> np.float64(-3.0)",
    ),
    "deg2rad": ("Degrees converted to radians.", "180.0 -> np.float64(3.141592653589793)"),
    "rad2deg": ("Radians converted to degrees.", "np.pi -> np.float64(180.0)"),
    "logaddexp": (
        "log(exp(x1) + exp(x2)), without overflow.",
        "np.array([0.0, 1.0]), 1.0 -> array([1.31326169, 1.69314718])",
    ),
    "logaddexp2": (
        "log2(2**x1 + 2**x2), without overflow.",
        "np.array([0.0, 1.0]), 1.0 -> array([1.5849625, 2.       ])",
    ),
    "heaviside": (
        "Step function: 0 below zero, 1 above, a given value at zero.",
        "np.array([-1.0, 0.0, 1.0]), 0.5 -> array([0. , 0.5, 1. ])",
    ),
    "equal": (
        "Whether two operands are equal.",
        "np.array([1.0, 5.0]), np.array([3.0, 2.0]) -> array([False, False])",
    ),
    "not_equal": (
        "Whether two operands differ.",
        "np.array([1.0, 5.0]), np.array([3.0, 2.0]) -> array([ True,  True])",
    ),
    "less": (
        "Whether the first operand is smaller.",
        "np.array([1.0, 5.0]), np.array([3.0, 2.0]) -> array([ True, False])",
    ),
    "less_equal": (
        "Whether the first operand is smaller or equal.",
        "np.array([1.0, 5.0]), np.array([3.0, 2.0]) -> array([ True, False])",
    ),
    "greater": (
        "Whether the first operand is greater.",
        "np.array([1.0, 5.0]), np.array([3.0, 2.0]) -> array([False,  True])",
    ),
    "greater_equal": (
        "Whether the first operand is greater or equal.",
        "np.array([1.0, 5.0]), np.array([3.0, 2.0]) -> array([False,  True])",
    ),
    "logical_and": (
        "Whether both operands are true.",
        "np.array([True, False]), np.array([True, True]) -> array([ True, False])",
    ),
    "logical_or": (
        "Whether one of the operands is true.",
        "np.array([True, False]), np.array([True, True]) -> array([ True,  True])",
    ),
    "logical_xor": (
        "Whether exactly one of the operands is true.",
        "np.array([True, False]), np.array([True, True]) -> array([False,  True])",
    ),
    "logical_not": (
        "Whether an element is not true.",
        "np.array([True, False]) -> array([False,  True])",
    ),
    "bitwise_and": ("Bitwise and of two operands.", "6, 3 -> np.int64(2)"),
    "bitwise_or": ("Bitwise or of two operands.", "6, 3 -> np.int64(7)"),
    "bitwise_xor": ("Bitwise exclusive or of two operands.", "6, 3 -> np.int64(5)"),
    "invert": ("Bitwise complement.", "np.array([0, 5]) -> array([-1, -6])"),
    "left_shift": ("Bits shifted to the left.", "3, 2 -> np.int64(12)"),
    "right_shift": ("Bits shifted to the right.", "12, 2 -> np.int64(3)"),
    "floor": (
        "Greatest integer that is not greater.",
        "np.array([-1.5, 0.5, 2.5]) -> array([-2.,  0.,  2.])",
    ),
    "ceil": (
        "Smallest integer that is not smaller.",
        "np.array([-1.5, 0.5, 2.5]) -> array([-1.,  1.,  3.])",
    ),
    "trunc": (
        "Nearest integer towards zero.",
        "np.array([-1.5, 0.5, 2.5]) -> array([-1.,  0.,  2.])",
    ),
    "rint": (
        "Nearest integer, the even one of two.",
        "np.array([-1.5, 0.5, 2.5]) -> array([-2.,  0.,  2.])",
    ),
    "isnan": (
        "Whether each element is nan.",
        "np.array([1.0, np.inf, np.nan]) -> array([False, False,  True])",
    ),
    "isinf": (
        "Whether each element is infinite.",
        "np.array([1.0, np.inf, np.nan]) -> array([False,  True, False])",
    ),
    "isfinite": (
        "Whether each element is finite.",
        "np.array([1.0, np.inf, np.nan]) -> array([ True, False, False])",
    ),
    "signbit": (
        "Whether the sign bit is set.",
        "np.array([-1.5, 0.5, 2.5]) -> array([ True, False, False])",
    ),
    "conjugate": (
        "Complex conjugate of each element.",
        "np.array([1.0 - 1.0j, 2.0 + 3.0j]) -> array([1.+1.j, 2.-3.j])",
    ),
    "nextafter": (
        "Next floating-point number in a direction.",
        "1.0, 2.0 -> np.float64(1.0000000000000002)",
    ),
}
"""By the name of the ufunc."""
