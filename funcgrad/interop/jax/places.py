"""Places of traced arrays: what a program says of them, and what follows by its operations.

What is said is noted with a value, for as long as the function around is traced. The rest is found
when it is read, by one pass over the equations so far: the form of an operation says which axes
of its result run along which of its arguments. Only along axes of a mesh whose type is explicit do
types follow operations.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

from funcgrad import lowering as forms
from funcgrad import sharding
from funcgrad.core.program import Equation, Var, axis_names_of
from funcgrad.core.trace import Tracer
from funcgrad.distributed.meshes import names_by_axis, sums_in
from funcgrad.errors import ArgumentError
from funcgrad.interop.jax.devices import NamedSharding
from funcgrad.passes.flow import Flow
from funcgrad.transforms.batch import BatchTracer
from funcgrad.transforms.stage import StageTrace, StageTracer

Place = NamedSharding | None
Rows = list[tuple[Any, ...]]
"""For each axis of an array the axes of a mesh that divide it."""


def resolved(place: Any, what: str) -> Any:
    """A sharding, for a spec that of the mesh around.

    Args:
        place: A device, a sharding or a spec.
        what: The public function.
    Raises: ArgumentError: If there is no mesh.
    """
    if not isinstance(place, sharding.PartitionSpec):
        return place
    mesh = sharding.get_abstract_mesh()
    if mesh.empty:
        raise ArgumentError(
            f"{what}: {place!r} names axes of a mesh, and there is none. Call it inside set_mesh, "
            "or give a NamedSharding."
        )
    return NamedSharding(mesh, place)


class Notes:
    """Notes about the values of a function that is traced.

    Attributes:
        places: By identity, values and where they lie.
        uses: By identity, values and how `shard_map` divides them, of which nothing else is known.
        terms: By identity, values that are sums over lanes, and the terms of these.
        passes: By identity, programs under construction, how many equations were looked at, and
            what follows for their names.
    """

    def __init__(self) -> None:
        self.places: dict[int, tuple[Any, Any]] = {}
        self.uses: dict[int, tuple[Any, NamedSharding]] = {}
        self.terms: dict[int, tuple[Any, Any]] = {}
        self.passes: dict[int, tuple[Any, list[int], dict[Var, Place]]] = {}


_notes: ContextVar[tuple[Notes, ...]] = ContextVar("notes", default=())
"""Notes of the functions around, the innermost first."""


class Labels:
    """Whether any array says how it is divided, so that calls have to look."""

    are_there = False


@contextmanager
def noting() -> Iterator[Notes]:
    """A block in which a function is traced."""
    made = Notes()
    token = _notes.set((made, *_notes.get()))
    try:
        yield made
    finally:
        _notes.reset(token)


def note(x: Any, place: Any) -> None:
    """Say where a traced value lies.

    Args:
        x: The value.
        place: A device or a sharding.
    """
    around = _notes.get()
    while around and isinstance(x, Tracer):
        key = _key_of(x)
        around[0].places[id(key)] = key, place
        if isinstance(x, BatchTracer):
            if not isinstance(place, NamedSharding):
                return
            place = place.with_spec(_of_entries((None, *place.spec), place.spec))
        x = getattr(x, "value", getattr(x, "primal", None))


def note_terms(x: Tracer, terms: Any) -> None:
    """Record the terms of which a traced value is the sum.

    Args:
        x: The value.
        terms: The terms, stacked.
    """
    for notes in _notes.get()[:1]:
        key = _key_of(x)
        notes.terms[id(key)] = key, terms


def noted_terms(x: Tracer) -> Any:
    """The terms of which a traced value is the sum; `None` if nothing is known."""
    known = ChainMap(*(notes.terms for notes in _notes.get())).get(id(_key_of(x)))
    return None if known is None else known[1]


def _key_of(x: Tracer) -> Any:
    return x.atom if isinstance(x, StageTracer) else x


def note_use(x: Any, place: NamedSharding) -> None:
    """Say how `shard_map` divides a value."""
    around = _notes.get()
    if around and isinstance(x, Tracer) and place_of(x) is None:
        for notes in around:
            notes.uses[id(x)] = x, place


def place_of(x: Any) -> Any:
    """The place of an array, if it is known.

    Args: x: Any value.
    Returns: A sharding, or a device that a program has put it on; `None` if nothing is known.
    """
    if not isinstance(x, Tracer):
        place = getattr(x, "sharding", None)
        return place if isinstance(place, NamedSharding) else None
    if not any(notes.places for notes in _notes.get()):
        return None
    return _of_traced(x)


def _of_traced(x: Any) -> Any:
    lanes = 0
    while isinstance(x, Tracer):
        key = _key_of(x)
        known = ChainMap(*(notes.places for notes in _notes.get())).get(id(key))
        if known is not None:
            return _without_lanes(known[1], lanes)
        if isinstance(x, StageTracer):
            return _without_lanes(_of_name(x.owner, x.atom), lanes)
        lanes += isinstance(x, BatchTracer)
        x = getattr(x, "value", getattr(x, "primal", None))
    return _without_lanes(place_of(x), lanes)


def _without_lanes(place: Any, n: int) -> Any:
    if not n or not isinstance(place, NamedSharding):
        return place
    return place.with_spec(_of_entries(tuple(place.spec)[n:], place.spec))


def _of_entries(entries: Sequence[Any], like: Any) -> sharding.PartitionSpec:
    """A spec with sums as another has them."""
    unreduced, reduced = sums_in(like)
    return sharding.P(*entries, unreduced=unreduced, reduced=reduced)


def _of_name(trace: Any, name: Any) -> Place:
    """The place of a name of a program under construction, going on over its equations."""
    passes = _notes.get()[0].passes
    _, done, facts = passes.setdefault(id(trace), (trace, [0], {}))
    assert isinstance(trace, StageTrace)
    outside = dict(trace.captured.values())

    def read(atom: Any) -> Place:
        for notes in _notes.get():
            if id(atom) in notes.places:
                return explicit(notes.places[id(atom)][1])
        if type(atom) is Var and atom in outside:
            return explicit(place_of(outside[atom]))
        return facts.get(atom)

    for equation in trace.equations[done[0] :]:
        found = _SPECS.results(equation, [read(atom) for atom in equation.inputs])
        facts.update(zip(equation.outputs, found, strict=True))
    done[0] = len(trace.equations)
    return read(name)


def explicit(place: Any) -> Place:
    """The place of an array, if its type follows operations; else `None`."""
    return place if isinstance(place, NamedSharding) and place.mesh.explicit_axes else None


class _Specs(Flow[Place]):
    """Follows how arrays are divided through programs."""

    def meet(self, facts: Sequence[Place]) -> Place:
        known = [fact for fact in facts if fact is not None]
        return known[0] if known and all(fact == known[0] for fact in known) else None

    def chosen(self, on: Place, facts: Sequence[Place]) -> Place:
        return self.meet(facts)

    def operation(self, equation: Equation, facts: Sequence[Place]) -> list[Place]:
        known = [fact for fact in facts if fact is not None]
        if not known:
            return [None] * len(equation.outputs)
        shapes = [atom.aval.shape for atom in equation.inputs]
        rows = [
            names_by_axis(fact.spec if fact is not None else None, len(shape))
            for fact, shape in zip(facts, shapes, strict=True)
        ]
        can_follow = not equation.primitive.is_composite and not axis_names_of(equation.primitive)
        form = forms.form_of(equation) if can_follow else None
        if isinstance(form, forms.Barrier):
            return list(facts)
        specs = [
            _spec_of(form, shapes, rows, var.aval.shape) if form is not None else sharding.P()
            for var in equation.outputs
        ]
        if len(equation.inputs) == 1:
            (of,) = known
            specs = [_of_entries(spec, of.spec) for spec in specs]
        pairs = zip(specs, equation.outputs, strict=True)
        return [known[0].with_spec(_fitting(s, v.aval.shape, known[0].mesh)) for s, v in pairs]


def _spec_of(
    form: forms.Form,
    shapes: Sequence[tuple[int, ...]],
    rows: Sequence[Rows],
    shape: tuple[int, ...],
) -> sharding.PartitionSpec:
    """How a result is divided, of an operation of a form."""
    found: Rows = [()] * len(shape)
    if isinstance(form, forms.Pointwise):
        for of, names in zip(shapes, rows, strict=True):
            lead = len(shape) - len(of)
            for i, (n, row) in enumerate(zip(of, names, strict=True), lead):
                found[i] = found[i] or (row if n == shape[i] else ())
    elif isinstance(form, forms.Reindex):
        found = [
            rows[0][axis] if axis is not None and shapes[0][axis] == n else ()
            for axis, n in zip(form.axes, shape, strict=True)
        ]
    elif isinstance(form, forms.Reduction):
        found = [row for i, row in enumerate(rows[0]) if i not in form.axes]
    elif isinstance(form, forms.Contraction):
        by_letter: dict[str, tuple[Any, ...]] = {}
        for letters, names in zip((form.lhs, form.rhs), rows, strict=False):
            for letter, row in zip(letters, names, strict=True):
                by_letter[letter] = by_letter.get(letter) or row
        found = [by_letter.get(letter, ()) for letter in form.out]
    elif isinstance(form, forms.Reshape):
        found = _reshaped(shapes[0], rows[0], shape)
    return spec_of_rows(found)


def _fitting(spec: Any, shape: tuple[int, ...], mesh: Any) -> sharding.PartitionSpec:
    """The spec without names that do not divide an array."""
    rows = names_by_axis(spec, len(shape))
    kept = [
        row if n % prod(mesh.shape[name] for name in row) == 0 else ()
        for row, n in zip(rows, shape, strict=True)
    ]
    return _of_entries(spec_of_rows(kept), spec)


def _reshaped(old: tuple[int, ...], rows: Rows, new: tuple[int, ...]) -> Rows:
    """Rows of axes that go on from the same element of the array, at the same distance."""
    starts = {(prod(old[:i]), old[i]): rows[i] for i in range(len(old))}
    leading = {prod(old[:i]): rows[i] for i in range(len(old)) if rows[i]}
    found = []
    for i, n in enumerate(new):
        row = starts.get((prod(new[:i]), n))
        found.append(leading.get(prod(new[:i]), ()) if row is None and n > 1 else row or ())
    return found


def spec_of_rows(rows: Rows) -> sharding.PartitionSpec:
    """A spec, in which a mesh's axis stands once."""
    seen: set[Any] = set()
    entries: list[Any] = []
    for row in rows:
        row = tuple(name for name in row if name not in seen)
        seen.update(row)
        entries.append(None if not row else row[0] if len(row) == 1 else row)
    return sharding.P(*entries)


