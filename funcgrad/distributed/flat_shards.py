"""Arrays of which every process has a part: pytrees of them, and functions of them.

A `FlatShard` is the part of one process of an array that is raveled and cut into equal parts, one
for every lane of a named axis. Functions that were written for whole arrays, such as optimisers,
run on shards by an interpreter that asks primitives for their forms: what works on corresponding
elements works on those of the part, a fold is one of the parts' folds, and an array is put together
only where an operation needs all of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad import lowering as forms
from funcgrad.ad_checkpoint import checkpoint, checkpoint_name
from funcgrad.base.pytree import GetAttrKey, register_pytree_node, tree_flatten, tree_unflatten
from funcgrad.base.ranks import Ranks
from funcgrad.checkpoint_policies import save_anything_except_these_names
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.axes import axes_in_scope
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Program, axis_names_of, evaluate
from funcgrad.core.trace import Trace, Tracer, current_trace, run_under, using_trace
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.dividing import Mask
from funcgrad.higher_order.staging import located
from funcgrad.primitives.indexing import Gather, ScatterSet
from funcgrad.primitives.objects import flatten_values
from funcgrad.primitives.shape import reshape, shape_of
from funcgrad.primitives.windows import neutral
from funcgrad.transforms.programs import stage_closed

LEAST = 1024
"""Arrays of fewer elements stay whole by default: a message costs more than their memory."""

UNSHARDED = "unsharded"
"""The name, as of `checkpoint_name`, of what `unshard` gives."""


class FlatShard:
    """The part of one process of an array: its elements from ``index * length`` on, in C order.

    It is a pytree whose only child is the part. Elements behind the end of the array are there so
    that all parts are equally long, and do not count.

    Attributes:
        part: The elements, ``(length,)``; or ``(n, length)`` for a stack of ``n`` such arrays, each
            of which is divided by itself.
        shape: Shape of the whole array, or of each in the stack.

    Example:
        >>> with fg.distributed.spmd(axis_name="data"):  # one process has all elements
        ...     fg.distributed.flat_shard(np.arange(4).reshape(2, 2), least=1)
        FlatShard([0 1 2 3], shape=(2, 2))
    """

    __slots__ = ("part", "shape")

    def __init__(self, part: Any, shape: tuple[int, ...]) -> None:
        self.part = part
        self.shape = shape

    def __repr__(self) -> str:
        return f"FlatShard({self.part}, shape={self.shape})"


register_pytree_node(
    FlatShard,
    lambda shard: ((shard.part,), shard.shape),
    lambda shape, children: FlatShard(children[0], shape),
    lambda shard: (((GetAttrKey("part"), shard.part),), shard.shape),
)


def flat_shard(
    tree: Any, axis_name: Hashable = None, *, least: int = LEAST, stacked: bool = False
) -> Any:
    """Keep one process's part of arrays that all processes have.

    Args:
        tree: A pytree of arrays, equal in all processes; possibly traced.
        axis_name: The axis along which they are divided; by default the innermost one of processes
            around the call. Axes of `vmap` and `shard_map` need their names.
        least: Arrays of fewer elements stay whole.
        stacked: Whether the first axis of each array counts parameters of layers, over which
            `lax.scan` goes: then those of each layer are divided by themselves.
    Returns: A pytree with a `FlatShard` for each larger array.

    Example:
        >>> with fg.distributed.spmd(axis_name="data"):
        ...     shards = fg.distributed.flat_shard({"w": np.ones((40, 50)), "b": np.ones(3)})
        ...     shards["w"].part.shape, shards["b"].shape
        ((2000,), (3,))
    """
    axis = AxisOfShards(axis_name, least, "flat_shard")
    leaves, treedef = flatten_values(tree)
    return tree_unflatten(treedef, [axis.shard(x, int(stacked)) for x in leaves])


def unshard(tree: Any, axis_name: Hashable = None) -> Any:
    """Whole arrays of the parts of all processes: the converse of `flat_shard`.

    It may be called in functions that are differentiated: the gradient with respect to a part is
    the sum of the gradients of all processes with respect to its elements, of which every process
    gets its own (a reduce-scatter). Within `checkpoint` whole arrays are not kept for the backward
    pass but gathered again, and so are they by `fully_sharded`.

    Args:
        tree: A pytree, in which a `FlatShard` becomes an array, and everything else stays.
        axis_name: As of `flat_shard`.
    Returns: A pytree of whole arrays.

    Example:
        >>> with fg.distributed.spmd(axis_name="data"):
        ...     shard = fg.distributed.flat_shard(np.arange(2048.0).reshape(2, 1024))
        ...     fg.distributed.unshard(shard).shape
        (2, 1024)
    """
    axis = AxisOfShards(axis_name, 0, "unshard")

    def whole(x: Any) -> Any:
        return checkpoint_name(axis.whole(x.part, _whole_shape(x)), UNSHARDED) if is_shard(x) else x

    return map_shards(whole, tree)


def fully_sharded(f: Callable[..., Any], axis_name: Hashable = None) -> Callable[..., Any]:
    """Gather the parameters of a layer for the time that it needs them.

    The layer forgets them when it has run. For the backward pass they are gathered again, and
    nothing else is computed again.

    Args:
        f: A function of parameters and other arguments, such as a layer of a network.
        axis_name: As of `flat_shard`.
    Returns: A function with shards for the arrays of the first argument.

    Example:
        >>> layer = fg.distributed.fully_sharded(lambda w, x: np.tanh(x @ w))
        >>> with fg.distributed.spmd(axis_name="data"):
        ...     w = fg.distributed.flat_shard(np.ones((64, 32)))
        ...     layer(w, np.ones((2, 64))).shape
        (2, 32)
    """

    def run(own: Any, *args: Any, **kwargs: Any) -> Any:
        return f(unshard(own, axis_name), *args, **kwargs)

    return checkpoint(run, policy=save_anything_except_these_names(UNSHARDED))


def is_shard(x: Any) -> bool:
    """Whether something is a `FlatShard`."""
    return type(x) is FlatShard


def _whole_shape(shard: FlatShard) -> tuple[int, ...]:
    """Shape of an array, with the axes of a stack."""
    return (*shape_of(shard.part)[:-1], *shard.shape)


def map_shards(function: Callable[[Any], Any], tree: Any) -> Any:
    """Replace leaves, among which shards count."""
    leaves, treedef = flatten_shards(tree)
    return tree_unflatten(treedef, [function(x) for x in leaves])


def flatten_shards(tree: Any) -> tuple[list[Any], Any]:
    """Leaves of a pytree, among which shards count, and its structure without them."""
    return tree_flatten(tree, is_leaf=is_shard)


class AxisOfShards:
    """The axis along which arrays are divided.

    Args:
        name: Its name; `None` for the innermost axis of processes.
        least: Arrays of fewer elements stay whole.
        what: What messages call the function that asks.
    Raises: ArgumentError: If no axis is named, and there is none of processes.
    """

    def __init__(self, name: Hashable, least: int, what: str) -> None:
        if name is None:
            processes = [axis for axis, _ in axes_in_scope() if isinstance(axis, Ranks)]
            if not processes:
                raise located(
                    ArgumentError,
                    f"{what}: there is no axis of processes around the call.",
                    "Call it inside distributed.spmd(axis_name=...), or pass axis_name.",
                )
            name = processes[-1]
        self.name = name
        self.least = least
        self.size = lax.axis_size(name)

    def divides(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape is divided."""
        return len(shape) > 0 and prod(shape) >= max(self.least, 1)

    def length(self, shape: tuple[int, ...]) -> int:
        """The number of elements of a part."""
        return -(-prod(shape) // self.size)

    def shard(self, x: Any, rows: int = 0) -> Any:
        """The part of an array that all have, or all of it if it, or each row, is small."""
        shape = shape_of(x)[rows:]
        return FlatShard(self.part(x, rows), shape) if self.divides(shape) else x

    def padded(self, x: Any, rows: int = 0) -> Any:
        """The elements of an array, and zeros up to the end of the last part.

        Args:
            x: The array.
            rows: How many axes are of a stack of arrays, each of which is divided by itself.
        """
        stack, n = shape_of(x)[:rows], prod(shape_of(x)[rows:])
        flat = reshape(x, (*stack, n))
        missing = self.size * self.length((n,)) - n
        config = [(0, 0, 0)] * rows + [(0, missing, 0)]
        return lax.pad(flat, aval_of(flat).dtype.type(0), config) if missing else flat

    def part(self, x: Any, rows: int = 0) -> Any:
        """The part of an array that all have; arguments as of `padded`."""
        stack, length = shape_of(x)[:rows], self.length(shape_of(x)[rows:])
        starts = (*[np.int64(0)] * rows, self._start(length))
        part = lax.dynamic_slice(self.padded(x, rows), starts, (*stack, length))
        # A view would keep the memory of the whole array.
        return part.copy() if isinstance(part, np.ndarray) else part

    def whole(self, part: Any, shape: tuple[int, ...]) -> Any:
        """The array of the parts of all, of any number of stacked arrays."""
        stack = shape_of(part)[:-1]
        flat = lax.all_gather(part, self.name, axis=len(stack), tiled=True)
        wanted = (*stack, prod(shape[len(stack) :]))
        if shape_of(flat) != wanted:
            flat = lax.slice(flat, (0,) * len(wanted), wanted)
        return reshape(flat, shape)

    def rows(self, part: Any, shape: tuple[int, ...]) -> Any:
        """Parts of the rows of an array, by its part; one row at a time is whole."""
        n = prod(shape[1:])
        # Elements that others have are neutral in sums, even of zeros.
        read = Gather((0,), "fill", aval_of(part).dtype.type(-0.0))

        def row(_: None, i: Any) -> tuple[None, Any]:
            own = read.bind(part, self._places(i, n, part))
            return None, self.part(lax.psum(own, self.name))

        return lax.scan(row, None, np.arange(shape[0]))[1]

    def joined(self, parts: Any, shape: tuple[int, ...]) -> Any:
        """The part of an array by parts of its rows; one row at a time is whole."""
        n = prod(shape[1:])
        write = ScatterSet((0,), "fill")

        def row(part: Any, pair: Any) -> tuple[Any, None]:
            i, own = pair
            return write.bind(part, self.whole(own, (n,)), self._places(i, n, part)), None

        start = np.zeros(self.length(shape), aval_of(parts).dtype)
        return lax.scan(row, start, (np.arange(shape[0]), parts))[0]

    def _places(self, i: Any, n: int, part: Any) -> Any:
        """Places of the elements of a row in a part, behind its end if others have them."""
        (length,) = shape_of(part)
        first = lax.sub(lax.mul(i, np.int64(n)), self._start(length))
        places = lax.add(lax.iota(np.int64, n), first)
        return lax.select(lax.lt(places, np.int64(0)), lax.full_like(places, length), places)

    def part_of_sum(self, x: Any) -> Any:
        """The part of the sum of arrays that differ."""
        return lax.psum_scatter(self.padded(x), self.name, tiled=True)

    def counted(self, part: Any, shape: tuple[int, ...], otherwise: Any) -> Any:
        """A part with a number in place of elements behind the end of the array."""
        length = shape_of(part)[-1]
        size = prod(shape[len(shape_of(part)) - 1 :])
        if self.size * length == size:
            return part
        places = lax.add(lax.iota(np.int64, length), self._start(length))
        counts = lax.lt(places, np.int64(size))
        if len(shape_of(part)) > 1:
            counts = lax.broadcast_in_dim(counts, shape_of(part), (len(shape_of(part)) - 1,))
        return lax.select(counts, part, lax.full_like(part, otherwise))

    def _start(self, length: int) -> Any:
        return lax.mul(
            lax.convert_element_type(lax.axis_index(self.name), np.int64), np.int64(length)
        )


class ShardTracer(Tracer):
    """An array of which the parent trace has the part of this process.

    Attributes:
        aval: Of the whole array.
        part: The part. Its axes but the last one are axes of the array, whose rows along them are
            divided by themselves.
    """

    __slots__ = ("aval", "part")
    aval: ShapedArray

    def __init__(self, trace: ShardTrace, part: Any, aval: ShapedArray) -> None:
        self.owner = trace
        self.part = part
        self.aval = aval


Stacked = tuple[tuple[tuple[int, ...], int], ...]


class ShardTrace(Trace):
    """Applies operations on whole arrays to the parts of this process.

    Args:
        parent: Receives the operations on parts.
        what: How messages call the function that runs.
        axis: The axis along which arrays are divided.
        stacked: Shapes of the arrays whose rows are divided by themselves, and how many axes their
            parts have. So do others of these shapes that leave the trace.
    """

    __slots__ = ("axis", "stacked")

    def __init__(self, parent: Trace, what: str, axis: AxisOfShards, stacked: Stacked) -> None:
        super().__init__(parent, what)
        self.axis = axis
        self.stacked = stacked

    def process(self, primitive: Primitive, args: tuple[Any, ...]) -> Any:
        assert self.parent is not None
        if not any(map(self._is_own, args)):
            return self.parent.process(primitive, args)
        avals = [aval_of(x) for x in args]
        rule = getattr(primitive, "divided", None)
        if rule is not None and not axis_names_of(primitive):
            with using_trace(self.parent):
                return rule(args, self)
        # Collectives over axes of `vmap` have no form: they are applied to whole arrays.
        form = None if axis_names_of(primitive) else primitive.lower(*avals)
        if isinstance(form, forms.Call):
            return evaluate(form.program, args)
        with using_trace(self.parent):
            if not primitive.multiple_results:
                result = primitive.abstract_eval(*avals)
                part = self._of_parts(primitive, form, args, result)
                if part is not None:
                    return part
            return primitive.bind(*map(self.whole, args))

    def _is_own(self, x: Any) -> bool:
        return type(x) is ShardTracer and x.owner is self

    def _of_parts(
        self, primitive: Primitive, form: Any, args: tuple[Any, ...], result: ShapedArray
    ) -> Any:
        """The result of an operation that only needs parts; `None` for others."""
        if isinstance(form, forms.Pointwise):
            shapes = {shape_of(x) for x in args if shape_of(x)}
            if shapes == {result.shape}:
                (axes, *others) = set(filter(None, self.mask(args)))
                axes = self._axes(result.shape) if others else axes
                parts = [self._part_or_number(x, axes) for x in args]
                return self.wrap(primitive.bind(*parts), result)
        elif isinstance(form, forms.Reduction) and not result.shape:
            (x,) = args
            start = _neutral(form.init, x.aval.dtype)
            counted = self.axis.counted(x.part, x.shape, start)
            own = _folded(primitive, reshape(counted, (prod(shape_of(counted)),)))
            return _folded(primitive, lax.all_gather(own, self.axis.name))
        elif isinstance(form, forms.Scatter | forms.Replace):
            return self._written(primitive, form, args, result)
        elif self._is_own(args[0]) and result.shape:
            part = self._of_rows(primitive, form, args, result)
            return None if part is None else self.wrap(part, result)
        return None

    def _of_rows(
        self, primitive: Primitive, form: Any, args: tuple[Any, ...], result: ShapedArray
    ) -> Any:
        """The part of a result whose elements are those of whole rows, or of all in their order."""
        x, *places = args[0], *map(self.whole, args[1:])
        n, length = len(shape_of(x.part)) - 1, shape_of(x.part)[-1]
        front = result.shape[: len(result.shape) - len(x.shape) + n]
        has_rows = result.shape[len(front) :] == x.shape[n:] != ()
        if isinstance(form, forms.Reshape):
            if x.shape[:n] == result.shape[:n]:
                return x.part
            return reshape(x.part, (*front, length)) if has_rows else None
        if not has_rows or not n:
            return None
        if isinstance(form, forms.Lookup) and max(form.axes) < n:
            return primitive.bind(x.part, *places)
        if isinstance(form, forms.Window):
            starts = (*places[:n], np.int64(0))
            return lax.dynamic_slice(x.part, starts, (*front, length))
        if not isinstance(form, forms.Reindex) or form.axes != tuple(range(len(x.shape))):
            return None
        if min(form.steps) < 1 or any(form.starts[n:]):
            return None
        rows = zip(form.starts, front, form.steps, strict=False)
        ends = (start + (many - 1) * step + 1 for start, many, step in rows)
        steps = (*form.steps[:n], 1)
        return lax.slice(x.part, (*form.starts[:n], 0), (*ends, length), steps)

    def _written(
        self, primitive: Primitive, form: Any, args: Sequence[Any], result: ShapedArray
    ) -> Any:
        """An array with other rows, each of which is divided by itself; `None` for other places."""
        x, updates, *places = args[0], args[1], *map(self.whole, args[2:])
        behind = len(shape_of(updates)) - len(result.shape)  # axes of places, without those written
        of_x, of_updates = self.mask((x, updates))
        n = max(of_x, of_updates - behind)
        if n < 2 or shape_of(updates)[n + behind - 1 :] != result.shape[n - 1 :]:
            return None
        if isinstance(form, forms.Scatter):
            if max(form.axes) >= n - 1:
                return None
        else:
            places = [*places[: n - 1], np.int64(0)]
        parts = self._part_or_number(x, n), self._part_or_number(updates, n + behind)
        return self.wrap(primitive.bind(*parts, *places), result)

    # The methods of `funcgrad.higher_order.dividing.Parts`, for rules of loops and branches.

    def mask(self, values: Sequence[Any]) -> Mask:
        return tuple(len(shape_of(x.part)) if self._is_own(x) else 0 for x in values)

    def program(
        self, program: Program, given: Mask, left: Mask | None = None, agrees: bool = False
    ) -> tuple[Program, Mask]:
        key = ("divided", self.axis.name, self.axis.least, self.stacked, given, left, agrees)
        return program.memo(key, lambda: self._program(program, given, left, agrees))

    def _program(
        self, program: Program, given: Mask, left: Mask | None, agrees: bool
    ) -> tuple[Program, Mask]:
        pairs = list(zip(program.in_avals, given, strict=True))
        found: list[Mask] = []

        def run(*values: Any) -> list[Any]:
            trace = ShardTrace(current_trace(), self.what, self.axis, self.stacked)
            inputs = [
                trace.wrap(x, a) if axes else x for x, (a, axes) in zip(values, pairs, strict=True)
            ]
            outs = run_under(trace, lambda: evaluate(program, inputs))
            found.append(trace.mask(outs) if left is None else left)
            results = trace.as_given(outs, found[-1])
            return [trace.agreed(x) for x in results] if agrees else results

        avals = [a.update(shape=self._shape(a.shape, axes)) if axes else a for a, axes in pairs]
        return stage_closed(run, avals, program.name), found[-1]

    def _shape(self, shape: tuple[int, ...], axes: int) -> tuple[int, ...]:
        """Shape of a shard that stands for an array of that rank."""
        return (*shape[: axes - 1], self.axis.length(shape[axes - 1 :]))

    def rows(self, x: Any) -> Any:
        if not self._is_own(x) or len(shape_of(x.part)) > 1:
            return x
        if len(x.shape) == 1 or x.aval.dtype == np.bool_:
            return self.whole(x)
        return self.wrap(self.axis.rows(x.part, x.shape), x.aval)

    def agreed(self, x: Any) -> Any:
        dtype = aval_of(x).dtype
        largest = lax.pmax(lax.convert_element_type(x, np.int64), self.axis.name)
        return lax.convert_element_type(largest, dtype)

    def apply(
        self, whole: Primitive, divided: Primitive, args: Sequence[Any], given: Mask, left: Mask
    ) -> list[Any]:
        outs = divided.bind(*self.as_given(args, given))
        avals = whole.abstract_eval(*map(aval_of, args))
        rows = zip(outs, avals, left, strict=True)
        return [self.wrap(x, a) if axes else x for x, a, axes in rows]

    def as_given(self, values: Sequence[Any], mask: Mask) -> list[Any]:
        """Values for the parent trace: parts of some, and others whole."""
        rows = zip(values, mask, strict=True)
        return [self._part_or_number(x, axes) if axes else self.whole(x) for x, axes in rows]

    def _part_or_number(self, x: Any, axes: int) -> Any:
        """A number, or a part with so many axes."""
        if not shape_of(x):
            return x
        if not self._is_own(x):
            return self.axis.part(x, axes - 1)
        found = len(shape_of(x.part))
        if found == axes:
            return x.part
        if (found, axes) == (2, 1) and x.aval.dtype != np.bool_:
            return self.axis.joined(x.part, x.shape)
        if (found, axes) == (1, 2) and x.aval.dtype != np.bool_:
            return self.axis.rows(x.part, x.shape)
        return self.axis.part(self.whole(x), axes - 1)

    def wrap(self, part: Any, aval: ShapedArray) -> ShardTracer:
        """A whole array of which there is a part."""
        return ShardTracer(self, part, aval)

    def whole(self, x: Any) -> Any:
        """The value for the parent trace of an operand."""
        return self.axis.whole(x.part, x.shape) if self._is_own(x) else x

    def shard(self, x: Any) -> Any:
        """The shard of a result, or all of it if it is small."""
        axes = self._axes(shape_of(x))
        if axes == 1 and not self.axis.divides(shape_of(x)):
            return self.whole(x)
        return FlatShard(self._part_or_number(x, axes), shape_of(x)[axes - 1 :])

    def _axes(self, shape: tuple[int, ...]) -> int:
        """How many axes parts of arrays of this shape have."""
        return dict(self.stacked).get(shape, 1)


def _folded(primitive: Any, part: Any) -> Any:
    """Fold over the one axis of a flat array."""
    return type(primitive)((0,)).bind(part)


def _neutral(init: str, dtype: Any) -> Any:
    return neutral(init, dtype) if "{" in init else dtype.type(ast.literal_eval(init))


def on_shards(function: Callable[..., Any], axis: AxisOfShards, what: str) -> Callable[..., Any]:
    """A function of shards, by one of whole arrays.

    Args:
        function: Of pytrees of whole arrays.
        axis: The axis along which arrays are divided.
        what: How messages call the function.
    Returns: A function of pytrees with shards for whole arrays. Its results have shards for all
        arrays that are large enough.
    """

    def run(*args: Any) -> Any:
        leaves, treedef = flatten_shards(tree_unflatten(*flatten_values(args)[::-1]))
        axes = {_whole_shape(x): len(shape_of(x.part)) for x in leaves if is_shard(x)}
        stacked = tuple((shape, n) for shape, n in axes.items() if n > 1)
        trace = ShardTrace(current_trace(), what, axis, stacked)
        wrapped = [
            trace.wrap(x.part, aval_of(x.part).update(shape=_whole_shape(x))) if is_shard(x) else x
            for x in leaves
        ]
        outs, tree = run_under(
            trace, lambda: flatten_values(function(*tree_unflatten(treedef, wrapped)))
        )
        return tree_unflatten(tree, [trace.shard(x) for x in outs])

    return run
