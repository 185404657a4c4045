"""Who asked for the values of a traced array, and what to write instead.

Python keeps the place of every instruction: where a value is asked for, the expression of the
user's that does it is found in the source, and the function that it calls is looked up by its name.
Where there is no source (a console, generated code), the advice is general.

Only errors come here, so nothing needs to be quick.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from itertools import islice
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from funcgrad.base.namespaces import counterpart, is_host_function
from funcgrad.errors import FuncgradError
from funcgrad.observers.source import frames_to_user, is_own

_AT_PLACE = (
    "write y = funcgrad.numpy.at(y)[i].set(x), or collect the parts in a list and call np.stack. "
    "Arrays that funcgrad.numpy makes inside of the function can be assigned to: begin with "
    "y = funcgrad.numpy.zeros(n)."
)
_INTO_ARRAY = "If it was being written into an ndarray, `y[i] = x`, " + _AT_PLACE
_INSTEAD_OF_STACKING = (
    "Instead of np.array([x, y], dtype=float) write np.stack([x, y]), or np.array([x, y]) without "
    "a dtype."
)
_INSTEAD_OF_NUMPY = (
    _INSTEAD_OF_STACKING + " Other functions that NumPy does not redirect have counterparts in "
    "funcgrad.numpy. If an ndarray was being indexed, `y[i]`, write np.take(y, i, axis=0); instead "
    "of np.float32(x) write x.astype(np.float32). " + _INTO_ARRAY
)
INSTEAD_OF_OBJECTS = (
    "An ndarray that was made of traced numbers, np.array([x, y]), holds them as objects, which "
    "NumPy can add, multiply and move, but not compare, and few ufuncs take them. Write "
    "np.stack([x, y]), which is traced as a whole."
)
_INSTEAD_OF_INDEX = (
    "If it is an index into an ndarray, `y[i]`, write funcgrad.numpy.at(y)[i].get(), or "
    "funcgrad.numpy.take(y, i, axis=0); or pass y as an argument, so that it is traced too. "
)
_INSTEAD_OF_LIBRARY = (
    "Compute it with funcgrad.numpy, or, if its values need no derivative, call it by "
    "funcgrad.pure_callback, which passes arrays."
)
_OR_REDIRECT = "Or call funcgrad.interop.scipy.install(): then SciPy's functions are redirected."
_INSTEAD_OF_SCIPY = (
    "Of SciPy's functions only the ufuncs are redirected. Others have counterparts in "
    "funcgrad.scipy under the same names (scipy.fft in funcgrad.numpy.fft); the rest "
    "can be written with funcgrad.numpy, or, if its values need no derivative, called by "
    "funcgrad.pure_callback."
)
_INSTEAD_OF_KNOWN = (
    "takes known values only. Call it outside of the transformed function, or, if its result needs "
    "no derivative, by funcgrad.pure_callback."
)
_INSTEAD_OF_SCALAR = (
    "Keep the value an array: np.sin(x) instead of math.sin(x), x.astype(...) to convert it; or "
    "compute what depends on it outside of the transformed function. " + _INTO_ARRAY
)
_INSTEAD_OF_RANDOM = (
    "Random numbers of traced functions come from explicit keys: funcgrad.random.{name}(key, ...), "
    "with a key of funcgrad.random.key(seed) that is an argument. Scale and shift them yourself: "
    "mean + scale * funcgrad.random.normal(key, shape)."
)
_INSTEAD_OF_COMPILED = (
    "Call funcgrad.interop.numba.traceable({name}) instead of {name}: it runs the Python function "
    "that Numba compiled. Or call funcgrad.interop.numba.install() first: functions of numba.njit "
    "take traced values then, in the whole process."
)
_INSTEAD_OF_BOOL = (
    "Use np.where(condition, a, b), or lax.cond, or make the argument that it depends on static: "
    "jit(f, static_argnums=...)."
)
_MAKERS = frozenset(
    (
        "arange", "array_split", "bartlett", "bincount", "blackman", "broadcast_to", "diag",
        "diag_indices", "diagflat", "diagonal", "diff", "dsplit", "empty", "eye", "fft", "fftfreq",
        "full", "geomspace", "hamming", "hanning", "hsplit", "identity", "ifft", "indices", "iota",
        "irfft", "kaiser", "linspace", "logspace", "mask_indices", "one_hot", "ones", "pad",
        "reshape", "resize", "rfft", "rfftfreq", "split", "tensordot", "tile", "tri",
        "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from", "vander",
        "vsplit", "zeros",
    )
)  # fmt: skip
"""Functions whose arguments say how long an array is, or how many there are."""
INSTEAD_OF_LENGTH = (
    "Shapes do not depend on traced values: pass the value as a static argument, "
    "jit(f, static_argnums=...); or make the array as long as it can be, and mask it with "
    "np.where(np.arange(longest) < n, x, 0)."
)
_INSTEAD_OF_INTEGER = (
    "Shapes and Python's range() need known integers: pass the value as a static argument "
    "(jit(f, static_argnums=...)), or index with funcgrad.numpy.take / x[traced_index], which "
    "accepts traced integers."
)

_INSTEAD_OF_LIST = (
    "Python's lists cannot be read at a traced place: make an array of the items, "
    "funcgrad.numpy.stack(items)[i], or choose between functions with lax.switch."
)
_INSTEAD_OF_SLICE = (
    "How long a slice is must be known: write lax.dynamic_slice_in_dim(x, start, length) for one "
    "that starts at a traced place, or mask with np.where(np.arange(n) < stop, x, 0)."
)

_CONDITIONS: dict[type[ast.AST], str] = {
    ast.While: (
        "Use lax.while_loop(condition, body, state), where `state` holds what the loop changes; "
        "decorate the function with funcgrad.autograph, which writes it; or make what the "
        "condition depends on static: jit(f, static_argnums=...)."
    ),
    ast.If: _INSTEAD_OF_BOOL,
    ast.IfExp: "Instead of `a if condition else b` write np.where(condition, a, b), or lax.cond.",
    ast.Assert: (
        "An assertion is checked while the function is traced, when there are no values: check "
        "them in a function that funcgrad.debug.callback calls."
    ),
    ast.comprehension: (
        "What is kept would depend on values: choose with np.where(condition, value, 0)."
    ),
}
_AND_OR = (
    "Instead of `a and b` write a & b (np.logical_and), instead of `a or b` write a | b "
    "(np.logical_or), with every comparison in parentheses. "
)
_BUILTINS = {
    "all": "np.all(x)",
    "any": "np.any(x)",
    "max": "np.maximum(a, b), or np.max(x)",
    "min": "np.minimum(a, b), or np.min(x)",
    "sorted": "np.sort(x)",
}
_PLAIN = ("builtins", "math", "cmath", "operator", "_operator")


class Asker:
    """The expression of the user's that needs the values of a traced array now.

    Attributes:
        library: The package whose function it calls: ``NumPy``, ``SciPy``, ``pandas``.
        function: The function as the user calls it, or an empty string where that is unknown.
    """

    def __init__(self) -> None:
        frames = frames_to_user()
        self._frame = frames[-1]
        is_users = not is_own(self._frame.f_code)
        self._nodes = list(_nodes_of(self._frame)) if is_users else []
        self._callee = self._resolved(self._call.func) if self._call else None
        self._between = frames[-2::-1] if is_users else frames[::-1]
        self._path = self._path_of(self._between)
        package = self._path.split(".")[0]
        is_ours = package in ("numpy", "funcgrad", *_PLAIN)
        self.library = "NumPy" if is_ours else "SciPy" if package == "scipy" else package
        self.function = ast.unparse(self._call.func) if self._call else ""

    @property
    def _call(self) -> ast.Call | None:
        """The call that is being made."""
        found = self._nodes[0] if self._nodes else None
        return found if isinstance(found, ast.Call) else None

    def _resolved(self, node: ast.AST) -> Any:
        """Look up the value of a name or attribute, without running anything."""
        if isinstance(node, ast.Name):
            frame = self._frame
            return {**frame.f_builtins, **frame.f_globals, **frame.f_locals}.get(node.id)
        if isinstance(node, ast.Attribute):
            value = self._resolved(node.value)
            if isinstance(value, ModuleType | np.ndarray) or _is_generator(value):
                return getattr(value, node.attr, None)
            return getattr(value, "__dict__", {}).get(node.attr)
        return None

    def _path_of(self, between: list[FrameType]) -> str:
        """Dotted public name of the function that the user's line calls.

        Args: between: Frames inwards from the user's line.
        """
        callee = self._callee
        name = getattr(callee, "__name__", None)
        module = getattr(callee, "__module__", None)
        if isinstance(name, str) and isinstance(module, str):
            return _shown_path(callee, module, name)
        for frame in between:
            module = str(frame.f_globals.get("__name__", ""))
            if module.split(".")[0] != "funcgrad":
                return _public(f"{module}.{frame.f_code.co_name}")
        return "numpy"

    # Advice, by the kind of value that was asked for.

    def instead_of_array(self, is_differentiable: bool) -> str:
        """Return advice for a library that needs an array."""
        special = self._special()
        if special:
            return special
        if self.library == "NumPy":
            if self._path == "numpy.array" and self.function:
                return _INSTEAD_OF_STACKING
            ours = counterpart(self._path) if self.function else None
            if ours is not None:
                return f"NumPy does not redirect {self.function}: write {ours}."
            return _INSTEAD_OF_NUMPY if is_differentiable else _INSTEAD_OF_INDEX + _INSTEAD_OF_NUMPY
        return self._instead_of_library()

    def instead_of_scalar(self) -> str:
        """Return advice for a place that needs a Python number."""
        special = self._special()
        if special:
            return special
        module, _, name = self._path.rpartition(".")
        if module in ("math", "cmath") and self.function:
            ours = f"np.{name}" if hasattr(np, name) else counterpart(f"scipy.special.{name}")
            if name == "remainder":  # NumPy's has the sign of the divisor
                return f"Write x - y * np.rint(x / y) instead of {self.function}(x, y)."
            if ours is not None:
                # At a real argument NumPy gives nan where the result is complex.
                x = "x" if module == "math" else "x + 0j"
                return f"Write {ours}({x}) instead of {self.function}(x), which takes numbers only."
        return _INSTEAD_OF_SCALAR if self.library == "NumPy" else self._instead_of_library()

    def instead_of_compiled(self) -> str:
        """Return advice for a function of Numba's, which needs arrays."""
        return _INSTEAD_OF_COMPILED.format(name=self.compiled)

    @property
    def compiled(self) -> str:
        """Name of the function of Numba's that looks at its arguments."""
        found = [f.f_locals["self"] for f in self._between if f.f_code.co_name == "typeof_pyval"]
        return str(found[0].__name__ if found else self.function)

    def instead_of_bool(self) -> str:
        """Return advice for a condition, which must be true or false."""
        call = self._call
        if call is not None:
            advice = _BUILTINS.get(getattr(call.func, "id", ""))
            return (
                _INSTEAD_OF_BOOL
                if advice is None
                else f"Instead of {self.function}(...) write {advice}."
            )
        inner = None
        for node in self._nodes:
            if isinstance(node, ast.BoolOp):
                return _AND_OR + _INSTEAD_OF_BOOL
            if isinstance(node, ast.Compare) and len(node.ops) > 1:
                return "Instead of `a < b < c` write (a < b) & (b < c). " + _INSTEAD_OF_BOOL
            if inner is None or inner in (getattr(node, "test", 0), *getattr(node, "ifs", ())):
                advice = _CONDITIONS.get(type(node))
                if advice is not None:
                    return advice
            inner = node
        return _INSTEAD_OF_BOOL

    @property
    def maker(self) -> str:
        """The function that the user calls for an array of some length, if it is one."""
        package, _, name = self._path.partition(".")
        if package not in ("numpy", "funcgrad"):
            return ""
        if not self.function:  # there is no source
            names = (frame.f_code.co_name for frame in self._between)
            return next((name for name in names if name in _MAKERS), "")
        return self.function if name.rpartition(".")[2] in _MAKERS else ""

    def instead_of_integer(self) -> str:
        """Return advice for an index, a shape or a length."""
        node = self._nodes[0] if self._nodes else None
        if isinstance(node, ast.Subscript):
            if isinstance(self._resolved(node.value), list | tuple):
                return _INSTEAD_OF_LIST
            if any(isinstance(part, ast.Slice) for part in ast.walk(node.slice)):
                return _INSTEAD_OF_SLICE
        return _INSTEAD_OF_INTEGER

    def _special(self) -> str:
        """Advice for expressions that are the same, whatever they were about to read."""
        node = self._nodes[0] if self._nodes else None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            return "Instead of `y[i] = x` " + _AT_PLACE
        if isinstance(node, ast.Subscript):
            return _INSTEAD_OF_INDEX.removesuffix(" ")
        call = self._call
        if call is None or not isinstance(call.func, ast.Attribute | ast.Name):
            return ""
        method = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
        owner = getattr(self._callee, "__self__", None)
        if _is_generator(owner) or self._draws_random_numbers(call.func):
            known = counterpart(f"numpy.random.{method}") is not None
            return _INSTEAD_OF_RANDOM.format(name=method if known else "normal")
        if isinstance(self._callee, type) and issubclass(self._callee, np.generic):
            return f"Instead of {self.function}(x) write x.astype({self.function})."
        if isinstance(call.func, ast.Attribute) and isinstance(owner, np.ndarray):
            array, args = ast.unparse(call.func.value), ", ".join(map(ast.unparse, call.args))
            better = f"{array} @ {args}" if method == "dot" else f"np.{method}({array}, {args})"
            write = f"write {better}, or " if hasattr(np, method) else ""
            return (
                f"Methods of an ndarray are not redirected: instead of {array}.{method}({args}) "
                f"{write}pass {array} as an argument, so that it is traced too."
            )
        return ""

    def _draws_random_numbers(self, function: ast.AST) -> bool:
        """Whether a function that could not be looked up is called as NumPy's are."""
        text = ast.unparse(function)
        return self._callee is None and ("random." in text or "default_rng(" in text)

    def _instead_of_library(self) -> str:
        """Return advice for a function of another package that needs arrays or numbers."""
        path, name = self._shown_object() or (self._path, self.function or self._path)
        ours = counterpart(path)
        if ours is not None:
            return f"Write {ours} instead of {name}. {_OR_REDIRECT}"
        if is_host_function(path):
            return f"{name} {_INSTEAD_OF_KNOWN}"
        if path.startswith("scipy."):
            return _INSTEAD_OF_SCIPY
        return f"{name} cannot be traced. {_INSTEAD_OF_LIBRARY}"

    def _shown_object(self) -> tuple[str, str] | None:
        """The object of SciPy's whose method is called, ``scipy.stats.norm`` of its ``pdf``.

        Returns: Its public path, and how the user calls it; nothing if no module shows it.
        """
        node = self._call.func if self._call is not None else None
        while isinstance(node, ast.Attribute | ast.Call):  # also of what norm(0, 1) returns
            node = node.value if isinstance(node, ast.Attribute) else node.func
            value = self._resolved(node)
            module, _, _ = _public(f"{type(value).__module__}.").rpartition(".")
            if module.startswith("scipy."):
                for name, shown in getattr(sys.modules.get(module), "__dict__", {}).items():
                    if shown is value:
                        return f"{module}.{name}", ast.unparse(node)
        return None


