"""Looking into derivatives and training: reports, first NaNs, spectra, pictures and graphs.

This module is a page of names; the work is in the modules that it names.
"""

from funcgrad.diagnostics.graph import Graph, draw
from funcgrad.namespaces import present

__all__ = [
    "Graph",
    "draw",
]

present(__name__)
