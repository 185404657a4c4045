"""Draws programs, operation by operation, while NumPy evaluates them.

So shapes always fit, and magnitudes stay moderate. Comparisons, roundings and extrema are drawn
only for values without rounding errors where results are compared with those of other arithmetic:
there, a last digit would decide about the whole result.
"""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from hypothesis import strategies as st

from funcgrad.extend.laws import observed
from tests.fuzz.language import LAWS, LAYOUTS, PLAIN, Argument, Block, Program, Step
from tests.fuzz.shrinking import without_unused

SIZES = (0, 1, 1, 2, 3, 4, 7)
LARGEST = 600
"""Elements of the largest intermediate result."""
SPECIAL_VALUES = (0.0, -0.0, 0.5, -2.5, 2.0**24 + 2, np.inf, -np.inf, np.nan)
"""What stands in an argument now and then; the ends of the range are for `special_values`."""
SPECIAL = 0.2
"""The share of such elements, where there are any."""

UNARY = [
    "np.sin({0})",
    "np.tanh({0})",
    "np.exp(-np.abs({0}))",
    "np.sqrt(np.abs({0}) + 0.5)",
    "{0} * {0}",
    "{0} * 0.75 - 0.25",
    "1.0 / (1.0 + {0} * {0})",
    "np.log1p({0} * {0})",
    "np.arctan({0}) ** 3",
    "np.expm1({0} * 0.25)",
    "np.logaddexp({0}, 0.5)",
    "np.power(np.abs({0}) + 0.5, 1.25)",
]
COMPLEX_UNARY = [
    "{0} * {0}",
    "{0} * (0.5 - 0.25j)",
    "np.conj({0})",
    "np.real({0})",
    "np.imag({0}) * 0.5",
    "np.exp({0} * 0.5)",
    "np.sin({0}) * 0.5",
    "np.sqrt({0} * np.conj({0}) + 1.5)",
    "{0} + {0}.real * 1j",
    "np.cosh({0} * 0.5)",
]
FAR = [0, -1, 1, *(s * 2**k + d for s in (1, -1) for k in (7, 8, 31, 32, 62, 63) for d in (0, 3))]
"""Indices at which a wrap-around of any width would show."""

EXACT_UNARY = ["-{0}", "np.abs({0})", "+{0}", "np.positive({0})"]
STEPS = [
    "np.floor({0})",
    "np.sign({0})",
    "({0} > 0.25)",
    "({0} <= 0)",
    "({0} != 0)",
    "np.rint({0})",
]
BINARY = [
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (1.5 + {1} * {1})",
    "np.arctan2({0}, 2.5 + {1} * {1})",
    "np.hypot({0}, {1} * {1} + 0.5)",
]  # fmt: skip
COMPLEX_BINARY = ["{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (2.5 + np.abs({1}))"]
EXACT_BINARY = ["np.maximum({0}, {1})", "np.minimum({0}, {1})", "np.fmax({0}, {1})"]
COMPARISONS = ["{0} < {1}", "{0} >= {1}", "{0} == {1}", "{0} != {1}"]
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
CUTS = ("::-1", "1:", ":-1", "::2", "-1::-2", "1:3", ":", "...", "None", "0", "-1", "3:0:-1", "5:2")
INTEGERS = ("i8", "i4", "u1", "i8", "u4", "i2")


class Choices(Protocol):
    """Where the decisions come from."""

    def choose(self, items: Sequence[Any]) -> Any: ...
    def integer(self, low: int, high: int) -> int: ...
    def permuted(self, n: int) -> tuple[int, ...]: ...


