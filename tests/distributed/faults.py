"""Training in which ranks are killed at random, and goes on: with the bits of an undisturbed one.

    python -m tests.distributed.faults --kills 100 --record FILE

The training tells what it is about to do, its *phase*, in a file for each rank. One of the ranks is
killed a random time after a random phase has begun. Then the launcher must name it and end all; the
checkpoint that is there must be the one that the undisturbed training had after as many steps; and
training goes on from it, often on another number of ranks, is killed again, and at last reaches the
end. Sums of another number of ranks are rounded differently, so training is undisturbed that goes
on from the same checkpoint on as many ranks; and the checkpoint must be the same when these have
read it and written it again. With ``--record``, what was counted is kept, and a later call with the
same file goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

STEPS, EVERY = 60, 2
SIZES = 2, 4
"""Numbers of ranks."""
IN_A_ROW = 8
"""The most kills of one training."""
LONGEST = {
    "start": 0.4, "set-up": 0.05, "load": 0.02, "compilation": 0.3, "step": 0.004, "gather": 0.002,
    "save": 0.01, "part": 0.02, "manifest": 0.02,
}  # fmt: skip
"""Phases, and seconds after whose begin a rank is killed at most."""
UNIQUE = {"start", "set-up", "load", "compilation"}
"""Phases of which each run has one."""
SECONDS = 60
"""After which a program that should have ended has failed."""
PROGRAM = "-m", "tests.distributed.faults", "--train"


# The training: a program that runs on ranks.


def train(folder: Path) -> None:
    """Train a small network whose parameters are divided, from the last checkpoint on."""
    rank = next(os.environ[v] for v in ("OMPI_COMM_WORLD_RANK", "PMI_RANK") if v in os.environ)
    # Unbuffered: what a rank says last is what it was killed in.
    marks = (folder / f"marks-{rank}").open("ab", buffering=0)

    def mark(phase: str) -> None:
        marks.write(f"{os.getpid()} {phase}\n".encode())

    mark("start")
    import funcgrad as fg  # noqa: PLC0415 (a phase of its own)
    from funcgrad import distributed, optim, random  # noqa: PLC0415
    from funcgrad.distributed import checkpoints  # noqa: PLC0415

    write = checkpoints.save_file

    def marked_write(path: Path, tree: Any) -> None:
        mark("manifest" if path.name == checkpoints.MANIFEST else "part")
        write(path, tree)

    checkpoints.save_file = marked_write
    layer = distributed.fully_sharded(lambda w, x: np.tanh(x @ w))

    def loss(params: Any, x: Any) -> Any:
        for w in params:
            x = layer(w, x)
        return np.mean(x**2)

    optimizer = distributed.sharded(optim.chain(optim.clip_by_global_norm(1.0), optim.adam(1e-2)))

    @fg.jit
    def step(params: Any, state: Any, x: Any) -> Any:
        value, grads = fg.value_and_grad(loss)(params, x)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, value

    with distributed.spmd(axis_name="data"):
        mark("set-up")
        keys = random.split(random.key(0), 3)
        params = distributed.flat_shard([random.normal(k, (48, 48)) / 7 for k in keys[:2]])
        saved = {"params": params, "state": optimizer.init(params), "step": 0}
        if (folder / "state" / "manifest.npz").exists():
            mark("load")
            saved = distributed.load(folder / "state", saved)
        keep = folder / "keep"
        if keep.exists() and saved["step"]:
            distributed.save(folder / "state", saved)
            if rank == "0":
                (keep / f"{saved['step']}").write_text(digest(folder / "state"))
        phase = "compilation"
        for i in range(saved["step"], STEPS):
            x = distributed.shard(random.normal(random.fold_in(keys[2], i), (16, 48)))
            mark(phase)
            params, state, _ = step(saved["params"], saved["state"], x)
            phase, saved = "step", {"params": params, "state": state, "step": i + 1}
            if (i + 1) % EVERY == 0:
                mark("gather")
                distributed.unshard(params)
                mark("save")
                distributed.save(folder / "state", saved)
                if rank == "0" and keep.exists():
                    (keep / f"{i + 1}").write_text(digest(folder / "state"))
        mark("end")


def digest(folder: Path) -> str:
    """A hash of all arrays of the checkpoint in a folder; empty if there is none."""
    from funcgrad import data  # noqa: PLC0415 (which the training loads in its first phase)

    if not (folder / "manifest.npz").exists():
        return ""
    manifest = data.load(folder / "manifest.npz")
    files = folder / manifest["checkpoint"]
    found = sha256()
    with np.load(files / "whole.npz") as arrays:
        for name in sorted(set(arrays.files) - {"structure"}):
            found.update(arrays[name].tobytes())
    parts = [data.load(files / f"part-{i:05d}.npz")["parts"] for i in range(manifest["ranks"])]
    for shape, *own in zip(manifest["shapes"], *parts, strict=True):
        found.update(np.concatenate(own)[: math.prod(shape)].tobytes())
    return found.hexdigest()


# The process that kills.


class Failure(Exception):
    """Something that should follow a kill did not."""


def kill_one(rng: np.random.Generator, folder: Path, n: int) -> dict[str, Any]:
    """Run the training on ``n`` ranks, and kill one of them at random.

    Returns:
        The phase in which it was hit, empty if the training had ended before; whether its rank was
        named; and after how many seconds all had ended.
    """
    from tests.distributed.launching import start  # noqa: PLC0415 (not on ranks)

    phase = str(rng.choice([p for p in LONGEST if p != "load" or (folder / "state").exists()]))
    rank = 0 if phase == "manifest" else int(rng.integers(n))
    wanted = 1 if phase in UNIQUE else int(rng.integers(1, 4))
    delay = rng.uniform(0, LONGEST[phase])
    marks = folder / f"marks-{rank}"
    marks.unlink(missing_ok=True)
    process = start(n, *PROGRAM, folder)
    try:
        limit = time.monotonic() + SECONDS
        while process.poll() is None and time.monotonic() < limit:
            rows = marks.read_text().split("\n") if marks.exists() else []
            if sum(row.endswith(f" {phase}") for row in rows) >= wanted:
                time.sleep(delay)
                _kill(int(rows[0].split()[0]))
                break
            time.sleep(0.0005)
        begin = time.monotonic()
        _, err = process.communicate(timeout=SECONDS)
        took = time.monotonic() - begin
        hit = marks.read_text().split()[-1]
        if process.returncode == 0 or hit == "end":
            return {"phase": ""}
        is_named = f"rank {rank} " in err
        return {"phase": hit, "is_named": is_named, "seconds": took, "said": err[-300:]}
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def undisturbed(n: int, folder: Path, begin: Path) -> dict[str, int]:
    """Steps after which training has its checkpoints if no rank is killed, by their hashes.

    Args:
        n: The number of ranks.
        folder: Where there is room for the training.
        begin: The folder of the checkpoint from which it goes on, if there is one.

    Raises:
        Failure: If there are not as many different checkpoints as there should be.
    """
    from tests.distributed.launching import run  # noqa: PLC0415 (not on ranks)

    with tempfile.TemporaryDirectory(dir=folder) as name:
        own = Path(name)
        (own / "keep").mkdir()
        if begin.exists():
            shutil.copytree(begin, own / "state")
        run(n, *PROGRAM, own)
        kept = list((own / "keep").iterdir())
        known = {path.read_text(): int(path.name) for path in kept}
    is_begun = bool(digest(begin))
    first = min(known.values()) if is_begun else EVERY
    if len(known) != (STEPS - first) // EVERY + 1 or (is_begun and digest(begin) not in known):
        raise Failure(f"{sorted(known.values())} are the steps of an undisturbed training")
    return known if is_begun else {"": 0} | known


def trainings(rng: np.random.Generator, folder: Path) -> Iterator[dict[str, Any]]:
    """Kill ranks of one training after the other: what each kill led to.

    Raises:
        Failure: If a checkpoint, or the end of a training, has other bits than without kills.
    """
    from tests.distributed.launching import run  # noqa: PLC0415 (not on ranks)

    from_begin: dict[int, dict[str, int]] = {}

    def steps(n: int, state: Path) -> dict[str, int]:
        if digest(state):
            return undisturbed(n, folder, state)
        if n not in from_begin:
            from_begin[n] = undisturbed(n, folder, state)
        return from_begin[n]

    for i in count():
        own = folder / f"training-{i}"
        own.mkdir()
        state = own / "state"
        kills: list[dict[str, Any]] = []
        n, known, before = 0, {}, 0
        for is_last in [False] * rng.integers(1, IN_A_ROW + 1) + [True]:
            size = int(rng.choice(SIZES))
            if size != n:
                n, known = size, steps(size, state)
            if is_last:
                run(n, *PROGRAM, own)
                break
            kill = kill_one(rng, own, n)
            after = known.get(digest(state))
            if after is None or after < before:
                raise Failure(f"{own}: no checkpoint of the undisturbed training after {kill}")
            kills.append(kill | {"step": after, "ranks": n})
            before = after
            if not kill["phase"]:
                break
        if known.get(digest(state)) != STEPS:
            raise Failure(f"{own}: the end has other bits than the undisturbed training's")
        yield from kills
        shutil.rmtree(own)


def summary(found: list[dict[str, Any]]) -> str:
    """What kills led to, in words."""
    hits = [kill for kill in found if kill["phase"]]
    took = sorted(kill["seconds"] for kill in hits) or [0.0]
    ranks = ", ".join(f"{n} on {r}" for r, n in sorted(Counter(k["ranks"] for k in hits).items()))
    phases = ", ".join(f"{n} in {p}" for p, n in Counter(k["phase"] for k in hits).most_common())
    return (
        f"{len(hits)} kills in {len(found)} runs ({phases}; {ranks} ranks), "
        f"{len(hits)} resumes with equal bits, "
        f"{sum(kill['is_named'] for kill in hits)} named; all ended after "
        f"{median(took):.2f} s (median), {took[-1]:.2f} s at most"
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.distributed.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which to stop")
    parser.add_argument("--record", type=Path, help="where to keep what was counted")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.train:
        train(options.train)
        return 0
    record, begin = options.record, time.monotonic()
    found = json.loads(record.read_text()) if record and record.exists() else []
    rng = np.random.default_rng([options.seed, len(found)])
    with tempfile.TemporaryDirectory() as folder:
        for kill in trainings(rng, Path(folder)):
            found.append(kill)
            if record:
                record.write_text(json.dumps(found))
            is_enough = sum(bool(kill["phase"]) for kill in found) >= options.kills
            if is_enough or time.monotonic() - begin > options.seconds:
                break
    print(summary(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
