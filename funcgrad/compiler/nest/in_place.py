"""Results in the memory of what nobody needs any more.

Donated inputs, arrays of which a part changes, and what a loop carries: where each element of the
next one needs only the same element of this one, there are no two copies that change places, and
half of the memory stays in the caches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from funcgrad.compiler.machine import CACHES, KERNEL_NODES, SEVERAL, VECTOR_BYTES
from funcgrad.compiler.nest import nodes
from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.layout import Shape, Uniform, Value, View, contiguous_strides, whole
from funcgrad.compiler.nest.registers import is_small
from funcgrad.compiler.nest.unswitch import keeps_elements

NOTHING: Mapping[Value, Value] = {}
Changes = Callable[[nodes.Node], list[tuple[Value, Value]]]


def read_first(graph: nodes.Graph, groups: Sequence[Group]) -> list[Group]:
    """Groups in an order in which arrays are read before others change them.

    The derivative of a step that reads one element of an array and replaces another one does so
    with the cotangent of that array, in the opposite order: all of it would be copied every time.
    """
    order = [*groups]
    home = {node: group for group in groups for node in group.nodes}
    position = {group: i for i, group in enumerate(groups)}
    readers = nodes.readers_of(home)
    for group in groups:
        for changed, _ in _changed_by(group):
            others = {home[reader] for reader in readers[changed]} - {group}
            first, end = position[group], max(map(position.__getitem__, others), default=-1) + 1
            if first < end <= first + KERNEL_NODES:
                order[first:end] = _put_off(order[first:end], others)
                position.update((order[i], i) for i in range(first, end))
    return order


def _put_off(groups: list[Group], readers: Iterable[Group]) -> list[Group]:
    """The groups with the first one, and what depends on it, behind readers that do not."""
    early: list[Group] = []
    late: list[Group] = []
    made: set[Value] = set()
    has_effect = False
    for group in groups:
        is_effectful = any(node.is_effectful for node in group.nodes)
        read = {value for node in group.nodes for value in nodes.values_read(node)}
        if late and made.isdisjoint(read) and not (has_effect and is_effectful):
            early.append(group)
            continue
        late.append(group)
        made.update(out for node in group.nodes for out in node.outs)
        has_effect |= is_effectful
    return groups if set(late).intersection(readers) else early + late


def reuse_inputs(graph: nodes.Graph, groups: Sequence[Group], donated: Sequence[bool]) -> None:
    """Let outputs replace donated inputs of their type that nothing needs any more."""
    free: dict[tuple[Shape, Any], list[Value]] = {}
    for value, given in zip(graph.inputs, donated, strict=False):
        if given:
            free.setdefault((value.shape, value.dtype), []).append(value)
    home = {node: i for i, group in enumerate(groups) for node in group.nodes}
    readers = nodes.readers_of(home)
    changes = _changed_once()
    shapes = graph.out_shapes or [out.shape for out in graph.outputs]
    for out, shape in zip(graph.outputs, shapes, strict=True):
        i = home[out.maker]
        candidates = free.get((shape, out.dtype), [])
        changed = [value for value, made in changes(out.maker) if made is out]
        if changed:
            candidates = [value for value in candidates if value in changed]
        elif not isinstance(out.maker, nodes.Point):
            continue
        for value in candidates:
            others = [reader for reader in readers[value] if not changed or reader is not out.maker]
            if _is_done_with(value, i, home, others, groups):
                out.home = value
                free[shape, out.dtype].remove(value)
                break


def _is_done_with(
    value: Value,
    i: int,
    home: Mapping[nodes.Node, int],
    readers: Iterable[nodes.Node],
    groups: Sequence[Group],
) -> bool:
    """Whether an element of a value is read by nobody once group ``i`` has written one there."""
    return all(
        home[reader] < i
        or (home[reader] == i and groups[i].nest is None and _reads_plainly(reader, value))
        for reader in readers
    )


def _reads_plainly(node: nodes.Node, value: Value) -> bool:
    """Whether a node reads a value only at the index that it computes, as what it writes."""
    plain = node.space, contiguous_strides(node.space), 0
    return all(
        (x.shape, x.strides, x.offset) == plain and not node.looks_around(k)
        for k, x in enumerate(node.operands)
        if isinstance(x, View) and x.value is value
    )


def _changed(node: nodes.Node) -> Iterator[tuple[Value, Value]]:
    """The arrays that a node changes where they are, if it reads them nowhere else, and into what.

    They have the type of what becomes of them.
    """
    if isinstance(node, nodes.Routine):
        found = node.replaced
        if isinstance(found, View) and found.is_whole and found.dtype == node.out.dtype:
            yield found.value, node.out
        for i, x in node.starts:
            memory = node.memory[i]
            if not isinstance(x, View) or not _becomes(x, memory) or memory.value not in node.outs:
                continue
            if [y.value for y in node.operands if isinstance(y, View)].count(x.value) == 1:
                yield x.value, memory.value
        return
    if isinstance(node, nodes.Loop):
        yield from _started_from(node)
        return
    if isinstance(node, nodes.Branch):
        yield from _given_up(node)
        return
    if not isinstance(node, nodes.Put | nodes.Copies):
        return
    if isinstance(node, nodes.Copies) and (
        node.is_fresh or not node.places or not node.places[0].is_whole
    ):
        return
    x, *others = node.operands
    if isinstance(x, Uniform) or not x.is_whole:
        return
    if not any(isinstance(y, View) and y.value is x.value for y in others):
        yield x.value, node.out


def _changed_by(group: Group) -> Iterator[tuple[Value, Value]]:
    """The same of all nodes of a group."""
    for node in group.nodes:
        yield from _changed(node)


def _changed_once() -> Changes:
    """`_changed`, found once for every node: loops and branches search all of their bodies."""
    return cache(lambda node: [*_changed(node)])


def _started_from(loop: nodes.Loop) -> Iterator[tuple[Value, Value]]:
    """Starts of loops, and results that may have the same memory.

    Those of loops of unknown length are written to by changes in place, or when the loop has ended;
    others take turns with another array unless every iteration changes a part of them.
    """
    read = Counter(x.value for x in loop.operands if isinstance(x, View))
    origins_of = _origins(loop.bodies[-1])
    for carry in loop.carries:
        start, following = carry.initial.outer, carry.next
        if carry.final is None or read[start] != 1 or is_small(start, SEVERAL):
            continue  # small ones have variables instead
        if loop.length is not None and (
            type(following.maker) is nodes.Point or carry.now not in origins_of(following)
        ):
            continue
        if _becomes(carry.start, whole(carry.final)):
            yield start, carry.final


def _given_up(branch: nodes.Branch) -> Iterator[tuple[Value, Value]]:
    """Arrays that every body changes where they are or leaves as they are, and into what."""
    around = {link.inner: link.outer for link in branch.links if link.inner.maker is None}
    read = Counter(x.value for x in branch.operands if isinstance(x, View))
    taken: set[Value] = set()
    searches = [(body, _origins(body)) for body in branch.bodies]
    for k, out in enumerate(branch.outs):
        if is_small(out, SEVERAL):
            continue  # small ones have variables instead
        origins = [origins_of(body.outputs[k]) for body, origins_of in searches]
        for now in (
            x for x in origins[0] if x in around and all(x in others for others in origins)
        ):
            value = around[now]
            is_free = read[value] == 1 and value not in taken
            if is_free and (value.shape, value.dtype) == (out.shape, out.dtype):
                taken.add(value)
                yield value, out
                break


def _origins(graph: nodes.Graph) -> Callable[[Value], list[Value]]:
    """A function that finds the inputs of a graph that become a result by changes in their memory.

    Other readers are done before: they read the same elements, or make something small.
    """
    readers = cache(lambda: nodes.readers_of(graph.nodes))
    changes = _changed_once()

    def is_left(x: Value, maker: nodes.Node) -> bool:
        most = math.prod(x.shape) // SEVERAL
        return all(
            node is maker
            or _reads_plainly(node, x)
            or all(math.prod(out.shape) <= most for out in node.outs)
            for node in readers()[x]
        )

    def origins_of(value: Value) -> list[Value]:
        while value.maker is not None:
            maker = value.maker
            if type(maker) is nodes.Point:
                read = dict.fromkeys(x.value for x in maker.operands if isinstance(x, View))
                return [
                    x
                    for x in read
                    if x.maker is None and _becomes(whole(x), whole(value))
                    if _reads_plainly(maker, x) and is_left(x, maker)
                ]
            found = [x for x, out in changes(maker) if out is value and is_left(x, maker)]
            if not found:
                return []
            value = found[0]
        return [value]

    return origins_of


def given_by(branch: nodes.Branch, graph: nodes.Graph) -> dict[Value, Value]:
    """The results of a body that are changed where an input is, each with this input.

    That is so where what is around the branch has given up the input, so that both have one memory.
    """
    around = {link.inner: link.outer for link in branch.links}
    origins_of = _origins(graph)
    found = {}
    for out in graph.outputs:
        for now in origins_of(out):
            if now in around and around[now].home is around[out].home:
                found[out] = now
    return found


def _read_a_copy(
    graph: nodes.Graph, groups: list[Group], value: Value, readers: Iterable[nodes.Node]
) -> None:
    """Let the readers of an array, which others write to in between, read a copy of it."""
    copy = nodes.Point((whole(value),), (Value(value.shape, value.dtype),), "{0}")
    for node in readers:
        node.operands = tuple(
            x.of(copy.out) if isinstance(x, View) and x.value is value else x for x in node.operands
        )
    copy.out.is_stored = True
    graph.nodes.insert(0, copy)
    groups.insert(0, Group(-1, copy))


def _becomes(operand: View, memory: View) -> bool:
    """Whether an array that starts as a copy of an operand may be the operand itself."""
    return (
        operand.is_whole
        and memory.is_whole
        and (operand.shape, operand.dtype) == (memory.shape, memory.dtype)
    )


def _ends_with_vectors(value: Value) -> bool:
    """Whether no row of an array ends within a vector.

    Otherwise a masked store would lie before the load of the next row, which waits for it.
    """
    return len(value.shape) < 2 or not value.shape[-1] * value.dtype.itemsize % VECTOR_BYTES


def change_in_place(
    graph: nodes.Graph,
    groups: list[Group],
    around: nodes.Loop | None = None,
    given: Mapping[Value, Value] = NOTHING,
) -> None:
    """Let arrays be changed where these are, if nothing needs them as they were.

    Args:
        graph: The graph.
        groups: Its groups, in the order in which they run.
        around: The loop of which it is the body: inputs that it carries may be written to.
        given: Results of the body of a branch that have the memory of an input, each with this one.
    """
    carries = () if around is None else around.carries
    replaced = {carry.now: carry.next for carry in carries if carry.final is not None}
    inputs, outputs = set(graph.inputs), set(graph.outputs)
    home = {node: i for i, group in enumerate(groups) for node in group.nodes}
    readers = nodes.readers_of(home)
    for out, now in given.items():
        out.home = now
    for i, group in reversed(list(enumerate(groups))):
        for changed, out in _changed_by(group):
            # A wait for the end of a routine reads nothing of its own.
            if any(
                home[reader] > i and getattr(reader, "begun_by", None) is not out.maker
                for reader in readers[changed]
            ):
                continue
            if changed.maker is None:
                is_free = changed is out.home or replaced.get(changed) is out.home
            else:
                is_kept = out.home in inputs and out.home not in given.values()
                is_free = changed not in outputs and not is_kept
            if is_free:
                changed.home = out.home
    for now in given.values():
        i = min(home[node] for node in home if any(out.home is now for out in node.outs))
        changing = {x for x, _ in _changed_by(groups[i])}
        others = [node for node in readers[now] if now not in changing or home[node] != i]
        if not _is_done_with(now, i, home, others, groups):
            _read_a_copy(graph, groups, now, readers[now])
    if around is None:
        return
    for carry in carries:
        is_given = carry.final is not None and carry.initial.outer.home is carry.final.home
        if is_given and around.length is not None and not carry.is_in_place:
            _read_a_copy(graph, groups, carry.now, readers[carry.now])
            carry.now.home = carry.next
    if around.length is None or around.length >= SEVERAL:  # a copy of the start would count
        _replace_elements(home, readers, groups, replaced, outputs, around.has_flags)


def _replace_elements(
    home: Mapping[nodes.Node, int],
    readers: Mapping[Value, list[nodes.Node]],
    groups: Sequence[Group],
    replaced: Mapping[Value, Value],
    outputs: Collection[Value],
    is_by_lane: bool,
) -> None:
    """Compute carried values of loops in place, where their old elements are.

    Lanes that stop one by one leave them there.
    """
    changes = _changed_once()
    used = {v for node in home for v in (*nodes.values_read(node), *node.outs) if v.is_stored}
    is_near = not is_by_lane and sum(value.nbytes for value in used) <= CACHES[1][0]
    for now, following in replaced.items():
        out = _before_changes(following, changes)
        if math.prod(now.shape) <= SEVERAL or not isinstance(out.maker, nodes.Point):
            continue  # these few have variables instead
        versions = _versions(now, out.maker, readers, home, changes)
        last = versions[-1]
        if is_near and not _ends_with_vectors(now) and not keeps_elements(out.maker, last):
            continue  # both stay in the cache anyway
        is_done = _is_done_with(last, home[out.maker], home, readers[last], groups)
        if is_done and not any(value in outputs for value in versions):
            for value in versions:
                value.home = following


def _versions(
    now: Value,
    node: nodes.Node,
    readers: Mapping[Value, list[nodes.Node]],
    home: Mapping[nodes.Node, int],
    changes: Changes,
) -> list[Value]:
    """A carried value, and what changes of parts make of it in its memory, until a node reads it.

    Each is read by others only before it is changed.
    """
    for value in nodes.values_read(node):
        versions = [value]
        while (maker := versions[0].maker) is not None:
            found = [x for x, y in changes(maker) if y is versions[0]]
            if not found or any(home[reader] > home[maker] for reader in readers[found[0]]):
                break
            versions.insert(0, found[0])
        if versions[0] is now:
            return versions
    return [now]


def _before_changes(value: Value, changes: Changes) -> Value:
    """The value of which another one is made by changes of parts, all in its memory."""
    while value.maker is not None:
        found = [x for x, y in changes(value.maker) if y is value and x.home is value.home]
        if not found:
            break
        value = found[0]
    return value
