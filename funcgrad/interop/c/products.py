"""Products of matrices in C, which add up terms as `loops.library.tiles` does.

``definition : stem, type -> function of C``. Every element is a sum of blocks of `DEPTH` terms,
each a chain of fused multiplications and additions: a file and the process have the same bits.
Complex numbers are pairs of real ones: of b's element ``c + di`` there are ``(c, d)`` and
``(-d, c)``, with which the parts of a's are multiplied, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from funcgrad.compiler.loops.library.tiles import DEPTH
from funcgrad.compiler.machine import CACHES
from funcgrad.compiler.runtime.matmul import MOST_PLAIN

_ROWS = 6
"""Rows of a tile: with its columns, two registers long, sums fill most of the registers."""

_SPAN = 2 * DEPTH
"""Columns of b that are walked along together for one row of a: their sums stay in a cache."""

_STEPS = 4
"""Rows of b that are added to sums in memory between loads and stores of these."""

_TILE = """\
/* A part of a product: ROWS rows of a, and columns of b, COUNT registers of them; fewer at ends. */
static void fg_tileCOUNT_NAME(fg_NAME *c, int64_t c_step, const char *a, int64_t row_step,
                              int64_t step, const fg_NAME *b, int64_t line, int64_t n_rows,
                              int64_t n_terms, int64_t n, bool more) {
    ZEROS
    POINTERS
    for (int64_t p = 0; p < n_terms; p++, b += line) {
        COLUMNS
        TERMS
    }
    fg_held_NAME sums[ROWS][COUNT] = {FOUND};
    for (int64_t i = 0; i < n_rows; i++) {
        const fg_NAME *sum = (const fg_NAME *)sums[i];
        fg_NAME *z = c + i * c_step;
        FG_LOOP
        for (int64_t j = 0; j < n; j++) z[j] = more ? z[j] + sum[j] : sum[j];
    }
}"""

_ONE_ROW = """\
/* A row of a product: rows of b are added where they lie in memory. */
static void fg_line_NAME(fg_NAME *c, const char *a, int64_t step, const char *b, int64_t line,
                         int64_t n_terms, int64_t n_columns) {
    fg_NAME sums[SPAN];
    for (int64_t first = 0; first < n_columns; first += SPAN) {
        const int64_t n = n_columns - first < SPAN ? n_columns - first : SPAN;
        for (int64_t term = 0; term < n_terms || term == 0; term += DEPTH) {
            int64_t left = n_terms - term < DEPTH ? n_terms - term : DEPTH;
            const char *x = a + term * step, *y = b + term * line + first * sizeof(fg_NAME);
            for (int64_t j = 0; j < n; j++) sums[j] = 0;
            for (; left >= STEPS; left -= STEPS, x += STEPS * step, y += STEPS * line) {
                LINES
                FG_INDEPENDENT
                for (int64_t j = 0; j < n; j++) {
                    fg_NAME sum = sums[j];
                    TERMS
                    sums[j] = sum;
                }
            }
            for (; left > 0; left--, x += step, y += line) {
                const fg_NAME x0 = *(const fg_NAME *)x, *y0 = (const fg_NAME *)y;
                FG_INDEPENDENT
                for (int64_t j = 0; j < n; j++) sums[j] = fg_muladd_NAME(x0, y0[j], sums[j]);
            }
            fg_NAME *z = c + first;
            FG_INDEPENDENT
            for (int64_t j = 0; j < n; j++) z[j] = term ? z[j] + sums[j] : sums[j];
        }
    }
}"""

_PRODUCT = """\
/* Products of matrices: sizes, and for a, b and c the slot, the offset and the distances.
   Terms and columns of b are copied first, to be near, but for whole registers of few rows. */
