"""How transformed functions travel that belong to a script, which other processes do not have."""

from __future__ import annotations

import copy
import pickle
import sys
import types
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.base.transformed import _restored
from funcgrad.errors import UnpicklableError


def square(x: Any) -> Any:
    return x * x


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A script as worker processes know it, with a decorated function and a class."""

    class Model:
        """A class of the script."""

    module: Any = types.ModuleType("__mp_main__")
    monkeypatch.setitem(sys.modules, "__mp_main__", module)
    module.slope = fg.grad(square)
    module.slope.__module__, module.slope.__qualname__ = "__mp_main__", "slope"
    module.Model = Model
    Model.loss = fg.jit(square)  # type: ignore[attr-defined]
    Model.loss.__module__, Model.loss.__qualname__ = "__mp_main__", "Model.loss"  # type: ignore[attr-defined]
    return module


def by_value(reduced: tuple[Any, ...]) -> Any:
    """What a process gets that does not have the script, as cloudpickle sends it."""
    restore, (stand_in,) = reduced
    assert restore is _restored
    sent = types.FunctionType(stand_in.__code__, {}, stand_in.__name__)
    sent.value = stand_in.value  # type: ignore[attr-defined]
    return restore(sent)


def test_processes_with_the_script_find_the_function_itself(script: Any) -> None:
    for function in (script.slope, script.Model.loss):
        for protocol in (4, 5):
            assert pickle.loads(pickle.dumps(function, protocol)) is function
        assert function.__reduce_ex__(3) == function.__qualname__  # dotted names came later


def test_processes_without_the_script_make_it_anew(script: Any) -> None:
    slope = by_value(script.slope.__reduce_ex__(4))
    assert slope is not script.slope
    assert slope(3.0) == 6.0
    loss = by_value(script.Model.loss.__reduce_ex__(4))
    assert loss is not script.Model.loss
    assert loss(3.0) == 9.0
    assert loss.cache_info().misses == 1  # nothing that was compiled has travelled


def test_rules_of_functions_of_a_script_travel_too(script: Any) -> None:
    cube = fg.custom_jvp(lambda x: x * x * x)
    cube.defjvp(lambda primals, tangents: (primals[0] ** 3, 100.0 * tangents[0]))  # not 3 x**2
    script.cube, cube.__module__, cube.__qualname__ = cube, "__mp_main__", "cube"
    made = by_value(cube.__reduce_ex__(4))
    assert made is not cube
    assert made(2.0) == 8.0
    assert fg.grad(made)(2.0) == 100.0


def test_a_name_that_leads_elsewhere_is_none(script: Any) -> None:
    function = script.slope
    script.slope = None
    copied = pickle.loads(pickle.dumps(function))
    assert copied is not function
    assert copied(2.0) == 4.0


def test_programs_belong_to_their_process() -> None:
    program = fg.make_jaxpr(np.sin)(1.0).program
    assert copy.copy(program) is program
    assert copy.deepcopy([program])[0] is program
    with pytest.raises(UnpicklableError) as caught:
        pickle.dumps(program)
    assert str(caught.value) == (
        "a traced program cannot be pickled: it belongs to its process. Pickle the function, and "
        "trace it again."
    )
