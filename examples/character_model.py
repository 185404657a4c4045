"""Shared by the example programs: names letter by letter, and the parameters that learn them.

The names are those of Python's standard library, or of a file. The model predicts each letter from
the three before it: embedding -> linear -> batch normalisation -> tanh -> linear.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

BLOCK, WIDTH, HIDDEN = 3, 10, 200
"""Letters before, entries of an embedding, units of the hidden layer."""
EPSILON = 1e-5
"""Added to the variance of a batch."""
END = "."
FEWEST = 10
"""Names, of which one in ten is for validation and one for the test."""

Params = dict[str, Any]


class Text(NamedTuple):
    """Blocks of letters (rows, 3), the letter after each (rows,), and the alphabet."""

    blocks: np.ndarray
    following: np.ndarray
    letters: str


def library_names() -> list[str]:
    """Names in lower case that the standard library defines: modules, functions, methods."""
    folder = Path(os.__file__).parent
    names = set(sys.stdlib_module_names)
    for source in [*folder.glob("*.py"), *folder.glob("[a-su-z]*/*.py")]:
        if "-packages" not in source.parent.name:  # what is installed is no part of it
            text = source.read_text("utf-8", "replace")
            names.update(re.findall(r"^\s*def (\w+)", text, re.MULTILINE))
    return sorted(name for name in names if re.fullmatch(r"[a-z][a-z_]{2,15}", name))


def names_in(path: str) -> list[str]:
    """The lines of a file that are not empty."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"cannot read {path}: {error}") from None
    names = [line.strip() for line in lines if line.strip().strip(END)]
    if len(names) < FEWEST:
        raise argparse.ArgumentTypeError(f"there are fewer than {FEWEST} names in {path}")
    return names


def add_text(parser: argparse.ArgumentParser) -> None:
    """Give a program the option `--text FILE`."""
    parser.add_argument(
        "--text", type=names_in, metavar="FILE", help="a name per line, instead of Python's"
    )


def alphabet(names: list[str]) -> str:
    """The end of a name, and all letters."""
    return END + "".join(sorted(set("".join(names)) - {END}))


def encode(names: list[str], letters: str) -> Text:
    """Every letter of every name, and its end, with the three letters before it."""
    number = {letter: i for i, letter in enumerate(letters)}
    padded = [END * BLOCK + name.replace(END, "") + END for name in names]
    windows = [text[i : i + BLOCK + 1] for text in padded for i in range(len(text) - BLOCK)]
    numbers = np.array([[number[letter] for letter in window] for window in windows], np.int32)
    return Text(numbers[:, :BLOCK], numbers[:, BLOCK], letters)


def divided(names: list[str], seed: int) -> dict[str, Text]:
    """The names in random order: eight in ten for training, one for validation, one for testing."""
    order = np.random.default_rng(seed).permutation(names)
    first, second = (round(share * len(names)) for share in (0.8, 0.9))
    parts = {"training": order[:first], "validation": order[first:second], "test": order[second:]}
    return {part: encode(list(chosen), alphabet(names)) for part, chosen in parts.items()}


def init_params(seed: int, letters: int) -> Params:
    """Small random parameters, none of them zero: a gradient at zero would prove little."""
    rng = np.random.default_rng(seed)
    inputs = BLOCK * WIDTH
    return {
        "embedding": rng.normal(size=(letters, WIDTH)),
        "w1": rng.normal(size=(inputs, HIDDEN)) * (5 / 3) / inputs**0.5,
        "b1": rng.normal(size=HIDDEN) * 0.1,
        "gain": rng.normal(size=HIDDEN) * 0.1 + 1.0,
        "shift": rng.normal(size=HIDDEN) * 0.1,
        "w2": rng.normal(size=(HIDDEN, letters)) * 0.1,
        "b2": rng.normal(size=letters) * 0.1,
    }
