"""Random programs of NumPy functions, as text that can be read and run.

A program is drawn operation by operation while NumPy evaluates it, so that shapes always fit and
magnitudes stay moderate. Comparisons and roundings are drawn only for values without rounding
errors: there, a last digit would decide about the whole result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

SIZES = (0, 1, 2, 3, 4, 7)
LARGEST = 600
"""Elements of the largest intermediate result."""

UNARY = [
    "np.sin({0})",
    "np.tanh({0})",
    "np.exp(-np.abs({0}))",
    "np.sqrt(np.abs({0}) + 0.5)",
    "{0} * {0}",
    "{0} * 0.75 - 0.25",
    "1.0 / (1.0 + {0} * {0})",
    "np.log1p({0} * {0})",
]
EXACT_UNARY = ["-{0}", "np.abs({0})", "+{0}", "np.positive({0})"]
STEPS = ["np.floor({0})", "np.sign({0})", "({0} > 0.25)", "({0} <= 0)", "({0} != 0)"]
BINARY = ["{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (1.5 + {1} * {1})", "np.arctan2({0}, {1})"]
EXACT_BINARY = ["np.maximum({0}, {1})", "np.minimum({0}, {1})"]
COMPARISONS = ["{0} < {1}", "{0} >= {1}", "{0} == {1}"]
FOLDS = ["sum", "mean", "prod", "var"]
EXACT_FOLDS = ["max", "min"]
NORMALISATIONS = [
    "{0} - np.mean({0}, axis={a}, keepdims=True)",
    "({0} - np.mean({0}, axis={a}, keepdims=True)) / np.sqrt(np.var({0}, axis={a}, keepdims=True)"
    " + 0.5)",
    "np.exp({0} - np.max({0}, axis={a}, keepdims=True))"
    " / np.sum(np.exp({0} - np.max({0}, axis={a}, keepdims=True)), axis={a}, keepdims=True)",
    "{0} - np.log(np.sum(np.exp({0} - 1.0), axis={a}, keepdims=True))",
    "{0} / (1.0 + np.sqrt(np.sum({0} * {0}, axis={a}, keepdims=True)))",
]


@dataclass
class RandomProgram:
    """A function of arrays as text, and arguments for it."""

    lines: list[str]
    args: list[np.ndarray]
    outputs: list[int]
    scale: float = 1.0
    function: Callable[..., Any] = field(init=False)

    def __post_init__(self) -> None:
        scope: dict[str, Any] = {"np": np}
        exec(self.source, scope)
        self.function = scope["f"]

    @property
    def source(self) -> str:
        names = ", ".join(f"v{i}" for i in range(len(self.args)))
        results = "".join(f"v{i}, " for i in self.outputs)
        return "\n".join([f"def f({names}):", *self.lines, f"    return ({results})"])

    def __repr__(self) -> str:
        types = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.args)
        return f"# {types}\n{self.source}"


class Writer:
    """Draws one operation after the other; ``values[i]`` is what ``v{i}`` holds."""

    def __init__(self, draw: Any, dtype: str, is_smooth: bool) -> None:
        self.draw = draw
        self.dtype = dtype
        self.is_smooth = is_smooth
        self.values: list[Any] = []
        self.is_exact: list[bool] = []
        self.lines: list[str] = []
        self.scale = 1.0

    def choose(self, items: Any) -> Any:
        return self.draw(st.sampled_from(list(items)))

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def permuted(self, n: int) -> tuple[int, ...]:
        return tuple(self.draw(st.permutations(range(n))))

    # Arguments.

    def arguments(self) -> list[np.ndarray]:
        rng = np.random.default_rng(self.integer(0, 2**16))
        shape = tuple(self.choose(SIZES) for _ in range(self.integer(1, 3)))
        others = [shape]
        for _ in range(self.integer(0, 2)):
            partner = tuple(n if self.integer(0, 2) else 1 for n in shape)
            others.append(partner[self.integer(0, len(partner)) :])
        args = []
        for k, own in enumerate(others):
            kinds = "fffib" if k and not self.is_smooth else "f"
            kind = self.choose(kinds)
            drawn = {
                "f": rng.normal(size=own).astype(self.dtype),
                "i": rng.integers(-4, 5, own),
                "b": rng.integers(0, 2, own).astype(bool),
            }
            args.append(np.asarray(drawn[kind]))
        self.values += args
        self.is_exact += [True] * len(args)
        return args

    # Operations.

    def add(self, text: str, is_exact: bool = False) -> bool:
        """Append ``v = text`` if NumPy can do it and the result is reasonable."""
        scope = {f"v{i}": v for i, v in enumerate(self.values)}
        try:
            with np.errstate(all="ignore"):
                value = eval(text, {"np": np}, scope)
        except (ValueError, TypeError, IndexError, RuntimeWarning):
            return False
        if np.size(value) > LARGEST or np.ndim(value) > 5:
            return False
        value = np.asarray(value)
        if value.dtype.kind == "f":
            top = float(np.max(np.abs(value), initial=0.0))
            if not np.isfinite(top):
                return False
            self.scale = max(self.scale, top)
            if top > 64.0:
                text, is_exact = f"({text}) * {2.0 ** -np.ceil(np.log2(top))}", False
                value = eval(text, {"np": np}, scope)
        elif value.dtype.kind == "i" and np.max(np.abs(value), initial=0) > 10**6:
            return False
        self.lines.append(f"    v{len(self.values)} = {text}")
        self.values.append(value)
        self.is_exact.append(is_exact)
        return True

    def pick(self, kinds: str = "fib", exact: bool = False, rank: int = 0) -> int | None:
        found = [
            i
            for i, v in enumerate(self.values)
            if np.asarray(v).dtype.kind in kinds
            and np.ndim(v) >= rank
            and (self.is_exact[i] or not exact)
        ]
        # Late values first when shrinking: programs stay connected.
        return self.choose(found[::-1]) if found else None

    def axes(self, i: int) -> Any:
        rank = np.ndim(self.values[i])
        if not rank:
            return None
        subsets = [s for k in range(rank + 1) for s in itertools.combinations(range(rank), k)]
        return self.choose([None, *subsets, *range(-rank, 0)])

    def step(self) -> None:
        kinds = [
            self.unary, self.binary, self.fold, self.normalisation, self.movement, self.cut,
            self.joined, self.product, self.running, self.shifted, self.shifted, self.lookup,
        ]  # fmt: skip
        if not self.is_smooth:
            kinds += [self.exact, self.comparison, self.selection, self.logic, self.integers]
        self.choose(kinds)()

    def unary(self) -> None:
        i = self.pick("f")
        if i is not None:
            self.add(self.choose(UNARY).format(f"v{i}"))

    def exact(self) -> None:
        i = self.pick("f", exact=True)
        if i is not None:
            self.add(self.choose(EXACT_UNARY + STEPS).format(f"v{i}"), is_exact=True)

    def binary(self) -> None:
        i, j = self.pick("fi"), self.pick("fib" if not self.is_smooth else "f")
        if i is None or j is None:
            return
        if self.is_exact[i] and self.is_exact[j] and not self.is_smooth and self.integer(0, 1):
            self.add(self.choose(EXACT_BINARY).format(f"v{i}", f"v{j}"), is_exact=True)
        else:
            self.add(self.choose(BINARY).format(f"v{i}", f"v{j}"))

    def comparison(self) -> None:
        i, j = self.pick("fib", exact=True), self.pick("fib", exact=True)
        if i is not None and j is not None:
            self.add(self.choose(COMPARISONS).format(f"v{i}", f"v{j}"), is_exact=True)

    def selection(self) -> None:
        c, i, j = self.pick("b"), self.pick("fi"), self.pick("fi")
        if c is not None and i is not None and j is not None:
            other = self.choose([f"v{j}", "0.0", "1"])
            self.add(
                f"np.where(v{c}, v{i}, {other})", is_exact=self.is_exact[i] and self.is_exact[j]
            )

    def logic(self) -> None:
        i, j = self.pick("b"), self.pick("b")
        if i is not None and j is not None:
            axes = self.axes(i)
            texts = [
                f"v{i} & v{j}", f"v{i} | ~v{j}", f"v{i} ^ v{j}", f"np.any(v{i}, axis={axes})",
                f"np.all(v{i}, axis={axes})", f"np.sum(v{i}, axis={axes})",
            ]  # fmt: skip
            self.add(self.choose(texts), is_exact=True)

    def integers(self) -> None:
        i = self.pick("i")
        if i is not None:
            last = -1 if np.ndim(self.values[i]) else None
            texts = [
                f"v{i} // 2", f"v{i} % 3", f"v{i} << 1", f"v{i} & 3", f"np.cumsum(v{i})",
                f"np.sum(v{i}, axis={self.axes(i)})", f"np.max(v{i}, axis={self.axes(i)})",
                f"v{i}.astype(np.int8)", f"v{i} * v{i}", f"np.argmax(v{i}, axis={last})",
            ]  # fmt: skip
            self.add(self.choose(texts), is_exact=True)

    def fold(self) -> None:
        i = self.pick("f")
        if i is None:
            return
        # Derivatives of extrema depend on the last digit where elements are equal.
        extremes = [] if self.is_smooth and not self.is_exact[i] else EXACT_FOLDS
        name = self.choose(FOLDS + extremes)
        keep = self.choose([True, False])
        is_exact = name in EXACT_FOLDS and self.is_exact[i]
        self.add(f"np.{name}(v{i}, axis={self.axes(i)}, keepdims={keep})", is_exact)

    def normalisation(self) -> None:
        i = self.pick("f", rank=1)
        if i is not None and np.size(self.values[i]):
            texts = [t for t in NORMALISATIONS if not (self.is_smooth and "np.max" in t)]
            self.add(self.choose(texts).format(f"v{i}", a=self.axes(i)))

    def running(self) -> None:
        i = self.pick("f", rank=1)
        if i is not None:
            axis = self.integer(0, np.ndim(self.values[i]) - 1)
            name = self.choose(["cumsum", "cumsum", "cumprod"])
            self.add(f"np.{name}(v{i}, axis={axis})")

    def movement(self) -> None:
        i = self.pick(rank=1)
        if i is None:
            return
        value = self.values[i]
        order = self.permuted(value.ndim)
        axis = self.integer(0, value.ndim)
        factors = [n for n in range(1, value.size + 1) if value.size % n == 0] or [1]
        n = self.choose(factors)
        texts = [
            f"np.transpose(v{i}, {order})",
            f"v{i}.T",
            f"np.reshape(v{i}, (-1,))" if value.size else f"v{i}",
            f"np.reshape(v{i}, ({n}, {value.size // n}))",
            f"np.expand_dims(v{i}, {axis})",
            f"np.squeeze(v{i})",
            f"np.broadcast_to(v{i}, ({self.integer(0, 3)}, *v{i}.shape))",
            f"np.flip(v{i}, {min(axis, value.ndim - 1)})",
            f"np.roll(v{i}, 1, {min(axis, value.ndim - 1)})",
            f"np.swapaxes(v{i}, 0, -1)",
        ]
        self.add(self.choose(texts), self.is_exact[i])

    def cut(self) -> None:
        i = self.pick(rank=1)
        if i is None:
            return
        cuts = [
            "::-1",
            "1:",
            ":-1",
            "::2",
            "-1::-2",
            "1:3",
            ":",
            "...",
            "None",
            "0",
            "-1",
            "3:0:-1",
        ]
        chosen = [self.choose(cuts) for _ in range(self.integer(1, np.ndim(self.values[i])))]
        if chosen.count("...") <= 1:
            self.add(f"v{i}[{', '.join(chosen)}]", self.is_exact[i])

    def lookup(self) -> None:
        """Elements at places that are known, or computed from integers."""
        i = self.pick(rank=1)
        if i is None or not np.size(self.values[i]):
            return
        first, last = np.shape(self.values[i])[0], np.shape(self.values[i])[-1]
        known = f"np.arange({self.integer(1, 5)}) * {self.integer(0, 3)}"
        texts = [f"v{i}[{known} % {first}]", f"v{i}[..., {known} % {last}]"]
        texts += [f"v{i}[({known} + 1)[::-1, None] % {first}]", f"np.diagonal(v{i})"]
        j = self.pick("i", exact=True)
        if j is not None:
            texts = [f"v{i}[v{j} % {first}]", f"v{i}[..., v{j} % {last}]", *texts]
        if self.is_exact[i]:
            order = f"np.argsort(v{i}, axis=-1, kind='stable')"
            texts.append(f"np.take_along_axis(v{i}, {order}, axis=-1)")
        self.add(self.choose(texts), self.is_exact[i])

    def joined(self) -> None:
        i, j = self.pick("f", rank=1), self.pick("f", rank=1)
        if i is None or j is None:
            return
        axis = self.integer(0, np.ndim(self.values[i]) - 1)
        texts = [
            f"np.concatenate([v{i}, v{j}], axis={axis})",
            f"np.concatenate([v{i}, v{i}[::-1], v{j}], axis={axis})",
            f"np.stack([v{i}, v{j}], axis={axis})",
            f"np.stack([v{i}, np.sin(v{i})], axis=-1)",
            f"np.pad(v{i}, {self.integer(0, 2)})",
            f"np.tile(v{i}, 2)",
        ]
        self.add(self.choose(texts))

    def shifted(self) -> None:
        """Neighbours along an axis, and what is put around or into them."""
        i = self.pick("f", rank=1)
        if i is None:
            return
        colons = ":, " * self.integer(0, np.ndim(self.values[i]) - 1)
        x = f"v{i}[{colons}"
        texts = [
            f"{x}1:] - {x}:-1]",
            f"{x}1:-1] * 2 - {x}2:] - {x}:-2]",
            f"v{i} - np.pad(v{i}, 1)[{', '.join(['1:-1'] * np.ndim(self.values[i]))}] * 0.5",
            f"np.roll(v{i}, 1, {colons.count(':')}) + np.roll(v{i}, -1, 0) - v{i}",
            f"np.concatenate([{x}:1], {x}1:-1] * 0.5, {x}-1:]], axis={colons.count(':')}) + v{i}",
            f"np.concatenate([{x}-1:], {x}:-1]], axis={colons.count(':')}) * v{i}",
        ]
        self.add(self.choose(texts))

    def product(self) -> None:
        i, j = self.pick("f", rank=1), self.pick("f", rank=1)
        if i is None or j is None:
            return
        texts = [
            f"v{i} @ v{j}",
            f"v{i} @ np.swapaxes(v{j}, -1, -2)",
            f"np.swapaxes(v{i}, -1, -2) @ v{j}",
            f"np.swapaxes(v{i}, -1, -2) @ v{i}",
            f"v{i} @ np.swapaxes(v{i}, -1, -2)",
            f"v{i}[..., ::-1] @ np.swapaxes(v{i}, -1, -2)",
            f"np.dot(v{i}, v{j}.T)",
            f"np.tensordot(v{i}, v{j}, axes=([0], [0]))",
            f"np.einsum('ij,kj->ki', v{i}, v{j})",
            f"np.einsum('ij,ij->i', v{i}, v{j})",
            f"np.einsum('bij,bkj->kbi', v{i}, v{j})",
            f"np.outer(v{i}, v{j})",
            f"np.broadcast_to(v{i}[..., :1], v{i}.shape) @ np.swapaxes(v{i}, -1, -2)",
        ]
        self.add(self.choose(texts))


@st.composite
def programs(draw: Any, dtype: str = "f8", is_smooth: bool = False) -> RandomProgram:
    """Programs of 2 to 12 operations; ``is_smooth`` asks for those that are differentiable."""
    return write(Writer(draw, dtype, is_smooth))


def write(writer: Writer) -> RandomProgram:
    args = writer.arguments()
    for _ in range(writer.integer(2, 12)):
        writer.step()
    kinds = "f" if writer.is_smooth else "fib"
    candidates = [i for i, v in enumerate(writer.values) if np.asarray(v).dtype.kind in kinds]
    outputs = [writer.choose(candidates[::-1]) for _ in range(writer.integer(1, 4))]
    return RandomProgram(writer.lines, args, outputs, writer.scale)
