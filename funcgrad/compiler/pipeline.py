"""The compiler: ``Program -> Executable``.

inline, share and prune rewrite the program; `graph.build` leaves only what computes; `fuse` forms
groups; `codegen` writes one kernel per group; `memory` gives everything a place; `runtime` turns
sources into native code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from funcgrad.compiler import fixed, runtime
from funcgrad.compiler.codegen import Kernel, Place, generate, generate_copy, generate_scan
from funcgrad.compiler.graph import Copies, External, Fold, Graph, Point, Product, Scan, build
from funcgrad.compiler.layout import Value, View
from funcgrad.compiler.memory import mark_stored, place, reuse_inputs
from funcgrad.compiler.passes.fuse import Group, fuse
from funcgrad.compiler.passes.inline import inline
from funcgrad.compiler.passes.prune import prune
from funcgrad.compiler.passes.share import share
from funcgrad.compiler.plan import Executable, KernelStats, Step, Stretch
from funcgrad.core.printer import format_program
from funcgrad.core.program import Program
from funcgrad.dtypes import short_name


def compile_program(
    program: Program, donated: Sequence[bool] = (), threads: int | None = None
) -> Executable:
    """Compile a program.

    Args:
        program: The program.
        donated: For every input whether its memory may be used for results.
        threads: How many threads large kernels may use; ``None`` for all cores.

    Returns:
        A callable of the flat inputs.
    """
    before = _counters()
    lowered = prune(share(inline(program)))
    graph = build(lowered)
    groups = fuse(graph)
    mark_stored(graph, groups)
    reuse_inputs(graph, groups, donated)
    jobs = [list(_jobs(group)) for group in groups]
    scratch = [[v for job in row if isinstance(job, Kernel) for v in job.scratch] for row in jobs]
    memory = place(graph, groups, scratch)
    sources = list(
        dict.fromkeys(job.source for row in jobs for job in row if isinstance(job, Kernel))
    )
    addresses = dict(zip(sources, runtime.compile_kernels(sources), strict=True))
    parts: list[Stretch | External] = []
    for row in jobs:
        for job in row:
            if isinstance(job, External):
                parts.append(job)
                continue
            if not parts or isinstance(parts[-1], External):
                parts.append(Stretch())
            stretch = parts[-1]
            assert isinstance(stretch, Stretch)
            stretch.steps.append(_step(job, addresses))
    if not parts or isinstance(parts[0], External):
        # The first stretch turns the caller's objects into addresses.
        parts.insert(0, Stretch())
    flush = _flushes(graph)
    written = [value.home for value in graph.outputs if value.home is not value]
    if written:
        first = parts[0]
        assert isinstance(first, Stretch)
        first.steps.insert(0, _disjoint_step(graph, written))
    for i, part in enumerate(parts):
        if isinstance(part, Stretch):
            part.seal(flush, graph.inputs if i == 0 else (), written)
    stats = KernelStats(*(now - then for now, then in zip(_counters(), before, strict=True)))
    text = _text(lowered, graph, jobs, sources)
    _report(program, lowered, stats, text)
    return Executable(graph, memory, parts, sources, text, stats)


def _counters() -> tuple[int, int, int]:
    stats = runtime.stats()
    return stats.compiled, stats.loaded_from_disk, stats.memory_hits


Job = Kernel | Product | External


def _jobs(group: Group) -> Iterator[Job]:
    node = group.nodes[0]
    if isinstance(node, Point | Fold):
        yield generate(group)
    elif isinstance(node, Scan):
        yield generate_scan(node)
    elif isinstance(node, Copies):
        for operand, target in zip(node.operands, node.places, strict=True):
            yield generate_copy(operand, target)
    else:
        assert isinstance(node, Product | External)
        yield node


def _step(job: Kernel | Product, addresses: dict[str, int]) -> Step:
    if isinstance(job, Product):
        return _product_step(job)
    words = [0, job.length]
    for word in job.words:
        if isinstance(word, Place):
            words += [word.value.slot, word.value.offset + word.offset]
        else:
            words.append(word)
    return Step(addresses[job.source], words)


def _flushes(graph: Graph) -> bool:
    """Whether subnormal numbers are zero: in programs of single precision, which they slow down.

    A product of small float32 gradients is soon subnormal, and arithmetic with such numbers takes
    up to a hundred times longer. Double precision is asked for by those who need every digit.
    """
    if os.environ.get("FUNCGRAD_KEEP_SUBNORMALS", "0") not in ("", "0"):
        return False
    values = [*graph.inputs, *(v for node in graph.nodes for v in node.outs)]
    return all(v.dtype.char not in "dD" for v in values)


def _disjoint_step(graph: Graph, written: Sequence[Value]) -> Step:
    """The check, before anything is written, that donated inputs overlap with no other input."""
    others = [value for value in graph.inputs if value not in written]
    words = [0, 1, len(graph.inputs), len(written)]
    for value in (*written, *others):
        words += [value.slot, value.nbytes]
    return Step(runtime.disjoint_address(), words)


def _product_step(node: Product) -> Step:
    """The words of a matrix product, in the order of `fixed.GEMM_WORDS`."""
    batch, m, n, k = node.sizes
    a, b = node.operands
    assert isinstance(a, View)
    assert isinstance(b, View)
    layout_a, layout_b = node.layouts
    words = {
        "begin": 0,
        "end": batch,
        "function": runtime.gemm_function(node.out.dtype),
        "m": m,
        "n": n,
        "k": k,
        "lda": layout_a.row_stride,
        "ldb": layout_b.row_stride,
        "ldc": max(n, 1),
        "trans_a": int(layout_a.is_transposed),
        "trans_b": int(layout_b.is_transposed),
        "accumulate": 0,
        **_matrix_words("a", a.value, a.offset, layout_a.batch_stride),
        **_matrix_words("b", b.value, b.offset, layout_b.batch_stride),
        **_matrix_words("c", node.out, 0, m * n),
    }
    return Step(runtime.gemm_address(node.out.dtype), [words[name] for name in fixed.GEMM_WORDS])


def _matrix_words(name: str, value: Value, offset: int, stride: int) -> dict[str, int]:
    itemsize = value.dtype.itemsize
    return {
        f"slot_{name}": value.slot,
        f"offset_{name}": value.offset + offset * itemsize,
        f"stride_{name}": stride * itemsize,
    }


def _text(
    program: Program, graph: Graph, jobs: Sequence[Sequence[Job]], sources: Sequence[str]
) -> str:
    number = {source: i for i, source in enumerate(sources)}
    lines = ["program", format_program(program), "", "plan"]
    for row in jobs:
        for job in row:
            if isinstance(job, Kernel):
                lines.append(f"  kernel {number[job.source]}: {job.length} iterations")
            elif isinstance(job, Product):
                batch, m, n, k = job.sizes
                lines.append(
                    f"  matrix product {short_name(job.out.dtype)}: {batch} x [{m},{k}] @ [{k},{n}]"
                )
            else:
                lines.append(f"  numpy: {job.primitive.name}")
    for i, source in enumerate(sources):
        lines += ["", f"# kernel {i}", source]
    return "\n".join(lines)


def _debug_level() -> int:
    level = os.environ.get("FUNCGRAD_DEBUG", "0")
    return int(level) if level.isdigit() else 1


def _report(program: Program, lowered: Program, stats: KernelStats, text: str) -> None:
    level = _debug_level()
    if level >= 1:
        print(
            f"funcgrad: compiled {program.name}: {len(lowered.equations)} equations, kernels: "
            f"{stats.compiled} compiled, {stats.loaded} from disk, {stats.reused} reused",
            file=sys.stderr,
        )
    if level >= 2:
        print(text, file=sys.stderr)
