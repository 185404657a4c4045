"""Compiled functions by address: for Numba's code, SciPy's callbacks and C.

The kernels of a program run from a table, as in every jitted call, but without any object of
Python: the function writes the addresses of its arguments into a block of words of its own, and
calls the executor. So it may be called from several threads at once.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import LowLevelCallable

from funcgrad.api.arguments import check_callable, name_of
from funcgrad.api.staging import StagedFunction
from funcgrad.compiler.abi import FIRST_SLOT
from funcgrad.compiler.runtime.kernel_store import executor_address
from funcgrad.errors import ArgumentError
from funcgrad.forking import cached_property
from funcgrad.higher_order.jit import executable_of

_TYPE = r"float64(?:\[\d+\])?"
_SIGNATURE = re.compile(rf"({_TYPE})\(({_TYPE}(?:,{_TYPE})*)\)")

_BODY = """\
    slots = words.copy()
    arena = np.empty(arena_bytes, np.uint8)
    start = arena.ctypes.data
    slots[arena_slot] = start + (64 - start % 64) % 64
{places}
    code = run(slots.ctypes.data, table, 0)
    kept = slots.size + arena.size  # Memory must live until here.
"""
_VALUE = "numbers[{n}] if code == 0 and kept > 0 else np.nan"


class CompiledFunction:
    """A compiled function of doubles that needs no Python. Made by `cfunc`.

    Attributes:
        name: Name of the function.
        signature: As it was given.
        prototype: The same in C; a vector as result is the last argument.
    """

    def __init__(self, fun: Callable[..., Any], signature: str) -> None:
        check_callable(fun, "cfunc")
        self.name = name_of(fun) if name_of(fun).isidentifier() else "function"
        self.signature = signature
        what = f"cfunc({self.name}, {signature!r})"
        self.result, self.arguments = _parse(signature, what)
        examples = tuple(np.zeros(() if n is None else n) for n in self.arguments)
        staged = StagedFunction(fun, examples, {}, what)
        got = [aval.strong() for aval in staged.program.out_avals]
        shape = () if self.result is None else (self.result,)
        if [(a.shape, a.dtype) for a in got] != [(shape, np.dtype(np.float64))]:
            raise ArgumentError(
                f"{what}: the function returns {', '.join(map(str, got)) or 'nothing'}, and the "
                f"signature says {signature.partition('(')[0]}."
            )
        # It holds what the code reads: tables and constants.
        self._executable = executable_of(staged.program, 1)
        if not self._executable.is_native:
            raise ArgumentError(
                f"{what}: the function has an operation that NumPy evaluates, which code without "
                "Python cannot call. jit(f).lower(*args).as_text() shows which."
            )
        if self._executable.memory.states:
            raise ArgumentError(
                f"{what}: the function has collectives that go on in the background, whose end "
                "code without Python cannot wait for when it is stopped."
            )
        self._frame = self._executable.take_frame()
        doubles = ["double" if n is None else "const double *" for n in self.arguments]
        self.prototype = (
            f"double {self.name}({', '.join(doubles)})"
            if self.result is None
            else f"void {self.name}({', '.join([*doubles, 'double *'])})"
        )

    def __repr__(self) -> str:
        return f"<compiled {self.prototype}>"

    @property
    def address(self) -> int:
        """Where the code of the prototype is. It lives as long as this object."""
        address: int = self._plain.address
        return address

    @cached_property
    def ctypes(self) -> Any:
        """The function for `ctypes`; Numba's code calls it where it is a global."""
        return self._owned(self._plain.ctypes)

    def low_level_callable(self, form: str = "plain") -> LowLevelCallable:
        """The function for SciPy.

        Args:
            form: How the function is called: ``"plain"``, as the prototype says, such as by `quad`
                with one argument; ``"quad"``, with the number of arguments and a pointer to them,
                by `quad` and `nquad` with several; ``"filter"``, by `scipy.ndimage.generic_filter`,
                for a function of one vector, the window.

        Returns:
            A `scipy.LowLevelCallable`.

        Raises:
            ArgumentError: If the function cannot be called in that form.
        """
        if form == "plain":
            return LowLevelCallable(self.ctypes)
        if form not in ("quad", "filter") or self.result is not None:
            raise ArgumentError(
                f"{self.name}: low_level_callable has the forms 'plain', and of functions whose "
                f"result is a number 'quad' and 'filter', got {form!r} for {self.prototype}."
            )
        if form == "filter" and (len(self.arguments) != 1 or self.arguments[0] is None):
            raise ArgumentError(
                f"{self.name}: a filter is a function of one vector, the window, not "
                f"{self.prototype}."
            )
        made = self._packed if form == "quad" else self._filter
        return LowLevelCallable(self._owned(made.ctypes))

    def _owned(self, function: Any) -> Any:
        """A function of `ctypes` that holds the memory which its code reads."""
        function.funcgrad = self
        return function

    @cached_property
    def _plain(self) -> Any:
        names = [f"x{i}" for i in range(len(self.arguments))]
        n = len(names)
        places = [f"numbers = np.empty({n + 1})"]
        for i, length in enumerate(self.arguments):
            if length is None:
                places.append(f"numbers[{i}] = x{i}")
                place = f"numbers.ctypes.data + {8 * i}"
            else:
                place = f"carray(x{i}, {length}).ctypes.data"
            places.append(f"slots[{FIRST_SLOT + i}] = {place}")
        kinds = ["double" if length is None else "CPointer(double)" for length in self.arguments]
        if self.result is None:
            places.append(f"slots[{FIRST_SLOT + n}] = numbers.ctypes.data + {8 * n}")
            return self._made("double", kinds, names, places, f"return {_VALUE.format(n=n)}")
        places.append(f"slots[{FIRST_SLOT + n}] = carray(out, {self.result}).ctypes.data")
        end = f"if code != 0 or kept < 0:\n        carray(out, {self.result})[:] = np.nan"
        return self._made("void", [*kinds, "CPointer(double)"], [*names, "out"], places, end)

    def _from_pointer(self) -> list[str]:
        """Statements that take all arguments from the vector ``x``."""
        sizes = [1 if length is None else length for length in self.arguments]
        starts = [8 * sum(sizes[:i]) for i in range(len(sizes))]
        n = len(sizes)
        return [
            "numbers = np.empty(1)",
            f"base = carray(x, {sum(sizes)}).ctypes.data",
            *(f"slots[{FIRST_SLOT + i}] = base + {start}" for i, start in enumerate(starts)),
            f"slots[{FIRST_SLOT + n}] = numbers.ctypes.data",
        ]

    @cached_property
    def _packed(self) -> Any:
        end = f"return {_VALUE.format(n=0)}"
        kinds = ["int32", "CPointer(double)"]
        return self._made("double", kinds, ["count", "x"], self._from_pointer(), end)

    @cached_property
    def _filter(self) -> Any:
        end = (
            f"if count != {self.arguments[0]}:\n        return 0\n"
            f"    carray(result, 1)[0] = {_VALUE.format(n=0)}\n    return 1"
        )
        kinds = ["CPointer(double)", "intp", "CPointer(double)", "voidptr"]
        names = ["x", "count", "result", "data"]
        return self._made("int32", kinds, names, self._from_pointer(), end)

    def _made(
        self, result: str, kinds: list[str], names: list[str], places: list[str], end: str
    ) -> Any:
        """A function in C's conventions, compiled by Numba."""
        numba = importlib.import_module("numba")
        body = _BODY.format(places="\n".join(f"    {line}" for line in places))
        source = f"def entry({', '.join(names)}):\n{body}    {end}\n"
        memory = self._executable.memory
        word = ctypes.c_int64
        scope: dict[str, Any] = {
            "np": np,
            "carray": numba.carray,
            "words": self._frame.slots.copy(),
            "table": self._executable.table_address,
            "arena_slot": memory.arena_slot,
            "arena_bytes": memory.arena_bytes + 64,
            "run": ctypes.CFUNCTYPE(word, word, word, word)(executor_address()),
        }
        exec(compile(source, f"<cfunc of {self.name}>", "exec"), scope)
        return numba.cfunc(f"{result}({', '.join(kinds)})")(scope["entry"])


