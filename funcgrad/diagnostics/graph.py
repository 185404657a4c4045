"""Pictures of programs: operations as nodes, values as edges, scopes and called programs as boxes.

A `Graph` is text: DOT for Graphviz, and Mermaid, which many viewers of Markdown draw. What is
drawn is what was traced; large programs are folded, a box to one node.
"""

from __future__ import annotations

import html
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from funcgrad.api.arguments import check_callable, name_of
from funcgrad.base.records import dataclass
from funcgrad.base.signatures import signature_of
from funcgrad.base.transformed import Transformed
from funcgrad.core.avals import ShapedArray
from funcgrad.core.printer import split_params
from funcgrad.core.program import Atom, Equation, Literal, Program, Var
from funcgrad.diagnostics.record import Group, Record, record
from funcgrad.errors import ArgumentError, LibraryError

_DIRECTIONS = ("LR", "TB")
_LONGEST_PARAMS = 40
_MOST_NUMBERS = 6

# Fill colours by kind of node, dark enough to tell apart and light enough to read on.
_COLORS = {
    "input": "#d5e8d4",
    "constant": "#eeeeee",
    "operation": "#dae8fc",
    "output": "#ffe6cc",
    "box": "#e1d5e7",
}
_SHAPES = {"input": "ellipse", "constant": "ellipse", "output": "ellipse"}


@dataclass(frozen=True)
class Node:
    """An operation, an argument, a constant, a result, or a folded box.

    Attributes:
        key: Its name in the text of the graph.
        kind: ``"input"``, ``"constant"``, ``"operation"``, ``"output"`` or ``"box"``.
        lines: What is written on it.
        source: The user's line, or empty.
        box: Number of the box that it is in; ``None`` outside of all.
    """

    key: str
    kind: str
    lines: tuple[str, ...]
    source: str = ""
    box: int | None = None


@dataclass
class Box:
    """A scope, or a program that an operation runs.

    Attributes:
        name: What is written on it.
        parent: Number of the box around it; ``None`` for none.
        depth: How many boxes are around it.
        size: How many operations are in it.
    """

    name: str
    parent: int | None
    depth: int
    size: int = 0


@dataclass(frozen=True)
class Edge:
    """From the node that makes a value to one that reads it; dashed to a program that is run."""

    start: str
    end: str
    label: str = ""
    is_dashed: bool = False


