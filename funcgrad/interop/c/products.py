"""Products of matrices in C, which add up terms as `loops.library.tiles` does.

``definition : stem, type -> function of C``. Every element is a sum of blocks of `DEPTH` terms,
each a chain of fused multiplications and additions: a file and the process have the same bits.
Inner loops have the rows and sums that the process has, of whatever registers a compiler knows.
Complex numbers are pairs of real ones: of b's element ``c + di`` there are ``(c, d)`` and
``(-d, c)``, with which the parts of a's are multiplied, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from funcgrad.compiler.loops.language import Variable
from funcgrad.compiler.loops.library.tiles import DEPTH, NOMINAL, Shape, inner_shape
from funcgrad.compiler.machine import SHORT_AXIS
from funcgrad.compiler.runtime.matmul import is_read_in_place

_PARAMETERS = """\
fg_NAME *c, int64_t c_step, const char *a, int64_t row_step, int64_t step, const fg_NAME *b, \
int64_t line, int64_t n_terms, int64_t n, bool more"""

_SHAPED = """\
/* A part of a product: rows of a, and registers of columns of b, of which n elements are there. */
#define FG_TILE_NAME(rows, count)
static void tile_##rows##_##count##_NAME(PARAMETERS) {
    const int64_t last = n - (count - 1) * fg_count_NAME;
    fg_held_NAME sums[rows * count], y[count];
    FG_UNROLL
    for (int k = 0; k < rows * count; k++) sums[k] = (fg_held_NAME){0};
    for (int64_t p = 0; p < n_terms; p++, a += step, b += line) {
        FG_UNROLL
        for (int v = 0; v < count - 1; v++) y[v] = *(const fg_row_NAME *)(b + v * fg_count_NAME);
        y[count - 1] = fg_last_NAME(b + (count - 1) * fg_count_NAME, last);
        FG_UNROLL
        for (int k = 0; k < rows * count; k++) {
            const fg_NAME x = *(const fg_NAME *)(a + k / count * row_step);
            sums[k] = fg_fused_NAME(x - (fg_held_NAME){0}, y[k % count], sums[k]);
        }
    }
    FG_UNROLL
    for (int k = 0; k < rows * count; k++) {
        fg_NAME *z = c + k / count * c_step + k % count * fg_count_NAME;
        const int64_t there = k % count < count - 1 ? fg_count_NAME : last;
        if (more) sums[k] += fg_loaded_NAME(z, 0, there);
        fg_kept_NAME(z, 0, there, sums[k]);
    }
}"""
"""An inner loop, for numbers of rows and registers: those of a function, even if it is inlined, are
no numbers yet where clang unrolls loops."""

_TILE = """\
static void fg_tile_NAME(int64_t rows, int64_t count, PARAMETERS) {
    switch (rows * 16 + count) {
        CASES
    }
}"""

_CASE = """\
case {0} * 16 + {1}:
            if ({0} <= fg_rows_NAME && {0} * {1} <= fg_most_NAME)
                tile_{0}_{1}_NAME(c, c_step, a, row_step, step, b, line, n_terms, n, more);
            break;"""

_PRODUCT = """\
/* Products of matrices: sizes, and for a, b and c the slot, the offset and the distances.
   Terms and columns of b are copied first, to be near, but where rows are read as they are. */
