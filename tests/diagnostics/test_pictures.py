"""Pictures: what they show, read from the figures, and that nothing on them is cut off."""

from __future__ import annotations

import importlib

import matplotlib.backends.backend_agg as agg
import numpy as np
import pytest

import funcgrad as fg
from funcgrad import diagnostics
from funcgrad.errors import ArgumentError, LibraryError
from tests.diagnostics.networks import perceptron


def history():
    record = diagnostics.History()
    watch = diagnostics.monitor("gradients", bins=5)
    params = {f"w{i}": np.ones(2) for i in range(15)}
    for k in range(4):
        updates = {name: np.ones(2) / (k + 1) for name in params}
        _, state = watch.update(updates, watch.init(params), params)
        record.record(state, loss=1 / (k + 1))
    return record


def flow():
    return diagnostics.gradient_report(*perceptron(12, fg.nn.sigmoid))


FIGURES = {
    "flow": lambda: diagnostics.plot_gradient_flow(flow()),
    "histograms": lambda: diagnostics.plot_histograms(perceptron(3)[1], title="parameters"),
    "norms": lambda: diagnostics.plot_norms(history()),
    "distributions": lambda: diagnostics.plot_distributions(history(), "gradients"),
    "distributions of data": lambda: diagnostics.plot_distributions(history(), "gradients", True),
    "activations": lambda: diagnostics.plot_activations(flow()),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", FIGURES)
def test_every_axis_is_labelled_and_inside_of_the_picture(name):
    figure = FIGURES[name]()
    canvas = agg.FigureCanvasAgg(figure)
    canvas.draw()
    width, height = canvas.get_width_height()
    shown = [axes for axes in figure.axes if axes.axison]
    assert shown
    for axes in shown:
        assert axes.get_title() or axes.get_ylabel()
        box = axes.get_tightbbox()
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1
    assert np.asarray(canvas.buffer_rgba())[..., :3].std() > 5


def test_the_flow_has_a_bar_for_every_parameter_in_the_colour_of_its_verdict():
    report = flow()
    (axes,) = diagnostics.plot_gradient_flow(report).axes
    assert [t.get_text() for t in axes.get_xticklabels()] == [leaf.path for leaf in report.leaves]
    heights = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in axes.patches}
    assert heights == {i: leaf.mean_abs for i, leaf in enumerate(report.leaves)}
    assert axes.get_yscale() == "log"


def test_long_lists_of_lines_say_how_many_are_left_out():
    figure = diagnostics.plot_norms(history())
    texts = [t.get_text() for axes in figure.axes if axes.get_legend() for t in
             axes.get_legend().get_texts()]  # fmt: skip
    assert "and 3 more" in texts


def test_distributions_show_the_mean_and_the_deviations_of_every_step():
    record, watch = diagnostics.History(), diagnostics.monitor("all", bins=4)
    rows = np.random.default_rng(0).normal(size=(5, 100))
    for row in rows:
        record.record(watch.update({"w": row}, watch.init({"w": row}))[1])
    (axes,) = diagnostics.plot_distributions(record, "all").axes
    expected = [rows.mean(1), rows.mean(1) - rows.std(1), rows.mean(1) + rows.std(1)]
    np.testing.assert_allclose([line.get_ydata() for line in axes.lines], expected)
    (mesh,) = axes.collections
    steps = record.statistics["all"]["['w']"]
    shares = [np.sqrt(step.counts / step.counts.max()) for step in steps]
    np.testing.assert_allclose(mesh.get_array().reshape(4, -1)[:, ::2].T, shares)
    corners = mesh.get_coordinates()
    np.testing.assert_allclose(corners[:, ::2, 1].T, [step.edges for step in steps])
    np.testing.assert_array_equal(corners[0, :, 0], [0, 1, 1, 2, 2, 3, 3, 4, 4, 5])


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(LibraryError, match=r"pip install 'funcgrad\[viz\]'"):
        diagnostics.plot_histograms([np.ones(3)])


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ArgumentError, match="1 to 30 histograms, got 0"):
        diagnostics.plot_histograms([])
    with pytest.raises(ArgumentError, match="nothing was recorded"):
        diagnostics.plot_norms(diagnostics.History())
    with pytest.raises(ArgumentError, match=r"monitor\('other', bins=30\) records them"):
        diagnostics.plot_distributions(history(), "other")
    with pytest.raises(ArgumentError, match="no activation functions"):
        diagnostics.plot_activations(diagnostics.activation_report(np.sin, 1.0))
