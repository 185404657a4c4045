"""The model of time of docs/scale.md: its formulas, its table, and what this machine makes of them.

The table, for clusters, is computed anywhere:

    python tests/benchmarks/scaling.py

The check measures latency, bandwidths and speed of this machine, predicts steps on 1, 2 and 4 ranks
from them, and measures these, alternating, while the ranks that take no part sleep. Ranks of one
machine share its cores and its memory, so what each of them gets is measured for each number:

    FUNCGRAD_NUM_THREADS=1 mpiexec -n 4 python tests/benchmarks/scaling.py check
"""

from __future__ import annotations

import importlib
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from math import log2
from typing import Any

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import distributed, lax, nn
from funcgrad.base.records import dataclass

SIZES = (784, 1024, 1024, 1024, 10)
FEATURES, HIDDEN = 1024, 4096


@dataclass(frozen=True)
class Machine:
    """What the model knows of a machine.

    Attributes:
        latency: Seconds that a message takes, however short: *a*.
        byte: Seconds for every byte of it: *b*.
        speed: Operations that each rank does in a second: *F*.
        memory: Bytes that each rank reads or writes in a second: *W*.
    """

    latency: float
    byte: float
    speed: float
    memory: float = float("inf")

    def psum(self, p: int, nbytes: float) -> float:
        """Seconds of a sum over ``p`` ranks: arrays are sent along a tree, or halves twice."""
        if p == 1:
            return 0.0
        whole = log2(p) * (self.latency + nbytes * self.byte)
        halves = 2 * (log2(p) * self.latency + (p - 1) / p * nbytes * self.byte)
        return min(whole, halves)

    def compute(self, flops: float, nbytes: float = 0.0) -> float:
        """Seconds of so many operations in products, and bytes read or written beside them."""
        return flops / self.speed + nbytes / self.memory


# Flops of training: products of matrices, forward, and backward with respect to both factors.


@dataclass(frozen=True)
class Layer:
    """What one layer of the network costs.

    Attributes:
        flops: Operations of its product, for an example.
        factors: With respect to how many of its factors the product is differentiated.
        units: Its outputs, for an example.
        parameters: Of it, in bytes.
    """

    flops: float
    factors: int
    units: int
    parameters: float


def layers_of(sizes: Sequence[int]) -> list[Layer]:
    """The layers of a network with so many units."""
    return [
        Layer(2.0 * m * n, 1 if k == 0 else 2, n, 4.0 * (m + 1) * n)
        for k, (m, n) in enumerate(itertools.pairwise(sizes))
    ]


LAYERS = layers_of(SIZES)
FORWARD, BACKWARD, UPDATE = 2, 3, 3
"""How often numbers pass through memory: outputs while the activation is computed (read, written),
while its derivative is (two read, one written), and parameters (two read, one written)."""


def data_parallel(machine: Machine, p: int, examples: float, beside: bool) -> float:
    """Seconds of a gradient of so many examples a rank, and of its sum over ranks.

    Args:
        machine: The machine.
        p: Number of ranks.
        examples: Of each.
        beside: Whether the network carries messages while the ranks compute.
    """
    now = 0.0
    for layer in LAYERS:
        now += machine.compute(examples * layer.flops, 4.0 * FORWARD * examples * layer.units)
    carried = 0.0  # when the network is free
    for layer in reversed(LAYERS):
        now += machine.compute(
            examples * layer.flops * layer.factors, 4.0 * BACKWARD * examples * layer.units
        )
        carried = max(carried, now) + machine.psum(p, layer.parameters)
        now = now if beside else carried
    now = max(now, carried)
    return now + machine.compute(0.0, UPDATE * sum(layer.parameters for layer in LAYERS))


def training_memory(
    p: int, examples: float, divided: str, layers: Sequence[Layer] = LAYERS, states: int = 2
) -> float:
    """The most bytes that a rank needs at once in a step of training, without its batch.

    Args:
        p: Number of ranks.
        examples: Of each.
        divided: "nothing", "state" or "parameters".
        layers: The network.
        states: How many arrays like the parameters the optimiser keeps.
    """
    sizes = [layer.parameters for layer in layers]
    total = sum(sizes)
    kept_of_unit = 4.0 * (1.25 if divided == "parameters" else 2)  # values, and masks or sums
    own = {"nothing": 1 + states, "state": 1 + states / p, "parameters": (1 + states) / p}[divided]
    most = 0.0
    for k, layer in enumerate(layers):
        # The backward pass is at this layer: what is kept for those below, its cotangent, and then
        # that of its input, but for the first layer.
        now = examples * sum(kept_of_unit * below.units for below in layers[:k])
        now += 4.0 * examples * layer.units
        below = 4.0 * examples * layers[k - 1].units if k else 0.0
        later = sum(sizes[k + 1 :])
        if p == 1:
            now += below + sizes[k] + later
        elif divided == "nothing":
            # Sums under way have another array each, but the one that nothing comes behind.
            now += below + 2 * later + (2 if k else 1) * sizes[k]
        else:
            # First the gradient, and half of it while it is summed; then the own part of the sum.
            now += max(sizes[k] * 1.5, sizes[k] / p + below) + later / p
            now += sizes[k] * (divided == "parameters" and k > 0)  # gathered again
        most = max(most, now)
    if divided == "state" and p > 1:
        # The parts of updates are gathered, one array after the other, and added.
        most = max(most, *(sum(sizes[k:]) / p + size for k, size in enumerate(sizes)))
    elif divided == "nothing" and p > 2:
        most += max(sizes)  # MPI's own
    return own * total + most


