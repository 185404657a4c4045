"""Functions of C that exported files use, and that are no words made of operators (`formulas`).

They are loops, accesses to memory, and what C has a way of its own for. Each is written once for
all types that it has, and defined in a file for those that it uses (`words.Prelude`).
"""

from __future__ import annotations

import re

from funcgrad.interop.c.formulas import VALUES, wide
from funcgrad.intrinsics import INTRINSICS

COMPARISONS = {
    "same": ("==", "FG_EQ"), "unequal": ("!=", "FG_NE"), "less": ("<", "FG_LT"),
    "atmost": ("<=", "FG_LE"),
}  # fmt: skip
"""Comparisons of registers: the operator, and the processor's test."""

_TESTS = {
    "f": {
        "FG_EQ": "_CMP_EQ_OQ",
        "FG_NE": "_CMP_NEQ_UQ",
        "FG_LT": "_CMP_LT_OQ",
        "FG_LE": "_CMP_LE_OQ",
    },
    "i": {f"FG_{x}": f"_MM_CMPINT_{x}" for x in ("EQ", "NE", "LT", "LE")},
}

# Functions of scalars.

FIXED = {
    "fg_lanes": "typedef struct { int64_t first, count, begin; } fg_lanes;",
    "fg_all_lanes": """\
static inline fg_lanes fg_all_lanes(int64_t first, int count) {
    fg_lanes r = {first, count, 0};
    return r;
}""",
    "fg_first_lanes": """\
static inline fg_lanes fg_first_lanes(int64_t first, int64_t end, int count) {
    fg_lanes r = {first, end - first < count ? end - first : count, 0};
    return r;
}""",
    "fg_lanes_before": """\
static inline fg_lanes fg_lanes_before(fg_lanes i, int64_t end) {
    if (end - i.first < i.count) i.count = end - i.first;
    return i;
}""",
    "fg_lanes_from": """\
static inline fg_lanes fg_lanes_from(fg_lanes i, int64_t begin) {
    if (begin - i.first > i.begin) i.begin = begin - i.first;
    return i;
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
    "between": """\
/* The same, of a range. */
static FG_INLINE const fg_NAME *fg_between_NAME(fg_NAME *room, const fg_NAME *p, int64_t begin,
                                                int64_t n, int all) {
    FG_LOOP
    for (int64_t k = 0; k < all; k++) room[k] = k >= begin && k < n ? p[k] : 0;
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
    "row": "typedef fg_NAME fg_row_NAME FG_VECTOR_AT(sizeof(fg_NAME)) FG_MAY_ALIAS;",
    "count": "enum { fg_count_NAME = sizeof(fg_held_NAME) / sizeof(fg_NAME) };",
    "iota": f"static const fg_NAME fg_iota_NAME[] = {{{', '.join(map(str, range(64)))}}};",
    # Flags of a register: bits where a processor has registers of them, else masks.
    "mask": """\
#ifdef FG_MASKS
typedef __mmaskLANES fg_mask_NAME;
#else
typedef fg_held_NAME fg_mask_NAME;
#endif""",
    "every": """\
static FG_INLINE fg_mask_NAME fg_every_NAME(bool flag) {
#ifdef FG_MASKS
    return (fg_mask_NAME)-flag;
#else
    return -(fg_NAME)flag - (fg_held_NAME){0};
#endif
}""",
    "stored": """\
static FG_INLINE fg_held_NAME fg_stored_NAME(fg_mask_NAME m) {
#ifdef FG_MASKS
    return (fg_held_NAME)_mm512_movm_epiBITS(m);
#else
    return m;
#endif
}""",
    "flags": """\
static FG_INLINE fg_mask_NAME fg_flags_NAME(fg_held_NAME m) {
#ifdef FG_MASKS
    return _mm512_movepiBITS_mask((__m512i)m);
#else
    return m;
#endif
}""",
    "either": """\
static FG_INLINE fg_mask_NAME fg_either_NAME(fg_mask_NAME m, fg_mask_NAME a, fg_mask_NAME b) {
    return (m & a) | (~m & b);
}""",
    "any": """\
static FG_INLINE bool fg_any_NAME(fg_mask_NAME m) {
#ifdef FG_MASKS
    return m != 0;
#else
    return FG_ANY(FG_AS(fg_held_i64, (int64_t), m));
#endif
}""",
    **{
        word: f"""\
static FG_INLINE fg_mask_iBITS fg_{word}_NAME(fg_held_NAME a, fg_held_NAME b) {{
#ifdef FG_TEST_KIND
    return FG_TEST_KIND(a, b, {test}_KIND);
#else
    return FG_MASK(fg_mask_iBITS, a {symbol} b);
#endif
}}"""
        for word, (symbol, test) in COMPARISONS.items()
    },
    # Of elements, so many are there. What compilers know of their number, they know of the mask.
    "there": """\
static FG_INLINE fg_mask_NAME fg_there_NAME(int64_t n) {
#ifdef FG_MASKS
    return (fg_mask_NAME)(n <= 0 ? 0 : n < fg_count_NAME ? (1 << n) - 1 : -1);
#else
    static const fg_NAME places[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return FG_MASK(fg_mask_NAME, *(const fg_row_NAME *)places < (fg_NAME)n);
#endif
}""",
    "loaded": """\
/* Neighbours, of which only some may be there; the others are 0. */
static FG_INLINE fg_held_NAME fg_loaded_NAME(const fg_NAME *p, int64_t first, int64_t count) {
    const int64_t n = count - first;
    p += n > 0 ? first : 0;
#ifdef FG_MASKS
    return (fg_held_NAME)FG_LOAD_KIND(fg_there_iBITS(n), p);
#else
    fg_held_NAME r = {0};
    if (n >= fg_count_NAME) return *(const fg_row_NAME *)p;
    for (int k = 0; k < fg_count_NAME; k++) if (k < n) ((fg_NAME *)&r)[k] = p[k];
    return r;
#endif
}""",
    "last": """\
/* The same, of which all may be read, or a processor has masks; the others are anything. */
static FG_INLINE fg_held_NAME fg_last_NAME(const fg_NAME *p, int64_t n) {
#ifdef FG_MASKS
    return (fg_held_NAME)FG_LOAD_KIND(fg_there_iBITS(n), p);
#else
    (void)n;
    return *(const fg_row_NAME *)p;
#endif
}""",
    "where": """\
/* Those that a mask has; nothing else is read. */
static FG_INLINE fg_held_NAME fg_where_NAME(const fg_NAME *p, int64_t first, fg_mask_iBITS m,
                                            fg_held_NAME a) {
    p += fg_any_iBITS(m) ? first : 0;
#ifdef FG_MASKS
    return (fg_held_NAME)FG_PICK_KIND(a, m, p);
#else
    for (int k = 0; k < fg_count_NAME; k++)
        if (((const fg_iBITS *)&m)[k]) ((fg_NAME *)&a)[k] = p[k];
    return a;
#endif
}""",
    "each": """\
/* Elements so many bytes from a place. */
static FG_INLINE fg_held_NAME fg_each_NAME(const fg_NAME *p, fg_held_i64 at) {
    fg_held_NAME r = {0};
    FG_UNROLL
    for (int k = 0; k < fg_count_NAME; k++)
        ((fg_NAME *)&r)[k] = *(const fg_NAME *)((const char *)p + ((const fg_i64 *)&at)[k]);
    return r;
}""",
    "kept": """\
/* The same, back. */
static FG_INLINE void fg_kept_NAME(fg_NAME *p, int64_t first, int64_t count, fg_held_NAME a) {
    const int64_t n = count - first;
    p += n > 0 ? first : 0;
#ifdef FG_MASKS
    FG_STORE_KIND(p, fg_there_iBITS(n), a);
#else
    if (n >= fg_count_NAME) *(fg_row_NAME *)p = a;
    else for (int k = 0; k < fg_count_NAME; k++) if (k < n) p[k] = ((const fg_NAME *)&a)[k];
#endif
}""",
    "chosen": """\
static FG_INLINE fg_held_NAME fg_chosen_NAME(fg_mask_iBITS m, fg_held_NAME a, fg_held_NAME b) {
#ifdef FG_MASKS
    if (__builtin_constant_p(m) && (m == 0 || m == (fg_mask_iBITS)-1)) return m ? a : b;
#endif
#ifdef FG_BLEND_KIND
    return FG_BLEND_KIND(m, a, b);
#else
    const fg_held_iBITS x = FG_AS(fg_held_iBITS, fg_bits_NAME_iBITS, a);
    const fg_held_iBITS y = FG_AS(fg_held_iBITS, fg_bits_NAME_iBITS, b);
    return FG_AS(fg_held_NAME, fg_bits_iBITS_NAME, (m & x) | (~m & y));
#endif
}""",
    "size": """\
static FG_INLINE fg_held_NAME fg_size_NAME(fg_held_NAME a) {
    const fg_held_iBITS x = FG_AS(fg_held_iBITS, fg_bits_NAME_iBITS, a) & INTBITS_MAX;
    return FG_AS(fg_held_NAME, fg_bits_iBITS_NAME, x);
}""",
    "signed": """\
static FG_INLINE fg_held_NAME fg_signed_NAME(fg_held_NAME a, fg_held_NAME b) {
    const fg_held_iBITS x = FG_AS(fg_held_iBITS, fg_bits_NAME_iBITS, a) & INTBITS_MAX;
    const fg_held_iBITS y = FG_AS(fg_held_iBITS, fg_bits_NAME_iBITS, b) & INTBITS_MIN;
    return FG_AS(fg_held_NAME, fg_bits_iBITS_NAME, x | y);
}""",
    # Equal numbers differ in the sign of zeros alone.
    **{
        name: f"""\
static FG_INLINE fg_held_NAME fg_{name}_NAME(fg_held_NAME a, fg_held_NAME b) {{
    const fg_held_iBITS x = FG_AS(fg_held_iBITS, fg_bits_NAME_iBITS, a);
    const fg_held_iBITS y = FG_AS(fg_held_iBITS, fg_bits_NAME_iBITS, b);
    const fg_held_NAME other = FG_AS(fg_held_NAME, fg_bits_iBITS_NAME, x {sign} y);
    const fg_mask_iBITS first = fg_less_NAME({given}) | fg_unequal_NAME(a, a);
    return fg_chosen_NAME(fg_same_NAME(a, b), other, fg_chosen_NAME(first, a, b));
}}"""
        for name, given, sign in (("upper", "b, a", "&"), ("lower", "a, b", "|"))
    },
    **{
        name: f"""\
static FG_INLINE fg_held_NAME fg_{name}_NAME(fg_held_NAME a) {{
#ifdef FG_{macro}_KIND
    return FG_{macro}_KIND(a{mode});
#else
    fg_NAME *x = (fg_NAME *)&a;
    for (int k = 0; k < fg_count_NAME; k++) x[k] = (fg_NAME){name}((double)x[k]);
    return a;
#endif
}}"""
        for name, macro, mode in (
            ("sqrt", "ROOT", ""),
            ("rint", "ROUND", ", 8"),
            ("floor", "ROUND", ", 9"),
            ("ceil", "ROUND", ", 10"),
            ("trunc", "ROUND", ", 11"),
        )
    },
    "divisor": "typedef struct { fg_NAME number, sign, size, reciprocal; } fg_divisor_NAME;",
    "by": """\
static FG_INLINE fg_divisor_NAME fg_by_NAME(fg_NAME y) {
    const double plain = sizeof y == 8 ? 0x1p100 : 0x1p30;
    const fg_NAME size = (fg_NAME)fabs((double)y);
    const bool is_plain = size > 1 / plain && size < plain;
    fg_divisor_NAME r = {y, (fg_NAME)copysign(1, (double)y), size, 1 / size};
    if (!is_plain) r.reciprocal = (fg_NAME)NAN;
    return r;
}""",
    "over": """\
/* Quotients by one number, as the process computes them: by a remainder, which is exact. */
static FG_INLINE fg_held_NAME fg_over_NAME(fg_held_NAME x, fg_divisor_NAME y) {
#ifdef FG_FORMULAS
    const fg_NAME small = (fg_NAME)(sizeof y.size == 8 ? 0x1p-900 : 0x1p-90);
    const fg_held_NAME a = x * y.sign, near = a * y.reciprocal;
    const fg_held_NAME size = y.size - (fg_held_NAME){0}, by = y.reciprocal - (fg_held_NAME){0};
    const fg_held_NAME beyond = fg_fused_NAME(near, size, -a);
    const fg_held_NAME exact = fg_fused_NAME(-beyond, by, near);
    const fg_held_iBITS rare = FG_MASK(fg_held_iBITS, exact != exact)
        | (FG_MASK(fg_held_iBITS, fg_size_NAME(a) < small) & FG_MASK(fg_held_iBITS, a != 0));
    if (!FG_ANY(FG_AS(fg_held_i64, (int64_t), rare))) return exact;
#endif
    return x / y.number;
}""",
}
"""Registers, what is loaded into them from any place, the number of their elements, and functions.

A mask chooses; roots, sizes, signs and extremes are of floats.
"""


def register_function(stem: str, name: str) -> str:
    """The definition of ``fg_stem_name``, of registers."""
    text = REGISTERS[stem]
    for test, by_kind in _TESTS["f" if name[0] == "f" else "i"].items():
        text = text.replace(f"{test}_KIND", by_kind)
    text = text.replace("NAME", name).replace("BITS", name[1:])
    lanes = str(512 // int(name[1:]))
    return text.replace("KIND", name.upper()).replace("LANES", lanes)


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
    ("muladd", "iu"): "return (T)((W)a * (W)b + (W)c);",
    ("fused", "f"): "return FG_FUSED_F(a, b, c);",
    ("fused", "iu"): "return (HELD)((WRAPS)a * (WRAPS)b + (WRAPS)c);",
    ("fused", "h"): (
        "const HELD low = (HELD)(((SIGNED)(a << 16) >> 16) * ((SIGNED)(b << 16) >> 16));\n"
        "    return low + (HELD)(((SIGNED)a >> 16) * ((SIGNED)b >> 16)) + c;"
    ),
    ("muladd_pairs", "i"): (
        "return (T)((W)((int16_t)a * (int16_t)b) + (W)((a >> 16) * (b >> 16)) + (W)c);"
    ),
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
        body = body.replace("FG_FUSED_F", f"FG_FUSED_{name.upper()}").replace("HELD", held)
        body = body.replace("WRAPS", f"fg_held_u{bits}").replace("SIGNED", f"fg_held_i{bits}")
        return f"static FG_INLINE {held} {full}({held} a, {held} b, {held} c) {{\n    {body}\n}}"
    body = re.sub(
        r"\bA\((\w)\)", r"(U)(\1 < 0 ? 0 - (W)\1 : (W)\1)" if name[0] == "i" else r"\1", body
    )
    body = re.sub(r"\b([TWUPV])\b", lambda m: words[m[1]], body)
    takes = {
        "make": [f"{part} a", f"{part} b"],
        "muladd": [f"{VALUES[name]} {x}" for x in "abc"],
        "muladd_pairs": [f"{VALUES[name]} {x}" for x in "abc"],
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
