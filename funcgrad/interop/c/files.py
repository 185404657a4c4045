"""Compiled programs as files: a consumer of kernels and plans, as the executor is.

`export : function, signature -> Exported`. A file of C depends on C99 and its mathematics library.
A kernel is a function of it (`printer`), and a plan is its steps one after the other (`plan_in_c`).
The function has the prototype that `cfunc` gives the same signature. Files of Python are written by
`modules`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from funcgrad.api.arguments import check_callable, name_of
from funcgrad.base.imports import load
from funcgrad.base.pytree import tree_leaves
from funcgrad.compiler.abi import FIRST_SLOT, REFUSED
from funcgrad.errors import ArgumentError
from funcgrad.interop.c.entry import FAILED, FIRST_MESSAGE, NO_MEMORY
from funcgrad.interop.c.plan_in_c import KernelsInC, PlanInC
from funcgrad.interop.c.programs import ExportedModule, Program
from funcgrad.interop.c.signature import (
    COMPLEX_TYPES,
    LIBRARY,
    ArrayType,
    Signature,
    identifiers,
    parse,
)
from funcgrad.interop.c.sizes import Piece

HEAD = """\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#ifdef __OPTIMIZE__
#pragma GCC optimize("tree-vectorize", "vect-cost-model=dynamic")
#pragma GCC optimize("no-tree-pre", "no-tree-dominator-opts")
#pragma GCC optimize("no-math-errno", "no-trapping-math", "fp-contract=off")
#endif
#ifdef __AVX512F__
#pragma GCC target("prefer-vector-width=512")
#endif
#define FG_LOOP _Pragma("GCC unroll 1") _Pragma("GCC ivdep")
#define FG_INDEPENDENT _Pragma("GCC ivdep")
#define FG_UNROLL _Pragma("GCC unroll 24")
#define FG_HIDE(p)
#elif defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wpass-failed"
#define FG_LOOP _Pragma("clang loop unroll(disable) vectorize(assume_safety)")
#define FG_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define FG_UNROLL _Pragma("unroll")
#define FG_HIDE(p) __asm__("" : "+r"(p) : : "memory");
#else
#pragma STDC FP_CONTRACT OFF
#define FG_LOOP
#define FG_INDEPENDENT
#define FG_UNROLL
#define FG_HIDE(p)
#endif
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "{name}.h"