def stacked_memory(
    p: int, examples: float, divided: str, layer: Layer, n_layers: int, states: int = 2
) -> float:
    """The same for layers that are all alike, stacked, over which a loop goes.

    Args:
        p: Number of ranks.
        examples: Of each.
        divided: "nothing", "state" or "parameters".
        layer: One of the layers.
        n_layers: Their number.
        states: How many arrays like the parameters the optimiser keeps.
    """
    total, output = n_layers * layer.parameters, 4.0 * examples * layer.units
    if divided == "parameters":
        # One layer is gathered, its gradient and some arrays like its output are under way.
        own = (2 + states) / p * total + 1.25 * n_layers * output
        return own + layer.parameters * (1 if p == 1 else 2.5) + 4 * output
    gradient = total + 2 * n_layers * output
    if divided == "state":
        # Updates are gathered while their parts and those of the gradient are there.
        most = max(gradient, total * (1 + 2 / p)) if p > 1 else gradient
        return (1 + states / p) * total + most
    # There is one sum, of all layers: MPI has memory for halves of them.
    return (1 + states) * total + gradient + (total / 2 if p > 1 else 0.0)


def tensor_parallel(machine: Machine, p: int, examples: float, hidden: float, sums: int) -> float:
    """Seconds of a block of two layers whose hidden units are divided among ranks."""
    flops = 4.0 * examples * FEATURES * hidden * (3 if sums == 2 else 1)
    message = machine.psum(p, 4.0 * examples * FEATURES)
    passes = FORWARD + (BACKWARD if sums == 2 else 0)
    return machine.compute(flops / p, 4.0 * passes * examples * hidden / p) + sums * message


def table() -> Iterator[str]:
    """Shares of the time in which ranks of a cluster compute."""
    cluster = Machine(2e-6, 1e-10, 1e11)
    for p in (2, 16, 128, 1000):
        shares = []
        for examples in (1024.0, 65536.0 / p):
            alone = data_parallel(cluster, 1, examples, False)
            shares += [alone / data_parallel(cluster, p, examples, on) for on in (False, True)]
        block = tensor_parallel(cluster, 1, 1024, 16384, 2) / p
        shares.append(block / tensor_parallel(cluster, p, 1024, 16384, 2))
        yield f"| {p:,} | " + " | ".join(f"{100 * x:.0f}%" for x in shares) + " |"


# What this machine does.


def loss(params: Any, x: Any, y: Any) -> Any:
    for w, b in params[:-1]:
        x = nn.relu(x @ w + b)
    w, b = params[-1]
    return -fnp.mean(fnp.take_along_axis(nn.log_softmax(x @ w + b), y[:, None], axis=1))


def gradient(params: Any, x: Any, y: Any) -> Any:
    grads = lax.pmean(fg.grad(loss)(params, x, y), "data")
    return fg.tree.map(lambda p, g: p - np.float32(0.01) * g, params, grads)


def block(x: Any, inward: Any, outward: Any) -> Any:
    return lax.psum(nn.relu(x @ inward) @ outward, "data")


