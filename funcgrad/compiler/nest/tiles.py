"""Transpositions in tiles: arrays that lie across are transposed in registers, tile by tile.

What is read across, a cache line for each element, is read as a square tile of rows instead, which
is transposed, kept on the stack, and read along the row like everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from funcgrad.compiler.loops.language import Expression, Variable, call, equal
from funcgrad.compiler.machine import MOST_TRANSPOSED, SHORT_AXIS, VECTOR_BYTES
from funcgrad.compiler.nest.iteration import Access
from funcgrad.compiler.nest.kernel import word_of
from funcgrad.compiler.nest.nodes import Guard, Pick
from funcgrad.compiler.nest.plan import Plan


class TransposedTiles:
    """The tiles of a kernel.

    Attributes:
        buffers: The pointers to tiles of what lies across, where they can be transposed.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.source = plan.source
        self.buffers: dict[Access, Variable] = {}

    def declare(self) -> None:
        """Memory for the tiles."""
        for k, access in enumerate(self._transposed()):
            n = VECTOR_BYTES // access.dtype.itemsize
            memory = call("room", n * n * access.dtype.itemsize)
            pointer = call(f"ptr_{word_of(access.dtype)}", memory)
            self.buffers[access] = self.source.assign(f"q{k}", pointer)

    def _scope(self, k: int) -> int:
        """The scope of a tile, behind those of accesses."""
        return 1 + len(self.plan.accesses) + k

    def _transposed(self) -> list[Access]:
        """Accesses that lie across, in memory where tiles can be transposed in registers.

        Everything else lies side by side along the row.
        """
        plan = self.plan
        if not plan.is_crossed or any(isinstance(n, Guard | Pick) for n in plan.nodes):
            return []
        across, along = plan.space.loops[-2:]
        written = set(plan.outs.values())
        homes = {access.value for access in written}
        found: list[Access] = []
        for access in plan.accesses.values():
            near, apart = across.steps[access], along.steps[access]
            if access.dtype.kind == "c" or (access in written and apart != 1):
                return []
            if apart in (0, 1):
                continue
            is_near = access.neighbour is not None or abs(apart) <= SHORT_AXIS
            if abs(near) != 1 or is_near or access.value in homes:
                return []
            if access.dtype.itemsize not in (4, 8):
                return []
            found.append(access)
        sizes = {access.dtype.itemsize for access in found}
        return found if len(sizes) == 1 and len(found) <= MOST_TRANSPOSED else []

    def write(
        self,
        hoist: Callable[[], dict[Access, Variable]],
        statements: Callable[[dict[Access, Variable]], None],
    ) -> None:
        """The loops: those over whole tiles, and element by element over what is left."""
        source, space = self.source, self.plan.space
        *others, across, along = space.loops
        n = VECTOR_BYTES // next(iter(self.buffers)).dtype.itemsize
        # Short axes, whose lengths the kernel knows, may have no whole tile.
        is_tiled = min(across.size, along.size) >= min(n, SHORT_AXIS + 1)
        with (
            space.inside(others),
            source.blocks("t", 0, along.end, n) as (t, edge),
            source.blocks("s", across.begin, across.end, n) as (s, last),
        ):
            if is_tiled:
                with source.when(equal(edge - t, n) & equal(last - s, n)):
                    self._transpose(n, t, s, last)
                    with space.over(across, (s, last)):
                        suffix = space.lanes(call("lanes", t, n))
                        with space.in_lanes(suffix):
                            statements(self._row(n, s, last, suffix))
            with (
                source.otherwise() if is_tiled else nullcontext(),
                space.over(across, (s, last)),
            ):
                loaded = hoist()
                # Vectors, too, of one element, so that LLVM need not look for any.
                with source.loop(along.variable, t, edge) as index:
                    suffix = space.lanes(call("lanes", index, 1))
                    with space.in_lanes(suffix):
                        statements(loaded)

    def _transpose(self, n: int, t: Expression, s: Expression, last: Expression) -> None:
        """Transpose the tiles that begin at some indices of both loops."""
        across, along = self.plan.space.loops[-2:]
        for k, (access, buffer) in enumerate(self.buffers.items()):
            apart, near = (self.plan.space.step(access, loop) for loop in (across, along))
            # Where the other loop runs backwards, a tile begins at its last element.
            first = s if across.steps[access] == 1 else last - 1
            place = call("offset", access.pointer, first * apart + t * near)
            scopes = access.scope, self._scope(k)
            self.source.evaluate(call("turn", buffer, place, near, n, *scopes))

    def _row(self, n: int, s: Expression, last: Expression, suffix: str) -> dict[Access, Variable]:
        """A row of each transposed tile."""
        source, across = self.source, self.plan.space.loops[-2]
        loaded = {}
        for k, (access, buffer) in enumerate(self.buffers.items()):
            line = across.index - s if across.steps[access] == 1 else last - 1 - across.index
            at = source.assign(f"at{k}", call("lanes", line * n, n))
            load = call("load", buffer, at, self._scope(k))
            loaded[access] = source.assign(f"x{access.name[1:]}{suffix}", load)
        return loaded
