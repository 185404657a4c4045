"""Functions of NumPy and SciPy that native code can call: their addresses.

* The loop of a ufunc, ``void loop(char** args, intp* dimensions, intp* steps, void* data)``, is a
  field of the ufunc (``PyUFuncObject``); it needs neither Python nor its lock.
* LAPACK's functions are in SciPy's public table for Cython; all of their arguments are pointers.
* ``int sort(void* values, intp n, void*)`` and ``int argsort(void* values, intp* order, intp n,
  void*)`` belong to NumPy's dtypes (``PyArray_ArrFuncs``).

All are parts of binary interfaces that NumPy and SciPy keep stable. What can be checked is checked
before it is trusted; where a function is missing, `resolve` says so, and NumPy is called instead.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import platform
import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from pathlib import Path
from typing import Any

import numpy as np

from funcgrad.base.imports import load
from funcgrad.base.records import dataclass
from funcgrad.compiler import one_thread
from funcgrad.lowering import Routine, SortCall, UfuncCall

LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""BLAS's and LAPACK's names of dtypes."""

DType = np.dtype[Any]


def resolve(form: Routine) -> tuple[DType, ...] | None:
    """The dtypes of the arrays of a routine, or nothing if one of its functions is missing."""
    dtypes = [array.dtype for array in form.arrays]
    for call in form.calls:
        if isinstance(call, UfuncCall):
            loop = ufunc_loop(call, tuple(dtypes[i] for i in call.arrays))
            if loop is None:
                return None
            for i, dtype in zip(call.arrays, loop.dtypes, strict=True):
                dtypes[i] = dtype
    found = tuple(dtype for dtype in dtypes if dtype is not None)
    assert len(found) == len(dtypes)  # every array belongs to a call
    sorts = (call for call in form.calls if isinstance(call, SortCall))
    if not all(sort_function(found[x.values], x.order is not None, x.stable) for x in sorts):
        return None
    return found


# ------------------------------------------------------------------------------------------ ufuncs


@dataclass(frozen=True)
class Loop:
    """The loop of a ufunc for some dtypes.

    Attributes:
        function: Its address.
        data: What it is given besides the arrays.
        dtypes: Those of its arrays.
        cores: For every array, the names of the axes that the loop itself iterates over.
    """

    function: int
    data: int
    dtypes: tuple[DType, ...]
    cores: tuple[tuple[str, ...], ...]


@cache
def ufunc_loop(call: UfuncCall, dtypes: tuple[DType | None, ...]) -> Loop | None:
    """The loop of a ufunc, or nothing where it has none that native code can call.

    Args:
        call: Which ufunc.
        dtypes: Those of its arrays, as far as they are known.
    """
    if not all(flag_words()):
        return None
    module = load(call.module)
    found = (getattr(module, name, None) for name in call.names)
    ufunc = next((x for x in found if isinstance(x, np.ufunc)), None)
    if ufunc is None or ufunc.nargs != len(dtypes):
        return None
    if None in dtypes:
        wanted = (*dtypes[: ufunc.nin], *(None,) * ufunc.nout)
        try:
            resolved: Any = ufunc.resolve_dtypes(wanted)
        except TypeError:
            return None
    else:
        resolved = dtypes
    fields = _fields(ufunc)
    kinds = tuple(dtype.num for dtype in resolved)
    if fields is None or kinds not in fields.types:
        return None
    i = fields.types.index(kinds)
    function = word_at(fields.functions + 8 * i)
    data = word_at(fields.data + 8 * i) if fields.data else 0
    if not function:
        return None
    return Loop(function, data, tuple(resolved), _cores(ufunc))


@dataclass(frozen=True)
class _UfuncFields:
    functions: int
    data: int
    types: tuple[tuple[int, ...], ...]


