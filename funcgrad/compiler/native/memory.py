"""Words of memory: addresses, loads and stores, of elements and of lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from funcgrad.compiler import machine
from funcgrad.compiler.abi import LANES_SLOT, LOOK_SLOT
from funcgrad.compiler.native import llvm_backend
from funcgrad.compiler.native.apart import loader
from funcgrad.compiler.native.complexes import KINDS, Complex, llvm_type, memory_type
from funcgrad.compiler.native.llvm import (
    I1,
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    Function,
    Module,
    Type,
    vector_of,
)
from funcgrad.compiler.native.pieces import load_first, store_first
from funcgrad.compiler.native.scalars import Builder, Emitted
from funcgrad.compiler.native.types import (
    ARGS,
    BOOL,
    INT64,
    NONE,
    PARTS,
    POINTERS,
    Lanes,
    Literal,
    Pointer,
    Signature,
    Vector,
    Words,
    element_of,
    lanes,
    signature,
    vector,
)
from funcgrad.compiler.native.words import define, expect, literal_of

INBOUNDS = "inbounds "


_NEEDS: dict[str, Any] = {
    "pointer": Pointer,
    "lanes": Lanes,
    "bytes": Vector,
    "number": Literal,
    "scope": Literal,
    "slots": Words,
}
"""Kinds of operands that have a type of their own."""


def _define(name: str, result: str, *kinds: str, is_pure: bool = False) -> Callable[[Any], Any]:
    """Register a word of memory, whose rule is the same for all but for the kinds of operands.

    Args:
        name: The word.
        result: The kind of its value.
        kinds: Those of its operands: the pointer comes first, what says how many lanes there are
            second, and the scope, the number of a memory area, last.
        is_pure: As of `Word`.
    """

    def rule(args: Any) -> Signature:
        is_right = len(args) == len(kinds) and all(
            isinstance(t, _NEEDS.get(kind, object)) for kind, t in zip(kinds, args, strict=True)
        )
        expect(is_right, f"{name}({', '.join(kinds)})", args)
        count = getattr(args[1], "count", 0) if len(args) > 1 else 0
        types = {"none": NONE, "integer": INT64, "index": INT64}
        types |= {"bytes": vector(INT64, count), "flags": vector(BOOL, count)}
        if isinstance(args[0], Pointer):
            element = args[0].element
            types |= {"pointer": args[0], "element": vector(element, count)}
        given = (
            t if isinstance(t, Lanes) else types.get(kind, t)
            for kind, t in zip(kinds, args, strict=True)
        )
        return signature(types[result], *given)

    return define(name, rule, is_pure=is_pure, is_mapped=is_pure)


# Addresses.
def pointer_to(address: Emitted) -> Emitted:
    """An address as LLVM's pointer."""
    return address.builder.let(f"inttoptr {address} to ptr", POINTER, "p")


for _name, _pointer in POINTERS.items():
    _sig = signature(_pointer, INT64)
    define(f"ptr_{_name}", lambda args, sig=_sig: sig)(lambda b, sig, values: pointer_to(values[0]))


