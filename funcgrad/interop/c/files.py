"""Compiled programs as files of C: a consumer of kernels and plans, as the executor is.

`export : function, signature -> Exported`. A file depends on C99 and its mathematics library. A
kernel is a function of it (`printer`), and a plan is its steps one after the other (`plan`). The
function has the prototype that `cfunc` gives the same signature.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from funcgrad.api.arguments import check_callable, name_of
from funcgrad.base.pytree import tree_leaves
from funcgrad.compiler.abi import FIRST_SLOT, REFUSED
from funcgrad.errors import ArgumentError
from funcgrad.interop.c.calling import compiled, described_site, parameters
from funcgrad.interop.c.entry import FAILED, FIRST_MESSAGE, NO_MEMORY
from funcgrad.interop.c.plan import Kernels, Mark, PlanWriter
from funcgrad.interop.c.signature import (
    COMPLEX_TYPES,
    LIBRARY,
    ArrayType,
    Signature,
    identifiers,
    parse,
)

_ALIGNMENT = 64

HEAD = """\
#if defined(__GNUC__) && !defined(__clang__)
#ifdef __OPTIMIZE__
#pragma GCC optimize("tree-vectorize", "vect-cost-model=dynamic", "no-tree-pre")
#pragma GCC optimize("no-math-errno", "no-trapping-math", "fp-contract=off")
#endif
#define FG_LOOP _Pragma("GCC unroll 1") _Pragma("GCC ivdep")
#define FG_INDEPENDENT _Pragma("GCC ivdep")
#else
#pragma STDC FP_CONTRACT OFF
#define FG_LOOP
#define FG_INDEPENDENT
#endif
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "{name}.h"

#if defined(__GNUC__)
#define FG_MAY_ALIAS __attribute__((may_alias))
#define FG_INLINE inline __attribute__((always_inline))
#else
#define FG_MAY_ALIAS
#define FG_INLINE inline
#endif
#if defined(FP_FAST_FMA) || defined(__FMA__) || defined(__aarch64__)
#define FG_FORMULAS
#endif
#ifdef FP_FAST_FMA
#define FG_MULADD(a, b, c) fma(a, b, c)
#else
#define FG_MULADD(a, b, c) ((a) * (b) + (c))
#endif
#ifdef FP_FAST_FMAF
#define FG_MULADDF(a, b, c) fmaf(a, b, c)
#else
#define FG_MULADDF(a, b, c) ((a) * (b) + (c))
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
"""The first lines of files."""