def is_about_objects(error: Exception) -> bool:
    """Whether NumPy or SciPy refuse the dtype of an array of objects."""
    text = str(error)
    is_theirs = isinstance(error, TypeError) and not isinstance(error, FuncgradError)
    return is_theirs and ("ufunc" in text or "object" in text or "dtype('O')" in text)


def _shown_path(function: Any, module: str, name: str) -> str:
    """The shortest dotted name under which packages show a function."""
    parts = module.split(".")
    for n in range(1, len(parts)):
        package = ".".join(parts[:n])
        if getattr(sys.modules.get(package), "__dict__", {}).get(name) is function:
            return f"{package}.{name}"
    return _public(f"{module}.{name}")


def _is_generator(value: Any) -> bool:
    """Whether it is one of NumPy's sources of random numbers."""
    return type(value).__module__.startswith("numpy.random")


def _public(path: str) -> str:
    """A dotted name without the parts that are private."""
    *modules, name = path.split(".")
    return ".".join([*(part for part in modules if not part.startswith("_")), name])


def _nodes_of(frame: FrameType) -> Iterator[ast.AST]:
    """The expressions and statements that a frame executes, from the innermost outwards."""
    place = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    line, end_line, column, end_column = place
    if line is None or end_line is None or column is None or end_column is None:
        return
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    try:
        tree: ast.AST = ast.parse(source)
    except (SyntaxError, ValueError):  # not the source that was compiled
        return
    start, end = (line, column), (end_line, end_column)
    chain: list[ast.AST] = []
    node: ast.AST | None = tree
    while node is not None:
        chain.append(node)
        node = next((c for c in ast.iter_child_nodes(node) if _covers(c, start, end)), None)
    yield from reversed(chain)


def _covers(node: ast.AST, start: tuple[int, int], end: tuple[int, int]) -> bool:
    if not isinstance(node, ast.expr | ast.stmt):  # the clauses of a statement have no place
        return any(_covers(child, start, end) for child in ast.iter_child_nodes(node))
    first = (node.lineno, node.col_offset)
    last = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    decorators = getattr(node, "decorator_list", ())
    return (first <= start and end <= last) or any(_covers(d, start, end) for d in decorators)
