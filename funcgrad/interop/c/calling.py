"""Compiled functions by address, for C, Numba, Cython, SciPy and whatever calls C.

A `CompiledFunction` is code in C's conventions (`entry`) and the plans that it runs. A plan holds
for the sizes that it was made for; the first call of other sizes makes theirs, in milliseconds and
by Python, from kernels that mostly are the same ones. Every other call needs no Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import LowLevelCallable

from funcgrad.api.arguments import check_callable, name_of
from funcgrad.api.staging import ShapeDtypeStruct, StagedFunction
from funcgrad.base.forking import Lock, cached_property
from funcgrad.base.pytree import tree_flatten, tree_map, tree_structure, tree_unflatten
from funcgrad.base.signatures import signature_of
from funcgrad.compiler.abi import CONTROL_SLOT, CONTROL_WORDS
from funcgrad.compiler.nest.nodes import Site
from funcgrad.compiler.runtime.executable import Executable
from funcgrad.compiler.runtime.kernel_store import control_words, executor_address, own_copy
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.jit import executable_of
from funcgrad.interop.c.entry import FIRST_MESSAGE, PLAN_WORDS, Entry
from funcgrad.interop.c.signature import ArrayType, Signature, parse

_SPACE = 64
"""Bytes by which scratch memory may be moved to an aligned address."""

_LOST = {"f": "biu", "c": "biuf"}
"""Kinds of dtypes that numbers of other kinds are not converted to."""


class _Plan(NamedTuple):
    """Tables that an entry reads for some sizes.

    Attributes:
        words: `entry.PLAN_WORDS`, and what follows.
        executable: What holds tables and constants.
        frame: The memory whose words are copied.
    """

    words: np.ndarray
    executable: Executable
    frame: Any


class CompiledFunction:
    """A compiled function that needs no Python. Made by `cfunc`.

    It takes the sizes in the order in which they are named first, as ``int64_t``; numbers by value;
    arrays as pointers to contiguous rows; complex numbers and results as pointers; dicts and tuples
    as pointers to structures of pointers; and at last scratch memory, or a null pointer. It returns
    0 or a status, which `message` explains.

    Calling the object takes and returns arrays of NumPy, and raises where the status is not 0.

    Attributes:
        name: Name of the function.
        signature: The types of arguments and results.
        prototype: The function in C, on one line.
        declaration: The same with the structures that it takes.
    """

    def __init__(self, fun: Callable[..., Any], signature: str) -> None:
        check_callable(fun, "cfunc")
        self.name = name_of(fun) if name_of(fun).isidentifier() else "function"
        what = f"cfunc({self.name}, {signature!r})"
        self.signature = parse(signature, what)
        self._what = what
        self._fun = fun
        self._check_value()
        names = parameters(fun, len(self.signature.arguments))
        self.prototype = self.signature.prototype(self.name, names)
        self.declaration = (
            f"{self.prototype};"
            if self.signature.returns
            else self.signature.declaration(self.name, names)
        )
        self._messages = ["there was no scratch memory", "a step of the program has failed"]
        self._lock = Lock()
        self._plans: dict[tuple[int, ...], _Plan] = {}
        miss = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))
        self._miss = miss(self._met)
        self._home = np.zeros(2, np.int64)
        self._home[1] = ctypes.cast(self._miss, ctypes.c_void_p).value or 0
        # Sizes that differ find what does not fit, and many of them are even.
        self._add(tuple(12 * (k + 2) for k in range(len(self.signature.names))))

    def __repr__(self) -> str:
        return f"<compiled {self.prototype}>"

    def __call__(self, *args: Any) -> Any:
        """Call the code with arrays of NumPy.

        Args: args: Arrays and numbers, or trees of them, of the types of the signature.
        Returns: New arrays; numbers for results without axes.
        Raises: ArgumentError: An argument does not fit, or the status is not 0.
        """
        signature = self.signature
        leaves, tree = tree_flatten(args)
        if tree != tree_structure(signature.arguments):
            raise ArgumentError(f"{self.name} takes {signature}, got {tree}.")
        arrays = [self._array(x, t) for x, t in zip(leaves, signature.leaves, strict=True)]
        sizes = self._sizes_of(arrays)
        outs = [np.empty(t.shape(sizes), t.dtype) for t in signature.outs]
        given = iter(x.ctypes.data for x in (*arrays, *outs))
        objects = (ctypes.c_void_p * max(len(arrays) + len(outs), 1))(*given)
        status = self._by_addresses((ctypes.c_int64 * max(len(sizes), 1))(*sizes.values()), objects)
        if status:
            raise ArgumentError(f"{self.name}: {self.message(status)}.")
        found = tree_unflatten(tree_structure(signature.results), [x[()] for x in outs])
        return found[0] if len(signature.results) == 1 else found

    @property
    def address(self) -> int:
        """Address of the code of the prototype, which lives as long as this object."""
        return (
            self.entry_address("value", False)
            if self.signature.returns
            else self.entry_address("status")
        )

    @cached_property
    def ctypes(self) -> Any:
        """The function for `ctypes`; Numba's code calls it where it is a global."""
        signature = self.signature
        arguments = [_c_argument(tree) for tree in signature.arguments]
        if signature.returns:
            (result,) = signature.outs
            if result.is_value:
                return self._function(self.address, _C_TYPES[result.dtype.name], arguments)
            return self._function(self.address, None, [*arguments, _pointer(result)])
        results = [_pointer(tree) for tree in signature.results]
        sizes = [ctypes.c_int64] * len(signature.names)
        kinds = [*sizes, *arguments, *results, ctypes.c_void_p]
        return self._function(self.address, ctypes.c_int32, kinds)

    def message(self, status: int) -> str:
        """The meaning of a status that is not 0, with the line of what was refused.

        Args: status: What a call has returned.
        Raises: ArgumentError: No call of this function returns that.
        """
        if not 0 < status <= len(self._messages):
            raise ArgumentError(
                f"{self.name} has no message for the status {status}: 0 says that nothing was "
                f"refused, and statuses so far go up to {len(self._messages)}."
            )
        return self._messages[status - 1]

    def prepare(self, **sizes: int) -> None:
        """Make the plan for some sizes, which the first call of them would make.

        Args: sizes: All sizes, by name.
        Raises: ArgumentError: Sizes are missing, or there are others.
        """
        names = self.signature.names
        if set(sizes) != set(names):
            raise ArgumentError(f"{self.name} has the sizes {names}, got {sorted(sizes)}.")
        self._add(tuple(sizes[name] for name in names))

    def scratch_bytes(self, **sizes: int) -> int:
        """Bytes of scratch memory that a call of some sizes needs.

        Args: sizes: All sizes, by name.
        """
        self.prepare(**sizes)
        plan = self._plans[tuple(sizes[name] for name in self.signature.names)]
        return plan.executable.memory.arena_bytes + _SPACE

    def low_level_callable(self, form: str = "plain", data: Any = None) -> LowLevelCallable:
        """The function for SciPy.

        Args:
            form: How the function is called. ``"plain"``: ``double (double)``, such as by `quad`
                with one argument. ``"quad"``: ``double (int, double *)``, by `quad` and `nquad`
                with several. ``"filter"`` and ``"filter1d"``: by `scipy.ndimage.generic_filter` and
                `generic_filter1d`, for a function of one vector. ``"transform"``: by
                `scipy.ndimage.geometric_transform`, for a function of a vector of int64, the place.
            data: An array that is the last argument in all calls.
        Returns: A `scipy.LowLevelCallable`.
        Raises: ArgumentError: If the function cannot be called in that form.
        """
        if form not in _FORMS:
            raise ArgumentError(
                f"{self.name}: low_level_callable has the forms {', '.join(map(repr, _FORMS))}, "
                f"got {form!r} for {self.prototype}."
            )
        has_data = data is not None
        self._check_form(form, has_data)
        user_data = None
        if has_data:
            last = self.signature.leaves[-1]
            data = np.asarray(data, last.dtype, order="C")
            if data.shape != last.shape({}):
                raise ArgumentError(f"{self.name}: the data are {last}, got shape {data.shape}.")
            user_data = ctypes.c_void_p(data.ctypes.data)
        entry, result, kinds = _FORMS[form]
        if form == "plain":
            kinds = [_C_TYPES["float64"], *([ctypes.c_void_p] if has_data else [])]
        elif form == "quad" and has_data:
            kinds = [*kinds, ctypes.c_void_p]
        function = self._function(self.entry_address(entry, has_data), result, kinds)
        function.data = data
        return LowLevelCallable(function, user_data)

    def _check_form(self, form: str, has_data: bool) -> None:
        """Refuse a form in which the function cannot be called."""
        signature = self.signature
        leaves, outs = signature.leaves, signature.outs
        given = leaves[: len(leaves) - has_data]
        double = ArrayType(np.dtype(np.float64))
        wanted, fits = {
            "plain": (
                "a function of one number",
                (signature.returns and given == [double]) or (not has_data and signature.returns),
            ),
            "quad": (
                "a function of doubles whose result is a number",
                outs == [double]
                and all(x.dtype == np.float64 for x in given)
                and not signature.names,
            ),
            "filter": (
                "a function of one vector, the window, whose result is a number",
                outs == [double] and [len(x.sizes) for x in given] == [1],
            ),
            "filter1d": (
                "a function of one vector whose result is a vector",
                [len(x.sizes) for x in (*given, *outs)] == [1, 1],
            ),
            "transform": (
                "a function of the integers of a place, whose result is a vector",
                [len(x.sizes) for x in (*given, *outs)] == [1, 1] and given[0].dtype == np.int64,
            ),
        }[form]
        if not fits or (has_data and not leaves[-1].sizes):
            raise ArgumentError(
                f"{self.name}: a {form} is {wanted}{', and the data' * has_data}, not "
                f"{self.prototype}."
            )

    def _check_value(self) -> None:
        """Refuse results that cannot tell of a failure."""
        if self.signature.returns:
            (result,) = self.signature.outs
            if result.dtype.kind != "f" or self.signature.names:
                raise ArgumentError(
                    f"{self._what}: a function that returns its result says by NaN that it "
                    "failed, so the result is float32 or float64, and all sizes are numbers. "
                    "Functions with a status have all dtypes, and sizes by name: 'arguments -> "
                    "results'."
                )

    def _function(self, address: int, result: Any, kinds: Sequence[Any]) -> Any:
        """A function of `ctypes` that holds the memory which its code reads."""
        function: Any = ctypes.CFUNCTYPE(result, *kinds)(address)
        function.funcgrad = self
        return function

    def entry_address(self, entry: str, *facts: Any) -> int:
        """Address of the code of an entry, made when it is first asked for.

        Args:
            entry: A method of `entry.Entry`.
            facts: Its arguments.
        """
        key = entry, *facts
        with self._lock:
            if key not in self._entries:
                code = getattr(Entry(self.signature), entry)(*facts)
                self._entries[key] = own_copy(code, self._home.ctypes.data)
            return self._entries[key]

    @cached_property
    def _entries(self) -> dict[Any, int]:
        return {}

    @cached_property
    def _by_addresses(self) -> Any:
        """The function of an array of sizes and one of addresses."""
        kinds = [ctypes.c_void_p, ctypes.c_void_p]
        return self._function(self.entry_address("by_addresses"), ctypes.c_int32, kinds)

    # Plans.

    def _met(self, sizes: Any) -> int:
        """Add the plan for sizes that code has met; a status."""
        try:
            self._add(tuple(sizes[k] for k in range(len(self.signature.names))))
        except BaseException as error:  # the caller is no Python: it is told by the status
            return self._number_of([f"{type(error).__name__}: {error}"])
        return 0

    def _number_of(self, messages: list[str]) -> int:
        """The status of the first of some messages."""
        with self._lock:
            n = len(messages)
            for k in range(FIRST_MESSAGE - 1, len(self._messages) - n + 1):
                if self._messages[k : k + n] == messages:
                    return k + 1
            self._messages += messages
            return len(self._messages) - n + 1

    def _add(self, sizes: tuple[int, ...]) -> None:
        """Make the plan for some sizes, unless it is there."""
        if sizes in self._plans:
            return
        known = dict(zip(self.signature.names, sizes, strict=True))
        # A kernel of all steps has the sizes of one plan.
        executable = compiled(self._fun, self.signature, known, self._what)
        frame = executable.take_frame()
        memory = executable.memory
        slots = frame.slots.copy()
        slots[CONTROL_SLOT] = _no_python().ctypes.data
        head = {
            "next": 0,
            "n_words": slots.size,
            "arena_slot": memory.arena_slot,
            "arena_bytes": memory.arena_bytes,
            "table": executable.table_address,
            "run": executor_address(),
            "first_message": self._number_of(
                [described_site(site) for site in executable.plan.sites]
            ),
        }
        words = np.array([*(head[name] for name in PLAN_WORDS), *sizes, *slots], np.int64)
        with self._lock:
            if sizes not in self._plans:
                self._plans[sizes] = _Plan(words, executable, frame)
                words[0] = self._home[0]
                self._home[0] = words.ctypes.data

    def _array(self, x: Any, t: ArrayType) -> np.ndarray:
        """An argument as an array, without a loss of fractions or imaginary parts."""
        found = np.asarray(x)
        if t.dtype.kind in _LOST.get(found.dtype.kind, ""):
            raise ArgumentError(
                f"{self.name} takes {self.signature}: {found.dtype.name} is not {t.dtype.name}, "
                "and would lose a part. Convert it, as by x.astype or x.real."
            )
        return np.asarray(found, t.dtype, order="C")

    def _sizes_of(self, arrays: Sequence[np.ndarray]) -> dict[str, int]:
        """The sizes of arguments, by name."""
        found: dict[str, int] = {}
        for t, x in zip(self.signature.leaves, arrays, strict=True):
            found.update(
                {size: n for size, n in zip(t.sizes, x.shape, strict=False) if size.isidentifier()}
            )
        missing = [name for name in self.signature.names if name not in found]
        if missing or any(
            x.shape != t.shape(found) for t, x in zip(self.signature.leaves, arrays, strict=True)
        ):
            shapes = ", ".join(str(x.shape) for x in arrays)
            raise ArgumentError(f"{self.name} takes {self.signature}, got the shapes {shapes}.")
        return {name: found[name] for name in self.signature.names}


