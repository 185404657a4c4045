"""Random programs with loops, as text: what people write around and into arrays.

``python -m tests.higher_order.random_loops COUNT SEED`` compares results with and without
re-rolling, bit for bit, and says which programs differ.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.program import evaluate
from funcgrad.higher_order.reroll import reroll, reroll_loops

N = 9
"""Length of the arrays, from which on sums have several terms at a time; matrices are square."""

_UNARY = ("np.sin({})", "np.tanh({})", "-{}", "0.5 * {}", "abs({})", "{} ** 2", "np.sqrt(abs({}))")
_BINARY = ("{} + {}", "{} - {}", "{} * {}", "np.maximum({}, {})", "0.3 * {} + 0.7 * {}")


_TRIANGLES = ("late", "below", "above", "rest", "half")
"""Inner loops whose numbers of steps depend on the counter around them."""


class Writer:
    """One random program.

    Args:
        seed: Of the choices.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.counters: list[tuple[str, int, int]] = []
        self.has_list = False

    def write(self) -> str:
        """The text of a function ``program(u, v, A, s)``."""
        self.add(0, "def program(u, v, A, s):")
        self.add(1, f"u = u.copy(); v = v.copy(); A = A.copy(); w = np.zeros({N})")
        self.add(1, "L = [u.copy()]")
        for _ in range(self.random.randint(1, 2)):
            for _ in range(self.random.randint(0, 2)):
                self.statement(1)
            self.loop(1)
        self.add(1, "return u, v, A, s, w" + (", np.stack(L)" if self.has_list else ""))
        return "\n".join(self.lines)

    def add(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def loop(self, depth: int) -> None:
        """A loop around statements and, sometimes, another one."""
        pick = self.random.choice
        name = "ijk"[len(self.counters)]
        deep = len(self.counters)
        kinds = ["range", "reversed", "array", "zip", "steps", *_TRIANGLES[: 5 * bool(deep)]]
        kind = pick(kinds)
        low, high = pick(((0, N), (1, N - 1), (1, N), (2, N)))
        if deep == 0:
            turns = self.random.randint(1, 3)
            if turns > 1:
                self.add(depth, f"for t in range({turns * 3}):")
                self.add(depth + 1, f"c = {pick(('0.25', 'C[t]', '0.1 * t', 't % 3 + 1.5'))}")
                self.counters.append(("t", 0, 1))
                self.body(depth + 1, deep + 1)
                self.counters.pop()
                return
        if kind == "reversed":
            self.add(depth, f"for {name} in range({high - 1}, {low - 1}, -1):")
        elif kind == "array":
            self.add(depth, f"for {name}, e in enumerate(u[{low}:{high}], {low}):")
        elif kind == "zip":
            self.add(depth, f"for {name}, (p, q) in enumerate(zip(u[{low}:{high}], v), {low}):")
        elif kind == "steps":
            self.add(depth, f"for {name} in range({low}, {high}, 2):")
        elif kind == "late":
            first = f"max({low}, min({self.counters[-1][0]}, {high - 2}))"
            self.add(depth, f"for {name} in range({first}, {high}):")
        elif kind in _TRIANGLES:
            outer, least, end = self.counters[-1]
            least, end = (0, N) if outer == "t" else (least, end)
            bounds, low, high = {
                "below": (f"{outer}", 0, max(end - 1, 1)),
                "above": (f"{outer} + 1, {N}", least + 1, N),
                "rest": (f"{N} - {outer}", 0, N - least),
                "half": (f"{outer} // 2, {outer}", 0, max(end - 1, 1)),
            }[kind]
            self.add(depth, f"for {name} in range({bounds}):")
        else:
            self.add(depth, f"for {name} in range({low}, {high}):")
        self.counters.append((name, low, high))
        self.body(depth + 1, deep + 1)
        self.counters.pop()

    def body(self, depth: int, deep: int) -> None:
        for _ in range(self.random.randint(1, 4)):
            choice = self.random.random()
            if choice < 0.2 and deep < 3:
                self.loop(depth)
            elif choice < 0.3:
                names = [c[0] for c in self.counters]
                tests = (f"{names[-1]} % 2 == 0", f"{names[-1]} < {names[0]} + 2")
                self.add(depth, f"if {self.random.choice(tests)}:")
                self.statement(depth + 1)
                if self.random.random() < 0.5:
                    self.add(depth, "else:")
                    self.statement(depth + 1)
            elif choice < 0.45:
                self.ragged(depth)
            else:
                self.statement(depth)

    def index(self) -> str:
        """An index that lies inside, from a counter or a number."""
        inner = [c for c in self.counters if c[0] != "t"]
        if not inner or self.random.random() < 0.2:
            return str(self.random.randint(0, N - 1))
        name, low, high = self.random.choice(inner)
        choices = [name]
        if low > 0:
            choices.append(f"{name} - 1")
        if high < N:
            choices.append(f"{name} + 1")
        choices += [f"{N - 1} - {name}", f"P[{name}]"]
        return self.random.choice(choices)

    def scalar(self) -> str:
        array = self.random.choice("uvw")
        choices = ["s", f"{array}[{self.index()}]", f"A[{self.index()}, {self.index()}]"]
        choices += [c[0] + " + 0.5" for c in self.counters]
        choices += ["0.7", f"C[{self.index()}]"]
        return self.random.choice(choices)

    def vector(self) -> str:
        choices = ["u", "v", "w", f"A[{self.index()}]", f"A[:, {self.index()}]", "np.roll(u, 1)"]
        return self.random.choice(choices)

    def parts(self) -> Callable[[], str]:
        """Parts of vectors of one length, which depends on a counter."""
        pick = self.random.choice
        end = self.index()
        length = f"({end})"
        kinds = ("{x}[:{n}]", "{x}[:{n}]", "{x}[{N} - {n}:]", "np.flip({x}[:{n}])")
        kinds += ("{x}[S[{n}] : S[{n}] + {n}]", "{x}[K[{n}]]")
        kinds = pick((kinds[:1], kinds[:2], kinds[2:3], kinds[4:5], kinds[4:], kinds))

        def part() -> str:
            i = self.index()
            x = pick(("u", "v", "w", f"A[{i}]", f"A[:, {i}]"))
            return pick(kinds).format(x=x, n=length, N=N)

        return part

    def ragged(self, depth: int) -> None:
        """A statement about parts whose lengths depend on a counter."""
        pick = self.random.choice
        part = self.parts()
        target = part()
        while "flip" in target or "[K[" in target:
            target = part()
        vector = self.expression(part)
        self.add(
            depth,
            pick(
                (
                    f"{target} = {vector}",
                    f"{target} {pick('+-')}= {self.scalar()} * {vector}",
                    f"{pick('uvw')}[{self.index()}] -= {part()} @ {part()}",
                    f"s = 0.5 * s + 0.1 * np.sum({vector})",
                    f"s = s + np.prod({part()} + 1.0) + np.min({part()}, initial=2.0)",
                )
            ),
        )

    def expression(self, operand: Callable[[], str]) -> str:
        a, b = operand(), operand()
        if self.random.random() < 0.4:
            return self.random.choice(_UNARY).format(a)
        return self.random.choice(_BINARY).format(a, b)

    def statement(self, depth: int) -> None:
        pick = self.random.choice
        i, j = self.index(), self.index()
        array = pick("uvw")
        kind = self.random.randint(0, 17)
        scalar, vector = self.expression(self.scalar), self.expression(self.vector)
        texts = (
            f"s = {scalar}",
            f"{array}[{i}] = {scalar}",
            f"{array}[{i}] {pick('+-*')}= {scalar}",
            f"A[{i}, {j}] = {scalar}",
            f"A[{i}, {j}] {pick('+-')}= {scalar}",
            f"A[{i}] = {vector}",
            f"A[:, {i}] += {vector}",
            f"{array} = {vector}",
            f"{array}[1:-1] = {pick('uvw')}[2:] - 0.5 * {pick('uvw')}[:-2]",
            "u, v = v, u",
            f"{array}[{i}], {array}[{j}] = {array}[{j}], {array}[{i}]",
            f"s = s + 0.1 * np.sum({vector})",
            f"A[{i}][1:-1] += {array}[2:]",
            f"A.T[{i}][::2][1:] = 0.5 * {array}[:4]",
            f"A[{i}][2:][{self.random.randint(0, 6)}] -= {scalar}",
            f"np.multiply({array}, 0.7, out={pick('uvw')})",
            f"A[[{i}, {j}]] = A[[{j}, {i}]]",
            f"q = A[:, {i}]; q[{j}] = {scalar}; {array}[{i}] += q[{j}]",
        )
        text = texts[kind]
        if self.random.random() < 0.08:
            self.has_list = True
            text = f"L.append({vector})"
        self.add(depth, text)


def program_of(text: str, name: str) -> Callable[..., Any]:
    """The function of a text, whose lines count as the user's."""
    constants = np.random.default_rng(1)
    names = {
        "np": fnp,
        "C": constants.uniform(0.1, 0.9, 16),
        "P": constants.permutation(N).tolist(),
        "S": [int(constants.integers(N - n + 1)) for n in range(N + 1)],
        "K": [constants.integers(-N, N, n) for n in range(N + 1)],
    }
    exec(compile(text, name, "exec"), names)
    found: Callable[..., Any] = names["program"]
    return found


def arguments(seed: int) -> Sequence[Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=N), rng.normal(size=N), rng.normal(size=(N, N)), rng.normal()


def bits(results: Sequence[Any]) -> list[tuple[Any, Any, bytes]]:
    arrays = map(np.asarray, results)
    return [(x.shape, x.dtype, np.where(np.isnan(x), np.nan, x).tobytes()) for x in arrays]


def traced(seed: int) -> tuple[str, Any, Any]:
    """A random program: its text, and what tracing makes of it without and with re-rolling."""
    text = Writer(seed).write()
    program = program_of(text, f"<loops {seed}>")
    with reroll_loops(False):
        plain = fg.make_jaxpr(program)(*arguments(seed)).program
    return text, plain, reroll(plain, 6)


class Comparison(NamedTuple):
    """What became of some programs.

    Attributes:
        rolled: How many have loops that were found.
        saved: How many equations that saved.
        wrong: The texts of those whose results differ.
    """

    rolled: int
    saved: int
    wrong: list[str]


def compared(count: int, first: int) -> Comparison:
    """Compare the results of ``count`` programs, evaluated by NumPy, bit for bit."""
    rolled_ones, saved, wrong = 0, 0, []
    with np.errstate(all="ignore"), fg.disable_jit():
        for seed in range(first, first + count):
            text, plain, rolled = traced(seed)
            args = arguments(seed)
            rolled_ones += rolled is not plain
            saved += len(plain.equations) - len(rolled.equations)
            if bits(evaluate(plain, args)) != bits(evaluate(rolled, args)):
                wrong.append(f"seed {seed}\n{text}")
    return Comparison(rolled_ones, saved, wrong)


if __name__ == "__main__":
    found = compared(int(sys.argv[1]), int(sys.argv[2]))
    print(*found.wrong[:5], sep="\n")
    print(f"{found.rolled} with loops, {found.saved} equations saved, {len(found.wrong)} wrong")
