"""The passes over loop nests, in their order: from what computes to kernels.

Every pass is a verb in a file of its own. ``FUNCGRAD_SKIP_PASSES``, names separated by commas,
leaves some of them out: results stay the same, which tells a defect of a pass from others.
``FUNCGRAD_VERIFY=1`` checks the graph after each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from funcgrad.base import environment
from funcgrad.compiler.nest.allocate import mark_stored
from funcgrad.compiler.nest.coalesce import coalesce
from funcgrad.compiler.nest.defer import defer
from funcgrad.compiler.nest.detach import detach
from funcgrad.compiler.nest.divide import divide, divide_sums
from funcgrad.compiler.nest.fit import fit
from funcgrad.compiler.nest.fuse import Group, fuse
from funcgrad.compiler.nest.in_order import share_in_order
from funcgrad.compiler.nest.in_place import change_in_place, given_by, read_first, reuse_inputs
from funcgrad.compiler.nest.interchange import interchange
from funcgrad.compiler.nest.layout import Value
from funcgrad.compiler.nest.narrow import narrow
from funcgrad.compiler.nest.nodes import Branch, Graph, Loop, Nest
from funcgrad.compiler.nest.read_through import read_through
from funcgrad.compiler.nest.refine import refine
from funcgrad.compiler.nest.rematerialize import rematerialize
from funcgrad.compiler.nest.schedule import schedule, schedule_groups
from funcgrad.compiler.nest.shorten import shorten
from funcgrad.compiler.nest.sink import sink_guards
from funcgrad.compiler.nest.small_products import write_out_products
from funcgrad.compiler.nest.specialize import specialize
from funcgrad.compiler.nest.verify import verify_graph, verify_groups
from funcgrad.compiler.nest.write_through import prefer_fresh, write_through

OPTIONAL = (
    "rematerialize",  # loops compute again what earlier loops would keep for them
    "interchange",  # loops of independent lanes have these last, and run in blocks of them
    "shorten",  # integers of 64 bits whose bounds have 32 are computed with these
    "refine",  # both sides of a reshape iterate over the axes of both shapes
    "read_through",  # parts of arrays are read where they come from, or written in turn
    "schedule",  # cheap values are computed again by their readers, others are stored
    "sink",  # guards choose operands of what all their sides compute
    "specialize",  # short axes are written out
    "detach",  # functions of the numbers of rows run apart from the rows
    "coalesce",  # several short rows are one
    "divide",  # long sums are sums of parts first
    "in_order",  # running folds and scatters share kernels with what is around them
    "fit",  # under a limit of bytes, values are computed again by groups that run again
    "write_through",  # parts of assembled arrays are computed where they belong
    "in_place",  # results take the memory of what nobody needs any more
    "unswitch",  # rows are divided where a condition on their index turns
    "unroll",  # in loops, small products are sums, and elements of small arrays variables
    "join",  # loops whose kernels have little to do are one kernel
)
"""The passes that can be left out, with what they do."""

_ON_GRAPHS: tuple[tuple[str, Callable[[Graph], None]], ...] = (
    ("defer", defer),
    ("rematerialize", rematerialize),
    ("interchange", interchange),
    ("shorten", shorten),
    ("divide", divide_sums),
    ("refine", refine),
    ("read_through", read_through),
    ("schedule", schedule),
    ("sink", sink_guards),
)
"""The passes that change a graph, in their order. Then `fuse` forms groups of its nodes, and anew
where `specialize` has changed anything."""

_ON_GROUPS: tuple[tuple[str, Callable[[Graph, Sequence[Group]], list[Group]]], ...] = (
    ("schedule", schedule_groups),
    ("detach", detach),
    ("coalesce", coalesce),
    ("divide", divide),
    ("in_order", share_in_order),
    ("in_place", read_first),
    ("fit", fit),
)
"""The passes that change groups, in their order. At last values get their places."""

SKIP_VARIABLE = "FUNCGRAD_SKIP_PASSES"
VERIFY_VARIABLE = "FUNCGRAD_VERIFY"


def is_on(name: str) -> bool:
    """Whether a pass is to run."""
    return name not in OPTIONAL or name not in (environment.text(SKIP_VARIABLE) or "").split(",")


def arrange(
    graph: Graph,
    donated: Sequence[bool] = (),
    around: Nest | None = None,
    outer: frozenset[Value] = frozenset(),
) -> list[Group]:
    """Rewrite the graph of a program, or of the body of a loop.

    Args:
        graph: The graph; it is changed.
        donated: For every input whether its memory may be used for results.
        around: The loop or branch of which it is a body.
        outer: Values around the graph that it may read.
    Returns: Its nodes in groups, of which each is run by one kernel, or is no kernel's.
    """
    is_verified = environment.is_on(VERIFY_VARIABLE)
    given = given_by(around, graph) if isinstance(around, Branch) else {}

    def check(after: str, groups: Sequence[Group] | None = None) -> None:
        if is_verified:
            verify_graph(graph, after, outer)
            if groups is not None:
                verify_groups(graph, groups, after)

    check("lower")
    if isinstance(around, Loop) and is_on("unswitch"):
        narrow(graph, around)
        check("unswitch")
    if outer and is_on("unroll"):
        write_out_products(graph)
        check("unroll")
    for name, change in _ON_GRAPHS:
        if is_on(name):
            change(graph)
            check(name)
    groups = fuse(graph)
    check("fuse", groups)
    while is_on("specialize") and specialize(graph, groups, bool(outer)):
        check("specialize")
        groups = fuse(graph)
        check("fuse", groups)
    for name, regroup in _ON_GROUPS:
        if is_on(name):
            groups = regroup(graph, groups)
            check(name, groups)
    mark_stored(graph, groups)
    if is_on("write_through"):
        prefer_fresh(graph, groups)
    if is_on("in_place"):
        reuse_inputs(graph, groups, donated)
        change_in_place(graph, groups, around if isinstance(around, Loop) else None, given)
    if is_on("write_through"):
        write_through(graph, groups)
        check("write_through", groups)
    return groups
