"""`scipy.interpolate` on traced values: functions between values, differentiable in everything.

What has no derivative rule here is SciPy's own and takes concrete values.
"""

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

from funcgrad.base.namespaces import present
from funcgrad.numpy.borrowing import borrow
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

pchip = PchipInterpolator
AAA = borrow("scipy.interpolate", "AAA")
FloaterHormannInterpolator = borrow("scipy.interpolate", "FloaterHormannInterpolator")
NdBSpline = borrow("scipy.interpolate", "NdBSpline")
approximate_taylor_polynomial = borrow("scipy.interpolate", "approximate_taylor_polynomial")
bisplev = borrow("scipy.interpolate", "bisplev")
bisplrep = borrow("scipy.interpolate", "bisplrep")
generate_knots = borrow("scipy.interpolate", "generate_knots")
griddata = borrow("scipy.interpolate", "griddata")
insert = borrow("scipy.interpolate", "insert")
lagrange = borrow("scipy.interpolate", "lagrange")
make_lsq_spline = borrow("scipy.interpolate", "make_lsq_spline")
make_smoothing_spline = borrow("scipy.interpolate", "make_smoothing_spline")
make_splprep = borrow("scipy.interpolate", "make_splprep")
make_splrep = borrow("scipy.interpolate", "make_splrep")
pade = borrow("scipy.interpolate", "pade")
spalde = borrow("scipy.interpolate", "spalde")
splantider = borrow("scipy.interpolate", "splantider")
splder = borrow("scipy.interpolate", "splder")
splint = borrow("scipy.interpolate", "splint")
splprep = borrow("scipy.interpolate", "splprep")
splrep = borrow("scipy.interpolate", "splrep")
sproot = borrow("scipy.interpolate", "sproot")

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
