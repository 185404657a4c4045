"""Keys: where the numbers come from, and how to get independent ones.

A key is an element of an array of keys (`funcgrad.random.key_arrays`). JAX's older form is taken
wherever keys are: an array of two uint32 words, for several keys of shape ``(..., 2)``. Nothing has
hidden state: the same key gives the same numbers, and `split` or `fold_in` make new keys. Whose
keys they are, of which generator (`funcgrad.random.generators`), their dtype says; of words it is
the default's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.base.dialect import dialect
from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.lax.operands import Array, ArrayLike
from funcgrad.observers.source import called_function
from funcgrad.primitives.objects import unwrapped
from funcgrad.primitives.random import UINT32, UINT64
from funcgrad.primitives.shape import lengths_in
from funcgrad.random.generators import GENERATORS, THREEFRY, Generator, Words, joined
from funcgrad.random.key_arrays import KEY, KeyArray, KeyDtype, key_dtype_of, words_of_parts

__all__ = [
    "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split",
    "wrap_key_data",
]  # fmt: skip

_WORD = 0xFFFFFFFF
_WORDS = 0xFFFFFFFFFFFFFFFF


def _dtype_of(name: str, impl: Any, dtype: Any = None) -> KeyDtype:
    """The dtype of keys of the generator that is asked for, or of the default."""
    if impl is not None and dtype is not None:
        raise ArgumentError(f"random.{name} takes impl or dtype, which mean the same; got both.")
    given = dtype if impl is None else impl
    if isinstance(given, KeyDtype):
        return given
    known = dialect().generator if given is None else given
    if not isinstance(known, str) or known not in GENERATORS:
        names = ", ".join(map(repr, GENERATORS))
        raise ArgumentError(f"random.{name}: impl must be one of {names}, got {given!r}.")
    return key_dtype_of(known)


def _generator_of(key: ArrayLike) -> Generator:
    """The generator that a key, or words of keys, belong to."""
    rules = dialect()
    found = key.dtype.generator if type(key) is KeyArray else GENERATORS[rules.generator]
    return found if rules.is_partitionable else found.sequential


def key(seed: ArrayLike, *, impl: Any = None, dtype: Any = None) -> KeyArray:
    """A key made from a seed.

    Args:
        seed: Integer scalar: a Python int of 64 bits, or an array of any integer dtype (possibly
            traced).
        impl: The generator: ``"threefry2x32"``, which is the default, ``"threefry4x32"``,
            ``"philox2x32"``, ``"philox4x32"``, ``"rbg"`` or ``"unsafe_rbg"``.
        dtype: Likewise, or what `key_dtype` returns; but not both.
    Returns: A key array of shape ``()``; by default its words are the high and the low word of the
        seed.
    Raises: ArgumentError: If the seed is no integer scalar, or does not fit into 64 bits; or if
            there is no such generator.

    Example:
        >>> key = fg.random.key(42)
        >>> print(key.shape, key.dtype, fg.random.key_data(key))
        () key<fry> [ 0 42]
    """
    of_generator = _dtype_of("key", impl, dtype)
    return of_generator.holding(*of_generator.generator.seeded(_of_seed("key", seed)))


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """A key as an array of its words, without a dtype of its own.

    Args: seed: Integer scalar, as of `key`.

    Returns:
        A uint32 array of shape ``(2,)``: the high and the low word of the seed. Every function
        here takes such an array for a key, and gives arrays of words for it. Those of another
        generator than the default, of one to four words, are what `wrap_key_data` takes.
    Example: print(fg.random.PRNGKey(42)) -> [ 0 42]
    """
    generator = _dtype_of("PRNGKey", impl).generator
    known = _of_seed("PRNGKey", seed)
    if type(seed) is int and generator is THREEFRY:
        return np.array([seed >> 32 & _WORD, seed & _WORD], UINT32)
    return words_of_parts(generator.seeded(known), generator.width)


def _of_seed(name: str, seed: ArrayLike) -> Array:
    """The integer of 64 bits that is the key for a seed."""
    if type(seed) is int:
        if not -(1 << 63) <= seed < 1 << 63:
            raise ArgumentError(f"random.{name}: the seed {seed} does not fit into 64 bits.")
        return np.array(seed & _WORDS, UINT64)
    if type(seed) is KeyArray:
        raise ArgumentError(
            f"random.{name} needs an integer scalar as seed, got a key, {seed.aval_text}."
        )
    aval = aval_of(seed)
    if aval.shape or aval.dtype.kind not in "iu":
        raise ArgumentError(
            f"random.{name} needs an integer scalar as seed, got {aval}. Use vmap for several "
            "seeds."
        )
    if aval.dtype.itemsize < 8:
        return lax.convert_element_type(lax.convert_element_type(seed, UINT32), UINT64)
    return lax.convert_element_type(seed, UINT64)


def refuse_sharding(name: str, out_sharding: Any) -> None:
    """Samples lie on the processor, whatever JAX's keyword asks for.

    Raises: ArgumentError: If it asks for another place.
    """
    if out_sharding is not None:
        called = called_function("random") or name
        check_placement(f"random.{called}", out_sharding=out_sharding)


def words_of(name: str, key: ArrayLike) -> Words:
    """The words of one key.

    Args:
        name: The function that wants to know, for messages.
        key: The key, or an array of its words.
    Raises: ArgumentError: If it is no key, or several.
    """
    if type(key) is KeyArray:
        return _words_of_one(name, key)
    key = unwrapped(key)
    aval, width = aval_of(key), _generator_of(key).width
    if aval.dtype != UINT32 or aval.shape != (width,):
        is_many = aval.dtype == UINT32 and aval.shape[-1:] == (width,)
        raise _no_key(name, key_dtype_of(dialect().generator), str(aval), is_many)
    if isinstance(key, np.ndarray):
        return tuple(key[i] for i in range(width))
    return tuple(lax.index_in_dim(key, i, keepdims=False) for i in range(width))


def _words_of_one(name: str, key: KeyArray) -> Words:
    base = key.base
    if key.shape:
        raise _no_key(name, key.dtype, key.aval_text, True)
    if key.dtype is KEY and isinstance(base, np.ndarray | np.generic):
        known = int(base)
        return np.uint32(known >> 32), np.uint32(known & _WORD)
    return key.dtype.generator.words(key.parts)


def _no_key(name: str, dtype: KeyDtype, got: str, is_many: bool) -> ArgumentError:
    advice = "Use vmap over the keys." if is_many else "Make one with random.key(seed)."
    # Distributions are drawn by way of others: the user knows the one that was called.
    called = called_function("random") or name
    return ArgumentError(
        f"random.{called} needs one key, {dtype}[] as made by random.key or its words, "
        f"u32[{dtype.generator.width}], got {got}. {advice}"
    )


def canonical_shape(name: str, shape: int | Sequence[int]) -> tuple[int, ...]:
    """A shape as a tuple of ints.

    Raises:
        ArgumentError: If a length is not an integer.
        ShapeError: If a length is negative.
    """
    listed = lengths_in(shape)
    if not all(isinstance(n, int | np.integer | Tracer) for n in listed):
        raise ArgumentError(f"random.{name}: a shape consists of integers, got {shape!r}.")
    lengths = tuple(map(index, listed))
    if any(n < 0 for n in lengths):
        raise ShapeError(f"random.{name}: lengths must not be negative, got {lengths}.")
    return lengths


def random_bits(
    name: str, key: ArrayLike, shape: Sequence[int], dtype: np.dtype[Any] = UINT64
) -> Array:
    """Random bits for every element of a shape.

    Args:
        name: The function that draws, for messages.
        key: A key.
        shape: The shape.
        dtype: Of unsigned integers.
    """
    return _generator_of(key).bits(words_of(name, key), shape, dtype)


def lanes_of(name: str, key: ArrayLike, shape: Sequence[int]) -> Array:
    """A key of its own for every number of a shape, as integers of 64 bits.

    Args:
        name: The function that draws, for messages.
        key: A key.
        shape: The shape.
    """
    return _generator_of(key).lanes(words_of(name, key), shape)


def _like(key: ArrayLike, parts: Sequence[Array]) -> Any:
    """Keys of integers of 64 bits, as an array of keys or of words: as ``key`` is."""
    if type(key) is KeyArray:
        return key.dtype.holding(*parts)
    return words_of_parts(parts, _generator_of(key).width)


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """New keys, independent of each other and of what the old key would give.

    Args:
        key: A key, not to be used again.
        num: How many, or a shape.
    Returns: A key array of shape ``(num,)`` or ``num``; for an array of words one of shape
        ``(num, 2)`` or ``(*num, 2)``.

    Example:
        >>> key, subkey = fg.random.split(fg.random.key(0))
        >>> print(fg.random.key_data(subkey))
        [ 928981903 3453687069]
    """
    words, shape = words_of("split", key), canonical_shape("split", num)
    return _like(key, _generator_of(key).split(words, shape))


def parts_of(key: ArrayLike, count: int = 2) -> list[Array]:
    """So many new keys, one by one: what samplers draw their parts from.

    Args:
        key: A key.
        count: How many.
    """
    keys = split(key, count)

    def at(i: int) -> Callable[[Array], Array]:
        return lambda x: lax.index_in_dim(x, i, keepdims=False)

    return [keys.each(at(i)) if type(keys) is KeyArray else at(i)(keys) for i in range(count)]


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key from a key and a number, such as the index of a step.

    Args: data: Integer scalar, of which the lower 32 bits count; a Python int must fit into them.
    Returns: A key; for an array of words, of shape ``(2,)``, such an array.
    Example: fg.random.fold_in(fg.random.key(0), 7)
        -> Array((), dtype=key<fry>) overlaying:
           [2716826189  292468403]
    """
    aval = aval_of(data)
    if aval.shape or aval.dtype.kind not in "iu":
        raise ArgumentError(
            f"random.fold_in needs an integer scalar, got {aval}. Use vmap for several numbers."
        )
    if type(data) is int and not 0 <= data <= _WORD:
        raise ArgumentError(f"random.fold_in: {data} does not fit into 32 bits.")
    words = words_of("fold_in", key)
    return _like(key, _generator_of(key).child(words, lax.convert_element_type(data, UINT32)))


