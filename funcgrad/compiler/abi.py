"""The binary interface of kernels: slots, words of steps, error codes.

A kernel is ``int64 kernel(int64* slots, int64* args)``. ``slots`` holds addresses, the same for all
steps of a call; ``args`` are the words of one step, of which the first two are the range of its
outermost loop. It returns 0 or an error code. What generates code and what runs it agree on this
file and on nothing else; `docs/compiler.md` lists the same tables. The formats that one file alone
writes and reads (the pool's memory, the executor's table) are described there.
"""

from __future__ import annotations

from collections.abc import Sequence

ABI = 11
"""Version of the kernel ABI: the meaning of slots, args and the words."""

ERROR_WORDS = 4
"""The first slots, in which a kernel that refuses an argument says why."""

LANES_SLOT = ERROR_WORDS
"""The slot whose bits say which lanes of scratch memory are in use; 0 between steps."""

STOP_SLOT = LANES_SLOT + 1
"""The slot of the error code with which everything that runs is to stop; 0 if nothing is."""

OWNER_SLOT = STOP_SLOT + 1
"""The slot of the thread (``pthread_self``) that runs the program, while others run parts of it."""

NEXT_SLOT = OWNER_SLOT + 1
"""The slot of the time in ns at which that thread looks again whether it has to stop."""

DEADLINE_SLOT = NEXT_SLOT + 1
"""The slot of the time in ns (``CLOCK_MONOTONIC``) at which the program has to stop."""

CONTROL_SLOT = DEADLINE_SLOT + 1
"""The slot of the address of `CONTROL_WORDS`."""

LOOK_SLOT = CONTROL_SLOT + 1
"""The slot of the address of ``int64 look(int64* slots)``, of which another result than 0 is the
error code to stop with: the executor writes it, long loops call it now and then."""

RAISED_SLOT = LOOK_SLOT + 1
"""The first of three slots: type, value and traceback of what a handler of a signal, or a step of
Python, has raised."""

MODE_SLOT = RAISED_SLOT + 3
"""The slot of the floating-point control word of whoever has called the program."""

OWN_SLOT = MODE_SLOT + 1
"""The slot of the address of the slots, some of which are words of calls that have begun."""

FIRST_SLOT = OWN_SLOT + 1
"""The slot of the first object of a call."""

CONTROL_WORDS = ["main", "ensure", "release", "check", "fetch", "number", "call", "drop"]
"""Python's main thread (``pthread_self``), and addresses of functions of Python's C interface:
``PyGILState_Ensure``, ``PyGILState_Release``, ``PyErr_CheckSignals``, ``PyErr_Fetch``,
``PyLong_FromVoidPtr``, ``PyObject_CallOneArg``, ``Py_DecRef``."""

LOOKS_EVERY = 80_000_000
"""Nanoseconds from one look to the next."""

ITERATIONS = 4096
"""Iterations of a loop within a kernel after which it looks. There are few numbers in it, so that
this takes milliseconds at most."""

OVERLAP = 1001
"""Error code of the check of donated arrays."""

REFUSED = 1002
"""Error code of kernels that meet an index which a primitive refuses."""

INTERRUPTED = 1003
"""Error code of a program during which the handler of a signal has raised."""

TIMED_OUT = 1004
"""Error code of a program that is past its deadline."""

RAISED = 1005
"""Error code of a step that has called Python, which has raised."""

LOOP_WORDS = [
    "begin", "end", "length", "executor", "condition", "condition_slot", "condition_offset", "body",
    "n_sets", "n_turns", "n_moves",
]  # fmt: skip
"""Meaning of the first words of a loop's arguments.

``condition`` and ``body`` are the addresses of tables of the executor; the condition is 0 for loops
of ``length`` steps, else the loop ends when the byte at ``slots[condition_slot] +
condition_offset`` is 0 after the condition has run. Then follow

* sets ``(slot, source, bytes)``: before the loop, ``slots[slot] = slots[source] + bytes``;
* turns ``(now, next, spare)``: after each step, ``now = next; next = spare; spare = now``;
* moves ``(slot, bytes)``: after each step, ``slots[slot] += bytes``.
"""

BRANCH_WORDS = ["begin", "end", "executor", "index_slot", "index_offset", "n_branches", "n_sets"]
"""Meaning of the first words of a branch's arguments.

The index is an int64 at ``slots[index_slot] + index_offset``, clipped to the branches. Then follow
the sets, as of a loop, and the addresses of the branches' tables.
"""

SCRATCH_WORDS = ["scratch", "scratch_offset", "lane"]
"""Scratch memory of a step: a lane of ``lane`` bytes for each thread that may take part, at
``slots[scratch] + scratch_offset``; the bits of ``slots[LANES_SLOT]`` say which lanes are taken."""

MOST_LANES = 63
"""The most lanes that a step has, and so the most threads that take part in it."""

MOST_STACK = 1 << 15
"""Bytes of stack that a step may use, with all that it calls and that is no library's: programs run
on threads that have little of it."""

TILE_TABLES = {"outer": 3, "lines": 2, "blocks": 2, "terms": 2, "strips": 3}
"""Tables of int64 of a product, and their numbers in a row: distances in bytes, of an outer index
in A, B and C, of a line (a row) in A and C, of blocks of terms, and of terms in them, in A and B,
and of a strip in B and C, with the number of its columns."""

MOST_INNER = 4
"""Inner loops of a product: halves of 8 vectors."""

