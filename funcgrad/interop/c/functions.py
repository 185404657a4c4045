"""Functions of C that exported files use, and that are no words made of operators (`formulas`).

They are loops, accesses to memory, and what C has a way of its own for. Each is written once for
all types that it has, and defined in a file for those that it uses (`words.Prelude`).
"""

from __future__ import annotations

import re

from funcgrad.interop.c.formulas import VALUES, wide
from funcgrad.intrinsics import INTRINSICS

# Functions of scalars.

FIXED = {
    "fg_lanes": "typedef struct { int64_t first, count; } fg_lanes;",
    "fg_all_lanes": """\
static inline fg_lanes fg_all_lanes(int64_t first, int count) {
    fg_lanes r = {first, count};
    return r;
}""",
    "fg_first_lanes": """\
static inline fg_lanes fg_first_lanes(int64_t first, int64_t end, int count) {
    fg_lanes r = {first, end - first < count ? end - first : count};
    return r;
}""",
    # Numbers of plans, by sizes.
    "fg_quotient": "static inline int64_t fg_quotient(int64_t a, int64_t b) { return a / b; }",
    "fg_larger": "static inline int64_t fg_larger(int64_t a, int64_t b) { return a > b ? a : b; }",
    "fg_room": "static inline int64_t fg_room(int64_t size) { return (size + 63) / 64 * 64; }",
    "fg_float64": "static inline double fg_float64(int64_t a) { return (double)a; }",
    "fg_word64": "static inline int64_t fg_word64(double a) { return fg_bits_f64_i64(a); }",
    "fg_word32": "static inline int64_t fg_word32(double a) { return fg_bits_f32_i32((float)a); }",
}

OF_MEMORY = {
    "some": """\
/* Neighbours, of which only some may be there; the others are 0. */
static FG_INLINE const fg_NAME *fg_some_NAME(fg_NAME *room, const fg_NAME *p, int64_t n, int all) {
    if (n >= all) return p;
    FG_LOOP
    for (int64_t k = 0; k < all; k++) room[k] = k < n ? p[k] : 0;
    return room;
}""",
    "back": """\
/* The same, back. */
static FG_INLINE void fg_back_NAME(fg_NAME *p, const fg_NAME *room, int64_t n, int all) {
    FG_LOOP
    for (int64_t k = 0; k < all; k++) if (k < n) p[k] = room[k];
}""",
    "apart": """\
/* Elements a few steps apart, likewise. */
static FG_INLINE const fg_NAME *fg_apart_NAME(fg_NAME *room, const fg_NAME *p, int64_t n, int all,
                                              int64_t step) {
    for (int64_t k = 0; k < all; k++) room[k] = k < n ? p[k * step] : 0;
    return room;
}""",
}
"""Copies of elements for loops over lanes, by how they lie in memory."""

REGISTERS = {
    "held": "typedef fg_NAME fg_held_NAME FG_VECTOR;",
    "row": "typedef fg_NAME fg_row_NAME FG_VECTOR_AT(sizeof(fg_NAME));",
    "count": "enum { fg_count_NAME = sizeof(fg_held_NAME) / sizeof(fg_NAME) };",
}
"""Registers, what is loaded into them from any place, and the number of their elements."""

PROGRAMS = {
    "product": """\
/* Products of matrices: sizes, and for a, b and c the slot, the offset and the distances. */
static int64_t fg_product_NAME(int64_t *slots, const int64_t *w) {
    MANY
    for (int64_t s = 0; s < w[0]; s++)
        for (int64_t i = 0; i < w[1]; i++) {
            const char *a = (const char *)(intptr_t)(slots[w[4]] + w[5] + s * w[6] + i * w[7]);
            fg_HELD *c = (fg_HELD *)(intptr_t)(slots[w[14]] + w[15]);
            c += (s * w[1] + i) * w[2] * PARTS;
            for (int64_t j = 0; j < w[2] * PARTS; j++) c[j] = 0;
            for (int64_t p = 0; p < w[3]; p++) {
                const fg_HELD *x = (const fg_HELD *)(a + p * w[8]);
                const char *b = (const char *)(intptr_t)(slots[w[9]] + w[10]);
                b += s * w[11] + p * w[12];
                if (w[13] == (int64_t)sizeof(fg_HELD) * PARTS) {
                    const fg_HELD *y = (const fg_HELD *)b;
                    FG_INDEPENDENT
                    for (int64_t j = 0; j < w[2]; j++) {
                        BODY
                    }
                } else {
                    for (int64_t j = 0; j < w[2]; j++) {
                        const fg_HELD *z = (const fg_HELD *)(b + j * w[13]);
                        APART
                    }
                }
            }
        }
    return 0;
}""",
}
"""Steps of a plan that are not kernels, by what they compute."""


