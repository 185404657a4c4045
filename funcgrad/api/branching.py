"""Branches and loops of rewritten functions (`funcgrad.api.rewriting`), while they run.

With values that are known, every call here does what Python's statement did. With a traced
condition, the arms become functions of `cond` and `while_loop`. Their state is what Python's
variables and arrays hold:

- variables that the arms assign: what they hold at the end is a result, and comes back as the value
  of the variable;
- arrays that the arms write into, under whatever name: they are those of the trace of an arm while
  it runs.

Which arrays are written is found by tracing: an arm that writes into one more is traced again.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from types import CellType, CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from funcgrad import numpy as fnp
from funcgrad.api import held
from funcgrad.api.rewriting import RESERVED
from funcgrad.base.pytree import tree_flatten, tree_leaves, tree_map, tree_structure
from funcgrad.base.records import dataclass
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import (
    ArgumentError,
    ConcretizationTypeError,
    IndexTypeError,
    ShapeError,
    TracerBoolConversionError,
    TreeError,
)
from funcgrad.higher_order.staging import located
from funcgrad.lax.branches import cond
from funcgrad.lax.loops import fori_loop, while_loop
from funcgrad.numpy.writable import WritableArray, in_current_trace, made
from funcgrad.primitives.objects import StandsForArray, unwrapped

Function = Callable[..., Any]


class _Undefined:
    def __repr__(self) -> str:
        return "no value"


UNDEFINED = _Undefined()
"""The value of a variable that has none."""


def read(get: Function) -> Any:
    """The value of a variable, or `UNDEFINED`."""
    try:
        return get()
    except NameError:
        return UNDEFINED


@dataclass(eq=False)
class State:
    """The variables of a statement.

    Args:
        names: Those that it assigns.
        read: Gives their values.
        write: Takes them.
        others: Those that occur in it.
        read_others: Gives their values.
        changed: Those of them into which it writes, as far as can be seen.
    """

    names: Sequence[str]
    read: Function
    write: Function
    others: Sequence[str]
    read_others: Function
    changed: Sequence[str]


# Conditions.


def _is_traced(x: Any) -> bool:
    """Whether the truth of a value is not known."""
    if not isinstance(x, Tracer | StandsForArray):
        return False
    x = unwrapped(x)
    return isinstance(x, Tracer) and x.concrete() is None


def _checked(test: Any, word: str) -> Any:
    test = unwrapped(test)
    aval = aval_of(test)
    if aval.shape:
        raise located(
            ShapeError,
            f"`{word}` needs one bool, got {aval.strong()}.",
            "Reduce it with .any() or .all(), or choose element by element with numpy.where.",
        )
    return test if aval.dtype.kind == "b" else test != 0


def known(test: Any, where: str) -> Any:
    """A condition that must be known while a function is traced.

    Args:
        test: The condition.
        where: The statement that stays Python's.
    """
    if _is_traced(test):
        raise located(
            TracerBoolConversionError,
            f"{where} cannot depend on a traced value, {aval_of(unwrapped(test))}.",
            "Only `if`, `while`, `for`, `and`, `or`, `not` and conditional expressions can: "
            "move it out of that statement, or use numpy.where or lax.cond.",
        )
    return test


def both(first: Any, *rest: Function) -> Any:
    """``first and rest()``."""
    for other in rest:
        if _is_traced(first):
            first = cond(_checked(first, "and"), other, _constantly(first))
        elif not first:
            return first
        else:
            first = other()
    return first


def either(first: Any, *rest: Function) -> Any:
    """``first or rest()``."""
    for other in rest:
        if _is_traced(first):
            first = cond(_checked(first, "or"), _constantly(first), other)
        elif first:
            return first
        else:
            first = other()
    return first


def negation(x: Any) -> Any:
    """``not x``."""
    return fnp.logical_not(_checked(x, "not")) if _is_traced(x) else not x


def choice(test: Any, then: Function, otherwise: Function) -> Any:
    """``then() if test else otherwise()``."""
    return branch(test, then, otherwise, _NOTHING)


def _constantly(value: Any) -> Function:
    return lambda: value


_NOTHING = State((), lambda: (), lambda values: None, (), lambda: (), ())


# Python's functions.


class _Range:
    """A `range` whose bounds are traced."""

    def __init__(self, *bounds: Any) -> None:
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        self.start, self.step = start, step
        self.count = fnp.maximum(-((start - stop) // step), 0)

    def __getitem__(self, i: Any) -> Any:
        return self.start + self.step * i


def _range(*bounds: Any) -> Any:
    return _Range(*map(unwrapped, bounds)) if any(map(_is_traced, bounds)) else range(*bounds)


def _fold(function: Function, fold: Function) -> Function:
    """`min` or `max`, of traced numbers by comparing elements."""

    def call(*args: Any, **options: Any) -> Any:
        values = list(args[0]) if len(args) == 1 else args
        if options or not any(map(_is_traced, values)):
            return function(*args, **options)
        first, *rest = values
        for value in rest:
            first = fold(first, value)
        return first

    return call


def _number(kind: type, dtype: Any) -> Function:
    """`int` or `float`, of traced numbers a conversion."""

    def call(*args: Any, **options: Any) -> Any:
        if len(args) == 1 and kind is float and isinstance(args[0], Tracer | StandsForArray):
            return fnp.astype(args[0], dtype)  # also of a known number, which has a derivative
        if len(args) == 1 and _is_traced(args[0]):
            return fnp.astype(fnp.trunc(args[0]), dtype)
        return kind(*args, **options)

    return call


BUILTINS: dict[str, Function] = {
    "range": _range,
    "max": _fold(builtins.max, fnp.maximum),
    "min": _fold(builtins.min, fnp.minimum),
    "float": _number(float, np.float64),
    "int": _number(int, np.int64),
}
"""Functions of Python's that take traced numbers, by name."""