TILE_WORDS = [
    "begin", "end", "rows", "strips", "columns", "terms", "blocks", "groups", "strip_groups",
    "tile_rows", "block_rows", "tile_strips", "panel", "panel_code", "block_code", "mirror_code",
    "lines_code", "inner_rows",
    *(f"{word}_{k}" for k in range(MOST_INNER) for word in ("vectors", "code")),
    *(f"{word}_{x}" for x in "abc" for word in ("slot", "offset")),
    "stride_a", "stride_b", "stride_c", "row_a", "row_c", "term_a", "term_b", "column_b",
    *(f"table_{x}" for x in TILE_TABLES), *SCRATCH_WORDS,
]  # fmt: skip
"""Meaning of the words of a product's arguments, in order.

Element ``(o, i, j)`` of C is the sum over terms ``t`` of A's ``(o, i, t)`` times B's ``(o, t, j)``.
Of each outer index ``o`` there are ``rows`` and ``strips``: a strip is a vector of neighbouring
columns, or what is left of one. They are in ``groups`` of ``tile_rows``, each with ``strip_groups``
of ``tile_strips``; ``begin <= unit < end`` of these are computed, ``block_rows`` and ``panel``
strips at a time.
Distances in bytes are multiples of ``stride_*`` (outer indices), ``row_*``, ``term_*`` and
``column_b``, where ``columns`` are counted in real numbers; or they stand in tables at ``table_*``,
where each of ``blocks`` has ``terms``. Inner loops are those of `loops.library.tiles` for
``inner_rows`` and ``vectors_*``, falling, at ``code_*``. If there is ``panel_code``, panels of B
are copied by it to scratch memory, and if there is ``block_code``, blocks of rows of A, too, which
are neighbours and multiples of those of an inner loop. If there is ``lines_code``, it computes
tiles of few rows instead of inner loops. If there is ``mirror_code``, the result is
symmetric: units are square, and those to the right of the diagonal are copied from those below it.
"""

SMALL_WORDS = [
    "begin", "end", "m", "n", "k", "lower", "transposed", "unit", "checked", "site",
    *(f"{word}_{x}" for x in "abcd" for word in ("slot", "offset", "stride")), *SCRATCH_WORDS,
]  # fmt: skip
"""Meaning of the words of a step on small matrices, in order.

Matrices ``begin <= i < end`` of a stack are ``m x n`` with ``k`` right-hand sides, all row-major;
array ``x`` of matrix ``i`` is at ``slots[slot_x] + offset_x + i * stride_x``, and which arrays
there are depends on the kernel. ``lower``, ``transposed`` and ``unit`` are those of a triangular
system; ``checked`` is 1 if a matrix for which the operation fails is a failure of the step, else
its results are nan.
"""

SELECT_WORDS = [
    "begin", "end", "n", "k", *(f"{word}_{x}" for x in "abc" for word in ("slot", "offset")),
]  # fmt: skip
"""Meaning of the words of a selection, in order.

The ``k`` greatest of the ``n`` numbers of rows ``begin <= i < end`` of ``a`` go into ``b``, their
places in the row into ``c``; ``0 < k <= n``.
"""

ELIMINATION_WORDS = [
    "begin", "end", "slot_t", "offset_t",
    *(f"{word}_{x}" for x in "abcd" for word in ("slot", "offset", "stride")),
]  # fmt: skip
"""Meaning of the words of a step on sparse matrices, in order.

``t`` is the table; array ``x`` of matrix ``begin <= i < end`` is at ``slots[slot_x] + offset_x + i
* stride_x``: for factors the entries, the factors and memory of its own; for solutions the factors,
the right-hand side, the solution and memory.
"""

FOURIER_WORDS = ["begin", "end", "slot_a", "offset_a", "slot_b", "offset_b", *SCRATCH_WORDS]
"""Meaning of the first words of a Fourier transform's arguments, of ``a`` into ``b``.

Groups ``begin <= i < end`` of lanes are transformed. Then follow the words of
`loops.library.fourier`.
"""

PARALLEL_WORDS = ["begin", "end", "pool", "count", "kernel", "part_words", "threads"]
"""Meaning of the first words of a parallel step's arguments; then follow those of its parts."""

FOREIGN_WORDS = [
    "begin", "end", "function", "check", "site", "clear", "test", "every", "invalid", "n_places",
    "n_arguments",
]  # fmt: skip
"""Meaning of the first words of a call of a function of NumPy, SciPy or a BLAS.

The function is called for ``begin <= i < end``. Then follow

* places ``(slot, offset, stride)``: addresses ``slots[slot] + offset + i * stride``;
* arguments ``(kind, value)``, of the kinds below;
* further words, which arguments may point to.

``check`` says what makes a call a failure. ``clear`` and ``test`` are the addresses of
``feclearexcept``, 0 for functions that no flag concerns, and of ``fetestexcept``; ``every`` and
``invalid`` are bits of floating-point flags.
"""

WORD, PLACE, PLACE_OF_WORD, PLACES = range(4)
"""Kinds of arguments: the value; the place of that number; the address of the word of that number;
the address of the list of places."""

NEVER, BY_FLAG, BY_INFO, BY_RESULT = range(4)
"""Conditions of failure: none; the flag "invalid"; an int32 other than 0 at the last
place; a result other than 0."""

MOST_PLACES = 9
LEAST_ARGUMENTS, MOST_ARGUMENTS = 2, 18

TIMED_WORDS = ["kernel", "counters"]
"""Meaning of the first words of a timed step's arguments: the address of the step that it runs, and
of words that `profiling.timed_steps` describes; then follow the words of that step."""

PYTHON_WORDS = ["begin", "end", "function"]
"""Meaning of the words of a call of Python: the object that is called with the address of the
slots."""


OWN_WORD = 0x5AFE_0FFE_2ED0_C0DE
"""The constant that every copy of native code of its own has another number for."""


def in_order(names: Sequence[str], **words: int) -> list[int]:
    """The words of a step, which runs once where no range is given."""
    words = {"begin": 0, "end": 1} | words
    return [words[name] for name in names]
