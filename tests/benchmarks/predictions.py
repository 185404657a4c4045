"""Predictions of the model of docs/scale.md for sharded steps, pipelines, checkpoints and data.

    for n in 1 2 4; do
        FUNCGRAD_NUM_THREADS=1 mpiexec -n $n python -m tests.benchmarks.predictions FOLDER
    done

prints them beside what is seen: sharded steps on 1, 2 and 4 of the ranks, all else on all. It
measures what each rank gets of this machine, how long it shuffles data in memory, and how many
bytes one rank and all ranks together read and write in FOLDER in a second; predicts steps from
these, and measures them, alternating. It writes a quarter of a gigabyte, and removes it.
"""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad import data, distributed, nn, optim
from funcgrad.data.direct import Buffers, DirectFile
from tests.benchmarks.cluster import STATES, Storage, pipeline_seconds, training
from tests.benchmarks.scaling import SIZES, Check, Layer
from tests.distributed.memory import DIVIDED, made, step_of

UNITS, DEPTH = 1024, 4
STAGED = [Layer(2.0 * UNITS**2, 2, UNITS, 4.0 * UNITS**2)] * DEPTH
BATCHES, EXAMPLES = 8, 256
PARAMETERS = 1 << 23
"""Bytes of parameters whose states are saved."""
TRAINED = 512
"""Examples of each rank in a step of training."""
ROW, ROWS = 4096, 1 << 16
BATCH = 8192
SHUFFLED, IN_MEMORY = "shuffled data", "data shuffled in memory"

Runs = dict[Any, tuple[int, Callable[[], Any]]]