_LOADER = '''\
"""{name}: {signature}"""

import ctypes
import pathlib

import numpy as np

ARGUMENTS = [{arguments}]
RESULTS = [{results}]
library = ctypes.CDLL(str(pathlib.Path(__file__).resolve().with_name("lib{name}.so")))
library.{name}_message.restype = ctypes.c_char_p


def {name}(*args):
    arrays = [np.asarray(x, t, order="C") for x, (t, _) in zip(args, ARGUMENTS, strict=True)]
    if [x.shape for x in arrays] != [shape for _, shape in ARGUMENTS]:
        raise ValueError(f"expected the shapes {{[shape for _, shape in ARGUMENTS]}}")
    arrays += [np.empty(shape, t) for t, shape in RESULTS]
    addresses = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
    status = library.{name}_by_addresses(addresses, None)
    if status:
        raise ValueError(library.{name}_message(status).decode())
    results = tuple(arrays[len(ARGUMENTS) :])
    return results if len(results) != 1 else results[0]
'''


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

        Args:
            folder: The folder.

        Returns:
            The paths of the three.
        """
        texts = {".c": self.source, ".h": self.header, ".py": self.loader}
        paths = {ending: Path(folder) / (self.name + ending) for ending in texts}
        for ending, text in texts.items():
            paths[ending].write_text(text)
        return paths[".c"], paths[".h"], paths[".py"]


def export(fun: Callable[..., Any], signature: str, name: str = "") -> Exported:
    """Write a function as a file of C99 that depends on the mathematics library alone.

    Args:
        fun: Any function that `jit` compiles to kernels, derivatives included.
        signature: Types of its arguments and results, as of `cfunc`.
        name: Of the function in C; by default that of ``fun``. A name that C's library has gets an
            underscore.

    Returns:
        An `Exported`, with `source`, `header` and `write`.

    Raises:
        ArgumentError: If the signature is of another form or does not fit, or NumPy or SciPy
            evaluate a step of the function.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> total = fg.grad(lambda x: np.sum(np.tanh(x)))
        >>> slope = fg.export(total, "float64[3] -> float64[3]", "slope")
        >>> "int32_t slope(const double *x, double *out, void *scratch);" in slope.header
        True
    """
    check_callable(fun, "export")
    own = name or name_of(fun)
    (own,) = identifiers([own if own.isidentifier() else "function"], LIBRARY)
    what = f"export({own}, {signature!r})"
    parsed = parse(signature, what)
    if parsed.returns:
        raise ArgumentError(
            f"{what}: exported functions have a status: write 'arguments -> results'."
        )
    if parsed.names:
        raise ArgumentError(f"{what}: the sizes of exported functions are numbers.")
    return _Writer(fun, parsed, own, what).exported()


class _Writer:
    """Writes the files of one function."""

    def __init__(self, fun: Callable[..., Any], signature: Signature, name: str, what: str) -> None:
        self.signature = signature
        self.name = name
        self.parameters = parameters(fun, len(signature.arguments))
        self.kernels = Kernels()
        self.executable = compiled(fun, signature, {}, what)
        self.plan = PlanWriter(self.executable, self.kernels, what)
        self.nbytes = self.executable.memory.arena_bytes + _ALIGNMENT

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
        body = self._filled()
        messages = ["no scratch memory", "a step of the program has failed"]
        messages += [described_site(site) for site in self.plan.sites]
        texts = ",\n        ".join(_quoted(text) for text in ["", *messages])
        head = HEAD.format(name=self.name)
        parts = [
            f"/* {self.signature} */",
            head,
            self.kernels.prelude.text(),
            *self.plan.constants,
            *self.kernels.texts,
            f"static int64_t run(int64_t *slots) {{\n{body}\n    return 0;\n}}",
            *self._entries(),
            f"const char *{self.name}_message(int32_t status) {{\n"
            f"    static const char *const messages[] = {{\n        {texts}\n    }};\n"
            f'    return status < 0 || status > {len(messages)} ? "" : messages[status];\n}}',
            "",
        ]
        return "\n\n".join(part for part in parts if part or part == "")

    def _filled(self) -> str:
        text = "\n".join(self.plan.lines)
        return text.format(*(_number(mark) for mark in self.plan.marks)) or "    (void)slots;"

    def _entries(self) -> list[str]:
        """The function of addresses, and the one that calls it with its arguments."""
        memory = self.executable.memory
        arrays = [*self.signature.leaves, *self.signature.outs]
        lines = [f"    int64_t slots[{max(memory.n_slots, 1)}] = {{0}};"]
        lines += [
            f"    for (int k = 0; k < {len(arrays)}; k++) "
            f"slots[{FIRST_SLOT} + k] = (int64_t)(intptr_t)arrays[k];"
        ]
        if memory.arena_bytes:
            lines += [
                "    void *own = NULL;",
                "    if (!scratch) {",
                f"        own = scratch = FG_MALLOC({self.nbytes});",
                f"        if (!scratch) return {NO_MEMORY};",
                "    }",
                f"    slots[{memory.arena_slot}] = ((int64_t)(intptr_t)scratch + 63) / 64 * 64;",
            ]
        else:
            lines.append("    (void)scratch;")
        lines.append("    int64_t code = run(slots);")
        if memory.arena_bytes:
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
        return [
            "\n".join([f"{self._by_addresses} {{", *lines, "}"]),
            f"{prototype.removesuffix(';')} {{\n"
            f"    void *const arrays[] = {{{', '.join(f'(void *){place}' for place in places)}}};\n"
            f"    return {self.name}_by_addresses(arrays, scratch);\n}}",
        ]

    @property
    def _by_addresses(self) -> str:
        return f"int32_t {self.name}_by_addresses(void *const *arrays, void *scratch)"

    def loader(self) -> str:
        """A module of Python that loads the file as a shared library."""
        arguments, results = (
            ", ".join(f'("{t.dtype.name}", {t.shape({})})' for t in types)
            for types in (self.signature.leaves, self.signature.outs)
        )
        return _LOADER.format(
            name=self.name, signature=self.signature, arguments=arguments, results=results
        )


def _number(mark: Mark) -> str:
    """A number as text."""
    value = (mark.value + mark.arena + (1 << 63)) % (1 << 64) - (1 << 63)
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