@_define("offset", "pointer", "pointer", "integer", is_pure=True)
def _offset(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """The pointer moved by a number of bytes."""
    return builder.moved(values[0], values[1], I8)


@_define("advance", "pointer", "pointer", "integer", is_pure=True)
def _advance(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """The pointer moved by a number of elements."""
    t = sig.return_type.element
    elements = values[1] * 2 if t in PARTS else values[1]
    return builder.moved(values[0], elements, memory_type(t))


# Elements.
@_define("load", "element", "pointer", "index", "scope")
def _load(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    t, scope = sig.return_type, sig.args[-1].literal_value
    pointer, index = values[0], values[1]
    if isinstance(t, Vector):
        return _load_lanes(builder, pointer, index, t, scope)
    if t in PARTS:
        re, im = (_load_part(builder, pointer, index * 2 + k, t, scope) for k in (0, 1))
        return Complex(re, im)
    return _load_part(builder, pointer, index, t, scope)


def _load_part(builder: Builder, pointer: Any, index: Emitted, t: Any, scope: int) -> Emitted:
    type = memory_type(t)
    address = builder.moved(pointer, index, type, INBOUNDS)
    return read(builder, address, type, t, scope)


def read(builder: Builder, address: Emitted, type: Type, t: Any, scope: Any) -> Emitted:
    """Load a value from memory at an address."""
    access = builder.module.access(scope)
    return given(builder.let(f"load {type}, {address}, align {type.nbytes}{access}", type, "u"), t)


def given(value: Emitted, t: Any) -> Emitted:
    """Convert a loaded value to type ``t``: flags are bytes in memory."""
    element = element_of(t)
    return value != 0 if element is BOOL else value.of_kind(KINDS[element])


def write(builder: Builder, value: Emitted, address: Emitted, scope: Any) -> None:
    """Put a value into memory at an address."""
    access = builder.module.access(scope)
    builder.do(f"store {value}, {address}, align {value.type.nbytes}{access}")


def kept(value: Emitted) -> Emitted:
    """A value as it is in memory, where flags are bytes."""
    return value.cast(I8, "u") if value.kind == "b" else value


@_define("store", "none", "pointer", "index", "element", "scope")
def _store(builder: Builder, sig: Signature, values: list[Any]) -> None:
    pointer, index, value, _ = values
    scope = sig.args[-1].literal_value
    if isinstance(sig.args[1], Lanes):
        _store_lanes(builder, pointer, index, value, scope)
    elif isinstance(value, Complex):
        _store_part(builder, pointer, index * 2, value.re, scope)
        _store_part(builder, pointer, index * 2 + 1, value.im, scope)
    else:
        _store_part(builder, pointer, index, value, scope)


def _store_part(builder: Builder, pointer: Any, index: Emitted, value: Emitted, scope: int) -> None:
    value = kept(value)
    write(builder, value, builder.moved(pointer, index, value.type, INBOUNDS), scope)


# Lanes.
class LaneIndex(NamedTuple):
    """An index of lanes: the first one, how many are there, and whether all are."""

    first: Any
    left: Any = None
    is_whole: Any = None

    def mask(self, type: Type) -> Emitted:
        """The flags of the lanes that are there, for vectors of a type."""
        left: Emitted = self.left
        found: Emitted = left.builder.once_here((left.text, type), lambda: left.before(type))
        return found

    def numbers(self, count: int) -> Emitted:
        """The index of every lane."""
        builder, type = self.first.builder, vector_of(I64, count)
        steps = builder.call(f"llvm.stepvector.{type.suffix}", type, "i")
        return self.first.splat(count) + steps


def _lanes_rule(args: Any) -> Signature:
    expect(len(args) == 2, "lanes(first, count)", args)
    return signature(lanes(literal_of(args[1], args), False), INT64, args[1])


@define("lanes", _lanes_rule, is_mapped=False)
def _lanes(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """Load as many neighbours as a vector has lanes."""
    return LaneIndex(values[0])


def _first_lanes_rule(args: Any) -> Signature:
    expect(len(args) == 3, "first_lanes(first, end, count)", args)
    t = lanes(literal_of(args[2], args), True)
    return signature(t, INT64, INT64, args[2])


@define("first_lanes", _first_lanes_rule, is_mapped=False)
def _first_lanes(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """At most as many neighbours, before an end."""
    first, end, _ = values
    count = sig.return_type.count
    left = end - first
    is_whole = left >= count
    left = is_whole.select(count, left).cast(I32, "i")
    return LaneIndex(first, left, is_whole)


def _some_lanes(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """Fewer neighbours, before an end."""
    return _first_lanes(builder, sig, values)._replace(is_whole=builder.number(I1, 0, "b"))


define("some_lanes", _first_lanes_rule, is_mapped=False)(_some_lanes)


def _masked(verb: str, type: Type, asks: bool = False) -> Callable[[Module, str], None]:
    """Write the function that loads or stores lanes of which not all may be there.

    Accesses with a mask are slow where they cross a cache line: those of all lanes have none. They
    are slower by a factor of hundreds where a page was never written, even if the mask is empty:
    lanes that flags leave out may be far from the array.

    Args:
        verb: "load" or "store".
        type: The type of the lanes.
        asks: Whether a load has a mask of its own, and with an empty one does not take place;
            others are given how many of the first lanes are there.
    """

    def write(module: Module, symbol: str) -> None:
        is_load = verb == "load"
        arguments = [POINTER, vector_of(I1, type.count) if asks else I32, I1, type]
        result = type if is_load else VOID
        builder = Builder(module, Function(symbol, result, arguments, "alwaysinline nounwind"))
        pointer, there, is_whole, value = builder.arguments("pbbu" if asks else "pibu")
        every, some, end = map(builder.new_block, ("all", "some", "end"))
        if asks:
            few = builder.new_block("few")
            builder.fork(is_whole, every, few, module.likely)
            builder.begin(few)
            builder.fork(there.packed() == 0, end, some)
        else:
            if not llvm_backend.has_masks(verb, type.width):
                is_whole = there == type.count  # pieces are less than a vector
            builder.fork(is_whole, every, some, module.likely)
        builder.begin(every)
        if is_load:
            whole = builder.let(f"load {type}, {pointer}, align {type.nbytes}", type, "u")
        else:
            builder.do(f"store {value}, {pointer}, align {type.nbytes}")
        builder.jump(end)
        builder.begin(some)
        found = _some_of(verb, pointer, there, value)
        last = builder.block
        builder.jump(end)
        builder.begin(end)
        if is_load:
            arms = [(whole, every), (found, last), *([(value, few)] if asks else [])]
            builder.end(f"ret {builder.phi(arms)}")
        else:
            builder.end("ret void")

    return write


def _some_of(verb: str, pointer: Emitted, there: Emitted, value: Emitted) -> Emitted:
    """Load or store lanes where flags are set, or so many of the first ones.

    Where processors have no fast instruction for it, LLVM would write a branch for each lane, or
    call a long program.
    """
    builder, type = pointer.builder, value.type
    if llvm_backend.has_masks(verb, type.width):
        size, name = builder.number(I32, type.nbytes), f"llvm.masked.{verb}.{type.suffix}.p0"
        flags = there if there.kind == "b" else there.before(type)
        if verb == "load":
            return builder.call(name, type, "u", pointer, size, flags, value)
        builder.run(name, value, pointer, size, flags)
        return value
    if there.kind != "b":
        if verb == "load":
            return load_first(pointer, there, type)
        store_first(pointer, there, value)
        return value
    room = builder.room(type)
    builder.do(f"store {value}, {room}")

    def move(index: Emitted) -> None:
        places = [builder.moved(x, index, type.element) for x in (pointer, room)]
        text = f"load {type.element}, {places[0]}, align {type.nbytes}"
        element = builder.let(text, type.element, "u")
        builder.do(f"store {element}, {places[1]}, align {type.nbytes}")

    inside, end = builder.new_block("some"), builder.new_block("end")
    bits = there.packed()
    builder.fork(bits != 0, inside, end)
    builder.begin(inside)
    builder.for_each_bit(bits, move)
    builder.jump(end)
    builder.begin(end)
    return builder.let(f"load {type}, {room}", type, "u")


def _load_some(
    address: Emitted, given: Emitted, is_whole: Emitted, other: Emitted, scope: int, asks: bool
) -> Emitted:
    """Lanes of which not all may be there, or none if ``asks``; of the others, another value."""
    builder, type = address.builder, other.type
    symbol = f"load.{'where.' * asks}{type.suffix}"
    builder.module.helper(symbol, _masked("load", type, asks))
    access = builder.module.access(scope)
    return builder.call(symbol, type, "u", address, given, is_whole, other, hints=access)


def _of_pairs(index: LaneIndex) -> LaneIndex:
    """The index of the parts of complex lanes."""
    left = None if index.left is None else index.left << 1
    return LaneIndex(index.first << 1, left, index.is_whole)


def _paired(value: Complex) -> Emitted:
    """A vector of complex numbers as it is in memory, where parts lie in turn."""
    n = value.lanes
    return value.re.mixed(value.im, (k for i in range(n) for k in (i, n + i)))


def _unpaired(value: Emitted) -> Complex:
    """The inverse of `_paired`."""
    return Complex(*(value.mixed(value, range(k, value.lanes, 2)) for k in (0, 1)))


def _load_lanes(builder: Builder, pointer: Any, index: LaneIndex, t: Any, scope: int) -> Any:
    if t.element in PARTS:
        parts, pairs = vector(PARTS[t.element], 2 * t.count), _of_pairs(index)
        return _unpaired(_load_lanes(builder, pointer, pairs, parts, scope))
    element = memory_type(t.element)
    type = vector_of(element, t.count)
    address = builder.moved(pointer, index.first, element, INBOUNDS)
    if index.left is None:
        return read(builder, address, type, t, scope)
    nothing = builder.number(type, 0, "u")
    return given(_load_some(address, index.left, index.is_whole, nothing, scope, False), t)


def _store_lanes(
    builder: Builder, pointer: Any, index: LaneIndex, value: Emitted | Complex, scope: int
) -> None:
    if isinstance(value, Complex):
        index, value = _of_pairs(index), _paired(value)
    value = kept(value)
    address = builder.moved(pointer, index.first, value.element, INBOUNDS)
    if index.left is None:
        write(builder, value, address, scope)
        return
    symbol = f"store.{value.suffix}"
    builder.module.helper(symbol, _masked("store", value.type))
    access = builder.module.access(scope)
    builder.run(symbol, address, index.left, index.is_whole, value, hints=access)


@_define("load_where", "element", "pointer", "lanes", "flags", "element", "scope")
def _load_where(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """Neighbours where flags are set, and another value elsewhere, where nothing is read."""
    pointer, index, flags, other, _ = values
    t, scope = sig.return_type, sig.args[-1].literal_value
    first, flags = index.first, flags if index.left is None else flags & index.mask(llvm_type(t))
    is_whole = flags.packed() == -1
    if isinstance(other, Complex):
        flags = flags.mixed(flags, (i for i in range(t.count) for _ in "ri"))
        first, other = first << 1, _paired(other)
    other = kept(other)
    address = builder.moved(pointer, first, other.element, INBOUNDS)
    found = _load_some(address, flags, is_whole, other, scope, True)
    if t.element in PARTS:
        return _unpaired(given(found, PARTS[t.element]))
    return given(found, t)


@_define("load_apart", "element", "pointer", "lanes", "number", "scope")
def _load_apart(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """Elements a few steps apart: all in between is loaded, and what is meant taken out of it."""
    pointer, index = values[:2]
    t, step, scope = sig.return_type, *(x.literal_value for x in sig.args[2:])
    access = builder.module.access(scope)
    there = builder.number(I32, t.count), builder.number(I1, 1)
    there = there if index.left is None else (index.left, index.is_whole)

    def load(type: Type, parts: int, part: int) -> Emitted:
        place = index.first * (parts * step) + part
        address = builder.moved(pointer, place, type.element, INBOUNDS)
        symbol = loader(builder.module, type, parts * step)
        return builder.call(symbol, type, "u", address, *there, hints=access)

    return _by_parts(t, load)


def _by_parts(t: Any, load: Callable[[Type, int, int], Emitted]) -> Any:
    """Lanes of numbers, or of both parts of complex ones: ``load(type, parts, part)``."""
    if t.element not in PARTS:
        return given(load(vector_of(memory_type(t.element), t.count), 1, 0), t)
    part = vector(PARTS[t.element], t.count)
    type = vector_of(memory_type(part.element), t.count)
    return Complex(*(given(load(type, 2, k), part) for k in (0, 1)))


@_define("load_each", "element", "pointer", "bytes", "scope")
def _load_each(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """An element for each lane, so many bytes from the pointer."""
    pointer, nbytes, _ = values
    access = builder.module.access(sig.args[-1].literal_value)

    def load(type: Type, parts: int, part: int) -> Emitted:
        place = builder.moved(pointer, builder.number(I64, part), type.element)
        return _each(builder, place, nbytes, type, access)

    return _by_parts(sig.return_type, load)


@_define("load_run", "element", "pointer", "bytes", "number", "scope")
def _load_run(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """An element for each lane, as `load_each`: at once where lanes follow each other, or go back.

    The number, 1 or -1, says which of both is to be expected.
    """
    pointer, nbytes = values[:2]
    t, step, scope = sig.return_type, *(x.literal_value for x in sig.args[2:])
    access = builder.module.access(scope)

    def load(type: Type, parts: int, part: int) -> Emitted:
        place = builder.moved(pointer, builder.number(I64, part), type.element)
        if parts > 1:  # their parts follow each other in turn
            return _each(builder, place, nbytes, type, access)
        symbol = f"run{step}.{type.suffix}"
        builder.module.helper(symbol, _run(type, step))
        return builder.call(symbol, type, "u", place, nbytes, hints=access)

    return _by_parts(t, load)


def _run(type: Type, step: int) -> Callable[[Module, str], None]:
    """Write the function that loads a vector of elements that may be neighbours."""

    def write(module: Module, symbol: str) -> None:
        kind = vector_of(I64, type.count)
        function = Function(symbol, type, [POINTER, kind], "alwaysinline nounwind")
        builder = Builder(module, function)
        pointer, nbytes = builder.arguments("pi")
        every, some = builder.new_block("all"), builder.new_block("some")
        lanes = LaneIndex(builder.number(I64, 0)).numbers(type.count)
        expected = nbytes.lane(0).splat(type.count) + lanes * (step * type.element.nbytes)
        builder.fork((nbytes == expected).packed() == -1, every, some, module.likely)
        builder.begin(every)
        place = builder.moved(pointer, nbytes.lane(0 if step > 0 else type.count - 1), I8)
        found = builder.let(f"load {type}, {place}, align {type.element.nbytes}", type, "u")
        order = range(type.count)
        builder.end(f"ret {found.mixed(found, order[::step])}")
        builder.begin(some)
        builder.end(f"ret {_each(builder, pointer, nbytes, type, '')}")

    return write


def _each(builder: Builder, pointer: Any, nbytes: Any, type: Type, access: str) -> Emitted:
    """A vector, of which each element is loaded by itself, so many bytes from a pointer."""
    found = Emitted(builder, "poison", type, "u")
    for k in range(type.count):
        place = builder.moved(pointer, nbytes.lane(k), I8)
        text = f"load {type.element}, {place}, align {type.element.nbytes}{access}"
        found = found.with_lane(k, builder.let(text, type.element, "u"))
    return found


@_define("store_each", "none", "pointer", "lanes", "bytes", "element", "scope")
def _store_each(builder: Builder, sig: Signature, values: list[Any]) -> None:
    """An element of each lane, so many bytes from the pointer; of the first for those not there."""
    pointer, index, nbytes, value, _ = values
    parts = [value.re, value.im] if isinstance(value, Complex) else [kept(value)]
    if index.left is not None:
        mask = index.mask(nbytes.type)
        nbytes, *parts = (mask.select(x, x.lane(0).splat(x.lanes)) for x in (nbytes, *parts))
    for k in range(parts[0].lanes):
        place = builder.moved(pointer, nbytes.lane(k), I8)
        for part, x in enumerate(parts):
            address = builder.moved(place, builder.number(I64, part), x.element)
            write(builder, x.lane(k), address, sig.args[-1].literal_value)


@_define("turn", "none", "pointer", "pointer", "integer", "number", "scope", "scope")
def _turn(builder: Builder, sig: Signature, values: list[Any]) -> None:
    """Transpose a square tile: rows a number of bytes apart, into memory without gaps."""
    type = vector_of(memory_type(sig.args[0].element), sig.args[3].literal_value)
    symbol = f"turn.{type.suffix}"
    builder.module.helper(symbol, _turned(type))
    builder.run(symbol, *values[:3])


def _turned(type: Type) -> Callable[[Module, str], None]:
    """Write the function that transposes a tile: ``(to, from, step)``.

    It does so block by block, whose rows are registers: of a whole tile, of which the registers do
    not hold one, LLVM took five times as long to write a program that was slower.
    """
    element, count = type.element, type.count
    _, features = llvm_backend.cpu()
    size = min(machine.registers(features)[0] // element.nbytes, count)
    block = vector_of(element, size)

    def write(module: Module, symbol: str) -> None:
        arguments = [POINTER, POINTER, I64]
        builder = Builder(module, Function(symbol, VOID, arguments, "noinline nounwind"))
        target, source, step = builder.arguments("ppi")

        def turn(i: Emitted, j: Emitted) -> None:
            place = builder.moved(builder.moved(source, i * size * step, I8), j * size, element)
            rows = []
            for k in range(size):
                address = builder.moved(place, step * k, I8)
                rows.append(
                    builder.let(f"load {block}, {address}, align {type.nbytes}", block, "u")
                )
            place = builder.moved(target, j * (size * count) + i * size, element)
            for k, row in enumerate(_exchanged(rows)):
                address = builder.moved(place, builder.number(I64, k * count), element)
                builder.do(f"store {row}, {address}, align {type.nbytes}")

        n_blocks = builder.number(I64, count // size)
        if size < count:
            builder.in_turn(n_blocks, lambda i: builder.in_turn(n_blocks, lambda j: turn(i, j)))
        else:
            turn(*[builder.number(I64, 0)] * 2)
        builder.end("ret void")

    return write


def _exchanged(rows: list[Emitted]) -> list[Emitted]:
    """The columns of as many rows: in each stage they exchange every other block of theirs.

    There are log2(count) of them (Eklundh, 1972).
    """
    rows, count, length = [*rows], len(rows), 1
    while length < count:
        for k in (k for k in range(count) if not k & length):
            low, high = rows[k], rows[k + length]
            rows[k], rows[k + length] = (
                low.mixed(high, m) for m in exchanged_blocks(count, length)
            )
        length *= 2
    return rows


def exchanged_blocks(count: int, length: int) -> tuple[list[int], list[int]]:
    """The elements of both rows after the exchange, counted through both of them before."""
    places = range(count)
    low = [i if not i & length else count + i - length for i in places]
    return low, [i + length if not i & length else count + i for i in places]


# Scopes of memory.
@_define("scope", "none", "scope")
def _scope(builder: Builder, sig: Signature, values: list[Any]) -> None:
    """A scope begins, as it does each time that this is reached."""
    builder.do(builder.module.begun(sig.args[0].literal_value))


@_define("prefetch", "none", "pointer", "number")
def _prefetch(builder: Builder, sig: Signature, values: list[Any]) -> None:
    """Let the line of memory that has an address come into the nearest cache."""
    hints = [builder.number(I32, x) for x in (sig.args[1].literal_value, 3, 1)]
    builder.run("llvm.prefetch.p0", values[0], *hints)


# The arguments `slots` and `args`, and words elsewhere.
def _slot(builder: Builder, slots: Emitted, number: int) -> Emitted:
    return builder.moved(slots, builder.number(I64, number), I64, INBOUNDS)


@_define("look", "integer", "slots")
def _look(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """The error code to stop with, or 0: what a long loop asks for now and then.

    The call touches no array, so that what LLVM knows of memory holds across it.
    """
    (slots,) = values
    access = builder.module.access(sig.args[0].name)
    place = _slot(builder, slots, LOOK_SLOT)
    function = builder.let(f"load ptr, {place}, align 8{access}", POINTER, "p")
    return builder.let(f"call i64 {function.text}({slots}){access}", I64, "i")


@_define("room", "integer", "number")
def _room(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """The address of some bytes on the stack, which the kernel has from its beginning on."""
    rooms = builder.function.rooms
    rooms.append(sig.args[0].literal_value)
    return builder.let(f"ptrtoint ptr %r{len(rooms) - 1} to i64", I64, "i")


# Scratch memory of threads, whose lanes the bits of a slot stand for.
@_define("claim", "integer", "slots")
def _claim(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """Take a lane that is free; there are as many as threads."""
    place, end = _slot(builder, values[0], LANES_SLOT), builder.new_block("claimed")
    look = builder.new_block("look")
    builder.jump(look)
    builder.begin(look)
    taken = builder.let(f"load atomic i64, {place} monotonic, align 8", I64, "u")
    lane = (~taken).intrinsic("cttz", builder.number(I1, 0))
    claimed = taken | (builder.number(I64, 1, "u") << lane)
    pair = f"cmpxchg {place}, {taken}, {claimed} acquire monotonic"
    swapped = builder.let(pair, I64, "u")
    is_ours = builder.let(f"extractvalue {{ i64, i1 }} {swapped.text}, 1", I1, "b")
    builder.fork(is_ours, end, look)
    builder.begin(end)
    return lane.of_kind("i")


@_define("release", "none", "slots", "integer")
def _release(builder: Builder, sig: Signature, values: list[Any]) -> None:
    """Give a lane back."""
    place = _slot(builder, values[0], LANES_SLOT)
    others = ~(builder.number(I64, 1) << values[1])
    builder.let(f"atomicrmw and {place}, {others} release", I64, "i")


def _table(t: Any) -> Any:
    """The type of a table of words: an argument, or the address of one."""
    return t if isinstance(t, Words) else INT64


def _word_place(builder: Builder, sig: Signature, values: list[Any]) -> tuple[Emitted, Any]:
    """The address of a word of a table, and its scope, if it is an argument."""
    table, index, *_ = values
    if sig.args[0] is INT64:
        return builder.moved(pointer_to(table), index, I64), None
    return builder.moved(table, index, I64, INBOUNDS), sig.args[0].name


def _word_rule(args: Any) -> Signature:
    expect(len(args) == 2, "read_word(table, k)", args)
    return signature(INT64, _table(args[0]), INT64)


@define("read_word", _word_rule, is_pure=False)
def _read_word(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    address, scope = _word_place(builder, sig, values)
    module = builder.module
    hints = module.always_same if sig.args[0] is ARGS else ""
    hints += module.access(scope) if scope else ""
    return builder.let(f"load i64, {address}, align 8{hints}", I64, "i")


def _write_rule(args: Any) -> Signature:
    expect(len(args) == 3 and args[0] is not ARGS, "write_word(table, k, word)", args)
    return signature(NONE, _table(args[0]), INT64, INT64)


@define("write_word", _write_rule, is_pure=False)
def _write_word(builder: Builder, sig: Signature, values: list[Any]) -> None:
    address, scope = _word_place(builder, sig, values)
    access = builder.module.access(scope) if scope else ""
    builder.do(f"store {values[2]}, {address}, align 8{access}")
