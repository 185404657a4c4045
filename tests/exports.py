"""``python -m tests.exports``: a hundred programs as files of C, and a table of how they do.

They are programs of `tests.processors`, compositions of transformations, and gradients of
posteriors. Each is compiled by every compiler that is there, without a warning; run where nothing
is but the program, and under an emulator of another processor; compared with the process to the
bit, or, where the file calls functions of libm, in units of the last place; and timed against it,
calls of both in turn. ``--programs`` and ``--only`` take some of them.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ArgumentError
from funcgrad.interop.c import Exported
from tests.interop.posteriors import MODELS, density
from tests.interop.test_export import STRICT, exported, main_of
from tests.processors import COMPILER, EMULATOR, PROGRAMS
from tests.test_compositions import LETTERS, POINT, SAMPLES, WORDS

COMPILERS = ("gcc", "clang", "python-zig cc")
SECONDS, RATIO = 5.0, 1.2
"""The most that compiling a file and a call, in those of the process, may take."""


def programs() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Names, functions and arguments."""
    for name, (f, args) in PROGRAMS.items():
        if name != "subnormal":
            yield name, f, args
    for number, name in enumerate(SAMPLES):
        for word in WORDS[number :: len(WORDS) // 2]:
            g = SAMPLES[name].program
            for letter in reversed(word):
                g = LETTERS[letter](g)
            yield f"{name} {'.'.join(word)}", g, (POINT,)
    for name in MODELS:
        found = density(name)
        point = 0.3 * np.random.default_rng(found.n).standard_normal(found.n)
        yield f"posterior {name}", fg.value_and_grad(found), (point,)


def compiled(
    command: Sequence[str], made: Exported, folder: Path, flags: Sequence[str]
) -> tuple[Path, float]:
    """Compile a file with a program around it; the program, and processor time of the file."""
    source, part = folder / f"{made.name}.c", folder / f"{made.name}.o"
    start = os.times().children_user
    subprocess.run([*command, *STRICT, *flags, "-c", str(source), "-o", str(part)], check=True)
    seconds = os.times().children_user - start
    program = folder / made.name
    main = [*command, *flags, str(folder / "main.c"), str(part), "-o", str(program), "-lm"]
    subprocess.run(main, check=True)
    return program, seconds


def results(command: Sequence[str], made: Exported, args: Sequence[Any]) -> list[np.ndarray]:
    """Run a program that reads arguments and writes a status and results."""
    given = b"".join(
        np.ascontiguousarray(x, t.dtype).tobytes()
        for x, t in zip(args, made.signature.leaves, strict=True)
    )
    out = subprocess.run(command, input=given, capture_output=True, check=True, env={}).stdout
    assert out[:4] == bytes(4), "the status is not 0"
    found, place = [], 4
    for t in made.signature.outs:
        shape = t.shape({})
        found.append(np.frombuffer(out, t.dtype, int(np.prod(shape)), place).reshape(shape))
        place += found[-1].nbytes
    return found


def is_near(found: Sequence[np.ndarray], known: Sequence[np.ndarray]) -> bool:
    """Whether results agree but for rounding."""
    for x, y in zip(found, known, strict=True):
        rtol = 3e-5 if y.dtype.char in "fF" else 1e-9
        scale = float(np.abs(y).max(initial=0))
        if not np.allclose(x, y, rtol=rtol, atol=rtol * scale, equal_nan=True):
            return False
    return True


def libm_calls(part: Path) -> set[str]:
    """The functions of libm that an object file calls."""
    found = subprocess.run(["nm", "-u", str(part)], capture_output=True, check=True, text=True)
    names = {line.split()[-1].partition("@")[0] for line in found.stdout.splitlines()}
    return names - {"malloc", "free", "memcpy", "memset", "memmove", "__stack_chk_fail"}


def units(found: Sequence[np.ndarray], known: Sequence[np.ndarray]) -> float:
    """The greatest difference of results, in units of the last place of the largest of an array."""
    worst = 0.0
    for x, y in zip(found, known, strict=True):
        if np.array_equal(x, y, equal_nan=True):
            continue
        if y.dtype.kind not in "fc":
            return float("inf")
        unit = np.spacing(np.abs(y).max(initial=0, where=np.isfinite(y)))
        difference = np.abs(x - y)[~((x == y) | (np.isnan(x) & np.isnan(y)))]
        worst = max(worst, float(difference.max() / unit))
    return worst


def ratios(
    commands: Sequence[Sequence[str]],
    f: Callable[..., Any],
    made: Exported,
    args: Sequence[Any],
    folder: Path,
) -> list[float]:
    """Processor time of a call of the file, by every compiler, in that by address in the process.

    Each is the least of many short runs, of all in turn: other processes only add to it.
    """
    flags = ["-std=c99", "-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC"]
    source, libraries = str(folder / f"{made.name}.c"), []
    for k, command in enumerate(commands):
        libraries.append(str(folder / f"timed_{k}.so"))
        whole = ["-mprefer-vector-width=512"] * ("clang" in Path(command[0]).name)
        subprocess.run([*command, *flags, *whole, source, "-o", libraries[-1], "-lm"], check=True)
    there = fg.cfunc(lambda *args: tuple(fg.tree.leaves(f(*args))), str(made.signature))
    arrays = [
        np.ascontiguousarray(x, t.dtype) for x, t in zip(args, made.signature.leaves, strict=True)
    ]
    arrays += [np.empty(t.shape({}), t.dtype) for t in made.signature.outs]
    given = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
    calls = [partial(there._by_addresses, None, given)]
    for library in libraries:
        of_file = getattr(ctypes.CDLL(library), f"{made.name}_by_addresses")
        calls.append(partial(of_file, given, None))
    least = [float("inf")] * len(calls)
    counts = [max(1, int(1e-3 / seconds(call, 2))) for call in calls]
    for _ in range(40):
        for k, call in enumerate(calls):
            least[k] = min(least[k], seconds(call, counts[k]))
    return [x / least[0] for x in least[1:]]


def seconds(call: Callable[[], int], count: int) -> float:
    """Processor time of a call."""
    start = time.process_time()
    for _ in range(count):
        assert call() == 0
    return max(time.process_time() - start, 1e-6) / count


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.exports", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="how many, at most")
    parser.add_argument("--only", default="", help="those whose names have this text")
    options = parser.parse_args()
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    compilers = [
        [str(shutil.which(name.split()[0], path=beside)), *shlex.split(name)[1:]]
        for name in COMPILERS
        if shutil.which(name.split()[0], path=beside)
    ]
    has_emulator = all(shutil.which(name) for name in (COMPILER, EMULATOR))
    wrong, slow, count, refused = [], [], 0, 0
    timed = [command for command in compilers if len(command) == 1]
    found_ratios: dict[str, dict[str, float]] = {command[0]: {} for command in timed}
    equal: Counter[str] = Counter()
    chosen = [x for x in programs() if options.only in x[0]][: options.programs]
    for name, f, args in chosen:
        try:
            made, known = exported(f, args, "program")
        except ArgumentError as error:
            assert "a library of NumPy or SciPy evaluates a step" in str(error)  # noqa: PT017
            refused += 1
            continue
        count += 1
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            made.write(folder)
            (folder / "main.c").write_text(main_of(made))
            seconds = []
            for command in compilers:
                program, taken = compiled(command, made, folder, ["-march=native"])
                seconds.append(taken)
                found = results([str(program)], made, args)
                apart = units(found, known)
                equal[command[0]] += not apart
                calls = libm_calls(folder / f"{made.name}.o")
                if not is_near(found, known) or (apart and not calls):
                    wrong.append(f"{name}, {command[0]}")
                elif apart:
                    names = ", ".join(sorted(calls))
                    print(f"    {command[0]}: {apart:.1f} units of the last place; calls {names}")
            program, _ = compiled(compilers[0], made, folder, ["-static"])
            alone = folder / "alone"
            alone.mkdir()
            shutil.copy(program, alone)
            chroot = shutil.which("chroot") if os.geteuid() == 0 else None
            where = [chroot, str(alone), "/program"] if chroot else [str(program)]
            if not is_near(results(where, made, args), known):
                wrong.append(f"{name}, alone")
            if has_emulator:
                program, _ = compiled([COMPILER], made, folder, ["-static"])
                found = results([EMULATOR, str(program)], made, args)
                equal[EMULATOR] += not units(found, known)
                if not is_near(found, known):
                    wrong.append(f"{name}, {EMULATOR}")
            taken = ratios(timed, f, made, args, folder)
        for command, x in zip(timed, taken, strict=True):
            found_ratios[command[0]][name] = x
        slow += [f"{name}: {max(seconds):.1f} s"] * (max(seconds) > SECONDS)
        texts = ", ".join(f"{x:.1f}" for x in seconds)
        parts = ", ".join(f"{x:.2f}" for x in taken)
        print(f"{name:40} compiled in {texts} s, {parts} of the time", flush=True)
    print(f"{count} programs ({refused} call libraries); bits are equal in", dict(equal))
    for compiler, rows in found_ratios.items():
        mean = np.exp(np.mean(np.log([*rows.values()])))
        above = sorted(((x, name) for name, x in rows.items() if x > RATIO), reverse=True)
        print(
            f"{compiler}: time in that of the process: mean {mean:.2f}, {len(above)} above {RATIO}"
        )
        for x, name in above:
            print(f"    {x:.2f} {name}")
    print("compiled in more than", SECONDS, "s:", *slow or ["none"])
    print("wrong:", *wrong or ["none"])
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