def builtin(function: Any) -> Any:
    """Replace a function of Python's that takes no traced numbers."""
    name = getattr(function, "__name__", "")
    if name in BUILTINS and function is getattr(builtins, name):
        return BUILTINS[name]
    return function


# Statements.


def branch(test: Any, then: Function, otherwise: Function, state: State) -> Any:
    """``if test: then() else: otherwise()``; the result of the arm that runs."""
    if not _is_traced(test):
        return then() if test else otherwise()
    return _Branch(state, _checked(test, "if"), (then, otherwise)).run()


def repeat(test: Function, step: Function, state: State) -> None:
    """``while test(): step()``."""
    while True:
        holds = test()
        if _is_traced(holds):
            _Loop(state, step, lambda: _checked(test(), "while")).run()
            return
        if not holds:
            return
        step()


def iterate(
    items: Iterable[Any], step: Function, left: Function | None, acts: bool, state: State
) -> None:
    """``for item in items: step(item)``, until ``left()`` holds.

    Args:
        items: What the loop is over.
        step: The body.
        left: Whether the loop has been left, if it can be.
        acts: Whether the body calls something for its effect, which each step must have.
        state: The variables.
    """
    go_on = None if left is None else lambda: fnp.logical_not(left())
    if isinstance(items, _Range):
        _Loop(state, step, go_on, items, items.count).run()
        return
    is_tried = acts or not isinstance(items, _INDEXED)
    count = _n_traced.get()
    iterator = iter(items)
    for done, item in enumerate(iterator, 1):
        if left is not None and _is_traced(left()):
            branch(left(), lambda: None, partial(step, item), state)
        elif left is not None and left():
            return
        else:
            step(item)
        if not is_tried and _n_traced.get() != count:
            is_tried = True
            rest: Any = items[done:]  # type: ignore[index]
            if len(rest) >= LEAST_STEPS and _is_rolled(state, step, go_on, rest):
                return


LEAST_STEPS = 4
"""How many steps of a `for` loop that holds traced conditions become a loop."""

_INDEXED = (range, np.ndarray, Tracer, WritableArray)
_assigned: WeakKeyDictionary[CodeType, set[str]] = WeakKeyDictionary()
"""Items that arms of a statement have assigned before: arms are traced again for new ones."""
_n_traced: ContextVar[int] = ContextVar("funcgrad_traced_statements", default=0)
"""How many statements have met a traced condition."""