def compiled(
    fun: Callable[..., Any],
    signature: Signature,
    sizes: Mapping[str, int],
    what: str,
) -> Executable:
    """A function as a program for some sizes, which runs on one thread and without Python.

    Args:
        fun: The function.
        signature: Its types.
        sizes: All sizes, by name.
        what: How messages call it.
    Raises: ArgumentError: The results are not those of the signature, or the program needs Python.
    """
    types = tree_map(lambda t: ShapeDtypeStruct(t.shape(sizes), t.dtype), signature.arguments)
    staged = StagedFunction(fun, types, {}, what)
    got = [aval.strong() for aval in staged.program.out_avals]
    expected = [(t.shape(sizes), t.dtype) for t in signature.outs]
    if [(a.shape, a.dtype) for a in got] != expected:
        where = ", ".join(f"{name} = {n}" for name, n in sizes.items())
        raise ArgumentError(
            f"{what}: the function returns {', '.join(map(str, got)) or 'nothing'}"
            f"{' for ' * bool(where)}{where}, and the signature says "
            f"{', '.join(map(str, signature.outs))}."
        )
    if staged.belongs_to_call:
        raise ArgumentError(f"{what}: the function uses traced values from outside of it.")
    # If all sizes are numbers, one kernel runs all of a program of few elements.
    executable = executable_of(staged.program, 1, is_joined=not sizes, is_general=bool(sizes))
    if not executable.is_native:
        raise ArgumentError(
            f"{what}: the function has an operation that NumPy evaluates, which code without "
            "Python cannot call. jit(f).lower(*args).as_text() shows which."
        )
    if executable.memory.states:
        raise ArgumentError(
            f"{what}: the function has collectives that go on in the background, whose end "
            "code without Python cannot wait for when it is stopped."
        )
    return executable


