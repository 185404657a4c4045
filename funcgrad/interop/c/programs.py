"""Functions with all of their plans, as exported files have them.

`Program : function, signature, sizes -> pieces`. What is the same in every language: the plans of
all sizes, their numbers, messages, and a function of Python that takes and gives arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from funcgrad.interop.c.calling import compiled, parameters
from funcgrad.interop.c.plan import Kernels, PlanWriter
from funcgrad.interop.c.signature import Signature
from funcgrad.interop.c.sizes import ALIGNMENT, Piece, Pieces, Plan, Point

_FUNCTION = """\
ARGUMENTS, RESULTS = [{arguments}], [{results}]


def shapes({names}):
    return [{argument_shapes}], [{result_shapes}]


def {name}(*args{keywords}):
    if len(args) != len(ARGUMENTS):
        raise TypeError(f"expected {{len(ARGUMENTS)}} arguments, got {{len(args)}}")
    arrays = [np.asarray(x, t, order="C") for x, t in zip(args, ARGUMENTS)]
{found}    arguments, results = shapes({names})
    given = [x.shape for x in arrays]
    if given != arguments:
        raise ValueError(f"expected the shapes {{arguments}}, got {{given}}")
    arrays += [np.empty(shape, t) for t, shape in zip(RESULTS, results)]
{call}    found = tuple(arrays[len(ARGUMENTS) :])
    return found if len(found) != 1 else found[0]
"""


class Program:
    """A function for some sizes. A subclass writes its file.

    Args:
        fun: The function.
        signature: Its types.
        name: Of the exported function.
        what: How messages call it.
        sizes: For every name of a size, intervals of sizes.

    Attributes:
        kinds: Classes for the kernels and the plans of the language.
        kernels: Kernels of all plans.
        pieces: Sizes with their plans.
        nbytes: Scratch memory that a call needs.
    """

    kinds: ClassVar[tuple[type[Kernels], type[PlanWriter]]]

    def __init__(
        self,
        fun: Callable[..., Any],
        signature: Signature,
        name: str,
        what: str,
        sizes: Mapping[str, Sequence[tuple[int, int]]],
    ) -> None:
        self.signature = signature
        self.name = name
        self.sizes = sizes
        self.parameters = parameters(fun, len(signature.arguments))
        kernels, writer = self.kinds
        self.kernels = kernels(not sizes)
        names = signature.names

        def plan_of(point: Point) -> Plan:
            known = dict(zip(names, point, strict=True))
            executable = compiled(fun, signature, known, what)
            nbytes = executable.memory.arena_bytes
            text = writer(executable, self.kernels, what)
            return Plan(text, nbytes + ALIGNMENT * bool(nbytes))

        pieces = Pieces(names, plan_of, what)
        boxes = [*itertools.product(*(sizes[key] for key in names))]
        for box in boxes:
            pieces.check(box)
        self.pieces = [piece for box in boxes for piece in pieces.cover(box)]
        self.nbytes = max(piece.nbytes(tuple(x for _, x in piece.box)) for piece in self.pieces)

    @property
    def n_slots(self) -> int:
        """Slots that a call needs."""
        return max(1, *(piece.plan.text.memory.n_slots for piece in self.pieces))

    @property
    def messages(self) -> list[str]:
        """The meaning of a status, by its number."""
        return ["", "no scratch memory", "a step of the program has failed", *self.kernels.messages]

    @property
    def names(self) -> list[str]:
        """Expressions in C for the sizes of arrays."""
        return [f"size_{name}" for name in self.signature.names]

    def groups(self) -> list[list[Piece]]:
        """Pieces whose plans differ by numbers alone."""
        groups: dict[Any, list[Piece]] = {}
        for piece in self.pieces:
            groups.setdefault((piece.plan.key, piece.formulas, piece.ranges), []).append(piece)
        return [*groups.values()]

    def function(self, call: str) -> str:
        """The function of Python that takes and gives arrays.

        Args: call: Statements that compute the results in ``arrays``.
        """
        signature = self.signature
        dtypes, shapes = [], []
        for types in (signature.leaves, signature.outs):
            dtypes.append(", ".join(f'"{t.dtype.name}"' for t in types))
            shapes.append(", ".join(f"({''.join(f'{size}, ' for size in t.sizes)})" for t in types))
        places = {
            size: f"arrays[{k}].shape[{axis}]"
            for k, t in reversed([*enumerate(signature.leaves)])
            for axis, size in enumerate(t.sizes)
            if size.isidentifier()
        }
        names = signature.names
        found = [f"    {name} = {places[name]}\n" for name in names if name in places]
        keywords = [name for name in names if name not in places]
        return _FUNCTION.format(
            name=self.name,
            arguments=dtypes[0],
            results=dtypes[1],
            argument_shapes=shapes[0],
            result_shapes=shapes[1],
            names=", ".join(names),
            found="".join(found),
            keywords="".join([", *", *(f", {name}" for name in keywords)]) if keywords else "",
            call=call,
        )


class ExportedModule:
    """A program as a file of Python, for NumPy and Numba. Made by `export`.

    Attributes:
        name: Of the function, and of the module.
        signature: The types of arguments and results.
        source: The module. Its function takes all arrays of the arguments, and gives all arrays of
            the results.
    """

    def __init__(self, name: str, signature: Signature, source: str) -> None:
        self.name = name
        self.signature = signature
        self.source = source

    def __repr__(self) -> str:
        return f"<exported {self.name}: {self.signature}>"

    def write(self, folder: str | Path) -> Path:
        """Write the module into a folder, and return its path."""
        path = Path(folder) / f"{self.name}.py"
        path.write_text(self.source)
        return path
