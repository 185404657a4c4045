"""What NumPy, SciPy and JAX offer is there, or the documentation says why it is not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

import funcgrad as fg
from tests import surface

newest = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.4.0"
    or np.lib.NumpyVersion(scipy.__version__) < "1.17.0",
    reason="older libraries have names that newer ones removed, and tell fewer signatures",
)


@newest
@pytest.mark.parametrize("page", surface.PAGES)
def test_every_hole_is_explained(page):
    found = surface.all_holes()[page]
    missing = surface.unexplained(found, surface.explained(surface.PAGES[page]))
    assert not missing, (
        f"fill these, say in docs/{surface.PAGES[page].name} why they are not there, or run "
        "`python -m tests.surface --write`"
    )


@newest
def test_names_of_numpy_are_numpys():
    ours = {"ComplexWarning", "at", "complex_", "float_"}
    assert set(fg.numpy.__all__) - set(dir(np)) == ours


def test_what_counts_as_a_hole():
    offered = {
        "numpy": {"sin": [], "no_such": None, "mean": ["a", "keepdims", "colour"]},
        "no_module": {"f": None},
    }
    found = list(surface.holes(offered))
    assert found == ["numpy.no_such", "numpy.mean(colour)", "no_module.*"]
    assert surface.unexplained(found, ["colour=", "no_module.*"]) == ["numpy.no_such"]
    assert surface.unexplained(found, ["numpy.*"]) == ["no_module.*"]
    assert surface.table(found).splitlines()[2:] == [
        "| `no_module.*` | names of no_module |",
        "| `numpy.mean(colour)` | keywords of numpy |",
        "| `numpy.no_such` | names of numpy |",
    ]