def _fields(ufunc: np.ufunc) -> _UfuncFields | None:
    """The fields of a ufunc, if they are where NumPy's binary interface has them."""
    start = id(ufunc) + object.__basicsize__
    counts = [ctypes.c_int32.from_address(start + offset).value for offset in (0, 4, 8, 32)]
    if counts != [ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes]:
        return None
    functions, data, name, types = (word_at(start + offset) for offset in (16, 24, 40, 48))
    if not functions or not name or not types:
        return None
    text = ctypes.string_at(types, ufunc.ntypes * ufunc.nargs)
    rows = [text[i : i + ufunc.nargs] for i in range(0, len(text), ufunc.nargs)]
    letters = ["".join(_LETTER.get(number, "?") for number in row) for row in rows]
    if [f"{row[: ufunc.nin]}->{row[ufunc.nin :]}" for row in letters] != ufunc.types:
        return None
    return _UfuncFields(functions, data, tuple(map(tuple, rows)))


_LETTER: dict[int, str] = {np.dtype(letter).num: letter for letter in "?bBhHiIlLqQefdgFDGOMm"}


def _cores(ufunc: np.ufunc) -> tuple[tuple[str, ...], ...]:
    """The core axes of every array, by name."""
    if ufunc.signature is None:
        return ((),) * ufunc.nargs
    text = ufunc.signature.replace(" ", "").replace("->", ",")
    groups = text.removeprefix("(").removesuffix(")").split("),(")
    return tuple(tuple(filter(None, group.split(","))) for group in groups)


def word_at(address: int) -> int:
    """The word in memory at an address."""
    return ctypes.c_int64.from_address(address).value


# ---------------------------------------------------------------------------- floating-point flags


_OF_FLAGS = ("feclearexcept", "fetestexcept")


@cache
def flag_words() -> tuple[int, int, int, int]:
    """Addresses of ``feclearexcept`` and ``fetestexcept``; the bits of all flags, and "invalid".

    All are 0 where they are not known.
    """
    machine = platform.machine().lower()
    is_windows = sys.platform == "win32"
    if machine not in ("x86_64", "amd64", "aarch64", "arm64"):
        return 0, 0, 0, 0
    library = ctypes.CDLL("ucrtbase" if is_windows else None)
    # A Python that is one file need not have all of the C library.
    if not all(hasattr(library, name) for name in _OF_FLAGS):
        return 0, 0, 0, 0
    clear, test = (ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in _OF_FLAGS)
    every = 0x3D if machine in ("x86_64", "amd64") and not is_windows else 0x1F
    return clear, test, every, 0x10 if is_windows else 0x1


# ----------------------------------------------------------------------------------------- sorting

_SORT, _ARGSORT = 33, 36
"""Places of the first of three functions: 21 casts and 12 other functions come before."""


@cache
def sort_function(dtype: DType, is_order: bool, is_stable: bool) -> int:
    """Address of NumPy's function that sorts values, or their places; 0 if it cannot be called."""
    if dtype.char not in "?bBhHiIlLqQfdFD":
        return 0
    table = _array_functions(dtype)
    if not table:
        return 0
    function = word_at(table + 8 * ((_ARGSORT if is_order else _SORT) + 2 * is_stable))
    return function if function and _sorts(function, dtype, is_order) else 0


@cache
def array_interface() -> int:
    """Address of the table of NumPy's C interface; 0 where it is not known."""
    umath = load("numpy._core._multiarray_umath")
    capsule = getattr(umath, "_ARRAY_API", None)
    return 0 if capsule is None else pointer_of(capsule)


def _array_functions(dtype: DType) -> int:
    """Address of the functions of a dtype, by NumPy's C interface."""
    interface = array_interface()
    if not interface:
        return 0
    get = word_at(interface + 8 * 365)  # PyDataType_GetArrFuncs
    if not get:
        return 0
    return ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(get)(dtype) or 0


