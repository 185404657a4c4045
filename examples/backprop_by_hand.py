"""Backpropagation by hand through a character model with batch normalisation, checked with `grad`.

The model predicts the next letter of a name from the three before it:

    embedding -> linear -> batch normalisation -> tanh -> linear -> cross-entropy

First, the forward pass is written in elementary steps, and the gradient of each step is derived by
hand: of the logarithm, the softmax with its subtracted maximum, sums that broadcast, the mean and
variance of the batch, and the lookup of embeddings, whose transpose is a scatter-add. The program
compares all of them with the results of `grad`. Then the steps are combined into a few closed
forms, which become the rule of a `custom_vjp`. The program trains the model with this rule, and
also with automatic gradients. Run it with

    python examples/backprop_by_hand.py

The training text consists of four fifths of the names in Python's standard library; `--text FILE`
reads another one, with one name per line. The program prints every difference, two sums that must
be zero, the times of the composed and of the closed gradient, and the losses on the names that were
held out. It samples a few new names and writes `backprop_by_hand.png`.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import funcgrad as fg
import funcgrad.numpy as fnp
import program
import training

BLOCK = 3
WIDTH = 10
HIDDEN = 200
EPSILON = 1e-5
END = "."
STEPS_PER_CALL = 250
FEWEST = 10
"""Names, of which one in ten is for validation and one for the test."""
MODULES = (
    *("argparse", "ast", "asyncio", "collections", "concurrent.futures", "contextlib", "csv"),
    *("datetime", "decimal", "email.message", "fractions", "functools", "gzip", "http", "inspect"),
    *("itertools", "json", "logging", "math", "os", "pathlib", "pickle", "random", "re", "shutil"),
    *("socket", "sqlite3", "statistics", "string", "subprocess", "sys", "tarfile", "tempfile"),
    *("threading", "time", "tokenize", "traceback", "types", "typing", "unittest", "urllib.parse"),
    *("uuid", "weakref", "xml.dom", "zipfile"),
)

Params = dict[str, Any]
Values = dict[str, Any]


# The text.


@dataclass(frozen=True)
class Text:
    """Blocks of letters (rows, 3), the letter after each (rows,), and the alphabet."""

    blocks: np.ndarray
    following: np.ndarray
    letters: str


def library_names() -> list[str]:
    """Names in lower case of the standard library: its modules, and what is in some of them."""
    names = set(sys.stdlib_module_names)
    for module in MODULES:
        names.update(dir(importlib.import_module(module)))
    return sorted(name for name in names if re.fullmatch(r"[a-z][a-z_]{2,15}", name))


def alphabet(names: list[str]) -> str:
    """The end of a name, and all letters."""
    return END + "".join(sorted(set("".join(names)) - {END}))


def encode(names: list[str], letters: str) -> Text:
    """Every letter of every name, and its end, with the three letters before it."""
    number = {letter: i for i, letter in enumerate(letters)}
    blocks, following = [], []
    for name in names:
        padded = END * BLOCK + name.replace(END, "") + END
        for i in range(BLOCK, len(padded)):
            blocks.append([number[letter] for letter in padded[i - BLOCK : i]])
            following.append(number[padded[i]])
    return Text(np.array(blocks, np.int32), np.array(following, np.int32), letters)


# The model.


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


def forward(params: Params, blocks: Any, following: Any, bessel: bool, taps: Values) -> Values:
    """Every intermediate value, step by step.

    Args:
        params: The parameters.
        blocks: Letters (rows, 3).
        following: The letters to be predicted, (rows,).
        bessel: Divide the variance by rows - 1 instead of rows.
        taps: Zeros to be added to intermediate values, by their names. The gradient in a tap is the
            gradient in the value that it is added to.
    """
    found: Values = {}

    def keep(name: str, value: Any) -> Any:
        found[name] = value + taps[name] if name in taps else value
        return found[name]

    rows = len(blocks)
    embedded = keep("embedded", fnp.take(params["embedding"], blocks, axis=0))
    joined = keep("joined", embedded.reshape(rows, BLOCK * WIDTH))
    linear = keep("linear", joined @ params["w1"] + params["b1"])
    # Batch normalisation.
    mean = keep("mean", linear.sum(axis=0, keepdims=True) / rows)
    centred = keep("centred", linear - mean)
    squared = keep("squared", centred**2)
    variance = keep("variance", squared.sum(axis=0, keepdims=True) / (rows - bessel))
    inverse = keep("inverse", (variance + EPSILON) ** -0.5)
    normal = keep("normal", centred * inverse)
    scaled = keep("scaled", params["gain"] * normal + params["shift"])
    # The second layer.
    hidden = keep("hidden", np.tanh(scaled))
    logits = keep("logits", hidden @ params["w2"] + params["b2"])
    # Cross-entropy.
    largest = keep("largest", logits.max(axis=1, keepdims=True))
    lowered = keep("lowered", logits - largest)
    counts = keep("counts", np.exp(lowered))
    total = keep("total", counts.sum(axis=1, keepdims=True))
    total_inverse = keep("total_inverse", total**-1.0)
    probabilities = keep("probabilities", counts * total_inverse)
    logs = keep("logs", np.log(probabilities))
    chosen = keep("chosen", fnp.take_along_axis(logs, following[:, None], axis=1))
    found["loss"] = -chosen.sum() / rows
    return found


# The gradients by hand.


def scatter_rows(rows: Any, numbers: Any, count: int) -> Any:
    """An array of `count` rows: row i is the sum of the rows whose number is i."""
    return fg.ops.segment_sum(rows, numbers, num_segments=count)


def backward(params: Params, blocks: Any, following: Any, bessel: bool, v: Values) -> Values:
    """The gradient in every intermediate value and in every parameter, step by step backwards.

    A sum along an axis is transposed by broadcasting, a broadcast by a sum, a lookup by a
    scatter-add. What is used twice has the sum of two gradients.
    """
    rows = len(blocks)
    g: Values = {}
    g["chosen"] = np.full((rows, 1), -1.0 / rows)
    is_following = following[:, None] == np.arange(v["logits"].shape[1])
    g["logs"] = np.where(is_following, g["chosen"], 0.0)
    g["probabilities"] = g["logs"] / v["probabilities"]
    g["total_inverse"] = (g["probabilities"] * v["counts"]).sum(axis=1, keepdims=True)
    g["total"] = -g["total_inverse"] * v["total"] ** -2.0
    g["counts"] = g["probabilities"] * v["total_inverse"] + g["total"]
    g["lowered"] = g["counts"] * v["counts"]
    g["largest"] = -g["lowered"].sum(axis=1, keepdims=True)
    is_largest = v["logits"] == v["largest"]
    shares = is_largest / is_largest.sum(axis=1, keepdims=True)
    g["logits"] = g["lowered"] + g["largest"] * shares
    g["b2"] = g["logits"].sum(axis=0)
    g["w2"] = v["hidden"].T @ g["logits"]
    g["hidden"] = g["logits"] @ params["w2"].T
    g["scaled"] = g["hidden"] * (1.0 - v["hidden"] ** 2)
    g["shift"] = g["scaled"].sum(axis=0)
    g["gain"] = (g["scaled"] * v["normal"]).sum(axis=0)
    g["normal"] = g["scaled"] * params["gain"]
    g["inverse"] = (g["normal"] * v["centred"]).sum(axis=0, keepdims=True)
    g["variance"] = -0.5 * g["inverse"] * (v["variance"] + EPSILON) ** -1.5
    g["squared"] = np.broadcast_to(g["variance"] / (rows - bessel), v["squared"].shape)
    g["centred"] = g["normal"] * v["inverse"] + 2.0 * v["centred"] * g["squared"]
    g["mean"] = -g["centred"].sum(axis=0, keepdims=True)
    g["linear"] = g["centred"] + g["mean"] / rows
    g["b1"] = g["linear"].sum(axis=0)
    g["w1"] = v["joined"].T @ g["linear"]
    g["joined"] = g["linear"] @ params["w1"].T
    g["embedded"] = g["joined"].reshape(rows, BLOCK, WIDTH)
    g["embedding"] = scatter_rows(
        g["embedded"].reshape(-1, WIDTH), blocks.reshape(-1), len(params["embedding"])
    )
    return g


def backward_contracted(
    params: Params, blocks: Any, following: Any, bessel: bool, v: Values
) -> Params:
    """The gradients of the parameters by closed forms.

    Cross-entropy: the gradient in the logits is the probabilities, less one at the right letter,
    over the rows n. Batch normalisation y = (x - mean(x)) r with r = (var(x) + epsilon)^(-1/2),
    whose variance divides by m (n, or n - 1): from dr = -r^3 / 2 dvar and
    dvar = 2 / m sum (x - mean) dx,

        g_x = r (g_y - mean(g_y) - y sum(g_y y) / m),

    with sums and means over the rows; mean(y) = 0 has removed a fourth term.
    """
    rows = len(blocks)
    is_following = following[:, None] == np.arange(v["logits"].shape[1])
    g_logits = (v["probabilities"] - is_following) / rows
    g_scaled = (g_logits @ params["w2"].T) * (1.0 - v["hidden"] ** 2)
    g_gain = (g_scaled * v["normal"]).sum(axis=0)
    g_shift = g_scaled.sum(axis=0)
    factor = params["gain"] * v["inverse"]
    g_linear = factor * (g_scaled - g_shift / rows - v["normal"] * g_gain / (rows - bessel))
    g_embedded = (g_linear @ params["w1"].T).reshape(-1, WIDTH)
    return {
        "embedding": scatter_rows(g_embedded, blocks.reshape(-1), len(params["embedding"])),
        "w1": v["joined"].T @ g_linear,
        "b1": g_linear.sum(axis=0),
        "gain": g_gain,
        "shift": g_shift,
        "w2": v["hidden"].T @ g_logits,
        "b2": g_logits.sum(axis=0),
    }


# The proof.


def largest_differences(by_hand: Values, automatic: Values) -> dict[str, float]:
    """The largest absolute difference of every array."""
    if by_hand.keys() != automatic.keys():
        raise ValueError(f"different gradients: {sorted(by_hand.keys() ^ automatic.keys())}")
    return {name: float(np.max(np.abs(by_hand[name] - automatic[name]))) for name in automatic}


def compare(params: Params, blocks: np.ndarray, following: np.ndarray, bessel: bool) -> Values:
    """How much the gradients by hand differ from the automatic ones: by value, then by form."""
    values = forward(params, blocks, following, bessel, {})
    taps = {name: np.zeros_like(value) for name, value in values.items() if name != "loss"}

    def tapped(params: Params, taps: Values) -> Any:
        return forward(params, blocks, following, bessel, taps)["loss"]

    of_params, of_taps = fg.grad(tapped, argnums=(0, 1))(params, taps)
    found = largest_differences(
        backward(params, blocks, following, bessel, values), {**of_taps, **of_params}
    )
    contracted = backward_contracted(params, blocks, following, bessel, values)
    closed = largest_differences(contracted, of_params)
    return {**found, **{f"{name}, closed form": error for name, error in closed.items()}}


def zeros(params: Params, blocks: np.ndarray, following: np.ndarray) -> dict[str, float]:
    """Two sizes that are 0 but for rounding.

    The maximum that a stable softmax subtracts changes no probability, so nothing flows through it.
    The probabilities of a row add up to 1, as does the target, so their difference adds up to 0.
    """
    values = forward(params, blocks, following, False, {})
    g = backward(params, blocks, following, False, values)
    return {
        "gradient through the maximum": float(np.max(np.abs(g["largest"]))),
        "sum of a row of the logits' gradient": float(np.max(np.abs(g["logits"].sum(axis=1)))),
    }


def time_ratios(params: Params, blocks: np.ndarray, following: np.ndarray) -> dict[str, float]:
    """Time of the gradient in closed form, over that of elementary steps, compiled and eager."""
    composed = fg.grad(automatic_loss(bessel=True))
    closed = fg.grad(loss_by_hand(bessel=True))
    ratios = {}
    for name, pair in (
        ("compiled", (fg.jit(closed), fg.jit(composed))),
        ("eager", (closed, composed)),
    ):
        best = [float("inf")] * 2
        for turn in range(42):  # alternating, so that both meet the same disturbances
            start = time.perf_counter()
            pair[turn % 2](params, blocks, following)
            best[turn % 2] = min(best[turn % 2], time.perf_counter() - start)
        ratios[name] = best[0] / best[1]
    return ratios


# Training.


def automatic_loss(bessel: bool) -> Callable[..., Any]:
    """The loss, whose gradient is left to the library."""

    def loss(params: Params, blocks: Any, following: Any) -> Any:
        return forward(params, blocks, following, bessel, {})["loss"]

    return loss


def loss_by_hand(bessel: bool) -> Callable[..., Any]:
    """The loss with the gradient by hand."""

    @fg.custom_vjp
    def loss(params: Params, blocks: Any, following: Any) -> Any:
        return forward(params, blocks, following, bessel, {})["loss"]

    def fwd(params: Params, blocks: Any, following: Any) -> tuple[Any, Any]:
        values = forward(params, blocks, following, bessel, {})
        kept = {name: values[name] for name in ("joined", "inverse", "normal", "hidden")}
        kept |= {name: values[name] for name in ("logits", "probabilities")}
        return values["loss"], (params, blocks, following, kept)

    def bwd(residuals: Any, ct: Any) -> tuple[Any, None, None]:
        params, blocks, following, values = residuals
        gradients = backward_contracted(params, blocks, following, bessel, values)
        return fg.tree.map(lambda g: ct * g, gradients), None, None

    loss.defvjp(fwd, bwd)
    return loss


def make_steps(loss: Callable[..., Any], text: Text) -> Callable[..., tuple[Params, np.ndarray]]:
    """Many steps of gradient descent as one compiled loop over numbers of rows (steps, batch)."""

    def steps(params: Params, rows: Any, rates: Any) -> tuple[Params, Any]:
        def step(params: Params, given: Any) -> tuple[Params, Any]:
            rows, rate = given
            blocks, following = fnp.at(text.blocks)[rows].get(), fnp.at(text.following)[rows].get()
            value, slopes = fg.value_and_grad(loss)(params, blocks, following)
            return fg.tree.map(lambda p, g: p - rate * g, params, slopes), value

        return fg.lax.scan(step, params, (rows, rates))

    return fg.jit(steps)


def train(
    loss: Callable[..., Any], text: Text, args: argparse.Namespace, what: str
) -> tuple[Params, np.ndarray]:
    """The parameters after `args.steps` steps, and the loss of each."""
    steps = make_steps(loss, text)
    rng = np.random.default_rng(args.seed)
    rows = rng.integers(0, len(text.blocks), size=(args.steps, args.batch_size))
    rates = np.where(np.arange(args.steps) < 0.6 * args.steps, args.lr, 0.1 * args.lr)
    params, losses = init_params(args.seed, len(text.letters)), []
    with tqdm(total=args.steps, desc=what, unit="step") as bar:
        for start in range(0, args.steps, STEPS_PER_CALL):
            part = slice(start, start + STEPS_PER_CALL)
            params, found = steps(params, rows[part], rates[part])
            losses.append(found)
            bar.update(len(found))
    return params, np.concatenate(losses)


# Using what was learned: mean and variance are those of the training text.


def statistics(params: Params, text: Text) -> tuple[Any, Any]:
    """Mean, and one over the standard deviation, of the hidden sums over a text."""
    values = forward(params, text.blocks, text.following, True, {})
    return values["mean"][0], values["inverse"][0]


def logits_of(params: Params, normal: tuple[Any, Any], blocks: Any) -> Any:
    """Logits (..., letters) for blocks (..., 3)."""
    mean, inverse = normal
    joined = fnp.take(params["embedding"], blocks, axis=0).reshape(*blocks.shape[:-1], -1)
    normalized = (joined @ params["w1"] + params["b1"] - mean) * inverse
    hidden = np.tanh(params["gain"] * normalized + params["shift"])
    return hidden @ params["w2"] + params["b2"]


def loss_on(params: Params, normal: tuple[Any, Any], text: Text) -> float:
    """Mean cross-entropy in nats per letter."""
    found = fg.nn.log_softmax(logits_of(params, normal, text.blocks))
    return -float(np.mean(found[np.arange(len(found)), text.following]))


def sample(params: Params, normal: tuple[Any, Any], letters: str, seed: int) -> list[str]:
    """Twenty new names, letter by letter."""
    count, longest = 20, 20

    def letter(block: Any, key: Any) -> tuple[Any, Any]:
        drawn = fg.random.categorical(key, logits_of(params, normal, block))
        return np.concatenate([block[1:], drawn[None].astype(block.dtype)]), drawn

    def name(key: Any) -> Any:
        keys = fg.random.split(key, longest)
        return fg.lax.scan(letter, np.zeros(BLOCK, np.int32), keys)[1]

    drawn = fg.jit(fg.vmap(name))(fg.random.split(fg.random.key(seed), count))
    return ["".join(letters[i] for i in row).partition(END)[0] for row in drawn]


# The picture.


def plot(
    differences: dict[str, Values], losses: dict[str, np.ndarray], letters: int, path: Path
) -> None:
    """Draw the loss of both trainings, and every difference of a gradient."""
    figure, ((left, right),) = program.panels(1, 2, 11, 5.4)
    window = max(1, min(len(values) for values in losses.values()) // 50)
    for (name, values), style in zip(losses.items(), ("-", "--"), strict=True):
        smooth = training.smooth(values, window)
        left.plot(np.arange(len(smooth)) + window, smooth, style, label=name)
    left.axhline(np.log(letters), color="grey", linestyle=":", label="knowing nothing")
    left.set(title="training loss, smoothed", xlabel="step", ylabel="nats per letter")
    left.legend()
    names = list(next(iter(differences.values())))
    floor = 1e-19
    for (convention, found), marker in zip(differences.items(), "ox", strict=True):
        errors = [max(found[name], floor) for name in names]
        right.semilogx(errors, names, marker, label=convention, markersize=5)
    right.axvline(1e-12, color="tab:red", label="allowed")
    right.set(title="by hand less automatic", xlabel="largest difference (leftmost: none)")
    right.set(xlim=(floor / 2, 1e-11))
    right.tick_params(axis="y", labelsize=7)
    right.invert_yaxis()
    right.legend(loc="lower right")
    program.save(figure, path)


# The command line.


def names_in(path: str) -> list[str]:
    """The lines of a file that are not empty."""
    try:
        names = Path(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"cannot read {path}: {error}") from None
    names = [name.strip() for name in names if name.strip().strip(END)]
    if len(names) < FEWEST:
        raise argparse.ArgumentTypeError(f"there are fewer than {FEWEST} names in {path}")
    return names


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser("Train a character model by gradients by hand.", "backprop_by_hand.png")
    parser.add_argument(
        "--text", type=names_in, metavar="FILE", help="a name per line, instead of Python's"
    )
    parser.add_argument("--steps", type=program.whole(1), default=10_000, metavar="N")
    parser.add_argument("--batch-size", type=program.whole(2), default=32, metavar="N")
    parser.add_argument("--lr", type=program.positive, default=0.1, metavar="RATE")
    parser.add_argument("--seed", type=program.whole(0), default=0, metavar="N")
    return program.parse(parser, arguments)


@dataclass(frozen=True)
class Result:
    """Differences by convention of the variance, sizes that must be 0, times, losses, names."""

    differences: dict[str, dict[str, float]]
    zeros: dict[str, float]
    time_ratios: dict[str, float]
    losses: dict[str, np.ndarray]
    held_out: dict[str, float]
    names: list[str]


def run(args: argparse.Namespace) -> Result:
    """Compare, train, test and sample."""
    names = args.text or library_names()
    letters, rng = alphabet(names), np.random.default_rng(args.seed)
    order = [names[i] for i in rng.permutation(len(names))]
    first, second = (round(share * len(names)) for share in (0.8, 0.9))
    parts = {"training": order[:first], "validation": order[first:second], "test": order[second:]}
    texts = {part: encode(chosen, letters) for part, chosen in parts.items()}
    text = texts["training"]
    print(f"{len(names)} names, {len(text.blocks)} letters of an alphabet of {len(letters)}")
    params = init_params(args.seed, len(letters))
    rows = rng.integers(0, len(text.blocks), args.batch_size)
    given = (params, text.blocks[rows], text.following[rows])
    differences = {
        "variance over n": compare(*given, bessel=False),
        "variance over n - 1": compare(*given, bessel=True),
    }
    print(f"{'largest difference of':28}" + "  ".join(differences))
    for name in differences["variance over n"]:
        errors = "  ".join(f"{found[name]:{len(c)}.1e}" for c, found in differences.items())
        print(f"  {name:26}{errors}")
    small, ratios = zeros(*given), time_ratios(*given)
    for name, size in small.items():
        print(f"{name}: {size:.1e}")
    print("time, closed / composed: " + ", ".join(f"{k} {x:.2f}" for k, x in ratios.items()))
    by_hand, hand_losses = train(loss_by_hand(bessel=True), text, args, "by hand")
    _, automatic_losses = train(automatic_loss(bessel=True), text, args, "automatic")
    losses = {"by hand": hand_losses, "automatic": automatic_losses}
    gap = np.max(np.abs(hand_losses - automatic_losses))
    print(f"the losses of both trainings differ by {gap:.1e} at most")
    normal = statistics(by_hand, text)
    held_out = {part: loss_on(by_hand, normal, one) for part, one in texts.items()}
    print("nats per letter: " + ", ".join(f"{part} {x:.3f}" for part, x in held_out.items()))
    new = sample(by_hand, normal, letters, args.seed)
    print("new names:", " ".join(new))
    plot(differences, losses, len(letters), args.output)
    return Result(differences, small, ratios, losses, held_out, new)


if __name__ == "__main__":
    run(parse_arguments())
