"""`scipy.spatial.transform` on arrays and traced values: rotations, and those between them."""

from funcgrad.numpy.public_functions import publish_results
from funcgrad.scipy.spatial.transform.rigid import RigidTransform
from funcgrad.scipy.spatial.transform.rotations import Rotation, Slerp
from funcgrad.scipy.spatial.transform.splines import RotationSpline

__all__ = [
    "RigidTransform",
    "Rotation",
    "RotationSpline",
    "Slerp",
]

publish_results(__name__)
