"""A process in which SciPy's functions take traced values.

SciPy makes arrays of its arguments and asks nobody first, so that a traced value cannot redirect a
call, as it does those of NumPy. While the patch is installed, functions, classes and distributions
of SciPy that funcgrad has by the same name look at their arguments: a call with a traced value goes
to funcgrad, and so does one with a function while something is traced, since that function may
close over traced values. All other calls are SciPy's.

Names that modules imported from SciPy before stay SciPy's. SciPy's own modules call each other by
private names, which are not changed. Classes with a metaclass of their own, as sparse arrays, stay.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

import funcgrad.scipy
from funcgrad.base.forking import Lock
from funcgrad.base.imports import load
from funcgrad.base.namespaces import counterpart
from funcgrad.base.pytree import tree_leaves
from funcgrad.core.trace import EVAL, Tracer, current_trace
from funcgrad.errors import ArgumentError
from funcgrad.numpy.writable import WritableArray

_TRACED = (Tracer, WritableArray)
_lock = Lock()
_ABSENT = object()
_originals: dict[tuple[Any, str], Any] = {}
"""Values of attributes that ours replace, by the module or class and the name."""
_installed: dict[tuple[Any, str], Any] = {}
_classes: dict[type, tuple[type, Any]] = {}
"""SciPy's class and its counterpart, by the class that stands for both."""
_objects: dict[tuple[type, str], Any] = {}
"""Counterparts of SciPy's distributions, by class and name: frozen ones have copies of them."""
_made: WeakKeyDictionary[Any, tuple[type, tuple[Any, ...], dict[str, Any]]] = WeakKeyDictionary()
"""For objects of SciPy's classes: the counterpart, and the arguments that they were made of."""


def _is_redirected(*given: Any) -> bool:
    """Whether a call with these arguments is funcgrad's."""
    leaves = tree_leaves(given)
    return any(issubclass(kind, _TRACED) for kind in {*map(type, leaves)}) or (
        current_trace() is not EVAL and any(map(callable, leaves))
    )


def _function(theirs: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def redirected(*args: Any, **kwargs: Any) -> Any:
        return (ours if _is_redirected(args, kwargs) else theirs)(*args, **kwargs)

    return redirected


def _method(
    theirs: Callable[..., Any], name: str, counterpart_of: Callable[[Any], Any]
) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def redirected(self: Any, *args: Any, **kwargs: Any) -> Any:
        ours = counterpart_of(self) if _is_redirected(args, kwargs) else None
        if ours is None:
            return theirs(self, *args, **kwargs)
        return getattr(ours, name)(*args, **kwargs)

    return redirected


class _Redirecting(type):
    """Class of the classes that stand for SciPy's: objects of traced values are funcgrad's."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls not in _classes:  # a class that a program derives
            return super().__call__(*args, **kwargs)
        theirs, ours = _classes[cls]
        if _is_redirected(args, kwargs):
            return ours(*args, **kwargs)
        made = theirs(*args, **kwargs)
        if isinstance(ours, type):  # its methods are redirected
            _made[made] = ours, args, kwargs
        return made

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or isinstance(instance, cls._both)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return super().__subclasscheck__(subclass) or issubclass(subclass, cls._both)

    @property
    def _both(cls) -> tuple[type, ...]:
        """SciPy's class and its counterpart, if that is one."""
        return tuple(x for x in _classes.get(cls, ()) if isinstance(x, type))


def _object_of(made: Any) -> Any:
    """The counterpart of an object of one of SciPy's classes, if it is known how it was made."""
    ours, args, kwargs = _made.get(made, (None, (), {}))
    return None if ours is None else ours(*args, **kwargs)


def _distribution_of(distribution: Any) -> Any:
    return _objects.get((type(distribution), getattr(distribution, "name", "")))


def _replace(owner: Any, name: str, ours: Any) -> None:
    if (owner, name) not in _installed:
        _originals[owner, name] = _own(owner, name)
        setattr(owner, name, ours)
        _installed[owner, name] = ours


def _own(owner: Any, name: str) -> Any:
    return vars(owner).get(name, _ABSENT)


def _replace_methods(theirs: type, ours: Any, counterpart_of: Callable[[Any], Any]) -> None:
    for name in (*(name for name in dir(ours) if not name.startswith("_")), "__call__"):
        method = inspect.getattr_static(theirs, name, None)
        if not hasattr(ours, name):
            continue
        if isinstance(method, classmethod | staticmethod):
            bound = getattr(theirs, name)
            _replace(theirs, name, staticmethod(_function(bound, getattr(ours, name))))
        elif inspect.isfunction(method):
            _replace(theirs, name, _method(method, name, counterpart_of))


def _redirect(module: Any, name: str, ours: Any) -> None:
    """Redirect what a module of SciPy has by a name."""
    theirs = getattr(module, name, ours)
    has_own_kind = isinstance(theirs, type) and type(theirs) is not type
    if theirs is ours or isinstance(theirs, np.ufunc) or has_own_kind:
        return
    if isinstance(theirs, type):
        about = {"__module__": module.__name__, "__doc__": theirs.__doc__}
        stand_in = _Redirecting(theirs.__name__, (theirs,), about)
        _classes[stand_in] = theirs, ours
        if isinstance(ours, type):
            _replace_methods(theirs, ours, _object_of)
        _replace(module, name, stand_in)
    elif inspect.isfunction(ours):
        redirected = _function(theirs, ours)
        redirected.__module__ = module.__name__  # where pickle finds it
        _replace(module, name, redirected)
    else:
        _objects[type(theirs), getattr(theirs, "name", "")] = ours
        _replace_methods(type(theirs), ours, _distribution_of)


def install() -> None:
    """Let SciPy's functions take traced values, in this process, until `uninstall`.

    It replaces the functions in SciPy's public modules, and methods of its classes and
    distributions, that have a counterpart in `funcgrad.scipy`. Call it before a program imports
    single names from SciPy. Where the imports of a program can be changed, `funcgrad.scipy` needs
    no such patch.

    Example:
        >>> import numpy as np, scipy.linalg, funcgrad as fg
        >>> fg.interop.scipy.install()
        >>> round(float(fg.grad(lambda t: scipy.linalg.expm(t * np.eye(2))[0, 0])(1.0)), 6)
        2.718282
        >>> fg.interop.scipy.uninstall()
    """
    with _lock:
        if _installed:
            return
        for module in _modules(funcgrad.scipy):
            path = module.__name__.removeprefix("funcgrad.")
            for name in module.__all__:
                if counterpart(f"{path}.{name}") is not None:
                    _redirect(load(path), name, getattr(module, name))


def _modules(module: ModuleType) -> Iterator[ModuleType]:
    """The public modules in a module of `funcgrad.scipy`, which are loaded for that."""
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            yield value
            yield from _modules(value)


def uninstall() -> None:
    """Give SciPy its own functions back; nothing happens where `install` was not called.

    Raises: ArgumentError: If another library has replaced one of them since then.

    Example:
        >>> fg.interop.scipy.uninstall()
    """
    with _lock:
        for (owner, name), ours in _installed.items():
            if _own(owner, name) is not ours:
                raise ArgumentError(
                    f"uninstall() cannot give {owner.__name__}.{name} of SciPy back: another "
                    "library has replaced it since install(). Undo that first."
                )
        for (owner, name), theirs in _originals.items():
            if theirs is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, theirs)
        for table in (_installed, _originals, _classes, _objects, _made):
            table.clear()
