"""Closed forms of gradients, and a character model that is trained by them.

`backprop_by_hand.py` derives the gradient of each elementary step of the model

    embedding -> linear -> batch normalisation -> tanh -> linear -> cross-entropy

Here the steps of a batch normalisation are one formula, as are those of a cross-entropy. They
become the rule of a `custom_vjp`. The program compares the gradients with those of `grad`, measures
the time of both, and trains the model twice: with this rule, and with automatic gradients. Run it
with

    python examples/closed_forms.py

Four fifths of the names in Python's standard library are the training text; `--text FILE` reads
other ones, with one name per line. The program prints the losses on the names that were held out
and a few new names, and writes `closed_forms.png`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import by_hand
import character_model as model
import funcgrad as fg
import funcgrad.numpy as fnp
import program
import training
from funcgrad import nn, optim

LONGEST, DRAWN = 20, 20
"""Letters of a new name, and how many names are drawn."""

Params = dict[str, Any]


# The model.


def forward(p: Params, blocks: Any, seen: Any = None) -> tuple[Any, Params]:
    """Logits (rows, letters) of blocks (rows, 3), and what the gradient needs.

    The mean of each unit, and one over its standard deviation, are those of the rows, unless
    `seen` has those of the training text.
    """
    joined = fnp.take(p["embedding"], blocks, axis=0).reshape(len(blocks), -1)
    linear = joined @ p["w1"] + p["b1"]
    inverse = (linear.var(axis=0, ddof=1) + model.EPSILON) ** -0.5
    mean, inverse = seen or (linear.mean(axis=0), inverse)
    normal = (linear - mean) * inverse
    hidden = np.tanh(p["gain"] * normal + p["shift"])
    values = {"joined": joined, "normal": normal, "hidden": hidden, "seen": (mean, inverse)}
    return hidden @ p["w2"] + p["b2"], values


def loss(p: Params, blocks: Any, following: Any, seen: Any = None) -> Any:
    """Mean cross-entropy in nats per letter."""
    logits, _ = forward(p, blocks, seen)
    return nn.losses.softmax_cross_entropy_with_integer_labels(logits, following).mean()


# The gradient.


def gradient(p: Params, blocks: Any, following: Any, logits: Any, v: Params) -> Params:
    """The gradients of all parameters.

    Cross-entropy: the gradient in the logits is the probabilities, less one at the right letter,
    over the rows n. Batch normalisation y = (x - mean(x)) r with r = (var(x) + epsilon)^(-1/2),
    whose variance divides by n - 1: from dr = -r^3 / 2 dvar and dvar = 2 / (n - 1) sum (x - mean)
    dx,

        g_x = r (g_y - mean(g_y) - y sum(g_y y) / (n - 1)),

    with sums and means over the rows; mean(y) = 0 has removed a fourth term.
    """
    rows = len(blocks)
    g_logits = (nn.softmax(logits) - nn.one_hot(following, logits.shape[1])) / rows
    g_scaled = (g_logits @ p["w2"].T) * (1.0 - v["hidden"] ** 2)
    g_shift, g_gain = g_scaled.sum(axis=0), (g_scaled * v["normal"]).sum(axis=0)
    factor = p["gain"] * v["seen"][1]
    g_linear = factor * (g_scaled - g_shift / rows - v["normal"] * g_gain / (rows - 1))
    g_embedded = (g_linear @ p["w1"].T).reshape(-1, model.WIDTH)
    return {
        "embedding": fg.ops.segment_sum(g_embedded, blocks.ravel(), len(p["embedding"])),
        "w1": v["joined"].T @ g_linear,
        "b1": g_linear.sum(axis=0),
        "gain": g_gain,
        "shift": g_shift,
        "w2": v["hidden"].T @ g_logits,
        "b2": g_logits.sum(axis=0),
    }


def rule(p: Params, blocks: Any, following: Any) -> tuple[Any, Any]:
    """The loss, and what its gradient needs."""
    logits, values = forward(p, blocks)
    losses = nn.losses.softmax_cross_entropy_with_integer_labels(logits, following)
    return losses.mean(), (p, blocks, following, logits, values)


def pull_back(residuals: Any, cotangent: Any) -> tuple[Any, None, None]:
    """The gradient in the parameters; letters have none."""
    return fg.tree.map(lambda g: cotangent * g, gradient(*residuals)), None, None


loss_by_hand = fg.custom_vjp(lambda p, blocks, following: loss(p, blocks, following))
loss_by_hand.defvjp(rule, pull_back)


# Using the model.


def train(
    loss: Callable[..., Any], text: model.Text, args: argparse.Namespace
) -> tuple[Params, np.ndarray]:
    """Gradient descent; its rate is a tenth for the last two fifths of the steps."""
    rate = optim.piecewise_constant_schedule(args.lr, {int(0.6 * args.steps): 0.1})
    batches = training.batches(text[:2], args.batch_size, args.steps, args.seed)
    params = model.init_params(args.seed, len(text.letters))
    return training.minimize(lambda p, b: loss(p, *b), params, optim.sgd(rate), batches)[:2]


def sample(p: Params, seen: Any, letters: str, seed: int) -> list[str]:
    """New names, letter by letter."""

    def letter(block: Any, key: Any) -> tuple[Any, Any]:
        drawn = fg.random.categorical(key, forward(p, block[None], seen)[0][0])
        return np.append(block[1:], drawn.astype(block.dtype)), drawn

    def name(key: Any) -> Any:
        keys = fg.random.split(key, LONGEST)
        return fg.lax.scan(letter, np.zeros(model.BLOCK, np.int32), keys)[1]

    drawn = fg.jit(fg.vmap(name))(fg.random.split(fg.random.key(seed), DRAWN))
    return ["".join(letters[i] for i in row).partition(model.END)[0] for row in drawn]


# The picture.


def plot(losses: dict[str, np.ndarray], held_out: dict[str, float], count: int, path: Path) -> None:
    """Draw the loss of both trainings, and what the first one reaches on each part of the names."""
    figure, ((left, right),) = program.panels(1, 2, 11, 4.2)
    window = max(1, min(len(values) for values in losses.values()) // 50)
    for (name, values), style in zip(losses.items(), ("-", "--"), strict=True):
        smooth = training.smooth(values, window)
        left.plot(np.arange(len(smooth)) + window, smooth, style, label=name)
    left.axhline(np.log(count), color="grey", linestyle=":", label="knowing nothing")
    left.set(title="training loss, smoothed", xlabel="step", ylabel="nats per letter")
    left.legend()
    right.bar_label(right.bar(list(held_out), list(held_out.values())), fmt="%.3f")
    right.axhline(np.log(count), color="grey", linestyle=":")
    right.set(title="loss of the trained model", ylabel="nats per letter")
    program.save(figure, path)


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser(
        "Train a character model by gradients in closed form.",
        "closed_forms.png",
        steps=(1, 10_000),
        batch_size=(program.whole(2), 32),
        lr=0.1,
        seed=(0, 0),
    )
    model.add_text(parser)
    return program.parse(parser, arguments)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Compare, train, test and sample; everything that is printed or drawn."""
    texts = model.divided(args.text or model.library_names(), args.seed)
    text = texts["training"]
    print(f"{len(text.blocks)} letters of an alphabet of {len(text.letters)} to learn from")
    batch = text.blocks[: args.batch_size], text.following[: args.batch_size]
    params = model.init_params(args.seed, len(text.letters))
    hand, automatic = fg.grad(loss_by_hand)(params, *batch), fg.grad(loss)(params, *batch)
    differences = {name: float(np.abs(hand[name] - g).max()) for name, g in automatic.items()}
    print("largest difference of a gradient:", f"{max(differences.values()):.1e}")
    ratios = by_hand.time_ratios(fg.grad(loss_by_hand), fg.grad(loss), params, *batch)
    trained, hand_losses = train(loss_by_hand, text, args)
    _, automatic_losses = train(loss, text, args)
    gap = np.max(np.abs(hand_losses - automatic_losses))
    print(f"the losses of both trainings differ by {gap:.1e} at most")
    seen = forward(trained, text.blocks)[1]["seen"]
    held_out = {part: float(loss(trained, *one[:2], seen)) for part, one in texts.items()}
    print("nats per letter: " + ", ".join(f"{part} {x:.3f}" for part, x in held_out.items()))
    new = sample(trained, seen, text.letters, args.seed)
    print("new names:", " ".join(new))
    losses = {"by hand": hand_losses, "automatic": automatic_losses}
    plot(losses, held_out, len(text.letters), args.output)
    return {
        "differences": differences,
        "time ratios": ratios,
        "losses": losses,
        "held out": held_out,
        "names": new,
    }


if __name__ == "__main__":
    run(parse_arguments())
