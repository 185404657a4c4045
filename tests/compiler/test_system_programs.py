"""Functions of the loop language that are no kernels: their words, arguments, results and calls."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funcgrad.compiler.loops.builder import SystemProgram, read_word
from funcgrad.compiler.loops.language import Expression, NamedFunction, Variable, call
from funcgrad.compiler.native import system
from funcgrad.compiler.native.vocabulary import WORDS
from funcgrad.compiler.runtime import kernel_store
from funcgrad.interop.c.words import is_special

WORD = ctypes.c_int64
WORDS_OF_64_BITS = st.integers(-(2**63), 2**63 - 1)
A, B = Variable("a"), Variable("b")


def function(
    name: str,
    value: Callable[[SystemProgram], Expression | int],
    parameters: dict[str, str] | None = None,
    result: str = "i64",
    **inner: NamedFunction,
) -> Any:
    """A native function that returns the value of an expression."""
    return native(program(name, value, parameters, result, **inner), parameters, result)


def program(
    name: str,
    value: Callable[[SystemProgram], Expression | int],
    parameters: dict[str, str] | None = None,
    result: str = "i64",
    **inner: NamedFunction,
) -> NamedFunction:
    builder = SystemProgram()
    builder.give_back(value(builder))
    given = parameters or {"a": "i64", "b": "i64"}
    facts = {"parameters": given, "result": result, "is_brief": True, "inner": inner}
    return NamedFunction(f"test of {name}", lambda: builder.body, **facts)


def native(made: NamedFunction, parameters: dict[str, str] | None, result: str) -> Any:
    kinds = {"i64": WORD, "i32": ctypes.c_int32, "i8": ctypes.c_int8, "f64": ctypes.c_double,
             "f32": ctypes.c_float}  # fmt: skip
    given = [kinds[x] for x in (parameters or {"a": "i64", "b": "i64"}).values()]
    return ctypes.CFUNCTYPE(kinds[result], *given)(kernel_store.code_address(made))


@given(WORDS_OF_64_BITS, WORDS_OF_64_BITS)
def test_arguments_are_words(a: int, b: int) -> None:
    found = function("arguments", lambda _: A * 3 - B)(a, b)
    assert found == (a * 3 - b + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("kind", ["i8", "i32", "f32", "f64"])
def test_arguments_and_results_of_other_types(kind: str) -> None:
    double = function(f"double {kind}", lambda _: A + A, {"a": kind}, kind)
    for x in (0, 1, -3, 60):
        assert double(x) == 2 * x


def test_an_inner_function_is_called_by_its_address() -> None:
    less = program("less", lambda _: A - B)
    found = function(
        "outer",
        lambda p: p.call(Variable("less"), B, A) * p.call(Variable("less"), A, 1),
        less=less,
    )
    assert found(3, 10) == (10 - 3) * (3 - 1)


def test_functions_look_at_their_own_arguments_alone() -> None:
    one = ctypes.CFUNCTYPE(WORD, WORD)(lambda x: x + 1)
    address = ctypes.cast(one, ctypes.c_void_p).value or 0
    found = function("many", lambda p: p.call(A, B, *range(15)), {"a": "i64", "b": "i64"})
    assert found(address, 41) == 42


def test_words_that_are_replaced() -> None:
    words = np.array([5, 7], np.int64)
    replace = function("replaced", lambda p: call("select", call("replace_shared", A, B, 9), 1, 0))
    assert [replace(words.ctypes.data, k) for k in (4, 5, 5)] == [0, 1, 0]
    assert words.tolist() == [9, 7]


def test_no_addition_of_several_threads_is_lost() -> None:
    words = np.zeros(1, np.int64)

    def loop(p: SystemProgram) -> int:
        with p.count(0, B):
            p.do("add_shared", A, 1)
            p.do("pause")
        return 0

    add = function("additions", loop)
    threads = [threading.Thread(target=add, args=(words.ctypes.data, 20_000)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert words[0] == 80_000


def test_the_control_word_is_read_and_written() -> None:
    def flushed(p: SystemProgram) -> Expression:
        before = p.run("read_control")
        p.do("write_control", call("flushing", before))
        found = p.let(call("load", call("ptr_f64", A), 0, 0) * 1.0)
        p.do("write_control", before)
        return found

    result = function("flushed", flushed, {"a": "i64"}, "f64")
    least, one = np.array([5e-324]), np.array([1.0])
    is_known = system.is_x86() or system.is_arm()
    assert result(least.ctypes.data) == (0.0 if is_known else 5e-324)
    assert result(one.ctypes.data) == 1.0
    assert least[0] * 1.0 == 5e-324


@pytest.mark.skipif(not system.is_x86(), reason="the counter is that of x86")
def test_the_counter_goes_on() -> None:
    now = function("cycles", lambda p: p.run("cycles"))
    first = now(0, 0)
    time.sleep(0.01)
    assert now(0, 0) > first


def test_memory_of_a_few_words_is_of_the_call() -> None:
    def swapped(p: SystemProgram) -> Expression:
        room = p.run("room", 16)
        p.put_word(room, 0, A)
        p.put_word(room, 1, B)
        return read_word(room, 1) * 100 + read_word(room, 0)

    assert function("room", swapped)(3, 4) == 403


def test_kernels_of_exported_programs_know_none_of_these_words() -> None:
    own = [name for name, word in WORDS.items() if word.rule.__module__ == system.__name__]
    assert {"call_address", "load_shared", "read_control", "own_word", "free"} <= set(own)
    assert not [name for name in own if is_special(name)]
