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


class Wider(Writer):
    """One random program with more kinds of arrays, loops and writes.

    Args:
        seed: Of the choices.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.groups = self.random.sample(sorted(_GROUPS), self.random.randint(1, 4))
        self.texts = [text for group in self.groups for text in _GROUPS[group].texts]

    def write(self) -> str:
        """The text of a function ``program(u, v, A, s)``."""
        self.add(0, "def program(u, v, A, s):")
        self.add(1, f"u = u.copy(); v = v.copy(); A = A.copy(); w = np.zeros({N})")
        self.add(1, "L = [u.copy()]")
        for group in self.groups:
            self.lines += ["    " + line for line in _GROUPS[group].before]
        for _ in range(self.random.randint(1, 2)):
            for _ in range(self.random.randint(0, 2)):
                self.statement(1)
            self.loop(1)
        results = [_GROUPS[group].results for group in self.groups]
        results += [", np.stack(L)"] if self.has_list else []
        self.add(1, f"return u, v, A, s, w{''.join(results)}")
        return "\n".join(self.lines)

    def loop(self, depth: int) -> None:
        pick = self.random.choice
        deep = len(self.counters)
        name = "ijk"[deep]
        if deep == 0 and self.random.random() < 0.4:
            self.add(depth, f"for t in range({self.random.randint(2, 5)}):")
            self.add(depth + 1, f"c = {pick(('0.25', 'C[t]', '0.1 * t', 't % 3 + 1.5'))}")
            self.counters.append(("t", 0, 1))
            self.body(depth + 1, deep + 1)
            self.counters.pop()
            return
        if self.random.random() < 0.3:
            super().loop(depth)
            return
        low, high = pick(((0, 5), (1, 6), (3, 8), (4, N), (1, N - 1), (0, N)))
        after = ""
        kind = pick(("while", "down", "pairs", "order", "thirds", "early", "skipping"))
        if kind == "while":
            self.add(depth, f"{name} = {low}")
            self.add(depth, f"while {name} < {high}:")
            after = f"{name} += {pick('112')}"
        elif kind == "down":
            self.add(depth, f"for {name} in range({high - 1}, {low - 1}, {pick((-1, -2, -3))}):")
        elif kind == "pairs" and deep < 2:
            low, high = 0, N
            self.add(depth, f"for {name}, g in {pick(('E', 'zip(P, range(9))', 'enumerate(P)'))}:")
            self.counters.append(("g", 0, N))
        elif kind == "order":
            low, high = 0, N
            self.add(depth, f"for {name} in {pick(('P', 'reversed(P)', 'P[::2] + P[1::2]'))}:")
        elif kind == "thirds" or kind == "pairs":
            self.add(depth, f"for {name} in range({low}, {high}, 3):")
        else:
            self.add(depth, f"for {name} in range({low}, {high}):")
            ends = f"{name} == {high - 2}" if kind == "early" else f"{name} % 4 == 2"
            self.add(depth + 1, f"if {ends}: {'break' if kind == 'early' else 'continue'}")
        self.counters.append((name, low, high))
        self.body(depth + 1, len(self.counters))
        if after:
            self.add(depth + 1, after)
        self.counters = self.counters[:deep]

    def statement(self, depth: int) -> None:
        if self.random.random() < 0.4:
            super().statement(depth)
            return
        pick = self.random.choice
        names = {"i": self.index(), "j": self.index(), "n": pick("2345")}
        names["k"] = self.counters[-1][0] if self.counters else "3"
        names.update(x=pick("uvw"), y=pick("uvw"), s=self.expression(self.scalar))
        names["r"] = self.expression(self.vector)
        for line in pick(self.texts).format(**names).split("\n"):
            self.add(depth, line)


class _Group(NamedTuple):
    """Statements about arrays of one kind.

    Attributes:
        before: What makes the arrays.
        texts: Statements: places ``i`` and ``j``, a counter ``k``, a length ``n``, vectors ``x``
            and ``y``, a number ``s`` and a vector ``r`` that are computed.
        results: Further results.
    """

    before: Sequence[str]
    texts: Sequence[str]
    results: str = ""


_GROUPS = {
    "integers": _Group(
        [f"m = np.arange({N}) * 3 % 7"],
        (
            "m[{i}] += {k}",
            "m[{i}] = (m[{j}] * 3 + 1) % 7",
            "m[{i}] //= 2",
            "m[1:] ^= m[:-1]",
            "{x}[m[{i}] % 9] += {s}",
            "{x} = {y}[m % 9] * 0.5",
            "s = s + {x}[m[{i}] % 9]",
            "m = np.cumsum(m) % 5",
        ),
        ", m",
    ),
    "flags": _Group(
        [f"b = np.zeros({N}, bool)"],
        (
            "b[{i}] = {x}[{j}] > {y}[{i}]",
            "b |= {x} > 0.3",
            "b[{i}] = ~b[{j}]",
            "{x} = np.where(b, {r}, {y})",
            "{x}[{i}] = np.where(b[{j}], {s}, 0.25)",
            "{x}[{y} > 0.1] *= 0.5",
            "s = s + 0.1 * np.count_nonzero(b)",
        ),
        ", b",
    ),
    "precisions": _Group(
        [f"f = np.zeros({N}, np.float32)", f"z = np.zeros({N}, complex)"],
        (
            "f[{i}] = {s}",
            "f[1:] += f[:-1] * 0.5",
            "f += 0.1",
            "z[{i}] = {s} + 1j * {x}[{j}]",
            "z *= 0.5 + 0.5j",
            "z[{i}] = np.conj(z[{j}]) - z[{i}]",
            "{x}[{i}] = z[{j}].real + abs(z[{i}]) * 0.5",
            "{x} = {y} + f",
        ),
        ", f, z",
    ),
    "lists": _Group(
        ["H = [u.copy(), v.copy(), w.copy()]", "T = [s, 0.5 * s]"],
        (
            "H[({i}) % 3][{j}] = {s}",
            "H = H[1:] + [{r}]",
            "H[0], H[2] = H[2], H[0]",
            "H[1] += H[2] * 0.3",
            "T.append({s})",
            "s = 0.5 * s + T[-1] - T[-2]",
            "T[-1], T[0] = T[0], T[-1]",
            "H.insert(0, H.pop())",
            "u, v, w = v, w, u",
            "u, v, w = w, u, {r}",
        ),
        ", np.stack(H), np.stack(T)",
    ),
    "views": _Group(
        [],
        (
            "q = A[{i}]\nq[1:] -= 0.5 * q[:-1]\nq[{j}] = {s}",
            "q = A[1:-1, 2:]\nq[{n}] += {x}[2:]\nq.T[{n}][::2] *= 0.5",
            "A.reshape(-1)[9 * ({i}) + ({j})] = {s}",
            "A.ravel()[{n}::10] += 0.1",
            "{x}.reshape(3, 3)[:, {n} % 3] = {y}[:3]",
            "{x}[::-1][{i}] = {s}",
            "A[::-1, ::2][{i}, {n} - 1] += {s}",
            "q = {x}[2:]\nq[:] = q[::-1]",
            "A.T[{i}] = {r}",
            "A[{i}], A[{j}] = A[{j}].copy(), A[{i}].copy()",
            "A[{i}, :], A[:, {j}] = A[:, {j}].copy(), A[{i}, :].copy()",
        ),
    ),
    "slices": _Group(
        [],
        (
            "{x}[1:] += {x}[:-1]",
            "{x}[::2] = 0.5 * {y}[::2]",
            "{x}[1::2] -= {y}[:8:2]",
            "{x}[:] = {r}",
            "{x}[...] *= 0.5",
            "A[1:-1, 1:-1] = 0.25 * (A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:])",
            "A[:, {i}:] *= 0.9",
            "A[{i}:, {j}:] -= 0.1 * np.outer({x}[{i}:], {y}[{j}:])",
            "A[{i}, {j}:] = {x}[{j}:]",
            "A[:{n}, {i}] = {x}[-{n}:]",
            "{x}[{i}:{i} + 1] = {s}",
            "s = s + 0.1 * np.sum(A[{i}:, {j}])",
            "{x}[{n}:] = np.flip({y})[:-{n}]",
        ),
    ),
    "out": _Group(
        [],
        (
            "np.add({x}, {y}, out=w)",
            "np.sin({x}, out={y})",
            "np.multiply(A[{i}], 0.5, out=A[{j}])",
            "np.subtract({x}[1:], {y}[:-1], out=w[:-1])",
            "np.cumsum({x}, out={y}); {y} *= 0.1",
            "np.copyto(A[:, {i}], {x})",
            "np.fill_diagonal(A, {s})",
            "A[np.arange(9), P] = {r}",
            "np.add(A, A.T, out=A); A *= 0.4",
        ),
    ),
    "calls": _Group(
        [
            "halved = fg.jit(lambda x, c: np.sin(x) * c + 0.5 * x)",
            "bent = fg.checkpoint(lambda x: np.tanh(x * 1.1) - 0.2 * x ** 2)",
        ],
        (
            "{x} = halved({y}, {s}).copy()",
            "A[{i}] = halved(A[{j}], 0.3)",
            "s = halved(s, {k} * 0.1)",
            "{x} = bent({y}).copy()",
            "{x}[{i}] = bent({s})",
            "A[:, {i}] = bent(halved(A[:, {j}], {x}))",
            "{x} = fg.lax.fori_loop(0, {n}, lambda a, b: 0.5 * b + a * {y}, {x}).copy()",
            "{x} = fg.lax.cond({x}[{i}] > 0.1, lambda b: 0.7 * b, lambda b: b + {k}, {x}).copy()",
        ),
    ),
    "functions": _Group(
        [
            "def relaxed(x, i, c):",
            "    x[i] = c * x[i] + (1 - c) * x[i - 1]",
            "    return x[i]",
            "def swept(x, c):",
            f"    for a in range(1, {N}):",
            "        x[a] = x[a] - c * x[a - 1]",
            "    return x",
            "D = {'p': u.copy(), 'q': [v.copy()]}",
            "best = s",
        ],
        (
            "s = s + relaxed({x}, {i}, 0.3)",
            "swept(A[{i}], 0.2)",
            "{x} = swept({y}.copy(), 0.1)",
            "D['p'][{i}] += {s}",
            "D['q'][0] = {r}",
            "D['p'], D['q'][0] = D['q'][0], D['p']",
            "best = np.maximum(best, {s})",
            "s = min({i}, {j}) * 0.1 + s",
        ),
        ", D['p'], D['q'][0], best",
    ),
}
"""What programs are about, by the kind of their arrays."""


def program_of(text: str, name: str) -> Callable[..., Any]:
    """The function of a text, whose lines count as the user's."""
    constants = np.random.default_rng(1)
    names = {
        "np": fnp,
        "fg": fg,
        "C": constants.uniform(0.1, 0.9, 16),
        "P": constants.permutation(N).tolist(),
        "S": [int(constants.integers(N - n + 1)) for n in range(N + 1)],
        "K": [constants.integers(-N, N, n) for n in range(N + 1)],
        "E": [(int(i), int(j)) for i, j in constants.integers(0, N, (12, 2))],
    }
    exec(compile(text, name, "exec"), names)
    return names["program"]


