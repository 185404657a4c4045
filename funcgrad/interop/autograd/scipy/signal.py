"""``autograd.scipy.signal``: SciPy's names, and autograd's convolution along chosen axes."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters as _letters
from typing import Any

import numpy as _np
import scipy.signal as _theirs

from funcgrad.errors import ArgumentError
from funcgrad.interop.autograd.adopting import adopt as _adopt
from funcgrad.interop.autograd.adopting import counterpart as _counterpart
from funcgrad.interop.autograd.adopting import rest_of as _rest_of

vars().update(_adopt(_counterpart("signal"), _theirs))
__getattr__ = _rest_of(_theirs)

_MODES = ("valid", "full", "same")


def convolve(
    A: Any,
    B: Any,
    axes: Sequence[Sequence[int]] | None = None,
    dot_axes: Sequence[Sequence[int]] = ((), ()),
    mode: str = "full",
) -> Any:
    """Convolve along some axes, contract others, and keep the rest of both arrays.

    Args:
        A: An array.
        B: An array.
        axes: Axes of A, and of B, that are convolved with each other; by default all.
        dot_axes: Axes of A, and of B, that are multiplied and summed over.
        mode: ``"full"``, ``"valid"`` or ``"same"``, of the length of A.
    Returns: Array whose axes are the rest of those of A, the rest of those of B, and the convolved
        ones.
    Raises: ArgumentError: If the mode is unknown, or neither array is the longer one for
            ``"valid"``.

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop.autograd.scipy.signal import convolve
        >>> convolve(np.ones((2, 3)), np.ones((4, 2)), axes=([1], [1])).shape
        (2, 4, 4)
    """
    if mode not in _MODES:
        raise ArgumentError(f"convolve: mode must be one of {', '.join(_MODES)}, got {mode!r}.")
    n, m = _np.ndim(A), _np.ndim(B)
    pairs = list(zip(*(axes if axes is not None else (range(n), range(m))), strict=True))
    sizes = [(_np.shape(A)[i], _np.shape(B)[j]) for i, j in pairs]
    if mode == "valid" and all(a <= b for a, b in sizes) and any(a < b for a, b in sizes):
        swapped = convolve(
            B, A, [[j for _, j in pairs], [i for i, _ in pairs]], dot_axes[::-1], mode
        )
        n_b = m - len(pairs) - len(dot_axes[1])
        n_a = n - len(pairs) - len(dot_axes[0])
        order = [*range(n_b, n_b + n_a), *range(n_b), *range(n_a + n_b, n_a + n_b + len(pairs))]
        return _np.transpose(swapped, order)
    if mode == "valid" and any(a < b for a, b in sizes):
        raise ArgumentError(
            "convolve: with mode='valid' one array must be the longer one along all axes, got "
            f"lengths {', '.join(f'{a} and {b}' for a, b in sizes)}."
        )
    letters = iter(_letters)
    of_a, of_b = [next(letters) for _ in range(n)], [next(letters) for _ in range(m)]
    for i, j in zip(*dot_axes, strict=True):
        of_b[j] = of_a[i]
    padding = [(0, 0)] * n
    flipped = [slice(None)] * m
    for (i, j), (_, b) in zip(pairs, sizes, strict=True):
        before = {"valid": 0, "full": b - 1, "same": b - 1 - (b - 1) // 2}[mode]
        padding[i] = (before, {"valid": 0, "full": b - 1, "same": (b - 1) // 2}[mode])
        flipped[j] = slice(None, None, -1)
    A, B = _np.pad(A, padding), B[tuple(flipped)]
    outer = [of_a[i] for i in range(n) if i not in {p[0] for p in pairs} | set(dot_axes[0])]
    outer += [of_b[j] for j in range(m) if j not in {p[1] for p in pairs} | set(dot_axes[1])]
    # Each convolved axis of A becomes two: the place of a window, and the place within it.
    windowed = {i: (next(letters), of_b[j], b) for (i, j), (_, b) in zip(pairs, sizes, strict=True)}
    for i in sorted(windowed, reverse=True):
        b = windowed[i][2]
        places = _np.arange(_np.shape(A)[i] - b + 1)[:, None] + _np.arange(b)
        A = _np.take(A, places, axis=i)
    taken = "".join("".join(windowed[i][:2]) if i in windowed else of_a[i] for i in range(n))
    result = "".join([*outer, *(windowed[i][0] for i, _ in pairs)])
    return _np.einsum(f"{taken},{''.join(of_b)}->{result}", A, B)
