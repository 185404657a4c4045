"""Scalar formulas: exact values and gradients, also on the drawn nodes."""

from __future__ import annotations

import shutil

from tests.examples.program import check_refusal, load, run

example = load("scalar_graph")


def test_values_and_gradients_are_exact(tmp_path):
    results = run(example, "--out-dir", tmp_path)
    found = {name: (result.value, result.gradient) for name, result in results.items()}
    assert found == {
        "plane": (4.0, (-3.0, 2.0, 1.0)),
        "product": (70.0, (31.0, 14.0, 7.0, 10.0)),
        "cube": (125.0, (150.0,)),
    }
    for name, (value, gradient) in found.items():
        nodes = {node.lines[0]: node.lines for node in results[name].graph.nodes}
        names = example.__dict__[name].__code__.co_varnames
        shown = [nodes[argument][-1] for argument in names]
        assert shown == [f"gradient {g:g}" for g in gradient]
        last = results[name].graph.nodes[-2]
        assert last.lines[-2:] == (f"value {value:g}", "gradient 1")
        assert (tmp_path / f"{name}.dot").read_text().startswith(f'digraph "{name}"')
        assert (tmp_path / f"{name}.md").read_text().startswith("```mermaid\nflowchart LR\n")
        assert (tmp_path / f"{name}.svg").exists() == (shutil.which("dot") is not None)


def test_a_missing_folder_is_refused(capsys):
    message = "argument --out-dir: there is no folder /nowhere"
    check_refusal(example, capsys, ["--out-dir", "/nowhere"], message)
