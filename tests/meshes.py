"""The tests of `shard_map` that JAX has for itself, on funcgrad, in one process and on ranks.

    python -m tests.meshes --sources FOLDER                     on 1, 2 and 4 ranks
    python -m tests.meshes --sources FOLDER --ranks 1 -k psum   some of them, in one process

``FOLDER/shard_map_test.py`` is a file of JAX's source tree, which is not kept here; with it goes
``pip install absl-py``. What the file imports of JAX's own tools for tests is here, as far as it
concerns values: meshes, comparisons, kinds of errors, but neither their words nor texts of programs
or counters of caches. Tests of what has no meaning without devices are not counted, nor are those
of what is otherwise here: ``meshes.txt`` lists them by their reasons. A second number counts the
latter as failures. A test passes on ranks if it passes on every one of them.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import os
import re
import signal
import subprocess
import sys
import unittest
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from tests.recording import (
    FLAGS,
    ROOT,
    STARTED,
    Recorder,
    lines_of,
    out_of_scope,
    print_classes,
)

FILE = "shard_map_test.py"
LISTED = Path(__file__).with_suffix(".txt")
DEVICES = 8
CASES = 10
"""Of a test that is made of random choices."""


# What the file imports beside the package: tools for tests.


def _decorating(**known: Any) -> Any:
    """A name of any decorator: all leave what they decorate as it is."""

    def plain(*args: Any, **options: Any) -> Any:
        return lambda f: f

    return plain


def _compared(a: Any, b: Any, tolerance: float | None) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, f"shapes {a.shape} and {b.shape}"
    if tolerance is None:
        np.testing.assert_array_equal(a, b)
    else:
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def _case(base: type, jax: Any) -> type:
    """The class of JAX's tests: comparisons of pytrees."""

    class JaxTestCase(base):  # type: ignore[misc]
        def assertAllClose(
            self, x: Any, y: Any, *, atol: Any = None, rtol: Any = None, **options: Any
        ) -> None:
            leaves = (jax.tree.leaves(x), jax.tree.leaves(y))
            for a, b in zip(*leaves, strict=True):
                _compared(a, b, max(rtol or 1e-5, atol or 1e-5))

        assertArraysAllClose = assertAllClose

        def assertArraysEqual(self, x: Any, y: Any, **options: Any) -> None:
            _compared(x, y, None)

        def assertRaisesRegex(self, error: Any, pattern: Any, *args: Any, **options: Any) -> Any:
            return self.assertRaises(error, *args, **options)  # noqa: PT027

    return JaxTestCase


def _tools(jax: Any, world: Any) -> dict[str, Any]:
    """Names of ``jax._src.test_util``."""
    from absl.testing import parameterized  # noqa: PLC0415 (one of the few that need it)
    from jax.test_util import check_grads  # noqa: PLC0415 (which is funcgrad here)

    def create_mesh(shape: Any, names: Any, iota_order: Any = None, axis_types: Any = None) -> Any:
        names = (names,) if isinstance(names, str) else tuple(names)
        types = {} if axis_types is None else {"axis_types": axis_types}
        return jax.make_mesh(tuple(shape), names, **types)

    def with_explicit_mesh(sizes: Any, names: Any, axis_types: Any = None, **options: Any) -> Any:
        def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(test)
            def run(self: Any, *args: Any, **options: Any) -> Any:
                n = len((names,) if isinstance(names, str) else tuple(names))
                types = axis_types or (jax.sharding.AxisType.Explicit,) * n
                mesh = create_mesh(sizes, names, axis_types=types)
                with jax.set_mesh(mesh):
                    return test(self, *args, **options, mesh=mesh)

            return run

        return decorate

    @contextlib.contextmanager
    def capture_stdout() -> Iterator[Callable[[], str]]:
        """What all ranks print: each prints its own lanes."""
        stream, texts = io.StringIO(), list[str]()
        with contextlib.redirect_stdout(stream):
            yield lambda: "".join(texts)
        printed = stream.getvalue()
        texts += [printed] if world is None else world.allgather(printed)

    def rand_small(rng: Any) -> Any:
        return lambda shape, dtype: np.asarray(1e-3 * rng.randn(*shape), dtype)

    def checked(
        f: Any, args: Any, order: int, modes: Any = ("fwd", "rev"), **tolerances: Any
    ) -> Any:
        tolerances = {key: tolerances.get(key) or 1e-2 for key in ("atol", "rtol")}
        return check_grads(f, tuple(args), order, modes, **tolerances)

    decorators = (
        "run_on_devices", "skip_on_devices", "skip_on_flag", "thread_unsafe_test", "with_config",
        "pytest_mark_if_available", "ignore_warning",
    )  # fmt: skip
    return {
        **dict.fromkeys(decorators, _decorating()),
        "JaxTestCase": _case(parameterized.TestCase, jax),
        "JaxTestLoader": unittest.TestLoader,
        "NUM_GENERATED_CASES": SimpleNamespace(value=CASES),
        "capture_stdout": capture_stdout,
        "check_grads": checked,
        "create_mesh": create_mesh,
        "device_under_test": lambda: "cpu",
        "is_cloud_tpu": lambda: False,
        "is_device_tpu": lambda *args: False,
        "rand_small": rand_small,
        "request_cpu_devices": lambda number: None,
        "test_device_matches": lambda kinds: "cpu" in kinds,
        "thread_unsafe_test": _decorating(),
        "with_explicit_mesh": with_explicit_mesh,
    }


