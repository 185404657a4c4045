"""The words of Fourier transforms, and the roots of unity that they multiply by."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from funcgrad.base.roots import roots_of_unity
from funcgrad.compiler.foreign import LETTERS
from funcgrad.compiler.loops.language import NamedFunction
from funcgrad.compiler.loops.library.fourier import MEANINGS, PASS_WORDS, Fourier, Layout, passes_of
from funcgrad.compiler.nest.kernel import Bits
from funcgrad.compiler.runtime import kernel_store
from funcgrad.dtypes import complex_dtype, real_dtype
from funcgrad.lowering import FourierCall


def code(call: FourierCall, dtype: np.dtype[Any]) -> NamedFunction:
    """Code that transforms arrays of a dtype, complex or real."""
    kinds = tuple(dict.fromkeys(kind for kind, _, _ in passes_of(call.n)))
    source, target = (_layout(call, distances, dtype) for distances in (call.read, call.written))
    letter = LETTERS[_complex(dtype).char]
    return Fourier.named(letter, _lanes(dtype), kinds, source, target, call.turns != 0)


def _layout(call: FourierCall, distances: tuple[int, int, int], dtype: np.dtype[Any]) -> Layout:
    is_beside = distances[2] == 1
    neighbours = call.lanes if is_beside else call.n
    return Layout(is_beside, neighbours < _lanes(dtype))


def lane_bytes(call: FourierCall, dtype: np.dtype[Any]) -> int:
    """Scratch memory of a thread: for the elements of a group of lanes, twice."""
    lanes = _lanes(dtype)
    return 2 * max(call.n, lanes) * lanes * _complex(dtype).itemsize


def words(call: FourierCall, dtype: np.dtype[Any]) -> tuple[list[int], list[np.ndarray]]:
    """The words behind `abi.FOURIER_WORDS`, and the arrays whose addresses are among them."""
    wide = _complex(dtype)
    real, nbytes = real_dtype(wide), wide.itemsize
    parts = [0, _lanes(dtype)]
    read, written = ([n * nbytes for n in row] for row in (call.read, call.written))
    scale = np.asarray(call.scale, real).view(f"i{real.itemsize}")
    found = {
        "n": call.n,
        "lanes": call.lanes,
        "groups": n_groups(call, dtype),
        "source_block": read[0],
        "source_step": read[1],
        "source_lane": read[2],
        "target_block": written[0],
        "target_step": written[1],
        "target_lane": written[2],
        "first_part": parts[call.inverse],
        "second_part": parts[not call.inverse],
        "scale": Bits(scale),
        "roots": 0,
        "roots_step": 0,
        "roots_part": 0,
    }
    held = []
    if call.turns:
        twiddles = _twiddles(call.n, call.lanes, call.turns, wide)
        held.append(twiddles)
        found["roots"] = twiddles.ctypes.data
        found["roots_step"] = call.lanes * real.itemsize
        found["roots_part"] = call.n * call.lanes * real.itemsize
    rows = []
    for kind, m, s in passes_of(call.n):
        roots = _roots(kind.radix, m, wide)
        held.append(roots)
        rows += [kind.code, m, s, roots.ctypes.data]
    found["passes"] = len(rows) // len(PASS_WORDS)
    return [found[name] for name in MEANINGS] + rows, held


def _lanes(dtype: np.dtype[Any]) -> int:
    return kernel_store.tile_shape(_complex(dtype)).lanes


def _complex(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.kind == "c" else complex_dtype(dtype)


def n_groups(call: FourierCall, dtype: np.dtype[Any]) -> int:
    """How many groups of lanes a block has, of which each may be transformed at another time."""
    return -(-call.lanes // _lanes(dtype))


_in_use: WeakValueDictionary[Hashable, np.ndarray] = WeakValueDictionary()
"""The roots that programs know the addresses of: as long as any of these lives."""


def _shared(key: Hashable, make: Callable[[], np.ndarray]) -> np.ndarray:
    found = _in_use.get(key)
    return _in_use.setdefault(key, make()) if found is None else found


def _roots(radix: int, m: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Roots of unity that a pass multiplies by."""

    def make() -> np.ndarray:
        powers = np.arange(m)[:, None] * np.arange(1, radix)
        return np.ascontiguousarray(roots_of_unity(radix * m, radix * m)[powers], dtype)

    return _shared((radix, m, dtype), make)


def _twiddles(n: int, lanes: int, turns: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Twiddle factors between two steps, all real parts and then all imaginary ones."""

    def make() -> np.ndarray:
        powers = np.arange(n)[:, None] * np.arange(lanes)
        roots = roots_of_unity(turns, turns)[powers % turns]
        return np.stack([roots.real, roots.imag]).astype(real_dtype(dtype))

    return _shared((n, lanes, turns, dtype), make)
