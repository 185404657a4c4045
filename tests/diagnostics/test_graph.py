"""Drawn programs: exact values and gradients, folding, hostile names, and Graphviz's opinion."""

from __future__ import annotations

import itertools
import re
import shutil
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.diagnostics import draw
from funcgrad.errors import ArgumentError, LibraryError

NEEDS_DOT = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def product_of_sums(a, b, c, d):
    return ((a * b) + c) * (a + d)


def lines_of(graph):
    return [node.lines for node in graph.nodes]


def test_values_and_gradients_of_scalars_are_exact():
    graph = draw(product_of_sums, values=True, gradients=True)(2.0, 3.0, 4.0, 5.0)
    assert lines_of(graph) == [
        ("a", "f64[]", "value 2", "gradient 31"),
        ("b", "f64[]", "value 3", "gradient 14"),
        ("c", "f64[]", "value 4", "gradient 7"),
        ("d", "f64[]", "value 5", "gradient 10"),
        ("mul", "f64[]", "value 6", "gradient 7"),
        ("add", "f64[]", "value 10", "gradient 7"),
        ("add", "f64[]", "value 7", "gradient 10"),
        ("mul", "f64[]", "value 70", "gradient 1"),
        ("result",),
    ]
    assert [(e.start, e.end) for e in graph.edges] == [
        ("n0", "n4"), ("n1", "n4"), ("n4", "n5"), ("n2", "n5"), ("n0", "n6"), ("n3", "n6"),
        ("n5", "n7"), ("n6", "n7"), ("n7", "n8"),
    ]  # fmt: skip
    assert 'a\\nf64[]\\nvalue 2\\ngradient 31"' in graph.dot
    assert "n4 --> " not in graph.mermaid
    assert 'n4 -->|"0"| n5' in graph.mermaid
    assert "return ((a * b) + c) * (a + d)" in graph.dot


def test_gradients_of_intermediate_arrays_are_those_of_the_chain_rule():
    x, w = np.array([0.5, -1.0]), np.array([[1.0, 2.0], [3.0, 4.0]])

    def loss(x, w):
        return fg.numpy.sum(fg.checkpoint(fg.jit(np.tanh))(x @ w) ** 2)

    graph = draw(loss, gradients=True)(x, w)
    by_title = {node.lines[0]: node.lines[-1] for node in graph.nodes}
    h = np.tanh(x @ w)
    expected = {"tanh": 2 * h, "contract": 2 * h * (1 - h**2), "x": w @ (2 * h * (1 - h**2))}
    for title, gradient in expected.items():
        numbers = [float(t) for t in by_title[title].removeprefix("gradient ").strip("[]").split()]
        np.testing.assert_allclose(numbers, gradient, rtol=1e-5)


def test_arguments_are_called_by_their_names_and_paths():
    def f(params, *rest, scale):
        return params["w"][0] * scale + rest[0]

    graph = draw(f)({"w": [1.0]}, 2.0, scale=3.0)
    assert [lines[0] for lines in lines_of(graph)[:3]] == ["params['w'][0]", "args[1]", "scale"]


def test_types_are_enough_without_values():
    struct = fg.ShapeDtypeStruct((2, 3), np.float32)
    graph = draw(fg.jit(lambda x: 2 * x))(struct)
    assert ("mul(2, _)", "f32[2,3]") in lines_of(graph)
    with pytest.raises(ArgumentError, match="values and gradients need arguments that are arrays"):
        draw(lambda x: x, values=True)(struct)


def test_gradients_need_one_real_number():
    with pytest.raises(ArgumentError, match=r"one real number, .* returned \(f64\[3\]\)"):
        draw(lambda x: 2 * x, gradients=True)(np.ones(3))
    with pytest.raises(ArgumentError, match="direction must be 'LR' or 'TB'"):
        draw(np.sin, direction="up")


def test_python_may_branch_on_values():
    assert len(draw(lambda x: np.sin(x) if x > 0 else x)(1.0).nodes) == 4


def layers(params, x):
    for i, w in enumerate(params):
        with fg.named_scope(f"layer {i}"):
            with fg.named_scope("affine"):
                x = 2 * (x @ w)
            x = np.tanh(x)
    return np.sum(x)


LAYERS = ([np.eye(2)] * 3, np.ones((1, 2)))


def boxes_of(graph):
    return [node.lines for node in graph.nodes if node.kind == "box"]


def test_scopes_fold_from_the_inside_outwards():
    whole = draw(layers, depth=2)(*LAYERS)
    assert boxes_of(whole) == []
    assert [box.name for box in whole.boxes[:2]] == ["layer 0", "affine"]
    assert boxes_of(draw(layers, depth=1)(*LAYERS)) == [("affine", "2 operations")] * 3
    flat = draw(layers, depth=0)(*LAYERS)
    assert boxes_of(flat) == [(f"layer {i}", "3 operations") for i in range(3)]
    assert [(e.start, e.end) for e in flat.edges] == [
        ("n3", "f0"), ("n0", "f0"), ("f0", "f2"), ("n1", "f2"), ("f2", "f4"), ("n2", "f4"),
        ("f4", "n13"), ("n13", "n14"),
    ]  # fmt: skip


