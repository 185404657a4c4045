"""NPBench's programs, traced, compiled and differentiated.

``FOLDER`` is a source tree of https://github.com/spcl/npbench. Its NumPy programs run as they are,
but for ``import funcgrad.numpy as np``. Their results are compared with NumPy's, gradients of the
sum of their results with central differences; times are those of the processor, with one thread,
and those of first calls include tracing and all kernels. Each program runs in a process of its own
that ends after ``--limit`` seconds of the processor: what it has found by then is in the table.

    python -m tests.npbench --sources FOLDER                      all programs
    python -m tests.npbench --sources FOLDER --only lu,cholesky   some of them
    python -m tests.npbench --sources FOLDER --peers              and Numba's and JAX's versions
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg

ROOT = Path(__file__).parents[1]
ENOUGH = 0.2
SETTLED, SLOPE = 2.0, 2.0
"""A first gradient may take so many seconds, and so many times what NumPy needs."""


class Program:
    """A program of NPBench.

    Args:
        sources: The source tree.
        info: Its description there.
        preset: Which sizes.
    """

    def __init__(self, sources: Path, info: dict[str, Any], preset: str) -> None:
        self.folder = sources / "npbench" / "benchmarks" / info["relative_path"]
        self.info = info
        self.changed: list[str] = []
        self.data: dict[str, Any] = dict(info["parameters"][preset])
        init = info.get("init")
        if init:
            make = self._functions("", "")[init["func_name"]]
            made = make(*(self.data[x] for x in init["input_args"]))
            names = init["output_args"]
            self.data.update(zip(names, made if len(names) > 1 else [made], strict=True))

    def _functions(self, version: str, numpy: str) -> dict[str, Any]:
        path = self.folder / f"{self.info['module_name']}{version}.py"
        text = path.read_text()
        if numpy:
            text = text.replace("import numpy as np", f"import {numpy} as np")
        names: dict[str, Any] = {"__name__": path.stem}
        exec(compile(text, str(path), "exec"), names)
        return names

    def function(self, version: str = "_numpy", numpy: str = "") -> Callable[..., Any]:
        found: Callable[..., Any] = self._functions(version, numpy)[self.info["func_name"]]
        return found

    def pure(
        self, function: Callable[..., Any], copies: bool, names: Sequence[str] = ()
    ) -> Callable[..., list[Any]]:
        """What a program returns or writes, as a function of some arrays, or those that vary."""

        def run(*arrays: Any) -> list[Any]:
            values = dict(self.data)
            values.update(zip(names or self.varied, arrays, strict=True))
            for name in self.info["array_args"]:
                if copies:
                    values[name] = values[name].copy()
            out = function(*(values[x] for x in self.info["input_args"]))
            outs = [] if out is None else list(out) if isinstance(out, tuple | list) else [out]
            return [*outs, *(values[x] for x in self.changed)]

        return run

    def find_changed(self, function: Callable[..., Any]) -> None:
        """Find the arguments that a program writes to."""
        names = self.info["array_args"]
        values = {**self.data, **{x: self.data[x].copy() for x in names}}
        function(*(values[x] for x in self.info["input_args"]))
        self.changed = [
            x
            for x in names
            if x in self.info["output_args"] or not np.array_equal(values[x], self.data[x])
        ]

    @property
    def varied(self) -> list[str]:
        """Names of the arguments that gradients are taken of: arrays of floats."""
        return [x for x in self.info["array_args"] if self.data[x].dtype.kind in "fc"]

    @property
    def point(self) -> list[Any]:
        return [self.data[x] for x in self.varied]


def seconds(function: Callable[..., Any], *args: Any) -> float:
    """Processor time of a call: the mean of as many as take a fifth of a second."""
    count, start = 0, time.process_time()
    while True:
        function(*args)
        count += 1
        passed = time.process_time() - start
        if passed > ENOUGH:
            return passed / count


def first(function: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    """Processor time of the first call, and its result."""
    start = time.process_time()
    found = function(*args)
    return time.process_time() - start, found


def is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "fc" if not hasattr(x, "dtype") else x.dtype.kind in "fc"


def sum_of(outs: Sequence[Any]) -> Any:
    """The sum of all results that are floats."""
    total = 0.0
    for x in outs:
        if is_float(x):
            total = total + x.sum().real
    return total


def tell(**found: Any) -> None:
    print(json.dumps(found, default=float), flush=True)


def measure(program: Program, peers: bool) -> None:
    """Print what is found of a program, one line for each part of it."""
    plain = program.pure(program.function(), True)
    point = program.point
    with np.errstate(all="ignore"):
        program.find_changed(program.function())
        wanted = plain(*point)
        tell(numpy=seconds(plain, *point))
    pure = program.pure(program.function(numpy="funcgrad.numpy"), True)
    names = program.info["array_args"]
    everything = [program.data[x] for x in names]
    value = fg.jit(program.pure(program.function(numpy="funcgrad.numpy"), True, names))
    compile_time, got = first(value, *everything)
    close = [
        np.allclose(x, y, rtol=1e-6, atol=1e-8, equal_nan=True)
        for x, y in zip(got, wanted, strict=True)
    ]
    tell(value_first=compile_time, right=all(close), value=seconds(value, *everything))
    if point and any(map(is_float, wanted)):
        gradient = fg.jit(fg.grad(lambda xs: sum_of(pure(*xs))))
        compile_time, got = first(gradient, point)
        tell(gradient_first=compile_time, gradient=seconds(gradient, point))
        tell(slope=is_slope(lambda *xs: sum_of(plain(*xs)), point, got))
    if peers:
        measure_peers(program, point)


def is_slope(loss: Callable[..., Any], point: Sequence[Any], gradient: Sequence[Any]) -> bool:
    """Whether a gradient agrees with central differences along a random direction."""
    rng = np.random.default_rng(0)
    directions = [rng.normal(size=x.shape) for x in point]
    product = sum(float(np.sum(np.real(g) * d)) for g, d in zip(gradient, directions, strict=True))
    single = any(x.dtype in (np.float32, np.complex64) for x in point)
    with np.errstate(all="ignore"):
        for step in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
            ends = [
                loss(
                    *(
                        x + (s * step * d).astype(x.dtype)
                        for x, d in zip(point, directions, strict=True)
                    )
                )
                for s in (1.0, -1.0)
            ]
            difference = float((ends[0] - ends[1]) / (2 * step))
            scale = max(abs(product), abs(difference), 1e-8)
            if abs(product - difference) < (0.05 if single else 1e-3) * scale:
                return True
    return False


def measure_peers(program: Program, point: Sequence[Any]) -> None:
    numba = importlib.import_module("numba")
    for version in ("_numba_npr", "_numba_np"):
        if not (program.folder / f"{program.info['module_name']}{version}.py").exists():
            continue
        function = program.function(version)
        if not hasattr(function, "py_func"):
            function = numba.njit(parallel=True)(function)
        run = program.pure(function, True)
        run(*point)
        tell(numba=seconds(run, *point))
        break
    if point and (program.folder / f"{program.info['module_name']}_jax.py").exists():
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        pure = program.pure(program.function("_jax"), False)
        gradient = jax.jit(jax.grad(lambda xs: sum_of(pure(*xs))))
        arrays = list(map(jax.numpy.asarray, point))
        jax.block_until_ready(gradient(arrays))
        tell(jax=seconds(lambda: jax.block_until_ready(gradient(arrays))))


def described(sources: Path) -> dict[str, dict[str, Any]]:
    files = sorted((sources / "bench_info").glob("*.json"))
    return {f.stem: json.loads(f.read_text())["benchmark"] for f in files}


def run_apart(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What a process of its own finds of a program."""
    command = [
        sys.executable,
        "-m",
        "tests.npbench",
        "--sources",
        str(options.sources),
        "--one",
        name,
    ]
    command += ["--preset", options.preset, *(["--peers"] if options.peers else [])]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache:
        one = dict.fromkeys(("FUNCGRAD_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        ended = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **one, "FUNCGRAD_CACHE_DIR": cache, "XLA_FLAGS": flags},
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (options.limit,) * 2),
        )
    for line in ended.stdout.splitlines():
        if line.startswith("{"):
            found.update(json.loads(line))
    if ended.returncode:
        last = ended.stderr.strip().splitlines()
        found["ended"] = last[-1][:150] if last else f"after {options.limit} s"
    return found