def _is_rolled(state: State, step: Function, go_on: Function | None, items: Any) -> bool:
    """Whether the rest of a loop became one; else nothing has been done.

    It does not where a step needs to know its item, for a shape or an entry of a list.
    """
    try:
        _Loop(state, step, go_on, _Rows(items), len(items)).run()
    except (ConcretizationTypeError, IndexTypeError, ArgumentError, ShapeError, TreeError):
        return False
    return True


class _Rows:
    """Items of what has a length, by a traced place."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def __getitem__(self, i: Any) -> Any:
        items = self.items
        return items.start + items.step * i if isinstance(items, range) else fnp.asarray(items)[i]


def _restore(container: Any, before: Any) -> None:
    """Give a list, a dict or a set the items back that it had."""
    if held.changed_items("", container, before) == []:
        return
    container.clear()
    if isinstance(container, list):
        container.extend(before)
    else:
        container.update(before)


class _Again(Exception):
    """The state holds more than was thought."""


def _is_dynamic(value: Any) -> bool:
    """Whether a value is made of arrays and numbers."""
    if value is UNDEFINED or isinstance(value, FunctionType | type):
        return False
    try:
        for leaf in tree_leaves(value):
            aval_of(unwrapped(leaf))
    except Exception as error:
        if isinstance(error, TypeError | ValueError | AttributeError):
            return False
        raise
    return True


def _is_same(a: Any, b: Any) -> bool:
    """Whether two values, as Python knows them, are one."""
    return a is b or (isinstance(a, _CONSTANTS) and type(a) is type(b) and repr(a) == repr(b))


_CONSTANTS = (str, bytes, bool, int, float, complex)


def _plain(value: Any) -> Any:
    """A copy of a pytree that holds values, and no names for them."""
    return tree_map(unwrapped, value)


def _named(value: Any) -> Any:
    """Pytree whose arrays users can assign to."""
    return tree_map(made, value)


def _roots(values: Iterable[Any]) -> dict[int, WritableArray]:
    """The arrays that can be written into, among values and what their functions close over."""
    found: dict[int, WritableArray] = {}
    seen: set[int] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, FunctionType):
            if id(value) not in seen:
                seen.add(id(value))
                pending += map(_content, value.__closure__ or ())
        elif isinstance(value, WritableArray):
            found.setdefault(id(value.root), value.root)
        elif isinstance(value, list | tuple | dict):
            pending += tree_leaves(value)
    return found


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNDEFINED


class _Traced:
    """A statement whose condition is traced."""

    word = ""

    def __init__(self, state: State) -> None:
        _n_traced.set(_n_traced.get() + 1)
        self.state = state
        self.code = state.write.__code__
        """Code that all runs of the statement share."""
        self.found: list[held.Item] = []
        """Items that an arm has assigned, of which the state is to have the values."""
        self.before = list(state.read())
        self.others = others = state.read_others()
        values = dict(zip(state.others, others, strict=True))
        changed = {name: self._changed_value(name, values) for name in state.changed}
        written = _roots(changed.values())
        roots = _roots([*self.before, *others])
        self.roots = list({**written, **roots}.values())
        self.n_written = len(written)
        """How many of the arrays, from the first one on, arms may have changed when they end."""
        self.containers = held.containers([*values.items(), *changed.items()])

    def _begin(self) -> None:
        """Read the variables, for the first time or since there are more."""

    def _extend(self, places: Sequence[held.Place]) -> None:
        """Let places be variables of the statement, too."""
        names, read, write = self.state.names, self.state.read, self.state.write

        def write_all(values: Sequence[Any]) -> None:
            write(values[: len(names)])
            for place, value in zip(places, values[len(names) :], strict=True):
                place.write(value)

        self.state = replace(
            self.state,
            names=[*names, *(place.name for place in places)],
            read=lambda: [*read(), *(place.read() for place in places)],
            write=write_all,
        )
        self.before = [*self.before, *(place.read() for place in places)]

    def _changed_value(self, name: str, values: dict[str, Any]) -> Any:
        """Value at a place that the statement changes; an attribute becomes a variable.

        Args:
            name: A variable, an attribute, or ``x.y[]`` for elements of one.
            values: Of the variables.
        """
        path = name.removesuffix("[]")
        place = held.attribute(path, values) if "." in path else None
        value = values.get(path) if place is None else place.read()
        if path == name and "." in path:
            if place is None:
                raise located(
                    ArgumentError,
                    f"the attribute `{name}` is assigned inside of `{self.word}` with a traced "
                    "condition.",
                    "Assign it before, or assign a variable, and the attribute behind it.",
                )
            self._extend([place])
        elif isinstance(value, np.ndarray):
            raise located(
                ArgumentError,
                f"`{path}` is an array of NumPy, {aval_of(value)}, that is changed inside of "
                f"`{self.word}` with a traced condition.",
                "Make it by funcgrad.numpy, such as fnp.zeros(n) or fnp.array(x).",
            )
        return value

    @contextmanager
    def entered(
        self, values: Sequence[Any], contents: Sequence[Any]
    ) -> Iterator[Callable[[], list[WritableArray]]]:
        """The state inside of an arm; `_Again` if it changes arrays that were not expected.

        Args:
            values: Those of the variables.
            contents: Those of the arrays that arms may change.
        Returns: What gives the arrays that the arm has changed.
        """
        with in_current_trace(self.roots, contents) as changed:
            self.state.write(values)
            try:
                yield changed
                self._check_items()
                more = [x for x in changed() if not any(x is y for y in self.written)]
                if more:
                    others = [x for x in self.roots if not any(x is y for y in more)]
                    n = self.n_written
                    self.roots = [*others[:n], *more, *others[n:]]
                    self.n_written += len(more)
                    raise _Again
            finally:
                self.state.write(self.before)
                for _, container, before in self.containers:
                    _restore(container, before)

    def _check_items(self) -> None:
        """Find items that an arm assigns, which are variables, too; `_Again` if it does."""
        found: list[held.Item] = []
        for name, container, before in self.containers:
            items = held.changed_items(name, container, before)
            if items is None:
                raise located(
                    TreeError,
                    f"`{name}` is a {type(container).__name__} that is changed inside of "
                    f"`{self.word}` with a traced condition: what it holds would depend on values.",
                    "Assign items that are there before, or write into an array that has room for "
                    "all: y = fnp.zeros(n), and y[i] = x.",
                )
            found += [item for item in items if item.name not in self.state.names]
        if found:
            self.found = found
            _assigned.setdefault(self.code, set()).update(item.name for item in found)
            raise _Again

    @property
    def written(self) -> list[WritableArray]:
        """The arrays that arms may change."""
        return self.roots[: self.n_written]

    def arrays(self) -> list[Any]:
        """The contents of ``written``."""
        return [unwrapped(root) for root in self.written]

    def leave(self, values: Sequence[Any], arrays: Sequence[Any]) -> None:
        """The state behind the statement."""
        for root, array in zip(self.written, arrays, strict=True):
            root.replace(array)
        self.state.write(values)

    def until_all_is_known(self, trace: Callable[[], Any]) -> Any:
        """The result of ``trace``, once it needs no more of the state than it was given."""
        while True:
            try:
                return trace()
            except _Again:
                if self.found:
                    self._extend(self.found)
                    self.found = []
                    self._begin()


class _Branch(_Traced):
    """An `if`."""

    word = "if"

    def __init__(self, state: State, test: Any, arms: Sequence[Function]) -> None:
        super().__init__(state)
        self.test = test
        self.arms = arms
        known = _assigned.get(self.code, ())
        self._extend([item for item in held.items(self.containers) if item.name in known])
        self._begin()
        self.templates: dict[str, Function] = {}
        self.lost: set[str] = set()

    def _begin(self) -> None:
        self.names = [*self.state.names, _VALUE]

    def run(self) -> Any:
        return self.until_all_is_known(self._run)

    def _run(self) -> Any:
        left: dict[bool, list[Any]] = {}

        def arm(holds: bool) -> Function:
            def run() -> Any:
                with self.entered(self.before, ()):
                    value = self.arms[not holds]()
                    left[holds] = [*self.state.read(), value]
                    # Arrays that the arm has written into are only here what it has made of them.
                    return self._results(left[holds], left.get(not holds)), self.arrays()

            run.__name__ = self.word
            return run

        results, arrays = cond(self.test, arm(True), arm(False))
        values = []
        for name, first, second, before in zip(
            self.names, left[True], left[False], [*self.before, UNDEFINED], strict=True
        ):
            if name in self.lost:
                values.append(UNDEFINED)
            elif name not in results or (first is before and second is before):
                values.append(first)
            else:
                values.append(first if _is_same(first, second) else _named(results[name]))
        self.leave(values[:-1], arrays)
        return values[-1]

    def _results(self, values: Sequence[Any], others: Sequence[Any] | None) -> dict[str, Any]:
        """The variables that hold arrays behind both arms.

        Args:
            values: Of all variables behind this arm.
            others: Behind the other one, if that was traced before.
        """
        found = {}
        for name, value, other in zip(self.names, values, others or values, strict=True):
            if (value is UNDEFINED) != (other is UNDEFINED):
                self._one_sided(name, other if value is UNDEFINED else value)
            if value is UNDEFINED and name in self.templates:
                found[name] = self.templates[name]()
            elif value is UNDEFINED or name in self.lost:
                continue
            else:
                if other is not UNDEFINED:
                    self._check(name, value, other)
                if _is_dynamic(value):
                    found[name] = _plain(value)
        return found

    def _one_sided(self, name: str, value: Any) -> None:
        """A variable that only one arm assigns has no value behind it, unless nobody asks."""
        if name in self.templates or name in self.lost:
            return
        if name.startswith(RESERVED) and _is_dynamic(value):
            self.templates[name] = _zeros_like(value)
        else:
            self.lost.add(name)
        raise _Again

    def _check(self, name: str, first: Any, second: Any) -> None:
        """Raise for values of two arms that cannot be one."""
        dynamic = _is_dynamic(first), _is_dynamic(second)
        if dynamic == (False, False):
            if not _is_same(first, second):
                raise self._differ(TreeError, name, first, second)
        elif dynamic != (True, True) or tree_structure(_plain(first)) != tree_structure(
            _plain(second)
        ):
            raise self._differ(TreeError, name, first, second)
        elif [aval_of(unwrapped(x)).shape for x in tree_leaves(first)] != [
            aval_of(unwrapped(x)).shape for x in tree_leaves(second)
        ]:
            raise self._differ(ShapeError, name, first, second)

    def _differ(self, kind: Any, name: str, value: Any, other: Any) -> Exception:
        return located(
            kind,
            f"{_shown(name)} differs between the arms of an `if` with a traced condition.",
            f"  in one arm    {_text(other)}",
            f"  in the other  {_text(value)}",
            "Give it arrays or numbers of one structure and shape in both.",
        )


_VALUE = "<value>"
"""Stands for what an arm returns, among the variables."""


def _shown(name: str) -> str:
    """A variable as messages show it."""
    return "the result" if name.startswith(RESERVED) else f"`{name}`"


def _text(value: Any) -> str:
    """A value as messages show it: arrays by their types."""
    if not _is_dynamic(value) or value is None:
        return repr(value)
    leaves, tree = tree_flatten(_plain(value))
    types = [str(aval_of(x).strong()) for x in leaves]
    return types[0] if len(types) == 1 and tree == tree_structure(0) else f"{tree} of {types}"


def _zeros_like(value: Any) -> Function:
    """A function that makes zeros of the same types, for places where it is never read."""
    avals = tree_map(lambda x: aval_of(unwrapped(x)), value)
    return lambda: tree_map(lambda a: np.zeros(a.shape, a.dtype), avals)


class _Loop(_Traced):
    """A loop.

    Args:
        state: Its variables.
        step: The body, a function of the item, if there are items.
        go_on: Gives the condition, if there is one.
        items: By their place.
        count: How many.
    """

    def __init__(
        self,
        state: State,
        step: Function,
        go_on: Function | None,
        items: Any = None,
        count: Any = None,
    ) -> None:
        self.word = "while" if items is None else "for"
        super().__init__(state)
        self.step = step
        self.go_on = go_on
        self.items = items
        self.count = count
        self.first: dict[str, Any] = {}
        self._begin()

    def _begin(self) -> None:
        for name, value in zip(self.state.names, self.before, strict=True):
            if _is_dynamic(value) and not isinstance(value, WritableArray):
                self.first.setdefault(name, value)
        self.carried = {*self.first}

    def run(self) -> None:
        values, arrays = self.until_all_is_known(self._run)
        self.leave(self._inside(values), arrays)

    def _inside(self, values: dict[str, Any]) -> list[Any]:
        """The values of all variables."""
        return [
            _named(_plain(values[name])) if name in values else before
            for name, before in zip(self.state.names, self.before, strict=True)
        ]

    def _run(self) -> tuple[dict[str, Any], list[Any]]:
        initial = ({n: _plain(v) for n, v in self.first.items()}, self.arrays())

        def step(i: Any, state: Any) -> Any:
            values, arrays = state
            inside = self._inside(values)
            with self.entered(inside, arrays) as changed:
                self.step(*([] if self.items is None else [self.items[i]]))
                after = self.state.read()
                self._check_aliases(inside, after, changed())
                return self._results(after), self.arrays()

        def go_on(state: Any) -> Any:
            values, arrays = state
            assert self.go_on is not None
            with self.entered(self._inside(values), arrays):
                return unwrapped(self.go_on())

        step.__name__ = self.word
        if self.go_on is None:
            return fori_loop(0, self.count, step, initial)

        def counted_step(counted: Any) -> Any:
            i, state = counted
            return i + 1, step(i, state)

        def condition(counted: Any) -> Any:
            i, state = counted
            goes_on = go_on(state)
            return goes_on if self.count is None else fnp.logical_and(i < self.count, goes_on)

        counted_step.__name__ = self.word
        _, result = while_loop(condition, counted_step, (0, initial))
        return result

    def _results(self, after: Sequence[Any]) -> dict[str, Any]:
        """The values that the next step begins with."""
        results, more = {}, False
        for name, before, value in zip(self.state.names, self.before, after, strict=True):
            if name in self.carried:
                if value is UNDEFINED:
                    raise self._changed(name, "is deleted")
                if not _is_dynamic(value):
                    raise self._changed(name, f"becomes {_text(value)}")
                results[name] = _plain(value)
            elif value is before or value is UNDEFINED or _is_same(before, value):
                continue
            elif before is UNDEFINED:
                if name.startswith(RESERVED):
                    self.first[name] = _zeros_like(value)()
                    self.carried.add(name)
                    more = True
            elif isinstance(before, WritableArray) and _is_dynamic(value):
                self.first[name] = before
                self.carried.add(name)
                more = True
            else:
                raise self._changed(name, f"is {_text(before)} and becomes {_text(value)}")
        if more:
            raise _Again
        return results

    def _check_aliases(
        self, inside: Sequence[Any], after: Sequence[Any], changed: Sequence[WritableArray]
    ) -> None:
        """Raise where several names of an array become names of several, and it is written into.

        Args:
            inside: The values of the variables when the step began.
            after: When it ended.
            changed: Arrays of outside that it has written into.
        """
        names = self.state.names
        given = {n for n, v in zip(names, self.before, strict=True)
                 if n in self.carried and isinstance(v, WritableArray)}  # fmt: skip
        written = {n for n, v in zip(names, inside, strict=True)
                   if n in given and v.root.is_written}  # fmt: skip
        outside = dict(zip(self.state.others, self.others, strict=True))
        for values in (outside, {**outside, **dict(zip(names, after, strict=True))}):
            groups: dict[int, list[str]] = {}
            for name, value in values.items():
                if isinstance(value, WritableArray):
                    groups.setdefault(id(value.root), []).append(name)
            for group in groups.values():
                roots = [values[name].root for name in group]
                is_written = not written.isdisjoint(group) or any(
                    root is x for root in roots[:1] for x in changed
                )
                if len(group) > 1 and is_written and not given.isdisjoint(group):
                    shown = " and ".join(f"`{name}`" for name in group)
                    raise located(
                        ArgumentError,
                        f"{shown} are names of one array, which a step of a `{self.word}` loop "
                        "that is traced writes into, and one of them is given another array.",
                        "Give each an array of its own: y = x.copy().",
                    )

    def _changed(self, name: str, what: str) -> TreeError:
        return located(
            TreeError,
            f"{_shown(name)} {what} in a step of a `{self.word}` loop that is traced.",
            "What a step carries must be arrays or numbers of one shape and type.",
        )