_ROWS = 6
"""Rows of a tile: with its columns, two registers long, sums fill most of the registers."""

_DEPTH = 128
"""Terms of a tile, of whose rows a copy is on the stack."""

TILE = """\
/* A part of a product: ROWS rows of a, and columns of b, COUNT registers of them; fewer at ends. */
static void fg_tileCOUNT_NAME(fg_HELD *c, int64_t c_step, const char *a, int64_t row_step,
                                       int64_t step, const fg_HELD *b, int64_t n_rows,
                                       int64_t n_terms, int64_t n, bool more) {
    SUMS
    POINTERS
    for (int64_t p = 0; p < n_terms; p++, b += 2 * LANES * PARTS) {
        COLUMNS
        TERMS
    }
    fg_held_HELD sums[ROWS][COUNT * PARTS] = {FOUND};
    for (int64_t i = 0; i < n_rows; i++) {
        const fg_HELD *sum = (const fg_HELD *)sums[i];
        fg_HELD *z = c + i * c_step * PARTS;
        FG_LOOP
        for (int64_t j = 0; j < n * PARTS; j++) {
            const fg_HELD y = sum[PLACE];
            z[j] = more ? z[j] + y : y;
        }
    }
}
"""

TILES = """\
PAIR
/* A product of matrices by tiles; terms and columns of b are copied first, to be near. */
static int64_t fg_tiles_NAME(int64_t *slots, const int64_t *w) {
    fg_HELD near[DEPTH * PARTS * WIDTH];
    for (int64_t s = 0; s < w[0]; s++)
        for (int64_t first = 0; first < w[2]; first += WIDTH)
            for (int64_t term = 0; term < w[3]; term += DEPTH) {
                const int64_t n = w[2] - first < WIDTH ? w[2] - first : WIDTH;
                const int64_t n_terms = w[3] - term < DEPTH ? w[3] - term : DEPTH;
                const char *a = (const char *)(intptr_t)(slots[w[4]] + w[5] + s * w[6]);
                const char *b = (const char *)(intptr_t)(slots[w[9]] + w[10] + s * w[11]);
                fg_HELD *c = (fg_HELD *)(intptr_t)(slots[w[14]] + w[15]);
                c += (s * w[1] * w[2] + first) * PARTS;
                b += term * w[12] + first * w[13];
                for (int64_t p = 0; p < n_terms; p++) {
                    fg_HELD *row = near + p * PARTS * WIDTH;
                    const char *from = b + p * w[12];
                    for (int64_t j = n; j < WIDTH; j++) ZEROS
                    const int64_t step = w[13];
                    if (step == (int64_t)sizeof(fg_HELD) * PARTS) {
                        FG_LOOP
                        for (int64_t j = 0; j < n; j++) {
                            const fg_HELD *x = (const fg_HELD *)from + PARTS * j;
                            COPY
                        }
                    } else {
                        for (int64_t j = 0; j < n; j++) {
                            const fg_HELD *x = (const fg_HELD *)(from + j * step);
                            COPY
                        }
                    }
                }
                for (int64_t i = 0; i < w[1]; i += ROWS) {
                    const int64_t n_rows = w[1] - i < ROWS ? w[1] - i : ROWS;
                    fg_HELD *to = c + i * w[2] * PARTS;
                    const char *x = a + i * w[7] + term * w[8];
                    if (2 * n <= WIDTH)
                        fg_tile1_NAME(to, w[2], x, w[7], w[8], near, n_rows, n_terms, n, term > 0);
                    else
                        fg_tile2_NAME(to, w[2], x, w[7], w[8], near, n_rows, n_terms, n, term > 0);
                }
            }
    return 0;
}
"""
"""Products of matrices of floats with several rows; complex numbers have two parts."""


