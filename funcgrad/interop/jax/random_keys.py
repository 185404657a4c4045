"""Random keys of the package ``jax``: their seeds, and arrays that are filled with keys."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import lax, random
from funcgrad.core.trace import Tracer
from funcgrad.interop.jax.arrays import Adopted
from funcgrad.interop.jax.widths import is_x64
from funcgrad.random.key_arrays import KeyArray, KeyDtype

_WORD = 0xFFFFFFFF
_WORDS = np.dtype(np.uint32)


def _seeding(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a seed, of which integers have the bits that there are."""
    make = Adopted(function)

    @functools.wraps(function)
    def compute(seed: Any, **options: Any) -> Any:
        if type(seed) is int:
            if not -(1 << 63) <= seed < 1 << 63:
                raise OverflowError(f"the seed {seed} does not fit into 64 bits")
            seed = seed if is_x64() else seed & _WORD
        elif not is_x64() and isinstance(seed, Tracer) and seed.dtype.kind in "iu":
            seed = lax.convert_element_type(seed, _WORDS)
        return make(seed, **options)

    return compute


key, PRNGKey = _seeding(random.key), _seeding(random.PRNGKey)


def check_fits(x: int, dtype: Any = None) -> None:
    """Raise if an integer fits neither into the bits that there are, nor into a dtype.

    Args:
        x: The integer.
        dtype: A dtype of integers.
    Raises: OverflowError: With the dtype that integers have.
    """
    default = np.dtype(np.int64 if is_x64() else np.int32)
    limits = [np.iinfo(kind) for kind in (default, dtype) if kind is not None]
    if not any(limit.min <= x <= limit.max for limit in limits):
        raise OverflowError(f"Python int {x} too large to convert to {default}")


@Adopted
@functools.wraps(random.randint)
def randint(
    key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, **options: Any
) -> Any:
    """`random.randint`; bounds that are Python's integers fit into the bits that there are."""
    wanted = None if dtype is None else np.dtype(dtype)
    if wanted is None or wanted.itemsize >= (8 if is_x64() else 4):
        for bound in (minval, maxval):
            if type(bound) is int:
                check_fits(bound, wanted)
    return random.randint(key, shape, minval, maxval, dtype, **options)


@Adopted
@functools.wraps(random.choice)
def choice(key: Any, a: Any, shape: Any = (), *args: Any, **options: Any) -> Any:
    """`random.choice`, whose shape is a sequence."""
    if isinstance(shape, int):
        raise TypeError(f"random.choice: shape must be a sequence of integers, got {shape}.")
    return random.choice(key, a, shape, *args, **options)


def filled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that fills an array, also one of keys: numbers fill all of their words.

    Args: function: It takes a shape or an array, what fills it, if anything, and the dtype.
    """

    @functools.wraps(function)
    def compute(*args: Any, **options: Any) -> Any:
        first = args[0] if args else None
        dtype = options.get("dtype")
        dtype = getattr(first, "dtype", None) if dtype is None else dtype
        if not isinstance(dtype, KeyDtype):
            return function(*args, **options)
        return of_keys(dtype, *args, **{k: v for k, v in options.items() if k != "dtype"})

    def of_keys(dtype: KeyDtype, first: Any, *args: Any, **options: Any) -> Any:
        shape = first.shape if isinstance(first, KeyArray) else first
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        options = {k: words_of(v) for k, v in options.items()}
        like = np.empty((*shape, dtype.generator.width), _WORDS)
        is_like = isinstance(first, KeyArray)
        made = function(
            like if is_like else like.shape, *map(words_of, args), dtype=_WORDS, **options
        )
        return random.wrap_key_data(made, dtype=dtype)

    return compute


def words_of(x: Any) -> Any:
    """The words of keys; anything else as it is."""
    return random.key_data(x) if isinstance(x, KeyArray) else x
