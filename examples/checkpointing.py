"""Less memory for more time: the gradient of a deep network with and without checkpoints.

The gradient of 64 layers `tanh(x @ w)` keeps the results of all layers. With checkpoints, it keeps
only some and computes the rest a second time. The example compares no checkpoints; a checkpoint
around every layer, which keeps one array per layer instead of two; eight segments of eight layers
(the square root of 64); and memory budgets, for which funcgrad chooses what to keep. Run it with

    python examples/checkpointing.py

It prints a table of memory and time, and writes `checkpointing.png`. For eager runs, the memory is
measured; for compiled runs, it is the memory that the compiled program reports.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import funcgrad as fg
import program
import timing

SHARES = (0.6, 0.3)
"""Budgets, as shares of the memory that is used without checkpoints."""

MEGABYTE = 1e6
Loss = Callable[[Any, Any], Any]


# The network.


def layer(w: Any, x: Any) -> Any:
    """One layer; all of them share their weights."""
    return np.tanh(x @ w)


def plain(layers: int, w: Any, x: Any) -> Any:
    """The loss without checkpoints."""
    for _ in range(layers):
        x = layer(w, x)
    return np.sum(x**2)


def every_layer(layers: int, w: Any, x: Any) -> Any:
    """The loss with a checkpoint around every layer."""
    for _ in range(layers):
        x = fg.checkpoint(layer)(w, x)
    return np.sum(x**2)


def square_root(layers: int, w: Any, x: Any) -> Any:
    """The loss in as many checkpointed segments as the square root of the number of layers."""
    return np.sum(fg.checkpoint_sequential([partial(layer, w)] * layers)(x) ** 2)


def strategies(layers: int, plain_bytes: int) -> dict[str, Loss]:
    """All ways to compute the loss, by name."""
    found: dict[str, Loss] = {
        "plain": partial(plain, layers),
        "every layer": partial(every_layer, layers),
        "sqrt(n) segments": partial(square_root, layers),
    }
    for share in SHARES:
        limit = int(share * plain_bytes)
        found[f"budget {share:.0%}"] = fg.checkpoint(partial(plain, layers), budget=limit)
    return found


# Measuring.


@dataclass(frozen=True)
class Row:
    """What value and gradient cost.

    Attributes:
        name: The strategy.
        mode: ``"eager"`` or ``"jit"``.
        peak: Most bytes at a time, beyond the arguments.
        seconds: The fastest of several calls.
        slope: Gradient with respect to the weights.
    """

    name: str
    mode: str
    peak: int
    seconds: float
    slope: np.ndarray


def eager_peak(call: Callable[..., Any], *args: Any) -> int:
    """Most bytes of arrays at a time during one call."""
    tracemalloc.start()
    try:
        call(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measure(args: argparse.Namespace) -> list[Row]:
    """All strategies in both modes."""
    rng = np.random.default_rng(args.seed)
    w = (rng.standard_normal((args.width, args.width)) / np.sqrt(args.width)).astype(np.float32)
    x = rng.standard_normal((args.batch_size, args.width)).astype(np.float32)
    start = fg.value_and_grad(partial(plain, args.layers), argnums=(0, 1))
    losses = strategies(args.layers, eager_peak(start, w, x))
    calls: dict[Any, Callable[..., Any]] = {}
    peaks = {}
    for name, loss in tqdm(losses.items(), desc="compiling", leave=False):
        gradient = fg.value_and_grad(loss, argnums=(0, 1))
        compiled = fg.jit(gradient).lower(w, x).compile()
        calls[name, "eager"], calls[name, "jit"] = gradient, compiled
        gradient(w, x)  # the first call may plan
        peaks[name, "eager"] = eager_peak(gradient, w, x)
        memory = compiled.memory_analysis()
        peaks[name, "jit"] = memory.peak_memory_in_bytes - memory.argument_size_in_bytes
    seconds = timing.fastest(calls, w, x, rounds=args.rounds)
    return [
        Row(name, mode, peaks[name, mode], seconds[name, mode], call(w, x)[1][0])
        for (name, mode), call in calls.items()
    ]


# The table and the picture.


def write(rows: list[Row]) -> None:
    """Print memory and time, also as multiples of those without checkpoints."""
    print(f"{'':24}{'MB':>8}{'of plain':>10}{'ms':>8}{'of plain ms':>13}")
    first = {row.mode: row for row in rows if row.name == "plain"}
    for row in sorted(rows, key=lambda row: row.mode):
        base = first[row.mode]
        print(
            f"{row.mode + ', ' + row.name:24}{row.peak / MEGABYTE:8.1f}{row.peak / base.peak:10.0%}"
            f"{1e3 * row.seconds:8.1f}{row.seconds / base.seconds:13.2f}"
        )


def plot(rows: list[Row], path: Path) -> None:
    """Draw memory and time side by side, both modes."""
    names = [row.name for row in rows if row.mode == "eager"]
    figure, ((left, right),) = program.panels(1, 2, 10, 3.8, sharey=True)
    places = np.arange(len(names))
    for shift, mode in ((-0.2, "eager"), (0.2, "jit")):
        chosen = [row for row in rows if row.mode == mode]
        memory = left.barh(places + shift, [row.peak / MEGABYTE for row in chosen], 0.4, label=mode)
        left.bar_label(memory, fmt="%.1f", fontsize=8, padding=2)
        seconds = right.barh(places + shift, [1e3 * row.seconds for row in chosen], 0.4, label=mode)
        right.bar_label(seconds, fmt="%.0f", fontsize=8, padding=2)
    left.set_yticks(places, names)
    left.invert_yaxis()
    left.set(title="memory of value and gradient", xlabel="MB at the peak, beyond the arguments")
    right.set(title="time of value and gradient", xlabel="ms")
    for axes in (left, right):
        axes.margins(x=0.12)
        axes.grid(visible=False, axis="y")
    figure.legend(*left.get_legend_handles_labels(), loc="outside right upper")
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Memory against time of gradients.",
    "checkpointing.png",
    layers=(4, 64),
    width=(8, 128),
    batch_size=(1, 256),
    rounds=(1, 3),
    seed=(0, 0),
)


def run(args: argparse.Namespace) -> list[Row]:
    """Measure, print and draw."""
    rows = measure(args)
    print(f"{args.layers} layers tanh(x @ w) of width {args.width}, batch {args.batch_size}")
    write(rows)
    plot(rows, args.output)
    return rows


if __name__ == "__main__":
    run(parse_arguments())
