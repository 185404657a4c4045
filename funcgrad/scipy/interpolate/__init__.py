"""`scipy.interpolate` on traced values: functions between values, differentiable in everything.

What has no derivative rule here is SciPy's own and takes concrete values.
"""

from scipy import interpolate as _scipy
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

from funcgrad.namespaces import present
from funcgrad.scipy.interpolate.grids import (
    RegularGridInterpolator,
    interp1d,
    interpn,
)
from funcgrad.scipy.interpolate.piecewise import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    PPoly,
    pchip_interpolate,
)
from funcgrad.scipy.interpolate.polynomials import (
    BarycentricInterpolator,
    KroghInterpolator,
    RBFInterpolator,
    barycentric_interpolate,
    krogh_interpolate,
)
from funcgrad.scipy.interpolate.splines import (
    BSpline,
    make_interp_spline,
    splev,
)
from funcgrad.scipy.passing import passed

pchip = PchipInterpolator
AAA = passed(_scipy, "AAA")
FloaterHormannInterpolator = passed(_scipy, "FloaterHormannInterpolator")
NdBSpline = passed(_scipy, "NdBSpline")
approximate_taylor_polynomial = passed(_scipy, "approximate_taylor_polynomial")
bisplev = passed(_scipy, "bisplev")
bisplrep = passed(_scipy, "bisplrep")
generate_knots = passed(_scipy, "generate_knots")
griddata = passed(_scipy, "griddata")
insert = passed(_scipy, "insert")
lagrange = passed(_scipy, "lagrange")
make_lsq_spline = passed(_scipy, "make_lsq_spline")
make_smoothing_spline = passed(_scipy, "make_smoothing_spline")
make_splprep = passed(_scipy, "make_splprep")
make_splrep = passed(_scipy, "make_splrep")
pade = passed(_scipy, "pade")
spalde = passed(_scipy, "spalde")
splantider = passed(_scipy, "splantider")
splder = passed(_scipy, "splder")
splint = passed(_scipy, "splint")
splprep = passed(_scipy, "splprep")
splrep = passed(_scipy, "splrep")
sproot = passed(_scipy, "sproot")

__all__ = [
    "AAA",
    "Akima1DInterpolator",
    "BPoly",
    "BSpline",
    "BarycentricInterpolator",
    "BivariateSpline",
    "CloughTocher2DInterpolator",
    "CubicHermiteSpline",
    "CubicSpline",
    "FloaterHormannInterpolator",
    "InterpolatedUnivariateSpline",
    "KroghInterpolator",
    "LSQBivariateSpline",
    "LSQSphereBivariateSpline",
    "LSQUnivariateSpline",
    "LinearNDInterpolator",
    "NdBSpline",
    "NdPPoly",
    "NearestNDInterpolator",
    "PPoly",
    "PchipInterpolator",
    "RBFInterpolator",
    "Rbf",
    "RectBivariateSpline",
    "RectSphereBivariateSpline",
    "RegularGridInterpolator",
    "SmoothBivariateSpline",
    "SmoothSphereBivariateSpline",
    "UnivariateSpline",
    "approximate_taylor_polynomial",
    "barycentric_interpolate",
    "bisplev",
    "bisplrep",
    "generate_knots",
    "griddata",
    "insert",
    "interp1d",
    "interpn",
    "krogh_interpolate",
    "lagrange",
    "make_interp_spline",
    "make_lsq_spline",
    "make_smoothing_spline",
    "make_splprep",
    "make_splrep",
    "pade",
    "pchip",
    "pchip_interpolate",
    "spalde",
    "splantider",
    "splder",
    "splev",
    "splint",
    "splprep",
    "splrep",
    "sproot",
]

present(__name__)