static int64_t fg_product_NAME(int64_t *slots, const int64_t *w) {
    enum { most = WIDTH / PARTS, depth = DEPTH / PARTS };
    fg_REAL near[depth * PARTS * WIDTH];
    for (int64_t s = 0; s < w[0]; s++) {
        const char *a = (const char *)(intptr_t)(slots[w[4]] + w[5] + s * w[6]);
        const char *b = (const char *)(intptr_t)(slots[w[9]] + w[10] + s * w[11]);
        fg_REAL *c = (fg_REAL *)(intptr_t)(slots[w[14]] + w[15]);
        c += s * w[1] * w[2] * PARTS;
        ALONE
        for (int64_t first = 0; first < w[2]; first += most)
            for (int64_t term = 0; term < w[3] || term == 0; term += depth) {
                const int64_t n = w[2] - first < most ? w[2] - first : most;
                const int64_t n_terms = w[3] - term < depth ? w[3] - term : depth;
                const bool is_read = IS_READ;
                for (int64_t p = 0; p < n_terms && !is_read; p++) {
                    fg_REAL *row = near + p * PARTS * WIDTH;
                    const char *from = b + (term + p) * w[12] + first * w[13];
                    const int64_t step = w[13];
                    for (int64_t j = PARTS * n; j < WIDTH; j++) PLACES = 0;
                    if (step == (int64_t)sizeof(fg_REAL) * PARTS) {
                        FG_LOOP
                        for (int64_t j = 0; j < n; j++) {
                            const fg_REAL *x = (const fg_REAL *)from + PARTS * j;
                            COPY
                        }
                    } else {
                        for (int64_t j = 0; j < n; j++) {
                            const fg_REAL *x = (const fg_REAL *)(from + j * step);
                            COPY
                        }
                    }
                }
                for (int64_t i = 0; i < w[1]; i += ROWS) {
                    const int64_t n_rows = w[1] - i < ROWS ? w[1] - i : ROWS;
                    fg_REAL *to = c + (i * w[2] + first) * PARTS;
                    const char *x = a + i * w[7] + term * w[8];
                    for (int64_t part = 0; part < PARTS; part++, x += sizeof(fg_REAL)) {
                        const fg_REAL *y = near + part * WIDTH;
                        int64_t line = PARTS * WIDTH;
                        if (is_read) {
                            y = (const fg_REAL *)(b + term * w[12] + first * w[13]);
                            line = w[12] / (int64_t)sizeof(fg_REAL);
                        }
                        const bool more = term + part > 0;
                        if (2 * PARTS * n <= WIDTH)
                            fg_tile1_REAL(to, PARTS * w[2], x, w[7], w[8], y, line, n_rows,
                                          n_terms, PARTS * n, more);
                        else
                            fg_tile2_REAL(to, PARTS * w[2], x, w[7], w[8], y, line, n_rows,
                                          n_terms, PARTS * n, more);
                    }
                }
            }
    }
    return 0;
}"""

_ALONE = """\
if (w[1] == 1 && w[13] == (int64_t)sizeof(fg_REAL)) {
            fg_line_REAL(c, a, w[8], b, w[12], w[3], w[2]);
            continue;
        }"""
"""One row of real numbers times rows that lie in memory."""

_IS_READ = """\
w[13] == (int64_t)sizeof(fg_REAL) && (n == most || 2 * n == most) &&
                                     (w[1] <= MOST || w[2] * w[3] * w[13] <= CACHED)"""
"""Rows of real numbers are read where they are as the process does: by few rows of a, or if b is
small."""

STEMS = frozenset(("tile1", "tile2", "line", "product"))
"""The stems of the functions' names."""

_REAL = {"c64": "f32", "c128": "f64"}


def definition(stem: str, name: str) -> str:
    """The definition of ``fg_stem_name``, of products of floats or complex numbers."""
    if stem.startswith("tile"):
        text = _tile(int(stem[-1]))
    elif stem == "line":
        text = _line()
    else:
        text = _product(name)
    sizes = {"ROWS": _ROWS, "DEPTH": DEPTH, "SPAN": _SPAN, "STEPS": _STEPS}
    sizes |= {"MOST": MOST_PLAIN, "CACHED": CACHES[0][0]}
    words = {word: str(size) for word, size in sizes.items()}
    return _filled(text, words | {"REAL": _REAL.get(name, name), "NAME": name})


def _filled(text: str, words: Mapping[str, str | Sequence[str]]) -> str:
    """A text whose words stand for others, or for lines that are indented as they are."""
    for word, found in words.items():
        if not isinstance(found, str):
            place = text.index(word)
            indent = place - text.rindex("\n", 0, place) - 1
            found = ("\n" + indent * " ").join(found)
        text = text.replace(word, found)
    return text


def _tile(count: int) -> str:
    """The function of a tile whose rows are ``count`` registers long."""
    rows, columns = range(_ROWS), range(count)
    terms = []
    for k in rows:
        number = f"*(const fg_NAME *)(a{k} + p * step)"
        terms.append(f"const fg_held_NAME x{k} = {number} - (fg_held_NAME){{0}};")
        terms += [f"s{k}{v} = fg_fused_NAME(x{k}, y{v}, s{k}{v});" for v in columns]
    row = "const fg_held_NAME y{0} = *(const fg_row_NAME *)(b + {0} * fg_count_NAME);"
    found = (f"{{{', '.join(f's{k}{v}' for v in columns)}}}" for k in rows)
    words = {
        "ZEROS": [f"fg_held_NAME s{k}{v} = {{0}};" for k in rows for v in columns],
        "POINTERS": [f"const char *a{k} = a + ({k} < n_rows ? {k} : 0) * row_step;" for k in rows],
        "COLUMNS": [row.format(v) for v in columns],
        "TERMS": terms,
        "FOUND": ", ".join(found),
        "COUNT": str(count),
    }
    return _filled(_TILE, words)


def _line() -> str:
    """The function of one row."""
    lines = []
    for k in range(_STEPS):
        lines.append(f"const fg_NAME x{k} = *(const fg_NAME *)(x + {k} * step);")
        lines.append(f"const fg_NAME *y{k} = (const fg_NAME *)(y + {k} * line);")
    terms = [f"sum = fg_muladd_NAME(x{k}, y{k}[j], sum);" for k in range(_STEPS)]
    return _filled(_ONE_ROW, {"LINES": lines, "TERMS": terms})


def _product(name: str) -> str:
    """The function of stacks of products."""
    is_complex = name in _REAL
    copies = ["row[j] = x[0];"]
    if is_complex:
        copies = [
            "row[2 * j] = x[0]; row[2 * j + 1] = x[1];",
            "row[WIDTH + 2 * j] = -x[1]; row[WIDTH + 2 * j + 1] = x[0];",
        ]
    text = _PRODUCT.replace("        ALONE\n", "" if is_complex else f"        {_ALONE}\n")
    places = "row[j] = row[WIDTH + j]" if is_complex else "row[j]"
    words = {
        "COPY": copies,
        "PLACES": places,
        "IS_READ": "false" if is_complex else _IS_READ,
        "PARTS": str(1 + is_complex),
        "WIDTH": "(2 * fg_count_REAL)",
    }
    return _filled(text, words)
