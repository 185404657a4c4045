"""`scipy.interpolate` on traced values: functions between values, differentiable in everything.

What has no derivative rule here is SciPy's own and takes concrete values.
"""
# ruff: noqa: F403, F405

from scipy.interpolate import (
    BivariateSpline,
    BPoly,
    CloughTocher2DInterpolator,
    InterpolatedUnivariateSpline,
    LinearNDInterpolator,
    LSQBivariateSpline,
    LSQSphereBivariateSpline,
    LSQUnivariateSpline,
    NdPPoly,
    NearestNDInterpolator,
    Rbf,
    RectBivariateSpline,
    RectSphereBivariateSpline,
    SmoothBivariateSpline,
    SmoothSphereBivariateSpline,
    UnivariateSpline,
)

from funcgrad.base.signatures import share
from funcgrad.numpy.host_functions import host_functions
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.interpolate.grids import *
from funcgrad.scipy.interpolate.meanings import MEANINGS
from funcgrad.scipy.interpolate.piecewise import *
from funcgrad.scipy.interpolate.polynomials import *
from funcgrad.scipy.interpolate.splines import *

pchip = PchipInterpolator
(
    AAA, FloaterHormannInterpolator, NdBSpline, approximate_taylor_polynomial, bisplev, bisplrep,
    generate_knots, griddata, insert, lagrange, make_lsq_spline, make_smoothing_spline,
    make_splprep, make_splrep, pade, spalde, splantider, splder, splint, splprep, splrep, sproot,
) = host_functions(
    "scipy.interpolate",
    "AAA", "FloaterHormannInterpolator", "NdBSpline", "approximate_taylor_polynomial", "bisplev",
    "bisplrep", "generate_knots", "griddata", "insert", "lagrange", "make_lsq_spline",
    "make_smoothing_spline", "make_splprep", "make_splrep", "pade", "spalde", "splantider",
    "splder", "splint", "splprep", "splrep", "sproot",
)  # fmt: skip

__all__ = [
    "AAA", "Akima1DInterpolator", "BPoly", "BSpline", "BarycentricInterpolator", "BivariateSpline",
    "CloughTocher2DInterpolator", "CubicHermiteSpline", "CubicSpline", "FloaterHormannInterpolator",
    "InterpolatedUnivariateSpline", "KroghInterpolator", "LSQBivariateSpline",
    "LSQSphereBivariateSpline", "LSQUnivariateSpline", "LinearNDInterpolator", "NdBSpline",
    "NdPPoly", "NearestNDInterpolator", "PPoly", "PchipInterpolator", "RBFInterpolator", "Rbf",
    "RectBivariateSpline", "RectSphereBivariateSpline", "RegularGridInterpolator",
    "SmoothBivariateSpline", "SmoothSphereBivariateSpline", "UnivariateSpline",
    "approximate_taylor_polynomial", "barycentric_interpolate", "bisplev", "bisplrep",
    "generate_knots", "griddata", "insert", "interp1d", "interpn", "krogh_interpolate", "lagrange",
    "make_interp_spline", "make_lsq_spline", "make_smoothing_spline", "make_splprep", "make_splrep",
    "pade", "pchip", "pchip_interpolate", "spalde", "splantider", "splder", "splev", "splint",
    "splprep", "splrep", "sproot",
]  # fmt: skip

share(__name__, MEANINGS)
present_results(__name__)
