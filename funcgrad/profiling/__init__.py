"""Profiles: where the time of a function goes, line by line.

``profile : (a -> b) -> (a -> Profile)``. Compiled programs are measured step by step by timers that
are part of a copy of their plan, and sampled within kernels of several lines; Python is sampled.
"""

from funcgrad.base.namespaces import present
from funcgrad.profiling.memory import MemoryProfile
from funcgrad.profiling.profiler import LineProfile, Profile, profile
from funcgrad.profiling.roofline import Roofline
from funcgrad.profiling.session import FirstCall
from funcgrad.profiling.what_if import Trial, WhatIf

__all__ = [
    "FirstCall", "LineProfile", "MemoryProfile", "Profile", "Roofline", "Trial", "WhatIf",
    "profile",
]  # fmt: skip

present(__name__)