_SPECS = _Specs(None, None)


def is_spec(x: Any) -> bool:
    """Whether something is a spec, or stands for that of an undivided array."""
    return x is None or isinstance(x, sharding.PartitionSpec)


def without_names(spec: Any, ndim: int, names: Collection[Hashable]) -> sharding.PartitionSpec:
    """A spec without some axes of a mesh, with an entry for each axis of an array."""
    rows = [tuple(name for name in row if name not in names) for row in names_by_axis(spec, ndim)]
    unreduced, reduced = (kind.difference(names) for kind in sums_in(spec))
    return sharding.P(*spec_of_rows(rows), unreduced=unreduced, reduced=reduced)


def merged(place: NamedSharding, inner: Any, ndim: int) -> NamedSharding:
    """The place of a result of `shard_map`, whose lanes are divided along further axes.

    Args:
        place: As its specs say.
        inner: The place of the lanes' results, if it is known.
        ndim: Number of axes.
    """
    rows = names_by_axis(place.spec, ndim)
    if isinstance(inner, NamedSharding):
        further = names_by_axis(inner.spec, ndim)
        rows = [(*a, *b) for a, b in zip(rows, further, strict=True)]
    return place.with_spec(_of_entries(spec_of_rows(rows), place.spec))


def shortened(place: Any) -> Any:
    """The same place without entries for the last axes that are undivided: one of equal ones."""
    if not isinstance(place, NamedSharding):
        return place
    rows = names_by_axis(place.spec, 0)
    while rows and not rows[-1]:
        rows.pop()
    return place.with_spec(_of_entries(spec_of_rows(rows), place.spec))


def lengthened(place: Any, ndim: int) -> Any:
    """The same place with an entry for each axis of an array."""
    return merged(place, None, ndim) if isinstance(place, NamedSharding) else place
