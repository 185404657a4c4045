"""Serving a compiled model: latency and throughput, from one thread and from several at once.

A multi-layer perceptron 64-256-128-10 for scikit-learn's scanned digits is compiled by `jit` for
several batch sizes. Several threads send requests at the same time. A compiled call releases
Python's global lock while it computes, shares no mutable state, and returns new arrays to every
thread. Run it with

    python examples/serve.py

It prints a table of latencies, compares every answer with the uncompiled model, and writes
`serve.png`.
"""

from __future__ import annotations

import argparse
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

import funcgrad as fg
import funcgrad.numpy as fnp
import program

SIZES = (64, 256, 128, 10)
TRAINING_STEPS = 300

Params = list[dict[str, Any]]
Model = Callable[[Params, Any], Any]


# The model.


def init_params(key: Any) -> Params:
    """Weights with variance 2 / fan-in and zero biases, of float32."""
    keys = fg.random.split(key, len(SIZES) - 1)
    return [
        {
            "w": fg.random.normal(layer_key, (m, n), np.float32) * (2.0 / m) ** 0.5,
            "b": np.zeros(n, np.float32),
        }
        for layer_key, m, n in zip(keys, SIZES[:-1], SIZES[1:], strict=True)
    ]


def predict(params: Params, x: Any) -> Any:
    """Probabilities (rows, 10) for images (rows, 64)."""
    return fg.nn.softmax(logits(params, x))


def logits(params: Params, x: Any) -> Any:
    """What the last layer gives."""
    *hidden, last = params
    for layer in hidden:
        x = fg.nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def train(params: Params, x: np.ndarray, labels: np.ndarray) -> Params:
    """A few hundred steps over all images: enough for probabilities that mean something."""
    targets = np.eye(SIZES[-1], dtype=np.float32)[labels]

    def loss(params: Params) -> Any:
        return -fnp.mean(fnp.sum(targets * fg.nn.log_softmax(logits(params, x)), axis=1))

    def step(params: Params, _: None) -> tuple[Params, None]:
        return fg.tree.map(lambda p, g: p - 0.2 * g, params, fg.grad(loss)(params)), None

    return fg.jit(lambda params: fg.lax.scan(step, params, None, length=TRAINING_STEPS)[0])(params)


# Serving.


@dataclass(frozen=True)
class Load:
    """What was measured of one batch size under one number of threads.

    Args:
        batch: Images in a request.
        threads: How many ask at once.
        latencies: Seconds of every request.
        elapsed: Seconds from the first request to the last answer.
        error: The largest difference between a probability and the uncompiled model's.
    """

    batch: int
    threads: int
    latencies: np.ndarray
    elapsed: float
    error: float

    @property
    def rate(self) -> float:
        """Images per second, of all threads together."""
        return self.batch * len(self.latencies) / self.elapsed


def ask(
    model: Model, params: Params, batches: list[np.ndarray], seconds: float
) -> tuple[list[float], list[np.ndarray]]:
    """One client: request after request for a while; their latencies, and the answers."""
    latencies: list[float] = []
    answers: list[np.ndarray] = []
    finish = time.perf_counter()
    end = finish + seconds
    while finish < end:
        rows = batches[len(answers) % len(batches)]
        start = time.perf_counter()
        answers.append(model(params, rows))
        finish = time.perf_counter()
        latencies.append(finish - start)
    return latencies, answers


def measure(
    model: Model, params: Params, images: np.ndarray, batch: int, threads: int, seconds: float
) -> Load:
    """Requests of different images from several threads that start together."""
    starts = np.random.default_rng(batch).integers(0, len(images) - batch + 1, size=8)
    batches = [images[start : start + batch] for start in starts]
    expected = [np.asarray(predict(params, rows)) for rows in batches]
    model(params, batches[0])  # traces for this size
    together = threading.Barrier(threads + 1)

    def client() -> tuple[list[float], list[np.ndarray]]:
        together.wait()
        return ask(model, params, batches, seconds)

    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(client) for _ in range(threads)]
        together.wait()
        start = time.perf_counter()
        found = [each.result() for each in running]
        elapsed = time.perf_counter() - start
    latencies = np.concatenate([each for each, _ in found])
    error = max(
        float(np.max(np.abs(answer - expected[number % len(expected)])))
        for _, answers in found
        for number, answer in enumerate(answers)
    )
    return Load(batch, threads, latencies, elapsed, error)


# The picture.


def plot(loads: list[Load], path: Path) -> None:
    """Draw what share of the requests was answered within what time, and the rates."""
    figure, ((left, right),) = program.panels(1, 2, 10, 4, width_ratios=(3, 2))
    batches = sorted({load.batch for load in loads})
    threads = sorted({load.threads for load in loads})
    for load in loads:
        color, style = (
            f"C{batches.index(load.batch)}",
            ("-", "--", ":")[threads.index(load.threads) % 3],
        )
        share = np.linspace(0, 100, len(load.latencies))
        name = f"{load.batch}, {load.threads} threads" if load.threads > 1 else f"{load.batch}"
        left.semilogx(1e6 * np.sort(load.latencies), share, style, color=color, label=name)
    left.set(title="answered within", xlabel="microseconds", ylabel="% of the requests")
    left.legend(title="images", fontsize=8)
    for batch in batches:
        rates = [load.rate for load in loads if load.batch == batch]
        right.semilogy(threads, rates, "o-", label=f"{batch}")
    right.set(title="throughput", xlabel="threads", ylabel="images per second", xticks=threads)
    right.legend(title="images", fontsize=8)
    program.save(figure, path)


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser("Measure the latencies of a compiled model.", "serve.png")
    parser.add_argument(
        "--batch", type=program.whole(1), nargs="+", default=[1, 32, 256], metavar="N"
    )
    parser.add_argument(
        "--threads", type=program.whole(1), nargs="+", default=[1, 2, 4], metavar="N"
    )
    parser.add_argument(
        "--seconds",
        type=program.positive,
        default=0.5,
        metavar="S",
        help="for every line of the table",
    )
    args = program.parse(parser, arguments)
    args.batch, args.threads = sorted(set(args.batch)), sorted(set(args.threads))
    images = len(load_digits().data)
    if args.batch[-1] > images:
        parser.error(f"argument --batch: {args.batch[-1]} is more than the {images} images")
    return args


def run(args: argparse.Namespace) -> list[Load]:
    """Train, serve, tell, draw."""
    found = load_digits()
    images, labels = (found.data / 16).astype(np.float32), found.target
    params = train(init_params(fg.random.key(0)), images, labels)
    model = fg.jit(predict)
    right = np.mean(np.argmax(model(params, images), axis=1) == labels)
    print(f"the model names {right:.1%} of {len(images)} images rightly")
    loads = []
    cases = list(itertools.product(args.batch, args.threads))
    with tqdm(cases, desc="serving", unit="case") as bar:
        for batch, threads in bar:
            loads.append(measure(model, params, images, batch, threads, args.seconds))
    print("batch  threads   median us   99 % us    worst us     images/s      error")
    for load in loads:
        median, late, worst = 1e6 * np.quantile(load.latencies, [0.5, 0.99, 1.0])
        print(
            f"{load.batch:5}{load.threads:9}{median:12.1f}{late:10.1f}{worst:12.1f}"
            f"{load.rate:13,.0f}{load.error:11.1e}"
        )
    plot(loads, args.output)
    return loads


if __name__ == "__main__":
    run(parse_arguments())
