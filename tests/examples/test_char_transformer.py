"""A transformer of characters: it learns more than pairs, and sees no future."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("char_transformer")
SMALL = ("--width", 16, "--heads", 2, "--length", 12, "--batch-size", 16)


@pytest.mark.nightly
def test_a_text_whose_pairs_tell_nothing_is_learned(tmp_path):
    """Of three letters that follow each other at random, the fourth is a copy of the first."""
    rng = np.random.default_rng(0)
    triples = rng.integers(0, 3, (600, 2))
    text = "".join("abc"[i] + "abc"[j] + "abc"[i] + "." for i, j in triples)
    (tmp_path / "text").write_text(text)
    result = run(
        example, *SMALL, "--steps", 150, "--lr", 1e-2, "--sample", 40, "--text", tmp_path / "text",
        "--output", tmp_path / "picture.png",
    )  # fmt: skip
    assert result.tests[150] < 0.75 * result.entropy
    assert set(result.text) <= set("abc.")
    words = [word for word in result.text.split(".")[1:-1] if len(word) == 3]
    assert len(words) >= 6
    assert np.mean([word[0] == word[2] for word in words]) > 0.6
    check_picture(tmp_path / "picture.png")


@pytest.mark.nightly
def test_names_are_spelled_better_than_by_pairs(tmp_path):
    result = run(example, "--output", tmp_path / "picture.png")
    assert min(result.tests.values()) < 0.85 * result.entropy


def test_entropy_of_pairs():
    # After 0 come 0 and 1 equally often, after 1 always 0: 2/3 and 1/3 of the pairs.
    tokens = np.array([0, 0, 1, 0, 0, 1, 0])
    np.testing.assert_allclose(example.pair_entropy(tokens, 2), 2 / 3 * np.log(2))


def test_nothing_is_seen_that_comes_later():
    args = example.parse_arguments([str(a) for a in SMALL])
    model = example.make_model(args, 5)
    x = np.arange(12)[None] % 5
    params, _ = model.init(example.fg.random.key(0), x)
    before = model.apply(params, (), x)[0]
    x[0, 7] = 0
    after = model.apply(params, (), x)[0]
    np.testing.assert_array_equal(after[:, :7], before[:, :7])
    assert np.all(np.any(after[:, 7:] != before[:, 7:], axis=-1))
    shorter = model.apply(params, (), x[:, :7])[0]
    np.testing.assert_allclose(shorter, before[:, :7], atol=1e-5)


def test_names_are_of_the_library():
    names = example.character_model.library_names()
    assert {"argparse", "dumps", "union_update"} & set(names) == {"argparse", "dumps"}
    assert len(names) > 1000
    shown = example.load_text(None, 12)
    order = shown.tokenizer.decode(shown.training).split()
    assert order != sorted(order)
    assert set(shown.tokenizer.decode(shown.testing).split()[1:]) <= set(names)
