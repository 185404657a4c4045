"""Text as integers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from funcgrad.errors import ArgumentError


class CharTokenizer:
    """Each character of an alphabet as an integer, in the order of their code points.

    Args: text: The alphabet: the characters that occur in it.

    Attributes:
        characters: The alphabet, sorted, without repetitions. A tokenizer that is made from it is
            the same.

    Example:
        >>> tokenizer = fg.data.CharTokenizer("hello")
        >>> tokenizer.characters, len(tokenizer)
        ('ehlo', 4)
        >>> tokenizer.encode("hole")
        array([1, 3, 2, 0], dtype=int32)
        >>> tokenizer.decode([1, 3, 2, 0])
        'hole'
    """

    def __init__(self, text: str | Iterable[str]) -> None:
        self.characters = "".join(sorted({c for part in text for c in part}))
        self._numbers = {c: i for i, c in enumerate(self.characters)}

    def __len__(self) -> int:
        return len(self.characters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CharTokenizer) and self.characters == other.characters

    def __hash__(self) -> int:
        return hash(self.characters)

    def __repr__(self) -> str:
        return f"CharTokenizer({self.characters!r})"

    def encode(self, text: str) -> np.ndarray:
        """The numbers of the characters of a text.

        Args: text: Characters of the alphabet.
        Returns: An int32 array of the length of the text.
        Raises: ArgumentError: If a character is not in the alphabet.
        """
        try:
            return np.array([self._numbers[c] for c in text], np.int32)
        except KeyError as error:
            character = error.args[0]
            raise ArgumentError(
                f"CharTokenizer.encode: {character!r}, at position {text.index(character)}, is not "
                f"among the {len(self)} characters of this tokenizer."
            ) from None

    def decode(self, tokens: Any) -> str:
        """The text that an array of numbers stands for.

        Args: tokens: Integers from 0 up to the size of the alphabet, in one axis.
        Raises: ArgumentError: If one is outside, or there are several axes.
        """
        numbers = np.asarray(tokens)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise ArgumentError(
                "CharTokenizer.decode needs integers in one axis, got an array of dtype "
                f"{numbers.dtype} and shape {numbers.shape}."
            )
        outside = (numbers < 0) | (numbers >= len(self))
        if outside.any():
            place = int(outside.argmax())
            raise ArgumentError(
                f"CharTokenizer.decode: {numbers[place]}, at position {place}, is not between 0 "
                f"and {len(self) - 1}."
            )
        return "".join([self.characters[i] for i in numbers.tolist()])