class _Option:
    """One of JAX's settings, which has no effect: a flag, a block or a decorator."""

    value = False

    def __call__(self, *values: Any) -> Any:
        return contextlib.nullcontext() if not values else _Block()


class _Block(contextlib.ContextDecorator):
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


class _Settings(ModuleType):
    """``jax._src.config``."""

    def parse_flags_with_absl(self) -> None: ...

    def __getattr__(self, name: str) -> _Option:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Option()


def provide(jax: Any, world: Any) -> None:
    """Have what the file imports that is no part of JAX for users; all ranks, if there are some."""
    import jax._src  # noqa: PLC0415

    from funcgrad.interop.jax import placing  # noqa: PLC0415

    settings = _Settings("config")
    vars(settings).update(
        auto_pcast=jax.auto_pcast, disable_vmap_shmap_error=placing.disable_vmap_shmap_error
    )
    sys.modules["jax._src.config"] = jax._src.config = settings
    tools = ModuleType("jax._src.test_util")
    vars(tools).update(_tools(jax, world))
    sys.modules[tools.__name__] = jax._src.test_util = tools  # type: ignore[attr-defined]
    import jax._src.core as internals  # noqa: PLC0415

    varied = functools.partial(jax.lax.pcast, to="varying")
    vars(internals).update(typeof=jax.typeof, new_ref=jax.new_ref, reduced_vary_cast=varied)
    meshes = ModuleType("jax._src.mesh")
    names = jax.sharding
    empty = names.Mesh(np.empty((), object), ())
    vars(meshes).update(
        AxisType=names.AxisType,
        get_abstract_mesh=names.get_abstract_mesh,
        empty_concrete_mesh=empty,
    )
    sys.modules[meshes.__name__] = jax._src.mesh = meshes  # type: ignore[attr-defined]
    trees = ModuleType("jax._src.tree_util")
    strict_leaf = jax.tree.structure(0)
    vars(trees).update(treedef_is_strict_leaf=lambda treedef: treedef == strict_leaf)
    sys.modules[trees.__name__] = jax._src.tree_util = trees  # type: ignore[attr-defined]
    helpers = ModuleType("jax._src.util")
    vars(helpers).update(
        safe_map=lambda f, *xs: [f(*row) for row in zip(*map(list, xs), strict=True)],
        safe_zip=lambda *xs: list(zip(*xs, strict=True)),
        partition_list=lambda flags, xs: tuple(
            [x for x, on in zip(xs, flags, strict=True) if bool(on) == which]
            for which in (False, True)
        ),
        merge_lists=_merged,
    )
    sys.modules[helpers.__name__] = jax._src.util = helpers  # type: ignore[attr-defined]


def _merged(flags: Any, off: Any, on: Any) -> list[Any]:
    sources = (iter(off), iter(on))
    return [next(sources[bool(flag)]) for flag in flags]


# The process that runs tests, one of several on ranks.


class _OfRank(Recorder):
    """A recorder of lines without seconds; a file that cannot be imported is seen in the log."""

    def write(self, test: str, outcome: str, message: str, seconds: float) -> None:
        if name := test.partition("::")[2]:
            is_begun = outcome == STARTED
            self.append([name, "begun" if is_begun else outcome, "" if is_begun else message])


def run_tests(options: argparse.Namespace) -> None:
    """Run tests in this process, and record what became of them."""
    from funcgrad.interop.jax import install  # noqa: PLC0415 (before anything imports jax)

    install()
    import jax  # noqa: PLC0415 (which is funcgrad)
    import pytest  # noqa: PLC0415

    jax.config.update("jax_num_cpu_devices", DEVICES)
    rank, world = 0, None
    if options.n > 1:
        from mpi4py import MPI  # noqa: PLC0415

        world = MPI.COMM_WORLD
        rank = world.Get_rank()
    provide(jax, world)
    record = options.out / f"rank-{rank}.jsonl"
    choice = ["-k", options.k] if options.k else []
    part = slice(options.begin, options.begin + options.count)
    recorder = _OfRank(record, lambda items: items[part], signal.ITIMER_REAL)
    file = str(in_public_words(options, rank))
    pytest.main([*FLAGS, "--durations=15", "-W", "ignore", *choice, file], plugins=[recorder])