def described_site(site: Site, has_sizes: bool = True) -> str:
    """Describe the check of a site, without the value that a kernel refused there.

    Args:
        site: The site.
        has_sizes: Whether the sizes of its arrays are always these.
    """
    equation = site.equation
    avals = [atom.aval for atom in equation.inputs]
    types = [str(aval) if has_sizes else aval.dtype.name for aval in avals]
    at = "" if equation.source is None else f"\n  at            {equation.source}"
    what = "the operation is not defined for a value"
    if site.length:
        what = "an index is out of bounds"
        what += f" for an axis of length {site.length}" if has_sizes else ""
    return f"{what}: {equation.primitive.name} of {', '.join(types)}{at}"


@cache
def _no_python() -> Any:
    """Words of control by which programs never ask Python for signals."""
    words = control_words().copy()
    words[CONTROL_WORDS.index("main")] = 0
    return words


_C_TYPES: dict[str, Any] = {
    "bool": ctypes.c_bool, "float32": ctypes.c_float, "float64": ctypes.c_double,
    **{
        f"{sign}int{bits}": getattr(ctypes, f"c_{sign}int{bits}")
        for sign in ("", "u") for bits in (8, 16, 32, 64)
    },
}  # fmt: skip

_LENGTH = ctypes.c_ssize_t
_DOUBLES, _LENGTHS = ctypes.POINTER(ctypes.c_double), ctypes.POINTER(_LENGTH)

