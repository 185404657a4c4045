"""Test problems of CUTEst as written for JAX: sparse derivatives here, and by asdex on JAX.

    pip install --target cutest sif2jax asdex
    python -m tests.cutest --sources cutest             all problems of up to 10,000 variables
    python -m tests.cutest ROSENBR --sources cutest     some of them
    python -m tests.cutest --sources cutest --ways here

The folder has the packages ``sif2jax`` and what it imports, and ``asdex`` to compare with. Of each
problem the Hessian of the objective and the Jacobian of the constraints are taken: their patterns,
colours, the first value and later ones, in seconds of the processor. One process for each side
takes the problems in turn, and imports the module of each when it is its turn: that of all takes
JAX minutes. Up to 500 variables JAX's dense derivatives at two points say which entries must be
there.
With ``--out`` records are kept in that folder, and a run goes on where the last one ended.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from types import ModuleType
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
HERE, JAX = "here", "jax"
WAYS = (JAX, HERE)
DENSE = 500
"""Variables up to which dense derivatives say what is missed."""
LARGE = 5_000
"""Variables from which times are compared."""
START = 300
"""Seconds for a process to import what it needs."""
PATIENCE = 8
"""Seconds that are waited for each second of the processor that a problem may take."""
NAMES = "names.txt"
"""File in which a process says that it is ready, and what problems there are."""

Derivative = dict[str, Any]


# The process that runs the problems one way.


def run_problems(way: str, sources: Path, out: Path, most: int, seconds: float) -> None:
    """Run the problems whose names are read, and write a line for each."""
    if way == HERE:
        from funcgrad.interop.jax import install  # noqa: PLC0415 (JAX's runs know nothing of it)

        install()
    import jax  # noqa: PLC0415 (it may be the stand-in)

    jax.config.update("jax_enable_x64", True)
    problems = problems_of(sources)
    record = out / f"{way}.jsonl"
    # What the first of all derivatives loads is no problem's.
    MEASURES[way]("hessian", lambda x: (x**3).sum(), np.ones(3), out / "none.npy")
    (out / NAMES).write_text("\n".join(problems))
    for name in map(str.strip, sys.stdin):
        _watch(seconds)
        try:
            found = _results(way, problems[name](), name, out, most)
        except Exception as error:  # it is the result of the problem
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(record, {"name": name, **found})


def problems_of(sources: Path) -> dict[str, Callable[[], Any]]:
    """Makers of all problems by their names, none of which is imported yet.

    The packages of problems list them in their first files, which are read instead of run.
    """
    root = sources / "sif2jax"
    found: dict[str, Callable[[], Any]] = {}
    for folder in (root, root / "cutest", *(p.parent for p in root.glob("cutest/_*/__init__.py"))):
        package = ModuleType(".".join(folder.relative_to(sources).parts))
        package.__path__ = [str(folder)]
        sys.modules[package.__name__] = package
        found |= _listed(package.__name__, ast.parse((folder / "__init__.py").read_text()))
    general = importlib.import_module("sif2jax._problem")
    kinds = {name: x for name, x in vars(general).items() if name.startswith("Abstract")}
    vars(sys.modules["sif2jax"]).update(kinds)
    return found


def _listed(package: str, tree: ast.Module) -> dict[str, Callable[[], Any]]:
    """The problems that the first file of a package imports and makes."""
    modules = {
        alias.name: f"{package}.{node.module}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    lists = (
        n.value for n in tree.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Tuple)
    )
    calls = (
        x.func.id
        for each in lists
        for x in each.elts
        if isinstance(x, ast.Call) and isinstance(x.func, ast.Name)
    )
    return {name: partial(_made, modules[name], name) for name in calls}


def _made(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)()


def _watch(seconds: float) -> None:
    """Stop what follows when it has taken so many seconds of the processor.

    They are read once a second: a timer of the processor's time would make its clock coarse.
    """
    end = time.process_time() + seconds

    def look(number: int, frame: Any) -> None:
        if time.process_time() > end:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise TimeoutError("the problem took too long")

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)


def _write(record: Path, line: dict[str, Any]) -> None:
    with record.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _results(way: str, problem: Any, name: str, out: Path, most: int) -> dict[str, Any]:
    from jax.flatten_util import ravel_pytree  # noqa: PLC0415 (see above)

    x, unravel = ravel_pytree(problem.y0)
    if x.size > most:
        return {"n": int(x.size)}
    args = problem.args
    derivatives: dict[str, Callable[[Any], Any]] = {
        "hessian": lambda x: problem.objective(unravel(x), args)
    }
    if hasattr(problem, "constraint"):
        derivatives["jacobian"] = lambda x: ravel_pytree(problem.constraint(unravel(x)))[0]
    found = {
        kind: MEASURES[way](kind, f, x, out / f"{name}.{kind}.npy")
        for kind, f in derivatives.items()
    }
    return {"n": int(x.size), **found}


def _times(derivative: Callable[[], Any]) -> Derivative:
    """Seconds of the processor of the first value and of later ones."""
    each = []
    for _ in range(6):
        start = time.process_time()
        derivative()
        each.append(time.process_time() - start)
    return {"first": each[0], "each": min(each[1:])}


def _here(kind: str, f: Callable[[Any], Any], x: Any, places: Path) -> Derivative:
    import funcgrad as fg  # noqa: PLC0415 (after the stand-in)
    from funcgrad import sparsity  # noqa: PLC0415

    x = np.asarray(x)
    start = time.process_time()
    if kind == "hessian":
        colors = sparsity.coloring(sparsity.hessian_sparsity(f)(x), "symmetric")
        derivative = fg.hessian(f, sparse=True)
    else:
        colors = sparsity.coloring(sparsity.jacobian_sparsity(f)(x), "both")
        derivative = fg.jacrev(f, sparse=True)
    verified = len(colors.sources)
    found: Derivative = {
        "seconds": time.process_time() - start, "nnz": verified, "colors": colors.n_colors,
    }  # fmt: skip
    if x.size >= LARGE:
        found |= _times(lambda: derivative(x))
    if places.exists():
        needed = np.load(places)
        matrix = derivative(x)
        matrix.data = np.ones(matrix.nnz, np.bool_)
        inside = matrix.toarray()
        found["missed"] = int((~inside[needed[0], needed[1]]).sum())
    return found


def _by_asdex(kind: str, f: Callable[[Any], Any], x: Any, places: Path) -> Derivative:
    import asdex  # noqa: PLC0415 (only in this process)
    import jax  # noqa: PLC0415

    if x.size <= DENSE:
        dense = jax.jit((jax.hessian if kind == "hessian" else jax.jacfwd)(f))
        noise = np.random.default_rng(0).normal(size=(2, x.size))
        values = [np.asarray(dense(x + 0.1 * z)) for z in noise]
        needed = np.array(np.nonzero(sum(np.isfinite(v) & (v != 0) for v in values)))
        np.save(places, needed.reshape(2, -1) if x.size else np.zeros((2, 0), int))
    start = time.process_time()
    color = asdex.hessian_coloring if kind == "hessian" else asdex.jacobian_coloring
    colors = color(f, x)
    found: Derivative = {
        "seconds": time.process_time() - start,
        "nnz": int(colors.sparsity.nnz),
        "colors": int(colors.num_colors),
    }
    if x.size >= LARGE:
        make = asdex.hessian_from_coloring if kind == "hessian" else asdex.jacobian_from_coloring
        derivative = jax.jit(make(f, colors))
        found |= _times(lambda: jax.block_until_ready(derivative(x)))
    return found


MEASURES = {JAX: _by_asdex, HERE: _here}


# The process that runs them all.


def lines_of(record: Path) -> list[dict[str, Any]]:
    """The last line of each problem in a record."""
    if not record.exists():
        return []
    lines = map(json.loads, record.read_text().splitlines())
    return list({line["name"]: line for line in lines}.values())


class Side:
    """A process that runs problems one way; another one after a problem that ended it."""

    def __init__(self, way: str, options: argparse.Namespace) -> None:
        self.way, self.options = way, options
        self.record = options.out / f"{way}.jsonl"
        self.record.touch()
        self.known = {line["name"] for line in lines_of(self.record)}
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the process, if there is none, and wait for its problems."""
        if self.process is not None:
            return
        (self.options.out / NAMES).unlink(missing_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(self.options.sources)]),
            "JAX_PLATFORMS": "cpu",
            "OMP_NUM_THREADS": "1",
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        }
        command = [sys.executable, "-m", "tests.cutest", "--inside", self.way]
        command += ["--out", str(self.options.out), "--most", str(self.options.most)]
        command += ["--seconds", str(self.options.seconds)]
        command += ["--sources", str(self.options.sources)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, text=True
        )
        self._wait(START, (self.options.out / NAMES).exists)

    def run(self, name: str) -> None:
        """Run a problem that has no record yet; it has one afterwards."""
        if name in self.known:
            return
        self.known.add(name)
        self.start()
        size = self.record.stat().st_size
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            self._wait(PATIENCE * self.options.seconds, lambda: self.record.stat().st_size > size)
        if self.record.stat().st_size == size:
            _write(self.record, {"name": name})

    def _wait(self, seconds: float, is_done: Callable[[], bool]) -> None:
        """Wait for the process; it is ended if it takes longer: no signal interrupts some code."""
        assert self.process is not None
        end = time.monotonic() + seconds
        while not is_done():
            if self.process.poll() is not None or time.monotonic() > end:
                return self.stop()
            time.sleep(0.02)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        self.process = None