def _parse(signature: str, what: str) -> tuple[int | None, list[int | None]]:
    """Length of the result and of the arguments, ``None`` for numbers."""
    match = _SIGNATURE.fullmatch(signature.replace(" ", ""))
    if match is None:
        raise ArgumentError(
            f"{what}: a signature has numbers and vectors of doubles of known length, such as "
            "'float64(float64, float64[3])' and 'float64[2](float64[2])'."
        )
    lengths = [re.sub(r"float64\[?(\d*)\]?", r"\1", t) for t in match[2].split(",")]
    first = re.sub(r"float64\[?(\d*)\]?", r"\1", match[1])
    return int(first) if first else None, [int(n) if n else None for n in lengths]


def cfunc(fun: Callable[..., Any], signature: str) -> CompiledFunction:
    """Compile a function to code that is called without Python.

    Args:
        fun: Function of doubles and vectors of doubles, whose value is a double or a vector. It is
            anything that `jit` compiles, derivatives included.
        signature: Types of its value and its arguments, such as ``"float64(float64)"`` and
            ``"float64[2](float64, float64[2])"``.

    Returns:
        A `CompiledFunction`, with `address`, `ctypes` and `low_level_callable`.

    Raises:
        ArgumentError: If the signature is of another form or does not fit, or the function has an
            operation that only NumPy evaluates.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> slope = fg.interop.numba.cfunc(fg.grad(np.sin), "float64(float64)")
        >>> slope.prototype
        'double sin(double)'
        >>> slope.ctypes(0.0)
        1.0
    """
    return CompiledFunction(fun, signature)