#if defined(__GNUC__)
#define FG_MAY_ALIAS __attribute__((may_alias))
#define FG_INLINE inline __attribute__((always_inline, unused))
#else
#define FG_MAY_ALIAS
#define FG_INLINE inline
#endif
#if defined(FP_FAST_FMA) || defined(__FMA__) || defined(__aarch64__)
#define FG_FORMULAS
#endif
#ifdef FG_FORMULAS
#define FG_MULADD(a, b, c) fma(a, b, c)
#define FG_MULADDF(a, b, c) fmaf(a, b, c)
#else
#define FG_MULADD(a, b, c) ((a) * (b) + (c))
#define FG_MULADDF(a, b, c) ((a) * (b) + (c))
#endif
#if defined(__GNUC__) && !defined(FG_NO_VECTORS)
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include <immintrin.h>
#define FG_BYTES 64
#if defined(__clang__) || __GNUC__ >= 12
#define FG_SHUFFLE __builtin_shufflevector
#endif
#define FG_ANY(masks) (_mm512_test_epi64_mask((__m512i)(masks), (__m512i)(masks)) != 0)
#define FG_FUSED_F64(a, b, c) (fg_held_f64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c)
#define FG_FUSED_F32(a, b, c) (fg_held_f32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c)
#define FG_ROOT_F64(a) (fg_held_f64)_mm512_sqrt_pd((__m512d)a)
#define FG_ROOT_F32(a) (fg_held_f32)_mm512_sqrt_ps((__m512)a)
#define FG_ROUND_F64(a, mode) (fg_held_f64)_mm512_roundscale_pd((__m512d)a, mode)
#define FG_ROUND_F32(a, mode) (fg_held_f32)_mm512_roundscale_ps((__m512)a, mode)
#define FG_MASKS
#define FG_TEST_F64(a, b, test) _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, test)
#define FG_TEST_F32(a, b, test) _mm512_cmp_ps_mask((__m512)a, (__m512)b, test)
#define FG_TEST_I64(a, b, test) _mm512_cmp_epi64_mask((__m512i)a, (__m512i)b, test)
#define FG_TEST_U64(a, b, test) _mm512_cmp_epu64_mask((__m512i)a, (__m512i)b, test)
#define FG_TEST_I32(a, b, test) _mm512_cmp_epi32_mask((__m512i)a, (__m512i)b, test)
#define FG_TEST_U32(a, b, test) _mm512_cmp_epu32_mask((__m512i)a, (__m512i)b, test)
#define FG_BLEND_F64(m, a, b) (fg_held_f64)_mm512_mask_blend_pd(m, (__m512d)b, (__m512d)a)
#define FG_BLEND_F32(m, a, b) (fg_held_f32)_mm512_mask_blend_ps(m, (__m512)b, (__m512)a)
#define FG_BLEND_I64(m, a, b) (fg_held_i64)_mm512_mask_blend_epi64(m, (__m512i)b, (__m512i)a)
#define FG_BLEND_I32(m, a, b) (fg_held_i32)_mm512_mask_blend_epi32(m, (__m512i)b, (__m512i)a)
#define FG_LOAD_F64(m, p) _mm512_maskz_loadu_pd(m, p)
#define FG_LOAD_F32(m, p) _mm512_maskz_loadu_ps(m, p)
#define FG_LOAD_I64(m, p) _mm512_maskz_loadu_epi64(m, p)
#define FG_LOAD_I32(m, p) _mm512_maskz_loadu_epi32(m, p)
#define FG_PICK_F64(a, m, p) _mm512_mask_loadu_pd((__m512d)a, m, p)
#define FG_PICK_F32(a, m, p) _mm512_mask_loadu_ps((__m512)a, m, p)
#define FG_PICK_I64(a, m, p) _mm512_mask_loadu_epi64((__m512i)a, m, p)
#define FG_PICK_I32(a, m, p) _mm512_mask_loadu_epi32((__m512i)a, m, p)
#define FG_STORE_F64(p, m, a) _mm512_mask_storeu_pd(p, m, (__m512d)a)
#define FG_STORE_F32(p, m, a) _mm512_mask_storeu_ps(p, m, (__m512)a)
#define FG_STORE_I64(p, m, a) _mm512_mask_storeu_epi64(p, m, (__m512i)a)
#define FG_STORE_I32(p, m, a) _mm512_mask_storeu_epi32(p, m, (__m512i)a)
#define FG_LOAD_U64 FG_LOAD_I64
#define FG_LOAD_U32 FG_LOAD_I32
#define FG_STORE_U64 FG_STORE_I64
#define FG_STORE_U32 FG_STORE_I32
#define FG_LOAD_H32 FG_LOAD_I32
#define FG_STORE_H32 FG_STORE_I32
#elif defined(__AVX__) && defined(__FMA__)
#include <immintrin.h>
#define FG_BYTES 32
#define FG_ANY(masks) (_mm256_movemask_pd((__m256d)(masks)) != 0)
#define FG_FUSED_F64(a, b, c) (fg_held_f64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c)
#define FG_FUSED_F32(a, b, c) (fg_held_f32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c)
#define FG_ROOT_F64(a) (fg_held_f64)_mm256_sqrt_pd((__m256d)a)
#define FG_ROOT_F32(a) (fg_held_f32)_mm256_sqrt_ps((__m256)a)
#define FG_ROUND_F64(a, mode) (fg_held_f64)_mm256_round_pd((__m256d)a, mode)
#define FG_ROUND_F32(a, mode) (fg_held_f32)_mm256_round_ps((__m256)a, mode)
#define FG_BLEND_F64(m, a, b) (fg_held_f64)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)m)
#define FG_BLEND_F32(m, a, b) (fg_held_f32)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)m)
#elif defined(__aarch64__)
#include <arm_neon.h>
#define FG_BYTES 16
#define FG_FUSED_F64(a, b, c) (fg_held_f64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b)
#define FG_FUSED_F32(a, b, c) (fg_held_f32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b)
#elif !defined(FG_FORMULAS)
#define FG_BYTES 16
#endif
#endif
#ifdef FG_BYTES
#define FG_VECTOR __attribute__((vector_size(FG_BYTES)))
#define FG_VECTOR_AT(bytes) __attribute__((vector_size(FG_BYTES), aligned(bytes)))
#define FG_AS(type, function, x) ((type)(x))
#define FG_MASK(type, flags) ((type)(flags))
#ifndef FG_ANY
#define FG_ANY(masks) (((masks)[0] | (masks)[1]) != 0)
#endif
#else
#define FG_VECTOR
#define FG_VECTOR_AT(bytes)
#define FG_AS(type, function, x) function(x)
#define FG_MASK(type, flags) (-(type)(flags))
#define FG_ANY(masks) ((masks) != 0)
#endif
#ifndef FG_FUSED_F64
#define FG_FUSED_F64(a, b, c) FG_MULADD(a, b, c)
#define FG_FUSED_F32(a, b, c) FG_MULADDF(a, b, c)
#endif
#ifdef FG_NO_MALLOC
#define FG_MALLOC(size) NULL
#define FG_FREE(memory) (void)(memory)
#else
#define FG_MALLOC(size) malloc(size)
#define FG_FREE(memory) free(memory)
#endif
#define FG_STEP(call) do {{ int64_t code = call; if (code) return code; }} while (0)
"""
"""The first lines of files.

