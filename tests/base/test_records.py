"""Data classes that are finished on demand, against those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
import sys
import threading
from dataclasses import FrozenInstanceError, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from funcgrad.base import records
from funcgrad.extend import Composite, Elementwise
from funcgrad.primitives.linalg import Solve
from funcgrad.primitives.shape import Reshape

OPTIONS: list[dict[str, bool]] = [
    {},
    {"eq": False},
    {"repr": False},
    {"frozen": True},
    {"frozen": True, "eq": False},
]


def family(decorate: Any, options: dict[str, bool]) -> tuple[type, type]:
    """A class and one that inherits from it, of every kind of field."""

    class Base:
        """Fields without and with a default."""

        a: int
        b: Any = field(default=2, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "hidden", self.a)

    class Derived(Base):
        """Others, one of them not an argument."""

        c: list[int] = field(default_factory=list)
        d: list[int] = field(default_factory=list, init=False)
        e: int = field(default=7, init=False, compare=False)

    return decorate(**options)(Base), decorate(**options)(Derived)


def behaviour(decorate: Any, options: dict[str, bool], is_derived_first: bool) -> list[Any]:
    """What objects of the family do."""
    base, derived = family(decorate, options)
    found: list[Any] = []
    for cls in (derived, base) if is_derived_first else (base, derived):
        first, second, other = cls(1), cls(1, b=2), cls(a=3)
        found += [vars(first), first == second, first == other, first != (1,), cls.b, cls.__doc__]
        found.append([(f.name, f.init, f.default) for f in dataclasses.fields(cls)])
        found += [dataclasses.is_dataclass(cls), list(inspect.signature(cls).parameters)]
        found.append(vars(dataclasses.replace(first, b=5)))
        found.append(cls.__match_args__)
        if options.get("repr", True):
            found.append(repr(first))
        for act in (
            lambda x: setattr(x, "a", 0),
            lambda x: delattr(x, "b"),
            lambda x: hash(x) == hash(x),
            lambda x: len({x, type(x)(4), type(x)(5)}),
            lambda x: hash(x) == hash((4, 2)) or hash(x) == hash((4, 2, [])),
            lambda x: type(x)(),
            lambda x: type(x)(1, 2, 3, 4),
        ):
            try:
                found.append(act(cls(4)))
            except (FrozenInstanceError, AttributeError, TypeError) as error:
                found.append(type(error))
    return found


@pytest.mark.parametrize("is_derived_first", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_objects_are_those_of_the_standard_library(
    options: dict[str, bool], is_derived_first: bool
) -> None:
    own = behaviour(records.dataclass, options, is_derived_first)
    assert own == behaviour(dataclasses.dataclass, options, is_derived_first)


@pytest.mark.parametrize("ask", [dataclasses.fields, dataclasses.is_dataclass, inspect.signature])
def test_a_class_without_objects_tells_of_itself(ask: Any) -> None:
    _, derived = family(records.dataclass, {})
    expected, found = ask(family(dataclasses.dataclass, {})[1]), ask(derived)
    assert str(found).count("field") == str(expected).count("field")


def test_subclasses_of_the_standard_library_inherit_fields() -> None:
    base, _ = family(records.dataclass, {"frozen": True})

    class Derived(base):  # type: ignore[misc, valid-type]
        z: int = 0

    made: Any = dataclasses.dataclass(frozen=True)(Derived)
    assert [f.name for f in dataclasses.fields(made)] == ["a", "b", "z"]
    assert made(1, 2, 3) == made(1, z=3)


def test_threads_that_make_the_first_object_at_once() -> None:
    for _ in range(20):
        base, derived = family(records.dataclass, {"frozen": True})
        barrier = threading.Barrier(4)
        made: list[Any] = []

        def make(cls: Any, barrier: Any = barrier, made: Any = made) -> None:
            barrier.wait()
            made.append(cls(1).b)

        threads = [threading.Thread(target=make, args=(c,)) for c in (base, derived) * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [2] * 4


def interrupt(act: Any, at: int) -> int:
    """How many lines of data classes something runs; Ctrl-C comes at one of them."""
    files = (records.__file__, dataclasses.__file__)
    count, before = 0, sys.gettrace()

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if frame.f_code is records._restore.__code__ or frame.f_code.co_filename not in files:
            return None
        count += event == "line"
        if event == "line" and count == at:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        assert count == at
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_class_whose_finishing_was_interrupted_is_finished_later(
    options: dict[str, bool],
) -> None:
    def decorate(at: int) -> Any:
        def make(cls: type) -> Any:
            made: Any = records.dataclass(**options)(cls)
            if made.__name__ == "Derived":  # which finishes its base, too
                lines.append(interrupt(lambda: made(1), at))
            return made

        return lambda **options: make

    lines: list[int] = []
    expected = behaviour(dataclasses.dataclass, options, True)
    assert behaviour(decorate(0), options, True) == expected
    assert lines[0] > 100
    for at in range(1, lines[0], 11):
        assert behaviour(decorate(at), options, True) == expected, at


def methods_written(decorate: Any, options: dict[str, bool]) -> list[Any]:
    """What becomes of methods that a class has itself."""

    class Own:
        x: float

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    class Hashed:
        x: float

        def __hash__(self) -> int:
            return 7

    own, hashed = decorate(**options)(Own), decorate(**options)(Hashed)
    first = own(1.0)
    assert hashed(1) != 0
    found: list[Any] = [first == own(2.0), repr(first), hash(hashed(1)), hashed(1) == hashed(1)]
    found += [own.__hash__ is None, hashed.__eq__ is object.__eq__]
    return found


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_methods_of_a_class_stay(options: dict[str, bool]) -> None:
    assert methods_written(records.dataclass, options) == methods_written(
        dataclasses.dataclass, options
    )


def test_fields_are_compared_as_items_of_tuples() -> None:
    """Data classes of Python 3.13 and later compare them one by one: a NaN differs from itself."""
    base, _ = family(records.dataclass, {"frozen": True})
    nan, array = float("nan"), np.ones(2)
    assert base(nan) == base(nan)
    assert {base(nan): 1}[base(nan)] == 1
    assert base(array) == base(array)  # which of an array and itself asks for no truth
    assert base(nan) != base(float("nan"))


def test_a_record_within_itself_is_shown() -> None:
    base, _ = family(records.dataclass, {})
    found = base(1)
    found.a = found
    assert repr(found).endswith("Base(a=...)")


@records.dataclass(frozen=True)
class Kept:
    """One that can be found by name."""

    x: int


def test_copies_and_pickles() -> None:
    kept = Kept(1)
    for made in (copy.copy(kept), copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
        assert made == kept
        assert hash(made) == hash(kept)


def test_every_module_uses_them() -> None:
    folder = Path(records.__file__).parents[1]
    pattern = re.compile(r"^from dataclasses import .*\bdataclass\b", re.MULTILINE)
    others = [path for path in folder.rglob("*.py") if path.name != "records.py"]
    assert [path.name for path in others if pattern.search(path.read_text())] == []


def test_a_class_with_an_initializer_is_refused() -> None:
    class Own:
        def __init__(self) -> None:
            pass

    with pytest.raises(TypeError, match=r"Own has an __init__; use dataclasses\.dataclass"):
        records.dataclass(Own)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_finalizer_makes_an_object_while_its_class_is_finished(options: dict[str, bool]) -> None:
    expected = behaviour(dataclasses.dataclass, options, True)
    for at in range(1, 10_000):
        kinds: list[type] = []
        made: list[Any] = []

        def decorate(at: int = at, kinds: list[type] = kinds, made: list[Any] = made, **o: bool):
            def decorated(cls: type) -> type:
                kinds.append(records.dataclass(cls, **o))
                if len(kinds) == 2:
                    n_calls = 0

                    def call(frame: Any, event: str, arg: Any) -> None:
                        nonlocal n_calls
                        n_calls += event == "call"
                        if n_calls == at and event == "call":
                            sys.setprofile(None)
                            made.append(kinds[1](1))

                    sys.setprofile(call)
                    try:
                        kinds[1](1)
                    finally:
                        sys.setprofile(None)
                return kinds[-1]

            return decorated

        assert behaviour(decorate, options, True) == expected, at
        if not made:
            assert at > 20
            return


def test_primitives_of_the_library_are_records_unless_they_have_an_initializer() -> None:
    assert Solve() == Solve()
    assert Reshape((2,)) == Reshape((2,)) != Reshape((3,))
    assert Elementwise("one", None, "") != Elementwise("one", None, "")
    two = [type("Mine", (Composite,), {"__init__": lambda self: None})() for _ in range(2)]
    assert two[0] != two[1]
    assert type(two[0])() != two[0]
