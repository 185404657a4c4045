"""`scipy.spatial.transform` on arrays and traced values: rotations, and those between them."""

from funcgrad.numpy.public_functions import present_results
from funcgrad.scipy.spatial.transform.rigid import RigidTransform
from funcgrad.scipy.spatial.transform.rotations import Rotation, Slerp
from funcgrad.scipy.spatial.transform.splines import RotationSpline

__all__ = [
    "RigidTransform",
    "Rotation",
    "RotationSpline",
    "Slerp",
]

present_results(__name__)
