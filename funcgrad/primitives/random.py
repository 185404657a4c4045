"""The counter-based hash behind random numbers, and the map from uniform to normal ones.

Threefry-2x32 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011)
encrypts a 64-bit counter under a 64-bit key in 20 rounds of add, rotate, xor. What is done with
its output, the layout of keys, splits and bits, is `funcgrad.random`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.core.program import Var
from funcgrad.errors import DtypeError
from funcgrad.lowering import Form, Pointwise
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.families import Recipe, align_ranks, broadcast_shapes, zero_jvp
from funcgrad.primitives.polynomials import fused_horner, polynomial

UINT32 = np.dtype(np.uint32)
UINT64 = np.dtype(np.uint64)

_BLOCK = 16384
"""Elements that are hashed at once: the buffers stay in the second-level cache."""

_FEW = 8
"""Up to so many elements Python integers are faster than NumPy's hundred calls."""

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_MASK = 0xFFFFFFFF


def threefry_block(k0: int, k1: int, x0: int, x1: int) -> int:
    """Threefry-2x32 of one counter, by Python integers: the definition.

    Args:
        k0: High word of the key.
        k1: Low word of the key.
        x0: High word of the counter.
        x1: Low word of the counter.
    Returns: The two words of the result, the first one in the upper 32 bits.
    """
    words = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0 = x0 + k0 & _MASK
    x1 = x1 + k1 & _MASK
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            x0 = x0 + x1 & _MASK
            x1 = (x1 << bits & _MASK | x1 >> 32 - bits) ^ x0
        x0 = x0 + words[(group + 1) % 3] & _MASK
        x1 = x1 + words[(group + 2) % 3] + group + 1 & _MASK
    return x0 << 32 | x1


class _Rounds:
    """The same on arrays, in two reused buffers."""

    def __init__(self, size: int) -> None:
        self.x0 = np.empty(size, UINT32)
        self.x1 = np.empty(size, UINT32)
        self.rotated = np.empty(size, UINT32)

    def __call__(self, k0: Any, k1: Any, x0: Any, x1: Any, out: Any) -> None:
        n = len(out)
        a, b, rotated = self.x0[:n], self.x1[:n], self.rotated[:n]
        words = (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY))
        np.add(x0, k0, out=a)
        np.add(x1, k1, out=b)
        for group in range(5):
            for bits in _ROTATIONS[group % 2]:
                np.add(a, b, out=a)
                np.left_shift(b, np.uint32(bits), out=rotated)
                np.right_shift(b, np.uint32(32 - bits), out=b)
                np.bitwise_or(b, rotated, out=b)
                np.bitwise_xor(b, a, out=b)
            np.add(a, words[(group + 1) % 3], out=a)
            np.add(b, words[(group + 2) % 3] + np.uint32(group + 1), out=b)
        np.left_shift(a, np.uint64(32), out=out, dtype=UINT64)
        np.bitwise_or(out, b, out=out)


def _once(chunk: Any) -> Any:
    """One element instead of many, if they are repetitions of it."""
    return chunk[:1] if chunk.strides == (0,) else chunk


def _hash_arrays(*words: Any) -> Any:
    flow = [["readonly"]] * 4 + [["writeonly", "allocate"]]
    iterator = np.nditer(
        [*words, None],
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_flags=flow,  # type: ignore[arg-type]
        op_dtypes=[UINT32] * 4 + [UINT64],
        buffersize=_BLOCK,
    )
    rounds = _Rounds(min(_BLOCK, iterator.itersize))
    with iterator:
        for k0, k1, x0, x1, out in iterator:
            rounds(_once(k0), _once(k1), x0, x1, out)
        return iterator.operands[4]


class Threefry2x32(Primitive):
    """Threefry-2x32 of every counter ``(x0, x1)`` under the key ``(k0, k1)``, elementwise.

    ``bind(k0, k1, x0, x1)``, all uint32, with NumPy's broadcasting. The result is uint64: the
    first word of the pair in the upper half.
    """

    draws = True
    jvp = zero_jvp

    def impl(self, *words: Any) -> Any:
        shape = np.broadcast_shapes(*(np.shape(w) for w in words))
        if math.prod(shape) > _FEW:
            return _hash_arrays(*words)
        rows = [np.broadcast_to(w, shape).ravel().tolist() for w in words]
        blocks = [threefry_block(*row) for row in zip(*rows, strict=True)]
        return np.array(blocks, UINT64).reshape(shape)

    def abstract_eval(self, *avals: ShapedArray) -> ShapedArray:
        if any(a.dtype != UINT32 for a in avals):
            types = ", ".join(map(str, avals))
            raise DtypeError(f"{self.name} needs uint32 keys and counters, got {types}.")
        return shaped(broadcast_shapes(self.name, avals), UINT64)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*align_ranks(args, dims)), 0

    def lower(self, *avals: ShapedArray) -> Form:
        return Pointwise("threefry2x32({0}, {1}, {2}, {3})")


threefry2x32 = Threefry2x32()