class Seeded:
    """Decisions of a generator of random numbers: the same ones for the same seed."""

    def __init__(self, seed: int | str) -> None:
        self.rng = random.Random(seed)

    def choose(self, items: Sequence[Any]) -> Any:
        return items[self.rng.randrange(len(items))]

    def integer(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def permuted(self, n: int) -> tuple[int, ...]:
        return tuple(self.rng.sample(range(n), n))


class Drawn:
    """Decisions of Hypothesis, which can shrink them."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def choose(self, items: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(list(items)))

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def permuted(self, n: int) -> tuple[int, ...]:
        return tuple(self.draw(st.permutations(range(n))))


@dataclass(frozen=True)
class Mix:
    """What programs are made of.

    Attributes:
        dtype: Of most floating values; others may stand beside it.
        is_smooth: Only what is differentiable everywhere.
        layouts: How arguments may lie in memory.
        laws: How many rows of the law table a program has at most.
        nesting: How deep loops and branches are nested at most.
        most: Operations at most.
    """

    dtype: str = "f8"
    is_smooth: bool = False
    layouts: tuple[str, ...] = ("plain",)
    laws: int = 0
    nesting: int = 0
    most: int = 12

    @property
    def is_complex(self) -> bool:
        return np.dtype(self.dtype).kind == "c"


ANYWHERE = ("plain", "plain", "plain", *LAYOUTS)
LAW_NAMES = sorted(LAWS)

JUMPING = ("balance",)
"""Rows with derivatives between jumps: scales are powers of two, chosen by comparisons, and none of
rows that zeros keep apart from the others."""


class Writer:
    """Draws one operation after the other; ``values[i]`` is what ``v{i}`` holds."""

    def __init__(self, choices: Choices, mix: Mix) -> None:
        self.choices = choices
        self.choose, self.integer = choices.choose, choices.integer
        self.mix = mix
        self.args: dict[int, Argument] = {}
        self.values: dict[int, Any] = {}
        self.exact: set[int] = set()
        self.steps: list[Step] = []
        self.scale = 1.0
        self.count = 0
        self.depth = 0
        self.laws = 0
        self.floating = "c" if mix.is_complex else "f"

    def name(self) -> int:
        self.count += 1
        return self.count - 1

    # Arguments.

    def add_argument(self, given: Argument, is_exact: bool = True) -> int:
        i = self.name()
        self.args[i] = given
        self.values[i] = given.laid_out()
        if is_exact:
            self.exact.add(i)
        return i

    def arguments(self) -> None:
        rng = np.random.default_rng(self.integer(0, 2**16))
        shape = tuple(self.choose(SIZES) for _ in range(self.integer(1, 3)))
        others = [shape]
        for _ in range(self.integer(0, 2)):
            partner = tuple(n if self.integer(0, 2) else 1 for n in shape)
            others.append(partner[self.integer(0, len(partner)) :])
        for k, own in enumerate(others):
            kind = self.choose("fffib" if k and not self.mix.is_smooth else "f")
            value, other = (self._drawn(rng, kind, own) for _ in range(2))
            if kind == "i":
                dtype = self.choose(INTEGERS)
                value, other = value.astype(dtype), other.astype(dtype)
            elif kind == "f" and self.mix.layouts != ("plain",) and not self.integer(0, 9):
                # Another precision beside the one of the program.
                dtype = {"f8": "f4", "f4": "f8", "c16": "f8", "c8": "f4"}[self.mix.dtype]
                value, other = value.real.astype(dtype), other.real.astype(dtype)
            self.add_argument(Argument(value, other, self.choose(self.mix.layouts)))

    def _drawn(self, rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
        if kind == "i":
            return np.asarray(rng.integers(-4, 5, shape))
        if kind == "b":
            return np.asarray(rng.integers(0, 2, shape).astype(bool))
        x = np.asarray(rng.normal(size=shape))
        if not self.mix.is_smooth and self.mix.layouts != ("plain",) and not self.integer(0, 5):
            x = np.where(rng.random(shape) < SPECIAL, rng.choice(SPECIAL_VALUES, shape), x)
        if self.mix.is_complex:
            x = x + 1j * rng.normal(size=shape)
        return np.asarray(x).astype(self.mix.dtype)

    # Operations.

    def add(
        self,
        text: str,
        *operands: int,
        blocks: tuple[Block, ...] = (),
        is_exact: bool = False,
        is_smooth: bool = True,
        has_choices: bool = False,
        law: str = "",
    ) -> int | None:
        """Append a step if NumPy can do it and the result is reasonable; its number."""
        if "{out}" not in text:
            text = "{out} = " + text
        i = self.name()
        step = Step(i, text, operands, blocks, is_exact, is_smooth, has_choices, law)
        value = self._evaluated(step)
        if value is None or np.size(value) > LARGEST or np.ndim(value) > 5:
            return None
        value = np.asarray(value)
        if value.dtype.kind in "fc":
            top = float(np.max(np.abs(value), initial=0.0))
            if not math.isfinite(top) and not law:
                return None
            if math.isfinite(top):
                self.scale = max(self.scale, top)
            if math.isfinite(top) and top > 64.0:
                again = text + f"\n{{out}} = {{out}} * {2.0 ** -math.ceil(math.log2(top))}"
                step = Step(i, again, operands, blocks, False, is_smooth, has_choices, law)
                value = np.asarray(self._evaluated(step))
        elif value.dtype.kind == "i" and np.max(np.abs(value), initial=0) > 10**6:
            return None
        self.steps.append(step)
        self.values[i] = value
        if step.is_exact:
            self.exact.add(i)
        return i

    def _evaluated(self, step: Step) -> Any:
        scope: dict[str, Any] = {f"v{k}": v for k, v in self.values.items()}
        scope |= {"np": np, "m": PLAIN}
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("error")  # such as of a lost imaginary part
                warnings.simplefilter("ignore", RuntimeWarning)
                exec("\n".join(step.lines()), scope)
        except (ValueError, TypeError, IndexError, Warning):
            return None
        return scope[f"v{step.out}"]

    def pick(self, kinds: str = "fibuc", exact: bool = False, rank: int = 0) -> int | None:
        found = [
            i
            for i, v in self.values.items()
            if v.dtype.kind in kinds and v.ndim >= rank and (i in self.exact or not exact)
        ]
        # Late values first when shrinking: programs stay connected.
        return self.choose(found[::-1]) if found else None

    def pick_smooth(self, rank: int = 0) -> int | None:
        return self.pick("fc" if self.mix.is_complex else "f", rank=rank)

    def axes(self, i: int) -> Any:
        rank = self.values[i].ndim
        if not rank:
            return None
        subsets = [s for k in range(rank + 1) for s in itertools.combinations(range(rank), k)]
        return self.choose([None, *subsets, *range(-rank, 0)])

    def step(self) -> None:
        kinds = [
            self.unary, self.binary, self.fold, self.normalisation, self.movement, self.cut,
            self.joined, self.product, self.running, self.shifted, self.shifted, self.lookup,
            self.far_rows,
            self.assignment,
        ]  # fmt: skip
        if not self.mix.is_smooth:
            kinds += [
                self.exactly, self.comparison, self.selection, self.logic, self.integers,
                self.ordered,
            ]  # fmt: skip
        if self.mix.laws > self.laws:
            kinds += [self.law] * 4
        if self.mix.nesting > self.depth:
            kinds += [self.nested] * (5 if not self.depth else 2)
        self.choose(kinds)()

    def unary(self) -> None:
        i = self.pick_smooth()
        if i is not None:
            is_complex = self.values[i].dtype.kind == "c"
            self.add(self.choose(COMPLEX_UNARY if is_complex else UNARY), i)

    def exactly(self) -> None:
        i = self.pick("f", exact=True)
        if i is not None:
            text = self.choose(EXACT_UNARY + STEPS)
            self.add(text, i, is_exact=True, is_smooth=text in EXACT_UNARY[:1] + EXACT_UNARY[2:])

    def binary(self) -> None:
        i = self.pick("fiuc") if not self.mix.is_smooth else self.pick("fc")
        j = self.pick("fibuc" if not self.mix.is_smooth else "fc")
        if i is None or j is None:
            return
        kinds = self.values[i].dtype.kind + self.values[j].dtype.kind
        if "c" in kinds:
            self.add(self.choose(COMPLEX_BINARY), i, j)
        elif {i, j} <= self.exact and not self.mix.is_smooth and self.integer(0, 1):
            self.add(self.choose(EXACT_BINARY), i, j, is_exact=True, is_smooth=False)
        else:
            self.add(self.choose(BINARY), i, j)

    def comparison(self) -> None:
        i, j = self.pick("fibu", exact=True), self.pick("fibu", exact=True)
        if i is not None and j is not None:
            self.add(self.choose(COMPARISONS), i, j, is_exact=True, is_smooth=False)

    def selection(self) -> None:
        c, i, j = self.pick("b"), self.pick("fiuc"), self.pick("fiuc")
        if c is not None and i is not None and j is not None:
            texts = ["np.where({0}, {1}, {2})", "np.where({0}, {1}, 0.0)", "np.where({0}, {1}, 1)"]
            self.add(self.choose(texts), c, i, j, is_exact={i, j} <= self.exact)

    def logic(self) -> None:
        i, j = self.pick("b"), self.pick("b")
        if i is not None and j is not None:
            axes = self.axes(i)
            texts = [
                "{0} & {1}", "{0} | ~{1}", "{0} ^ {1}", f"np.any({{0}}, axis={axes})",
                f"np.all({{0}}, axis={axes})", f"np.sum({{0}}, axis={axes})",
                f"np.count_nonzero({{0}}, axis={axes})",
            ]  # fmt: skip
            self.add(self.choose(texts), i, j, is_exact=True)

    def integers(self) -> None:
        i = self.pick("iu")
        if i is not None:
            last = -1 if self.values[i].ndim else None
            texts = [
                "{0} // 2", "{0} % 3", "{0} << 1", "{0} & 3", "np.cumsum({0})",
                f"np.sum({{0}}, axis={self.axes(i)})", f"np.max({{0}}, axis={self.axes(i)})",
                "{0}.astype(np.int8)", "{0} * {0}", f"np.argmax({{0}}, axis={last})", "~{0}",
                "{0}.astype(np.uint16)", f"np.prod({{0}} & 1, axis={self.axes(i)})", "{0} >> 1",
                "np.gcd({0}, 6)", "{0}.astype(bool)", "divmod({0}, 3)[1]",
            ]  # fmt: skip
            self.add(self.choose(texts), i, is_exact=True)

    def ordered(self) -> None:
        i = self.pick("fiu", exact=True, rank=1)
        if i is not None and self.values[i].size:
            a = self.integer(0, self.values[i].ndim - 1)
            texts = [
                f"np.sort({{0}}, axis={a})",
                f"np.argsort({{0}}, axis={a}, kind='stable')",
                f"np.argmin({{0}}, axis={a})",
                f"np.median({{0}}, axis={a})",
                f"np.maximum.accumulate({{0}}, axis={a})",
                "np.searchsorted(np.sort({0}.ravel()), {0})",
                f"np.diff({{0}}, axis={a})",
                f"np.ptp({{0}}, axis={a})",
            ]
            text = self.choose(texts)
            exact = "median" not in text and "diff" not in text and "ptp" not in text
            self.add(text, i, is_exact=exact, is_smooth=False)

    def fold(self) -> None:
        i = self.pick_smooth()
        if i is None:
            return
        is_complex = self.values[i].dtype.kind == "c"
        # Derivatives of extrema depend on the last digit where elements are equal.
        extremes = (
            EXACT_FOLDS
            if not is_complex and not (self.mix.is_smooth and i not in self.exact)
            else []
        )
        name = self.choose((["sum", "mean", "prod"] if is_complex else FOLDS) + extremes)
        keep = self.choose([True, False])
        self.add(
            f"np.{name}({{0}}, axis={self.axes(i)}, keepdims={keep})",
            i,
            is_exact=name in EXACT_FOLDS and i in self.exact,
            is_smooth=name not in EXACT_FOLDS,
            has_choices=name in EXACT_FOLDS and i not in self.exact,
        )

    def normalisation(self) -> None:
        i = self.pick("f", rank=1)
        if i is not None and self.values[i].size:
            texts = [t for t in NORMALISATIONS if not (self.mix.is_smooth and "np.max" in t)]
            text = self.choose(texts).replace("{a}", str(self.axes(i)))
            self.add(text, i, has_choices="np.max" in text, is_smooth="np.max" not in text)

    def running(self) -> None:
        i = self.pick_smooth(rank=1)
        if i is not None:
            axis = self.integer(0, self.values[i].ndim - 1)
            name = self.choose(["cumsum", "cumsum", "cumprod"])
            self.add(f"np.{name}({{0}}, axis={axis})", i)

    def movement(self) -> None:
        i = self.pick(rank=1)
        if i is None:
            return
        value = self.values[i]
        order = self.choices.permuted(value.ndim)
        axis = self.integer(0, value.ndim)
        factors = [n for n in range(1, value.size + 1) if value.size % n == 0] or [1]
        n = self.choose(factors)
        texts = [
            f"np.transpose({{0}}, {order})",
            "{0}.T",
            "np.reshape({0}, (-1,))" if value.size else "{0}",
            f"np.reshape({{0}}, ({n}, {value.size // n}))",
            f"np.expand_dims({{0}}, {axis})",
            "np.squeeze({0})",
            f"np.broadcast_to({{0}}, ({self.integer(0, 3)}, *{{0}}.shape))",
            f"np.flip({{0}}, {min(axis, value.ndim - 1)})",
            f"np.roll({{0}}, 1, {min(axis, value.ndim - 1)})",
            "np.swapaxes({0}, 0, -1)",
            "np.ravel({0}, order='F')",
            f"np.repeat({{0}}, 2, axis={min(axis, value.ndim - 1)})",
            f"np.moveaxis({{0}}, 0, {min(axis, value.ndim - 1)})",
        ]
        self.add(self.choose(texts), i, is_exact=i in self.exact)

    def index(self, shape: tuple[int, ...]) -> str:
        """An index of constants, of any kind."""
        parts, lists = [], 0
        length = self.integer(1, 3)
        for n in shape[: self.integer(1, max(1, len(shape)))]:
            kind = self.integer(0, 9)
            if kind < 6:
                parts.append(self.choose(CUTS))
            elif kind < 7 and n:
                parts.append(str(self.integer(-n, n - 1)))
            elif kind < 8 and n and lists < 2:
                lists += 1
                parts.append(str([self.integer(-n, n - 1) for _ in range(length)]))
            elif kind < 9 and n and not lists:
                lists += 2
                parts.append(f"np.array({[bool(self.integer(0, 1)) for _ in range(n)]})")
            elif n and lists < 2:
                lists += 1
                rows = [[self.integer(-n, n - 1)] for _ in range(2)]
                parts.append(f"np.array({rows})")
            else:
                parts.append(":")
        while parts.count("...") > 1:
            parts.remove("...")
        return ", ".join(parts)

    def cut(self) -> None:
        i = self.pick(rank=1)
        if i is not None:
            self.add(f"{{0}}[{self.index(self.values[i].shape)}]", i, is_exact=i in self.exact)

    def assignment(self) -> None:
        """A copy of an array, of which a part is changed, directly or through a view."""
        i, j = self.pick(rank=1), self.pick()
        if i is None or j is None:
            return
        if self.values[j].dtype.kind == "c" and self.values[i].dtype.kind != "c":
            return  # refused, also where there is nothing to be lost
        view = self.choose(
            ["{out}", "{out}", "{out}", "{out}.T", "{out}[::-1]", "{out}[..., None]"]
        )
        how = self.choose(["=", "+=", "*=", "="])
        shape = self.values[i].T.shape if view == "{out}.T" else self.values[i].shape
        what = self.choose(["{1}", "{1}", "1", "{1} * 2"])
        index = self.index(shape)
        if _is_compared_by_nobody(self.values[i], view, index, self.values[j]):
            return
        lines = ["{out} = m.array({0})", f"w = {view}", f"w[{index}] {how} {what}"]
        if self.integer(0, 4) == 0:
            lines.append("w[...] += {out}[...]" if view == "{out}" else f"w {how} 2")
        is_exact = {i, j} <= self.exact and how == "=" and len(lines) == 3
        self.add("\n".join(lines), i, j, is_exact=is_exact)

    def lookup(self) -> None:
        """Elements at places that are known, or computed from integers."""
        i = self.pick(rank=1)
        if i is None or not self.values[i].size:
            return
        first, last = self.values[i].shape[0], self.values[i].shape[-1]
        known = f"np.arange({self.integer(1, 5)}) * {self.integer(0, 3)}"
        texts = [f"{{0}}[{known} % {first}]", f"{{0}}[..., {known} % {last}]"]
        texts += [f"{{0}}[({known} + 1)[::-1, None] % {first}]", "np.diagonal({0})"]
        texts += [f"np.take({{0}}, {known} % {last}, axis=-1)"]
        operands = [i]
        j = self.pick("iu", exact=True)
        if j is not None and not self.mix.is_smooth:
            operands.append(j)
            texts = [
                f"m.asarray({{0}})[{{1}} % {first}]",
                f"m.asarray({{0}})[..., {{1}} % {last}]",
                f"m.asarray({{0}})[{{1}} % {first}, ..., 0]",
                f"m.asarray({{0}})[::-1][{{1}} % {first}]",
                f"np.take(m.asarray({{0}}), {{1}} % {last}, axis=-1)",
                *texts,
            ]
        if i in self.exact and self.values[i].dtype.kind != "c":
            order = "np.argsort({0}, axis=-1, kind='stable')"
            texts.append(f"np.take_along_axis({{0}}, {order}, axis=-1)")
        text = self.choose(texts)
        self.add(text, *operands, is_exact=i in self.exact, is_smooth="argsort" not in text)

    def far_rows(self) -> None:
        """Rows at places inside and far beyond the array, by indices of any dtype."""
        i = self.pick("fc", rank=1)
        if i is None or not self.values[i].size:
            return
        n = len(self.values[i])
        dtype = self.choose(["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
        info = np.iinfo(dtype)
        places = [p for p in (*FAR, n - 1, n, -n, -n - 1) if info.min <= p <= info.max]
        chosen = [self.choose([*places, info.min, info.max]) for _ in range(self.integer(1, 3))]
        index = f"np.array({chosen}, np.{dtype})"
        if self.integer(0, 3):
            index = f"m.hidden({{0}}, {index})"
        if self.integer(0, 1):
            mode = self.choose(["clip", "fill", "wrap"])
            text = f"m.read({{0}}, {index}, {mode!r})"
        else:
            mode, how = self.choose(["clip", "drop", "wrap"]), self.choose(["set", "add"])
            text = f"m.write({{0}}, {index}, {{0}}[:1] * 2, {mode!r}, {how!r})"
        self.add(text, i, is_exact=i in self.exact and "add" not in text)

    def joined(self) -> None:
        i, j = self.pick_smooth(rank=1), self.pick_smooth(rank=1)
        if i is None or j is None:
            return
        axis = self.integer(0, self.values[i].ndim - 1)
        texts = [
            f"np.concatenate([{{0}}, {{1}}], axis={axis})",
            f"np.concatenate([{{0}}, {{0}}[::-1], {{1}}], axis={axis})",
            f"np.stack([{{0}}, {{1}}], axis={axis})",
            "np.stack([{0}, {0} * 2], axis=-1)",
            f"np.pad({{0}}, {self.integer(0, 2)})",
            "np.tile({0}, 2)",
            "np.pad({0}, 1, mode='edge')",
            f"np.split({{0}}, [1, 2], axis={axis})[{self.integer(0, 2)}]",
        ]
        self.add(self.choose(texts), i, j)

    def shifted(self) -> None:
        """Neighbours along an axis, and what is put around or into them."""
        i = self.pick_smooth(rank=1)
        if i is None:
            return
        rank = self.values[i].ndim
        colons = ":, " * self.integer(0, rank - 1)
        x = f"{{0}}[{colons}"
        texts = [
            f"{x}1:] - {x}:-1]",
            f"{x}1:-1] * 2 - {x}2:] - {x}:-2]",
            f"{{0}} - np.pad({{0}}, 1)[{', '.join(['1:-1'] * rank)}] * 0.5",
            f"np.roll({{0}}, 1, {colons.count(':')}) + np.roll({{0}}, -1, 0) - {{0}}",
            f"np.concatenate([{x}:1], {x}1:-1] * 0.5, {x}-1:]], axis={colons.count(':')}) + {{0}}",
            f"np.concatenate([{x}-1:], {x}:-1]], axis={colons.count(':')}) * {{0}}",
        ]
        self.add(self.choose(texts), i)

    def product(self) -> None:
        i, j = self.pick_smooth(rank=1), self.pick_smooth(rank=1)
        if i is None or j is None:
            return
        texts = [
            "{0} @ {1}",
            "{0} @ np.swapaxes({1}, -1, -2)",
            "np.swapaxes({0}, -1, -2) @ {1}",
            "np.swapaxes({0}, -1, -2) @ {0}",
            "{0} @ np.swapaxes({0}, -1, -2)",
            "{0}[..., ::-1] @ np.swapaxes({0}, -1, -2)",
            "np.dot({0}, {1}.T)",
            "np.tensordot({0}, {1}, axes=([0], [0]))",
            "np.einsum('ij,kj->ki', {0}, {1})",
            "np.einsum('ij,ij->i', {0}, {1})",
            "np.einsum('bij,bkj->kbi', {0}, {1})",
            "np.outer({0}, {1})",
            "np.vdot({0}, {0})",
            "np.broadcast_to({0}[..., :1], {0}.shape) @ np.swapaxes({0}, -1, -2)",
        ]
        self.add(self.choose(texts), i, j)

    # Rows of the law table.

    def law(self) -> None:
        """A primitive on arguments of its own, which what has been computed may move a little."""
        name = self.choose(LAW_NAMES)
        case = LAWS[name]
        wanted = np.dtype(self.mix.dtype).char
        if wanted not in case.dtypes or (self.mix.is_smooth and case.order < 1):
            return
        seed = self.integer(0, 99)
        rows = [np.asarray(x) for x in case.draw(wanted, seed)]
        others = [np.asarray(x) for x in case.draw(wanted, seed + 1)]
        if any(x.size > LARGEST for x in rows) or self.depth:
            return
        operands = []
        for k, (x, y) in enumerate(zip(rows, others, strict=True)):
            # What reads single places only may not see one value everywhere.
            layouts = [n for n in self.mix.layouts if not n.startswith("one")]
            i = self.add_argument(Argument(x, y, self.choose(layouts)), is_exact=False)
            operands.append(i)
            moved = self.pick("f") if case.order >= 1 and not self.integer(0, 2) else None
            is_active = case.differentiable is None or k in case.differentiable
            if moved is not None and is_active and x.dtype.kind in "fc" and self.values[moved].size:
                text = "{0} + 0.001 * np.tanh(np.mean({1})).astype({0}.dtype) * {0}"
                found = self.add(text, i, moved)
                operands[-1] = i if found is None else found
        with np.errstate(all="ignore"):
            n_results = len(observed(case, *rows))
        which = self.integer(0, n_results - 1)
        args = "".join(f", {{{k}}}" for k in range(len(operands)))
        self.laws += 1
        is_smooth = case.order >= 1 and name not in JUMPING
        self.add(f"m.law({name!r}{args})[{which}]", *operands, is_smooth=is_smooth, law=name)

    # Functions inside.

    def block(self, params: Sequence[Any], finish: Any, exact: Sequence[bool]) -> Block | None:
        """A function whose parameters have such values.

        Args:
            params: Example values.
            finish: From the writer, after the steps: the text of the results, and what it reads.
            exact: Which parameters have no rounding errors.
        """
        before = dict(self.values), set(self.exact), self.steps
        self.steps = []
        self.depth += 1
        numbers = tuple(self.name() for _ in params)
        self.values.update(zip(numbers, map(np.asarray, params), strict=True))
        self.exact |= {i for i, e in zip(numbers, exact, strict=True) if e}
        for _ in range(self.integer(0, 3)):
            self.step()
        found = finish(numbers)
        made = None if found is None else Block(numbers, tuple(self.steps), *found)
        self.values, self.exact, self.steps = before
        self.depth -= 1
        return made

    def like(self, wanted: Any, start: int) -> tuple[str, tuple[int, ...]] | None:
        """The text of a value of the type of another one, made of what there is."""
        fitting = [
            i
            for i, v in self.values.items()
            if v.shape == wanted.shape and v.dtype == wanted.dtype and i != start
        ]
        if wanted.dtype.kind not in "fc":
            return "{0}", (start,)
        if fitting and self.integer(0, 3):
            return "{0} * 0.5 + {1} * 0.25", (start, self.choose(fitting[::-1]))
        others = [i for i, v in self.values.items() if v.dtype.kind == "f" and v.size]
        if not others:
            return "{0} * 0.5", (start,)
        text = "{0} * 0.5 + (np.tanh(np.sum({1}) * 0.25) * 0.5).astype({0}.dtype)"
        return text, (start, self.choose(others[::-1]))

    def last(self, *given: int) -> tuple[str, tuple[int, ...]]:
        """The text of some value."""
        made = [step.out for step in self.steps]
        i = self.choose([*given, *made][::-1]) if given or made else self.pick()
        return "{0}", (i,)

    def nested(self) -> None:
        self.choose(
            [
                self.scan, self.scan, self.while_loop, self.fori_loop, self.cond, self.wrapped,
                self.wrapped, self.mapped, self.switch,
            ]
        )()  # fmt: skip

    def scan(self) -> None:
        c, x = self.pick_smooth(), self.pick(rank=1)
        if c is None or x is None or not self.values[x].shape[0]:
            return

        def finish(numbers: tuple[int, ...]) -> tuple[str, tuple[int, ...]] | None:
            carried = self.like(self.values[numbers[0]], numbers[0])
            if carried is None:
                return None
            text, reads = carried
            _, (y,) = self.last(*numbers)
            return f"{text}, {{{len(reads)}}}", (*reads, y)

        block = self.block([self.values[c], self.values[x][0]], finish, [False, x in self.exact])
        if block is not None:
            reverse = self.choose([False, False, True])
            which = self.integer(0, 1)
            self.add(
                f"m.scan({{f0}}, {{0}}, {{1}}, reverse={reverse})[{which}]", c, x, blocks=(block,)
            )

    def while_loop(self) -> None:
        c = self.pick_smooth()
        if c is None:
            return
        block = self.block(
            [np.int64(0), self.values[c]],
            lambda numbers: self._counted(numbers),
            [True, False],
        )
        if block is None:
            return
        n = self.pick("iu", exact=True) if not self.mix.is_smooth else None
        ends = str(self.integer(0, 3))
        if n is not None and self.integer(0, 1):
            ends = "np.sum({1} & 1) % 4"
        text = (
            f"{{out}}e = {ends}\n"
            "{out} = m.while_loop(lambda s: s[0] < {out}e, lambda s: {f0}(*s), "
            "(np.int64(0), {0}))[1]"
        )
        self.add(text, c, *([] if n is None else [n]), blocks=(block,))

    def _counted(self, numbers: tuple[int, ...]) -> tuple[str, tuple[int, ...]] | None:
        carried = self.like(self.values[numbers[1]], numbers[1])
        if carried is None:
            return None
        text, reads = carried
        return f"({{{len(reads)}}} + 1, {text})", (*reads, numbers[0])

    def fori_loop(self) -> None:
        c = self.pick_smooth()
        if c is None:
            return
        block = self.block(
            [np.int64(0), self.values[c]],
            lambda numbers: self.like(self.values[numbers[1]], numbers[1]),
            [True, False],
        )
        if block is not None:
            low = self.integer(0, 1)
            self.add(f"m.fori_loop({low}, {self.integer(0, 4)}, {{f0}}, {{0}})", c, blocks=(block,))

    def cond(self) -> None:
        i = self.pick_smooth()
        if i is None:
            return
        value = self.values[i]
        blocks = [
            self.block([value], lambda numbers: self.like(value, numbers[0]), [i in self.exact])
            for _ in range(2)
        ]
        b = self.pick("iub", exact=True)
        test = "np.sum({1}) > 0" if b is not None else self.choose(["True", "False"])
        if None not in blocks:
            self.add(
                f"m.cond({test}, {{f0}}, {{f1}}, {{0}})",
                *([i] if b is None else [i, b]),
                blocks=tuple(b for b in blocks if b is not None),
            )

    def switch(self) -> None:
        i, k = self.pick_smooth(), self.pick("iu", exact=True)
        if i is None or k is None:
            return
        value = self.values[i]
        blocks = [
            self.block([value], lambda numbers: self.like(value, numbers[0]), [i in self.exact])
            for _ in range(3)
        ]
        if None not in blocks:
            self.add(
                "m.switch(np.sum({1}) % 3, [{f0}, {f1}, {f2}], {0})",
                i,
                k,
                blocks=tuple(b for b in blocks if b is not None),
            )

    def wrapped(self) -> None:
        i, j = self.pick_smooth(), self.pick_smooth()
        if i is None or j is None:
            return
        block = self.block([self.values[i], self.values[j]], lambda n: self.last(*n), [False] * 2)
        if block is not None:
            kind = self.choose(["checkpoint", "jit", "custom_jvp", "custom_vjp", "checkpoint"])
            self.add(f"m.{kind}({{f0}})({{0}}, {{1}})", i, j, blocks=(block,))

    def mapped(self) -> None:
        i = self.pick_smooth(rank=1)
        if i is None or not self.values[i].shape[0]:
            return
        block = self.block([self.values[i][0]], lambda n: self.last(*n), [False])
        if block is not None:
            kind = self.choose(["m.vmap({f0})({0})", "m.map({f0}, {0})"])
            self.add(kind, i, blocks=(block,))


def _is_compared_by_nobody(x: np.ndarray, view: str, index: str, value: np.ndarray) -> bool:
    """Whether nothing is assigned, by arrays of indices: NumPy then takes values of any shape.

    It refuses them where the index is basic; funcgrad refuses them always.
    """
    try:
        part = eval(f"{view.format(out='x')}[{index}]", {"np": np, "x": x})
    except IndexError:
        return True
    return not part.size and value.ndim > part.ndim


def write(choices: Choices, mix: Mix) -> Program:
    """A program, of whatever is decided."""
    writer = Writer(choices, mix)
    writer.arguments()
    for _ in range(writer.integer(1, mix.most)):
        writer.step()
    kinds = "fc" if mix.is_smooth else "fcibu"
    candidates = [i for i, v in writer.values.items() if v.dtype.kind in kinds]
    outputs = tuple(writer.choose(candidates[::-1]) for _ in range(writer.integer(1, 4)))
    program = Program(writer.args, tuple(writer.steps), outputs, writer.scale)
    return replace(without_unused(program), args=writer.args)  # arguments that nobody reads stay


def seeded(seed: int) -> Program:
    """The program of a number: of any dtype, with anything in it."""
    choices = Seeded(seed)
    mix = Mix(
        dtype=choices.choose(["f8", "f8", "f8", "f4", "c16", "c8"]),
        is_smooth=not choices.integer(0, 2),
        layouts=ANYWHERE,
        laws=choices.choose([0, 0, 1, 2]),
        nesting=choices.choose([0, 1, 1, 2]),
        most=choices.choose([2, 4, 8, 12]),
    )
    return write(choices, mix)


@st.composite
def programs(draw: Any, dtype: str = "f8", is_smooth: bool = False, **mix: Any) -> Program:
    """Programs of operations; ``is_smooth`` asks for those that are differentiable."""
    return write(Drawn(draw), Mix(dtype, is_smooth, **mix))