def arguments(seed: int) -> Sequence[Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=N), rng.normal(size=N), rng.normal(size=(N, N)), rng.normal()


def bits(results: Sequence[Any]) -> list[tuple[Any, Any, bytes]]:
    arrays = map(np.asarray, results)
    return [(x.shape, x.dtype, np.where(np.isnan(x), np.nan, x).tobytes()) for x in arrays]


def traced(seed: int, writer: type[Writer] = Writer) -> tuple[str, Any, Any]:
    """A random program: its text, and what tracing makes of it without and with re-rolling."""
    text = writer(seed).write()
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


def compared(
    count: int, first: int, writer: type[Writer] = Writer, with_derivatives: int = 0
) -> Comparison:
    """Compare the results of programs, evaluated by NumPy, bit for bit.

    Args:
        count: How many programs.
        first: Seed of the first one.
        writer: What writes them.
        with_derivatives: Of every how many programs derivatives are compared; 0: of none.
    """
    rolled_ones, saved, wrong = 0, 0, []
    with np.errstate(all="ignore"), fg.disable_jit():
        for seed in range(first, first + count):
            text, plain, rolled = traced(seed, writer)
            args = arguments(seed)
            rolled_ones += rolled is not plain
            saved += len(plain.equations) - len(rolled.equations)
            if bits(evaluate(plain, args)) != bits(evaluate(rolled, args)):
                wrong.append(f"seed {seed}\n{text}")
            elif with_derivatives and seed % with_derivatives == 0 and rolled is not plain:
                pairs = zip(derivatives(plain, seed), derivatives(rolled, seed), strict=True)
                if not all(is_near(x, y) for x, y in pairs):
                    wrong.append(f"derivatives of seed {seed}\n{text}")
    return Comparison(rolled_ones, saved, wrong)


def derivatives(program: Any, seed: int) -> list[np.ndarray]:
    """Tangents of a sum of the results, and its gradient."""

    def loss(*values: Any) -> Any:
        results = zip(evaluate(program, values), program.out_avals, strict=True)
        floats = [x for x, aval in results if aval.dtype.kind in "fc"]
        return sum(np.sum(np.sin(x + k)).real for k, x in enumerate(floats))

    args = arguments(seed)
    _, tangent = fg.jvp(loss, args, arguments(seed + 1))
    return list(map(np.asarray, [tangent, *fg.grad(loss, (0, 1, 2, 3))(*args)]))


def is_near(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether derivatives agree but for rounding, where they are numbers."""
    both = np.isfinite(x) & np.isfinite(y)
    scale = np.max(np.abs(y), initial=1.0, where=both)
    return bool(np.allclose(x, y, 1e-6, 1e-6 * scale, equal_nan=True) or not both.all())


if __name__ == "__main__":
    found = compared(int(sys.argv[1]), int(sys.argv[2]), Wider, 10)
    print(*found.wrong[:5], sep="\n")
    print(f"{found.rolled} with loops, {found.saved} equations saved, {len(found.wrong)} wrong")
