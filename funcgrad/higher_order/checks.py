"""Checks, and their outcome as a value.

`Check` is the primitive of `funcgrad.checkify.check`: evaluated as it is, it raises. A program that
is functionalised (`higher_order.checked_programs`) has none left: it returns a `Failure` instead, a
number that says which of its sites was the first where something was wrong, 0 if all is well, and
the values for the message of that site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from funcgrad.base.dialect import NUMPY, dialect
from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value, mapped_length
from funcgrad.core.program import Program, Var
from funcgrad.dtypes import BOOL
from funcgrad.errors import ArgumentError, FailedCheckError
from funcgrad.lowering import Call, Form
from funcgrad.observers.checks import (
    EXPLICIT,
    INDEX,
    NAN,
    Fault,
    Kinds,
    Site,
    Slot,
    slots_of,
    structure_of,
)
from funcgrad.observers.source import SourceLocation
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.families import shape_of, zeros_like_aval
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.reductions import ArgMax, ReduceAny
from funcgrad.primitives.shape import broadcast_to, reshape

CODE = np.dtype(np.int32)
"""Dtype of the numbers of sites."""
FINE = np.int32(0)


class Failure:
    """The first failure under the current trace.

    Args:
        sites: Where something was looked for.
        code: Number of the site, from 1; 0 if nothing is wrong.
        values: For every slot of the sites, what fills the gaps of the message.
    """

    __slots__ = ("code", "sites", "values")

    def __init__(
        self, sites: tuple[Site, ...], code: Value, values: Mapping[Slot, Sequence[Value]]
    ) -> None:
        self.sites = sites
        self.code = code
        self.values = values

    @classmethod
    def of_flat(cls, sites: tuple[Site, ...], flat: Sequence[Value]) -> Failure:
        """From what `flat` gave."""
        code, *rest = flat
        values = {}
        for slot in slots_of(sites):
            values[slot], rest = rest[: len(slot)], rest[len(slot) :]
        return cls(sites, code, values)

    @classmethod
    def of_fault(cls, fault: Fault, line: str | None) -> Failure:
        """The first flag of a fault."""
        flag, place = _first(fault.flags)
        values = [_at(x, place, shape_of(fault.flags)) for x in fault.values]
        slot = tuple(aval_of(x).strong() for x in values)
        message = ("" if dialect() is NUMPY else _IN_JAX.get(fault.kind, "")) + fault.message
        site = Site(fault.kind, message, structure_of(len(values)), slot, line)
        return cls.of_flag(site, flag, values)

    @classmethod
    def of_flag(cls, site: Site, flag: Value, values: Sequence[Value]) -> Failure:
        """At one site, if a flag is set."""
        held = {site.slot: [p.stop_gradient.bind(x) for x in values]} if site.slot else {}
        return cls((site,), p.select.bind(flag, np.int32(1), FINE), held)

    @classmethod
    def of_check(cls, site: Site, holds: Value, values: Sequence[Value]) -> Failure:
        """At one site, unless something holds."""
        strong = [p.convert(x, a.dtype) for x, a in zip(values, site.slot, strict=True)]
        return cls.of_flag(site, p.bitwise_not.bind(p.convert(holds, BOOL)), strong)

    @classmethod
    def of_array(cls, sites: tuple[Site, ...], flat: Sequence[Value]) -> Failure:
        """The first of many, whose flat parts have further axes in front."""
        code = flat[0]
        shape = shape_of(code)
        if not shape:
            return cls.of_flat(sites, flat)
        if 0 in shape:
            return nothing(sites)
        _, place = _first(p.not_equal.bind(code, FINE))
        n = int(np.prod(shape))
        lane = Gather((0,))
        rows = (reshape(x, (n, *shape_of(x)[len(shape) :])) for x in flat)
        return cls.of_flat(sites, [lane.bind(x, place) for x in rows])

    @property
    def flat(self) -> list[Value]:
        """The number and the values, in the order of the slots."""
        return [self.code, *(x for slot in slots_of(self.sites) for x in self.values[slot])]

    def at(self, source: SourceLocation | None) -> Failure:
        """The same, with a line for sites that have none."""
        if source is None:
            return self
        sites = (s if s.line is not None else replace(s, line=str(source)) for s in self.sites)
        return Failure(tuple(sites), self.code, self.values)

    def only(self, kinds: Kinds) -> Failure | None:
        """Keep failures of some kinds; sites of others are passed over."""
        if EXPLICIT in kinds or all(site.kind in kinds for site in self.sites):
            return self
        if not any(site.kind in kinds for site in self.sites):
            return None
        meant = np.array([True, *(site.kind in kinds for site in self.sites)])
        is_meant = Gather((0,)).bind(meant, self.code)
        return Failure(self.sites, p.select.bind(is_meant, self.code, FINE), self.values)

    def then(self, later: Failure) -> Failure:
        """This, or what was found wrong later if nothing is wrong here."""
        if not self.sites:
            return later
        if not later.sites:
            return self
        shifted = numbered(later.code, len(self.sites))
        return self._or(shifted, self.sites + later.sites, later.values)

    def then_of(self, later: Failure, offset: int = 0) -> Failure:
        """Combine as `then` does, where the later sites are among these, behind some others."""
        return self._or(numbered(later.code, offset), self.sites, later.values)

    def among(self, sites: tuple[Site, ...], offset: int) -> Failure:
        """The same among more sites, of which ``offset`` are in front."""
        values = {**nothing(sites).values, **self.values}
        return Failure(sites, numbered(self.code, offset), values)

    def _or(
        self, code: Value, sites: tuple[Site, ...], values: Mapping[Slot, Sequence[Value]]
    ) -> Failure:
        is_fine = p.equal.bind(self.code, FINE)
        joined = dict(self.values)
        for slot, given in values.items():
            if slot in joined:
                pairs = zip(given, joined[slot], strict=True)
                joined[slot] = [p.select.bind(is_fine, x, y) for x, y in pairs]
            else:
                joined[slot] = given
        return Failure(sites, p.select.bind(is_fine, code, self.code), joined)


def numbered(code: Value, offset: int) -> Value:
    """The number of a site among others, of which ``offset`` are in front of it."""
    if not offset:
        return code
    return p.select.bind(p.equal.bind(code, FINE), FINE, p.add.bind(code, np.int32(offset)))


def nothing(sites: tuple[Site, ...]) -> Failure:
    """Nothing wrong at any site."""
    values = {slot: [zeros_like_aval(a) for a in slot] for slot in slots_of(sites)}
    return Failure(sites, FINE, values)


_IN_JAX = {NAN: "nan generated by primitive: ", INDEX: "out-of-bounds indexing: "}
"""How messages begin by its rules, where programs look for these words."""


def nan_faults(name: str, results: Sequence[Value]) -> list[Fault]:
    """Whether results hold a nan, as failures."""
    found = [p.isnan.bind(x) for x in results if aval_of(x).dtype.kind in "fc"]
    return [Fault(NAN, f"{name} gave a nan.", flags) for flags in found]


def _first(flags: Value) -> tuple[Value, Value | None]:
    """Whether any flag is set, and the row-major place of the first; no place of a single one."""
    shape = shape_of(flags)
    if not shape:
        return flags, None
    is_set = ReduceAny(tuple(range(len(shape)))).bind(flags)
    if 0 in shape:
        return is_set, None
    row = reshape(flags, (int(np.prod(shape)),))
    return is_set, ArgMax(0).bind(p.convert(row, CODE))


def _at(value: Value, place: Value | None, shape: tuple[int, ...]) -> Value:
    """The element of an array that broadcasts to a shape, at a row-major place of that."""
    if place is None:
        return value if not shape_of(value) else zeros_like_aval(shaped((), aval_of(value).dtype))
    return Gather((0,)).bind(reshape(broadcast_to(value, shape), (int(np.prod(shape)),)), place)


class Check(Primitive):
    """Raise if something is wrong: ``bind(code, *values)``, the parts of a `Failure`.

    Attributes:
        sites: Where something was looked for.
    """

    sites: tuple[Site, ...]

    multiple_results = True
    is_effectful = True

    def impl(self, code: Any, *values: Any) -> Any:
        raise_failed(self.sites, code, values)
        return []

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return []

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        return self.bind(*primals), []

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = mapped_length(args, dims)
        rows = [
            x if d is not None else broadcast_to(x, (size, *shape_of(x)))
            for x, d in zip(args, dims, strict=True)
        ]
        return self.bind(*Failure.of_array(self.sites, rows).flat), []

    def lower(self, *avals: ShapedArray) -> Form:
        for site in self.sites:
            if not site.is_debugging:
                _refuse(site)
        return Call(Program([Var(a) for a in avals], [], [], self.name))

    def checked(self, args: Sequence[Value], kinds: Kinds) -> tuple[Any, list[Failure]]:
        found = Failure.of_flat(self.sites, args).only(kinds)
        return [], [] if found is None else [found]

    def params(self) -> dict[str, Any]:
        return {"messages": tuple(site.message for site in self.sites)}


def _refuse(site: Site) -> NoReturn:
    where = "" if site.line is None else f"\n  at            {site.line}"
    raise ArgumentError(
        f"a check must be functionalised before it is compiled: {site.message!r}.{where}\n"
        "Wrap the function around it, jit(checkify(f)), whose first result is the error as a "
        "value; or write debug_check for a check that counts only there; or evaluate without "
        "compiling, within disable_jit(), where it raises at once. Loops and branches are compiled "
        "outside of jit too."
    )


def raise_failed(sites: Sequence[Site], code: Any, values: Sequence[Any]) -> None:
    """Raise if something is wrong that is not for debugging."""
    text = text_of(sites, code, values)
    if text is not None and not sites[int(code) - 1].is_debugging:
        raise FailedCheckError(text)


def text_of(sites: Sequence[Site], code: Any, values: Sequence[Any]) -> str | None:
    """Text of the failure; ``None`` if there is none."""
    number = int(code)
    if not number:
        return None
    site = sites[number - 1]
    start = 0
    for slot in slots_of(sites):
        if slot == site.slot:
            return site.text(values[start : start + len(slot)])
        start += len(slot)
    return site.text(())
