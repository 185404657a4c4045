"""A process in which functions of ``numba.njit`` take traced values.

Numba's dispatchers find the type of every argument by ``typeof_pyval``, and code that is not there
yet by ``_compile_for_args``. While the patch is installed, these answer for traced values: they are
objects of Python, and the code is the function that `traceable` gives. Calls with arrays and
numbers take the path that they always take.
"""

from __future__ import annotations

from typing import Any

from funcgrad.base.forking import Lock
from funcgrad.base.imports import load
from funcgrad.base.pytree import tree_leaves
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError
from funcgrad.interop.numba.tracing import traceable
from funcgrad.numpy.writable import WritableArray

_lock = Lock()
_originals: dict[str, Any] = {}
"""Numba's methods, while ours stand in their place."""
_installed: dict[str, Any] = {}


def _holds_tracer(args: Any) -> bool:
    return any(isinstance(leaf, Tracer | WritableArray) for leaf in tree_leaves(args))


def _methods(dispatcher: Any) -> dict[str, Any]:
    """Ours of the methods of a dispatcher that meet arguments of unknown types.

    Args: dispatcher: The module ``numba.core.dispatcher``.
    """
    base, omitted = dispatcher._DispatcherBase, dispatcher.OmittedArg
    typeof, compile_for = base.typeof_pyval, base._compile_for_args
    explain, pyobject = base._explain_matching_error, dispatcher.types.pyobject

    def typeof_pyval(self: Any, val: Any) -> Any:
        return pyobject if _holds_tracer((val,)) else typeof(self, val)

    def _compile_for_args(self: Any, *args: Any, **kws: Any) -> Any:
        if not _holds_tracer(args):
            return compile_for(self, *args, **kws)
        self._types_active_call.clear()
        traced = traceable(self)
        # Defaults come as objects that hold them.
        return lambda *xs: traced(*(x.value if isinstance(x, omitted) else x for x in xs))

    def _explain_matching_error(self: Any, *args: Any, **kws: Any) -> Any:
        if not _holds_tracer(args):
            return explain(self, *args, **kws)
        name = self.py_func.__name__
        raise ArgumentError(
            f"{name} was compiled by Numba for the signatures that it was given, and for no "
            f"others, so it cannot take traced values. Call "
            f"funcgrad.interop.numba.traceable({name}), or leave the signatures away."
        )

    ours = (typeof_pyval, _compile_for_args, _explain_matching_error)
    return {method.__name__: method for method in ours}


def install() -> None:
    """Let functions of ``numba.njit`` take traced values, in this process, until `uninstall`.

    It replaces three methods of Numba's class of dispatchers, so that programs whose calls cannot
    be changed have derivatives. Where they can, `traceable` needs no such patch.

    Example:
        >>> import numba, numpy as np, funcgrad as fg
        >>> @numba.njit
        ... def f(x):
        ...     return x * np.sin(x)
        >>> fg.interop.numba.install()
        >>> float(fg.grad(f)(0.0))
        0.0
        >>> fg.interop.numba.uninstall()
    """
    with _lock:
        if _installed:
            return
        dispatcher = load("numba.core.dispatcher")
        base = dispatcher._DispatcherBase
        _installed.update(_methods(dispatcher))
        _originals.update({name: vars(base)[name] for name in _installed})
        for name, method in _installed.items():
            setattr(base, name, method)


def uninstall() -> None:
    """Give Numba its own methods back; nothing happens where `install` was not called.

    Raises: ArgumentError: If another library has replaced the methods since then.

    Example:
        >>> fg.interop.numba.uninstall()
    """
    with _lock:
        if not _installed:
            return
        base = load("numba.core.dispatcher")._DispatcherBase
        for name, method in _installed.items():
            if vars(base)[name] is not method:
                raise ArgumentError(
                    f"uninstall() cannot give Dispatcher.{name} of Numba back: another library has "
                    "replaced it since install(). Undo that first."
                )
        for name, method in _originals.items():
            setattr(base, name, method)
        _installed.clear()
        _originals.clear()
