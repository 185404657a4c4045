"""The loop language: what is printed is what was meant, and passes leave functions as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.compiler.loops.common import name_common
from funcgrad.compiler.loops.hoist import hoist
from funcgrad.compiler.loops.language import (
    Apply,
    Assign,
    Break,
    Evaluate,
    For,
    Function,
    If,
    Number,
    Variable,
    all_of,
    applied,
    call,
    equal,
    sum_of,
    without_unused,
)
from funcgrad.compiler.loops.unroll import unroll
from funcgrad.compiler.native.translate import translate
from funcgrad.compiler.native.vocabulary import WORDS
from funcgrad.compiler.runtime import kernel_store
from tests.compiler.kernels import read

X = np.linspace(-2.0, 2.0, 91).reshape(7, 13)

PROGRAMS = {
    "points": (lambda x: np.tanh(x) * 2 - x[::-1] / 3, (X,)),
    "rows": (lambda x: np.exp(x - np.max(x, axis=1, keepdims=True)).sum(axis=1), (X,)),
    "columns": (lambda x: x.sum(axis=0) + x.max(axis=0), (X,)),
    "transposed": (lambda x: x.T + 1.0, (X,)),
    "edges": (lambda x: np.pad(x, 2) * 2, (X,)),
    "a gradient": (fg.grad(lambda x: np.sum(np.sin(x) * np.cumsum(x, axis=1))), (X,)),
    "computed places": (lambda x, i: x[i] + 1, (X, np.array([0, 3, 6]))),
    "places that are written": (lambda x, i: fnp.at(x)[i].add(1.0), (X, np.array([0, 3, 3]))),
    "places of extremes": (lambda x: (np.argmax(x, axis=0), np.argmax(x, axis=1)), (X,)),
    "searches": (lambda x: np.searchsorted(np.sort(x), x), (X.ravel(),)),
    "a loop of few numbers": (
        lambda x: lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1] * x[0]), (0, X[0])),
        (X,),
    ),
    "a loop over lanes": (
        lambda x: fg.vmap(lambda y: lax.fori_loop(0, 5, lambda i, c: c * y + i, 1.0))(x.ravel()),
        (X,),
    ),
    "complex": (lambda x: np.exp(1j * x) * (2 - 3j), (X,)),
    "flags": (lambda x: np.where((x > 0) & ~(x > 1), x, np.nan), (X,)),
}  # fmt: skip


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> list[Function]:
    """All kernels that programs ask for."""
    found: list[Function] = []
    compile_kernels = kernel_store.compile_kernels

    def noted(functions: Any, codes: Any) -> dict[str, int]:
        found.extend(functions)
        return compile_kernels(functions, codes)

    monkeypatch.setattr(kernel_store, "compile_kernels", noted)
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_printed_is_what_was_meant(name: str, functions: list[Function]) -> None:
    f, args = PROGRAMS[name]
    fg.jit(lambda *xs: f(*xs))(*args)
    assert functions
    for function in functions:
        again = read(function.text)
        assert again.text == function.text
        assert translate(again, "kernel") == translate(function, "kernel")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pass_makes_another_function(name: str, functions: list[Function]) -> None:
    f, args = PROGRAMS[name]
    fg.jit(lambda *xs: f(*xs))(*args)
    for function in functions:
        before = Function(function.body).text
        hoist(function, lambda word: WORDS[word].is_pure)
        assert Function(function.body).text == before


COMMON = {
    "in one statement": (
        ["v = exp(x) + exp(x)"],
        ["e1 = exp(x)", "v = e1 + e1"],
    ),
    "in several, of which one has it as its value": (
        ["v = x * y", "w = (x * y) + 1", "store(p, 0, x * y, 1)"],
        ["v = x * y", "w = v + 1", "store(p, 0, v, 1)"],
    ),
    "a part of what is common": (
        ["v = exp(x + 1) * exp(x + 1)", "w = x + 1"],
        ["e2 = x + 1", "e1 = exp(e2)", "v = e1 * e1", "w = e2"],
    ),
    "numbers of different types": (
        ["v = x + 1", "w = x + 1.0", "u = x + True"],
        ["v = x + 1", "w = x + 1.0", "u = x + True"],
    ),
    "what reads memory": (
        ["v = load(p, 0, 1)", "store(p, 0, x, 1)", "w = load(p, 0, 1)"],
        ["v = load(p, 0, 1)", "store(p, 0, x, 1)", "w = load(p, 0, 1)"],
    ),
    "variables that change": (
        ["v = x", "w = v + 1", "v = y", "u = v + 1"],
        ["v = x", "w = v + 1", "v = y", "u = v + 1"],
    ),
    "known around a loop, and in it": (
        ["v = x * y", "for i in range(0, n):", "    w = (x * y) + (i * 8)", "    u = i * 8",
         "s = i * 8"],
        ["v = x * y", "for i in range(0, n):", "    e1 = i * 8", "    w = v + e1", "    u = e1",
         "s = i * 8"],
    ),
    "a loop in one of the same index": (
        ["for i in range(0, n):", "    v = -i", "    for i in range(0, 2):", "        w = -i"],
        ["for i in range(0, n):", "    v = negative(i)", "    for i in range(0, 2):",
         "        w = negative(i)"],
    ),
    "two arms": (
        ["if x > 0:", "    v = exp(x)", "else:", "    w = exp(x)", "u = x > 0"],
        ["e1 = x > 0", "if e1:", "    v = exp(x)", "else:", "    w = exp(x)", "u = e1"],
    ),
    "a test that is made again": (
        ["while n > 1:", "    n = n - 1", "v = n > 1"],
        ["while n > 1:", "    n = n - 1", "v = n > 1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMON)
def test_what_is_common_is_computed_once(name: str) -> None:
    lines, expected = COMMON[name]
    body = ["n = args[2]", *lines, "return 0"]
    function = read("\n".join(["def kernel(slots, args):", *(f"    {line}" for line in body)]))
    found = name_common(function, lambda word: WORDS[word].is_pure)
    _, _, *rest, _ = found.text.rstrip().splitlines()
    assert [line[4:] for line in rest] == expected


INDEX, POINTER = Variable("i"), Variable("p")

PRINTED = [
    (INDEX + 1 - 2 * INDEX, "(i + 1) - (2 * i)"),
    (INDEX - (INDEX - 1), "i - (i - 1)"),
    (INDEX * -1.5 + (-2), "(i * (-1.5)) + (-2)"),
    (1 - INDEX % 8, "1 - (i % 8)"),
    ((INDEX < 3) & (INDEX >= 0) | (INDEX > 9), "((i < 3) & (i >= 0)) | (i > 9)"),
    (~(INDEX <= 3), "logical_not(i <= 3)"),
    (-INDEX, "negative(i)"),
    (equal(INDEX, True), "i == True"),
    (all_of([INDEX < 1, INDEX < 2, INDEX < 3]), "((i < 1) & (i < 2)) & (i < 3)"),
    (sum_of([INDEX]), "i"),
    (call("load", POINTER, INDEX + 1, 2), "load(p, i + 1, 2)"),
    (
        applied("select({0} < 0, -{1}, exp({1}) / 2.0)", [INDEX, POINTER]),
        "select(i < 0, negative(p), exp(p) / 2.0)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("x", "text"), PRINTED)
def test_expressions(x: Apply, text: str) -> None:
    assert str(x) == text


def test_numbers_that_are_equal_are_told_apart() -> None:
    texts = {str(Number(x)) for x in (1, 1.0, True, 0.0, -0.0, 0, False)}
    assert len(texts) == 7


def test_an_expression_has_no_truth() -> None:
    with pytest.raises(TypeError, match="has no value before the kernel runs"):
        bool(INDEX < 1)


def test_templates_are_made_of_operators_and_words() -> None:
    with pytest.raises(ValueError, match="is not made of operators and intrinsics"):
        applied("{0}[1]", [INDEX])


def test_loops_of_known_ranges_are_unrolled() -> None:
    i, p = Variable("i"), Variable("p")
    moved = Assign("q", call("offset", p, i * call("i64", 16)))
    guarded = If(i < call("i64", 1), [Assign("x", call("load", Variable("q"), 0, 1))])
    total = Assign("a", Variable("a") + Variable("x"))
    loop = For("i", Number(0), call("i64", 2), 1, [moved, guarded, total])
    lines = [line for x in unroll([Assign("a", Number(0.0)), loop], 4) for line in x.lines()]
    assert lines == [
        "a = 0.0",
        "qu0 = offset(p, i64(0))",
        "xu0 = load(qu0, 0, 1)",
        "a = a + xu0",
        "qu1 = offset(p, i64(16))",
        "a = a + xu1",
    ]


def test_loops_without_iterations_are_nothing() -> None:
    assert not unroll([For("i", Number(3), Number(3), 1, [Assign("x", Variable("i"))])], 4)


@pytest.mark.parametrize("scope", [1, 2])
def test_unrolled_iterations_stand_side_by_side_where_none_needs_another(scope: int) -> None:
    i, p, q, x = map(Variable, "ipqx")
    body = [Assign("x", call("load", p, i, 1)), Evaluate(call("store", q, i + 1, x, scope))]
    loop = For("i", Number(0), Number(2), 1, body)
    lines = [line for statement in unroll([loop], 4) for line in statement.lines()]
    loads = [f"xu{k} = load(p, i64({k}), 1)" for k in range(2)]
    stores = [f"store(q, i64({k + 1}), xu{k}, {scope})" for k in range(2)]
    apart = [line for both in zip(loads, stores, strict=True) for line in both]
    assert lines == (apart if scope == 1 else loads + stores)


def test_what_is_only_used_by_what_nobody_uses_goes() -> None:
    a, b = Assign("a", Variable("p") + 1), Assign("b", Variable("a") + 2)
    kept = Evaluate(call("store", Variable("p"), 0, Variable("c"), 1))
    read = Assign("d", call("read_word", Variable("b"), 0))
    assert len(without_unused([a, b, kept], {"add"}.__contains__)) == 1
    assert len(without_unused([a, b, kept, read], {"add"}.__contains__)) == 4
    moved = Assign("b", Variable("b") + 1)
    assert len(without_unused([a, b, moved, kept], {"add"}.__contains__)) == 1


@pytest.mark.parametrize(
    "loop",
    [
        For("i", Number(0), Variable("n"), 1, []),
        For("i", Number(0), Number(9), 1, []),
        For("i", Number(0), Number(2), 1, [If(Variable("f"), [Break()])]),
    ],
    ids=["unknown", "long", "left early"],
)
def test_other_loops_stay(loop: For) -> None:
    (found,) = unroll([loop], 4)
    assert [*found.lines()] == [*loop.lines()]
