"""The model of docs/scale.md for sharded training, pipelines, checkpoints, faults, and data.

    python -m tests.benchmarks.cluster

prints the table of the page: three networks on two kinds of interconnect, up to 10,000 ranks. It is
the model's; nothing of it was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log2, sqrt

from funcgrad.base.records import dataclass
from tests.benchmarks.scaling import BACKWARD, FORWARD, LAYERS, Layer, Machine

ADAM = 7
"""How often numbers of a parameter pass through memory in a step: four are read, three written."""

STATES = 2
"""Numbers that Adam keeps of each parameter."""


def part(machine: Machine, p: int, nbytes: float) -> float:
    """Seconds of a scattered sum, or of a gather, of arrays of so many bytes."""
    return log2(p) * machine.latency + (1 - 1 / p) * nbytes * machine.byte if p > 1 else 0.0


def passes(machine: Machine, layer: Layer, examples: float) -> tuple[float, float]:
    """Seconds of the forward pass of a layer, and of its backward pass."""
    numbers = 4.0 * examples * layer.units
    return (
        machine.compute(examples * layer.flops, FORWARD * numbers),
        machine.compute(examples * layer.flops * layer.factors, BACKWARD * numbers),
    )


class _Clock:
    """Times at which ranks and network are free; without ``beside`` they take turns."""

    def __init__(self, beside: bool) -> None:
        self.beside = beside
        self.begun = self.now = self.carried = 0.0

    def compute(self, seconds: float) -> None:
        self.begun = self.now
        self.now += seconds

    def send(self, seconds: float, since: float) -> None:
        """A message that could begin at a time."""
        self.carried = max(self.carried, since if self.beside else self.now) + seconds
        if not self.beside:
            self.wait()

    def wait(self) -> None:
        self.now = max(self.now, self.carried)


def training(
    machine: Machine,
    p: int,
    examples: float,
    divided: str,
    beside: bool,
    layers: Sequence[Layer] = LAYERS,
) -> float:
    """Seconds of a step of training with Adam.

    Args:
        machine: The machine.
        p: Number of ranks.
        examples: Of each.
        divided: "nothing", "state" or "parameters".
        beside: Whether messages travel while the ranks compute.
        layers: The network.
    """
    clock = _Clock(beside)
    total = sum(layer.parameters for layer in layers)
    is_whole = divided == "nothing"

    def gather(layer: Layer) -> None:
        if divided == "parameters":
            clock.send(part(machine, p, layer.parameters), clock.begun)
            clock.wait()

    for layer in layers:
        gather(layer)
        clock.compute(passes(machine, layer, examples)[0])
    for layer in reversed(layers):
        gather(layer)
        clock.compute(passes(machine, layer, examples)[1])
        nbytes = layer.parameters
        clock.send(machine.psum(p, nbytes) if is_whole else part(machine, p, nbytes), clock.now)
    clock.wait()
    clock.compute(machine.compute(0.0, ADAM * total / (1 if is_whole else p)))
    if divided == "state":
        # Updates of the others arrive, and are added: two numbers are read, one is written.
        clock.send(part(machine, p, total), clock.now)
        clock.wait()
        clock.compute(machine.compute(0.0, 3 * total))
    return clock.now


def pipeline_seconds(
    machine: Machine, p: int, batches: int, examples: float, layers: Sequence[Layer] = LAYERS
) -> float:
    """Seconds of gradients of some batches if each rank has an equal part of the layers.

    Args:
        machine: The machine.
        p: Number of stages.
        batches: That follow one another.
        examples: Of each batch.
        layers: The network.
    """
    units = max(layer.units for layer in layers)
    message = 2 * (machine.latency + 4.0 * examples * units * machine.byte) if p > 1 else 0.0
    return (batches + p - 1) * (stage_seconds(machine, p, examples, layers) + message)


def stage_seconds(machine: Machine, p: int, examples: float, layers: Sequence[Layer]) -> float:
    """Seconds of a batch in one of ``p`` stages, forward and backward."""
    return sum(sum(passes(machine, layer, examples)) for layer in layers) / p


def pipeline(
    machine: Machine, p: int, batches: int, examples: float, layers: Sequence[Layer] = LAYERS
) -> float:
    """Share of the time in which ranks compute; arguments as of `pipeline_seconds`."""
    work = batches * stage_seconds(machine, p, examples, layers)
    return work / pipeline_seconds(machine, p, batches, examples, layers)


@dataclass(frozen=True)
class Storage:
    """Where data and checkpoints are.

    Attributes:
        own: Bytes that a rank reads or writes in a second.
        together: Bytes that all ranks do.
        years: The time after which a rank fails, on average.
        file: Seconds until a file without content is on the disk.
    """

    own: float = 1e9
    together: float = 1e12
    years: float = 5.0
    file: float = 0.0

    def seconds(self, p: int, nbytes: float) -> float:
        """The time in which ``p`` ranks read or write so many bytes each."""
        return nbytes / min(self.own, self.together / p)

    def saved(self, p: int, nbytes: float) -> float:
        """The time of a checkpoint of so many bytes in all: parts, what all have, the manifest."""
        return self.seconds(p, nbytes / p) + 3 * self.file

    def lost(self, p: int, parameters: float, restart: float = 60.0) -> float:
        """Share of the time that checkpoints and faults take, at the best interval.

        With a checkpoint of C seconds and a fault in M seconds, the best interval is sqrt(2 C M)
        (J. W. Young, 1974): what is written and what is lost take sqrt(2 C / M) of the time.
        """
        written = self.saved(p, (1 + STATES) * parameters)
        fault = self.years * 365 * 86400 / p
        return min(sqrt(2 * written / fault) + restart / fault, 1.0)


def with_data(seconds: float, p: int, nbytes: float, storage: Storage) -> float:
    """Seconds of a step whose batch is read while the one before is computed."""
    return max(seconds, storage.seconds(p, nbytes))


@dataclass(frozen=True)
class Network:
    """A network, and what a rank computes of it.

    Attributes:
        name: What the table calls it.
        layers: Its layers.
        examples: Of each rank, in a step.
        nbytes: Of an example in files.
    """

    name: str
    layers: Sequence[Layer]
    examples: int
    nbytes: float


def blocks(width: int, count: int) -> list[Layer]:
    """Blocks of a transformer: twelve squares of parameters, eight outputs of a token and unit."""
    return [Layer(24.0 * width**2, 2, 8 * width, 48.0 * width**2)] * count


NETWORKS = (
    Network("2.9 M", LAYERS, 1024, 4 * 785),
    Network("1.2 G", blocks(2048, 24), 8192, 4),
    Network("64 G", blocks(8192, 80), 8192, 4),
)
INTERCONNECTS = {"Ethernet": (20e-6, 0.8e-9), "InfiniBand": (2e-6, 0.04e-9)}
SPEED, MEMORY = 2e12, 2e11
RANKS = (4, 64, 1000, 10_000)


def table() -> Iterator[str]:
    """Shares of the time in which ranks compute."""
    storage = Storage()
    for network in NETWORKS:
        layers, n = network.layers, network.examples
        parameters = sum(layer.parameters for layer in layers)
        for name, (latency, byte) in INTERCONNECTS.items():
            machine = Machine(latency, byte, SPEED, MEMORY)
            work = sum(sum(passes(machine, layer, n)) for layer in layers)
            for p in RANKS:
                shares = []
                for divided in ("nothing", "state", "parameters"):
                    step = training(machine, p, n, divided, True, layers)
                    shares.append(work / with_data(step, p, n * network.nbytes, storage))
                staged = pipeline(machine, p, 4 * p, n / 8, layers) if p <= len(layers) else None
                row = [f"{100 * x:.0f}%" for x in shares]
                row += ["" if staged is None else f"{100 * staged:.0f}%"]
                row += [f"{100 * storage.lost(p, parameters):.1f}%"]
                yield f"| {network.name} | {name} | {p:,} | " + " | ".join(row) + " |"


if __name__ == "__main__":
    print("\n".join(table()))