@pytest.mark.parametrize(("limit", "count"), [(100, 15), (14, 12), (11, 9), (1, 9)])
def test_boxes_are_folded_until_the_graph_is_small(limit, count):
    assert len(draw(layers, max_nodes=limit)(*LAYERS).nodes) == count


def test_a_scope_that_is_entered_again_and_every_call_are_boxes_of_their_own():
    inner = fg.jit(lambda x: 3 * x)

    def f(x):
        for name in "aba":
            with fg.named_scope(name):
                x = 2 * x
        return inner(inner(x))

    names = [box.name for box in draw(f)(1.0).boxes]
    assert names == ["a", "b", "a", "<lambda>", "<lambda>"]


def test_the_backward_pass_is_behind_the_forward_pass():
    graph = draw(fg.grad(lambda x: layers([np.eye(2)], x)), depth=0)(np.ones((1, 2)))
    assert [lines[0] for lines in boxes_of(graph)] == ["layer 0", "layer 0"]


def test_scopes_of_a_compiled_function_stay_inside_of_it():
    inner = fg.jit(lambda x: layers([np.eye(2)], x))

    def outer(x):
        with fg.named_scope("outer"):
            return inner(x)

    boxes = draw(outer)(np.ones((1, 2))).boxes
    assert [(b.name, b.depth) for b in boxes] == [
        ("outer", 0), ("<lambda>", 1), ("layer 0", 2), ("affine", 3),
    ]  # fmt: skip


def test_functions_with_rules_of_their_own_are_boxes_with_their_names():
    @fg.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, ct: (3 * x * ct,))
    graph = draw(square, gradients=True)(2.0)
    assert ("custom_call square", "f64[]", "gradient 1") in lines_of(graph)
    assert [box.name for box in graph.boxes] == ["custom_call square"]
    assert graph.nodes[0].lines[-1] == "gradient 6"  # by the rule, which is not the truth


def test_bodies_of_loops_and_branches_are_boxes_that_fold():
    def f(x):
        x, _ = fg.lax.scan(lambda c, _: (np.sin(c), None), x, None, length=3)
        return fg.lax.cond(x > 0, np.cos, np.tan, x)

    graph = draw(f, values=True)(1.0)
    assert [box.name for box in graph.boxes] == [
        "scan",
        "switch: branches[0]",
        "switch: branches[1]",
    ]
    assert sum(edge.is_dashed for edge in graph.edges) == 3
    folded = draw(f, depth=0)(1.0)
    assert len([lines for lines in boxes_of(folded) if lines[1] == "1 operation"]) == 3


HOSTILE = ['"', "\\", "&lt;", "a\nb", "<b>", "#quot;", "end", "];", "`x`", "\x00", "|", "ä€", "%%"]


def hostile(x):
    for name in HOSTILE:
        with fg.named_scope(name):
            x = 2 * x
    return x


def test_hostile_names_do_not_leave_their_quotes():
    graph = draw(hostile)(1.0)
    for line in graph.dot.splitlines():
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
        assert bare.count('"') % 2 == 0
        assert re.fullmatch(r'[\w\s={}\[\],;>"-]*', bare), line
    for line in graph.mermaid.splitlines():
        bare = re.sub(r'"[^"<>`\\|&]*"', '""', line.replace("<br/>", ""))
        assert re.fullmatch(r'[\w\s:;,#.>|-]*(\(?\[)?("")?(\]\)?)?[\w\s|]*', bare), line
    assert "#35;quot;" in graph.mermaid


@NEEDS_DOT
def test_graphviz_shows_hostile_names_as_they_are():
    svg = draw(hostile)(1.0).svg()
    texts = {t.text for t in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}
    shown = [n for n in HOSTILE if n not in ("a\nb", "\x00")]
    assert texts >= {*shown, "a", "b", "\N{REPLACEMENT CHARACTER}"}


@NEEDS_DOT
def test_notebooks_get_a_picture():
    graph = draw(product_of_sums)(1.0, 2.0, 3.0, 4.0)
    assert graph._repr_svg_().count("<svg") == 1
    assert graph._repr_html_().startswith("<svg")


def test_without_graphviz_the_error_says_what_to_do_and_notebooks_get_text(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    graph = draw(product_of_sums)(1.0, 2.0, 3.0, 4.0)
    with pytest.raises(LibraryError, match="apt-get install graphviz"):
        graph.svg()
    assert graph._repr_svg_() is None
    assert graph._repr_html_().startswith('<pre class="mermaid">flowchart LR')


def test_large_arrays_are_summarised_and_long_parameters_cut():
    lines = list(itertools.chain(*lines_of(draw(np.sin, values=True)(np.arange(100.0)))))
    assert "value mean 49.5, from 0 to 99" in lines
    assert repr(draw(np.sin)(1.0)) == "<Graph of sin: 3 nodes, 2 edges>"