def _sorts(function: int, dtype: DType, is_order: bool) -> bool:
    """Whether a function sorts."""
    values = np.array([1, 0, 1, 0, 1], dtype)
    order = np.arange(5)
    arrays = [values, order] if is_order else [values]
    arguments = [ctypes.c_void_p(x.ctypes.data) for x in arrays]
    failed = ctypes.CFUNCTYPE(ctypes.c_int)(function)(*arguments, ctypes.c_int64(5), None)
    found = values[order] if is_order else values
    return not failed and found.tolist() == [0, 0, 1, 1, 1]


# --------------------------------------------------------------------------------- BLAS and LAPACK


@cache
def linear_algebra_function(name: str, on_one_thread: bool = False) -> int:
    """Address of a function of BLAS or LAPACK.

    `scipy.linalg` takes 150 ms to import, of which the tables need a quarter; they are therefore
    loaded without their package where nobody has imported that yet.

    Args:
        name: What it is called in SciPy.
        on_one_thread: Whether it is the one that uses one thread, if there is such a one.
    """
    for library in _LIBRARIES:
        module = f"scipy.linalg.cython_{library}"
        table = _table(module).__pyx_capi__
        if name in table:
            distance = distance_to_one_thread(module) if on_one_thread else 0
            return pointer_of(table[name]) + distance
    raise KeyError(name)


_LIBRARIES = ("blas", "lapack")


def has_threads(module: str) -> bool:
    """Whether the library that a module links to has threads of its own.

    How many of them take part at a moment is a setting of the process, which is not ours to change
    and may be another one when a program runs. OpenBLAS is known; other libraries are not asked.

    Args: module: Name of an extension module.
    """
    ask = _asks_for_threads(module)
    if ask is None:
        return False
    try:
        started = ctypes.c_int.in_dll(ctypes.CDLL(_table(module).__file__), "blas_num_threads")
    except ValueError:
        return ask() > 1
    return started.value > 1


def distance_to_one_thread(module: str) -> int:
    """Distance from a function of a module to its counterpart for one thread.

    Args: module: Name of an extension module.
    Returns: The distance; 0 where there is no such function (`one_thread`).
    """
    ask = _asks_for_threads(module)
    return 0 if ask is None else one_thread.distance(_table(module).__file__, ask)


@cache
def _asks_for_threads(module: str) -> Callable[[], int] | None:
    """OpenBLAS's function that tells how many threads it uses, if that is the library."""
    file = getattr(_table(module), "__file__", None)
    if file is None:
        return None
    library = ctypes.CDLL(file)
    for prefix in ("scipy_", ""):
        for suffix in ("64_", ""):
            found = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
            if found is not None:
                return found
    return None


LAPACK_MODULE = "scipy.linalg.cython_lapack"


def linear_algebra_file() -> str:
    """The file that has the functions of BLAS."""
    return str(_table(f"scipy.linalg.cython_{_LIBRARIES[0]}").__file__)


@cache
def _table(name: str) -> Any:
    package = importlib.util.find_spec("scipy")
    if name in sys.modules or package is None or package.origin is None:
        return load(name)
    folder = Path(package.origin).parent / "linalg"
    for suffix in EXTENSION_SUFFIXES:
        path = folder / f"{name.rpartition('.')[2]}{suffix}"
        if path.exists():
            return _load_extension(name, path)
    return load(name)


def _load_extension(name: str, path: Path) -> Any:
    loader = ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def pointer_of(capsule: Any) -> int:
    """Pointer in a capsule."""
    return _POINTER_OF(capsule, _NAME_OF(capsule)) or 0


_NAME_OF: Callable[[Any], Any] = ctypes.pythonapi.PyCapsule_GetName
_NAME_OF.restype, _NAME_OF.argtypes = ctypes.c_char_p, [ctypes.py_object]  # type: ignore[attr-defined]
_POINTER_OF: Callable[[Any, Any], Any] = ctypes.pythonapi.PyCapsule_GetPointer
_POINTER_OF.restype, _POINTER_OF.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]  # type: ignore[attr-defined]