class Predictions(Check):
    """Measures in a folder that all ranks see."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.n = self.counts[-1]
        if self.rank == 0:
            folder.mkdir()
            for i in range(4):
                np.save(folder / f"{i}.npy", np.full((ROWS // 4, ROW), i, np.uint8))
        self.world.Barrier()

    def staged(self) -> Runs:
        """Gradients of a pipeline of layers, of which each rank has an equal part."""

        def stage(params: Any, x: Any) -> Any:
            for w in params:
                x = nn.relu(x @ w)
            return x

        def gradient(params: Any, batches: Any) -> Any:
            def loss(params: Any) -> Any:
                return np.mean(distributed.pipeline(stage, params, batches, "data") ** 2)

            return fg.grad(loss)(params)

        batches = np.ones((BATCHES, EXAMPLES, UNITS), np.float32)
        weights = np.full((UNITS, UNITS), 1e-3, np.float32)
        run = self.within(self.n, gradient, [[weights] * (DEPTH // self.n), batches])
        return {"pipeline, forward and backward": (self.n, run)}

    def trained(self) -> Runs:
        """Steps of training with Adam, on different numbers of ranks."""
        runs: Runs = {}
        for p, divided in itertools.product(self.counts, DIVIDED):
            optimizer: Any = optim.adam(1e-3)
            optimizer = optimizer if divided == "nothing" else distributed.sharded(optimizer)
            step = step_of(divided, optimizer, is_stacked=False)
            x = self.rng.normal(size=(TRAINED, SIZES[0])).astype(np.float32)
            y = self.rng.integers(0, SIZES[-1], TRAINED).astype(np.int32)
            kept: list[Any] = []

            def run(
                p: int = p,
                divided: str = divided,
                optimizer: Any = optimizer,
                step: Any = step,
                batch: Any = (x, y),
                kept: list[Any] = kept,
            ) -> None:
                with distributed.spmd(axis_name="data", comm=self.groups[p]):
                    if not kept:
                        params: Any = made(self.rng, SIZES)
                        if divided == "parameters":
                            params = distributed.flat_shard(params)
                        kept[:] = params, optimizer.init(params)
                    kept[:] = step(*kept, *batch)

            runs[divided, p] = p, run
        return runs

    def saved(self) -> Runs:
        """Checkpoints of parameters and the states of Adam, a part on each rank."""
        shape = (1 + STATES, PARAMETERS // 4)
        part = np.ones(shape[0] * shape[1] // self.n, np.float32)

        def save() -> None:
            with distributed.spmd(axis_name="data"):
                state = distributed.FlatShard(part, shape)
                distributed.save(self.folder / "saved", {"state": state})

        return {"checkpoint": (self.n, save)}

    def read(self) -> Runs:
        """Batches from files, of which each rank reads its part."""
        files = data.folder(self.folder, "*.npy", cached=False)

        def reading(seed: int | None, source: Any = files) -> Callable[[], None]:
            def read() -> None:
                for _ in data.stream(source, BATCH, seed=seed, part=(self.rank, self.n)):
                    pass

            return read

        return {
            "data in order": (self.n, reading(None)),
            SHUFFLED: (self.n, reading(0)),
            IN_MEMORY: (self.n, reading(0, files[: len(files)])),
        }

    def storage(self) -> tuple[Storage, Storage]:
        """What one rank and all ranks write and read in a second, and how long a file takes."""
        n = self.n
        content = np.ones((1 + STATES) * PARAMETERS // n, np.uint8)
        own = self.folder / f"raw-{self.rank}"
        own.mkdir()
        numbers = itertools.count()

        def write(content: Any) -> None:
            # As a checkpoint does: beside the last one, which goes after it. To take its place
            # would free its blocks while the disk is waited for.
            older = list(own.iterdir())
            data.save(own / f"{next(numbers)}", content)
            for path in older:
                path.unlink()

        def read() -> None:
            buffers = Buffers()
            file = DirectFile(self.folder / f"{self.rank}.npy")
            for start in range(0, ROWS // 4 * ROW, 1 << 22):
                file.read(buffers, start, 1 << 22)

        runs: Runs = {("file", 1): (1, lambda: write({}))}
        runs |= {("write", p): (p, lambda: write(content)) for p in (1, n)}
        runs |= {("read", p): (p, read) for p in (1, n)}
        found = self.seconds(runs, 5)
        shutil.rmtree(own)
        file = found["file", 1]

        def of(nbytes: float, one: float, many: float) -> Storage:
            return Storage(nbytes / one, n * nbytes / many, file=file)

        written = of(content.nbytes, *(found["write", p] - file for p in (1, n)))
        return written, of(ROWS // 4 * ROW, *(found["read", p] for p in (1, n)))

    def report(self) -> None:
        machines = self.machines()
        machine = machines[self.n]
        for (divided, p), seen in self.seconds(self.trained(), 10).items():
            model = training(machines[p], p, TRAINED, divided, False)
            times = f"{model * 1e3:.1f} ms | {seen * 1e3:.1f} ms"
            distributed.echo(f"| {p} | {divided} | {times} | {model / seen:.2f} |")
        written, read = self.storage()
        found = self.seconds(self.staged(), 7)
        found |= self.seconds(self.saved() | self.read(), 5)
        for name, storage in (("written", written), ("read", read)):
            distributed.echo(
                f"{name}: {storage.own / 1e6:.0f} MB/s by one rank, "
                f"{storage.together / 1e6:.0f} MB/s by {self.n} together, "
                f"{storage.file * 1e3:.1f} ms for a file"
            )
        in_memory = found.pop(IN_MEMORY)
        for what, seen in found.items():
            if what == "checkpoint":
                model = written.saved(self.n, (1 + STATES) * PARAMETERS)
            elif "data" in what:
                model = read.seconds(self.n, ROWS * ROW / self.n)
                if what == SHUFFLED:  # one window while the next one is read
                    model = max(model, in_memory)
            else:
                model = pipeline_seconds(machine, self.n, BATCHES, EXAMPLES, STAGED)
            times = f"{model * 1e3:.1f} ms | {seen * 1e3:.1f} ms"
            distributed.echo(f"| {what} | {self.n} | {times} | {model / seen:.2f} |")


if __name__ == "__main__":
    place = Path(sys.argv[1])
    try:
        Predictions(place).report()
    finally:
        if distributed.is_main():
            shutil.rmtree(place)
