"""Messages between processes begin as soon as what they send is there, and small ones go together.

``advance : Program -> Program``. A program that differentiates a loss and then sums its gradients
over processes has all of its messages at the end, where everybody waits for each. Here they move up
to the equation that computes what they send; the next equations run while they are under way
(`as_message`), and whoever reads a result waits for it. Small messages stay
together: they move down again to the last of them that comes before any result is read, next to
each other, and are lowered as one. What is too small for the background moves down to who reads it.

Processes must begin their messages in the same order, and make the same ones in the background.
They trace the same program, though maybe for arrays of other lengths: so all that is decided here
follows from the order of equations and what they read, and from types of what is sent, which are
equal in all of them. What equations compute, and how long it takes, does not count. Equations of
one argument go with the message that reads them.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field

from funcgrad.base.records import dataclass
from funcgrad.core.facets import Facet
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Atom, Equation, Program, Var
from funcgrad.lowering import Pointwise

message_group = Facet("message_group", 0)
"""The number of the group of messages that are sent as one, from 1; 0 if it is none of such."""


def _is_no_message(group: int = 0, in_background: bool = False) -> Primitive | None:
    return None


as_message: Facet[Callable[..., Primitive | None]] = Facet("as_message", _is_no_message)
"""``as_message(group=0, in_background=False)``: the same operation, told otherwise.