@dataclass
class Graph:
    """A drawn program; made by `draw`.

    Attributes:
        name: Name of the function.
        nodes: What is visible.
        edges: Between visible nodes.
        boxes: Of which those are drawn that hold a visible node.
        direction: ``"LR"`` or ``"TB"``.
    """

    name: str
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    direction: str = "LR"

    @property
    def dot(self) -> str:
        """The graph in Graphviz's language."""
        head = [
            f"digraph {_dot_text(self.name)} {{",
            f"  rankdir={self.direction}; compound=true;",
            '  node [shape=box, style="filled,rounded", fontname="Helvetica", fontsize=11];',
            '  edge [fontname="Helvetica", fontsize=9, color="#555555"];',
        ]
        return "\n".join([*head, *self._dot_box(None, "  "), *self._dot_edges(), "}"])

    def _dot_box(self, box: int | None, indent: str) -> Iterator[str]:
        for node in self.nodes:
            if node.box == box:
                label = _dot_text("\n".join(node.lines))
                tip = f", tooltip={_dot_text(node.source)}" if node.source else ""
                shape = f", shape={_SHAPES[node.kind]}" if node.kind in _SHAPES else ""
                color = _COLORS[node.kind]
                yield f'{indent}{node.key} [label={label}, fillcolor="{color}"{shape}{tip}];'
        for inner in self._shown_boxes(box):
            yield f"{indent}subgraph cluster_{inner} {{"
            yield f"{indent}  label={_dot_text(self.boxes[inner].name)};"
            yield f'{indent}  style=rounded; color="#999999"; fontname="Helvetica"; fontsize=11;'
            yield from self._dot_box(inner, indent + "  ")
            yield f"{indent}}}"

    def _dot_edges(self) -> Iterator[str]:
        for edge in self.edges:
            options = [f"label={_dot_text(edge.label)}"] if edge.label else []
            options += ["style=dashed"] if edge.is_dashed else []
            tail = f" [{', '.join(options)}]" if options else ""
            yield f"  {edge.start} -> {edge.end}{tail};"

    def _shown_boxes(self, parent: int | None) -> list[int]:
        shown = set()
        for node in self.nodes:
            box = node.box
            while box is not None:
                shown.add(box)
                box = self.boxes[box].parent
        return [i for i, box in enumerate(self.boxes) if box.parent == parent and i in shown]

    @property
    def mermaid(self) -> str:
        """The graph in Mermaid's language: a fenced block ``mermaid`` of Markdown shows it."""
        lines = [f"flowchart {self.direction}", *self._mermaid_box(None, "  ")]
        for edge in self.edges:
            arrow = "-.->" if edge.is_dashed else "-->"
            label = f"|{_mermaid_text(edge.label)}|" if edge.label else ""
            lines.append(f"  {edge.start} {arrow}{label} {edge.end}")
        for kind, color in _COLORS.items():
            keys = [node.key for node in self.nodes if node.kind == kind]
            if keys:
                lines.append(f"  classDef {kind} fill:{color},stroke:#555,color:#000")
                lines.append(f"  class {','.join(keys)} {kind}")
        return "\n".join(lines)

    def _mermaid_box(self, box: int | None, indent: str) -> Iterator[str]:
        for node in self.nodes:
            if node.box == box:
                label = _mermaid_text("\n".join(node.lines))
                shape = f"([{label}])" if node.kind in _SHAPES else f"[{label}]"
                yield f"{indent}{node.key}{shape}"
        for inner in self._shown_boxes(box):
            yield f"{indent}subgraph b{inner}[{_mermaid_text(self.boxes[inner].name)}]"
            yield from self._mermaid_box(inner, indent + "  ")
            yield f"{indent}end"

    def svg(self) -> str:
        """The graph as a picture, laid out by Graphviz.

        Raises: LibraryError: If its program ``dot`` is not installed, or fails.
        """
        program = shutil.which("dot")
        if program is None:
            raise LibraryError(
                "Graph.svg needs the program `dot` of Graphviz, which is not on the PATH. Install "
                "it (apt-get install graphviz, brew install graphviz), or use `graph.mermaid`, "
                "which viewers of Markdown draw."
            )
        done = subprocess.run(
            [program, "-Tsvg"], input=self.dot.encode(), capture_output=True, check=False
        )
        if done.returncode:
            raise LibraryError(f"Graphviz failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode()

    def _repr_svg_(self) -> str | None:
        return self.svg() if shutil.which("dot") else None

    def _repr_html_(self) -> str:
        """The picture; without Graphviz the text, which pages with Mermaid's script draw."""
        if shutil.which("dot"):
            return self.svg()[self.svg().index("<svg") :]
        return f'<pre class="mermaid">{html.escape(self.mermaid)}</pre>'

    def __repr__(self) -> str:
        return f"<Graph of {self.name}: {len(self.nodes)} nodes, {len(self.edges)} edges>"


def _dot_text(text: str) -> str:
    """A quoted string of DOT, in which ``&`` begins a character of HTML."""
    text = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _one_line(text).replace("\n", "\\n") + '"'


def _mermaid_text(text: str) -> str:
    """A quoted string of Mermaid, in which ``#`` begins a character and quotes have no escape."""
    text = text.replace("#", "#35;")
    for char in '&"<>`\\|':
        text = text.replace(char, f"#{ord(char)};")
    return '"' + _one_line(text).replace("\n", "<br/>") + '"'


def _one_line(text: str) -> str:
    """Without characters that do not show, other than the ends of lines."""
    return "".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def draw(
    fun: Callable[..., Any],
    values: bool = False,
    gradients: bool = False,
    depth: int | None = None,
    max_nodes: int = 60,
    direction: str = "LR",
) -> Callable[..., Graph]:
    """A function that draws the program of ``fun`` instead of returning its result.

    Blocks of `funcgrad.named_scope`, functions under `jit` and `checkpoint`, and the bodies of
    loops, branches and custom rules are boxes. Operations on arrays that are not traced are part
    of the program if they go through funcgrad.

    Args:
        fun: Function of arrays or pytrees; with ``gradients`` to a real scalar.
        values: Whether nodes show their values.
        gradients: Whether nodes show the derivative of the result with respect to their value.
        depth: How many boxes inside of each other are open; the others are one node each. By
            default as many as keep the graph below ``max_nodes``.
        max_nodes: See ``depth``. A program without boxes is drawn whole.
        direction: ``"LR"``, from left to right, or ``"TB"``, from top to bottom.

    Returns:
        A function of the arguments of ``fun`` (or `ShapeDtypeStruct`, if neither values nor
        gradients are asked for) that returns a `Graph`.
    Raises: ArgumentError: If values or gradients are asked for and cannot be had.

    Example:
        >>> graph = fg.diagnostics.draw(lambda x, y: x * y + 1, gradients=True)(2.0, 3.0)
        >>> [node.lines for node in graph.nodes][:2]
        [('x', 'f64[]', 'gradient 3'), ('y', 'f64[]', 'gradient 2')]
    """
    check_callable(fun, "draw")
    if direction not in _DIRECTIONS:
        raise ArgumentError(f"draw: direction must be 'LR' or 'TB', got {direction!r}.")

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
        what = f"draw({name_of(fun)})"
        recorded = record(fun, args, kwargs, what)
        if (values or gradients) and not recorded.has_values:
            raise ArgumentError(f"{what}: values and gradients need arguments that are arrays.")
        builder = _Builder(recorded, values, _argument_names(fun, recorded.paths))
        if gradients:
            builder.gradients = _all_gradients(recorded, what)
        builder.build()
        return _folded(builder, name_of(fun), depth, max_nodes, direction)

    return Transformed(
        run,
        draw,
        fun,
        values=values,
        gradients=gradients,
        depth=depth,
        max_nodes=max_nodes,
        direction=direction,
    )


def _all_gradients(recorded: Record, what: str) -> dict[Var, np.ndarray]:
    types = [atom.aval for atom in recorded.outputs]
    if len(types) != 1 or types[0].shape or types[0].dtype.kind != "f":
        raise ArgumentError(
            f"{what}: gradients are those of one real number, but the function returned "
            f"({', '.join(map(str, types))}). Return the loss alone, or leave gradients out."
        )
    made = [v for equation in recorded.equations for v in equation.outputs]
    return recorded.gradients([*recorded.inputs, *made])


def _argument_names(fun: Callable[..., Any], paths: Sequence[str]) -> list[str]:
    """The paths, by the names of the parameters if they are known."""
    try:
        parameters = list(signature_of(fun).parameters.values())
    except (TypeError, ValueError):
        return list(paths)
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = list(paths)
    for i, name in enumerate(names):
        head = f"args[{i}]"
        named = [name + p[len(head) :] if p.startswith(head) else p for p in named]
    return [
        p.removeprefix("kwargs['").replace("']", "", 1) if p.startswith("kwargs['") else p
        for p in named
    ]


class _Builder:
    """All nodes, edges and boxes of a record, unfolded."""

    def __init__(self, recorded: Record, shows_values: bool, names: Sequence[str]) -> None:
        self.record = recorded
        self.shows_values = shows_values
        self.names = names
        self.gradients: dict[Var, np.ndarray] = {}
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.boxes: list[Box] = []

    def build(self) -> None:
        recorded = self.record
        maker: dict[Atom, str] = {}
        for var, name in zip(recorded.inputs, self.names, strict=True):
            maker[var] = self.node("input", (name, *self.facts([var])), None)
        for var in recorded.constants:
            maker[var] = self.node("constant", ("constant", *self.facts([var])), None)
        boxes = _OpenBoxes(self.boxes)
        for equation, group in zip(recorded.equations, recorded.groups, strict=True):
            self.operation(equation, maker, boxes.enter(group))
        self.results(recorded.outputs, recorded.out_paths, maker, None)

    def node(self, kind: str, lines: Sequence[str], box: int | None, source: str = "") -> str:
        key = f"n{len(self.nodes)}"
        self.nodes.append(Node(key, kind, tuple(lines), source, box))
        return key

    def facts(self, names: Sequence[Var]) -> Iterator[str]:
        """Types, values and gradients of names, as lines."""
        yield _types([v.aval for v in names])
        for var in names:
            if self.shows_values and var in self.record.values:
                yield f"value {number_text(self.record.values[var])}"
            if var in self.gradients:
                yield f"gradient {number_text(self.gradients[var])}"

    def operation(self, equation: Equation, maker: dict[Atom, str], box: int | None) -> None:
        named = equation.primitive.params()
        params, programs = split_params(named)
        short = params if len(params) <= _LONGEST_PARAMS else params[:_LONGEST_PARAMS] + "...]"
        literals = [isinstance(a, Literal) for a in equation.inputs]
        title = equation.primitive.name
        if programs and "name" in named:
            title += f" {named['name']}"
        if any(literals) and not programs:
            operands = [
                number_text(a.value) if isinstance(a, Literal) else "_" for a in equation.inputs
            ]
            title += f"({', '.join(operands)})"
        lines = [title, *([short] if short and not programs else [])]
        source = "" if equation.source is None else str(equation.source)
        key = self.node("operation", [*lines, *self.facts(equation.outputs)], box, source)
        for depth in self._around(box):
            self.boxes[depth].size += 1
        self.connect(equation.inputs, key, maker)
        maker.update(dict.fromkeys(equation.outputs, key))
        for name, program in programs:
            self.body(program, title if len(programs) == 1 else f"{title}: {name}", key, box)

    def _around(self, box: int | None) -> Iterator[int]:
        while box is not None:
            yield box
            box = self.boxes[box].parent

    def connect(self, atoms: Sequence[Atom], end: str, maker: dict[Atom, str]) -> None:
        variables = [a for a in atoms if isinstance(a, Var)]
        for i, atom in enumerate(variables):
            label = str(i) if len(variables) > 1 else ""
            self.edges.append(Edge(maker[atom], end, label))

    def body(self, program: Program, name: str, caller: str, parent: int | None) -> None:
        """A program that an operation runs, with arguments and results of its own."""
        box = len(self.boxes)
        self.boxes.append(Box(name, parent, 0 if parent is None else self.boxes[parent].depth + 1))
        maker: dict[Atom, str] = {}
        for var in program.inputs:
            maker[var] = self.node("input", ("argument", _types([var.aval])), box)
        for var, _ in program.constants:
            maker[var] = self.node("constant", ("constant", _types([var.aval])), box)
        for equation in program.equations:
            self.operation(equation, maker, box)
        last = self.results(program.outputs, [""] * len(program.outputs), maker, box)
        for key in last[:1]:
            self.edges.append(Edge(key, caller, "", is_dashed=True))

    def results(
        self, atoms: Sequence[Atom], paths: Sequence[str], maker: dict[Atom, str], box: int | None
    ) -> list[str]:
        keys = []
        for atom, path in zip(atoms, paths, strict=True):
            lines = [path or "result"]
            if isinstance(atom, Literal):
                lines.append(number_text(atom.value))
            keys.append(self.node("output", lines, box))
            self.connect([atom], keys[-1], maker)
        return keys


class _OpenBoxes:
    """Boxes of scopes: operations that follow each other in one scope are in one box.

    A scope that is entered again later is a new box, so that edges between boxes point forward, and
    the backward pass stands behind the forward pass.
    """

    def __init__(self, boxes: list[Box]) -> None:
        self.boxes = boxes
        self.open: list[int] = []
        self.group: Group = ()

    def enter(self, group: Group) -> int | None:
        kept = 0
        while kept < min(len(group), len(self.group)) and group[kept] == self.group[kept]:
            kept += 1
        del self.open[kept:]
        self.group = group
        for depth in range(kept, len(group)):
            parent = self.open[-1] if self.open else None
            self.open.append(len(self.boxes))
            self.boxes.append(Box(group[depth][0], parent, depth))
        return self.open[-1] if self.open else None


def _folded(
    builder: _Builder, name: str, depth: int | None, max_nodes: int, direction: str
) -> Graph:
    """The graph with every box at a depth made one node."""
    deepest = max((box.depth + 1 for box in builder.boxes), default=0)
    depths = [depth] if depth is not None else range(deepest, -1, -1)
    for chosen in depths:
        graph = _at_depth(builder, name, chosen, direction)
        if len(graph.nodes) <= max_nodes:
            break
    return graph


def _at_depth(builder: _Builder, name: str, depth: int, direction: str) -> Graph:
    graph = Graph(name, boxes=builder.boxes, direction=direction)
    shown: dict[str, str] = {}
    made: set[int] = set()
    for node in builder.nodes:
        box = node.box
        while box is not None and builder.boxes[box].depth > depth:
            box = builder.boxes[box].parent
        if box is None or builder.boxes[box].depth < depth:
            shown[node.key] = node.key
            graph.nodes.append(node)
            continue
        shown[node.key] = f"f{box}"
        if box not in made:
            made.add(box)
            folded = builder.boxes[box]
            lines = (folded.name, f"{folded.size} operation{'s' * (folded.size != 1)}")
            graph.nodes.append(Node(f"f{box}", "box", lines, box=folded.parent))
    edges = [Edge(shown[e.start], shown[e.end], e.label, e.is_dashed) for e in builder.edges]
    inner = [
        Edge(e.start, e.end, "" if "f" in e.start + e.end else e.label, e.is_dashed)
        for e in edges
        if e.start != e.end
    ]
    graph.edges = list(dict.fromkeys(inner))
    return graph


def _types(avals: Sequence[ShapedArray]) -> str:
    texts = [str(a.strong()) for a in avals]
    return ", ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")


def number_text(value: Any) -> str:
    """A number or a small array in full; mean and range of a large one."""
    array = np.asarray(value)
    if array.size <= _MOST_NUMBERS:
        text = np.array2string(array, precision=6, formatter=_FORMATS)
        return " ".join(text.split())
    if array.dtype.kind not in "fiu":
        return f"{array.size} values"
    return f"mean {array.mean():.4g}, from {array.min():.4g} to {array.max():.4g}"


_FORMATS: Any = {
    "float_kind": lambda x: f"{x:.6g}",
    "complex_kind": lambda x: f"{x:.6g}",
}
