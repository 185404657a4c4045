"""Memory of training steps: what the model says, what the compiled program says, and what it takes.

    python -m tests.distributed.memory

prints the table of docs/scale.md: the most bytes that the first of 1, 2 and 4 ranks needs for
networks of several widths, and for stacks of layers that a `scan` goes over. Other networks are
given as UNITS,EXAMPLES, stacks as UNITS,EXAMPLES,LAYERS, other numbers of ranks by ``--ranks``.
What a rank takes is the growth of its resident memory: while parameters, states and examples are
made, and from before the first step to the most while two of them run. The C library returns memory
of arrays that are gone, or it might be used again, and not be seen.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import distributed, lax, nn, optim
from tests.benchmarks.scaling import layers_of, stacked_memory, training_memory
from tests.distributed import launching

DIVIDED = ("nothing", "state", "parameters")
PROC = Path("/proc/self")
CASES = (
    (512, 256), (1024, 256), (2048, 256), (256, 1024), (512, 1024),
    (256, 256, 16), (512, 1024, 16), (1024, 256, 4),
)  # fmt: skip
"""Units of three hidden layers, and examples; or of so many stacked ones."""


def resident(what: str) -> int:
    """Bytes of memory now, "VmRSS", or the most since it was forgotten, "VmHWM"."""
    rows = (PROC / "status").read_text().splitlines()
    return next(int(row.split()[1]) * 1024 for row in rows if row.startswith(what))


def made(rng: Any, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    return [
        {"w": rng.normal(0, 0.03, (m, n)).astype(np.float32), "b": np.zeros(n, np.float32)}
        for m, n in itertools.pairwise(sizes)
    ]


def hidden(params: Any, x: Any) -> Any:
    return nn.relu(x @ params["w"] + params["b"])


def output(params: Any, x: Any) -> Any:
    return x @ params["w"] + params["b"]


def step_of(divided: str, optimizer: Any, is_stacked: bool) -> Any:
    """A step of training: parameters, state, examples."""
    wrap = distributed.fully_sharded if divided == "parameters" else lambda f: f

    def loss_of_stack(params: Any, x: Any) -> Any:
        layer = wrap(hidden)
        return fnp.mean(lax.scan(lambda x, own: (layer(own, x), None), x, params)[0] ** 2)

    def loss_of_list(params: Any, x: Any, y: Any) -> Any:
        for own in params[:-1]:
            x = wrap(hidden)(own, x)
        x = wrap(output)(params[-1], x)
        return -fnp.mean(fnp.take_along_axis(nn.log_softmax(x), y[:, None], 1))

    loss = loss_of_stack if is_stacked else loss_of_list

    def step(params: Any, state: Any, *batch: Any) -> tuple[Any, Any]:
        grads = fg.grad(loss)(params, *batch)
        if divided == "nothing":
            grads = lax.pmean(grads, "data")
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state

    return fg.jit(step, donate_argnums=(0, 1))


def measured(
    divided: str, sizes: tuple[int, ...], examples: int, layers: int = 0
) -> tuple[int, int]:
    """Bytes by the compiled program and by the system, of so many stacked layers, if any."""
    rng = np.random.default_rng(0)
    gc.collect()
    begin = resident("VmRSS")
    optimizer: Any = optim.adam(1e-3)
    optimizer = optimizer if divided == "nothing" else distributed.sharded(optimizer)
    params: Any = made(rng, sizes)
    if layers:
        params = fg.tree.map(
            lambda x: rng.normal(0, 0.03, (layers, *x.shape)).astype(x.dtype), *params
        )
    if divided == "parameters":
        params = distributed.flat_shard(params, stacked=bool(layers))
    state = optimizer.init(params)
    x = rng.normal(size=(examples, sizes[0])).astype(np.float32)
    batch = (x,) if layers else (x, rng.integers(0, sizes[-1], examples).astype(np.int32))
    gc.collect()
    kept = resident("VmRSS") - begin
    step = step_of(divided, optimizer, bool(layers)).lower(params, state, *batch).compile()
    said: int = step.memory_analysis().peak_memory_in_bytes
    gc.collect()
    begin = resident("VmRSS")
    (PROC / "clear_refs").write_text("5")  # the most is forgotten
    for _ in range(2):
        params, state = step(params, state, *batch)
    return said, kept + resident("VmHWM") - begin


def rows(cases: Any) -> Iterator[tuple[str, str, int, float, int, int]]:
    """What is divided, units, examples; bytes by the model, the program, and the system."""
    p = distributed.size()
    with distributed.spmd(axis_name="data"):
        for divided in DIVIDED:
            measured(divided, (784, 64, 10), 8)  # what is needed once
        for divided in DIVIDED:
            for width, examples, *stacked in cases:
                sizes = (width, width) if stacked else (784, width, width, width, 10)
                said, seen = measured(divided, sizes, examples, *stacked)
                if stacked:
                    (layer,) = layers_of(sizes)
                    model = stacked_memory(p, examples, divided, layer, *stacked)
                    batch = 4 * width
                else:
                    model = training_memory(p, examples, divided, layers_of(sizes))
                    batch = 4 * 785
                units = " x ".join(map(str, (*stacked, width)))
                yield divided, units, examples, model + examples * batch, said, seen


HEADER = """\
| ranks | divided | units | examples each | model | compiled program | system | model / system \
| program / system |
|---:|---|---:|---:|---:|---:|---:|---:|---:|"""


def print_rows(cases: Sequence[tuple[int, ...]]) -> None:
    """Print the rows of the table for the ranks that run this."""
    for divided, width, examples, *found in rows(cases):
        model, said, seen = found
        figures = " | ".join(f"{x / 1e6:.1f} MB" for x in found)
        ratios = f"{model / seen:.2f} | {said / seen:.2f}"
        what = f"| {distributed.size()} | {divided} | {width} | {examples}"
        distributed.echo(f"{what} | {figures} | {ratios} |")


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.distributed.memory")
    parser.add_argument("cases", nargs="*", help="UNITS,EXAMPLES")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print_rows([tuple(map(int, case.split(","))) for case in options.cases] or CASES)
        return
    os.environ["MALLOC_MMAP_THRESHOLD_"] = "65536"
    print(HEADER, flush=True)
    for n in options.ranks:
        inside = ("-m", "tests.distributed.memory", "--inside", *options.cases)
        print(launching.run(n, *inside, timeout=600), end="", flush=True)


if __name__ == "__main__":
    main()
