"""Words of memory: addresses, loads and stores, of elements and of lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.compiler import machine
from funcgrad.compiler.abi import LANES_SLOT, LOOK_SLOT
from funcgrad.compiler.native import llvm_backend
from funcgrad.compiler.native.apart import loader
from funcgrad.compiler.native.complexes import KINDS, Complex, memory_type
from funcgrad.compiler.native.lanes import LaneIndex
from funcgrad.compiler.native.llvm import (
    I1,
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    Block,
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
    signature,
    vector,
)
from funcgrad.compiler.native.words import define, expect

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
        types["bytes"] = vector(INT64, count)
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
def _masked(verb: str, type: Type, is_inner: bool = False) -> Callable[[Module, str], None]:
    """Write the function that loads or stores lanes of which not all may be there.

    Accesses with a mask are slow where they cross a cache line: those of all lanes have none. They
    are slower by a factor of hundreds where a page was never written, even if the mask is empty:
    lanes that flags leave out may be far from the array.

    Args:
        verb: "load" or "store".
        type: The type of the lanes.
        is_inner: Whether lanes may be missing before those that are there. If none is there, the
            load does not take place.
    """

    def write(module: Module, symbol: str) -> None:
        is_load = verb == "load"
        arguments = [POINTER, I32, I1, type, *[I32] * is_inner]
        result = type if is_load else VOID
        builder = Builder(module, Function(symbol, result, arguments, "alwaysinline nounwind"))
        pointer, left, is_whole, value, *begin = builder.arguments("pibui"[: len(arguments)])
        every, some, end = map(builder.new_block, ("all", "some", "end"))
        has_masks = llvm_backend.has_masks(verb, type.width)
        arms: list[tuple[Emitted, Block]] = []
        if not (has_masks or is_inner):
            is_whole = left == type.count  # pieces are less than a vector
        if has_masks or not is_inner:
            builder.fork(is_whole, every, some, module.likely)
        else:
            few = builder.new_block("few")
            builder.fork(is_whole, every, few, module.likely)
            builder.begin(few)
            builder.fork(begin[0] < left, some, end)
            arms = [(value, few)]
        builder.begin(every)
        if is_load:
            whole = builder.let(f"load {type}, {pointer}, align {type.nbytes}", type, "u")
        else:
            builder.do(f"store {value}, {pointer}, align {type.nbytes}")
        builder.jump(end)
        builder.begin(some)
        found = _some_of(verb, pointer, left, value, *begin)
        last = builder.block
        builder.jump(end)
        builder.begin(end)
        if is_load:
            builder.end(f"ret {builder.phi([(whole, every), (found, last), *arms])}")
        else:
            builder.end("ret void")

    return write


def _some_of(
    verb: str, pointer: Emitted, left: Emitted, value: Emitted, begin: Emitted | None = None
) -> Emitted:
    """Load or store so many of the first lanes, or lanes between two.

    Where processors have no fast instruction for it, LLVM would write a branch for each lane, or
    call a long program.
    """
    builder, type = pointer.builder, value.type
    if llvm_backend.has_masks(verb, type.width):
        flags = left.before(type, begin)
        if verb == "load":
            place = pointer if begin is None else _within(pointer, begin, left, type)
            return _load_masked(place, flags, value)
        size = builder.number(I32, type.nbytes)
        builder.run(f"llvm.masked.store.{type.suffix}.p0", value, pointer, size, flags)
        return value
    if begin is None:
        if verb == "load":
            return load_first(pointer, left, type)
        store_first(pointer, left, value)
        return value
    room, begin = builder.room(type), begin.cast(I64, "i")
    builder.do(f"store {value}, {room}")

    def move(index: Emitted) -> None:
        places = [builder.moved(x, begin + index, type.element) for x in (pointer, room)]
        text = f"load {type.element}, {places[0]}, align {type.nbytes}"
        element = builder.let(text, type.element, "u")
        builder.do(f"store {element}, {places[1]}, align {type.nbytes}")

    builder.in_turn(left.cast(I64, "i") - begin, move)
    return builder.let(f"load {type}, {room}", type, "u")


def _load_some(address: Emitted, index: LaneIndex, type: Type, scope: int) -> Emitted:
    """Lanes of which not all may be there; the others are zeros."""
    builder, symbol = address.builder, f"load.{type.suffix}"
    builder.module.helper(symbol, _masked("load", type))
    given = address, index.left, index.is_whole, builder.number(type, 0, "u")
    return builder.call(symbol, type, "u", *given, hints=builder.module.access(scope))


def _load_inner(
    address: Emitted, index: LaneIndex, other: Emitted, scope: int, is_shared: bool
) -> Emitted:
    """Lanes of which some or none may be there; the others are those of another value.

    A mask that several loads share takes less time than a branch for each.
    """
    builder, type = address.builder, other.type
    begin = builder.number(I32, 0) if index.begin is None else index.begin
    access = builder.module.access(scope)
    if is_shared and llvm_backend.has_masks("load", type.width):
        given = _within(address, begin, index.left, type), index.mask(type), other
        return _load_masked(*given, hints=access)
    symbol = f"load.inner.{type.suffix}"
    builder.module.helper(symbol, _masked("load", type, True))
    arguments = address, index.left, index.is_whole, other, begin
    return builder.call(symbol, type, "u", *arguments, hints=access)


def _within(pointer: Emitted, begin: Emitted, left: Emitted, type: Type) -> Emitted:
    """A pointer to lanes, or of none to memory that is there."""
    return (begin < left).select(pointer, pointer.builder.room(type))


def _load_masked(pointer: Emitted, flags: Emitted, other: Emitted, hints: str = "") -> Emitted:
    """Lanes where flags are set, by an instruction; of the others, another value."""
    builder, type = pointer.builder, other.type
    size, name = builder.number(I32, type.nbytes), f"llvm.masked.load.{type.suffix}.p0"
    return builder.call(name, type, "u", pointer, size, flags, other, hints=hints)


def _of_pairs(index: LaneIndex) -> LaneIndex:
    """The index of the parts of complex lanes."""
    left, begin = (x if x is None else x << 1 for x in (index.left, index.begin))
    return LaneIndex(index.first << 1, left, index.is_whole, begin)


def _paired(value: Complex) -> Emitted:
    """A vector of complex numbers as it is in memory, where parts lie in turn."""
    n = value.lanes
    return value.re.mixed(value.im, (k for i in range(n) for k in (i, n + i)))


def _unpaired(value: Emitted) -> Complex:
    """The inverse of `_paired`."""
    return Complex(*(value.mixed(value, range(k, value.lanes, 2)) for k in (0, 1)))


def _load_lanes(
    builder: Builder,
    pointer: Any,
    index: LaneIndex,
    t: Any,
    scope: int,
    other: Any = None,
    is_shared: bool = False,
) -> Any:
    """Load neighbours; lanes that are not there are those of another value, or zeros."""
    if t.element in PARTS:
        parts, pairs = vector(PARTS[t.element], 2 * t.count), _of_pairs(index)
        other = other if other is None else _paired(other)
        return _unpaired(_load_lanes(builder, pointer, pairs, parts, scope, other, is_shared))
    element = memory_type(t.element)
    type = vector_of(element, t.count)
    address = builder.moved(pointer, index.first, element, INBOUNDS)
    if index.left is None:
        return read(builder, address, type, t, scope)
    if other is None:
        return given(_load_some(address, index, type, scope), t)
    return given(_load_inner(address, index, kept(other), scope, is_shared), t)


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


@_define("load_where", "element", "pointer", "lanes", "element", "number", "scope")
def _load_where(builder: Builder, sig: Signature, values: list[Any]) -> Any:
    """Neighbours where lanes are there, and another value elsewhere, where nothing is read.

    The number says how many loads take the same lanes: several share a mask.
    """
    pointer, index, other = values[:3]
    n_loads, scope = (x.literal_value for x in sig.args[3:])
    return _load_lanes(builder, pointer, index, sig.return_type, scope, other, n_loads > 1)


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
