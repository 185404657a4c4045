"""Words of kernels: how each is typed, and which LLVM instructions it becomes.

A word is a name that a kernel may call: an intrinsic (``exp``, ``f32``, ``add``, which is also what
``+`` stands for), whose arity and kinds are those of the table, or access to memory (``load``).
It is asked twice: `Word.sign` gives the signature for argument types, `Word.emission` writes the
instructions. There is one rule of promotion, NumPy's (NEP 50), in which Python literals are weak:
unlike in C or in Numba, ``i32 + i32`` stays ``i32`` and ``f32 * 2.0`` stays ``f32``.

Every word of scalars is one of vectors, too: among vectors of as many elements, a scalar stands for
a vector of itself. Vectors come from memory, by an index of lanes (``lanes``, ``first_lanes``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.compiler.native import types
from funcgrad.compiler.native.complexes import KINDS

_DTYPES = {
    t: np.dtype("bool" if name == "b1" else f"{name[0]}{int(name[1:]) // 8}")
    for name, t in types.SCALARS.items()
}
_BY_DTYPE = {dtype: t for t, dtype in _DTYPES.items()}


def promote(args: Sequence[Any]) -> Any:
    """The common type of scalars, as in NumPy."""
    strongs = {types.strong(t) for t in args if not types.is_weak(t)}
    if not strongs <= KINDS.keys():
        raise types.TypingError(f"no common scalar type of {', '.join(map(str, args))}")
    if not strongs:
        return types.FLOAT64 if types.WEAK_FLOAT in args else types.INT64
    common = strongs.pop()
    if strongs:
        common = _BY_DTYPE[np.result_type(_DTYPES[common], *(_DTYPES[t] for t in strongs))]
    if types.WEAK_FLOAT in args and KINDS[common] != "f":
        return types.FLOAT64
    if common == types.BOOL and any(types.is_weak(t) for t in args):
        return types.INT64
    return common


class Word:
    """One word: ``rule(arg types) -> signature``, ``emission(builder, signature, values)``.

    Attributes:
        is_pure: Whether it neither reads nor writes memory, so that it can be computed at any time.
        is_mapped: Whether vectors are a matter of each element, and its rule knows scalars only.
    """

    def __init__(
        self,
        name: str,
        rule: Callable[[Any], types.Signature],
        emission: Callable[..., Any],
        is_pure: bool = True,
        is_mapped: bool = True,
    ) -> None:
        self.name = name
        self.rule = rule
        self.emission = emission
        self.is_pure = is_pure
        self.is_mapped = is_mapped
        self.signatures: dict[tuple[Any, ...], types.Signature] = {}

    def sign(self, args: tuple[Any, ...]) -> types.Signature:
        """The signature for arguments of these types.

        Raises: TypingError: It takes no such arguments.
        """
        found = self.signatures.get(args)
        if found is None:
            found = self.signatures[args] = self._signature(args)
        return found

    def _signature(self, args: tuple[Any, ...]) -> types.Signature:
        counts = {t.count for t in args if isinstance(t, types.Vector | types.Lanes)}
        if not counts or not self.is_mapped:
            return self.rule(args)
        expect(len(counts) == 1, "vectors must be of one length", args)
        (count,) = counts
        elements = (
            types.INT64 if isinstance(t, types.Lanes) else types.element_of(t) for t in args
        )
        scalars = self.rule(tuple(elements))
        return types.signature(
            types.vector(scalars.return_type, count),
            *(types.vector(t, count) for t in scalars.args),
        )


def expect(condition: bool, what: str, args: Sequence[Any]) -> None:
    """Refuse arguments of a word unless a condition holds.

    Raises: TypingError: It does not.
    """
    if not condition:
        raise types.TypingError(f"{what}, got {', '.join(map(str, args))}")


def literal_of(t: Any, args: Any) -> int:
    """Return the value of an argument that is a literal."""
    expect(isinstance(t, types.Literal), "the number of lanes must be a literal int", args)
    return int(t.literal_value)


WORDS: dict[str, Word] = {}


def define(
    name: str, rule: Any, is_pure: bool = True, is_mapped: bool = True
) -> Callable[[Any], Any]:
    """Register the decorated emission as word ``name``."""

    def register(emission: Callable[..., Any]) -> Callable[..., Any]:
        WORDS[name] = Word(name, rule, emission, is_pure, is_mapped)
        return emission

    return register