class Check:
    """Measures alternately on the first ranks of those that there are."""

    def __init__(self) -> None:
        self.mpi = importlib.import_module("mpi4py.MPI")
        self.world = self.mpi.COMM_WORLD
        self.rank, size = self.world.Get_rank(), self.world.Get_size()
        self.counts = [p for p in (1, 2, 4) if p <= size]
        self.groups = {p: self.world.Split(self.rank < p, self.rank) for p in self.counts}
        self.rng = np.random.default_rng(0)

    def meet(self) -> None:
        """Wait for all, asleep."""
        waiting = self.world.Ibarrier()
        while not waiting.Test():
            time.sleep(0.0005)

    def seconds(
        self, runs: dict[Any, tuple[int, Callable[[], Any]]], rounds: int
    ) -> dict[Any, float]:
        """Medians of some runs, each on the first so many ranks."""
        taken: dict[Any, list[float]] = {key: [] for key in runs}
        for _ in range(rounds + 2):
            for key, (p, run) in runs.items():
                self.meet()
                if self.rank < p:
                    self.groups[p].Barrier()
                    start = time.perf_counter()
                    run()
                    self.groups[p].Barrier()
                    taken[key].append(time.perf_counter() - start)
        own = {key: float(np.median(times[2:])) if times else 0.0 for key, times in taken.items()}
        return self.world.bcast(own)

    def machines(self) -> dict[int, Machine]:
        """What each rank gets while so many of them are busy."""
        one, many = np.ones(1, np.float32), np.ones(1 << 20, np.float32)
        x, w = np.ones((512, 1024), np.float32), np.ones((1024, 1024), np.float32)
        product = fg.jit(lambda x, w: x @ w)
        copy = np.empty_like(many)
        place = self.mpi.IN_PLACE

        def repeated(p: int, x: Any, count: int) -> Callable[[], None]:
            def run() -> None:
                for _ in range(count):
                    x[...] = 1
                    self.groups[p].Allreduce(place, x)

            return run

        runs: dict[Any, tuple[int, Callable[[], Any]]] = {}
        for p in self.counts:
            runs["one", p] = p, repeated(p, one, 100)
            runs["many", p] = p, repeated(p, many, 4)
            runs["products", p] = p, lambda: [product(x, w) for _ in range(20)]
            runs["copies", p] = p, lambda: [np.copyto(copy, many) for _ in range(20)]
        found = self.seconds(runs, 20)
        machines = {}
        for p in self.counts:
            speed = 2.0 * x.shape[0] * w.size / (found["products", p] / 20)
            memory = 2.0 * many.nbytes / (found["copies", p] / 20)
            steps, parts = max(log2(p), 1.0), max(2 * (p - 1) / p, 1.0)
            latency = found["one", p] / 100 / steps
            byte = (found["many", p] / 4 - steps * latency) / parts / many.nbytes
            machines[p] = Machine(latency, byte, speed, memory)
        return machines

    def steps(self, what: str, examples: Sequence[int]) -> dict[Any, tuple[int, Callable[[], Any]]]:
        """Steps of training on different numbers of ranks, with so many examples each."""
        runs = {}
        for p, n in zip(self.counts, examples, strict=False):
            params = [
                (self.rng.normal(0, 0.03, (m, k)).astype(np.float32), np.zeros(k, np.float32))
                for m, k in itertools.pairwise(SIZES)
            ]
            x = self.rng.normal(size=(n, SIZES[0])).astype(np.float32)
            y = self.rng.integers(0, SIZES[-1], n)
            runs[what, p] = p, self.within(p, gradient, [params, x, y])
        return runs

    def blocks(self, examples: int) -> dict[Any, tuple[int, Callable[[], Any]]]:
        """The block with its hidden units divided among different numbers of ranks."""
        runs = {}
        for p in self.counts:
            x = self.rng.normal(size=(examples, FEATURES)).astype(np.float32)
            inward = np.ones((FEATURES, HIDDEN // p), np.float32)
            runs["tensor parallel", p] = p, self.within(p, block, [x, inward, inward.T.copy()])
        return runs

    def within(self, p: int, function: Any, args: list[Any]) -> Callable[[], Any]:
        donated = 0 if function is gradient else None
        compiled = fg.jit(lambda *args: function(*args), donate_argnums=donated)

        def run() -> None:
            with distributed.spmd(axis_name="data", comm=self.groups[p]):
                found = compiled(*args)
                if donated is not None:
                    args[0] = found

        return run

    def report(self) -> None:
        machines = self.machines()
        runs = {
            **self.steps("1,024 examples in all", [1024, 512, 256]),
            **self.steps("512 examples each", [512, 512, 512]),
            **self.blocks(512),
        }
        found = self.seconds(runs, 10)
        distributed.echo("| ranks | a | b | F | W |\n|---:|---:|---:|---:|---:|")
        for p, machine in machines.items():
            message = f"{machine.latency * 1e6:.1f} us | {machine.byte * 1e9:.3f} ns"
            speed = f"{machine.speed / 1e9:.0f} Gflop/s | {machine.memory / 1e9:.1f} GB/s"
            distributed.echo(f"| {p} | {message if p > 1 else ' | '} | {speed} |")
        distributed.echo(
            "| step | ranks | model | seen | model / seen |\n|---|---:|---:|---:|---:|"
        )
        for (what, p), seen in found.items():
            model = self.model(machines[p], what, p)
            times = f"{model * 1e3:.1f} ms | {seen * 1e3:.1f} ms"
            distributed.echo(f"| {what} | {p} | {times} | {model / seen:.2f} |")

    def model(self, machine: Machine, what: str, p: int) -> float:
        if what == "tensor parallel":
            return tensor_parallel(machine, p, 512, HIDDEN, 1)
        return data_parallel(machine, p, 1024 / p if "all" in what else 512, False)


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        Check().report()
    else:
        print("\n".join(table()))