static int64_t fg_product_NAME(int64_t *slots, const int64_t *w) {
    enum { lanes = fg_count_REAL, panel = fg_most_REAL / fg_rows_REAL, depth = DEPTH / PARTS };
    fg_REAL near[depth * PARTS * panel * lanes];
    const int64_t rows = w[1], n_columns = PARTS * w[2];
    const bool is_read = IS_READ;
#ifdef FG_MASKS
    const bool has_masks = true;
#else
    const bool has_masks = false;
#endif
    int64_t most = fg_rows_REAL, wide = panel;
    while (most > rows && most > 1) most /= 2;
    if (is_read && most < fg_rows_REAL) wide = fg_most_REAL / most;
    if (wide > LONGEST) wide = LONGEST;
    for (int64_t s = 0; s < w[0]; s++) {
        const char *a = (const char *)(intptr_t)(slots[w[4]] + w[5] + s * w[6]);
        const char *b = (const char *)(intptr_t)(slots[w[9]] + w[10] + s * w[11]);
        fg_REAL *c = (fg_REAL *)(intptr_t)(slots[w[14]] + w[15]);
        c += s * rows * n_columns;
        for (int64_t first = 0, count; first < n_columns; first += count * lanes) {
            const int64_t left = (n_columns - first + lanes - 1) / lanes;
            const int64_t groups = (left + panel - 1) / panel;
            const bool are_all = has_masks || n_columns - first >= wide * lanes;
            count = are_all && left >= wide && wide > panel ? wide : (left + groups - 1) / groups;
            const int64_t width = count * lanes;
            const int64_t n = n_columns - first < width ? n_columns - first : width;
            const bool is_there = is_read && (has_masks || n == width);
            for (int64_t term = 0; term < w[3] || term == 0; term += depth) {
                const int64_t n_terms = w[3] - term < depth ? w[3] - term : depth;
                for (int64_t p = 0; p < n_terms && !is_there; p++) {
                    fg_REAL *row = near + p * PARTS * width;
                    const char *from = b + (term + p) * w[12] + first / PARTS * w[13];
                    const int64_t step = w[13];
                    for (int64_t j = n; j < width; j++) PLACES = 0;
                    if (step == (int64_t)sizeof(fg_REAL) * PARTS) {
                        FG_LOOP
                        for (int64_t j = 0; j < n / PARTS; j++) {
                            const fg_REAL *x = (const fg_REAL *)from + PARTS * j;
                            COPY
                        }
                    } else {
                        for (int64_t j = 0; j < n / PARTS; j++) {
                            const fg_REAL *x = (const fg_REAL *)(from + j * step);
                            COPY
                        }
                    }
                }
                for (int64_t i = 0, tall = most; i < rows; i += tall) {
                    while (tall > rows - i) tall /= 2;
                    fg_REAL *z = c + i * n_columns + first;
                    const char *x = a + i * w[7] + term * w[8];
                    for (int64_t part = 0; part < PARTS; part++, x += sizeof(fg_REAL)) {
                        const fg_REAL *y = near + part * width;
                        int64_t line = PARTS * width;
                        if (is_there) {
                            y = (const fg_REAL *)(b + term * w[12] + first * w[13]);
                            line = w[12] / (int64_t)sizeof(fg_REAL);
                        }
                        fg_tile_REAL(tall, count, z, n_columns, x, w[7], w[8], y, line, n_terms, n,
                                     term + part > 0);
                    }
                }
            }
        }
    }
    return 0;
}"""

_FEATURES = {
    "FG_BYTES == 64": NOMINAL,
    "FG_BYTES == 32": "+avx",
    "FG_BYTES == 16 && defined(__aarch64__)": "+neon",
    "1": "",
}
"""Features of processors by what files know of their registers. The last ones have panels of two:
complex numbers fit into them where a register is a number."""

STEMS = frozenset(("rows", "most", "tile", "product"))
"""The stems of the functions' names, and those of the sizes of their inner loops."""

_REAL = {"c64": "f32", "c128": "f64"}


def definition(stem: str, name: str) -> str:
    """The definition of ``fg_stem_name``, of products of floats or complex numbers."""
    if stem in ("rows", "most"):
        return _size(stem, name)
    text = {"tile": _tile(), "product": _product(name)}[stem]
    words = {"PARAMETERS": _PARAMETERS, "DEPTH": str(DEPTH), "LONGEST": str(SHORT_AXIS)}
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


def _size(stem: str, name: str) -> str:
    """The most rows of an inner loop, or the most registers of sums."""
    lines: list[str] = []
    for test, features in _FEATURES.items():
        shape = inner_shape(int(name[1:]) // 8, features)
        number = shape.rows if stem == "rows" else _sums(shape)
        lines += [f"#{'el' * bool(lines)}if {test}", f"enum {{ fg_{stem}_{name} = {number} }};"]
    return "\n".join([*lines, "#endif"])


def _sums(shape: Shape) -> int:
    """The registers of sums of the inner loop of the most rows."""
    return shape.rows * shape.width(shape.rows)


def _tile() -> str:
    """The inner loops, and the function that chooses among them."""
    found: set[tuple[int, int]] = set()
    for shape in (inner_shape(1, features) for features in _FEATURES.values()):
        rows, counts = shape.rows, {*range(1, shape.width(shape.rows) + 1)}
        while rows:
            counts.add(min(_sums(shape) // rows, SHORT_AXIS))  # of the rows that are left, too
            found |= {(rows, count) for count in counts}
            rows //= 2
    macro = " \\\n".join(_SHAPED.splitlines()).replace(" \\\n", "\n", 1)
    shaped = (f"FG_TILE_NAME({rows}, {count})" for rows, count in sorted(found))
    cases = [_CASE.format(*x) for x in sorted(found)]
    return "\n".join((macro, *shaped, _filled(_TILE, {"CASES": cases})))


def _product(name: str) -> str:
    """The function of stacks of products."""
    is_complex = name in _REAL
    copies = ["row[j] = x[0];"]
    if is_complex:
        copies = [
            "row[2 * j] = x[0]; row[2 * j + 1] = x[1];",
            "row[width + 2 * j] = -x[1]; row[width + 2 * j + 1] = x[0];",
        ]
    columns, terms, step = (Variable(f"w[{k}]") for k in (2, 3, 13))
    is_read = is_read_in_place(Variable("rows"), columns * terms * step)
    are_near = f"{step} == (int64_t)sizeof(fg_REAL)"
    words = {
        "COPY": copies,
        "PLACES": "row[j] = row[width + j]" if is_complex else "row[j]",
        "IS_READ": "false" if is_complex else f"{are_near} && ({is_read})",
        "PARTS": str(1 + is_complex),
    }
    return _filled(_PRODUCT, words)