def in_public_words(options: argparse.Namespace, rank: int) -> Path:
    """Write a copy of the file that asks ``jax.typeof`` for types of values, not the values.

    The attribute ``aval`` is JAX's own; here it has the type of another library.
    """
    text = (options.sources / FILE).read_text()
    folder: Path = options.out / f"source-{rank}"
    folder.mkdir(exist_ok=True)
    path = folder / FILE
    path.write_text(re.sub(r"\b([\w\[\]]+)(?:\.aval\.|\.(?=mat\b))", r"jax.typeof(\1).", text))
    return path


# The process that starts them.


def outcomes(folder: Path, n: int) -> tuple[dict[str, str], dict[str, str]]:
    """What became of each test on all ranks, and what those said that failed."""
    found: dict[str, str] = {}
    said: dict[str, str] = {}
    for rank in range(n):
        path = folder / f"rank-{rank}.jsonl"
        rows = lines_of(path)
        last = {name: outcome for name, outcome, _ in rows}
        for name, outcome, message in rows:
            if outcome == "failed" or (outcome == "begun" == last[name]):
                said.setdefault(name, message or "the process ended")
        for name, outcome in last.items():
            kept = found.get(name, "passed")
            is_bad = outcome in ("failed", "begun") or kept == "failed"
            found[name] = "failed" if is_bad else outcome
    return found, said


def run_on(n: int, options: argparse.Namespace) -> tuple[dict[str, str], dict[str, str]]:
    """Run all tests on a number of ranks, so many in each run."""
    sys.path.insert(0, str(ROOT))
    from tests.distributed.launching import ENVIRONMENT, MPIEXEC  # noqa: PLC0415

    found: dict[str, str] = {}
    said: dict[str, str] = {}
    begin = 0
    while True:
        out = options.out / f"{n}-{begin}"
        out.mkdir(parents=True, exist_ok=True)
        for path in out.glob("*.jsonl"):
            path.unlink()
        command = [sys.executable, "-m", "tests.meshes", "--inside", "--n", str(n), "--begin"]
        command += [str(begin), "--count", str(options.count), "--out", str(out)]
        command += ["--sources", str(options.sources), "-k", options.k]
        if n > 1:
            command = [str(MPIEXEC), "-n", str(n), *command]
        environment = {**os.environ, **ENVIRONMENT}
        with (out / "log").open("w") as log:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                process_group=0,
            )  # fmt: skip
            try:
                process.wait(options.limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        these, words = outcomes(out, n)
        found |= these
        said |= words
        if not these or (process.returncode == 0 and len(these) < options.count):
            if not found:
                print((out / "log").read_text()[-2000:])
            return found, said
        begin += len(these)  # behind a test that never ended


def report(n: int, found: dict[str, str], said: dict[str, str], is_long: bool) -> bool:
    """Print what became of the tests on a number of ranks; whether enough of them pass."""
    listed = out_of_scope(LISTED)
    counted = {name: o for name, o in found.items() if name not in listed and o != "skipped"}
    good = [name for name, outcome in counted.items() if outcome == "passed"]
    bad = sorted(set(counted) - set(good))
    print_classes({name: said.get(name, "") for name in bad}, None, None if is_long else 3)
    beside = [name for name in listed if found.get(name) == "passed"]
    reasons = Counter(listed[name] for name in found if name in listed)
    share = 100 * len(good) / max(1, len(counted))
    others = [name for name in listed if name in found and not listed[name].startswith("devices")]
    n_good = len(good) + len(set(beside).intersection(others))
    print(
        f"{n} ranks: {len(good)} of {len(counted)} pass ({share:.1f} %); not counted: "
        f"{'; '.join(f'{k} ({v})' for k, v in reasons.items())}; of these {len(beside)} pass. "
        f"Of all but those of devices: {n_good} of {len(counted) + len(others)}",
        flush=True,
    )
    return share >= 97.0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.meshes", description=(__doc__ or "")[:88])
    parser.add_argument("--sources", type=Path, default=Path("meshes"))
    parser.add_argument("--out", type=Path, default=Path("meshes-results"))
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--count", type=int, default=1000, help="tests of one run")
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds for one run")
    parser.add_argument("-k", default="", help="tests whose names match")
    parser.add_argument("--long", action="store_true", help="name all that fail")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--begin", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.sources, options.out = options.sources.resolve(), options.out.resolve()
    if options.inside:
        run_tests(options)
        return 0
    if not (options.sources / FILE).is_file():
        print(f"{options.sources / FILE} is missing: it is in JAX's source tree, under tests/")
        return 2
    held = [report(n, *run_on(n, options), options.long) for n in options.ranks]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
