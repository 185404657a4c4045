"""The cross-entropy of a softmax by hand: every step, and the closed form of all of them.

For logits x and the right class c, the loss is -log(p_c), where p = e^x / sum(e^x). The maximum of
each row is subtracted first, so that no power overflows. The gradient of each step is derived by
hand and compared with that of `grad`. Together they give (p - 1[class = c]) / rows. Run it with

    python examples/cross_entropy_by_hand.py

It prints every difference, three sizes that must be zero, and the time of the closed form over that
of the composed gradient. It writes `cross_entropy_by_hand.png`.
`backprop_by_hand.py` continues with the network below the logits.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import by_hand
import funcgrad as fg
import funcgrad.numpy as fnp
import program
from by_hand import Steps, Values


def forward(params: Values, labels: Any, steps: Steps) -> Any:
    """The mean loss of the logits (rows, classes) in `params`; labels (rows,)."""
    logits, keep = params["logits"], steps.keep
    largest = keep("largest", logits.max(axis=1, keepdims=True))
    lowered = keep("lowered", logits - largest)
    powers = keep("powers", np.exp(lowered))
    total = keep("total", powers.sum(axis=1, keepdims=True))
    inverse = keep("inverse", total**-1.0)
    probabilities = keep("probabilities", powers * inverse)
    logs = keep("logs", np.log(probabilities))
    chosen = keep("chosen", fnp.take_along_axis(logs, labels[:, None], axis=1))
    return -chosen.sum() / len(labels)


def backward(params: Values, labels: Any, v: Values) -> Values:
    """The gradient in every value, from the last step to the first."""
    logits, rows, g = params["logits"], len(labels), Values()
    g["chosen"] = np.full((rows, 1), -1.0 / rows)
    # Of each row, one entry was chosen; the others have no influence.
    g["logs"] = np.where(labels[:, None] == np.arange(logits.shape[1]), g["chosen"], 0.0)
    # d log(x) = dx / x
    g["probabilities"] = g["logs"] / v["probabilities"]
    # d(x y) = y dx + x dy; y was broadcast along the rows, so its gradient is a sum
    g["inverse"] = (g["probabilities"] * v["powers"]).sum(axis=1, keepdims=True)
    # d(1 / x) = -dx / x^2
    g["total"] = -g["inverse"] * v["total"] ** -2.0
    # The powers were used twice: in the product and in the sum, whose gradient is broadcast.
    g["powers"] = g["probabilities"] * v["inverse"] + g["total"]
    # d e^x = e^x dx
    g["lowered"] = g["powers"] * v["powers"]
    g["largest"] = -g["lowered"].sum(axis=1, keepdims=True)
    # Of several entries that are the maximum, each gets a share.
    is_largest = logits == v["largest"]
    shares = is_largest / is_largest.sum(axis=1, keepdims=True)
    g["logits"] = g["lowered"] + g["largest"] * shares
    return g


def closed_form(logits: Any, labels: Any) -> Any:
    """The gradient in the logits: (p - 1[class = label]) / rows."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = powers / powers.sum(axis=1, keepdims=True)
    return (p - (labels[:, None] == np.arange(p.shape[1]))) / len(labels)


def check(logits: Any, labels: Any) -> dict[str, float]:
    """Three sizes that are 0 but for rounding.

    The maximum that a stable softmax subtracts changes no probability, so nothing flows through it.
    The probabilities of a row add up to 1, as does the target, so their difference adds up to 0.
    """
    steps = Steps()
    forward({"logits": logits}, labels, steps)
    g = backward({"logits": logits}, labels, steps.values)
    return {
        "gradient through the maximum": float(np.abs(g["largest"]).max()),
        "sum of a row of the logits' gradient": float(np.abs(g["logits"].sum(axis=1)).max()),
        "closed form less steps": float(np.abs(closed_form(logits, labels) - g["logits"]).max()),
    }


# The picture.


def plot(gradient: np.ndarray, labels: np.ndarray, path: Path) -> None:
    """Draw what the closed form subtracts: probabilities less targets are the gradient."""
    target = (labels[:, None] == np.arange(gradient.shape[1])).astype(float)
    rows = {"probabilities p": gradient + target, "targets y": target, "p - y": gradient}
    figure, axes = program.panels(1, 3, 11, 4.6)
    for one, (title, values) in zip(axes.flat, rows.items(), strict=True):
        image = one.imshow(values, cmap="coolwarm", vmin=-1, vmax=1, aspect="auto")
        one.set(title=title, xlabel="class", xticks=range(values.shape[1]))
        one.grid(False)
    axes[0, 0].set_ylabel("row of the batch")
    figure.colorbar(image, ax=axes)
    figure.suptitle("the gradient of a cross-entropy in the logits, times the rows")
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Compare the gradient of a cross-entropy by hand with the automatic one.",
    "cross_entropy_by_hand.png",
    rows=(1, 32),
    classes=(2, 10),
    seed=(0, 0),
)


def run(args: argparse.Namespace) -> tuple[dict[str, float], dict[str, float]]:
    """Compare, time, print and draw: the differences; what must be zero, and the times."""
    rng = np.random.default_rng(args.seed)
    logits = 2 * rng.standard_normal((args.rows, args.classes))
    labels = rng.integers(0, args.classes, args.rows)
    found = by_hand.differences(forward, backward, {"logits": logits}, labels)
    by_hand.report({"cross-entropy": found})
    small = check(logits, labels)
    for name, size in small.items():
        print(f"{name}: {size:.1e}")
    composed = fg.grad(lambda x, y: forward({"logits": x}, y, Steps()))
    ratios = by_hand.time_ratios(closed_form, composed, logits, labels)
    plot(args.rows * closed_form(logits, labels), labels, args.output)
    return found, {**small, **ratios}


if __name__ == "__main__":
    run(parse_arguments())
