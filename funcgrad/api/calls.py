"""Call paths: from the arguments of a jitted function to its results with little Python.

For every combination of argument types a function is written and compiled by Python that takes the
containers apart, hands the addresses of the arrays to the executor, which checks their types, and
puts the results together. Whatever does not agree gives `MISS`, and the general path decides.

The text of these functions holds no names and values of users: keys, types and static values are
constants that it refers to by number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad.api.number_calls import NumberCall, is_usable, rows_of
from funcgrad.base import environment
from funcgrad.base.exact import IS_COMPARED, exact_key
from funcgrad.base.pytree import PyTreeDef, tree_structure
from funcgrad.base.records import dataclass
from funcgrad.base.tree_code import MISS, TreeWriter
from funcgrad.compiler.abi import FIRST_SLOT
from funcgrad.compiler.runtime import executable as executables
from funcgrad.compiler.runtime.executable import Executable
from funcgrad.observers.captures import Captures

_DOUBLES = frozenset((float, np.float64))
_MANY = 8
"""From so many numbers on, a call with nothing else is left to a native function."""
_FEW = 2
"""Up to so many numbers are quicker written and read one by one."""

ARE_ON = environment.is_on("FUNCGRAD_CALL_PATHS")
"""Whether such functions are written."""

CallPath = Callable[[tuple[Any, ...]], Any]


@dataclass(frozen=True)
class OfKind:
    """Arrays of a class of their own, which a call path takes and gives.

    Args:
        kind: The class. Its instances have the attribute ``weak_type``, of which a path takes
            those values that the arguments have for which it is written.
        dtypes: For every result its dtype; ``None`` if it is an ndarray, as what an object holds.
        is_weak: For every result whether it is weak.
    """

    kind: type[Any]
    dtypes: tuple[np.dtype[Any] | None, ...]
    is_weak: tuple[bool, ...]


def call_path(
    executable: Executable,
    n_args: int,
    statics: Mapping[int, Any],
    trees: list[PyTreeDef],
    leaves: list[Any],
    out_tree: PyTreeDef,
    around: Captures | None = None,
    of_kind: OfKind | None = None,
) -> CallPath:
    """The call path for arguments like these.

    Args:
        executable: What to run.
        n_args: Number of positional arguments.
        statics: Static arguments by position.
        trees: Structure of every other argument.
        leaves: Their leaves, in order: arrays, or scalars.
        out_tree: Structure of the result.
        around: What the function reads around it; where that is to be looked at, it gives `MISS`.
        of_kind: The arrays that it takes and gives; ndarrays and NumPy's scalars by default.
    Returns: A function of the tuple of positional arguments.
    """
    writer = _Writer(executable, of_kind)
    if around is not None:
        writer.count_calls(around)
    if not (statics or of_kind) and writer.call_with_numbers(trees, leaves, out_tree):
        return writer.function("def call(args):", "call path")
    writer.unpack_arguments(n_args, statics, trees)
    writer.check_leaves(leaves)
    writer.run()
    writer.line(f"return {writer.put_together(out_tree, writer.results)}")
    return writer.function("def call(args):", "call path")


class _Writer(TreeWriter):
    def __init__(self, executable: Executable, of_kind: OfKind | None = None) -> None:
        super().__init__(ndarray=np.ndarray)
        self.executable = executable
        self.of_kind = of_kind
        self.leaves: list[str] = []
        self.results = [f"o{i}" for i in range(len(executable.out_types))]
        # Leaves that are numbers, which go into the frame's places for them.
        self.numbers: dict[int, str] = {}

    def count_calls(self, around: Captures) -> None:
        name = self.constant(around)
        self.unless(f"{name}.left > 0")
        self.line(f"{name}.left -= 1")

    # Arguments.

    def unpack_arguments(
        self, n_args: int, statics: Mapping[int, Any], trees: list[PyTreeDef]
    ) -> None:
        self.unless(f"len(args) == {n_args}")
        names = [self.variable() for _ in range(n_args)]
        if names:
            self.line(f"{', '.join(names)}, = args")
        for i, value in statics.items():
            known = self.constant(value)
            kind = self.constant(type(value))
            same = f"type({names[i]}) is {kind} and {names[i]} == {known}"
            if type(value) not in IS_COMPARED:
                exact, form = self.constant(exact_key), self.constant(exact_key(value))
                same = f"type({names[i]}) is {kind} and {exact}({names[i]}) == {form}"
            self.unless(f"{names[i]} is {known} or {same}")
        dynamic = [name for i, name in enumerate(names) if i not in statics]
        self.leaves = self.take_apart(dynamic, trees)

    # Numbers alone.

    def call_with_numbers(
        self, trees: list[PyTreeDef], leaves: list[Any], out_tree: PyTreeDef
    ) -> bool:
        """Have everything done by one native function, if it can and is worth it."""
        executable = self.executable
        if not executable.is_native or len(leaves) < _MANY or not is_usable():
            return False
        places = executable.numbers.places
        if not _DOUBLES.issuperset(map(type, leaves)) or len(places) != executable.n_objects:
            return False
        n = len(leaves)
        fresh = iter(range(n, executable.n_objects))
        results = [next(fresh) if k is None else k for k in executable.sources]
        arguments = tree_structure(tuple(tree.unflatten([0.0] * tree.num_leaves) for tree in trees))
        given = rows_of(arguments, list(map(type, leaves)), [places[i] for i in range(n)])
        made = rows_of(out_tree, [np.float64] * len(results), [places[k] for k in results])
        if given is None or made is None:
            return False
        objects = [places[k] for k in range(executable.n_objects)]
        call = NumberCall(given, made, objects, executable.table_address, MISS)
        name = self.constant(call)
        kind = self.constant(out_tree.kind or np.float64)
        give_back = f"{self.constant(executable.frames.append)}(frame)"
        self.line(f"frame = {self.constant(executable.take_frame)}()")
        self.line(
            f"found = {name}.function(args, {call.address}, frame.address, frame.numbers_address)"
        )
        self.line(f"if type(found) is {kind}:")
        self.line(f"    {give_back}")
        self.line("    return found")
        self.line("if found is not MISS:")
        self.line(f"    error = {self.constant(executable.explain)}(found, frame)")
        self.line(f"    {give_back}")
        self.line("    if error is None: return MISS")
        self.line("    raise error")
        self.line(give_back)
        self.line("return MISS")
        return True

    def check_leaves(self, leaves: list[Any]) -> None:
        """Convert scalars; arrays are checked by the executor, or here if it is not alone."""
        types = self.executable.in_types
        places = self.executable.numbers.places if self.executable.is_one_step else {}
        rows = enumerate(zip(self.leaves, leaves, types, strict=True))
        for i, (name, leaf, (shape, dtype)) in rows:
            if self.of_kind is not None and type(leaf) is self.of_kind.kind:
                kind = self.constant(self.of_kind.kind)
                weak = f"{'' if leaf.weak_type else 'not '}{name}.weak_type"
                self.unless(f"type({name}) is {kind} and {weak}")
                self.line(f"{name} = {self.constant(np.asarray)}({name})")
            elif type(leaf) is not np.ndarray:
                self.unless(f"type({name}) is {self.constant(type(leaf))}")
                if i in places and isinstance(leaf, float):
                    self.numbers[i] = name
                    continue
                if type(leaf) is int:
                    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
                    self.unless(f"{low} <= {name} <= {high}")
                self.line(f"{name} = {self.constant(np.array)}({name}, {self.constant(dtype)})")
                continue
            if not self.executable.is_one_step:
                self.unless(
                    f"type({name}) is ndarray and {name}.shape == {self.constant(shape)} "
                    f"and {name}.dtype == {self.constant(dtype)}"
                )

    # Running.

    def run(self) -> None:
        if self.executable.is_one_step:
            self._run_one_step()
        else:
            call = f"{self.constant(self.executable)}({', '.join(self.leaves)})"
            self.line(f"{', '.join(self.results)}, = {call}" if self.results else call)
            self._give(set(self.results), set())

    def _run_one_step(self) -> None:
        executable = self.executable
        makers: dict[Any, str] = {}
        places = executable.numbers.places
        objects: list[str | None] = [
            None if i in self.numbers else name for i, name in enumerate(self.leaves)
        ]
        found: dict[int, str] = {}  # results in places of numbers, by the number of the object
        for name, (shape, dtype), source in zip(
            self.results, executable.out_types, executable.sources, strict=True
        ):
            if source in self.numbers:
                found[source] = name
            elif source is not None:
                self.line(f"{name} = {self.leaves[source]}")
            elif len(objects) in places:
                found[len(objects)] = name
                objects.append(None)
            else:
                objects.append(name)
                make = executables.maker_of(shape, dtype)
                if make not in makers:
                    makers[make] = self.constant(make)
                empty = makers[make]
                self.line(f"{name} = {empty}({self.constant(shape)}, {self.constant(dtype)})")
        self._run_steps(objects)
        if len(found) > _FEW:
            names = (found.get(i, "_") for i in list(places)[executable.numbers.first_result :])
            self.line(f"{', '.join(names)}, = frame.results")
        else:
            for i, name in found.items():
                self.line(f"{name} = frame.numbers[{places[i]}]")
        self.line(f"{self.constant(executable.frames.append)}(frame)")
        self._give(set(), set(found.values()))

    def _run_steps(self, objects: Sequence[str | None]) -> None:
        """Run the steps; once more where arguments only lie in another order than kernels read."""
        executable = self.executable
        places = executable.numbers.places
        arrays = [name for i, name in enumerate(self.leaves) if i not in self.numbers]
        # Results that are arguments with their memory are not to be copies.
        is_repeated = bool(arrays) and all(source is None for source in executable.sources)
        indent = "    " if is_repeated else ""
        if is_repeated:
            self.line("while True:")
        self.line(f"{indent}frame = {self.constant(executable.take_frame)}()")
        if len(self.numbers) > _FEW:
            inputs = list(places)[: executable.numbers.n_inputs]
            given = ", ".join(self.numbers.get(i, "0.0") for i in inputs)
            self.line(f"{indent}frame.pack_numbers(frame.numbers, 0, {given})")
        else:
            for i, name in self.numbers.items():
                self.line(f"{indent}frame.numbers[{places[i]}] = {name}")
        self.line(f"{indent}frame.pack(frame.slots, {8 * FIRST_SLOT}{_addresses(objects)})")
        self.line(
            f"{indent}code = {self.constant(executable.run)}"
            f"(frame.address, {executable.table_address}, {executable.n_objects})"
        )
        if is_repeated:
            self.line("    if not code: break")
        else:
            self.line("if code:")
        self.line(f"    error = {self.constant(executable.explain)}(code, frame)")
        self.line(f"    {self.constant(executable.frames.append)}(frame)")
        self.line("    if error is not None: raise error")
        if is_repeated:
            self.line(f"    found = {self.constant(_in_order)}({', '.join(arrays)})")
            self.line("    if found is None: return MISS")
            self.line(f"    {', '.join(arrays)}, = found")
        else:
            self.line("    return MISS")

    def _give(self, scalars: set[str], numbers: set[str]) -> None:
        """Make results of what was computed: scalars of arrays without axes, or arrays of a kind.

        Args:
            scalars: Results that are NumPy's scalars where they have no axes.
            numbers: Results that are Python's numbers.
        """
        rows = zip(self.results, self.executable.out_types, strict=True)
        for i, (name, (shape, own)) in enumerate(rows):
            dtype = None if self.of_kind is None else self.of_kind.dtypes[i]
            if self.of_kind is None or dtype is None:
                if shape == () and name not in scalars | numbers:
                    self.line(f"{name} = {name}[()]")
                continue
            made = name
            if own != dtype or (shape == () and name in scalars | numbers):
                made = f"{self.constant(np.asarray)}({name}, {self.constant(dtype)})"
            self.line(f"{name} = {made}.view({self.constant(self.of_kind.kind)})")
            if self.of_kind.is_weak[i]:
                self.line(f"{name}.weak_type = True")


def _in_order(*arrays: np.ndarray) -> list[np.ndarray] | None:
    """Arrays, those copied whose elements do not lie in order; ``None`` if all lie so."""
    lies_so = [type(x) is not np.ndarray or x.flags.c_contiguous for x in arrays]
    if all(lies_so):
        return None
    return [x if known else x.copy() for x, known in zip(arrays, lies_so, strict=True)]


def _addresses(objects: Sequence[str | None]) -> str:
    """Further arguments: addresses of named objects, and those of a frame's numbers."""
    found, k = "", 0
    while k < len(objects):
        name = objects[k]
        if name is not None:
            found += f", id({name})"
            k += 1
            continue
        end = next((i for i in range(k, len(objects)) if objects[i] is not None), len(objects))
        found += f", *frame.ids[{k}:{end}]" if end > k + 1 else f", frame.ids[{k}]"
        k = end
    return found