_FORMS: dict[str, tuple[str, Any, list[Any]]] = {
    "plain": ("value", ctypes.c_double, []),
    "quad": ("quad", ctypes.c_double, [ctypes.c_int, _DOUBLES]),
    "filter": ("filter", ctypes.c_int, [_DOUBLES, _LENGTH, _DOUBLES, ctypes.c_void_p]),
    "filter1d": (
        "filter1d",
        ctypes.c_int,
        [_DOUBLES, _LENGTH, _DOUBLES, _LENGTH, ctypes.c_void_p],
    ),
    "transform": (
        "transform",
        ctypes.c_int,
        [_LENGTHS, _DOUBLES, ctypes.c_int, ctypes.c_int, ctypes.c_void_p],
    ),
}
"""Forms of SciPy's callbacks: the entry, what it returns, and what it takes."""


def _c_argument(tree: Any) -> Any:
    """The type of `ctypes` of an argument."""
    if isinstance(tree, ArrayType) and tree.is_value:
        return _C_TYPES[tree.dtype.name]
    return _pointer(tree)


def _pointer(tree: Any) -> Any:
    """The type of `ctypes` of the address of an array or a structure."""
    if not isinstance(tree, ArrayType) or tree.dtype.kind in "bc":
        return ctypes.c_void_p
    return ctypes.POINTER(_C_TYPES[tree.dtype.name])


