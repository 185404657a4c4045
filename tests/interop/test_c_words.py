"""The words of kernels in C: every word has a form, of every type that it takes, that compiles."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from funcgrad.compiler.loops import language
from funcgrad.compiler.loops.language import (
    SLOTS,
    Assign,
    Evaluate,
    For,
    Function,
    Number,
    Return,
    Variable,
    call,
)
from funcgrad.compiler.native import system
from funcgrad.compiler.native.types import PARTS, SCALARS, TypingError
from funcgrad.compiler.native.vocabulary import WORDS
from funcgrad.interop.c import registers
from funcgrad.interop.c.files import HEAD
from funcgrad.interop.c.formulas import VALUES
from funcgrad.interop.c.lanes import is_of_lanes
from funcgrad.interop.c.printer import print_function
from funcgrad.interop.c.words import OPERATORS, Prelude, is_special, short
from funcgrad.intrinsics import INTRINSICS

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
LANES, HALF = 8, 4


def compiled(prelude: Prelude, texts: list[str], folder: Path) -> None:
    """Compile functions of kernels."""
    (folder / "it.h").write_text("typedef struct { float re, im; } fg_complex64;\n"
                                 "typedef struct { double re, im; } fg_complex128;\n")  # fmt: skip
    parts = [HEAD.format(name="it"), prelude.text("\n".join(prelude.found)), *texts]
    (folder / "it.c").write_text("\n\n".join(parts))
    strict = ["-std=c99", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    strict.append("-Wno-unused-parameter")
    for flags in ([], ["-march=native"]):
        command = ["gcc", *strict, *flags, "-c", str(folder / "it.c"), "-o", str(folder / "it.o")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]


def test_words_of_scalars(tmp_path):
    prelude, texts = Prelude(), []
    others = {"room", *(x for x in WORDS if WORDS[x].rule.__module__ == system.__name__)}
    names = [x for x in WORDS if not is_special(x) and not is_of_lanes(x) and x not in others]
    for word in [*names, *(x for x in WORDS if x in VALUES)]:
        intrinsic = INTRINSICS.get(word.removeprefix("libm_"))
        arity = intrinsic.arity if intrinsic else {"muladd": 3, "muladd_pairs": 3}.get(word, 1)
        found = 0
        for name, t in SCALARS.items():
            if word == "muladd" and name[0] in "bc":
                continue
            types = (SCALARS["b1"], t, t) if word.startswith("select") else (t,) * arity
            try:
                signature = WORDS[word].sign(types)
            except TypingError:
                continue
            given = list("abcd"[:arity])
            result = prelude.call(word, signature, given)
            takes = [f"{VALUES[short(s)]} {x}" for s, x in zip(signature.args, given, strict=True)]
            texts.append(
                f"{VALUES[short(signature.return_type)]} f{len(texts)}({', '.join(takes)});\n"
                f"{VALUES[short(signature.return_type)]} f{len(texts)}({', '.join(takes)}) "
                f"{{ return {result}; }}"
            )
            found += 1
        assert found, f"{word} has no form in C"
    compiled(prelude, texts, tmp_path)


def kernel(t: str) -> Function:
    """A kernel with all words that are not of scalars alone, at elements of a type."""
    pointer, i = f"ptr_{t}", Variable("i")
    p, q, n = Variable("p"), Variable("q"), Variable("n")
    body: list[Any] = [
        Assign("p", call("offset", call(pointer, call("read_word", SLOTS, 0)), 8)),
        Assign("q", call("advance", call(pointer, call("read_word", SLOTS, 1)), 8)),
        Assign("n", call("read_word", language.WORDS, 0)),
        Evaluate(call("scope", 9)),
        Evaluate(call("prefetch", p, 0)),
        Assign("taken", call("claim", SLOTS)),
        Evaluate(call("write_word", SLOTS, 2, call("look", SLOTS))),
        Evaluate(call("store", p, 0, call("load", q, 3, 2), 1)),
    ]
    some = call("first_lanes", i, n, LANES)
    inside: list[Any] = [
        Assign("j", some),
        Assign("j0", call("load", p, Variable("j"), 1)),
        Assign("f", call("equal", call("load", p, call("lanes", i, LANES), 1), Variable("j0"))),
        Assign("k", call("lanes_before", call("lanes_from", Variable("j"), 1), n - 1)),
        Assign("y", call("load_where", q, Variable("k"), Variable("j0"), 1, 2)),
        Assign("w", call("splat", call("load", p, 0, 1), LANES)),
        Assign("z", call("present", Variable("k"), Variable("y"), Variable("w"))),
        Evaluate(call("store", q, call("lanes", i + 1, LANES), Variable("z"), 2)),
        Evaluate(call("store", q, call("some_lanes", i, n, LANES), Variable("j0"), 2)),
    ]
    if SCALARS[t] not in PARTS:
        at = call("multiply", call("splat", 8, LANES), Variable("j"))
        inside += [
            Assign("u", call("load_apart", p, Variable("j"), 3, 1)),
            Assign("v", call("load_each", p, at, 1)),
            Assign("r", call("load_run", p, at, -1, 1)),
            Evaluate(call("store", q, Variable("j"), Variable("r"), 2)),
            Evaluate(call("store_each", q, Variable("j"), at, Variable("u"), 2)),
            Assign("low", call("trade_low", Variable("u"), Variable("v"), 2)),
            Assign("high", call("trade_high", Variable("u"), Variable("v"), 2)),
            Assign("t", call("select", Variable("f"), Variable("low"), Variable("high"))),
            Evaluate(call("store", q, Variable("j"), Variable("t"), 2)),
            Evaluate(call("turn", call(pointer, call("room", 8 * 8 * 8)), p, n, 8, 1, 3)),
        ]
    half = call("low", Variable("j0")), call("high", call("positive", Variable("j0")))
    if t != "b1":
        inside.append(Assign("h", call("add", *half)))
        inside.append(Evaluate(call("store", q, call("lanes", i, HALF), Variable("h"), 2)))
    for word in WORDS:
        if word.startswith("across_"):
            try:
                WORDS[word.removeprefix("across_")].sign((SCALARS[t],) * 2)
            except TypingError:
                continue
            inside.append(Evaluate(call("store", q, 0, call(word, Variable("j0")), 2)))
    body.append(For("i", Number(0), n, LANES, inside))
    body.append(Evaluate(call("release", SLOTS, Variable("taken"))))
    return Function([*body, Return(Number(0))])


def test_words_of_memory_and_of_lanes(tmp_path):
    prelude, texts, seen = Prelude(), [], ""
    for t in SCALARS:
        function = kernel(t)
        seen += function.text
        texts.append(print_function(function, f"kernel_{t}", prelude))
    for word in WORDS:
        if (is_special(word) or is_of_lanes(word)) and word not in VALUES:
            is_there = f"{word}(" in seen or word in ("read_word", "write_word")
            assert is_there, f"{word} is not in the kernel of this test"
    compiled(prelude, texts, tmp_path)


NUMBERS = {
    "f": "0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 3.0, INFINITY, -INFINITY, NAN, 1e-300, -1e-310, "
    "1e300, -1e5, 0.75, 1e-5, -708.3, 709.5, 12.75",
    "i": "0, 1, -1, 2, 3, -3, 7, 63, 64, -64, 31, -1000, 2147483647, -2147483647, 12345",
}
CHECK = """
static int check_{n}(void) {{
    static const {c} all[] = {{ {numbers} }};
    enum {{ count = sizeof all / sizeof *all, lanes = fg_count_{t} }};
    int wrong = 0;
    for (int i = 0; i < count * count; i++) {{
        {c} a[lanes], b[lanes];
        for (int k = 0; k < lanes; k++) a[k] = all[(i + k) % count], b[k] = all[i / count];
        const fg_held_{t} x = *(fg_row_{t} *)a, y = *(fg_row_{t} *)b;
        fg_mask_{mask} rare = {{0}};
        const {held} found = {call};
        for (int k = 0; k < lanes; k++) {{
            const {r} one = {scalar}, other = (({r} const *)&found)[k];
            const int is_same = !memcmp(&one, &other, sizeof one) || (one != one && other != other);
            wrong += !is_same && !fg_any_{mask}(rare);
        }}
        (void)y, (void)b, (void)rare;
    }}
    if (wrong) printf("{word} {t}: %d; ", wrong);
    return wrong;
}}
"""


def test_words_of_registers_have_the_bits_of_scalars(tmp_path):
    prelude, checks, seen = Prelude(), [], set()
    for word, intrinsic in INTRINSICS.items():
        if word in VALUES or word in OPERATORS or intrinsic.arity > 2:
            continue
        for t in ("f64", "f32", "i64", "i32"):
            try:
                signature = WORDS[word].sign((SCALARS[t],) * intrinsic.arity)
            except TypingError:
                continue
            is_own = signature.args[0] is SCALARS[t]
            known = registers.definition(word, t) if is_own else None
            if known is None:
                continue
            seen.add(word)
            mask, result = f"i{t[1:]}", short(signature.return_type)
            scalar = prelude.call(word, signature, ["a[k]", "b[k]"][: intrinsic.arity])
            given = ["x", "y"][: intrinsic.arity] + ["&rare"] * known.has_rare
            call = f"fg_held_{word}_{t}({', '.join(given)})"
            if result == "b1":
                call, scalar, result = f"fg_stored_{mask}({call})", f"-(int){scalar}", mask
            checks.append(
                CHECK.format(
                    n=len(checks), word=word, t=t, c=VALUES[t], mask=mask, call=call, scalar=scalar,
                    held=f"fg_held_{result}", r=VALUES[result], numbers=NUMBERS[t[0]],
                )
            )  # fmt: skip
            prelude.use(checks[-1])
    assert {"exp", "lgamma", "pow", "sqrt", "maximum", "isinf", "floor_divide"} <= seen
    calls = " + ".join(f"check_{n}()" for n in range(len(checks)))
    main = f"int main(void) {{ return ({calls}) != 0; }}"
    compiled(prelude, ["#include <stdio.h>", *checks, main], tmp_path)
    subprocess.run(["gcc", str(tmp_path / "it.o"), "-o", str(tmp_path / "it"), "-lm"], check=True)
    done = subprocess.run([str(tmp_path / "it")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
