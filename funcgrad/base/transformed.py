"""Results of transformations: objects that behave as the function that they were made of.

Unlike closures they can be pickled and copied: as the transformation, its function and its options,
never with what they have traced or compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, update_wrapper
from types import MethodType
from typing import Any, ClassVar, NoReturn, Self
from weakref import WeakKeyDictionary, ref

from funcgrad.errors import UnpicklableError


def global_name(value: Any) -> str | None:
    """The name in its module that leads to a value, if one does.

    It does for a decorated function, whose original has lost its own name to it.
    """
    name = getattr(value, "__qualname__", None)
    found = sys.modules.get(getattr(value, "__module__", None) or "")
    for part in name.split(".") if name else ():
        found = getattr(found, part, None)
    return name if found is value else None


_SCRIPTS = ("__main__", "__mp_main__")


class Travels:
    """Base of functions that are pickled by name, or else as what they are made of.

    pickle wants functions of a script by name: that of the original leads to the decorated one.
    cloudpickle wants them by value, because other processes do not have the script. Of objects it
    does not know which it is asked for; of a function it does. So a function stands in for the
    object: one that its name in the script leads to, and that holds the value.
    """

    def made_of(self, protocol: int) -> tuple[Any, ...]:
        """How to make one like it: a function, its arguments, and perhaps further attributes."""
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> Any:
        name = global_name(self)
        if name is None:
            return self.made_of(protocol)
        if self.__module__ not in _SCRIPTS or protocol < 4:  # they do not know dotted names
            return name
        stand_in = self.stand_in
        stand_in.__module__ = self.__module__
        stand_in.__qualname__ = f"{name}.stand_in"
        stand_in.value = self.made_of(protocol)
        return _restored, (stand_in,)

    @property
    def stand_in(self) -> Any:
        """Function that is pickled for it, if it belongs to a script."""
        found = _stand_ins.get(self)
        if found is None:

            def found() -> None:
                """Nobody calls it."""

            found = _stand_ins.setdefault(self, found)
            _stood_for[found] = ref(self)
        return found


_stand_ins: WeakKeyDictionary[Travels, Any] = WeakKeyDictionary()
_stood_for: WeakKeyDictionary[Any, ref[Travels]] = WeakKeyDictionary()


def _restored(stand_in: Any) -> Any:
    """Return the object that it stands for in this process, or else a new one."""
    own = _stood_for.get(stand_in)
    found = own() if own is not None else None
    if found is not None:
        return found
    make, args, *state = stand_in.value
    made = make(*args)
    if state and state[0] is not None:
        vars(made).update(state[0])
    return made


class BelongsToProcess:
    """Base of what cannot be pickled, and, since nothing in it changes, is its own copy.

    Attributes:
        called: What messages call it.
        instead: What to pickle.
    """

    __slots__ = ()
    called: ClassVar[str]
    instead: ClassVar[str]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise UnpicklableError(
            f"{self.called} cannot be pickled: it belongs to its process. {self.instead}"
        )


class HoldsProgram(BelongsToProcess):
    """A function that runs what it has traced."""

    called = "a function that holds a traced program"
    instead = "Pickle the function that it was made of."

    def __init__(self, run: Callable[..., Any]) -> None:
        update_wrapper(self, run)
        self._run = run

    def __call__(self, *args: Any) -> Any:
        return self._run(*args)

    def __repr__(self) -> str:
        return f"<function {self._run.__qualname__}>"


class MadeOf(Travels):
    """Base of functions that know what they are made of.

    Attributes:
        transformation: The public function that made it.
        original: Its first argument.
        options: Its keyword arguments.
    """

    transformation: Callable[..., Any]
    original: Any
    options: dict[str, Any]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)  # type: ignore[arg-type]

    def made_of(self, protocol: int) -> tuple[Any, ...]:
        return partial(self.transformation, **self.options), (self.original,)


class Wrapper(MadeOf):
    """Base of functions that take over the name, documentation and signature of the original.

    Args:
        transformation: The public function that makes such objects.
        fun: Its first argument, the original.
        options: Its keyword arguments.
    """

    def __init__(self, transformation: Callable[..., Any], fun: Any, **options: Any) -> None:
        update_wrapper(self, fun, updated=())  # type: ignore[arg-type]
        self.transformation = transformation
        self.original = fun
        self.options = options

    def __repr__(self) -> str:
        inner = getattr(self, "__name__", None) or repr(self.original)
        return f"<{self.transformation.__name__}({inner})>"


class Transformed(Wrapper):
    """A function made of another one.

    Args:
        run: Called with the tuple of positional and the dict of keyword arguments.
        transformation: The public function that makes such objects.
        fun: Its first argument, the original.
        options: Its keyword arguments.
    """

    def __init__(
        self,
        run: Callable[[tuple[Any, ...], dict[str, Any]], Any],
        transformation: Callable[..., Any],
        fun: Any,
        **options: Any,
    ) -> None:
        super().__init__(transformation, fun, **options)
        self._run = run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(args, kwargs)