def run_sides(options: argparse.Namespace) -> None:
    """Run each problem one way after the other, so that both meet the same load."""
    sides = [Side(way, options) for way in options.ways]
    names = list(options.names)
    try:
        if not names:
            sides[0].start()
            names = (options.out / NAMES).read_text().splitlines()
        for name in names:
            for side in sides:
                side.run(name)
    finally:
        for side in sides:
            side.stop()


def pairs(out: Path) -> Iterator[tuple[str, str, Derivative, Derivative | None]]:
    """Name, kind, and what was found here and on JAX."""
    others = {line["name"]: line for line in lines_of(out / f"{JAX}.jsonl")}
    for line in lines_of(out / f"{HERE}.jsonl"):
        for kind in ("hessian", "jacobian"):
            if kind in line:
                yield line["name"], kind, line[kind], others.get(line["name"], {}).get(kind)


def report(out: Path) -> int:
    """Print what came out; 1 if an entry was missed or a problem failed here alone."""
    here = lines_of(out / f"{HERE}.jsonl")
    failed = [line for line in here if "n" not in line]
    failed_there = {line["name"] for line in lines_of(out / f"{JAX}.jsonl") if "n" not in line}
    for kind in ("hessian", "jacobian"):
        rows = [row for row in pairs(out) if row[1] == kind]
        checked = [row for row in rows if "missed" in row[2]]
        missed = [row for row in checked if row[2]["missed"]]
        both = [(name, own, other) for name, _, own, other in rows if other is not None]
        more = [row for row in both if row[1]["colors"] > row[2]["colors"]]
        fewer = [row for row in both if row[1]["colors"] < row[2]["colors"]]
        slowest = max(rows, key=lambda row: row[2]["seconds"], default=None)
        print(
            f"{kind}: {len(rows)} problems; {len(missed)} of {len(checked)} that have dense "
            f"derivatives miss an entry {[row[0] for row in missed]}\n"
            f"  colours beside asdex's: fewer in {len(fewer)}, as many in "
            f"{len(both) - len(more) - len(fewer)}, more in {len(more)}: "
            f"{[(name, own['colors'], other['colors']) for name, own, other in more]}"
        )
        slow = [row for row in rows if row[2]["seconds"] > 1]
        if slowest is not None:
            print(
                f"  pattern and colours: at most {slowest[2]['seconds']:.2f} s ({slowest[0]}), "
                f"over a second in {[row[0] for row in slow]}"
            )
        timed = [
            (name, own, other) for name, own, other in both if "each" in own and "each" in other
        ]
        if timed:
            first = [
                # Here the first call looks for the pattern itself, and alone.
                (o["seconds"] + o["first"]) / own["first"]
                for _, own, o in timed
            ]
            each = [o["each"] / own["each"] for _, own, o in timed]
            print(
                f"  asdex's time / ours, {len(timed)} problems of {LARGE} variables or more: first "
                f"{geometric_mean(first):.1f} (least {min(first):.1f}), later "
                f"{geometric_mean(each):.1f} (least {min(each):.2f})"
            )
    alone = [line for line in failed if line["name"] not in failed_there]
    for line in alone:
        print(f"  {line['name']}: {line.get('error', 'ended the process')}")
    print(f"{len(here)} problems; {len(failed)} failed, {len(alone)} of them here alone")
    return int(bool(alone) or any(row[2].get("missed") for row in pairs(out)))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.cutest", description=(__doc__ or "")[:90])
    parser.add_argument("names", nargs="*", help="problems; all by default")
    parser.add_argument("--sources", type=Path)
    parser.add_argument("--out", type=Path, help="where records are kept")
    parser.add_argument("--most", type=int, default=10_000, help="variables")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the processor")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--inside", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        sources, out = options.sources, options.out
        run_problems(options.inside, sources, out, options.most, options.seconds)
        return 0
    if options.sources is None or not (options.sources / "sif2jax").is_dir():
        print("there is no sif2jax: pip install --target cutest sif2jax asdex; --sources cutest")
        return 2
    options.sources = options.sources.resolve()
    with tempfile.TemporaryDirectory() as folder:
        options.out = Path(options.out or folder).resolve()
        options.out.mkdir(parents=True, exist_ok=True)
        run_sides(options)
        return report(options.out)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
