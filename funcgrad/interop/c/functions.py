"""Functions of C that exported files use: words of kernels for which C has no expression.

Each is written once for all types that it has, and defined in a file for those that it uses
(`words.Prelude`). Formulas are those of the compiler, so results are the same to the last bit; what
libm has a function for is left to it.
"""

from __future__ import annotations

import re

from funcgrad.intrinsics import INTRINSICS

VALUES = {
    "b1": "bool", "f32": "float", "f64": "double", "c64": "fg_complex64", "c128": "fg_complex128",
    **{f"{k}{bits}": f"{'u' * (k == 'u')}int{bits}_t" for k in "iu" for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""The types of values in C."""


def wide(name: str) -> str:
    """The unsigned type in which integers of a type are added and multiplied."""
    return "uint64_t" if name.endswith("64") else "uint32_t"


# Functions of scalars.

FIXED = {
    "fg_lanes": "typedef struct { int64_t first; int count; } fg_lanes;",
    "fg_all_lanes": """\
static inline fg_lanes fg_all_lanes(int64_t first, int count) {
    fg_lanes r = {first, count};
    return r;
}""",
    "fg_first_lanes": """\
static inline fg_lanes fg_first_lanes(int64_t first, int64_t end, int count) {
    fg_lanes r = {first, end - first < count ? (int)(end - first) : count};
    return r;
}""",
}

PROGRAMS = {
    "product": """\
/* Products of matrices: sizes, and for a, b and c the slot, the offset and the distances. */
static int64_t fg_product_NAME(int64_t *slots, const int64_t *w) {
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


def program(stem: str, name: str) -> str:
    """The definition of a step for a dtype."""
    text = PROGRAMS[stem]
    is_complex = name[0] == "c"
    held = {"c64": "f32", "c128": "f64"}.get(name, name)
    add = "c[j] += x[0] * {y};"
    if is_complex:
        add = "c[2 * j] += x[0] * {y} - x[1] * {z}; c[2 * j + 1] += x[0] * {z} + x[1] * {y};"
    body = add.format(y="y[2 * j]" if is_complex else "y[j]", z="y[2 * j + 1]")
    apart = add.format(y="z[0]", z="z[1]")
    for word, value in (
        ("BODY", body), ("APART", apart), ("HELD", held), ("PARTS", str(1 + is_complex)),
        ("NAME", name),
    ):  # fmt: skip
        text = text.replace(word, value)
    return text


_SCALAR = {
    # Floats. F is the suffix of libm's functions.
    ("maximum", "f"): "T r = a > b || a != a ? a : b; return a == b ? (signbit(a) ? b : a) : r;",
    ("minimum", "f"): "T r = a < b || a != a ? a : b; return a == b ? (signbit(a) ? a : b) : r;",
    ("maximum", "iu"): "return a > b ? a : b;",
    ("minimum", "iu"): "return a < b ? a : b;",
    ("maximum", "b"): "return a | b;",
    ("minimum", "b"): "return a & b;",
    ("muladd", "f"): "return FG_MULADD_F(a, b, c);",
    # A step of Newton's method: cube roots of libm may be wrong by four units.
    ("cbrt", "f"): "T r = cbrtF(a); return a == 0 || isinf(a) ? r : r - (r - a / (r * r)) / 3;",
    ("expit", "f"): ("T e = expF(-fabsF(a)); return a < 0 ? e / (1 + e) : 1 / (1 + e);"),
    ("sign", "f"): "return a != a ? a : (T)((a > 0) - (a < 0));",
    ("sign", "iu"): "return (T)((a > 0) - (a < 0));",
    ("abs", "i"): "return a < 0 ? (T)(0 - (W)a) : a;",
    ("fmod", "i"): "return b == 0 || b == -1 ? 0 : (T)(a % b);",
    ("fmod", "u"): "return b == 0 ? 0 : (T)(a % b);",
    ("floor_divide", "i"): (
        "if (b == 0) return 0; if (b == -1) return (T)(0 - (W)a); T q = (T)(a / b); "
        "return (T)(q - (a % b != 0 && (a < 0) != (b < 0)));"
    ),
    ("floor_divide", "u"): "return b == 0 ? 0 : (T)(a / b);",
    ("remainder", "i"): (
        "if (b == 0 || b == -1) return 0; T r = (T)(a % b); "
        "return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;"
    ),
    ("remainder", "u"): "return b == 0 ? 0 : (T)(a % b);",
    ("floor_divide", "f"): (
        "if (b == 0) return a / b; T m = fmodF(a, b), d = (a - m) / b; "
        "if (m != 0 && (b < 0) != (m < 0)) d -= 1; if (d == 0) return copysignF(0, a / b); "
        "T f = floorF(d); return d - f > (T)0.5 ? f + 1 : f;"
    ),
    ("remainder", "f"): (
        "T m = fmodF(a, b); if (b == 0) return m; if (m == 0) return copysignF(0, b); "
        "return (b < 0) != (m < 0) ? m + b : m;"
    ),
    ("left_shift", "iu"): "return (U)b < B ? (T)((W)a << b) : 0;",
    ("right_shift", "i"): "return (T)(a >> ((U)b < B ? b : B - 1));",
    ("right_shift", "u"): "return b < B ? (T)(a >> b) : 0;",
    ("pow", "iu"): (
        "W r = 1, x = (W)a; for (U n = (U)b; n; n >>= 1) { if (n & 1) r *= x; x *= x; } "
        "return (T)r;"
    ),
    ("popcount", "iu"): "T r = 0; for (U n = (U)a; n; n &= (U)(n - 1)) r++; return r;",
    ("gcd", "iu"): (
        "U x = A(a), y = A(b); while (y) { U z = (U)(x % y); x = y; y = z; } return (T)x;"
    ),
    ("ascending", "f"): ("I x = fg_bits_N_O(a); return (I)((Y)(x ^ (x >> (B - 1) & M)) - (Y)Q);"),
    ("descending", "f"): ("I x = fg_bits_N_O(a); return (I)((Y)~(x ^ (x >> (B - 1) & M)) - (Y)Q);"),
    # Complex numbers. P is the type of their parts, E that in memory.
    ("load", "c"): "T r = {p[2 * i], p[2 * i + 1]}; return r;",
    ("store", "c"): "p[2 * i] = a.re; p[2 * i + 1] = a.im;",
    ("make", "c"): "T r = {a, b}; return r;",
    ("add", "c"): "T r = {a.re + b.re, a.im + b.im}; return r;",
    ("radd", "c"): "T r = {a.re + b.re, a.im + b.im}; return r;",
    ("subtract", "c"): "T r = {a.re - b.re, a.im - b.im}; return r;",
    ("multiply", "c"): ("T r = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; return r;"),
    ("rmul", "c"): "T r = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; return r;",
    ("divide", "c"): (
        "bool w = fabsF(b.re) >= fabsF(b.im); P l = w ? b.re : b.im, s = w ? b.im : b.re, "
        "q = s / l, d = l + s * q; T r; if (l == 0 && s == 0) { d = fabsF(l); r.re = a.re / d; "
        "r.im = a.im / d; } else { r.re = (w ? a.re + a.im * q : a.re * q + a.im) / d; "
        "r.im = (w ? a.im - a.re * q : a.im * q - a.re) / d; } return r;"
    ),
    ("negative", "c"): "T r = {-a.re, -a.im}; return r;",
    ("positive", "c"): "return a;",
    ("conj", "c"): "T r = {a.re, -a.im}; return r;",
    ("sign", "c"): (
        "P s = hypotF(a.re, a.im); if (s == 0) s = 1; T r = {a.re / s, a.im / s}; return r;"
    ),
    ("select", "c"): "return a ? b : c;",
    ("abs", "c"): "return hypotF(a.re, a.im);",
    ("real", "c"): "return a.re;",
    ("imag", "c"): "return a.im;",
    ("equal", "c"): "return a.re == b.re && a.im == b.im;",
    ("not_equal", "c"): "return a.re != b.re || a.im != b.im;",
    ("isnan", "c"): "return isnan(a.re) || isnan(a.im);",
    ("isinf", "c"): "return isinf(a.re) || isinf(a.im);",
    ("isfinite", "c"): "return isfinite(a.re) && isfinite(a.im);",
    # Floats as integers: the least one where there is none.
    ("wholei32", "f"): "return fabsF(a) < (T)0x1p31 ? (int32_t)a : INT32_MIN;",
    ("wholei64", "f"): "return fabsF(a) < (T)0x1p63 ? (int64_t)a : INT64_MIN;",
    ("wholeu64", "f"): (
        "T b = a >= (T)0x1p63 ? a - (T)0x1p63 : a; int64_t r = fabsF(b) < (T)0x1p63 ? (int64_t)b : "
        "INT64_MIN; return a >= (T)0x1p63 ? (uint64_t)r ^ UINT64_C(9223372036854775808) : "
        "(uint64_t)r;"
    ),
}
"""Bodies of functions, by words and kinds.

T is the type of the arguments, W the unsigned one in which they are multiplied, U the unsigned one
of their width, B that, F the suffix of libm's functions.
"""

_RESULTS = {
    **dict.fromkeys(("equal", "not_equal", "isnan", "isinf", "isfinite"), "bool"),
    "wholei32": "int32_t", "wholei64": "int64_t", "wholeu64": "uint64_t",
}  # fmt: skip

_THREEFRY = """\
static inline uint64_t fg_threefry2x32_u32(uint32_t a, uint32_t b, uint32_t x, uint32_t y) {
    static const int turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    const uint32_t keys[3] = {a, b, a ^ b ^ UINT32_C(0x1BD11BDA)};
    x += a;
    y += b;
    for (int group = 0; group < 5; group++) {
        for (int k = 0; k < 4; k++) {
            int bits = turns[group % 2 * 4 + k];
            x += y;
            y = ((y << bits) | (y >> (32 - bits))) ^ x;
        }
        x += keys[(group + 1) % 3];
        y += keys[(group + 2) % 3] + (uint32_t)(group + 1);
    }
    return (uint64_t)x << 32 | y;
}"""


def scalar_function(word: str, name: str) -> str:
    """The definition of ``fg_word_name``."""
    if word == "threefry2x32":
        return _THREEFRY
    full = f"fg_{word}_{name}"
    if word.startswith("bits_"):
        source = VALUES[word.removeprefix("bits_")]
        return (
            f"static inline {VALUES[name]} {full}({source} a) {{\n    {VALUES[name]} r;\n"
            "    memcpy(&r, &a, sizeof r);\n    return r;\n}"
        )
    if word.startswith("from_"):
        return _from_order(word, name, full)
    body = next(text for (w, kinds), text in _SCALAR.items() if w == word and name[0] in kinds)
    bits = int(name[1:]) if name[1:].isdigit() else 8
    part = {"c64": "float", "c128": "double"}.get(name, "")
    real = {"c64": "f32", "c128": "f64"}.get(name, name)
    suffix = "f" if real == "f32" else ""
    order = f"i{bits}"
    words = {
        "T": VALUES[name], "W": wide(name), "U": f"uint{bits}_t", "B": str(bits), "P": part,
        "I": f"int{bits}_t", "Y": f"uint{bits}_t", "O": order, "N": name,
        "M": f"INT{bits}_MAX" , "Q": f"{(1 << (23 if bits == 32 else 52)) - 1}",
    }  # fmt: skip
    body = re.sub(
        r"\b(cbrtF|expF|fabsF|fmodF|floorF|copysignF|hypotF)\b", lambda m: m[0][:-1] + suffix, body
    )
    body = body.replace("FG_MULADD_F", f"FG_MULADD{suffix.upper()}")
    body = body.replace("fg_bits_N_O", f"fg_bits_{name}_{order}")
    body = re.sub(
        r"\bA\((\w)\)", r"(U)(\1 < 0 ? 0 - (W)\1 : (W)\1)" if name[0] == "i" else r"\1", body
    )
    body = re.sub(r"\b([TWUBPIYMQ])\b", lambda m: words[m[1]], body)
    takes = {
        "make": [f"{part} a", f"{part} b"],
        "select": ["bool a", f"{VALUES[name]} b", f"{VALUES[name]} c"],
        "muladd": [f"{VALUES[name]} {x}" for x in "abc"],
        "load": [f"const fg_{real} *p", "int64_t i"],
        "store": [f"fg_{real} *p", "int64_t i", f"{VALUES[name]} a"],
    }.get(word)
    if takes is None:
        n = INTRINSICS[word].arity if word in INTRINSICS else 1
        takes = [f"{VALUES[name]} {x}" for x in "abc"[:n]]
    result = "void" if word == "store" else _RESULTS.get(word, VALUES[name])
    if word in ("abs", "real", "imag") and part:
        result = part
    if word in ("ascending", "descending"):
        result = words["I"]
    lines = "".join(f"    {line}\n" for line in _statements(body))
    return f"static inline {result} {full}({', '.join(takes)}) {{\n{lines}}}"


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


def _from_order(word: str, name: str, full: str) -> str:
    """The inverse of ``ascending`` or ``descending``, of integers."""
    bits = int(name[1:])
    real = f"f{bits}"
    invert = "~" if word.endswith("descending") else ""
    beyond = (1 << (23 if bits == 32 else 52)) - 1
    return (
        f"static inline {VALUES[real]} {full}(int{bits}_t a) {{\n"
        f"    int{bits}_t x = {invert}(int{bits}_t)((uint{bits}_t)a + {beyond}u);\n"
        f"    return fg_bits_{name}_{real}(x ^ (x >> {bits - 1} & INT{bits}_MAX));\n}}"
    ).replace(f"{beyond}u", f"UINT{bits}_C({beyond})")
