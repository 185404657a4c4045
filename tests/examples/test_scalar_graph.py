"""Scalar formulas: the numbers of first lessons, also on the drawn nodes."""

from __future__ import annotations

import shutil

import pytest

from tests.examples.program import check_refusal, load, run

example = load("scalar_graph")

EXPECTED = {
    "x*y + z": (4.0, (-3.0, 2.0, 1.0)),
    "(a*b + c)*(a + d)": (70.0, (31.0, 14.0, 7.0, 10.0)),
    "(a + b*c)*d": (70.0, (5.0, 20.0, 15.0, 14.0)),
    "a*a": (9.0, (6.0,)),
    "a + a": (6.0, (2.0,)),
    "a*a + a": (12.0, (7.0,)),
    "3*x + 1": (7.0, (3.0,)),
    "(2*x + 1)^3": (27.0, (54.0,)),
    "(x*w + b)^2": (49.0, (42.0, 28.0, 14.0)),
    "tanh(x)": (0.4621, (0.7864,)),
    "neuron": (0.7071, (-1.5, 1.0, 0.5, 0.0)),
    "sigmoid neuron": (0.7311, (-0.1966, 0.3932, -0.3932, -0.5898, 0.1966)),
    "ten sigmoids": (0.25**10, (0.0,)),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    return folder, *run(example, "--out-dir", folder)


def test_values_and_gradients_are_those_of_the_lessons(found):
    _, results, _ = found
    assert list(results) == list(EXPECTED)
    for name, (value, gradient) in EXPECTED.items():
        assert results[name].value == pytest.approx(value, rel=1e-4), name
        assert results[name].gradient == pytest.approx(gradient, rel=1e-3, abs=1e-12), name
    assert results["ten sigmoids"].value == pytest.approx(1e-6, rel=0.05)


def test_the_graphs_show_them(found):
    folder, results, graphs = found
    for label, name in (("x*y + z", "plane"), ("(a*b + c)*(a + d)", "product")):
        nodes = {node.lines[0]: node.lines for node in graphs[label].nodes}
        names = example.__dict__[name].__code__.co_varnames
        shown = [nodes[argument][-1] for argument in names]
        assert shown == [f"gradient {g:g}" for g in results[label].gradient]
        last = graphs[label].nodes[-2]
        assert last.lines[-2:] == (f"value {results[label].value:g}", "gradient 1")
        assert (folder / f"{name}.dot").read_text().startswith(f'digraph "{name}"')
        assert (folder / f"{name}.md").read_text().startswith("```mermaid\nflowchart LR\n")
        assert (folder / f"{name}.svg").exists() == (shutil.which("dot") is not None)


def test_a_missing_folder_is_refused(capsys):
    message = "argument --out-dir: there is no folder /nowhere"
    check_refusal(example, capsys, ["--out-dir", "/nowhere"], message)
