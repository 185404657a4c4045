"""Text as integers."""

from __future__ import annotations

import numpy as np
import pytest

from funcgrad.data import CharTokenizer
from funcgrad.errors import ArgumentError


@pytest.mark.parametrize("text", ["hello, world\n", "", "日本語 😀 é", "aaa"])
def test_encoding_and_back(text):
    tokenizer = CharTokenizer(text)
    tokens = tokenizer.encode(text)
    assert tokens.dtype == np.int32
    assert tokens.shape == (len(text),)
    assert tokenizer.decode(tokens) == tokenizer.decode(tokens.tolist()) == text
    assert len(tokenizer) == len(set(text))
    assert tokenizer == CharTokenizer(tokenizer.characters) == CharTokenizer(list(text))
    assert hash(tokenizer) == hash(CharTokenizer(tokenizer.characters))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: t.encode("abz"), "'z', at position 2, is not among the 3 characters"),
        (lambda t: t.decode([0, 3]), "3, at position 1, is not between 0 and 2"),
        (lambda t: t.decode([-1]), "-1, at position 0"),
        (lambda t: t.decode([0.5]), "integers in one axis, got an array of dtype float64"),
        (lambda t: t.decode(np.zeros((2, 2), int)), r"shape \(2, 2\)"),
    ],
)
def test_mistakes_are_named(call, text):
    with pytest.raises(ArgumentError, match=text):
        call(CharTokenizer("abc"))
