"""A transformer learns to spell.

A decoder-only transformer reads text letter by letter and predicts the next letter. By default, the
text consists of the names in Python's standard library: modules, functions and methods. The blocks
of attention and dense layers are one checkpointed loop. The learning rate of Adam warms up and then
decays. One compiled program draws new names. Run it with

    python examples/char_transformer.py
    python examples/char_transformer.py --text FILE

It prints the loss and the entropy of pairs of letters, which is the best possible loss of a model
that sees only one previous letter. It also prints new text, and writes `char_transformer.png`,
which shows the loss and the attention of the heads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import character_model
import funcgrad as fg
import funcgrad.numpy as fnp
import program
from funcgrad import data, nn, optim
from funcgrad.nn import layers

TEST_FRACTION = 0.1
REPORT_EVERY = 50

# The text.


@dataclass(frozen=True)
class Text:
    """A text as numbers of characters, the last part of which is not learned from."""

    tokenizer: data.CharTokenizer
    training: np.ndarray
    testing: np.ndarray


def load_text(path: Path | None, length: int) -> Text:
    """A file, or the names in random order; long enough for windows of both parts."""
    names = np.random.default_rng(0).permutation(character_model.library_names())
    text = "\n".join(names) + "\n" if path is None else path.read_text()
    tokenizer = data.CharTokenizer(text)
    tokens = tokenizer.encode(text)
    tests = int(len(tokens) * TEST_FRACTION)
    if tests <= length:
        raise ValueError(
            f"{len(tokens)} characters are too few: a tenth of them, which is held back, must be "
            f"more than the {length} of a window."
        )
    return Text(tokenizer, tokens[:-tests], tokens[-tests:])


def pair_entropy(tokens: np.ndarray, count: int) -> float:
    """Entropy in nats of a character, given the one before it."""
    pairs = np.zeros((count, count))
    np.add.at(pairs, (tokens[:-1], tokens[1:]), 1)
    chance = pairs / pairs.sum()
    before = chance.sum(axis=1, keepdims=True)
    used = chance > 0
    return -float(np.sum(chance[used] * np.log((chance / np.where(before > 0, before, 1))[used])))


def windows(tokens: np.ndarray, starts: np.ndarray, length: int) -> np.ndarray:
    """Parts of a text (starts, length + 1): every one but the last is followed by the next."""
    return tokens[starts[:, None] + np.arange(length + 1)]


# The model.


def make_block(args: argparse.Namespace) -> layers.Layer:
    """Attention to what came before, then two dense layers, both added to what they are given."""
    attend = layers.sequential(layers.layer_norm(), layers.attention(args.heads, causal=True))
    mix = layers.sequential(
        layers.layer_norm(), layers.dense(4 * args.width), nn.gelu, layers.dense(args.width)
    )
    return layers.sequential(layers.residual(attend), layers.residual(mix))


def places(length: int, width: int) -> layers.Layer:
    """Adds a learned vector for every place of a window."""

    def init(key: Any, x: Any) -> tuple[Any, Any]:
        return {"embedding": 0.02 * fg.random.normal(key, (length, width), np.float32)}, ()

    def apply(
        params: Any, state: Any, x: Any, *, key: Any = None, train: bool = False
    ) -> tuple[Any, Any]:
        return x + params["embedding"][: x.shape[-2]], state

    return layers.Layer(init, apply)


def make_model(args: argparse.Namespace, characters: int) -> layers.Layer:
    """From characters (batch, length) to logits of the next ones (batch, length, characters)."""
    return layers.sequential(
        layers.embedding(characters, args.width),
        places(args.length, args.width),
        layers.repeat(layers.checkpoint(make_block(args)), args.depth),
        layers.layer_norm(),
        layers.dense(characters),
    )


def mean_loss(model: layers.Layer, params: Any, rows: Any) -> Any:
    """Cross-entropy per character, in nats, of windows (batch, length + 1)."""
    logits, _ = model.apply(params, (), rows[:, :-1])
    return nn.losses.softmax_cross_entropy_with_integer_labels(logits, rows[:, 1:]).mean()


# Training.


@dataclass
class Result:
    """What training ended with."""

    params: Any
    losses: np.ndarray
    tests: dict[int, float]
    entropy: float
    text: str


def train(args: argparse.Namespace, text: Text, model: layers.Layer) -> Result:
    """Train for `args.steps` on random windows, with a rate that warms up and then falls."""
    warmup = max(args.steps // 10, 1)
    rate = optim.warmup_cosine_decay_schedule(0.0, args.lr, warmup, args.steps + 1)
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(rate))
    tokens = text.training[: args.length][None]
    params, _ = model.init(fg.random.key(args.seed), tokens)
    rng = np.random.default_rng(args.seed)

    def step(params: Any, memory: Any, rows: Any) -> tuple[Any, Any, Any]:
        loss, slopes = fg.value_and_grad(lambda p: mean_loss(model, p, rows))(params)
        updates, memory = optimizer.update(slopes, memory, params)
        return optim.apply_updates(params, updates), memory, loss

    compiled = fg.jit(step, donate_argnums=(0, 1))
    test_loss = fg.jit(lambda params, rows: mean_loss(model, params, rows))
    held_back = np.arange(0, len(text.testing) - args.length, args.length)
    test_rows = windows(text.testing, held_back, args.length)
    memory = optimizer.init(params)
    losses, tests = np.zeros(args.steps), {}
    with tqdm(range(args.steps), desc="training", unit="step") as bar:
        for i in bar:
            starts = rng.integers(0, len(text.training) - args.length, args.batch_size)
            rows = windows(text.training, starts, args.length)
            params, memory, loss = compiled(params, memory, rows)
            losses[i] = loss
            if (i + 1) % REPORT_EVERY == 0 or i + 1 == args.steps:
                tests[i + 1] = float(test_loss(params, test_rows))
                bar.set_postfix(loss=f"{losses[i]:.3f}", test=f"{tests[i + 1]:.3f}")
    everything = np.concatenate([text.training, text.testing])
    entropy = pair_entropy(everything, len(text.tokenizer))
    return Result(params, losses, tests, entropy, "")


# Sampling.


def make_sampler(
    model: layers.Layer, length: int, count: int, temperature: float
) -> Callable[..., Any]:
    """The compiled program `(params, key, first) -> (count,)` characters that follow the first.

    A window moves along the text; places that are not filled yet come after the last one, where
    causal attention does not look.
    """

    def sample(params: Any, key: Any, first: Any) -> Any:
        def draw(carry: tuple[Any, Any], key: Any) -> tuple[tuple[Any, Any], Any]:
            window, used = carry
            logits = fnp.take(model.apply(params, (), window[None])[0][0], used - 1, axis=0)
            drawn = fg.random.categorical(key, logits / temperature).astype(window.dtype)
            is_full = used == length
            window = np.where(is_full, np.roll(window, -1), window)
            place = np.where(is_full, length - 1, used)
            window = np.where(np.arange(length) == place, drawn, window)
            return (window, np.minimum(used + 1, length)), drawn

        window = np.where(np.arange(length) == 0, first, 0).astype(np.int32)
        return fg.lax.scan(draw, (window, 1), fg.random.split(key, count))[1]

    return fg.jit(sample)


# The picture.


def attention_of(model_args: argparse.Namespace, params: Any, tokens: np.ndarray) -> np.ndarray:
    """How much each head of the first block looks where: (heads, queries, keys)."""
    embedding, place, blocks, *_ = params
    norm, heads = fg.tree.map(lambda leaf: leaf[0], blocks[0])
    x = nn.embed(embedding["embedding"], tokens) + place["embedding"][: len(tokens)]
    y = nn.layer_norm(x, norm["scale"], norm["bias"])
    query, key = (
        nn.dense(y, heads[part]["kernel"], heads[part]["bias"]).reshape(
            len(tokens), model_args.heads, -1
        )
        for part in ("query", "key")
    )
    scores = np.einsum("tnh,snh->nts", query, key) / np.sqrt(query.shape[-1])
    return nn.softmax(scores, where=np.tri(len(tokens), dtype=bool))


def plot(args: argparse.Namespace, result: Result, text: Text, path: Path) -> None:
    """Draw the loss beside the entropy of pairs, and what the heads of the first block look at."""
    figure = Figure(figsize=(13, 4.4), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(2, 3))[0]
    axes = left.subplots()
    axes.plot(np.arange(1, args.steps + 1), result.losses, color="tab:red", alpha=0.4, lw=1)
    axes.plot(
        result.tests.keys(), result.tests.values(), "o-", color="tab:red", label="unseen text"
    )
    axes.axhline(result.entropy, color="black", ls="--", label="entropy of pairs")
    axes.set(title="loss per character", xlabel="step", ylabel="nats")
    axes.legend()
    axes.grid(alpha=0.3)
    tokens = text.testing[: min(args.length, 16)]
    weights = attention_of(args, result.params, tokens)
    shown = [c if c.isprintable() else "·" for c in text.tokenizer.decode(tokens)]
    right.suptitle("where the heads of the first block look")
    for head, axes in enumerate(right.subplots(1, min(args.heads, 4), squeeze=False)[0]):
        axes.imshow(weights[head], cmap="viridis", vmin=0, vmax=1)
        axes.set(xticks=range(len(shown)), yticks=range(len(shown)))
        axes.set_xticklabels(shown, fontsize=7)
        axes.set_yticklabels(shown, fontsize=7)
    program.save(figure, path)


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser("Train a transformer on the letters of a text.", "char_transformer.png")
    parser.add_argument("--text", type=Path, metavar="FILE", help="instead of Python's names")
    for name, value in (
        ("steps", 600), ("batch-size", 32), ("length", 32), ("width", 64), ("heads", 4),
        ("depth", 2), ("sample", 200),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=program.whole(1), default=value, metavar="N")
    parser.add_argument("--lr", type=program.positive, default=3e-3, metavar="RATE")
    parser.add_argument("--temperature", type=program.positive, default=0.8, metavar="T")
    parser.add_argument("--seed", type=program.whole(0), default=0, metavar="N")
    args = program.parse(parser, arguments)
    if args.width % args.heads:
        parser.error(f"argument --heads: {args.heads} do not divide the width {args.width}")
    if args.text is not None and not args.text.is_file():
        parser.error(f"argument --text: there is no file {args.text}")
    try:
        args.loaded = load_text(args.text, args.length)
    except ValueError as error:
        parser.error(f"argument --text: {error}")
    return args


def run(args: argparse.Namespace) -> Result:
    """Train, draw samples and pictures."""
    text = args.loaded
    size = len(text.tokenizer)
    print(f"{len(text.training)} characters, {size} different ones")
    model = make_model(args, size)
    start = time.perf_counter()
    result = train(args, text, model)
    print(f"{args.steps} steps in {time.perf_counter() - start:.1f} s, compilation included")
    last = result.tests[args.steps]
    print(f"loss on unseen text {last:.3f} nats; entropy of pairs {result.entropy:.3f}")
    sampler = make_sampler(model, args.length, args.sample, args.temperature)
    first = text.training[-1]
    drawn = sampler(result.params, fg.random.key(args.seed + 1), first)
    result.text = text.tokenizer.decode(drawn)
    print(" ".join(result.text.split("\n")) if args.text is None else result.text)
    plot(args, result, text, args.output)
    return result


if __name__ == "__main__":
    run(parse_arguments())