def row(name: str, found: dict[str, Any]) -> str:
    def shown(key: str) -> str:
        return f"{1e3 * found[key]:.2f}" if key in found else "-"

    def ratio(above: str, below: str) -> str:
        return f"{found[above] / found[below]:.2f}" if {above, below} <= found.keys() else "-"

    limit = SETTLED + SLOPE * found.get("numpy", 0.0)
    in_time = "-" if "gradient_first" not in found else str(found["gradient_first"] <= limit)
    cells = [
        name,
        shown("numpy"),
        shown("value_first"),
        shown("value"),
        str(found.get("right", "-")),
    ]
    cells += [shown("gradient_first"), in_time, shown("gradient"), str(found.get("slope", "-"))]
    cells += [ratio("gradient", "value"), ratio("numba", "value"), ratio("jax", "gradient")]
    return "| " + " | ".join([*cells, found.get("ended", "")]) + " |"


def mean(rows: Sequence[dict[str, Any]], above: str, below: str) -> str:
    """Geometric mean of a ratio over the programs that have it."""
    logs = [
        np.log(r[above] / r[below]) for r in rows if {above, below} <= r.keys() and r[below] > 0
    ]
    return f"{np.exp(np.mean(logs)):.2f} over {len(logs)}" if logs else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--only", default="", help="names of programs, with commas")
    parser.add_argument("--preset", default="S")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    programs = described(options.sources)
    if options.one:
        measure(Program(options.sources, programs[options.one], options.preset), options.peers)
        return
    print(
        "| program | NumPy, ms | first value | value | right | first gradient | in time |", end=""
    )
    print(" gradient | right | gradient/value | Numba/value | JAX/gradient | ended |", flush=True)
    print("|---" * 13 + "|", flush=True)
    rows = []
    for name in options.only.split(",") if options.only else programs:
        rows.append(run_apart(name, options))
        print(row(name, rows[-1]), flush=True)
    print("gradient/value:", mean(rows, "gradient", "value"))
    print("Numba/value:", mean(rows, "numba", "value"))
    print("JAX/gradient:", mean(rows, "jax", "gradient"))


if __name__ == "__main__":
    main()
