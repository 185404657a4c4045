"""The tables of docs/compiler.md say what the compiler knows."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import get_args

import pytest

from funcgrad.api.number_calls import NUMBER_CALL_WORDS
from funcgrad.compiler import abi
from funcgrad.compiler.foreign import resolve
from funcgrad.compiler.native.types import SCALARS, TypingError
from funcgrad.compiler.native.vecmath.formulas import FORMULAS
from funcgrad.compiler.native.vocabulary import WORDS
from funcgrad.compiler.nest.arrange import OPTIONAL
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import Primitive
from funcgrad.intrinsics import CASTS, INTRINSICS
from funcgrad.lowering import Call, Extern, Form, Routine
from tests.cases import CASES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "compiler.md").read_text()


def table(heading: str) -> dict[str, list[str]]:
    """First cell -> names in backticks of the second, for every row of a section."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:3] for row in section.splitlines() if row.startswith("| ")]
    return {first.strip(): re.findall(r"`([^`]+)`", second) for first, second in rows}


def native_and_external() -> dict[str, tuple[set[str], set[str]]]:
    """For every primitive the kinds of dtypes that have kernels, and those that have none."""
    found: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for case in CASES:
        primitive = case.primitive
        if not isinstance(primitive, Primitive):
            continue
        for dtype in case.dtypes:
            avals = [aval_of(x) for x in case.draw(dtype)]
            outs = primitive.abstract_eval(*avals)
            outs = outs if primitive.multiple_results else [outs]
            kinds = {aval.dtype.kind for aval in (*avals, *outs)}
            kind = "complex" if "c" in kinds else "floating" if "f" in kinds else "exact"
            found[primitive.name][not is_native(primitive, avals)].add(kind)
    return found


def is_native(primitive: Primitive, avals: list[ShapedArray]) -> bool:
    """Whether plans have no call of NumPy by Python for an operation."""
    form = primitive.lower(*avals)
    if isinstance(form, Call):
        return all(
            is_native(e.primitive, [a.aval for a in e.inputs]) for e in form.program.equations
        )
    if isinstance(form, Routine):
        return resolve(form) is not None
    return not isinstance(form, Extern)


def test_what_only_numpy_evaluates_is_listed():
    rows = table("What only NumPy evaluates")
    found = native_and_external()
    some = {name: external for name, (native, external) in found.items() if native and external}
    assert rows["all"] == sorted(name for name, (native, _) in found.items() if not native)
    assert not [name for name, kinds in some.items() if kinds != {"floating"}]
    assert rows["some sparse patterns"] == sorted(some)
    assert len(found) > 150


def test_the_vocabulary_is_listed():
    section = PAGE.partition("## The vocabulary of kernels\n")[2].partition("\n## ")[0]
    first = [row.split("|")[1] for row in section.splitlines() if row.startswith("| ")]
    listed = [name for cell in first for name in re.findall(r"`([^`]+)`", cell)]
    families = [name.removesuffix("*") for name in listed if name.endswith("*")]
    single = [name for name in listed if not name.endswith("*")]
    assert all(any(word.startswith(family) for word in WORDS) for family in families)
    others = {word for word in WORDS if not word.startswith(tuple(families))}
    assert sorted(single) == sorted(others)


def test_every_intrinsic_is_a_word_of_kernels():
    assert set(INTRINSICS) <= set(WORDS)
    formulas = {name for name, _ in FORMULAS}
    assert {x.name for x in INTRINSICS.values() if x.code == "formula"} == formulas
    called = {f"libm_{x.name}" for x in INTRINSICS.values() if x.libm != "never"}
    assert called <= set(WORDS)


OF_OTHERS = "select", "select_unpredictable", "threefry2x32", *CASTS
OF_ONE_TYPE = [x for x in INTRINSICS.values() if x.name not in OF_OTHERS]


@pytest.mark.parametrize("intrinsic", OF_ONE_TYPE, ids=lambda x: x.name)
def test_words_have_the_arity_kinds_and_results_of_the_table(intrinsic):
    kinds = {"b": "b1", "i": "i32", "u": "u16", "f": "f32", "c": "c64"}
    word, n = WORDS[intrinsic.name], intrinsic.arity
    if not intrinsic.name.startswith("bitcast_"):
        for kind, name in kinds.items():
            if kind not in intrinsic.kinds and not set(intrinsic.kinds) <= set("fc"):
                with pytest.raises(TypingError, match="kind"):
                    word.sign((SCALARS[name],) * n)
            if kind in intrinsic.kinds:
                real = "f32" if kind == "c" else name
                result = {"same": name, "real": real, "bool": "b1"}[intrinsic.result]
                assert word.sign((SCALARS[name],) * n).return_type == SCALARS[result]
        with pytest.raises(TypingError, match=f"{n} arguments"):
            word.sign((SCALARS[kinds[intrinsic.kinds[0]]],) * (n + 1))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("loop", abi.LOOP_WORDS),
        ("branch", abi.BRANCH_WORDS),
        ("foreign call", abi.FOREIGN_WORDS),
        ("product", abi.TILE_WORDS),
        ("small matrices", abi.SMALL_WORDS),
        ("Fourier transform", abi.FOURIER_WORDS),
        ("call of Python", abi.PYTHON_WORDS),
        ("parallel", abi.PARALLEL_WORDS),
        ("call of numbers", NUMBER_CALL_WORDS),
    ],
)
def test_the_words_of_steps_are_listed(row, words):
    assert table("The tables of the executor")[row] == list(words)


def test_no_section_is_told_twice():
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert len(set(headings)) == len(headings)
    assert PAGE.count("FUNCGRAD_KEEP_SUBNORMALS=1") == 1
    assert PAGE.count("donate_argnums") == 1


def test_the_passes_are_listed():
    rows = table("The passes")
    assert {f"`{name}`" for name in OPTIONAL} <= set(rows)


def test_the_forms_are_listed():
    page = (DOCS / "contribute" / "kernel_form.md").read_text()
    rows = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert {form.__name__ for form in get_args(Form)} <= listed