def _check_words(name: str, words: ArrayLike, generator: Generator | None = None) -> Array:
    """An array of words of keys."""
    words = unwrapped(words)
    width = (generator or _generator_of(words)).width
    aval: Any = aval_of(words)
    if aval.dtype != UINT32 or aval.shape[-1:] != (width,):
        raise ArgumentError(
            f"random.{name} needs keys, or words of keys, u32[...,{width}], got {aval}."
        )
    return words


def key_data(keys: ArrayLike) -> Array:
    """The words of keys, two of 32 bits for each; of other generators, one to four.

    Args: keys: An array of keys of any shape; an array of words is given back.
    Returns: A uint32 array of shape ``(*keys.shape, 2)``.
    Raises: ArgumentError: If they are no keys.
    Example: print(fg.random.key_data(fg.random.key(7))) -> [0 7]
    """
    return keys.words if type(keys) is KeyArray else _check_words("key_data", keys)


def wrap_key_data(key_bits_array: ArrayLike, *, impl: Any = None, dtype: Any = None) -> KeyArray:
    """Keys from their words.

    Args:
        key_bits_array: The words, a uint32 array of shape ``(..., 2)``; of other generators than
            the default, one to four of them.
        dtype: Likewise, or what `key_dtype` returns; but not both.
    Returns: A key array of the shape without the last axis.
    Raises: ArgumentError: If they are no words of keys.
    Example: fg.random.wrap_key_data(np.zeros((3, 2), np.uint32)).shape -> (3,)
    """
    of_generator = _dtype_of("wrap_key_data", impl, dtype)
    width = of_generator.generator.width
    if type(key_bits_array) is KeyArray:
        raise ArgumentError(
            f"random.wrap_key_data needs words of keys, u32[...,{width}], got keys, "
            f"{key_bits_array.aval_text}."
        )
    words = _check_words("wrap_key_data", key_bits_array, of_generator.generator)
    found = [lax.index_in_dim(words, i, axis=-1, keepdims=False) for i in range(width)]
    if width == 1:
        return of_generator.holding(lax.convert_element_type(found[0], UINT64))
    return of_generator.holding(*[joined(*found[i : i + 2]) for i in range(0, width, 2)])


def key_impl(keys: ArrayLike) -> str:
    """The generator that keys belong to, such as ``"threefry2x32"``.

    Args: keys: An array of keys, or of words of keys.
    Example: fg.random.key_impl(fg.random.key(0)) -> 'threefry2x32'
    """
    if type(keys) is not KeyArray:
        _check_words("key_impl", keys)
    return _generator_of(keys).name


def key_dtype(impl_spec: Any = None) -> KeyDtype:
    """The dtype of keys.

    Args: impl_spec: The generator, as of `key`.
    Example: fg.random.key_dtype() -> key<fry>
    """
    return _dtype_of("key_dtype", impl_spec)


def clone(key: ArrayLike) -> Array:
    """The same keys, said to be used again on purpose.

    Args: key: A key, or an array of keys, or of words of keys.

    Example:
        >>> fg.random.uniform(fg.random.clone(fg.random.key(0))) == fg.random.uniform(
        ...     fg.random.key(0)
        ... )
        np.True_
    """
    return key.each(lambda part: part) if type(key) is KeyArray else _check_words("clone", key)
