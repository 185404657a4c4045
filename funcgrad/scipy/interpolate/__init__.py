"""`scipy.interpolate` on traced values: functions between values, differentiable in everything.

What has no derivative rule here is SciPy's own and takes concrete values.
"""
# ruff: noqa: F401, F403, F405

from typing import TYPE_CHECKING, Any

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

from funcgrad.base.namespaces import page
from funcgrad.base.signatures import share
from funcgrad.numpy.host_functions import host_functions
from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.interpolate.grids import *
from funcgrad.scipy.interpolate.meanings import MEANINGS
from funcgrad.scipy.interpolate.piecewise import *
from funcgrad.scipy.interpolate.polynomials import *
from funcgrad.scipy.interpolate.splines import *

pchip = PchipInterpolator
if TYPE_CHECKING:  # the names that are added below

    def __getattr__(name: str) -> Any: ...


vars().update(
    host_functions(
        "scipy.interpolate",
        """
        AAA FloaterHormannInterpolator NdBSpline approximate_taylor_polynomial bisplev bisplrep
        generate_knots griddata insert lagrange make_lsq_spline make_smoothing_spline make_splprep
        make_splrep pade spalde splantider splder splint splprep splrep sproot
        """,
    )
)

__all__ = page(vars())

share(__name__, MEANINGS)
present_results(__name__)