FG_HIDE keeps clang from knowing what is in the memory of a pointer: where it does, for the first
element, it loads each next one at the end of an iteration, and has no vectors for such a loop.
gcc warns of copies of small matrices, which loops that it does not see through have filled.
"""


_LIBRARY = """\
import ctypes
import pathlib

import numpy as np

library = ctypes.CDLL(str(pathlib.Path(__file__).resolve().with_name("lib{name}.so")))
library.{name}_message.restype = ctypes.c_char_p
"""

_CALL = """\
    addresses = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
    status = library.{name}_by_addresses({sizes}addresses, None)
    if status:
        raise ValueError(library.{name}_message(status).decode())
"""


class Exported:
    """A program as files of C. Made by `export`.

    Attributes:
        name: Of the function, and of the files.
        signature: The types of arguments and results.
        source: The file of C.
        header: Its header.
        loader: A module for Python with NumPy alone, which loads the file as a shared library. It
            takes all arrays of the arguments, and gives all arrays of the results.
        scratch_bytes: Scratch memory that a call needs.
    """

    def __init__(
        self, name: str, signature: Signature, source: str, header: str, loader: str, nbytes: int
    ) -> None:
        self.name = name
        self.signature = signature
        self.source = source
        self.header = header
        self.loader = loader
        self.scratch_bytes = nbytes

    def __repr__(self) -> str:
        return f"<exported {self.name}: {self.signature}>"

    def write(self, folder: str | Path) -> tuple[Path, Path, Path]:
        """Write the file, its header and its loader into a folder.

        Args: folder: The folder.
        Returns: The paths of the three.
        """
        texts = {".c": self.source, ".h": self.header, ".py": self.loader}
        paths = {ending: Path(folder) / (self.name + ending) for ending in texts}
        for ending, text in texts.items():
            paths[ending].write_text(text)
        return paths[".c"], paths[".h"], paths[".py"]


@overload
def export(
    fun: Callable[..., Any],
    signature: str,
    name: str = "",
    sizes: Mapping[str, Iterable[int]] | None = None,
    language: Literal["c"] = "c",
) -> Exported: ...


@overload
def export(
    fun: Callable[..., Any],
    signature: str,
    name: str = "",
    sizes: Mapping[str, Iterable[int]] | None = None,
    *,
    language: Literal["python"],
) -> ExportedModule: ...


def export(
    fun: Callable[..., Any],
    signature: str,
    name: str = "",
    sizes: Mapping[str, Iterable[int]] | None = None,
    language: str = "c",
) -> Exported | ExportedModule:
    """Write a function as a file of C99, or of Python for NumPy and Numba, without funcgrad.

    The file of C depends on the mathematics library alone.

    Args:
        fun: Any function that `jit` compiles to kernels, derivatives included.
        signature: Types of its arguments and results, as of `cfunc`.
        name: Of the function in C; by default that of ``fun``. A name that C's library has gets an
            underscore.
        sizes: For every name of a size in the signature, the sizes that the file is for: a range
            or a list. Plans for a range are one text, whose numbers are formulas of the sizes, as
            far as kernels are the same; those for a list are there one by one. Kernels are there
            once.
        language: ``"c"``, or ``"python"`` for a module that Numba compiles when the function is
            first called, and keeps on disk beside it.
    Returns: An `Exported`, with `source`, `header` and `write`, or an `ExportedModule`, with
        `source` and `write`.
    Raises: ArgumentError: If there is no such language, the signature is of another form or does
            not fit, sizes are missing, every size of a range has kernels of its own, or NumPy or
            SciPy evaluate a step of the function.

    Example:
        >>> total = fg.grad(lambda x: np.sum(np.tanh(x)))
        >>> slope = fg.export(total, "float64[3] -> float64[3]", "slope")
        >>> "int32_t slope(const double *x, double *out, void *scratch);" in slope.header
        True
        >>> slope = fg.export(total, "float64[n] -> float64[n]", "slope", {"n": range(1, 999)})
        >>> "int32_t slope(int64_t n, const double *x, double *out, void *scratch);" in slope.header
        True
        >>> module = fg.export(total, "float64[3] -> float64[3]", "slope", language="python")
        >>> "import numba" in module.source, "import funcgrad" in module.source
        (True, False)
    """
    check_callable(fun, "export")
    if language not in ("c", "python"):
        raise ArgumentError(f'export: language is "c" or "python", got {language!r}.')
    called = name or name_of(fun)
    (own,) = identifiers([called if called.isidentifier() else "function"], LIBRARY)
    what = f"export({called}, {signature!r})"
    parsed = parse(signature, what)
    if parsed.returns:
        raise ArgumentError(
            f"{what}: exported functions have a status: write 'arguments -> results'."
        )
    given = {key: _intervals(values) for key, values in (sizes or {}).items()}
    if set(given) != set(parsed.names) or not all(given.values()):
        raise ArgumentError(
            f"{what}: the file has code for sizes that are known: give sizes={{...}} with some for "
            f"each of the names of the signature ({', '.join(parsed.names) or 'there are none'}), "
            f"got {', '.join(given) or 'none'}."
        )
    for key, intervals in given.items():
        if intervals[0][0] < 0:
            raise ArgumentError(f"{what}: no size is negative, got {key} of {_listed(intervals)}.")
    if language == "python":
        writer = load("funcgrad.interop.c.modules").ModuleWriter
    else:
        writer = _FileWriter
    return writer(fun, parsed, own, what, given).exported()


def _intervals(sizes: Iterable[int]) -> list[tuple[int, int]]:
    """The first and the last of sizes without a gap between them."""
    if isinstance(sizes, range) and sizes.step == 1:
        return [(sizes[0], sizes[-1])] if sizes else []
    rows = itertools.groupby(enumerate(sorted({*map(int, sizes)})), lambda pair: pair[1] - pair[0])
    found = [[size for _, size in row] for _, row in rows]
    return [(row[0], row[-1]) for row in found]


class _FileWriter(Program):
    """Writes the files of one function."""

    kernels: KernelsInC
    kinds = KernelsInC, PlanInC

    def exported(self) -> Exported:
        return Exported(
            self.name, self.signature, self.source(), self.header(), self.loader(), self.nbytes
        )

    def header(self) -> str:
        guard = f"{self.name.upper()}_H"
        lines = [
            f"/* {self.signature} */",
            f"#ifndef {guard}",
            f"#define {guard}",
            "#include <stdbool.h>",
            "#include <stdint.h>",
        ]
        if any(t.dtype.kind == "c" for t in (*self.signature.leaves, *self.signature.outs)):
            lines.append(COMPLEX_TYPES)
        lines += [
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "/* Bytes of scratch memory; a null pointer stands for memory of malloc. */",
            f"#define {self.name.upper()}_SCRATCH {self.nbytes}",
            *(f"/* The function is for {key} of {_listed(x)}. */" for key, x in self.sizes.items()),
            self.signature.declaration(self.name, self.parameters),
            "/* The same, of the addresses of all arrays and numbers, arguments first. */",
            f"{self._by_addresses};",
            "/* The meaning of a result that is not 0. */",
            f"const char *{self.name}_message(int32_t status);",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "#endif",
            "",
        ]
        return "\n".join(lines)

    def source(self) -> str:
        runs = self._runs()
        messages = self.messages
        if self.sizes:
            messages.append("the file has no code for these sizes")
        texts = ",\n        ".join(map(_quoted, messages))
        parts = [
            f"/* {self.signature} */",
            HEAD.format(name=self.name),
            *self.kernels.definitions("\n".join(runs)),
            *runs,
            *self._entries(),
            f"const char *{self.name}_message(int32_t status) {{\n"
            f"    static const char *const messages[] = {{\n        {texts}\n    }};\n"
            f'    return status < 0 || status >= {len(messages)} ? "" : messages[status];\n}}',
            "",
        ]
        return "\n\n".join(part for part in parts if part or part == "")

    def _runs(self) -> list[str]:
        """A function for all plans that differ by numbers alone, and what finds these."""
        texts: list[str] = []
        runs: list[str] = []
        fills: list[str] = []
        numbers: list[int] = []
        places: list[list[int]] = []
        self.width = 2
        for kind, pieces in enumerate(self.groups()):
            first = pieces[0]
            slot, lines, *_ = first.plan.key
            if first.formulas:
                columns = [[text] for text in first.numbers(self.names)]
                varying = [k for k, (text,) in enumerate(columns) if not _LITERAL.fullmatch(text)]
                texts.append(self._numbers(kind, first, [columns[k][0] for k in varying]))
            else:
                rows = zip(*(x.plan.numbers for x in pieces), strict=True)
                columns = [[*map(_text_of, row)] for row in rows]
                varying = [k for k, column in enumerate(columns) if len({*column}) > 1]
            filled = [column[0] for column in columns]
            for place, k in enumerate(varying):
                filled[k] = f"row[{place + 2}]"
            body = "\n".join(lines).format(*filled) or "    (void)slots;"
            head = f"    slots[{slot}] = arena;" if slot >= 0 else "    (void)arena;"
            given = "int64_t *slots, int64_t arena, const int64_t *row"
            texts.append(
                f"static int64_t run_{kind}({given}) {{\n    (void)row;\n{head}\n{body}\n"
                "    return 0;\n}"
            )
            runs.append(f"    case {kind}: return run_{kind}(slots, arena, row);")
            if first.formulas:
                fills.append(f"    case {kind}: numbers_{kind}(sizes, room); return room;")
            for piece in pieces:
                bounds = [x for pair in piece.box for x in pair]
                places.append([*bounds, kind, 0 if piece.formulas else len(numbers)])
                if not piece.formulas:
                    found = piece.plan.numbers
                    numbers += [kind, piece.plan.nbytes, *(found[k] for k in varying)]
            self.width = max(self.width, 2 + len(varying))
        if not self.sizes:
            return texts
        listed = [", ".join(map(_text_of, numbers[k : k + 8])) for k in range(0, len(numbers), 8)]
        search = _SEARCH.format(
            numbers=",\n    ".join(listed) or "0",
            width=2 * len(self.sizes) + 2,
            pieces="\n".join("    {" + ", ".join(map(_text_of, row)) + "}," for row in places),
            count=len(places),
            n_sizes=len(self.sizes),
            kind=2 * len(self.sizes),
            cases="\n    ".join(fills),
        )
        choice = [
            "static int64_t run_row(int64_t *slots, int64_t arena, const int64_t *row) {",
            "    switch (row[0]) {",
            *runs,
            f"    default: return {REFUSED};",
            "    }",
            "}",
        ]
        return [*texts, search, "\n".join(choice)]

    def _numbers(self, kind: int, piece: Piece, texts: Sequence[str]) -> str:
        """The function that computes the numbers of a plan, of sizes."""
        statements = piece.statements(self.names)
        used = " ".join([*texts, *(text for _, text in statements)])
        lines = [
            f"    const int64_t {name} = sizes[{k}];"
            for k, name in enumerate(self.names)
            if re.search(rf"\b{name}\b", used)
        ]
        lines += [f"    const int64_t {name} = {text};" for name, text in statements]
        lines += [f"    row[{k}] = {text};" for k, text in enumerate([str(kind), "total", *texts])]
        function = f"static void numbers_{kind}(const int64_t *sizes, int64_t *row) {{"
        return self.kernels.prelude.use("\n".join([function, "    (void)sizes;", *lines, "}"]))

    def _entries(self) -> list[str]:
        """The function of addresses, and the one that calls it with its arguments."""
        arrays = [*self.signature.leaves, *self.signature.outs]
        lines = [f"    int64_t slots[{self.n_slots}] = {{0}};"]
        run, nbytes = "run_0(slots, arena, NULL)", str(self.nbytes)
        if self.sizes:
            run, nbytes = "run_row(slots, arena, row)", "(size_t)row[1]"
            unknown = FIRST_MESSAGE + len(self.kernels.messages)
            lines.append(f"    int64_t room[{self.width}];")
            lines.append("    const int64_t *row = row_of(sizes, room);")
            lines.append(f"    if (!row) return {unknown};")
        lines += [
            f"    for (int k = 0; k < {len(arrays)}; k++) "
            f"slots[{FIRST_SLOT} + k] = (int64_t)(intptr_t)arrays[k];"
        ]
        if self.nbytes:
            test = f"!scratch && {nbytes}" if self.sizes else "!scratch"
            lines += [
                "    void *own = NULL;",
                f"    if ({test}) {{",
                f"        own = scratch = FG_MALLOC({nbytes});",
                f"        if (!scratch) return {NO_MEMORY};",
                "    }",
                "    int64_t arena = ((int64_t)(intptr_t)scratch + 63) / 64 * 64;",
            ]
        else:
            lines += ["    int64_t arena = 0;", "    (void)scratch;"]
        lines.append(f"    int64_t code = {run};")
        if self.nbytes:
            lines.append("    FG_FREE(own);")
        lines += [
            "    if (code == 0) return 0;",
            f"    return code == {REFUSED} ? (int32_t)slots[1] + {FIRST_MESSAGE} : {FAILED};",
        ]
        places = []
        for tree, own in zip(self.signature.arguments, identifiers(self.parameters), strict=True):
            places += _places(tree, own, is_result=False)
        outs = self.signature.results
        for k, tree in enumerate(outs):
            places += _places(tree, f"out{k if len(outs) > 1 else ''}", is_result=True)
        prototype = self.signature.declaration(self.name, self.parameters).splitlines()[-1]
        names = ", ".join(identifiers(self.signature.names))
        sizes = f"    const int64_t sizes[] = {{{names}}};\n" if names else ""
        return [
            "\n".join([f"{self._by_addresses} {{", *lines, "}"]),
            f"{prototype.removesuffix(';')} {{\n{sizes}"
            f"    void *const arrays[] = {{{', '.join(f'(void *){place}' for place in places)}}};\n"
            f"    return {self.name}_by_addresses({'sizes, ' * bool(names)}arrays, scratch);\n}}",
        ]

    @property
    def _by_addresses(self) -> str:
        sizes = "const int64_t *sizes, " if self.sizes else ""
        return f"int32_t {self.name}_by_addresses({sizes}void *const *arrays, void *scratch)"

    def loader(self) -> str:
        """A module of Python that loads the file as a shared library."""
        names = self.signature.names
        count = f"(ctypes.c_int64 * {len(names)})({', '.join(names)}), "
        call = _CALL.format(name=self.name, sizes=count * bool(names))
        head = f'"""{self.name}: {self.signature}"""\n\n{_LIBRARY.format(name=self.name)}'
        return f"{head}\n\n{self.function(call)}"


_SEARCH = """\
static const int64_t numbers[] = {{
    {numbers}
}};
static const int64_t *row_of(const int64_t *sizes, int64_t *room) {{
    static const int64_t pieces[][{width}] = {{
{pieces}
    }};
    (void)room;
    for (int k = 0; k < {count}; k++) {{
        bool is_it = true;
        for (int j = 0; j < {n_sizes}; j++)
            is_it = is_it && sizes[j] >= pieces[k][2 * j] && sizes[j] <= pieces[k][2 * j + 1];
        if (!is_it) continue;
        switch (pieces[k][{kind}]) {{
        {cases}
        default: return numbers + pieces[k][{kind} + 1];
        }}
    }}
    return NULL;
}}"""
"""The search for the numbers of a plan, by bounds of sizes, the kind of their plan and a place."""

_LITERAL = re.compile(r"-?\d+")


def _listed(intervals: Sequence[tuple[int, int]]) -> str:
    """Sizes in words."""
    texts = (
        f"{low} to {high}" if high > low + 1 else ", ".join(map(str, {low: 0, high: 0}))
        for low, high in intervals
    )
    return ", ".join(texts)


def _text_of(value: int) -> str:
    if value == -(1 << 63):
        return "INT64_MIN"
    return str(value) if abs(value) < 1 << 31 else f"INT64_C({value})"


def _places(tree: Any, name: str, is_result: bool) -> list[str]:
    """The addresses of the arrays of a parameter, as expressions."""
    if isinstance(tree, ArrayType):
        return [f"&{name}" if tree.is_value and not is_result else name]
    return [f"((void *const *){name})[{k}]" for k in range(len(tree_leaves(tree)))]


def _quoted(text: str) -> str:
    safe = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + safe.replace("??", "?") + '"'