# The inverse error function as minimax polynomials in w = -log(1 - x^2), in the centre, and in
# sqrt(w), in the tails (M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2011).
# XLA draws its normal numbers through them, rounding 1 - x^2 in the precision of x. So do we, that
# the numbers agree also in the tails, where that rounding dominates the error.
_SINGLE = (
    (
        5.0,
        2.5,
        (
            2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
            -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
        ),
    ),
    (
        math.inf,
        3.0,
        (
            -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
            -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
        ),
    ),
)  # fmt: skip
_DOUBLE = (
    (
        6.25,
        3.125,
        (
            -3.64441206401782e-21, -1.6850591381820166e-19, 1.28584807152564e-18,
            1.1157877678025181e-17, -1.3331716628546209e-16, 2.0972767875968562e-17,
            6.6376381343583238e-15, -4.0545662729752069e-14, -8.1519341976054722e-14,
            2.6335093153082323e-12, -1.2975133253453532e-11, -5.4154120542946279e-11,
            1.0512122733215323e-09, -4.1126339803469837e-09, -2.9070369957882005e-08,
            4.2347877827932404e-07, -1.3654692000834679e-06, -1.3882523362786469e-05,
            0.00018673420803405714, -0.000740702534166267, -0.0060336708714301491,
            0.24015818242558962, 1.6536545626831027,
        ),
    ),
    (
        16.0,
        3.25,
        (
            2.2137376921775787e-09, 9.0756561938885391e-08, -2.7517406297064545e-07,
            1.8239629214389228e-08, 1.5027403968909828e-06, -4.013867526981546e-06,
            2.9234449089955446e-06, 1.2475304481671779e-05, -4.7318229009055734e-05,
            6.8284851459573175e-05, 2.4031110387097894e-05, -0.00035503752036284748,
            0.0009532893797373805, -0.0016882755560235047, 0.0024914420961078508,
            -0.0037512085075692412, 0.0053709145535900636, 1.0052589676941592,
            3.0838856104922208,
        ),
    ),
    (
        math.inf,
        5.0,
        (
            -2.7109920616438573e-11, -2.5556418169965252e-10, 1.5076572693500548e-09,
            -3.789465440126737e-09, 7.61570120807834e-09, -1.496002662714924e-08,
            2.9147953450901081e-08, -6.7711997758452339e-08, 2.2900482228026655e-07,
            -9.9298272942317e-07, 4.5260625972231537e-06, -1.9681778105531671e-05,
            7.5995277030017761e-05, -0.00021503011930044477, -0.00013871931833623122,
            1.0103004648645344, 4.8499064014085844,
        ),
    ),
)  # fmt: skip


def _erfinv_block(x: Any, out: Any) -> None:
    (limit, shift, centre), *tails = _SINGLE if x.dtype == np.float32 else _DOUBLE
    w = -np.log1p(-(x * x))
    np.multiply(polynomial(centre, w - x.dtype.type(shift)), x, out=out)
    for upper, shift, coefficients in tails:
        (places,) = np.nonzero((w >= limit) & (w < upper))
        if places.size:
            root = np.sqrt(w[places]) - x.dtype.type(shift)
            out[places] = polynomial(coefficients, root) * x[places]
        limit = upper
    ends = np.abs(x) == 1
    if ends.any():
        out[ends] = x[ends] * np.inf


def _erfinv(x: Any) -> Any:
    x = np.asarray(x, order="C")  # ascontiguousarray would make scalars vectors
    out = np.empty_like(x)
    source, target = x.reshape(-1), out.reshape(-1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        for start in range(0, x.size, _BLOCK):
            _erfinv_block(source[start : start + _BLOCK], target[start : start + _BLOCK])
    return out


_POLYNOMIALS = {
    np.dtype(kind): [fused_horner(coefficients) for *_, coefficients in table]
    for kind, table in ((np.float32, _SINGLE), (np.float64, _DOUBLE))
}


def _erfinv_parts(recipe: Recipe, x: Var) -> Any:
    """The same, element by element, within rounding.

    The polynomials ask for the logarithm to an absolute precision, to which ``1 - x^2`` may be
    rounded: not at all in the tails, where it is the rounding of ``x^2`` that matters.
    """
    dtype = x.aval.dtype
    (limit, shift, _), *tails = _SINGLE if dtype == np.float32 else _DOUBLE
    centre, *polynomials = _POLYNOMIALS[dtype]
    w = recipe(p.neg, recipe(p.log, recipe(p.sub, dtype.type(1), recipe(p.mul, x, x))))
    out = recipe(p.mul, recipe(centre, recipe(p.sub, w, dtype.type(shift))), x)
    root = recipe(p.sqrt, w)
    for (upper, shift, _), evaluate in zip(tails, polynomials, strict=True):
        tail = recipe(p.mul, recipe(evaluate, recipe(p.sub, root, dtype.type(shift))), x)
        is_high, is_low = (
            recipe(p.less_equal, dtype.type(limit), w),
            recipe(p.less, w, dtype.type(upper)),
        )
        out = recipe(p.select, recipe(p.bitwise_and, is_high, is_low), tail, out)
        limit = upper
    is_end = recipe(p.equal, recipe(p.absolute, x), dtype.type(1))
    return recipe(p.select, is_end, recipe(p.mul, x, dtype.type(np.inf)), out)


erfinv_giles = p.Unary(
    "erfinv_giles",
    _erfinv,
    lambda x, y: 0.5 * math.sqrt(math.pi) * p.exp.bind(y * y),
    "erfinv_giles({0})",
    kinds="f",
    code_kinds="",
    parts=_erfinv_parts,
)
"""Inverse error function, to the precision (and with the rounding errors) of XLA's."""