def parameters(fun: Callable[..., Any], count: int) -> list[str]:
    """Names for arguments: those of the function, where it has as many."""
    try:
        names = [
            p.name
            for p in signature_of(fun).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):  # a ufunc has none
        names = []
    return names[:count] if len(names) >= count else [f"x{k}" for k in range(count)]


def cfunc(fun: Callable[..., Any], signature: str) -> CompiledFunction:
    """Compile a function to code that is called without Python.

    Args:
        fun: Any function that `jit` compiles without NumPy, derivatives included.
        signature: Types of its arguments and results, with sizes that are numbers or names, such as
            ``"float64[n, m], float64[m] -> float64[n]"``. ``{w: float64[n], b: float64}`` is a
            dict, ``(float64, float64[n])`` a tuple. ``"float64(float64, float64[3])"`` is a
            function that returns its result, and NaN where it fails, instead of a status.
    Returns: A `CompiledFunction`, with `address`, `ctypes` and `low_level_callable`.
    Raises: ArgumentError: If the signature is of another form or does not fit, or the function has
            an operation that only NumPy evaluates.

    Example:
        >>> slope = fg.cfunc(fg.grad(lambda x: np.sum(np.tanh(x))), "float64[n] -> float64[n]")
        >>> slope.prototype
        'int32_t function(int64_t n, const double *x, double *out, void *scratch)'
        >>> slope(np.zeros(2))
        array([1., 1.])
        >>> fg.cfunc(fg.grad(np.sin), "float64(float64)").ctypes(0.0)
        1.0
    """
    return CompiledFunction(fun, signature)
