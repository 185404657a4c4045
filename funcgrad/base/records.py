"""Data classes whose methods are generated when the first object is made.

`dataclasses.dataclass` writes up to six methods of a class as text and compiles each, where the
class is defined. There are two hundred of them here, of which a small program uses twenty: that
was half of the time of ``import funcgrad``. Here a class gets the same methods, all but
``__init__`` as closures, when somebody asks for its fields or calls it: under a lock and with
``__init__`` last, so that no other thread meets half of a class.

Fields are compared as the items of tuples are. Since Python 3.13, data classes compare them one by
one, and one with a NaN differs from itself: a cache would never find it.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from reprlib import recursive_repr
from types import CodeType, FunctionType, NoneType
from typing import TYPE_CHECKING, Any

from funcgrad.base.forking import Lock
from funcgrad.base.signatures import annotations_of

__all__ = ["dataclass", "make_record"]

_UNFINISHED: dict[type, dict[str, Any]] = {}
"""Classes that are being finished, and what they were like before."""


def _restore_all() -> None:
    """Undo in a child what another thread of its parent had begun."""
    for cls, before in _UNFINISHED.items():
        _restore(cls, before)
    _UNFINISHED.clear()


_LOCK = Lock(_restore_all)


class _Pending:
    """Stands in a class for what it gets when it is finished; reading it finishes the class."""

    def __init__(self, cls: type, name: str, options: dict[str, bool]) -> None:
        self.cls = cls
        self.name = name
        self.options = options

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        with _LOCK:
            if self.cls.__dict__[self.name] is self:
                _complete(self.cls, self.options)
        found = self.cls.__dict__[self.name]
        return found.__get__(instance, owner) if self.name == "__init__" else found


def _complete(cls: type, options: dict[str, bool]) -> None:
    """Finish a class, also in a finalizer that runs while this thread is finishing it.

    The inner call begins anew and completes the class; then the outer one's work counts no more.
    """
    outer = _UNFINISHED.get(cls)
    before = dict(cls.__dict__ if outer is None else outer)
    if not isinstance(before["__init__"], _Pending):
        return
    _UNFINISHED[cls] = before
    try:
        _restore(cls, before)
        _finish(cls, options)
        finished = dict(cls.__dict__)
    except BaseException as error:  # Ctrl-C, after which the class waits for the next attempt
        _restore(cls, _UNFINISHED[cls])
        if _UNFINISHED[cls] is before or not isinstance(error, Exception):
            raise
    else:
        if _UNFINISHED[cls] is before:
            _UNFINISHED[cls] = finished
        else:
            _restore(cls, _UNFINISHED[cls])
    finally:
        if outer is None:
            del _UNFINISHED[cls]


def _restore(cls: Any, before: dict[str, Any]) -> None:
    """Undo half of the work, which cannot be done twice: defaults leave the fields first."""
    for name in [name for name in cls.__dict__ if name not in before]:
        delattr(cls, name)
    for name, value in before.items():
        if cls.__dict__.get(name) is not value:
            setattr(cls, name, value)


def _finish(cls: Any, options: dict[str, bool]) -> None:
    is_frozen = options.get("frozen", False)
    _add_fields(cls)
    for name in ("__dataclass_params__", "__replace__"):
        if name in vars(_EXAMPLES[is_frozen]):
            setattr(cls, name, vars(_EXAMPLES[is_frozen])[name])
    own, fields = cls.__dict__, dataclasses.fields(cls)
    if "__match_args__" not in own:
        type.__setattr__(cls, "__match_args__", tuple([f.name for f in fields if f.init]))
    if is_frozen:
        cls.__setattr__, cls.__delattr__ = _refusals(cls, frozenset(f.name for f in fields))
    if options.get("repr", True) and "__repr__" not in own:
        cls.__repr__ = _representation([f.name for f in fields if f.repr])
    if options.get("eq", True):
        values = _values([f.name for f in fields if f.compare])
        if own.get("__hash__") is None:
            cls.__hash__ = (lambda self: hash(values(self))) if is_frozen else None
        if "__eq__" not in own:
            cls.__eq__ = _equality(values)
    cls.__init__ = _initializer(cls, is_frozen)


def _add_fields(cls: Any) -> None:
    """Collect the fields of a class, as `dataclasses` does, and leave their defaults in it.

    Raises: ValueError: A default is one that objects could change.
    """
    fields: dict[str, Any] = {}
    for base in cls.__mro__[:0:-1]:
        fields.update(getattr(base, "__dataclass_fields__", {}))
    for name, annotation in annotations_of(cls).items():
        if "ClassVar" in str(annotation):
            continue
        given = cls.__dict__.get(name, dataclasses.MISSING)
        is_told = isinstance(given, dataclasses.Field)
        found: Any = given if is_told else dataclasses.field(default=given)
        if type(found.default).__hash__ is None:
            raise ValueError(f"{cls.__qualname__}.{name} needs a default_factory")
        found.name, found.type, found.kw_only, found._field_type = name, annotation, False, _FIELD
        fields[name] = found
        if is_told and found.default is dataclasses.MISSING:
            delattr(cls, name)
        elif is_told:
            setattr(cls, name, found.default)
    cls.__dataclass_fields__ = fields


@dataclasses.dataclass
class _Example:
    x: int


@dataclasses.dataclass(frozen=True)
class _FrozenExample:
    x: int


_EXAMPLES = _Example, _FrozenExample
"""By whether objects are frozen, a class with what `dataclasses` leaves in each."""

_FIELD: Any = dataclasses.fields(_EXAMPLES[0])[0]._field_type  # type: ignore[attr-defined]
"""Mark of a field among the variables of a class."""


def _refusals(cls: Any, names: frozenset[str]) -> tuple[Callable[..., None], Callable[..., None]]:
    """``__setattr__`` and ``__delattr__`` of a frozen class, whose subclasses may have others."""

    def assign(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return assign, delete


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _equality(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], bool]:
    def equals(self: Any, other: Any) -> bool:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return equals


def _representation(names: Sequence[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def represent(self: Any) -> str:
        listed = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({listed})"

    return represent


def _initializer(cls: type, is_frozen: bool) -> Callable[..., None]:
    """``__init__`` of a data class: its fields in their order, then ``__post_init__``."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_absent": dataclasses.MISSING}
    names: dict[Any, str] = {}
    parameters, lines, defaults = ["self"], [], []
    for k, field in enumerate(dataclasses.fields(cls)):
        name = value = f"_{k}"
        names[name] = field.name
        is_made = field.default_factory is not dataclasses.MISSING
        if is_made:
            known[f"_new{k}"] = field.default_factory
            value = f"_new{k}() if {name} is _absent else {name}" if field.init else f"_new{k}()"
        if field.init:
            parameters.append(name)
            if is_made or field.default is not dataclasses.MISSING:
                defaults.append(field.default)
            elif defaults:
                raise TypeError(f"{cls.__qualname__}.{field.name} follows one with a default")
        elif not is_made:
            continue  # a default is the class's, anything else is for __post_init__
        lines.append(f" _set(self, {name!r}, {value})" if is_frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    lines.append(" pass")
    code = _compiled(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines))
    variables, attributes, constants = (
        tuple([names.get(x, x) for x in part])
        for part in (code.co_varnames, code.co_names, code.co_consts)
    )
    code = code.replace(co_varnames=variables, co_names=attributes, co_consts=constants)
    made = FunctionType(code, known, "__init__", tuple(defaults))
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__module__ = cls.__module__
    return made


@lru_cache(256)
def _compiled(text: str) -> CodeType:
    """The code of a function, in which fields have numbers: many classes share it."""
    known: dict[str, Any] = {}
    exec(text, known)
    code: CodeType = known["__init__"].__code__
    return code


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: Any = None, /, **options: bool) -> Any:
        """`dataclasses.dataclass` that is done on demand; its options are frozen, eq and repr.

        Args:
            cls: The class; without one, the result is a decorator.
            options: As there.

        Returns:
            The class itself.
        """
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        if type(cls.__dict__.get("__init__")) not in (NoneType, _Pending):
            raise TypeError(f"{cls.__qualname__} has an __init__; use dataclasses.dataclass")
        for name in ("__init__", "__dataclass_fields__"):
            setattr(cls, name, _Pending(cls, name, options))
        return cls


def make_record(cls: type) -> None:
    """Make a class a frozen data class, unless it or a base has an ``__init__`` of its own."""
    known = [vars(base) for base in cls.__mro__[:-1]]
    if all("__dataclass_fields__" in names for names in known if "__init__" in names):
        dataclass(frozen=True)(cls)