An operation has it that only tells other processes of an array. ``group`` is as of `message_group`:
what arrays side by side give is side by side what each gives. Where that does not hold, groups
other than 0 give ``None``. If it is made in the background, it
only begins, and goes on while other things are computed. ``None`` if it cannot be told so.
"""

SMALL_BYTES = 1 << 15
"""Messages of fewer bytes go together."""

TOGETHER_BYTES = 1 << 20
"""The most bytes of small messages that go together."""

LARGE_BYTES = SMALL_BYTES
"""Messages of at least so many bytes take longer than it costs to make them in the background."""


def advance(program: Program) -> Program:
    """A program without calls, with its messages where they can begin."""
    if not any(map(_is_message, program.equations)):
        return program
    equations, staying = _moved_down(program.equations, program.outputs)
    equations = _in_background(_together(_moved_up(equations, staying)))
    return Program(program.inputs, equations, program.outputs, program.name, program.constants)


def messages(equations: Sequence[Equation]) -> Iterator[Sequence[Equation]]:
    """The equations of a program in order, those that make one message in one group."""
    group: list[Equation] = []
    for equation in equations:
        primitive = equation.primitive
        if group and primitive != group[0].primitive:
            yield group
            group = []
        if message_group(primitive):
            group.append(equation)
        else:
            yield [equation]
    if group:
        yield group


def _is_message(equation: Equation) -> bool:
    return as_message(equation.primitive)() is not None


def _is_barrier(equation: Equation) -> bool:
    """Whether no message moves across it."""
    return equation.primitive.is_effectful and not _is_message(equation)


def _is_small(equation: Equation) -> bool:
    """Whether a message is small, and of those that can be told together."""
    can_join = as_message(equation.primitive)(1) is not None
    return can_join and _nbytes(equation) < SMALL_BYTES


def _grows(equation: Equation) -> bool:
    """Whether a message receives more than it sends."""
    (out,) = equation.outputs
    return bool(out.aval.size > equation.inputs[0].aval.size)


def _nbytes(equation: Equation) -> int:
    aval = equation.inputs[0].aval
    return aval.size * aval.dtype.itemsize


def _vars(equation: Equation) -> Iterator[Var]:
    return (atom for atom in equation.inputs if type(atom) is Var)


def _moved_down(
    equations: Sequence[Equation], outputs: Sequence[Atom]
) -> tuple[list[Equation], set[Var]]:
    """The equations with messages that put arrays together in front of who reads these.

    If all came together, as they do where the arrays of a pytree are gathered, all results would
    have to be kept. Equations of one argument that alone read such a result go with it.

    Returns: The equations; and the results of messages that stay there: they are small, or are read
        in so little time that no other message is worth its memory meanwhile.
    """
    staying: set[Var] = set()
    counts = Counter(atom for e in equations for atom in _vars(e))
    counts.update(atom for atom in outputs if type(atom) is Var)
    carried: set[Var] = set()
    moving: list[int] = []
    for i, equation in enumerate(equations):
        inputs = list(_vars(equation))
        grows = _is_message(equation) and _grows(equation)
        follows = len(inputs) == 1 and inputs[0] in carried and counts[inputs[0]] == 1
        if grows or (follows and not equation.primitive.is_effectful):
            moving.append(i)
            carried.update(equation.outputs)
    barriers = [i for i, e in enumerate(equations) if _is_barrier(e)] + [len(equations)]
    place: dict[int, int] = {}
    reader: dict[Var, int] = {}
    """The first one of each result, where it comes in the end."""
    for i in reversed(range(len(equations))):
        if moving and moving[-1] == i:
            moving.pop()
            barrier = barriers[bisect.bisect(barriers, i)]
            place[i] = min(
                [reader[var] for var in equations[i].outputs if var in reader] + [barrier]
            )
            if _nbytes(equations[i]) < LARGE_BYTES or _is_pointwise(equations[place[i] : barrier]):
                staying.update(equations[i].outputs)
        for var in _vars(equations[i]):
            reader[var] = min(place.get(i, i), reader.get(var, len(equations)))
    order = sorted(range(len(equations)), key=lambda i: (place.get(i, i), i not in place, i))
    return [equations[i] for i in order], staying


def _is_pointwise(equations: Sequence[Equation]) -> bool:
    """Whether the first of some equations works on elements; the same in all processes."""
    if not equations:
        return False
    form = equations[0].primitive.lower(*(atom.aval for atom in equations[0].inputs))
    return isinstance(form, Pointwise)


def _moved_up(equations: Sequence[Equation], staying: set[Var]) -> list[Equation]:
    """The equations with every message behind what computes what it sends."""
    maker: dict[Var, int] = {}
    earliest: list[int] = []
    """Behind which equation each could come, apart from effects; -1 for the beginning."""
    place: dict[int, int] = {}
    """Behind which equation those come that move."""
    barrier = grown = -1
    for i, equation in enumerate(equations):
        inputs = {maker[var] for var in _vars(equation) if var in maker}
        is_message = _is_message(equation) and staying.isdisjoint(equation.outputs)
        moves = is_message or (len(inputs) <= 1 and not equation.primitive.is_effectful)
        behind = max((earliest[k] for k in inputs), default=-1)
        if is_message and _grows(equation):
            # One ahead of who reads it: if all came at once, all results would have to be kept.
            behind, grown = max(behind, grown), i
        earliest.append(max(behind, barrier) if is_message else behind if moves else i)
        maker.update((var, i) for var in equation.outputs)
        if is_message:
            _move(i, earliest[i], equations, maker, earliest, place)
        elif _is_barrier(equation):
            barrier = i
    order = sorted(range(len(equations)), key=lambda i: (place.get(i, i), i in place, i))
    return [equations[i] for i in order]


def _move(
    message: int,
    to: int,
    equations: Sequence[Equation],
    maker: dict[Var, int],
    earliest: Sequence[int],
    place: dict[int, int],
) -> None:
    """Let a message, with what it needs of the equations behind its new place, come there."""
    pending = [message]
    while pending:
        i = pending.pop()
        if i <= to or place.get(i, i) <= to:
            continue
        place[i] = to
        pending += [maker[var] for var in _vars(equations[i]) if var in maker]


@dataclass(eq=False)
class _Group:
    """Messages that become one.

    Attributes:
        number: Its number, from 1.
        cell: Where they stand.
        made: Their results.
        nbytes: What they send.
    """

    number: int
    cell: list[Equation] = field(default_factory=list)
    made: set[Var] = field(default_factory=set)
    nbytes: int = 0


def _together(equations: Sequence[Equation]) -> list[list[Equation]]:
    """The equations, with small messages next to each other, where the last of them was.

    Returns: The equations in groups, of which each message is one.
    """
    cells: list[list[Equation]] = []
    open_: dict[Hashable, _Group] = {}
    count = 0
    for equation in equations:
        read = set(_vars(equation))
        for key, group in list(open_.items()):
            if _is_barrier(equation) or not read.isdisjoint(group.made):
                del open_[key]
        cells.append([equation])
        if not _is_small(equation):
            continue
        key = equation.primitive, equation.inputs[0].aval.dtype
        nbytes = _nbytes(equation)
        if key not in open_ or open_[key].nbytes + nbytes > TOGETHER_BYTES:
            count += 1
            open_[key] = _Group(count)
        group = open_[key]
        primitive = as_message(equation.primitive)(group.number)
        assert primitive is not None
        moved = Equation(primitive, equation.inputs, equation.outputs, equation.source)
        cells[-1][:] = [*group.cell, moved]
        group.cell.clear()
        group.cell = cells[-1]
        group.made.update(equation.outputs)
        group.nbytes += nbytes
    return [_alone(cell) if len(cell) == 1 else cell for cell in cells if cell]


def _alone(cell: list[Equation]) -> list[Equation]:
    """One equation, which is no group."""
    (equation,) = cell
    primitive = as_message(equation.primitive)() or equation.primitive
    return [Equation(primitive, equation.inputs, equation.outputs, equation.source)]


def _in_background(cells: Sequence[Sequence[Equation]]) -> list[Equation]:
    """The equations, with large messages made in the background where others come in between.

    Those that are not go down to the first reader of a result: they wait for all processes.
    """
    first_reader: dict[Var, int] = {}
    barriers = [i for i, cell in enumerate(cells) if _is_barrier(cell[0])] + [len(cells)]
    for i, cell in enumerate(cells):
        for equation in cell:
            for var in _vars(equation):
                first_reader.setdefault(var, i)
    found: list[tuple[tuple[int, bool, int], Sequence[Equation]]] = []
    for i, cell in enumerate(cells):
        if not _is_message(cell[0]):
            found.append(((i, True, i), cell))
            continue
        first = cell[0].primitive
        later = as_message(first)(message_group(first), in_background=True)
        if later is None:  # It stays where what it sends is needed no more.
            found.append(((i, True, i), cell))
            continue
        end = min(first_reader.get(var, len(cells)) for e in cell for var in e.outputs)
        between = (_takes_time(cells[k]) for k in range(i + 1, end))
        if sum(map(_nbytes, cell)) >= LARGE_BYTES and any(between):
            begun = [Equation(later, e.inputs, e.outputs, e.source) for e in cell]
            found.append(((i, True, i), begun))
        else:
            barrier = barriers[bisect.bisect(barriers, i)]
            found.append(((min(end, barrier), False, i), cell))
    return [e for _, cell in sorted(found, key=lambda row: row[0]) for e in cell]


def _takes_time(cell: Sequence[Equation]) -> bool:
    """Whether equations may take time; those of one argument may take none."""
    return any(not _is_message(e) and len(list(_vars(e))) > 1 for e in cell)
