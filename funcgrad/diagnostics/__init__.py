"""Looking into derivatives and training: reports, first NaNs, spectra, pictures and graphs.

This module is a page of names; the work is in the modules that it names.
"""

from funcgrad.base.namespaces import present
from funcgrad.diagnostics.activations import Activation, ActivationReport, activation_report
from funcgrad.diagnostics.gradients import (
    Comparison,
    Comparisons,
    GradientCheck,
    GradientChecks,
    check_gradients,
    compare,
)
from funcgrad.diagnostics.graph import Graph, draw
from funcgrad.diagnostics.health import GradientReport, LeafReport, gradient_report
from funcgrad.diagnostics.monitor import History, MonitorState, Statistics, monitor
from funcgrad.diagnostics.nonfinite import FirstNonFinite, find_nan
from funcgrad.diagnostics.pictures import (
    plot_activations,
    plot_distributions,
    plot_gradient_flow,
    plot_histograms,
    plot_norms,
)
from funcgrad.diagnostics.spectrum import Spectrum, hessian_spectrum

__all__ = [
    "Activation", "ActivationReport", "Comparison", "Comparisons", "FirstNonFinite",
    "GradientCheck", "GradientChecks", "GradientReport", "Graph", "History", "LeafReport",
    "MonitorState", "Spectrum", "Statistics", "activation_report", "check_gradients", "compare",
    "draw", "find_nan", "gradient_report", "hessian_spectrum", "monitor", "plot_activations",
    "plot_distributions", "plot_gradient_flow", "plot_histograms", "plot_norms",
]  # fmt: skip

present(__name__)