def _tile(count: int, parts: int) -> str:
    """The function of a tile whose rows are ``count`` registers long."""
    rows, columns = range(_ROWS // parts), range(count)
    sums = [f"s{k}{v}{q}" for k in rows for v in columns for q in "ri"[:parts]]
    zeros = [f"fg_held_HELD {name} = {{0}};" for name in sums]
    pointers = [f"const char *a{k} = a + ({k} < n_rows ? {k} : 0) * row_step;" for k in rows]
    loads = [
        f"const fg_held_HELD y{v}{q} = *(const fg_row_HELD *)(b + {2 * at} * LANES + {v} * LANES);"
        for v in columns
        for at, q in enumerate("ri"[:parts])
    ]
    terms = []
    for k in rows:
        place = f"((const fg_HELD *)(a{k} + p * step))"
        for at, q in enumerate("ri"[:parts]):
            terms.append(f"const fg_held_HELD x{k}{q} = {place}[{at}] - (fg_held_HELD){{0}};")
        for v in columns:
            if parts == 2:
                terms += [
                    f"s{k}{v}r = fg_fused_HELD(-x{k}i, y{v}i, s{k}{v}r);",
                    f"s{k}{v}i = fg_fused_HELD(x{k}i, y{v}r, s{k}{v}i);",
                    f"s{k}{v}i = fg_fused_HELD(x{k}r, y{v}i, s{k}{v}i);",
                ]
            terms.append(f"s{k}{v}r = fg_fused_HELD(x{k}r, y{v}r, s{k}{v}r);")
    found = [f"{{{', '.join(x for x in sums if x.startswith(f's{k}'))}}}" for k in rows]
    text = TILE.replace("FOUND", ", ".join(found)).replace("COUNT", str(count))
    for word, lines, depth in (
        ("SUMS", zeros, 4), ("POINTERS", pointers, 4), ("COLUMNS", loads, 8), ("TERMS", terms, 8),
    ):  # fmt: skip
        text = text.replace(word, ("\n" + depth * " ").join(lines))
    # Of complex sums a register of real parts stands before one of imaginary parts.
    pair = "j / 2 / LANES * 2 * LANES + j % 2 * LANES + j / 2 % LANES"
    return text.replace("PLACE", pair if parts == 2 else "j")


def program(stem: str, name: str) -> str:
    """The definition of a step for a dtype."""
    text = PROGRAMS[stem]
    parts = 1 + (name[0] == "c")
    held = {"c64": "f32", "c128": "f64"}.get(name, name)
    many = ""
    if held in ("f32", "f64"):
        many = "if (w[1] >= 2 && w[2] >= 4) return fg_tiles_NAME(slots, w);"
        text = TILES.replace("PAIR\n", _tile(1, parts) + _tile(2, parts)) + text
    places = ["row[j]", "row[WIDTH + j]"][:parts]
    copied = [f"{place} = x[{k}];" for k, place in enumerate(places)]
    text = text.replace("ZEROS", f"{' = '.join(places)} = 0;")
    text = text.replace("COPY", ("\n" + 28 * " ").join(copied))
    text = text.replace("ROWS", str(_ROWS // parts)).replace("DEPTH", str(_DEPTH // parts))
    text = text.replace("MANY", many).replace("WIDTH", "(2 * LANES)")
    text = text.replace("LANES", "fg_count_HELD")
    add = "c[j] += x[0] * {y};"
    if parts == 2:
        add = "c[2 * j] += x[0] * {y} - x[1] * {z}; c[2 * j + 1] += x[0] * {z} + x[1] * {y};"
    body = add.format(y="y[2 * j]" if parts == 2 else "y[j]", z="y[2 * j + 1]")
    last = add.format(y="z[0]", z="z[1]")
    for word, value in (
        ("BODY", body), ("APART", last), ("HELD", held), ("PARTS", str(parts)), ("NAME", name),
    ):  # fmt: skip
        text = text.replace(word, value)
    return text


_SCALAR = {
    # Floats. F is the suffix of libm's functions.
    # Equal numbers differ in the sign of zeros alone.
    ("maximum", "f"): (
        "T r = a > b || a != a ? a : b; "
        "return a == b ? fg_bits_S_N(fg_bits_N_S(a) & fg_bits_N_S(b)) : r;"
    ),
    ("minimum", "f"): (
        "T r = a < b || a != a ? a : b; "
        "return a == b ? fg_bits_S_N(fg_bits_N_S(a) | fg_bits_N_S(b)) : r;"
    ),
    ("muladd", "f"): "return FG_MULADD_F(a, b, c);",
    ("fused", "f"): "return FG_FUSED_F(a, b, c);",
    # Floats as integers: the least one where there is none.
    ("wholei32", "f"): "return fabsF(a) < (T)0x1p31 ? (int32_t)a : INT32_MIN;",
    ("wholei64", "f"): "return fabsF(a) < (T)0x1p63 ? (int64_t)a : INT64_MIN;",
    ("wholeu64", "f"): (
        "T b = a >= (T)0x1p63 ? a - (T)0x1p63 : a; int64_t r = fabsF(b) < (T)0x1p63 ? (int64_t)b : "
        "INT64_MIN; return a >= (T)0x1p63 ? (uint64_t)r ^ UINT64_C(9223372036854775808) : "
        "(uint64_t)r;"
    ),
    # A choice by the bits of a mask, V being the integers of the width of T.
    ("choose", "f"): (
        "V m = (V)c, r = (m & fg_bits_N_S(a)) | (~m & fg_bits_N_S(b)); return fg_bits_S_N(r);"
    ),
    ("choose", "iu"): "V m = (V)c; return (T)(((V)a & m) | ((V)b & ~m));",
    ("choose", "b"): "return c ? a : b;",
    ("choose", "c"): "T r = {fg_choose_Q(c, a.re, b.re), fg_choose_Q(c, a.im, b.im)}; return r;",
    # Loops.
    ("pow", "iu"): (
        "W r = 1, x = (W)a; for (U n = (U)b; n; n >>= 1) { if (n & 1) r *= x; x *= x; } "
        "return (T)r;"
    ),
    ("popcount", "iu"): "T r = 0; for (U n = (U)a; n; n &= (U)(n - 1)) r++; return r;",
    ("gcd", "iu"): (
        "U x = A(a), y = A(b); while (y) { U z = (U)(x % y); x = y; y = z; } return (T)x;"
    ),
    # Complex numbers in memory, P being the type of their parts.
    ("load", "c"): "T r = {p[2 * i], p[2 * i + 1]}; return r;",
    ("store", "c"): "p[2 * i] = a.re; p[2 * i + 1] = a.im;",
    ("make", "c"): "T r = {a, b}; return r;",
}
"""Bodies of functions, by words and kinds.

T is the type of the arguments, W the unsigned one in which they are multiplied, U the unsigned one
of their width, F the suffix of libm's functions.
"""

_RESULTS = {"wholei32": "int32_t", "wholei64": "int64_t", "wholeu64": "uint64_t"}


def scalar_function(word: str, name: str) -> str:
    """The definition of ``fg_word_name``; empty if words are written by `formulas`."""
    full = f"fg_{word}_{name}"
    if word.startswith("bits_"):
        source = VALUES[word.removeprefix("bits_")]
        return (
            f"static FG_INLINE {VALUES[name]} {full}({source} a) {{\n    {VALUES[name]} r;\n"
            "    memcpy(&r, &a, sizeof r);\n    return r;\n}"
        )
    body = next(
        (text for (w, kinds), text in _SCALAR.items() if w == word and name[0] in kinds), ""
    )
    if not body:
        return ""
    bits = int(name[1:]) if name[1:].isdigit() else 8
    part = {"c64": "float", "c128": "double"}.get(name, "")
    real = {"c64": "f32", "c128": "f64"}.get(name, name)
    suffix = "f" if real == "f32" else ""
    words = {
        "T": VALUES[name], "W": wide(name), "U": f"uint{bits}_t", "P": part, "V": f"int{bits}_t",
    }  # fmt: skip
    body = body.replace("_N_S", f"_{name}_i{bits}").replace("_S_N", f"_i{bits}_{name}")
    body = body.replace("fg_choose_Q", f"fg_choose_{real}")
    body = body.replace("fabsF(", f"fabs{suffix}(")
    body = body.replace("FG_MULADD_F", f"FG_MULADD{suffix.upper()}")
    if word == "fused":
        held = f"fg_held_{name}"
        return (
            f"static FG_INLINE {held} {full}({held} a, {held} b, {held} c) {{\n"
            f"    {body.replace('FG_FUSED_F', f'FG_FUSED_{name.upper()}')}\n}}"
        )
    body = re.sub(
        r"\bA\((\w)\)", r"(U)(\1 < 0 ? 0 - (W)\1 : (W)\1)" if name[0] == "i" else r"\1", body
    )
    body = re.sub(r"\b([TWUPV])\b", lambda m: words[m[1]], body)
    takes = {
        "make": [f"{part} a", f"{part} b"],
        "muladd": [f"{VALUES[name]} {x}" for x in "abc"],
        "choose": ["int64_t c", f"{VALUES[name]} a", f"{VALUES[name]} b"],
        "load": [f"const fg_{real} *p", "int64_t i"],
        "store": [f"fg_{real} *p", "int64_t i", f"{VALUES[name]} a"],
    }.get(word)
    if takes is None:
        n = INTRINSICS[word].arity if word in INTRINSICS else 1
        takes = [f"{VALUES[name]} {x}" for x in "abc"[:n]]
    result = "void" if word == "store" else _RESULTS.get(word, VALUES[name])
    lines = "".join(f"    {line}\n" for line in _statements(body))
    return f"static FG_INLINE {result} {full}({', '.join(takes)}) {{\n{lines}}}"


def _statements(body: str) -> list[str]:
    """Statements of C, one in a line."""
    found, depth, start = [], 0, 0
    for k, letter in enumerate(body):
        depth += (letter in "({") - (letter in ")}")
        is_end = letter in ";}" and body[k + 1 : k + 2] in ("", " ")
        if depth == 0 and is_end and body[k + 2 : k + 6] != "else":
            found.append(body[start : k + 1].strip())
            start = k + 1
    return found
